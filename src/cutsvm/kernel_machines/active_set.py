"""Newton steps on the free variables of a dual, those between their bounds.

Steps of pairs of variables gain little each where kernel values are close to a matrix of low rank with large entries:
polynomials of features far from the origin, say. There the free variables are few, and

    max over d of  g'd - d'K d / 2,     and, with a free intercept, sum_v d_v = 0

is solved at once: by the eigenvectors of K, along those without curvature as far as the bounds allow. A variable that
comes to a bound stays there, and the rest goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Array, Vector


@dataclass(frozen=True)
class ActiveSetSettings:
    """Up to how many free variables, how many steps, and which curvatures and slopes are 0."""

    most_variables: int = 600
    most_work: float = 2e10  # cubes of the numbers of variables, summed over the steps
    no_curvature: float = 1e-13  # of the largest, times the number of variables
    no_slope: float = 1e-9


def newton_steps(
    K: Array, g: Vector, s: Vector, low: Vector, high: Vector, *, free_intercept: bool, settings: ActiveSetSettings
) -> Vector | None:
    """The s of free variables after the steps; None if they gain nothing. K, g: their kernel values and slopes."""
    own, slopes, work = s.copy(), g.copy(), 0.0
    free = np.arange(len(s))
    while len(free) > (1 if free_intercept else 0) and work < settings.most_work:
        work += float(len(free)) ** 3
        d, full = _direction(K[np.ix_(free, free)], slopes[free], free_intercept, settings)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(d > 0.0, high[free] - own[free], np.where(d < 0.0, low[free] - own[free], np.inf)) / d
        room[d == 0.0] = np.inf
        k = int(np.argmin(room))
        step = min(float(room[k]), full)
        if not np.isfinite(step):
            break
        own[free] = np.clip(own[free] + step * d, low[free], high[free])
        if step == room[k]:
            own[free[k]] = high[free[k]] if d[k] > 0.0 else low[free[k]]
        slopes = g - K @ (own - s)
        if step != room[k]:
            break
        free = free[(own[free] > low[free]) & (own[free] < high[free])]
    if free_intercept:
        _restore_sum(own, s, low, high)
    moved = own - s
    return own if float(g @ moved - 0.5 * moved @ (K @ moved)) > 0.0 else None


def _direction(K: Array, g: Vector, free_intercept: bool, settings: ActiveSetSettings) -> tuple[Vector, float]:
    """A direction, and the best length in it."""
    if free_intercept:  # within the directions whose sum is 0
        g = g - g.mean()
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh(K)
    parts = vectors.T @ g
    flat = values <= settings.no_curvature * len(g) * max(float(values[-1]), 0.0)
    level: Vector = vectors[:, flat] @ parts[flat]
    if float(np.abs(level).max(initial=0.0)) > settings.no_slope:
        d = level - level.mean() if free_intercept else level
        curvature = float(d @ K @ d)
        return d, float(g @ d) / curvature if curvature > 0.0 else np.inf
    d = vectors[:, ~flat] @ (parts[~flat] / values[~flat])
    return (d - d.mean() if free_intercept else d), 1.0


def _restore_sum(own: Vector, s: Vector, low: Vector, high: Vector) -> None:
    """Takes what rounding has added to the sum from the variable with most room."""
    missing = math.fsum([*own.tolist(), *(-s).tolist()])
    k = int(np.argmax(np.minimum(high - own, own - low)))
    own[k] = np.clip(own[k] - missing, low[k], high[k])
