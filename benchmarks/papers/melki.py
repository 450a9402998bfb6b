"""The tables and figures of Melki and Kecman (2016), Speeding Up Online Training of L1 Support Vector Machines, again.

    python benchmarks/papers/melki.py [--only readings,l2,configurations,folds,peer,mnist] [--sets iris,glass]
    python benchmarks/papers/melki.py --quick            # two small sets, into a temporary folder

Nested cross-validation, 5 x 5 folds, over the paper's grid of 8 values of C and 8 of gamma, features in [0, 1], on one
thread. The peer is scikit-learn's SVC in GridSearchCV on the same folds and the same grid; where that would take hours,
a part of its fits is timed, from one training part and every third value of C and gamma, and the sum scaled to all of
them. `cpu` is CPU time, which the paper reports, and which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
import melki_report
import paper

FIELDS = "experiment set solver C_times order step iterates intercept folds epochs average seed".split()
FIELDS += "n d classes accuracy spread seconds cpu".split()
FIELDS += "seconds_kernel seconds_training seconds_voting choices memory ended message".split()
SMALL = ("iris", "glass", "wine", "tae", "sonar", "dermatology", "heart")
MEDIUM = ("optdigits", "usps", "reuters_lasvm")
# Shuffles of the rows, for folds and for the order of the steps. A figure of the paper is one of them; 40 are the
# fewest of which one can be beyond all others with a probability below 5 %.
SHUFFLES = {
    "readings": dict.fromkeys(SMALL, 40) | {"optdigits": 3, "usps": 1, "reuters_lasvm": 1},
    "folds": dict.fromkeys(SMALL, 40),
    "l2": dict.fromkeys(SMALL, 10) | dict.fromkeys(MEDIUM, 1),
    "configurations": dict.fromkeys(SMALL, 5) | dict.fromkeys(MEDIUM, 1),
}
FOLDS = 5
RANDOM = 10  # shuffles with rows that are drawn at random, at most
# Of the paper's epochs, those that it recommends.
EPOCHS = {"small": 5, "medium": 1}
Row = dict[str, Any]


def size(name: str) -> str:
    return "small" if name in SMALL else "medium"


class Problem:
    """A data set, scaled, its rows sorted by class: so the folds are the same for everybody."""

    def __init__(self, name: str, folder: Path) -> None:
        with np.load(folder / f"{name}.npz") as file:
            parts = ["", "test_"] if "test_shape" in file else [""]
            if "X" in file:
                X = data.unit_range(file["X"]).astype(np.float64)
                y = file["y"]
            else:
                X = sp.vstack([_csr(file, part) for part in parts]).tocsr()
                X = X.multiply(1.0 / np.maximum(abs(X).max(axis=0).toarray(), 1e-300)).tocsr()
                y = np.concatenate([file["y"], file["y_test"]])
        order = np.argsort(y, kind="stable")
        self.name, self.X, self.y = name, X[order], np.unique(y[order], return_inverse=True)[1]

    def facts(self) -> Row:
        return {"set": self.name, "n": len(self.y), "d": self.X.shape[1], "classes": int(self.y.max()) + 1}


def _csr(file: Any, part: str) -> sp.csr_matrix:
    keys = [f"{part}{key}" for key in ("data", "indices", "indptr", "shape")]
    values, indices, pointers, shape = (file[key] for key in keys)
    return sp.csr_matrix((values.astype(np.float64), indices, pointers), shape=tuple(shape))


def splits(seed: int, kind: str = "stratified") -> tuple[Any, Any]:
    from sklearn.model_selection import KFold, StratifiedKFold

    made = StratifiedKFold if kind == "stratified" else KFold
    return tuple(made(FOLDS, shuffle=True, random_state=seed + k) for k in (0, 1000))


def nl_sgd(
    problem: Problem,
    seed: int,
    C_times: str = "sum",
    order: str = "cyclic",
    step: str = "1/m",
    iterates: str = "after",
    average: float = 0.5,
    epochs: int | None = None,
    folds: str = "stratified",
) -> Row:
    """One nested cross-validation of NL-SGD; as the paper has it, unless told: cyclic, with the step of its box."""
    settings = {"C_times": C_times, "order": order, "step": step, "iterates": iterates}
    epochs = EPOCHS[size(problem.name)] if epochs is None else epochs
    params = {"epochs": epochs, "average": average}
    found = nested(problem, seed, folds, ("SGD", settings), params)
    return {"solver": "sgd", "folds": folds} | settings | params | found


def nested(problem: Problem, seed: int, folds: str, solver: tuple[str, Row], params: Row) -> Row:
    """One nested cross-validation of ours; of a medium set in a process of its own, to see its memory."""
    if size(problem.name) == "small":
        return validate(problem, seed, folds, solver, params)
    return in_child(validate, 1e4, problem, seed, folds, solver, params)


def validate(problem: Problem, seed: int, folds: str, solver: tuple[str, Row], params: Row) -> Row:
    """solver: the name of its class, and its settings."""
    import cutsvm.kernel_machines
    from cutsvm import KernelSVC, nested_cross_validate

    outer, inner = splits(seed, folds)
    name, settings = solver
    estimator = KernelSVC(memory_limit="2GB", solver=getattr(cutsvm.kernel_machines, name)(**settings), **params)
    began = process_time()
    found = nested_cross_validate(
        problem.X, problem.y, outer=outer, inner=inner, estimator=estimator, random_state=seed
    )
    cpu = process_time() - began
    choices = " ".join(f"{choice['C']:g}/{choice['gamma']:g}" for choice in found.best_params)
    row = {"seed": seed, "accuracy": found.mean, "spread": float(found.accuracy.std()), "seconds": found.seconds}
    row |= {f"seconds_{key}": value for key, value in found.parts.items()}
    return row | {"cpu": cpu, "choices": choices, "ended": True}


def readings(problem: Problem, options: argparse.Namespace) -> Iterator[Row]:
    """Tables II and III: NL-SGD with each reading of C, each order of rows and each step; and Algorithm B's letter."""
    few = problem.name in ("usps", "reuters_lasvm")
    for seed in range(options.shuffles("readings", problem.name)):
        for order, step in product(("cyclic", "random"), ("1/m", "1/t")):
            if order == "random" and (seed >= RANDOM or (few and step == "1/m")):
                continue
            for C_times in ("sum", "mean"):  # in turns, so that their times are of one machine
                yield nl_sgd(problem, seed, C_times, order, step)
        for C_times in ("sum", "mean") if seed < RANDOM and not few else ():
            yield nl_sgd(problem, seed, C_times, "random", "1/m", "before", 1.0)


