"""Full passes over all rows for `cutsvm.solvers.sifting.solver`: F at a point, and the working set around it.

`HeldPass` keeps the scores of the best point, of one more, and the group of each row: each pass is made once, and the
line search is exact. `StreamedPass` keeps nothing per row, for more rows than memory can hold numbers of. In each pass
it computes the scores of three points from the same values: of the point in question, of the best one so far, for F at
some places on the line between, and of the reference point of the working set, which give the group of each row. Rows
that join the working set are copied in the same pass. So one reading of the data does all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.random import Generator

from cutsvm._native import core
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import concatenate, in_order
from cutsvm.matrix.protocol import RowsInMemory, cut_blocks
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Point
from cutsvm.solvers.cutting_planes import descend, objective
from cutsvm.solvers.sifting.working_set import GroupSums, SomeRows, WorkingSet, take_rows

__all__ = ["FullPass", "HeldPass", "StreamedPass", "full_pass"]


@dataclass(frozen=True, eq=False)
class PassSettings:
    """scores: numbers in memory for each of the points whose scores a pass computes.

    sample: rows that a band is measured on.
    places: on the line from the best point (0) to the one in question (1), where `StreamedPass` evaluates F.
    narrower: of the room, which is asked for when a band has turned out to hold too many rows.
    """

    scores: int = 1 << 18
    sample: int = 10_000
    places: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.3)
    narrower: float = 0.7


class FullPass(ABC):
    """All rows: the best point w so far, F and R there, and what passes find."""

    known: Point | None = None  # a point that was evaluated before: its pass is not repeated

    def __init__(self, oracle: Oracle, C: float, settings: PassSettings | None = None) -> None:
        self.oracle, self.C, self.settings = oracle, C, settings or PassSettings()
        self.matrix, self.loss = oracle.matrix, cast("GroupedLoss", oracle.loss)
        self.w, self.risk = np.zeros(oracle.size), oracle.loss.total
        self.primal, self.exact = C * self.risk, False

    @abstractmethod
    def build(
        self, w: Vector | None, share: float, rng: Generator, *, keep: float = 1.0, towards: Vector | None = None
    ) -> WorkingSet:
        """The working set at w (None: at the best point) with this share of the rows; w may be the best point then.

        keep: only this share of U is kept, drawn at random, with 1 / keep times its weight: about the same risk.
        towards: where the path leads; rows that are in another group there are in U, too, if that is cheap to know.
        """

    @abstractmethod
    def advance(self, working_set: WorkingSet, w: Vector, target: float, most: int | None = None) -> tuple[float, bool]:
        """F at w and towards it: returns the step to the best point found. Violators join the working set.

        target: an F at w no larger is good enough. The second result: False if there is no room for the violators, or U
        would have more than `most`.
        """

    def set_C(self, C: float) -> None:
        """Goes on with another C."""
        self.C, self.primal = C, self.oracle.penalty(self.w) + C * self.risk

    def fits(self, many: int, most: int | None = None) -> bool:
        """Whether there is room for this number of rows, which is no more than `most`."""
        return all(limit is None or many <= limit for limit in (self.matrix.room, most))


def full_pass(oracle: Oracle, C: float) -> FullPass:
    """With scores in memory where there is room for them."""
    return HeldPass(oracle, C) if oracle.supports.scores else StreamedPass(oracle, C)


class HeldPass(FullPass):
    """With the scores of all rows in memory."""

    best: Point | None = None
    _unused: Point | None = None

    def build(
        self, w: Vector | None, share: float, rng: Generator, *, keep: float = 1.0, towards: Vector | None = None
    ) -> WorkingSet:
        if w is not None:
            known, self.known = self.known, None
            point = known if known is not None and np.array_equal(known.w, w) else self.oracle.at(w)
            if objective(self.oracle, point, self.C) > self.primal:  # not even as good as 0
                point = descend(self.oracle, self.oracle.at(self.w), point, self.C, target=0.0)[0]
            self._keep(point)
        assert self.best is not None
        some = rng.integers(0, self.matrix.n, self.settings.sample)
        band = float(np.quantile(self.loss.distances(self.best.scores, some), share))
        if towards is not None:
            self._unused = self.oracle.score(towards, out=self._unused)
        return self.near(self.best, band, _thinned(keep, rng), None if towards is None else self._unused)

    @timed("sift")
    def near(self, point: Point, band: float, thin: Thin | None = None, end: Point | None = None) -> WorkingSet:
        """R_U of the rows within `band` of a change of their slope, or that change it on the way to the end."""
        self._group: Array = np.empty(self.matrix.n, dtype=np.int32)
        near, times = self.loss.sift(point.scores, band, self._group), 1.0
        if end is not None:
            more = self.loss.violators(end.scores, self._group)
            self._group[more] = core.KEPT
            near = in_order(np.concatenate([near, more]))
        if thin is not None:
            near, times = thin(near)
        totals = GroupSums(self.loss, self.matrix.d)
        self.oracle.count_rows(totals.add(self.matrix, self.loss, self._group))
        mark = self.loss.marks(point.scores, near)
        return WorkingSet(self.oracle, [take_rows(self.matrix, self.loss, near, mark, times)], totals)

    def advance(self, working_set: WorkingSet, w: Vector, target: float, most: int | None = None) -> tuple[float, bool]:
        assert self.best is not None
        trial = self.oracle.score(w, out=self._unused)
        fits = self.grow(working_set, trial, most)  # by the solution's own b: its bound knows no other
        trial = self.oracle.optimize_intercept(trial, out=trial)
        best, self._unused, k = descend(self.oracle, self.best, trial, self.C, target)
        self._keep(best)
        return k, fits

    @timed("sift")
    def grow(self, working_set: WorkingSet, point: Point, most: int | None = None) -> bool:
        """Violators at the point join U, if there is room."""
        violators = self.loss.violators(point.scores, self._group)
        if not self.fits(working_set.n_rows + len(violators), most):
            return False
        if len(violators):
            working_set.join([take_rows(self.matrix, self.loss, violators, self._group[violators])])
            self._group[violators] = core.KEPT
        return True

    def _keep(self, point: Point) -> None:
        self.best, self.w, self.exact = point, point.w, point.exact
        self.risk = self.oracle.value(point)
        self.primal = self.oracle.penalty(point.w) + self.C * self.risk


class StreamedPass(FullPass):
    """With nothing per row in memory but U."""

    def __init__(self, oracle: Oracle, C: float, settings: PassSettings | None = None) -> None:
        super().__init__(oracle, C, settings)
        self.exact = True  # F is made from scores of the very pass, never from those of passes before
        self.places = np.array(self.settings.places)
        self._reference, self._band = self.w, 0.0
        self._joined: Ints = np.empty(0, dtype=np.int64)

    @timed("sift")
    def build(
        self, w: Vector | None, share: float, rng: Generator, *, keep: float = 1.0, towards: Vector | None = None
    ) -> WorkingSet:
        w, thin = (self.w if w is None else w), _thinned(keep, rng)
        some = np.unique(rng.integers(0, self.matrix.n, self.settings.sample))
        of_some = self.oracle.scores_of(self.matrix.take(some), w)
        distances = self.loss.take(some).distances(of_some, np.arange(len(some)))
        band = np.inf
        while True:
            narrower = float(np.quantile(distances, share))
            band = narrower if narrower < band else -1.0  # none: too many are at the same distance
            totals = GroupSums(self.loss, self.matrix.d)
            on_line, near, many = np.zeros(len(self.places)), [], 0
            for _, rows, loss, here in self._all_rows(w, on_line):
                group = np.empty(rows.n, dtype=np.int32)
                which, times = loss.sift(here, band, group), 1.0
                if thin is not None:
                    which, times = thin(which)
                many += len(which)
                if self.fits(many):
                    near.append(take_rows(rows, loss, which, loss.marks(here, which), times))
                totals.add(rows, loss, group)
            if self.fits(many):
                break
            assert self.matrix.room is not None
            share *= self.settings.narrower * self.matrix.room / many
        self._reference, self._band, self._joined = w.copy(), band, np.empty(0, dtype=np.int64)
        self._move(w, on_line, target=0.0)
        return WorkingSet(self.oracle, _stacked(near), totals)

    @timed("sift")
    def advance(self, working_set: WorkingSet, w: Vector, target: float, most: int | None = None) -> tuple[float, bool]:
        on_line, violators, numbers, many = np.zeros(len(self.places)), [], [], working_set.n_rows
        for mine, rows, loss, here in self._all_rows(w, on_line):
            group = np.empty(rows.n, dtype=np.int32)
            loss.sift(self.oracle.scores_of(rows, self._reference), self._band, group)
            low, high = np.searchsorted(self._joined, [mine.start, mine.stop])
            group[self._joined[low:high] - mine.start] = core.KEPT
            which = loss.violators(here, group)
            many += len(which)
            if self.fits(many, most):
                violators.append(take_rows(rows, loss, which, group[which]))
                numbers.append(which + mine.start)
        fits = self.fits(many, most)
        if fits:
            working_set.join(_stacked(violators))
            self._joined = np.sort(np.concatenate([self._joined, *numbers]))
        return self._move(w, on_line, target), fits

    def _all_rows(self, w: Vector, on_line: Vector) -> Iterator[tuple[slice, RowsInMemory, GroupedLoss, Vector]]:
        """One pass: where rows stand, themselves, their loss and their scores at w.

        on_line gets the loss of all rows at `places` between the best point and w.
        """
        self.oracle.count_rows()
        somewhere = bool(self.w.any())
        most = max(1, self.settings.scores // self.oracle.outputs)
        for mine, rows in cut_blocks(self.matrix.blocks(), most):
            loss, here = self.loss.part(mine), self.oracle.scores_of(rows, w)
            best = self.oracle.scores_of(rows, self.w) if somewhere else np.zeros_like(here)
            on_line += loss.line(best, here).evaluate(self.places).values
            yield mine, rows, loss, here

    def _move(self, w: Vector, on_line: Vector, target: float) -> float:
        """The best of the places is the best point from now on."""
        points = [self.w + k * (w - self.w) for k in self.places]
        heights = [self.oracle.penalty(point) + self.C * value for point, value in zip(points, on_line, strict=True)]
        there = int(np.flatnonzero(self.places == 1.0)[0])
        chosen = there if heights[there] <= target else int(np.argmin(heights))
        self.w, self.primal = (w.copy() if chosen == there else points[chosen]), float(heights[chosen])
        self.risk = float(on_line[chosen])
        return float(self.places[chosen])


Thin = Callable[[Ints], tuple[Ints, float]]


def _thinned(keep: float, rng: Generator) -> Thin | None:
    """Draws this share of some rows; the second is what to multiply their weight by."""
    return None if keep >= 1.0 else lambda rows: (rows[rng.random(len(rows)) < keep], 1.0 / keep)


def _stacked(parts: list[SomeRows]) -> list[SomeRows]:
    """All in one, which is read faster than many. The list is empty then: its rows take memory."""
    if len(parts) < 2:
        return parts
    loss = parts[0].loss.joined([part.loss for part in parts])
    mark = np.concatenate([part.mark for part in parts])
    rows = [part.matrix for part in parts]
    parts.clear()
    return [SomeRows(concatenate(rows), loss, mark)]
