"""The table and figures of Joachims (2006), Training Linear SVMs in Linear Time, made again.

    python benchmarks/papers/joachims.py [--only table1,figure8] [--time-limit 120]
    python benchmarks/papers/joachims.py --quick          # small rows, a few minutes, into a temporary folder

Each experiment below is a function that lists its fits; one loop runs them, and a fit that two of them want runs once.
`paper` is the paper's algorithm to the letter, CPA(exact=True, epsilon=...); `default` is the estimator as it comes, to
a relative gap that is proved; `decomposition` is scikit-learn's SVC(kernel="linear") in the place of SVM-light, in a
process that is ended at a limit. All run on one thread, and seconds are CPU seconds, as in the paper.

The paper's C multiplies the mean of the losses: LinearSVC's C is C / n, and that of the pairs' estimators is C itself.
There is no intercept, as in the paper (SVC has one). A smaller n is a part of the rows of a larger one.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
import joachims_report
import paper
from joachims_tables import CLASSES, DECOMPOSITION, DEFAULT, PAIRS, PAPER, TEXT, TIGHT, Row
from peers import as_csr, layouts

FIELDS = [
    *"experiment set task solver n d C accuracy seed limit rounds".split(),
    *"seconds iterations planes gap objective lower seconds_scores seconds_planes seconds_search seconds_qp".split(),
    *"ended status test_rows test_accuracy test_area test_prbep message".split(),
]
BOTH = [(task, solver) for task in (CLASSES, PAIRS) for solver in (PAPER, DEFAULT)]
EPSILONS = (1e-1, 3e-2, 1e-2, 1e-3, 1e-4)
COSTS = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7)
SIZES = (1e3, 3e3, 1e4, 3e4, 1e5)
SEEDS = range(1, 11)
# What the short cuts of CPA are worth: with some of them, and with all.
LOOSE, DROPPED, ONE_SHARD, SHARDS = "loose reduced problem", "planes dropped", "both, one shard", "both, shards"
SHORTCUTS = (PAPER, LOOSE, DROPPED, ONE_SHARD, SHARDS)


class Source(NamedTuple):
    """A data set: the paper's C, or the one that stands in for it, and the rows that are trained on; 0: all."""

    C: float
    train: int


SETS = {
    "covtype": Source(1e6, 522_911),
    "kdd04_bio": Source(2e4, 50_000),  # the C and the split of KDD04 Physics, which it is not
    "arxiv": Source(2e4, 200_000),  # the C of Arxiv astro-ph, which it is not
    "a9a": Source(0.05 * 32_562, 0),  # Adult
    "w8a": Source(49_749.0, 0),  # Web
}
LARGE = {"covtype": 0, "kdd04_bio": -1, "arxiv": -1}  # the sets of the figures, and the n of their largest point


class Job(NamedTuple):
    """One fit. `n` 0: the training rows, -1: all that there are. `accuracy`: the paper's epsilon, or our gap."""

    set: str
    task: str = CLASSES
    solver: str = PAPER
    n: int = 0
    C: float = 0.0
    accuracy: float = 1e-3
    seed: int = 0  # of the order of the rows; 0: one order for all

    def full(self) -> Job:
        """With the set's own C where none is told."""
        return self._replace(C=self.C or SETS[self.set].C)


def table1() -> list[Job]:
    """Training times. kdd04_bio and arxiv once with all rows, for the time, and once with some, for a test."""
    places = [(name, 0) for name in SETS] + [(name, -1) for name in ("kdd04_bio", "arxiv")]
    return [Job(name, *how, n) for name, n in places for how in BOTH]


def rows() -> list[Job]:
    """Figure 1, first and last panel, and figure 2: against n."""
    return [Job(name, *how, int(n)) for name, last in LARGE.items() for how in BOTH for n in (*SIZES, last)]


def epsilon() -> list[Job]:
    """Figures 4 to 7: against epsilon, for classification only, as there."""
    jobs = [Job(name, solver=solver, accuracy=e) for name in LARGE for solver in (PAPER, DEFAULT) for e in EPSILONS]
    return jobs + [Job(name, solver=TIGHT) for name in LARGE]


def costs_of(name: str) -> tuple[float, ...]:
    """Text is separated well below the largest C, where the paper's algorithm takes minutes."""
    return COSTS[:-2] if name == "arxiv" else COSTS


def cost() -> list[Job]:
    """Figures 3 and 7 to 9: against C. Pairs on fewer rows of covtype: all would take as long as everything else."""
    places = [(name, *how) for name in LARGE for how in (*BOTH, (CLASSES, TIGHT))]
    few = {("covtype", PAIRS): 100_000}
    return [Job(*place, few.get(place[:2], 0), C) for place in places for C in costs_of(place[0])]


