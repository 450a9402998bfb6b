"""Pictures of a fit. Needs matplotlib (`pip install cutsvm[plot]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_convergence"]

# Okabe and Ito's palette, told apart with any kind of colour vision; vermillion above, blue below.
_ABOVE, _BELOW, _BETWEEN, _INK = "#D55E00", "#0072B2", "#BBBBBB", "#333333"
_MOST_DOTS = 60


def plot_convergence(history: Sequence[Mapping[str, Any]], ax: Any = None) -> tuple[Axes, ...]:
    """The objective and its lower bound closing in on the optimum, and the gap between them, against seconds.

    Parameters
    ----------
    history : `history_` of a fitted estimator. Of several one-vs-rest problems the first is drawn above,
        and the gap of each below.
    ax : one matplotlib axes (the bounds only), or a pair (bounds, gap). By default a new figure with both.

    Returns
    -------
    axes : the axes drawn on.
    """
    if not history:
        raise ValueError("there is no history to draw: the model was loaded from a file or not fitted")
    axes = _axes(ax)
    problems = _by_label(history)
    _draw_bounds(axes[0], next(iter(problems.values())))
    if len(axes) > 1:
        _draw_gaps(axes[1], problems)
        axes[0].tick_params(labelbottom=False)
    axes[-1].set_xlabel("seconds")
    for each in axes:
        _tidy(each)
    return axes


def _axes(ax: Any) -> tuple[Axes, ...]:
    """The axes to draw on: those given, or a new pair above each other."""
    if ax is not None:
        return tuple(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    import matplotlib.pyplot as plt

    _, pair = plt.subplots(2, 1, sharex=True, figsize=(7.2, 5.6), height_ratios=(3, 2), layout="constrained", dpi=150)
    return tuple(pair)


def _by_label(history: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The records of each one-vs-rest problem, in their order."""
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for record in history:
        problems.setdefault(str(record.get("label", "")), []).append(record)
    return problems


def _column(records: Sequence[Mapping[str, Any]], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([record[name] for record in records], dtype=np.float64)


def _draw_bounds(ax: Axes, records: Sequence[Mapping[str, Any]]) -> None:
    """F(w) from above, the bound from below, and the optimum somewhere in the band between them."""
    seconds, primal = _column(records, "seconds"), np.fmin.accumulate(_column(records, "primal"))
    lower = np.fmax.accumulate(_column(records, "lower"))
    ax.fill_between(seconds, lower, primal, color=_BETWEEN, alpha=0.35, linewidth=0)
    ax.plot(seconds, primal, color=_ABOVE, label="objective of the model", **_mark(seconds))
    ax.plot(seconds, lower, color=_BELOW, label="proven lower bound", **_mark(seconds))
    # The first points may be far above; the view is of the way to the optimum.
    near = float(primal[-1])
    ax.set_ylim(0.0, 1.5 * near if near > 0 else 1.0)
    ax.set_ylabel("objective")
    ax.legend(frameon=False, loc="lower right")
    ax.set_title("The best possible objective lies in the grey band", loc="left", fontsize=11, color=_INK)


def _mark(points: Sequence[Any] | np.ndarray[Any, Any]) -> dict[str, Any]:
    """A line with a dot per iteration, as long as the dots can be told apart."""
    dots = {"marker": "o", "markersize": 3.5} if len(points) <= _MOST_DOTS else {}
    return {"linewidth": 1.8, "zorder": 3, **dots}


def _draw_gaps(ax: Axes, problems: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """The relative gap on a logarithmic scale, with the tolerance where the history has it."""
    shades = np.linspace(1.0, 0.35, len(problems))
    for shade, (label, records) in zip(shades, problems.items(), strict=True):
        gap = _column(records, "gap")
        shown = np.where(gap > 0, gap, np.nan)
        style: dict[str, Any] = {"color": _INK, "alpha": float(shade), **_mark(gap)}
        ax.plot(_column(records, "seconds"), shown, label=label, **style)
    ax.set_yscale("log")
    ax.set_ylabel("relative gap")
    last = next(iter(problems.values()))[-1]
    if last.get("tol"):
        ax.axhline(float(last["tol"]), color=_INK, linewidth=1, linestyle=(0, (2, 3)))
        style = {"color": _INK, "fontsize": 9, "textcoords": "offset points"}
        ax.annotate("tol", (0, float(last["tol"])), (6, 4), xycoords=("axes fraction", "data"), **style)


def _tidy(ax: Axes) -> None:
    """Axes as lines to read from, not as a box around the picture."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="y", color="#E6E6E6", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlim(left=0.0)
    ax.margins(x=0.02)
