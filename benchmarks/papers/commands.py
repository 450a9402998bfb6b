"""`cutsvm train --paper NAME` on the papers' own data: iterations, objective and error beside the paper's.

    python benchmarks/papers/commands.py [--only joachims,bialon]     # resumes: runs that are stored are kept
    python benchmarks/papers/commands.py --report-only

Every line is one command, run as a user would, on a file of the rows that the paper trains on as far as they are known:
features in [0, 1] as in `benchmarks/data.py`, covtype split at random into as many rows as the paper's.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
import paper
from binary_report import markdown
from pages import with_table

FIELDS = [
    *"experiment set n words C iterations objective lower gap seconds status error".split(),
    *"paper_iterations paper_seconds paper_error note ended".split(),
]
PAPERS = ("joachims", "franc-sonnenburg", "arnosti", "bialon", "melki")
Row = dict[str, Any]


class Job(NamedTuple):
    """One command; `rows` 0: all. The paper's figures as it prints them, "" where it has none in its text."""

    paper: str
    set: str
    words: str
    rows: int = 0
    iterations: str = ""
    seconds: str = ""
    error: str = ""
    note: str = ""


# Joachims: table 1 and section 4.1; C is the paper's. Its errors are in pictures only.
JOACHIMS = [
    Job("joachims", "covtype", "-c 1000000", 522_911, seconds="171.7"),
    Job("joachims", "a9a", "-c 1628.05", seconds="3.1", note="Adult, C = 0.05 n"),
    Job("joachims", "w8a", "-c 49749", seconds="7.6", note="Web, C = n"),
]
# Franc and Sonnenburg: the text of table 2 did not survive in the copy that we have.
FRANC = [
    Job("franc-sonnenburg", "covtype", "-c 1000000", 522_911, note="the paper's table 2 is not in our copy"),
    Job("franc-sonnenburg", "mnist", "-c 60000", note="one digit against the rest; the paper's C is not known"),
]
ARNOSTI = [
    Job("arnosti", "poker", "-c 1 --line-search gca2", iterations="235", note="125,008 of the paper's 8 million rows"),
    Job("arnosti", "poker", "-c 1 --line-search tca", iterations="234", note="likewise"),
    Job("arnosti", "poker", "-c 1 --line-search exact --guard first_steps", iterations="231", note="likewise"),
    Job("arnosti", "mnist-10", "-c 1 --line-search exact", error="5.57"),
    Job("arnosti", "mnist-10", "-c 1 --line-search gca2", error="5.56"),
    Job("arnosti", "mnist-10", "-c 1 --line-search tca", error="5.56"),
    Job("arnosti", "covtype-7", "-c 1 --line-search exact", error="35.92"),
    Job("arnosti", "covtype-7", "-c 1 --line-search gca2", error="35.90"),
    Job("arnosti", "covtype-7", "-c 1 --line-search tca", error="35.84"),
    Job("arnosti", "covtype-7", "-c 100 --line-search gca2", iterations="686"),
    Job("arnosti", "covtype-7", "-c 100 --line-search tca", iterations="603"),
    Job("arnosti", "covtype-7", "-c 100 --line-search exact", iterations="744"),
    Job("arnosti", "covtype-7", "-c 100 --line-search exact --guard every_zero", iterations="569"),
]
BIALON = [
    Job("bialon", "covtype", "-c 0.1", 523_293, "774", "1572", "22.60"),
    Job("bialon", "covtype", "-c 10", 523_293, "747", "1510", "22.58"),
    Job("bialon", "covtype", "-c 1000", 523_293, "716", "1453", "22.60"),
    Job("bialon", "kdd04_bio", "-c 0.1", 131_320, "1673", "1866", "0.27"),
    Job("bialon", "kdd04_bio", "-c 10", 131_320, "1604", "1817", "0.27"),
    Job("bialon", "kdd04_bio", "-c 1000", 131_320, "1632", "1840", "0.27"),
]
MELKI_SETS = {"iris": "4.00", "wine": "2.83", "glass": "30.83", "heart": "15.19", "sonar": "10.51"}
MELKI = [
    Job("melki", name, "-c 256 --gamma 1 -v 5", error=error, note="one C and gamma of its grid; paper: nested")
    for name, error in MELKI_SETS.items()
]
JOBS = [*MELKI, *JOACHIMS, *FRANC, *BIALON, *ARNOSTI]


def rows_of(job: Job, folder: Path) -> tuple[Any, np.ndarray]:
    """The rows that are trained on; those of the kernel sets by their files, features in [0, 1]."""
    if job.paper == "melki":
        with np.load(folder / f"{job.set}.npz") as file:
            return data.unit_range(file["X"]), file["y"]
    found = data.load(job.set, folder)
    found = found.subset(job.rows) if job.rows else found
    return found.X, found.y


