"""Dual coordinate descent (DCD) with shrinking, and a certificate.

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan: A dual coordinate descent method for large-scale
linear SVM, ICML 2008, Algorithms 1 and 3.

Minimises F(w) = |w|^2/2 + C sum_i s_i max(0, 1 - y_i w.x_i) by its dual,

    max over alpha of  sum_i alpha_i - |w|^2/2,    w = sum_i alpha_i y_i x_i,    0 <= alpha_i <= C s_i

one alpha_i at a time (core/dcd.hpp has that loop). Repeat:

    1. go over the active rows, each in turn set to its best alpha_i; rows that rest on a bound become inactive.
       Once more, until a sample of all rows says that the gap may be small enough
    2. alpha is a plane under the risk: slope -sum alpha_i y_i x_i / C, offset sum alpha_i / C. Add it to the bundle,
       whose minimum is a lower bound
    3. w_b = argmin of F on the half-line from the last w_b through w: one pass over all rows
    4. the rows that this pass finds on the wrong side of their bound, or close to it, are active again

A free intercept b makes sum alpha_i y_i = 0 a constraint of the dual. It is met by the method of multipliers: b is
regularised around its last value. For the plane the heavier class is made lighter until it balances.

Threads: step 1 runs on one, so that the answer does not depend on their number; the rest on all. `asynchronous=True`
lets all threads change one w without locks: faster on wide data, and the answer then depends on timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

import numpy as np

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix import Descent, RowsInMemory, in_order
from cutsvm.problem.losses import MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept, Point
from cutsvm.solvers.cutting_planes import PlaneSettings, descend, objective, target_objective
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, SolverBase

__all__ = ["DCD", "DCDSettings"]


@dataclass(frozen=True)
class DCDSettings:
    """epochs, passes: between two certificates at most this number of epochs, or more if all that they visit is less
        than `passes` times all rows.
    sample, sure: the gap is measured on this number of rows, or a hundredth of all; from this share of the gap asked
        for on the estimate is believed.
    heavy: rows of more than this multiple of the mean weight are all in the sample.
    stall: the active rows are done once they have less than this share of the gap.
    margin: rows within this multiple of the last epoch's steepest slope of the margin stay active after a full pass.
    run, all_active, most_active, large: an epoch takes the rows in runs of neighbours as long as this share of them is
        active; if X has more than `large` entries and so does not fit a cache, where neighbours are twice as fast, as
        long as most_active are. Otherwise good shuffling is worth more.
    first_square: the mean of C s |x|^2 at which a path begins.
    """

    epochs: int = 20
    passes: float = 2.0
    sample: int = 4000
    sure: float = 0.8
    heavy: float = 100.0
    stall: float = 0.3
    margin: float = 2.0
    run: int = 16
    all_active: float = 0.999
    most_active: float = 0.1
    large: float = 1.2e7
    first_square: float = 0.1
    planes: PlaneSettings = field(default_factory=PlaneSettings)


@dataclass(frozen=True, kw_only=True)
class DCD(SolverBase):
    """Dual coordinate descent; `asynchronous`: on all threads, and the answer depends on timing."""

    asynchronous: bool = False
    seed: int = 0
    settings: DCDSettings = field(default=DCDSettings(), repr=False)
    requires = frozenset({"dual"})

    def seeded(self, seed: int) -> DCD:
        return replace(self, seed=seed)

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """Up from where C begins to matter, then down from there."""
        order = sorted(Cs)
        if not oracle.supports.dual or len(order) == 1:
            return PathOrder(order)
        matrix = cast("RowsInMemory", oracle.matrix)
        unit = matrix.mean_square * oracle.loss.weight / matrix.n
        first = min(sum(C * unit < self.settings.first_square for C in order), len(order) - 1)
        return PathOrder(order[first:] + order[:first][::-1])

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        oracle, bundle, planes = context.oracle, context.bundle, self.settings.planes
        dual = Dual(context, C, self)
        resumes = context.start is not None and context.dual is not None
        w_b, out = context.evaluated_first() or oracle.at(context.first), None
        if resumes and oracle.n_free:
            dual.wb[-1] = w_b.w[-1]  # alpha determines w, and not this
        best = context.iterate(w_b, C, bundle.proven(C))
        yield best
        while True:
            dual.descend(context.tol)  # 1
            bundle.add(oracle.dual_planes(dual.slopes()))  # 2
            if self.asynchronous:
                dual.refresh()
            lower = max(best.lower, bundle.minimise(C, tol=planes.qp_share * context.tol * best.primal).lower)
            bundle.drop_idle(planes.patience)
            w = oracle.at(dual.w(), out=out)
            dual.activate(w, objective(oracle, w, C) - lower)  # 4
            w_b, out, k = descend(oracle, w_b, w, C, target_objective(lower, context.tol))  # 3
            best = context.iterate(w_b, C, lower, step=k, exact=w_b.exact)
            yield best


class RowFacts(NamedTuple):
    """What no C changes: the rows, their |x|^2, and a sample, with the number of rows that each represents."""

    matrix: RowsInMemory
    squares: Vector
    sample: Ints
    sample_matrix: RowsInMemory
    represents: Vector


def row_facts(matrix: RowsInMemory, weights: Vector, settings: DCDSettings, seed: int) -> RowFacts:
    """The sample is drawn once; rows of much weight represent themselves only."""
    squares = np.empty(matrix.n)
    matrix.squares(squares)
    heavy = weights > settings.heavy * weights.mean()
    light = np.flatnonzero(~heavy)
    size = max(settings.sample, len(light) // 100)
    sample, drawn, sample_matrix = np.arange(matrix.n), light, matrix
    if size < len(light):
        drawn = in_order(light[np.random.default_rng(seed).integers(0, len(light), size)])
        sample = in_order(np.concatenate([drawn, np.flatnonzero(heavy)]))
        sample_matrix = matrix.take(sample)
    represents = np.where(heavy[sample], 1.0, len(light) / max(1, len(drawn)))
    return RowFacts(matrix, squares, sample, sample_matrix, represents)


class DualPoint(NamedTuple):
    """The w of a dual vector alpha / (C s), in units of C, and that C."""

    w: Vector
    C: float


class Dual:
    """The dual vector alpha, its w and b (in `wb`), and which rows are active (`order`)."""

    def __init__(self, context: FitContext, C: float, solver: DCD) -> None:
        oracle = context.oracle
        if not oracle.supports.dual:
            raise TypeError("dcd: a hinge loss of rows in memory expected")
        if oracle.matrix.n >= 2**31:
            raise ValueError(f"dcd: fewer than 2^31 rows expected, got {oracle.matrix.n:,}")
        self.context, self.oracle, self.C, self.settings = context, oracle, C, solver.settings
        self.a = cast("MarginLoss", oracle.loss).signed
        facts = context.state(RowFacts)
        if facts is None:
            matrix = cast("RowsInMemory", oracle.matrix).by_row()
            facts = row_facts(matrix, np.abs(self.a), self.settings, solver.seed)
            context.keep(facts)
        self.matrix, squares, self.sample, self.sample_matrix, self.represents = facts
        self.threads = oracle.threads if solver.asynchronous else 1
        self.seed = solver.seed
        self.large = self.matrix.entries > self.settings.large
        self.top = C * np.abs(self.a)
        # How much b moves with alpha: it is a feature, 1 for all rows. A free b has the scale of the features, and more
        # if C is so small that all alpha together could not move it across the margin.
        free = max(float(squares.mean()), 2.0 / float(self.top.sum()))
        units = {Intercept.NONE: 0.0, Intercept.REGULARIZED: 1.0, Intercept.FREE: free}
        self.unit = units[oracle.intercept]
        self.q = squares + self.unit
        self.wb = np.zeros(self.matrix.d + 1)
        if context.dual is None:
            self.alpha = np.zeros(self.matrix.n)
        else:
            self.alpha = np.clip(context.dual, 0.0, 1.0) * self.top
            self._find_w()
        self.order = np.flatnonzero(self.a).astype(np.int32)
        self.above, self.below = np.inf, -np.inf  # slopes beyond which rows become inactive
        self.sample_y, self.sample_top = np.sign(self.a[self.sample]), self.top[self.sample]
        self.estimated, self.trust = 0.0, 1.0  # the sample's last estimate of the gap, and what to multiply it by

    @timed("descent")
    def descend(self, tol: float) -> None:
        """Epochs until the relative gap seems to be `tol`, or the active rows have no more to give."""
        settings, epochs, visits, unseen = self.settings, 0, 0, 0
        while epochs < settings.epochs or visits < settings.passes * self.matrix.n:
            epochs, visits, unseen = epochs + 1, visits + len(self.order), unseen + len(self.order)
            self.oracle.count_rows(len(self.order))
            gap, active = self._epoch()
            if active and unseen < len(self.sample):
                continue  # an estimate would cost more than the epoch did
            left, unseen = self.estimate(), 0
            if not active or left <= settings.sure * tol * (self.value() + left) or gap < settings.stall * left:
                return

    def _epoch(self) -> tuple[float, int]:
        """One epoch over the active rows: the gap of the rows visited, and how many stay active."""
        settings = self.settings
        share = settings.most_active if self.large else settings.all_active
        run = settings.run if len(self.order) > share * self.matrix.n else 1
        dual = Descent(self.a, self.q, self.C, self.unit, self.above, self.below, self.alpha)
        self.seed += 1
        gap, steepest, flattest, active = self.matrix.descend(dual, self.order, self.wb, run, self.seed, self.threads)
        self.order = self.order[:active]
        self.above = steepest if steepest > 0.0 else np.inf
        self.below = flattest if flattest < 0.0 else -np.inf
        if self.oracle.intercept is Intercept.FREE:
            self.wb[-1] += self.unit * float(np.copysign(self.alpha, self.a).sum())
        return gap, active

    def value(self) -> float:
        """sum_i alpha_i - |w|^2/2"""
        w = self.wb if self.oracle.intercept is Intercept.REGULARIZED else self.wb[:-1]
        return float(self.alpha.sum() - 0.5 * w @ w)

    def estimate(self) -> float:
        """The gap sum_i C s_i max(0, -g_i) + alpha_i g_i with g_i = y_i (w.x_i + b) - 1, from the sample."""
        scores = np.empty(len(self.sample))
        self.sample_matrix.scores(np.ascontiguousarray(self.wb[:-1]), float(self.wb[-1]), scores)
        g = self.sample_y * scores - 1.0
        parts = self.sample_top * np.maximum(0.0, -g) + self.alpha[self.sample] * g
        self.estimated = float(parts @ self.represents)
        return self.trust * self.estimated

    def slopes(self) -> Vector:
        """-alpha_i y_i / C, balanced if b is free: the heavier class made lighter."""
        self.context.dual = np.divide(self.alpha, self.top, out=np.zeros(self.matrix.n), where=self.top > 0.0)
        self.context.keep(DualPoint(self.wb[: self._end] / self.C, self.C))
        slopes: Vector = np.copysign(self.alpha, -self.a) / self.C
        if self.oracle.intercept is Intercept.FREE:
            up, down = float(slopes.clip(min=0.0).sum()), -float(slopes.clip(max=0.0).sum())
            slopes *= np.where(slopes > 0.0, min(1.0, down / up) if up else 1.0, min(1.0, up / down) if down else 1.0)
        return slopes

    @property
    def _end(self) -> int:
        """Length of the part of `wb` that alpha determines."""
        return int(self.matrix.d) + (self.oracle.intercept is Intercept.REGULARIZED)

    def _find_w(self) -> None:
        """The w of a given alpha: that of another C is known."""
        known = self.context.state(DualPoint)
        if known is None or known.C == self.C:
            self.refresh()
        else:
            self.wb[: len(known.w)] = self.C * known.w

    def refresh(self) -> None:
        """w = sum_i alpha_i y_i x_i, recomputed: updates by several threads get lost."""
        slopes = self.oracle.dual_planes(np.copysign(self.alpha, -self.a) / self.C).slopes.sum(axis=0)
        self.wb[: self._end] = -self.C * slopes[: self._end]

    def w(self) -> Vector:
        return self.wb[: self.oracle.size].copy()

    def activate(self, point: Point, gap: float) -> None:
        """After a pass at w, where the gap is known: rows not well on their right side are active again."""
        self.trust = max(1.0, gap / self.estimated) if self.estimated > 0.0 else 1.0
        g = np.sign(self.a) * point.scores - 1.0
        above = self.settings.margin * self.above if np.isfinite(self.above) else 0.0
        below = self.settings.margin * self.below if np.isfinite(self.below) else 0.0
        at_rest = ((self.alpha == 0.0) & (g > above)) | ((self.alpha == self.top) & (g < below))
        self.order = np.flatnonzero(~at_rest & (self.a != 0.0)).astype(np.int32)
        self.above, self.below = np.inf, -np.inf
