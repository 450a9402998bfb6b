"""The fits of a problem: which estimators, solvers and variants, and how each is made."""

from __future__ import annotations

import copy
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import cutsvm
from cutsvm import kernel_machines, solvers
from cutsvm._utils import threads

from .problems import Problem

BINARY = (
    "ocas",
    "OCAS(line_search='gca')",
    "OCAS(line_search='gca2')",
    "OCAS(line_search='tca')",
    "OCAS(shards=1)",
    "OCAS(shards=3)",
    "OCAS(buckets=4, shards=1)",
    "OCAS(cut_at=0.0)",
    "cpa",
    "CPA(shards=1)",
    "CPA(buckets=4, shards=1)",
    "dcd",
    "DCD(seed=3)",
    "DCD(asynchronous=True)",
    "ACCPM(formulation='I1')",
    "ACCPM(formulation='I2')",
    "ACCPM(formulation='E')",
    "ACCPM(formulation='I2', early_return=False, both_sides=True, whiten=True)",
    "Sifting(sample=0.4, band=0.3)",
    "Sifting(inner=DCD())",
    "auto",
    "auto",
)
JOINT = (
    "ocas",
    "cpa",
    "auto",
    "sifting",
    "OCAS(shards=1)",
    "OCAS(shards=3)",
    "OCAS(line_search='gca')",
    "OCAS(line_search='tca')",
)
PAIRS = (
    "ocas",
    "cpa",
    "auto",
    "OCAS(shards=1)",
    "OCAS(shards=3)",
    "OCAS(line_search='gca2')",
    "CPA(shards=1)",
    "OCAS(line_search='tca')",
)
KERNEL = tuple(kernel_machines.SOLVERS)
VARIANTS = {
    "plain": 0.7,
    "path": 0.1,
    "cross-validation": 0.03,
    "warm start": 0.07,
    "checkpoint": 0.06,
    "store": 0.04,
}
PLAIN_ONLY = {"kernel": {"plain"}, "roc": {"plain", "warm start"}, "ordinal": {"plain", "warm start"}}
RATIO = 7.0  # of neighbouring C on a path


@dataclass(frozen=True)
class Fit:
    """One way to fit a problem."""

    solver: str
    variant: str
    seconds: float = 3.0  # of processor time, after which it is ended at its next iteration

    def __str__(self) -> str:
        return f"{self.solver} ({self.variant})"


@dataclass
class Fitted:
    """A model, and the C that it was fitted with."""

    model: Any
    C: float
    name: str


def fits(problem: Problem, count: int) -> list[Fit]:
    """So many different fits, by the problem's own numbers."""
    rng = np.random.default_rng([problem.seed, problem.number, 1])
    names = {"binary": BINARY, "ovr": BINARY, "joint": JOINT, "kernel": KERNEL}.get(problem.kind, PAIRS)
    chosen: list[Fit] = []
    for solver in rng.permutation(names)[:count]:
        variant = str(rng.choice(list(VARIANTS), p=np.array(list(VARIANTS.values())) / sum(VARIANTS.values())))
        if variant not in PLAIN_ONLY.get(problem.kind, VARIANTS) or (variant == "store" and "dcd" in solver.lower()):
            variant = "plain"
        if variant == "cross-validation" and (problem.kind not in ("binary", "joint", "ovr") or len(problem.y) < 8):
            variant = "plain"
        chosen.append(Fit(str(solver), variant))
    return chosen


def solver_of(text: str) -> Any:
    """A name, or a solver object from its expression."""
    return eval(text, {name: getattr(solvers, name) for name in solvers.__all__}) if "(" in text else text


class Patience:
    """A callback that ends a fit which still makes iterations after some seconds: it is slow, and no endless loop."""

    def __init__(self, seconds: float) -> None:
        self.end = time.process_time() + seconds

    def __call__(self, record: Any) -> bool:
        return time.process_time() > self.end


