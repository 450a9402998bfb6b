"""The figures of Arnosti (2010), Reducing Training Time for Linear SVMs, made again.

    python benchmarks/papers/arnosti.py [--only fig2,fig5] [--limit 60] [--limit-msvmocas 900]

The paper replaces OCA's exact line search by two approximate ones, GCA2 and TCA. Each experiment below is a function
that lists its fits; one loop runs them, all of a round one after the other, so that the seconds of a table were
measured in turns. Fits run to the end unless --limit is given; msvmocas has a limit of its own, and the tables say
where it came first.

By its formulas the paper's C multiplies the mean of the losses, but its iterations are those of a C that multiplies
their sum, as in msvmocas and here. So the figures are made with the sum, and `reading` tries the mean. A subset of the
rows keeps C n. There is no intercept. `variants` says what "paper" and "ours" are. Where msvmocas is installed, it runs
beside: its line search sorts, as the paper's OCA does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import arnosti_report
import data
import paper
from peers import MultiSvmOcas, as_csr, judge, layouts
from provenance import commit

SEARCHES = ("exact", "gca2", "tca")
OURS, SORTING = "cutsvm", MultiSvmOcas.name
ONE = "ours, one shard"
EPSILONS = (0.1, 0.05, 0.02, 0.01, 0.005)
FIELDS = [
    *"experiment solver variant search set n d classes seed layout C Cn mean epsilon most round limit".split(),
    *"seconds cpu iterations standstills longest passes planes seconds_search seconds_rest seconds_scores".split(),
    *"seconds_planes seconds_qp objective gap ended status error test_error message".split(),
]
Row = dict[str, Any]


def variants() -> dict[str, dict[str, Any]]:
    """Settings of OCAS by name, but for the line search.

    "paper": the boxes as they stand, every plane kept and every reduced problem solved to a millionth of the gap; after
    it a guard of section V. "before": planes dropped after 6 reduced problems: our default with one shard, too, until
    this was measured.
    """
    from cutsvm.solvers.cutting_planes import PlaneSettings

    one = {"shards": 1}
    literal = PlaneSettings(qp_share=1e-6, patience=10**9)
    box = one | {"safe": False, "first_step": 0.5, "guard": "none", "planes": literal}
    before = one | {"planes": PlaneSettings(patience_one_shard=0)}
    found: dict[str, dict[str, Any]] = {"ours": {}, "ours, one shard": one, "paper": box, "before": before}
    for guard in ("first_steps", "every_zero"):
        found |= {f"paper, {guard}": box | {"guard": guard}, f"ours, {guard}": one | {"guard": guard}}
    found["ours, safe start 0.5"] = one | {"first_step": 0.5}
    return found | {name + ", none": found[name] | {"guard": "none"} for name in ("before", "ours, one shard")}


class Job(NamedTuple):
    """One fit. `mean`: C is that of the mean loss. `Cn` not 0: C n in place of C. `most` iterations; 0: no limit."""

    set: str
    C: float = 1.0
    search: str = "exact"
    variant: str = "paper"
    Cn: float = 0.0
    mean: bool = False
    epsilon: float = 0.01
    features: int = 0  # 0: all
    solver: str = OURS
    seed: int = 0  # of the subset
    layout: str = ""  # "dense" or "csr"; else what suits the set
    most: int = 0


def fig2(options: argparse.Namespace) -> list[Job]:
    """The searches on covtype."""
    return searches("covtype-7")


def fig3(options: argparse.Namespace) -> list[Job]:
    """The searches on mnist."""
    return searches("mnist-10")


def searches(name: str) -> list[Job]:
    """Every search as in the paper and as ours, with one shard and with as many as "auto" takes."""
    jobs = [Job(name, search=search) for search in (*SEARCHES, "gca")]
    jobs += [Job(name, search=s, variant=v) for v in (ONE, "ours") for s in SEARCHES]
    return [*jobs, Job(name, solver=SORTING)]


def fig4(options: argparse.Namespace) -> list[Job]:
    """The share of the search against the number of features."""
    jobs = [Job("news20", features=d) for d in (186, 676, 2368, 4373, 0)]
    jobs += [Job("mnist-10", C=10.0, features=d) for d in (139, 337, 473, 0)]
    ours = [job._replace(variant="ours, one shard") for job in jobs]
    # Every plane kept, the reduced problems of mnist at C = 10 take most of the time: no share to compare.
    literal = [job for job in jobs if job.set != "mnist-10"]
    return [*ours, *literal, *(job._replace(solver=SORTING) for job in jobs)]


def fig5(options: argparse.Namespace) -> list[Job]:
    """Where the time goes against epsilon, on covtype: one fit passes all of them."""
    return [Job("covtype-7", epsilon=min(EPSILONS), variant=variant) for variant in ("paper", "ours, one shard")]


def fig6(options: argparse.Namespace) -> list[Job]:
    """Iterations against C, on a part of covtype; C = 100 is among those of `stalls`."""
    name = f"covtype-7:{options.rows}"
    return [Job(name, C=C, search=search) for C in (0.01, 0.1, 1.0, 10.0) for search in SEARCHES]


def stalls(options: argparse.Namespace) -> list[Job]:
    """Section V: steps of zero length, with each guard and without."""
    part = f"covtype-7:{options.rows}"
    jobs = []
    for name, C, cure in (("poker", 1.0, "first_steps"), (part, 100.0, "every_zero")):
        jobs += [Job(name, C=C, most=1500), *(Job(name, C=C, search=search) for search in ("gca2", "tca"))]
        jobs += [Job(name, C=C, variant=f"paper, {cure}"), Job(name, C=C, variant="before", most=1500)]
        jobs += [Job(name, C=C, search=s, variant=ONE) for s in (SEARCHES if name == "poker" else SEARCHES[:1])]
        jobs += [Job(name, C=C, variant="ours")]
    return [*jobs, Job("poker", solver=SORTING), Job(part, C=100.0, solver=SORTING)]


def layout(options: argparse.Namespace) -> list[Job]:
    """Covtype at C = 100 of `stalls` stored otherwise, and another subset: how much is chance."""
    name = f"covtype-7:{options.rows}"
    return [Job(name, C=100.0, layout="dense"), Job(name, C=100.0, seed=1)]


def reading(options: argparse.Namespace) -> list[Job]:
    """The problems of the paper whose iterations or errors are in its text, with C on the mean loss."""
    problems = (("poker", 1.0), ("covtype-7", 1.0), ("covtype-7", 100.0), ("mnist-10", 1.0), ("mnist-10-raw", 1.0))
    jobs = [Job(name, C=C, mean=True) for name, C in problems]
    return jobs + [job._replace(solver=SORTING) for job in jobs]


def guards(options: argparse.Namespace) -> list[Job]:
    """Which guard: many subsets and sizes. The first list is the table of section V's guards on 3,000 rows of poker."""
    settings = [("exact", v) for v in ("before", "ours, one shard", "ours, first_steps", "ours, every_zero")]
    settings += [("exact", f"paper, {guard}") for guard in ("first_steps", "every_zero")]
    for search in ("gca2", "tca"):
        settings += [(search, v) for v in ("paper", "ours, one shard", "ours, safe start 0.5", "before, none")]
    settings += [("exact", v) for v in ("before, none", "ours, one shard, none")]
    jobs = [
        Job("poker:3000", Cn=25010.0, search=search, variant=variant, seed=seed, most=1500)
        for search, variant in settings
        for seed in range(8)
    ]
    guards = ("before", "ours, one shard", "ours, first_steps", "ours, every_zero")
    problems: list[tuple[str, int, tuple[float, ...]]] = [
        *[("poker:3000", 8, (1e6,)), ("poker:10000", 4, (25010.0, 1e6)), ("poker:30000", 2, (25010.0,))],
        *[(f"{name}:3000", 8, (1e4, 1e6)) for name in ("covtype-7", "covtype", "a9a", "ijcnn1")],
        *[("poker", 1, (25010.0,)), ("covtype-7:30000", 2, (1e4, 1e6))],
        *[("covtype:100000", 1, (1e4, 1e6)), ("a9a", 1, (1e4, 1e6)), ("ijcnn1", 1, (1e4, 1e6))],
    ]
    for name, seeds, Cns in problems:
        jobs += [Job(name, Cn=c, variant=v, seed=s, most=1500) for c in Cns for v in guards for s in range(seeds)]
    return jobs


