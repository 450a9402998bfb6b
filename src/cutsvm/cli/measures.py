"""How good the predictions of a model are: accuracy, pairs in order, ROC area, errors of levels and of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.cli.running_measures import (
    AllScores,
    Evaluation,
    KnownLabels,
    Running,
    RunningAccuracy,
    RunningInliers,
    RunningLevels,
    RunningPinball,
    RunningRegression,
    with_level_error,
)
from cutsvm.display.errors import regression_errors
from cutsvm.io.dataset import Dataset
from cutsvm.problem.pair_accuracy import pair_accuracy


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


class Accuracy(Measure):
    """The share of rows whose predicted label is theirs."""

    uses_labels = True

    def running(self, estimator: Any) -> Running:
        return RunningAccuracy(estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        correct = int(np.sum(predicted == y))
        text = f"Cross Validation Accuracy = {100 * correct / len(y):g}%"
        return Evaluation(text, {"cross_validation_accuracy": correct / len(y), "correct": correct})


class LevelAccuracy(Accuracy):
    """Accuracy, and the mean absolute error in levels over the rows whose label the model knows."""

    def running(self, estimator: Any) -> Running:
        return RunningLevels(estimator)

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        levels = np.unique(y)
        error = float(np.abs(np.searchsorted(levels, predicted) - np.searchsorted(levels, y)).mean())
        return with_level_error(super().cross_validated(folds, predicted, y), error)


class _Share(Measure):
    """A share of pairs, computed from the scores of all rows; over folds its mean."""

    uses_labels = False
    key: str
    title: str

    def running(self, estimator: Any) -> Running:
        return AllScores(self, estimator)

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
        labels = KnownLabels(estimator.classes_)
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


class RegressionErrors(_OfTargets):
    """Mean squared and mean absolute error, R^2, and the squared correlation coefficient that LIBLINEAR prints."""

    def running(self, estimator: Any) -> Running:
        return RunningRegression(self.text_of, estimator)

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


class PinballLoss(_OfTargets):
    """The mean pinball loss of the quantile, and the share of rows whose label is below the prediction."""

    def running(self, estimator: Any) -> Running:
        return RunningPinball(self.text_of, estimator)

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


class Inliers(Measure):
    """The share of rows that are inliers; the accuracy as well if all labels are 1 (inlier) and -1."""

    uses_labels = True

    def running(self, estimator: Any) -> Running:
        return RunningInliers(estimator)

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
