"""Delayed parts, or futures of them: each is (X, y), (X, y, weights) or (X, y, weights, qid), or a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection, Part, arrays_of
from cutsvm.cluster.collections.dask_parts import column_of
from cutsvm.cluster.collections.tables import is_pandas, table_part
from cutsvm.cluster.protocol import Executor
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.formats.frames import is_arrow

__all__ = ["of_delayed"]


@dataclass(frozen=True)
class AnyOpener:
    """Opens a tuple of arrays, or a table with these columns."""

    spec: ColumnSpec

    def __call__(self, value: Any, name: str) -> Part:
        if is_pandas(value) or is_arrow(value):
            return table_part(value, name, self.spec)
        if isinstance(value, tuple | list) and 2 <= len(value) <= 4:
            named = next((own for own in (self.spec.label, self.spec.weight, self.spec.qid) if own is not None), None)
            if named is not None:
                raise DataError(f"{name}: the part is arrays, which have no column {named!r}; leave the name out")
            return arrays_of(value, name)
        if self.spec.labels == "none" and hasattr(value, "shape"):
            return arrays_of((value,), name)
        raise DataError(f"{name}: expected (X, y), (X, y, weights) or a pandas frame, got {type(value).__name__}")


def of_delayed(executor: Executor, parts: Sequence[Any], spec: ColumnSpec) -> Collection:
    """Parts that are computed when they are read."""
    column, opener = column_of(executor, list(parts), AnyOpener(spec))
    return Collection(executor, column, opener, [f"part {k}" for k in range(len(parts))])
