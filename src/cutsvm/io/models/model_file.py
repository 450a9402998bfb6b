"""Writing and reading fitted estimators: the format of cutsvm, and LIBLINEAR's text."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cutsvm._utils.types import Array
from cutsvm.io.files import write_atomically
from cutsvm.io.models import kernel_model, linear_model
from cutsvm.io.models.liblinear import HEADER_WORDS, READABLE, check_writable, read_text, text_pieces
from cutsvm.io.models.model_format import MAGIC, Expect, ModelFileError, pack, package_version, read_bytes, unpack
from cutsvm.io.models.model_header import as_json, pack_classes, pack_params, restore_estimator, unpack_classes
from cutsvm.io.models.tasks import TASKS, Task, task_of
from cutsvm.io.models.wrapped import fold_scalers, unwrap
from cutsvm.io.preprocessing import Preprocessing

_RESULTS = ("objective", "lower_bound", "gap", "n_iter")
_COUNTS = ("n_pairs", "n_queries", "n_skipped_queries")  # of models of pairs


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted estimator, and how the features of a data file map to its columns.

    Attributes
    ----------
    estimator : the fitted estimator: `LinearSVC`, `LinearSVR`, `QuantileSVR`, `LinearOneClassSVM`, `RankingSVM`,
        `ROCAreaSVC`, `OrdinalSVC`, `KernelSVC`, `KernelSVR` or `KernelOneClassSVM`.
    zero_based : whether the training file counted features from 0; None if it was not trained from a file.
    feature_ids : the feature that each column stands for, if only the features seen in training were kept.
    task : "classify", "regress", "quantile", "oneclass", "rank", "roc", "ordinal", "kernel", "kernel-regress" or
        "kernel-oneclass".
    format : "cutsvm" or "liblinear".
    version : of the package that wrote the file, None if another program did.

    `predict`, `decision_function` and `score` are those of the estimator: they take arrays, and any source of rows, as
    files, stores and tables, whose columns become those of the training data by name or index.
    """

    estimator: Any
    zero_based: bool | None = None
    feature_ids: npt.NDArray[np.int64] | None = None
    task: str = "classify"
    format: str = "cutsvm"
    version: str | None = None

    @property
    def preprocessing(self) -> Preprocessing | None:
        """How the columns of a table become features, if the model was trained from a table."""
        known = vars(self.estimator).get("preprocessing_")
        return None if known is None else Preprocessing.from_dict(known)

    @property
    def label(self) -> str | None:
        """The column of labels of the table that the model was trained from."""
        known = self.preprocessing
        return None if known is None else known.label

    def predict(self, X: Any) -> Array:
        """The predictions for the rows of X, which need no labels; of a collection they are one."""
        found: Array = self.estimator.predict(X)
        return found

    def decision_function(self, X: Any) -> Array:
        """The scores of the rows of X; of several classes one for each."""
        return TASKS[self.task].scores(self.estimator, X)

    def score(self, X: Any, y: Any = None, **more: Any) -> float:
        """The estimator's score; a source has its own labels. More: sample_weight, qid."""
        return float(self.estimator.score(X, y, **more))


