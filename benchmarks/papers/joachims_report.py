"""The tables and pictures of joachims.py, made from its CSV, with the paper's figures beside ours.

A figure of the paper's that is only in one of its pictures cannot be given; what its text says is quoted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import paper
import plots
from arnosti_report import style
from binary_report import markdown
from paper import Picture, publish

Row = dict[str, Any]
Plan = list[tuple[str, str, float | None]]  # a panel's task, measure and the paper's slope
TASKS = CLASSES, PAIRS = "classification", "ordinal"
PAPER, DEFAULT, TIGHT = "paper", "default", "tight"
TEXT = {"experiment", "set", "task", "solver", "status", "message"}
EPSILON = 1e-3  # the paper's, where it does not vary
# Table 1 and section 4.1: CPU seconds of SVM-perf and SVM-light on a 3.6 GHz Xeon of 2006, by rows and task.
TIMES = {
    ("covtype", 522_911, CLASSES): ("171.7", "25,514.3"),
    ("covtype", 522_911, PAIRS): ("1,109.1", ""),
    ("a9a", 32_561, CLASSES): ("3.1", ""),
    ("w8a", 49_749, CLASSES): ("7.6", ""),
}
# The sets of table 1 that are not here: rows, features, SVM-perf and SVM-light, SVM-perf with pairs.
ABSENT = {
    "Reuters CCAT": ("804,414", "47,236", "149.7", "20,075.5", "304.1"),
    "Reuters C11": ("804,414", "47,236", "178.9", "5,187.4", "499.1"),
    "Arxiv astro-ph": ("62,369", "99,757", "16.9", "80.1", "26.1"),
    "KDD04 Physics": ("150,000", "78", "31.9", "1,040.2", "132.5"),
}
LABELS = {PAPER: "the paper's algorithm", DEFAULT: "default"}


def fits(rows: list[Row], **wanted: Any) -> list[Row]:
    """The fits that ran and have the wanted values."""
    good = [row for row in rows if row["iterations"] != ""]
    return [row for row in good if all(row[key] == value for key, value in wanted.items())]


def along(row: Row, x: str) -> float:
    """Where a fit stands on an axis: the paper gives powers of 1 / epsilon."""
    return float(1 / row[x] if x == "accuracy" else row[x])


def slope(rows: list[Row], x: str, what: str, upper: bool = False) -> float:
    """The exponent in `what ~ x^slope`, over all fits that ended or the upper half of them."""
    good = sorted((along(row, x), row[what]) for row in rows if row["ended"] and row[what] > 0)
    good = good[len(good) // 2 :] if upper else good
    return float(np.polyfit(*np.log(good).T, 1)[0]) if len(good) > 1 else math.nan


def number(value: float, form: str = ".2f") -> str:
    return "" if math.isnan(value) else f"{value:{form}}"


def bracket(row: Row, text: str) -> str:
    """The text, in brackets when the fit did not end by its own rule."""
    return text if row["ended"] else f"({text})"


def seconds(row: Row) -> str:
    return bracket(row, f"{row['seconds']:.3g}")


def percent(value: Any) -> str:
    return "" if value == "" else f"{100 * value:.2f}"


def times(rows: list[Row]) -> list[str]:
    """Table 1."""
    lines = []
    found = fits(rows, experiment="table1")
    for name, n, d, task, C in dict.fromkeys((r["set"], r["n"], r["d"], r["task"], r["C"]) for r in found):
        mine = {row["solver"]: row for row in found if (row["set"], row["n"], row["task"]) == (name, n, task)}
        cells = [name, f"{n:,.0f}", f"{d:.0f}", f"{C:g}", task, *TIMES.get((name, int(n), task), ("", ""))]
        for solver in (PAPER, DEFAULT):
            row = mine.get(solver)
            cells += [seconds(row), f"{row['iterations']:.0f}", f"{row['gap']:.0e}"] if row else ["", "", ""]
        lines.append([*cells, over(mine.get(PAPER), mine.get(DEFAULT))])
    for name, (n, d, perf, light, pairs) in ABSENT.items():
        lines.append([name, n, d, "", CLASSES, perf, light, "not here", *[""] * 6])
        lines.append([name, n, d, "", PAIRS, pairs, "", "not here", *[""] * 6])
    head = ["set", "rows", "features", "C", "task", "SVM-perf, 2006, s", "SVM-light, 2006, s"]
    head += ["its algorithm, s", "iterations", "gap", "default, s", "iterations", "gap", "its algorithm / default"]
    return markdown(head, lines)


def over(one: Row | None, other: Row | None) -> str:
    """A ratio of times; none where one of the two did not end."""
    if one is None or other is None or not (one["ended"] and other["ended"]):
        return ""
    return f"{one['seconds'] / other['seconds']:.1f}"


def quality(rows: list[Row]) -> list[str]:
    """Accuracy and ROC area on held-out rows, at the settings of table 1."""
    lines = []
    for row in fits(rows, experiment="table1"):
        if row["test_area"] != "":
            cells = [row["set"], f"{row['n']:,.0f}", f"{row['test_rows']:,.0f}", row["task"], LABELS[row["solver"]]]
            lines.append([*cells, bracket(row, percent(row["test_accuracy"])), percent(row["test_area"])])
    return markdown(["set", "rows", "test rows", "task", "solver", "accuracy, %", "ROC area, %"], lines)


def lines_of(rows: list[Row], experiment: str) -> dict[tuple[str, str, str], list[Row]]:
    """The fits of each line of a figure: set, task and solver."""
    found = [row for row in fits(rows, experiment=experiment) if row["solver"] != TIGHT]
    keys = dict.fromkeys((row["set"], row["task"], row["solver"]) for row in found)
    return {key: fits(found, set=key[0], task=key[1], solver=key[2]) for key in keys}


def growth(rows: list[Row], experiment: str, x: str, what: str, paper: dict[str, str], form: str) -> list[str]:
    """A line per set, task and solver: the value at each x, the slopes, and the paper's slope by task."""
    groups = lines_of(rows, experiment)
    places = sorted({row[x] for group in groups.values() for row in group})
    lines = []
    for (name, task, solver), group in groups.items():
        at = {row[x]: bracket(row, f"{row[what]:{form}}") for row in group}
        size = [] if x == "n" else [f"{group[0]['n']:,.0f}"]
        cells = [name, *size, task, LABELS[solver], *(at.get(place, "") for place in places)]
        slopes = [number(slope(group, x, what, upper)) for upper in (False, True)]
        lines.append([*cells, *slopes, paper.get(task, "") if (name, solver) == ("covtype", PAPER) else ""])
    shown = [f"{place:,.0f}" if x == "n" else f"{place:g}" for place in places]
    head = ["set", *([] if x == "n" else ["rows"]), "task", "solver", *shown]
    return markdown([*head, "slope", "upper half", "paper"], lines)


