"""How many shards: time and passes against the number of shards, and what "auto" chooses.

    python benchmarks/shards.py [--sets covtype,kdd04_bio] [--C 1e2,1e4,1e6] [--gap 1e-3]

Writes results/shards.csv and results/shards.md. The last column is the time of "auto" over the best of the others.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from time import perf_counter
from typing import Any

import data
from cutsvm._utils.threads import count, one_blas_thread
from cutsvm.driver.records import Stop
from cutsvm.driver.run import run
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import OCAS

RESULTS = Path(__file__).parent / "results"
SHARDS: list[int | str] = [1, 4, 16, 64, 128, 256, "auto"]


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["covtype", "kdd04_bio", "ijcnn1", "a9a"])
    parser.add_argument("--C", type=numbers, default=[1e2, 1e4, 1e6], help="values of C times n")
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--data", type=Path, default=data.DEFAULT_FOLDER)
    return parser.parse_args()


def measure(dataset: data.DataSet, Cn: float, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The best of `repeat` rounds for each number of shards; the rounds take turns, so that noise is shared."""
    threads = count(-1)
    best: dict[int | str, dict[str, Any]] = {}
    for _ in range(options.repeat):
        for shards in SHARDS:
            loss = Hinge(dataset.y.astype(float), threads)
            oracle = Oracle(as_rows(dataset.X, threads), loss, intercept=Intercept.REGULARIZED, threads=threads)
            began = perf_counter()
            stop = Stop(options.gap, max_time=options.time_limit)
            result = run(OCAS(shards=shards), oracle, Cn / dataset.n, stop)
            seconds = perf_counter() - began
            row = {"set": dataset.name, "Cn": Cn, "shards": shards, "used": oracle.shards, "seconds": seconds}
            row |= {"passes": result.history[-1]["passes"], "gap": result.gap}
            if shards not in best or seconds < best[shards]["seconds"]:
                best[shards] = row
    return list(best.values())


def table(rows: list[dict[str, Any]]) -> str:
    head = ["data", "C n", *(f"P={shards}" for shards in SHARDS), "auto / best"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, Cn in dict.fromkeys((row["set"], row["Cn"]) for row in rows):
        mine = [row for row in rows if (row["set"], row["Cn"]) == (name, Cn)]
        cells = [f"{row['seconds']:.2f} s ({row['passes']})" for row in mine]
        cells[-1] += f" P={mine[-1]['used']}"
        ratio = mine[-1]["seconds"] / min(row["seconds"] for row in mine[:-1])
        lines.append(f"| {name} | {Cn:g} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options = arguments()
    rows: list[dict[str, Any]] = []
    names, _ = data.available(options.sets, options.data)
    with one_blas_thread():
        for name in names:
            dataset = data.load(name, options.data)
            for Cn in options.C:
                rows += measure(dataset, Cn, options)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "shards.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    text = table(rows)
    (RESULTS / "shards.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
