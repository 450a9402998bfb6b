"""Errors of predicted numbers, for the command line and for reports."""

from __future__ import annotations

import numpy as np

from cutsvm._utils.types import Array, Vector


def regression_errors(y: Vector, predicted: Vector) -> dict[str, float | None]:
    """Mean squared error, mean absolute error, R^2 and the squared correlation coefficient.

    R^2 = 1 - sum (y - f)^2 / sum (y - mean of y)^2. None where a variance is 0.
    """
    residuals = y - predicted
    spread, own = y - y.mean(), predicted - predicted.mean()
    total, explained = float(spread @ spread), float(own @ own)
    squared = float(residuals @ residuals)
    defined = total > 0.0 and explained > 0.0
    return {
        "mean_squared_error": squared / len(y),
        "mean_absolute_error": float(np.abs(residuals).mean()),
        "r2": 1.0 - squared / total if total > 0.0 else None,
        "squared_correlation": float(spread @ own) ** 2 / (total * explained) if defined else None,
    }


def quantile_errors(y: Vector, predicted: Vector, quantile: float) -> tuple[float, float]:
    """The mean of q max(0, y - f) + (1 - q) max(0, f - y), and the share of rows with y < f."""
    residuals = y - predicted
    loss = np.maximum(quantile * residuals, (quantile - 1.0) * residuals)
    return float(loss.mean()), float(np.mean(residuals < 0.0))


def marks_outliers(y: Array) -> bool:
    """Whether labels tell inliers (1) from outliers (-1): both occur, and nothing else."""
    return y.dtype.kind in "iuf" and np.array_equal(np.unique(y), [-1, 1])
