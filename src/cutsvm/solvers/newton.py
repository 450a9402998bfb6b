"""Newton's method for losses with a continuous slope, with a certificate.

Minimises F(w) = |w|^2/2 + C R(w), R(w) = sum_i l_i(f_i), f_i = w.x_i + b, for l_i with a slope l_i' and, almost
everywhere, a second derivative l_i''. F is 1-strongly convex, so that any gradient is a certificate:

    F(v) >= F(w) - |grad F(w)|^2 / 2     for all v        (with a free b: at the best b of w)

It is the bound of the plane that touches R at w; the planes of several w together have a better one.

    1. many rows: w = the minimum for a random sample of them, to a low accuracy, by this method. Else w = 0
    2. H = 1 + C sum over the sample of l_i'' x_i x_i', its weights scaled up to those of all rows
    repeat
        3. g = grad F(w), which is a plane under R; the planes' minimum is a lower bound of F
        4. few features:  p = -(1/H) g + beta p'    p' the last direction, beta of Polak and Ribiere, at least 0
           else:          p = an approximate solution of (1 + C X' diag(l'') X) p = -g by conjugate gradients, with
                          the diagonal as preconditioner. Pairs of rows: the same for any number of features, and
                          no sample; in place of diag(l'') there is a matrix with an entry for each pair
        5. w = argmin of F on the half-line from w through w + p: one pass for the scores of p, and none for the search
        6. if g'(1/H) g has not fallen by much, H is made again, at w and of more rows
    7. where that leads nowhere, as with a loss that is nearly piecewise linear: cutting planes, from w and with the
       planes so far

With all rows in H this is Newton's method, and beta is 0. A sample of m rows leaves an error of sqrt(d / m) of the
step, so that few steps are needed and each reads the data twice; sums over the sample are not what costs.

Rows of squared losses count in H only while their loss is not 0: there l'' jumps, and the method is semi-smooth
(L. Qi, J. Sun: A nonsmooth version of Newton's method, Mathematical Programming 58, 1993; S. S. Keerthi, D. DeCoste: A
modified finite Newton method for fast solution of large scale linear SVMs, JMLR 6, 2005).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol, cast

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Array, Vector
from cutsvm.matrix import in_order
from cutsvm.problem.line_search import Exact
from cutsvm.problem.losses import Curvatures, SmoothLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Point
from cutsvm.solvers.cutting_planes import PlaneSettings, search
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, Progress, SolverBase, new_context

__all__ = ["Newton", "NewtonSettings"]


@dataclass(frozen=True)
class NewtonSettings:
    """few_rows: up to which there is no sample.
    sample: at least this number of rows for each feature, and (n^2 d)^(1/3) in all; all of them if it would be more
        than `share` of them.
    sample_tol, sample_iterations: the gap to which the problem of the sample is solved, and a limit.
    dense_features, sparse_features: up to which H is a matrix.
    slow: H is made again if g'(1/H) g has fallen to more than this share in an iteration.
    more: times as many rows, then.
    forcing, most_products: conjugate gradients end at this share of the first residual, or at its own square root if
        that is smaller; or after this number of products.
    lift: of the diagonal of H, added to it against rounding.
    near: a step between 1 - near and 1 + near is one of 1, whose scores are those of a pass.
    patience: as of cutting planes. stalled: iterations in which the gap hardly shrinks, after which these go on.
    """

    few_rows: int = 20_000
    sample: int = 40
    share: float = 0.5
    sample_tol: float = 1e-3
    sample_iterations: int = 50
    dense_features: int = 2000
    sparse_features: int = 400
    slow: float = 0.1
    more: int = 8
    forcing: float = 0.1
    most_products: int = 60
    lift: float = 1e-13
    near: float = 0.02
    patience: int = 12
    stalled: int = 15
    planes: PlaneSettings = field(default_factory=PlaneSettings)


@dataclass(frozen=True, kw_only=True)
class Newton(SolverBase):
    """Newton's method, with a sample for the second derivatives."""

    seed: int = 0
    settings: NewtonSettings = field(default=NewtonSettings(), repr=False)
    requires = frozenset({"smooth", "vectors"})

    def seeded(self, seed: int) -> Newton:
        return replace(self, seed=seed)

    def has_matrix(self, oracle: Oracle) -> bool:
        """Whether H is a matrix: if features are few enough, and second derivatives are of one row each."""
        if oracle.supports.pairs:
            return False
        most = self.settings.sparse_features if oracle.supports.sparse else self.settings.dense_features
        return oracle.size <= most

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """From the smallest C up."""
        return PathOrder(sorted(Cs))

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        oracle, bundle, settings = context.oracle, context.bundle, self.settings
        sample = Sample(oracle, self.seed, settings)
        start = yield from self._start(context, C, sample)  # 1
        w, lower = context.evaluated_first() or oracle.at(start), bundle.proven(C)
        if context.start is None and start.any() and C * oracle.loss.total < context.iterate(w, C, 0.0).primal:
            w = oracle.at(np.zeros(oracle.size))  # the sample has misled
        direction: Direction = (
            Factorised(oracle, C, sample, settings)
            if self.has_matrix(oracle)
            else ConjugateGradients(oracle, C, settings)
        )
        steps, unused, progress = Exact(), None, Progress()
        yield context.iterate(w, C, lower, exact=w.exact)
        while True:
            planes = oracle.planes(w)  # 3
            bundle.add(planes)
            gradient = _gradient(oracle, w, C, planes.slopes.sum(axis=0))
            reduced = bundle.minimise(C, settings.planes.qp_share * context.tol * context.iterate(w, C, 0.0).primal)
            lower = max(lower, reduced.lower)
            bundle.drop_idle(settings.patience)
            now = context.iterate(w, C, lower, exact=w.exact)
            yield now
            if progress.stalled(now.primal, lower) >= settings.stalled:
                break
            p = direction(gradient, w)  # 2, 4, 6
            trial = oracle.score(w.w + p, out=unused)
            k = search(oracle, w, trial, C, steps)  # 5
            if abs(k - 1.0) <= settings.near:
                w, unused = oracle.optimize_intercept(trial, out=trial), w
            elif k > 0.0:
                w, unused = oracle.between(w, trial, k, out=w), trial
            else:
                direction.renew(w)
                unused = trial
        context.start = w.w  # 7
        for iterate in OCAS()(context, C):
            lower = max(lower, iterate.lower)
            yield replace(iterate.or_better(now), lower=lower)

    def _start(self, context: FitContext, C: float, sample: Sample) -> Generator[Iterate, None, Vector]:
        """Where to begin: what the caller says, the sample's minimum, or 0."""
        oracle, settings = context.oracle, self.settings
        start = context.first
        if context.start is not None or sample.size >= oracle.matrix.n:
            return start
        zero = Iterate(np.zeros(oracle.size), 0.0, oracle.loss.total, context.bundle.proven(C), C, 0, pending=True)
        yield zero
        few = new_context(self, sample.oracle, [C], settings.sample_tol)
        for inner in islice(self(few, C), settings.sample_iterations):
            yield zero
            start = inner.w
            if inner.gap <= settings.sample_tol:
                break
        return start


