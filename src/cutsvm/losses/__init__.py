"""Convex losses of the scores f = X w + b: they know labels and weights, and nothing of X."""

from __future__ import annotations

from typing import Protocol

from cutsvm.losses.hinge import Hinge
from cutsvm.types import Ints, Vector

__all__ = ["Hinge", "Line", "Look", "Loss"]


class Look(Protocol):
    """What one sweep sees at several points k of a line of scores."""

    @property
    def values(self) -> Vector:
        """The loss at each k."""

    @property
    def slopes(self) -> Vector:
        """Its slope just right of each k."""

    @property
    def knots(self) -> Vector:
        """How many kinks lie at or left of each k."""


class Line(Protocol):
    """The loss along a line of scores f + k t: convex and piecewise linear in k."""

    n: int

    def look(self, ks: Vector) -> Look:
        """The loss at up to `looks` points in one sweep."""

    def crossing(self, low: float, high: float, slope: float, curvature: float, level: float) -> float:
        """The smallest k in (low, high] where slope + curvature k + (slope gained since low) reaches level."""


class Loss(Protocol):
    """A convex function of the scores, bound to labels and weights; never negative."""

    n: int
    total: float  # the loss at zero scores

    def value(self, scores: Vector) -> float:
        """The loss of the scores."""

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Vector:
        """out = a subgradient g at the scores; returns the offsets: loss_p(f) >= g . f + offset_p in shard p.

        balanced: among the subgradients, one that sums to zero (there is one where a constant added to all
        scores does not lower the loss).
        """

    def line(self, scores: Vector, to: Vector | None = None) -> Line:
        """The loss along the line from `scores` towards `to` (at k = 1), or with k added to all scores."""