def folds(problem: Problem, options: argparse.Namespace) -> Iterator[Row]:
    """Folds that are cut from the shuffled rows, whatever their classes are."""
    for seed in range(options.shuffles("folds", problem.name)):
        for C_times in ("sum", "mean"):
            yield nl_sgd(problem, seed, C_times, folds="plain")


def l2(problem: Problem, options: argparse.Namespace) -> Iterator[Row]:
    """Tables II and III: the L2 machines, with K and with K + 1."""
    for seed in range(options.shuffles("l2", problem.name)):
        for solver, intercept in product(options.solvers, (None, "regularized")):
            found = nested(problem, seed, "stratified", (L2_SOLVERS[solver], {"intercept": intercept}), {})
            yield {"solver": solver, "intercept": intercept or "none", "folds": "stratified"} | found


def configurations(problem: Problem, options: argparse.Namespace) -> Iterator[Row]:
    """Figures 6 to 10: epochs, and the share of the updates that are averaged."""
    small, few = size(problem.name) == "small", problem.name in ("usps", "reuters_lasvm")
    all_epochs, shares = (2, 5) if small else (1, 2), (0.0, 0.25, 0.5, 0.75)
    for seed in range(options.shuffles("configurations", problem.name)):
        for C_times, epochs, average in product(("mean",) if few else ("mean", "sum"), all_epochs, shares):
            yield nl_sgd(problem, seed, C_times, average=average, epochs=epochs)