def binary(options: argparse.Namespace) -> list[Job]:
    """The paper's future work: its searches with two classes."""
    sets, Cs = ("covtype", "kdd04_bio", "ijcnn1", "a9a", "mnist"), (0.01, 1.0)
    kinds = ("paper", "ours, one shard", "ours")
    return [Job(name, C=C, search=s, variant=v) for name in sets for C in Cs for v in kinds for s in SEARCHES]


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], list[Job]]] = {
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "stalls": stalls,
    "layout": layout,
    "reading": reading,
    "guards": guards,
    "binary": binary,
}


class Bench:
    """The data sets that are in use, and fits on them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.sets: dict[tuple[Any, ...], data.DataSet] = {}
        self.rows: dict[str, int] = {}  # of each set, all that there are
        self.test: dict[str, data.DataSet | None] = {}
        self.sorting = MultiSvmOcas(ones=False)
        self.history: list[Row] = []  # of the last fit

    def dataset(self, job: Job) -> data.DataSet:
        """The rows and features of a job, CSR where zeros abound unless it says otherwise."""
        key = (job.set, job.seed, job.layout, job.features)
        if key not in self.sets:
            name, _, rows = job.set.partition(":")
            whole = self.sets.get((name,)) or data.load(name, self.options.data)
            self.sets[(name,)] = whole
            self.rows[name] = whole.n
            part = whole.subset(int(rows), job.seed) if rows else whole
            csr = (job.layout or layouts(part)[0]) == "csr"
            part = part._replace(X=as_csr(part.X)) if csr else part
            self.sets[key] = frequent(part, job.features) if job.features else part
        return self.sets[key]

    def run(self, job: Job) -> Row:
        """One fit, and what it did. One that fails says why."""
        found = self.dataset(job)
        row: Row = dict.fromkeys(FIELDS, "") | job._asdict()
        del row["features"]
        row |= {"set": job.set.partition(":")[0], "n": found.n, "d": found.X.shape[1], "classes": found.classes}
        C = job.Cn / found.n if job.Cn else job.C * (1 if job.mean else self.rows[row["set"]]) / found.n
        try:
            W, b, facts = (self.ours if job.solver == OURS else self.theirs)(found, C, job)
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            return row | {"ended": False, "message": f"{type(error).__name__}: {error}"}
        row |= facts | judge(found, W, b, C)._asdict()
        if not job.features and found.classes > 2 and (test := self.test_rows(job.set)):
            row["test_error"] = judge(test, W, b, 1.0).error
        return row

    def test_rows(self, name: str) -> data.DataSet | None:
        if name not in self.test:
            self.test[name] = None if ":" in name else data.held_out(name, self.options.data)
        return self.test[name]

    def ours(self, found: data.DataSet, C: float, job: Job) -> tuple[np.ndarray, np.ndarray, Row]:
        """cutsvm. Seconds: the solver's own clock, without the checks of the data. `cpu`: of the process, with them."""
        from cutsvm import LinearSVC
        from cutsvm.solvers import OCAS

        solver = OCAS(line_search=job.search, **variants()[job.variant])
        fixed: dict[str, Any] = {"fit_intercept": False, "n_jobs": self.options.jobs, "max_time": self.options.limit}
        if found.classes > 2:
            fixed["multi_class"] = "crammer_singer"
        model = LinearSVC(C, tol=job.epsilon, solver=solver, max_iter=job.most or 100_000, **fixed)
        began = process_time()
        model.fit(found.X, found.y)
        cpu = process_time() - began
        self.history = model.history_
        facts = {"ended": model.converged_, "status": model.status_.name, "cpu": cpu, "limit": self.options.limit or ""}
        W = model.coef_ if found.classes > 2 else model.coef_[0]
        return W, np.zeros(len(model.coef_)), progress(self.history) | facts

    def theirs(self, found: data.DataSet, C: float, job: Job) -> tuple[np.ndarray, np.ndarray, Row]:
        """msvmocas. Its `sort_time` is the last step of the search; what comes before it is in the rest."""
        limit = self.options.limit_msvmocas
        W, b, seconds = self.sorting.fit(found, C, {"r": job.epsilon}, limit)
        claims = self.sorting.claims
        parts = {name: claims["parts"][f"{name}_time"] for name in ("sort", "output", "add", "qp_solver", "w", "print")}
        facts: Row = {"seconds": seconds, "ended": claims["stopped"], "gap": 1 - claims["lower"] / claims["primal"]}
        facts |= {"status": "CONVERGED" if claims["stopped"] else "MAX_TIME", "variant": "", "limit": limit}
        facts |= {key: claims[key] for key in ("iterations", "standstills")}
        facts |= {"seconds_search": parts["sort"], "seconds_scores": parts["output"], "seconds_planes": parts["add"]}
        return W, b, facts | {"seconds_qp": parts["qp_solver"], "seconds_rest": seconds - sum(parts.values())}


