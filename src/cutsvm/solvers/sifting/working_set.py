"""A working set: the risk of few rows that is a lower bound of the risk of all of them.

At a reference point most rows are far from where their loss changes its slope: those well inside the margin, those well
outside; with several classes those whose highest score is clear. Rows of one label and one such linear piece are a
group. The others, U, are kept row by row. Each group A is replaced by its mean row with all its weight S:

    sum over A of s_i loss(y, f(x_i))  >=  S loss(y, f(mean of A))                   (Jensen)

with equality as long as the whole group stays on its linear piece. Where rows have targets, the mean row has the mean
of theirs. (Rows without loss, as those outside the margin, are left out: their loss is at least 0.) So R_U <= R
everywhere, R_U = R near the reference point, and any plane under R_U is a plane under R. R_U is the risk of an ordinary
problem with |U| rows and a few means: every solver runs on it unchanged.

Violators, rows that turn out to be on another piece than assumed, join U. U's first rows keep their shards; the means
and all rows that join later are one more shard, the last: so planes that were made before stay valid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from cutsvm._utils.timing import count
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import Rows, RowsInMemory, as_rows, stacked
from cutsvm.problem.certificate import sum_error
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle
from cutsvm.solvers.protocol import FitContext, Solver, new_context

__all__ = ["GroupSums", "SomeRows", "SomeSums", "WorkingSet", "take_rows"]


class SomeRows(NamedTuple):
    """Some rows, copied, with their loss; and each one's group, or for the first ones whether they are inside."""

    matrix: RowsInMemory
    loss: GroupedLoss
    mark: Array


def take_rows(matrix: Rows, loss: GroupedLoss, which: Ints, mark: Array, times: float = 1.0) -> SomeRows:
    """Copies rows, their weights multiplied by `times`; `mark` has one entry for each of them."""
    count("visits", len(which))
    factors = None if times == 1.0 else np.full(len(which), times)
    return SomeRows(matrix.take(which), loss.take(which, factors), mark)


@dataclass(frozen=True, eq=False)
class SomeSums:
    """The sums of some groups, in rising order: among some rows not all groups occur, which are K^2 of K classes."""

    groups: Ints
    rows: Vector
    targets: Vector

    def add(self, other: SomeSums) -> SomeSums:
        """Of the rows of both."""
        groups = np.union1d(self.groups, other.groups)
        rows, targets = np.zeros((len(groups), self.rows.shape[1])), np.zeros(len(groups))
        for some in (self, other):
            own = np.searchsorted(groups, some.groups)
            rows[own] += some.rows
            targets[own] += some.targets
        return SomeSums(groups, rows, targets)


class GroupSums:
    """Over each group of rows: the sums of s_i (x_i, 1), in `rows`, and of s_i t_i, in `targets`."""

    def __init__(self, loss: GroupedLoss, d: int) -> None:
        self.rows: Vector = np.zeros((loss.groups, d + 1))
        self.targets: Vector = np.zeros(loss.groups)

    @classmethod
    def of(cls, loss: GroupedLoss, sums: SomeSums) -> GroupSums:
        """With 0 for the other groups."""
        found = cls(loss, sums.rows.shape[1] - 1)
        found.rows[sums.groups], found.targets[sums.groups] = sums.rows, sums.targets
        return found

    @property
    def occurring(self) -> SomeSums:
        """Of the groups that have weight."""
        some = np.flatnonzero(self.weights > 0.0)
        return SomeSums(some, self.rows[some], self.targets[some])

    def add(self, matrix: Rows, loss: GroupedLoss, group: Array) -> int:
        """Adds rows to their groups; returns how many were read."""
        self.targets += loss.target_sums(group)
        return matrix.group_sums(loss.row_weights, group, self.rows)

    @property
    def weights(self) -> Vector:
        """S of each group."""
        return self.rows[:, -1]

    def subtract(self, other: GroupSums) -> None:
        self.rows -= other.rows
        self.targets -= other.targets

    def clear(self, which: Array) -> None:
        """Leaves nothing of these groups."""
        self.rows[which], self.targets[which] = 0.0, 0.0

    def means(self, which: Ints) -> tuple[Vector, Vector, Vector]:
        """The mean rows of these groups, their weights and their mean targets."""
        weights = self.weights[which]
        divisor = np.where(weights > 0.0, weights, 1.0)
        return self.rows[which, :-1] / divisor[:, None], weights, self.targets[which] / divisor


