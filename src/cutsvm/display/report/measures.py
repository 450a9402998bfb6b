"""How good a model is on the rows of a report."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.display.errors import marks_outliers, quantile_errors, regression_errors
from cutsvm.display.plotting.models import class_indices
from cutsvm.display.report.context import ReportContext
from cutsvm.io.models.tasks import load
from cutsvm.problem.pair_accuracy import pair_accuracy
from cutsvm.problem.ranking_measures import Metric, ranking_score


@dataclass(frozen=True, eq=False)
class Confusion:
    """The confusion matrix; `unknown` rows have a label that the model does not know."""

    classes: Array
    counts: Ints  # rows: true classes, columns: predicted classes
    unknown: int

    @property
    def correct(self) -> int:
        return int(np.trace(self.counts))

    @property
    def total(self) -> int:
        return int(self.counts.sum()) + self.unknown


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures of the task: pairs in order of ranking, ROC area of two classes, confusion of classes, errors."""

    confusion: Confusion | None = None
    area: float | None = None
    pairs: float | None = None  # share in order
    level_error: float | None = None  # mean absolute error, in levels
    others: tuple[tuple[str, str], ...] = ()  # names and values


def measure(context: ReportContext) -> Measured | None:
    """The measures of the task; None if there are no labelled rows."""
    if context.y is None or context.scores is None or not len(context.y):
        return None
    found: Measured = load(context.task.reported_by)(context, context.y, context.scores)
    return found


def of_queries(context: ReportContext, y: Array, scores: Vector) -> Measured:
    """Pairs of one query in order, NDCG and mean average precision."""
    others = []
    for metric in (Metric("ndcg", 10), Metric("map")):
        with suppress(ValueError):  # no query that it is defined for
            found = ranking_score(scores, y, context.qid, metric=metric.name)
            left_out = f", {found.n_left_out:,} left out" if found.n_left_out else ""
            others.append((metric.title, f"{found.value:.5g} (mean of {found.n_queries:,} queries{left_out})"))
    try:
        return Measured(pairs=pair_accuracy(scores, y, context.qid), others=tuple(others))
    except ValueError:  # no pair
        return Measured(others=tuple(others))


def of_classes(context: ReportContext, y: Array, scores: Vector) -> Measured:
    """The confusion matrix; of two classes the ROC area, of levels their errors and the pairs in order."""
    classes = context.classes
    assert classes is not None
    codes = [class_indices(labels, classes) for labels in (y, context.predicted())]
    known = classes[codes[0]] == y
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (codes[0][known], codes[1][known]), 1)
    confusion = Confusion(classes, counts, int(np.sum(~known)))
    n_present = np.count_nonzero(counts.sum(axis=1))
    if context.task.has_thresholds:
        error = float(np.abs(codes[0] - codes[1])[known].mean()) if known.any() else None
        pairs = pair_accuracy(scores[known], codes[0][known]) if n_present > 1 else None
        return Measured(confusion, pairs=pairs, level_error=error)
    if len(classes) == 2 and n_present == 2:
        return Measured(confusion, area=pair_accuracy(scores[known], codes[0][known]))
    return Measured(confusion)


def of_targets(context: ReportContext, y: Array, scores: Vector) -> Measured:
    """Errors of predicted numbers, in units of y."""
    found = regression_errors(y.astype(np.float64), scores)
    squared = found["mean_squared_error"]
    assert squared is not None
    shown = {
        "R^2": found["r2"],
        "mean absolute error": found["mean_absolute_error"],
        "root of the mean squared error": math.sqrt(squared),
        "mean squared error": squared,
        "squared correlation": found["squared_correlation"],
    }
    return Measured(others=tuple((name, "undefined" if v is None else f"{v:.6g}") for name, v in shown.items()))


def of_quantile(context: ReportContext, y: Array, scores: Vector) -> Measured:
    """The pinball loss, and the share of rows below the prediction, which should be the quantile."""
    quantile = context.estimator.quantile
    loss, below = quantile_errors(y.astype(np.float64), scores, quantile)
    shares = f"{100 * below:.4g} %, for a quantile of {100 * quantile:g} %"
    return Measured(others=(("mean pinball loss", f"{loss:.6g}"), ("rows below the prediction", shares)))


def of_inliers(context: ReportContext, y: Array, scores: Vector) -> Measured:
    """The share of inliers; the accuracy if the labels tell inliers (1) from outliers (-1)."""
    inside = scores >= 0.0
    others = [("inliers", f"{100 * float(np.mean(inside)):.4g} % ({int(inside.sum()):,} of {len(y):,} rows)")]
    if marks_outliers(y):
        correct = int(np.sum(inside == (y > 0)))
        others.append(("accuracy", f"{100 * correct / len(y):.4g} % ({correct:,} of {len(y):,} rows)"))
    return Measured(others=tuple(others))