def _gradient(oracle: Oracle, point: Point, C: float, slope: Vector) -> Vector:
    """grad F: w + C slope, and of a free b the slope alone."""
    gradient = C * slope
    free = oracle.size - oracle.n_free
    gradient[:free] += point.w[:free]
    return gradient


class RowSample(Protocol):
    """Rows that second derivatives are made of; `grow` may make them more."""

    @property
    def size(self) -> int: ...

    def grow(self) -> None: ...

    def second_derivatives(self, point: Point) -> Array:
        """sum_i l_i'' (x_i, 1) (x_i, 1)' at the point, in the coordinates of w."""


class Sample:
    """Random rows of a risk, with weights that make them stand for all; `size` of them."""

    def __init__(self, oracle: Oracle, seed: int, settings: NewtonSettings) -> None:
        self._full, self._rng, self._settings = oracle, np.random.default_rng(seed), settings
        n, d = oracle.matrix.n, oracle.matrix.d
        size = max(settings.sample * d, round((float(n) * n * d) ** (1 / 3)))
        whole = n <= settings.few_rows or oracle.supports.pairs  # a row by itself is in no pair
        self.size = n if whole else self._allowed(size)
        self.oracle = self._draw()

    def _allowed(self, size: int) -> int:
        """At most as many as there is room for; all rather than most."""
        n, room = self._full.matrix.n, self._full.matrix.room
        size = n if size > self._settings.share * n else size
        return size if room is None else min(size, room)

    def _draw(self) -> Oracle:
        full = self._full
        if self.size >= full.matrix.n:
            return full
        which = in_order(self._rng.integers(0, full.matrix.n, self.size))
        loss = cast("SmoothLoss", full.loss)
        drawn = loss.take(which)
        times = loss.weight / drawn.weight if drawn.weight > 0.0 else 1.0
        return full.restrict(full.matrix.take(which), loss.take(which, np.full(len(which), times)))

    def second_derivatives(self, point: Point) -> Array:
        some, full = self.oracle, self._full
        curvatures = cast("SmoothLoss", some.loss).curvatures(
            point.scores if some is full else some.score(point.w).scores
        )
        if some is full:
            by_output = curvatures.diagonal.reshape(some.matrix.n, -1)
            full.count_rows(int(np.count_nonzero(by_output.any(axis=1))))
        return second_derivatives(some, curvatures)

    def grow(self) -> None:
        """More rows, new ones."""
        larger = self._allowed(self._settings.more * self.size)
        if larger > self.size:
            self.size = larger
            self.oracle = self._draw()


