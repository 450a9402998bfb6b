"""The table and figures of Joachims (2006), Training Linear SVMs in Linear Time, made again.

    python benchmarks/papers/joachims.py [--only table1,figure8] [--time-limit 200]
    python benchmarks/papers/joachims.py --quick          # small rows, under a minute, into a temporary folder

Each experiment below is a function that lists its fits; one loop runs them, and a fit that two of them want runs once.
`paper` is the paper's algorithm with its stopping rule, CPA(epsilon=..., shards=1), on one thread, since the paper has
CPU seconds; `default` is the estimator as it comes, on all cores, to a relative gap that is proved.

The paper's C multiplies the mean of the losses: LinearSVC's C is C / n, and that of the pairs' estimators is C itself.
Its constant feature is `intercept="regularized"`; pairs need none. A smaller n is a part of the rows of a larger one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
import joachims_report
import paper
from joachims_report import CLASSES, DEFAULT, PAIRS, PAPER, TIGHT, Row
from peers import as_csr, layouts

FIELDS = [
    *"experiment set task solver n d C accuracy limit rounds seconds iterations planes gap objective lower".split(),
    *"seconds_scores seconds_planes seconds_search seconds_qp ended status test_rows test_accuracy test_area".split(),
    "message",
]
BOTH = [(task, solver) for task in (CLASSES, PAIRS) for solver in (PAPER, DEFAULT)]
EPSILONS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
COSTS = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7)
SIZES = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5)


class Source(NamedTuple):
    """A data set: the paper's C, or the one that stands in for it, and the rows that are trained on; 0: all."""

    C: float
    train: int


SETS = {
    "covtype": Source(1e6, 522_911),
    "kdd04_bio": Source(2e4, 50_000),  # the C and the split of KDD04 Physics, which it is not
    "a9a": Source(0.05 * 32_562, 0),  # Adult
    "w8a": Source(49_749.0, 0),  # Web
}
LARGE = {"covtype": 0, "kdd04_bio": -1}  # the sets of the figures, and the n of their largest point


class Job(NamedTuple):
    """One fit. `n` 0: the training rows, -1: all that there are. `accuracy`: the paper's epsilon, or our gap."""

    set: str
    task: str = CLASSES
    solver: str = PAPER
    n: int = 0
    C: float = 0.0
    accuracy: float = 1e-3

    def full(self) -> Job:
        """With the set's own C where none is told."""
        return self._replace(C=self.C or SETS[self.set].C)


def table1() -> list[Job]:
    """Training times. kdd04_bio once with all rows, for the time, and once with some, for the others to be a test."""
    places = [(name, 0) for name in SETS] + [("kdd04_bio", -1)]
    return [Job(name, *how, n) for name, n in places for how in BOTH]


def rows() -> list[Job]:
    """Figures 1 and 2: against n."""
    return [Job(name, *how, int(n)) for name, last in LARGE.items() for how in BOTH for n in (*SIZES, last)]


def epsilon() -> list[Job]:
    """Figures 4 to 7: against epsilon, for classification only, as there."""
    jobs = [Job(name, solver=solver, accuracy=e) for name in LARGE for solver in (PAPER, DEFAULT) for e in EPSILONS]
    return jobs + [Job(name, solver=TIGHT) for name in LARGE]


def cost() -> list[Job]:
    """Figures 3 and 7 to 9: against C. Pairs on fewer rows of covtype: all would take as long as everything else."""
    places = [(name, *how) for name in LARGE for how in (*BOTH, (CLASSES, TIGHT))]
    few = {("covtype", PAIRS): 100_000}
    return [Job(*place, few.get(place[:2], 0), C) for place in places for C in COSTS]


EXPERIMENTS: dict[str, Callable[[], list[Job]]] = {"table1": table1, "rows": rows, "epsilon": epsilon, "cost": cost}
# What is made from which experiment.
FIGURES = {
    **dict.fromkeys(("figure1", "figure2"), "rows"),
    **dict.fromkeys(("figure4", "figure5", "figure6"), "epsilon"),
    **dict.fromkeys(("figure3", "figure7", "figure8", "figure9"), "cost"),
}


