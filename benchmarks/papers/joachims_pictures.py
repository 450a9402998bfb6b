"""The pictures of joachims.py, made from its CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import plots
from arnosti_report import style
from joachims_tables import (
    CLASSES,
    DECOMPOSITION,
    PAIRS,
    PAPER,
    SET_COSTS,
    TASKS,
    Row,
    chosen,
    fits,
    fits_of,
    lines_of,
)
from paper import Picture

Plan = list[tuple[str, str, float | None]]  # a panel's task, measure and the paper's slope


def panel(axes: Axes, groups: dict[tuple[str, str, str], list[Row]], x: str, what: str, exponent: float | None) -> None:
    """A line per set and solver: filled and solid is the paper's algorithm; hollow means that the limit came first."""
    sets = list(dict.fromkeys(key[0] for key in groups))
    points = []
    for (name, _, solver), group in groups.items():
        group = sorted(group, key=lambda row: row[x])
        look = style(1 + sets.index(name)) | {"linestyle": "-" if solver == PAPER else ":"}
        marker = plots.MARKERS[1 + sets.index(name)]
        axes.plot([row[x] for row in group], [row[what] for row in group], **look)
        for row in group:
            face = look["color"] if row["ended"] else "white"
            axes.plot(row[x], row[what], marker, color=look["color"], markerfacecolor=face)
        points += [(row[x], row[what]) for row in group if (name, solver) == ("covtype", PAPER)]
    if exponent is not None and points:
        guide(axes, points, exponent)
    axes.set(xscale="log", yscale="log")
    plots.plain_ticks(axes.yaxis)


def guide(axes: Axes, points: list[tuple[float, float]], exponent: float) -> None:
    """Dashed: the paper's slope, through the middle of our points on its own set."""
    x, y = np.array(points).T
    ends = np.array([x.min(), x.max()])
    middle = np.exp(np.mean(np.log(y)) - exponent * np.mean(np.log(x)))
    axes.plot(ends, middle * ends**exponent, "--", color="#888888", linewidth=1, zorder=1)


def grid_picture(rows: list[Row], path: Path, experiment: str, x: str, plan: Plan) -> None:
    """Panels side by side, each of one task and one measure, and one legend."""
    columns = 2 if len(plan) > 2 else len(plan)
    figure, grid = plots.panels(-(-len(plan) // columns), columns, width=4.2, height=2.5)
    groups = lines_of(rows, experiment)
    for (task, what, exponent), axes in zip(plan, (axes for line in grid for axes in line), strict=True):
        panel(axes, {key: group for key, group in groups.items() if key[1] == task}, x, what, exponent)
        axes.set_title(task)
        axes.set(xlabel="epsilon; default: relative gap" if x == "accuracy" else x, ylabel=what)
    names = list(dict.fromkeys(key[0] for key in groups))
    handles = [Line2D([], [], marker=plots.MARKERS[1 + i], label=name, **style(1 + i)) for i, name in enumerate(names)]
    for label, line in (("the paper's algorithm", "-"), ("default", ":"), ("slope in the paper", "--")):
        handles.append(Line2D([], [], color="#888888", linestyle=line, label=label))
    if not all(row["ended"] for group in groups.values() for row in group):
        hollow = {"marker": "o", "markerfacecolor": "white", "linestyle": ""}
        handles.append(Line2D([], [], color="#888888", label="time limit", **hollow))
    plots.legend_on_top(figure, handles, 4)
    plots.save(figure, path)


def picture_of_sizes(rows: list[Row], path: Path) -> None:
    """Figures 1 and 2."""
    plan: Plan = [(task, what, slope) for what, slope in (("seconds", 0.8), ("iterations", 0.0)) for task in TASKS]
    grid_picture(rows, path, "rows", "n", plan)


def picture_of_panels(rows: list[Row], path: Path) -> None:
    """The four panels of figure 1: the paper's algorithm, SVC, the paper's at the best C, and with pairs."""
    names = list(SET_COSTS)
    mine = [row for row in fits(rows, experiment="decomposition", solver=DECOMPOSITION) if row["ended"]]
    groups = {
        "the paper's algorithm": ([fits_of(rows, "rows", name) for name in names], 0.8),
        "SVC": ([[row for row in mine if (row["set"], row["C"]) == pair] for pair in SET_COSTS.items()], 1.7),
        "at the best C": ([chosen(rows, name) for name in names], 1.0),
        "pairs": ([fits_of(rows, "rows", name, PAIRS) for name in names], 0.8),
    }
    figure, [panels] = plots.panels(1, len(groups), width=2.6, height=2.3)
    for axes, (title, (lines, exponent)) in zip(panels, groups.items(), strict=True):
        for place, group in enumerate(lines, start=1):
            group = sorted(group, key=lambda row: row["n"])
            look = style(place) | {"marker": plots.MARKERS[place]}
            axes.plot([row["n"] for row in group], [row["seconds"] for row in group], **look)
        points = [(row["n"], row["seconds"]) for row in lines[0]]
        if points:
            guide(axes, points, exponent)
        axes.set(xscale="log", yscale="log", xlabel="n")
        axes.set_title(title)
        plots.plain_ticks(axes.yaxis)
    panels[0].set_ylabel("seconds")
    handles = [Line2D([], [], marker=plots.MARKERS[k], label=name, **style(k)) for k, name in enumerate(names, start=1)]
    handles.append(Line2D([], [], color="#888888", linestyle="--", label="slope in the paper"))
    plots.legend_on_top(figure, handles, 4)
    plots.save(figure, path)


def picture_of_epsilon(rows: list[Row], path: Path) -> None:
    """Figures 5 and 6."""
    grid_picture(rows, path, "epsilon", "accuracy", [(CLASSES, "iterations", -0.3), (CLASSES, "seconds", -0.4)])


def picture_of_costs(rows: list[Row], path: Path) -> None:
    """Figures 8 and 9."""
    plan: Plan = [(task, what, slope) for what, slope in (("iterations", 0.5), ("seconds", None)) for task in TASKS]
    grid_picture(rows, path, "cost", "C", plan)


PICTURES = {
    "figure1": Picture("joachims-rows.png", "Seconds and iterations against the number of rows", picture_of_sizes),
    "figure1-best-C": Picture("joachims-panels.png", "The four panels of figure 1", picture_of_panels),
    "figure5": Picture("joachims-epsilon.png", "Iterations and seconds against epsilon", picture_of_epsilon),
    "figure8": Picture("joachims-cost.png", "Iterations and seconds against C", picture_of_costs),
}
