"""Whatever is given: an exception of a fitting kind with a way out, and the learner as before."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from conftest import small, whole

import dpcl

GOOD = np.zeros((32, 32, 3), np.uint8)
SPOILED = np.zeros((3, 32, 32, 3))
SPOILED[2, 5, 5, 0] = np.nan

IMAGES = {
    "whole numbers": (GOOD.astype(np.int64), TypeError, "pixels of type int64"),
    "switches": (GOOD.astype(bool), TypeError, "pixels of type bool"),
    "complex": (GOOD.astype(complex), TypeError, "pixels of type complex128"),
    "objects": (np.full((32, 32, 3), "x"), TypeError, "pixels of type <U1"),
    "another size": (np.zeros((28, 28, 3), np.uint8), ValueError, "28 × 28 pixels.*\nhint: resize.*size="),
    "not square": (np.zeros((32, 16, 3), np.uint8), ValueError, "32 × 16 pixels"),
    "four colours": (np.zeros((32, 32, 4), np.uint8), ValueError, r"hint: leave the fourth colour out"),
    "colours first": (np.zeros((3, 32, 32), np.uint8), ValueError, r"hint: colours come last.*moveaxis"),
    "one dimension": (np.zeros(3072, np.uint8), ValueError, "shape .*3072"),
    "five dimensions": (np.zeros((1, 1, 32, 32, 3), np.uint8), ValueError, "cannot be taken"),
    "no pixels": (np.zeros((0, 32, 3), np.uint8), ValueError, "without pixels"),
    "not a number": (np.full((32, 32, 3), np.nan), ValueError, "no finite numbers.*\nhint: look for damaged"),
    "infinite": (np.full((32, 32, 3), np.inf), ValueError, "no finite numbers"),
    "0 to 255 as floats": (np.full((32, 32, 3), 200.0), ValueError, "hint: divide by 255"),
    "normalised": (np.full((32, 32, 3), -1.0), ValueError, "leave normalising to the learner"),
    "a text": ("otter.png", TypeError, "a str is no image"),
    "nothing": (None, TypeError, "a NoneType is no image"),
    "a dictionary": ({"pixel": 1}, TypeError, "a dict is no image"),
    "a list": ([[0, 0], [0, 0]], TypeError, "a list is no image"),
}


@pytest.fixture
def learner():
    learner = small()
    learner.learn_many([GOOD] * 3, ["a", "b", "a"])
    return learner


@pytest.mark.parametrize("name", IMAGES)
def test_bad_images(name, learner):
    image, kind, text = IMAGES[name]
    before = whole(learner)
    for call in (
        lambda: learner.learn_one(image, "new"),
        lambda: learner.predict_one(image),
        lambda: learner.predict_proba_one(image),
        lambda: learner.learn_many([image], ["new"]),
        lambda: learner.features_many([image]),
    ):
        with pytest.raises(kind, match=f"(?s){text}") as raised:
            call()
        assert "\nhint: " in str(raised.value)
    assert whole(learner) == before and learner.labels == ["a", "b"]


BATCHES = {
    "one spoiled pixel": (SPOILED, "abc", ValueError, "no finite numbers"),
    "zero rows": (np.zeros((0, 32, 32, 3), np.uint8), "", ValueError, "no image was given"),
    "an empty list": ([], [], ValueError, "no image was given"),
    "several sizes": ([GOOD, GOOD[:16]], "ab", ValueError, "several sizes"),
    "too few labels": ([GOOD] * 3, ["a"], ValueError, "3 images and 1 labels"),
    "too many labels": ([GOOD], ["a", "b"], ValueError, "1 images and 2 labels"),
    "a text as labels": ([GOOD], "a", TypeError, "no list of labels"),
    "no labels": ([GOOD], None, TypeError, "no list of labels"),
    "the last label a list": ([GOOD] * 2, ["a", ["b"]], TypeError, "label of type list cannot be hashed"),
    "no list": (7, ["a"], TypeError, "a int is no list of images"),
    "a text": ("otter", ["a"], TypeError, "a str is no list of images"),
}


@pytest.mark.parametrize("name", BATCHES)
def test_bad_batches_are_refused_before_the_first_image_is_learned(name, learner):
    images, labels, kind, text = BATCHES[name]
    before = whole(learner)
    with pytest.raises(kind, match=f"(?s){text}") as raised:
        learner.learn_many(images, labels if labels != "abc" else ["a", "b", "c"])
    assert "\nhint: " in str(raised.value)
    assert whole(learner) == before


UNUSABLE = {
    "a list": (["a"], TypeError, "cannot be hashed"),
    "a dictionary": ({}, TypeError, "cannot be hashed"),
    "an array": (np.array([1, 2]), TypeError, "cannot be hashed"),
    "not a number": (float("nan"), ValueError, "not equal to itself"),
    "not a time": (np.datetime64("NaT"), (ValueError, TypeError), "hint"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_labels_that_cannot_be_looked_up(name, learner):
    label, kind, text = UNUSABLE[name]
    before = whole(learner)
    if name != "not a time":
        with pytest.raises(kind, match=f"(?s){text}.*\nhint: "):
            learner.learn_one(GOOD, label)
        assert whole(learner) == before
    else:
        # NumPy makes it Python's `None`, which is a label.
        learner.learn_one(GOOD, label)
        assert learner.labels[-1] is None


KEYS = {
    "a slip": ({"memmory": 5}, TypeError, "unknown configuration key `memmory`\nhint: did you mean `memory`"),
    "another's own": ({"candidates": 5}, TypeError, r"did you mean `mir=\{\"candidates\": …\}`"),
    "a slip in a table": ({"dpcl": {"head": 5}}, TypeError, "unknown configuration key `dpcl.head`\nhint: did you mean `dpcl.heads`"),
    "no method": ({"method": "err"}, ValueError, "no method called `err`\nhint: did you mean `er`"),
    "out of range": ({"batch": 3}, ValueError, "configuration key `batch`: must be an even number of at least 2, not 3"),
    "negative": ({"memory": -1}, ValueError, "configuration key `memory`: must be a whole number"),
    "another kind": ({"memory": "many"}, ValueError, "configuration key `memory`: must be a whole number, not \"many\""),
    "no value of a configuration": ({"lr": object()}, TypeError, "configuration key `lr`: a value of type `object`"),
    "too large": ({"seed": 2**70}, OverflowError, "configuration key `seed`"),
    "no number": ({"lr": float("nan")}, ValueError, "configuration key `lr`"),
    "no such file": ({"weights": "/nowhere/w.safetensors"}, FileNotFoundError, "/nowhere/w.safetensors"),
    "not small": ({"size": 4}, ValueError, "configuration key `size`: must be at least 8"),
}


@pytest.mark.parametrize("name", KEYS)
def test_bad_keys(name):
    keys, kind, text = KEYS[name]
    with pytest.raises(kind, match=f"(?s){text}"):
        dpcl.Learner(**keys)


def test_keys_may_be_of_numpy_and_paths(tmp_path):
    learner = dpcl.Learner(memory=np.int64(7), width=4, lr=np.float64(0.001), mean=np.array([0.5] * 3), std=(0.25,) * 3)
    assert (learner.config["memory"], learner.config["lr"]) == (7, 0.001)
    with pytest.raises(FileNotFoundError, match="w.safetensors"):
        dpcl.Learner(weights=tmp_path / "w.safetensors")


def test_files_that_are_no_checkpoints(tmp_path, learner):
    path = tmp_path / "it.ckpt"
    with pytest.raises(FileNotFoundError, match="it.ckpt"):
        dpcl.Learner.load(path)
    for content in (b"", b"not a checkpoint", np.random.default_rng(1).bytes(5000)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="it.ckpt is (not a|a damaged) checkpoint.*\nhint: "):
            dpcl.Learner.load(path)
    learner.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is a damaged checkpoint.*\nhint: "):
        dpcl.Learner.load(path)
    with pytest.raises(OSError):
        dpcl.Learner.load(tmp_path)
    with pytest.raises(TypeError):
        dpcl.Learner.load(7)
    with pytest.raises(OSError):
        learner.save(tmp_path / "no folder" / "it.ckpt")


def test_pickles_of_another_version(learner):
    state = learner.__getstate__()
    blank = dpcl.Learner.__new__(dpcl.Learner)
    newer = {**state, "pickle": 2, "program": "9.0.0"}
    with pytest.raises(pickle.UnpicklingError, match=r"layout 2 was given, made by dpcl 9\.0\.0.*\nhint: "):
        blank.__setstate__(newer)
    for wrong in ({}, None, {**state, "checkpoint": b"no"}, {**state, "labels": ["a"]}, {"pickle": 1}):
        with pytest.raises(pickle.UnpicklingError):
            blank.__setstate__(wrong)
    damaged = bytearray(state["checkpoint"])
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(pickle.UnpicklingError, match="damaged"):
        blank.__setstate__({**state, "checkpoint": bytes(damaged)})
    # A learner that takes another's state and fails stays what it was.
    before = whole(learner)
    with pytest.raises(pickle.UnpicklingError):
        learner.__setstate__(newer)
    assert whole(learner) == before


def test_encoders_that_do_not_fit(learner):
    fresh = small()
    before = whole(fresh)
    arrays = fresh.state_dict()
    for change, text in (
        ({"stem.conv.weight": np.zeros((4, 3, 3, 2), np.float32)}, r"stem.conv.weight.*shape \[4, 3, 3, 2\]"),
        ({"stem.bn.weight": np.full(4, np.nan, np.float32)}, "stem.bn.weight"),
    ):
        with pytest.raises(ValueError, match=text):
            fresh.load_state_dict({**arrays, **change})
    with pytest.raises(ValueError, match="is missing"):
        fresh.load_state_dict({})
    assert whole(fresh) == before
    with pytest.raises(RuntimeError, match="has learned 3 samples\nhint: give them to a new learner"):
        learner.load_state_dict(arrays)


def test_training_that_runs_away_says_so():
    learner = small(lr=1e30, rate="constant")
    with pytest.raises(ArithmeticError, match="loss became.*\nhint: lower `lr`"):
        learner.learn_many(np.random.default_rng(1).random((64, 32, 32, 3)), list(range(8)) * 8)


def test_a_forked_process_is_refused(learner):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            learner.predict_one(GOOD)
            os.write(writer, b"answered")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"hint: start processes with" in os.read(reader, 1000)


def test_folders_without_records(tmp_path):
    with pytest.raises(FileNotFoundError, match="no run was recorded.*\nhint: give the folder of a run, or one above it"):
        dpcl.read(tmp_path)
    (tmp_path / "config.toml").write_text("= no")
    (tmp_path / "events.jsonl").write_text("")
    with pytest.raises(ValueError, match="config.toml"):
        dpcl.read(tmp_path)
    with pytest.raises(TypeError, match="hint: give the folder"):
        dpcl.read()


def test_data_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="(?s)cifar10.*hint: "):
        dpcl.streams(dataset="cifar10", data_dir=tmp_path)
    with pytest.raises(ValueError, match="tasks"):
        dpcl.streams(tasks=11)


HOSTILE = ["python:" + text for text in ("(" * 5000, "-" * 9000 + "1", "[1]", "__import__('os')", "1", "x" * 20_000)]


def test_labels_of_a_stranger_s_file_execute_nothing(tmp_path):
    """A name that is no spelled label is a text."""
    native = small()._learner
    pixels = np.zeros((1, 32, 32, 3), np.uint8)
    for name in [1, *HOSTILE]:
        native.learn(pixels, [name], None)
    native.save(tmp_path / "hostile.ckpt")
    learner = dpcl.Learner.load(tmp_path / "hostile.ckpt")
    assert learner.labels == [1, *HOSTILE]
    assert len(learner.predict_proba_one(pixels[0])) == len(learner.labels)
