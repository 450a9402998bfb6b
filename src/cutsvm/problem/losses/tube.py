"""Piecewise linear losses of residuals r = f - t: epsilon-insensitive, absolute, and pinball loss.

    s (below max(0, -r - epsilon) + above max(0, r - epsilon))

With below = above = 1 that is the epsilon-insensitive loss, and with epsilon = 0 the absolute one. With epsilon = 0,
below = q and above = 1 - q it is the pinball loss: its minimum over a constant f is the quantile q of the targets.
"""

from __future__ import annotations

import numpy as np

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import UNIT, exact_difference, widened
from cutsvm.problem.losses.hinge import PiecewiseLinear
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class Tube(PiecewiseLinear):
    """sum_i s_i (below max(0, -r_i - epsilon) + above max(0, r_i - epsilon)), r_i = f_i - t_i.

    targets: t_i. weights: s_i >= 0. epsilon, below, above: at least 0.
    """

    supports = LossSupports(dual=True, groups=True)

    def __init__(
        self,
        targets: Vector,
        weights: Vector,
        epsilon: float,
        below: float = 1.0,
        above: float = 1.0,
        threads: int = 1,
    ) -> None:
        self.targets, self.weights, self.threads = targets, weights, threads
        self.epsilon, self.below, self.above = epsilon, below, above
        self.n = len(targets)
        self.weight = validation.absolute_sum(weights)
        self.steepest = max(below, above)
        self.flattest = min((slope for slope in (below, above) if slope > 0.0), default=np.inf)
        self.steepness = self.steepest * self.weight

    def _row_loss(self) -> core.RowLoss:
        return core.RowLoss("tube", self.targets, self.weights, self.epsilon, self.below, self.above)

    @cached_property
    def total(self) -> float:
        some = (self.part(part) for part in validation.parts(self.n))
        return sum(part.value(np.zeros(part.n)) for part in some)

    @cached_property
    def score_bound(self) -> float:
        """At the best b some row is on a breakpoint."""
        return max(float(self.targets.max(initial=0.0)), -float(self.targets.min(initial=0.0))) + self.epsilon

    @property
    def offset_unit(self) -> float:
        """The offset is -g (t + epsilon) or -g (t - epsilon) for a row's slope g."""
        return self.score_bound

    @cached_property
    def unit(self) -> float:
        """The standard deviation of the targets, or another number above 0."""
        mean = float(self.targets.mean()) if self.n else 0.0
        squares = sum(float(np.square(self.targets[part] - mean).sum()) for part in validation.parts(self.n))
        return float(np.sqrt(squares / max(1, self.n))) or self.score_bound or 1.0

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            r, lost = exact_difference(scores[part], self.targets[part])
            lost = lost + rest[part]
            short = np.maximum(0.0, (-r - self.epsilon) - lost + error)  # the first differences are exact near 0
            beyond = np.maximum(0.0, (r - self.epsilon) + lost + error)
            total += float(self.weights[part] @ (self.below * short + self.above * beyond))
        return widened(total, self.n, error)

    def change(self, value: float, shift: float) -> float:
        """Rounding errors of the residuals are changes of the scores, too."""
        return self.steepness * (shift + 4.0 * UNIT * self.score_bound)

    def dual_heights(self, g: Vector, bounds: Ints) -> Heights:
        sums = np.empty((3, len(bounds) - 1))
        self.rows.dual_heights(g, bounds, sums, self.threads)
        return Heights(*sums)

    def breakpoints(self, rows: slice, scores: Vector) -> tuple[Vector, Vector]:
        ahead, s = self.targets[rows] - scores[rows], self.weights[rows]
        at = np.concatenate([ahead - self.epsilon, ahead + self.epsilon])
        return at, np.concatenate([self.below * s, -self.above * s])

    # For sifting: see `cutsvm.problem.losses.GroupedLoss`. Groups are the rows with scores that are too low, and with
    # scores that are too high; all others have no loss.

    labels, groups = 1, 2

    @property
    def row_weights(self) -> Vector:
        return self.weights

    def distances(self, scores: Vector, rows: Ints) -> Vector:
        return np.asarray(np.abs(np.abs(scores[rows] - self.targets[rows]) - self.epsilon))

    def marks(self, scores: Vector, rows: Ints) -> Ints:
        return rows

    def label_mask(self, label: int) -> Array:
        return np.asarray(self.weights > 0.0)

    def label_totals(self) -> Vector:
        return np.array([self.weight])

    def target_sums(self, group: Array) -> Vector:
        sums: Vector = np.zeros(self.groups)
        for part in validation.parts(self.n):
            mine = group[part] >= 0
            weighted = (self.weights[part] * self.targets[part])[mine]
            sums += np.bincount(group[part][mine], weights=weighted, minlength=self.groups)
        return sums

    def part(self, rows: slice) -> Tube:
        return self._of(self.targets[rows], self.weights[rows])

    def take(self, rows: Ints, factors: Vector | None = None) -> Tube:
        weights = self.weights[rows]
        return self._of(self.targets[rows], weights if factors is None else weights * factors)

    def of_groups(self, groups: Ints, weights: Vector, targets: Vector) -> Tube:
        return self._of(targets, weights)

    def joined(self, parts: list[Tube]) -> Tube:
        targets = np.concatenate([part.targets for part in parts])
        return self._of(targets, np.concatenate([part.weights for part in parts]))

    def _of(self, targets: Vector, weights: Vector) -> Tube:
        """The loss of other rows."""
        return Tube(targets, weights, self.epsilon, self.below, self.above, self.threads)
