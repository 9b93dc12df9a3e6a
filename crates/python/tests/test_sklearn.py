"""The estimator of scikit-learn, and which of its checks apply."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import whole
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import dpcl
from dpcl.sklearn import ImageClassifier

KEYS = {"width": 4}


def test_it_learns_online_and_answers(clothes):
    images, labels = clothes
    estimator = ImageClassifier(memory=100, keys={**KEYS, "updates": 4})
    with pytest.raises(NotFittedError):
        estimator.predict(images)
    estimator.partial_fit(images[:40], labels[:40]).partial_fit(images[40:], labels[40:])
    assert estimator.learner_.samples == len(images)
    assert list(estimator.classes_) == sorted(set(labels))
    shares = estimator.predict_proba(images)
    assert shares.shape == (len(images), 2) and np.allclose(shares.sum(axis=1), 1, atol=1e-5)
    assert estimator.score(images, labels) > 0.8
    rows = images.reshape(len(images), -1)
    assert (estimator.predict(rows) == estimator.predict(images)).all()


def test_it_is_the_learner_with_other_verbs(clothes):
    images, labels = clothes
    estimator = ImageClassifier(memory=100, keys=KEYS).fit(images[:32], labels[:32])
    learner = dpcl.Learner(method="er", memory=100, **KEYS)
    learner.learn_many(images[:32], labels[:32])
    learner.flush()
    assert whole(estimator.learner_) == whole(learner)
    again = clone(estimator)
    assert not hasattr(again, "learner_") and again.get_params() == estimator.get_params()
    again.fit(images, labels).fit(images[:32], labels[:32])
    assert whole(again.learner_) == whole(learner), "fitting begins anew"


def test_classes_told_beforehand_have_columns(clothes):
    images, labels = clothes
    told = sorted({*labels, "zebra", "aardvark"})
    estimator = ImageClassifier(memory=100, keys=KEYS).partial_fit(images[:8], labels[:8], classes=told)
    shares = estimator.predict_proba(images[:3])
    assert list(estimator.classes_) == told and shares.shape == (3, 4)
    assert (shares[:, [told.index("zebra"), told.index("aardvark")]] == 0).all()


def test_bad_input_leaves_it_as_before(clothes):
    images, labels = (part[:16] for part in clothes)
    estimator = ImageClassifier(memory=100, keys=KEYS).fit(images, labels)
    before = whole(estimator.learner_)
    for X, y in ((images, labels[:3]), (images[:, :, :, :2], labels), (images.reshape(16, -1)[:, 1:], labels)):
        with pytest.raises(ValueError, match="\nhint: |expecting 3072 features"):
            estimator.partial_fit(X, y)
    with pytest.raises(ValueError):
        estimator.partial_fit(images, np.linspace(0.1, 0.9, 16))
    assert whole(estimator.learner_) == before


class Drawn(ImageClassifier):
    """Tables of numbers drawn as images, so that checks made for tables can be made: a column is a grey pixel."""

    @staticmethod
    def _unflattened(rows):
        pixels = np.zeros((len(rows), 64))
        pixels[:, : rows.shape[1]] = 1 / (1 + np.exp(-np.asarray(rows, float)[:, :64]))
        return np.stack([pixels.reshape(-1, 8, 8)] * 3, axis=-1)


def test_checks_of_scikit_learn():
    estimator = Drawn(memory=200, keys={"width": 4, "updates": 4, "autoaugment": "none", "pad_crop": 0})
    done = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}
    assert not failed
    passed = {check["check_name"] for check in done if check["status"] == "passed"}
    assert len(passed) > 45
    # Of those that are skipped, one wants an environment variable of SciPy.
    skipped = {check["check_name"] for check in done if check["status"] == "skipped"}
    assert skipped == {"check_array_api_input"}
