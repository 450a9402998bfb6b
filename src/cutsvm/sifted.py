"""A risk over few rows that is a lower bound of the risk over all of them.

At a reference point most rows are far from where their loss changes its slope: those well inside the margin, those well
outside; with several classes those that surely choose one class. Rows of one label and one such choice are a group. The
others, U, are kept row by row. Each group A is replaced by its mean row with all its weight S:

    sum over A of s_i loss(y, f(x_i))  >=  S loss(y, f(mean of A))                   (Jensen)

with equality as long as the whole group stays on its linear piece. (For two classes the rows outside the margin are
left out: their loss is at least 0.) So R_U <= R everywhere, R_U = R near the reference point, and any plane under R_U
is a plane under R. R_U is the risk of an ordinary problem with |U| rows and a few means: every solver runs on it
unchanged.

When rows turn out to be elsewhere they join U. U's first rows keep their shards; the means and all rows that join later
are one more shard, the last: so planes that were made before stay valid.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from cutsvm._native import core
from cutsvm.losses import CrammerSinger, Hinge, Siftable
from cutsvm.risk import Point, Risk
from cutsvm.rows import DenseRows, SparseRows, StackedRows, WholeRows
from cutsvm.timing import count, timed
from cutsvm.types import Array, Ints, Vector

EMPTY = 1e-9  # a group that has lost all but this share of its weight is left out


def can_sift(risk: Risk) -> bool:
    """Whether the risk is of a matrix, in memory or on disk, and a loss that knows its groups."""
    return isinstance(risk.rows, WholeRows) and isinstance(risk.loss, (Hinge, CrammerSinger))


class Sifted:
    """R_U, in `risk`, for the rows within `band` of a change of their slope at a point."""

    @timed("sift")
    def __init__(self, full: Risk, point: Point, band: float) -> None:
        if not can_sift(full):
            raise TypeError("sifting: a matrix, and a loss that knows its groups, expected")
        self.all_rows = cast("WholeRows", full.rows)
        self.loss = cast("Siftable", full.loss)
        self._threads = full.threads
        self._group: Array = np.empty(full.rows.n, dtype=np.int32)
        near = self.loss.sift(point.scores, band, self._group)
        self._first = len(near)
        self._totals = np.zeros((self.loss.groups, full.rows.d + 1))
        self._add(self.all_rows, self.loss.masses, self._group, 1.0)
        self._full = self._totals[:, -1].copy()
        self._live = np.flatnonzero(self._full > 0.0)
        if not len(self._live) and not self._first:  # no row has any loss here: one without weight stands for them
            self._live = np.array([0])
        self._kept = [self._take(near)]
        self._losses = [self.loss.take(near)]
        rows, loss = self._assemble()
        self.risk = full.over(rows, loss, apart=rows.n - self._first)
        if isinstance(self.loss, Hinge):
            self.risk.dual = np.concatenate([self.loss.violates(point.scores, near), np.ones(len(self._live))])

    def _take(self, rows: Ints) -> DenseRows | SparseRows:
        count("visits", len(rows))
        return self.all_rows.take(rows).fast()

    def _add(self, rows: WholeRows, masses: Vector, group: Array, sign: float) -> None:
        """Adds the rows of each group to its total sum of s_i (x_i, 1)."""
        sums = np.zeros_like(self._totals)
        count("visits", rows.group_sums(masses, group, sums))
        self._totals += sign * sums

    def _assemble(self) -> tuple[StackedRows, Siftable]:
        """All rows with their loss: U's first, the means, those that joined."""
        totals = self._totals[self._live]
        weights = totals[:, -1]
        means = totals[:, :-1] / np.where(weights > 0.0, weights, 1.0)[:, None]
        some, live = self._first > 0, len(self._live) > 0
        rows = [*self._kept[:some], *([DenseRows(means, self._threads)] * live), *self._kept[1:]]
        losses = [*self._losses[:some], *([self.loss.of_groups(self._live, weights)] * live), *self._losses[1:]]
        return StackedRows(rows), self.loss.joined(losses)

    @timed("sift")
    def grow(self, point: Point) -> bool:
        """The rows that are in another group at the point join U. False: there is no room for so many."""
        strays = self.loss.strays(point.scores, self._group)
        room = self.all_rows.room
        if room is not None and len(strays) + sum(rows.n for rows in self._kept) > room:
            return False
        if not len(strays):
            return True
        rows, loss, group = self._take(strays), self.loss.take(strays), self._group[strays]
        self._add(rows, loss.masses, group, -1.0)
        self._totals[self._totals[:, -1] <= EMPTY * self._full] = 0.0  # what is left of it is round-off
        self._group[strays] = core.KEPT
        self._kept.append(rows)
        self._losses.append(loss)
        risk = self.risk
        risk.rows, risk.loss = self._assemble()
        risk.apart = risk.rows.n - self._first
        risk.cut(np.append(risk.bounds[:-1], risk.rows.n))
        if risk.dual is not None:
            risk.dual = np.concatenate([risk.dual, (group >= 0).astype(np.float64)])
        return True
