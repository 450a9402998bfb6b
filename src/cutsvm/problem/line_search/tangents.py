"""The minimum of h(k) = loss(f + k t) + tilt k + curvature k^2 / 2 from values and slopes alone, one at a time.

For losses that have a breakpoint for every pair of rows: too many to count, and enough that h is nearly smooth. With
the nearest points left and right of the minimum, the cubic through their values and slopes gives the next point; the
tangents there bound h from below. It ends when the slope is a share of what it was at 0, or when the best value is
within a small share of what can be gained. Mostly that takes one or two evaluations.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cutsvm.problem.line_search.breakpoints import LineSearchSettings

if TYPE_CHECKING:
    from cutsvm.problem.losses import Line


@dataclass(frozen=True)
class TangentSettings:
    """When a search ends.

    flat: at this share of the slope at 0. With 0.05 as many iterations take a third more evaluations; with 0.9 more of
        both.
    share: of what the search has gained so far, if no more can be gained.
    most: evaluations.
    inside: of the bracket: the minimum of a cubic is not believed nearer than this to its ends.
    """

    flat: float = 0.5
    share: float = 1e-3
    most: int = 20
    inside: float = 0.05
    furthest: float = LineSearchSettings.furthest


SETTINGS = TangentSettings()


def by_tangents(
    line: Line, tilt: float, curvature: float, guess: float = 1.0, settings: TangentSettings = SETTINGS
) -> float:
    """A k in [0, 100] where h(k) is nearly at its minimum; never worse than k = 0."""
    at, furthest = _Evaluations(line, tilt, curvature), settings.furthest
    start = left = at(0.0)
    if start.rise >= 0.0:
        return 0.0
    best = right = at(min(max(guess, 1e-6), furthest))
    width, narrowed = math.inf, True
    for _ in range(settings.most):
        if best.height < start.height and abs(best.rise) <= -settings.flat * start.rise:
            break
        if right.rise < 0.0:
            if right.k >= furthest:
                break
            left, k = right, min(furthest, max(2.0 * right.k, min(10.0 * right.k, right.bottom)))
        else:
            k, low = _meeting(left, right)
            if best.height - low <= settings.share * (start.height - best.height) or not left.k < k < right.k:
                break
            if narrowed:
                k = _cubic(left, right, settings.inside)
            narrowed, width = right.k - left.k <= 0.5 * width or not narrowed, right.k - left.k
        here = at(k)
        best = min((best, here), key=lambda point: point.height)
        if here.rise < 0.0 and right.k > here.k:
            left = here
        else:
            right = here
    return best.k if best.height <= start.height else 0.0


class _Evaluations:
    """h at one k after the other."""

    def __init__(self, line: Line, tilt: float, curvature: float) -> None:
        self._line, self._tilt, self._curvature = line, tilt, curvature

    def __call__(self, k: float) -> _Tangent:
        found = self._line.evaluate(np.array([k]))
        return _Tangent(k, float(found.values[0]), float(found.slopes[0]), self._tilt, self._curvature)


class _Tangent:
    """h at k, and the tangent of the loss there with tilt and curvature: a parabola below h that touches it."""

    def __init__(self, k: float, value: float, slope: float, tilt: float, curvature: float) -> None:
        self.k, self._value, self._slope, self._tilt, self._curvature = k, value, slope, tilt, curvature
        self.height = self.below(k)
        self.rise = slope + tilt + curvature * k

    def below(self, k: float) -> float:
        """The parabola at k."""
        return self._value + self._slope * (k - self.k) + k * (self._tilt + 0.5 * self._curvature * k)

    @property
    def bottom(self) -> float:
        """Where the parabola is lowest."""
        rise = self._slope + self._tilt
        return -rise / self._curvature if self._curvature > 0.0 else math.copysign(math.inf, -rise)

    def meets(self, other: _Tangent) -> float:
        """Where both parabolas are equally high; the other's slope is larger."""
        turn = other._slope - self._slope
        ahead = self._value - self._slope * self.k - other._value + other._slope * other.k
        return ahead / turn if turn > 0.0 else other.k


def _meeting(left: _Tangent, right: _Tangent) -> tuple[float, float]:
    """The lowest point of the higher of the two parabolas between their points, and its height: h is not below."""
    meet = min(max(left.meets(right), right.bottom), left.bottom)
    k = min(max(meet, left.k), right.k)
    return k, max(left.below(k), right.below(k))


def _cubic(left: _Tangent, right: _Tangent, inside: float) -> float:
    """The minimum of the cubic that has both points' heights and rises, within the bracket."""
    width = right.k - left.k
    bend = left.rise + right.rise - 3.0 * (right.height - left.height) / width
    root = math.sqrt(max(0.0, bend * bend - left.rise * right.rise))
    share = (right.rise + root - bend) / max(right.rise - left.rise + 2.0 * root, sys.float_info.min)
    return right.k - width * min(max(share, inside), 1.0 - inside)
