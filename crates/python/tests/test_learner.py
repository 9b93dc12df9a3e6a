"""The verbs, labels of every kind, and being put away and taken up again."""

from __future__ import annotations

import copy
import enum
import math
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from conftest import small, whole

import dpcl


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_real_images_are_learned(clothes):
    images, labels = clothes
    learner = small(updates=4)
    learner.learn_many(images, labels)
    assert sorted(learner.labels) == sorted(set(labels))
    assert learner.samples == len(images)
    found = learner.predict_many(images)
    right = sum(found == label for found, label in zip(found, labels, strict=True))
    assert right > 0.8 * len(labels)


def test_many_are_as_one_after_the_other(clothes):
    images, labels = (part[:24] for part in clothes)
    one, many = small(), small()
    for image, label in zip(images, labels, strict=True):
        one.learn_one(image, label)
    many.learn_many(images, labels)
    assert whole(one) == whole(many)
    shares = many.predict_proba_many(images)
    assert shares.dtype == np.float32 and shares.shape == (24, 2)
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-5)
    first = many.predict_proba_one(images[0])
    assert list(first) == many.labels
    assert np.allclose(list(first.values()), shares[0], atol=1e-6)
    best = [many.labels[column] for column in shares.argmax(axis=1)]
    assert many.predict_many(images) == best and many.predict_one(images[0]) == best[0]


def test_answers_before_anything_is_learned_are_empty():
    learner, image = small(), np.zeros((32, 32, 3), np.uint8)
    assert learner.predict_one(image) is None
    assert learner.predict_proba_one(image) == {}
    assert learner.predict_many([image] * 2) == [None, None]
    assert learner.predict_proba_many([image] * 2).shape == (2, 0)


def test_asking_changes_nothing(clothes):
    images, labels = clothes
    learner = small()
    learner.learn_many(images[:20], labels[:20])
    before = whole(learner)
    learner.predict_many(images)
    learner.predict_proba_one(images[0])
    learner.features_many(images)
    learner.uncertainty_many(images)
    repr(learner)
    assert whole(learner) == before


def test_several_heads_say_how_much_they_disagree(clothes):
    images, labels = clothes
    learner = small(method="dpcl")
    learner.learn_many(images[:40], labels[:40])
    unsure = learner.uncertainty_many(images)
    assert unsure["entropy"].shape == unsure["disagreement"].shape == (len(images),)
    assert (unsure["disagreement"] > 0).any()
    assert (unsure["disagreement"] <= unsure["entropy"] + 1e-6).all()


LABELS = ["otter", 7, -3, (1, "a"), 2.5, None, b"raw", "python:7", "python#0", "\ud800", 2**80, ("deep", (1, (2,)))]


def test_labels_are_any_hashable(tmp_path):
    labels = [*LABELS, Colour.RED, frozenset({1, 2}), Colour]
    image = np.zeros((32, 32, 3), np.uint8)
    learner = small()
    for label in labels + labels:
        learner.learn_one(image, label)
    assert learner.labels == labels
    assert set(learner.predict_proba_one(image)) == set(labels)
    assert pickle.loads(pickle.dumps(learner)).labels == labels
    assert copy.deepcopy(learner).labels == labels
    before = whole(learner)
    with pytest.raises(TypeError, match="RED.*\nhint: pickle the learner"):
        learner.save(tmp_path / "otter.ckpt")
    assert not (tmp_path / "otter.ckpt").exists() and whole(learner) == before


def test_a_file_keeps_labels_that_python_can_spell(tmp_path):
    learner, image = small(), np.zeros((32, 32, 3), np.uint8)
    for label in LABELS:
        learner.learn_one(image, label)
    learner.save(tmp_path / "labels.ckpt")
    again = dpcl.Learner.load(tmp_path / "labels.ckpt")
    assert again.labels == LABELS
    assert [type(label) for label in again.labels] == [type(label) for label in LABELS]
    for label in LABELS:
        again.learn_one(image, label)
    assert again.labels == LABELS


