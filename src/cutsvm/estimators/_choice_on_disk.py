"""C chosen by cross-validation from a store: all folds and all C share the reads of the rows.

The problem of a fold is that of all rows, with weight 0 for those that it leaves out: that is exact, since a row
without weight is in no loss, and no rows are copied. The folds and the fit to all rows are paths over C that run side
by side, each in a thread of its own, and a pass over the store serves all of them (`cutsvm.matrix.shared_reads`). Where
fewer at a time could hold far more rows each, they run some after others (`cutsvm._utils.memory.plan`).

One pass more gives the scores of the rows held out, by the models of all folds at all C. Accuracy and R^2 are made of
running sums. Other scorers get the scores of one C at a time, of as many C in a pass as there is memory for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.estimators._concurrent_fits import ConcurrentFits
from cutsvm.estimators._folds import Folds, folds_of, held_out_rows, split_weights
from cutsvm.estimators._ingest import TrainingData
from cutsvm.matrix import RowsInMemory, StoreRows
from cutsvm.matrix.protocol import cut_blocks
from cutsvm.matrix.shared_reads import SharedReader, SharedReads, SharedRows
from cutsvm.solvers.protocol import Solver

if TYPE_CHECKING:
    from cutsvm.estimators.path_cv import LinearChooser

__all__ = ["choose_on_disk"]

Score = Callable[[Any, Any, Array, Vector | None], float]  # of a model: rows held out, their labels and weights


@dataclass(frozen=True)
class ScoringSettings:
    """rows: whose scores are computed at a time. together: bytes of scores that are kept for several C at a time.

    scorer: bytes per row held out that a scorer of scikit-learn's may take, which sorts and copies.
    """

    rows: int = 1 << 15
    together: int = 32_000_000
    scorer: int = 100


class HeldOut:
    """Stands for rows on disk in the call of a scorer, whose model has their scores already."""

    def __init__(self, n: int, d: int) -> None:
        self.shape = n, d

    def __len__(self) -> int:
        return self.shape[0]


def choose_on_disk(
    chooser: LinearChooser, solver: Solver, data: TrainingData, cv: Any, groups: Any, Cs: list[float], score: Score
) -> None:
    """Fits paths to the folds and to all rows, and chooses C: sets the attributes of the chooser but those of a fit."""
    rows = data.rows
    assert isinstance(rows, StoreRows)
    labels = validation.distinct(data.y) if len(data.classes) else data.classes
    folds = folds_of(cv, data.y, labels, groups, rows.vector)
    held_out = [folds.held_out(fold, rows.n) for fold in range(folds.many)]
    measure = _measure(chooser, data, folds, held_out, score)
    many = folds.many + int(chooser.refit)
    n_threads = threads.count(chooser.n_jobs, rows.entries)
    at_once = min(many, chooser.__dict__.pop("_at_once", many))
    own_threads = max(1, n_threads // at_once)

    def data_of(place: int, reader: SharedReader) -> TrainingData:
        shared = SharedRows(rows, reader, own_threads)
        return _of_fold(data, folds, place, shared) if place < folds.many else _of_all(data, shared)

    fits = ConcurrentFits(chooser, solver, Cs, folds.many, at_once, own_threads)
    with SharedReads(rows.store, n_threads) as shared, threads.one_blas_thread():
        paths = fits.run(shared.reader, data_of)
        if chooser.refit:
            chooser.path_ = paths.pop()
        scores = measure.scores(paths, shared)
        chooser._set_choice(Cs, list(zip(paths, scores, strict=True)))
        chosen = [models[chooser._best] for models in paths]
        chooser.held_out_scores_ = _held_out_scores(chosen, data, folds, shared)
        chooser._set_reads(shared.reads)


def _of_all(data: TrainingData, rows: SharedRows) -> TrainingData:
    weights = rows.vector(rows.n)
    np.copyto(weights, data.weights)
    return replace(data, X=rows, rows=rows, weights=weights)


def _of_fold(data: TrainingData, folds: Folds, fold: int, rows: SharedRows) -> TrainingData:
    """The data of all rows, with weight 0 for those that the fold is not trained on."""
    weights = split_weights(folds, fold, data.weights, rows.vector(rows.n))
    if not weights.any():
        raise ValueError("there are no rows to train on")
    if not len(data.classes):
        return replace(data, X=rows, rows=rows, weights=weights)
    classes = validation.distinct(data.y, weights)
    names = data.class_names[np.searchsorted(data.classes, classes)]
    if len(classes) < 2:
        raise ValueError(f"all rows to train on are of one class, {names.tolist()[0]!r}")
    return replace(data, X=rows, rows=rows, weights=weights, classes=classes, class_names=names)


# The scores of rows held out


def _blocks(data: TrainingData, shared: SharedReads) -> Iterator[tuple[slice, RowsInMemory]]:
    """All rows, some at a time: a pass that is counted."""
    shared.count_alone(shared.n_blocks)
    return cut_blocks(data.rows.blocks(), ScoringSettings.rows)


def _stacked(models: Sequence[Any]) -> tuple[Vector, Vector]:
    """The weights and intercepts of several models."""
    W = np.vstack([np.atleast_2d(model.coef_) for model in models])
    b = np.concatenate([np.atleast_1d(model.intercept_) for model in models])
    return np.ascontiguousarray(W, dtype=np.float64), np.ascontiguousarray(b, dtype=np.float64)


def _scores_of_folds(
    by_fold: Sequence[Sequence[Any]], data: TrainingData, folds: Folds, shared: SharedReads
) -> Iterator[tuple[int, Ints, Vector]]:
    """One pass: a fold, rows that it holds out, and their scores by its models, one or more columns for each."""
    weights = [_stacked(models) for models in by_fold]
    for mine, rows in _blocks(data, shared):
        for fold, (W, b) in enumerate(weights):
            which = np.flatnonzero(folds.holds_out(fold, mine))
            if len(which):
                out = np.empty((len(which), len(W)))
                rows.take(which).scores_many(W, b, out)
                yield fold, which + mine.start, out


def _held_out_scores(models: Sequence[Any], data: TrainingData, folds: Folds, shared: SharedReads) -> Vector:
    """The scores of each row by the fold that holds it out; NaN as in memory."""
    outputs = max(len(np.atleast_2d(model.coef_)) for model in models)
    scores = data.rows.vector(data.rows.n if outputs == 1 else (data.rows.n, outputs))
    scores.fill(np.nan)
    for _, rows, own in _scores_of_folds([[model] for model in models], data, folds, shared):
        if own.shape[1] == outputs:
            scores[rows] = own[:, 0] if outputs == 1 else own
    return scores


@dataclass(eq=False)
class Measure(ABC):
    """What C is chosen by."""

    data: TrainingData
    folds: Folds

    @abstractmethod
    def scores(self, by_fold: Sequence[Sequence[Any]], shared: SharedReads) -> Vector:
        """The score of each fold at each C."""

    def _weights(self, rows: Ints) -> Vector:
        return self.data.weights[rows] if self.data.weighted else np.ones(len(rows))


class Accuracy(Measure):
    """The share of the rows, by weight, whose class is predicted."""

    def scores(self, by_fold: Sequence[Sequence[Any]], shared: SharedReads) -> Vector:
        right, total = np.zeros((self.folds.many, len(by_fold[0]))), np.zeros((self.folds.many, 1))
        data = self.data
        for fold, rows, own in _scores_of_folds(by_fold, data, self.folds, shared):
            known = np.searchsorted(data.class_names, by_fold[fold][0].classes_)
            y, weights = data.y[rows], self._weights(rows)
            total[fold] += weights.sum()
            for k, scores in enumerate(np.split(own, len(by_fold[fold]), axis=1)):
                at = (scores[:, 0] > 0.0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
                right[fold, k] += weights[data.classes[known[at]] == y].sum()
        with np.errstate(invalid="ignore"):
            share: Vector = right / total
        return share


class R2(Measure):
    """1 - sum of squared residuals / sum of squared distances of y from its mean, by weight."""

    def scores(self, by_fold: Sequence[Sequence[Any]], shared: SharedReads) -> Vector:
        data, many = self.data, self.folds.many
        sums = np.array([self._moments(fold) for fold in range(many)])
        means = sums[:, 0] / sums[:, 1]
        left, spread = np.zeros((many, len(by_fold[0]))), np.zeros((many, 1))
        for fold, rows, own in _scores_of_folds(by_fold, data, self.folds, shared):
            y, weights = data.y[rows].astype(np.float64), self._weights(rows)
            spread[fold] += weights @ (y - means[fold]) ** 2
            left[fold] += weights @ (own - y[:, None]) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = 1.0 - left / spread
        # As scikit-learn has it for targets that are all the same.
        flat: Vector = np.where(spread > 0.0, scores, np.where(left > 0.0, 0.0, 1.0))
        return flat

    def _moments(self, fold: int) -> tuple[float, float]:
        """The sums of weight x target and of the weights of the rows held out."""
        data, moments = self.data, np.zeros(2)
        for part in validation.parts(data.rows.n):
            rows = np.flatnonzero(self.folds.holds_out(fold, part)) + part.start
            weights = self._weights(rows)
            moments += weights @ data.y[rows], weights.sum()
        return float(moments[0]), float(moments[1])


@dataclass(eq=False)
class AnyScorer(Measure):
    """What a scorer says of models that have the scores of the rows cached; labels by their names."""

    score: Score
    together: int  # bytes of scores that are kept

    def scores(self, by_fold: Sequence[Sequence[Any]], shared: SharedReads) -> Vector:
        data, Cs = self.data, len(by_fold[0])
        outputs = max(len(np.atleast_2d(models[0].coef_)) for models in by_fold)
        found = np.full((self.folds.many, Cs), np.nan)
        at_once = max(1, min(Cs, self.together // (8 * data.rows.n * outputs)))
        kept = [data.rows.vector((data.rows.n, outputs)) for _ in range(at_once)]
        for first in range(0, Cs, at_once):
            some = [models[first : first + at_once] for models in by_fold]
            for fold, rows, own in _scores_of_folds(some, data, self.folds, shared):
                many = own.shape[1] // len(some[fold])
                for k in range(len(some[fold])):
                    kept[k][rows, :many] = own[:, k * many : (k + 1) * many]
            for fold in range(self.folds.many):
                found[fold, first : first + len(some[fold])] = self._of_fold(fold, some[fold], kept)
        return found

    def _of_fold(self, fold: int, models: Sequence[Any], kept: Sequence[Vector]) -> list[float]:
        """The scores of the models of a fold."""
        data = self.data
        rows = held_out_rows(self.folds, fold, data.rows.n)
        y = data.y[rows]
        if len(data.classes) and data.class_names is not data.classes:
            y = data.class_names[np.minimum(np.searchsorted(data.classes, y), len(data.classes) - 1)]
        found, X = [], HeldOut(len(rows), data.rows.d)
        for model, scores in zip(models, kept, strict=False):
            many = len(np.atleast_2d(model.coef_))
            own = scores[rows, :many]
            cached = copy(model)
            cached.cache_scores(X, own[:, 0] if many == 1 else own)
            found.append(self.score(cached, X, y, data.weights[rows] if data.weighted else None))
        return found


def _measure(
    chooser: LinearChooser, data: TrainingData, folds: Folds, held_out: Sequence[int], score: Score
) -> Measure:
    """What C is chosen by, if there is memory for it."""
    if min(held_out, default=0) == 0:
        raise ValueError(f"fold {held_out.index(0) + 1} holds out no rows")
    if len(data.classes) and chooser.scoring in (None, "accuracy"):
        return Accuracy(data, folds)
    if not len(data.classes) and chooser.scoring in (None, "r2"):
        return R2(data, folds)
    settings = chooser._scoring_settings
    limit, need = chooser.memory_limit, settings.scorer * max(held_out)
    if limit is not None and need > memory.parse_limit(limit):
        raise ValueError(
            f"scoring={chooser.scoring!r} takes about {memory.format_bytes(need)} for the {max(held_out):,} rows of a "
            f"fold, and memory_limit is {memory.format_bytes(memory.parse_limit(limit))}: raise it, take more folds, "
            "or leave scoring out, which takes sums alone"
        )
    return AnyScorer(data, folds, score, settings.together)
