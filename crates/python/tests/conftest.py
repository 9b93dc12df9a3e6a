"""What several tests need: real images, small learners, and a way to see that nothing changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcl

ROOT = Path(__file__).resolve().parents[3]
SMALL = {"width": 4, "memory": 100}


def small(**keys: Any) -> dpcl.Learner:
    """A learner that learns quickly."""
    return dpcl.Learner(**{**SMALL, **keys})


def whole(learner: dpcl.Learner) -> bytes:
    """Everything a learner's future depends on."""
    return learner._learner.to_bytes()


@pytest.fixture(scope="session")
def clothes() -> tuple[np.ndarray, list[str]]:
    """The first real images of two classes, mixed."""
    stream = dpcl.streams(tasks=1, classes=2, per_class=40)
    return stream.tasks[0].arrays()


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """The package under test is the installed one."""
    assert not Path(dpcl.__file__).is_relative_to(ROOT / "crates"), dpcl.__file__


os.environ.pop("DPCL_DATA", None)
