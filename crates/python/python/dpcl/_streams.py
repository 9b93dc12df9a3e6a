"""A scenario's samples in order, for people with a learner of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from . import _native
from ._images import Pixels

Sample = tuple[Pixels, str]


class Samples(Sequence[Sample]):
    """Labelled images in a fixed order, read when they are asked for: a map-style data set to PyTorch, too."""

    def __init__(self, count: int, classes: list[str], read: Any) -> None:
        self._count = count
        self._classes = classes
        self._read = read

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"there is no sample {index} among {len(self)}")
        pixels, height, width, label = self._read(number)
        return np.frombuffer(pixels, np.uint8).reshape(height, width, 3).copy(), self._classes[label]

    def __iter__(self) -> Iterator[Sample]:
        return (self[number] for number in range(len(self)))

    def arrays(self) -> tuple[Pixels, list[str]]:
        """All images in one array, and their labels."""
        samples = list(self)
        return np.stack([image for image, _ in samples]), [label for _, label in samples]


class Task(Samples):
    """The samples of one task of a stream."""

    def __init__(self, stream: _native.Stream, number: int, count: int, tested: list[str], classes: list[str]) -> None:
        super().__init__(count, classes, lambda sample: stream.sample(number, sample))
        self.number = number
        """Which task, from 0."""
        self.classes = tested
        """Classes whose test images are this task's."""

    def __repr__(self) -> str:
        return f"Task({self.number}: {len(self)} samples, tested on {', '.join(self.classes)})"


class Stream:
    """What comes when: tasks one after the other, each a sequence of labelled images, and the test images.

    Iterating gives every sample `(image, label)` of the whole stream in order, as River's functions take them.
    """

    def __init__(self, **keys: Any) -> None:
        self._stream = _native.Stream(keys)
        self.classes: list[str] = self._stream.classes()
        """Names of the data set's classes."""
        self.tasks: list[Task] = [
            Task(self._stream, number, count, [self.classes[label] for label in tested], self.classes)
            for number, (count, tested) in enumerate(self._stream.tasks())
        ]
        """The tasks in order."""
        self.size: int = self._stream.size()
        """Height and width of the images."""
        self.mean, self.std = (tuple(share) for share in self._stream.normalisation())
        """Mean and deviation of the colours, 0 to 1: the keys `mean` and `std` of a learner."""

    @property
    def test(self) -> Samples:
        """The test images of the classes that the stream brings."""
        return Samples(self._stream.test_count(), self.classes, self._stream.test_sample)

    def __len__(self) -> int:
        return sum(map(len, self.tasks))

    def __iter__(self) -> Iterator[Sample]:
        return (sample for task in self.tasks for sample in task)

    def export(self, folder: str | os.PathLike[str]) -> list[str]:
        """Writes the stream as split files, which `streams(split=folder, …)` and the `dpcl` command read."""
        return [os.fspath(path) for path in self._stream.export(folder)]

    def __repr__(self) -> str:
        counts = f"{len(self.tasks)} tasks, {len(self)} samples, {len(self.test)} test images"
        return f"Stream({counts}, {self.size} × {self.size} pixels)"


def streams(**keys: Any) -> Stream:
    """The stream that a run with these keys would learn.

    >>> import dpcl
    >>> stream = dpcl.streams(scenario="i-blurry", n=50, m=10, seed=3)
    >>> stream
    Stream(5 tasks, 2500 samples, 500 test images, 32 × 32 pixels)
    >>> image, label = stream.tasks[0][0]
    >>> image.shape, label in stream.classes
    ((32, 32, 3), True)
    """
    return Stream(**keys)
