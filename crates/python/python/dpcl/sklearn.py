"""The learner as an estimator of scikit-learn.

`X` is an array of images [count, height, width, 3] or [count, height, width], or the same flattened to
[count, height · width · 3]; images are square.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.multiclass import (  # type: ignore[import-untyped]
    check_classification_targets,
    unique_labels,
)
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_n_features,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ._images import Pixels
from ._images import many as _images
from ._learner import Floats, Learner


class ImageClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns images online: `partial_fit` goes on from what was learned, `fit` begins anew and passes once.

    `keys` are further keys of the configuration.

    >>> import numpy as np
    >>> from dpcl.sklearn import ImageClassifier
    >>> X, y = np.zeros((8, 16, 16, 3)), ["night"] * 8
    >>> ImageClassifier(memory=50, keys={"width": 4}).fit(X, y).predict(X[:1])
    array(['night'], dtype='<U5')
    """

    learner_: Learner
    """The learner, once something was fitted."""
    classes_: NDArray[Any]
    """Classes met or told of, sorted."""

    def __init__(
        self,
        method: str = "er",
        model: str = "resnet18",
        memory: int | None = None,
        seed: int = 1,
        keys: dict[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.model = model
        self.memory = memory
        self.seed = seed
        self.keys = keys

    def fit(self, X: Any, y: Any) -> Self:
        """Begins anew and learns the images in order, once."""
        for name in ("learner_", "classes_"):
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns further images in order. `classes` need not be told; those told are known from the beginning."""
        fresh = not hasattr(self, "learner_")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None\nhint: give one label an image")
        images = self._pixels(X, fresh)
        labels = column_or_1d(y, warn=True)
        if len(labels) != len(images):
            raise ValueError(f"{len(images)} images and {len(labels)} labels were given\nhint: give one label an image")
        check_classification_targets(labels)
        told = [labels if classes is None else np.asarray(classes), labels]
        known = [] if fresh else [self.classes_]
        classes_after = unique_labels(*known, *told)
        learner = self._new(images.shape[1]) if fresh else self.learner_
        learner.learn_many(images, labels.tolist())
        learner.flush()
        self.learner_, self.classes_ = learner, classes_after
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities [images, classes]; columns are in the order of `classes_`. A class not met has none."""
        check_is_fitted(self, "learner_")
        shares = self.learner_.predict_proba_many(self._pixels(X))
        columns = {label: column for column, label in enumerate(self.classes_.tolist())}
        ordered = np.zeros((len(shares), len(columns)), np.float32)
        ordered[:, [columns[label] for label in self.learner_.labels]] = shares
        return ordered

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each image."""
        check_is_fitted(self, "learner_")
        found: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return found

    def _new(self, size: int) -> Learner:
        keys = {**(self.keys or {}), "size": size}
        return Learner(method=self.method, model=self.model, memory=self.memory, seed=self.seed, **keys)

    def _pixels(self, X: Any, fresh: bool = False) -> Pixels:
        if hasattr(X, "detach"):
            X = X.detach().cpu().numpy() if X.ndim == 2 else X
        elif not hasattr(X, "ndim"):
            X = np.asarray(X)
        if X.ndim > 2:
            _check_n_features(self, X.reshape(len(X), -1), reset=fresh)
        else:
            X = self._unflattened(validate_data(self, X, reset=fresh, dtype=None))
        return _images(X)

    @staticmethod
    def _unflattened(rows: NDArray[Any]) -> NDArray[Any]:
        """Images from rows of pixels."""
        side = round((rows.shape[1] / 3) ** 0.5)
        if side == 0 or rows.shape[1] != side * side * 3:
            raise ValueError(
                f"rows of {rows.shape[1]} numbers are no square images with 3 colours\n"
                "hint: give images [count, height, width, 3]"
            )
        return rows.reshape(len(rows), side, side, 3)
