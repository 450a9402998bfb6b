"""C chosen by cross-validation on a collection: all folds and all C share the readings of the rows.

The problem of a fold is that of all rows, with weight 0 for those that it holds out (`cutsvm.cluster.folds`). The folds
and the fit to all rows are paths over C that run side by side, each in a thread of the client, and a round serves all
of them (`cutsvm.cluster.shared_rounds`). One round before them finds the labels of each fold and the grid of C, and one
after them the scores of the rows held out, by the models of all folds at all C.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from cutsvm._utils import threads
from cutsvm._utils.types import Array, Vector
from cutsvm.cluster.folds import FoldFacts, FoldParts, RowFolds, find_folds
from cutsvm.cluster.grains import Grain
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.protocol import Traffic
from cutsvm.cluster.shared_rounds import Problem, SharedRounds
from cutsvm.estimators import path
from cutsvm.estimators._collections import standing_for_all
from cutsvm.estimators._concurrent_fits import ConcurrentFits
from cutsvm.estimators._ingest import TrainingData
from cutsvm.problem.parted import PartedRows
from cutsvm.solvers.protocol import Solver

if TYPE_CHECKING:
    from cutsvm.estimators.path_cv import LinearChooser

__all__ = ["check_choice", "choose_on_parts", "figures_of_choice"]


def check_choice(chooser: LinearChooser, groups: Any) -> None:
    """Refuses what needs the numbers of all rows, or their scores, at once."""
    default = "r2" if chooser._targets == "numbers" else "accuracy"
    if chooser.cv is not None and not isinstance(chooser.cv, numbers.Integral):
        raise ValueError(f"cv={chooser.cv!r}: expected the number of folds, where rows are in parts")
    if groups is not None:
        raise ValueError("groups: the rows of a collection have folds by their numbers only; leave groups out")
    if chooser.scoring not in (None, default):
        raise ValueError(
            f"scoring={chooser.scoring!r}: the scores of all rows of a collection are not kept; expected None or "
            f"{default!r}, which is made of sums"
        )


def choose_on_parts(chooser: LinearChooser, solver: Solver, data: TrainingData) -> None:
    """Fits paths to the folds and to all rows, and chooses C: sets the attributes of the chooser but those of a fit."""
    parts = data.parts
    assert parts is not None
    numeric = not len(data.classes)
    folds = RowFolds(5 if chooser.cv is None else int(chooser.cv), parts.facts.n, shuffled=not numeric)
    if folds.many > folds.n:
        raise ValueError(f"cv={folds.many}: there are only {folds.n} rows")
    facts = find_folds(parts, folds, "numbers" if numeric else "classes")
    if facts.rows.min() == 0:
        raise ValueError(f"fold {int(np.argmin(facts.rows)) + 1} of {folds.many} holds out no rows: take fewer folds")
    Cs = path.grid_of(chooser.Cs, chooser, replace(data, scale=facts.scale))
    n_threads = threads.count(chooser.n_jobs)
    many = folds.many + int(chooser.refit)
    fits = ConcurrentFits(chooser, solver, Cs, folds.many, many, max(1, n_threads // many))

    def data_of(place: int, problem: Problem) -> TrainingData:
        if place < folds.many:
            return _of_fold(data, FoldParts.of(parts, problem, folds, place, facts.trained(place)))
        return _with_parts(data, replace(parts, executor=problem, before=Traffic()), data.weights.copy())

    with SharedRounds(parts.executor, parts.chunks, n_threads) as shared, threads.one_blas_thread():
        shared.count_alone(len(parts.chunks))  # for the folds
        paths = fits.run(shared.problem, data_of)
        if chooser.refit:
            chooser.path_ = paths.pop()
        scores = _scores(parts, folds, facts, paths)
        shared.count_alone(len(parts.chunks))
        chooser._set_choice(Cs, list(zip(paths, scores, strict=True)))
        chooser._set_reads(shared.reads)
    chooser.__dict__.pop("held_out_scores_", None)  # one for each row: too many for a client


def figures_of_choice(chosen: dict[str, Any], parts: Parts) -> dict[str, Any]:
    """`cluster_` of all fits together; chosen: that of the model with the chosen C, by itself."""
    now, then = parts.executor.traffic, parts.before
    spent = {"reads": now.reads - then.reads, "rounds": now.rounds - then.rounds}
    planned = dict.fromkeys(chosen["planned"])
    return {**chosen, **spent, "received": now.received - then.received, "planned": planned}


def _with_parts(data: TrainingData, parts: Parts, weights: Vector, **more: Any) -> TrainingData:
    rows: Any = replace(cast("PartedRows", data.rows), parts=parts)
    return replace(data, X=rows, rows=rows, parts=parts, weights=weights, **more)


def _of_fold(data: TrainingData, parts: FoldParts) -> TrainingData:
    """The data of all rows, with weight 0 for those that the fold holds out."""
    labels = parts.facts.labels
    if not parts.facts.weight > 0.0:
        raise ValueError("there are no rows to train on")
    classes = labels.labels[labels.weights > 0.0]
    if len(data.classes) and len(classes) < 2:
        raise ValueError(f"all rows to train on are of one class, {classes.tolist()[0]!r}")
    y, weights = standing_for_all(parts, classes)
    return _with_parts(data, parts, weights, y=y, classes=classes, class_names=classes)


# The scores of rows held out


class _Models(NamedTuple):
    """The models of a fold, one for each C: weights and intercepts one below the other, and their classes."""

    W: Vector
    b: Vector
    classes: Array

    @classmethod
    def of(cls, models: Sequence[Any]) -> _Models:
        W = np.vstack([np.atleast_2d(model.coef_) for model in models])
        b = np.concatenate([np.atleast_1d(model.intercept_) for model in models])
        return cls(W.astype(np.float64), b.astype(np.float64), getattr(models[0], "classes_", np.empty(0)))


def _scores(parts: Parts, folds: RowFolds, facts: FoldFacts, paths: Sequence[Sequence[Any]]) -> Vector:
    """The accuracy or R^2 of each fold at each C, of the rows that it holds out: one round."""
    models, many = [_Models.of(own) for own in paths], len(paths[0])
    given: dict[str, Any] = {"folds": folds, "models": models, "many": many}
    if len(models[0].classes):
        sums = parts.fold(held_out_scores, _add, measure=_right, **given)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums[:, 1:] / sums[:, :1])
    means = [float(own.sums[1] / own.sums[0]) if own.sums[0] > 0.0 else 0.0 for own in facts.labels]
    sums = parts.fold(held_out_scores, _add, measure=_Squares(means), **given)
    spread, left = sums[:, :1], sums[:, 1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = 1.0 - left / spread
    # As scikit-learn has it for targets that are all the same.
    return np.asarray(np.where(spread > 0.0, scores, np.where(left > 0.0, 0.0, 1.0)))


def held_out_scores(
    grain: Grain, *, folds: RowFolds, models: Sequence[_Models], many: int, measure: Callable[..., Vector]
) -> Vector:
    """For each fold the sums that its score is made of: one for all C, and one for each."""
    sums, own = np.zeros((folds.many, 1 + many)), folds.of_grain(grain)
    assert grain.block.y is not None
    for fold, (W, b, classes) in enumerate(models):
        rows = np.flatnonzero(own == fold)
        if len(rows):
            scores = np.empty((len(rows), len(W)))
            grain.rows.take(rows).scores_many(W, b, scores)
            columns = np.split(scores, many, axis=1)
            sums[fold] = measure(fold, grain.block.y[rows], grain.weights[rows], columns, classes)
    return sums


def _right(fold: int, y: Array, weights: Vector, scores: Sequence[Vector], classes: Array) -> Vector:
    """The weight of the rows, and at each C of those whose class is predicted."""
    found = [float(weights.sum())]
    for own in scores:
        chosen = (own[:, 0] > 0.0).astype(np.intp) if own.shape[1] == 1 else own.argmax(axis=1)
        found.append(float(weights[classes[chosen] == y].sum()))
    return np.array(found)


class _Squares(NamedTuple):
    """Of targets: the sum of squared distances from the mean of the fold, and at each C of squared residuals."""

    means: Sequence[float]

    def __call__(self, fold: int, y: Array, weights: Vector, scores: Sequence[Vector], classes: Array) -> Vector:
        spread = float(weights @ (y - self.means[fold]) ** 2)
        return np.array([spread, *(float(weights @ (own[:, 0] - y) ** 2) for own in scores)])


def _add(*sums: Vector) -> Vector:
    return np.asarray(sum(sums[1:], start=sums[0]))
