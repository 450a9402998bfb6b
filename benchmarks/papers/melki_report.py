"""The tables and pictures of melki.py, made from its CSV, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

import paper
import plots
from binary_report import markdown
from paper import Picture, publish

Row = dict[str, Any]
TEXT = {"experiment", "set", "solver", "choices", "message"}
SOLVERS = {"min_norm": "MN-SVM", "isda": "NN-ISDA", "sgd": "NL-SGD"}
# Table II: accuracy in %; table III: seconds. In the order of SOLVERS.
PAPER = {
    "iris": ((96.67, 94.00, 96.00), (3.57, 0.27, 0.18)),
    "glass": ((69.29, 67.82, 69.17), (11.94, 1.01, 0.5)),
    "wine": ((96.60, 96.60, 97.17), (4.84, 0.43, 0.47)),
    "tae": ((52.95, 52.31, 56.95), (8.85, 0.44, 0.30)),
    "sonar": ((87.57, 89.48, 89.49), (3.03, 0.98, 0.74)),
    "dermatology": ((98.36, 98.36, 97.38), (11.68, 2.47, 1.69)),
    "heart": ((83.33, 83.33, 84.81), (6.45, 0.91, 0.61)),
    "optdigits": ((99.31, 99.29, 98.88), (787.85, 528.04, 340.70)),
    "usps": ((98.21, 98.05, 96.93), (7777.82, 5245.55, 4193.36)),
    "reuters_lasvm": ((98.05, 98.08, 97.28), (1657.04, 1368.02, 758.05)),
}


EPOCHS = {1: 4, 2: 6, 5: 1, 20: 0}  # their places among colours and markers
PAPERS = plots.SERIES[2]
SHARES = (0.0, 0.25, 0.5)  # of the updates that are averaged


def read(path: Path) -> list[Row]:
    return paper.read(path, TEXT)


def of(rows: list[Row], experiment: str, **more: Any) -> list[Row]:
    """The rows of an experiment that have these values."""
    return [
        row for row in rows if row["experiment"] == experiment and all(row[key] == value for key, value in more.items())
    ]


def runs(rows: list[Row], name: str, what: str) -> list[list[float]]:
    """What the runs of each solver on a set have come to, in the order of SOLVERS."""
    return [[row[what] for row in of(rows, "tables", set=name, solver=solver)] for solver in SOLVERS]


def accuracies(rows: list[Row]) -> list[str]:
    """Table II: means over the seeds, and the range of several."""
    lines = []
    for name, (printed, _) in PAPER.items():
        cells = [name]
        for figure, found in zip(printed, runs(rows, name, "accuracy"), strict=True):
            mine = [100 * value for value in found]
            spread = f" ({min(mine):.1f} to {max(mine):.1f})" if len(mine) > 1 else ""
            cells += [f"{figure:.2f}", f"{np.mean(mine):.2f}{spread}" if mine else ""]
        peer = [row for row in of(rows, "peer", set=name) if row["accuracy"] != ""]
        lines.append([*cells, f"{100 * peer[0]['accuracy']:.2f}" if peer else ""])
    head = [part for name in SOLVERS.values() for part in (f"{name}, paper", name)]
    return markdown(["set", *head, "SVC"], lines)


def seconds(rows: list[Row]) -> list[str]:
    """Table III: seconds, the medians over the seeds."""
    lines = []
    for name, (_, printed) in PAPER.items():
        cells = [name]
        found = runs(rows, name, "seconds")
        for figure, mine in zip(printed, found, strict=True):
            cells += [f"{figure:.2f}", f"{np.median(mine):.2f}" if mine else ""]
        for row in of(rows, "peer", set=name)[:1]:
            ratio = f"{row['seconds'] / np.median(found[-1]):.0f}" if found[-1] else ""
            cells += [f"{row['seconds']:.1f}" + ("" if row["ended"] else " *"), ratio]
        memory = [row["memory"] for row in of(rows, "tables", set=name) if row["memory"] != ""]
        cells += [""] * (9 - len(cells))
        lines.append([*cells, f"{max(memory) / 1e9:.2f}" if memory else ""])
    head = [part for name in SOLVERS.values() for part in (f"{name}, paper", name)]
    return markdown(["seconds", *head, "SVC", "SVC / NL-SGD", "our peak memory, GB"], lines)


def share(rows: list[Row], name: str, epochs: float, average: float) -> float:
    """Mean accuracy in % with so many epochs and this share averaged."""
    found = of(rows, "configurations", set=name, solver="sgd", epochs=epochs, average=average)
    return float(np.mean([100 * row["accuracy"] for row in found]))


def shares(rows: list[Row]) -> list[str]:
    """Figures 6 to 10 as a table: accuracy and seconds by epochs and share averaged."""
    lines = []
    for name in PAPER:
        for epochs in sorted({row["epochs"] for row in of(rows, "configurations", set=name, solver="sgd")}):
            cells = [name, f"{epochs:.0f}"]
            cells += [f"{share(rows, name, epochs, average):.2f}" for average in SHARES]
            timed = of(rows, "configurations", set=name, solver="sgd", epochs=epochs, average=0.5)
            cells.append(f"{np.median([row['seconds'] for row in timed]):.2f}")
            box = of(rows, "configurations", set=name, solver="sgd 1/m", epochs=epochs)
            lines.append([*cells, f"{100 * np.mean([row['accuracy'] for row in box]):.2f}" if box else ""])
    head = ["set", "epochs", "last, %", "last 25 %, %", "last 50 %, %", "seconds", "last 50 %, step 1/m, %"]
    return markdown(head, lines)


def many_digits(rows: list[Row]) -> list[str]:
    """60,000 rows of mnist."""
    lines = []
    for row in of(rows, "mnist"):
        cells = [row["solver"], f"{row['n']:,.0f}", f"{row['epochs']:.0f}" if row["epochs"] != "" else ""]
        cells.append(f"{100 * (1 - row['accuracy']):.2f}" if row["accuracy"] != "" else "")
        cells.append(f"{row['seconds']:.0f}" if row["seconds"] != "" else "")
        cells.append(f"{row['memory'] / 1e9:.2f}" if row["memory"] != "" else "")
        lines.append([*cells, row["message"]])
    return markdown(["solver", "rows", "epochs", "test error, %", "s to train", "peak memory, GB", ""], lines)


TABLES: dict[str, Callable[[list[Row]], list[str]]] = {
    "table2": accuracies,
    "table3": seconds,
    "figures": shares,
    "mnist": many_digits,
}
NEEDS = {"table2": "tables", "table3": "tables", "figures": "configurations", "mnist": "mnist"}


def picture_of_times(rows: list[Row], path: Path) -> None:
    """Table III: the paper's seconds and ours, and SVC's."""
    names = [name for name in PAPER if of(rows, "tables", set=name, solver="min_norm")]
    figure, [[axes]] = plots.panels(1, 1, width=7.6, height=2.8)
    width = 0.13
    for place, (solver, label) in enumerate(SOLVERS.items()):
        colour = plots.SERIES[(3, 1, 0)[place]]
        printed = [PAPER[name][1][place] for name in names]
        ours = [np.median([row["seconds"] for row in of(rows, "tables", set=name, solver=solver)]) for name in names]
        where = np.arange(len(names)) + width * (2 * place - 2.5)
        axes.bar(where, printed, width, facecolor="white", edgecolor=colour, label=f"{label}, paper", zorder=2)
        axes.bar(where + width, ours, width, facecolor=colour, edgecolor=colour, label=label, zorder=2)
    peers = {row["set"]: row for row in of(rows, "peer")}
    for place, name in enumerate(names):
        if name in peers:
            seconds = peers[name]["seconds"]
            axes.plot([place - 0.45, place + 0.45], [seconds] * 2, color=plots.SERIES[2], zorder=3)
    axes.plot([], [], color=plots.SERIES[2], label="SVC in GridSearchCV")
    axes.set(yscale="log", ylabel="seconds, nested 5 x 5 over 8 x 8")
    axes.set_xticks(range(len(names)), [name.removesuffix("_lasvm") for name in names])
    axes.grid(axis="x", visible=False)
    plots.plain_ticks(axes.yaxis)
    figure.legend(loc="outside upper center", ncols=4)
    plots.save(figure, path)


def picture_of_shares(rows: list[Row], path: Path) -> None:
    """Figures 6 and 7: accuracy by epochs and share averaged."""
    names = [name for name in PAPER if of(rows, "configurations", set=name)]
    few = (len(names) + 1) // 2
    figure, grid = plots.panels(2, few, width=1.75, height=1.6)
    for place, axes in enumerate([axes for row in grid for axes in row]):
        if place >= len(names):
            axes.set_visible(False)
            continue
        name = names[place]
        all_epochs = sorted({row["epochs"] for row in of(rows, "configurations", set=name, solver="sgd")})
        for epochs in all_epochs:
            mine = [share(rows, name, epochs, average) for average in SHARES]
            axes.plot(
                range(len(SHARES)), mine, color=plots.SERIES[EPOCHS[epochs]], marker=plots.MARKERS[EPOCHS[epochs]]
            )
        axes.axhline(PAPER[name][0][2], color=PAPERS, linewidth=1.2)
        axes.set_xlim(-0.3, len(SHARES) - 0.7)
        axes.set_xticks(range(len(SHARES)), ["last", "25 %", "50 %"])
        axes.set_title(name.removesuffix("_lasvm"))
        axes.grid(axis="x", visible=False)
    seen = sorted({row["epochs"] for row in of(rows, "configurations", solver="sgd")})
    handles = [
        Line2D([], [], color=plots.SERIES[k], marker=plots.MARKERS[k], label=f"{epochs} epoch{'s' * (epochs > 1)}")
        for epochs, k in EPOCHS.items()
        if epochs in seen
    ]
    plots.legend_on_top(figure, [*handles, Line2D([], [], color=PAPERS, label="paper, table II")], 5)
    figure.supylabel("accuracy, %", size=9)
    plots.save(figure, path)


PICTURES = {
    "table3": Picture("melki-seconds.png", "Seconds of nested cross-validation", picture_of_times),
    "figures": Picture("melki-shares.png", "Accuracy by epochs and share averaged", picture_of_shares),
}


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, the pictures in its folder."""
    rows = read(path)
    there = {row["experiment"] for row in rows}
    tables = {name: table(rows) for name, table in TABLES.items() if NEEDS[name] in there}
    publish(path, docs, "Melki and Kecman (2016)", tables, PICTURES, rows)
