"""Bounds on the values of a matrix, for bounds on rounding errors (`cutsvm.problem.certificate`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Vector

SLIGHTLY = 1.0 + 2.0**-40  # more than the rounding of a few operations on numbers that are bounds themselves


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """How large the rows are: low_j <= x_ij <= high_j, or only |x_i| <= norm; `terms`: the values of a row, at most."""

    low: Vector | None
    high: Vector | None
    norm: float
    terms: int

    @classmethod
    def of_columns(cls, low: Vector, high: Vector) -> Magnitudes:
        with np.errstate(over="ignore"):  # an infinite norm proves nothing, and does no harm
            norm = SLIGHTLY * float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))
        return cls(low, high, norm, len(low))

    @classmethod
    def of_norm(cls, norm: float, terms: int) -> Magnitudes:
        return cls(None, None, SLIGHTLY * norm, terms)

    def union(self, other: Magnitudes) -> Magnitudes:
        """Of the rows of both."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return Magnitudes(None, None, max(self.norm, other.norm), max(self.terms, other.terms))
        return Magnitudes.of_columns(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def radius(self) -> float:
        """At least |x_i - m| for some centre m of the rows, within low and high."""
        if self.low is None or self.high is None:
            return self.norm
        return min(self.norm, SLIGHTLY * float(np.linalg.norm(0.5 * self.high - 0.5 * self.low)))

    def product(self, w: Vector) -> float:
        """At least sum_j |x_ij w_j| for every row."""
        by_norm = self.norm * float(np.linalg.norm(w))
        if self.low is None or self.high is None:
            return SLIGHTLY * by_norm
        by_column = float(np.maximum(np.abs(self.low), np.abs(self.high)) @ np.abs(w))
        return SLIGHTLY * min(by_norm, by_column)
