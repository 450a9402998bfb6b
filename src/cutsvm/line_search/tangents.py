"""The minimum of h(k) = loss(f + k t) + tilt k + curvature k^2 / 2 from values and slopes alone, a few at a time.

For losses whose kinks cannot be counted in one sweep. The loss is convex, so it lies above its tangents: with the
nearest points left and right of the minimum, the tangents give the next point and a lower bound of h. It ends when the
best value is within a small share of what has been gained.
"""

from __future__ import annotations

import numpy as np

from cutsvm.line_search.knots import FURTHEST
from cutsvm.losses import Line

SHARE = 1e-3  # of what the search has gained so far; more would not be seen in the iterations
MOST = 20  # looks


def by_tangents(line: Line, tilt: float, curvature: float, guess: float = 1.0) -> float:
    """argmin over k in [0, 100] of h(k), to SHARE of h(0) - min h; never worse than k = 0."""
    first = min(max(guess, 1e-6), FURTHEST)
    look = line.look(np.array([0.0, first]))
    left, right = _Tangent(0.0, look.values[0], look.slopes[0]), _Tangent(first, look.values[1], look.slopes[1])
    if left.slope + tilt >= 0.0:
        return 0.0
    start = left.value
    best = min((left, right), key=lambda point: point.height(tilt, curvature))
    for _ in range(MOST):
        if right.rise(tilt, curvature) < 0.0:
            if right.k >= FURTHEST:
                break
            left, k = right, min(FURTHEST, max(2.0 * right.k, min(10.0 * right.k, _bottom(right, tilt, curvature))))
        else:
            k, low = _between(left, right, tilt, curvature)
            gained = start - best.height(tilt, curvature)
            if best.height(tilt, curvature) - low <= SHARE * gained or not left.k < k < right.k:
                break
        look = line.look(np.array([k]))
        here = _Tangent(k, look.values[0], look.slopes[0])
        best = min((best, here), key=lambda point: point.height(tilt, curvature))
        if here.rise(tilt, curvature) < 0.0:
            left = here
            right = here if right.k < here.k else right
        else:
            right = here
    return best.k


class _Tangent:
    """The loss at k: its value and slope."""

    def __init__(self, k: float, value: float, slope: float) -> None:
        self.k, self.value, self.slope = float(k), float(value), float(slope)

    def height(self, tilt: float, curvature: float) -> float:
        return self.value + tilt * self.k + 0.5 * curvature * self.k**2

    def rise(self, tilt: float, curvature: float) -> float:
        return self.slope + tilt + curvature * self.k


def _bottom(tangent: _Tangent, tilt: float, curvature: float) -> float:
    """Where the tangent with tilt and curvature is lowest."""
    rise = tangent.slope + tilt
    return -rise / curvature if curvature > 0.0 else float(np.copysign(np.inf, -rise))


def _between(left: _Tangent, right: _Tangent, tilt: float, curvature: float) -> tuple[float, float]:
    """The lowest point of the higher of two tangents, with tilt and curvature, and its height."""
    turn = right.slope - left.slope
    meet = (left.value - left.slope * left.k - right.value + right.slope * right.k) / turn if turn > 0.0 else right.k
    k = float(np.clip(np.clip(meet, _bottom(right, tilt, curvature), _bottom(left, tilt, curvature)), left.k, right.k))
    tangent = max(left.value + left.slope * (k - left.k), right.value + right.slope * (k - right.k))
    return k, tangent + tilt * k + 0.5 * curvature * k * k