def decomposition() -> list[Job]:
    """SVM-light's part of figures 1, 3 and 9: against n, and against C where that ends."""
    by_rows = [Job(name, CLASSES, DECOMPOSITION, int(n)) for name in LARGE for n in SIZES]
    by_rows += [Job(name, CLASSES, DECOMPOSITION) for name in ("a9a", "w8a")]
    by_cost = [
        Job(name, CLASSES, solver, 3_000, C) for name in LARGE for solver in (PAPER, DECOMPOSITION) for C in COSTS
    ]
    return by_rows + by_cost


def best_cost() -> list[Job]:
    """Figure 1, third panel: for every n all C, of which the report takes the one that is best on the test rows."""
    sizes = {name: [n for n in SIZES if n < SETS[name].train] + [0] for name in LARGE}
    return [Job(name, CLASSES, PAPER, int(n), C) for name in LARGE for n in sizes[name] for C in costs_of(name)]


def shortcuts() -> list[Job]:
    """20,000 random rows of covtype, ten times: the paper's algorithm, and ours with one short cut or more."""
    plan = [(solver, e, seed) for seed in SEEDS for e in (1e-2, 1e-3) for solver in (*SHORTCUTS, DEFAULT)]
    return [Job("covtype", CLASSES, solver, 20_000, accuracy=e, seed=seed) for solver, e, seed in plan]


