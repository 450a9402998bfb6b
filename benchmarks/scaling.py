"""How time and iterations grow with the rows, with C and with the accuracy, beside the paper's figures.

    python benchmarks/scaling.py [--set covtype] [--rows 1e3,1e4,1e5,1e9] [--C 1e2,1e4,1e6]

Two solvers: LinearSVC as it comes, and CPA with one shard and the paper's epsilon, which is Algorithm 1 of
Joachims (2006). Slopes are fitted to logarithms; only runs that ended by their own rule count.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import data
import plots

Row = dict[str, Any]
FIELDS = "axis series x n Cn tol epsilon seconds iterations gap ended".split()
PLAIN, PAPER = "LinearSVC", "CPA, one shard"
# (figure, what is measured, against what) -> the slope that the paper gives; C is the paper's, ours times n.
FIGURES = {
    ("1", "seconds", "n"): "0.8",
    ("2", "iterations", "n"): "0 (does not grow)",
    ("5", "iterations", "1/accuracy"): "0.3",
    ("6", "seconds", "1/accuracy"): "0.4",
    ("8", "iterations", "C n"): "0.5",
    ("9", "seconds", "C n"): "below 1",
}


class Run(NamedTuple):
    """One point of a line: where it is drawn, and what is solved."""

    axis: str
    series: str
    x: float
    n: int
    Cn: float
    accuracy: float
    paper: bool

    def solver(self) -> dict[str, Any]:
        """LinearSVC's parameters: the paper's rule stops CPA, the relative gap stops the rest."""
        if not self.paper:
            return {"tol": self.accuracy}
        from cutsvm.solvers import CPA

        return {"tol": 1e-12, "solver": CPA(epsilon=self.accuracy, shards=1)}


def plan(options: argparse.Namespace, total: int) -> list[Run]:
    """All runs: against the rows for every C, against C and against the accuracy for all rows."""
    sizes = sorted({min(int(n), total) for n in options.rows})
    middle = sorted(options.C)[len(options.C) // 2]
    runs = []
    for Cn in options.C:
        runs += [Run("n", f"{PLAIN}, C n = {Cn:g}", n, n, Cn, 1e-3, False) for n in sizes]
    runs += [Run("n", f"{PAPER}, C n = {middle:g}", n, n, middle, 1e-3, True) for n in sizes]
    costs = np.geomspace(min(options.C), max(options.C), options.points)
    for name, paper in ((PLAIN, False), (PAPER, True)):
        runs += [Run("C n", name, float(Cn), total, float(Cn), 1e-3, paper) for Cn in costs]
    for name, paper in ((PLAIN, False), (PAPER, True)):
        label = f"{name}, C n = {middle:g}"
        runs += [Run("1/accuracy", label, 1 / a, total, middle, a, paper) for a in options.accuracies]
    return runs


def measure(run: Run, dataset: data.DataSet, options: argparse.Namespace) -> Row:
    """Fit a few times; the median time counts."""
    from cutsvm import LinearSVC

    part = dataset.subset(run.n)
    seconds = []
    while len(seconds) < options.repeat and sum(seconds) < options.time_limit:
        model = LinearSVC(
            run.Cn / run.n, intercept="regularized", n_jobs=-1, max_time=options.time_limit, **run.solver()
        )
        start = time.perf_counter()
        model.fit(part.X, part.y)
        seconds.append(time.perf_counter() - start)
    row = {"axis": run.axis, "series": run.series, "x": run.x, "n": run.n, "Cn": run.Cn}
    row |= {"tol": "" if run.paper else run.accuracy, "epsilon": run.accuracy if run.paper else ""}
    row |= {
        "seconds": median(seconds),
        "iterations": int(np.max(model.n_iter_)),
        "gap": float(np.max(model.gap_)),
    }
    row["ended"] = bool(np.all(model.converged_))
    result = f"{row['seconds']:8.3f} s {row['iterations']:5} iterations, gap {row['gap']:.1e}"
    print(f"{run.series:32} {run.axis} = {run.x:<10.4g} {result}", flush=True)
    return row


def slope(rows: list[Row], what: str, upper: bool = False) -> float:
    """The exponent in `what ~ x^slope`, over all points or the upper half of them."""
    good = sorted((row for row in rows if row["ended"]), key=lambda row: row["x"])
    good = good[len(good) // 2 :] if upper else good
    if len(good) < 2:
        return float("nan")
    return float(np.polyfit(np.log([row["x"] for row in good]), np.log([row[what] for row in good]), 1)[0])


def table(rows: list[Row], name: str) -> str:
    """The slopes as markdown."""
    text = [
        f"# Growth with rows, C and accuracy: {name}",
        "",
        "Exponents p of time or iterations ~ x^p, fitted to logarithms over all points and the upper half.",
        "The paper: Joachims, Training Linear SVMs in Linear Time, KDD 2006; its figure and its slope.",
        "Accuracy is the relative gap for LinearSVC, the paper's epsilon for CPA.",
        "",
        "| figure | measured | against | paper | ours | all points | upper half | points |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (figure, what, axis), paper in FIGURES.items():
        for label, group in lines_of(rows, axis).items():
            ended = sum(row["ended"] for row in group)
            slopes = f"{slope(group, what):.2f} | {slope(group, what, upper=True):.2f}"
            text.append(f"| {figure} | {what} | {axis} | {paper} | {label} | {slopes} | {ended} of {len(group)} |")
    text += ["", "Points left out ran into the time limit.", ""]
    return "\n".join(text)


def lines_of(rows: list[Row], axis: str) -> dict[str, list[Row]]:
    """The rows of each line against one axis."""
    labels = dict.fromkeys(row["series"] for row in rows if row["axis"] == axis)
    return {name: [row for row in rows if row["axis"] == axis and row["series"] == name] for name in labels}


def panel(axes: Axes, rows: list[Row], axis: str, what: str) -> None:
    """The lines against one axis; dashed, the paper's slope through the middle of the last line."""
    for i, (label, group) in enumerate(lines_of(rows, axis).items()):
        exponent = slope(group, what)
        x, y = [row["x"] for row in group], [row[what] for row in group]
        style = {"color": plots.SERIES[i], "marker": plots.MARKERS[i]}
        axes.plot(x, y, label=f"{label}: {exponent:.2f}", **style)
    paper = next((text for (_, w, a), text in FIGURES.items() if (w, a) == (what, axis)), "")
    if paper.split()[0].replace(".", "").isdigit():
        ends = np.array([min(x), max(x)])
        middle = np.exp(np.mean(np.log(y))) / np.exp(np.mean(np.log(x))) ** float(paper.split()[0])
        axes.plot(ends, middle * ends ** float(paper.split()[0]), "--", color="#888888", linewidth=1, zorder=1)
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel=what)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 10)  # room for the legend
    plots.plain_ticks(axes.yaxis)
    axes.legend(fontsize=7, loc="upper left")


