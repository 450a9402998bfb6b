"""Newton steps on the free variables of a dual, those between their bounds.

Steps of pairs of variables gain little each where kernel values are close to a matrix of low rank with large entries:
polynomials of features far from the origin, say. There the free variables are few, and

    max over d of  g'd - d'K d / 2,     and, with a free intercept, sum_v d_v = 0

is solved at once: by the eigenvectors of K, along those without curvature as far as the bounds allow. A variable that
comes to a bound stays there, and the rest goes on.

Where K is clearly positive definite, a Cholesky factor does, at a small part of the price: for noisy labels and a large
C, say, where most rows are free and steps of pairs converge slowly once it is known which. `Schedule` says when.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from cutsvm._utils.types import Array, Vector


@dataclass(frozen=True)
class ActiveSetSettings:
    """Up to how many free variables, how many steps, and which curvatures and slopes are 0."""

    most_variables: int = 600  # by eigenvectors
    most_definite: int = 6000  # by a Cholesky factor
    definite: float = 1e-11  # of the largest, what the least pivot is above
    most_factors: int = 6
    most_outside: float = 0.1  # share of the variables that may come to a bound in one step
    # Rounds of steps that a forecast is made from; how far the number of free variables may change in them; and how
    # many times the work of a factor the work that is forecast has to be.
    rounds: int = 4
    stable: float = 0.03
    pays: float = 1.0
    most_work: float = 2e10  # cubes of the numbers of variables, summed over the steps
    no_curvature: float = 1e-13  # of the largest, times the number of variables
    no_slope: float = 1e-9


def newton_steps(
    K: Array, g: Vector, s: Vector, low: Vector, high: Vector, *, free_intercept: bool, settings: ActiveSetSettings
) -> Vector | None:
    """The s of free variables after the steps; None if they gain nothing. K, g: their kernel values and slopes."""
    own = _definite_steps(K, g, s, low, high, free_intercept, settings)
    if own is None and len(s) <= settings.most_variables:
        own = _steps_to_bounds(K, g, s, low, high, free_intercept, settings)
    if own is None:
        return None
    if free_intercept:
        _restore_sum(own, s, low, high)
    moved = own - s
    return own if float(g @ moved - 0.5 * moved @ (K @ moved)) > 0.0 else None


def _definite_steps(
    K: Array, g: Vector, s: Vector, low: Vector, high: Vector, free_intercept: bool, settings: ActiveSetSettings
) -> Vector | None:
    """Steps to the best point, where variables that would leave their bounds are put there and stay; None if K is not
    clearly positive definite, or many variables would leave.
    """
    moved, free = np.zeros(len(s)), np.arange(len(s))
    for _ in range(settings.most_factors):
        if len(free) <= free_intercept:
            return None
        try:
            factor = linalg.cholesky(K[np.ix_(free, free)], lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        pivots = np.diagonal(factor) ** 2
        if not float(pivots.min()) > settings.definite * float(pivots.max()):
            return None
        d: Vector = linalg.cho_solve((factor, True), (g - K @ moved)[free], check_finite=False)
        if free_intercept:
            e = linalg.cho_solve((factor, True), np.ones(len(free)), check_finite=False)
            d -= e * ((math.fsum(moved) + math.fsum(d)) / math.fsum(e))
        end = s[free] + d
        outside = (end < low[free]) | (end > high[free])
        moved[free] = d
        if not outside.any():
            break
        if np.count_nonzero(outside) > settings.most_outside * len(s):
            return None
        moved[free] = 0.0
        stays = free[outside]
        moved[stays] = np.where(end[outside] > high[stays], high[stays], low[stays]) - s[stays]
        free = free[~outside]
    else:
        return None
    slope, curvature = float(g @ moved), float(moved @ (K @ moved))
    step = 1.0 if slope >= curvature else max(0.0, slope) / curvature
    return np.clip(s + step * moved, low, high)


def _steps_to_bounds(
    K: Array, g: Vector, s: Vector, low: Vector, high: Vector, free_intercept: bool, settings: ActiveSetSettings
) -> Vector:
    """Steps of which each goes to the best point, or as far as the first variable that comes to a bound."""
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
    return own


@dataclass(eq=False)
class Schedule:
    """When Newton steps are less work than further steps within working sets. Work is counted, not timed.

    seen: of the last rounds (F - dual, work until then, free variables).
    """

    settings: ActiveSetSettings
    wait: int = 0
    seen: list[tuple[float, float, int]] = field(default_factory=list)

    def pays(self, gap: float, target: float, work: float, free: int) -> bool:
        """Whether to take them, after a round: by how fast the gap has become smaller, on the way to the target."""
        use = self.settings
        self.seen = [*self.seen[-use.rounds - self.wait :], (gap, work, free)]
        if len(self.seen) <= use.rounds + self.wait or not 0 < free <= use.most_definite or gap <= target:
            return False
        first, before, free_before = self.seen[0]
        if abs(free - free_before) > use.stable * free:
            return False
        fall, rest = math.log(first / gap) if first > gap else 0.0, math.log(gap / max(target, 1e-300))
        needed = use.pays * float(free) ** 3 / 3.0
        return (work - before) * rest > needed * fall

    def tried(self, gained: bool) -> None:
        """After a try: a forecast takes new rounds, and more of them after one that was in vain."""
        self.seen = []
        self.wait = 0 if gained else 2 * self.wait + self.settings.rounds


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
