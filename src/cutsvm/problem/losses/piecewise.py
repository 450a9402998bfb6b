"""What piecewise linear losses of one score per row share: each row is a sum of hinges max(0, a_ib (t_ib - f_i)).

`core/row_losses.hpp` has each of them, row by row, and `core/hinge.hpp` the loops over rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.line_search.breakpoints import LossLine, best_intercept
from cutsvm.problem.planes import Heights


class PiecewiseLinear(ABC):
    """A sum over rows and over their hinges b of max(0, a_ib (t_ib - f_i)); `rows` are these."""

    n: int
    threads: int
    rows: core.RowLoss
    steepness: float
    unit: float

    @property
    @abstractmethod
    def lightest(self) -> float:
        """The smallest |a_ib| above 0; infinite if there is none."""

    @abstractmethod
    def breakpoints(self, rows: slice, scores: Vector) -> tuple[Vector, Vector]:
        """The shifts t_ib - f_i that take rows to their breakpoints, and a_ib."""

    def value(self, scores: Vector) -> float:
        return self.rows.value(scores, self.threads)

    def best_shift(self, scores: Vector) -> float:
        return best_intercept(self, scores)

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        sums = np.empty((3, len(bounds) - 1))
        share = self._balancing_shares(scores) if balanced else (0.0, 0.0)
        self.rows.shared_slopes(scores, *share, bounds, out, sums, self.threads)
        return Heights(*sums)

    def _balancing_shares(self, scores: Vector) -> tuple[float, float]:
        """Shares of their slope, in [0, 1], that tied hinges with a > 0 and a < 0 get so that all sum to 0."""
        inside, positive, negative = self.rows.balance(scores, self.threads)
        if inside < 0 and positive > 0:
            return min(1.0, -inside / positive), 0.0
        if inside > 0 and negative < 0:
            return 0.0, min(1.0, -inside / negative)
        return 0.0, 0.0

    def line(self, scores: Vector, to: Vector | None = None) -> LossLine:
        arrays = (scores, np.empty(0) if to is None else to)
        return LossLine(self.n, self.rows.evaluate, self.rows.crossing, arrays, self.threads)

    def sift(self, scores: Vector, band: float, group: Array) -> Ints:
        return self.rows.sift(scores, band, group, self.threads)

    def violators(self, scores: Vector, group: Array) -> Ints:
        return self.rows.violators(scores, group, self.threads)