def peer(problem: Problem, options: argparse.Namespace) -> Iterator[Row]:
    """scikit-learn's SVC: nested GridSearchCV, or a part of its fits and their time scaled to all."""
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.svm import SVC

    from cutsvm.estimators.model_selection import PAPER_GRID

    outer, inner = splits(0)
    if size(problem.name) == "small":
        search = GridSearchCV(SVC(), PAPER_GRID, cv=inner)
        start, began = perf_counter(), process_time()
        scores = cross_val_score(search, problem.X, problem.y, cv=outer)
        found = {"accuracy": float(scores.mean()), "spread": float(scores.std())}
        found |= {"seconds": perf_counter() - start, "cpu": process_time() - began}
        yield {"solver": "SVC", "seed": 0} | found | {"ended": True}
        return
    train = next(iter(outer.split(problem.X, problem.y)))[0]
    part, held = next(iter(inner.split(problem.X[train], problem.y[train])))
    X, y, X_held, y_held = (
        problem.X[train][part],
        problem.y[train][part],
        problem.X[train][held],
        problem.y[train][held],
    )
    times, best = [], 0.0
    for C in PAPER_GRID["C"][::3]:
        for gamma in PAPER_GRID["gamma"][::3]:
            began = process_time()
            best = max(best, SVC(C=C, gamma=gamma, cache_size=1000).fit(X, y).score(X_held, y_held))
            times.append(process_time() - began)
    # 64 combinations x 25 training parts; 5 fits of 5/4 of the rows left out.
    cpu = float(np.mean(times)) * 64 * FOLDS**2
    words = f"{len(times)} fits took {sum(times):.1f} s; best of them on one held-out part: {100 * best:.2f} %"
    yield {"solver": "SVC", "seed": 0, "cpu": cpu, "ended": False, "message": words}


