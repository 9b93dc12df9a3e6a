"""Labels of any hashable kind, under names that a checkpoint can hold.

Strings and whole numbers stand for themselves, so that checkpoints made here and with the `dpcl` command are the same.
What Python can read back from its own spelling (tuples, floats, bytes, …) is spelled out. Everything else is numbered:
such a learner can be pickled, and its file could not say what the numbers mean.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

Name = int | str

_SPELLED = "python:"
_NUMBERED = "python#"
_LEAST, _MOST = -(2**63), 2**63 - 1

# A file may be a stranger's: what is longer is no label that anybody spelled.
_LONGEST = 10_000


class Labels:
    """Which label is which name."""

    def __init__(self) -> None:
        self._names: dict[Hashable, Name] = {}
        self._labels: dict[Name, Hashable] = {}

    @classmethod
    def of(cls, names: Sequence[Name], labels: Sequence[Any]) -> Self:
        """Labels that go by these names."""
        new = cls()
        for name, label in zip(names, labels, strict=True):
            new._names[plain(label)] = name
            new._labels[name] = label
        return new

    def copy(self) -> Self:
        """The same labels, to grow by themselves."""
        return self.of(list(self._labels), list(self._labels.values()))

    def name(self, label: Any) -> Name:
        """The name of a label, which may be new.

        >>> labels = Labels()
        >>> labels.name("otter"), labels.name((1, 2)), labels.name("python:x")
        ('otter', 'python:(1, 2)', "python:'python:x'")
        """
        label = plain(label)
        known = self._names.get(label)
        if known is not None:
            return known
        name = _spelled(label)
        if name is None:
            numbered = sum(isinstance(name, str) and name.startswith(_NUMBERED) for name in self._labels)
            name = f"{_NUMBERED}{numbered}"
        self._names[label] = name
        self._labels[name] = label
        return name

    def label(self, name: Name) -> Hashable:
        """The label of a name."""
        if name not in self._labels:
            label = _read(name)
            # Two names of one label, which nobody wrote here, stay two.
            label = name if label in self._names else label
            self._labels[name] = label
            self._names[label] = name
        return self._labels[name]

    def all(self, names: Sequence[Name]) -> list[Any]:
        """The labels of names."""
        return [self.label(name) for name in names]

    def refuse_unspelled(self, names: Sequence[Name]) -> None:
        """Refuses labels that a file cannot hold."""
        for name in names:
            if isinstance(name, str) and name.startswith(_NUMBERED):
                label = self.label(name)
                raise TypeError(
                    f"a file cannot hold the label {label!r} of type {type(label).__name__}\n"
                    "hint: pickle the learner, or use strings, numbers or tuples of them as labels"
                )


def plain(label: Any) -> Hashable:
    """A label that can be looked up again: numbers of NumPy and PyTorch become Python's.

    >>> import numpy as np
    >>> plain(np.int64(3))
    3
    """
    if isinstance(label, np.generic) or (hasattr(label, "item") and getattr(label, "ndim", None) == 0):
        label = label.item()
    try:
        hash(label)
    except TypeError:
        raise TypeError(
            f"a label of type {type(label).__name__} cannot be hashed\nhint: use strings, numbers or tuples of them"
        ) from None
    if hasattr(label, "ndim"):
        raise TypeError(f"an array of shape {label.shape} is no label\nhint: give one label an image")
    # An object that is not equal to itself would be a new class each time.
    if label != label:
        raise ValueError(f"the label {label!r} is not equal to itself\nhint: look for missing labels")
    return label  # type: ignore[no-any-return]


def _spelled(label: Hashable) -> Name | None:
    if type(label) is int and _LEAST <= label <= _MOST:
        return label
    if type(label) is str and not label.startswith((_SPELLED, _NUMBERED)):
        # A lone surrogate has no UTF-8 form.
        return label if _is_text(label) else _SPELLED + ascii(label)
    text = _SPELLED + ascii(label)
    return text if _reads_as(text, label) else None


def _is_text(label: str) -> bool:
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reads_as(text: str, label: Hashable) -> bool:
    try:
        found = _read(text)
        return type(found) is type(label) and found == label
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def _read(name: Name) -> Hashable:
    if isinstance(name, str) and name.startswith(_SPELLED) and len(name) <= _LONGEST:
        try:
            label: Hashable = ast.literal_eval(name.removeprefix(_SPELLED))
            hash(label)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            # A name that somebody gave elsewhere.
            return name
        return label
    return name
