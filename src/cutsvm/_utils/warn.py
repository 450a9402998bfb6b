"""Warnings that point at the user's line, and whether Ctrl-C must end more than one fit."""

from __future__ import annotations

import sys
import warnings

from cutsvm._utils.text import printable

# Packages between that line and the warning: scikit-learn wraps `fit`, and its pipelines and searches call it.
_CALLERS = ("cutsvm", "sklearn", "joblib")

# Modules that call many fits: searches, cross-validation, ensembles.
_LOOPS = (
    "joblib",
    "sklearn.calibration",
    "sklearn.ensemble",
    "sklearn.feature_selection",
    "sklearn.model_selection",
    "sklearn.multiclass",
    "sklearn.multioutput",
)


def is_in_loop() -> bool:
    """Whether a loop of scikit-learn or joblib called this fit: it would start the next one after Ctrl-C."""
    return is_called_by(*_LOOPS)


def is_called_by(*modules: str) -> bool:
    """Whether a function of one of these modules, or of a module in them, is among the callers."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if any(name == module or name.startswith(f"{module}.") for module in modules):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside cutsvm, scikit-learn and joblib, with control characters escaped."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _CALLERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(printable(text), category, stacklevel=level)