def in_child(work: Callable[..., Row], limit: float, *args: Any) -> Row:
    """What a function gives, in a process of its own with a time limit, and the most memory that it had."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, work, args))
    process.start()
    theirs.close()
    if not ours.poll(limit):
        process.kill()
        process.join()
        return {"ended": False, "message": f"not done after {limit:.0f} s"}
    found: Row = ours.recv()
    process.join()
    return found


def _send(pipe: Any, work: Callable[..., Row], args: Any) -> None:
    found = work(*args)
    pipe.send(found | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})


def digits(folder: Path, rows: int) -> tuple[np.ndarray, ...]:
    with np.load(folder / "mnist.npz") as file:
        X, y = (file["X"] / 255.0).astype(np.float32), file["y"]
        some = np.random.default_rng(0).permutation(len(y))[:rows]
        return X[some], y[some], (file["X_test"] / 255.0).astype(np.float32), file["y_test"]


def digits_by_us(folder: Path, rows: int, certify: bool, params: Row) -> Row:
    from cutsvm import KernelSVC
    from cutsvm.kernel_machines import SGD

    X, y, X_test, y_test = digits(folder, rows)
    start = perf_counter()
    options = {"solver": SGD(), "random_state": 0, "n_jobs": -1, "certify": certify}
    model = KernelSVC(C=16.0, gamma=1 / 64, **options, **params).fit(X, y)
    seconds = perf_counter() - start
    start = perf_counter()
    accuracy = float(model.score(X_test, y_test))
    words = f"{len(model.support_)} support rows, {perf_counter() - start:.1f} s to predict"
    words += f", gap {model.gap_:.3g}" if certify else ""
    found = {"epochs": model.n_iter_, "accuracy": accuracy, "seconds": seconds, "ended": True, "message": words}
    return found | {"n": len(y), "d": X.shape[1], "classes": 10}


def digits_by_peer(folder: Path, rows: int) -> Row:
    from sklearn.svm import SVC

    X, y, X_test, y_test = digits(folder, rows)
    start = perf_counter()
    model = SVC(C=16.0, gamma=1 / 64, cache_size=2000).fit(X, y)
    seconds = perf_counter() - start
    start = perf_counter()
    accuracy = float(model.score(X_test, y_test))
    words = f"{len(model.support_)} support rows, {perf_counter() - start:.1f} s to predict"
    found = {"accuracy": accuracy, "seconds": seconds, "ended": True, "message": words}
    return found | {"n": len(y), "d": X.shape[1], "classes": 10}


def mnist(options: argparse.Namespace) -> Iterator[Row]:
    """60,000 rows and an RBF kernel: no matrix of kernel values fits."""
    rows = 2_000 if options.quick else 60_000
    for epochs in (1, 2, 5, 10):
        yield {"solver": "sgd"} | in_child(digits_by_us, 1e4, options.data, rows, False, {"epochs": epochs})
    words = {"solver": "sgd, certified"}
    yield words | in_child(digits_by_us, 1e4, options.data, rows, True, {"epochs": 10})
    found: Row = {"ended": False}
    while not found["ended"] and rows > 1_000:
        found = {"solver": "SVC", "n": rows} | in_child(digits_by_peer, options.time_limit, options.data, rows)
        yield found
        rows //= 2


BY_SET: dict[str, Callable[[Problem, argparse.Namespace], Iterator[Row]]] = {
    "readings": readings,
    "l2": l2,
    "folds": folds,
    "configurations": configurations,
    "peer": peer,
}
EXPERIMENTS = (*BY_SET, "mnist")
L2_SOLVERS = {"isda": "ISDA", "min_norm": "MinNorm"}


def show(row: Row) -> None:
    keys = "experiment set solver C_times order step iterates intercept folds epochs average seed".split()
    what = " ".join(str(row[key]) for key in keys if row[key] != "")
    accuracy = f"{100 * row['accuracy']:.2f} %, " if row["accuracy"] != "" else ""
    seconds = f"{row['cpu']:.2f} s " if row["cpu"] != "" else ""
    print(f"{what}: {accuracy}{seconds}{row['message']}", flush=True)


def asked_for(row: Row, options: argparse.Namespace) -> bool:
    """Whether this row is to be made anew."""
    solver = row["experiment"] != "l2" or row["solver"] in options.solvers
    return row["experiment"] in options.only and row["set"] in [*options.sets, "mnist"] and solver


def solve(options: argparse.Namespace, path: Path) -> None:
    """Run what is asked for; other results stay in the file."""
    kept = melki_report.read(path) if path.exists() else []
    kept = [row for row in kept if not asked_for(row, options)]
    found: list[Row] = []

    def note(row: Row) -> None:
        found.append(dict.fromkeys(FIELDS, "") | row)
        show(found[-1])
        paper.save(path, FIELDS, kept + found, EXPERIMENTS)

    missing = [name for name in options.sets if not (options.data / f"{name}.npz").exists()]
    if missing:
        print(f"Skipped, no file: {', '.join(missing)}.")
    for name in options.sets:
        if name in missing:
            continue
        problem = Problem(name, options.data)
        for experiment in options.only:
            if experiment in BY_SET:
                for row in BY_SET[experiment](problem, options):
                    note(problem.facts() | row | {"experiment": experiment})
    if "mnist" in options.only and (options.data / "mnist.npz").exists():
        for row in mnist(options):
            note({"set": "mnist"} | row | {"experiment": "mnist"})


def arguments() -> argparse.Namespace:
    parser = paper.parser(__doc__, EXPERIMENTS, "iris and wine, few digits")
    names = [*SMALL, *MEDIUM]
    parser.add_argument("--sets", type=paper.listed(names), default=names, help=", ".join(names))
    solvers = list(L2_SOLVERS)
    parser.add_argument("--solvers", type=paper.listed(solvers), default=solvers, help="of the L2 machines")
    paper.limited(parser, 600.0, 60.0, of="for SVC on mnist")
    options = paper.parsed(parser)
    if options.quick:
        options.sets = ["iris", "wine"]
    few = 2 if options.quick else 1000
    options.shuffles = lambda experiment, name: min(few, SHUFFLES[experiment].get(name, 0))
    return options


if __name__ == "__main__":
    paper.main("melki", arguments(), solve, melki_report.make)