def file_of(job: Job, folder: Path) -> Path:
    """Those rows as a file that `cutsvm train` reads, written once."""
    path = data.TEMPORARY / f"{job.set}-{job.rows or 'all'}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        X, y = rows_of(job, folder)
        unfinished = path.with_suffix(f".{os.getpid()}.npz")
        parts = {"X": X} if isinstance(X, np.ndarray) else {"X": X.toarray()}
        np.savez(unfinished, y=y, **parts)
        unfinished.replace(path)
    return path


def run(job: Job, options: argparse.Namespace) -> Row:
    """The command, and what its JSON says."""
    path = file_of(job, options.data)
    model = path.with_suffix(".model")
    words = ["--paper", job.paper, *shlex.split(job.words)]
    limit = [] if "-v" in words else ["--max-time", f"{options.time_limit:g}"]
    command = [sys.executable, "-m", "cutsvm.cli", "train", *words, *limit, "-q", "--json", str(path)]
    command += [] if "-v" in words else [str(model)]
    done = subprocess.run(command, capture_output=True, text=True)
    row: Row = dict.fromkeys(FIELDS, "") | {"experiment": job.paper, "set": job.set, "words": shlex.join(words)}
    row |= {"note": job.note, "paper_iterations": job.iterations, "paper_seconds": job.seconds}
    row |= {"paper_error": job.error, "ended": done.returncode == 0}
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr}")
    facts = json.loads(done.stdout)
    row |= {"n": facts["rows"]}
    if "-v" in words:
        return row | {"error": 100.0 * (1.0 - facts["cross_validation_accuracy"])}
    own = {"iterations": "n_iter", "lower": "lower_bound"}
    row |= {key: facts[own.get(key, key)] for key in "C iterations objective lower gap seconds status".split()}
    row["ended"] = facts["converged"]
    measured = [sys.executable, "-m", "cutsvm.cli", "predict", "-q", "--json", str(path), str(model)]
    said = json.loads(subprocess.run(measured, capture_output=True, text=True, check=True).stdout)
    return row | {"error": 100.0 * (1.0 - said["accuracy"])}


def solve(options: argparse.Namespace, path: Path) -> None:
    """One command after the other; what is stored already is kept unless --again says otherwise."""
    rows = read(path) if path.exists() else []
    for job in JOBS:
        words = shlex.join(["--paper", job.paper, *shlex.split(job.words)])
        known = [row for row in rows if (row["set"], row["words"]) == (job.set, words)]
        if job.paper not in options.only or (known and not options.again):
            continue
        if not (options.data / f"{data.MULTI[job.set][0] if job.set in data.MULTI else job.set}.npz").exists():
            print(f"{job.set}: not there")
            continue
        row = run(job, options)
        print(
            {key: row[key] for key in "set words n iterations objective gap seconds error status".split()}, flush=True
        )
        rows = [other for other in rows if other not in known] + [row]
        paper.save(path, FIELDS, rows, PAPERS)


def read(path: Path) -> list[Row]:
    return paper.read(path, {"experiment", "set", "words", "status", "note", "paper_iterations"})


def make(path: Path, docs: Path) -> None:
    """The table, beside the CSV and on the page about all papers."""
    head = [
        "command",
        "set",
        "rows",
        "iterations",
        "paper",
        "objective",
        "gap",
        "error, %",
        "paper",
        "s",
        "paper",
    ]
    table = [cells(row) for row in read(path)]
    lines = [*markdown([*head, ""], table), *paper.commits(read(path))]
    path.with_suffix(".md").write_text("\n".join(["# --paper on the papers' data", "", *lines]).rstrip() + "\n")
    page = docs / "papers" / "index.md"
    if page.exists():
        page.write_text(with_table(page.read_text(), "commands", lines))


def cells(row: Row) -> list[str]:
    def shown(key: str, form: str) -> str:
        text = "" if row[key] == "" else format(row[key], form)
        return text if row["ended"] or not text else f"({text})"

    own = [f"`{row['words']}`", row["set"], f"{row['n']:,.0f}", shown("iterations", ".0f"), row["paper_iterations"]]
    own += [
        shown("objective", ".6g"),
        shown("gap", ".1e"),
        shown("error", ".2f"),
        shown("paper_error", ".2f").strip("()"),
    ]
    return [*own, shown("seconds", ".3g"), shown("paper_seconds", "g").strip("()"), row["note"]]


def arguments() -> argparse.Namespace:
    found = paper.parser(__doc__, PAPERS, "nothing less")
    paper.limited(found, 1200.0)
    found.add_argument("--again", action="store_true", help="run what is stored already, too")
    return paper.parsed(found)


if __name__ == "__main__":
    paper.main("commands", arguments(), solve, make)
