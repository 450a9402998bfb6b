"""Nested cross-validation of kernel machines, where folds, pairs of classes and values of C share kernel values.

base = dot products or squared distances of all rows                        once
for each kernel (gamma):
    K = kernel values from the base                                         once for all folds, pairs and C
    for each training part of an inner fold:
        the machines of all pairs of classes, for up to 8 values of C at a time
        the accuracy of their vote on the part held out, for each C
for each outer fold:
    the parameters with the best mean accuracy over its inner folds, trained on its training part
    accuracy on the part held out, which the choice does not depend on
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from cutsvm._native import core
from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm._utils.warn import warn
from cutsvm.display.plotting.grid import format_value
from cutsvm.display.progress import CountBar
from cutsvm.estimators._ingest import ingest
from cutsvm.estimators.kernel import KernelSVC
from cutsvm.kernel_machines import KernelSolver
from cutsvm.kernel_machines.gram import GramSettings, Kernel, Points, in_blocks
from cutsvm.kernel_machines.one_vs_one import Problems, joined, largest_pair, pairwise, sort_by_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PAPER_GRID", "NestedResult", "nested_cross_validate"]

# The grid of Melki and Kecman (2016), their (8.1) and (8.2).
PAPER_GRID: dict[str, list[float]] = {"C": [4.0**k for k in range(-2, 6)], "gamma": [4.0**k for k in range(-5, 3)]}
OF_KERNEL = ("kernel", "gamma", "degree", "coef0")


@dataclass(frozen=True, eq=False)
class NestedResult:
    """The result of nested cross-validation; `print` shows it as a table."""

    accuracy: Vector  # of each outer fold, on rows held out from the choice
    best_params: list[dict[str, Any]]  # of each outer fold
    best_scores: Vector  # their mean accuracy over the inner folds
    grid: dict[str, list[Any]]
    params: list[dict[str, Any]]  # all combinations
    scores: Vector  # (outer folds, combinations): mean accuracy over the inner folds
    seconds: float
    parts: dict[str, float] = field(repr=False)  # seconds: kernel, training, voting

    @property
    def mean(self) -> float:
        """Mean accuracy over the outer folds."""
        return float(np.mean(self.accuracy))

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per outer fold."""
        found = zip(self.accuracy, self.best_scores, self.best_params, strict=True)
        return [
            {"fold": fold, "accuracy": float(accuracy), "inner_accuracy": float(inner), **params}
            for fold, (accuracy, inner, params) in enumerate(found)
        ]

    def to_frame(self) -> Any:
        """The outer folds as a pandas table."""
        import pandas

        return pandas.DataFrame(self.rows()).set_index("fold")

    def plot_grid(self, ax: Axes | None = None) -> Axes:
        """A heat map of the grid: see `cutsvm.plotting.plot_grid`."""
        from cutsvm.display.plotting.grid import plot_grid

        return plot_grid(self, ax=ax)

    def __str__(self) -> str:
        rows = self.rows()
        names = list(rows[0])
        cells = [names, *([format_value(row[name]) for name in names] for row in rows)]
        widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        spread = float(np.std(self.accuracy))
        lines.append(f"accuracy {self.mean:.4f} +- {spread:.4f}, {self.seconds:.2f} s")
        return "\n".join(lines)


