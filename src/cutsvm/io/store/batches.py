"""Batches of rows that sources yield, and their checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from cutsvm._native import core
from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm._utils.validation import check_sparse, csr_is_sorted, non_finite_places

if TYPE_CHECKING:
    from cutsvm.io.preprocessing import Preprocessing

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: a dense or CSR matrix, and labels, weights and queries if the source has them."""

    X: Any
    y: Array | None
    weights: Array | None = None
    qid: Array | None = None
    base: int = 0  # the index of the first column as known so far; it may change from 1 to 0
    kept: Any = None  # a pyarrow.RecordBatch of the columns that `ColumnSpec.keep` names, if it names any


class ReadAgain(Exception):  # noqa: N818  it is no error
    """A source has met what it has to know from the start: its rows so far are void, and it is to be read again."""


class Source:
    """Yields batches of rows. Its attributes are final after the last batch."""

    name: str
    feature_names: list[str] | None = None
    zero_based: bool | None = None  # None: the source has columns and no indices
    share: float | None = None  # that has been read, the last batch included; None: the total is unknown
    preprocessing: Preprocessing | None = None  # of the columns of a table; None: the source has numbers only

    def __iter__(self) -> Iterator[Batch]:
        raise NotImplementedError

    def check_intact(self) -> None:
        """Raise DataError if rows of a batch changed on disk while they were used."""

    def where(self, row: int) -> tuple[str, int]:
        """The name of the file with a row, and the number of the row in it, for messages."""
        return self.name, row

    def missing(self) -> Mapping[str, int]:
        """How many values of each column of a table are missing so far; columns without any are left out."""
        return {}

    def summary(self) -> str:
        """What was done to the columns of a table, in a line; nothing if the values are as they were."""
        return ""


def is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def value_type(dtype: DTypeLike | None, given: Any) -> np.dtype[Any]:
    """float32 or float64: the dtype requested, or the smaller that holds the values given."""
    if dtype is not None:
        wanted = np.dtype(dtype)
        if wanted not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float64 or float32, got {wanted}")
        return wanted
    kind = np.dtype(given)
    narrow = kind == np.float32 or (kind.kind in "iub" and kind.itemsize <= 2) or kind == np.float16
    return np.dtype(np.float32 if narrow else np.float64)


def checked(batch: Batch, dtype: np.dtype[Any], source: Source, first: int) -> Batch:
    """The batch with values of this dtype, CSR in canonical form; first: the number of its first row, for messages."""
    X = batch.X
    if is_sparse(X):
        X = as_csr(X, source.name)
        with np.errstate(over="ignore"):
            X = X.astype(dtype, copy=False)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = _numbers(X, dtype, "numbers", source, first)
        if X.ndim != 2:
            raise DataError(f"{source.name}: expected a matrix, rows x features, found the shape {X.shape}")
    rows = X.shape[0]
    _refuse_non_finite(X, source, first, batch.base)
    y = None if batch.y is None else _labels(batch.y, rows, source, first)
    weights, qid = _weights(batch.weights, rows, source, first), checked_queries(batch.qid, rows, source, first)
    return Batch(X, y, weights, qid, kept=batch.kept)


def _labels(labels: Any, rows: int, source: Source, first: int) -> Array:
    y = _numbers_or_text(_column(labels, rows, "labels", source, first), "labels", source, first)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        place = int(np.flatnonzero(~np.isfinite(y))[0])
        file, row = source.where(first + place)
        raise DataError(f"{file}: row {row}: expected a label, found {y[place]}")
    return y


def too_wide(name: str, index: int) -> DataError:
    """The error for an index beyond the 32 bits of a store's columns."""
    return DataError(
        f"{name}: index {index} is too large for a store, expected at most {INT32_MAX}; open_dataset reads such files "
        "into memory, with the features that occur"
    )


def as_csr(X: Any, name: str) -> Any:
    """A sparse matrix of numbers as CSR, its structure checked."""
    if X.dtype.kind not in "iufb":
        raise DataError(f"{name}: expected numbers, found values of type {X.dtype}")
    try:
        check_sparse(X)
        X = X.tocsr()
        csr_is_sorted(X.data, X.indices, X.indptr, X.shape)
    except ValueError as error:
        raise DataError(f"{name}: not a valid sparse matrix: {error}") from None
    return X


