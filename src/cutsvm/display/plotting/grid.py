"""A plot of a grid of parameters: `cutsvm.plotting.plot_grid`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutsvm.display.plotting.style import ABOVE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_grid(result: Any, ax: Axes | None = None) -> Axes:
    """Plot the mean accuracy over all inner folds at each point of the grid, and the choices of the outer folds.

    Parameters
    ----------
    result : the `NestedResult` of `cutsvm.nested_cross_validate`. Two of its parameters must have several values; the
        score of a point is the best over the other parameters.
    ax : matplotlib axes. By default a new figure.

    Returns
    -------
    ax : the axes drawn on.
    """
    axes = [name for name, values in result.grid.items() if len(values) > 1]
    if len(axes) < 2:
        raise ValueError(f"a grid to draw has two parameters with several values; this one has {axes}")
    down, across = axes[:2]
    ticks = [[format_value(value) for value in result.grid[name]] for name in (down, across)]
    positions = [{tick: place for place, tick in enumerate(names)} for names in ticks]
    values = np.full([len(axis) for axis in positions], -np.inf)
    for params, score in zip(result.params, result.scores.mean(axis=0), strict=True):
        place = positions[0][format_value(params[down])], positions[1][format_value(params[across])]
        values[place] = max(values[place], 100.0 * score)
    ax = new_axes(6.4, 4.8) if ax is None else ax
    # Accuracies far below the best share one colour.
    image = ax.imshow(
        values, origin="lower", aspect="auto", cmap="cividis", vmin=max(values.min(), values.max() - 20.0)
    )
    middle = 0.5 * sum(image.get_clim())
    for row, column in np.ndindex(values.shape):
        ink = "white" if values[row, column] < middle else "black"
        ax.text(column, row, f"{values[row, column]:.1f}", ha="center", va="center", size=7, color=ink)
    chosen: dict[tuple[int, int], int] = {}
    for params in result.best_params:
        place = positions[0][format_value(params[down])], positions[1][format_value(params[across])]
        chosen[place] = chosen.get(place, 0) + 1
    for (row, column), times in chosen.items():
        left, right, low, high = column - 0.5, column + 0.5, row - 0.5, row + 0.5
        ax.plot([left, right, right, left, left], [low, low, high, high, low], color=ABOVE, linewidth=2.0)
        ax.text(column + 0.42, row + 0.4, f"{times}x", ha="right", va="top", size=6, color=ABOVE)
    ax.set_xticks(range(values.shape[1]), ticks[1], rotation=45, ha="right")
    ax.set_yticks(range(values.shape[0]), ticks[0])
    ax.set_xlabel(across)
    ax.set_ylabel(down)
    ax.set_title(f"accuracy in the inner folds, %; framed: chosen, {100.0 * result.mean:.2f} % outside", size=9)
    ax.figure.colorbar(image, ax=ax, label="accuracy, %", extend="min")
    return ax


def format_value(value: Any) -> str:
    """The value of a parameter as text."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
