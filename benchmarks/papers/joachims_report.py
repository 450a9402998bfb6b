"""What joachims.py publishes: its tables, its pictures, and the figures within sentences of the page."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import median

import paper
from joachims_pictures import PICTURES
from joachims_tables import (
    CLASSES,
    DEFAULT,
    EPSILON,
    PAIRS,
    PAPER,
    SET_COSTS,
    TABLES,
    TEXT,
    Row,
    chosen,
    fits,
    fits_of,
    largest,
    measured,
    number,
    optimum,
    percent,
    seconds,
    slope,
    spread,
)
from paper import publish


def from_to(values: list[float], form: str) -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def errors(rows: list[Row], name: str) -> tuple[list[float], list[float]]:
    """Figure 7 at epsilon = 0.001, over all C: how far below the optimum the reduced problem is, and F above."""
    below, above = [], []
    for row in fits_of(rows, "cost", name):
        low, high = optimum(rows, row) or (math.nan, math.nan)
        below.append((high - row["lower"]) / high)
        above.append(max(0.0, row["objective"] - low) / high)
    return below, above


def epsilon_points(rows: list[Row]) -> str:
    """The largest change of the paper's measure, in points, for epsilon up to 0.01 instead of 0.001."""
    changes = []
    for name in SET_COSTS:
        at = {row["accuracy"]: row for row in fits_of(rows, "epsilon", name)}
        changes += [abs(measured(at[e]) - measured(at[EPSILON])) for e in at if e <= 0.01]
    return f"{100 * max(changes):.2f}"


def shortcut_ratio(rows: list[Row], solver: str, epsilon: float, what: str) -> str:
    """Iterations or seconds with a short cut over those of the paper's algorithm on the same rows."""
    mine = [row for row in fits(rows, experiment="shortcuts") if row["accuracy"] == epsilon]
    exact = {row["seed"]: row for row in mine if row["solver"] == PAPER}
    ratios = [row[what] / exact[row["seed"]][what] for row in mine if row["solver"] == solver]
    return f"{median(ratios):.2f}"


def shortcut_count(rows: list[Row], solver: str, epsilon: float) -> str:
    mine = [row for row in fits(rows, experiment="shortcuts") if (row["accuracy"], row["solver"]) == (epsilon, solver)]
    return spread([row["iterations"] for row in mine], ".0f")


ONE_SHARD, DROPPED, LOOSE = "both, one shard", "planes dropped", "loose reduced problem"
# The figures within sentences of the page.
SENTENCES: dict[str, Callable[[list[Row]], str]] = {
    "iterations": lambda rows: from_to([row["iterations"] for row in fits_of(rows, "rows")], ".0f"),
    "iterations-slope": lambda rows: number(slope(fits_of(rows, "rows"), "n", "iterations")),
    "iterations-slope-pairs": lambda rows: number(slope(fits_of(rows, "rows", task=PAIRS), "n", "iterations")),
    "seconds-slope": lambda rows: number(slope(fits_of(rows, "rows"), "n", "seconds")),
    "seconds-slope-pairs": lambda rows: number(slope(fits_of(rows, "rows", task=PAIRS), "n", "seconds")),
    "seconds-slope-upper": lambda rows: number(slope(fits_of(rows, "rows"), "n", "seconds", True)),
    "seconds-slope-pairs-upper": lambda rows: number(slope(fits_of(rows, "rows", task=PAIRS), "n", "seconds", True)),
    "epsilon-slope": lambda rows: number(slope(fits_of(rows, "epsilon"), "accuracy", "iterations")),
    "cost-slope": lambda rows: number(slope(fits_of(rows, "cost"), "C", "iterations")),
    "cost-slope-upper": lambda rows: number(slope(fits_of(rows, "cost"), "C", "iterations", True)),
    "epsilon-points": epsilon_points,
    "below-covtype": lambda rows: from_to(errors(rows, "covtype")[0], ".1e"),
    "below-arxiv": lambda rows: from_to(errors(rows, "arxiv")[0], ".1e"),
    "below-kdd": lambda rows: from_to(errors(rows, "kdd04_bio")[0], ".1e"),
    "above-kdd": lambda rows: from_to(errors(rows, "kdd04_bio")[1], ".1e"),
    "pairs-over-classes": lambda rows: (
        f"{largest(rows, PAIRS, PAPER)['seconds'] / largest(rows, CLASSES, PAPER)['seconds']:.1f}"
    ),
    "ordinal-seconds": lambda rows: seconds(largest(rows, PAIRS, PAPER)),
    "ordinal-default-seconds": lambda rows: seconds(largest(rows, PAIRS, DEFAULT)),
    "classes-seconds": lambda rows: seconds(largest(rows, CLASSES, PAPER)),
    "classes-iterations": lambda rows: f"{largest(rows, CLASSES, PAPER)['iterations']:.0f}",
    "classes-objective": lambda rows: f"{largest(rows, CLASSES, PAPER)['objective']:,.0f}",
    "ordinal-iterations": lambda rows: f"{largest(rows, PAIRS, PAPER)['iterations']:.0f}",
    "ordinal-objective": lambda rows: f"{largest(rows, PAIRS, PAPER)['objective']:,.0f}",
    "area-pairs": lambda rows: percent(largest(rows, PAIRS, PAPER)["test_area"]),
    "area-classes": lambda rows: percent(largest(rows, CLASSES, PAPER)["test_area"]),
    "default-iterations": lambda rows: (
        f"{largest(rows, CLASSES, PAPER)['iterations'] / largest(rows, CLASSES, DEFAULT)['iterations']:.0f}"
    ),
    "best-cost-slope": lambda rows: number(slope(chosen(rows, "covtype"), "n", "seconds")),
    "paper-1e-2": lambda rows: shortcut_count(rows, PAPER, 1e-2),
    "paper-1e-3": lambda rows: shortcut_count(rows, PAPER, 1e-3),
    "ours-1e-2": lambda rows: shortcut_count(rows, ONE_SHARD, 1e-2),
    "ours-1e-3": lambda rows: shortcut_count(rows, ONE_SHARD, 1e-3),
    "dropped-1e-3": lambda rows: shortcut_count(rows, DROPPED, 1e-3),
    "loose-ratio-1e-3": lambda rows: shortcut_ratio(rows, LOOSE, 1e-3, "iterations"),
    "dropped-ratio-1e-3": lambda rows: shortcut_ratio(rows, DROPPED, 1e-3, "iterations"),
    "ours-ratio-1e-2": lambda rows: shortcut_ratio(rows, ONE_SHARD, 1e-2, "iterations"),
    "ours-ratio-1e-3": lambda rows: shortcut_ratio(rows, ONE_SHARD, 1e-3, "iterations"),
    "ours-seconds-1e-3": lambda rows: shortcut_ratio(rows, ONE_SHARD, 1e-3, "seconds"),
}


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, pictures in its folder."""
    rows = paper.read(path, TEXT)
    there = {row["experiment"] for row in rows if row["iterations"] != ""}
    tables = {name: table(rows) for name, (experiment, table) in TABLES.items() if experiment in there}
    publish(path, docs, "Joachims (2006)", tables, PICTURES, rows, paper.computed(SENTENCES, rows))
