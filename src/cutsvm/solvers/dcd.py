"""Dual coordinate descent (DCD) with shrinking, and a certificate.

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan: A dual coordinate descent method for large-scale
linear SVM, ICML 2008, Algorithms 1 and 3: the hinge loss and its square.
C.-H. Ho, C.-J. Lin: Large-scale linear support vector regression, JMLR 2012: losses with targets.
H.-F. Yu, F.-L. Huang, C.-J. Lin: Dual coordinate descent methods for logistic regression and maximum entropy models,
Machine Learning 2011.

Minimises F(w) = |w|^2/2 + C sum_i l_i(w.x_i) by its dual, for any loss l_i of core/row_losses.hpp,

    max over alpha of  sum_i C offset_i(-y_i alpha_i / C) - |w|^2/2,    w = sum_i alpha_i y_i x_i

where offset_i(g) is the largest o with o + g f <= l_i(f) for all f, and y_i = 1 if the rows have targets. For the hinge
loss, s_i max(0, 1 - y_i f), that is sum_i alpha_i - |w|^2/2 with 0 <= alpha_i <= C s_i. It is maximised

one alpha_i at a time (core/dcd.hpp has that loop). Repeat:

    1. go over the active rows, each in turn set to its best alpha_i; rows whose alpha_i would be the best one for other
       scores, too, become inactive. Once more, until a sample of all rows says that the gap may be small enough
    2. alpha is a plane under the risk: slope -sum alpha_i y_i x_i / C, offset sum offset_i. Add it to the bundle, whose
       minimum is a lower bound
    3. w_b = argmin of F on the half-line from the last w_b through w: one pass over all rows
    4. the rows for which this pass finds another alpha_i the best one, or nearly, are active again

A free intercept b makes sum alpha_i y_i = 0 a constraint of the dual. It is met by the method of multipliers: b is
regularised around its last value. For the plane the slopes of the heavier sign are made smaller until they balance: a
loss that has slope g somewhere has all slopes between 0 and g, too.

Threads: step 1 runs on one, so that the answer does not depend on their number; the rest on all. `asynchronous=True`
lets all threads change one w without locks: faster on wide data, and the answer then depends on timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix import Descent, RowsInMemory, in_order
from cutsvm.problem.losses import DualLoss
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
    margin: rows whose alpha changes once their score does by this multiple of the last epoch's steepest slope stay
        active after a full pass.
    run, all_active, most_active, large: an epoch takes the rows in runs of neighbours as long as this share of them is
        active; if X has more than `large` entries and so does not fit a cache, where neighbours are twice as fast, as
        long as most_active are. Otherwise good shuffling is worth more.
    smooth_run: the same for losses with a continuous slope, whose rows mostly stay active: only if X is large.
    first_square: the mean of C s |x|^2 at which a path begins.
    far: a free b is not sought beyond this at first.
    """

    epochs: int = 20
    passes: float = 2.0
    sample: int = 4000
    sure: float = 0.8
    heavy: float = 100.0
    stall: float = 0.3
    margin: float = 2.0
    run: int = 16
    smooth_run: int = 4
    all_active: float = 0.999
    most_active: float = 0.1
    large: float = 1.2e7
    first_square: float = 0.1
    far: float = 1e3
    planes: PlaneSettings = field(default_factory=PlaneSettings)


@dataclass(frozen=True, kw_only=True)
class DCD(SolverBase):
    """Dual coordinate descent; `asynchronous`: on all threads, and the answer depends on timing."""

    asynchronous: bool = False
    seed: int = 0
    settings: DCDSettings = field(default=DCDSettings(), repr=False)
    requires = frozenset({"dual", "vectors"})

    def __post_init__(self) -> None:
        validation.flags(self)

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
    sample_loss: DualLoss
    represents: Vector