def estimator(problem: Problem, fit: Fit, **more: Any) -> Any:
    params: dict[str, Any] = {"C": problem.C, "tol": problem.tol, "solver": solver_of(fit.solver), **more}
    params["callbacks"] = [Patience(fit.seconds)]
    if "asynchronous" in fit.solver:
        params["n_jobs"] = 2
    if problem.kind in ("binary", "joint", "ovr"):
        params["fit_intercept"] = problem.intercept != "none"
        params["intercept"] = "regularized" if problem.intercept == "regularized" else "free"
        params["multi_class"] = "ovr" if problem.kind == "ovr" else "crammer_singer"
        return cutsvm.LinearSVC(**params)
    if problem.kind == "kernel":
        params["fit_intercept"] = problem.intercept != "none"  # free in the exact solver, regularised in the others
        return cutsvm.KernelSVC(**{**params, **problem.params, "solver": fit.solver, "random_state": 0})
    kind = {"ranking": cutsvm.RankingSVM, "roc": cutsvm.ROCAreaSVC, "ordinal": cutsvm.OrdinalSVC}[problem.kind]
    return kind(**params)


def perform(problem: Problem, fit: Fit) -> Iterator[Fitted]:
    """The models of a fit. What a fit raises is the caller's to judge."""
    threads.configure(threads.ThreadSettings(min_size=0))  # two threads for small data, too
    X, y, given = problem.matrix(), problem.column(problem.y), _extra(problem)
    if fit.variant == "plain":
        yield Fitted(estimator(problem, fit).fit(X, y, **given), problem.C, "")
    elif fit.variant == "path":
        Cs = [problem.C, problem.C * RATIO, problem.C * RATIO**2]
        params = estimator(problem, fit).get_params(deep=False)
        params.pop("C"), params.pop("checkpoint")
        path = cutsvm.ranking_path if problem.kind == "ranking" else cutsvm.linear_path
        for model in path(X, y, Cs=Cs, **given, **params):
            yield Fitted(model, float(model.C), f"C={model.C:.3g}")
    elif fit.variant == "cross-validation":
        yield from _cross_validated(problem, fit, X, y, given)
    elif fit.variant == "warm start":
        model = estimator(problem, fit, warm_start=True, max_iter=3).fit(X, y, **given)
        yield Fitted(copy.deepcopy(model), problem.C, "first")
        model.set_params(C=problem.C * RATIO, max_iter=10_000, callbacks=[Patience(fit.seconds)]).fit(X, y, **given)
        yield Fitted(model, problem.C * RATIO, "again")
    elif fit.variant == "checkpoint":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "checkpoint"
            model = estimator(problem, fit, checkpoint=file, max_iter=2).fit(X, y, **given)
            yield Fitted(model, problem.C, "stopped")
            yield Fitted(estimator(problem, fit, checkpoint=file).fit(X, y, **given), problem.C, "resumed")
    else:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            cutsvm.convert((X, y), store)
            yield Fitted(estimator(problem, fit, memory_limit="2GB").fit(store, **given), problem.C, "")


def _extra(problem: Problem) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if problem.weights is not None:
        given["sample_weight"] = problem.column(problem.weights)
    if problem.qid is not None:
        given["qid"] = problem.qid
    return given


def _cross_validated(problem: Problem, fit: Fit, X: Any, y: Any, given: Any) -> Iterator[Fitted]:
    params = estimator(problem, fit).get_params(deep=False)
    for name in ("C", "checkpoint", "memory_limit"):
        params.pop(name)
    n = X.shape[0]
    halves = [(np.arange(n), np.arange(n))]  # scores do not matter here, and every class is in every fold
    model = cutsvm.LinearSVCCV(Cs=[problem.C, problem.C * RATIO], cv=halves, **params).fit(X, y, **given)
    for one in model.path_:
        yield Fitted(one, float(one.C), f"path C={one.C:.3g}")
    yield Fitted(model, float(model.C_), "chosen")


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Warnings other than those that say that a fit has not converged."""
    seen: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield seen
    seen += [
        f"{one.category.__name__}: {one.message}" for one in caught if not issubclass(one.category, ConvergenceWarning)
    ]
