"""Values of Arrow's columns as numbers or as codes of texts; a missing one is NaN or -1."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cutsvm._utils.types import Array

Kind = Literal["number", "date", "text"]
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def arrow(what: str, module: str = "pyarrow") -> Any:
    """The library; what: needs it, for the message if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"{what} needs the package {package}: pip install cutsvm[files]") from None


def kind_of(dtype: Any) -> Kind | None:
    """What a column of this Arrow type holds; None: neither numbers, nor dates or times, nor text."""
    types = arrow("a table").types
    if types.is_dictionary(dtype):
        dtype = dtype.value_type
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_null(dtype):  # no value at all
        return "number"
    if types.is_temporal(dtype) and not types.is_interval(dtype):
        return "date"
    return "text" if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype) else None


def is_empty(dtype: Any) -> bool:
    """Whether a column of this Arrow type has no value, whatever it would hold."""
    return bool(arrow("a table").types.is_null(dtype))


def is_narrow(dtype: Any) -> bool:
    """Whether float32 holds every value of a column of numbers of this Arrow type."""
    types = arrow("a table").types
    short = (types.is_int8, types.is_int16, types.is_uint8, types.is_uint16, types.is_boolean, types.is_float16)
    return bool(types.is_float32(dtype)) or any(of_kind(dtype) for of_kind in short)


def numbers(column: Any) -> Array:
    """The values of a column of numbers, dates or times; dates and times in days, missing ones as NaN."""
    pa = arrow("a table")
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    dtype = column.type
    if types.is_null(dtype):
        return np.full(len(column), np.nan)
    if types.is_boolean(dtype):
        column = column.cast(pa.uint8())
    elif types.is_decimal(dtype):
        column = column.cast(pa.float64())
    elif types.is_temporal(dtype):
        unit = 1 if types.is_date32(dtype) else _PER_DAY["ms" if types.is_date64(dtype) else dtype.unit]
        whole = column.view(pa.int32() if dtype.bit_width == 32 else pa.int64())
        return np.asarray(whole.to_numpy(zero_copy_only=False) / unit, dtype=np.float64)
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def texts(column: Any) -> Any:
    """A column of texts, or of what can be written as text, as a dictionary of texts and codes."""
    pa = arrow("a table")
    if not pa.types.is_dictionary(column.type):
        plain = column if pa.types.is_string(column.type) else column.cast(pa.large_string())
        column = plain.dictionary_encode()
    return column


def words(column: Any) -> list[str]:
    """The distinct texts of a column, without missing ones."""
    pa = arrow("a table")
    if pa.types.is_dictionary(column.type):
        found = column.unique().dictionary_decode()
    else:
        found = (column if pa.types.is_string(column.type) else column.cast(pa.large_string())).unique()
    return [str(word) for word in found.to_pylist() if word is not None]


def codes(column: Any, places: Mapping[str, int]) -> tuple[NDArray[np.int64], int]:
    """The place of each text, -1 for missing and unknown ones, and how many are unknown."""
    column = texts(column)
    known = [None if word is None else str(word) for word in column.dictionary.to_pylist()]
    unknown = -2
    table = np.array([-1 if word is None else places.get(word, unknown) for word in known] + [-1], dtype=np.int64)
    found = table[column.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)]
    unseen = int(np.count_nonzero(found == unknown)) if (table == unknown).any() else 0
    return np.maximum(found, -1), unseen


def labels(column: Any) -> Array:
    """Labels or queries: numbers, or an array of texts; there must be no missing ones."""
    pa = arrow("a table")
    if kind_of(column.type) == "text":
        encoded = texts(column)
        if encoded.dictionary.null_count:  # as text: the caller has refused missing ones
            return np.asarray(column.cast(pa.string()).to_pylist(), dtype=str)
        found: Array = np.asarray(encoded.dictionary.to_pylist(), dtype=str)
        return found[encoded.indices.to_numpy(zero_copy_only=False)] if len(found) else found
    if pa.types.is_boolean(column.type):
        plain: Array = column.to_numpy(zero_copy_only=False)
        return plain
    return numbers(column)
