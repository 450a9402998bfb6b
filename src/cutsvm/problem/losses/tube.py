"""Tube: sum_i s_i (below max(0, -r_i - epsilon) + above max(0, r_i - epsilon)), r_i = f_i - t_i.

Epsilon-insensitive, absolute (epsilon = 0) and pinball losses.
"""

from __future__ import annotations

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Vector
from cutsvm.problem.line_search.breakpoints import LineValues
from cutsvm.problem.losses.smooth import TargetLoss
from cutsvm.problem.point import LossSupports


class TubeLine:
    """The loss along f + k t: convex and piecewise linear in k, with up to two breakpoints for each row."""

    exact = True

    def __init__(self, loss: Tube, r: Vector, t: Vector) -> None:
        self.n, self._loss, self._r, self._t = loss.n, loss, r, t

    def evaluate(self, ks: Vector) -> LineValues:
        pairs = [self._at(k) for k in ks.tolist()]
        return LineValues(np.array([value for value, _ in pairs]), np.array([slope for _, slope in pairs]))

    def _at(self, k: float) -> tuple[float, float]:
        loss, r = self._loss, self._r + k * self._t
        up, down = r - loss.epsilon, -r - loss.epsilon
        value = loss.weights @ (loss.below * np.maximum(0.0, down) + loss.above * np.maximum(0.0, up))
        slope = (loss.weights * (loss.above * (up > 0.0) - loss.below * (down > 0.0))) @ self._t
        return float(value), float(slope)

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        return min(self._crossing(tilt, curvature, 0.0), 100.0)

    def _crossing(self, tilt: float, curvature: float, low: float) -> float:
        """The smallest k >= low at which the slope reaches 0."""
        loss, t = self._loss, self._t
        moving = t != 0.0
        gain = loss.weights[moving] * np.abs(t[moving])
        edges = [(sign * loss.epsilon - self._r[moving]) / t[moving] for sign in (-1.0, 1.0)]
        rates = [np.where((t[moving] > 0) == (sign > 0), loss.above, loss.below) for sign in (-1.0, 1.0)]
        at, jump = np.concatenate(edges), np.concatenate([gain * rate for rate in rates])
        order = np.argsort(at, kind="stable")
        at, jump = at[order], jump[order]
        first = np.searchsorted(at, low, side="right") if np.isfinite(low) else 0
        at, jump = at[first:], jump[first:]
        base = self._at(low)[1] if np.isfinite(low) else -float(gain @ np.where(t[moving] > 0, loss.below, loss.above))
        slope = base + tilt
        if np.isfinite(low) and slope + curvature * low >= 0.0:
            return low
        before = slope + np.concatenate([[0.0], np.cumsum(jump)])  # of the loss on each piece
        inside = np.flatnonzero(before[1:] + curvature * at >= 0.0)
        last = int(inside[0]) if len(inside) else len(at)
        if curvature > 0.0:
            k = -before[last] / curvature
            if last == len(at) or k <= at[last]:
                return max(k, low)
        return float(at[min(last, len(at) - 1)]) if len(at) else 100.0


class Tube(TargetLoss):
    """sum_i s_i (below max(0, -r_i - epsilon) + above max(0, r_i - epsilon)), r_i = f_i - t_i"""

    name = "tube"
    supports = LossSupports()

    def __init__(
        self,
        targets: Vector,
        weights: Vector,
        epsilon: float,
        below: float = 1.0,
        above: float = 1.0,
        threads: int = 1,
    ) -> None:
        super().__init__(targets, weights, epsilon, threads)
        self.below, self.above = below, above
        self.rows = core.RowLoss(self.name, targets, weights, epsilon, below, above)

    def change(self, value: float, shift: float) -> float:
        return self.weight * max(self.below, self.above) * shift

    def line(self, scores: Vector, to: Vector | None = None) -> TubeLine:  # type: ignore[override]
        return TubeLine(self, scores - self.targets, np.ones(self.n) if to is None else to - scores)

    def best_shift(self, scores: Vector) -> float:
        return self.line(scores)._crossing(0.0, 0.0, -np.inf)

    def _furthest(self, part: slice, scores: Vector, rest: Vector, error: float) -> Vector:
        r = (scores - self.targets[part]) + rest
        up, down = np.maximum(0.0, r + error - self.epsilon), np.maximum(0.0, error - r - self.epsilon)
        return self.weights[part] * np.maximum(self.above * up, self.below * down)
