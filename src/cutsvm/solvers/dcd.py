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

Threads: step 1 runs on one, so that the answer does not depend on their number; the rest on all. Dealing the rows to
two threads that add up their changes from time to time gives one answer for any number of threads too, but took 1.5
to 2 times as many epochs on text and more on everything else: nothing was gained. `asynchronous=True` lets all
threads change one w without locks: faster on wide data, and the answer then depends on timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.driver.run import Iterate
from cutsvm.matrix import Descent, RowsInMemory, in_order
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Intercept, Oracle, Point, new_bundle
from cutsvm.problem.planes import Bundle
from cutsvm.solvers._common import PATIENCE, QP_SHARE, better, first_point, goal, objective

# Between two certificates at most: so many epochs, or more if all that they visit is less than PASSES times all rows.
EPOCHS, PASSES = 20, 2.0
# The gap is measured on a sample: SAMPLE rows, or a hundredth of all. From SURE of the gap asked for on it is believed.
SAMPLE, SURE = 4000, 0.8
HEAVY = 100.0  # rows of more than so many times the mean weight are all in the sample
# The active rows have done their part once they hold less than this share of the gap.
STALL = 0.3
# Rows within so many times the last epoch's steepest slope of the margin stay active after a pass over all.
MARGIN = 2.0
# An epoch takes the rows in RUNs of neighbours as long as ALL are active; if X has more than LARGE entries and so does
# not fit a cache, where neighbours are twice as fast, as long as MOST are. Otherwise good shuffling is worth more.
RUN, ALL, MOST, LARGE = 16, 0.999, 0.1, 1.2e7
# The mean of C s |x|^2 at which a walk begins: a first fit at the largest C took a third of it. Up from here and then
# down, 20 C take a9a 20 % and w8a with a free b 15 % fewer visits; text does not care.
MATTERS = 0.1


