"""One look for all pictures: colours that colour-blind readers can tell apart, thin grids, log axes."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's palette; black, the heaviest, is for us.
COLOURS = {
    "cutsvm": "#000000",
    "svmocas": "#D55E00",
    "LIBLINEAR": "#0072B2",
    "sklearn LinearSVC": "#56B4E9",
    "sklearn SGD": "#CC79A7",
    "snapml": "#009E73",
    "dlib": "#E69F00",
    "msvmocas": "#D55E00",  # never beside svmocas
}
SERIES = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
MARKERS = "osD^vPhs"
# Lines and markers for what stands back.
BROKEN = [((0, (6, 2)), "s"), ((0, (1, 1.5)), "^"), ((0, (4, 1.5, 1, 1.5)), "v")]

plt.rcParams.update(
    {
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "lines.markersize": 4.5,
    }
)


def panels(rows: int, columns: int, width: float = 3.0, height: float = 1.9) -> tuple[Figure, list[list[Axes]]]:
    """A grid of panels, as lists of rows."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows + 0.9), squeeze=False, layout="constrained"
    )
    return figure, [list(row) for row in axes]


def log_seconds(axes: Axes, low: float, high: float) -> None:
    """A log axis of seconds over whole decades, with plain numbers."""
    axes.set_yscale("log")
    axes.set_ylim(10 ** math.floor(math.log10(low) - 0.05), 10 ** math.ceil(math.log10(high) + 0.05))
    plain_ticks(axes.yaxis)


def plain_ticks(axis: Axis) -> None:
    """Decades as plain numbers: 0.01, 1, 100."""
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_on_top(figure: Figure, handles: list[Line2D], columns: int) -> None:
    """One legend for all panels."""
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def save(figure: Figure, path: Path) -> None:
    """Write the picture."""
    figure.savefig(path, dpi=150)
    plt.close(figure)
