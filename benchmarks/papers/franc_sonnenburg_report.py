"""The tables and pictures of franc_sonnenburg.py, made from its CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

import paper
import plots
from arnosti_report import curve, style
from binary_report import markdown
from paper import Picture, publish

Row = dict[str, Any]
TEXT = {"experiment", "set", "solver", "status", "message"}
PARTS = {
    "scores": "scores (output computation)",
    "planes": "planes",
    "line_search": "line search",
    "qp": "reduced problem",
    "descent": "descent",
    "sift": "sifting",
}
NEAR = (1e-1, 1e-2, 1e-3, 1e-4)  # how far above the best bound, relative


def decade(Cn: float) -> str:
    """1e4, as all of these C n are."""
    return f"{Cn:.0e}".replace("e+0", "e")


def read(path: Path) -> list[Row]:
    return paper.read(path, TEXT)


def of(rows: list[Row], experiment: str, **more: Any) -> list[Row]:
    """The fits of an experiment that ran, with these values."""
    mine = [row for row in rows if row["experiment"] == experiment and row["seconds"] != ""]
    return [row for row in mine if all(row[key] == value for key, value in more.items())]


def different(rows: list[Row], key: str) -> list[Any]:
    """The values of a column, in their order."""
    return list(dict.fromkeys(row[key] for row in rows))


def bracket(rows: list[Row], text: str) -> str:
    """The text, in brackets when a fit was ended by the time limit."""
    return text if all(row["ended"] for row in rows) else f"({text})"


def best_bound(rows: list[Row]) -> float:
    """The highest lower bound of fits of one problem."""
    return max(row["lower"] for row in rows if row["lower"] != "")


def excess(objective: float, bound: float) -> str:
    """How far at most above the optimum, relative."""
    return f"{max(0.0, objective / bound - 1.0):.0e}" if bound > 0.0 else ""


def at_best_cost(rows: list[Row]) -> list[str]:
    """Table 2 of the paper: time and objective."""
    lines = []
    for name in different(of(rows, "training"), "set"):
        mine = of(rows, "training", set=name)
        bound = best_bound(mine)
        for solver in different([row for row in mine if row["solver"] != "bound"], "solver"):
            found = [row for row in mine if row["solver"] == solver]
            row = found[-1]
            work = "" if row["iterations"] == "" else f"{row['iterations']:.0f}"
            seconds = bracket(found, f"{median(r['seconds'] for r in found):.2f}")
            cells = [name, f"{row['n']:.0f}", decade(row["Cn"]), solver, seconds, work, f"{row['objective']:.6g}"]
            lines.append([*cells, excess(row["objective"], bound), f"{100 * row['test']:.2f}"])
    return markdown(["set", "n", "C n", "solver", "s", "iterations", "objective", "excess", "test area, %"], lines)


def time_to(found: list[Row], target: float) -> str:
    """Seconds to an objective; - where it was not reached."""
    times = [row["seconds"] for row in found if row["objective"] <= target]
    return f"{min(times):.2f}" if times else "-"


def by_time(rows: list[Row]) -> list[str]:
    """Figure 2 as a table: seconds until the objective is near the best bound."""
    lines = []
    mine = of(rows, "convergence")
    for name, Cn in dict.fromkeys((row["set"], row["Cn"]) for row in mine):
        here = [row for row in mine if (row["set"], row["Cn"]) == (name, Cn)]
        bound = best_bound(here)
        for solver in different(here, "solver"):
            found = [row for row in here if row["solver"] == solver]
            last = excess(min(row["objective"] for row in found), bound)
            cells = [time_to(found, bound * (1.0 + near)) for near in NEAR]
            lines.append([name, decade(Cn), solver, *cells, last])
    return markdown(["set", "C n", "solver", *(f"s to {near:g}" for near in NEAR), "excess at the end"], lines)


def by_selection(rows: list[Row]) -> list[str]:
    """Table 3 of the paper: time for all C, and what was chosen by the rows held out."""
    lines = []
    for name in different(of(rows, "selection"), "set"):
        mine = of(rows, "selection", set=name)
        costs = different(mine, "Cn")
        for solver in different(mine, "solver"):
            found = [row for row in mine if row["solver"] == solver]
            chosen = max(found, key=lambda row: (row["valid"], -row["Cn"]))
            seconds = bracket(found, f"{sum(row['seconds'] for row in found):.2f}")
            some = "" if len(found) == len(costs) else f" ({len(found)} of {len(costs)} C)"
            cells = [name, solver + some, seconds, f"{max(row['seconds'] for row in found):.2f}", decade(chosen["Cn"])]
            if solver.endswith("path"):
                cells[3] = ""
            lines.append([*cells, f"{100 * chosen['valid']:.2f}", f"{100 * chosen['test']:.2f}"])
    return markdown(["set", "solver", "s, all C", "s, slowest C", "C n chosen", "valid area, %", "test area, %"], lines)


def growth(found: list[Row]) -> float:
    """The exponent k of seconds ~ n^k over the rows from 10,000 on, or all there are."""
    large = [row for row in found if row["n"] >= 10_000] or found
    if len(large) < 2:
        return float("nan")
    return float(np.polyfit(np.log([row["n"] for row in large]), np.log([row["seconds"] for row in large]), 1)[0])


def by_rows(rows: list[Row]) -> list[str]:
    """Figure 3 as a table: seconds and iterations against n."""
    text: list[str] = []
    for name in different(of(rows, "scaling"), "set"):
        mine = of(rows, "scaling", set=name)
        sizes = different(mine, "n")
        lines = []
        for solver in different(mine, "solver"):
            found = [row for row in mine if row["solver"] == solver]
            cells = [bracket([row], f"{row['seconds']:.3f}") for row in found]
            lines.append([solver, *cells, f"{growth(found):.2f}"])
            if found[0]["iterations"] != "":
                lines.append([f"{solver}: iterations", *(f"{row['iterations']:.0f}" for row in found), ""])
        text += markdown([f"{name}, s", *(f"n = {n:.0f}" for n in sizes), "s ~ n^k, k"], lines)
    return text


def by_threads(rows: list[Row]) -> list[str]:
    """Table 4 of the paper: seconds by part, and one thread's time over that of all."""
    lines = []
    mine = of(rows, "threads")
    if not mine:
        return []
    few, many = min(row["jobs"] for row in mine), max(row["jobs"] for row in mine)
    for name, solver in dict.fromkeys((row["set"], row["solver"]) for row in mine):
        found = [row for row in mine if (row["set"], row["solver"]) == (name, solver)]
        keys = {f"seconds_{part}": words for part, words in PARTS.items()} | {"seconds": "all"}
        for key, words in keys.items():
            one, more = (median(row[key] for row in found if row["jobs"] == jobs) for jobs in (few, many))
            if max(one, more) < 5e-4 and key != "seconds":
                continue
            ratio = f"{one / more:.2f}" if more > 0.0 else ""
            lines.append([name, solver, words, bracket(found, f"{one:.3f}"), bracket(found, f"{more:.3f}"), ratio])
    return markdown(["set", "solver", "part", f"{few:.0f} thread, s", f"{many:.0f} threads, s", "speed-up"], lines)


