"""ingest: the input of `fit`, for every estimator and from any source, as checked `TrainingData`.

Arrays, sparse matrices and frames with y are validated by scikit-learn and read in place. Other sources (files,
folders, tables, lazy frames, iterators of blocks) are loaded or, under a `memory_limit`, converted to a temporary
store. The rows of a store are loaded or stay on disk, as the memory plan of the estimator says. Weights, queries and
feature names come from the arguments of `fit` or from the data set.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from cutsvm._utils import queries, threads, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.cluster.folds import DataScale
from cutsvm.cluster.open import is_collection
from cutsvm.cluster.parts import Parts
from cutsvm.estimators._collections import ingest_collection
from cutsvm.estimators._missing_queries import warn_of_missing_queries
from cutsvm.estimators._predict import CheckedMatrix
from cutsvm.io.columns import Labels
from cutsvm.io.dataset import Dataset, StoredDataset
from cutsvm.io.formats.frames import is_frame
from cutsvm.io.open import is_source, open_data_set
from cutsvm.io.temporary_arrays import TemporaryArrays
from cutsvm.matrix import StoreRows, WholeRows, as_rows

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified


def _empty() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked rows with their labels and weights. As a context manager it removes its temporary store."""

    X: Any  # an array or CSR matrix; for rows on disk the same as `rows`
    rows: WholeRows
    y: Array  # one label per row, or none at all; for text labels on disk, the rank of the label
    weights: Vector  # one weight per row; the fit may overwrite them
    # Distinct y of rows with weight, ascending, and their labels; empty where y is a number.
    classes: Array = field(default_factory=_empty)
    class_names: Array = field(default_factory=_empty)
    # One per row, equal within a query; empty where y is a class or a target.
    query_codes: Ints = field(default_factory=_empty)
    weighted: bool = False  # whether there are sample weights; without, all weights are 1
    store: str | None = None  # the name of the store that the rows come from, the same for all its versions
    parts: Parts | None = None  # of a collection: y and weights are then of few rows that stand for all
    scale: DataScale | None = None  # of a collection, where it is needed
    resources: ExitStack = field(default_factory=ExitStack, repr=False)

    def __enter__(self) -> TrainingData:
        return self

    def __exit__(self, *error: object) -> None:
        self.resources.close()

    @property
    def on_disk(self) -> bool:
        """Whether rows are read from a store in every pass."""
        return isinstance(self.rows, StoreRows)

    def take(self, rows: Ints) -> TrainingData:
        """A copy of some rows, in this order; ValueError if they are of one class."""
        own, y, weights = self.rows.take(rows), self.y[rows], self.weights[rows]
        if not len(self.classes):
            codes = self.query_codes[rows] if len(self.query_codes) else self.query_codes
            return TrainingData(own, own, y, weights, query_codes=codes)
        classes = validation.distinct(y, weights)
        if len(classes) < 2:
            raise ValueError(f"all rows to train on are of one class, {classes.tolist()[0]!r}")
        return TrainingData(own, own, y, weights, classes, classes)

    def on_threads(self, count: int) -> TrainingData:
        """The same data with weights of its own, for a fit on `count` threads; not for rows on disk."""
        return replace(self, rows=as_rows(self.X, count), weights=self.weights.copy())


def ingest(estimator: Certified, X: Any, y: Any = None, sample_weight: Any = None, *, qid: Any = None) -> TrainingData:
    """The data of `estimator.fit(X, y, sample_weight)`; sets `n_features_in_` and `feature_names_in_`."""
    if not isinstance(X, np.ndarray) and is_collection(X):
        return ingest_collection(estimator, X, y, sample_weight, qid)
    with ExitStack() as resources:
        source = _open(estimator, X, y, resources) if _has_own_labels(estimator, X, y) else None
        if source is not None:
            if qid is not None and source.qid is not None:
                raise ValueError("the data set has its own queries: leave qid out")
            sample_weight = source.weights if sample_weight is None else sample_weight
            qid = source.qid if qid is None else qid
        weighted = sample_weight is not None
        own = source is None or sample_weight is source.weights
        X, rows, y, texts = _matrix(estimator, X, y, source, None if own else sample_weight)
        store = source.store.manifest.name if isinstance(source, StoredDataset) else None
        if estimator._targets == "none":
            weights = validation.sample_weights(sample_weight, rows.n, rows.vector(rows.n))
            return TrainingData(
                X, rows, _empty(), weights, weighted=weighted, store=store, resources=resources.pop_all()
            )
        if estimator._targets != "classes":
            validation.check_numeric(y)
            weights = validation.sample_weights(sample_weight, len(y), rows.vector(len(y)))
            codes = queries.encode(qid, len(y)) if estimator._targets == "levels" else _empty()
            if estimator._targets == "levels" and qid is None:
                warn_of_missing_queries(y)
            more: dict[str, Any] = {"query_codes": codes, "weighted": weighted, "store": store}
            return TrainingData(X, rows, y, weights, **more, resources=resources.pop_all())
        _check_label_type(y)
        weights = validation.sample_weights(sample_weight, len(y), rows.vector(len(y)))
        classes = _classes(estimator, rows, y, weights if weighted else None)
        names = classes if texts is None else texts[classes.astype(np.int64)]
        about: dict[str, Any] = {"weighted": weighted, "store": store}
        return TrainingData(X, rows, y, weights, classes, names, **about, resources=resources.pop_all())


