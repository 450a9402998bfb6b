"""Colours, axes and labels that all plots share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cutsvm._utils.text import printable
from cutsvm._utils.types import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, distinguishable with any kind of colour vision.
ABOVE, BELOW, BETWEEN, INK, GRID = "#D55E00", "#0072B2", "#BBBBBB", "#333333", "#E6E6E6"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MAX_DOTS = 60


def style_axes(ax: Axes, lines: Literal["x", "y"] = "y", *, from_zero: bool = False) -> None:
    """Hide the upper and right spines, and draw a grid below the data; from_zero: x begins at 0."""
    for name in ("top", "right"):
        ax.spines[name].set_visible(False)
    ax.grid(axis=lines, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    if from_zero:
        ax.set_xlim(left=0.0)
        ax.margins(x=0.02)


def line_style(points: Sequence[Any] | Vector) -> dict[str, Any]:
    """Style of a line, with a marker per point if there are few points."""
    dots = {"marker": "o", "markersize": 3.5} if len(points) <= _MAX_DOTS else {}
    return {"linewidth": 1.8, "zorder": 3, **dots}


def new_axes(width: float, height: float, rows: int = 1, **options: Any) -> Any:
    """The axes of a new figure, its size in inches; of several rows an array."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(rows, 1, figsize=(width, height), layout="constrained", dpi=150, sharex=True, **options)
    return ax


def gap_axes(ax: Axes, tol: float | None) -> None:
    """Style an axis of gaps: a logarithmic scale, and a line at the tolerance."""
    ax.set_yscale("log")
    ax.set_ylabel("relative gap")
    if tol:
        ax.axhline(tol, color=INK, linewidth=1, linestyle=(0, (2, 3)))
        style: dict[str, Any] = {"color": INK, "fontsize": 9, "textcoords": "offset points"}
        ax.annotate("tol", (0, tol), (6, 4), xycoords=("axes fraction", "data"), **style)


def label_text(text: object, longest: int = 32) -> str:
    """A name as a label: on one line, shortened, dollar signs escaped."""
    plain = printable(str(text))
    if len(plain) > longest:
        plain = f"{plain[: longest - 1]}…"
    return plain.replace("$", r"\$")