def by_shortcut(rows: list[Row]) -> list[str]:
    """Iterations and seconds of the paper's algorithm and with short cuts: median, least and most over the subsets."""
    lines = []
    mine = of(rows, "shortcuts")
    for epsilon in sorted({row["epsilon"] for row in mine}, reverse=True):
        here = [row for row in mine if row["epsilon"] == epsilon]
        exact = {row["round"]: row for row in here if row["solver"] == "ocas"}
        for solver in different(here, "solver"):
            found = [row for row in here if row["solver"] == solver]
            label = "the paper's algorithm" if solver == "ocas" else solver
            cells = [f"{epsilon:g}", label, spread([row["iterations"] for row in found], ".0f")]
            cells.append(spread([row["iterations"] / exact[row["round"]]["iterations"] for row in found], ".2f"))
            cells.append(spread([row["seconds"] / exact[row["round"]]["seconds"] for row in found], ".2f"))
            cells += [spread([row["planes"] for row in found], ".0f"), f"{median(row['gap'] for row in found):.1e}"]
            lines.append([*cells, str(len(found))])
    head = ["epsilon / C", "solver", "iterations", "of the paper's", "seconds, of the paper's", "planes at the end"]
    return markdown([*head, "gap", "subsets"], lines)


def spread(values: list[float], form: str) -> str:
    """The median, and the least and the most."""
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


