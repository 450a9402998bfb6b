"""The figures of Arnosti (2010), Reducing Training Time for Linear SVMs, made again.

    python benchmarks/papers/arnosti.py [--only fig2,fig5] [--minutes 15]

The paper replaces OCA's exact line search by two approximate ones, GCA2 and TCA. Each experiment below is a function
that lists its fits; one loop runs them. An experiment has a share of the minutes: a fit that would use up what is left
is ended, and the tables say so. What is left after the first round goes into further rounds; medians count.

By its formulas the paper's C multiplies the mean of the losses, but its iterations are those of a C that multiplies
their sum, as in msvmocas and here. So the figures are made with the sum, and `reading` tries the mean. A subset of the
rows keeps C n. There is no intercept. One shard without the guard against standstills is the paper's algorithm. Where
msvmocas is installed, it runs beside: its line search sorts, as the paper's OCA does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import arnosti_report
import data
import paper
from peers import MultiSvmOcas, as_csr, judge, layouts

SEARCHES = ("exact", "gca2", "tca")
OURS, SORTING = "cutsvm", MultiSvmOcas.name
FIELDS = [
    *"experiment solver set n d classes C mean epsilon search shards guard round limit seconds iterations".split(),
    *"standstills longest passes planes seconds_search seconds_rest seconds_scores seconds_planes seconds_qp".split(),
    *"objective gap ended status error test_error message".split(),
]
Row = dict[str, Any]


class Job(NamedTuple):
    """One fit. `mean`: C is that of the mean loss. `guard` None: as the solver comes. `features` 0: all."""

    set: str
    C: float = 1.0
    mean: bool = False
    epsilon: float = 0.01
    search: str = "exact"
    shards: int | str = 1
    guard: bool | None = False
    features: int = 0
    solver: str = OURS


def fig2(options: argparse.Namespace) -> list[Job]:
    """The searches on covtype."""
    return searches("covtype-7")


def fig3(options: argparse.Namespace) -> list[Job]:
    """The searches on mnist."""
    return searches("mnist-10")


def searches(name: str) -> list[Job]:
    """Every search with one shard and with as many as "auto" takes."""
    jobs = [Job(name, search=search, shards="auto", guard=None) for search in SEARCHES]
    jobs += [Job(name, search=search) for search in (*SEARCHES, "gca")]
    return [*jobs, Job(name, solver=SORTING)]


def fig4(options: argparse.Namespace) -> list[Job]:
    """The share of the search against the number of features."""
    jobs = [Job("news20", features=d) for d in (186, 676, 2368, 4373, 0)]
    jobs += [Job("mnist-10", C=10.0, features=d) for d in (139, 337, 473, 0)]
    return jobs + [job._replace(solver=SORTING) for job in jobs]


def fig5(options: argparse.Namespace) -> list[Job]:
    """Where the time goes against epsilon, on covtype."""
    return [Job("covtype-7", epsilon=epsilon) for epsilon in (0.1, 0.05, 0.02, 0.01, 0.005)]


def fig6(options: argparse.Namespace) -> list[Job]:
    """Iterations against C, on a part of covtype."""
    name = f"covtype-7:{options.rows}"
    return [Job(name, C=C, search=search) for C in (0.01, 0.1, 1.0, 10.0, 100.0) for search in SEARCHES]


def stalls(options: argparse.Namespace) -> list[Job]:
    """Section V: steps of zero length, with the guard and without."""
    jobs = []
    for guard in (True, False):
        for name, C in (("poker", 1.0), (f"covtype-7:{options.rows}", 100.0)):
            jobs += [Job(name, C=C, search=search, guard=guard) for search in SEARCHES]
    return [*jobs, Job("poker", solver=SORTING), Job(f"covtype-7:{options.rows}", C=100.0, solver=SORTING)]


def reading(options: argparse.Namespace) -> list[Job]:
    """The problems of the paper whose iterations or errors are in its text, with C on the mean loss."""
    problems = (("poker", 1.0), ("covtype-7", 1.0), ("covtype-7", 100.0), ("mnist-10", 1.0), ("mnist-10-raw", 1.0))
    return [Job(name, C=C, mean=True) for name, C in problems]


# The experiments, and their shares of the time.
EXPERIMENTS: dict[str, tuple[Callable[[argparse.Namespace], list[Job]], float]] = {
    "fig2": (fig2, 0.2),
    "fig3": (fig3, 0.2),
    "fig4": (fig4, 0.12),
    "fig5": (fig5, 0.12),
    "fig6": (fig6, 0.13),
    "stalls": (stalls, 0.15),
    "reading": (reading, 0.08),
}


class Bench:
    """The data sets that are in use, and fits on them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.sets: dict[tuple[str, int], data.DataSet] = {}
        self.rows: dict[str, int] = {}  # of each set, all that there are
        self.test: dict[str, data.DataSet | None] = {}
        self.sorting = MultiSvmOcas(ones=False)

    def dataset(self, job: Job) -> data.DataSet:
        """The rows and features of a job, CSR where zeros abound."""
        if (job.set, 0) not in self.sets:
            name, _, rows = job.set.partition(":")
            whole = data.load(name, self.options.data)
            self.rows[name] = whole.n
            whole = whole.subset(int(rows)) if rows else whole
            csr = layouts(whole)[0] == "csr"
            self.sets[job.set, 0] = whole._replace(X=as_csr(whole.X)) if csr else whole
        if (job.set, job.features) not in self.sets:
            self.sets[job.set, job.features] = frequent(self.sets[job.set, 0], job.features)
        return self.sets[job.set, job.features]

    def prepare(self, jobs: list[Job]) -> None:
        """Load what the jobs need, and only that: none of it is counted as their time."""
        self.sets.clear()
        for job in jobs:
            found = self.dataset(job)
            if job.solver == SORTING:
                self.sorting.form(found, "")

    def run(self, job: Job, limit: float) -> Row:
        """One fit, and what it did. One that fails says why."""
        found = self.dataset(job)
        row: Row = dict.fromkeys(FIELDS, "") | job._asdict()
        del row["features"]
        row |= {"set": job.set.partition(":")[0], "n": found.n, "d": found.X.shape[1], "classes": found.classes}
        row["limit"] = limit
        C = job.C * (1 if job.mean else self.rows[row["set"]]) / found.n
        try:
            W, b, facts = (self.ours if job.solver == OURS else self.theirs)(found, C, job, limit)
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            return row | {"ended": False, "message": f"{type(error).__name__}: {error}"}
        row |= facts | judge(found, W, b, C)._asdict()
        if not job.features and (test := self.test_rows(job.set)):
            row["test_error"] = judge(test, W, b, 1.0).error
        return row

    def test_rows(self, name: str) -> data.DataSet | None:
        if name not in self.test:
            self.test[name] = None if ":" in name else data.held_out(name, self.options.data)
        return self.test[name]

    def ours(self, found: data.DataSet, C: float, job: Job, limit: float) -> tuple[np.ndarray, np.ndarray, Row]:
        """cutsvm. Seconds: the solver's own clock, without the checks of the data."""
        from cutsvm import LinearSVC
        from cutsvm.solvers import OCAS

        settings: dict[str, Any] = {"line_search": job.search, "shards": job.shards}
        if job.guard is False:
            settings["nudge"] = 0.0
        fixed: dict[str, Any] = {"multi_class": "crammer_singer", "fit_intercept": False, "n_jobs": self.options.jobs}
        model = LinearSVC(C, tol=job.epsilon, solver=OCAS(**settings), max_time=limit, **fixed)
        model.fit(found.X, found.y)
        last, still = model.history_[-1], [record["step"] == 0.0 for record in model.history_[1:]]
        facts = {key: last[key] for key in ("seconds", "passes", "planes", "gap")}
        facts |= {f"seconds_{part}": last[f"seconds_{part}"] for part in ("scores", "planes", "qp")}
        facts |= {"seconds_search": last["seconds_line_search"]}
        facts |= {"ended": model.converged_, "status": model.status_.name}
        facts |= {"iterations": len(still), "standstills": sum(still), "longest": longest(still)}
        parts = sum(value for key, value in last.items() if key.startswith("seconds_"))
        return model.coef_, model.intercept_, facts | {"seconds_rest": last["seconds"] - parts}

    def theirs(self, found: data.DataSet, C: float, job: Job, limit: float) -> tuple[np.ndarray, np.ndarray, Row]:
        """msvmocas. Its `sort_time` is the last step of the search; what comes before it is in the rest."""
        W, b, seconds = self.sorting.fit(found, C, {"r": job.epsilon}, limit)
        claims = self.sorting.claims
        parts = {name: claims["parts"][f"{name}_time"] for name in ("sort", "output", "add", "qp_solver", "w", "print")}
        facts: Row = {"seconds": seconds, "ended": claims["stopped"], "gap": 1 - claims["lower"] / claims["primal"]}
        facts["status"] = "CONVERGED" if claims["stopped"] else "MAX_TIME"
        facts |= {key: claims[key] for key in ("iterations", "standstills")}
        facts |= {"seconds_search": parts["sort"], "seconds_scores": parts["output"], "seconds_planes": parts["add"]}
        return W, b, facts | {"seconds_qp": parts["qp_solver"], "seconds_rest": seconds - sum(parts.values())}


