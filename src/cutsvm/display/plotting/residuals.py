"""Predicted against true values of a regressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.display.plotting.style import INK, SERIES, new_axes, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_ROWS = 2_000  # points beyond which a plot shows a random sample


class ResidualsDisplay:
    """Predicted against true values, one point for each row; on the line they are the same.

    Create it with `from_estimator`. Of `LinearSVR` the dotted lines are epsilon above and below. Of more than 2,000
    rows a random sample is drawn. `plot` sets `figure_` and `ax_`. `MarginDisplay` draws the residuals as a histogram.

    Parameters
    ----------
    y, predicted : arrays of shape (n_rows,)
    epsilon : distance from the line of the dotted lines; 0: none
    """

    def __init__(self, *, y: Vector, predicted: Vector, epsilon: float = 0.0) -> None:
        self.y, self.predicted, self.epsilon = np.asarray(y), np.asarray(predicted), epsilon

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None) -> ResidualsDisplay:
        """Plot the predictions for rows X with true values y."""
        return cls.of(estimator, np.asarray(estimator.predict(X)), np.asarray(y)).plot(ax=ax)

    @classmethod
    def of(cls, estimator: Any, predicted: Vector, y: Vector) -> ResidualsDisplay:
        """The display of known predictions, not plotted yet."""
        return cls(y=y, predicted=predicted, epsilon=float(getattr(estimator, "epsilon", 0.0)))

    @property
    def n_shown(self) -> int:
        return min(len(self.y), _MAX_ROWS)

    def plot(self, ax: Axes | None = None) -> ResidualsDisplay:
        """Plot on these axes; by default in a new figure."""
        ax = new_axes(5.6, 5.2) if ax is None else ax
        rows = np.random.default_rng(0).permutation(len(self.y))[: self.n_shown]
        y, predicted = self.y[rows], self.predicted[rows]
        ax.scatter(y, predicted, s=9, color=SERIES[0], alpha=0.5, linewidths=0)
        ends = np.array([min(y.min(), predicted.min()), max(y.max(), predicted.max())])
        ax.plot(ends, ends, color=INK, linewidth=1.2)
        if self.epsilon > 0.0:
            for shift in (-self.epsilon, self.epsilon):
                ax.plot(ends, ends + shift, color=INK, linewidth=1.0, linestyle=(0, (2, 3)))
        ax.set_xlabel("true value")
        ax.set_ylabel("predicted")
        style_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
