"""Memory that a fit takes beyond its data, and whether the data were copied.

    python benchmarks/memory.py [--set covtype] [--C 1e2,1e4,1e6] [--tol 1e-3]

Each fit has a fresh process, which loads float32 dense rows from a file, fits a few of them as a warm-up, and
then all. The peak of its resident memory during the fit, less what was resident before, is the measure.
"""

from __future__ import annotations

import argparse
import csv
import gc
import multiprocessing
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import data

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MB = 2**20


def resident(field: str = "VmRSS") -> int:
    """Bytes of a field of /proc/self/status: VmRSS now, VmHWM the highest so far."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


class Peak:
    """The highest resident memory within a `with` block."""

    def __enter__(self) -> Peak:
        gc.collect()
        try:
            CLEAR.write_text("5")  # sets VmHWM back to VmRSS
            self.sampler = None
        except OSError:
            self.going = True
            self.sampler = threading.Thread(target=self._sample, daemon=True)
        self.before = self.highest = resident()
        if self.sampler:
            self.sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.sampler:
            self.going = False
            self.sampler.join()
        else:
            self.highest = resident("VmHWM")

    def _sample(self) -> None:
        while self.going:
            self.highest = max(self.highest, resident())
            time.sleep(0.001)


def fit(folder: str, Cn: float, tol: float, solver: str, pipe: Any) -> None:
    """In the fresh process: load, warm up, fit, tell."""
    from cutsvm import LinearSVC

    warnings.simplefilter("ignore")
    X, y = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    n, d = X.shape
    fixed: dict[str, Any] = {"solver": solver, "intercept": "regularized", "n_jobs": -1}
    LinearSVC(1.0, tol=0.1, **fixed).fit(X[:5000].copy(), y[:5000])
    model = LinearSVC(Cn / n, tol=tol, **fixed)
    with Peak() as peak:
        model.fit(X, y)
    planes = max(record["planes"] for record in model.history_)
    row = {"n": n, "d": d, "Cn": Cn, "tol": tol, "gap": model.gap_, "iterations": model.n_iter_}
    row |= {"X_bytes": X.nbytes, "before": peak.before, "extra_bytes": peak.highest - peak.before}
    row |= {
        "planes": planes,
        "plane_bytes": 8 * planes * (d + 1),
        "how": "sampled" if peak.sampler else "VmHWM",
    }
    pipe.send(row)


def measure(folder: str, Cn: float, tol: float, solver: str) -> dict[str, Any]:
    """Run `fit` in a process of its own."""
    context = multiprocessing.get_context("spawn")
    pipe, end = context.Pipe(duplex=False)
    process = context.Process(target=fit, args=(folder, Cn, tol, solver, end))
    process.start()
    end.close()
    try:
        row = pipe.recv()
    except EOFError:
        raise SystemExit("the fit failed: see above") from None
    process.join()
    vector = 8 * row["n"]
    row["vectors"] = row["extra_bytes"] / vector
    row["vectors_without_planes"] = (row["extra_bytes"] - row["plane_bytes"]) / vector
    row["X_copied"] = row["extra_bytes"] >= row["X_bytes"]
    return row


def report(name: str, rows: list[dict[str, Any]]) -> str:
    """The result as markdown."""
    first = rows[0]
    text = [
        f"# Memory of a fit: {name}, {first['n']} x {first['d']}, float32",
        "",
        f"X is {first['X_bytes'] / MB:.0f} MB, a vector of n {8 * first['n'] / MB:.1f} MB (float64).",
        f"Peak during the fit by {first['how']}, less what was resident before it.",
        "",
        "| C n | beyond X, MB | in vectors of n | planes | planes, MB | vectors without planes | X copied |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        extra, planes = row["extra_bytes"] / MB, row["plane_bytes"] / MB
        cells = [
            f"{row['Cn']:g}",
            f"{extra:.1f}",
            f"{row['vectors']:.2f}",
            str(row["planes"]),
            f"{planes:.2f}",
        ]
        cells += [f"{row['vectors_without_planes']:.2f}", "yes or as much" if row["X_copied"] else "no"]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--set", default="covtype", help="a dense set of data.py")
    add("--C", type=lambda text: [float(part) for part in text.split(",")], default=[1e2, 1e4, 1e6])
    add("--tol", type=float, default=1e-3)
    add("--solver", default="auto")
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    return parser.parse_args()


def load(name: str, folder: Path) -> data.DataSet:
    """The set, or a made-up one of covtype's shape where its file is missing."""
    if data.available([name], folder)[0]:
        return data.load(name, folder)
    print(f"Skipped: {name} is not in {folder}; a synthetic set of covtype's shape takes its place.")
    rng = np.random.default_rng(0)
    X = rng.random((581_012, 54), dtype=np.float32)
    return data.DataSet("synthetic", X, np.where(X @ rng.standard_normal(54) > 0, 1.0, -1.0))


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    dataset = load(options.set, options.data)
    if dataset.sparse:
        raise SystemExit(f"{options.set} is sparse; this measures dense sets")
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", dataset.X)
        np.save(f"{folder}/y.npy", dataset.y)
        rows = [measure(folder, Cn, options.tol, options.solver) for Cn in options.C]
    with (options.out / "memory.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    text = report(dataset.name, rows)
    (options.out / "memory.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