def nested_cross_validate(
    X: Any,
    y: Any,
    *,
    param_grid: Mapping[str, Sequence[Any]] | None = None,
    outer: Any = 5,
    inner: Any = 5,
    estimator: KernelSVC | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> NestedResult:
    """Accuracy of a kernel machine whose parameters are chosen by cross-validation, by cross-validation around it.

    Parameters
    ----------
    X, y : rows and labels, as `KernelSVC.fit` takes them
    param_grid : dict of lists, default=None
        Values for parameters of `KernelSVC`. All C are trained together; each combination of `kernel`, `gamma`,
        `degree` and `coef0` takes one kernel matrix. None is the grid of Melki and Kecman (2016), `PAPER_GRID`.
    outer, inner : int or a splitter of scikit-learn, default=5
        A number means that many stratified, shuffled folds.
    estimator : KernelSVC, default=None
        Has all other parameters; None is `KernelSVC()`. Its `memory_limit` must allow two matrices of float32 kernel
        values. gamma="scale" is taken from all of X, without labels.
    n_jobs : int, default=None
        Threads: None is 1, -1 all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For folds and the order of rows.
    verbose : int, default=0
        1: a bar with the time that is left, on stderr.

    Returns
    -------
    NestedResult
    """
    began = perf_counter()
    estimator = KernelSVC() if estimator is None else estimator
    if not isinstance(estimator, KernelSVC):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}: expected a KernelSVC; for others use GridSearchCV inside "
            "cross_val_score"
        )
    grid = _checked_grid(PAPER_GRID if param_grid is None else param_grid, estimator)
    random = check_random_state(random_state)
    search = _Search(clone(estimator).set_params(n_jobs=n_jobs), X, y, grid, random)
    folds = search.folds(outer, inner, random)
    search.seed = int(random.randint(2**31 - 1))
    with threads.one_blas_thread():
        scores = search.grid_scores(folds, verbose)
        best = scores.argmax(axis=1)
        accuracy = search.accuracies([(fold.train, fold.test) for fold in folds], best)
    return NestedResult(
        accuracy=accuracy,
        best_params=[search.params[k] for k in best],
        best_scores=scores[np.arange(len(best)), best],
        grid=grid,
        params=search.params,
        scores=scores,
        seconds=perf_counter() - began,
        parts=dict(search.seconds),
    )


@dataclass(frozen=True, eq=False)
class _Fold:
    """An outer fold, and the inner ones of its training part: (rows to train on, rows held out)."""

    train: Ints
    test: Ints
    inner: list[tuple[Ints, Ints]]


