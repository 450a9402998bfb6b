"""The tables and pictures of joachims.py, made from its CSV, with the paper's figures beside ours.

A figure of the paper's that is only in one of its pictures cannot be given; what its text says is quoted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
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
PAPER, DEFAULT, TIGHT, DECOMPOSITION = "paper", "default", "tight", "decomposition"
TEXT = {"experiment", "set", "task", "solver", "status", "message"}
TEXT_SETS = {"arxiv"}  # measured by the break-even point of precision and recall, as the paper's text sets are
STANDS_IN = {"arxiv": "arxiv, standing in for the text sets", "kdd04_bio": "kdd04_bio, for KDD04 Physics"}
EPSILON = 1e-3  # the paper's, where it does not vary
SET_COSTS = {"covtype": 1e6, "kdd04_bio": 2e4, "arxiv": 2e4}  # C of the figures against n
FEW = 3_000  # rows on which SVC is run at every C
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
LABELS = {PAPER: "the paper's algorithm", DEFAULT: "default", DECOMPOSITION: "SVC"}


def measured(row: Row) -> float | str:
    """The paper's measure of a set on the test rows: PRBEP of text, accuracy of others."""
    return row["test_prbep"] if row["set"] in TEXT_SETS else row["test_accuracy"]


def called(name: str) -> str:
    """A set's name, and which one of the paper's it stands in for."""
    return STANDS_IN.get(name, name)


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
        cells = [called(name), f"{n:,.0f}", f"{d:.0f}", f"{C:g}", task, *TIMES.get((name, int(n), task), ("", ""))]
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
            shown = [percent(row[f"test_{what}"]) for what in ("accuracy", "area", "prbep")]
            lines.append([*cells, bracket(row, shown[0]), *shown[1:]])
    return markdown(["set", "rows", "test rows", "task", "solver", "accuracy, %", "ROC area, %", "PRBEP, %"], lines)


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
    """Figure 4: accuracy, or PRBEP, less that at the paper's epsilon, in percentage points."""
    lines = []
    groups = {key: group for key, group in lines_of(rows, "epsilon").items() if key[2] == PAPER}
    places = sorted({row["accuracy"] for group in groups.values() for row in group})
    for (name, _, _), group in groups.items():
        lines.append([name, *(points_of(group, place) for place in places)])
    return markdown(["set", *(f"{place:g}" for place in places)], lines)


def points_of(group: list[Row], place: float) -> str:
    """The measure at one epsilon less that at the paper's."""
    at = {row["accuracy"]: row for row in group if row["test_accuracy"] != ""}
    if place not in at or EPSILON not in at:
        return ""
    difference = 100 * (measured(at[place]) - measured(at[EPSILON]))
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


def beside(rows: list[Row], experiment: str, other: str) -> list[str]:
    """Figure 3: accuracy, or PRBEP, of the paper's algorithm less that of another solver at the same C."""
    lines = []
    found = [row for row in fits(rows, experiment=experiment, task=CLASSES) if row["test_accuracy"] != ""]
    pairs = {(row["set"], row["n"], row["solver"], row["C"]): row for row in found}
    costs = sorted({row["C"] for row in found})
    for name, n in dict.fromkeys((row["set"], row["n"]) for row in found if row["solver"] == PAPER):
        cells = []
        for C in costs:
            one, two = pairs.get((name, n, PAPER, C)), pairs.get((name, n, other, C))
            cells.append(bracket(one, f"{100 * (measured(one) - measured(two)):+.2f}") if one and two else "")
        measure = "PRBEP" if name in TEXT_SETS else "accuracy"
        lines.append([called(name), f"{n:,.0f}", measure, *cells])
    return markdown(["set", "rows", "measure", *(f"C = {C:g}" for C in costs)], lines)


def by_decomposition(rows: list[Row]) -> list[str]:
    """Figure 1, second panel: seconds of SVC against n; where it was cut off."""
    lines = []
    mine = [row for row in rows if row["experiment"] == "decomposition" and row["solver"] == DECOMPOSITION]
    mine = [row for row in mine if row["C"] == (SET_COSTS.get(row["set"], row["C"]))]
    sizes = sorted({row["n"] for row in mine})
    for name in dict.fromkeys(row["set"] for row in mine):
        at = {row["n"]: row for row in mine if row["set"] == name}
        cells = [cut_off(at[n]) if n in at else "" for n in sizes]
        ended = [row for row in at.values() if row["ended"]]
        lines.append([called(name), *cells, number(slope(ended, "n", "seconds")), "1.7" if name == "covtype" else ""])
    return markdown(["set", *(f"{n:,.0f}" for n in sizes), "slope", "paper"], lines)