def _has_own_labels(estimator: Certified, X: Any, y: Any) -> bool:
    """Whether X is a source; a frame in memory is one if y is left out and needed, so that a column has it."""
    if isinstance(X, np.ndarray):
        return False
    if y is not None:
        validation.refuse_lazy(X)
    return is_source(X) or (y is None and estimator._targets != "none" and is_frame(X, lazy=False))


def check_matrix(estimator: Any, X: Any, y: Any = None, **options: Any) -> Any:
    """X, or X and y, as validated by scikit-learn: a float array or CSR matrix without NaN or infinity."""
    if isinstance(X, CheckedMatrix):
        return X.matrix
    validation.refuse_lazy(X)
    validation.check_sparse(X)
    options = {"dtype": validation.float_type(X), "ensure_all_finite": False, **options}
    labels = {} if y is None and "reset" in options else {"y": y}
    checked = validate_data(estimator, X, **labels, accept_sparse="csr", accept_large_sparse=True, **options)
    matrix = checked[0] if labels else checked
    validation.refuse_non_finite(matrix, threads.count(estimator.n_jobs, matrix.size))
    return checked


def _open(estimator: Certified, X: Any, y: Any, resources: ExitStack) -> Dataset:
    """The data set X; under a memory limit any other source becomes a temporary store."""
    labels: Labels = "optional" if estimator._targets == "none" else "required"
    if estimator.memory_limit is None or not estimator._trains_from_disk or isinstance(X, Dataset):
        return open_data_set(X, y, labels)
    from cutsvm.io.store.convert import as_store

    return open_data_set(X if y is not None else resources.enter_context(as_store(X, labels=labels)), y)


def _matrix(
    estimator: Any, X: Any, y: Any, source: Dataset | None, weights: Any = None
) -> tuple[Any, WholeRows, Array, Array | None]:
    """X, its rows, y, and the texts of labels that are ranks; weights: those given in place of the source's."""
    texts: Array | None = None
    rows: WholeRows | None = None if source is None else _rows_on_disk(estimator, source, weights)
    if rows is None:
        X, y = (X, y) if source is None else (source.X, source.y)
        if estimator._targets == "none":
            X = check_matrix(estimator, X, reset=True, ensure_min_samples=estimator._min_rows)
        else:
            numeric = estimator._targets != "classes"
            if estimator._targets == "numbers":
                validation.refuse_outputs(y)
            X, y = check_matrix(estimator, X, y, y_numeric=numeric, ensure_min_samples=estimator._min_rows)
        rows = as_rows(X, threads.count(estimator.n_jobs, X.size))
    else:  # convert has checked the values
        assert isinstance(source, StoredDataset)
        X = rows
        y, texts = source.ranked_labels(rows.vector) if estimator._targets == "classes" else (source.y, None)
        estimator.n_features_in_ = rows.d
        vars(estimator).pop("feature_names_in_", None)
    for name in ("_zero_based", "_feature_ids"):
        vars(estimator).pop(name, None)
    if source is not None and source.zero_based is not None:
        estimator._zero_based = source.zero_based
        if source.feature_ids is not None:
            estimator._feature_ids = source.feature_ids
    vars(estimator).pop("preprocessing_", None)
    if source is not None and source.preprocessing is not None:
        estimator.preprocessing_ = source.preprocessing.to_dict()
    if source is not None and source.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    return X, rows, y, texts


def _rows_on_disk(estimator: Certified, source: Dataset, weights: Any) -> StoreRows | None:
    """The rows of a store that the estimator reads from disk; None: they are to be loaded."""
    if not estimator._trains_from_disk or not isinstance(source, StoredDataset) or source.loaded:
        return None
    store = source.store
    plan = estimator._memory_plan(store) if weights is None else estimator._memory_plan(store, weights)
    logging.getLogger("cutsvm").info("%s: training %s", source.source, plan.description)
    if not plan.on_disk:
        return None
    temporary = None if plan.vectors_in_memory else TemporaryArrays(source.store.path)
    return StoreRows(
        source.store,
        threads.count(estimator.n_jobs),
        room=plan.room,
        temporary=temporary,
        plane_bytes=plan.plane_bytes,
    )


def _check_label_type(y: Array) -> None:
    if y.dtype == object and not all(isinstance(label, str) for label in y):
        raise ValueError(
            "Unknown label type: y has dtype object; make its labels numbers or strings first, "
            "as in y.astype(int) or y.astype(str)"
        )


def _classes(estimator: Any, rows: WholeRows, y: Array, weights: Vector | None) -> Array:
    """The distinct labels of rows with weight, at least two."""
    classes = validation.distinct(y, weights)
    if not validation.whole_numbers(classes):
        check_classification_targets(y)
    if isinstance(rows, StoreRows):
        rows.store.check_intact()
    if len(classes) < 2:
        name, only = type(estimator).__name__, classes.tolist()[0]
        raise ValueError(f"{name} needs rows of at least 2 classes; there is only one class with weight: {only!r}")
    return classes
