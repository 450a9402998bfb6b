"""What differs between the tasks: the estimator, what its predictions are, and how good they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutsvm.cli.messages import CommandError, Messages

if TYPE_CHECKING:
    from cutsvm.io.dataset import Dataset

__all__ = ["NAMES", "Measure", "check_options", "measure", "predictions"]

NAMES = ("classify", "rank", "roc", "ordinal")
# Options that only classes without an order have: name, where it is, what it is when not given.
_OF_CLASSES: tuple[tuple[str, str, Any], ...] = (
    ("-B", "bias", None),
    ("-wLABEL", "weights", []),
    ("--multi-class", "multi_class", None),
)
_OF_PAIRS = ("auto", "ocas", "cpa")


@dataclass(frozen=True)
class Measure:
    """How good predictions are: in words, and under the names that --json uses. No words: it cannot be said."""

    words: str | None
    facts: dict[str, Any] = field(default_factory=dict)


def check_options(options: argparse.Namespace) -> None:
    """What the task cannot take is better said before the work."""
    if options.task not in NAMES:
        raise CommandError(f"--task {options.task} is not available yet, only {', '.join(NAMES)}")
    if options.task == "classify":
        return
    for name, key, absent in _OF_CLASSES:
        if getattr(options, key) != absent:
            raise CommandError(f"{name} belongs to --task classify, {options.task} has no use for it")
    if options.memory is not None and options.task != "rank":
        raise CommandError(f"--memory belongs to --task classify and rank, {options.task} has all rows in memory")
    if options.solver not in _OF_PAIRS:
        raise CommandError(
            f"--solver {options.solver} has no pairs: --task {options.task} takes {', '.join(_OF_PAIRS)}"
        )


def predictions(task: str, estimator: Any, X: Any, *, scores: bool) -> npt.NDArray[Any]:
    """One label or level a row, or its score; ranking has only scores, and those of roc are what was learned."""
    if task == "rank":
        return np.asarray(estimator.predict(X))
    if scores or task == "roc":
        return np.asarray(estimator.decision_function(X))
    return np.asarray(estimator.predict(X))


def measure(task: str, estimator: Any, data: Dataset, say: Messages) -> Measure:
    """How well the estimator does on data that have labels."""
    return _MEASURES[task](estimator, data, say)


def _accuracy(estimator: Any, data: Dataset, say: Messages) -> Measure:
    if not _comparable(estimator, data, say):
        return Measure(None, {"accuracy": None, "correct": None})
    predicted = estimator.predict(data.X)
    if data.y.dtype.kind in "biuf":
        predicted = predicted.astype(np.float64)
    correct, total = int(np.sum(predicted == data.y)), len(data.y)
    words = f"Accuracy = {100 * correct / total:g}% ({correct}/{total})"
    return Measure(words, {"accuracy": correct / total, "correct": correct})


def _ordinal(estimator: Any, data: Dataset, say: Messages) -> Measure:
    plain = _accuracy(estimator, data, say)
    if plain.words is None:
        return Measure(None, {**plain.facts, "mean_absolute_error": None})
    from cutsvm.thresholds import level_of

    levels = np.sort(estimator.classes_.astype(np.float64))
    known = np.isin(data.y, levels)
    if not known.any():
        return Measure(plain.words, {**plain.facts, "mean_absolute_error": None})
    found = level_of(estimator.decision_function(data.X), estimator.thresholds_)
    away = float(np.abs(found - np.searchsorted(levels, data.y))[known].mean())
    return Measure(f"{plain.words}, {away:.4g} levels away in the mean", {**plain.facts, "mean_absolute_error": away})


def _area(estimator: Any, data: Dataset, say: Messages) -> Measure:
    if not _comparable(estimator, data, say):
        return Measure(None, {"roc_area": None})
    positive = data.y == float(estimator.classes_[1])
    if positive.all() or not positive.any():
        say.warn("all rows are of one class: there is no area")
        return Measure(None, {"roc_area": None})
    from cutsvm.ranking import pair_accuracy

    area = pair_accuracy(estimator.decision_function(data.X), positive)
    return Measure(f"ROC area = {100 * area:.6g}%", {"roc_area": area})


def _pairs(estimator: Any, data: Dataset, say: Messages) -> Measure:
    from cutsvm.ranking import pair_accuracy

    try:
        share = pair_accuracy(estimator.predict(data.X), data.y, data.qid)
    except ValueError as error:  # no pair
        say.warn(str(error))
        return Measure(None, {"pairs_in_order": None})
    return Measure(f"Pairs in order = {100 * share:.6g}%", {"pairs_in_order": share})


_MEASURES: dict[str, Callable[[Any, Dataset, Messages], Measure]] = {
    "classify": _accuracy,
    "rank": _pairs,
    "roc": _area,
    "ordinal": _ordinal,
}


def _comparable(estimator: Any, data: Dataset, say: Messages) -> bool:
    """Whether the labels of the model and of the file are both numbers or both text."""
    classes = estimator.classes_
    kinds = ["numbers" if labels.dtype.kind in "biuf" else "text" for labels in (classes, data.y)]
    if kinds[0] != kinds[1]:
        say.warn(f"the model's labels are {kinds[0]} and those of the file are {kinds[1]}: no accuracy")
        return False
    unknown = int(np.sum(~np.isin(data.y, classes.astype(np.float64) if kinds[0] == "numbers" else classes)))
    if unknown:
        say.warn(f"{unknown} of {len(data.y)} rows have a label that the model does not know")
    return True
