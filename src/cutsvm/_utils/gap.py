"""The relative duality gap."""

from __future__ import annotations

__all__ = ["relative_gap"]


def relative_gap(primal: float, lower: float) -> float:
    """(primal - lower) / primal, and 0 where both are 0; NaN if they are not known."""
    return 0.0 if primal <= 0.0 else (primal - lower) / primal