TABLES: dict[str, Callable[[list[Row]], list[str]]] = {
    "shortcuts": by_shortcut,
    "training": at_best_cost,
    "convergence": by_time,
    "selection": by_selection,
    "scaling": by_rows,
    "threads": by_threads,
}


def picture_of_convergence(rows: list[Row], path: Path) -> None:
    """Figure 2: how far above the best bound, against time; one column a set, one row a C."""
    mine = of(rows, "convergence")
    sets, solvers = different(mine, "set"), different(mine, "solver")
    figure, grid = plots.panels(2, len(sets), width=3.0, height=2.2)
    for column, name in enumerate(sets):
        for line, Cn in enumerate(sorted({row["Cn"] for row in mine if row["set"] == name})):
            axes = grid[line][column]
            here = [row for row in mine if (row["set"], row["Cn"]) == (name, Cn)]
            bound = best_bound(here)
            for place, solver in enumerate(solvers):
                found = [row for row in here if row["solver"] == solver and row["seconds"] > 0.0]
                above = [max(row["objective"] / bound - 1.0, 1e-7) for row in found]
                axes.plot([row["seconds"] for row in found], above, color=plots.SERIES[place], linewidth=1.4)
            axes.set(xscale="log", yscale="log", ylim=(1e-6, 10.0))
            axes.set_title(f"{name}, C n = {decade(Cn)}")
            plots.plain_ticks(axes.xaxis)
    for axes in grid[-1]:
        axes.set_xlabel("seconds")
    for line in grid:
        line[0].set_ylabel("F / bound - 1")
    handles = [Line2D([], [], color=plots.SERIES[k], label=solver) for k, solver in enumerate(solvers)]
    plots.legend_on_top(figure, handles, len(handles))
    plots.save(figure, path)


def picture_of_scaling(rows: list[Row], path: Path) -> None:
    """Figure 3: seconds against n; hollow where the time limit came first."""
    mine = of(rows, "scaling")
    sets, solvers = different(mine, "set"), different(mine, "solver")
    figure, [panels] = plots.panels(1, len(sets), width=4.2, height=2.6)
    for axes, name in zip(panels, sets, strict=True):
        for place, solver in enumerate(solvers):
            found = [row for row in mine if (row["set"], row["solver"]) == (name, solver)]
            curve(axes, found, "n", "seconds", place)
        axes.set(xscale="log", yscale="log", xlabel="n")
        axes.set_title(name)
        plots.plain_ticks(axes.xaxis)
        plots.plain_ticks(axes.yaxis)
    panels[0].set_ylabel("seconds")
    handles = [Line2D([], [], marker=plots.MARKERS[k], label=name, **style(k)) for k, name in enumerate(solvers)]
    plots.legend_on_top(figure, handles, len(handles))
    plots.save(figure, path)


PICTURES = {
    "convergence": Picture("franc_sonnenburg-convergence.png", "Objective against time", picture_of_convergence),
    "scaling": Picture("franc_sonnenburg-scaling.png", "Seconds against the number of rows", picture_of_scaling),
}


def fit(rows: list[Row], name: str, solver: str) -> Row:
    """A fit at the best C; its seconds are the median."""
    found = of(rows, "training", set=name, solver=solver)
    return found[-1] | {"seconds": median(row["seconds"] for row in found)}