class Bench:
    """One data set at a time, split once for all, and fits on it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.done: dict[Job, Row] = {}
        self.name = ""

    def open(self, name: str) -> None:
        """Load a set in random order, CSR where zeros abound."""
        if name == self.name:
            return
        whole = data.load(name, self.options.data)
        order = np.random.default_rng(0).permutation(whole.n)
        X = as_csr(whole.X) if layouts(whole)[0] == "csr" else whole.X
        self.X, self.y, self.name = X[order], whole.y[order], name
        self.train = SETS[name].train or whole.n
        if self.options.quick:
            self.X, self.y = self.X[:10_000], self.y[:10_000]
            self.train = 5_000

    def parts(self, n: int) -> tuple[int, slice]:
        """How many rows a job trains on, and which ones are its test: never those of the training part."""
        rows = self.train if n == 0 else len(self.y) if n < 0 else n
        return min(rows, len(self.y)), slice(max(rows, self.train), None)

    def run(self, job: Job) -> Row:
        """One fit, repeated while it is short; medians of the times. One that fails says why."""
        self.open(job.set)
        n, test = self.parts(job.n)
        job = job.full()._replace(n=n)
        if job in self.done:
            return self.done[job]
        row: Row = dict.fromkeys(FIELDS, "") | job._asdict()
        row |= {"d": self.X.shape[1], "limit": self.options.time_limit, "test_rows": len(self.y[test])}
        try:
            models, seconds = self.fits(job)
        except (AttributeError, ImportError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            row |= {"ended": False, "message": f"{type(error).__name__}: {error}"}
        else:
            row |= facts(models[-1]) | {"rounds": len(seconds), "seconds": median(seconds)}
            row |= self.quality(models[-1], test)
        show(row)
        self.done[job] = row
        return row

    def fits(self, job: Job) -> tuple[list[Any], list[float]]:
        """The models and their seconds, those of the whole `fit`."""
        X, y = self.X[: job.n], self.y[: job.n]
        models: list[Any] = []
        seconds: list[float] = []
        while not seconds or (len(seconds) < self.options.repeat and max(seconds) < self.options.repeat_limit):
            model = self.model(job)
            start = perf_counter()
            models.append(model.fit(X, y))
            seconds.append(perf_counter() - start)
            if job.solver == TIGHT:  # its time is of no interest
                break
        return models, seconds

    def model(self, job: Job) -> Any:
        """The estimator of a job."""
        import cutsvm
        from cutsvm.solvers import CPA

        settings: dict[str, Any] = {"max_time": self.options.time_limit, "tol": job.accuracy, "n_jobs": -1}
        if job.solver == PAPER:  # the paper's rule ends it, not the gap
            settings |= {"tol": 1e-12, "solver": CPA(epsilon=job.accuracy, shards=1), "n_jobs": 1}
        elif job.solver == TIGHT:
            settings["tol"] = self.options.tight
        if job.task == PAIRS:
            return cutsvm.ROCAreaSVC(job.C, **settings)
        return cutsvm.LinearSVC(job.C / job.n, intercept="regularized", **settings)

    def quality(self, model: Any, test: slice) -> Row:
        """Accuracy and ROC area on the held-out rows, if there are any."""
        from sklearn.metrics import roc_auc_score

        X, y = self.X[test], self.y[test]
        if not len(y) or len(np.unique(y)) < 2:
            return {}
        area = roc_auc_score(y, np.ravel(model.decision_function(X)))
        return {"test_accuracy": float(np.mean(model.predict(X) == y)), "test_area": float(area)}


def facts(model: Any) -> Row:
    """What a fitted model says of its run."""
    last = model.history_[-1]
    names = {"scores": "scores", "planes": "planes", "search": "line_search", "qp": "qp"}
    found: Row = {f"seconds_{ours}": last.get(f"seconds_{theirs}", "") for ours, theirs in names.items()}
    found |= {"iterations": int(np.max(model.n_iter_)), "planes": last["planes"], "gap": float(model.gap_)}
    found |= {"objective": float(model.objective_), "lower": float(model.lower_bound_)}
    return found | {"ended": bool(model.converged_), "status": model.status_.name}


def show(row: Row) -> None:
    what = f"{row['set']} {row['task']} {row['solver']} n {row['n']} C {row['C']:g} accuracy {row['accuracy']:g}"
    if row["message"]:
        print(f"{what}: {row['message']}", flush=True)
        return
    end = "" if row["ended"] else f", {row['status']} (limit {row['limit']:.0f} s)"
    score = "" if row["test_area"] == "" else f", accuracy {row['test_accuracy']:.4f}, area {row['test_area']:.4f}"
    work = f"{row['seconds']:.3f} s, {row['iterations']} iterations, gap {row['gap']:.1e}"
    print(f"{what}: {work}{score}{end}", flush=True)


def solve(options: argparse.Namespace, path: Path) -> None:
    """Run what is asked for, data set by data set; the results of other experiments stay in the file."""
    kept = paper.read(path, joachims_report.TEXT) if path.exists() else []
    kept = [row for row in kept if row["experiment"] not in options.only]
    bench = Bench(options)
    jobs = [(name, job) for name in options.only for job in EXPERIMENTS[name]()]
    there, missing = data.available(list(SETS), options.data)
    if missing:
        print(f"Skipped, no file: {', '.join(missing)}.")
    found: list[Row] = []
    for set_name in there:
        warm_up(bench, set_name)
        for experiment, job in jobs:
            if job.set == set_name and job.n < len(bench.y):
                found.append(bench.run(job) | {"experiment": experiment})
        paper.save(path, FIELDS, kept + found, EXPERIMENTS)


def warm_up(bench: Bench, name: str) -> None:
    """A few rows through every estimator, so that libraries and threads are there."""
    for task in (CLASSES, PAIRS):
        for solver in (PAPER, DEFAULT):
            bench.run(Job(name, task, solver, 500, 1.0))


if __name__ == "__main__":
    options = paper.parser(__doc__, EXPERIMENTS, "5,000 rows to train on, 5,000 to test", **FIGURES)
    paper.limited(options, 200.0)
    options.add_argument("--repeat", type=int, default=3, help="rounds of a fit, medians count")
    options.add_argument("--repeat-limit", type=float, default=3.0, help="a fit of more seconds than this runs once")
    options.add_argument("--tight", type=float, default=1e-6, help="gap of the fit that stands for the optimum")
    paper.main("joachims", paper.parsed(options), solve, joachims_report.make)
