"""The five experiments of Franc and Sonnenburg (2008), Optimized Cutting Plane Algorithm for SVMs, on our data.

    python benchmarks/papers/franc_sonnenburg.py [--only shortcuts,selection,training,convergence,scaling,threads]
    python benchmarks/papers/franc_sonnenburg.py --quick        # few rows, some minutes, into a temporary folder

Everybody minimises F(w, b) = (|w|^2 + b^2)/2 + C sum_i max(0, 1 - y_i (w.x_i + b)), the paper's problem (it has no b)
on rows with a constant feature. Its C is our C n, and stands as `Cn` in the CSV. `ocas` and `cpa` are the paper's two
algorithms to the letter, OCAS(exact=True) and CPA(exact=True), until F(w) - F_t(w_t) <= 0.001 C, as there. `ocas, short
cuts` is our OCAS with one plane an iteration, to a gap of 1e-3. Rows are split once: three fifths to train on, one to
choose C by, one to test. `selection` runs first: `training` and `convergence` are at the C that it found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
import franc_sonnenburg_report as report
import paper
from data import DataSet
from peers import CORES, Liblinear, Peer, SklearnSGD, SvmOcas, as_csr, judge, layouts, with_ones

PARTS = ("scores", "planes", "line_search", "qp", "descent", "sift")
FIELDS = [
    *"experiment set solver n d Cn epsilon jobs round seconds iterations planes objective lower gap".split(),
    *"valid test ended status".split(),
    *(f"seconds_{part}" for part in PARTS),
    "message",
]
Row = dict[str, Any]
SETS = ("covtype", "mnist", "arxiv", "artificial")
COSTS = tuple(float(10**k) for k in range(7))  # C n
GAP, TIGHT = 1e-3, 1e-6
EPSILON = 1e-3  # the paper's, in units of C
NEVER = 1e-12  # a gap that no fit reaches: the paper's rule ends it
EPOCHS = 10  # of SGD, as in the paper
MOST_EPOCHS = 300


class Split(NamedTuple):
    """A set in three parts."""

    train: DataSet
    valid: DataSet
    test: DataSet


class Plan(NamedTuple):
    """What `LinearSVC(solver=...)` is given, and its tol."""

    solver: Any
    tol: float


def artificial(n: int = 100_000, d: int = 100) -> DataSet:
    """Two Gaussians with different diagonal covariances, their deviations over two decades."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    deviation = 10.0 ** rng.uniform(-1.0, 1.0, size=(2, d))
    shift = rng.normal(size=d) * deviation.min(axis=0) * 0.2
    X = rng.normal(size=(n, d)) * deviation[(y > 0).astype(int)] + y[:, None] * shift
    return DataSet("artificial", X.astype(np.float32), y)


