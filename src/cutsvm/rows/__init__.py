"""The data X as solvers' risks sweep it: two verbs, whatever the data are stored in."""

from __future__ import annotations

from typing import Protocol

from cutsvm.rows.array import DenseRows, Descent, Seen, SparseRows, StackedRows, as_rows
from cutsvm.types import Array, Ints, Vector

__all__ = ["DenseRows", "Descent", "Rows", "RowsInMemory", "Seen", "SparseRows", "StackedRows", "as_rows"]


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


class RowsInMemory(Rows, Protocol):
    """Rows that can be read one at a time."""

    def take(self, rows: Ints) -> RowsInMemory:
        """A copy of these rows."""

    def class_sums(self, signed: Vector, place: Array, here: int, sums: Vector) -> int:
        """Over the rows with place[i] == here: sums[0] += a_i (x_i, 1) if a_i > 0, sums[1] -= a_i (x_i, 1) if a_i < 0.

        a = signed = y_i s_i. Returns the number of rows read.
        """

    def fast(self) -> RowsInMemory:
        """The rows in the form in which they are swept fastest; it may be a copy."""

    def by_row(self) -> RowsInMemory:
        """The rows in a form in which one row can be read, and its length computed."""

    def squares(self, out: Vector) -> None:
        """out[i] = |x_i|^2"""

    def descend(self, dual: Descent, order: Array, w: Vector, run: int, seed: int, threads: int) -> Seen:
        """One epoch of dual coordinate descent over the rows in `order`; see core/dcd.hpp."""
