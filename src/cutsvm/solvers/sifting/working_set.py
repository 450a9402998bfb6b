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

from typing import NamedTuple

import numpy as np

from cutsvm._utils.timing import count
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import DenseRows, SparseRows, StackedRows, WholeRows
from cutsvm.problem.losses import CrammerSinger, GroupedLoss, Hinge
from cutsvm.problem.oracle import FEW_MORE, Oracle
from cutsvm.problem.rounding import gamma

EMPTY = 1e-9  # a group that has lost all but this share of its weight is left out


def can_sift(oracle: Oracle) -> bool:
    """Whether the risk is of a matrix, in memory or on disk, and a loss that knows its groups."""
    return isinstance(oracle.rows, WholeRows) and isinstance(oracle.loss, (Hinge, CrammerSinger))


class Chosen(NamedTuple):
    """Some rows, copied, with their loss; and each one's group, or for the first ones whether they are inside."""

    rows: DenseRows | SparseRows
    loss: GroupedLoss
    mark: Array


def choose(rows: WholeRows, loss: GroupedLoss, which: Ints, mark: Array, times: float = 1.0) -> Chosen:
    """Takes rows out, with so many times their weight; `mark` has one entry for each of them."""
    count("visits", len(which))
    return Chosen(rows.take(which), loss.take(which, None if times == 1.0 else np.full(len(which), times)), mark)


def _usable(parts: list[Chosen]) -> list[Chosen]:
    """Those that have rows, in the form that is swept fastest."""
    return [part._replace(rows=part.rows.fast()) for part in parts if part.rows.n]


class WorkingSet:
    """R_U, in `risk`, made of the rows of U and the sums of s_i (x_i, 1) over each group."""

    def __init__(self, full: Oracle, near: list[Chosen], totals: Vector) -> None:
        self.loss: GroupedLoss = full.loss  # type: ignore[assignment]
        self._threads, self._totals = full.threads, totals
        self._full = totals[:, -1].copy()
        self._live = np.flatnonzero(self._full > 0.0)
        near = _usable(near)
        self._first, self._kept = len(near), near
        first = sum(some.rows.n for some in near)
        if not len(self._live) and not first:  # no row has any loss here: one without weight stands for them
            self._live = np.array([0])
        rows, loss = self._assemble()
        self.oracle = full.over(rows, loss, apart=rows.n - first, mean_error=self._mean_error(full.rows.n))
        if isinstance(full.loss, Hinge):
            self.oracle.dual = np.concatenate([*(some.mark for some in near), np.ones(len(self._live))])

    def _mean_error(self, terms: int) -> float:
        """What rounding may have cost the groups' sums of so many rows; rows that left a group have left it there."""
        return gamma(terms + FEW_MORE) * float(self._full.sum())

    @property
    def many(self) -> int:
        """Rows in U."""
        return sum(some.rows.n for some in self._kept)

    def _assemble(self) -> tuple[StackedRows, GroupedLoss]:
        """All rows with their loss: U's first, the means, those that joined."""
        totals = self._totals[self._live]
        weights = totals[:, -1]
        means = totals[:, :-1] / np.where(weights > 0.0, weights, 1.0)[:, None]
        first, joined, live = self._kept[: self._first], self._kept[self._first :], len(self._live) > 0
        rows = [*(s.rows for s in first), *([DenseRows(means, self._threads)] * live), *(s.rows for s in joined)]
        middle = [self.loss.of_groups(self._live, weights)] * live
        return StackedRows(rows), self.loss.joined([*(s.loss for s in first), *middle, *(s.loss for s in joined)])

    def join(self, violators: list[Chosen]) -> None:
        """These rows leave their groups and join U."""
        violators = _usable(violators)
        if not violators:
            return
        for some in violators:
            sums = np.zeros_like(self._totals)
            count("visits", some.rows.group_sums(some.loss.row_weights, some.mark, sums))
            self._totals -= sums
        self._totals[self._totals[:, -1] <= EMPTY * self._full] = 0.0  # what is left of it is round-off
        self._kept = [*self._kept, *violators]
        oracle = self.oracle
        oracle.rows, oracle.loss = self._assemble()
        oracle.apart += sum(some.rows.n for some in violators)
        oracle.mean_error += self._mean_error(sum(some.rows.n for some in violators))
        oracle.cut(np.append(oracle.bounds[:-1], oracle.rows.n))
        if oracle.dual is not None:
            oracle.dual = np.concatenate([oracle.dual, *((some.mark >= 0).astype(np.float64) for some in violators)])