def progress(history: list[Row]) -> Row:
    """What a fit had done at the last of these records."""
    last, zeros = history[-1], [record["step"] == 0.0 for record in history[1:]]
    facts = {key: last[key] for key in ("seconds", "passes", "planes", "gap")}
    facts |= {f"seconds_{part}": last[f"seconds_{part}"] for part in ("scores", "planes", "qp")}
    facts |= {"seconds_search": last["seconds_line_search"]}
    facts |= {"iterations": len(zeros), "standstills": sum(zeros), "longest": longest(zeros)}
    parts = sum(value for key, value in last.items() if key.startswith("seconds_"))
    return facts | {"seconds_rest": last["seconds"] - parts}


def by_epsilon(row: Row, history: list[Row]) -> Iterator[Row]:
    """The row of one fit as it was at each epsilon that it passed; its weights are those of the last."""
    for epsilon in EPSILONS:
        places = [i for i, record in enumerate(history) if i and record["gap"] <= epsilon]
        if places:
            now = progress(history[: places[0] + 1])
            yield row | now | {"epsilon": epsilon, "cpu": "", "objective": "", "error": "", "test_error": ""}


def frequent(whole: data.DataSet, d: int) -> data.DataSet:
    """The d features that are not zero in the most rows, in their old order."""
    X = as_csr(whole.X)
    counts = np.bincount(X.indices, minlength=X.shape[1])
    kept = np.sort(np.argsort(-counts, kind="stable")[:d])
    return whole._replace(name=f"{whole.name}-{d}-features", X=X[:, kept])


