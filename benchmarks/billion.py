"""A billion rows: the experiment of Bialon (2009), section 8, "memory economy", on a disk and under a cap on memory.

An artificial problem of ten features that can be separated is made block by block into a store, and a machine is
trained from it in a process of its own, by our default or by the paper's solver: analytic centres, (I2), buckets in
files, early returns, a free intercept, and its stop test. This process watches how much private memory (RssAnon) that
takes.

    python benchmarks/billion.py --rows 1e8 --solver default,paper --folder /where/there/is/room
    python benchmarks/billion.py --report-only

It writes results/billion.csv, a line for each size and solver, and results/billion.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "papers"))

from provenance import commit

RESULTS = Path(__file__).parent / "results"
BLOCK = 1 << 20
PAPER = {"rows": 1e9, "features": 10, "time": "20 h 03 m", "accuracy": "99.9917 %"}
FIELDS = (
    "rows", "features", "gigabytes", "C", "tol", "limit", "seconds_make", "seconds_read", "seconds_fit", "gap",
    "objective", "iterations", "reads", "rows_read", "note", "peak_megabytes", "accuracy", "solver", "intercept",
    "rows_written", "status", "cpu_fit", "commit",
)  # fmt: skip


def direction(features: int) -> np.ndarray:
    """The separating direction, of length 1."""
    w = np.random.default_rng(0).normal(size=features)
    return w / np.linalg.norm(w)


def blocks(rows: int, features: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Normal rows; the label is the side of a plane through 0 that a row is on."""
    w = direction(features).astype(np.float32)
    for number, start in enumerate(range(0, rows, BLOCK)):
        rng = np.random.default_rng([1, number])
        X = rng.standard_normal((min(BLOCK, rows - start), features), dtype=np.float32)
        yield X, np.where(X @ w > 0.0, 1.0, -1.0)


def make(folder: Path, rows: int, features: int) -> float:
    """The store; returns the seconds that it took."""
    import cutsvm

    began, shown = time.perf_counter(), time.perf_counter()

    def progress(done: int, written: int, _: float | None) -> None:
        nonlocal shown
        if time.perf_counter() - shown > 10.0:
            shown = time.perf_counter()
            left = (shown - began) * (rows - done) / done
            print(f"  {done / rows:.0%}, {written / 1e9:.1f} GB, {left:.0f} s left", flush=True)

    cutsvm.convert(blocks(rows, features), folder, progress=progress)
    return time.perf_counter() - began


def read_once(folder: Path) -> tuple[float, int]:
    """Seconds to read all blocks from the disk, and their bytes; the system is asked to forget them first."""
    files = sorted(folder.glob("data-*/block-*.bin"))
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    began, buffer, size = time.perf_counter(), bytearray(1 << 22), 0
    for file in files:
        with open(file, "rb", buffering=0) as stream:
            while many := stream.readinto(buffer):
                size += many
    return time.perf_counter() - began, size


def paper_solver() -> Any:
    """The solver of the paper: see docs/papers/bialon.md."""
    from cutsvm.solvers import ACCPM
    from cutsvm.solvers.accpm.solver import ACCPMSettings
    from cutsvm.solvers.bucketing.buckets import BucketSettings

    settings = ACCPMSettings(buckets=BucketSettings(only_if_it_pays=False))
    return ACCPM(formulation="I2", buckets=16, one_radius=True, epsilon=float(np.exp(-12.0)), settings=settings)


def fit(folder: Path, C: float, tol: float, limit: str, name: str, intercept: str) -> dict[str, Any]:
    """The worker: trains, and counts the errors block by block."""
    from cutsvm import LinearSVC, open_dataset

    began, used = time.perf_counter(), time.process_time()
    own: dict[str, Any] = {"tol": tol} if name == "default" else {"tol": 1e-15, "solver": paper_solver()}
    model = LinearSVC(C, intercept=intercept, memory_limit=f"{limit} total", n_jobs=-1, max_iter=100_000, **own).fit(
        folder
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    b = float(np.ravel(model.intercept_)[0])
    data, right = open_dataset(folder), 0
    for number in range(len(data.store.manifest.blocks)):
        (X,) = data.store.read(number)
        mine = slice(*data.store.edges[number : number + 2])
        right += int(np.count_nonzero((X @ model.coef_[0].astype(np.float32) > -b) == (data.y[mine] > 0)))
    last = model.history_[-1]
    return {
        "seconds_fit": seconds,
        "cpu_fit": cpu,
        "gap": float(model.gap_),
        "objective": float(model.objective_),
        "iterations": int(model.n_iter_),
        "reads": last["passes"],
        "rows_read": last["visits"],
        "rows_written": last["rows_written"],
        "status": model.status_.name,
        "note": last["note"],
        "seconds_sift": last["seconds_sift"],
        "accuracy": right / data.shape[0],
    }


def watched(arguments: list[str]) -> tuple[dict[str, Any], float]:
    """What the worker says, and the most private memory that it had, in megabytes, looked at from outside."""
    worker = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--worker", *arguments], stdout=subprocess.PIPE, text=True
    )
    peak = 0
    while worker.poll() is None:
        try:
            lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
        except OSError:
            break
        peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))])
        time.sleep(0.01)
    out, _ = worker.communicate()
    if worker.returncode:
        sys.exit(f"the fit ended with {worker.returncode}")
    return json.loads(out.splitlines()[-1]), peak * 1024 / 1e6


def clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{seconds:.1f} s"
    return f"{whole // 60} m {whole % 60:02d} s" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60:02d} m"


