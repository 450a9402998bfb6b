"""Measures of rows that come block by block: running sums and counts, or a few numbers of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.display.errors import RegressionSums, quantile_sums
from cutsvm.estimators._predict import are_equal
from cutsvm.estimators._thresholds import level_of
from cutsvm.io.dataset import Dataset
from cutsvm.io.models.tasks import task_of
from cutsvm.io.store.batches import Batch
from cutsvm.io.temporary_arrays import CollectedColumn


@dataclass(frozen=True)
class Evaluation:
    """A measure as text, None if the data do not determine it, as fields of `--json`, and warnings about the data."""

    text: str | None
    fields: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def short_text(self) -> str:
        """The first line of the text."""
        return str(self.text).partition("\n")[0]


class Running:
    """A measure of rows that come block by block, from sums or from a few numbers of each row."""

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        """Add rows with their labels; predicted: what the estimator predicts for them, if it is known."""
        raise NotImplementedError

    def result(self) -> Evaluation:
        """The measure of all rows so far."""
        raise NotImplementedError


class KnownLabels:
    """Counts the labels that the model does not know, while those of rows and model are of one kind."""

    def __init__(self, classes: Array) -> None:
        self.numeric = classes.dtype.kind in "biuf"
        self._classes = classes.astype(np.float64) if self.numeric else classes
        self.rows = self.unknown = 0
        self._other: str | None = None  # the kind of labels that cannot be compared

    def add(self, y: Array) -> bool:
        """Add labels; whether they and all before can be compared with the model's."""
        numeric = y.dtype.kind in "biuf"
        self.rows += len(y)
        if numeric is not self.numeric:
            self._other = "numbers" if numeric else "text"
        if self._other is None:
            self.unknown += int(np.sum(~np.isin(y, self._classes)))
        return self._other is None

    @property
    def comparable(self) -> bool:
        return self._other is None and self.rows > 0

    @property
    def warnings(self) -> tuple[str, ...]:
        if self._other is not None:
            own = "numbers" if self.numeric else "text"
            return (f"the model's labels are {own} and those of the file are {self._other}: no accuracy",)
        if self.unknown:
            return (f"{self.unknown} of {self.rows} rows have a label that the model does not know",)
        return ()


class RunningAccuracy(Running):
    """Counts of rows whose predicted label is theirs."""

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.labels, self.correct = estimator, KnownLabels(estimator.classes_), 0

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        assert part.y is not None
        if self.labels.add(part.y):
            found = np.asarray(self.estimator.predict(part.X)) if predicted is None else predicted
            self.correct += int(np.count_nonzero(are_equal(found, part.y)))

    def result(self) -> Evaluation:
        if not self.labels.comparable:
            return Evaluation(None, {"accuracy": None, "correct": None}, self.labels.warnings)
        correct, total = self.correct, self.labels.rows
        text = f"Accuracy = {100 * correct / total:g}% ({correct}/{total})"
        return Evaluation(text, {"accuracy": correct / total, "correct": correct}, self.labels.warnings)


class RunningLevels(RunningAccuracy):
    """The same, and the sum of differences in levels."""

    def __init__(self, estimator: Any) -> None:
        super().__init__(estimator)
        self._distance = self._known = 0

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        super().add(part, predicted)
        if not self.labels.comparable:
            return
        assert part.y is not None
        classes = self.estimator.classes_
        order = np.argsort(classes, kind="stable")
        levels = order[np.searchsorted(classes, part.y, sorter=order).clip(max=len(order) - 1)]
        known = classes[levels] == part.y
        found = level_of(self.estimator.decision_function(part.X), self.estimator.thresholds_)
        self._distance += int(np.abs(found - levels)[known].sum())
        self._known += int(known.sum())

    def result(self) -> Evaluation:
        accuracy = super().result()
        if accuracy.text is None or not self._known:
            return Evaluation(accuracy.text, {**accuracy.fields, "mean_absolute_error": None}, accuracy.warnings)
        return with_level_error(accuracy, self._distance / self._known)


class OfScores(Protocol):
    """A measure of the scores of all rows."""

    def of_scores(self, estimator: Any, scores: Vector, y: Array, qid: Array | None) -> Evaluation: ...

    def undefined(self, *warnings: str) -> Evaluation: ...


