"""A risk over few rows that is a lower bound of the risk over all of them.

At a reference point the rows fall into three groups: U, near the margin; A, well inside it (violators); and the rest,
well outside. U is kept row by row. A is replaced, class by class, by its mean row with all its weight S:

    sum over A of s_i max(0, 1 - y_i f(x_i))  >=  S max(0, 1 - y f(mean of A))                   (Jensen)

with equality as long as all of A stay inside the margin. The rest is left out: its loss is at least 0. So R_U <= R
everywhere, R_U = R near the reference point, and any plane under R_U is a plane under R. R_U is the risk of an ordinary
problem with |U| + 2 rows: every solver runs on it unchanged.

When rows turn out to be on the other side they join U. U's first rows keep their shards; the means and all rows that
join later are one more shard, the last: so planes that were made before stay valid.
"""

from __future__ import annotations

import numpy as np

from cutsvm._native import core
from cutsvm.losses import Hinge
from cutsvm.risk import Point, Risk
from cutsvm.rows import DenseRows, SparseRows, StackedRows
from cutsvm.timing import count, timed
from cutsvm.types import Array, Ints, Vector


def siftable(risk: Risk) -> tuple[DenseRows | SparseRows, Hinge]:
    """The risk's rows and loss; TypeError if they are not a matrix in memory and a hinge loss."""
    if isinstance(risk.rows, (DenseRows, SparseRows)) and isinstance(risk.loss, Hinge):
        return risk.rows, risk.loss
    raise TypeError("sifting: a hinge loss of a matrix in memory expected")


class SiftedRisk(Risk):
    """R_U for the rows that lie within `band` of the margin at a point: |1 - y_i f_i| <= band."""

    whole = False

    @timed("sift")
    def __init__(self, full: Risk, point: Point, band: float) -> None:
        self.full = full
        self.all_rows, loss = siftable(full)
        self.signed = loss.signed
        self._place = np.empty(full.rows.n, dtype=np.uint8)  # outside the margin, inside it (A), or kept (U)
        near = core.hinge_sift(point.scores, self.signed, band, self._place, full.threads)
        self._first = len(near)
        self._totals = _totals(self.all_rows, self.signed, self._place)  # of A: its positive rows, its negative ones
        self._kept = [self._take(near)]
        self._signs = [self.signed[near]]
        super().__init__(*self._assemble(), intercept=full.intercept, threads=full.threads)
        violates = point.scores[near] * self.signed[near] < np.abs(self.signed[near])
        self.dual = np.concatenate([violates.astype(np.float64), np.ones(2)])

    def _take(self, rows: Ints) -> DenseRows | SparseRows:
        count("visits", len(rows))
        return self.all_rows.take(rows).fast()

    def _assemble(self) -> tuple[StackedRows, Hinge]:
        """All rows with their loss: U's first, the two means, those that joined."""
        weights = self._totals[:, -1]
        means = self._totals[:, :-1] / np.where(weights > 0.0, weights, 1.0)[:, None]
        rows = [*self._kept[: self._first > 0], DenseRows(means, self.full.threads), *self._kept[1:]]
        signed = np.concatenate([self._signs[0], weights * [1.0, -1.0], *self._signs[1:]])
        return StackedRows(rows), Hinge(signed, self.full.threads)

    def split(self, shards: int) -> None:
        """So many shards of U's first rows, and one of the rest."""
        shards = min(shards, self._first)  # none if no row is near the margin
        self.cut(np.append(np.linspace(0, self._first, shards + 1).astype(np.int64), self.rows.n))

    @timed("sift")
    def grow(self, point: Point) -> int:
        """The rows that are on the other side of the margin at the point join U. Returns how many."""
        strays = core.hinge_strays(point.scores, self.signed, self._place, self.full.threads)
        if not len(strays):
            return 0
        rows, signed, place = self._take(strays), self.signed[strays], self._place[strays]
        self._totals -= _totals(rows, signed, place)
        self._totals[:, -1].clip(min=0.0, out=self._totals[:, -1])
        self._place[strays] = core.KEPT
        self._kept.append(rows)
        self._signs.append(signed)
        self.rows, self.loss = self._assemble()
        self.cut(np.append(self.bounds[:-1], self.rows.n))
        assert self.dual is not None
        self.dual = np.concatenate([self.dual, (place == core.INSIDE).astype(np.float64)])
        return len(strays)


def _totals(rows: DenseRows | SparseRows, signed: Vector, place: Array) -> Vector:
    """sum of s_i (x_i, 1) over the rows inside the margin: the positive ones, the negative ones."""
    sums = np.zeros((2, rows.d + 1))
    count("visits", rows.class_sums(signed, place, core.INSIDE, sums))
    return sums
