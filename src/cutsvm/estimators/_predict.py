"""Predictions for rows of any source, block by block: the next block is read while this one is scored.

Methods of an estimator that take rows are made for arrays, and `by_block` makes them take any source; `blocks` is the
only loop. At most three blocks are in memory, besides the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils.errors import DataError
from cutsvm._utils.threads import ThreadPool
from cutsvm._utils.types import Array, Vector
from cutsvm.cluster.open import is_collection
from cutsvm.display.errors import RegressionSums
from cutsvm.estimators import _predict_collections
from cutsvm.io.columns import Labels
from cutsvm.io.formats.frames import is_frame
from cutsvm.io.model_columns import ModelColumns, ModelSource
from cutsvm.io.open import is_source
from cutsvm.io.preprocessing import Preprocessing
from cutsvm.io.store.batches import Batch, checked, value_type
from cutsvm.io.temporary_arrays import CollectedColumn

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified

T = TypeVar("T")
# Attributes of a fitted estimator about the columns it was trained with.
COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "preprocessing_", "_zero_based", "_feature_ids")
Method = TypeVar("Method", bound=Callable[..., Array])


@dataclass(eq=False)
class CheckedMatrix:
    """Rows of a block, whose columns are those of the model and whose values are checked.

    Scores of the model that the block is read for are computed once, by whichever method needs them first.
    """

    matrix: Any
    _scores: Vector | None = None

    def scores(self, compute: Callable[[Any], Vector]) -> Vector:
        """compute(matrix), or what it gave the first time; not to be written to."""
        if self._scores is None:
            self._scores = compute(self.matrix)
        return self._scores


def by_block(method: Method) -> Method:
    """The method, which has one result for each row, for any source and any collection as well."""

    @wraps(method)
    def of_any(self: Certified, X: Any) -> Array:
        if is_collection(X):
            return cast("Array", _predict_collections.map_collection(self, X, method.__name__))
        if not reads_blocks(self, X):
            return method(self, X)
        return _stacked(method(self, block.X) for block in blocks(self, open_rows(self, X, labels="none")))

    return of_any  # type: ignore[return-value]


def reads_blocks(estimator: Certified, X: Any) -> bool:
    """Whether X is a source, or a frame in memory that is preprocessed as in training."""
    return is_source(X) or ("preprocessing_" in vars(estimator) and is_frame(X, lazy=False))


def has_own_labels(estimator: Certified, X: Any, y: Any) -> bool:
    """Whether `score` takes the labels from X, or with it: a source, a collection, or such a frame without y."""
    return is_collection(X) or is_source(X) or (y is None and reads_blocks(estimator, X))


def columns_of(estimator: Certified) -> ModelColumns:
    """The columns that a fitted estimator was trained with."""
    check_is_fitted(estimator)
    known = vars(estimator)
    names, preprocessing = known.get("feature_names_in_"), known.get("preprocessing_")
    return ModelColumns(
        int(estimator.n_features_in_),
        None if names is None else [str(name) for name in names],
        None if preprocessing is None else Preprocessing.from_dict(preprocessing),
        known.get("_zero_based"),
        known.get("_feature_ids"),
    )


def open_rows(estimator: Certified, X: Any, labels: Labels = "optional") -> ModelSource:
    """The rows of X with the columns of the estimator; they need no labels, which "none" leaves alone."""
    return columns_of(estimator).open(X, labels=labels)


def blocks(estimator: Certified, source: ModelSource) -> Iterator[Batch]:
    """The rows block by block, X being a `CheckedMatrix`; at least one row."""
    first = 0
    for batch in _read_ahead(_checked(source)) if source.reads_in_background else _checked(source):
        first += batch.X.matrix.shape[0]
        yield batch
        source.check_intact()
    if not first:
        raise DataError(f"{source.name}: no rows")


def _checked(source: ModelSource) -> Iterator[Batch]:
    first = 0
    for batch in source:
        fine = checked(batch, value_type(None, batch.X.dtype), source, first)
        first += fine.X.shape[0]
        if fine.X.shape[0]:
            yield replace(fine, X=CheckedMatrix(fine.X))


def _read_ahead(items: Iterable[T]) -> Iterator[T]:
    """The items; another thread makes the next one while this one is used."""
    iterator = iter(items)
    with ThreadPool(1) as reader:
        ahead = reader.submit(next, iterator, None)
        while (item := ahead.result()) is not None:
            ahead = reader.submit(next, iterator, None)
            yield item


def _stacked(parts: Iterable[Array]) -> Array:
    """The parts below each other, in one array that grows in place."""
    found, filled = np.empty(0), 0
    for part in parts:
        if not filled:
            found = np.empty(part.shape, dtype=part.dtype)
        need = filled + len(part)
        if need > len(found):
            found.resize((max(need, len(found) + len(found) // 2), *part.shape[1:]), refcheck=False)
        found[filled:need], filled = part, need
    found.resize((filled, *found.shape[1:]), refcheck=False)
    return found


# Scores of labelled sources


def labelled_blocks(estimator: Certified, X: Any, y: Any, sample_weight: Any) -> Iterator[Batch]:
    """The blocks of a source that has labels; with these weights in place of its own if they are given."""
    if y is not None:
        raise ValueError("a data set has its own labels: leave y out")
    source, first = open_rows(estimator, X), 0
    given = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    for block in blocks(estimator, source):
        if block.y is None:
            raise ValueError(f"{source.name}: there are no labels to compare with")
        last = first + len(block.y)
        if given is not None and last > len(given):
            raise ValueError(f"sample_weight has {len(given)} numbers, {source.name} has more rows")
        yield block if given is None else replace(block, weights=given[first:last])
        first = last
    if given is not None and len(given) > first:
        raise ValueError(f"sample_weight has {len(given)} numbers, {source.name} has {first} rows")


def accuracy(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """The share of the rows of a source, by weight, whose predicted label is theirs."""
    if is_collection(X):
        return _predict_collections.accuracy(estimator, X, y, sample_weight)
    correct = total = 0.0
    for block in labelled_blocks(estimator, X, y, sample_weight):
        right = are_equal(estimator.predict(block.X), block.y)
        weights = block.weights
        correct += float(np.count_nonzero(right)) if weights is None else float(weights[right].sum())
        total += float(len(right)) if weights is None else float(weights.sum())
    return correct / total


def r2(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """R^2 of the predictions for the rows of a source; as scikit-learn's, 1 or 0 where the labels are all the same."""
    if is_collection(X):
        sums = _predict_collections.r2(estimator, X, y, sample_weight)
    else:
        sums = RegressionSums()
        for block in labelled_blocks(estimator, X, y, sample_weight):
            assert block.y is not None
            sums.add(_numbers(block.y), estimator.predict(block.X), block.weights)
    found = sums.r2
    return float(sums.squared == 0.0) if found is None else found