def save_model(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    format: Literal["cutsvm", "liblinear"] = "cutsvm",
    zero_based: bool | None = None,
    feature_ids: npt.ArrayLike | None = None,
) -> None:
    """Write a fitted estimator to `path`, all of it or nothing. One that chose its C is written as the model with it.

    Parameters
    ----------
    estimator : also a search of scikit-learn's, of which its best estimator is written, or a pipeline that ends in a
        linear model after StandardScaler, MaxAbsScaler or MinMaxScaler: the weights are then those for rows that are
        not scaled. For other pipelines use skops (`skops_types`).
    format : "cutsvm" keeps everything, but it has no room for a kernel that is precomputed or a function; "liblinear"
        is LIBLINEAR's text, for linear models, of classes with integer labels. Losses that it does not have are written
        as one that predicts the same.
    zero_based, feature_ids : see `SavedModel`; by default those of the file that the estimator was fitted to.
    """
    found = unwrap(estimator)
    known = vars(found.estimator)
    zero_based = known.get("_zero_based") if zero_based is None else zero_based
    feature_ids = known.get("_feature_ids") if feature_ids is None else feature_ids
    ids = None if feature_ids is None else np.asarray(feature_ids, dtype=np.int64)
    task, estimator = task_of(found.estimator), found.estimator
    if hasattr(estimator, "path_"):
        estimator = next(model for model in estimator.path_ if model.C == estimator.C_)
    estimator = fold_scalers(replace(found, estimator=estimator._as_fitted()))
    if format == "liblinear":
        check_liblinear(task)
        weights = linear_model.checked_weights(estimator, task)
        check_writable(weights.classes, zero_based, ids)
        check_plain_columns(known.get("preprocessing_"))
        write_atomically(path, text_pieces(weights, ids))
    elif format == "cutsvm":
        header, arrays = _pack(estimator, task, ids)
        write_atomically(path, pack({**header, "task": task.name, "zero_based": zero_based}, arrays))
    else:
        raise ValueError(f"format must be 'cutsvm' or 'liblinear', got {format!r}")


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model file of either format; `ModelFileError` says what is wrong with a bad one."""
    name = os.fspath(path)
    # Opened once, its start only peeked at: it may be a pipe.
    with open(path, "rb") as stream:
        start = stream.peek(64)
        kind = _kind(start)
        if kind == "cutsvm":
            return _unpack(name, *unpack(name, stream))
        if kind == "liblinear":
            return _from_liblinear(name, read_bytes(stream))
    raise ModelFileError(f"{name}: {'empty' if not start else 'neither a cutsvm nor a LIBLINEAR model'}")


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether the file starts like a model; it may be damaged."""
    with open(path, "rb") as stream:
        return _kind(stream.peek(64)) is not None


def _kind(start: bytes) -> str | None:
    if start.startswith(MAGIC):
        return "cutsvm"
    return "liblinear" if start.split(None, 1)[:1] in [[word] for word in HEADER_WORDS] else None


def check_liblinear(task: Task) -> None:
    """Raise `ModelFileError` for a task whose models LIBLINEAR's text cannot hold."""
    if not task.writes_liblinear:
        raise ModelFileError(
            f"LIBLINEAR's format holds linear classifiers, regressors and one-class models, "
            f"not {task.estimator_name}: use the format cutsvm"
        )


def check_plain_columns(preprocessing: Any) -> None:
    """Raise `ModelFileError` for columns whose numbers are made of text or dates, or scaled: LIBLINEAR has no place for
    that, and would predict from other numbers."""
    columns = () if preprocessing is None else Preprocessing.from_dict(preprocessing).columns
    for column in columns:
        if column.changes_values:
            raise ModelFileError(
                f"LIBLINEAR's format has no preprocessing, and the model makes its features of the column "
                f"{column.name!r} by one: use the format cutsvm"
            )


