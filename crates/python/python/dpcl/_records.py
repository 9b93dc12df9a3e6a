"""Runs and their records: what a run left behind, as plain dictionaries and as data frames."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from . import _native

if TYPE_CHECKING:
    import pandas

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Record:
    """What one run left on disk."""

    path: str
    """Its folder."""
    config: dict[str, Any] = field(repr=False)
    """The checked configuration."""
    classes: list[str] = field(repr=False)
    """Names of the data set's classes; class numbers in events index this list."""
    events: list[dict[str, Any]] = field(repr=False)
    """Everything that happened, in order."""
    result: dict[str, Any] | None = field(repr=False)
    """The end of the run, `None` if it did not come to it."""
    failure: str | None
    """Why it failed, if it said so."""
    altered: bool
    """Whether its files are other than the run left them."""
    accuracy: list[tuple[float, float]] = field(repr=False)
    """The any-time curve: samples seen, and accuracy on the classes met."""
    loss: list[tuple[float, float | None]] = field(repr=False)
    """Samples seen, and training loss."""

    @property
    def metrics(self) -> dict[str, Any]:
        """The numbers, shares as 0 to 1; empty if the run did not finish."""
        return dict(self.result["metrics"]) if self.result else {}

    def summary(self) -> dict[str, Any]:
        """The record in a line: what was run, its metrics, its cost."""
        line: dict[str, Any] = {"path": self.path}
        for key in ("label", "method", "dataset", "scenario", "model", "seed"):
            line[key] = (self.result or self.config).get(key)
        line["finished"] = self.result is not None
        line.update((name, value) for name, value in self.metrics.items() if not isinstance(value, (dict, list)))
        if self.result:
            line.update((key, self.result[key]) for key in ("samples", "updates", "train_seconds", "peak_memory_bytes"))
        return line


class Records(Sequence[Record]):
    """Records of several runs, in the order of their paths."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = list(records)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Records: ...
    def __getitem__(self, index: int | slice) -> Record | Records:
        found = self._records[index]
        return Records(found) if isinstance(found, list) else found

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        finished = sum(record.result is not None for record in self)
        return f"Records({len(self)} runs, {finished} finished)"

    def results(self) -> list[dict[str, Any]]:
        """A dictionary a run: what was run, its metrics, its cost."""
        return [record.summary() for record in self]

    def curves(self) -> list[dict[str, Any]]:
        """A dictionary a point of the any-time curves."""
        points = []
        for record in self:
            line = record.summary()
            about = {key: line[key] for key in ("path", "label", "seed")}
            points += [{**about, "samples": int(samples), "accuracy": share} for samples, share in record.accuracy]
        return points

    def results_frame(self) -> pandas.DataFrame:
        """`results` as a data frame of pandas."""
        return _frame(self.results())

    def curves_frame(self) -> pandas.DataFrame:
        """`curves` as a data frame of pandas."""
        return _frame(self.curves())


def _frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("data frames need pandas\nhint: install pandas, or take the plain dictionaries") from error
    return pandas.DataFrame(rows)


def read(*folders: Path) -> Records:
    """Every record in the given folders or below them, made with `dpcl.run` or the `dpcl` command."""
    if not folders:
        raise TypeError("no folder was given\nhint: give the folder of a run, or one above it")
    return Records([_record(found) for found in json.loads(_native.read(list(folders)))])


def _record(found: dict[str, Any]) -> Record:
    for curve in ("accuracy", "loss"):
        found[curve] = [tuple(point) for point in found[curve]]
    found["classes"] = found["classes"] or []
    return Record(**found)


def run(folder: Path, *, checkpoint_every: str = "60s", **keys: Any) -> Record:
    """Learns a whole stream, evaluates on the way, and leaves a record in `folder`.

    Keyword arguments are the keys of a configuration. A finished run is kept and read; one that was interrupted goes on
    where it was, and its record is that of an undisturbed one. `checkpoint_every` is a time (`60s`) or a number of
    samples (`500`).
    """
    for notice in _native.run(folder, keys, checkpoint_every):
        warnings.warn(notice, stacklevel=2)
    return read(folder)[0]