class _Search:
    """The data, sorted by class, and the combinations of parameters.

    batch_rows: rows of problems that are trained in one call.
    """

    def __init__(
        self, estimator: KernelSVC, X: Any, y: Any, grid: dict[str, list[Any]], random: Any, batch_rows: int = 1_000_000
    ) -> None:
        self.estimator, self.batch_rows = estimator, batch_rows
        estimator._check_params()
        data = ingest(estimator, X, y)
        X, y, self.classes, self.named = data.X, data.y, data.classes, data.class_names
        if estimator.kernel == "precomputed":
            validation.square(X)
        limit = estimator._limit()
        if 8 * len(y) ** 2 > limit:
            raise ValueError(
                f"the kernel values of {len(y):,} rows take {memory.format_bytes(8.0 * len(y) ** 2)}, and memory_limit "
                f"is {memory.format_bytes(limit)}: raise the estimator's memory_limit, or take fewer rows"
            )
        self.sort, self.labels, self.order = sort_by_class(np.searchsorted(self.classes, y), random)
        self.seed = 0  # of rows that are drawn at random
        self.X = X
        self.threads = threads.count(estimator.n_jobs, len(y) ** 2)
        self.grid = grid
        self.params = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        self.seconds = {"kernel": 0.0, "training": 0.0, "voting": 0.0}
        self._known: dict[Any, tuple[Problems, Ints]] = {}
        self._bases: dict[str, Array] = {}
        self._gram: tuple[Kernel | None, Array] = (None, np.empty((0, 0), dtype=np.float32))

    def folds(self, outer: Any, inner: Any, random: Any) -> list[_Fold]:
        """Rows of all folds."""
        found = []
        for o, (train, test) in enumerate(_split(outer, "outer", self.labels, random)):
            parts = [
                (train[a], train[b]) for a, b in _split(inner, f"outer fold {o}: inner", self.labels[train], random)
            ]
            for i, (rows, _) in enumerate(parts):
                if len(np.unique(self.labels[rows])) < 2:
                    raise ValueError(f"outer fold {o}, inner fold {i}: its training part has rows of one class only")
            found.append(_Fold(train, test, parts))
        return found

    def grid_scores(self, folds: list[_Fold], verbose: int) -> Vector:
        """(outer folds, combinations): mean accuracy over the inner folds."""
        parts = [part for fold in folds for part in fold.inner]
        owner = np.repeat(np.arange(len(folds)), [len(fold.inner) for fold in folds])
        accuracy = np.empty((len(parts), len(self.params)))
        with CountBar("nested cross-validation") as bar:
            groups = list(self._groups())
            for k, group in enumerate(groups):
                sizes = [len(train) * (len(self.classes) - 1) for train, _ in parts]
                for some in _batches(sizes, self.batch_rows):
                    accuracy[np.ix_(some, group)] = self._accuracies([parts[f] for f in some], group)
                    if verbose:
                        bar(k + (some[-1] + 1) / len(parts), len(groups))
        return np.array([accuracy[owner == o].mean(axis=0) for o in range(len(folds))])

    def accuracies(self, parts: list[tuple[Ints, Ints]], chosen: Ints) -> Vector:
        """Accuracy on each held-out part with the combination that was chosen for it."""
        found = np.empty(len(parts))
        for k in np.unique(chosen):
            which = np.flatnonzero(chosen == k)
            found[which] = self._accuracies([parts[f] for f in which], [int(k)])[:, 0]
        return found

    def _groups(self) -> Iterator[list[int]]:
        """Combinations that differ in C alone, at most as many as are trained together, C rising."""
        alike: dict[str, list[int]] = {}
        for k, params in enumerate(self.params):
            rest = {name: value for name, value in params.items() if name != "C"}
            # Combinations with the same kernel are consecutive, so that its matrix is computed once.
            kernel = [(name, rest.pop(name)) for name in OF_KERNEL if name in rest]
            alike.setdefault(repr((kernel, sorted(rest.items(), key=lambda pair: pair[0]))), []).append(k)
        for _, members in sorted(alike.items(), key=lambda pair: pair[0]):
            members.sort(key=lambda k: float(self.params[k].get("C", 1.0)))
            for start in range(0, len(members), core.VERSIONS):
                yield members[start : start + core.VERSIONS]

    def _accuracies(self, parts: list[tuple[Ints, Ints]], group: list[int]) -> Vector:
        """(parts, group) accuracies of machines trained on each part's first rows for its second."""
        own = clone(self.estimator).set_params(**self.params[group[0]])
        solver = own._choose(own._check_params(), max(largest_pair(self.labels[train]) for train, _ in parts))
        gram = self._matrix(own, solver.kernel_offset)
        began = perf_counter()
        Cs = np.array([float(self.params[k].get("C", own.C)) for k in group])
        problems, edges = self._joined([train for train, _ in parts], own, solver)
        sizes = [len(train) for train, _ in parts]
        machines = solver.batched(gram, problems, Cs, own._options(min(sizes), self.threads, seed=self.seed))
        trained = perf_counter()
        hits = np.empty((len(parts), len(group)))
        for f, (_, test) in enumerate(parts):
            one = slice(edges[f], edges[f + 1])
            vote, pairs = machines.part(one), problems.part(one)
            hits[f] = vote.hits(gram, test, self.labels, pairs, len(self.classes), self.threads)[: len(group)] / len(
                test
            )
        self.seconds["training"] += trained - began
        self.seconds["voting"] += perf_counter() - trained
        return hits

    def _joined(self, trains: list[Ints], own: KernelSVC, solver: KernelSolver) -> tuple[Problems, Ints]:
        """The problems of some training parts, and where each part begins; they do not depend on the kernel."""
        key = (*map(id, trains), repr(own.class_weight), solver.visits_rows, solver.mean_loss)
        if key not in self._known:
            self._known[key] = joined([self._problems(own, train, solver) for train in trains])
        return self._known[key]

    def _problems(self, own: KernelSVC, train: Ints, solver: KernelSolver) -> Problems:
        weights = np.ones(len(self.labels))
        mine = weights[train]
        present = np.unique(self.labels[train])
        validation.apply_class_weights(mine, own.class_weight, present, self.labels[train], self.named[present])
        weights[train] = mine
        inside = np.zeros(len(self.labels), dtype=bool)
        inside[train] = True
        order = self.order if solver.visits_rows else np.arange(len(self.labels))
        return pairwise(self.labels, weights, order[inside[order]], mean_loss=solver.mean_loss)

    def _matrix(self, own: KernelSVC, offset: float) -> Array:
        """All kernel values, for the kernel of one combination; cached for the next call."""
        if callable(own.kernel) or own.kernel == "sigmoid":
            raise ValueError(
                f"kernel={own.kernel!r}: expected 'rbf', 'poly', 'linear' or 'precomputed', with the matrix of all "
                "kernel values as X"
            )
        kernel = Kernel(own.kernel, own._gamma(self.X), int(own.degree), float(own.coef0), offset)
        if kernel == self._gram[0]:
            return self._gram[1]
        began = perf_counter()
        n = len(self.labels)
        if kernel.base not in self._bases:
            self._bases.clear()
            self._bases[kernel.base] = np.empty((n, n), dtype=np.float32)
            Points(self.X, kernel, self.threads).take(self.sort).matrix(self._bases[kernel.base], base=True)
        base, gram = self._bases[kernel.base], self._gram[1]
        if not gram.size:
            gram = np.empty((n, n), dtype=np.float32)
        in_blocks(lambda rows: kernel.of_base(base[rows], gram[rows]), n, GramSettings().block_rows, self.threads)
        self._gram = kernel, gram
        self.seconds["kernel"] += perf_counter() - began
        return gram