def second_derivatives(oracle: Oracle, curvatures: Curvatures) -> Array:
    """sum_i l_i'' (x_i, 1) (x_i, 1)' in the coordinates of w: a block for every two outputs."""
    by_output, blocks = curvatures.diagonal.reshape(oracle.matrix.n, -1), oracle.blocks
    if len(blocks) == 1:
        return _gram(oracle, by_output[:, 0])[: oracle.size, : oracle.size]
    H = np.empty((oracle.size, oracle.size))
    for k, mine in enumerate(blocks):
        for m, other in enumerate(blocks[: k + 1]):
            block = _gram(oracle, by_output[:, k]) if m == k else -_gram(oracle, curvatures.mixed(k, m))
            block = block[: len(mine), : len(other)]
            H[np.ix_(mine, other)], H[np.ix_(other, mine)] = block, block.T
    return H


def _gram(oracle: Oracle, weights: Vector) -> Array:
    """sum_i weights_i (x_i, 1) (x_i, 1)'"""
    matrix, weights = oracle.matrix, np.ascontiguousarray(weights)
    gram = np.zeros((matrix.d + 1, matrix.d + 1))
    for mine, rows in matrix.blocks():
        gram += rows.gram(weights[mine])
    return gram


class Direction(Protocol):
    """Step 4."""

    def renew(self, point: Point) -> None:
        """Takes second derivatives at the point."""

    def __call__(self, gradient: Vector, point: Point) -> Vector:
        """A direction in which F falls."""


