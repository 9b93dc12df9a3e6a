"""What a user's typed code looks like; mypy reads it, nothing runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpcl


def learn(images: NDArray[np.uint8], labels: list[str], place: Path) -> float:
    learner = dpcl.Learner(method="er", memory=100)
    learner.learn_one(images[0], labels[0])
    learner.learn_many(images, labels)
    shares: NDArray[np.float32] = learner.predict_proba_many(images)
    answer: dict[str, float] = learner.predict_proba_one(images[0])
    learner.save(place)
    again: dpcl.Learner = dpcl.Learner.load(place)
    weights: dict[str, NDArray[np.float32]] = again.state_dict()
    return max(answer.values()) + float(shares.max()) + len(weights)


def look(folder: Path) -> list[float]:
    record: dpcl.Record = dpcl.run(folder, method="er", seed=2)
    found: dpcl.Records = dpcl.read(folder, record.path)
    stream: dpcl.Stream = dpcl.streams(scenario="i-blurry", n=50.0)
    tasks: list[dpcl.Task] = stream.tasks
    image, label = tasks[0][0]
    pixels: NDArray[np.uint8] = image
    name: str = label
    return [share for record in found for _, share in record.accuracy] + [float(pixels.max()), float(len(name))]