class WorkingSet:
    """R_U, in `oracle`, made of the rows of U and the sums over each group.

    context: what the inner solver carries; its dual vector is 1 for rows inside the margin at first.
    empty: a group that has lost all but this share of its weight is left out: what is left of it is round-off.
    """

    def __init__(self, full: Oracle, near: list[SomeRows], totals: GroupSums, *, empty: float = 1e-9) -> None:
        self.loss = cast("GroupedLoss", full.loss)
        self._threads, self._totals, self._empty = full.threads, totals, empty
        self._full = totals.weights.copy()
        self._groups = np.flatnonzero(self._full > 0.0)
        near = _in_fast_form(near)
        self._n_first, self._kept = len(near), near
        first = sum(some.matrix.n for some in near)
        if not len(self._groups) and not first:  # no row has any loss here: a group without weight represents them
            self._groups = np.array([0])
        matrix, loss = self._assemble()
        self.oracle = full.restrict(matrix, loss, n_last=matrix.n - first, mean_error=self._mean_error(full.matrix.n))
        marks = [*(some.mark for some in near), np.ones(len(self._groups))]
        self._dual = np.concatenate(marks) if full.supports.margin else None
        self.context: FitContext | None = None

    def open(self, solver: Solver, C: float, bundle: Bundle, tol: float) -> FitContext:
        """A context for the inner solver."""
        self.context = new_context(solver, self.oracle, [C], tol, bundle=bundle, dual=self._dual)
        self.oracle = self.context.oracle
        return self.context

    def _mean_error(self, terms: int) -> float:
        """A bound of the rounding errors of the groups' sums of `terms` rows, subtractions included."""
        return sum_error(terms) * self.loss.steepest * float(self._full.sum())

    @property
    def n_rows(self) -> int:
        """|U|"""
        return sum(some.matrix.n for some in self._kept)

    def _assemble(self) -> tuple[Rows, GroupedLoss]:
        """All rows with their loss: U's first, the means, those that joined."""
        means, weights, targets = self._totals.means(self._groups)
        first, joined, some = self._kept[: self._n_first], self._kept[self._n_first :], len(self._groups) > 0
        rows = [*(s.matrix for s in first), *([as_rows(means, self._threads)] * some), *(s.matrix for s in joined)]
        middle = [self.loss.of_groups(self._groups, weights, targets)] * some
        return stacked(rows), self.loss.joined([*(s.loss for s in first), *middle, *(s.loss for s in joined)])

    def join(self, violators: list[SomeRows]) -> None:
        """These rows leave their groups and join U."""
        violators = _in_fast_form(violators)
        if not violators:
            return
        for some in violators:
            sums = GroupSums(self.loss, self.oracle.matrix.d)
            count("visits", sums.add(some.matrix, some.loss, some.mark))
            self._totals.subtract(sums)
        self._totals.clear(self._totals.weights <= self._empty * self._full)
        self._kept = [*self._kept, *violators]
        more = sum(some.matrix.n for some in violators)
        matrix, loss = self._assemble()
        old = self.oracle
        self.oracle = replace(
            old,
            matrix=matrix,
            given=matrix,
            loss=loss,
            bounds=np.append(old.bounds[:-1], matrix.n),
            mean_error=old.mean_error + self._mean_error(more),
            n_last=old.n_last + more,
        )
        if self.context is not None:
            self.context.replace_oracle(self.oracle)
            if self.context.dual is not None:
                inside = 1.0 if self.oracle.supports.margin else 0.0  # in a group, hinge losses have alpha = C s
                marks = [inside * (some.mark >= 0) for some in violators]
                self.context.dual = np.concatenate([self.context.dual, *marks])


def _in_fast_form(parts: list[SomeRows]) -> list[SomeRows]:
    """Those that have rows, in the form that is read fastest."""
    return [part._replace(matrix=part.matrix.fast()) for part in parts if part.matrix.n]