class AllScores(Running):
    """Scores, labels and queries of all rows, in temporary files if they are many."""

    def __init__(self, measure: OfScores, estimator: Any) -> None:
        self._measure, self._estimator = measure, estimator
        self._columns: dict[str, CollectedColumn] = {}

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        task = task_of(self._estimator)
        scores = task.scores(self._estimator, part.X) if predicted is None else predicted
        for name, values in (("scores", scores), ("y", part.y), ("qid", part.qid)):
            if values is not None:
                kind = np.int64 if name == "qid" else np.float64
                self._columns.setdefault(name, CollectedColumn(kind)).add(np.asarray(values))

    def result(self) -> Evaluation:
        if not self._columns:
            return self._measure.undefined()
        found = {name: column.values() for name, column in self._columns.items()}
        return self._measure.of_scores(self._estimator, found["scores"], found["y"], found.get("qid"))


class RunningErrors(Running):
    """Sums of errors, until a label is text."""

    def __init__(self, text_of: Callable[[dict[str, Any]], str], estimator: Any) -> None:
        self._text_of, self.estimator = text_of, estimator
        self.rows, self._is_text = 0, False

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        assert part.y is not None
        self._is_text = self._is_text or part.y.dtype.kind not in "biuf"
        if not self._is_text:
            found = np.asarray(self.estimator.predict(part.X)) if predicted is None else predicted
            self.rows += len(part.y)
            self.sum_up(part.y.astype(np.float64), found.astype(np.float64))

    def result(self) -> Evaluation:
        if self._is_text:
            return Evaluation(None, {}, ("the labels of the file are text and the model predicts numbers: no errors",))
        if not self.rows:
            return Evaluation(None)
        fields = self.fields()
        return Evaluation(self._text_of(fields), fields)

    def sum_up(self, y: Vector, predicted: Vector) -> None:
        raise NotImplementedError

    def fields(self) -> dict[str, Any]:
        raise NotImplementedError


class RunningRegression(RunningErrors):
    """Squared and absolute errors."""

    def __init__(self, text_of: Callable[[dict[str, Any]], str], estimator: Any) -> None:
        super().__init__(text_of, estimator)
        self._sums = RegressionSums()

    def sum_up(self, y: Vector, predicted: Vector) -> None:
        self._sums.add(y, predicted)

    def fields(self) -> dict[str, Any]:
        return dict(self._sums.errors())


class RunningPinball(RunningErrors):
    """The pinball loss."""

    def __init__(self, text_of: Callable[[dict[str, Any]], str], estimator: Any) -> None:
        super().__init__(text_of, estimator)
        self._loss, self._below = 0.0, 0

    def sum_up(self, y: Vector, predicted: Vector) -> None:
        loss, below = quantile_sums(y, predicted, self.estimator.quantile)
        self._loss, self._below = self._loss + loss, self._below + below

    def fields(self) -> dict[str, Any]:
        means = {"pinball_loss": self._loss / self.rows, "share_below": self._below / self.rows}
        return {**means, "quantile": self.estimator.quantile, "rows_measured": self.rows}


class RunningInliers(Running):
    """Counts; rows may have no labels."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._rows = self._inside = self._correct = 0
        self._labels: set[Any] = set()  # of all rows, while they are 1 and -1

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        found = np.asarray(self._estimator.predict(part.X)) if predicted is None else predicted
        self._rows += len(found)
        self._inside += int(np.sum(found > 0))
        if part.y is None or part.y.dtype.kind not in "iuf" or not np.isin(part.y, [-1, 1]).all():
            self._labels.add(None)
        else:
            self._labels.update(np.unique(part.y).tolist())
            self._correct += int(np.sum(found == part.y))

    def result(self) -> Evaluation:
        inside, total = self._inside, self._rows
        fields: dict[str, Any] = {"inliers": None, "accuracy": None, "correct": None, "rows_measured": total}
        if not total:
            return Evaluation(None, fields)
        fields["inliers"] = inside / total
        text = f"Inliers = {100 * inside / total:g}% ({inside}/{total})"
        if self._labels == {-1, 1}:
            fields["correct"] = self._correct
            fields["accuracy"] = self._correct / total
            text += f"\nAccuracy = {100 * fields['accuracy']:g}% ({self._correct}/{total})"
        return Evaluation(text, fields)


def with_level_error(accuracy: Evaluation, error: float) -> Evaluation:
    """The accuracy and the mean absolute error in levels."""
    text = f"{accuracy.text}, mean absolute error {error:.4g} levels"
    return Evaluation(text, {**accuracy.fields, "mean_absolute_error": error}, accuracy.warnings)
