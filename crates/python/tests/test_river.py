"""River's metrics and evaluation take the learner as it is."""

from __future__ import annotations

import dpcl
from conftest import small
from river import evaluate, metrics


def test_progressive_validation():
    learner = small(updates=4)
    samples = dpcl.streams(tasks=2, classes=4, per_class=40)
    metric = evaluate.progressive_val_score(samples, learner, metrics.Accuracy())
    assert learner.samples == len(samples) == 160
    assert metric.get() > 0.4


def test_metrics_of_probabilities_and_of_several():
    samples = list(dpcl.streams(tasks=1, classes=2, per_class=20))
    metric = evaluate.progressive_val_score(samples, small(), metrics.CrossEntropy())
    assert 0 < metric.get() < 10
    several = metrics.Accuracy() + metrics.MacroF1() + metrics.CohenKappa()
    steps = evaluate.iter_progressive_val_score(samples, small(), several, step=10, measure_time=True, measure_memory=True)
    seen = [(step["Step"], step["Memory"]) for step in steps]
    assert [step for step, _ in seen] == [10, 20, 30, 40] and all(memory > 1000 for _, memory in seen)


def test_late_labels():
    samples = list(dpcl.streams(tasks=1, classes=2, per_class=20))
    learner = small()
    evaluate.progressive_val_score(samples, learner, metrics.Accuracy(), delay=5)
    assert learner.samples == 40
