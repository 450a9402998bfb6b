"""The tables and the figure of Bialon (2009), A linear Support Vector Machine solver, made again; and rows read.

    python benchmarks/papers/bialon.py [--only table1,table2,figure1,reads]
    python benchmarks/papers/bialon.py --quick          # few rows, about a minute, into a temporary folder

Each experiment below is a function that lists its fits; one loop runs them. C multiplies the sum of the losses, as in
the paper and in LinearSVC, and the intercept is free. `ACCPM(epsilon=exp(-12))` is the paper's solver with its stop
test (or a certified gap of 1e-6, if that comes first): (I2) with mechanism 1, (I1) without; buckets are mechanism 2.
`CPA(epsilon=..., shards=1)` is the algorithm of SVM-perf, whose epsilon is in percent: 0.1 there is a mean loss of
0.001 here. Gets and puts are rows read for their scores, those of a dispatch included, and rows written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import bialon_report
import data
import paper

FIELDS = [
    *"experiment set solver variant n d C epsilon tol limit seconds iterations gap objective lower gets puts".split(),
    *"test_accuracy train_accuracy ended status seconds_scores seconds_planes seconds_qp seconds_centre".split(),
    *"seconds_sift message".split(),
]
STOP = float(np.exp(-12.0))  # the paper's stop test
TIGHT = 1e-6  # a certified gap that ends these fits as well, if it comes first
Row = dict[str, Any]
# Rows that are trained on; the others are the test. 0: all.
TRAIN = {"covtype": 523_293, "kdd04_bio": 131_320, "artificial": 0}
NONE: dict[str, Any] = {"buckets": 1}
ONE_SIDE: dict[str, Any] = {"buckets": 16, "both_sides": False, "whiten": False}
TWO_SIDES: dict[str, Any] = {"buckets": 16, "both_sides": True, "whiten": False}
WHITENED: dict[str, Any] = {"buckets": 16, "both_sides": True, "whiten": True}
MECHANISM_2 = {"none": NONE, "one side": ONE_SIDE, "two sides": TWO_SIDES, "whitened": WHITENED}


class Job(NamedTuple):
    """One fit; `settings` are the solver's. `n` 0: the training rows. `epsilon` 0: only the gap `tol` ends it."""

    set: str
    solver: str
    variant: str
    settings: dict[str, Any]
    C: float
    n: int = 0
    epsilon: float = 0.0
    tol: float = 1e-15
    limit: float = 1.0  # in units of the time limit
    disk: bool = False


def table1() -> list[Job]:
    """Mechanisms on and off, and what is ours."""
    plans = {
        "1 on, 2 on": ("I2", ONE_SIDE),
        "1 off, 2 on": ("I1", ONE_SIDE),
        "1 on, 2 off": ("I2", NONE),
        "1 off, 2 off": ("I1", NONE),
        "1 on, 2 on both sides": ("I2", TWO_SIDES),
        "1 on, 2 on both sides, whitened": ("I2", WHITENED),
        "1 off, 2 on both sides, whitened": ("I1", WHITENED),
    }
    jobs = [
        Job("artificial", "accpm", name, {"formulation": form, **more}, 10.0, epsilon=STOP, tol=TIGHT)
        for name, (form, more) in plans.items()
    ]
    return [*jobs, jobs[0]._replace(variant="1 on, 2 on, rows and buckets on disk", disk=True)]


def table2() -> list[Job]:
    """The paper's solver, ours from it, and SVM-perf's algorithm at the epsilons of the paper, in percent."""
    jobs = []
    for name in ("covtype", "kdd04_bio"):
        for C, epsilons in ((0.1, (1e-4, 1e-3, 0.1)), (10.0, (1e-3, 0.1)), (1000.0, (0.1,))):
            jobs.append(Job(name, "accpm", "author", {"formulation": "I2", **ONE_SIDE}, C, epsilon=STOP, tol=TIGHT))
            jobs += [Job(name, "cpa", f"{e:g}", {"shards": 1}, C, epsilon=e / 100) for e in epsilons]
    return jobs


def figure1() -> list[Job]:
    """Time against C: all to the same certified gap, and SVM-perf's algorithm by its own rule."""
    jobs = []
    for C in (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0):
        common: dict[str, Any] = {"C": C, "n": 50_000, "tol": 1e-3, "limit": 0.4}
        jobs += [
            Job("covtype", "accpm", "accpm", {"formulation": "I1", **WHITENED}, **common),
            Job("covtype", "cpa", "cpa", {"shards": 1}, **common),
            Job("covtype", "cpa", "cpa, epsilon 0.1 %", {"shards": 1}, **common | {"epsilon": 1e-3, "tol": 1e-15}),
            Job("covtype", "ocas", "ocas, one shard", {"shards": 1}, **common),
            Job("covtype", "ocas", "ocas", {}, **common),
        ]
    return jobs


def reads() -> list[Job]:
    """Rows read on all of covtype to a gap of 1e-4, C n = 1e4, by what mechanism 2 spares."""
    jobs = []
    for variant, more in MECHANISM_2.items():
        common: dict[str, Any] = {"C": 1e4 / TRAIN["covtype"], "tol": 1e-4}
        jobs += [
            Job("covtype", f"accpm {form}", variant, {"formulation": form, **more}, **common) for form in ("I1", "I2")
        ]
        jobs += [Job("covtype", name, variant, {"shards": 1, **more}, **common) for name in ("cpa", "ocas")]
    return [*jobs, Job("covtype", "sifting", "", {}, **common)]