def cut_off(row: Row) -> str:
    """The seconds of a fit; what is known of one that was ended."""
    if row["ended"]:
        return f"{row['seconds']:.3g}"
    return f"> {row['limit']:.0f}" if row["message"].startswith("longer") else "not tried"


def by_decomposition_cost(rows: list[Row]) -> list[str]:
    """Figure 9, both panels on the same few rows: seconds against C."""
    lines = []
    mine = [row for row in rows if row["experiment"] == "decomposition" and row["n"] == FEW]
    costs = sorted({row["C"] for row in mine})
    for name, solver in dict.fromkeys((row["set"], row["solver"]) for row in mine):
        at = {row["C"]: row for row in mine if (row["set"], row["solver"]) == (name, solver)}
        cells = [cut_off(at[C]) if C in at else "" for C in costs]
        lines.append([called(name), LABELS[solver], *cells])
    return markdown(["set", "solver", *(f"C = {C:g}" for C in costs)], lines)


def chosen(rows: list[Row], name: str) -> list[Row]:
    """For each n the fit at the C that is best on the test rows; of equal ones the smallest C."""
    found = [row for row in fits(rows, experiment="best_cost", set=name) if row["test_accuracy"] != ""]
    best = []
    for n in sorted({row["n"] for row in found}):
        best.append(max((row for row in found if row["n"] == n), key=lambda row: (measured(row), -row["C"])))
    return best


def by_best_cost(rows: list[Row]) -> list[str]:
    """Figure 1, third panel."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in fits(rows, experiment="best_cost")):
        best = chosen(rows, name)
        for row in best:
            cells = [called(name), f"{row['n']:,.0f}", f"{row['C']:g}", percent(measured(row)), seconds(row)]
            lines.append([*cells, f"{row['iterations']:.0f}", "", ""])
        slopes = [number(slope(best, "n", "seconds", upper)) for upper in (False, True)]
        lines.append([called(name), "all", "", "", "", "", " / ".join(slopes), "1.0"])
    head = ["set", "rows", "best C", "accuracy or PRBEP, %", "s", "iterations", "slope / upper half", "paper"]
    return markdown(head, lines)


def by_shortcut(rows: list[Row]) -> list[str]:
    """Iterations and seconds of the paper's algorithm and with short cuts: median, least and most over the subsets."""
    lines = []
    mine = fits(rows, experiment="shortcuts")
    for epsilon in sorted({row["accuracy"] for row in mine}, reverse=True):
        exact = {row["seed"]: row for row in mine if row["accuracy"] == epsilon and row["solver"] == PAPER}
        for solver in dict.fromkeys(row["solver"] for row in mine):
            found = [row for row in mine if (row["accuracy"], row["solver"]) == (epsilon, solver)]
            cells = [f"{epsilon:g}", LABELS.get(solver, solver), spread([r["iterations"] for r in found], ".0f")]
            cells.append(spread([r["iterations"] / exact[r["seed"]]["iterations"] for r in found], ".2f"))
            cells.append(spread([r["seconds"] / exact[r["seed"]]["seconds"] for r in found], ".2f"))
            cells += [spread([r["planes"] for r in found], ".0f"), f"{median(r['gap'] for r in found):.1e}"]
            lines.append([*cells, str(len(found))])
    head = ["epsilon", "solver", "iterations", "of the paper's", "seconds, of the paper's", "planes at the end", "gap"]
    return markdown([*head, "subsets"], lines)


def spread(values: list[float], form: str) -> str:
    """The median, and the least and the most."""
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


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
    "figure1-decomposition": ("decomposition", by_decomposition),
    "figure1-best-C": ("best_cost", by_best_cost),
    "figure3": ("decomposition", lambda rows: beside(rows, "decomposition", DECOMPOSITION)),
    "figure3-tight": ("cost", lambda rows: beside(rows, "cost", TIGHT)),
    "figure4": ("epsilon", differences),
    "figure5": ("epsilon", steps_by_epsilon),
    "figure6": ("epsilon", by_epsilon),
    "figure7-C": ("cost", lambda rows: distances(rows, "cost", "C")),
    "figure7-epsilon": ("epsilon", lambda rows: distances(rows, "epsilon", "accuracy")),
    "figure8": ("cost", steps_by_cost),
    "figure9": ("cost", by_cost),
    "figure9-decomposition": ("decomposition", by_decomposition_cost),
    "shortcuts": ("shortcuts", by_shortcut),
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
