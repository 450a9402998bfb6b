"""Fitted estimators to files and back: cutsvm's own format and LIBLINEAR's text."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from cutsvm.io.atomic import write_atomically
from cutsvm.io.models import kernel_model
from cutsvm.io.models.liblinear import HEADER_WORDS, LinearWeights, check_writable, read_text, text_pieces
from cutsvm.io.models.model_classes import pack_classes, unpack_classes
from cutsvm.io.models.model_format import MAGIC, Expect, ModelFileError, pack, read_bytes, unpack

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified

__all__ = ["ModelFileError", "SavedModel", "is_model_file", "load_model", "package_version", "save_model"]

# Parameters of the fit itself; callbacks, files and threads belong to the machine that trained.
_PARAMETERS = (
    "C",
    "tol",
    "solver",
    "multi_class",
    "fit_intercept",
    "intercept",
    "class_weight",
    "max_iter",
    "max_time",
    "threshold_loss",
    "kernel",
    "gamma",
    "degree",
    "coef0",
    "epochs",
    "average",
    "certify",
    "random_state",
)
_RESULTS = ("objective", "lower_bound", "gap", "n_iter")
_COUNTS = ("n_pairs", "n_queries", "n_skipped_queries")  # of those that have pairs
# The estimator of each task, and the module that it is in.
_TASKS = {
    "classify": ("LinearSVC", "cutsvm.estimators.linear"),
    "rank": ("RankingSVM", "cutsvm.estimators.ranking"),
    "roc": ("ROCAreaSVC", "cutsvm.estimators.ranking"),
    "ordinal": ("OrdinalSVC", "cutsvm.estimators.ranking"),
    "kernel": ("KernelSVC", "cutsvm.estimators.kernel"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted estimator, and how the features of a data file map to its columns.

    Attributes
    ----------
    estimator : the fitted estimator: `LinearSVC`, `RankingSVM`, `ROCAreaSVC`, `OrdinalSVC` or `KernelSVC`.
    zero_based : whether the training file counted features from 0; None if it was not trained from a file.
    feature_ids : the feature that each column stands for, if only the features seen in training were kept.
    task : "classify", "rank", "roc", "ordinal" or "kernel".
    format : "cutsvm" or "liblinear".
    version : of the package that wrote the file, None if another program did.
    """

    estimator: Any
    zero_based: bool | None = None
    feature_ids: npt.NDArray[np.int64] | None = None
    task: str = "classify"
    format: str = "cutsvm"
    version: str | None = None


def save_model(
    estimator: Certified,
    path: str | os.PathLike[str],
    *,
    format: Literal["cutsvm", "liblinear"] = "cutsvm",
    zero_based: bool | None = None,
    feature_ids: npt.ArrayLike | None = None,
) -> None:
    """Write a fitted estimator to `path`, all of it or nothing. One that chose its C is written as the model with it.

    Parameters
    ----------
    format : "cutsvm" keeps everything, but it has no room for a `KernelSVC` with a precomputed kernel; "liblinear" is
        LIBLINEAR's text, for integer labels and linear models.
    zero_based, feature_ids : see `SavedModel`.
    """
    ids = None if feature_ids is None else np.asarray(feature_ids, dtype=np.int64)
    task = task_of(estimator)
    if hasattr(estimator, "path_"):
        estimator = next(model for model in estimator.path_ if model.C == estimator.C_)
    if format == "liblinear":
        check_task(task)
        weights = _weights(estimator)
        check_writable(weights.classes, zero_based, ids)
        write_atomically(path, text_pieces(weights, ids))
    elif format == "cutsvm":
        header, arrays = _parts(estimator, task, ids)
        write_atomically(path, pack({**header, "task": task, "zero_based": zero_based}, arrays))
    else:
        raise ValueError(f"format must be 'cutsvm' or 'liblinear', got {format!r}")


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model file of either format; `ModelFileError` says what is wrong with a bad one."""
    name = os.fspath(path)
    # Opened once and looked at without moving on: it may be a pipe.
    with open(path, "rb") as stream:
        start = stream.peek(64)
        kind = _kind(start)
        if kind == "cutsvm":
            return _from_parts(name, *unpack(name, stream))
        if kind == "liblinear":
            return _from_liblinear(name, read_bytes(stream))
    raise ModelFileError(f"{name}: {'empty' if not start else 'neither a cutsvm nor a LIBLINEAR model'}")


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether the file starts as a model does; it may still be damaged."""
    with open(path, "rb") as stream:
        return _kind(stream.peek(64)) is not None


