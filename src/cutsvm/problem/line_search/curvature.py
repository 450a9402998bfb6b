"""Searches along a line for losses with second derivatives: Newton's method in one variable, inside a bracket."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.problem.line_search.breakpoints import LineSearchSettings, LineValues

At = Callable[[float], tuple[float, float, float]]  # value, slope and curvature at k


@dataclass(frozen=True)
class CurvatureSettings:
    """When a search ends.

    flat: at this share of the slope at 0. A step that is exact to more digits would not save an evaluation of the data.
    most, root_most: evaluations.
    rounding: a slope that should be 0 is, below this share of the weight.
    plateau, widest, plateau_width: an interval on which the slope is 0 is looked for from this distance on, up to that
        one, and its ends are found to this share.
    """

    flat: float = 0.02
    most: int = 30
    root_most: int = 100
    rounding: float = 1e-16
    plateau: float = 1e-3
    widest: float = 1e12
    plateau_width: float = 0.05
    furthest: float = LineSearchSettings.furthest


SETTINGS = CurvatureSettings()


class CurvatureLine(ABC):
    """See `cutsvm.problem.losses.Line`: a loss of n rows along a line of scores, with its second derivative."""

    exact = True

    def __init__(self, n: int) -> None:
        self.n = n

    @abstractmethod
    def at(self, k: float) -> tuple[float, float, float]:
        """Value, slope and curvature at k."""

    def evaluate(self, ks: Vector) -> LineValues:
        values, slopes, _ = zip(*map(self.at, ks.tolist()), strict=True)
        return LineValues(np.array(values), np.array(slopes))

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        return by_curvature(self.at, tilt, curvature, guess)


def by_curvature(
    at: At, tilt: float, curvature: float, guess: float = 1.0, settings: CurvatureSettings = SETTINGS
) -> float:
    """A k in [0, 100] where h(k) = loss(f + k t) + tilt k + curvature k^2 / 2 is nearly at its minimum.

    h(k) <= h(0): among the points evaluated it is the lowest.
    """

    def h(k: float) -> tuple[float, float, float, float]:
        value, slope, bend = at(k)
        return value + k * (tilt + 0.5 * curvature * k), slope + tilt + curvature * k, bend + curvature, k

    start = best = h(0.0)
    if start[1] >= 0.0:
        return 0.0
    low, high, k = 0.0, math.inf, min(max(guess, 1e-6), settings.furthest)
    for _ in range(settings.most):
        here = h(k)
        height, slope, bend, _ = here
        if height <= best[0]:
            best = here
        if abs(slope) <= -settings.flat * start[1] and height <= start[0]:
            return k
        low, high = (k, high) if slope < 0.0 else (low, k)
        if low >= settings.furthest:
            break
        k = _inside(k - slope / bend if bend > 0.0 else math.nan, low, min(high, settings.furthest), 2.0 * k)
        if not low < k < high:
            break
    return best[3]


def root(at: At, weight: float, settings: CurvatureSettings = SETTINGS) -> float:
    """The k at which the slope is 0, to rounding; about the middle where it is 0 on an interval."""
    low, high, k, distance, flat = -math.inf, math.inf, 0.0, 1.0, settings.rounding * weight
    for _ in range(settings.root_most):
        _, slope, bend = at(k)
        if abs(slope) <= flat:
            return k if bend > 0.0 else 0.5 * (_end(at, k, -1.0, flat, settings) + _end(at, k, 1.0, flat, settings))
        low, high = (k, high) if slope < 0.0 else (low, k)
        newton = k - slope / bend if bend > 0.0 else math.nan
        distance *= 2.0
        next_k = _inside(newton, max(low, k - distance), min(high, k + distance), k - math.copysign(distance, slope))
        if not low < next_k < high or next_k == k:
            return k
        k = next_k
    return k


def _end(at: At, k: float, sign: float, flat: float, settings: CurvatureSettings) -> float:
    """About where the slope, which is 0 at k, begins to differ from it on one side."""
    inside, outside, distance = 0.0, math.inf, settings.plateau
    while outside == math.inf:
        if abs(at(k + sign * distance)[1]) > flat:
            outside = distance
        elif distance > settings.widest:  # no row has a loss
            return k
        else:
            inside, distance = distance, 4.0 * distance
    while outside - inside > settings.plateau_width * outside:
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if abs(at(k + sign * middle)[1]) > flat else (middle, outside)
    return k + sign * inside


def _inside(k: float, low: float, high: float, further: float) -> float:
    """k if it lies between; else further out if there is no limit on that side, or the middle."""
    if low < k < high:
        return k
    if math.isinf(high) or math.isinf(low):
        return further
    return 0.5 * (low + high)
