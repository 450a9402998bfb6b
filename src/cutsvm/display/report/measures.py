"""How good a model is on the rows of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Array, Ints
from cutsvm.display.plotting.models import class_indices
from cutsvm.display.report.context import ReportContext
from cutsvm.problem.pair_accuracy import pair_accuracy


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
    """The measures of the task: pairs in order of ranking, ROC area of two classes, confusion of classes."""

    confusion: Confusion | None = None
    area: float | None = None
    pairs: float | None = None  # share in order
    level_error: float | None = None  # mean absolute error, in levels


def measure(context: ReportContext) -> Measured | None:
    """The measures of the task; None if there are no labelled rows."""
    y, scores, classes = context.y, context.scores, context.classes
    if y is None or scores is None or not len(y):
        return None
    if classes is None:
        try:
            return Measured(pairs=pair_accuracy(scores, y, context.qid))
        except ValueError:  # no pair
            return Measured()
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