def all_scores(
    estimator: Any, X: Any, score: Callable[[Any], Vector], y: Any = None, qid: Any = None, sample_weight: Any = None
) -> tuple[Vector, Array, Array | None, Array | None]:
    """Scores, labels, queries and weights of the rows of a source, in temporary files if they are many."""
    if is_collection(X):
        return _predict_collections.all_scores(estimator, X, score.__name__, y, qid, sample_weight)
    columns = {name: CollectedColumn() for name in ("scores", "y", "qid", "weights")}
    columns["qid"] = CollectedColumn(np.int64)
    for block in labelled_blocks(estimator, X, y, sample_weight):
        if qid is not None and block.qid is not None:
            raise ValueError("the data set has its own queries: leave qid out")
        found = {"scores": score(block.X), "y": block.y, "qid": block.qid, "weights": block.weights}
        for name, values in found.items():
            if values is not None:
                columns[name].add(values)
    scores, labels, queries, weights = (column.values() if column.rows else None for column in columns.values())
    assert scores is not None and labels is not None
    return scores, labels, queries if qid is None else qid, weights


def are_equal(predicted: Array, y: Array | None) -> Array:
    """Whether each predicted label is the one of the row; 1 and 1.0 are, 1 and "1" cannot be compared."""
    assert y is not None
    kinds = ["numbers" if labels.dtype.kind in "biuf" else "text" for labels in (predicted, y)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"the model's labels are {kinds[0]} and those of the source are {kinds[1]}")
    equal: Array = predicted == y
    return equal


def _numbers(y: Array) -> Vector:
    if y.dtype.kind not in "biuf":
        raise ValueError("the labels of the source are text, and the model predicts numbers")
    return y.astype(np.float64)
