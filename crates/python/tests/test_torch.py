"""Weights to and from a real PyTorch, and images from its loaders."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.torch
import torch
from conftest import small, whole
from torch.utils.data import DataLoader, TensorDataset
from torch_network import Encoder

import dpcl


def theirs(network: Encoder, images: np.ndarray) -> np.ndarray:
    """Features that PyTorch makes of images as the learner normalises them: mean 0.5, deviation 0.25."""
    inputs = (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25
    with torch.no_grad():
        return network.eval()(inputs).numpy()


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape and ours.std() > 1e-3
    assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()


@pytest.mark.parametrize("method", ["er", "dpcl"], ids=["plain", "averaged"])
def test_a_learned_encoder_makes_the_same_features_in_pytorch(method, clothes):
    images, labels = clothes
    learner = small(method=method, width=8)
    learner.learn_many(images[:40], labels[:40])
    network = Encoder(width=8)
    arrays = {name: torch.from_numpy(array) for name, array in learner.state_dict().items()}
    found = network.load_state_dict(arrays, strict=False)
    assert found.unexpected_keys == [] and all(key.endswith("num_batches_tracked") for key in found.missing_keys)
    assert_same(learner.features_many(images), theirs(network, images))


def drawn() -> Encoder:
    """A network trained elsewhere, as far as anybody can tell: its running statistics are not the first ones."""
    torch.manual_seed(3)
    network = Encoder(width=8).train()
    for _ in range(5):
        network(torch.randn(16, 3, 32, 32))
    return network


def test_an_encoder_of_pytorch_makes_the_same_features_here(clothes):
    network, images = drawn(), clothes[0]
    learner = dpcl.Learner(width=8, memory=100)
    learner.load_state_dict(network.state_dict())
    assert_same(learner.features_many(images), theirs(network, images))


def test_files_of_safetensors_go_both_ways(clothes, tmp_path):
    network, images = drawn(), clothes[0]
    path = tmp_path / "encoder.safetensors"
    arrays = {f"encoder.{name}": array for name, array in network.state_dict().items()}
    safetensors.torch.save_file(arrays, path)
    learner = dpcl.Learner(width=8, memory=100, weights=path)
    assert_same(learner.features_many(images), theirs(network, images))
    learner.save(tmp_path / "it.ckpt")
    prefix = "core.model.encoder."
    held = safetensors.torch.load_file(tmp_path / "it.ckpt")
    encoder = {name.removeprefix(prefix): array for name, array in held.items() if name.startswith(prefix)}
    again = Encoder(width=8)
    again.load_state_dict(encoder, strict=False)
    assert_same(learner.features_many(images), theirs(again, images))


@pytest.mark.parametrize("workers", [0, 2])
def test_images_come_straight_from_a_loader(workers, clothes):
    images, labels = (part[:24] for part in clothes)
    classes = sorted(set(labels))
    numbers = torch.tensor([classes.index(label) for label in labels])
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    loader = DataLoader(TensorDataset(tensors, numbers), batch_size=10, num_workers=workers)
    learner, expected = small(), small()
    for X, y in loader:
        learner.learn_many(X, y)
    assert learner.labels == list(dict.fromkeys(numbers.tolist()))
    expected.learn_many(images, numbers.tolist())
    assert whole(learner) == whole(expected)
    assert learner.predict_one(tensors[0]) == learner.predict_one(images[0])
    with pytest.raises(ValueError, match="leave normalising to the learner"):
        learner.learn_many((tensors - 0.5) / 0.25, numbers)


def test_a_stream_is_a_data_set_to_pytorch():
    stream = dpcl.streams(tasks=2, classes=4, per_class=10)
    seen = [label for _, labels in DataLoader(stream.tasks[0], batch_size=8) for label in labels]
    assert seen == [label for _, label in stream.tasks[0]]