def row_facts(matrix: RowsInMemory, loss: DualLoss, settings: DCDSettings, seed: int) -> RowFacts:
    """The sample is drawn once; rows of much weight represent themselves only."""
    squares, weights = np.empty(matrix.n), np.abs(loss.row_weights)
    matrix.squares(squares)
    heavy = weights > settings.heavy * weights.mean()
    light = np.flatnonzero(~heavy)
    size = max(settings.sample, len(light) // 100)
    sample, drawn, sample_matrix, sample_loss = np.arange(matrix.n), light, matrix, loss
    if size < len(light):
        drawn = in_order(light[np.random.default_rng(seed).integers(0, len(light), size)])
        sample = in_order(np.concatenate([drawn, np.flatnonzero(heavy)]))
        sample_matrix, sample_loss = matrix.take(sample), loss.take(sample)
    represents = np.where(heavy[sample], 1.0, len(light) / max(1, len(drawn)))
    return RowFacts(matrix, squares, sample, sample_matrix, sample_loss, represents)


class DualPoint(NamedTuple):
    """The w of a dual vector alpha / (C s), in units of C, and that C."""

    w: Vector
    C: float


class Dual:
    """The dual vector alpha, its w and b (in `wb`), and which rows are active (`order`)."""

    def __init__(self, context: FitContext, C: float, solver: DCD) -> None:
        oracle = context.oracle
        if not oracle.supports.dual:
            raise TypeError("dcd: rows in memory, and a loss with one dual variable for each, expected")
        if oracle.matrix.n >= 2**31:
            raise ValueError(f"dcd: fewer than 2^31 rows expected, got {oracle.matrix.n:,}")
        self.context, self.oracle, self.C, self.settings = context, oracle, C, solver.settings
        self.loss = cast("DualLoss", oracle.loss)
        facts = context.state(RowFacts)
        if facts is None:
            matrix = cast("RowsInMemory", oracle.matrix).by_row()
            facts = row_facts(matrix, self.loss, self.settings, solver.seed)
            context.keep(facts)
        self.matrix, squares, self.sample, self.sample_matrix, self.sample_loss, self.represents = facts
        self.threads = oracle.threads if solver.asynchronous else 1
        self.seed = solver.seed
        self.large = self.matrix.entries > self.settings.large
        # How much b moves with alpha: it is a feature, 1 for all rows. A free b has the scale of the features.
        free = max(float(squares.mean()), self._least_unit())
        units = {Intercept.NONE: 0.0, Intercept.REGULARIZED: 1.0, Intercept.FREE: free}
        self.unit = units[oracle.intercept]
        self.q = squares + self.unit
        self.wb = np.zeros(self.matrix.d + 1)
        self.y = np.sign(self.loss.row_weights)  # the labels; 1 if there are targets, and 0 without weight
        self.alpha = np.zeros(self.matrix.n)
        if context.dual is not None:
            np.multiply(context.dual, C * np.abs(self.loss.row_weights), out=self.alpha)
            self.loss.rows.clip(self.alpha, C, oracle.threads)
            self._find_w()
        self.order = np.flatnonzero(self.y).astype(np.int32)
        self.above, self.below = np.inf, -np.inf  # how far inside their range scores are of rows that become inactive
        self.estimated, self.trust = 0.0, 1.0  # the sample's last estimate of the gap, and what to multiply it by

    def _least_unit(self) -> float:
        """If C is so small that the alpha of w = 0 all together could not move a free b from one end of its range to
        the other, it has to move faster."""
        if self.oracle.intercept is not Intercept.FREE:
            return 0.0
        zeros = np.zeros(self.matrix.n)
        sizes = self.loss.slopes(zeros, self.oracle.bounds, np.empty_like(zeros), balanced=False).sizes
        total = self.C * float(sizes.sum())
        most = min(self.loss.score_bound, self.settings.far)
        return 2.0 * most / total if total > 0.0 else 0.0

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

    def begin_at(self, w: Vector) -> None:
        """alpha = 0 belongs to this w, not to 0: part of w is decided elsewhere."""
        self.wb[: len(w)] = w

    @timed("descent")
    def repeat(self, epochs: int, enough: float) -> None:
        """This number of epochs, or fewer once the gap of all rows is small enough."""
        for _ in range(epochs):
            whole = len(self.order) == self.matrix.n
            gap, active = self._epoch()
            if whole and gap <= enough:
                return
            if not active or gap <= enough:  # of the active rows: are the others still at rest?
                self.order = np.flatnonzero(self.y).astype(np.int32)
                self.above, self.below = np.inf, -np.inf

    def within_limits(self) -> Vector:
        """-alpha_i y_i / C with alpha in its range."""
        self.loss.rows.clip(self.alpha, self.C, self.oracle.threads)
        return self._slopes()

    def _epoch(self) -> tuple[float, int]:
        """One epoch over the active rows: the gap of the rows visited, and how many stay active."""
        dual = Descent(self.loss.rows, self.q, self.C, self.unit, self.above, self.below, self.alpha)
        self.seed += 1
        gap, steepest, flattest, active = self.matrix.descend(
            dual, self.order, self.wb, self._run, self.seed, self.threads
        )
        self.order = self.order[:active]
        self.above = steepest if steepest > 0.0 else np.inf
        self.below = flattest if flattest < 0.0 else -np.inf
        if self.oracle.intercept is Intercept.FREE:
            self.wb[-1] += self.unit * float((self.alpha * self.y).sum())
        return gap, active

    @property
    def _run(self) -> int:
        """The number of neighbouring rows that an epoch takes together."""
        settings = self.settings
        if self.oracle.supports.smooth:
            return settings.smooth_run if self.large else 1
        share = settings.most_active if self.large else settings.all_active
        return settings.run if len(self.order) > share * self.matrix.n else 1

    def value(self) -> float:
        """sum_i C offset_i(-y_i alpha_i / C) - |w|^2/2"""
        w = self.wb if self.oracle.intercept is Intercept.REGULARIZED else self.wb[:-1]
        return self.loss.rows.dual_value(self.alpha, self.C, self.oracle.threads) - 0.5 * float(w @ w)

    def estimate(self) -> float:
        """The gap sum_i C l_i(f_i) - C offset_i(g_i) - C g_i f_i with g_i = -y_i alpha_i / C, from the sample."""
        scores, parts = np.empty(len(self.sample)), np.empty(len(self.sample))
        self.sample_matrix.scores(np.ascontiguousarray(self.wb[:-1]), float(self.wb[-1]), scores)
        self.sample_loss.rows.gaps(scores, self.alpha[self.sample], self.C, parts, self.oracle.threads)
        self.estimated = float(parts @ self.represents)
        return self.trust * self.estimated

    def slopes(self) -> Vector:
        """-alpha_i y_i / C, balanced if b is free: those of the heavier sign made smaller."""
        weights = self.C * np.abs(self.loss.row_weights)
        self.context.dual = np.divide(self.alpha, weights, out=np.zeros(self.matrix.n), where=weights > 0.0)
        self.context.keep(DualPoint(self.wb[: self._end] / self.C, self.C))
        slopes = self._slopes()
        if self.oracle.intercept is Intercept.FREE:
            up, down = float(slopes.clip(min=0.0).sum()), -float(slopes.clip(max=0.0).sum())
            slopes *= np.where(slopes > 0.0, min(1.0, down / up) if up else 1.0, min(1.0, up / down) if down else 1.0)
        return slopes

    def _slopes(self) -> Vector:
        return -self.y * self.alpha / self.C

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
        slopes = self.oracle.dual_planes(self._slopes()).slopes.sum(axis=0)
        self.wb[: self._end] = -self.C * slopes[: self._end]

    def w(self) -> Vector:
        return self.wb[: self.oracle.size].copy()

    def activate(self, point: Point, gap: float) -> None:
        """After a pass at w, where the gap is known: rows whose alpha is not clearly the best one are active again."""
        self.trust = max(1.0, gap / self.estimated) if self.estimated > 0.0 else 1.0
        above = self.settings.margin * self.above if np.isfinite(self.above) else 0.0
        below = self.settings.margin * self.below if np.isfinite(self.below) else 0.0
        at_rest = np.empty(self.matrix.n, dtype=np.bool_)
        self.loss.rows.at_rest(point.scores, self.alpha, self.C, above, below, at_rest, self.oracle.threads)
        self.order = np.flatnonzero(~at_rest & (self.y != 0.0)).astype(np.int32)
        self.above, self.below = np.inf, -np.inf