def _kind(start: bytes) -> str | None:
    if start.startswith(MAGIC):
        return "cutsvm"
    return "liblinear" if start.split(None, 1)[:1] in [[word] for word in HEADER_WORDS] else None


def task_of(estimator: Any) -> str:
    """The task that the estimator is for."""
    kinds = [kind.__name__ for kind in type(estimator).__mro__]
    for task, (name, _) in _TASKS.items():
        if name in kinds:
            return task
    known = ", ".join(name for name, _ in _TASKS.values())
    raise ModelFileError(f"{kinds[0]} cannot be written; expected one of {known}")


def check_task(task: str) -> None:
    """LIBLINEAR's text has classes, and no thresholds and no kernels."""
    if task == "kernel":
        raise ModelFileError("a LIBLINEAR model holds linear weights, not a kernel machine: use the format cutsvm")
    if task not in ("classify", "roc"):
        raise ModelFileError(f"a LIBLINEAR model holds classes, not those of --task {task}: use the format cutsvm")


def _weights(estimator: Any) -> LinearWeights:
    """The weights as float64, checked."""
    if not hasattr(estimator, "coef_"):
        raise ModelFileError("the estimator is not fitted: there is no model to write")
    stored: Any = estimator.coef_
    coef = np.asarray(stored.toarray() if hasattr(stored, "toarray") else stored)  # after sparsify()
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64), (len(coef),))
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ModelFileError("the model has weights that are not finite")
    has_intercept = bool(getattr(estimator, "fit_intercept", False) or intercept.any())
    classes = np.asarray(getattr(estimator, "classes_", []))
    return LinearWeights(classes, coef.astype(np.float64), intercept if has_intercept else None)


def _parts(
    estimator: Any, task: str, ids: npt.NDArray[np.int64] | None
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Header and arrays of the native format."""
    own, arrays = kernel_model.parts(estimator) if task == "kernel" else _linear_parts(estimator)
    if ids is not None:
        arrays["feature_ids"] = ids
    names = getattr(estimator, "feature_names_in_", None)
    fitted = {name: _plain(getattr(estimator, name + "_", None)) for name in _RESULTS}
    fitted |= {name: _plain(getattr(estimator, name + "_")) for name in _COUNTS if hasattr(estimator, name + "_")}
    status = getattr(estimator, "status_", None)
    header = {
        "cutsvm": package_version(),
        "estimator": type(estimator).__name__,
        "params": {name: _parameter(getattr(estimator, name)) for name in _PARAMETERS if hasattr(estimator, name)},
        "classes": pack_classes(np.asarray(getattr(estimator, "classes_", []))),
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "fitted": {
            **fitted,
            "converged": bool(getattr(estimator, "converged_", False)),
            "status": getattr(status, "name", None),
        },
        **own,
    }
    return header, arrays


def _linear_parts(estimator: Any) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    weights = _weights(estimator)
    kept = np.float32 if estimator.coef_.dtype == np.float32 else np.float64
    arrays: dict[str, npt.NDArray[Any]] = {"coef": weights.coef.astype(kept)}
    arrays["intercept"] = np.zeros(len(weights.coef)) if weights.intercept is None else np.array(weights.intercept)
    if hasattr(estimator, "thresholds_"):
        arrays["thresholds"] = np.asarray(estimator.thresholds_, dtype=np.float64)
    return {}, arrays


def package_version() -> str:
    """The installed version of cutsvm, "unknown" when run from a source tree."""
    try:
        return version("cutsvm")
    except PackageNotFoundError:
        return "unknown"


def _plain(value: Any) -> Any:
    """Numbers and lists of numbers as JSON holds them; what is not finite becomes None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str) else None


