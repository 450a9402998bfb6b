"""Which columns of a table are labels, weights and queries; the others are features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutsvm._utils.errors import DataError

__all__ = ["ColumnIndices", "ColumnSpec"]

# Names that speak for themselves, where the user names none.
_LABELS = ("label", "y", "target", "class")
_SHOWN = 8


@dataclass(frozen=True)
class ColumnSpec:
    """What the user said: names or numbers of columns, None for what was left open."""

    label: str | int | None = None
    weight: str | int | None = None
    qid: str | int | None = None

    def resolve(self, source: str, names: Sequence[str]) -> ColumnIndices:
        """Where they stand among the columns of this name."""
        label = self.label
        if label is None:
            found = [name for name in _LABELS if name in names]
            if len(found) != 1:
                raise DataError(
                    f"{source}: which column has the labels? label= expects one of the columns {_some(names)}"
                )
            label = found[0]
        weight = "sample_weight" if self.weight is None and "sample_weight" in names else self.weight
        qid = "qid" if self.qid is None and "qid" in names else self.qid
        wanted = [None if column is None else _index_of(source, names, column) for column in (label, weight, qid)]
        taken = [place for place in wanted if place is not None]
        if len(set(taken)) < len(taken):
            raise DataError(f"{source}: one column is to be two of label, weight and qid")
        first, second, third = wanted
        assert first is not None
        return ColumnIndices(first, second, third, [place for place in range(len(names)) if place not in taken])


@dataclass(frozen=True)
class ColumnIndices:
    """Numbers of columns, from 0."""

    label: int
    weight: int | None
    qid: int | None
    features: list[int]


def _index_of(source: str, names: Sequence[str], column: str | int) -> int:
    if column in names:
        if names.count(str(column)) > 1:
            raise DataError(f"{source}: the column {column!r} is there twice")
        return list(names).index(str(column))
    try:
        number = int(column)
    except ValueError:
        number = len(names)
    if not -len(names) <= number < len(names):
        raise DataError(f"{source}: there is no column {column!r}; the columns are {_some(names)}")
    return number % len(names)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"