def frequent(whole: data.DataSet, d: int) -> data.DataSet:
    """The d features that are not zero in the most rows, in their old order."""
    X = as_csr(whole.X)
    counts = np.bincount(X.indices, minlength=X.shape[1])
    kept = np.sort(np.argsort(-counts, kind="stable")[:d])
    return whole._replace(name=f"{whole.name}-{d}-features", X=X[:, kept])


def longest(still: list[bool]) -> int:
    """The most in a row."""
    return max((sum(1 for _ in group) for zero, group in groupby(still) if zero), default=0)


def experiment(name: str, bench: Bench, options: argparse.Namespace) -> list[Row]:
    """All rounds of one experiment, within its share of the time."""
    plan, share = EXPERIMENTS[name]
    names = data.available([job.set for job in plan(options)], options.data)[0]
    jobs = [job for job in plan(options) if job.set in names and (job.solver == OURS or MultiSvmOcas.installed())]
    bench.prepare(jobs)
    ends = perf_counter() + 60 * options.minutes * share
    rows: list[Row] = []
    for turn in range(options.repeat):
        began = perf_counter()
        for i, job in enumerate(jobs):
            limit = max(1.0, min(2.0 / (len(jobs) - i), 1.0) * (ends - perf_counter()))
            rows.append(bench.run(job, limit) | {"experiment": name, "round": turn})
            show(rows[-1])
        jobs = [job for job, row in zip(jobs, rows[-len(jobs) :], strict=True) if row["ended"]]
        if not jobs or 2 * perf_counter() - began > ends:  # the next round would not fit
            break
    return rows


