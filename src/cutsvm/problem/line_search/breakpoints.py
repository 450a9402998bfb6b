"""Exact searches along a line: min over k of h(k) = loss(f + k t) + tilt k + curvature k^2 / 2.

The loss is piecewise linear in k, so h' rises in steps. A sweep evaluates h' at several points at once and brackets
its zero; the few breakpoints that are left inside are searched by selection. Together O(n), and exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cutsvm._native import core
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Vector
from cutsvm.problem.line_search.intercept import floats_between

if TYPE_CHECKING:
    from cutsvm.problem.losses import BreakpointLine, Line


@dataclass(frozen=True)
class LineSearchSettings:
    """Where a search evaluates, and when it ends.

    furthest: no step goes further: scores far out carry the round-off of a short segment many times over.
    ahead, around: where the first sweep evaluates, in units of the guess, and without one; beyond: where the next do,
        in units of the point furthest from 0, if the minimum is not among them.
    few, rounds, most: breakpoints are selected from once they are at most this share of the rows, or after this number
        of sweeps that narrow the bracket, but never more than `most`: they take memory.
    flat, light: slopes below this share of the weight are round-off, if that is at most `light` of the lightest row's.
    """

    furthest: float = 100.0
    ahead: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
    around: tuple[float, ...] = (-4.0, -1.0, -0.25, -0.05, 0.05, 0.25, 1.0, 4.0)
    beyond: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    few: float = 1 / 16
    rounds: int = 4
    most: int = 1 << 19
    flat: float = 1e-12
    light: float = 1e-3

    @cached_property
    def grids(self) -> tuple[Vector, Vector, Vector]:
        """ahead, around and beyond as arrays."""
        return np.array(self.ahead), np.array(self.around), np.array(self.beyond)


SETTINGS = LineSearchSettings()


class Exact:
    """The exact search, or a nearly exact one where breakpoints are too many; each begins where the last one ended."""

    def __init__(self) -> None:
        self.last = 1.0

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        k = line.minimise(tilt, curvature, self.last)
        self.last = k if line.exact else k or self.last
        return k


class LineValues(NamedTuple):
    """The loss at several points k of a line of scores, and its slope just right of them.

    breakpoints: how many lie at or left of each k; those of one row between two k may count as one. Empty where they
    are not counted.
    """

    values: Vector
    slopes: Vector
    breakpoints: Vector = np.empty(0)


class LossLine:
    """See `cutsvm.problem.losses.Line`: a loss's two kernels, `evaluate` and `crossing`, and the arrays of both."""

    exact = True

    def __init__(
        self,
        n: int,
        evaluate: Callable[..., None],
        crossing: Callable[..., float],
        arrays: tuple[Any, ...],
        threads: int,
    ) -> None:
        self.n, self._evaluate, self._crossing, self._arrays, self._threads = n, evaluate, crossing, arrays, threads

    def evaluate(self, ks: Vector) -> LineValues:
        many = len(ks)
        at = np.full(core.LINE_POINTS, ks[-1])
        at[:many] = ks
        out = np.empty((3, core.LINE_POINTS))
        self._evaluate(*self._arrays, at, out, self._threads)
        constant, slopes, breakpoints = out[:, :many]
        return LineValues(constant + ks * slopes, slopes, breakpoints)

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        return exact(self, tilt, curvature, guess)

    def crossing(self, low: float, high: float, slope: float, curvature: float, level: float) -> float:
        return self._crossing(*self._arrays, low, high, slope, curvature, level, self._threads)


def exact(
    line: BreakpointLine, tilt: float, curvature: float, guess: float = 1.0, settings: LineSearchSettings = SETTINGS
) -> float:
    """argmin over k in [0, 100] of loss(f + k t) + tilt k + curvature k^2 / 2."""
    ahead = settings.grids[0]
    guess = min(max(guess, 1e-6), settings.furthest / settings.ahead[-1])
    found = _bracket(line, settings, tilt, curvature, 0.0, guess * ahead, floor=True)
    return min(settings.furthest, _inside(line, found, curvature, 0.0))


def lowest(line: BreakpointLine, flat: float, settings: LineSearchSettings = SETTINGS, unit: float = 1.0) -> float:
    """argmin over all k of loss(f + k t), in the middle where slopes within +-flat make it a plateau.

    unit: the size of the k among which it is looked for first.
    """
    around = unit * settings.grids[1]
    found = _bracket(line, settings, 0.0, 0.0, -flat, around)
    left = _inside(line, found, 0.0, -flat)
    if isinstance(found, Bracket) and found.slope_high > flat:  # the right end lies in it, too
        return 0.5 * (left + _inside(line, found, 0.0, flat))
    if line.evaluate(np.array([left])).slopes[0] > flat:
        return left
    return 0.5 * (left + _inside(line, _bracket(line, settings, 0.0, 0.0, flat, left + around), 0.0, flat))


class Bracket(NamedTuple):
    """Where h' reaches a level: with `slope`, that of the loss with the tilt, at low; slope_high is h' at high."""

    low: float
    high: float
    slope: float
    slope_high: float


def _inside(line: BreakpointLine, found: Bracket | float, curvature: float, level: float) -> float:
    """The smallest k where h' reaches level."""
    if not isinstance(found, Bracket):
        return found
    return line.crossing(found.low, found.high, found.slope, curvature, level)


def _bracket(
    line: BreakpointLine,
    settings: LineSearchSettings,
    tilt: float,
    curvature: float,
    level: float,
    ks: Vector,
    *,
    floor: bool = False,
) -> Bracket | float:
    """Few breakpoints around the place where h' reaches level, or that place itself. With floor: not left of ks[0]."""
    low, high, slope_low, slope_high = -np.inf, np.inf, 0.0, np.inf
    rounds = 0
    while True:
        values = line.evaluate(ks)
        below = values.slopes + tilt + curvature * ks < level
        j = int(np.count_nonzero(below))  # h' never falls: the first j are below
        if floor and low == -np.inf and j == 0:
            return float(ks[0])
        before = values.breakpoints[j - 1] if j else 0.0
        if j:
            low, slope_low = float(ks[j - 1]), float(values.slopes[j - 1]) + tilt
        if j < len(ks):
            high, slope_high = float(ks[j]), float(values.slopes[j]) + tilt + curvature * float(ks[j])
            inside = values.breakpoints[j] - before if j else line.n
        if low == -np.inf or high == np.inf:
            edge = max(abs(ks[0]), abs(ks[-1]))
            if floor and low >= settings.furthest:
                return low
            if edge > 1e200:  # no such k: the loss does not change along the line
                return low if high == np.inf else high
            ks = np.sort(edge * settings.grids[2] * (-1.0 if low == -np.inf else 1.0))
            continue
        rounds += 1
        if inside <= settings.most and (inside <= settings.few * line.n + 1024 or rounds > settings.rounds):
            return Bracket(low, high, slope_low, slope_high)
        ks = low + (high - low) * (np.arange(1, 9) / 9) if rounds <= settings.rounds else floats_between(low, high)
        if not len(ks):  # all breakpoints that are left are at one place
            return high
