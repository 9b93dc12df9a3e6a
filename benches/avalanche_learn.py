"""Experience replay of Avalanche on the stream of `python_learn.py`, with the same network, batch and updates.

Eight samples arrive together and earn eight steps each time; a batch is those eight and eight of the memory's.
"""

import json
import os
import sys
import time

import numpy as np
import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.scenarios.online import split_online_stream
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from avalanche.training.storage_policy import ReservoirSamplingBuffer
from avalanche.training.supervised import Naive

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../crates/python/tests"))
from torch_network import Encoder

keys = json.loads(sys.argv[1])
stream = np.load(sys.argv[2])
torch.set_num_threads(keys["threads"])
torch.manual_seed(keys["seed"])
half = keys["batch"] // 2
images = ((torch.from_numpy(stream["images"]).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25).contiguous()
labels = torch.from_numpy(stream["labels"])
tasks = torch.from_numpy(stream["tasks"])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder(keys["width"])
        self.head = torch.nn.Linear(8 * keys["width"], int(labels.max()) + 1)

    def forward(self, x):
        self.rows = len(x)
        return self.head(self.encoder(x))



class Samples(torch.utils.data.TensorDataset):
    def __init__(self, images, labels):
        super().__init__(images, labels)
        self.targets = labels.tolist()

    def __getitem__(self, number):
        return self.tensors[0][number], self.targets[number]


datasets = [as_classification_dataset(Samples(images[tasks == task], labels[tasks == task])) for task in tasks.unique()]
benchmark = benchmark_from_datasets(train=datasets)
network = Network()
strategy = Naive(
    model=network,
    optimizer=torch.optim.Adam(network.parameters(), lr=keys["lr"], fused=True),
    criterion=torch.nn.CrossEntropyLoss(),
    train_mb_size=half,
    train_epochs=int(half * keys["updates"]),
    plugins=[
        ReplayPlugin(
            mem_size=keys["memory"],
            batch_size=half,
            batch_size_mem=half,
            storage_policy=ReservoirSamplingBuffer(keys["memory"]),
        )
    ],
    evaluator=EvaluationPlugin(loggers=[]),
)
begun = time.perf_counter()
for experience in split_online_stream(benchmark.train_stream, experience_size=half, drop_last=False):
    strategy.train(experience, num_workers=0)
seconds = time.perf_counter() - begun
assert network.rows == 2 * half, "half of a batch is the memory's"
print(json.dumps({"seconds": seconds, "samples": len(labels), "updates": strategy.clock.train_iterations}))
