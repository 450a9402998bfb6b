"""Risk: the data and the loss together, which is all that a solver sees.

R(w) = loss(X w + b). The coordinates of w are the d features and then, if there is an intercept, b. It is
regularised like a feature, or free: then R(w) = min over b, every point carries its best b, and planes have no
slope in b all in all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from cutsvm._native import core
from cutsvm.line_search import lowest
from cutsvm.losses import Line, Loss
from cutsvm.planes import Planes
from cutsvm.rows import Rows
from cutsvm.timing import count, timed
from cutsvm.types import Ints, Vector

# A plane is a sum that is kept up to date by adding and subtracting rows. Its error grows with all the weight that
# was ever moved: it is made anew once that is so many times the weight that the plane has itself.
_STALE = 50.0
# Slopes in b below this share of all the weight are round-off.
_FLAT = 1e-12


class Intercept(Enum):
    """What becomes of b: there is none, it is regularised with w, or it is free."""

    NONE = "none"
    REGULARIZED = "regularized"
    FREE = "free"


@dataclass(frozen=True, eq=False)
class Point:
    """w with its scores, so that no pass over the data is ever repeated."""

    w: Vector
    scores: Vector
    swept: bool = False  # the scores come from a pass at this very w, not from a blend of others


class Risk:
    """R(w) = loss(X w + b), a sum over `shards` ranges of rows."""

    whole = True  # these are all the rows that there are
    # A dual vector alpha / s to begin with, for solvers that have one; they leave theirs here.
    dual: Vector | None = None

    def __init__(
        self, rows: Rows, loss: Loss, *, intercept: Intercept = Intercept.NONE, shards: int = 1, threads: int = 1
    ) -> None:
        self.rows, self.loss, self.intercept, self.threads = rows, loss, intercept, threads
        self.size = rows.d + (intercept is not Intercept.NONE)
        self.n_free = int(intercept is Intercept.FREE)
        self.split(shards)

    def split(self, shards: int) -> None:
        """Cuts the rows into so many shards of equal size; planes from now on have a row for each."""
        shards = max(1, min(shards, self.rows.n))
        self.cut(np.linspace(0, self.rows.n, shards + 1).astype(np.int64))

    def cut(self, bounds: Ints) -> None:
        """Cuts the rows at these places, from 0 to n."""
        shards, self.bounds = len(bounds) - 1, bounds
        self._sums = np.zeros((shards, self.size))
        self._slopes = np.zeros(self.rows.n)
        self._moved = np.zeros(shards)

    @property
    def shards(self) -> int:
        return len(self.bounds) - 1

    def penalty(self, w: Vector) -> float:
        """|w|^2 / 2 over the regularised coordinates."""
        part = w[: self.size - self.n_free]
        return 0.5 * float(part @ part)

    @timed("scores")
    def score(self, w: Vector, *, spare: Point | None = None) -> Point:
        """The point w as it is: one pass over the data (none at w = 0)."""
        scores = np.empty(self.rows.n) if spare is None else spare.scores
        b = float(w[self.rows.d]) if self.intercept is not Intercept.NONE else 0.0
        if np.any(w[: self.rows.d]):
            self.count_visits()
            self.rows.scores(np.ascontiguousarray(w[: self.rows.d]), b, scores)
        else:
            scores.fill(b)
        return Point(w, scores, swept=True)

    def count_visits(self, rows: int | None = None) -> None:
        """Counts visits to rows; a visit to all of them is a pass."""
        many = self.rows.n if rows is None else rows
        count("visits", many)
        if self.whole and many >= self.rows.n:
            count("passes")

    def at(self, w: Vector, *, spare: Point | None = None) -> Point:
        """The point w, with the best b if that is free.

        spare: a point that is not needed any more, whose memory may be used.
        """
        return self.settle(self.score(w, spare=spare))

    @timed("line_search")
    def between(self, start: Point, end: Point, k: float, *, spare: Point | None = None) -> Point:
        """The point start + k (end - start), with the best b if that is free. No pass over the data."""
        scores = np.empty(self.rows.n) if spare is None else spare.scores
        core.blend(start.scores, end.scores, k, scores, self.threads)
        return self.settle(Point(start.w + k * (end.w - start.w), scores))

    @timed("line_search")
    def settle(self, point: Point) -> Point:
        """The point with b moved to where the loss is lowest."""
        if self.intercept is not Intercept.FREE:
            return point
        shift = lowest(self.loss.line(point.scores), _FLAT * self.loss.total)
        point.w[-1] += shift
        np.add(point.scores, shift, out=point.scores)
        return replace(point, swept=False) if shift else point

    @timed("scores")
    def value(self, point: Point) -> float:
        """R at the point."""
        return self.loss.value(point.scores)

    def along(self, start: Point, end: Point) -> Line:
        """R on the line from start (k = 0) to end (k = 1) and beyond."""
        return self.loss.line(start.scores, end.scores)

    @timed("planes")
    def planes(self, point: Point) -> Planes:
        """One plane per shard that touches R_p at the point: R_p(w) >= slope . w + offset for all w.

        Only rows whose slope differs from the last call's are read.
        """
        fresh = np.empty(self.rows.n)
        free = self.intercept is Intercept.FREE
        offsets = self.loss.slopes(point.scores, self.bounds, fresh, balanced=free)
        return self._planes(fresh, offsets)

    @timed("planes")
    def plane_of(self, slopes: Vector) -> Planes:
        """The planes that a dual vector stands for: slopes_i = -alpha_i y_i, 0 <= alpha_i <= s_i."""
        return self._planes(slopes, np.add.reduceat(np.abs(slopes), self.bounds[:-1]))

    def _planes(self, fresh: Vector, offsets: Vector) -> Planes:
        """Sums of the rows times `fresh` over each shard, from the sums of the last call."""
        for p in np.flatnonzero(self._moved > _STALE * offsets):
            self._sums[p], self._moved[p] = 0.0, 0.0
            self._slopes[self.bounds[p] : self.bounds[p + 1]] = 0.0
        read = self.rows.accumulate(self._slopes, fresh, self.bounds, self._sums, self._moved)
        count("rows_read", read)
        count("visits", read)
        slopes = self._sums.copy()
        if self.intercept is Intercept.FREE:
            excess = slopes[:, -1].sum()
            if abs(excess) <= _FLAT * self.loss.total:  # round-off; anything larger is left to the bundle
                slopes[:, -1] -= excess / self.shards
        return Planes(slopes, offsets)
