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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cutsvm.losses import Hinge
from cutsvm.planes import Bundle
from cutsvm.risk import Intercept, Point, Risk
from cutsvm.rows import RowsInMemory
from cutsvm.run import Iterate
from cutsvm.solvers.common import PATIENCE, QP_SHARE, objective, search
from cutsvm.timing import timed
from cutsvm.types import Vector

# Epochs between two certificates at most.
EPOCHS = 20
# The active rows have done their part once they hold less than this share of the gap.
STALL = 0.3
# A sample says that the gap is `aim`: it is believed from this share of it on.
SURE = 0.8
# Epochs over most rows take them in runs of neighbours, which is twice as fast where X has more entries than a cache.
# Otherwise a good shuffling is worth more.
RUN = 16
LARGE = 1.2e7
SAMPLE = 4000  # rows of the sample, or a hundredth of all
HEAVY = 100.0  # times the mean weight
MARGIN = 2.0  # rows within so many times the last epoch's steepest slope stay active


@dataclass(frozen=True, kw_only=True)
class DCD:
    """Dual coordinate descent; `asynchronous`: on all threads, and the answer depends on timing."""

    asynchronous: bool = False
    seed: int = 0

    def __call__(
        self, risk: Risk, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        if bundle is None or not len(bundle):
            risk.split(1)
        bundle = Bundle(risk.size, risk.n_free) if bundle is None else bundle
        dual = Dual(risk, C, self)
        best = risk.at(np.zeros(risk.size) if start is None else start.copy())
        primal, lower, trial = objective(risk, best, C), 0.0, None
        yield Iterate(best.w, primal, lower, len(bundle))
        while True:
            dual.descend(aim)
            bundle.add(risk.plane_of(dual.slopes()))
            if self.asynchronous:
                dual.refresh()
            lower = max(lower, bundle.minimise(C, tol=QP_SHARE * aim * primal).lower)
            bundle.drop_idle(PATIENCE)
            trial = risk.at(dual.w(), spare=trial)
            dual.check(trial, objective(risk, trial, C) - lower)
            k = search(risk, best, trial, C, guess=1.0)
            best = risk.between(best, trial, k, spare=best)
            primal = objective(risk, best, C)
            yield Iterate(best.w, primal, lower, len(bundle), step=k)


class Dual:
    """The dual vector alpha, its w, and which rows are active."""

    def __init__(self, risk: Risk, C: float, settings: DCD) -> None:
        if not isinstance(risk.loss, Hinge) or not hasattr(risk.rows, "by_row"):
            raise TypeError("dcd: a hinge loss of rows in memory expected")
        rows: RowsInMemory = risk.rows.by_row()
        if rows.n >= 2**31:
            raise ValueError("dcd: fewer than 2^31 rows expected")
        self.risk, self.C, self.rows = risk, C, rows
        self.threads = risk.threads if settings.asynchronous else 1
        self.seed = settings.seed
        self.a = risk.loss.signed
        self.top = C * np.abs(self.a)
        self.alpha = np.zeros(rows.n) if risk.dual is None else np.clip(risk.dual, 0.0, 1.0) * self.top
        self.q = np.empty(rows.n)
        rows.squares(self.q)
        # How much b moves with alpha: it is a feature, 1 for all rows; a free b has no scale but the features' own.
        self.unit = {Intercept.NONE: 0.0, Intercept.REGULARIZED: 1.0, Intercept.FREE: float(self.q.mean())}[risk.intercept]
        self.q += self.unit
        self.wb = np.zeros(rows.d + 1)
        if risk.dual is not None:
            self.refresh()
        self.large = rows.entries > LARGE
        self.order = np.flatnonzero(self.a).astype(np.int32)
        self.above, self.below = np.inf, -np.inf
        self._draw_sample()
        self.estimated, self.trust = 0.0, 1.0  # the sample's last word, and what to multiply it by

    def _draw_sample(self) -> None:
        """Some rows, drawn once, that stand for all; rows of much weight stand for themselves."""
        heavy = self.top > HEAVY * self.top.mean()
        light = np.flatnonzero(~heavy)
        size = max(SAMPLE, len(light) // 100)
        if size < len(light):
            drawn = np.unique(light[np.random.default_rng(self.seed).integers(0, len(light), size)])
            self.sample = np.concatenate([drawn, np.flatnonzero(heavy)])
            self.sample.sort()
            self.sample_rows = self.rows.take(self.sample)
        else:
            drawn, self.sample, self.sample_rows = light, np.arange(self.rows.n), self.rows
        self.stands_for = np.where(heavy[self.sample], 1.0, len(light) / max(1, len(drawn)))

    @timed("descent")
    def descend(self, aim: float) -> None:
        """Epochs over the active rows, until the relative gap seems to be `aim` or the active rows have no more to give."""
        for _ in range(EPOCHS):
            dual = (self.a, self.q, self.C, self.unit, self.above, self.below, self.alpha)
            self.risk.count_visits(len(self.order))
            self.seed += 1
            run = RUN if len(self.order) > (0.1 if self.large else 0.999) * self.rows.n else 1
            gap, steepest, flattest, active = self.rows.descend(
                dual, self.order, self.wb, run, self.seed, self.threads
            )
            self.order = self.order[:active]
            self.above = steepest if steepest > 0.0 else np.inf
            self.below = flattest if flattest < 0.0 else -np.inf
            if self.risk.intercept is Intercept.FREE:
                self.wb[-1] += self.unit * float(np.copysign(self.alpha, self.a).sum())
            left = self.estimate()
            if not active or left <= SURE * aim * (self.value() + left) or gap < STALL * left:
                return

    def value(self) -> float:
        """sum_i alpha_i - |w|^2/2"""
        w, b = self.wb[:-1], self.wb[-1]
        return float(self.alpha.sum() - 0.5 * w @ w - (0.5 * b * b if self.risk.intercept is Intercept.REGULARIZED else 0.0))

    def estimate(self) -> float:
        """The gap sum_i C s_i max(0, -g_i) + alpha_i g_i with g_i = y_i (w.x_i + b) - 1, from the sample."""
        scores = np.empty(len(self.sample))
        self.sample_rows.scores(np.ascontiguousarray(self.wb[:-1]), float(self.wb[-1]), scores)
        g = np.copysign(scores, scores * self.a[self.sample]) - 1.0
        parts = self.top[self.sample] * np.maximum(0.0, -g) + self.alpha[self.sample] * g
        self.estimated = float(parts @ self.stands_for)
        return self.trust * self.estimated

    def slopes(self) -> Vector:
        """-alpha_i y_i / C, balanced if b is free."""
        self.risk.dual = np.divide(self.alpha, self.top, out=np.zeros(self.rows.n), where=self.top > 0.0)
        slopes: Vector = np.copysign(self.alpha, -self.a) / self.C
        if self.risk.intercept is Intercept.FREE:
            up, down = slopes.clip(min=0.0).sum(), -slopes.clip(max=0.0).sum()
            slopes *= np.where(slopes > 0.0, min(1.0, down / up) if up else 1.0, min(1.0, up / down) if down else 1.0)
        return slopes

    def refresh(self) -> None:
        """w = sum_i alpha_i y_i x_i anew: updates by several threads get lost."""
        planes = self.risk.plane_of(np.copysign(self.alpha, -self.a) / self.C)
        d = self.rows.d
        self.wb[:d] = -self.C * planes.slopes[:, :d].sum(axis=0)
        if self.risk.intercept is Intercept.REGULARIZED:
            self.wb[d] = -self.C * planes.slopes[:, d].sum()

    def w(self) -> Vector:
        return self.wb[: self.risk.size].copy()

    def check(self, point: Point, gap: float) -> None:
        """Learns from a pass at w, where the gap is known: active again are rows not well on their right side."""
        self.trust = max(1.0, gap / max(self.estimated, 1e-300)) if self.estimated > 0.0 else 1.0
        g = np.copysign(point.scores, point.scores * self.a) - 1.0
        width_up = MARGIN * self.above if np.isfinite(self.above) else 0.0
        width_down = MARGIN * self.below if np.isfinite(self.below) else 0.0
        settled = ((self.alpha == 0.0) & (g > width_up)) | ((self.alpha == self.top) & (g < width_down))
        self.order = np.flatnonzero(~settled & (self.a != 0.0)).astype(np.int32)
        self.above, self.below = np.inf, -np.inf