EXPERIMENTS: dict[str, Callable[[], list[Job]]] = {
    "shortcuts": shortcuts,
    "table1": table1,
    "rows": rows,
    "epsilon": epsilon,
    "cost": cost,
    "decomposition": decomposition,
    "best_cost": best_cost,
}
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
        self.beyond: dict[tuple[str, float], int] = {}  # by set and C: rows that took the decomposition too long
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
        test = slice(0, 0) if job.seed else test  # other rows: no test is set apart from them
        job = job.full()._replace(n=n)
        if job in self.done:
            return self.done[job]
        row: Row = dict.fromkeys(FIELDS, "") | job._asdict()
        limit = self.options.svc_limit if job.solver == DECOMPOSITION else self.options.time_limit
        row |= {"d": self.X.shape[1], "limit": limit, "test_rows": len(self.y[test])}
        try:
            if job.solver == DECOMPOSITION:
                row |= self.decomposed(job, test)
            else:
                models, seconds = self.fits(job)
                row |= facts(models[-1]) | {"rounds": len(seconds), "seconds": median(seconds)}
                row |= self.quality(models[-1], test)
        except (AttributeError, ImportError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            row |= {"ended": False, "message": f"{type(error).__name__}: {error}"}
        show(row)
        self.done[job] = row
        return row

    def rows(self, job: Job) -> tuple[Any, Any]:
        """What a job trains on."""
        if not job.seed:
            return self.X[: job.n], self.y[: job.n]
        chosen = np.random.default_rng(job.seed).permutation(len(self.y))[: job.n]
        return self.X[chosen], self.y[chosen]

    def decomposed(self, job: Job, test: slice) -> Row:
        """A fit of SVC in a process of its own; one with more rows than one that took too long is not tried."""
        least = self.beyond.get((job.set, job.C), sys.maxsize)
        if job.n > least:
            return {"ended": False, "message": f"not tried: {least} rows took longer than {self.options.svc_limit:g} s"}
        X, y = self.rows(job)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        limit = self.options.svc_limit
        process = context.Process(target=fit_svc, args=(there, X, y, job.C / job.n, self.X[test], limit))
        process.start()
        there.close()
        try:
            seconds, iterations, scores = here.recv()
        except EOFError:  # the limit has ended it
            self.beyond[job.set, job.C] = job.n
            return {"ended": False, "message": f"longer than {limit:g} s"}
        finally:
            process.join()
        found: Row = {"seconds": seconds, "rounds": 1, "iterations": iterations, "ended": True, "status": "CONVERGED"}
        return found | measures(scores, self.y[test])

    def fits(self, job: Job) -> tuple[list[Any], list[float]]:
        """The models and their CPU seconds, those of the whole `fit`."""
        X, y = self.rows(job)
        models: list[Any] = []
        seconds: list[float] = []
        repeat = 1 if job.seed else self.options.repeat
        while not seconds or (len(seconds) < repeat and max(seconds) < self.options.repeat_limit):
            model = self.model(job)
            start = process_time()
            models.append(model.fit(X, y))
            seconds.append(process_time() - start)
            if job.solver == TIGHT:  # its time is of no interest
                break
        return models, seconds

    def model(self, job: Job) -> Any:
        """The estimator of a job."""
        import cutsvm

        settings: dict[str, Any] = {"max_time": self.options.time_limit, "tol": job.accuracy, "n_jobs": 1}
        if job.solver in SHORTCUTS:  # the paper's rule ends it, not the gap
            settings |= {"tol": 1e-12, "solver": cutting_planes(job), "max_iter": 100_000}
        elif job.solver == TIGHT:
            settings["tol"] = self.options.tight
        if job.task == PAIRS:
            return cutsvm.ROCAreaSVC(job.C, **settings)
        return cutsvm.LinearSVC(job.C / job.n, fit_intercept=False, **settings)

    def quality(self, model: Any, test: slice) -> Row:
        """Measures on the held-out rows, if there are any."""
        X, y = self.X[test], self.y[test]
        if not len(y):
            return {}
        return measures(np.ravel(model.decision_function(X)), y, model.predict(X))


def cutting_planes(job: Job) -> Any:
    """The paper's algorithm, or ours with some of its short cuts, with the paper's rule."""
    from cutsvm.solvers import CPA
    from cutsvm.solvers.cutting_planes import PlaneSettings

    always = PlaneSettings().patience
    never = 10**9
    settings = {
        PAPER: {"exact": True},
        LOOSE: {"shards": 1, "planes": PlaneSettings(patience=never)},
        DROPPED: {"shards": 1, "planes": PlaneSettings(qp_share=0.0, patience=always)},
        ONE_SHARD: {"shards": 1},
        SHARDS: {},
    }
    return CPA(epsilon=job.accuracy, **settings[job.solver])


def fit_svc(pipe: Any, X: Any, y: Any, C: float, test: Any, limit: float) -> None:
    """The seconds and iterations of a decomposition solver, and its scores on the test rows."""
    from sklearn.svm import SVC

    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
    model = SVC(C=C, kernel="linear", tol=1e-3, cache_size=1000)
    start = process_time()
    model.fit(X.astype(np.float64), y)
    seconds = process_time() - start
    w = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    scores = np.ravel(test @ np.ravel(w)) + model.intercept_[0] if test.shape[0] else np.empty(0)
    pipe.send((seconds, int(model.n_iter_[0]), scores))


def measures(scores: Any, y: Any, predicted: Any = None) -> Row:
    """Accuracy, area under the ROC curve, and the precision where it equals the recall (PRBEP).

    That is the precision of as many rows, those with the highest scores, as there are positive ones.
    """
    from sklearn.metrics import roc_auc_score

    if len(y) == 0 or len(np.unique(y)) < 2:
        return {}
    predicted = np.where(scores > 0, 1.0, -1.0) if predicted is None else predicted
    positive = y > 0
    first = np.argsort(-scores, kind="stable")[: int(positive.sum())]
    found = {"test_accuracy": float(np.mean(predicted == y)), "test_area": float(roc_auc_score(y, scores))}
    return found | {"test_prbep": float(np.mean(positive[first]))}


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
    gap = "" if row["gap"] == "" else f", gap {row['gap']:.1e}"
    work = f"{row['seconds']:.3f} s, {row['iterations']} iterations{gap}"
    print(f"{what}: {work}{score}{end}", flush=True)


def solve(options: argparse.Namespace, path: Path) -> None:
    """Run what is asked for, data set by data set; the results of other experiments stay in the file."""
    kept = paper.read(path, TEXT) if path.exists() else []
    kept = [row for row in kept if row["experiment"] not in options.only or row["set"] not in options.sets]
    bench = Bench(options)
    jobs = [(name, job) for name in options.only for job in EXPERIMENTS[name]()]
    there, missing = data.available(options.sets, options.data)
    if missing:
        print(f"Skipped, no file: {', '.join(missing)}.")
    found: list[Row] = []
    for set_name in there:
        warm_up(bench, set_name)
        for experiment in options.only:
            mine = [job for name, job in jobs if name == experiment and job.set == set_name]
            found += [bench.run(job) | {"experiment": experiment} for job in mine if job.n <= len(bench.y)]
            paper.save(path, FIELDS, kept + found, EXPERIMENTS)


def warm_up(bench: Bench, name: str) -> None:
    """A few rows through every estimator, so that libraries and threads are there."""
    for task in (CLASSES, PAIRS):
        for solver in (PAPER, DEFAULT):
            bench.run(Job(name, task, solver, 500, 1.0))


if __name__ == "__main__":
    options = paper.parser(__doc__, EXPERIMENTS, "5,000 rows to train on, 5,000 to test", **FIGURES)
    paper.limited(options, 120.0)
    options.add_argument("--sets", type=paper.listed(SETS), default=list(SETS), help=", ".join(SETS))
    options.add_argument("--svc-limit", type=float, default=60.0, help="CPU seconds for a fit of SVC")
    options.add_argument("--repeat", type=int, default=3, help="rounds of a fit, medians count")
    options.add_argument("--repeat-limit", type=float, default=3.0, help="a fit of more seconds than this runs once")
    options.add_argument("--tight", type=float, default=1e-6, help="gap of the fit that stands for the optimum")
    paper.main("joachims", paper.parsed(options), solve, joachims_report.make)
