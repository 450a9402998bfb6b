"""Full passes over all rows for `cutsvm.solvers.sifting.solver`: F at a point, and the working set around it.

`HeldPass` keeps the scores of the best point, of one more, and the group of each row: each pass is made once, and the
line search is exact. `StreamedPass` keeps nothing per row, for more rows than memory can hold numbers of: it adds up
what tasks find in some rows each (`cutsvm.solvers.sifting.tasks`), of a store or of a cluster. They compute the scores
of three points from the same values: of the point in question, of the best one so far, for F at some places on the line
between, and of the reference point of the working set, which give the group of each row. Rows that join the working set
are copied in the same pass. So one reading of the data does all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.random import Generator

from cutsvm._native import core
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import concatenate, in_order
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Point
from cutsvm.solvers.cutting_planes import descend, objective
from cutsvm.solvers.sifting.tasks import add_sift_results, add_violators, find_violators, sift_rows, uncertainties
from cutsvm.solvers.sifting.working_set import GroupSums, SomeRows, WorkingSet, take_rows

__all__ = ["FullPass", "HeldPass", "StreamedPass", "full_pass"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PassSettings:
    """sample: rows that a band is measured on.

    places: on the line from the best point (0) to the one in question (1), where `StreamedPass` evaluates F.
    narrower: of the room, which is asked for when a band has turned out to hold too many rows.
    """

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
        self._moments = oracle.feature_moments

    @timed("sift")
    def build(
        self, w: Vector | None, share: float, rng: Generator, *, keep: float = 1.0, towards: Vector | None = None
    ) -> WorkingSet:
        w = self.w if w is None else w
        rows, loss = self.oracle.measured(self.settings.sample, rng)
        distances = loss.distances(self.oracle.scores_of(rows, w), np.arange(rows.n))
        if self._moments is not None:
            distances = distances / np.maximum(1.0, uncertainties(rows, self._moments))
        seed, room, band = int(rng.integers(1 << 32)), self.matrix.room, np.inf
        while True:
            narrower = float(np.quantile(distances, share))
            band = narrower if narrower < band else -1.0  # none: too many are at the same distance
            line = {"w": w, "best": self.w, "places": self.places}
            found = self._sum(
                sift_rows, add_sift_results, **line, band=band, moments=self._moments, keep=keep, seed=seed, most=room
            )
            if found.near.fit:
                break
            assert room is not None
            share *= self.settings.narrower * room / found.near.many
        self._reference, self._band, self._joined = w.copy(), band, np.empty(0, dtype=np.int64)
        self._move(w, found.on_line, target=0.0)
        totals, near = GroupSums.of(self.loss, found.sums), list(found.near.copies)
        del found
        return WorkingSet(self.oracle, self._stacked(near), totals)

    @timed("sift")
    def advance(self, working_set: WorkingSet, w: Vector, target: float, most: int | None = None) -> tuple[float, bool]:
        limits = [limit - working_set.n_rows for limit in (self.matrix.room, most) if limit is not None]
        assumed = {"reference": self._reference, "band": self._band, "moments": self._moments, "joined": self._joined}
        line = {"w": w, "best": self.w, "places": self.places}
        found = self._sum(find_violators, add_violators, **line, **assumed, most=min(limits, default=None))
        step, fit = self._move(w, found.on_line, target), found.rows.fit
        if fit:
            self._joined = np.sort(np.concatenate([self._joined, *found.rows.numbers]))
            violators = list(found.rows.copies)
            del found
            working_set.join(self._stacked(violators))
        return step, fit

    def _sum(self, task: Callable[..., T], add: Callable[[T, T], T], **shared: Any) -> T:
        """One pass: what the task finds in all rows."""
        total: T | None = None
        for found in self.oracle.each_part(task, add, **shared):
            total = found if total is None else add(total, found)
            del found  # rows that there is no room for
        assert total is not None
        return total

    def _stacked(self, parts: list[SomeRows]) -> list[SomeRows]:
        """All in one, which is read faster than many. The list is empty then: its rows take memory."""
        if not parts:
            return []
        loss = self.loss.joined([part.loss for part in parts])
        mark = np.concatenate([part.mark for part in parts])
        rows = [part.matrix for part in parts]
        parts.clear()
        matrix = rows[0] if len(rows) == 1 else concatenate(rows)
        return [SomeRows(matrix.with_threads(self.oracle.threads), loss, mark)]

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