def show(row: Row) -> None:
    what = " ".join(str(row[key]) for key in "experiment solver set n d C mean epsilon search shards guard".split())
    if row["message"]:
        print(f"{what}: {row['message']}", flush=True)
        return
    end = "" if row["ended"] else f", {row['status']} (limit {row['limit']:.0f} s)"
    print(
        f"{what}: {row['seconds']:.2f} s, {row['iterations']} iterations, {row['standstills']} standstills, "
        f"gap {row['gap']:.1e}, error {row['error']:.4f}{end}",
        flush=True,
    )


def warm_up(bench: Bench, options: argparse.Namespace) -> None:
    """A fit of a few rows with each search, so that libraries and threads are there."""
    name = next(iter(data.available(["poker", "covtype-7", "mnist-10"], options.data)[0]), "")
    for search in (*SEARCHES, "gca") if name else ():
        bench.run(Job(f"{name}:2000", search=search), 5.0)


def solve(options: argparse.Namespace, path: Path) -> None:
    """One experiment after the other; the results of others stay in the file."""
    bench = Bench(options)
    warm_up(bench, options)
    for name in options.only:
        old = arnosti_report.read(path) if path.exists() else []
        rows = [row for row in old if row["experiment"] != name] + experiment(name, bench, options)
        paper.save(path, FIELDS, rows, EXPERIMENTS)


def arguments() -> argparse.Namespace:
    parser = paper.parser(__doc__, EXPERIMENTS, "at most a minute of fits")
    add = parser.add_argument
    add("--minutes", type=float, default=15.0, help="of fits, for all experiments; each has its share")
    add("--repeat", type=int, default=3, help="rounds, as far as the time allows")
    add("--rows", type=int, default=50_000, help="rows of covtype in fig6 and stalls")
    add("--jobs", type=int, default=-1, help="threads of ours, -1: all cores")
    options = paper.parsed(parser)
    options.minutes = min(options.minutes, 1.0) if options.quick else options.minutes
    return options


if __name__ == "__main__":
    paper.main("arnosti", arguments(), solve, arnosti_report.make)