EXPERIMENTS: dict[str, Callable[[], list[Job]]] = {
    "table1": table1,
    "table2": table2,
    "figure1": figure1,
    "reads": reads,
}


def artificial(n: int = 20_000, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Random rows in a cube, cut by a random plane; labels near it are uncertain, so that 88 to 89 % can be right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    w = rng.normal(size=d)
    score = X @ w / np.linalg.norm(w)
    return X, np.where(score + 0.21 * rng.normal(size=n) > 0.0, 1.0, -1.0)


class Bench:
    """One data set at a time, split once for all, and fits on it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.name = ""

    def open(self, name: str) -> None:
        if name == self.name:
            return
        X, y = artificial() if name == "artificial" else data.load(name, self.options.data)[1:3]
        order = np.random.default_rng(0).permutation(len(y))
        self.X, self.y, self.name = np.ascontiguousarray(X[order]), y[order], name
        self.train = TRAIN[name] or len(y)
        if self.options.quick:
            self.X, self.y, self.train = self.X[:6_000], self.y[:6_000], 4_000

    def run(self, job: Job) -> Row:
        """One fit. One that fails says why."""
        self.open(job.set)
        n = min(job.n or self.train, self.train)
        row: Row = dict.fromkeys(FIELDS, "") | {key: value for key, value in job._asdict().items() if key in FIELDS}
        # A part of the rows keeps C n.
        C = job.C * self.train / n
        row |= {"n": n, "d": self.X.shape[1], "limit": job.limit * self.options.time_limit}
        try:
            model, seconds = self.fit(job, C, n, row["limit"])
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            row |= {"ended": False, "message": f"{type(error).__name__}: {error}"}
        else:
            row |= facts(model) | {"seconds": seconds}
            row["train_accuracy"] = float(model.score(self.X[:n], self.y[:n]))
            if self.train < len(self.y):
                row["test_accuracy"] = float(model.score(self.X[self.train :], self.y[self.train :]))
        show(row)
        return row

    def fit(self, job: Job, C: float, n: int, limit: float) -> tuple[Any, float]:
        import cutsvm
        from cutsvm import solvers

        kind = {"accpm": solvers.ACCPM, "cpa": solvers.CPA, "ocas": solvers.OCAS, "sifting": solvers.Sifting}
        settings = job.settings | ({"epsilon": job.epsilon} if job.epsilon else {})
        solver = kind[job.solver.split()[0]](**settings)
        model = cutsvm.LinearSVC(C, solver=solver, tol=job.tol, max_time=limit, n_jobs=-1, max_iter=100_000)
        X, y = self.X[:n], self.y[:n]
        if not job.disk:
            start = perf_counter()
            return model.fit(X, y), perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "rows.store"
            cutsvm.convert((X, y), store)
            model.set_params(memory_limit="1GB")
            start = perf_counter()
            return model.fit(store), perf_counter() - start


def facts(model: Any) -> Row:
    """What a fitted model says of its run."""
    last = model.history_[-1]
    found: Row = {name: last[name] for name in FIELDS if name.startswith("seconds_")}
    found |= {"iterations": last["iteration"], "gap": model.gap_, "objective": model.objective_}
    found |= {"lower": model.lower_bound_, "gets": last["visits"] - last["rows_read"], "puts": last["rows_written"]}
    return found | {"ended": bool(model.converged_), "status": model.status_.name}


def show(row: Row) -> None:
    what = f"{row['experiment']} {row['set']} {row['solver']} {row['variant']} n {row['n']} C {row['C']:g}".strip()
    if row["message"]:
        print(f"{what}: {row['message']}", flush=True)
        return
    work = f"{row['seconds']:.2f} s, {row['iterations']} iterations, gap {row['gap']:.1e}"
    rows = f"gets {row['gets'] / row['n']:.1f} n, puts {row['puts'] / row['n']:.0f} n"
    print(f"{what}: {work}, {rows}, {100 * row['train_accuracy']:.2f} %{'' if row['ended'] else ', limit'}", flush=True)


def solve(options: argparse.Namespace, path: Path) -> None:
    """Run what is asked for; the results of other experiments stay in the file."""
    kept = paper.read(path, bialon_report.TEXT) if path.exists() else []
    kept = [row for row in kept if row["experiment"] not in options.only]
    there, missing = data.available([name for name in TRAIN if name != "artificial"], options.data)
    if missing:
        print(f"Skipped, no file: {', '.join(missing)}.")
    bench = Bench(options)
    found: list[Row] = []
    for experiment in options.only:
        for job in EXPERIMENTS[experiment]():
            if job.set in (*there, "artificial"):
                found.append(bench.run(job) | {"experiment": experiment})
        paper.save(path, FIELDS, kept + found, EXPERIMENTS)


if __name__ == "__main__":
    options = paper.parser(__doc__, EXPERIMENTS, "4,000 rows to train on")
    paper.limited(options, 45.0, of="per fit, some less")
    paper.main("bialon", paper.parsed(options), solve, bialon_report.make)