def test_equal_labels_are_one_class():
    learner, image = small(), np.zeros((32, 32, 3), np.uint8)
    for label in [1, True, 1.0, np.int64(1), np.float32(1), np.array(1)]:
        learner.learn_one(image, label)
    learner.learn_many([image] * 2, np.array(["a", "b"]))
    assert learner.labels == [1, "a", "b"]
    assert [type(label) for label in learner.labels] == [int, str, str]


@pytest.mark.parametrize("way", ["file", "pickle", "deepcopy", "copy"])
def test_what_was_put_away_goes_on_bit_for_bit(way, clothes, tmp_path):
    images, labels = clothes
    learner = small(method="dpcl")
    # Some samples still wait for their batch to fill.
    learner.learn_many(images[:21], labels[:21])
    if way == "file":
        learner.save(tmp_path / "it.ckpt")
        again = dpcl.Learner.load(tmp_path / "it.ckpt")
    elif way == "pickle":
        again = pickle.loads(pickle.dumps(learner))
    else:
        again = getattr(copy, way)(learner)
    assert whole(again) == whole(learner)
    before = whole(learner)
    again.learn_many(images[21:50], labels[21:50])
    assert whole(learner) == before, "they are two learners"
    learner.learn_many(images[21:50], labels[21:50])
    assert whole(again) == whole(learner)


def test_it_says_what_it_is(clothes):
    images, labels = clothes
    learner = small(method="er")
    assert repr(learner) == "Learner(method='er', model='resnet18', size=32): 0 classes, 0 samples, 0 updates, 0 of 100 slots"
    learner.learn_many(images[:16], labels[:16])
    assert "2 classes, 16 samples, 48 updates, 16 of 100 slots" in repr(learner)


def test_other_threads_go_on_while_it_computes(clothes):
    images, labels = clothes
    ticks, over = [], threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks.append(len(ticks))
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    small(width=8).learn_many(images, labels)
    after = len(ticks)
    over.set()
    thread.join()
    assert after - before > 20


def test_two_threads_may_use_one_learner(clothes):
    images, labels = clothes
    learner, shared = small(), []
    learner.learn_many(images[:8], labels[:8])

    def ask() -> None:
        shared.extend(learner.predict_many(images[:10]) for _ in range(5))

    thread = threading.Thread(target=ask)
    thread.start()
    learner.learn_many(images[8:40], labels[8:40])
    thread.join()
    alone = small()
    alone.learn_many(images[:40], labels[:40])
    assert len(shared) == 5 and whole(learner) == whole(alone)


@pytest.mark.parametrize("keys", [{}, {"model": "resnet18", "width": 64}], ids=["small", "wide"])
def test_an_interrupt_is_answered_and_nothing_is_lost(keys, clothes):
    images, labels = (np.concatenate([clothes[0]] * 40), clothes[1] * 40)
    learner = small(**keys)
    learner.learn_one(images[0], labels[0])
    sent = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        learner.learn_many(images[1:], labels[1:])
    waited = time.monotonic() - sent[0]
    assert waited < 1, "answered within a second"
    learned = learner.samples
    assert 1 < learned < len(images)
    undisturbed = small(**keys)
    undisturbed.learn_many(images[:learned], labels[:learned])
    assert whole(learner) == whole(undisturbed)
    learner.learn_many(images[learned : learned + 3], labels[learned : learned + 3])
    assert learner.samples == learned + 3


def test_methods_that_are_told_tasks_are(clothes):
    images, labels = clothes
    learner = small(method="ccll")
    with pytest.raises(ValueError, match="must be told the task.*\nhint: say it with `task=`"):
        learner.learn_one(images[0], labels[0])
    learner.learn_many(images[:16], labels[:16], task=0)
    learner.task_end()
    assert learner.samples == 16
    assert not math.isnan(sum(learner.predict_proba_one(images[0], task=0).values()))
