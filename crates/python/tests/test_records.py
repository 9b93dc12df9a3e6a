"""Runs, their records, and streams."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pandas
import pytest
from conftest import ROOT, small

import dpcl

QUICK = {"width": 4, "memory": 50, "per_class": 12, "tasks": 5, "eval_period": 50, "updates": 1}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return dpcl.run(tmp_path_factory.mktemp("runs") / "er", **QUICK)


def test_a_run_leaves_a_record(record):
    assert record.result is not None and record.failure is None and not record.altered
    assert record.metrics["acc"] == pytest.approx(record.accuracy[-1][1])
    assert [samples for samples, _ in record.accuracy] == [24, 48, 50, 72, 96, 100, 120]
    assert record.events[0]["event"] == "start" and len(record.classes) == 10
    assert record.config["width"] == 4
    assert sorted(path.name for path in Path(record.path).iterdir() if path.suffix in (".toml", ".jsonl", ".json")) == [
        "config.toml",
        "events.jsonl",
        "result.json",
    ]


def test_a_finished_run_is_kept(record):
    before = (Path(record.path) / "result.json").read_bytes()
    assert dpcl.run(record.path, **QUICK) == record
    assert (Path(record.path) / "result.json").read_bytes() == before
    with pytest.raises(ValueError, match="another configuration: key `width` differs"):
        dpcl.run(record.path, **{**QUICK, "width": 5})


def test_an_interrupted_run_goes_on_and_its_record_is_the_same(record, tmp_path):
    folder = tmp_path / "interrupted"

    def interrupt() -> None:
        while not list(folder.glob("checkpoint/*.ckpt")):
            if over.wait(0.01):
                return
        os.kill(os.getpid(), signal.SIGINT)

    over = threading.Event()
    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            dpcl.run(folder, checkpoint_every="8", **QUICK)
    finally:
        over.set()
        watcher.join()
    (unfinished,) = dpcl.read(folder)
    assert unfinished.result is None and unfinished.metrics == {}
    again = dpcl.run(folder, **QUICK)
    assert again.result is not None
    assert (folder / "events.jsonl").read_bytes() == (Path(record.path) / "events.jsonl").read_bytes()


def test_records_of_the_command_are_read():
    records = dpcl.read(ROOT / "results" / "small")
    assert len(records) > 10 and "finished" in repr(records)
    lines = records.results()
    assert len(lines) == len(records) and all(line["dataset"] == "cifar100" for line in lines)
    assert all(0 <= point["accuracy"] <= 1 for point in records.curves())


def test_dictionaries_are_data_frames_where_pandas_is(record):
    records = dpcl.read(record.path)
    results, curves = records.results_frame(), records.curves_frame()
    assert isinstance(results, pandas.DataFrame) and results["acc"][0] == record.metrics["acc"]
    assert list(curves["samples"]) == [samples for samples, _ in record.accuracy]
    assert list(curves.columns) == ["path", "label", "seed", "samples", "accuracy"]


def test_a_learner_of_one_s_own_gets_the_run_s_stream(record):
    """The loop that `run` makes, made by hand: the same answers at the end."""
    stream = dpcl.streams(**QUICK)
    assert len(stream) == 120 and [len(task) for task in stream.tasks] == [24] * 5
    learner = small(**QUICK, mean=stream.mean, std=stream.std, pad_crop=4, autoaugment="cifar10")
    learner = dpcl.Learner(**{**record.config, "label": None})
    for task in stream.tasks:
        images, labels = task.arrays()
        learner.learn_many(images, labels)
    images, labels = stream.test.arrays()
    found = np.array(learner.predict_many(images))
    each = [np.mean(found[np.array(labels) == label] == label) for label in stream.classes]
    assert np.mean(each) == pytest.approx(record.metrics["acc"])


def test_a_stream_is_a_sequence_of_tasks_of_labelled_images():
    stream = dpcl.streams(scenario="i-blurry", n=50, m=10, per_class=20, seed=3)
    assert "200 samples" in repr(stream) and "Task(0: " in repr(stream.tasks[0])
    samples = list(stream)
    assert len(samples) == len(stream) == 200
    assert {label for _, label in samples} == set(stream.classes)
    image, label = stream.tasks[1][-1]
    assert image.shape == (32, 32, 3) and image.dtype == np.uint8
    assert [label for _, label in stream.tasks[1][-2:]][1] == label
    assert len(stream.test) == 500
    with pytest.raises(IndexError):
        stream.tasks[0][1000]
    image[:] = 0
    assert stream.tasks[1][-1][0].any(), "an image is one's own"


def test_split_files_go_out_and_in(tmp_path):
    keys = {"scenario": "i-blurry", "n": 50, "m": 10, "per_class": 20, "seed": 3}
    stream = dpcl.streams(**keys)
    paths = stream.export(tmp_path)
    assert len(paths) == len(stream.tasks) + 1 and all(Path(path).exists() for path in paths)
    again = dpcl.streams(**keys, split=tmp_path)
    for one, other in zip(stream, again, strict=True):
        assert one[1] == other[1] and (one[0] == other[0]).all()