def picture(rows: list[Row], path: Path) -> None:
    """Seconds above, iterations below, against each of the three."""
    axes = ["n", "C n", "1/accuracy"]
    figure, grid = plots.panels(2, len(axes), width=4.0, height=3.0)
    for what, line in zip(("seconds", "iterations"), grid, strict=True):
        for axis, place in zip(axes, line, strict=True):
            panel(place, rows, axis, what)
    dashed = Line2D([], [], color="#888888", linestyle="--", label="the slope in Joachims (2006); the numbers are ours")
    plots.legend_on_top(figure, [dashed], 1)
    plots.save(figure, path)


def arguments() -> argparse.Namespace:
    def numbers(text: str) -> list[float]:
        return [float(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--set", default="covtype", help="a data set of data.py; NAME:ROWS takes a random subset")
    add("--rows", type=numbers, default=[1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e9], help="cut to what the set has")
    add("--C", type=numbers, default=[1e2, 1e4, 1e6], help="values of C times n")
    add("--points", type=int, default=9, help="how many values of C against C")
    add("--accuracies", type=numbers, default=[1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5])
    add("--repeat", type=int, default=3)
    add("--time-limit", type=float, default=60.0, help="seconds per fit")
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    if not data.available([options.set], options.data)[0]:
        print(f"Skipped: {options.set} is not in {options.data}; synthetic-long takes its place.")
        options.set = "synthetic-long"
    dataset = data.load(options.set, options.data)
    runs = plan(options, dataset.n)
    measure(runs[0], dataset, options)  # a warm-up that does not count
    rows = [measure(run, dataset, options) for run in runs]
    with (options.out / "scaling.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    (options.out / "scaling.md").write_text(table(rows, dataset.name))
    picture(rows, options.out / "scaling.png")
    print(f"Written: {options.out / 'scaling.csv'}, scaling.md, scaling.png")


if __name__ == "__main__":
    main()
