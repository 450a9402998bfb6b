"""The contents of a report: a fitted estimator, the rows it is measured on, and their origin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils.types import Array, Vector
from cutsvm.io.dataset import Dataset
from cutsvm.io.models.model_format import ModelFileError
from cutsvm.io.models.tasks import Task, task_of
from cutsvm.io.models.wrapped import Unwrapped, unwrap
from cutsvm.io.open import open_data_set


@dataclass(frozen=True)
class Origin:
    """The origin of a model, as the command line knows it."""

    command: str | None = None  # that trained it
    model: str | None = None  # the model file
    shape: tuple[int, int] | None = None
    entries: int | None = None
    seconds: float | None = None  # of the fit
    remark: str = ""  # about the rows


@dataclass(frozen=True, eq=False)
class ReportContext:
    """An estimator with its task, and the labels and scores of the rows, if there are any."""

    estimator: Any
    task: Task
    origin: Origin
    source: str | None = None  # the name of the rows
    shape: tuple[int, int] | None = None
    entries: int | None = None
    y: Array | None = None
    qid: Array | None = None
    scores: Vector | None = None
    feature_names: Sequence[Any] | None = None
    wrapped: Unwrapped | None = None  # what the estimator came in: a pipeline, a search

    @property
    def classes(self) -> Array | None:
        found: Array | None = getattr(self.estimator, "classes_", None)
        return found

    @property
    def history(self) -> list[dict[str, Any]]:
        """The records of the fit; none for a model that was read from a file."""
        return list(getattr(self.estimator, "history_", None) or [])

    @property
    def chose_C(self) -> bool:
        """Whether C was chosen by cross-validation."""
        return hasattr(self.estimator, "scores_")

    def predicted(self) -> Array:
        """The predicted classes."""
        assert self.scores is not None and self.classes is not None
        if self.task.has_thresholds:
            places: Array = np.searchsorted(self.estimator.thresholds_, self.scores, side="left")
        else:
            places = (self.scores > 0.0).astype(int) if self.scores.ndim == 1 else self.scores.argmax(axis=1)
        labels: Array = self.classes[places]
        return labels


def build_context(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    qid: Any = None,
    feature_names: Sequence[Any] | None = None,
    source: str | None = None,
    origin: Origin | None = None,
) -> ReportContext:
    """The context, after checking that the arguments are consistent."""
    origin = Origin() if origin is None else origin
    wrapped = unwrap(estimator)
    estimator = wrapped.estimator
    task = _checked_task(estimator)
    feature_names = wrapped.feature_names() if feature_names is None else feature_names
    if X is None:
        if y is not None:
            raise ValueError("y without X: a report has both, or neither")
        plain: dict[str, Any] = {"source": source, "shape": origin.shape, "entries": origin.entries}
        return ReportContext(estimator, task, origin, **plain, feature_names=feature_names, wrapped=wrapped)
    scorer = estimator
    if wrapped.steps:
        if isinstance(X, str | os.PathLike | Dataset):
            raise ValueError("expected rows X and y: the first step of the pipeline reads no data sets")
        X = wrapped.transform(X)
    if isinstance(X, str | os.PathLike | Dataset):
        data = open_data_set(X, y).in_order_of(getattr(estimator, "feature_names_in_", None))
        source = data.source if source is None else source
        X, y, qid = data.X, data.y, data.qid if qid is None else qid
        scorer = copy(estimator)  # the columns are in order, and arrays have no names
        vars(scorer).pop("feature_names_in_", None)
    shape = (int(X.shape[0]), int(X.shape[1])) if hasattr(X, "shape") else np.shape(X)[:2]
    found: dict[str, Any] = {"source": source, "shape": shape, "feature_names": feature_names, "wrapped": wrapped}
    found["entries"] = int(X.nnz) if hasattr(X, "nnz") else None
    if y is None:
        return ReportContext(estimator, task, origin, **found)
    labels = _labels(estimator, task, y, shape[0])
    queries = None if qid is None else np.asarray(qid)
    return ReportContext(estimator, task, origin, **found, y=labels, qid=queries, scores=task.scores(scorer, X))


def _checked_task(estimator: Any) -> Task:
    """The task of a fitted estimator of cutsvm."""
    try:
        task = task_of(estimator)
    except ModelFileError:
        name = type(estimator).__name__
        raise ValueError(
            f"expected an estimator of cutsvm, or a pipeline or search that ends in one, got {name}"
        ) from None
    check_is_fitted(estimator, ["n_features_in_"])
    if not (hasattr(estimator, "coef_") or hasattr(estimator, "dual_coef_")):
        raise ValueError("there is no model to report on: refit=False chose C and fitted none")
    return task


def _labels(estimator: Any, task: Task, y: Any, rows: int) -> Array:
    labels = np.asarray(y)
    if task.has_targets and labels.dtype.kind not in "biuf":
        raise ValueError(f"{task.estimator_name} predicts numbers, and y has {labels.dtype} values")
    if labels.shape != (rows,):
        raise ValueError(f"y has the shape {labels.shape}: expected one label for each of the {rows} rows of X")
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        kinds = ["numbers" if found.dtype.kind in "biuf" else "text" for found in (classes, labels)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"the classes of the model are {kinds[0]}, and y has {kinds[1]}")
    return labels
