"""The tables and the figure of Bialon (2009), A linear Support Vector Machine solver, made again; and rows read.

    python benchmarks/papers/bialon.py [--only table1,mechanisms,table2,figure1,reads,stops] [--resume]
    python benchmarks/papers/bialon.py --quick          # few rows, about a minute, into a temporary folder

Each experiment below is a function that lists its fits; one loop runs them, and the results are stored after each fit:
`--resume` keeps those that are there. C multiplies the sum of the losses, as in the paper and in LinearSVC, and the
intercept is free.

PAPER is the paper's solver: (I2), its oracle that returns early, its buckets dispatched by Remark 1, one R, and its
stop test, which alone ends the fit. `CPA(exact=True)` is the algorithm of SVM-perf, whose epsilon is in percent: 0.1
there is a mean loss of 0.001 here. Gets and puts are rows read for their scores, those of a dispatch included, and rows
written.

Other code on the same fits: PYTHONPATH=OTHER/src python benchmarks/papers/bialon.py --only mechanisms --store-as before
--commit ITS_COMMIT.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import bialon_report
import data
import paper
from provenance import commit

FIELDS = [
    *"experiment set solver variant place seed n d C epsilon tol limit seconds cpu iterations gap objective".split(),
    *"lower gets puts test_accuracy train_accuracy ended status seconds_scores seconds_planes seconds_qp".split(),
    *"seconds_centre seconds_sift last_distance message".split(),
]
KEYS = ["experiment", "set", "solver", "variant", "place", "seed", "C", "epsilon", "tol"]
STOP = float(np.exp(-12.0))  # the paper's stop test
TIGHT = 1e-6
EXACT = 1e-15  # a gap that is not reached: the solver's own test ends the fit
Row = dict[str, Any]
# Rows that are trained on; the others are the test. 0: all.
TRAIN = {"covtype": 523_293, "kdd04_bio": 131_320}
NONE: dict[str, Any] = {"buckets": 1}
ONE_SIDE: dict[str, Any] = {"buckets": 16, "both_sides": False, "whiten": False}
TWO_SIDES: dict[str, Any] = {"buckets": 16, "both_sides": True, "whiten": False}
WHITENED: dict[str, Any] = {"buckets": 16, "both_sides": True, "whiten": True}
MECHANISM_2 = {"none": NONE, "one side": ONE_SIDE, "two sides": TWO_SIDES, "whitened": WHITENED}
REMARK_1 = {"only_if_it_pays": False}  # of BucketSettings: nothing but the paper's rule
PAPER: dict[str, Any] = {"formulation": "I2", **ONE_SIDE, "one_radius": True, "dispatch": REMARK_1}
COMBINATIONS = {
    "1 on, 2 on": ("I2", ONE_SIDE),
    "1 off, 2 on": ("I1", ONE_SIDE),
    "1 on, 2 off": ("I2", NONE),
    "1 off, 2 off": ("I1", NONE),
}


class Job(NamedTuple):
    """One fit; `settings` are the solver's. `n` 0: the training rows. `epsilon` 0: only the gap `tol` ends it.

    place: of the rows: memory; disk; cold: on disk, and not in the system's cache when the fit begins. threads: its
    number, -1: all.
    """

    set: str
    solver: str
    variant: str
    settings: dict[str, Any]
    C: float
    n: int = 0
    epsilon: float = 0.0
    tol: float = EXACT
    limit: float = 1.0  # in units of the time limit
    place: str = "memory"
    seed: int = 0
    threads: int = -1


def table1() -> list[Job]:
    """The paper's solver with its mechanisms on and off, by its own stop test."""
    jobs = []
    for seed in range(5):
        for place in ("memory", "disk"):
            for name, (form, more) in COMBINATIONS.items():
                settings = PAPER | {"formulation": form, **more}
                common: dict[str, Any] = {"epsilon": STOP, "place": place, "seed": seed, "threads": 1, "n": 20_000}
                jobs.append(Job("artificial", "accpm", name, settings, 10.0, **common))
    return jobs


