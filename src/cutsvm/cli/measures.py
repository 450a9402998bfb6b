"""How good the predictions of a model are: accuracy, pairs in order, ROC area, errors of levels and of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.display.errors import RegressionSums, quantile_sums, regression_errors
from cutsvm.estimators._predict import are_equal
from cutsvm.estimators._thresholds import level_of
from cutsvm.io.dataset import Dataset
from cutsvm.io.models.tasks import task_of
from cutsvm.io.store.batches import Batch
from cutsvm.io.temporary_arrays import CollectedColumn
from cutsvm.problem.pair_accuracy import pair_accuracy


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


class Measure:
    """How the predictions of a task are evaluated."""

    uses_labels: bool  # evaluates predicted labels, not scores

    def running(self, estimator: Any) -> Running:
        """The measure of the predictions of this estimator, block by block."""
        raise NotImplementedError

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        """The measure on labelled data; predicted: the labels that the estimator predicts, if they are known."""
        running = self.running(estimator)
        running.add(data, predicted)
        return running.result()

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        """The measure of all folds: predicted[i] is the label of row i by the model that was not trained on it."""
        raise NotImplementedError


class _KnownLabels:
    """Counts the labels that the model does not know, while those of rows and model are of one kind."""

    def __init__(self, classes: Array) -> None:
        self._numeric = classes.dtype.kind in "biuf"
        self._classes = classes.astype(np.float64) if self._numeric else classes
        self.rows = self.unknown = 0
        self._other: str | None = None  # the kind of labels that cannot be compared

    def add(self, y: Array) -> bool:
        """Add labels; whether they and all before can be compared with the model's."""
        numeric = y.dtype.kind in "biuf"
        self.rows += len(y)
        if numeric is not self._numeric:
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
            own = "numbers" if self._numeric else "text"
            return (f"the model's labels are {own} and those of the file are {self._other}: no accuracy",)
        if self.unknown:
            return (f"{self.unknown} of {self.rows} rows have a label that the model does not know",)
        return ()


