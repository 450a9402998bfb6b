"""Errors of predicted numbers, for the command line and for reports."""

from __future__ import annotations

import numpy as np

from cutsvm._utils.types import Array, Vector


class RegressionSums:
    """Sums over rows that come block by block, from which errors of predicted numbers follow.

    Deviations are from the mean of a block; merging two blocks adds n_1 n_2 / (n_1 + n_2) times the product of the
    differences of their means (T. Chan, G. Golub, R. LeVeque, 1983). Nothing is lost of targets far from 0.
    """

    def __init__(self) -> None:
        self.weight = self.squared = self.absolute = 0.0
        self._means = np.zeros(2)  # of y and of the predictions
        self._products = np.zeros((2, 2))  # sums of products of deviations from them

    def add(self, y: Vector, predicted: Vector, weights: Vector | None = None) -> None:
        """Add rows, with weights or each with weight 1."""
        pair = (y, predicted)
        total = float(len(y)) if weights is None else float(weights.sum())
        if total <= 0.0:
            return
        means = np.array([part.mean() if weights is None else np.average(part, weights=weights) for part in pair])
        own = [part - mean for part, mean in zip(pair, means, strict=True)]
        residuals = y - predicted
        scaled = [*own, residuals] if weights is None else [weights * part for part in (*own, residuals)]
        products = np.array([[float(scaled[i] @ own[j]) for j in range(2)] for i in range(2)])
        block = RegressionSums()
        block.weight, block._means, block._products = total, means, products
        block.squared, block.absolute = float(scaled[2] @ residuals), float(np.abs(scaled[2]).sum())
        self.join(block)

    def join(self, other: RegressionSums) -> None:
        """Add the sums of other rows."""
        if other.weight <= 0.0:
            return
        share = other.weight / (self.weight + other.weight)
        change = other._means - self._means
        self._products += other._products + (self.weight * share) * np.outer(change, change)
        self._means = other._means if self.weight == 0.0 else self._means + share * change
        self.squared += other.squared
        self.absolute += other.absolute
        self.weight += other.weight

    @property
    def r2(self) -> float | None:
        """1 - sum (y - f)^2 / sum (y - mean of y)^2; None where the latter is 0."""
        spread = self._products[0, 0]
        return float(1.0 - self.squared / spread) if spread > 0.0 else None

    def errors(self) -> dict[str, float | None]:
        """Mean squared error, mean absolute error, R^2 and the squared correlation coefficient.

        None where a variance is 0, and of no rows.
        """
        total, explained = float(self._products[0, 0]), float(self._products[1, 1])
        defined = total > 0.0 and explained > 0.0
        known = self.weight > 0.0
        return {
            "mean_squared_error": self.squared / self.weight if known else None,
            "mean_absolute_error": self.absolute / self.weight if known else None,
            "r2": self.r2,
            "squared_correlation": float(self._products[0, 1]) ** 2 / (total * explained) if defined else None,
        }


def regression_errors(y: Vector, predicted: Vector) -> dict[str, float | None]:
    """The errors of `RegressionSums` of these rows."""
    sums = RegressionSums()
    sums.add(y, predicted)
    return sums.errors()


def quantile_errors(y: Vector, predicted: Vector, quantile: float) -> tuple[float, float]:
    """The mean of q max(0, y - f) + (1 - q) max(0, f - y), and the share of rows with y < f."""
    loss, below = quantile_sums(y, predicted, quantile)
    return loss / len(y), below / len(y)


def quantile_sums(y: Vector, predicted: Vector, quantile: float) -> tuple[float, int]:
    """The sum of q max(0, y - f) + (1 - q) max(0, f - y), and the number of rows with y < f."""
    residuals = y - predicted
    loss = np.maximum(quantile * residuals, (quantile - 1.0) * residuals)
    return float(loss.sum()), int(np.count_nonzero(residuals < 0.0))


def marks_outliers(y: Array) -> bool:
    """Whether labels tell inliers (1) from outliers (-1): both occur, and nothing else."""
    return y.dtype.kind in "iuf" and np.array_equal(np.unique(y), [-1, 1])
