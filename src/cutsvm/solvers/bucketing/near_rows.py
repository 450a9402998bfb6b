"""A risk that reads only the rows that may matter where a solver is, for solvers that ask for values, lines and planes.

Rows are dispatched into buckets now and then (`cutsvm.solvers.bucketing.buckets`, mechanism 2 of P. Bialon's solver,
2009). Not further than some `move` from there the rows of a bucket are surely outside the margin, surely inside, or
near:

    R(w)  =  sum over near rows of s_i max(0, 1 - y_i f_i)  +  sum over rows inside of s_i (1 - y_i f_i)

and the last sum is that of two rows, the mean ones of either label with all the weight. So R is the risk of the near
rows and these two. What lies between two points is within the larger of their moves. Beyond, the right side is at most
R: if the lowest point of a line lies there, more rows are read, and the line is searched again.

A point knows the scores of the rows that were near when it was made; those of others are read when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from cutsvm._native import core
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Vector
from cutsvm.matrix import DenseRows, SparseRows, StackedRows
from cutsvm.problem.line_search import best_intercept
from cutsvm.problem.losses import Hinge, Line
from cutsvm.problem.oracle import FEW_MORE, Intercept, Oracle, Point
from cutsvm.problem.planes import Planes
from cutsvm.problem.rounding import gamma
from cutsvm.solvers.bucketing.bucket_files import buckets_of
from cutsvm.solvers.bucketing.buckets import Buckets
from cutsvm.solvers.bucketing.parts import Part

SHRINK = 0.8  # near rows are chosen anew once so few of them would do


@contextmanager
def near_rows(oracle: Oracle, *, buckets: int, both_sides: bool, whiten: bool) -> Iterator[Oracle]:
    """The risk, reading what is near if there are buckets; files that are needed go in the end."""
    if buckets == 1:
        yield oracle
        return
    with closing(buckets_of(oracle, count=buckets, both_sides=both_sides, whiten=whiten)) as kept:
        yield NearRowsOracle(oracle, kept)


class _Near:
    """The rows of some parts, then the two that stand for those inside the margin; good up to a move of `reach`."""

    def __init__(self, buckets: Buckets, move: float) -> None:
        oracle = buckets.oracle
        self.parts, sure = buckets.within(move, both_sides=buckets.both_sides)
        self.place, self.n = buckets.place, sum(part.n for part in self.parts)
        left = [part for part in buckets.parts if part not in self.parts and part not in sure]
        self.reach = min([np.inf, *(part.low for part in left), *(-part.high for part in sure)])
        totals = sum((cast("Vector", part.totals) for part in sure), np.zeros((2, oracle.rows.d + 1)))
        weights = totals[:, -1]
        means = totals[:, :-1] / np.where(weights > 0.0, weights, 1.0)[:, None]
        self.means = DenseRows(means, oracle.threads)
        rows = cast("list[DenseRows | SparseRows]", [*(part.rows for part in self.parts), self.means])
        of_parts = [*(part.loss.signed for part in self.parts), weights * [1.0, -1.0]]
        signed = np.concatenate(of_parts, out=buckets.rows.vector(self.n + 2))
        ends = np.cumsum([0, *(part.n for part in self.parts)])
        self.places = {part: slice(ends[k], ends[k + 1]) for k, part in enumerate(self.parts)}
        lost = gamma(oracle.rows.n + FEW_MORE) * float(weights.sum())
        self.oracle = oracle.over(StackedRows(rows), Hinge(signed, oracle.threads), mean_error=lost)


@dataclass(frozen=True, eq=False)
class _Known(Point):
    """A point and what is known of its scores: those of some parts, and all those of the near rows asked for last."""

    of_parts: dict[Part, Vector] = field(default_factory=dict)
    of_near: dict[_Near, Vector] = field(default_factory=dict)

    @classmethod
    def among(cls, near: _Near, w: Vector, scores: Vector) -> _Known:
        return cls(w, scores, False, {part: scores[mine] for part, mine in near.places.items()}, {near: scores})


class NearRowsOracle(Oracle):
    """The risk of all rows, of which only those near are read; one shard."""

    def __init__(self, whole: Oracle, buckets: Buckets) -> None:
        super().__init__(whole.rows, whole.loss, intercept=whole.intercept, threads=whole.threads)
        self.whole = whole.whole
        self.buckets = buckets
        self._centre: Vector | None = None  # where the last line began
        self._b = 0.0  # the last one that was best
        self._near: _Near | None = None
        self._wide = 0.0  # the least move that rows are near for

    def split(self, shards: int) -> None:
        super().split(1)  # buckets are not shards: rows change from one to another

    def at(self, w: Vector, *, spare: Point | None = None) -> Point:
        if self.intercept is Intercept.FREE:
            w[-1] = self._b  # any will do to begin with, and this one is not far
        self.buckets.dispatch_if_due(w if self._centre is None else self._centre)
        return self.optimize_intercept(self.score(w))

    @timed("scores")
    def score(self, w: Vector, *, spare: Point | None = None) -> Point:
        near = self._around(w)
        scores = self.rows.vector(near.oracle.rows.n)
        W, b = self.parts(w)
        scores[:] = b
        if np.any(W):
            near.oracle.rows.scores(W, float(b), scores)
            self._visited(near.n)
            self.buckets.spared += self.rows.n - near.n
        return _Known.among(near, w, scores)

    def _visited(self, rows: int) -> None:
        self.buckets.read += rows
        self.count_visits(rows)

    def _around(self, *points: Vector) -> _Near:
        """The rows that are near at these points and between them."""
        move = max([self._wide, *(self.buckets.move(w) for w in points)])
        near, place = self._near, self.buckets.place
        if near is not None and near.place is place and move <= near.reach:
            least = sum(part.n for part in self.buckets.within(move, both_sides=self.buckets.both_sides)[0])
            if least >= SHRINK * near.n:
                return near
        self._near = _Near(self.buckets, move)
        return self._near

    def _scores(self, point: Point, near: _Near) -> Vector:
        """The point's scores of the near rows; those that it does not know are read."""
        assert isinstance(point, _Known)
        known = point.of_near.get(near)
        if known is None:
            known = self.rows.vector(near.oracle.rows.n)
            W, b = self.parts(point.w)
            for part, mine in near.places.items():
                if part in point.of_parts:
                    known[mine] = point.of_parts[part]
                else:
                    part.rows.scores(W, float(b), known[mine])
                    self._visited(part.n)
            near.means.scores(W, float(b), known[near.n :])
            point.of_near.clear()
            point.of_near[near] = known
            point.of_parts.clear()
            point.of_parts.update({part: known[mine] for part, mine in near.places.items()})
        return known

    @timed("line_search")
    def optimize_intercept(self, point: Point) -> Point:
        if self.intercept is not Intercept.FREE:
            return point
        w = point.w.copy()
        while True:
            near = self._around(point.w, w)
            scores = self._scores(point, near)
            shift = best_intercept(cast("Hinge", near.oracle.loss), scores)
            w[-1] = point.w[-1] + shift
            if self.buckets.move(w) <= near.reach:
                self._b = float(w[-1])
                moved = np.add(scores, shift, out=self.rows.vector(len(scores)))
                return _Known.among(near, w, moved)

    @timed("line_search")
    def between(self, start: Point, end: Point, k: float, *, spare: Point | None = None) -> Point:
        near = self._around(start.w, end.w)
        scores = self.rows.vector(near.oracle.rows.n)
        core.blend(self._scores(start, near), self._scores(end, near), k, scores, self.threads)
        return self.optimize_intercept(_Known.among(near, start.w + k * (end.w - start.w), scores))

    @timed("scores")
    def value(self, point: Point) -> float:
        near = self._around(point.w)
        return near.oracle.loss.value(self._scores(point, near))

    def along(self, start: Point, end: Point) -> Line:
        self._centre = start.w
        near = self._around(start.w, end.w)
        return near.oracle.loss.line(self._scores(start, near), self._scores(end, near))

    def covers(self, start: Point, end: Point, k: float) -> bool:
        assert self._near is not None
        move = self.buckets.move(start.w + k * (end.w - start.w))
        enough = k <= 1.0 or move <= self._near.reach
        self._wide = 0.0 if enough else move
        return enough

    def planes(self, point: Point) -> Planes:
        near = self._around(point.w)
        return near.oracle.planes(Point(point.w, self._scores(point, near)))