def by_size(rows: list[Row]) -> list[str]:
    """Figure 1."""
    paper = {CLASSES: "0.8", PAIRS: "a little above 0.8"}
    return growth(rows, "rows", "n", "seconds", paper, ".3g")


def steps_by_size(rows: list[Row]) -> list[str]:
    """Figure 2."""
    return growth(rows, "rows", "n", "iterations", {CLASSES: "0 or below", PAIRS: "as classification"}, ".0f")


def differences(rows: list[Row]) -> list[str]:
    """Figure 4: accuracy less that at the paper's epsilon, in percentage points."""
    lines = []
    groups = {key: group for key, group in lines_of(rows, "epsilon").items() if key[2] == PAPER}
    places = sorted({row["accuracy"] for group in groups.values() for row in group})
    for (name, _, _), group in groups.items():
        lines.append([name, *(points_of(group, place) for place in places)])
    return markdown(["set", *(f"{place:g}" for place in places)], lines)


def points_of(group: list[Row], place: float) -> str:
    """The accuracy at one epsilon less that at the paper's."""
    at = {row["accuracy"]: row for row in group if row["test_accuracy"] != ""}
    if place not in at or EPSILON not in at:
        return ""
    difference = 100 * (at[place]["test_accuracy"] - at[EPSILON]["test_accuracy"])
    return bracket(at[place], f"{difference:+.2f}")


def steps_by_epsilon(rows: list[Row]) -> list[str]:
    """Figure 5."""
    return growth(rows, "epsilon", "accuracy", "iterations", {CLASSES: "0.3"}, ".0f")


def by_epsilon(rows: list[Row]) -> list[str]:
    """Figure 6."""
    return growth(rows, "epsilon", "accuracy", "seconds", {CLASSES: "0.4"}, ".3g")


