"""Nested cross-validation of kernel machines with an RBF kernel: seconds and accuracy, cutsvm and its peers.

    python benchmarks/kernel_nested.py                                    # everything: under an hour on two cores
    python benchmarks/kernel_nested.py --sets usps --jobs "cutsvm exact,liquidSVM"
    python benchmarks/kernel_nested.py --rows 400                         # tries it: a minute or two
    python benchmarks/kernel_nested.py --report-only

The 8 x 8 values of C and gamma of Melki and Kecman (2016), 5 x 5 stratified folds, features in [0, 1]. Each job has a
process of its own and a limit of time, after the same job on a few rows that is not timed. What is stored for this
commit is not run again, unless it failed or had less time.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import importlib.util
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import data
from binary import words
from kernel_nested_jobs import FITS, FOLDS, JOBS, SAMPLE, Problem, Row, load
from peers import CORES
from provenance import commit, measured_on, write_rows

FIELDS = "set n d classes job version threads limit status seconds measured run of".split()
FIELDS += "accuracy spread choices message".split()
KEY = "set n job threads commit".split()
START = 300.0  # seconds for imports and the job on few rows
BASES = ("cutsvm exact", "cutsvm sgd 1 epoch")  # ratios are to these


def run(job: Callable[..., Iterator[Row]], problem: Problem, threads: int, limit: float) -> Row:
    """The last result that a job has given within the limit, and how it ended."""
    context = multiprocessing.get_context("fork")  # the rows are shared; nothing here has started threads
    pipe, end = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(end, job, problem, threads))
    process.start()
    end.close()
    found: Row = {"status": "error", "message": "it did not begin"}
    try:
        if not pipe.poll(START):
            return found
        found, deadline = pipe.recv(), time.monotonic() + limit
        while found["status"] == "running" and pipe.poll(max(0.0, deadline - time.monotonic())):
            found |= pipe.recv()
        late = {"status": "limit", "message": f"ended after {limit:g} s"}
        return found | (late if found["status"] == "running" else {})
    except EOFError:
        process.join()
        return found | {"status": "error", "message": f"its process ended with code {process.exitcode}"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that it has started
        process.join()


def _work(pipe: Any, job: Callable[..., Iterator[Row]], problem: Problem, threads: int) -> None:
    """What the process of a job does."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    try:
        list(job(problem.few(), threads))
        pipe.send({"status": "running"})
        for row in job(problem, threads):
            pipe.send(row)
        pipe.send({"status": "ok"})
    except Exception as error:  # a job that fails is reported, and the others go on
        pipe.send({"status": "error", "message": f"{type(error).__name__}: {error}"})


def run_all(options: argparse.Namespace, path: Path) -> None:
    """All jobs that are not stored yet; the CSV is written after each."""
    rows = read(path)
    for name in options.sets:
        if not (options.data / f"{name}.npz").exists():
            print(f"Skipped, no file: {name}")
            continue
        problem = load(name, options.data, options.rows)
        for job in options.jobs:
            if importlib.util.find_spec(JOBS[job].module) is None:
                print(f"Skipped, not installed: {job}")
                continue
            row: Row = dict.fromkeys([*FIELDS, "commit"], "")
            row |= {"set": name, "n": len(problem.y), "d": problem.X.shape[1], "classes": int(problem.y.max()) + 1}
            row |= {"job": job, "threads": options.threads, "limit": options.most_seconds, "commit": commit()}
            same = [stored for stored in rows if all(str(stored[key]) == str(row[key]) for key in KEY)]
            if any(old["status"] == "ok" or _had(old, options.most_seconds) for old in same):
                continue
            with suppress(importlib.metadata.PackageNotFoundError):
                row["version"] = importlib.metadata.version(JOBS[job].package)
            row |= run(JOBS[job], problem, options.threads, options.most_seconds)
            rows = [stored for stored in rows if stored not in same] + [row]
            write_rows(path, FIELDS, rows)
            print(f"{row['status']:6} {row['measured'] or 0.0:9.2f} s  {name} {job} {row['message']}", flush=True)


