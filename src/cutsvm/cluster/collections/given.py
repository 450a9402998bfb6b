"""What is given with a collection of tables: which of its columns are what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection, Cut, Opener
from cutsvm.cluster.collections.tables import Columns
from cutsvm.cluster.protocol import Column, Executor
from cutsvm.io.columns import ColumnSpec, Labels

__all__ = ["Given", "of_tables"]


@dataclass(frozen=True, eq=False)
class Given:
    """y, weights and queries: each the name of a column, values of the rows, or None.

    features: the columns that a model was trained with; None: all that are not named as something else.
    """

    y: Any
    sample_weight: Any
    qid: Any
    labels: Labels = "required"
    features: Sequence[str] | None = None

    @property
    def by_name(self) -> dict[str, Any]:
        """y, sample_weight, qid under the names that users know."""
        return {"y": self.y, "sample_weight": self.sample_weight, "qid": self.qid}

    def check_names(self, place: str) -> None:
        """Raises unless all are names of columns, or None."""
        for name, own in self.by_name.items():
            if own is not None and not isinstance(own, str):
                raise DataError(f"{name}: expected the name of a column of {place}, got {type(own).__name__}")

    def columns(self, names: Sequence[str], place: str) -> Columns:
        """Which of the columns are what."""
        y, weight, qid = (own if isinstance(own, str) else None for own in self.by_name.values())
        if self.y is None or y is not None:
            columns = Columns.of(ColumnSpec(y, weight, qid, labels=self.labels).resolve(place, names))
        else:
            taken = [own for own in (weight, qid) if own is not None]
            absent = [name for name in taken if name not in names]
            if absent:
                raise DataError(f"{place}: there is no column {absent[0]!r}")
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise DataError(f"{place}: the column {twice!r} appears twice")
            columns = Columns(tuple(name for name in names if name not in taken), None, weight, qid)
        if self.features is not None:
            absent = [name for name in self.features if name not in names]
            if absent:
                raise DataError(f"{place}: there is no column {absent[0]!r}, which the model was trained with")
            return replace(columns, features=tuple(self.features))
        if not columns.features:
            raise DataError(f"{place}: there is no column of features")
        return columns


def of_tables(
    executor: Executor,
    parts: Column,
    opener: Opener,
    part_name: str,
    columns: Columns,
    d: int | None,
    *,
    narrow: bool,
    lengths: Column | None,
    cut: Cut | None = None,
) -> Collection:
    """A collection of tables that have all that belongs to their rows. d: None if a column holds vectors."""
    return Collection(
        executor,
        parts,
        opener,
        [f"{part_name} {k}" for k in range(len(parts))],
        d=d,
        sparse=False if d is not None else None,
        narrow=narrow,
        feature_names=None if d is None else columns.features,
        weighted=columns.weight is not None,
        queried=columns.qid is not None,
        cut=cut,
        lengths=lengths,
    )