def _parameter(value: Any) -> Any:
    """A constructor parameter as JSON: dictionaries as pairs (keys keep their type), solvers by name."""
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        options = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"solver": type(value).__name__, "options": options}
    return _plain(value)


def _from_liblinear(name: str, text: bytes) -> SavedModel:
    weights = read_text(name, text)
    estimator = _estimator("classify", {"fit_intercept": weights.intercept is not None})
    estimator.classes_ = weights.classes
    _set_weights(estimator, weights.coef, weights.intercept)
    return SavedModel(estimator, zero_based=False, format="liblinear")


def _from_parts(name: str, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> SavedModel:
    """The model that a header and its arrays describe, every claim checked against the arrays."""
    expect = Expect(name)
    task = header.get("task")
    expect.that(isinstance(task, str) and task in _TASKS, f"a task that this version knows, got {str(task)[:40]!r}")
    assert isinstance(task, str)
    classes = None if task == "rank" else unpack_classes(expect, header.get("classes"), ordered=task != "ordinal")
    expect.that(task != "roc" or (classes is not None and len(classes) == 2), "two classes")
    zero_based = header.get("zero_based")
    expect.that(zero_based is None or isinstance(zero_based, bool), "zero_based to be true, false or null")
    estimator = _checked_estimator(expect, task, _unpack_params(expect, task, header.get("params")))
    if classes is not None:
        estimator.classes_ = classes
    if task == "kernel":
        kernel_model.restore(expect, estimator, header, arrays)
    else:
        _restore_weights(expect, estimator, task, header, arrays)
    ids, width = arrays.get("feature_ids"), estimator.n_features_in_
    if ids is not None:
        ascending = ids.dtype == np.int64 and ids.shape == (width,) and bool((np.diff(ids) > 0).all())
        expect.that(ascending and (width == 0 or ids[0] >= 0), "an ascending feature id for every column")
    _set_results(expect, estimator, header)
    written_by = header.get("cutsvm")
    return SavedModel(estimator, zero_based, ids, task, version=str(written_by)[:40])


def _restore_weights(
    expect: Expect, estimator: Any, task: str, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
) -> None:
    """The weights of a linear model, and its thresholds."""
    classes = getattr(estimator, "classes_", None)
    coef, intercept = arrays.get("coef"), arrays.get("intercept")
    rows = len(classes) if task == "classify" and classes is not None and len(classes) > 2 else 1
    width = header.get("n_features")
    if coef is None or intercept is None or coef.dtype.kind != "f" or intercept.dtype != np.float64:
        raise ModelFileError(f"{expect.name}: expected arrays of weights")
    expect.that(type(width) is int and coef.shape == (rows, width), "weights for every class and feature")
    expect.that(intercept.shape == (rows,), "an intercept for every row of weights")
    expect.that(bool(np.isfinite(coef).all() and np.isfinite(intercept).all()), "finite weights")
    _set_weights(estimator, coef, intercept)
    if task == "ordinal":
        assert classes is not None
        estimator.thresholds_ = _thresholds(expect, arrays.get("thresholds"), len(classes))
        estimator.levels = None if np.all(classes[:-1] < classes[1:]) else classes.tolist()


def _thresholds(expect: Expect, stored: npt.NDArray[Any] | None, classes: int) -> npt.NDArray[np.float64]:
    if stored is None or stored.dtype != np.float64 or stored.shape != (classes - 1,):
        raise ModelFileError(f"{expect.name}: expected a threshold between every two classes")
    expect.that(bool(np.isfinite(stored).all() and np.all(np.diff(stored) >= 0.0)), "rising thresholds")
    return stored


def _unpack_params(expect: Expect, task: str, packed: Any) -> dict[str, Any]:
    """The constructor's parameters; those that this version does not know change no prediction."""
    expect.that(isinstance(packed, dict), "an object of parameters")
    params: dict[str, Any] = {}
    for key in _PARAMETERS:
        value = packed.get(key)
        if isinstance(value, dict) and key == "class_weight" and isinstance(value.get("pairs"), list):
            pairs = value["pairs"]
            scalars = all(isinstance(pair, list) and len(pair) == 2 for pair in pairs) and not any(
                isinstance(part, list | dict) for pair in pairs for part in pair
            )
            expect.that(scalars, f"pairs of numbers in {key!r}")
            params[key] = dict(pairs)
        elif isinstance(value, dict) and key == "solver":
            params[key] = _solver(task, value)
        elif isinstance(value, dict):
            expect.that(False, f"a number or a word as {key!r}")
        elif key in packed and not isinstance(value, list):
            params[key] = value
    return {key: value for key, value in params.items() if value is not None}


def _solver(task: str, packed: Mapping[str, Any]) -> Any:
    """The solver object, found by name among the package's own; None (the default) if it is not there."""
    solvers = import_module("cutsvm.kernel_machines" if task == "kernel" else "cutsvm.solvers")
    name, options = packed.get("solver"), packed.get("options")
    kind = vars(solvers).get(name) if isinstance(name, str) and name[:1].isupper() else None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(options, dict)):
        return None
    try:
        return kind(**options)
    except (TypeError, ValueError):
        return None