def mechanisms() -> list[Job]:
    """Mechanisms on and off in our solver, all to the same certified gap: by the number of rows and where they are."""
    jobs = []
    for n, seeds in ((20_000, 5), (200_000, 3), (2_000_000, 2)):
        for seed in range(seeds):
            for place in ("memory", "disk", "cold"):
                for name, (form, more) in COMBINATIONS.items():
                    tol = TIGHT if n < 1_000_000 else 10 * TIGHT  # rounding errors of a sum of n rows are in the gap
                    common: dict[str, Any] = {"n": n, "tol": tol, "place": place, "seed": seed, "threads": 1}
                    jobs.append(Job("artificial", "accpm", name, {"formulation": form, **more}, 10.0, **common))
    return jobs


def stops() -> list[Job]:
    """The paper's stop test: what it leaves of the gap; and how far a run gets in float64 if nothing ends it."""
    jobs = []
    for form, name in (("I1", "artificial"), ("I2", "artificial"), ("E", "separable")):
        for C in (0.1, 10.0, 1000.0) if form != "E" else (1000.0,):
            for radius, one in (("one R", True), ("R for each kind", False)):
                settings = {"formulation": form, **ONE_SIDE, "one_radius": one}
                jobs.append(Job(name, f"accpm {form}", radius, settings, C, n=20_000, epsilon=STOP))
                jobs.append(Job(name, f"accpm {form}", f"{radius}, to the end", settings, C, n=20_000, epsilon=1e-300))
    return jobs


def table2() -> list[Job]:
    """The paper's solver, and SVM-perf's algorithm at the epsilons of the paper, in percent."""
    jobs = []
    for name in ("covtype", "kdd04_bio"):
        for C, epsilons in ((0.1, (1e-4, 1e-3, 0.1)), (10.0, (1e-3, 0.1)), (1000.0, (0.1,))):
            jobs.append(Job(name, "accpm", "author", PAPER, C, epsilon=STOP))
            jobs += [Job(name, "cpa", f"{e:g}", {"exact": True}, C, epsilon=e / 100) for e in epsilons]
    return jobs


def figure1() -> list[Job]:
    """Time against C: the paper's two by their own rules, and ours to a certified gap."""
    jobs = []
    for C in (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0):
        common: dict[str, Any] = {"C": C, "n": 50_000}
        jobs += [
            Job("covtype", "accpm", "the paper's solver", PAPER, epsilon=STOP, **common),
            Job("covtype", "cpa", "SVM-perf's, epsilon 0.1 %", {"exact": True}, epsilon=1e-3, **common),
            Job("covtype", "accpm", "accpm, ours", {"formulation": "I1", **WHITENED}, tol=1e-3, **common),
            Job("covtype", "ocas", "ocas, one shard", {"shards": 1}, tol=1e-3, **common),
            Job("covtype", "ocas", "ocas", {}, tol=1e-3, **common),
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
    "before": mechanisms,
    "mechanisms": mechanisms,
    "stops": stops,
    "table2": table2,
    "figure1": figure1,
    "reads": reads,
}