class Bench:
    """One set at a time, and fits on it."""

    def __init__(self, options: argparse.Namespace, known: list[Row]) -> None:
        self.options, self.found = options, known
        self.name = ""
        self.sets, missing = data.available([name for name in SETS if name != "artificial"], options.data)
        self.sets.append("artificial")
        if missing:
            print(f"Skipped, no file: {', '.join(missing)}.")
        self.costs = COSTS[1:6:2] if options.quick else COSTS

    def open(self, name: str) -> DataSet:
        """All rows of a set, in random order."""
        if name != self.name:
            whole = artificial() if name == "artificial" else data.load(name, self.options.data)
            order = np.random.default_rng(0).permutation(whole.n)[: 3_000 if self.options.quick else None]
            # Dense rows that are mostly zeros are sparse ones for everybody.
            X = as_csr(whole.X) if layouts(whole)[0] == "csr" else whole.X
            self.whole, self.name = DataSet(name, X[order], whole.y[order]), name
            self.peers: dict[str, Peer] = {}  # they keep the rows in a form of their own
        return self.whole

    def split(self, name: str) -> Split:
        whole = self.open(name)
        at = [0, 3 * whole.n // 5, 4 * whole.n // 5, whole.n]
        ranges = [slice(*at[k : k + 2]) for k in range(3)]
        parts = zip(("train", "valid", "test"), ranges, strict=True)
        return Split(*(DataSet(f"{name}-{part}", whole.X[rows], whole.y[rows]) for part, rows in parts))

    def best_cost(self, name: str) -> float:
        """The C n that `cutsvm` chose for this set."""
        rows = [row for row in self.found if row["experiment"] == "selection" and row["set"] == name]
        rows = [row for row in rows if row["solver"] == "cutsvm" and row["valid"] != ""]
        if not rows:
            raise SystemExit(f"{name}: no C was chosen yet; run --only selection first")
        return float(max(rows, key=lambda row: (float(row["valid"]), -float(row["Cn"])))["Cn"])

    def row(self, experiment: str, rows: DataSet, solver: str, Cn: float, **facts: Any) -> Row:
        """A line of the CSV, which is printed, too."""
        line: Row = dict.fromkeys(FIELDS, "")
        line |= {"experiment": experiment, "set": self.name, "solver": solver, "n": rows.n, "d": rows.X.shape[1]}
        line |= {"Cn": Cn, **facts}
        shown = f"{line['seconds']:.3f} s" if line["seconds"] != "" else line["message"]
        jobs = f" on {line['jobs']}" if line["jobs"] != "" else ""
        if experiment != "convergence":
            print(f"{experiment} {self.name} {solver} n {rows.n} C n {Cn:g}{jobs}: {shown}", flush=True)
        self.found.append(line)
        return line

    def ours(self, rows: DataSet, Cn: float, plan: Plan, jobs: int = -1) -> tuple[Any, float]:
        """A fitted model of ours and its seconds."""
        from cutsvm import LinearSVC

        fixed: dict[str, Any] = {"intercept": "regularized", "max_time": self.options.time_limit, "max_iter": 100_000}
        model = LinearSVC(Cn / rows.n, tol=plan.tol, solver=plan.solver, n_jobs=jobs, **fixed)
        start = perf_counter()
        model.fit(rows.X, rows.y)
        return model, perf_counter() - start

    def peer(self, kind: type[Peer], rows: DataSet, Cn: float, setting: dict[str, Any]) -> tuple[Any, Any, float]:
        """A peer's w, b and seconds."""
        peer = self.peers.setdefault(kind.name, kind())
        return peer.fit(rows, Cn / rows.n, setting, self.options.time_limit)


def plans(Cn: float) -> dict[str, Plan]:
    """By name: the estimator as it comes, the paper's two algorithms with its rule, and ours with one plane."""
    from cutsvm import solvers

    return {
        "cutsvm": Plan("auto", GAP),
        "ocas": Plan(solvers.OCAS(exact=True, epsilon=EPSILON * Cn), NEVER),
        "cpa": Plan(solvers.CPA(exact=True, epsilon=EPSILON), NEVER),
        "ocas, short cuts": Plan(solvers.OCAS(shards=1), GAP),
    }


def to_the_end() -> dict[str, Plan]:
    """The same without the paper's rule, to a gap of 1e-6; and with shards."""
    from cutsvm import solvers

    found = {
        "cutsvm": "auto",
        "ocas": solvers.OCAS(exact=True),
        "cpa": solvers.CPA(exact=True, epsilon=NEVER),
        "ocas, short cuts": solvers.OCAS(shards=1),
        "ocas, shards": solvers.OCAS(),
    }
    return {name: Plan(solver, TIGHT) for name, solver in found.items()}


def peers_of(rows: DataSet) -> dict[str, tuple[type[Peer], dict[str, Any]]]:
    """The peers that are installed, with their settings."""
    all_of_them: dict[str, tuple[type[Peer], dict[str, Any]]] = {
        "svmocas": (SvmOcas, {"r": GAP, "p": CORES}),
        "LIBLINEAR": (Liblinear, {"s": 3, "e": 0.1}),
        "SGD": (SklearnSGD, {"layout": layouts(rows)[0], "average": False, "max_iter": EPOCHS}),
    }
    return {name: (kind, setting) for name, (kind, setting) in all_of_them.items() if kind.installed()}


def area(part: DataSet, w: Any, b: Any) -> float:
    """The area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(part.y, part.X @ np.ravel(w) + float(np.ravel(b)[0])))


def facts_of(model: Any) -> Row:
    """What a model of ours says of its fit."""
    last = model.history_[-1]
    found: Row = {f"seconds_{part}": last[f"seconds_{part}"] for part in PARTS}
    found |= {"iterations": last["iteration"], "objective": model.objective_, "lower": model.lower_bound_}
    found |= {"planes": last["planes"], "status": model.status_.name}
    return found | {"gap": model.gap_, "ended": bool(model.converged_)}


def fits(bench: Bench, experiment: str, split: Split, Cn: float) -> None:
    """Everybody at one C: ours to a certified gap, the peers with their own rules."""
    train = split.train
    for name, plan in plans(Cn).items():
        model, seconds = bench.ours(train, Cn, plan)
        facts = facts_of(model) | scored(split, model.coef_, model.intercept_)
        bench.row(experiment, train, name, Cn, seconds=seconds, **facts)
    for name, (kind, setting) in peers_of(train).items():
        try:
            w, b, seconds = bench.peer(kind, train, Cn, setting)
        except Exception as error:  # a peer may fail in any way; the others go on
            bench.row(experiment, train, name, Cn, ended=False, message=f"{type(error).__name__}: {error}"[:200])
            continue
        objective = judge(train, w, b, Cn / train.n).objective
        bench.row(experiment, train, name, Cn, seconds=seconds, objective=objective, ended=True, **scored(split, w, b))


def scored(split: Split, w: Any, b: Any) -> Row:
    return {"valid": area(split.valid, w, b), "test": area(split.test, w, b)}


def selection(bench: Bench) -> None:
    """Every C, by everybody; and by one path over all of them."""
    from cutsvm import linear_path

    for name in bench.sets:
        split = bench.split(name)
        train = split.train
        for Cn in bench.costs:
            fits(bench, "selection", split, Cn)
        fixed: dict[str, Any] = {"tol": GAP, "intercept": "regularized", "n_jobs": -1}
        start = perf_counter()
        models = linear_path(train.X, train.y, Cs=np.array(bench.costs) / train.n, **fixed)
        seconds = perf_counter() - start
        for Cn, model in zip(bench.costs, models, strict=True):
            # The path is one piece of work: each C gets its share.
            facts = facts_of(model) | scored(split, model.coef_, model.intercept_)
            bench.row("selection", train, "cutsvm, one path", Cn, seconds=seconds / len(models), **facts)


def training(bench: Bench) -> None:
    """Time and objective at the best C, some times; and a bound to measure all of them by."""
    for name in bench.sets:
        split = bench.split(name)
        Cn = bench.best_cost(name)
        for _ in range(1 if bench.options.quick else bench.options.rounds):
            fits(bench, "training", split, Cn)
        bound(bench, "training", split.train, Cn)


def bound(bench: Bench, experiment: str, rows: DataSet, Cn: float) -> None:
    model, seconds = bench.ours(rows, Cn, Plan("auto", TIGHT))
    bench.row(experiment, rows, "bound", Cn, seconds=seconds, **facts_of(model))


def convergence(bench: Bench) -> None:
    """Objective against time, at the best C and at one that is a hundred times larger."""
    for name in bench.sets:
        train = bench.split(name).train
        best = bench.best_cost(name)
        for Cn in (best, 100.0 * best):
            for solver, plan in to_the_end().items():
                model, _ = bench.ours(train, Cn, plan)
                for record in thinned(model.history_):
                    facts = {"seconds": record["seconds"], "iterations": record["iteration"]}
                    facts |= {"objective": record["primal"], "lower": record["lower"], "ended": True}
                    bench.row("convergence", train, solver, Cn, **facts)
                print(f"convergence {name} {solver} C n {Cn:g}: gap {model.gap_:.1e}", flush=True)
            for epoch, seconds, objective in sgd_curve(train, Cn, bench.options.time_limit):
                facts = {"seconds": seconds, "iterations": epoch, "objective": objective, "ended": True}
                bench.row("convergence", train, "SGD", Cn, **facts)


def thinned(history: list[Row], most: int = 60) -> list[Row]:
    """As many records, in equal ratios."""
    places = np.unique(np.geomspace(1, len(history), most).round().astype(int)) - 1
    return [history[place] for place in places]


def sgd_curve(rows: DataSet, Cn: float, limit: float) -> Iterator[tuple[int, float, float]]:
    """Epochs, their seconds and F; what it takes to compute F is not counted."""
    from sklearn.linear_model import SGDClassifier

    X = with_ones(rows, layouts(rows)[0])
    model = SGDClassifier(alpha=1.0 / Cn, fit_intercept=False, random_state=0)
    shown = set(np.geomspace(1, MOST_EPOCHS, 30).round().astype(int).tolist())
    seconds = 0.0
    for epoch in range(1, MOST_EPOCHS + 1):
        start = perf_counter()
        model.partial_fit(X, rows.y, classes=[-1.0, 1.0])
        seconds += perf_counter() - start
        if epoch in shown:
            w, b = model.coef_[0, :-1], float(model.coef_[0, -1])
            yield epoch, seconds, judge(rows, w, b, Cn / rows.n).objective
        if seconds > limit:
            return


def scaling(bench: Bench) -> None:
    """Time against n, at a C n that stays."""
    Cn = 1e4
    for name in bench.sets[:1] + [other for other in bench.sets if other == "arxiv"]:
        whole = bench.open(name)
        sizes = [n for n in (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000) if n < whole.n] + [whole.n]
        for n in sizes:
            rows = DataSet(f"{name}-{n}", whole.X[:n], whole.y[:n])
            for solver, plan in plans(Cn).items():
                model, seconds = bench.ours(rows, Cn, plan)
                bench.row("scaling", rows, solver, Cn, seconds=seconds, **facts_of(model))
            setting = {"layout": layouts(rows)[0], "average": False, "max_iter": EPOCHS}
            w, b, seconds = SklearnSGD().fit(rows, Cn / n, setting, np.inf)
            objective = judge(rows, w, b, Cn / n).objective
            bench.row("scaling", rows, "SGD", Cn, seconds=seconds, objective=objective, ended=True)


def threads(bench: Bench) -> None:
    """One thread and all of them, by turns: where the time goes."""
    Cn, rounds = 1e4, 2 if bench.options.quick else 5
    chosen = {name: plan for name, plan in plans(Cn).items() if name != "cpa"}
    for name in bench.sets:
        rows = bench.open(name)
        for solver, plan in chosen.items():
            bench.ours(rows, 1.0, plan._replace(tol=0.1))  # libraries and threads are there
            for turn, jobs in product(range(1, rounds + 1), sorted({1, CORES})):
                model, seconds = bench.ours(rows, Cn, plan, jobs=jobs)
                facts = {"seconds": seconds, "jobs": jobs, "round": turn, **facts_of(model)}
                bench.row("threads", rows, solver, Cn, **facts)


def shortcuts(bench: Bench) -> None:
    """20,000 random rows of covtype, ten times: the paper's algorithm, and ours with one short cut or more."""
    from cutsvm.solvers import OCAS
    from cutsvm.solvers.cutting_planes import PlaneSettings

    Cn, n = 1e6, 20_000
    kinds: dict[str, dict[str, Any]] = {
        "ocas": {"exact": True},
        "loose reduced problem": {"shards": 1, "planes": PlaneSettings(patience=10**9)},
        "planes dropped": {"shards": 1, "planes": PlaneSettings(qp_share=0.0)},
        "both, one shard": {"shards": 1},
        "both, shards": {},
    }
    whole = bench.open("covtype")
    for seed in range(1, 11):
        chosen = np.random.default_rng(seed).permutation(whole.n)[:n]
        rows = DataSet(f"covtype-{seed}", whole.X[chosen], whole.y[chosen])
        for epsilon in (1e-2, 1e-3, 1e-4):
            for name, settings in kinds.items():
                plan = Plan(OCAS(epsilon=epsilon * Cn, **settings), NEVER)
                model, seconds = bench.ours(rows, Cn, plan, jobs=1)
                facts = facts_of(model) | {"seconds": seconds, "epsilon": epsilon, "round": seed, "jobs": 1}
                bench.row("shortcuts", rows, name, Cn, **facts)


EXPERIMENTS: dict[str, Callable[[Bench], None]] = {
    "shortcuts": shortcuts,
    "selection": selection,
    "training": training,
    "convergence": convergence,
    "scaling": scaling,
    "threads": threads,
}


def solve(options: argparse.Namespace, path: Path) -> None:
    """Run what is asked for, in its order; the results of other experiments stay in the file."""
    kept = report.read(path) if path.exists() else []
    bench = Bench(options, [row for row in kept if row["experiment"] not in options.only])
    for experiment in (name for name in EXPERIMENTS if name in options.only):
        EXPERIMENTS[experiment](bench)
        paper.save(path, FIELDS, bench.found, EXPERIMENTS)


if __name__ == "__main__":
    options = paper.parser(__doc__, EXPERIMENTS, "3,000 rows a set")
    paper.limited(options, 40.0)
    options.add_argument("--rounds", type=int, default=3, help="of `training`, medians count")
    paper.main("franc_sonnenburg", paper.parsed(options), solve, report.make)
