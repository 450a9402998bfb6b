"""An oracle that reads only the rows that may matter where a solver is, for solvers that ask for values, lines, planes.

Rows are dispatched into buckets now and then (`cutsvm.solvers.bucketing.buckets`, mechanism 2 of P. Bialon's solver,
2009). Not further than some `move` from there the rows of a bucket are surely outside the margin, surely inside, or
near:

    R(w)  =  sum over near rows of s_i max(0, 1 - y_i f_i)  +  sum over rows inside of s_i (1 - y_i f_i)

and the last sum is that of two rows, the means of either label with all their weight. So R is the risk of the near rows
and these two. What lies between two points is within the larger of their moves. Beyond, the right side is at most R: if
the lowest point of a line lies there, more rows are read, and the line is searched again.

A point knows the scores of the rows that were near when it was made; those of others are read when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np

from cutsvm._native import core
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Vector
from cutsvm.matrix import as_rows, stacked
from cutsvm.problem.certificate import sum_error
from cutsvm.problem.losses import Line, MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Planes
from cutsvm.problem.point import Intercept, Point
from cutsvm.solvers.bucketing.bucket_files import buckets_of
from cutsvm.solvers.bucketing.buckets import Buckets, BucketSettings
from cutsvm.solvers.protocol import FitContext


class Bucketed(Protocol):
    """The settings of a solver that can read near rows only."""

    @property
    def buckets(self) -> int: ...
    @property
    def both_sides(self) -> bool: ...
    @property
    def whiten(self) -> bool: ...
    @property
    def bucketing(self) -> BucketSettings: ...


@contextmanager
def near_rows(context: FitContext, solver: Bucketed) -> Iterator[None]:
    """Lets the oracle of a context read near rows only; the buckets' files are removed in the end."""
    oracle = context.oracle
    options = {"both_sides": solver.both_sides, "whiten": solver.whiten}
    with closing(buckets_of(oracle, count=solver.buckets, settings=solver.bucketing, **options)) as buckets:
        context.oracle, context.trial = NearRowsOracle(oracle, buckets), None  # its points know more than scores
        try:
            yield
        finally:
            context.oracle = oracle


class _Near:
    """The rows of some parts, then the two that stand for those inside the margin; good up to a move of `radius`."""

    def __init__(self, buckets: Buckets, move: float) -> None:
        oracle = buckets.oracle
        self.parts, sure = buckets.within(move, both_sides=buckets.both_sides)
        self.place, self.n = buckets.place, sum(part.n for part in self.parts)
        left = [part for part in buckets.parts if part not in self.parts and part not in sure]
        self.radius = min([np.inf, *(part.low for part in left), *(-part.high for part in sure)])
        totals = sum((cast("Vector", part.totals) for part in sure), np.zeros((2, oracle.matrix.d + 1)))
        weights = totals[:, -1]
        means = totals[:, :-1] / np.where(weights > 0.0, weights, 1.0)[:, None]
        self.means = as_rows(means, oracle.threads)
        rows = [*(part.matrix for part in self.parts), self.means]
        of_parts = [*(part.loss.signed for part in self.parts), weights * [1.0, -1.0]]
        signed = np.concatenate(of_parts, out=buckets.matrix.vector(self.n + 2))
        ends = np.cumsum([0, *(part.n for part in self.parts)])
        self.places = {part: slice(ends[k], ends[k + 1]) for k, part in enumerate(self.parts)}
        lost = sum_error(oracle.matrix.n) * float(weights.sum())
        self.oracle = oracle.restrict(stacked(rows), buckets.loss.of_signed(signed), mean_error=lost)


@dataclass(frozen=True, eq=False)
class _KnownScores(Point):
    """A point and its scores of the near rows asked for last."""

    of_near: dict[_Near, Vector] = field(default_factory=dict)


@dataclass
class _NearState:
    """What changes from call to call.

    center: where the last line began. b: the last one that was best. near: the rows that are near now. width: the
    least move that rows are near for. shrink: near rows are chosen again once this share of them would do.
    """

    center: Vector | None = None
    b: float = 0.0
    near: _Near | None = None
    width: float = 0.0
    shrink: float = 0.8


