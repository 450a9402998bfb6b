"""Passes over all rows for `cutsvm.solvers.sifting.solver`: F at a point, and R_U of the rows that are near there.

`Held` keeps the scores of the best point, of one more, and the group of each row: a pass is made once, and the search
along a line is exact. `Streamed` keeps nothing per row, for more rows than memory can hold numbers of. In each pass it
makes the scores of three points anew from the same values: of the one in question, of the best one so far, for F in
some places on the line between, and of the reference point of R_U, which say what group a row is in. Rows that join U
are copied as they pass by. So one read of the data does all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

import numpy as np

from cutsvm._native import core
from cutsvm._utils.timing import count, timed
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import DenseRows, SparseRows, WholeRows, in_order, stack
from cutsvm.problem.losses import BreakpointLine, GroupedLoss, Hinge
from cutsvm.problem.oracle import Oracle, Point
from cutsvm.solvers._common import better, objective
from cutsvm.solvers.sifting.working_set import Chosen, WorkingSet, choose

SCORES = 1 << 18  # numbers in memory for each of the points whose scores a pass makes
LOOK = 10_000  # rows that a band is measured on
# Places on the line from the best point (0) to the one in question (1) where `Streamed` looks at F.
PLACES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.3])
NARROWER = 0.7  # of the room is asked for when a band has turned out to hold too many rows
NOTHING = -1.0  # a band without rows, where too many are at the same distance


class Whole(Protocol):
    """All rows: the best point so far, and what passes find."""

    w: Vector
    primal: float
    value: float  # R there
    exact: bool

    def sift(
        self,
        w: Vector | None,
        share: float,
        rng: np.random.Generator,
        *,
        keep: float = 1.0,
        towards: Vector | None = None,
    ) -> WorkingSet:
        """R_U at w (None: at the best point) with this share of the rows in U; w may be the best point then.

        keep: only this share of U is kept, drawn at random, with 1 / keep times its weight: about the same risk.
        towards: where the way will lead; rows that are in another group there are in U, too, if that is cheap to know.
        """

    def advance(
        self, working_set: WorkingSet, w: Vector, goal: float, *, most: int | None = None
    ) -> tuple[float, bool]:
        """F at w and towards it: the step to the best point there is. Rows in other groups join U.

        goal: an F at w no larger is good enough. The second: False if there is no room for so many rows, or U would
        have more than `most`.
        """

    def turn(self, C: float) -> None:
        """Goes on with another C."""


def full_pass(oracle: Oracle, C: float) -> Whole:
    """Held where there is memory for it."""
    return HeldPass(oracle, C) if cast("WholeRows", oracle.rows).held else StreamedPass(oracle, C)


class HeldPass:
    """With the scores of all rows in memory."""

    def __init__(self, oracle: Oracle, C: float) -> None:
        self.oracle, self.C = oracle, C
        self.rows, self.loss = cast("WholeRows", oracle.rows), cast("GroupedLoss", oracle.loss)
        self.best: Point | None = None
        self.value = oracle.loss.total
        self.w, self.primal, self.exact = np.zeros(oracle.size), C * self.value, False
        self._spare: Point | None = None

    def sift(
        self,
        w: Vector | None,
        share: float,
        rng: np.random.Generator,
        *,
        keep: float = 1.0,
        towards: Vector | None = None,
    ) -> WorkingSet:
        if w is not None:
            point = self.oracle.at(w)
            if objective(self.oracle, point, self.C) > self.primal:  # not even as good as 0
                point = better(self.oracle, self.oracle.at(self.w), point, self.C, goal=0.0)[0]
            self._keep(point)
        assert self.best is not None
        some = rng.integers(0, self.rows.n, LOOK)
        band = float(np.quantile(self.loss.distances(self.best.scores, some), share))
        if towards is not None:
            self._spare = self.oracle.score(towards, spare=self._spare)
        return self.near(self.best, band, _thinned(keep, rng), None if towards is None else self._spare)

    @timed("sift")
    def near(self, point: Point, band: float, thin: Thin | None = None, end: Point | None = None) -> WorkingSet:
        """R_U of the rows within `band` of a change of their slope, or that change it on the way to the end."""
        self._group: Array = np.empty(self.rows.n, dtype=np.int32)
        near, times = self.loss.sift(point.scores, band, self._group), 1.0
        if end is not None:
            more = self.loss.violators(end.scores, self._group)
            self._group[more] = core.KEPT
            near = in_order(np.concatenate([near, more]))
        if thin is not None:
            near, times = thin(near)
        totals = np.zeros((self.loss.groups, self.rows.d + 1))
        count("visits", self.rows.group_sums(self.loss.row_weights, self._group, totals))
        mark = self.loss.violates(point.scores, near) if isinstance(self.loss, Hinge) else near
        return WorkingSet(self.oracle, [choose(self.rows, self.loss, near, mark, times)], totals)

    def turn(self, C: float) -> None:
        self.C = C
        if self.best is not None:
            self._keep(self.best)

    def advance(
        self, working_set: WorkingSet, w: Vector, goal: float, *, most: int | None = None
    ) -> tuple[float, bool]:
        assert self.best is not None
        trial = self.oracle.score(w, spare=self._spare)
        fits = self.grow(working_set, trial, most)  # by the solution's own b: its bound knows no other
        best, self._spare, k = better(self.oracle, self.best, self.oracle.optimize_intercept(trial), self.C, goal)
        self._keep(best)
        return k, fits

    @timed("sift")
    def grow(self, working_set: WorkingSet, point: Point, most: int | None = None) -> bool:
        """The rows that are in another group at the point join U, if there is room."""
        violators = self.loss.violators(point.scores, self._group)
        if working_set.many + len(violators) > _least(self.rows.room, most):
            return False
        if len(violators):
            working_set.join([choose(self.rows, self.loss, violators, self._group[violators])])
            self._group[violators] = core.KEPT
        return True

    def _keep(self, point: Point) -> None:
        self.best, self.w, self.exact = point, point.w, point.exact
        self.value = self.oracle.value(point)
        self.primal = self.oracle.penalty(point.w) + self.C * self.value


class StreamedPass:
    """With nothing per row in memory but U."""

    exact = True  # F is made from scores of the very pass, never from those of passes before

    def __init__(self, oracle: Oracle, C: float) -> None:
        self.oracle, self.C = oracle, C
        self.rows, self.loss = cast("WholeRows", oracle.rows), cast("GroupedLoss", oracle.loss)
        self.value = oracle.loss.total
        self.w, self.primal = np.zeros(oracle.size), C * self.value
        self._reference, self._band = self.w, 0.0
        self._joined: Ints = np.empty(0, dtype=np.int64)

    @timed("sift")
    def sift(
        self,
        w: Vector | None,
        share: float,
        rng: np.random.Generator,
        *,
        keep: float = 1.0,
        towards: Vector | None = None,
    ) -> WorkingSet:
        w, thin = (self.w if w is None else w), _thinned(keep, rng)
        some = np.unique(rng.integers(0, self.rows.n, LOOK))
        of_some = self.oracle.scores_of(self.rows.take(some), w)
        distances = self.loss.take(some).distances(of_some, np.arange(len(some)))
        band = np.inf
        while True:
            narrower = float(np.quantile(distances, share))
            band = narrower if narrower < band else NOTHING
            totals = np.zeros((self.loss.groups, self.rows.d + 1))
            on_line, near, many = np.zeros(len(PLACES)), [], 0
            for _, rows, loss, here in self._all_rows(w, on_line):
                group = np.empty(rows.n, dtype=np.int32)
                which, times = loss.sift(here, band, group), 1.0
                if thin is not None:
                    which, times = thin(which)
                many += len(which)
                if self._fits(many):
                    mark = loss.violates(here, which) if isinstance(loss, Hinge) else which
                    near.append(choose(rows, loss, which, mark, times))
                rows.group_sums(loss.row_weights, group, totals)
            if self._fits(many):
                break
            assert self.rows.room is not None
            share *= NARROWER * self.rows.room / many
        self._reference, self._band, self._joined = w.copy(), band, np.empty(0, dtype=np.int64)
        self._move(w, on_line, goal=0.0)
        return WorkingSet(self.oracle, _stacked(near), totals)

    def turn(self, C: float) -> None:
        self.C = C
        self.primal = self.oracle.penalty(self.w) + C * self.value

    @timed("sift")
    def advance(
        self, working_set: WorkingSet, w: Vector, goal: float, *, most: int | None = None
    ) -> tuple[float, bool]:
        on_line, violators, numbers, many = np.zeros(len(PLACES)), [], [], working_set.many
        for mine, rows, loss, here in self._all_rows(w, on_line):
            group = np.empty(rows.n, dtype=np.int32)
            loss.sift(self.oracle.scores_of(rows, self._reference), self._band, group)
            low, high = np.searchsorted(self._joined, [mine.start, mine.stop])
            group[self._joined[low:high] - mine.start] = core.KEPT
            which = loss.violators(here, group)
            many += len(which)
            if self._fits(many, most):
                violators.append(choose(rows, loss, which, group[which]))
                numbers.append(which + mine.start)
        fits = self._fits(many, most)
        if fits:
            working_set.join(_stacked(violators))
            self._joined = np.sort(np.concatenate([self._joined, *numbers]))
        return self._move(w, on_line, goal), fits

    def _fits(self, many: int, most: int | None = None) -> bool:
        return many <= _least(self.rows.room, most)

    def _all_rows(self, w: Vector, on_line: Vector) -> Iterator[tuple[slice, WholeRows, GroupedLoss, Vector]]:
        """One pass: where rows stand, themselves, their loss and their scores at w.

        on_line gets the loss of all rows in PLACES between the best point and w.
        """
        self.oracle.count_visits()
        somewhere = bool(self.w.any())
        for mine, rows in self._pieces():
            loss, here = self.loss.part(mine), self.oracle.scores_of(rows, w)
            best = self.oracle.scores_of(rows, self.w) if somewhere else np.zeros_like(here)
            on_line += cast("BreakpointLine", loss.line(best, here)).look(PLACES).values
            yield mine, rows, loss, here

    def _pieces(self) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        """All rows, few enough at a time that SCORES numbers hold their scores of one point."""
        most = max(1, SCORES // self.oracle.outputs)
        for mine, rows in self.rows.blocks():
            for begin in range(0, rows.n, most):
                end = min(rows.n, begin + most)
                yield slice(mine.start + begin, mine.start + end), rows.part(begin, end)

    def _move(self, w: Vector, on_line: Vector, goal: float) -> float:
        """The best of the places is the best point from now on."""
        points = [self.w + k * (w - self.w) for k in PLACES]
        heights = [self.oracle.penalty(point) + self.C * value for point, value in zip(points, on_line, strict=True)]
        there = int(np.flatnonzero(PLACES == 1.0)[0])
        chosen = there if heights[there] <= goal else int(np.argmin(heights))
        self.w, self.primal = (w.copy() if chosen == there else points[chosen]), float(heights[chosen])
        self.value = float(on_line[chosen])
        return float(PLACES[chosen])


def _least(*limits: int | None) -> float:
    return min((float(limit) for limit in limits if limit is not None), default=np.inf)


Thin = Callable[[Ints], tuple[Ints, float]]


def _thinned(keep: float, rng: np.random.Generator) -> Thin | None:
    """Draws this share of some rows; the second is what to multiply their weight by."""
    return None if keep >= 1.0 else lambda rows: (rows[rng.random(len(rows)) < keep], 1.0 / keep)


def _stacked(parts: list[Chosen]) -> list[Chosen]:
    """All in one, which is swept faster than many. The list is empty then: its rows take memory."""
    if len(parts) < 2:
        return parts
    loss = parts[0].loss.joined([part.loss for part in parts])
    mark = np.concatenate([part.mark for part in parts])
    rows = [part.rows for part in parts]
    parts.clear()
    return [Chosen(stack(rows), loss, mark)]