def _pack(estimator: Any, task: Task, ids: npt.NDArray[np.int64] | None) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of the native format."""
    own, arrays = (kernel_model if task.has_kernel else linear_model).pack(estimator, task)
    if ids is not None:
        arrays["feature_ids"] = ids
    names = getattr(estimator, "feature_names_in_", None)
    fitted = {name: as_json(getattr(estimator, name + "_", None)) for name in _RESULTS}
    fitted |= {name: as_json(getattr(estimator, name + "_")) for name in _COUNTS if hasattr(estimator, name + "_")}
    status = getattr(estimator, "status_", None)
    header = {
        "cutsvm": package_version(),
        "estimator": type(estimator).__name__,
        "params": pack_params(estimator),
        "classes": pack_classes(np.asarray(getattr(estimator, "classes_", []))),
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "preprocessing": vars(estimator).get("preprocessing_"),
        "fitted": {
            **fitted,
            "converged": bool(getattr(estimator, "converged_", False)),
            "status": getattr(status, "name", None),
        },
        **own,
    }
    return header, arrays


def _from_liblinear(name: str, text: bytes) -> SavedModel:
    weights = read_text(name, text)
    kind = READABLE[weights.solver_type]
    task = TASKS[kind.task]
    estimator = task.make_estimator(**kind.parameters)
    if task.has_classes:
        estimator.classes_ = weights.classes
    if "fit_intercept" in estimator.get_params():
        estimator.fit_intercept = weights.intercept is not None
    linear_model.set_weights(estimator, task, weights.coef, weights.intercept)
    estimator._zero_based = False
    return SavedModel(estimator, zero_based=False, task=task.name, format="liblinear")


def _unpack(name: str, header: dict[str, Any], arrays: dict[str, Array]) -> SavedModel:
    """The model that a header and its arrays describe, every statement checked against the arrays."""
    expect = Expect(name)
    stated = header.get("task")
    expect.that(
        isinstance(stated, str) and stated in TASKS, f"a task that this version knows, got {str(stated)[:40]!r}"
    )
    task = TASKS[str(stated)]
    classes = None
    if task.has_classes:
        classes = unpack_classes(expect, header.get("classes"), ordered=not task.has_thresholds)
        expect.that(task.max_classes in (None, len(classes)), "two classes")
    zero_based = header.get("zero_based")
    expect.that(zero_based is None or isinstance(zero_based, bool), "zero_based to be true, false or null")
    estimator = restore_estimator(expect, task, header.get("params"))
    if classes is not None:
        estimator.classes_ = classes
    (kernel_model if task.has_kernel else linear_model).restore(expect, estimator, task, header, arrays)
    ids, width = arrays.get("feature_ids"), estimator.n_features_in_
    if ids is not None:
        ascending = ids.dtype == np.int64 and ids.shape == (width,) and bool((np.diff(ids) > 0).all())
        expect.that(ascending and (width == 0 or ids[0] >= 0), "an ascending feature id for every column")
    _set_results(expect, estimator, header)
    if zero_based is not None:
        estimator._zero_based = zero_based
    if ids is not None:
        estimator._feature_ids = ids
    return SavedModel(estimator, zero_based, ids, task.name, version=str(header.get("cutsvm"))[:40])


def _set_results(expect: Expect, estimator: Any, header: dict[str, Any]) -> None:
    """Set the results of the fit: objective, bounds, status, feature names."""
    fitted, names = header.get("fitted"), header.get("feature_names")
    expect.that(isinstance(fitted, dict), "an object of results")
    assert isinstance(fitted, dict)
    for key in (*_RESULTS, *(name for name in _COUNTS if name in fitted)):
        value = fitted.get(key)
        items = value if isinstance(value, list) else [value]
        numbers = bool(items) and all(item is None or _is_number(item) for item in items)
        expect.that(numbers, f"a number as {key!r}")
        expect.that(key not in _COUNTS or (value is not None and _is_number(value)), f"a count as {key!r}")
        restored = np.array(items, dtype=None if None not in items else np.float64)
        setattr(estimator, key + "_", restored if isinstance(value, list) else value)
    estimator.converged_ = fitted.get("converged") is True
    status = fitted.get("status")
    if status is not None:
        estimator._status = status
        expect.that(isinstance(status, str) and _has_status(estimator), "a status that this version knows")
    expect.that(("n_queries" in fitted) == ("n_skipped_queries" in fitted), "both counts of queries, or none")
    if names is not None:
        expect.that(isinstance(names, list) and all(type(n) is str for n in names), "a list of feature names")
        expect.that(len(names) == estimator.n_features_in_, "a name for every feature")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    _set_preprocessing(expect, estimator, header.get("preprocessing"), names)
    estimator.history_ = []


def _set_preprocessing(expect: Expect, estimator: Any, stated: Any, names: list[str] | None) -> None:
    """Set how the columns of a table become features; files of earlier versions do not say."""
    if stated is None:
        return
    try:
        found = Preprocessing.from_dict(stated)
    except ValueError as error:
        raise ModelFileError(f"{expect.name}: {str(error)[:200]}") from None
    expect.that(found.feature_names == names, "preprocessing that makes the features of the model")
    estimator.preprocessing_ = found.to_dict()


def _has_status(estimator: Any) -> bool:
    """Whether the status, which estimators keep by its name, is one of this version."""
    try:
        return estimator.status_ is not None
    except KeyError:
        return False


def _is_number(value: Any) -> bool:
    """A finite number that float64 and int64 can hold."""
    return (type(value) is int and abs(value) < 2**63) or (type(value) is float and math.isfinite(value))