class NearRowsOracle(Oracle):
    """The risk of all rows, of which only those near are read; one shard."""

    buckets: Buckets
    _state: _NearState

    def __init__(self, full: Oracle, buckets: Buckets) -> None:
        super().__init__(full.matrix, full.loss, full.intercept, full.threads, whole=full.whole)
        self.__dict__.update(buckets=buckets, _state=_NearState())

    def at(self, w: Vector, *, out: Point | None = None) -> Point:
        state = self._state
        if self.intercept is Intercept.FREE:
            w = np.append(w[:-1], state.b)  # any b will do to begin with, and this one is not far
        self.buckets.dispatch_if_due(w if state.center is None else state.center)
        return self.optimize_intercept(self.score(w))

    @timed("scores")
    def score(self, w: Vector, *, out: Point | None = None) -> Point:
        near = self._around(w)
        scores = self.matrix.vector(near.oracle.matrix.n)
        W, b = self.parts(w)
        scores[:] = b
        if np.any(W):
            near.oracle.matrix.scores(W, float(b), scores)
            self._read(w, near.n)
        return _KnownScores(w, scores, of_near={near: scores})

    def _read(self, w: Vector, rows: int) -> None:
        self.buckets.note(w, rows)
        self.count_rows(rows)

    def _around(self, *points: Vector) -> _Near:
        """The rows that are near at these points and between them."""
        state, buckets = self._state, self.buckets
        move = max([state.width, *(buckets.move(w) for w in points)])
        near = state.near
        if near is not None and near.place is buckets.place and move <= near.radius:
            least = sum(part.n for part in buckets.within(move, both_sides=buckets.both_sides)[0])
            if least >= state.shrink * near.n:
                return near
        state.near = _Near(buckets, move)
        return state.near

    def _scores(self, point: Point, near: _Near) -> Vector:
        """The point's scores of the near rows; those that it does not know are read."""
        assert isinstance(point, _KnownScores)
        if near not in point.of_near:
            ((before, known),) = point.of_near.items()
            scores = self.matrix.vector(near.oracle.matrix.n)
            W, b = self.parts(point.w)
            for part, mine in near.places.items():
                if part in before.places:
                    scores[mine] = known[before.places[part]]
                else:
                    part.matrix.scores(W, float(b), scores[mine])
                    self._read(point.w, part.n)
            near.means.scores(W, float(b), scores[near.n :])
            point.of_near.clear()
            point.of_near[near] = scores
        return point.of_near[near]

    @timed("line_search")
    def optimize_intercept(self, point: Point, *, out: Point | None = None) -> Point:
        if self.intercept is not Intercept.FREE:
            return point
        w = point.w.copy()
        while True:
            near = self._around(point.w, w)
            scores = self._scores(point, near)
            shift = cast("MarginLoss", near.oracle.loss).best_shift(scores)
            w[-1] = point.w[-1] + shift
            if self.buckets.move(w) <= near.radius:
                self._state.b = float(w[-1])
                moved = np.add(scores, shift, out=self.matrix.vector(len(scores)))
                return _KnownScores(w, moved, of_near={near: moved})

    @timed("line_search")
    def between(self, start: Point, end: Point, k: float, *, out: Point | None = None) -> Point:
        near = self._around(start.w, end.w)
        scores = self.matrix.vector(near.oracle.matrix.n)
        core.blend(self._scores(start, near), self._scores(end, near), k, scores, self.threads)
        point = _KnownScores(start.w + k * (end.w - start.w), scores, of_near={near: scores})
        return self.optimize_intercept(point)

    @timed("scores")
    def value(self, point: Point) -> float:
        near = self._around(point.w)
        return near.oracle.loss.value(self._scores(point, near))

    def along(self, start: Point, end: Point) -> Line:
        self._state.center = start.w
        near = self._around(start.w, end.w)
        return near.oracle.loss.line(self._scores(start, near), self._scores(end, near))

    def covers(self, start: Point, end: Point, k: float) -> bool:
        state = self._state
        assert state.near is not None
        move = self.buckets.move(start.w + k * (end.w - start.w))
        enough = k <= 1.0 or move <= state.near.radius
        state.width = 0.0 if enough else move
        return enough

    def planes(self, point: Point) -> Planes:
        near = self._around(point.w)
        return near.oracle.planes(Point(point.w, self._scores(point, near)))