def more(rows: list[Row], name: str, what: str, one: str, other: str) -> str:
    """How many times the iterations or seconds of one solver are those of another at the best C."""
    a, b = fit(rows, name, one), fit(rows, name, other)
    return bracket([a, b], f"{a[what] / b[what]:.1f}")


def from_to(values: list[float], form: str) -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def ratio(rows: list[Row], solver: str, epsilon: float, what: str) -> str:
    """Iterations or seconds with short cuts over those of the paper's algorithm on the same rows, the median."""
    mine = [row for row in of(rows, "shortcuts") if row["epsilon"] == epsilon]
    exact = {row["round"]: row for row in mine if row["solver"] == "ocas"}
    return f"{median(row[what] / exact[row['round']][what] for row in mine if row['solver'] == solver):.2f}"


def area_spread(rows: list[Row]) -> str:
    """By how many points the areas of our solvers that ended differ, at most, on any set."""
    found = []
    for name in different(of(rows, "training"), "set"):
        mine = [row for row in of(rows, "training", set=name) if row["solver"] in OURS and row["ended"]]
        found.append(100 * (max(row["test"] for row in mine) - min(row["test"] for row in mine)))
    return f"{max(found):.2f}"


def many_rows(rows: list[Row], name: str, solver: str, least: int = 10_000) -> list[float]:
    """Iterations from this number of rows on."""
    return [row["iterations"] for row in of(rows, "scaling", set=name, solver=solver) if row["n"] >= least]


OURS = ("cutsvm", "ocas", "cpa", "ocas, short cuts")
# The figures within sentences of the page.
SENTENCES: dict[str, Callable[[list[Row]], str]] = {
    **{
        f"{solver}-{what}-{name}": lambda rows, solver=solver, what=what, name=name, form=form: bracket(
            [fit(rows, name, solver)], f"{fit(rows, name, solver)[what]:{form}}"
        )
        for name in ("covtype", "mnist", "arxiv", "artificial")
        for solver in ("ocas", "cpa")
        for what, form in (("iterations", ".0f"), ("seconds", ".2f"))
    },
    **{
        f"sgd-{name}": lambda rows, name=name: excess(
            fit(rows, name, "SGD")["objective"], best_bound(of(rows, "training", set=name))
        )
        for name in ("covtype", "artificial")
    },
    **{
        f"{what}-excess-{name}": lambda rows, what=what, name=name: excess(
            fit(rows, name, what)["objective"], best_bound(of(rows, "training", set=name))
        )
        for name in ("covtype", "mnist", "arxiv", "artificial")
        for what in ("ocas", "cpa")
    },
    **{
        f"faster-{name}": lambda rows, name=name: more(rows, name, "seconds", "ocas", "cutsvm")
        for name in ("covtype", "mnist", "arxiv", "artificial")
    },
    "areas": area_spread,
    "covtype-iterations": lambda rows: from_to(many_rows(rows, "covtype", "ocas"), ".0f"),
    "covtype-iterations-cpa": lambda rows: from_to(many_rows(rows, "covtype", "cpa"), ".0f"),
    "covtype-objective": lambda rows: f"{fit(rows, 'covtype', 'ocas')['objective']:,.0f}",
    "one-shard-1e-3": lambda rows: ratio(rows, "both, one shard", 1e-3, "iterations"),
    "one-shard-seconds-1e-3": lambda rows: ratio(rows, "both, one shard", 1e-3, "seconds"),
    "shards-1e-3": lambda rows: ratio(rows, "both, shards", 1e-3, "iterations"),
    "shards-seconds-1e-3": lambda rows: ratio(rows, "both, shards", 1e-3, "seconds"),
    "dropped-1e-3": lambda rows: ratio(rows, "planes dropped", 1e-3, "iterations"),
}


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, the pictures in its folder."""
    rows = read(path)
    there = {row["experiment"] for row in rows if row["seconds"] != ""}
    tables = {name: table(rows) for name, table in TABLES.items() if name in there}
    publish(path, docs, "Franc and Sonnenburg (2008)", tables, PICTURES, rows, paper.computed(SENTENCES, rows))