@dataclass(frozen=True, kw_only=True)
class DCD:
    """Dual coordinate descent; `asynchronous`: on all threads, and the answer depends on timing."""

    asynchronous: bool = False
    seed: int = 0

    def prepare(self, oracle: Oracle, Cs: Sequence[float]) -> list[float]:
        """For a walk over several C: up from where C begins to matter, then down from there."""
        rows, order = oracle.rows, sorted(Cs)
        if not isinstance(rows, RowsInMemory):
            return order  # it will not come to that
        unit = rows.mean_square * oracle.loss.total / rows.n
        first = min(sum(C * unit < MATTERS for C in order), len(order) - 1)
        return order[first:] + order[:first][::-1]

    def __call__(
        self, oracle: Oracle, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        if oracle.trail is None and (bundle is None or not len(bundle)):
            oracle.split(1)
        bundle = new_bundle(oracle, C) if bundle is None else bundle
        dual = Dual(oracle, C, self)
        resume_from = start is not None and oracle.dual is not None
        best = first_point(oracle, start)
        if resume_from and oracle.n_free:
            dual.wb[-1] = best.w[-1]  # alpha tells w, and not this
        primal, lower, spare = objective(oracle, best, C), bundle.proven(C), None
        yield Iterate(best.w, primal, lower, len(bundle))
        while True:
            dual.descend(aim)
            bundle.add(oracle.plane_of(dual.slopes()))
            if self.asynchronous:
                dual.refresh()
            lower = max(lower, bundle.minimise(C, tol=QP_SHARE * aim * primal).lower)
            bundle.drop_idle(PATIENCE)
            trial = oracle.at(dual.w(), spare=spare)
            dual.check(trial, objective(oracle, trial, C) - lower)
            best, spare, k = better(oracle, best, trial, C, goal=goal(lower, aim))
            loss = oracle.value(best)
            primal = oracle.penalty(best.w) + C * loss
            yield Iterate(best.w, primal, lower, len(bundle), step=k, exact=best.exact, loss=loss)


class Facts(NamedTuple):
    """What no C changes: the rows, their |x|^2, and some that stand for all, with how many each stands for."""

    rows: RowsInMemory
    squares: Vector
    sample: Ints
    sample_rows: RowsInMemory
    stands_for: Vector


def facts_of(rows: RowsInMemory, weights: Vector, seed: int) -> Facts:
    """The sample is drawn once; rows of much weight stand for themselves."""
    squares = np.empty(rows.n)
    rows.squares(squares)
    heavy = weights > HEAVY * weights.mean()
    light = np.flatnonzero(~heavy)
    size = max(SAMPLE, len(light) // 100)
    sample, drawn, sample_rows = np.arange(rows.n), light, rows
    if size < len(light):
        drawn = in_order(light[np.random.default_rng(seed).integers(0, len(light), size)])
        sample = in_order(np.concatenate([drawn, np.flatnonzero(heavy)]))
        sample_rows = rows.take(sample)
    stands_for = np.where(heavy[sample], 1.0, len(light) / max(1, len(drawn)))
    return Facts(rows, squares, sample, sample_rows, stands_for)


class Dual:
    """The dual vector alpha, its w and b (in `wb`), and which rows are active (`order`)."""

    def __init__(self, oracle: Oracle, C: float, settings: DCD) -> None:
        if not isinstance(oracle.loss, Hinge) or not isinstance(oracle.rows, RowsInMemory):
            raise TypeError("dcd: a hinge loss of rows in memory expected")
        if oracle.rows.n >= 2**31:
            raise ValueError(f"dcd: fewer than 2^31 rows expected, got {oracle.rows.n:,}")
        self.oracle, self.C = oracle, C
        facts = None if oracle.trail is None else oracle.trail.facts
        if facts is None:
            facts = facts_of(oracle.rows.by_row(), np.abs(oracle.loss.signed), settings.seed)
        if oracle.trail is not None:
            oracle.trail.facts = facts
        self.rows, squares, self.sample, self.sample_rows, self.stands_for = facts
        self.threads = oracle.threads if settings.asynchronous else 1
        self.seed = settings.seed
        self.large = self.rows.entries > LARGE
        self.a = oracle.loss.signed
        self.top = C * np.abs(self.a)
        # How much b moves with alpha: it is a feature, 1 for all rows. A free b has the scale of the features, and more
        # if C is so small that all alpha together could not move it across the margin.
        free = max(float(squares.mean()), 2.0 / float(self.top.sum()))
        units = {Intercept.NONE: 0.0, Intercept.REGULARIZED: 1.0, Intercept.FREE: free}
        self.unit = units[oracle.intercept]
        self.q = squares + self.unit
        self.wb = np.zeros(self.rows.d + 1)
        if oracle.dual is None:
            self.alpha = np.zeros(self.rows.n)
        else:
            self.alpha = np.clip(oracle.dual, 0.0, 1.0) * self.top
            self._find_w()
        self.order = np.flatnonzero(self.a).astype(np.int32)
        self.above, self.below = np.inf, -np.inf  # slopes beyond which rows become inactive
        self.sample_y, self.sample_top = np.sign(self.a[self.sample]), self.top[self.sample]
        self.estimated, self.trust = 0.0, 1.0  # the sample's last word, and what to multiply it by

    @timed("descent")
    def descend(self, aim: float) -> None:
        """Epochs until the relative gap seems to be `aim`, or the active rows have no more to give."""
        epochs, visits, unseen = 0, 0, 0
        while epochs < EPOCHS or visits < PASSES * self.rows.n:
            epochs, visits, unseen = epochs + 1, visits + len(self.order), unseen + len(self.order)
            self.oracle.count_visits(len(self.order))
            most = len(self.order) > (MOST if self.large else ALL) * self.rows.n
            dual = Descent(self.a, self.q, self.C, self.unit, self.above, self.below, self.alpha)
            self.seed += 1
            gap, steepest, flattest, active = self.rows.descend(
                dual, self.order, self.wb, RUN if most else 1, self.seed, self.threads
            )
            self.order = self.order[:active]
            self.above = steepest if steepest > 0.0 else np.inf
            self.below = flattest if flattest < 0.0 else -np.inf
            if self.oracle.intercept is Intercept.FREE:
                self.wb[-1] += self.unit * float(np.copysign(self.alpha, self.a).sum())
            if active and unseen < len(self.sample):
                continue  # an estimate would cost more than the epoch did
            left, unseen = self.estimate(), 0
            if not active or left <= SURE * aim * (self.value() + left) or gap < STALL * left:
                return

    def value(self) -> float:
        """sum_i alpha_i - |w|^2/2"""
        w = self.wb if self.oracle.intercept is Intercept.REGULARIZED else self.wb[:-1]
        return float(self.alpha.sum() - 0.5 * w @ w)

    def estimate(self) -> float:
        """The gap sum_i C s_i max(0, -g_i) + alpha_i g_i with g_i = y_i (w.x_i + b) - 1, from the sample."""
        scores = np.empty(len(self.sample))
        self.sample_rows.scores(np.ascontiguousarray(self.wb[:-1]), float(self.wb[-1]), scores)
        g = self.sample_y * scores - 1.0
        parts = self.sample_top * np.maximum(0.0, -g) + self.alpha[self.sample] * g
        self.estimated = float(parts @ self.stands_for)
        return self.trust * self.estimated

    def slopes(self) -> Vector:
        """-alpha_i y_i / C, balanced if b is free: the heavier class made lighter."""
        self.oracle.dual = np.divide(self.alpha, self.top, out=np.zeros(self.rows.n), where=self.top > 0.0)
        if self.oracle.trail is not None:
            end = self.rows.d + (self.oracle.intercept is Intercept.REGULARIZED)
            self.oracle.trail.dual_w = self.wb[:end] / self.C
        slopes: Vector = np.copysign(self.alpha, -self.a) / self.C
        if self.oracle.intercept is Intercept.FREE:
            up, down = float(slopes.clip(min=0.0).sum()), -float(slopes.clip(max=0.0).sum())
            slopes *= np.where(slopes > 0.0, min(1.0, down / up) if up else 1.0, min(1.0, up / down) if down else 1.0)
        return slopes

    def _find_w(self) -> None:
        """The w of an alpha from elsewhere: another C's tells it."""
        trail = self.oracle.trail
        if trail is None or trail.dual_w is None:
            self.refresh()
        else:
            self.wb[: len(trail.dual_w)] = self.C * trail.dual_w

    def refresh(self) -> None:
        """w = sum_i alpha_i y_i x_i anew: updates by several threads get lost."""
        slopes = self.oracle.plane_of(np.copysign(self.alpha, -self.a) / self.C).slopes.sum(axis=0)
        end = self.rows.d + (self.oracle.intercept is Intercept.REGULARIZED)
        self.wb[:end] = -self.C * slopes[:end]

    def w(self) -> Vector:
        return self.wb[: self.oracle.size].copy()

    def check(self, point: Point, gap: float) -> None:
        """Learns from a pass at w, where the gap is known: active again are rows not well on their right side."""
        self.trust = max(1.0, gap / self.estimated) if self.estimated > 0.0 else 1.0
        g = np.sign(self.a) * point.scores - 1.0
        above = MARGIN * self.above if np.isfinite(self.above) else 0.0
        below = MARGIN * self.below if np.isfinite(self.below) else 0.0
        settled = ((self.alpha == 0.0) & (g > above)) | ((self.alpha == self.top) & (g < below))
        self.order = np.flatnonzero(~settled & (self.a != 0.0)).astype(np.int32)
        self.above, self.below = np.inf, -np.inf