def _had(row: Row, seconds: float) -> bool:
    return row["status"] == "limit" and float(row["limit"]) >= seconds


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def report(path: Path) -> None:
    """The tables, of the last result of each job."""
    rows = list({tuple(row[key] for key in KEY[:-1]): row for row in read(path)}.values())
    peers = {JOBS[row["job"]].package: row["version"] for row in rows}
    named = ", ".join(f"{name} {version}" for name, version in peers.items() if name != "cutsvm")
    text = ["# Kernel machines: nested cross-validation", "", f"Measured on {measured_on(rows)}. Peers: {named}.", ""]
    text += [
        f"8 values of C x 8 of gamma, {FOLDS} x {FOLDS} folds: {FITS:,} fits. **Scaled** seconds: not all were run;"
    ]
    text += ["the seconds of those that were, times all fits over these. Accuracy: mean over the outer folds, and its"]
    text += ["standard deviation. Ratios: seconds over those of ours in the head of the column.", ""]
    for place in dict.fromkeys((row["set"], row["n"], row["threads"]) for row in rows):
        mine = {row["job"]: row for row in rows if (row["set"], row["n"], row["threads"]) == place}
        text += [f"## {place[0]}, {int(place[1]):,} rows, {place[2]} threads", ""]
        text += [f"| job | seconds | {' | '.join(f'over {base}' for base in BASES)} | accuracy, % | note |"]
        text += ["|---" * (4 + len(BASES)) + "|"]
        for job in sorted(mine, key=list(JOBS).index):
            text.append(f"| {' | '.join([job, *cells(mine[job], [mine.get(base) for base in BASES])])} |")
        text.append("")
    path.with_suffix(".md").write_text("\n".join(text).rstrip() + "\n")
    print(f"Written: {path.with_suffix('.md')}")


def cells(row: Row, bases: list[Row | None]) -> list[str]:
    """Seconds, ratios, accuracy and note."""
    if not row["seconds"] or row["status"] == "error":
        ended = f"> {float(row['limit']):.0f}" if row["status"] == "limit" else "failed"
        return [ended, *("" for _ in bases), "", row["message"]]
    seconds, part = float(row["seconds"]), row["run"] != row["of"]
    scaled = f"**scaled** from {row['run']} of {int(row['of']):,} fits, {float(row['measured']):.1f} s"
    known = [float(base["seconds"]) if base and base["status"] == "ok" else None for base in bases]
    ratios = [f"{seconds / base:.2f}" if base else "" for base in known]
    accuracy = f"{100 * float(row['accuracy']):.2f} ± {100 * float(row['spread']):.2f}" if row["accuracy"] else ""
    note = "; ".join(filter(None, [scaled if part else "", row["message"]]))
    return [f"{seconds:,.1f}" + " (scaled)" * part, *ratios, accuracy, note]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=words, default=list(SAMPLE), help=f"comma-separated; default: {','.join(SAMPLE)}")
    add("--jobs", type=words, default=list(JOBS), help=f"comma-separated; default: {','.join(JOBS)}")
    add("--rows", type=int, help="this number of rows, drawn at random, to try it")
    add("--most-seconds", type=float, default=900.0, help="limit of a job")
    add("--threads", type=int, default=min(2, CORES))
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, help="folder of the results; default: benchmarks/results, with --rows a temporary one")
    add("--report-only", action="store_true", help="make the tables from the CSV that is there")
    return parser


def main() -> None:
    options = parser().parse_args()
    wrong = [name for name in options.jobs if name not in JOBS] + [name for name in options.sets if name not in SAMPLE]
    if wrong:
        sys.exit(f"Unknown: {', '.join(wrong)}. Jobs: {', '.join(JOBS)}. Sets: {', '.join(SAMPLE)}.")
    usual = Path(__file__).parent / "results"
    options.out = options.out or (Path(tempfile.mkdtemp(prefix="cutsvm-nested-")) if options.rows else usual)
    options.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # a job ends with this process
    path = options.out / "kernel_nested.csv"
    if not options.report_only:
        run_all(options, path)
    report(path)


if __name__ == "__main__":
    main()