class Accuracy(Measure):
    """The share of rows whose predicted label is theirs."""

    uses_labels = True

    def running(self, estimator: Any) -> Running:
        return _RunningAccuracy(estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        correct = int(np.sum(predicted == y))
        text = f"Cross Validation Accuracy = {100 * correct / len(y):g}%"
        return Evaluation(text, {"cross_validation_accuracy": correct / len(y), "correct": correct})


class _RunningAccuracy(Running):
    def __init__(self, estimator: Any) -> None:
        self.estimator, self.labels, self.correct = estimator, _KnownLabels(estimator.classes_), 0

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        assert part.y is not None
        if self.labels.add(part.y):
            found = np.asarray(self.estimator.predict(part.X)) if predicted is None else predicted
            self.correct += int(np.count_nonzero(are_equal(found, part.y)))

    def result(self) -> Evaluation:
        if not self.labels.comparable:
            return Evaluation(None, {"accuracy": None, "correct": None}, self.labels.warnings)
        share, total = self.correct / self.labels.rows, self.labels.rows
        text = f"Accuracy = {100 * share:g}% ({self.correct}/{total})"
        return Evaluation(text, {"accuracy": share, "correct": self.correct}, self.labels.warnings)


class LevelAccuracy(Accuracy):
    """Accuracy, and the mean absolute error in levels over the rows whose label the model knows."""

    def running(self, estimator: Any) -> Running:
        return _RunningLevels(estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        levels = np.unique(y)
        error = float(np.abs(np.searchsorted(levels, predicted) - np.searchsorted(levels, y)).mean())
        return _with_level_error(super().cross_validated(folds, predicted, y), error)


class _RunningLevels(_RunningAccuracy):
    def __init__(self, estimator: Any) -> None:
        super().__init__(estimator)
        self._distance = self._known = 0

    def add(self, part: Batch | Dataset, predicted: Array | None = None) -> None:
        super().add(part, predicted)
        if not self.labels.comparable or not self.labels._numeric:
            return
        assert part.y is not None
        levels = np.sort(self.estimator.classes_.astype(np.float64))
        known = np.isin(part.y, levels)
        found = level_of(self.estimator.decision_function(part.X), self.estimator.thresholds_)
        self._distance += int(np.abs(found - np.searchsorted(levels, part.y))[known].sum())
        self._known += int(known.sum())

    def result(self) -> Evaluation:
        accuracy = super().result()
        if accuracy.text is None or not self._known:
            return Evaluation(accuracy.text, {**accuracy.fields, "mean_absolute_error": None}, accuracy.warnings)
        return _with_level_error(accuracy, self._distance / self._known)


class _Share(Measure):
    """A share of pairs, computed from the scores of all rows; over folds its mean."""

    uses_labels = False
    key: str
    title: str

    def running(self, estimator: Any) -> Running:
        return _AllScores(self, estimator)

    def of_scores(self, estimator: Any, scores: Vector, y: Array, qid: Array | None) -> Evaluation:
        """The measure of these scores; qid: of each row, if there are queries."""
        raise NotImplementedError

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        shares = [fold.fields[self.key] for fold in folds]
        known = [share for share in shares if share is not None]
        if not known:
            raise ValueError("no fold has a pair to measure")
        mean = float(np.mean(known))
        fields = {f"cross_validation_{self.key}": mean, "of_folds": shares}
        return Evaluation(f"Cross Validation {self.title} = {100 * mean:g}%", fields)

    def undefined(self, *warnings: str) -> Evaluation:
        """What is said where the rows do not determine the measure."""
        return Evaluation(None, {self.key: None}, warnings)

    def _found(self, share: float, warnings: tuple[str, ...] = ()) -> Evaluation:
        return Evaluation(f"{self.title} = {100 * share:.6g}%", {self.key: share}, warnings)


class _AllScores(Running):
    """Scores, labels and queries of all rows, in temporary files if they are many."""

    def __init__(self, measure: _Share, estimator: Any) -> None:
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


class PairsInOrder(_Share):
    """The share of pairs of one query whose scores are in the order of their labels."""

    key, title = "pairs_in_order", "Pairs in order"

    def of_scores(self, estimator: Any, scores: Vector, y: Array, qid: Array | None) -> Evaluation:
        try:
            return self._found(pair_accuracy(scores, y, qid))
        except ValueError as error:  # no pair
            return self.undefined(str(error))


class ROCArea(_Share):
    """The area under the ROC curve of two classes."""

    key, title = "roc_area", "ROC area"

    def of_scores(self, estimator: Any, scores: Vector, y: Array, qid: Array | None) -> Evaluation:
        labels = _KnownLabels(estimator.classes_)
        if not labels.add(y):
            return self.undefined(*labels.warnings)
        positive = y == estimator.classes_[1]
        if positive.all() or not positive.any():
            return self.undefined(*labels.warnings, "all rows are of one class: the ROC area is undefined")
        return self._found(pair_accuracy(scores, positive), labels.warnings)


class _OfTargets(Measure):
    """Errors of predicted numbers; over folds the mean over all rows."""

    uses_labels = True

    def text_of(self, fields: dict[str, Any], prefix: str = "") -> str:
        """The fields in lines."""
        raise NotImplementedError


class _RunningErrors(Running):
    """Sums of errors, until a label is text."""

    def __init__(self, measure: _OfTargets, estimator: Any) -> None:
        self._measure, self.estimator = measure, estimator
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
        return Evaluation(self._measure.text_of(fields), fields)

    def sum_up(self, y: Vector, predicted: Vector) -> None:
        raise NotImplementedError

    def fields(self) -> dict[str, Any]:
        raise NotImplementedError


class RegressionErrors(_OfTargets):
    """Mean squared and mean absolute error, R^2, and the squared correlation coefficient that LIBLINEAR prints."""

    def running(self, estimator: Any) -> Running:
        return _RunningRegression(self, estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        fields = regression_errors(y.astype(np.float64), predicted)
        text = self.text_of(fields, "Cross Validation ")
        return Evaluation(text, {f"cross_validation_{name}": value for name, value in fields.items()})

    def text_of(self, fields: dict[str, Any], prefix: str = "") -> str:
        shown = {name: "undefined" if value is None else f"{value:.6g}" for name, value in fields.items()}
        # The first line and the last are LIBLINEAR's.
        return "\n".join(
            [
                f"{prefix}Mean squared error = {shown['mean_squared_error']} (regression)",
                f"{prefix}Mean absolute error = {shown['mean_absolute_error']}",
                f"{prefix}R^2 = {shown['r2']}",
                f"{prefix}Squared correlation coefficient = {shown['squared_correlation']} (regression)",
            ]
        )


class _RunningRegression(_RunningErrors):
    def __init__(self, measure: _OfTargets, estimator: Any) -> None:
        super().__init__(measure, estimator)
        self._sums = RegressionSums()

    def sum_up(self, y: Vector, predicted: Vector) -> None:
        self._sums.add(y, predicted)

    def fields(self) -> dict[str, Any]:
        return dict(self._sums.errors())


class PinballLoss(_OfTargets):
    """The mean pinball loss of the quantile, and the share of rows whose label is below the prediction."""

    def running(self, estimator: Any) -> Running:
        return _RunningPinball(self, estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        sizes = [fold.fields["rows_measured"] for fold in folds]
        names = ("pinball_loss", "share_below")
        fields = {name: float(np.average([fold.fields[name] for fold in folds], weights=sizes)) for name in names}
        text = self.text_of({**fields, "quantile": folds[0].fields["quantile"]}, "Cross Validation ")
        return Evaluation(text, {f"cross_validation_{name}": value for name, value in fields.items()})

    def text_of(self, fields: dict[str, Any], prefix: str = "") -> str:
        return (
            f"{prefix}Pinball loss = {fields['pinball_loss']:.6g} (quantile {fields['quantile']:g})\n"
            f"{prefix}Rows below = {100 * fields['share_below']:.6g}%"
        )


class _RunningPinball(_RunningErrors):
    def __init__(self, measure: _OfTargets, estimator: Any) -> None:
        super().__init__(measure, estimator)
        self._loss, self._below = 0.0, 0

    def sum_up(self, y: Vector, predicted: Vector) -> None:
        loss, below = quantile_sums(y, predicted, self.estimator.quantile)
        self._loss, self._below = self._loss + loss, self._below + below

    def fields(self) -> dict[str, Any]:
        means = {"pinball_loss": self._loss / self.rows, "share_below": self._below / self.rows}
        return {**means, "quantile": self.estimator.quantile, "rows_measured": self.rows}


class Inliers(Measure):
    """The share of rows that are inliers; the accuracy as well if all labels are 1 (inlier) and -1."""

    uses_labels = True

    def running(self, estimator: Any) -> Running:
        return _RunningInliers(estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        # The labels of the rows may be of any kind: count in the folds.
        sizes = [fold.fields["rows_measured"] for fold in folds]
        share = float(np.average([fold.fields["inliers"] for fold in folds], weights=sizes))
        fields, text = {"cross_validation_inliers": share}, f"Cross Validation Inliers = {100 * share:g}%"
        correct = [fold.fields["correct"] for fold in folds]
        if None not in correct:
            fields["cross_validation_accuracy"] = sum(correct) / sum(sizes)
            text += f"\nCross Validation Accuracy = {100 * fields['cross_validation_accuracy']:g}%"
        return Evaluation(text, fields)


class _RunningInliers(Running):
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


def _with_level_error(accuracy: Evaluation, error: float) -> Evaluation:
    text = f"{accuracy.text}, mean absolute error {error:.4g} levels"
    return Evaluation(text, {**accuracy.fields, "mean_absolute_error": error}, accuracy.warnings)
