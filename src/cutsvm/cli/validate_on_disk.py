"""`cutsvm train -v --memory`: cross-validation from a store, whose folds share the reads."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.types import Array, Vector
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.cli.running_measures import Evaluation
from cutsvm.cli.validate import splitter
from cutsvm.estimators._base import Certified
from cutsvm.estimators.path_cv import Chooser
from cutsvm.io.dataset import StoredDataset
from cutsvm.io.models.tasks import TASKS, load
from cutsvm.io.temporary_arrays import TemporaryArrays


def refuse_folds_on_disk(options: argparse.Namespace) -> None:
    """Refuse, before the data are read, what has its rows in memory."""
    task = options.task
    if options.folds is None:
        return
    if task.cv_estimator is None or task.has_queries or getattr(options, "paper", None) is not None:
        able = [other.name for other in TASKS.values() if other.cv_estimator is not None and not other.has_queries]
        raise CommandError(
            f"--memory with -v is for --task {' and '.join(able)} (without --paper), others have all rows in memory: "
            "leave one of them out"
        )


def describe_reads(chooser: Chooser) -> str:
    """How often the data were read, and how often the fits have asked for it."""
    reads = chooser.reads_
    return f"{reads.passes:.3g} passes over the data for {reads.requested_passes:.3g} of the fits'"


def cross_validate_on_disk(
    options: argparse.Namespace, estimator: Certified, data: StoredDataset, y: Array | None
) -> int:
    """Train on all folds but one, predict that one; the measure is over all rows, as in memory.

    y: labels in place of those of the store.
    """
    messages, params = Messages(quiet=options.quiet), estimator.get_params(deep=False)
    for name in ("C", "checkpoint"):
        del params[name]
    chooser = load(options.task.cv_estimator)([estimator.C], cv=splitter(options), refit=False, **params)
    with as_command_error(options.data), messages.collecting_warnings():
        messages.note(f"training {chooser._memory_plan(data.store).description}")
        chooser.fit(data if y is None else data.with_labels(y))
    scores, gaps = chooser.scores_[:, 0], chooser.gaps_[:, 0]
    for number, (score, gap) in enumerate(zip(scores, gaps, strict=True), start=1):
        messages.note(f"fold {number} of {options.folds}: {options.task.score_name} {score:.6g}, gap {gap:.1e}")
    messages.note(describe_reads(chooser))
    result = (
        _of_targets(chooser, data.y if y is None else y) if options.task.has_targets else _of_classes(chooser, data)
    )
    if options.json:
        rows, reads = data.shape[0], chooser.reads_
        settings = {"rows": rows, "folds": options.folds, "gaps": gaps, "C": options.cost, "data": options.data}
        passes = {"passes": reads.passes, "passes_requested": reads.requested_passes}
        print_json({**result.fields, **settings, **passes})
    else:
        print_result(str(result.text))
    return 0


def _of_classes(chooser: Chooser, data: StoredDataset) -> Evaluation:
    """The accuracy, in sums over parts of the rows."""
    y, _ = data.ranked_labels(TemporaryArrays(data.store.path).zeros)
    classes, scores, correct = validation.distinct(y), chooser.held_out_scores_, 0
    for part in validation.parts(len(y)):
        own = scores[part]
        at = (own > 0.0).astype(np.intp) if own.ndim == 1 else own.argmax(axis=1)
        known = np.isfinite(own if own.ndim == 1 else own[:, 0])
        correct += int(np.count_nonzero((classes[at] == y[part]) & known))
    text = f"Cross Validation Accuracy = {100 * correct / len(y):g}%"
    return Evaluation(text, {"cross_validation_accuracy": correct / len(y), "correct": correct})


def _of_targets(chooser: Chooser, y: Array) -> Evaluation:
    """The errors of predicted numbers, in sums over parts of the rows."""
    from cutsvm.cli.measures import RegressionErrors

    errors = _regression_errors(y, chooser.held_out_scores_)
    text = RegressionErrors().text_of(errors, "Cross Validation ")
    return Evaluation(text, {f"cross_validation_{name}": value for name, value in errors.items()})


def _regression_errors(y: Array, predicted: Vector) -> dict[str, Any]:
    """As `cutsvm.display.errors.regression_errors`, without arrays of all rows."""
    n, centre = len(y), np.zeros(2)
    for part in validation.parts(n):
        centre += float(np.sum(y[part])), float(np.sum(predicted[part]))
    centre /= n
    squared = absolute = 0.0
    products = np.zeros((2, 2))
    for part in validation.parts(n):
        both = np.array([y[part], predicted[part]], dtype=np.float64)
        error = both[1] - both[0]
        squared, absolute = squared + float(error @ error), absolute + float(np.abs(error).sum())
        both -= centre[:, None]
        products += both @ both.T
    spread = float(products[0, 0])
    correlated = spread > 0.0 and products[1, 1] > 0.0
    return {
        "mean_squared_error": squared / n,
        "mean_absolute_error": absolute / n,
        "r2": 1.0 - squared / spread if spread > 0.0 else None,
        "squared_correlation": float(products[0, 1] ** 2 / (spread * products[1, 1])) if correlated else None,
    }
