"""Searches that only evaluate f(mu) = F(w_b + mu (w_t - w_b)) / C: GCA, GCA2 and TCA.

N. Arnosti: Reducing training time for linear SVMs, 2010, Algorithms 1 to 3. The steps and the constants beta, gamma, g
and h are the paper's, and so are the points that f is compared at. But one sweep over the scores evaluates eight of
them, so each search evaluates those that it may need next, too. What the paper leaves open, and what we do:

- mu below 0. The grids and the window may reach there, and f is evaluated there, but the answer is brought back to
  [0, 100]: f is convex, so if a mu < 0 is better than 0, then 0 is the best mu >= 0.
- F must not rise. f(0) is always evaluated, and the answer is 0 if f is lower there than where the search ended.
- GCA's end of a pass: `max` is left out, as in the paper's loop (its text has it in). Points are init + m inc, with no
  sum of round-offs that could let it in. A pass that finds nothing better keeps mu itself, not (init + max) / 2.
- The first mu_prev is 1, so that the first searches of GCA2 and TCA begin with [0, 2] as GCA does.
- t1 and t2. Uncertainty is how far to the left of mu_prev the answer may lie. A pass is skipped if the finer one after
  it begins at least that far to the left: t2 = beta / 2, t1 = beta^2 / 2.
- Uncertainty is halved, or doubled up to 1. At least it is beta^3, GCA2's finest step; for TCA gamma, which makes a
  first window of 2 gamma: with gamma / 2 nothing would be evaluated any more. h(x) = x / 2 for both.
- TCA's window moved to the right ends at 2 mid - low, with the new low and mid; the paper's 2 low - mid lies left of
  both.
- g gets values of F / C, which are not below 0, and 1 where both are 0. So g <= 1, and each contraction takes at least
  half of the window: it ends without a floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cutsvm._native import core
from cutsvm.problem.line_search.breakpoints import LineSearchSettings

if TYPE_CHECKING:
    from cutsvm.problem.losses import Line


@dataclass(frozen=True)
class ArnostiSettings:
    """The paper's constants: beta, the step of the first grid, and gamma, the window at which TCA ends."""

    beta: float = 0.2
    gamma: float = 0.02
    furthest: float = LineSearchSettings.furthest

    @property
    def t1(self) -> float:
        return self.beta**2 / 2

    @property
    def t2(self) -> float:
        return self.beta / 2


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


class GCA:
    """Algorithm 1: a grid on [0, 2), then a finer one around its best point, then once more."""

    def __init__(self, settings: ArnostiSettings = SETTINGS) -> None:
        self.settings = settings

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        f, beta = Curve(line, tilt, curvature, base), self.settings.beta
        mu1 = _pass(f, 0.0, 0.0, 2.0, beta)
        mu2 = _pass(f, mu1, mu1 - beta / 2, mu1 + beta / 2, beta**2)
        mu3 = _pass(f, mu2, mu2 - beta**2 / 2, mu2 + beta**2 / 2, beta**3)
        return _safe(f, mu3, self.settings)


class GCA2:
    """Algorithm 2: follows such grids until f rises; coarse grids are skipped while mu changes little."""

    def __init__(self, settings: ArnostiSettings = SETTINGS) -> None:
        self.settings, self.last, self.uncertainty = settings, 1.0, 1.0

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        f, settings, beta = Curve(line, tilt, curvature, base), self.settings, self.settings.beta
        mu1 = _follow(f, self.last - 1.0, beta, settings) if self.uncertainty >= settings.t2 else self.last
        mu2 = _follow(f, mu1 - beta / 2, beta**2, settings) if self.uncertainty >= settings.t1 else self.last
        mu3 = _safe(f, _follow(f, mu2 - beta**2 / 2, beta**3, settings), settings)
        self.uncertainty = _adjusted(self.uncertainty, abs(mu3 - self.last), least=beta**3)
        self.last = mu3
        return mu3


class TCA:
    """Algorithm 3: a window of three points that moves to where f is lower, and contracts if its middle is lowest."""

    def __init__(self, settings: ArnostiSettings = SETTINGS) -> None:
        self.settings, self.last, self.uncertainty = settings, 1.0, 1.0

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        f, gamma = Curve(line, tilt, curvature, base), self.settings.gamma
        low, mid, high = self.last - self.uncertainty, self.last, self.last + self.uncertainty
        # A window that has left [0, 100] tells all that matters.
        while high - low > gamma and high > 0.0 and low < self.settings.furthest:
            left, right = 2.0 * low - mid, 2.0 * high - mid
            soon = (low, mid, high, 0.0, left, right, 2.0 * left - low, 2.0 * right - high)
            if f(low, *soon) < f(mid, *soon):
                low, mid, high = left, low, mid
            elif f(high, *soon) < f(mid, *soon):
                low, mid, high = mid, high, right
            else:
                at_low, at_high = _weight(f(mid), f(low)), _weight(f(mid), f(high))
                low, high = (mid + at_low * low) / (1.0 + at_low), (mid + at_high * high) / (1.0 + at_high)
        mid = _safe(f, mid, self.settings)
        self.uncertainty = _adjusted(self.uncertainty, abs(mid - self.last), least=gamma)
        self.last = mid
        return mid


def _pass(f: Curve, best: float, init: float, end: float, inc: float) -> float:
    """The best of init, init + inc, ... before end, and of the best so far: makePass."""
    grid = [init + m * inc for m in range(round((end - init) / inc))]
    for m, mu in enumerate(grid):
        if f(mu, *grid[m:]) < f(best):
            best = mu
    return best


def _follow(f: Curve, init: float, inc: float, settings: ArnostiSettings) -> float:
    """The first of init, init + inc, ... after which f does not fall: makepass2."""

    def at(m: int) -> float:
        return init + m * inc

    m = 0
    while at(m + 1) <= settings.furthest and f(at(m + 1), 0.0, *map(at, range(m, m + 1 + core.LINE_POINTS))) < f(at(m)):
        m += 1
    return at(m)


def _weight(at_mid: float, at_end: float) -> float:
    """g(x, y) = (x / y)^2, at most 1."""
    return min(1.0, (at_mid / at_end) ** 2) if at_end > 0.0 else 1.0


def _adjusted(uncertainty: float, moved: float, least: float) -> float:
    """Half of it if mu moved by no more than h = uncertainty / 2, else twice as much."""
    return max(least, 0.5 * uncertainty) if moved <= 0.5 * uncertainty else min(1.0, 2.0 * uncertainty)


def _safe(f: Curve, mu: float, settings: ArnostiSettings) -> float:
    """mu brought back to [0, 100], or 0 if f is lower there."""
    mu = min(max(mu, 0.0), settings.furthest)
    return mu if f(mu, 0.0) <= f(0.0) else 0.0