def _numbers(values: Any, dtype: DTypeLike, what: str, source: Source, first: int) -> Array:
    """An array of numbers of this dtype; what: is expected, for messages."""
    try:
        values = np.asarray(values)
        if values.dtype.kind not in "iufbO":
            raise ValueError(f"values of type {values.dtype}")
        with np.errstate(over="ignore"):  # infinities are refused later, with row and column
            numbers: Array = values.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"{source.name}: from row {first} on: expected {what}, found {error}") from None
    return numbers


def _column(values: Any, rows: int, what: str, source: Source, first: int) -> Array:
    """An array of one value per row."""
    column = np.asarray(values)
    if column.shape != (rows,):
        raise DataError(f"{source.name}: from row {first} on, {rows} rows but {what} of shape {column.shape}")
    return column


def _refuse_non_finite(X: Any, source: Source, first: int, base: int) -> None:
    values = X.data if is_sparse(X) else X
    flat = values.reshape(-1) if values.flags.c_contiguous else values.ravel(order="K")
    if core.all_finite(np.ascontiguousarray(flat), 1):
        return
    row, column = non_finite_places(values, *((X.indices, X.indptr) if is_sparse(X) else ()))[0].tolist()
    value, names = values[~np.isfinite(values)][0], source.feature_names
    where = f"column {names[column]!r}" if names else f"column {column - base}"
    file, row = source.where(first + row)
    raise DataError(f"{file}: row {row}, {where}: expected a finite number, found {value} (counted from 0)")


def _weights(weights: Array | None, rows: int, source: Source, first: int) -> Array | None:
    if weights is None:
        return None
    values = _column(_numbers(weights, np.float64, "weights", source, first), rows, "weights", source, first)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
    if len(wrong):
        file, row = source.where(first + int(wrong[0]))
        raise DataError(f"{file}: row {row}: expected a finite weight, 0 or more, found {values[wrong[0]]}")
    return values


def _numbers_or_text(values: Array, what: str, source: Source, first: int) -> Array:
    """Labels or queries as numbers that fit int64 or float64, or as text."""
    kind = values.dtype.kind
    try:
        if kind == "S":
            return np.char.decode(values, "utf-8")
        if kind == "U" and len(values):
            native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
            if int(native.view(np.uint32).max()) > sys.maxunicode:
                raise ValueError("bytes that are not characters")
    except ValueError as error:
        raise DataError(f"{source.name}: from row {first} on: expected {what} in UTF-8, found {error}") from None
    if kind not in "iufbUO":
        raise DataError(f"{source.name}: {what} of type {values.dtype}, expected numbers or text")
    if values.dtype == np.uint64 and values.max(initial=0) > np.iinfo(np.int64).max:
        row = int(np.argmax(values))
        raise DataError(f"{source.name}: row {first + row}: {what} up to 2^63 - 1 expected, found {values[row]}")
    return values


def checked_queries(qid: Array | None, rows: int, source: Source, first: int) -> Array | None:
    """Queries as whole numbers or as text."""
    if qid is None:
        return None
    values = _numbers_or_text(_column(qid, rows, "queries", source, first), "queries", source, first)
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~(np.abs(values) < 2.0**63) | (values != np.rint(values)))
        if len(wrong):
            found = values[wrong[0]]
            raise DataError(
                f"{source.name}: row {first + int(wrong[0])}: expected a whole number as query, found {found}"
            )
        return values.astype(np.int64)
    return values


class Codes:
    """Codes 0, 1, ... for texts, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def encode(self, texts: Array) -> NDArray[np.int64]:
        distinct, inverse = np.unique(texts.astype(str), return_inverse=True)
        known = np.array([self._codes.setdefault(text, len(self._codes)) for text in distinct.tolist()], dtype=np.int64)
        return known[inverse]

    @property
    def texts(self) -> Sequence[str]:
        return list(self._codes)
