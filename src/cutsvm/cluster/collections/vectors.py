"""Columns of Arrow tables that hold a vector in each row: lists of numbers, tensors of Ray, vectors of Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm.io.formats.arrow_values import arrow, numbers

__all__ = ["matrix_of", "value_type_of"]

# Fields of a vector of Spark as it is stored: type 0 is sparse, 1 is dense.
SPARK_VECTOR = ("type", "size", "indices", "values")


def value_type_of(dtype: Any) -> Any:
    """The type of the numbers in a column of vectors; None for another column."""
    pa = arrow("a table")
    if is_spark_vector(dtype):
        return pa.float64()
    if isinstance(dtype, pa.BaseExtensionType):  # a tensor
        dtype = dtype.storage_type
    lists = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    return dtype.value_type if any(is_list(dtype) for is_list in lists) else None


def is_spark_vector(dtype: Any) -> bool:
    types = arrow("a table").types
    return bool(types.is_struct(dtype)) and [field.name for field in dtype] == list(SPARK_VECTOR)


def matrix_of(column: Any, own: str, name: str, first: int) -> Any:
    """The vectors of a column below each other: an array, or a CSR matrix if one of them is sparse.

    own: the name of the column; name: of the part; first: the number of its first row, for messages.
    """
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(f"{name}: row {row}, column {own!r}: expected a vector, found none")
    if not len(column):
        return np.empty((0, 0))
    if not is_spark_vector(column.type):
        column = column.storage if isinstance(column.type, arrow("a table").BaseExtensionType) else column
        lengths = _lengths(column)
        _check_lengths(lengths, own, name, first)
        return numbers(column.flatten()).reshape(len(column), -1)
    kinds = column.field("type").to_numpy(zero_copy_only=False)
    values = column.field("values")
    entries = _lengths(values)
    sizes = np.where(kinds == 0, column.field("size").fill_null(0).to_numpy(zero_copy_only=False), entries)
    _check_lengths(sizes, own, name, first)
    flat = numbers(values.flatten())
    if (kinds == 1).all():
        return flat.reshape(len(column), -1)
    places = np.empty(len(flat), dtype=np.int32)
    is_sparse = np.repeat(kinds == 0, entries)
    places[is_sparse] = column.field("indices").flatten().to_numpy(zero_copy_only=False)
    pointers = np.append(0, np.cumsum(entries))
    dense = np.flatnonzero(~is_sparse)
    places[dense] = dense - np.repeat(pointers[:-1], entries)[dense]
    return sparse.csr_matrix((flat, places, pointers), shape=(len(column), int(sizes[0])))


def _lengths(column: Any) -> Any:
    """The number of values of each vector."""
    if arrow("a table").types.is_fixed_size_list(column.type):
        return np.full(len(column), column.type.list_size)
    return column.value_lengths().to_numpy(zero_copy_only=False)


def _check_lengths(lengths: Any, own: str, name: str, first: int) -> None:
    other = np.flatnonzero(lengths != lengths[0])
    if len(other):
        raise DataError(
            f"{name}: row {first + int(other[0])}, column {own!r}: a vector of {lengths[other[0]]} numbers, expected "
            f"{lengths[0]}"
        )
