"""The tables and the picture of ranking.py, made from its CSVs."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import binary_report
import plots
from binary_report import OURS, Best, Line, markdown, nearness, number, own_solvers, peers, problems, ratio, summary

Row = dict[str, Any]
HEADER = [
    "# Ranking",
    "",
    "Seconds of training, and how far the answer is from our lower bound. Ours: until the gap is proved (the whole",
    "`fit`, all cores). A peer: the fastest of its settings whose answer is that good, proved or not, one thread; in",
    "brackets the closest that it came, or why it could not run. dlib has two levels: with more, every level is a",
    "problem of its own against the rows below, which are the same pairs and the same objective from more rows.",
    "scikit-learn has one row for every pair. A ratio below 1 is in our favour.",
    "",
]
LOSS = [
    "## One value of the loss",
    "",
    "Milliseconds of one evaluation (`Pairwise.count`: the loss and its slopes), one query; medians. The slope is",
    "the p of n^p from the first size to the last:",
    "n log n from 1e4 to 1e6 would be 1.09.",
    "",
]
QUALITY = [
    "## Quality on MQ2008",
    "",
    "Five folds of queries. C or alpha is chosen by the share of ordered pairs in three folds of the training part.",
    "Share of the pairs in order (a tie is a half), and NDCG@10 over the test queries with pairs: mean and standard",
    "deviation over the folds.",
    "",
]

ARRAYS = [
    "",
    "## From arrays",
    "",
    "Our times are of a whole `fit`, from the arrays that a user has; dlib's above are of its training alone. Its",
    "vectors are made of the arrays in Python first, row by row: the shortest of three times, in the process and the",
    "run that the times above are from. Ratios of the seconds summed over the lines of a set that both can do, and",
    "those of the lines:",
    "",
]


def read(path: Path) -> list[Row]:
    """The rows of a CSV with numbers where there are any; none without a file."""
    if not path.exists():
        return []
    with path.open() as file:
        return [{key: as_number(value) for key, value in row.items()} for row in csv.DictReader(file)]


def as_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def cell(found: Best | None) -> str:
    """Seconds and gap, or why there are none."""
    if found is not None and not found.reached and math.isinf(found.gap):
        reason = next((row["message"].partition(": ")[2] for row in found.runs if row["message"]), "")
        if reason:
            return f"({reason})"
    return binary_report.cell(found)


def line_cells(line: Line, rows: list[Row], own: list[str], names: list[str]) -> list[str]:
    first = rows[0]
    cells = [line.key[0], *(count(first[key]) for key in ("n", "queries", "levels", "pairs"))]
    cells += [f"{line.key[1]:g}", f"{line.gap:g}", *(cell(line.found.get(name)) for name in (*own, *names))]
    cells += [number(ratio(line.ours, line.found.get(name))) for name in names]
    wrong = line.ours.typical("error") if line.ours else math.nan
    return [*cells, *([number(line.to_own)] if len(own) > 1 else []), number(100 * wrong, ".2f")]


def count(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value:.2g}".replace("e+0", "e")


def times(rows: list[Row], gaps: list[float]) -> list[str]:
    """The table of all problems and gaps, and what it comes to."""
    own, names = own_solvers(rows), peers(rows)
    lines = [(Line(key, gap, group), group) for key, group in problems(rows).items() for gap in gaps]
    head = ["set", "rows", "queries", "levels", "pairs", "C", "gap", *(f"{OURS}, {name}" for name in own), *names]
    head += [f"{own[0]} / {name}" for name in (*names, *(["best own"] if len(own) > 1 else []))]
    head.append("pairs out of order, %")
    text = [f"Below our bound, which cannot be: {entry}." for entry in below(rows)]
    text = text or ["No answer lies below our bound."]
    text.append(f"Against the best peer of each line: {summary([line.to_peer for line, _ in lines])}.")
    for name in names:
        text.append(f"Against {name}: {summary([ratio(line.ours, line.found.get(name)) for line, _ in lines])}.")
        tried = [line.found[name] for line, _ in lines if name in line.found]
        text.append(f"{name} did not get there in {sum(not best.reached for best in tried)} of {len(tried)} lines.")
    if len(own) > 1:
        text.append(nearness(own[0], [line for line, _ in lines]).replace("C n =", "C ="))
    sentences = [part for sentence in text for part in (sentence, "")]
    return [*sentences, *markdown(head, [line_cells(line, group, own, names) for line, group in lines])]


def from_arrays(rows: list[Row], gaps: list[float]) -> list[str]:
    """Against dlib from the arrays that a user has: its vectors have to be made first."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for key, group in problems(rows).items():
        for line in (Line(key, gap, group) for gap in gaps):
            theirs, mine = line.found.get("dlib"), line.ours
            if mine and theirs and mine.reached and theirs.reached:
                found.setdefault(key[0], []).append((mine.seconds, theirs.seconds, theirs.typical("making")))
    lines, bare, whole = [], [], []
    for name, times in found.items():
        ours, training, making = np.array(times).T
        pairs = [(ours, training), (ours, training + making)]
        for sums, (a, b) in zip((bare, whole), pairs, strict=True):
            sums.append(a.sum() / b.sum())
        cells = [f"{a.sum() / b.sum():.2f} ({(a / b).min():.2f} to {(a / b).max():.2f})" for a, b in pairs]
        lines.append([name, f"{len(ours)}", f"{np.median(making):.3g}", *cells])
    every = [mine / (training + making) for times in found.values() for mine, training, making in times]
    head = ["set", "lines", "making dlib's vectors, s", "ours / its training", "ours / both"]
    text = [
        f"From arrays to a model, by line: {summary(every)}; by set, the lines of each summed: {summary(whole)}.",
        f"Against its training alone, by set: {summary(bare)}.",
    ]
    return [*ARRAYS, *(part for sentence in text for part in (sentence, "")), *markdown(head, lines), ""]


