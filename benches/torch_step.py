"""The same training step and evaluation in PyTorch, timed the way `dpcl bench step` times its own.

Prints one JSON object with the fields of `dpcl bench step --format json`.
"""

import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTHS = {"slim": 20, "resnet18": 64, "resnet34": 64, "resnet34-imagenet": 64}
DEPTHS = {
    "slim": [2, 2, 2, 2],
    "resnet18": [2, 2, 2, 2],
    "resnet34": [3, 4, 6, 3],
    "resnet34-imagenet": [3, 4, 6, 3],
}
WARM_UP = 3


class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-6)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)), inplace=True)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride, relu_after_sum):
        super().__init__()
        self.first = ConvBlock(inputs, outputs, 3, stride)
        self.second = ConvBlock(outputs, outputs, 3, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = ConvBlock(inputs, outputs, 1, stride) if changes else nn.Identity()
        self.relu_after_sum = relu_after_sum

    def forward(self, x):
        y = self.second(self.first(x)) + self.shortcut(x)
        return F.relu(y) if self.relu_after_sum else y


class Network(nn.Module):
    def __init__(self, name, classes=100):
        super().__init__()
        width, self.imagenet = WIDTHS[name], name.endswith("imagenet")
        self.stem = ConvBlock(3, width, 7, 2) if self.imagenet else ConvBlock(3, width, 3, 1)
        blocks, inputs = [], width
        for group, depth in enumerate(DEPTHS[name]):
            outputs = width << group
            for block in range(depth):
                stride = 2 if group > 0 and block == 0 else 1
                blocks.append(Block(inputs, outputs, stride, self.imagenet))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.stem(x)
        if self.imagenet:
            x = F.max_pool2d(x, 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


def timing(count, body):
    for _ in range(WARM_UP):
        body()
    times = []
    for _ in range(max(1, count)):
        begin = time.perf_counter()
        body()
        times.append((time.perf_counter() - begin) * 1e3)
    return {"median": statistics.median(times), "min": min(times)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="slim", choices=sorted(WIDTHS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--eval-batch", type=int, default=128)
    parser.add_argument("--variant", default="best", choices=["default", "best", "compiled"])
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    network = Network(options.model)
    layout = torch.contiguous_format if options.variant == "default" else torch.channels_last
    network = network.to(memory_format=layout)
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-4, fused=options.variant != "default")
    forward = torch.compile(network) if options.variant == "compiled" else network
    size = options.size
    images = torch.randn(options.batch, 3, size, size).to(memory_format=layout)
    labels = torch.randint(0, 100, (options.batch,))

    def step():
        optimiser.zero_grad(set_to_none=True)
        loss = F.cross_entropy(forward(images), labels)
        loss.backward()
        optimiser.step()
        loss.item()

    train = timing(options.steps, step)
    network.eval()
    images_to_judge = torch.randn(options.eval_batch, 3, size, size).to(memory_format=layout)

    def evaluate():
        with torch.no_grad():
            forward(images_to_judge)

    evaluation = timing(-(-options.steps // 4), evaluate)
    print(
        json.dumps(
            {
                "model": options.model,
                "batch": options.batch,
                "size": size,
                "threads": options.threads,
                "isa": torch.backends.cpu.get_cpu_capability().lower(),
                "train_ms": train,
                "eval_ms_per_image": {key: value / options.eval_batch for key, value in evaluation.items()},
                "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
