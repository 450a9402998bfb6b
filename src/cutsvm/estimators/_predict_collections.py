"""Predictions and scores of collections: Dask arrays and frames, data sets of Ray and Spark, Parquet on a cluster.

The model travels to the rows. Predictions are a collection as well, which is not computed yet; a score is one round.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils.types import Array
from cutsvm.cluster.collections.mapped import RowTask, map_rows
from cutsvm.cluster.grains import RowBlock
from cutsvm.cluster.scores import RowColumns, sums_of_parts
from cutsvm.display.errors import RegressionSums
from cutsvm.io.preprocessing import Preprocessing

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified

# Columns of predictions in a table.
_COLUMNS = {"predict": "prediction", "predict_proba": "probability", "predict_log_proba": "log_probability"}


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a fitted estimator that takes rows; small enough to travel."""

    model: Any
    name: str

    def __call__(self, X: Any) -> Array:
        found: Array = getattr(self.model, self.name)(X)
        return found


def map_collection(estimator: Certified, X: Any, name: str) -> Any:
    """The results of a method for the rows of a collection: see `map_rows`."""
    model, names = _travelling(estimator)
    function, d = Method(model, name), int(estimator.n_features_in_)
    example = function(np.zeros((1, d)))
    several = () if example.ndim == 1 else tuple(str(label) for label in vars(estimator)["classes_"])
    return map_rows(X, RowTask(function, d, example, names, _COLUMNS.get(name, name), several))


def _travelling(estimator: Certified) -> tuple[Any, tuple[str, ...] | None]:
    """A copy that predicts, on one thread, and the names of its features, which the rows are chosen by before."""
    check_is_fitted(estimator)
    known = vars(estimator)
    stored = known.get("preprocessing_")
    if stored is not None and any(column.changes_values for column in Preprocessing.from_dict(stored).columns):
        raise ValueError(
            "the model was trained from a table whose columns were preprocessed (preprocessing_), which is not done to "
            "collections: give it the files, or a model that was trained with columns of numbers"
        )
    names = known.get("feature_names_in_")
    twin = copy.copy(estimator)
    twin.n_jobs, twin.callbacks = 1, None
    for name in ("feature_names_in_", "preprocessing_", "history_", "_cached_scores", "_warm"):
        twin.__dict__.pop(name, None)
    return twin, None if names is None else tuple(str(name) for name in names)


def _sums(
    estimator: Certified, X: Any, y: Any, sample_weight: Any, qid: Any, task: Any, add: Callable[[Any, Any], Any]
) -> list[Any]:
    """task(model, rows) of each part that has rows."""
    model, names = _travelling(estimator)
    rows = RowColumns(int(estimator.n_features_in_), names, estimator._targets)
    found = list(sums_of_parts(X, y, sample_weight, qid, rows, _Task(model, task), add))
    if not found:
        raise ValueError("the collection has no rows")
    return found


@dataclass(frozen=True, eq=False)
class _Task:
    model: Any
    task: Callable[[Any, RowBlock], Any]

    def __call__(self, rows: RowBlock) -> Any:
        return self.task(self.model, rows)


def accuracy(estimator: Certified, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of the rows, by weight, whose predicted label is theirs."""
    correct, total = sum(_sums(estimator, X, y, sample_weight, None, _correct, np.add))
    _check_weight(total)
    return float(correct / total)


def _check_weight(total: float) -> None:
    if not total > 0.0:
        raise ValueError("sample_weight is zero for every row: there are no rows to score")


def _correct(model: Any, rows: RowBlock) -> Array:
    from cutsvm.estimators._predict import CheckedMatrix, are_equal

    right = are_equal(model.predict(CheckedMatrix(rows.X)), rows.y)
    if rows.weights is None:
        return np.array([np.count_nonzero(right), len(right)], dtype=np.float64)
    return np.array([rows.weights[right].sum(), rows.weights.sum()])


def r2(estimator: Certified, X: Any, y: Any, sample_weight: Any) -> RegressionSums:
    """The sums that R^2 follows from."""
    sums = RegressionSums()
    for part in _sums(estimator, X, y, sample_weight, None, _errors, _joined):
        sums.join(part)
    _check_weight(sums.weight)
    return sums


def _errors(model: Any, rows: RowBlock) -> RegressionSums:
    from cutsvm.estimators._predict import CheckedMatrix

    sums = RegressionSums()
    assert rows.y is not None
    sums.add(rows.y, model.predict(CheckedMatrix(rows.X)), rows.weights)
    return sums


def _joined(total: RegressionSums, other: RegressionSums) -> RegressionSums:
    total.join(other)
    return total


def all_scores(
    estimator: Certified, X: Any, name: str, y: Any, qid: Any, sample_weight: Any
) -> tuple[Array, Array, Array | None, Array | None]:
    """Scores, by this method, labels, queries and weights of all rows, which come here."""
    blocks = chain.from_iterable(_sums(estimator, X, y, sample_weight, qid, _Scores(name), _appended))
    scores, labels, queries, weights = (
        None if own[0] is None else np.concatenate(own) for own in zip(*blocks, strict=True)
    )
    assert scores is not None and labels is not None
    return scores, labels, queries, weights


@dataclass(frozen=True)
class _Scores:
    name: str

    def __call__(self, model: Any, rows: RowBlock) -> list[tuple[Any, ...]]:
        from cutsvm.estimators._predict import CheckedMatrix

        return [(Method(model, self.name)(CheckedMatrix(rows.X)), rows.y, rows.qid, rows.weights)]


def _appended(total: list[Any], other: list[Any]) -> list[Any]:
    return [*total, *other]
