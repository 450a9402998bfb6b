"""Searches that only evaluate f(mu) = F(w_b + mu (w_t - w_b)) / C: GCA, GCA2 and TCA.

N. Arnosti: Reducing training time for linear SVMs, 2010, Algorithms 1 to 3, step by step and point by point, the sums
of increments included. One sweep over the scores evaluates eight points, so each search evaluates those that it may
need next, too. `safe=False` returns what the boxes return; `safe=True` adds one thing: f(0) is evaluated, and the
answer is 0 if f is lower there than where the search ended, so that F does not rise. What the paper leaves open:

- mu below 0. The boxes may return one, but section II has argmin over mu >= 0. So the answer is brought back to
  [0, 100], and the next search begins at what was returned. 100 also ends a search on a line that falls for ever.
- The first mu_prev, `first_step`. uncertainty is 1 at first, as the paper says.
- t1 and t2. Uncertainty is how far to the left of mu_prev the answer may lie. A pass is skipped if the finer one after
  it begins at least that far to the left: t2 = beta / 2, t1 = beta^2 / 2. The box has >= where the text has >.
- "decrease", "increase": uncertainty is halved, or doubled up to 1. At least it is beta^3, GCA2's finest step; for TCA
  gamma, which makes a first window of 2 gamma: with gamma / 2 nothing would be evaluated any more.
- h(x) = x / 2 is given for TCA; GCA2 takes the same.
- g where both values are 0: 1.

A misprint: TCA's window moved to the right ends at 2 mid - low, with the new low and mid, as the left end of one moved
to the left does; the box has 2 low - mid, which lies left of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

import numpy as np

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm.problem.line_search.breakpoints import LineSearchSettings

if TYPE_CHECKING:
    from cutsvm.problem.losses import Line


@dataclass(frozen=True)
class ArnostiSettings:
    """The constants of Arnosti's searches.

    beta: step of GCA's first grid; the next ones have beta^2 and beta^3. At most 0.5.
    gamma: width of the window at which TCA ends.
    g: exponent of g(x, y) = (x / y)^g, the weight of an end of TCA's window as it contracts.
    h: share of the uncertainty, h(x) = h x, up to which a change of mu makes it smaller.
    t1, t2: uncertainty below which GCA2 skips the second and the first grid; None: beta^2 / 2 and beta / 2.
    factor: by which uncertainty is divided or multiplied.
    least, most: what it stays between; None: beta^3 for GCA2, gamma for TCA.
    furthest: no mu beyond it.
    """

    beta: float = 0.2
    gamma: float = 0.02
    g: float = 2.0
    h: float = 0.5
    t1: float | None = None
    t2: float | None = None
    factor: float = 2.0
    least: float | None = None
    most: float = 1.0
    furthest: float = LineSearchSettings.furthest

    def __post_init__(self) -> None:
        for name in ("beta", "gamma", "g", "h", "factor", "most", "furthest"):
            validation.positive(name, getattr(self, name))
        for name in ("t1", "t2", "least"):
            if getattr(self, name) is not None:
                validation.positive(name, getattr(self, name))
        # Finer grids, and narrower windows, would take more evaluations than any fit has time for.
        if not 0.01 <= self.beta <= 0.5:
            raise ValueError(f"beta={self.beta!r}: expected 0.01 to 0.5")
        if self.gamma < 1e-9:
            raise ValueError(f"gamma={self.gamma!r}: expected at least 1e-9")
        if self.factor < 1.0:
            raise ValueError(f"factor={self.factor!r}: expected at least 1")

    @property
    def thresholds(self) -> tuple[float, float]:
        """t1 and t2."""
        return self.beta**2 / 2 if self.t1 is None else self.t1, self.beta / 2 if self.t2 is None else self.t2

    def adjusted(self, uncertainty: float, moved: float, least: float) -> float:
        """Less of it if mu moved by no more than h(uncertainty), else more."""
        if moved <= self.h * uncertainty:
            return max(least if self.least is None else self.least, uncertainty / self.factor)
        return min(self.most, uncertainty * self.factor)


SETTINGS = ArnostiSettings()


class Curve:
    """f(mu) = loss(f + mu t) + base + tilt mu + curvature mu^2 / 2, at several mu in one sweep, and remembered."""

    def __init__(self, line: Line, tilt: float, curvature: float, base: float) -> None:
        self._line, self._tilt, self._curvature, self._base = line, tilt, curvature, base
        self._known: dict[float, float] = {}

    def __call__(self, mu: float, *soon: float) -> float:
        """f(mu). If that takes a sweep, as many of the points `soon` are evaluated in it as can be."""
        if mu not in self._known:
            fresh = [k for k in dict.fromkeys((mu, *soon)) if k not in self._known]
            ks = np.array(sorted(fresh[: core.LINE_POINTS]))
            values = self._line.evaluate(ks).values + (self._base + ks * (self._tilt + 0.5 * self._curvature * ks))
            self._known.update(zip(ks.tolist(), values.tolist(), strict=True))
        return self._known[mu]


class Approximate:
    """What the three have in common: settings, and what one search leaves for the next.

    safe: no answer is worse than 0. first_step: the first mu_prev.
    """

    def __init__(self, settings: ArnostiSettings = SETTINGS, *, safe: bool = True, first_step: float = 1.0) -> None:
        self.settings, self.safe, self.last, self.uncertainty = settings, safe, first_step, 1.0

    def selected(self, f: Curve, mu: float) -> float:
        """mu brought back to [0, 100]; 0 if f is lower there and the search is to be safe."""
        mu = min(max(mu, 0.0), self.settings.furthest)
        return 0.0 if self.safe and f(0.0, mu) < f(mu) else mu

    def found(self, mu: float, least: float) -> float:
        """mu, which is mu_prev from now on; uncertainty changes by how far it moved."""
        self.uncertainty = self.settings.adjusted(self.uncertainty, abs(mu - self.last), least)
        self.last = mu
        return mu


class GCA(Approximate):
    """Algorithm 1: a grid on [0, 2), then a finer one around its best point, then once more."""

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        f, beta, self._bestval = Curve(line, tilt, curvature, base), self.settings.beta, np.inf
        mu1 = self._make_pass(f, 0.0, 2.0, beta)
        mu2 = self._make_pass(f, mu1 - beta / 2, mu1 + beta / 2, beta**2)
        mu3 = self._make_pass(f, mu2 - beta**2 / 2, mu2 + beta**2 / 2, beta**3)
        return self.selected(f, mu3)

    def _make_pass(self, f: Curve, init: float, end: float, inc: float) -> float:
        """makePass: the best of init, init + inc, ... before end; the middle if none is better than all before."""
        best, mu = (init + end) / 2, init
        while mu < end:
            if f(mu, *_points(mu, inc)) < self._bestval:
                self._bestval, best = f(mu), mu
            mu += inc
        return best


class GCA2(Approximate):
    """Algorithm 2: follows such grids until f rises; coarse grids are skipped while mu changes little."""

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        f, beta, (t1, t2) = Curve(line, tilt, curvature, base), self.settings.beta, self.settings.thresholds
        mu1 = self._make_pass(f, self.last - 1.0, beta) if self.uncertainty >= t2 else self.last
        mu2 = self._make_pass(f, mu1 - beta / 2, beta**2) if self.uncertainty >= t1 else self.last
        mu3 = self._make_pass(f, mu2 - beta**2 / 2, beta**3)
        return self.found(self.selected(f, mu3), least=beta**3)

    def _make_pass(self, f: Curve, init: float, inc: float) -> float:
        """makepass2: the first of init, init + inc, ... after which f does not fall."""
        mu = init
        while mu + inc <= self.settings.furthest and f(mu + inc, 0.0, *_points(mu, inc)) < f(mu):
            mu += inc
        return mu


class TCA(Approximate):
    """Algorithm 3: a window of three points that moves to where f is lower, and contracts if its middle is lowest."""

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        f, gamma, furthest = Curve(line, tilt, curvature, base), self.settings.gamma, self.settings.furthest
        low, mid, high = self.last - self.uncertainty, self.last, self.last + self.uncertainty
        leftmost = 0.0 if self.safe else -furthest  # a safe search of a window that has left [0, 100] ends at its edge
        while high - low > gamma and high > leftmost and low < furthest:
            left, right = 2.0 * low - mid, 2.0 * high - mid
            soon = (low, mid, high, 0.0, left, right, 2.0 * left - low, 2.0 * right - high)
            if f(low, *soon) < f(mid, *soon):
                low, mid, high = left, low, mid
            elif f(high, *soon) < f(mid, *soon):
                low, mid, high = mid, high, right
            else:
                at_low, at_high = self._g(f(mid), f(low)), self._g(f(mid), f(high))
                low, high = (mid + at_low * low) / (1.0 + at_low), (mid + at_high * high) / (1.0 + at_high)
        return self.found(self.selected(f, mid), least=gamma)

    def _g(self, at_mid: float, at_end: float) -> float:
        """g(x, y) = (x / y)^g. F / C is not below 0: so g <= 1, and the window contracts by half at least."""
        return min(1.0, (at_mid / at_end) ** self.settings.g) if at_end > 0.0 else 1.0


def _points(mu: float, inc: float) -> list[float]:
    """mu, mu + inc, mu + inc + inc, ...: as many as one sweep evaluates, and one."""
    return list(accumulate(repeat(inc, core.LINE_POINTS), initial=mu))
