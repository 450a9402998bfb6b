"""A store that changes: fits after an append and after deletes, with what the fit before has left and from nothing.

    python benchmarks/refit.py --folder /where/there/is/room

Two classes that overlap, 10,000,000 rows of 20 features (0.8 GB) unless told otherwise; 1 % is appended, then 1 % is
deleted, once a range and once rows at random. It writes results/refit.md and results/refit.csv.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cutsvm
from billion import BLOCK, RESULTS, direction
from provenance import commit, write_rows

NOISE = 0.5  # standard deviation of what is added to a score before its sign is the label
FIELDS = ("solver", "change", "seconds_change", "fit", "seconds", "passes", "visits", "gap", "kept")


def blocks(rows: int, features: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    w = direction(features).astype(np.float32)
    for number, start in enumerate(range(0, rows, BLOCK)):
        rng = np.random.default_rng([seed, number])
        many = min(BLOCK, rows - start)
        X = rng.standard_normal((many, features), dtype=np.float32)
        yield X, np.where(X @ w + NOISE * rng.standard_normal(many) > 0.2, 1.0, -1.0)


def measured(model: cutsvm.LinearSVC, store: Path) -> dict[str, Any]:
    began = time.perf_counter()
    model.fit(store)
    last, note = model.history_[-1], model.history_[0]["note"]
    return {
        "seconds": round(time.perf_counter() - began, 3),
        "passes": last["passes"],
        "visits": round(last["visits"] / model_rows(store), 2),
        "gap": f"{model.gap_:.1e}",
        "kept": note.partition(": ")[2].partition(";")[0] if note.startswith("warm start") else "",
    }


def model_rows(store: Path) -> int:
    return int(cutsvm.open_dataset(store).shape[0])


def refits(solver: str, store: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each fit; the changes are made one after the other."""
    rows, share = int(options.rows), int(options.rows / 100)
    data = cutsvm.convert(blocks(rows, options.features, 2), store)
    rng = np.random.default_rng(5)
    how = {"C": options.C / rows, "solver": solver, "tol": options.tol, "memory_limit": options.memory}
    warm = cutsvm.LinearSVC(warm_start=True, **how)
    yield {"solver": solver, "change": "", "seconds_change": "", "fit": "the first", **measured(warm, store)}
    changes: dict[str, Callable[[], object]] = {
        "append 1 %": lambda: data.append(blocks(share, options.features, 3)),
        "delete 1 %, a range": lambda: data.delete(slice(rows // 3, rows // 3 + share)),
        "delete 1 %, at random": lambda: data.delete(rng.choice(data.shape[0], share, replace=False)),
        "compact": data.compact,
    }
    for name, change in changes.items():
        began = time.perf_counter()
        change()
        seconds = round(time.perf_counter() - began, 3)
        cold = cutsvm.LinearSVC(**how)
        row = {"solver": solver, "change": name, "seconds_change": seconds}
        yield {**row, "fit": "from nothing", **measured(cold, store)}
        warm = pickle.loads(pickle.dumps(warm))  # as if the next fit were in another process
        yield {**row, "fit": "warm start", **measured(warm, store)}
        assert warm.lower_bound_ <= cold.objective_ and cold.lower_bound_ <= warm.objective_, "a bound is wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--C", type=float, default=1e4, help="times the number of rows")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--memory", default="1GB", help="the limit; the rows are read from disk")
    parser.add_argument("--solvers", default="auto,ocas")
    parser.add_argument("--folder", type=Path, help="where the store goes; by default the folder for temporary files")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = []
    for solver in options.solvers.split(","):
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="refit-") as temporary:
            for row in refits(solver, Path(temporary) / "store", options):
                found.append(row)
                print(row, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_rows(options.out / "refit.csv", FIELDS, found)
    size = options.rows * options.features * 4
    text = [
        "# Fits after a store has changed",
        "",
        f"{int(options.rows):,} rows of {options.features} features ({size / 1e9:.2f} GB, float32), two classes that",
        f"overlap, C n = {options.C:.0e}, gap {options.tol:g}, memory limit {options.memory}: the rows are read from",
        "disk, or from what the system has kept of it. One change after the other; after each a fit",
        "from nothing, and one with `warm_start` that goes on from the model and the planes of the version before.",
        "`passes` are over all rows,",
        "`rows visited` counts parts of passes too. Both have valid bounds: neither lower bound is above the other",
        f"objective. By benchmarks/refit.py, commit {commit()}.",
        "",
        "| solver | change | seconds it took | fit | seconds | passes | rows visited / rows | gap | kept |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in found:
        text.append("| " + " | ".join(str(row[name]) for name in FIELDS) + " |")
    (options.out / "refit.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
