"""What differs between the tasks: the estimator, what its predictions are, and how good they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutsvm.cli import kernel_task
from cutsvm.cli.messages import CommandError, Messages

if TYPE_CHECKING:
    from cutsvm.io.dataset import Dataset

__all__ = ["Measure", "check_options", "measure", "predictions"]

_LINEAR = ("classify", "rank", "roc", "ordinal")
# Options that not every task takes: name, where it is, what it is when not given, and the tasks that take it.
_OWN: tuple[tuple[str, str, Any, tuple[str, ...]], ...] = (
    ("-B", "bias", None, ("classify",)),
    ("-wLABEL", "weights", [], ("classify", "kernel")),
    ("--multi-class", "multi_class", None, ("classify",)),
    ("--line-search", "line_search", None, _LINEAR),
    ("--shards", "shards", None, _LINEAR),
    ("--checkpoint", "checkpoint", None, _LINEAR),
    ("--memory", "memory", None, (*_LINEAR, "kernel")),
    *((f"--{name}", name, None, ("kernel",)) for name in kernel_task.OPTIONS),
)
_OF_CLASSES, _OF_PAIRS = ("auto", "ocas", "sifting", "dcd", "cpa", "accpm"), ("auto", "ocas", "cpa")


@dataclass(frozen=True)
class Measure:
    """How good predictions are: in words, and under the names that --json uses. No words: it cannot be said."""

    words: str | None
    facts: dict[str, Any] = field(default_factory=dict)


def check_options(options: argparse.Namespace) -> None:
    """What the task cannot take is better said before the work."""
    for name, key, absent, tasks in _OWN:
        # Not every command has every option.
        if getattr(options, key, absent) != absent and options.task not in tasks:
            takers = " and ".join(filter(None, [", ".join(tasks[:-1]), tasks[-1]]))
            raise CommandError(f"{name} belongs to --task {takers}, {options.task} has no use for it")
    known = {"classify": _OF_CLASSES, "kernel": kernel_task.SOLVERS}.get(options.task, _OF_PAIRS)
    if options.solver not in known:
        no_pairs = known is _OF_PAIRS and options.solver in _OF_CLASSES
        why = "has no pairs" if no_pairs else "is for other tasks"
        raise CommandError(f"--solver {options.solver} {why}: --task {options.task} takes {', '.join(known)}")
    if options.task == "kernel":
        kernel_task.check_options(options)


def predictions(task: str, estimator: Any, X: Any, *, scores: bool) -> npt.NDArray[Any]:
    """One label or level a row, or its score; ranking has only scores, and those of roc are what was learned."""
    if task == "rank":
        return np.asarray(estimator.predict(X))
    if scores or task == "roc":
        return np.asarray(estimator.decision_function(X))
    return np.asarray(estimator.predict(X))


def measure(
    task: str, estimator: Any, data: Dataset, say: Messages, predicted: npt.NDArray[Any] | None = None
) -> Measure:
    """How well the estimator does on data that have labels; predicted: its labels for them, if they are known."""
    if task in ("classify", "kernel"):
        return _accuracy(estimator, data, say, predicted)
    return _MEASURES[task](estimator, data, say)


def _accuracy(estimator: Any, data: Dataset, say: Messages, predicted: npt.NDArray[Any] | None = None) -> Measure:
    if not _comparable(estimator, data, say):
        return Measure(None, {"accuracy": None, "correct": None})
    if predicted is None:
        predicted = np.asarray(estimator.predict(data.X))
    if data.y.dtype.kind in "biuf":
        predicted = predicted.astype(np.float64)
    correct, total = int(np.sum(predicted == data.y)), len(data.y)
    words = f"Accuracy = {100 * correct / total:g}% ({correct}/{total})"
    return Measure(words, {"accuracy": correct / total, "correct": correct})


def _ordinal(estimator: Any, data: Dataset, say: Messages) -> Measure:
    plain = _accuracy(estimator, data, say)
    if plain.words is None:
        return Measure(None, {**plain.facts, "mean_absolute_error": None})
    from cutsvm.estimators._thresholds import level_of

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
    from cutsvm.estimators.ranking import pair_accuracy

    area = pair_accuracy(estimator.decision_function(data.X), positive)
    return Measure(f"ROC area = {100 * area:.6g}%", {"roc_area": area})


def _pairs(estimator: Any, data: Dataset, say: Messages) -> Measure:
    from cutsvm.estimators.ranking import pair_accuracy

    try:
        share = pair_accuracy(estimator.predict(data.X), data.y, data.qid)
    except ValueError as error:  # no pair
        say.warn(str(error))
        return Measure(None, {"pairs_in_order": None})
    return Measure(f"Pairs in order = {100 * share:.6g}%", {"pairs_in_order": share})


_MEASURES: dict[str, Callable[[Any, Dataset, Messages], Measure]] = {
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
