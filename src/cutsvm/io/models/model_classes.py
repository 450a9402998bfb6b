"""The classes of a model, to its header and back, with their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cutsvm.io.models.model_format import Expect, ModelFileError

__all__ = ["pack_classes", "unpack_classes"]

_CLASS_KINDS = "biufU"
# An array of texts is as wide as its longest one: a short file could state a very large array.
_MAX_TEXT = 1 << 26


def pack_classes(classes: npt.NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    if classes.dtype.kind in _CLASS_KINDS:
        return {"dtype": classes.dtype.newbyteorder("<").str, "values": values}
    if classes.dtype.kind in "OT" and all(isinstance(value, str) for value in values):
        return {"dtype": "O", "values": values}
    raise ModelFileError(f"labels of dtype {classes.dtype} cannot be written; expected numbers or strings")


def unpack_classes(expect: Expect, packed: Any, *, ordered: bool) -> npt.NDArray[Any]:
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