def below(rows: list[Row]) -> list[str]:
    """Answers below the lower bound of their problem."""
    return [
        f"{row['solver']} on {row['set']}, C = {row['Cn']:g}: {row['objective']:.9g} < {row['lower']:.9g}"
        for row in rows
        if row["objective"] != "" and row["objective"] < row["lower"] * (1 - 1e-9)
    ]


def loss(rows: list[Row]) -> list[str]:
    """The table of the loss's times."""
    sizes = sorted({row["n"] for row in rows})
    lines = []
    for label, threads in dict.fromkeys((level(row), row["threads"]) for row in rows):
        times = {row["n"]: row["seconds"] for row in rows if (level(row), row["threads"]) == (label, threads)}
        p = math.log(times[sizes[-1]] / times[sizes[0]]) / math.log(sizes[-1] / sizes[0])
        lines.append([label, f"{threads:.0f}", *(f"{1e3 * times[n]:.3g}" for n in sizes), f"{p:.2f}"])
    return [*LOSS, *markdown(["levels", "threads", *(f"n = {n:.0e}" for n in sizes), "slope"], lines)]


def level(row: Row) -> str:
    return "n" if row["each"] == "True" else f"{row['levels']:.0f}"


def quality(rows: list[Row]) -> list[str]:
    """The table of the cross-validation."""
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        constants = ", ".join(f"{row['constant']:g}" for row in mine)
        keys = ("in_order_training", "in_order", "ndcg")
        lines.append([method, *(spread([row[key] for row in mine]) for key in keys), constants])
    return [*QUALITY, *markdown(["method", "training pairs, %", "test pairs, %", "NDCG@10, %", "C or alpha"], lines)]


def spread(values: list[float]) -> str:
    return f"{100 * mean(values):.2f} ± {100 * stdev(values):.2f}"