def read(out: Path) -> list[dict[str, str]]:
    """The stored lines; those from before there was a choice are of the default without intercept."""
    old = {
        "cpu_fit": "",
        "solver": "default",
        "intercept": "none",
        "rows_written": "0",
        "status": "CONVERGED",
        "commit": "earlier",
    }
    with open(out / "billion.csv", newline="") as stream:
        lines = [{key: value or old.get(key, "") for key, value in line.items()} for line in csv.DictReader(stream)]
    return sorted(({**old, **line} for line in lines), key=lambda line: (line["solver"], float(line["rows"])))


def projection(line: dict[str, str]) -> str:
    """To 1e9 rows: in proportion, by the clock and by the processor, and what reading and writing takes at least."""
    rows = float(line["rows"])
    more = 1e9 / rows
    moved = (float(line["rows_read"]) + float(line["rows_written"])) / rows
    by = f"{clock(more * float(line['seconds_fit']))} by the clock"
    if line["cpu_fit"]:
        by += f", {clock(more * float(line['cpu_fit']))} of the processor"
    return (
        f"Projected to 1e9 rows from {rows:.0e} by {line['solver']}, in proportion: {by}; if every row visited and "
        f"written came from this disk, cold, as in one reading: {clock(more * float(line['seconds_read']) * moved)}."
    )


def table(lines: list[dict[str, str]]) -> list[str]:
    """A line of the table for each fit, what the paper says, and the projections."""
    text = [
        "| solver | intercept | rows | GB | C | limit | one reading | training | processor | iterations | gap | reads "
        "| rows visited / rows | rows written / rows | peak memory | accuracy | commit |",
        "|" + " --- |" * 17,
    ]
    for line in lines:
        rows = float(line["rows"])
        cells = [
            line["solver"],
            line["intercept"],
            f"{rows:.0e}",
            f"{float(line['gigabytes']):.2f}",
            f"{float(line['C']):g}",
            line["limit"],
            clock(float(line["seconds_read"])),
            clock(float(line["seconds_fit"])),
            clock(float(line["cpu_fit"])) if line["cpu_fit"] else "",
            line["iterations"],
            f"{float(line['gap']):.0e}",
            line["reads"],
            f"{float(line['rows_read']) / rows:.2f}",
            f"{float(line['rows_written']) / rows:.0f}",
            f"{float(line['peak_megabytes']):.0f} MB",
            f"{100 * float(line['accuracy']):.4f} %",
            line["commit"],
        ]
        text.append("| " + " | ".join(cells) + " |")
    text += ["", f"The paper, in 2009: 1e9 rows in {PAPER['time']}, accuracy {PAPER['accuracy']}."]
    for kind in dict.fromkeys((line["solver"], line["intercept"]) for line in lines):
        last = [line for line in lines if (line["solver"], line["intercept"]) == kind][-1]
        if float(last["rows"]) < 1e9:
            text += ["", projection(last)]
    return text


def report(out: Path) -> str:
    text = [
        "# A billion rows",
        "",
        "Ten features, two classes that a plane separates, made into a store. Trained from the disk under a limit on",
        "private memory (RssAnon, watched from outside), by our default and by the solver of the paper with its stop",
        "test. `reads`: passes over all rows; the sample that training begins with is not counted, `rows visited` has",
        "it. One reading: all blocks once, cold. Accuracy is that on the training rows.",
        "",
        *table(read(out)),
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--C", type=float, default=10.0, help="on the sum of the losses, as in the paper's others")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--memory", default="900MB")
    parser.add_argument("--folder", type=Path, help="where the store goes; by default the folder for temporary files")
    parser.add_argument("--store", type=Path, help="a store that an earlier run has kept")
    parser.add_argument("--keep", action="store_true", help="keep the store")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--solver", default="default", help="default, paper, or both, separated by a comma")
    parser.add_argument("--intercept", default="free", choices=["free", "none"])
    parser.add_argument("--commit", default="", help="the commit that is measured, if it is not this one")
    parser.add_argument("--report-only", action="store_true", help="make the table from the CSV")
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        store, C, tol, limit, name, intercept = options.worker
        print(json.dumps(fit(Path(store), float(C), float(tol), limit, name, intercept)))
        return
    if options.report_only:
        (options.out / "billion.md").write_text(report(options.out))
        return
    rows = int(options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="billion-") as temporary:
        store = options.store or (options.folder / f"{rows}.store" if options.keep else Path(temporary) / "store")
        made = 0.0 if store.exists() else make(store, rows, options.features)
        print(f"made in {clock(made)}", flush=True)
        seconds, size = read_once(store)
        print(f"read once in {clock(seconds)}, {size / 1e9:.2f} GB", flush=True)
        for name in options.solver.split(","):
            fitted = watched([str(store), str(options.C), str(options.tol), options.memory, name, options.intercept])
            keep(options, fitted, name, {"seconds_make": made, "seconds_read": seconds, "gigabytes": size / 1e9})


def keep(options: argparse.Namespace, fitted: tuple[dict[str, Any], float], name: str, made: dict[str, float]) -> None:
    """Stores a line, and the table of all."""
    found, peak = fitted
    print(json.dumps(found), f"peak {peak:.0f} MB", flush=True)
    line = {
        "rows": int(options.rows),
        "features": options.features,
        "C": options.C,
        "tol": options.tol if name == "default" else "",
        "limit": options.memory,
        "peak_megabytes": peak,
        "solver": name,
        "intercept": options.intercept,
        "commit": options.commit or commit(),
        **made,
        **found,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "billion.csv"
    same = (float(options.rows), name, options.intercept)
    old = read(options.out) if file.exists() else []
    old = [known for known in old if (float(known["rows"]), known["solver"], known["intercept"]) != same]
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows([*old, line])
    (options.out / "billion.md").write_text(report(options.out))


if __name__ == "__main__":
    main()
