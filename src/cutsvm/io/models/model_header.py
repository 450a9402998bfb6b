"""The classes and the parameters of a model, to the header of its file and back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from cutsvm._utils.fields import shown_fields
from cutsvm._utils.types import Array
from cutsvm.io.models.model_format import Expect, ModelFileError
from cutsvm.io.models.tasks import Task

_CLASS_KINDS = "biufU"
# An array of texts is as wide as its longest one: a short file could state a very large array.
_MAX_TEXT = 1 << 26
# Parameters of the fit itself; callbacks, files and threads belong to the machine that trained.
_PARAMETERS = (
    "C nu loss epsilon quantile tol solver multi_class fit_intercept intercept class_weight max_iter max_time "
    "threshold_loss kernel gamma degree coef0 epochs average certify random_state"
).split()


def as_json(value: Any) -> Any:
    """Numbers, strings and lists of them as JSON holds them; None for what is not finite, and for anything else."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str) else None


def pack_params(estimator: Any) -> dict[str, Any]:
    return {name: _pack(getattr(estimator, name)) for name in _PARAMETERS if hasattr(estimator, name)}


def _pack(value: Any) -> Any:
    """A parameter as JSON: dictionaries as pairs (keys keep their type), solver objects by name and shown fields."""
    if isinstance(value, Mapping):
        return {"pairs": [[as_json(key), as_json(item)] for key, item in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        options = {name: _pack(item) for name, item in shown_fields(value).items()}
        return {"solver": type(value).__name__, "options": options}
    return as_json(value)


def restore_estimator(expect: Expect, task: Task, packed: Any) -> Any:
    """The unfitted estimator, its parameters valid.

    No prediction depends on the solver or on parameters of later versions: if they are unknown they are left out.
    """
    params = _unpack(expect, task, packed)
    weights = params.get("class_weight")
    expect.that(weights is None or isinstance(weights, dict) or weights == "balanced", "class weights or 'balanced'")
    for key in ("fit_intercept", "certify"):
        expect.that(isinstance(params.get(key, True), bool), f"true or false as {key!r}")
    if "solver" in params:
        try:
            import_module(task.solvers_module).resolve(params["solver"])
        except (ValueError, TypeError):
            del params["solver"]
    known = task.make_estimator().get_params()
    estimator = task.make_estimator(**{key: value for key, value in params.items() if key in known})
    try:
        estimator._check_params()
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{expect.name}: {str(error)[:200]}") from None
    return estimator


def _unpack(expect: Expect, task: Task, packed: Any) -> dict[str, Any]:
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


def _solver(task: Task, packed: Mapping[str, Any]) -> Any:
    """The solver object, by name among those of the package; None (the default) if it is unknown.

    An option may be a solver itself; one without a value has its default.
    """
    solvers = import_module(task.solvers_module)
    name, options = packed.get("solver"), packed.get("options")
    kind = vars(solvers).get(name) if isinstance(name, str) and name[:1].isupper() else None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(options, dict)):
        return None
    values = {key: _solver(task, value) if isinstance(value, dict) else value for key, value in options.items()}
    try:
        return kind(**{key: value for key, value in values.items() if value is not None})
    except (TypeError, ValueError):
        return None


def pack_classes(classes: Array) -> dict[str, Any]:
    values = classes.tolist()
    if classes.dtype.kind in _CLASS_KINDS:
        return {"dtype": classes.dtype.newbyteorder("<").str, "values": values}
    if classes.dtype.kind in "OT" and all(isinstance(value, str) for value in values):
        return {"dtype": "O", "values": values}
    raise ModelFileError(f"labels of dtype {classes.dtype} cannot be written; expected numbers or strings")


def unpack_classes(expect: Expect, packed: Any, *, ordered: bool) -> Array:
    """The classes with their dtype, checked to be ascending if `ordered`, otherwise distinct."""
    expect.that(isinstance(packed, dict) and isinstance(packed.get("values"), list), "a list of classes")
    values, kind = packed["values"], packed.get("dtype")
    letter = kind.lstrip("<|")[:1] if isinstance(kind, str) else ""
    expect.that(letter != "" and letter in _CLASS_KINDS + "O", "a dtype of the classes")
    of_kind = {"b": bool, "i": int, "u": int, "f": float}.get(letter, str)
    expect.that(all(type(value) is of_kind for value in values), f"classes of dtype {kind[:20]!r}")
    if of_kind is str:
        longest = max(map(len, values), default=0)
        expect.that(longest * len(values) <= _MAX_TEXT, "shorter class names")
    try:
        # The stated width of a string dtype is ignored: NumPy determines it from the values.
        dtype = np.dtype(object if kind == "O" else str if of_kind is str else kind)
        classes = np.array(values, dtype=dtype.newbyteorder("="))
    except (TypeError, ValueError, OverflowError):
        classes = np.empty(0)
    line = classes if ordered or not len(classes) else np.sort(classes)
    ascending = len(classes) >= 2 and bool(np.all(line[:-1] < line[1:]))
    expect.that(ascending, "two or more classes in ascending order" if ordered else "two or more different classes")
    return classes
