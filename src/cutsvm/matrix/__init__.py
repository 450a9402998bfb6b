"""The data X as solvers' risks sweep it: two verbs, for one output or many, whatever the data are stored in."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.array import Choices, DenseRows, Descent, Seen, SparseRows, StackedRows, as_rows, in_order, stack
from cutsvm.matrix.store import StoreRows
from cutsvm.problem.rounding import Magnitudes

__all__ = [
    "Choices",
    "DenseRows",
    "Descent",
    "Rows",
    "RowsInMemory",
    "Seen",
    "SparseRows",
    "StackedRows",
    "StoreRows",
    "WholeRows",
    "as_rows",
    "in_order",
    "stack",
]


class Rows(Protocol):
    """n rows x_i of d features."""

    n: int
    d: int
    entries: int  # values that one sweep reads

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        """Memory for numbers of each row, not filled."""

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        """out[i] = x_i . w + b"""

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        """out[i] + rest[i] = x_i . w + b in twice the digits; out[i] is that rounded once."""

    def centred(self) -> tuple[Rows, Vector | None]:
        """Rows less a row m, and m, where that leaves more digits; else themselves and None."""

    @property
    def magnitudes(self) -> Magnitudes:
        """How large the rows are."""

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p] += sum over shard p of (fresh_i - old_i) (x_i, 1); moved[p] += sum of |fresh_i - old_i|.

        Then old = fresh. Returns the number of rows read: those whose coefficient changed.
        """

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        """out[i, k] = x_i . W[k] + b[k]"""

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p], class by class, += what the rows of shard p add by choosing `fresh` and no more `old`.

        A row that chose k stands for s_i x_i in class k and -s_i x_i in its own. Then old = fresh. Returns the number
        of rows read.
        """

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        """sums[g] += sum of |weights_i| (x_i, 1) over the rows of group g; rows of a group below 0 are left out.

        Returns the number of rows read.
        """

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        """Adds up the hinge loss of each piece of rows and its slope, at several points; see core/tangents.hpp."""


# Rows that can be read one at a time.
RowsInMemory = DenseRows | SparseRows | StackedRows
# Rows of one kind, of which some can be taken out.
WholeRows = DenseRows | SparseRows | StoreRows
