"""`cutsvm train -v`: how good a model is, by cross-validation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutsvm.cli.messages import CommandError, Messages, as_command_error, collected_warnings, print_json, result
from cutsvm.cli.tasks import measure
from cutsvm.io.dataset import Dataset

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified

__all__ = ["cross_validate"]

_SHARES = {"rank": ("pairs_in_order", "Pairs in order"), "roc": ("roc_area", "ROC area")}


def cross_validate(options: argparse.Namespace, estimator: Certified, data: Dataset, y: npt.NDArray[Any]) -> int:
    """Train on all folds but one, predict that one.

    Prints the accuracy over all rows as LIBLINEAR does; for ranking and ROC area the mean over the folds.
    """
    from sklearn.base import clone

    say = Messages(quiet=options.quiet)
    predicted, gaps, shares = np.empty_like(y), [], []
    with as_command_error(options.data), collected_warnings() as caught:
        for number, (inside, outside) in enumerate(_folds(options, data, y), start=1):
            model = _fitted(options.task, clone(estimator), _part(data, inside), y[inside])
            if model.status_.name == "INTERRUPTED":
                # The fit keeps its best model on Ctrl-C; here that must end the whole validation.
                raise KeyboardInterrupt
            gaps.append(float(np.max(model.gap_)))
            part = _part(data, outside)
            labels = None if options.task in _SHARES else model.predict(part.X)
            good = measure(options.task, model, part, say, labels)
            if labels is None:
                shares.append(good.facts[_SHARES[options.task][0]])
            else:
                predicted[outside] = labels
            say.note(f"fold {number} of {options.folds}: {good.words}, gap {gaps[-1]:.1e}")
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say.warn(text)
    facts = {"rows": len(y), "folds": options.folds, "gaps": gaps, "C": options.cost, "data": options.data}
    if options.task in _SHARES:
        words, outcome = _mean_share(options.task, shares)
    else:
        words, outcome = _all_rows(options.task, predicted, y)
    if options.json:
        print_json({**outcome, **facts})
    else:
        result(words)
    return 0


def _fitted(task: str, estimator: Certified, part: Dataset, y: npt.NDArray[Any]) -> Any:
    """The estimator, fitted to some of the rows with their weights and queries."""
    if task == "kernel":  # it takes weights with a data set only
        return estimator.fit(part.with_labels(y))
    extra = {"qid": part.qid} if task == "rank" else {}
    if part.weights is not None:
        extra["sample_weight"] = part.weights
    return estimator.fit(part.X, y, **extra)


def _part(data: Dataset, rows: npt.NDArray[Any]) -> Dataset:
    """Some of the rows, in memory."""
    qid = None if data.qid is None else data.qid[rows]
    weights = None if data.weights is None else data.weights[rows]
    return Dataset(data.X[rows], data.y[rows], qid, data.zero_based, data.feature_ids, data.source, weights=weights)


def _folds(options: argparse.Namespace, data: Dataset, y: npt.NDArray[Any]) -> Any:
    """Pairs of rows to train on and rows to predict: queries stay whole, classes keep their shares."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    if options.task != "rank":
        return StratifiedKFold(n_splits=options.folds, shuffle=True, random_state=0).split(data.X, y)
    if data.qid is None:
        return KFold(n_splits=options.folds, shuffle=True, random_state=0).split(data.X, y)
    queries = len(np.unique(data.qid))
    if queries < options.folds:
        raise CommandError(f"-v {options.folds}: {data.source} has only {queries} queries, which stay whole")
    return GroupKFold(n_splits=options.folds).split(data.X, y, data.qid)


def _mean_share(task: str, shares: list[float | None]) -> tuple[str, dict[str, Any]]:
    name, words = _SHARES[task]
    known = [share for share in shares if share is not None]
    if not known:
        raise CommandError("no fold has a pair to measure")
    mean = float(np.mean(known))
    return f"Cross Validation {words} = {100 * mean:g}%", {f"cross_validation_{name}": mean, "of_folds": shares}


def _all_rows(task: str, predicted: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[str, dict[str, Any]]:
    correct = int(np.sum(predicted == y))
    words = f"Cross Validation Accuracy = {100 * correct / len(y):g}%"
    facts: dict[str, Any] = {"cross_validation_accuracy": correct / len(y), "correct": correct}
    if task == "ordinal":
        levels = np.unique(y)
        away = float(np.abs(np.searchsorted(levels, predicted) - np.searchsorted(levels, y)).mean())
        words, facts["mean_absolute_error"] = f"{words}, {away:.4g} levels away in the mean", away
    return words, facts
