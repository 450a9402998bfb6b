"""Oracle: the data and the loss together, which is all that a solver sees.

R(w) = loss(X w + b). The coordinates of w are the d features and then, if there is an intercept, b. It is regularised
like a feature, or free: then R(w) = min over b, every point has its best b, and the slopes in b of its planes sum to 0.
(Only `tangents` takes b as it is given.) K classes in one problem: `cutsvm.problem.multiclass`; pairs of rows:
`cutsvm.problem.pairs`.

An oracle is immutable, and never writes to its arguments. Another set of rows, another number of shards, or of threads
is another oracle (`restrict`, `with_shards`, `with_threads`). What it keeps from call to call (`RowSums`) is a cache:
it changes which rows are read, and results by rounding errors at most, which `Planes.errors` bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import numpy as np

from cutsvm._native import core
from cutsvm._utils.threads import cached_property
from cutsvm._utils.timing import count, timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix import COMPRESSION, CompressionSettings, PlaneMemory, Rows, RowsInMemory
from cutsvm.problem.certificate import Magnitudes, RowScale, sum_error
from cutsvm.problem.losses import DualLoss, Line, Loss, MarginLoss, RowLoss
from cutsvm.problem.planes import Bundle, Heights, Planes, RowSums
from cutsvm.problem.point import Intercept, Point, Supports, Tangent
from cutsvm.problem.readings import Readings
from cutsvm.problem.settings import OracleSettings

__all__ = ["Oracle", "OracleSettings"]

Own = TypeVar("Own", bound="Oracle")


@dataclass(frozen=True, eq=False)
class Oracle(Readings):
    """R(w) = loss(X w + b), a sum over shards: the ranges of rows between `bounds`.

    given, shift: X is `given` less the row `shift`, m; the intercept of the model is then b - w.m.
    target_shift: the loss has targets less this number, and the intercept of the model is b plus it.
    origin, mean_error: R is a lower bound of the risk of `origin`, made of some of its rows and of means of others;
        mean_error bounds the rounding error of these means, as a number e of `cutsvm.problem.certificate`.
    plane_memory: for planes and their reduced problem; by default what the matrix allows.
    n_last: number of last rows that are a shard of their own.
    whole: these are all the rows of the problem.
    """

    matrix: Rows
    loss: Loss
    intercept: Intercept = Intercept.NONE
    threads: int = 1
    bounds: Ints = None  # type: ignore[assignment]  # one shard by default
    given: Rows = None  # type: ignore[assignment]  # the matrix by default
    shift: Vector | None = None
    target_shift: float = 0.0
    origin: Oracle | None = None
    mean_error: float = 0.0
    plane_memory: PlaneMemory | None = None
    n_last: int = 0
    whole: bool = True
    settings: OracleSettings = field(default=OracleSettings())

    outputs = 1  # scores of a row
    steepness = 1.0  # what a loss depends on changes by at most this, times the largest change of a score
    tie = 0.0  # rows this close to the margin may not be counted
    terms = 4  # terms of a sum, besides the features, by which errors of the scores are multiplied

    def __post_init__(self) -> None:
        if self.given is None:
            object.__setattr__(self, "given", self.matrix)
        if self.bounds is None:
            object.__setattr__(self, "bounds", self.shard_bounds(1))
        if self.plane_memory is None:
            object.__setattr__(self, "plane_memory", self.matrix.plane_memory)

    @cached_property
    def size(self) -> int:
        """The number of coordinates of w."""
        return self.matrix.d + (self.intercept is not Intercept.NONE)

    @cached_property
    def blocks(self) -> list[Ints]:
        """The coordinates of each output: its features and its intercept, if it has one."""
        return [np.arange(self.size)]

    @cached_property
    def n_free(self) -> int:
        """How many coordinates, the last ones, are free."""
        return int(self.intercept is Intercept.FREE)

    @property
    def shards(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def supports(self) -> Supports:
        rows, loss = self.matrix.storage, self.loss.supports
        return Supports(
            dual=loss.dual and rows.memory,
            margin=loss.margin,
            working_set=loss.groups and rows.copies,
            streaming=rows.disk,
            scores=self.matrix.held,
            vectors=True,
            pairs=loss.pairs,
            smooth=loss.smooth,
            sparse=rows.sparse,
            batch=loss.batch,
            row_dual=loss.dual,
        )

    # Other oracles

    def shard_bounds(self, shards: int) -> Ints:
        """Bounds of this number of shards of equal size."""
        n = self.matrix.n - self.n_last
        bounds = np.linspace(0, n, max(1 - (self.n_last > 0), min(shards, n)) + 1).astype(np.int64)
        return np.append(bounds, self.matrix.n) if self.n_last else bounds

    def with_shards(self: Own, shards: int) -> Own:
        """The same with this number of shards of equal size: planes have a row for each."""
        return self.with_bounds(self.shard_bounds(shards))

    def with_bounds(self: Own, bounds: Ints) -> Own:
        """The same with the rows cut into shards at these places, from 0 to n."""
        return self if np.array_equal(bounds, self.bounds) else replace(self, bounds=bounds)

    def with_threads(self: Own, threads: int) -> Own:
        """The same on this number of threads."""
        loss = copy(self.loss)
        loss.threads = threads  # type: ignore[attr-defined]
        matrix = cast("RowsInMemory", self.matrix).with_threads(threads)
        return replace(self, matrix=matrix, loss=loss, threads=threads)

    def with_fast_matrix(self: Own, settings: CompressionSettings = COMPRESSION) -> Own:
        """The same with dense rows that are mostly zeros stored as CSR."""
        fast = self.matrix.fast(settings)
        return self if fast is self.matrix else replace(self, matrix=fast)

    def restrict(self: Own, matrix: Rows, loss: Loss, *, n_last: int = 0, mean_error: float | None = None) -> Own:
        """The same kind of risk over other rows, which represent all.

        mean_error: given if it is a lower bound of this risk, with means of rows among its rows.
        """
        origin = None if mean_error is None else self.origin or self
        return cast("type[Own]", self._kind_in_memory)(
            matrix,
            loss,
            self.intercept,
            self.threads,
            origin=origin,
            mean_error=mean_error or 0.0,
            plane_memory=self.plane_memory,
            n_last=n_last,
            whole=False,
            settings=self.settings,
        )

    @property
    def _kind_in_memory(self) -> type[Oracle]:
        """The class of an oracle of some of the rows, in memory."""
        return type(self)

    # Bounds for the certificate

    @property
    def magnitudes(self) -> Magnitudes:
        """Bounds on the entries of the rows, those of the risk that this is a lower bound of."""
        if self.origin is not None:
            return self.origin.magnitudes
        return self.given.magnitudes if self.shift is None else self.matrix.magnitudes

    def intercept_box(self, C: float) -> float:
        """Some minimiser of |w|^2/2 + C R has no free coordinate beyond this; used from two of them on."""
        return np.inf

    def intercept_bound(self, C: float) -> float:
        """Some minimiser of |w|^2/2 + C R has |b + w.m| below this, m the centre of the rows.

        F is at most C R(0) there, so |w|^2 <= 2 C R(0); and at the best b some row has a score within the loss's
        `score_bound`: on the margin, or at its target.
        """
        if self.origin is not None:
            return self.origin.intercept_bound(C)
        return self.loss.score_bound + 1.01 * float(np.sqrt(2.0 * C * self.loss.total)) * self.magnitudes.radius

    def scale(self, C: float) -> RowScale:
        """What a lower bound at C, or at any smaller one, depends on besides the planes."""
        regularized = self.intercept is Intercept.REGULARIZED
        bound = self.intercept_bound(C) if self.n_free else 0.0
        return RowScale(self.magnitudes, self.outputs, self.n_free, regularized, bound, self._offset_unit)

    @property
    def _offset_unit(self) -> float:
        return self.loss.offset_unit if self.origin is None else self.origin.loss.offset_unit

    def new_bundle(self, C: float) -> Bundle:
        """An empty bundle for planes under the risk, for this C and smaller ones."""
        box = self.intercept_box(C)
        return Bundle(self.size, self.n_free, lambda: self.scale(C), box, self.plane_memory)

    def penalty(self, w: Vector) -> float:
        """|w|^2 / 2 over the regularised coordinates."""
        part = w[: self.size - self.n_free]
        return 0.5 * float(part @ part)

    def at(self, w: Vector, *, out: Point | None = None) -> Point:
        """The point w, with the best b if that is free. out: a point that is not used any more; its memory is."""
        point = self.score(self._with_near_intercept(w), out=out)
        return self.optimize_intercept(point, out=point)

    def score(self, w: Vector, *, out: Point | None = None) -> Point:
        """The point w with b as it is: one pass over the data (none at w = 0)."""
        with timed("scores"):
            scores = self._workspace(out)
            W, b = self.parts(w)
            if np.any(W):
                self.count_rows()
                self._multiply(self.matrix, W, b, scores)
            else:
                scores[:] = b
            return Point(w, scores, exact=True)

    def _with_near_intercept(self, w: Vector) -> Vector:
        """w, with b = 0 where a free b is far off."""
        if self.intercept is not Intercept.FREE or abs(w[-1]) <= self.settings.far_intercept * self.loss.score_bound:
            return w
        return np.append(w[:-1], 0.0)

    def between(self, start: Point, end: Point, k: float, *, out: Point | None = None) -> Point:
        """The point start + k (end - start), with the best b if that is free. No pass over the data."""
        with timed("line_search"):
            scores = self._workspace(out)
            core.blend(start.scores.reshape(-1), end.scores.reshape(-1), k, scores.reshape(-1), self.threads)
            point = Point(start.w + k * (end.w - start.w), scores)
            return self.optimize_intercept(point, out=point)

    def optimize_intercept(self, point: Point, *, out: Point | None = None) -> Point:
        """The point with b moved to where the loss is lowest; `out` may be the point itself."""
        with timed("line_search"):
            if self.intercept is not Intercept.FREE:
                return point
            shift = cast("RowLoss", self.loss).best_shift(point.scores)
            w = point.w.copy()
            w[-1] += shift
            scores = np.add(point.scores, shift, out=self._workspace(out))
            return Point(w, scores, exact=point.exact and not shift)

    def value(self, point: Point) -> float:
        """R at the point."""
        with timed("scores"):
            return self.loss.value(point.scores)

    def risk(self, w: Vector) -> float:
        """R at w, with b as it is: one pass."""
        return self.value(self.score(w))

    def value_error(self, size: float) -> float:
        """What adding up R may cost where no score is larger than `size`, if that is more than what `terms` says."""
        return 0.0

    def along(self, start: Point, end: Point) -> Line:
        """R on the line from start (k = 0) to end (k = 1) and beyond."""
        return self.loss.line(start.scores, end.scores)

    def covers(self, start: Point, end: Point, k: float) -> bool:
        """Whether what `along` has returned is R as far as k; if not, it will be the next time."""
        return True

    def _workspace(self, out: Point | None) -> Vector:
        """Memory for scores."""
        return self.matrix.vector(self.matrix.n) if out is None else out.scores

    def scores_of(self, matrix: Rows, w: Vector) -> Vector:
        """The scores at w of other rows of the same kind."""
        scores = np.empty(matrix.n if self.outputs == 1 else (matrix.n, self.outputs))
        self._multiply(matrix, *self.parts(w), scores)
        return scores

    def parts(self, w: Vector) -> tuple[Vector, Vector]:
        """The weights of the features and the intercepts: arrays of shape (d,) and ()."""
        b = w[self.matrix.d] if self.intercept is not Intercept.NONE else 0.0
        return np.ascontiguousarray(w[: self.matrix.d]), np.asarray(b)

    def _multiply(self, matrix: Rows, W: Vector, b: Vector, out: Vector) -> None:
        matrix.scores(W, float(b), out)

    def count_rows(self, rows: int | None = None) -> None:
        """Counts rows that are read; a reading of all rows of the problem is a pass."""
        many = self.matrix.n if rows is None else rows
        count("visits", many)
        if self.whole and many >= self.matrix.n:
            count("passes")

    # Planes

    @cached_property
    def _row_sums(self) -> RowSums:
        return RowSums(self.matrix, self.bounds, self.size, self.settings.stale)

    def planes(self, point: Point) -> Planes:
        """One plane per shard that touches R_p at the point: R_p(w) >= slope . w + offset for all w.

        Only rows whose slope differs from the last call's are read.
        """
        with timed("planes"):
            g, free = self._row_sums.workspace, self.intercept is Intercept.FREE
            heights = cast("RowLoss", self.loss).slopes(point.scores, self.bounds, g, balanced=free)
            return self._planes(g, heights)

    def dual_planes(self, g: Vector) -> Planes:
        """The planes with these slopes g_i of the rows: of a dual vector, g_i = -alpha_i y_i / C."""
        with timed("planes"):
            return self._planes(g, cast("DualLoss", self.loss).dual_heights(g, self.bounds))

    def _planes(self, g: Vector, heights: Heights) -> Planes:
        sums = self._row_sums
        self._count_planes(sums.update(g, heights.sizes))
        planes = self._with_errors(sums.sums.copy(), heights, sums.moved, sums.calls)
        if self.intercept is not Intercept.FREE:
            return planes
        # Slopes of a smooth loss sum to 0 at the best b as near as b can be had: what is missing is an error, too.
        rounding = self.settings.round_off * float(planes.errors[:, 1].mean())
        return planes.balanced(np.inf if self.supports.smooth else rounding)

    def _count_planes(self, read: int) -> None:
        count("rows_read", read)
        self.count_rows(read)

    def _with_errors(self, slopes: Vector, heights: Heights, added: Vector, calls: int = 0) -> Planes:
        """Planes with bounds of their rounding errors; added: the sum of the |coefficients| ever added up."""
        length = -(-self.matrix.n // self.settings.pieces) + calls
        errors = sum_error(length) * added + self._slope_errors(heights)
        errors[-1] += self.mean_error  # means are in the last shard
        # Lowered by its rounding error an offset is a plane's again. Twice, for the numbers themselves, which are
        # products, or shares of a sum.
        lowered = heights.offsets - 2.0 * sum_error(self.matrix.n) * heights.magnitudes
        return Planes(slopes, lowered, np.column_stack([errors, errors, heights.sizes]))

    def _slope_errors(self, heights: Heights) -> Vector:
        """Rounding errors of the coefficients of the rows themselves, by shard: none, each is a weight."""
        return np.zeros(len(heights.sizes))

    def weighted_sum(self, coefficients: Vector) -> Vector:
        """sum_i coefficients_i (x_i, 1), as a vector of coordinates."""
        n, before = self.matrix.n, self._workspace(None)
        before.fill(0.0)
        sums, moved = np.zeros((1, self.size)), np.zeros(1)
        self.count_rows(self.matrix.accumulate(before, coefficients, np.array([0, n]), sums, moved))
        return sums.reshape(-1)

    def initial_planes(self) -> list[Planes]:
        """Planes, besides those at the first point, that bound the free coordinates of the reduced problem."""
        return []

    def tangents(self, ws: Sequence[Vector]) -> list[Tangent]:
        """R with each w's own b, and its planes, at up to `supports.batch` points in one pass."""
        ws = [self._with_near_intercept(w) for w in ws]
        if self.supports.batch == 1:
            free = self.intercept is Intercept.FREE and self.outputs == 1
            own = replace(self, intercept=Intercept.REGULARIZED) if free else self  # b is not the best one
            points = [own.score(w) for w in ws]
            return [Tangent(point.w, own.value(point), own.planes(point)) for point in points]
        return self._tangents(ws)

    def _tangents(self, ws: Sequence[Vector]) -> list[Tangent]:
        loss, d, many = cast("MarginLoss", self.loss), self.matrix.d, len(ws)
        features, intercepts = zip(*map(self.parts, ws), strict=True)
        W, b, edges = np.stack(features), np.array(intercepts, dtype=np.float64), core.cut_shards(self.bounds)
        partial, heights = np.zeros(((len(edges) - 1) * many, d + 1)), np.zeros(((len(edges) - 1) * many, 2))
        with timed("planes"):
            self.count_rows()
            self.matrix.tangents(loss.signed, W, b, edges, partial, heights)
        # Of all pieces of a shard: shard, piece, point.
        slopes = partial.reshape(self.shards, -1, many, d + 1).sum(axis=1)[:, :, : self.size]
        values, offsets = np.moveaxis(heights.reshape(self.shards, -1, many, 2).sum(axis=1), 2, 0)
        return [
            Tangent(w, float(values[:, k].sum()), self._with_errors(slopes[:, k].copy(), heights, heights.sizes))
            for k, (w, heights) in enumerate(zip(ws, map(Heights.of_weights, offsets.T), strict=True))
        ]

    def model(self, w: Vector) -> tuple[Vector, Vector]:
        """The weights of the features and the intercepts as they are returned to the user."""
        W, b = self.parts(w)
        centre = 0.0 if self.shift is None else W @ self.shift
        return W, np.asarray(b + (self.target_shift - centre))

    def coordinates(self, W: Vector, b: Vector) -> Vector:
        """The w whose model this is, up to rounding."""
        moved = (b - self.target_shift) + (0.0 if self.shift is None else W @ self.shift)
        return W.copy() if self.intercept is Intercept.NONE else np.append(W, moved)

    @property
    def model_matrix(self) -> Rows:
        """The rows that the model is applied to."""
        return self.given
