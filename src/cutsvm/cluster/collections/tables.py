"""Tables as parts: a pandas frame or an Arrow table becomes X, labels, weights and queries by the names of its columns.

Columns are numbers or truth values; a column of an Arrow table may also hold vectors of numbers, all of one length.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.cluster.collections.base import ArrayPart, arrays_of
from cutsvm.cluster.collections.vectors import matrix_of, value_type_of
from cutsvm.io.columns import ColumnNames, ColumnSpec
from cutsvm.io.formats.arrow_values import arrow, is_narrow, kind_of, labels, numbers
from cutsvm.io.store.batches import Batch, value_type

__all__ = [
    "ArrowPart",
    "Columns",
    "arrow_batch",
    "check_arrow_schema",
    "check_pandas_types",
    "frame_part",
    "is_pandas",
    "table_part",
    "with_text_names",
]


@dataclass(frozen=True)
class Columns:
    """Which columns are what; None: there is none, or y comes from elsewhere."""

    features: tuple[str, ...]
    label: str | None = None
    weight: str | None = None
    qid: str | None = None

    @classmethod
    def of(cls, names: ColumnNames) -> Columns:
        return cls(tuple(names.features), names.label, names.weight, names.qid)

    @property
    def read(self) -> list[str]:
        return [*self.features, *(name for name in (self.label, self.weight, self.qid) if name is not None)]


def refused(place: str, column: str, holds: str) -> DataError:
    """The error for a column that is no feature."""
    return DataError(
        f"{place}: column {column!r} holds {holds}, expected numbers; leave it out, or encode it first, as "
        f"dask.dataframe.get_dummies(frame.categorize([{column!r}])) or cutsvm.convert do"
    )


# pandas


def is_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def with_text_names(frame: Any) -> Any:
    """The frame, of pandas or Dask, with the names of its columns as text, which those of a model are."""
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.rename(columns={name: str(name) for name in frame.columns if not isinstance(name, str)})


def check_pandas_types(dtypes: Mapping[str, Any], features: Sequence[str], place: str) -> bool:
    """Whether float32 holds the values of all features; DataError for a column that holds no numbers."""
    types = sys.modules["pandas"].api.types
    narrow = True
    for name in features:
        dtype = dtypes[name]
        if isinstance(dtype, types.CategoricalDtype):
            raise refused(place, name, "categories")
        if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
            raise refused(place, name, "dates")
        if not (types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype)) or types.is_complex_dtype(dtype):
            text = types.is_string_dtype(dtype) and not isinstance(dtype, np.dtype)
            raise refused(place, name, "text" if text else f"values of type {dtype}")
        narrow &= isinstance(dtype, np.dtype) and value_type(None, dtype) == np.float32
    return narrow


def frame_part(frame: Any, columns: Columns, name: str, extra: Sequence[Any] = (None, None, None)) -> ArrayPart:
    """A part from a pandas frame. extra: y, weights and queries that are no columns of it, or None."""
    absent = [own for own in columns.read if own not in frame.columns]
    if absent:
        raise DataError(f"{name}: there is no column {absent[0]!r}")
    narrow = check_pandas_types(frame.dtypes, columns.features, name)
    dtype = np.float32 if narrow else np.float64
    X = frame[list(columns.features)].to_numpy(dtype=dtype, na_value=np.nan)
    named = (columns.label, columns.weight, columns.qid)
    own = [given if key is None else frame[key] for key, given in zip(named, extra, strict=True)]
    return arrays_of((X, *own), name, columns.features)


# Arrow


def check_arrow_schema(schema: Any, columns: Columns, place: str) -> tuple[int | None, bool]:
    """The number of features, if no column holds vectors, and whether float32 holds their values."""
    types, narrow, vectors = arrow("a table").types, True, False
    for name in columns.features:
        dtype = schema.field(name).type
        inner = value_type_of(dtype)
        vectors |= inner is not None
        dtype = dtype if inner is None else inner
        if types.is_dictionary(dtype) and kind_of(dtype) != "number":
            raise refused(place, name, "categories")
        kind = kind_of(dtype)
        if kind != "number":
            raise refused(place, name, {"text": "text", "date": "dates", None: f"values of type {dtype}"}[kind])
        narrow &= not types.is_dictionary(dtype) and is_narrow(dtype)
    return (None if vectors else len(columns.features)), narrow


def arrow_batch(table: Any, columns: Columns, name: str, first: int = 0, dtype: Any = None) -> Batch:
    """Rows of an Arrow table or batch. first: the number of the first one, for messages."""
    _, narrow = check_arrow_schema(table.schema, columns, name)
    dtype = dtype or (np.float32 if narrow else np.float64)
    X = _features(table, columns.features, name, first, np.dtype(dtype))
    y, weights, qid = (
        None if own is None else _labels(_whole(table.column(own)), own, name, first)
        for own in (columns.label, columns.weight, columns.qid)
    )
    return Batch(X, y, weights, qid)


def _features(table: Any, features: Sequence[str], name: str, first: int, dtype: np.dtype[Any]) -> Any:
    """The columns side by side: an array, or a CSR matrix if there are sparse vectors."""
    found: list[Any] = []
    for own in features:
        column = _whole(table.column(own))
        vectors = value_type_of(column.type) is not None
        found.append(matrix_of(column, own, name, first) if vectors else numbers(column)[:, None])
    if any(map(sparse.issparse, found)):
        X = found[0] if len(found) == 1 else sparse.hstack([sparse.csr_matrix(piece) for piece in found], format="csr")
        return X.astype(dtype, copy=False)
    if len(found) == 1:
        return found[0].astype(dtype, copy=False)
    X, begin = np.empty((table.num_rows, sum(piece.shape[1] for piece in found)), dtype=dtype), 0
    for piece in found:
        X[:, begin : begin + piece.shape[1]] = piece
        begin += piece.shape[1]
    return X


def _whole(column: Any) -> Any:
    """A column as one array."""
    pa = arrow("a table")
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _labels(column: Any, own: str, name: str, first: int) -> Array:
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(f"{name}: row {row}, column {own!r}: expected a value, found none")
    return labels(column)


@dataclass(frozen=True, eq=False)
class ArrowPart:
    """Rows of an Arrow table."""

    table: Any
    columns: Columns
    name: str

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def feature_names(self) -> Sequence[str] | None:
        """None if a column holds vectors."""
        known, _ = check_arrow_schema(self.table.schema, self.columns, self.name)
        return None if known is None else self.columns.features

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
        last = self.rows if end is None else end
        yield arrow_batch(self.table.slice(begin, last - begin), self.columns, self.name, begin)


# Parts whose columns are found when they are read


def table_part(value: Any, name: str, spec: ColumnSpec) -> ArrayPart | ArrowPart:
    """A pandas frame or an Arrow table as a part."""
    if is_pandas(value):
        frame = with_text_names(value)
        return frame_part(frame, Columns.of(spec.resolve(name, list(frame.columns))), name)
    columns = Columns.of(spec.resolve(name, value.schema.names))
    return ArrowPart(value, columns, name)