def distances(rows: list[Row], experiment: str, x: str) -> list[str]:
    """Figure 7: how far the reduced problem's value, and F of the answer, are from the optimum, relative to it."""
    lines = []
    for row in fits(rows, experiment=experiment, solver=PAPER, task=CLASSES):
        best = optimum(rows, row)
        if best is None:
            continue
        low, high = best
        below, above = (high - row["lower"]) / high, max(0.0, row["objective"] - low) / high
        lines.append([row["set"], f"{row[x]:g}", bracket(row, f"{below:.1e}"), f"{above:.1e}"])
    return markdown(["set", "epsilon" if x == "accuracy" else x, "the paper's measure", "F of the answer"], lines)


def optimum(rows: list[Row], like: Row) -> tuple[float, float] | None:
    """Bounds on the optimum of a fit's problem, from the tight fit."""
    found = fits(rows, set=like["set"], task=like["task"], n=like["n"], C=like["C"], solver=TIGHT)
    return (found[0]["lower"], found[0]["objective"]) if found else None


def beside_tight(rows: list[Row]) -> list[str]:
    """Figure 3, with a tight fit of ours in SVM-light's place: accuracy of the paper's algorithm less that."""
    lines = []
    found = fits(rows, experiment="cost", task=CLASSES)
    places = sorted({row["C"] for row in found})
    for name in dict.fromkeys(row["set"] for row in found):
        mine = {(row["solver"], row["C"]): row for row in found if row["set"] == name and row["test_accuracy"] != ""}
        cells = []
        for C in places:
            one, other = mine.get((PAPER, C)), mine.get((TIGHT, C))
            both = one is not None and other is not None
            cells.append(f"{100 * (one['test_accuracy'] - other['test_accuracy']):+.2f}" if both else "")
        lines.append([name, *cells])
    return markdown(["set", *(f"C = {C:g}" for C in places)], lines)


def steps_by_cost(rows: list[Row]) -> list[str]:
    """Figure 8."""
    return growth(rows, "cost", "C", "iterations", {CLASSES: "0.5", PAIRS: "similar"}, ".0f")


def by_cost(rows: list[Row]) -> list[str]:
    """Figure 9."""
    return growth(rows, "cost", "C", "seconds", {CLASSES: "below 1"}, ".3g")


# What the page of the documentation has places for, and the experiment behind it.
TABLES: dict[str, tuple[str, Callable[[list[Row]], list[str]]]] = {
    "table1": ("table1", times),
    "quality": ("table1", quality),
    "figure1": ("rows", by_size),
    "figure2": ("rows", steps_by_size),
    "figure3": ("cost", beside_tight),
    "figure4": ("epsilon", differences),
    "figure5": ("epsilon", steps_by_epsilon),
    "figure6": ("epsilon", by_epsilon),
    "figure7-C": ("cost", lambda rows: distances(rows, "cost", "C")),
    "figure7-epsilon": ("epsilon", lambda rows: distances(rows, "epsilon", "accuracy")),
    "figure8": ("cost", steps_by_cost),
    "figure9": ("cost", by_cost),
}


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
    plots.legend_on_top(figure, handles, len(handles))
    plots.save(figure, path)


def picture_of_sizes(rows: list[Row], path: Path) -> None:
    """Figures 1 and 2."""
    plan: Plan = [(task, what, slope) for what, slope in (("seconds", 0.8), ("iterations", 0.0)) for task in TASKS]
    grid_picture(rows, path, "rows", "n", plan)


def picture_of_epsilon(rows: list[Row], path: Path) -> None:
    """Figures 5 and 6."""
    grid_picture(rows, path, "epsilon", "accuracy", [(CLASSES, "iterations", -0.3), (CLASSES, "seconds", -0.4)])


def picture_of_costs(rows: list[Row], path: Path) -> None:
    """Figures 8 and 9."""
    plan: Plan = [(task, what, slope) for what, slope in (("iterations", 0.5), ("seconds", None)) for task in TASKS]
    grid_picture(rows, path, "cost", "C", plan)


PICTURES = {
    "figure1": Picture("joachims-rows.png", "Seconds and iterations against the number of rows", picture_of_sizes),
    "figure5": Picture("joachims-epsilon.png", "Iterations and seconds against epsilon", picture_of_epsilon),
    "figure8": Picture("joachims-cost.png", "Iterations and seconds against C", picture_of_costs),
}


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, pictures in its folder."""
    rows = paper.read(path, TEXT)
    there = {row["experiment"] for row in rows if row["iterations"] != ""}
    tables = {name: table(rows) for name, (experiment, table) in TABLES.items() if experiment in there}
    publish(path, docs, "Joachims (2006)", tables, PICTURES, rows)
