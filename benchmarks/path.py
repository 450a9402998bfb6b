"""A path over C beside fits one by one and LIBLINEAR; choosing C beside scikit-learn's GridSearchCV.

    python benchmarks/path.py [--sets covtype,arxiv] [--cv-sets a9a,w8a] [--Cs 1e-4:1e4:20] [--rounds 3]

C n goes over the range of --Cs, n being the number of rows. Part 1: seconds of `linear_path` and of `LinearSVC` for
each C, by turns, the fastest of so many rounds; LIBLINEAR -s 3 -B 1 with its own -e, once, and how far it is above our
bound. Part 2: seconds of `LinearSVCCV` and of `GridSearchCV(LinearSVC(loss="hinge"))` on the same folds and
all cores, by turns as well, and what they choose. Writes results/path.csv, .md and .png.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import LogLocator
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC as Peer

from cutsvm import LinearSVC, LinearSVCCV, linear_path
from data import DEFAULT_FOLDER, DataSet, available, load
from peers import CORES, Liblinear, judge
from plots import COLOURS, legend_on_top, log_seconds, panels, plain_ticks, save
from provenance import write_rows

RESULTS = Path(__file__).parent / "results"
GAP = 1e-3
FIXED: dict[str, Any] = {"tol": GAP, "intercept": "regularized", "n_jobs": -1}


class Line(NamedTuple):
    """One C of one set."""

    set: str
    Cn: float
    path: float  # seconds of this C on the path
    passes: int
    gap: float
    alone: float  # seconds of a fit of its own
    liblinear: float
    excess: float  # of LIBLINEAR's objective over our lower bound, relative


class PathTimes(NamedTuple):
    """One set: seconds of the whole path, of all fits, of the slowest, of LIBLINEAR."""

    set: str
    path: float
    alone: float
    slowest: float
    liblinear: float
    lines: list[Line]


class Choice(NamedTuple):
    """One set by cross-validation."""

    set: str
    ours: float
    theirs: float
    our_cost: float
    their_cost: float
    steps: int  # of the grid between the two
    difference: float  # the largest between mean scores
    gap: float


def seconds_of(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def path_times(data: DataSet, Cn: np.ndarray, rounds: int, liblinear: bool) -> PathTimes:
    Cs = Cn / data.n
    LinearSVC(Cs[-1], **FIXED).fit(data.X[:5000], data.y[:5000])  # libraries and threads are there
    whole, alone = np.inf, np.full(len(Cs), np.inf)
    for _ in range(rounds):
        seconds, models = seconds_of(lambda: linear_path(data.X, data.y, Cs=Cs, **FIXED))
        if seconds < whole:
            whole, best = seconds, models
        for k, C in enumerate(Cs):
            alone[k] = min(alone[k], seconds_of(lambda C=C: LinearSVC(C, **FIXED).fit(data.X, data.y))[0])
    lines, peer = [], Liblinear()
    for k, (C, model) in enumerate(zip(Cs, best, strict=True)):
        theirs, excess = np.nan, np.nan
        if liblinear:
            w, b, theirs = peer.fit(data, float(C), {"s": 3, "e": 0.1}, np.inf)
            excess = judge(data, w, b, float(C)).objective / model.lower_bound_ - 1.0
        last = model.history_[-1]
        own = (last["seconds"], last["passes"], model.gap_)
        lines.append(Line(data.name, float(Cn[k]), *own, float(alone[k]), theirs, excess))
        print(
            f"  C n = {Cn[k]:.1e}: path {last['seconds']:.3f} s, alone {alone[k]:.3f} s, LIBLINEAR {theirs:.3f} s",
            flush=True,
        )
    total = float(np.sum([line.liblinear for line in lines]))
    return PathTimes(data.name, whole, float(alone.sum()), float(alone.max()), total, lines)


def choose(data: DataSet, Cn: np.ndarray, folds: int, rounds: int) -> Choice:
    Cs = Cn / data.n
    LinearSVCCV(Cs[:3], cv=2, **FIXED).fit(data.X[:3000], data.y[:3000])
    search = GridSearchCV(Peer(loss="hinge", random_state=0), {"C": Cs.tolist()}, cv=folds, n_jobs=-1)
    ours = theirs = np.inf
    for _ in range(rounds):
        seconds, model = seconds_of(lambda: LinearSVCCV(Cs, cv=folds, **FIXED).fit(data.X, data.y))
        ours = min(ours, seconds)
        theirs = min(theirs, seconds_of(lambda: search.fit(data.X, data.y))[0])
    scores, other = model.scores_.mean(axis=0), search.cv_results_["mean_test_score"]
    steps = abs(int(np.argmax(scores)) - int(search.best_index_))
    chosen = model.C_ * data.n, search.best_params_["C"] * data.n
    difference, gap = float(np.abs(scores - other).max()), float(model.gaps_.max())
    return Choice(data.name, ours, theirs, *chosen, steps, difference, gap)


def report(paths: list[PathTimes], choices: list[Choice], many: int, folds: int) -> list[str]:
    text = [
        "# Paths over C",
        "",
        f"{many} values of C, each to a proven gap of {GAP:g}, intercept regularised as in LIBLINEAR, {CORES} cores.",
        "`one by one`: the same fits with `LinearSVC`; `slowest`: the longest of them. LIBLINEAR has its default -e",
        "and no certificate: `excess` is how far at most its objectives are above our lower bounds.",
        "",
        "| set | path, s | one by one, s | slowest, s | path / one by one | path / slowest | LIBLINEAR, s | excess |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for w in paths:
        excess = max(line.excess for line in w.lines)
        cells = [w.set, *(f"{x:.2f}" for x in (w.path, w.alone, w.slowest, w.path / w.alone, w.path / w.slowest))]
        text.append("| " + " | ".join([*cells, f"{w.liblinear:.2f}", f"{excess:.0e}"]) + " |")
    text += ["", "| set | C n | path, s | passes | gap | alone, s | LIBLINEAR, s | its excess |"]
    text += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for w in paths:
        for line in w.lines:
            cells = [line.set, f"{line.Cn:.1e}", f"{line.path:.4f}", str(line.passes), f"{line.gap:.0e}"]
            cells += [f"{line.alone:.3f}", f"{line.liblinear:.3f}", f"{line.excess:.0e}"]
            text.append("| " + " | ".join(cells) + " |")
    text += [
        "",
        f"## {folds} folds x {many} C",
        "",
        "`LinearSVCCV`, the last fits to all rows included, beside `GridSearchCV(LinearSVC(loss='hinge'))` of",
        "scikit-learn, which refits the best C only; the same folds, all cores. `steps`: of the grid between.",
        "",
        "| set | LinearSVCCV, s | GridSearchCV, s | ratio | C n | C n, theirs | steps | scores differ by | worst gap |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for c in choices:
        cells = [
            c.set,
            f"{c.ours:.2f}",
            f"{c.theirs:.2f}",
            f"{c.ours / c.theirs:.3f}",
            f"{c.our_cost:.2g}",
            f"{c.their_cost:.2g}",
        ]
        text.append("| " + " | ".join([*cells, str(c.steps), f"{c.difference:.1e}", f"{c.gap:.0e}"]) + " |")
    return text


def picture(paths: list[PathTimes], target: Path) -> None:
    """Seconds of each C: on the path, alone, by LIBLINEAR."""
    figure, axes = panels(1, len(paths), width=4.2, height=2.6)
    for w, ax in zip(paths, axes[0], strict=True):
        Cn = [line.Cn for line in w.lines]
        series = [
            ("on the path", "cutsvm", "path"),
            ("alone", "dlib", "alone"),
            ("LIBLINEAR", "LIBLINEAR", "liblinear"),
        ]
        for label, colour, name in series:
            values = [max(getattr(line, name), 1e-4) for line in w.lines]
            ax.plot(Cn, values, color=COLOURS[colour], marker="o", linewidth=1.4, label=label)
        ax.set_xscale("log")
        log_seconds(ax, 1e-4, max(max(line.alone, line.path, line.liblinear) for line in w.lines))
        plain_ticks(ax.xaxis)
        ax.xaxis.set_major_locator(LogLocator(numticks=6))
        ax.set_title(f"{w.set}: {w.path:.2f} s in all, one by one {w.alone:.2f} s", loc="left")
        ax.set_xlabel("C n")
    axes[0][0].set_ylabel("seconds")
    legend_on_top(figure, axes[0][0].get_legend_handles_labels()[0], 3)
    save(figure, target)


def main() -> None:
    names = lambda text: [part for part in text.split(",") if part]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=names, default=["covtype", "arxiv"])
    parser.add_argument("--cv-sets", type=names, default=["a9a", "w8a"])
    parser.add_argument("--Cs", default="1e-4:1e4:20", help="C n: LOW:HIGH:N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    low, high, many = options.Cs.split(":")
    Cn = np.geomspace(float(low), float(high), int(many))
    warnings.simplefilter("ignore")
    paths, choices = [], []
    for sets, done in ((options.sets, paths), (options.cv_sets, choices)):
        found, missing = available(sets, options.data)
        for name in missing:
            print(f"{name}: not there")
        for name in found:
            print(name, flush=True)
            data = load(name, options.data)
            if done is paths:
                paths.append(path_times(data, Cn, options.rounds, Liblinear.installed()))
            else:
                choices.append(choose(data, Cn, options.folds, options.rounds))
                print(f"  {choices[-1]}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    lines = [line._asdict() for w in paths for line in w.lines]
    write_rows(options.out / "path.csv", Line._fields, lines)
    totals = [{key: value for key, value in w._asdict().items() if key != "lines"} for w in paths]
    write_rows(options.out / "path_sets.csv", [name for name in PathTimes._fields if name != "lines"], totals)
    write_rows(options.out / "path_cv.csv", Choice._fields, [choice._asdict() for choice in choices])
    text = report(paths, choices, int(many), options.folds)
    (options.out / "path.md").write_text("\n".join(text) + "\n")
    if paths:
        picture(paths, options.out / "path.png")
    print("\n".join(text))


if __name__ == "__main__":
    main()
