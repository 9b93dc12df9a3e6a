"""The learner, with River's verbs."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from . import _images, _native
from ._labels import Labels

Floats = NDArray[np.float32]

# Version of what a pickle holds; the checkpoint in it has one of its own.
_PICKLE = 1


class Learner:
    """A learner of image classes that takes samples one by one and answers at any time.

    Keyword arguments are the keys of a configuration (`dpcl.keys()` lists them), with the same defaults and checks; a
    method's own keys are a dictionary under the method's table, as in `Learner(method="dpcl", dpcl={"heads": 3})`.
    Images are square, of the side `size` (32 unless given).

    >>> import numpy as np, dpcl
    >>> night, day = np.full((16, 16, 3), 20, np.uint8), np.full((16, 16, 3), 230, np.uint8)
    >>> learner = dpcl.Learner(method="er", size=16, width=4, memory=50)
    >>> for _ in range(8):
    ...     learner.learn_one(night, "night")
    ...     learner.learn_one(day, "day")
    >>> learner
    Learner(method='er', model='resnet18', size=16): 2 classes, 16 samples, 48 updates, 16 of 50 slots
    >>> sorted(learner.predict_proba_one(day))
    ['day', 'night']
    """

    _learner: _native.Learner
    _labels: Labels

    def __init__(self, **keys: Any) -> None:
        self._learner = _native.Learner(keys)
        self._labels = Labels()

    @classmethod
    def _of(cls, learner: _native.Learner, labels: Labels) -> Self:
        new = cls.__new__(cls)
        new._learner = learner
        new._labels = labels
        return new

    def learn_one(self, x: Any, y: Hashable, *, task: int | None = None) -> None:
        """Takes in one labelled image.

        `x` is an array [height, width, 3] of uint8 or of floats from 0 to 1, a picture of PIL or a PyTorch tensor
        [3, height, width]; grey images will do. `y` is any hashable label. `task` is heard by methods that are told
        task ids (`ccll`, `ctn`) and by no other.

        >>> import numpy as np, dpcl
        >>> learner = dpcl.Learner(size=16, width=4)
        >>> learner.learn_one(np.zeros((16, 16, 3)), ("cat", 3))
        >>> learner.labels
        [('cat', 3)]
        """
        pixels = _images.one(x)
        self._learner.learn(pixels, [self._labels.name(y)], task)

    def learn_many(self, X: Any, y: Iterable[Hashable], *, task: int | None = None) -> None:
        """Takes in labelled images in order, as `learn_one` would one after the other.

        Images and labels are all looked at before the first is learned. When it is interrupted, what was learned until
        then stays learned; `samples` says how much that is.

        >>> import numpy as np, dpcl
        >>> learner = dpcl.Learner(size=16, width=4)
        >>> learner.learn_many(np.zeros((3, 16, 16, 3), np.uint8), [0, 1, 0])
        >>> learner.samples
        3
        """
        pixels = _images.many(X)
        names = [self._labels.name(label) for label in _images.labels(y, len(pixels))]
        self._learner.learn(pixels, names, task)

    def predict_one(self, x: Any, *, task: int | None = None) -> Any:
        """The most probable label of an image; `None` before the first sample.

        >>> import numpy as np, dpcl
        >>> dpcl.Learner(size=16, width=4).predict_one(np.zeros((16, 16, 3))) is None
        True
        """
        pixels = _images.one(x)
        labels, probabilities = self._predict(pixels, task)
        return labels[int(probabilities[0].argmax())] if labels else None

    def predict_many(self, X: Any, *, task: int | None = None) -> list[Any]:
        """The most probable label of each image.

        >>> import numpy as np, dpcl
        >>> learner = dpcl.Learner(size=16, width=4)
        >>> learner.learn_one(np.zeros((16, 16, 3)), "night")
        >>> learner.predict_many(np.zeros((2, 16, 16, 3)))
        ['night', 'night']
        """
        pixels = _images.many(X)
        labels, probabilities = self._predict(pixels, task)
        return [labels[column] if labels else None for column in self._best(probabilities)]

    def predict_proba_one(self, x: Any, *, task: int | None = None) -> dict[Any, float]:
        """Every label met so far with its probability; empty before the first sample.

        >>> import numpy as np, dpcl
        >>> learner = dpcl.Learner(size=16, width=4)
        >>> learner.learn_one(np.zeros((16, 16, 3)), "night")
        >>> learner.predict_proba_one(np.zeros((16, 16, 3)))
        {'night': 1.0}
        """
        pixels = _images.one(x)
        labels, probabilities = self._predict(pixels, task)
        return dict(zip(labels, map(float, probabilities[0]), strict=True))

    def predict_proba_many(self, X: Any, *, task: int | None = None) -> Floats:
        """Probabilities [images, classes]; columns are in the order of `labels`.

        >>> import numpy as np, dpcl
        >>> learner = dpcl.Learner(size=16, width=4)
        >>> learner.learn_many(np.zeros((2, 16, 16, 3)), ["night", "day"])
        >>> learner.predict_proba_many(np.zeros((5, 16, 16, 3))).shape
        (5, 2)
        """
        return self._predict(_images.many(X), task)[1]

    def uncertainty_many(self, X: Any, *, task: int | None = None) -> dict[str, NDArray[np.float64]]:
        """How unsure the answers are, in nats: `entropy` in all, and `disagreement` among several heads.

        >>> import numpy as np, dpcl
        >>> learner = dpcl.Learner(size=16, width=4)
        >>> learner.learn_one(np.zeros((16, 16, 3)), "night")
        >>> learner.uncertainty_many(np.zeros((1, 16, 16, 3)))["entropy"].round(6) + 0.0
        array([0.])
        """
        pixels = _images.many(X)
        if not self._learner.labels():
            raise ValueError("nothing has been learned yet\nhint: call `learn_one` with at least one image first")
        _, _, disagreement, entropy = self._learner.predict(pixels, task)
        return {"entropy": np.array(entropy), "disagreement": np.array(disagreement)}

    def _predict(self, pixels: _images.Pixels, task: int | None) -> tuple[list[Any], Floats]:
        if not self._learner.labels():
            return [], np.empty((len(pixels), 0), np.float32)
        names, probabilities, _, _ = self._learner.predict(pixels, task)
        labels = self._labels.all(names)
        return labels, np.frombuffer(probabilities, np.float32).reshape(len(pixels), len(labels)).copy()

    @staticmethod
    def _best(probabilities: Floats) -> list[int]:
        if probabilities.shape[1] == 0:
            return [0] * len(probabilities)
        return [int(column) for column in probabilities.argmax(axis=1)]

    def features_many(self, X: Any) -> Floats:
        """Feature vectors [images, features]: what the heads answer from.

        >>> import numpy as np, dpcl
        >>> dpcl.Learner(size=16, width=4).features_many(np.zeros((5, 16, 16, 3))).shape
        (5, 32)
        """
        pixels = _images.many(X)
        features = np.frombuffer(self._learner.features(pixels), np.float32)
        return features.reshape(len(pixels), -1).copy()

    def flush(self) -> None:
        """Learns from samples that still wait for their batch to fill."""
        self._learner.flush()

    def task_end(self) -> None:
        """Tells a method that is told where tasks end that one did; others do not hear of it."""
        self._learner.task_end()

    def finish(self) -> None:
        """Tells the method that nothing more will come: some learn only then."""
        self._learner.finish()

    @property
    def labels(self) -> list[Any]:
        """Labels met so far, in order of first arrival."""
        return self._labels.all(self._learner.labels())

    @property
    def samples(self) -> int:
        """Samples taken in so far."""
        return int(self._standing()["samples"])

    @property
    def updates(self) -> int:
        """Training steps taken so far."""
        return int(self._standing()["updates"])

    @property
    def config(self) -> dict[str, Any]:
        """The configuration with every value settled.

        >>> import dpcl
        >>> dpcl.Learner(size=16, width=4).config["memory_scheme"]
        'reservoir'
        """
        return dict(self._standing()["config"])

    def _standing(self) -> dict[str, Any]:
        return dict(json.loads(self._learner.standing()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything its future depends on to a file; the file is there whole or not at all.

        The `dpcl` command and the Rust library read the file too. It holds labels that Python can spell: strings,
        numbers, tuples of them. A learner with others can be pickled.
        """
        self._labels.refuse_unspelled(self._learner.labels())
        self._learner.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Takes up a learner that was saved; it goes on bit for bit as the saved one would have."""
        return cls._of(_native.Learner.load(path), Labels())

    def state_dict(self) -> dict[str, Floats]:
        """The encoder that answers: weights and running statistics in PyTorch's layouts, by name.

        >>> import dpcl
        >>> dpcl.Learner(size=16, width=4).state_dict()["stem.conv.weight"].shape
        (4, 3, 3, 3)
        """
        arrays = self._learner.encoder()
        return {name: np.frombuffer(numbers, np.float32).reshape(shape).copy() for name, shape, numbers in arrays}

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Begins with an encoder trained elsewhere: arrays or tensors under the names of `state_dict`.

        Names may have a prefix that ends with `encoder.`; others are passed over. Only a learner that has learned
        nothing yet can begin; the key `weights` names a safetensors file to begin with.
        """
        found = []
        for name, values in arrays.items():
            if hasattr(values, "detach"):
                values = values.detach().cpu()
            array = np.asarray(values)
            if array.dtype.kind == "f":
                floats = np.ascontiguousarray(array, np.float32)
                found.append((name.rpartition("encoder.")[2], list(array.shape), floats.reshape(-1)))
        self._learner.begin_with_encoder(found)

    def __repr__(self) -> str:
        standing = self._standing()
        config = standing["config"]
        about = ", ".join(f"{key}={config[key]!r}" for key in ("method", "model", "size"))
        counts = f"{standing['classes']} classes, {standing['samples']} samples, {standing['updates']} updates"
        return f"Learner({about}): {counts}, {standing['stored']} of {config['memory']} slots"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._of(self._learner.copy(), self._labels.copy())

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __getstate__(self) -> dict[str, Any]:
        return {
            "pickle": _PICKLE,
            "program": _native.__version__,
            "checkpoint": self._learner.to_bytes(),
            "labels": self.labels,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.get("pickle") if isinstance(state, dict) else None
        if version != _PICKLE:
            made = state.get("program", "unknown") if isinstance(state, dict) else "unknown"
            raise pickle.UnpicklingError(
                f"a pickle of layout {version} was given, made by dpcl {made}; dpcl {_native.__version__} reads "
                f"{_PICKLE}\nhint: read it with the program that wrote it and save it to a file with `save`"
            )
        try:
            learner = _native.Learner.from_bytes(state["checkpoint"])
            labels = Labels.of(learner.labels(), state["labels"])
        except (KeyError, TypeError, ValueError) as error:
            raise pickle.UnpicklingError(f"the pickle holds no learner: {error}") from error
        self._learner = learner
        self._labels = labels

    # What River asks its models.
    @property
    def _supervised(self) -> bool:
        return True

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _raw_memory_usage(self) -> int:
        return len(self._learner.to_bytes())
