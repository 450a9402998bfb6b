"""Risk: the data and the loss together, which is all that a solver sees.

R(w) = loss(X w + b). The coordinates of w are the d features and then, if there is an intercept, b. It is
regularised like a feature, or free: then R(w) = min over b, every point carries its best b, and planes have no
slope in b all in all. (Only `tangents` takes b as it comes.) K classes together are `cutsvm.problem.multiclass`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np

from cutsvm._native import core
from cutsvm._utils.timing import count, timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix import Rows
from cutsvm.problem.line_search import best_intercept
from cutsvm.problem.losses import Hinge, Line, Loss, Pairwise, RowLoss
from cutsvm.problem.losses.pairwise import TIE
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.problem.rounding import Magnitudes, RowScale, gamma

if TYPE_CHECKING:
    from cutsvm.driver.path import Trail

# A plane is a sum that is kept up to date by adding and subtracting rows. Its error grows with all the weight that
# was ever moved: it is made anew once that is so many times the weight that the plane has itself.
STALE = 50.0
# Sums of rows are made of PIECES of a shard (core/sweep.hpp), and what is added to the length of a piece for adding up
# pieces, parts and shards.
PIECES, FEW_MORE = 16, 64
BLOCK = 4096  # rows that other sums are made of
# Slopes in b that are to sum to 0 may be off by so many times what rounding can have cost one of them.
ROUND_OFF = 8.0
# An objective that may be off by less than this share of it is taken as it is.
PRECISE = 1e-10
# One that may be off by more is improved, if w can be made longer by some of its last binary digits.
IMPRECISE, LAST_DIGITS = 1e-6, (50, 46, 42, 36, 30)
# A free b beyond this is no place to begin at: planes that leave b open give any, and it would take the scores' digits.
_FAR = 1e6


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
    exact: bool = False  # the scores come from a pass at this very w, not from a blend of others


class Objective(NamedTuple):
    """F at the model that is returned, R there, and how far F may be off by rounding.

    last_digits: how much F may change if scores do by some of their last digits.
    """

    primal: float
    loss: float
    error: float
    last_digits: float = 0.0

    @property
    def upper(self) -> float:
        return self.primal + self.error


class Tangent(NamedTuple):
    """A point, R there, and the planes that touch it there."""

    w: Vector
    value: float
    planes: Planes


Own = TypeVar("Own", bound="Oracle")


class Oracle:
    """R(w) = loss(X w + b), a sum over `shards` ranges of rows."""

    outputs = 1  # scores that a row has
    steepness = 1.0  # the loss changes by so many times the largest change of a score and the weight of all rows
    tie = 0.0  # rows this far from the margin may not be counted
    terms = 4  # of a sum, besides the features, that errors of the scores are multiplied by
    whole = True  # these are all the rows that there are
    apart = 0  # so many of the last rows are a shard of their own
    # A dual vector alpha / s to begin with, for solvers that have one; they leave theirs here.
    dual: Vector | None = None
    trail: Trail | None = None  # what solvers share that walk over several C
    shift: Vector | None = None  # the rows are those given less this one, m: the intercept is b + w.m then
    origin: Oracle | None = None  # of which this is a lower bound, made of some of its rows and of means of others
    mean_error: float = 0.0  # what the means may have lost to rounding: a bound e as of `cutsvm.problem.rounding`

    def __init__(
        self, rows: Rows, loss: Loss, *, intercept: Intercept = Intercept.NONE, shards: int = 1, threads: int = 1
    ) -> None:
        self.rows, self.loss, self.intercept, self.threads = rows, loss, intercept, threads
        self.given: Rows = rows  # as the user has them
        self.size, self.n_free = self._coordinates()
        self.split(shards)

    def _coordinates(self) -> tuple[int, int]:
        """How many coordinates w has, and how many of them, the last ones, are free."""
        return self.rows.d + (self.intercept is not Intercept.NONE), int(self.intercept is Intercept.FREE)

    def over(self: Own, rows: Rows, loss: Loss, *, apart: int = 0, mean_error: float | None = None) -> Own:
        """The same kind of risk over some rows that stand for all.

        mean_error: given if it is a lower bound of this risk, with means of rows among its rows.
        """
        part = type(self)(rows, loss, intercept=self.intercept, threads=self.threads)
        part.whole, part.apart = False, apart
        if mean_error is not None:
            part.origin, part.mean_error = self.origin or self, mean_error
        return part

    def reach(self, C: float) -> float:
        """Some minimiser of |w|^2/2 + C R has no free coordinate beyond this; of use from two of them on."""
        return np.inf

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """How large the rows are, those of the risk that this is a lower bound of."""
        if self.origin is not None:
            return self.origin.magnitudes
        return self.given.magnitudes if self.shift is None else self.rows.magnitudes

    def intercept_bound(self, C: float) -> float:
        """Some minimiser of |w|^2/2 + C R has |b + w.m| below this, m the centre of the rows.

        F is at most C S there, S the weight of all rows, so |w|^2 <= 2 C S; and the best b has a row on the margin.
        """
        if self.origin is not None:
            return self.origin.intercept_bound(C)
        return 1.0 + 1.01 * float(np.sqrt(2.0 * C * self.loss.total)) * self.magnitudes.radius

    def scale(self, C: float) -> RowScale:
        """What a lower bound at C, or at any smaller one, needs to know of the rows."""
        regularized = self.intercept is Intercept.REGULARIZED
        bound = self.intercept_bound(C) if self.n_free else 0.0
        return RowScale(self.magnitudes, self.outputs, self.n_free, regularized, bound)

    def initial_planes(self) -> list[Planes]:
        """Planes, besides the one at the start, that keep the reduced problem's free coordinates from running off."""
        return []

    def split(self, shards: int) -> None:
        """Cuts the rows into so many shards of equal size; planes from now on have a row for each."""
        n = self.rows.n - self.apart
        bounds = np.linspace(0, n, max(1 - (self.apart > 0), min(shards, n)) + 1).astype(np.int64)
        self.cut(np.append(bounds, self.rows.n) if self.apart else bounds)

    def cut(self, bounds: Ints) -> None:
        """Cuts the rows at these places, from 0 to n."""
        shards, self.bounds = len(bounds) - 1, bounds
        self._sums = np.zeros((shards, self.size))
        self._slopes: tuple[Vector, Vector] | None = None  # of the last planes, all 0 at first, and of the next
        self._moved, self._calls = np.zeros(shards), 0

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
        scores = self._blank(spare)
        W, b = self.parts(w)
        if np.any(W):
            self.count_visits()
            self._sweep(self.rows, W, b, scores)
        else:
            scores[:] = b
        return Point(w, scores, exact=True)

    def _blank(self, spare: Point | None) -> Vector:
        """Memory for scores."""
        return self.rows.vector(self.rows.n) if spare is None else spare.scores

    def scores_of(self, rows: Rows, w: Vector) -> Vector:
        """The scores at w of rows of the same kind, which may be some of these."""
        scores = np.empty(rows.n if self.outputs == 1 else (rows.n, self.outputs))
        self._sweep(rows, *self.parts(w), scores)
        return scores

    def parts(self, w: Vector) -> tuple[Vector, Vector]:
        """The weights of the features and the intercepts: arrays of shape (d,) and ()."""
        b = w[self.rows.d] if self.intercept is not Intercept.NONE else 0.0
        return np.ascontiguousarray(w[: self.rows.d]), np.asarray(b)

    def _sweep(self, rows: Rows, W: Vector, b: Vector, out: Vector) -> None:
        rows.scores(W, float(b), out)

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
        return self.optimize_intercept(self.score(self._within_reach(w), spare=spare))

    def _within_reach(self, w: Vector) -> Vector:
        """w without a free b that is far off."""
        if self.intercept is Intercept.FREE and self.outputs == 1 and abs(w[-1]) > _FAR:
            w[-1] = 0.0
        return w

    @timed("line_search")
    def between(self, start: Point, end: Point, k: float, *, spare: Point | None = None) -> Point:
        """The point start + k (end - start), with the best b if that is free. No pass over the data."""
        scores = self._blank(spare)
        core.blend(start.scores.reshape(-1), end.scores.reshape(-1), k, scores.reshape(-1), self.threads)
        return self.optimize_intercept(Point(start.w + k * (end.w - start.w), scores))

    @timed("line_search")
    def optimize_intercept(self, point: Point) -> Point:
        """The point with b moved to where the loss is lowest."""
        if self.intercept is not Intercept.FREE:
            return point
        shift = best_intercept(cast("Hinge", self.loss), point.scores)
        point.w[-1] += shift
        np.add(point.scores, shift, out=point.scores)
        return replace(point, exact=False) if shift else point

    @timed("scores")
    def value(self, point: Point) -> float:
        """R at the point."""
        return self.loss.value(point.scores)

    def model(self, w: Vector) -> tuple[Vector, Vector]:
        """The weights of the features and the intercepts as they are returned to the user."""
        W, b = self.parts(w)
        return (W, b) if self.shift is None else (W, np.asarray(b - W @ self.shift))

    def coordinates(self, W: Vector, b: Vector) -> Vector:
        """The w whose model this is, up to rounding."""
        moved = b if self.shift is None else b + W @ self.shift
        return W.copy() if self.intercept is Intercept.NONE else np.append(W, moved)

    def objective(self, w: Vector, C: float, loss: float | None = None) -> Objective:
        """F at the model of w, from the data; loss: R there, if it is known from a pass at this very w.

        Where the scores are small differences of large numbers they are computed once more in twice the digits.
        """
        if loss is None:
            loss = self.value(self.score(w))
        primal = self.penalty(w) + C * loss
        W, b = self.model(w)
        rows = self._judged.magnitudes
        size = max(rows.product(block) for block in np.atleast_2d(W)) + float(np.abs(b).max())
        weight = C * self.steepness * self.loss.total
        error = weight * (gamma(2 * rows.terms + self.terms + 16) * size + self.tie)
        if error <= PRECISE * primal:
            return Objective(primal, loss, error)
        scores = self._compensated_scores(W, b)
        loss, penalty = self.loss.precise(*scores), self.penalty(w)
        highest = self.loss.precise(*scores, gamma(2 * rows.terms + 16) ** 2 * size)
        error = C * max(0.0, highest - loss) + gamma(len(w)) * penalty
        return Objective(penalty + C * loss, loss, error, weight * gamma(rows.terms + 4) * size)

    def refined(self, w: Vector, C: float, loss: float | None = None) -> tuple[Vector, Objective]:
        """w, or w made longer by a few of its last digits, whichever has the lowest F that rounding allows to prove.

        Rows that are on the margin up to rounding have a loss of some last digits each. If C is so large that this is
        what F consists of, a w that is longer by as much has none.
        """
        best, found = w, self.objective(w, C, loss)
        if found.error + found.last_digits > IMPRECISE * found.primal:
            for longer in (w * (1.0 + 2.0**-digits) for digits in LAST_DIGITS):
                other = self.objective(longer, C)
                if other.upper < found.upper:
                    best, found = longer, other
        return best, found

    @timed("scores")
    def _compensated_scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """The scores in twice the digits: their sums."""
        self.count_visits()
        scores, rest = self._blank(None), self._blank(None)
        self._judged.compensated_scores(W, float(b), scores, rest)
        return scores, rest

    @property
    def _judged(self) -> Rows:
        """The rows whose scores the model is judged by."""
        return self.given

    def along(self, start: Point, end: Point) -> Line:
        """R on the line from start (k = 0) to end (k = 1) and beyond."""
        return self.loss.line(start.scores, end.scores)

    def covers(self, start: Point, end: Point, k: float) -> bool:
        """Whether what `along` has returned is R as far as k; if not, it will be the next time."""
        return True

    @timed("planes")
    def planes(self, point: Point) -> Planes:
        """One plane per shard that touches R_p at the point: R_p(w) >= slope . w + offset for all w.

        Only rows whose slope differs from the last call's are read.
        """
        fresh, free = self._memory()[1], self.intercept is Intercept.FREE
        offsets = cast("RowLoss", self.loss).slopes(point.scores, self.bounds, fresh, balanced=free)
        return self._planes(fresh, offsets)

    @property
    def abreast(self) -> int:
        """At so many points one reading of the rows gives R and its planes."""
        return core.POINTS if isinstance(self.loss, Hinge) else 1

    def tangents(self, ws: Sequence[Vector]) -> list[Tangent]:
        """R with each w's own b, and its planes, at several points: `abreast` of them at most."""
        ws = [self._within_reach(w.copy()) for w in ws]
        if self.abreast == 1:
            points = [self.score(w) for w in ws]
            return [Tangent(point.w, self.value(point), self.planes(point)) for point in points]
        return self._tangents(ws)

    @timed("planes")
    def _tangents(self, ws: Sequence[Vector]) -> list[Tangent]:
        loss, d, many = cast("Hinge", self.loss), self.rows.d, len(ws)
        features, b = zip(*map(self.parts, ws), strict=True)
        edges = core.cut_shards(self.bounds)
        partial, heights = np.zeros(((len(edges) - 1) * many, d + 1)), np.zeros(((len(edges) - 1) * many, 2))
        self.count_visits()
        self.rows.tangents(loss.signed, np.stack(features), np.array(b, dtype=np.float64), edges, partial, heights)
        # Of all pieces of a shard: shard, piece, point.
        slopes = partial.reshape(self.shards, -1, many, d + 1).sum(axis=1)[:, :, : self.size]
        values, offsets = np.moveaxis(heights.reshape(self.shards, -1, many, 2).sum(axis=1), 2, 0)
        return [
            Tangent(w, float(values[:, k].sum()), self._as_planes(slopes[:, k].copy(), offsets[:, k], offsets[:, k]))
            for k, w in enumerate(ws)
        ]

    def _as_planes(self, slopes: Vector, offsets: Vector, added: Vector) -> Planes:
        """Planes with what rounding may have cost them; `added`: the sum of the |coefficients| ever added up."""
        length = -(-self.rows.n // PIECES) + FEW_MORE + self._calls
        errors = gamma(length) * added + self._slope_errors(offsets)
        errors[-1] += self.mean_error  # means are in the last shard
        # The offset is a sum of numbers above 0: lower by what that may be off, it is a plane's again. As much once
        # more is for the weights themselves, which are products or shares of their sum.
        lowered = offsets * (1.0 - 2.0 * gamma(self.rows.n + FEW_MORE))
        return Planes(slopes, lowered, np.column_stack([errors, errors]))

    def _memory(self) -> tuple[Vector, Vector]:
        if self._slopes is None:
            self._slopes = self.rows.vector(self.rows.n), self.rows.vector(self.rows.n)
            self._slopes[0].fill(0.0)
        return self._slopes

    @timed("planes")
    def plane_of(self, slopes: Vector) -> Planes:
        """The planes that a dual vector stands for: slopes_i = -alpha_i y_i, 0 <= alpha_i <= s_i."""
        return self._planes(slopes, np.add.reduceat(np.abs(slopes), self.bounds[:-1]))

    def _planes(self, fresh: Vector, offsets: Vector) -> Planes:
        """Sums of the rows times `fresh` over each shard, from the sums of the last call."""
        old = self._memory()[0]
        stale = np.flatnonzero(self._moved > STALE * offsets)
        self._calls = 1 if len(stale) == len(offsets) else self._calls + 1
        for p in stale:
            self._sums[p], self._moved[p] = 0.0, 0.0
            old[self.bounds[p] : self.bounds[p + 1]] = 0.0
        read = self.rows.accumulate(old, fresh, self.bounds, self._sums, self._moved)
        count("rows_read", read)
        count("visits", read)
        planes = self._as_planes(self._sums.copy(), offsets, self._moved)
        return _balanced(planes) if self.intercept is Intercept.FREE else planes

    def _slope_errors(self, offsets: Vector) -> Vector:
        """What rounding may have cost the coefficients of the rows themselves, by shard: nothing, each is a weight."""
        return np.zeros(len(offsets))


def _balanced(planes: Planes) -> Planes:
    """Planes whose slopes in b sum to 0, if rounding alone may have kept them from it; else the bundle sees to it."""
    excess = float(planes.slopes[:, -1].mean())
    if not 0.0 < abs(excess) <= ROUND_OFF * float(planes.errors[:, 1].mean()):
        return planes
    slopes, errors = planes.slopes.copy(), planes.errors.copy()
    slopes[:, -1] -= excess
    errors[:, 1] += abs(excess)
    return Planes(slopes, planes.offsets, errors)


def new_bundle(oracle: Oracle, C: float) -> Bundle:
    """An empty bundle for planes under the risk, for this C and smaller ones."""
    return Bundle(oracle.size, oracle.n_free, lambda: oracle.scale(C), reach=oracle.reach(C))


class PairOracle(Oracle):
    """R(w) = loss(X w) for a loss over the pairs of queries. An intercept would not change a difference of scores."""

    loss: Pairwise
    steepness = 2.0
    terms = 2 * BLOCK  # slopes times scores, added up by blocks
    tie = TIE

    @property
    def _judged(self) -> Rows:
        return self.rows  # less any row: of scores only differences count

    def _compensated_scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """From their mean the scores have more digits."""
        mean = float(self.score(W).scores.mean())
        return super()._compensated_scores(W, np.asarray(-mean))

    def _slope_errors(self, offsets: Vector) -> Vector:
        return self.loss.slope_errors(offsets)

    def split(self, shards: int) -> None:
        """Shards are runs of whole queries, as equal as they come."""
        ends = np.linspace(0, self.rows.n, max(1, shards) + 1)[1:-1]
        starts = self.loss.starts
        after = np.searchsorted(starts, ends)
        nearer = np.where(ends - starts[after - 1] < starts[after] - ends, starts[after - 1], starts[after])
        self.cut(np.unique(np.concatenate([[0], nearer, [self.rows.n]])).astype(np.int64))