def times_panel(axes: Axes, rows: list[Row], gap: float) -> None:
    """A line per problem, the fastest of ours on top: seconds of each solver to the gap; a cross: not reached."""
    lines = [Line(key, gap, group) for key, group in problems(rows).items()]
    names = peers(rows)
    known = [line for line in lines if line.ours is not None and line.ours.reached]
    known.sort(key=lambda line: -line.ours.seconds if line.ours else 0.0)
    for place, line in enumerate(known):
        for name, found in ((OURS, line.ours), *((name, line.found.get(name)) for name in names)):
            if found is None or (not found.reached and math.isinf(found.gap) and found.runs[0]["status"] == "error"):
                continue  # it cannot have the problem at all
            look = {"color": plots.COLOURS[name], "markerfacecolor": plots.COLOURS[name] if name == OURS else "white"}
            marker = plots.MARKERS[list(plots.COLOURS).index(name)] if found.reached else "x"
            axes.plot(found.seconds, place, marker, **look, zorder=4 if name == OURS else 3)
    axes.set_yticks(range(len(known)), [f"{line.key[0]}, C = {line.key[1]:g}" for line in known], fontsize=6.5)
    axes.set(xscale="log", xlabel=f"seconds to a gap of {gap:g}")
    plots.plain_ticks(axes.xaxis)
    axes.set_ylim(-0.7, len(known) - 0.3)


def loss_panel(axes: Axes, rows: list[Row]) -> None:
    """Time of the loss against n; solid one thread, dotted all cores."""
    fewest = min(row["threads"] for row in rows)
    for i, label in enumerate(dict.fromkeys(level(row) for row in rows)):
        for threads in sorted({row["threads"] for row in rows}):
            mine = [row for row in rows if level(row) == label and row["threads"] == threads]
            line = "-" if threads == fewest else ":"
            text = f"{label} levels, {threads:.0f} thread{'s' if threads > 1 else ''}"
            look: dict[str, Any] = {"color": plots.SERIES[1 + i], "linestyle": line, "label": text}
            axes.plot([row["n"] for row in mine], [1e3 * row["seconds"] for row in mine], "o", **look)
    axes.set(xscale="log", yscale="log", xlabel="rows of one query", ylabel="milliseconds for one loss")
    plots.plain_ticks(axes.yaxis)
    axes.legend(fontsize=7)


def picture(rows: list[Row], losses: list[Row], gap: float, path: Path) -> None:
    """Times to the smallest gap, and those of the loss."""
    height = 0.12 * len(problems(rows)) + 0.6
    figure, [[left, right]] = plots.panels(1, 2, width=5.0, height=max(2.4, height))
    times_panel(left, rows, gap)
    if losses:
        loss_panel(right, losses)
    handles = []
    for name in (OURS, *peers(rows)):
        colour, marker = plots.COLOURS[name], plots.MARKERS[list(plots.COLOURS).index(name)]
        face = colour if name == OURS else "white"
        handles.append(Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linestyle="", label=name))
    handles.append(Line2D([], [], color="#777777", marker="x", linestyle="", label="not reached by then"))
    plots.legend_on_top(figure, handles, len(handles))
    plots.save(figure, path)


def make(path: Path) -> None:
    """The report from all of the CSVs that are there."""
    rows = binary_report.read(path) if path.exists() else []
    losses = read(path.with_name(f"{path.stem}_loss.csv"))
    folds = read(path.with_name(f"{path.stem}_quality.csv"))
    asked = {row["target"] for row in rows if row["solver"] == OURS and row["phase"] == "search"}
    gaps = sorted(asked, reverse=True)
    text = [*HEADER, *(times(rows, gaps) if rows else [])]
    text += from_arrays(rows, gaps) if any(row["making"] != "" for row in rows) else []
    text += loss(losses) if losses else []
    text += quality(folds) if folds else []
    path.with_suffix(".md").write_text("\n".join(text).rstrip() + "\n")
    if rows:
        picture(rows, losses, gaps[-1], path.with_suffix(".png"))
    print(f"Written: {path.with_suffix('.md')}")
