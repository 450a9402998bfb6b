"""What a second core brings: each of our solvers with one thread and with more, and whether the answer is the same.

    python benchmarks/threads.py [--sets covtype,mnist,arxiv,synthetic-small] [--C 1e4] [--jobs 1,2]

Writes results/threads.csv and results/threads.md. The thread counts take turns in every round; medians count.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import data
from cutsvm import LinearSVC
from peers import as_csr, layouts, own_solver

Row = dict[str, Any]
HEADER = [
    "# One thread and more",
    "",
    "Seconds of `fit` (median of the rounds) and one thread's time over the others'. Same bits: `coef_` and",
    "`intercept_` came out the same in every run of the line, to the last bit. In brackets: the gap was not proved",
    "within the time limit, so nothing is said of ratio and bits.",
    "",
]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=lambda text: text.split(","), default=["covtype", "mnist", "arxiv", "synthetic-small"])
    add("--solvers", type=lambda text: text.split(","), default=["ocas", "sifting", "dcd", "dcd-async"])
    add("--jobs", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2], help="values of n_jobs")
    add("--C", type=float, default=1e4, help="C times n")
    add("--gap", type=float, default=1e-3)
    add("--repeat", type=int, default=5, help="rounds")
    add("--time-limit", type=float, default=20.0, help="seconds per fit")
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    return parser.parse_args()


def fit(X: Any, y: Any, name: str, jobs: int, options: argparse.Namespace) -> Row:
    """One fit: seconds, whether the gap was proved, and the answer's bits."""
    fixed: dict[str, Any] = {"intercept": "regularized", "max_time": options.time_limit}
    model = LinearSVC(options.C / len(y), tol=options.gap, solver=own_solver(name), n_jobs=jobs, **fixed)
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    answer = hash(model.coef_.tobytes() + model.intercept_.tobytes())
    return {"seconds": seconds, "proved": model.converged_, "gap": model.gap_, "answer": answer}


def measure(dataset: data.DataSet, name: str, options: argparse.Namespace) -> list[Row]:
    """All rounds of one solver, after a fit of a few rows with each number of threads. One that fails says why."""
    X = as_csr(dataset.X) if layouts(dataset)[0] == "csr" else dataset.X
    few = dataset.subset(2000)
    place: Row = {"set": dataset.name, "n": dataset.n, "d": dataset.X.shape[1], "Cn": options.C, "solver": name}
    rows: list[Row] = []
    try:
        for jobs in options.jobs:
            fit(few.X, few.y, name, jobs, options)
        for turn, jobs in product(range(1, options.repeat + 1), options.jobs):
            rows.append(place | {"jobs": jobs, "round": turn} | fit(X, dataset.y, name, jobs, options))
            if not rows[-1]["proved"] and turn > 1:
                break
    except (AttributeError, TypeError, ValueError) as error:  # this cutsvm does not have the solver
        rows.append(place | {"message": f"{type(error).__name__}: {error}"})
    print(*rows, sep="\n", flush=True)
    return rows


def table(rows: list[Row], jobs: list[int]) -> str:
    head = ["set", "n", "d", "solver", *(f"{k} threads" for k in jobs), *(f"{jobs[0]} / {k}" for k in jobs[1:])]
    lines = ["| " + " | ".join([*head, "same bits"]) + " |", "|" + "---|" * (len(head) + 1)]
    for place in dict.fromkeys((row["set"], row["n"], row["d"], row["solver"]) for row in rows):
        mine = [row for row in rows if (row["set"], row["n"], row["d"], row["solver"]) == place]
        lines.append("| " + " | ".join([*map(str, place), *cells(mine, jobs)]) + " |")
    return "\n".join([*HEADER, *lines]) + "\n"


def cells(rows: list[Row], jobs: list[int]) -> list[str]:
    """Seconds by number of threads, ratios, and whether all answers are one."""
    if "message" in rows[-1]:
        return ["(failed)"] * len(jobs) + [""] * len(jobs)
    times = [median(row["seconds"] for row in rows if row["jobs"] == k) for k in jobs]
    if not all(row["proved"] for row in rows):
        return [f"({seconds:.3g} s)" for seconds in times] + [""] * len(jobs)
    same = len({row["answer"] for row in rows}) == 1
    ratios = [f"{times[0] / seconds:.2f}" for seconds in times[1:]]
    return [*(f"{seconds:.3g} s" for seconds in times), *ratios, "yes" if same else "no"]


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    names, missing = data.available(options.sets, options.data)
    if missing:
        print(f"Skipped, no file: {', '.join(missing)}.")
    rows: list[Row] = []
    for set_name in names:
        dataset = data.load(set_name, options.data)
        for solver in options.solvers:
            rows += measure(dataset, solver, options)
    fields = "set n d Cn solver jobs round seconds proved gap answer message".split()
    with (options.out / "threads.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)
    text = table(rows, options.jobs)
    (options.out / "threads.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