class Factorised:
    """H as a matrix, factorised."""

    def __init__(self, oracle: Oracle, C: float, sample: RowSample, settings: NewtonSettings) -> None:
        self.oracle, self.C, self.sample, self.settings = oracle, C, sample, settings
        self._factor: tuple[Array, bool] | None = None
        self._forget()

    def _forget(self) -> None:
        self._last = self._last_gradient = np.empty(0)
        self._last_square = np.inf

    @timed("hessian")
    def renew(self, point: Point) -> None:
        full, H = self.oracle, self.C * self.sample.second_derivatives(point)
        diagonal = np.diagonal(H).copy()
        # Rounding may leave the matrix indefinite, and a free b may have no curvature at all.
        diagonal *= 1.0 + self.settings.lift
        diagonal[: full.size - full.n_free] += 1.0
        diagonal[~(diagonal > 0.0)] = 1.0
        np.fill_diagonal(H, diagonal)
        try:
            self._factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # indefinite all the same
            self._factor = np.diag(np.sqrt(diagonal)), True
        self._forget()

    def scaled(self, gradient: Vector, point: Point) -> Vector:
        """(1/H) g; H is made again where g'(1/H) g has hardly fallen."""
        if self._factor is None or self.sample.size >= self.oracle.matrix.n:  # 2
            self.renew(point)
        scaled = self._solve(gradient)
        square = float(gradient @ scaled)
        if square > self.settings.slow * self._last_square:  # 6
            self.sample.grow()
            self.renew(point)
            scaled = self._solve(gradient)
            square = float(gradient @ scaled)
        self._last_square = square
        return scaled

    def __call__(self, gradient: Vector, point: Point) -> Vector:
        last_square = self._last_square
        scaled = self.scaled(gradient, point)
        p = -scaled
        if len(self._last):
            beta = float((gradient - self._last_gradient) @ scaled) / last_square
            p += max(0.0, beta) * self._last
            if float(p @ gradient) >= 0.0:
                p = -scaled
        self._last, self._last_gradient = p, gradient
        return p

    def _solve(self, gradient: Vector) -> Vector:
        assert self._factor is not None
        solution: Vector = cho_solve(self._factor, gradient, check_finite=False)
        return solution


class ConjugateGradients:
    """Products with the second derivatives of all rows, two passes each."""

    def __init__(self, oracle: Oracle, C: float, settings: NewtonSettings) -> None:
        self.oracle, self.C, self.settings = oracle, C, settings
        self._curvatures: Curvatures | None = None
        self._diagonal: Vector = np.empty(0)
        self._first = np.inf

    @timed("hessian")
    def renew(self, point: Point) -> None:
        oracle = self.oracle
        self._curvatures = cast("SmoothLoss", oracle.loss).curvatures(point.scores)
        by_output = self._curvatures.diagonal.reshape(oracle.matrix.n, -1)
        self._diagonal = np.empty(oracle.size)
        for places, h in zip(oracle.blocks, by_output.T, strict=True):
            sums = np.zeros(oracle.matrix.d + 1)
            for mine, rows in oracle.matrix.blocks():
                sums += rows.squared_sums(np.ascontiguousarray(h[mine]))
            self._diagonal[places] = self.C * sums[: len(places)]
        self._diagonal[: oracle.size - oracle.n_free] += 1.0
        self._diagonal[self._diagonal <= 0.0] = 1.0

    @timed("hessian")
    def __call__(self, gradient: Vector, point: Point) -> Vector:
        self.renew(point)
        p, residual = np.zeros_like(gradient), -gradient
        scaled = residual / self._diagonal
        square = first = float(residual @ scaled)
        conjugate = scaled.copy()
        if not np.isfinite(self._first):
            self._first = first
        enough = min(self.settings.forcing**2, float(np.sqrt(first / self._first))) * first
        for _ in range(self.settings.most_products):
            product = self._product(conjugate)
            bend = float(conjugate @ product)
            if not bend > 0.0:
                break
            step = square / bend
            p += step * conjugate
            residual -= step * product
            scaled = residual / self._diagonal
            last, square = square, float(residual @ scaled)
            if square <= enough:
                break
            conjugate = scaled + square / last * conjugate
        return p if p.any() else -gradient / self._diagonal

    def _product(self, v: Vector) -> Vector:
        """(1 + C X' diag(l'') X) v; a free b has no 1."""
        oracle = self.oracle
        assert self._curvatures is not None
        change = self._curvatures.product(oracle.score(v).scores)
        product = self.C * oracle.weighted_sum(change)
        free = oracle.size - oracle.n_free
        product[:free] += v[:free]
        return product
