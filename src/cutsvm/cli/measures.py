"""How good the predictions of a model are: accuracy, pairs in order, ROC area, errors of levels and of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.display.errors import marks_outliers, quantile_errors, regression_errors
from cutsvm.estimators._thresholds import level_of
from cutsvm.io.dataset import Dataset
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


class Measure:
    """How the predictions of a task are evaluated."""

    uses_labels: bool  # evaluates predicted labels, not scores

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        """The measure on labelled data; predicted: the labels that the estimator predicts, if they are known."""
        raise NotImplementedError

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        """The measure of all folds: predicted[i] is the label of row i by the model that was not trained on it."""
        raise NotImplementedError


class Accuracy(Measure):
    """The share of rows whose predicted label is theirs."""

    uses_labels = True

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        comparable, warnings = _compare_labels(estimator, data)
        if not comparable:
            return Evaluation(None, {"accuracy": None, "correct": None}, warnings)
        if predicted is None:
            predicted = np.asarray(estimator.predict(data.X))
        if data.y.dtype.kind in "biuf":
            predicted = predicted.astype(np.float64)
        correct, total = int(np.sum(predicted == data.y)), len(data.y)
        text = f"Accuracy = {100 * correct / total:g}% ({correct}/{total})"
        return Evaluation(text, {"accuracy": correct / total, "correct": correct}, warnings)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        correct = int(np.sum(predicted == y))
        text = f"Cross Validation Accuracy = {100 * correct / len(y):g}%"
        return Evaluation(text, {"cross_validation_accuracy": correct / len(y), "correct": correct})


class LevelAccuracy(Accuracy):
    """Accuracy, and the mean absolute error in levels over the rows whose label the model knows."""

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        accuracy = super().evaluate(estimator, data)
        levels = np.sort(estimator.classes_.astype(np.float64))
        known = np.isin(data.y, levels)
        if accuracy.text is None or not known.any():
            return Evaluation(accuracy.text, {**accuracy.fields, "mean_absolute_error": None}, accuracy.warnings)
        found = level_of(estimator.decision_function(data.X), estimator.thresholds_)
        error = float(np.abs(found - np.searchsorted(levels, data.y))[known].mean())
        return _with_level_error(accuracy, error)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        levels = np.unique(y)
        error = float(np.abs(np.searchsorted(levels, predicted) - np.searchsorted(levels, y)).mean())
        return _with_level_error(super().cross_validated(folds, predicted, y), error)


class _Share(Measure):
    """A share of pairs, computed from scores; over folds its mean."""

    uses_labels = False
    key: str
    title: str

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        shares = [fold.fields[self.key] for fold in folds]
        known = [share for share in shares if share is not None]
        if not known:
            raise ValueError("no fold has a pair to measure")
        mean = float(np.mean(known))
        fields = {f"cross_validation_{self.key}": mean, "of_folds": shares}
        return Evaluation(f"Cross Validation {self.title} = {100 * mean:g}%", fields)

    def _found(self, share: float, warnings: tuple[str, ...] = ()) -> Evaluation:
        return Evaluation(f"{self.title} = {100 * share:.6g}%", {self.key: share}, warnings)

    def _undefined(self, *warnings: str) -> Evaluation:
        return Evaluation(None, {self.key: None}, warnings)


class PairsInOrder(_Share):
    """The share of pairs of one query whose scores are in the order of their labels."""

    key, title = "pairs_in_order", "Pairs in order"

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        try:
            return self._found(pair_accuracy(estimator.predict(data.X), data.y, data.qid))
        except ValueError as error:  # no pair
            return self._undefined(str(error))


class ROCArea(_Share):
    """The area under the ROC curve of two classes."""

    key, title = "roc_area", "ROC area"

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        comparable, warnings = _compare_labels(estimator, data)
        if not comparable:
            return self._undefined(*warnings)
        positive = data.y == float(estimator.classes_[1])
        if positive.all() or not positive.any():
            return self._undefined(*warnings, "all rows are of one class: the ROC area is undefined")
        return self._found(pair_accuracy(estimator.decision_function(data.X), positive), warnings)


class _OfTargets(Measure):
    """Errors of predicted numbers; over folds the mean over all rows."""

    uses_labels = True

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        if data.y.dtype.kind not in "biuf":
            return Evaluation(None, {}, ("the labels of the file are text and the model predicts numbers: no errors",))
        found = np.asarray(estimator.predict(data.X)) if predicted is None else predicted
        fields = self._errors(estimator, data.y.astype(np.float64), found.astype(np.float64))
        return Evaluation(self._text(fields), fields)

    def _errors(self, estimator: Any, y: Vector, predicted: Vector) -> dict[str, Any]:
        raise NotImplementedError

    def _text(self, fields: dict[str, Any], prefix: str = "") -> str:
        raise NotImplementedError


class RegressionErrors(_OfTargets):
    """Mean squared and mean absolute error, R^2, and the squared correlation coefficient that LIBLINEAR prints."""

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        fields = self._errors(None, y.astype(np.float64), predicted)
        text = self._text(fields, "Cross Validation ")
        return Evaluation(text, {f"cross_validation_{name}": value for name, value in fields.items()})

    def _errors(self, estimator: Any, y: Vector, predicted: Vector) -> dict[str, Any]:
        return regression_errors(y, predicted)

    def _text(self, fields: dict[str, Any], prefix: str = "") -> str:
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


class PinballLoss(_OfTargets):
    """The mean pinball loss of the quantile, and the share of rows whose label is below the prediction."""

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        sizes = [fold.fields["rows_measured"] for fold in folds]
        names = ("pinball_loss", "share_below")
        fields = {name: float(np.average([fold.fields[name] for fold in folds], weights=sizes)) for name in names}
        text = self._text({**fields, "quantile": folds[0].fields["quantile"]}, "Cross Validation ")
        return Evaluation(text, {f"cross_validation_{name}": value for name, value in fields.items()})

    def _errors(self, estimator: Any, y: Vector, predicted: Vector) -> dict[str, Any]:
        loss, below = quantile_errors(y, predicted, estimator.quantile)
        return {"pinball_loss": loss, "share_below": below, "quantile": estimator.quantile, "rows_measured": len(y)}

    def _text(self, fields: dict[str, Any], prefix: str = "") -> str:
        return (
            f"{prefix}Pinball loss = {fields['pinball_loss']:.6g} (quantile {fields['quantile']:g})\n"
            f"{prefix}Rows below = {100 * fields['share_below']:.6g}%"
        )


class Inliers(Measure):
    """The share of rows that are inliers; the accuracy as well if all labels are 1 (inlier) and -1."""

    uses_labels = True

    def evaluate(self, estimator: Any, data: Dataset, predicted: Array | None = None) -> Evaluation:
        found = np.asarray(estimator.predict(data.X)) if predicted is None else predicted
        return self._share(found, data.y)

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

    def _share(self, predicted: Array, y: Array) -> Evaluation:
        inside, total = int(np.sum(predicted > 0)), len(predicted)
        fields: dict[str, Any] = {"inliers": inside / total, "accuracy": None, "correct": None, "rows_measured": total}
        text = f"Inliers = {100 * inside / total:g}% ({inside}/{total})"
        if marks_outliers(y):
            fields["correct"] = int(np.sum(predicted == y))
            fields["accuracy"] = fields["correct"] / total
            text += f"\nAccuracy = {100 * fields['accuracy']:g}% ({fields['correct']}/{total})"
        return Evaluation(text, fields)


def _with_level_error(accuracy: Evaluation, error: float) -> Evaluation:
    text = f"{accuracy.text}, mean absolute error {error:.4g} levels"
    return Evaluation(text, {**accuracy.fields, "mean_absolute_error": error}, accuracy.warnings)


def _compare_labels(estimator: Any, data: Dataset) -> tuple[bool, tuple[str, ...]]:
    """Whether the labels of the model and of the file are both numbers or both text, and what to warn of."""
    classes = estimator.classes_
    kinds = ["numbers" if labels.dtype.kind in "biuf" else "text" for labels in (classes, data.y)]
    if kinds[0] != kinds[1]:
        return False, (f"the model's labels are {kinds[0]} and those of the file are {kinds[1]}: no accuracy",)
    unknown = int(np.sum(~np.isin(data.y, classes.astype(np.float64) if kinds[0] == "numbers" else classes)))
    if unknown:
        return True, (f"{unknown} of {len(data.y)} rows have a label that the model does not know",)
    return True, ()