def artificial(n: int = 20_000, d: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random rows in a cube, cut by a random plane; labels near it are uncertain, so that 88 to 89 % can be right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    w = rng.normal(size=d)
    score = X @ w / np.linalg.norm(w)
    return X, np.where(score + 0.21 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def separable(n: int = 20_000, d: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows on both sides of a random plane, none within 0.1 of it."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(2 * n, d)), rng.normal(size=d)
    score = X @ w / np.linalg.norm(w)
    far = np.flatnonzero(np.abs(score) > 0.1)[:n]
    return X[far], np.sign(score[far])


MADE = {"artificial": artificial, "separable": separable}


class Bench:
    """One data set at a time, split once for all, and fits on it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.name: tuple[str, int, int] | None = None

    def open(self, job: Job) -> None:
        made = job.set in MADE
        name = (job.set, job.n if made else 0, job.seed)
        if name == self.name:
            return
        if made:
            self.X, self.y = MADE[job.set](min(job.n, 4_000) if self.options.quick else job.n, seed=job.seed)
            self.train, self.name = len(self.y), name
            return
        X, y = data.load(job.set, self.options.data)[1:3]
        order = np.random.default_rng(0).permutation(len(y))
        self.X, self.y, self.name = np.ascontiguousarray(X[order]), y[order], name
        self.train = TRAIN[job.set]
        if self.options.quick:
            self.X, self.y, self.train = self.X[:6_000], self.y[:6_000], 4_000

    def run(self, job: Job) -> Row:
        """One fit. One that fails says why."""
        self.open(job)
        n = min(job.n or self.train, self.train)
        row: Row = dict.fromkeys(FIELDS, "") | {key: value for key, value in job._asdict().items() if key in FIELDS}
        # A part of the rows of a set keeps C n.
        C = job.C * self.train / n
        row |= {"n": n, "d": self.X.shape[1], "limit": job.limit * self.options.time_limit}
        try:
            with Watched() as watch:
                model, seconds, cpu = self.fit(job, C, n, row["limit"])
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            row |= {"ended": False, "message": f"{type(error).__name__}: {error}"}
        else:
            row |= facts(model) | {"seconds": seconds, "cpu": cpu, "last_distance": watch.last}
            row["train_accuracy"] = float(model.score(self.X[:n], self.y[:n]))
            if self.train < len(self.y):
                row["test_accuracy"] = float(model.score(self.X[self.train :], self.y[self.train :]))
        return row

    def fit(self, job: Job, C: float, n: int, limit: float) -> tuple[Any, float, float]:
        import cutsvm

        common: dict[str, Any] = {"tol": job.tol, "max_time": limit, "n_jobs": job.threads, "max_iter": 100_000}
        model = cutsvm.LinearSVC(C, solver=solver_of(job), **common)
        X, y = self.X[:n], self.y[:n]
        if job.place == "memory":
            return timed(model, X, y)
        with tempfile.TemporaryDirectory(dir=self.options.folder) as folder:
            store = Path(folder) / "rows.store"
            cutsvm.convert((X, y), store)
            if job.place == "cold":
                forget(store)
            return timed(model.set_params(memory_limit="1GB"), store)


def solver_of(job: Job) -> Any:
    from cutsvm import solvers
    from cutsvm.solvers.accpm.solver import ACCPMSettings
    from cutsvm.solvers.bucketing.buckets import BucketSettings

    kind = {"accpm": solvers.ACCPM, "cpa": solvers.CPA, "ocas": solvers.OCAS, "sifting": solvers.Sifting}
    settings = job.settings | ({"epsilon": job.epsilon} if job.epsilon else {})
    if "dispatch" in settings:
        settings["settings"] = ACCPMSettings(buckets=BucketSettings(**settings.pop("dispatch")))
    return kind[job.solver.split()[0]](**settings)


def timed(model: Any, *where: Any) -> tuple[Any, float, float]:
    """The model fitted; seconds by the clock, and of the processor."""
    gc.collect()
    start, used = perf_counter(), process_time()
    model.fit(*where)
    return model, perf_counter() - start, process_time() - used


class Watched:
    """Notes ln of the mean distance from the cuts, in units of R, at the last centre of a run."""

    def __enter__(self) -> Watched:
        from cutsvm.solvers.accpm import solver

        self.last, self.solver, self.kind = "", solver, solver.Centre
        watch = self

        class Centre(solver.Centre):  # type: ignore[name-defined, misc]
            def cut(self, normal: np.ndarray) -> bool:
                alive = super().cut(normal)
                if alive and hasattr(self, "mean_log_distance"):
                    watch.last = self.mean_log_distance
                return bool(alive)

        solver.Centre = Centre
        return self

    def __exit__(self, *error: object) -> None:
        self.solver.Centre = self.kind


def forget(store: Path) -> None:
    """Asks the system to drop the files of a store from its cache."""
    for file in store.rglob("*"):
        if file.is_file():
            with suppress(OSError), open(file, "rb") as stream:
                os.fsync(stream.fileno())
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def facts(model: Any) -> Row:
    """What a fitted model says of its run."""
    last = model.history_[-1]
    found: Row = {name: last[name] for name in FIELDS if name.startswith("seconds_")}
    found |= {"iterations": last["iteration"], "gap": model.gap_, "objective": model.objective_}
    found |= {"lower": model.lower_bound_, "gets": last["visits"] - last["rows_read"], "puts": last["rows_written"]}
    return found | {"ended": bool(model.converged_), "status": model.status_.name}


def show(row: Row) -> None:
    what = f"{row['experiment']} {row['set']} {row['solver']} {row['variant']} {row['place']} {row['seed']}"
    what += f" n {row['n']} C {row['C']:g}"
    if row["message"]:
        print(f"{what}: {row['message']}", flush=True)
        return
    work = f"{row['seconds']:.2f} s ({row['cpu']:.2f}), {row['iterations']} iterations, gap {row['gap']:.1e}"
    rows = f"gets {row['gets'] / row['n']:.1f} n, puts {row['puts'] / row['n']:.0f} n"
    print(f"{what}: {work}, {rows}, {100 * row['train_accuracy']:.2f} % {row['status']}", flush=True)


def key(row: Row) -> tuple[str, ...]:
    """What tells a fit from another."""
    numbers = {name: f"{float(row[name]):.9g}" for name in ("seed", "C", "epsilon", "tol", "n")}
    return tuple(numbers.get(name, str(row[name])) for name in [*KEYS, "n"])


def solve(options: argparse.Namespace, path: Path) -> None:
    """Run what is asked for; the results of other experiments stay in the file, and with --resume those of these."""
    known = paper.read(path, bialon_report.TEXT) if path.exists() else []
    names = {options.store_as or name for name in options.only}
    kept = [row for row in known if row["experiment"] not in names or options.resume]
    done = {key(row) for row in kept if row["message"] == "" and row["ended"]}
    there, missing = data.available(list(TRAIN), options.data)
    if missing:
        print(f"Skipped, no file: {', '.join(missing)}.")
    bench = Bench(options)
    for experiment in options.only:
        if experiment == "before" and not options.store_as:
            continue
        for job in EXPERIMENTS[experiment]():
            n = job.n or TRAIN.get(job.set, 0)
            row = job._asdict() | {"experiment": options.store_as or experiment, "n": n}
            if job.set not in (*there, *MADE) or key(row) in done or (options.rows and n not in options.rows):
                continue
            row = bench.run(job) | {"experiment": row["experiment"], "commit": options.commit or commit()}
            show(row)
            kept = [old for old in kept if key(old) != key(row)] + [row]
            paper.save(path, FIELDS, kept, EXPERIMENTS)


if __name__ == "__main__":
    options = paper.parser(__doc__, EXPERIMENTS, "4,000 rows to train on")
    options.add_argument("--resume", action="store_true", help="keep the fits that have ended, and go on")
    options.add_argument(
        "--rows",
        type=lambda text: [int(float(n)) for n in text.split(",")],
        help="only fits with these numbers of rows",
    )
    options.add_argument("--folder", type=Path, help="where the stores go")
    options.add_argument("--store-as", help="the experiment that results are stored as")
    options.add_argument("--commit", help="the commit that is measured, if it is not this one")
    paper.limited(options, 20_000.0, of="per fit")
    paper.main("bialon", paper.parsed(options), solve, bialon_report.make)