def _checked_grid(grid: Mapping[str, Sequence[Any]], estimator: KernelSVC) -> dict[str, list[Any]]:
    """The grid as lists, each value of which is legal."""
    if not isinstance(grid, Mapping) or not grid:
        raise ValueError("param_grid: expected a dict with a list of values for each parameter")
    checked = {}
    for name, values in grid.items():
        if name not in estimator.get_params() or name in ("n_jobs", "random_state", "callbacks", "verbose"):
            raise ValueError(f"param_grid names {name!r}, which is no parameter to choose of KernelSVC")
        if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
            raise ValueError(f"param_grid[{name!r}]={values!r}: expected a list of values, at least one")
        checked[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
        for value in checked[name]:
            clone(estimator).set_params(**{name: value})._check_params()
    return checked


def _split(cv: Any, name: str, labels: Ints, random: Any) -> list[tuple[Ints, Ints]]:
    """(training rows, held-out rows) of each fold."""
    if hasattr(cv, "split"):
        return [(np.asarray(a), np.asarray(b)) for a, b in cv.split(np.zeros((len(labels), 1)), labels)]
    validation.whole("inner" if "inner" in name else name, cv, least=2)
    counts = np.unique(labels, return_counts=True)[1]
    if counts.max() < cv:
        raise ValueError(f"{name} folds: {cv} are more than any class has rows ({counts.max()})")
    if counts.min() < cv:
        warn(f"{name} folds: a class has {counts.min()} rows, fewer than the {cv} folds, so some parts do without it")
    folds = StratifiedKFold(int(cv), shuffle=True, random_state=random.randint(2**31 - 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(folds.split(labels, labels))


def _batches(sizes: list[int], limit: int) -> Iterator[list[int]]:
    """Consecutive numbers whose sizes add up to at most `limit`, at least one number each."""
    run: list[int] = []
    for k, size in enumerate(sizes):
        if run and sum(sizes[j] for j in run) + size > limit:
            yield run
            run = []
        run.append(k)
    yield run
