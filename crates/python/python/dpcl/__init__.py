"""A learner that never stops: image classes from a stream, on a CPU, without PyTorch.

| to … | there is |
|---|---|
| learn from labelled images and ask for answers | `Learner` |
| learn a whole stream and evaluate on the way | `run` |
| read what runs left behind | `read` |
| have a scenario's samples for a learner of one's own | `streams` |
| see what can be said | `keys`, `methods` |
| use it as an estimator of scikit-learn | `dpcl.sklearn.ImageClassifier` |

>>> import dpcl
>>> "er" in dpcl.methods()
True
"""

from __future__ import annotations

import json
from typing import Any

from ._learner import Learner
from ._native import __version__, describe_keys, methods
from ._records import Record, Records, read, run
from ._streams import Samples, Stream, Task, streams

__all__ = [
    "Learner",
    "Record",
    "Records",
    "Samples",
    "Stream",
    "Task",
    "__version__",
    "keys",
    "methods",
    "read",
    "run",
    "streams",
]


def keys() -> dict[str, list[dict[str, Any]]]:
    """Every key of a configuration with its help, values and default: `common` ones, and tables of methods' own.

    >>> import dpcl
    >>> next(key for key in dpcl.keys()["common"] if key["name"] == "memory")["help"]
    'Memory slots'
    """
    found = json.loads(describe_keys())
    return {"common": found["common"], **found["own"]}


def _be_a_classifier_of_river() -> None:
    """River's metrics work with what is registered as a classifier; nothing of River is needed otherwise."""
    try:
        from river.base import Classifier
    except ImportError:
        return
    Classifier.register(Learner)


_be_a_classifier_of_river()
