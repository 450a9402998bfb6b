"""The jobs of `kernel_nested.py`: nested cross-validation by cutsvm, scikit-learn's SVC and liquidSVM.

A job gives results as it comes along, the last of which counts: seconds as measured, and scaled to all fits if it has
run some of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import data
from kernel_peers import import_liquid

FOLDS = 5
FITS = FOLDS * FOLDS * 64 + FOLDS  # of one machine for all classes: folds x folds x combinations, and the chosen ones
# Of the 64 combinations, those that SVC is timed with, on one training part.
SAMPLE = {"optdigits": 64, "usps": 16}
WARM_UP = 200  # rows
Row = dict[str, Any]


class Problem(NamedTuple):
    """Rows sorted by class, as cutsvm sorts them: so the folds are the same for everybody."""

    name: str
    X: np.ndarray  # float32
    y: np.ndarray  # classes from 0

    def few(self) -> Problem:
        """Some of the rows, of all classes."""
        some = np.linspace(0, len(self.y) - 1, min(WARM_UP, len(self.y))).astype(int)
        return self._replace(X=self.X[some], y=self.y[some])

    def splits(self) -> tuple[Any, Any]:
        """The outer and the inner folds."""
        from sklearn.model_selection import StratifiedKFold

        outer, inner = (StratifiedKFold(FOLDS, shuffle=True, random_state=seed) for seed in (0, 1))
        return outer, inner

    def outer(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return self.splits()[0].split(self.X, self.y)


def load(name: str, folder: Path, rows: int | None) -> Problem:
    """The training and the test rows of a set together, or some of them at random."""
    with np.load(folder / f"{name}.npz") as file:
        X, y = np.vstack([file["X"], file["X_test"]]), np.concatenate([file["y"], file["y_test"]])
    X, order = data.unit_range(X), np.random.default_rng(0).permutation(len(y))[:rows]
    order = order[np.argsort(y[order], kind="stable")]
    return Problem(name, np.ascontiguousarray(X[order]), np.unique(y[order], return_inverse=True)[1])


def grid() -> dict[str, list[float]]:
    from cutsvm.estimators.model_selection import PAPER_GRID

    return PAPER_GRID


class Ours:
    """`nested_cross_validate`: all of it, checks and kernel values included."""

    module = package = "cutsvm"

    def __init__(self, **params: Any) -> None:
        self.params = params

    def __call__(self, problem: Problem, threads: int) -> Iterator[Row]:
        from cutsvm import KernelSVC, nested_cross_validate

        outer, inner = problem.splits()
        start = time.perf_counter()
        found = nested_cross_validate(
            problem.X,
            problem.y,
            param_grid=grid(),
            outer=outer,
            inner=inner,
            estimator=KernelSVC(memory_limit="4GB", **self.params),
            n_jobs=threads,
            random_state=0,
        )
        seconds = time.perf_counter() - start
        parts = ", ".join(f"{name} {value:.1f} s" for name, value in found.parts.items())
        choices = " ".join(f"{choice['C']:g}/{choice['gamma']:g}" for choice in found.best_params)
        yield result(seconds, FITS, FITS, found.accuracy) | {"choices": choices, "message": parts}


class SVC:
    """scikit-learn's SVC in GridSearchCV on one inner training part; the mean seconds of a fit are scaled to all fits.

    A fit is one core's work and as many run at a time as there are threads. It includes the predictions for the part
    held out. What GridSearchCV itself takes is not counted, and the last fits have no more rows than the others: both
    favour the peer.
    """

    module, package = "sklearn", "scikit-learn"

    def __call__(self, problem: Problem, threads: int) -> Iterator[Row]:
        from sklearn import svm
        from sklearn.model_selection import GridSearchCV

        train = next(problem.outer())[0]
        fold = next(problem.splits()[1].split(train, problem.y[train]))
        chosen = [{"C": [C], "gamma": [gamma]} for C, gamma in sample(SAMPLE[problem.name])]
        search = GridSearchCV(
            svm.SVC(cache_size=1000), chosen, cv=[fold], n_jobs=threads, refit=False, error_score="raise"
        )
        search.fit(problem.X[train].astype(np.float64), problem.y[train])
        scores = search.cv_results_
        taken = float(np.sum(scores["mean_fit_time"] + scores["mean_score_time"])) / threads
        best = 100 * scores["mean_test_score"].max()
        which = "all 64 combinations" if len(chosen) == 64 else "16 combinations, each C and each gamma in two,"
        words = f"{which} on one training part; best accuracy on the part held out: {best:.2f} %"
        yield result(taken, len(chosen), FITS) | {"message": words}


def sample(size: int) -> list[tuple[float, float]]:
    """All combinations, or 16 of which each C and each gamma has two."""
    Cs, gammas = grid()["C"], grid()["gamma"]
    if size == 64:
        return list(product(Cs, gammas))
    return [(Cs[i], gammas[(3 * i + shift) % 8]) for i in range(8) for shift in (0, 4)]


class Liquid:
    """liquidSVM's own cross-validation, one-vs-one, in each outer fold: training, choice and predictions.

    Its kernel is exp(-|x - z|^2 / gamma^2), and of `c_values` it makes lambda = 1 / (2 C n) with the n of each pair of
    classes. It has no intercept, and chooses C and gamma for each pair alone. As it comes, it chooses in each inner
    fold too and lets the machines of the folds vote; with `again` it trains those with the best mean error again, on
    all rows. After that its answers are wrong if it keeps the machines of the folds, so it does not.
    """

    module = package = "liquidSVM"

    def __init__(self, again: bool) -> None:
        self.settings = {"retrain_method": "SELECT_ON_ENTIRE_TRAIN_SET", "store_solutions_internally": 0}
        self.settings = self.settings if again else {}

    def __call__(self, problem: Problem, threads: int) -> Iterator[Row]:
        liquid, values = import_liquid(), grid()
        accuracy, seconds = [], 0.0
        for train, test in problem.outer():
            start = time.perf_counter()
            model = liquid.mcSVM(
                problem.X[train],
                problem.y[train] + 1.0,
                mcType="AvA_hinge",
                folds=FOLDS,
                folds_kind="STRATIFIED",
                gammas=[f"{gamma**-0.5:.18f}" for gamma in values["gamma"]],  # it reads no exponents
                c_values=[f"{C:.18f}" for C in values["C"]],
                threads=threads,
                random_seed=0,
                **self.settings,
            )
            hits = model.predict(problem.X[test]) == problem.y[test] + 1.0
            seconds += time.perf_counter() - start
            model.clean()
            accuracy.append(np.mean(hits))
            yield result(seconds, FITS * len(accuracy) // FOLDS, FITS, np.array(accuracy))


def result(measured: float, run: int, of: int, accuracy: np.ndarray | None = None) -> Row:
    """Seconds as measured, and scaled from the fits that were run to all."""
    row = {"measured": measured, "run": run, "of": of, "seconds": measured * of / run}
    return row if accuracy is None else row | {"accuracy": float(accuracy.mean()), "spread": float(accuracy.std())}


JOBS: dict[str, Any] = {
    "cutsvm exact": Ours(solver="exact"),
    "cutsvm sgd 1 epoch": Ours(solver="sgd", epochs=1, fit_intercept=False),
    "cutsvm sgd": Ours(solver="sgd", epochs="auto", fit_intercept=False),
    "sklearn SVC": SVC(),
    "liquidSVM": Liquid(again=False),
    "liquidSVM again": Liquid(again=True),
}