def _estimator(task: str, params: dict[str, Any]) -> Any:
    # Here and not at the top: the estimators' modules may import this one.
    name, home = _TASKS[task]
    kind = getattr(import_module(home), name)
    known = kind().get_params()
    return kind(**{key: value for key, value in params.items() if key in known})


def _checked_estimator(expect: Expect, task: str, params: dict[str, Any]) -> Any:
    """The estimator, its parameters legal; a solver of another version, which changes no prediction, is left out."""
    weights = params.get("class_weight")
    expect.that(weights is None or isinstance(weights, dict) or weights == "balanced", "class weights or 'balanced'")
    for key in ("fit_intercept", "certify"):
        expect.that(isinstance(params.get(key, True), bool), f"true or false as {key!r}")
    if isinstance(params.get("solver"), str):
        solvers = import_module("cutsvm.kernel_machines" if task == "kernel" else "cutsvm.solvers")
        try:
            solvers.resolve(params["solver"])
        except ValueError:
            del params["solver"]
    estimator = _estimator(task, params)
    try:
        estimator._check_params()
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{expect.name}: {str(error)[:200]}") from None
    return estimator


def _set_weights(estimator: Any, coef: npt.NDArray[Any], intercept: npt.NDArray[np.float64] | None) -> None:
    estimator.coef_ = coef
    estimator.intercept_ = np.zeros(len(coef)) if intercept is None else intercept
    estimator.n_features_in_ = coef.shape[1]


def _set_results(expect: Expect, estimator: Any, header: dict[str, Any]) -> None:
    """What is known about the fit: objective, bounds, status, feature names."""
    from cutsvm.driver.run import Status

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
    known = status is None or (isinstance(status, str) and status in Status.__members__)
    expect.that(known, "a status that this version knows")
    expect.that(("n_queries" in fitted) == ("n_skipped_queries" in fitted), "both counts of queries, or none")
    if status is not None:
        estimator.status_ = Status[status]
    if names is not None:
        expect.that(isinstance(names, list) and all(type(n) is str for n in names), "a list of feature names")
        expect.that(len(names) == estimator.n_features_in_, "a name for every feature")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.history_ = []


def _is_number(value: Any) -> bool:
    """A finite number that float64 and int64 can hold."""
    return (type(value) is int and abs(value) < 2**63) or (type(value) is float and math.isfinite(value))
