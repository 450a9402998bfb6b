"""The data X as solvers' risks sweep it: two verbs, whatever the data are stored in."""

from __future__ import annotations

from typing import Protocol

from cutsvm.rows.array import DenseRows, Descent, Seen, SparseRows, StackedRows, as_rows, in_order
from cutsvm.types import Ints, Vector

__all__ = ["DenseRows", "Descent", "Rows", "RowsInMemory", "Seen", "SparseRows", "StackedRows", "as_rows", "in_order"]


class Rows(Protocol):
    """n rows x_i of d features."""

    n: int
    d: int
    entries: int  # values that one sweep reads

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        """out[i] = x_i . w + b"""

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p] += sum over shard p of (fresh_i - old_i) (x_i, 1); moved[p] += sum of |fresh_i - old_i|.

        Then old = fresh. Returns the number of rows read: those whose coefficient changed.
        """


# Rows that can be read one at a time.
RowsInMemory = DenseRows | SparseRows | StackedRows
