"""Which columns of a table are labels, weights and queries; the others are features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cutsvm._utils.errors import DataError
from cutsvm.io.preprocessing import Preprocessing

# Names of the column of labels that are looked for if the user names none.
_LABELS = ("label", "y", "target", "class")
_SHOWN = 8


@dataclass(frozen=True)
class ColumnSpec:
    """The columns of a table and what is to be done to them, as the user states it.

    label, weight, qid: names or numbers of columns, None to look for them. columns: the features, None: all others;
    exclude: columns that are no features; keep: columns that batches carry along. filter: the rows, a pyarrow
    expression. labels: whether there must be a column of labels, may be, or is to be left alone. preprocessing: that of
    a store or a model; it is applied and nothing is estimated.
    """

    label: str | int | None = None
    weight: str | int | None = None
    qid: str | int | None = None
    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    keep: Sequence[str] = ()
    filter: Any = None
    labels: Literal["required", "optional", "none"] = "required"
    categorical: Literal["one-hot", "refuse"] = "one-hot"
    missing: Literal["mean", "zero", "refuse"] = "mean"
    scale: Literal["none", "standard", "minmax"] = "none"
    preprocessing: Preprocessing | None = None

    def resolve(self, source: str, names: Sequence[str]) -> ColumnIndices:
        """The indices of these columns among `names`; source: of the table, for messages."""
        label = self.label
        if label is None:
            found = [name for name in _LABELS if name in names]
            if len(found) != 1:
                raise DataError(
                    f"{source}: which column has the labels? label= expects one of the columns {_listed(names)}"
                )
            label = found[0]
        weight = "sample_weight" if self.weight is None and "sample_weight" in names else self.weight
        qid = "qid" if self.qid is None and "qid" in names else self.qid
        first = _index_of(source, names, label)
        second, third = (None if column is None else _index_of(source, names, column) for column in (weight, qid))
        taken = [index for index in (first, second, third) if index is not None]
        if len(set(taken)) < len(taken):
            raise DataError(f"{source}: label, weight and qid must be different columns")
        return ColumnIndices(first, second, third, [index for index in range(len(names)) if index not in taken])


@dataclass(frozen=True)
class ColumnIndices:
    """Indices of columns, from 0."""

    label: int
    weight: int | None
    qid: int | None
    features: list[int]


def _index_of(source: str, names: Sequence[str], column: str | int) -> int:
    if column in names:
        if names.count(str(column)) > 1:
            raise DataError(f"{source}: the column {column!r} appears twice")
        return list(names).index(str(column))
    try:
        number = int(column)
    except ValueError:
        number = len(names)
    if not -len(names) <= number < len(names):
        raise DataError(f"{source}: there is no column {column!r}; the columns are {_listed(names)}")
    return number % len(names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"
