"""Warnings that point at the line of the user's that led to them."""

from __future__ import annotations

import sys
import warnings

from cutsvm.outcome import printable

__all__ = ["warn"]

# Between that line and us: scikit-learn wraps `fit`, and its pipelines and searches call it.
BETWEEN = ("cutsvm", "sklearn", "joblib")


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the nearest line that is neither ours nor scikit-learn's, control characters spelt out."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(printable(text), category, stacklevel=level)