def longest(zeros: list[bool]) -> int:
    """The most in a row."""
    return max((sum(1 for _ in group) for zero, group in groupby(zeros) if zero), default=0)


def experiment(name: str, bench: Bench, options: argparse.Namespace) -> Iterator[Row]:
    """The fits of all rounds. One that did not end is not repeated."""
    jobs = [job for job in EXPERIMENTS[name](options) if job.solver == OURS or MultiSvmOcas.installed()]
    if options.quick:
        jobs = [job._replace(set=job.set.partition(":")[0] + ":1000", most=20, seed=0) for job in jobs if not job.seed]
    names = data.available([job.set for job in jobs], options.data)[0]
    jobs = [job for job in jobs if job.set in names and wanted(job.solver, job.set, options)]
    bench.sets.clear()
    for turn in range(options.repeat):
        ended = []
        for job in jobs:
            row = bench.run(job) | {"experiment": name, "round": turn}
            show(row)
            yield from by_epsilon(row, bench.history) if name == "fig5" else [row]
            ended += [job] if row["ended"] else []
        jobs = ended


def show(row: Row) -> None:
    what = " ".join(str(row[key]) for key in "experiment solver variant search set n d seed C Cn mean epsilon".split())
    if row["message"]:
        print(f"{what}: {row['message']}", flush=True)
        return
    print(
        f"{what}: {row['seconds']:.2f} s, {row['iterations']} iterations, {row['standstills']} standstills, "
        f"gap {row['gap']:.1e}, error {row['error']:.4f}{'' if row['ended'] else ', ' + row['status']}",
        flush=True,
    )


def solve(options: argparse.Namespace, path: Path) -> None:
    """One experiment after the other; the results of others stay in the file."""
    bench = Bench(options)
    commit()  # that of the sources as they are now
    for name in options.only:
        old = arnosti_report.read(path) if path.exists() else []
        rows = [row for row in old if row["experiment"] != name or not wanted(row["solver"], row["set"], options)]
        for row in experiment(name, bench, options):
            rows.append(row)
            paper.save(path, FIELDS, rows, EXPERIMENTS)


def wanted(solver: str, name: str, options: argparse.Namespace) -> bool:
    """Whether this run is to measure the solver on this set."""
    if options.set and name.partition(":")[0] != options.set:
        return False
    return bool(options.sorting == "with" or (options.sorting == "only") == (solver == SORTING))


def arguments() -> argparse.Namespace:
    parser = paper.parser(__doc__, EXPERIMENTS, "20 iterations on 1,000 rows")
    add = parser.add_argument
    add("--limit", type=float, default=None, help="seconds per fit of ours; none")
    add("--limit-msvmocas", type=float, default=900.0, help="seconds per fit of msvmocas")
    add(
        "--sorting", choices=["with", "without", "only"], default="with", help="msvmocas beside ours, or one of the two"
    )
    add("--set", default="", help="only the fits on this set")
    add("--repeat", type=int, default=1, help="rounds; medians count")
    add("--rows", type=int, default=50_000, help="rows of covtype in fig6, stalls and layout")
    add("--jobs", type=int, default=1, help="threads of ours, -1: all cores")
    return paper.parsed(parser)


if __name__ == "__main__":
    paper.main("arnosti", arguments(), solve, arnosti_report.make)
