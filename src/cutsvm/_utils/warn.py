"""Warnings that point at the line of the user's that led to them, and Ctrl-C that ends more than one fit."""

from __future__ import annotations

import sys
import warnings

from cutsvm._utils.text import printable

__all__ = ["ends_a_loop", "warn"]

# Between that line and us: scikit-learn wraps `fit`, and its pipelines and searches call it.
BETWEEN = ("cutsvm", "sklearn", "joblib")


# What calls many fits in a row: a search, cross-validation, an ensemble.
LOOPS = (
    "joblib",
    "sklearn.calibration",
    "sklearn.ensemble",
    "sklearn.feature_selection",
    "sklearn.model_selection",
    "sklearn.multiclass",
    "sklearn.multioutput",
)


def ends_a_loop() -> bool:
    """Whether a loop of scikit-learn or joblib has called this fit, which would go on with the next after Ctrl-C."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if any(name == loop or name.startswith(f"{loop}.") for loop in LOOPS):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the nearest line that is neither ours nor scikit-learn's, control characters spelt out."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(printable(text), category, stacklevel=level)
