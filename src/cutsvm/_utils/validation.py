"""Checks of parameters, data and weights; errors state what was given and what is expected."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Vector

_CHUNK = 1 << 17  # labels processed at a time: they and what is computed from them fit the cache


def positive(name: str, value: Any) -> None:
    """Raise unless `value` is a finite real number above 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 < _as_float(value) < np.inf:
        raise ValueError(f"{name}={value!r}: expected a finite number above 0")


def _as_float(value: Any) -> float:
    """The number as a float; infinity for an integer that no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def not_negative(name: str, value: Any) -> None:
    """Raise unless `value` is a finite real number, 0 or more."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= _as_float(value) < np.inf:
        raise ValueError(f"{name}={value!r}: expected a finite number, 0 or more")


def whole(name: str, value: Any, *, least: int) -> None:
    """Raise unless `value` is an integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name}={value!r}: expected a whole number, at least {least}")


def finite(name: str, value: Any) -> None:
    """Raise unless `value` is a finite real number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(_as_float(value)):
        raise ValueError(f"{name}={value!r}: expected a finite number")


def share(name: str, value: Any) -> None:
    """Raise unless `value` is a number from 0 to 1."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= _as_float(value) <= 1.0:
        raise ValueError(f"{name}={value!r}: expected a number from 0 to 1")


def inner_share(name: str, value: Any) -> None:
    """Raise unless `value` is a number between 0 and 1, without these."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 < _as_float(value) < 1.0:
        raise ValueError(f"{name}={value!r}: expected a number between 0 and 1, and neither of them")


def square(X: Any) -> None:
    """Raise unless X is square."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X.shape == {X.shape}: expected a square matrix, the kernel values of the training rows with each other"
        )


def one_of(name: str, value: Any, choices: Sequence[str], other: str = "") -> None:
    """Raise unless `value` is one of the choices; other: what else is legal."""
    if not isinstance(value, str) or value not in choices:
        expected = ", ".join(map(repr, choices)) + (f", or {other}" if other else "")
        raise ValueError(f"{name}={value!r}: expected one of {expected}")


def flags(settings: Any) -> None:
    """Raise unless all fields of a dataclass that are declared as bool are True or False, or 1 or 0."""
    for field in dataclasses.fields(settings):
        if field.type in (bool, "bool"):
            value = getattr(settings, field.name)
            if not isinstance(value, (bool, np.bool_)) and not (isinstance(value, Integral) and value in (0, 1)):
                raise ValueError(f"{field.name}={value!r}: expected True or False")


def distinct(y: Array, weights: Vector | None = None) -> Array:
    """np.unique(y[weights > 0]); for two distinct numbers without a sort."""
    few: Array = np.unique(y[:1000] if weights is None else y[:1000][weights[:1000] > 0.0])
    for part in parts(len(y)):
        some = y[part] if weights is None else y[part][weights[part] > 0.0]
        known = len(few) == 2 and y.dtype.kind in "iuf"
        if known and sum(np.count_nonzero(some == label) for label in few) == len(some):
            continue
        few = np.union1d(few, some)
    return np.asarray(few)


def parts(n: int) -> Iterator[slice]:
    """Slices of the rows that are small enough for the cache."""
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))


def absolute_sum(values: Vector) -> float:
    """sum |values_i|. That of BLAS depends in its last bits on where in memory the values are."""
    return sum((float(np.abs(values[part]).sum()) for part in parts(len(values))), start=0.0)


def negate(weights: Vector, y: Array, positive: Any) -> None:
    """weights_i = -weights_i where y_i is not `positive`, in blocks that fit the cache."""
    for start in range(0, len(y), 1 << 16):
        block = slice(start, start + (1 << 16))
        np.copysign(weights[block], (y[block] == positive) - 0.5, out=weights[block])


def whole_numbers(labels: Array) -> bool:
    """Whether all labels are whole numbers."""
    return labels.dtype.kind in "iub" or (labels.dtype.kind == "f" and bool(np.all(labels == np.rint(labels))))


def check_numeric(y: Array) -> None:
    """Raise unless the labels are finite numbers: text would be ordered alphabetically."""
    if y.dtype.kind not in "iufb":
        raise ValueError(f"y has dtype {y.dtype}: expected numbers")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"y[{int(np.argmin(np.isfinite(y)))}] is {y[np.argmin(np.isfinite(y))]}: expected numbers")


def refuse_outputs(y: Any) -> None:
    """Raise for several targets per row."""
    shape = np.asarray(y).shape
    if len(shape) > 1 and shape[1] > 1:
        raise ValueError(
            f"y has shape {shape}: one target per row expected; sklearn.multioutput.MultiOutputRegressor fits a model "
            "for each of several (y should be a 1d array)"
        )


def refuse_lazy(X: Any) -> None:
    """Raise for a lazy frame, which has no values yet, and an Arrow table, which has no array interface."""
    kind = type(X)
    if kind.__name__ == "LazyFrame":
        raise TypeError(
            "X is a LazyFrame, which has no values yet: call .collect() first; or to train have the labels in a "
            "column, and leave y out"
        )
    if kind.__module__.startswith("pyarrow") and hasattr(X, "to_pandas"):
        raise TypeError(
            "X is a PyArrow table: call .to_pandas() first; or to train have the labels in a column, and leave y out"
        )


def csr_is_sorted(values: Array, columns: Array, pointers: Array, shape: tuple[int, int], threads: int = 1) -> bool:
    """Whether the column indices of every row increase; ValueError if the arrays are not CSR of this shape.

    Kernels and SciPy read the matrix without further checks, so every input is checked here first.
    """
    fits = values.ndim == columns.ndim == pointers.ndim == 1 and len(values) == len(columns)
    if not fits or columns.dtype.kind not in "iu" or pointers.dtype.kind not in "iu":
        raise ValueError("expected CSR: three vectors, column indices and row pointers whole numbers, one value each")
    if len(pointers) != shape[0] + 1:
        raise ValueError(f"expected {shape[0] + 1:,} row pointers for {shape[0]:,} rows, found {len(pointers):,}")
    wide: Any = np.int32 if columns.dtype == pointers.dtype == np.int32 else np.int64
    if max(_largest(columns), _largest(pointers)) > np.iinfo(wide).max:
        valid = in_order = False
    else:
        columns, pointers = (np.ascontiguousarray(array, dtype=wide) for array in (columns, pointers))
        valid, in_order = core.valid_csr(columns, pointers, shape[1], threads)
    if not valid:
        raise ValueError(
            f"X has a column index outside 0..{shape[1] - 1}, or row pointers that do not rise from 0 to the number "
            "of stored values"
        )
    return in_order


def _largest(numbers: Array) -> int:
    return int(numbers.max(initial=0)) if numbers.dtype == np.uint64 else 0


def check_sparse(X: Any) -> None:
    """Raise for a sparse matrix, of any format of SciPy, whose conversion to CSR would read beyond its arrays."""
    kind = getattr(X, "format", None)
    if kind not in ("csr", "csc", "bsr", "coo") or len(X.shape) != 2:
        return
    rows, columns = X.shape
    if kind == "coo":
        inside = [len(at) == len(X.data) and _within(at, n) for at, n in ((X.row, rows), (X.col, columns))]
        if not all(inside):
            raise ValueError(f"X has an entry outside its shape {X.shape}")
        return
    if kind == "csc":
        rows, columns = columns, rows
    values = X.data
    if kind == "bsr":
        high, wide = X.blocksize
        rows, columns, values = rows // high, columns // wide, values[:, 0, 0] if values.size else X.indices
    csr_is_sorted(values, X.indices, X.indptr, (rows, columns))


def _within(numbers: Array, n: int) -> bool:
    return not len(numbers) or bool(0 <= numbers.min() <= numbers.max() < n)


def refuse_non_finite(X: Any, threads: int = 1) -> None:
    """Raise for NaN and infinity, with the first three positions; the structure of CSR is checked first."""
    if hasattr(X, "indices"):
        csr_is_sorted(X.data, X.indices, X.indptr, X.shape, threads)
    values = X.data if hasattr(X, "indices") else X
    flat = values.ravel(order="K")
    if np.shares_memory(flat, values) and core.all_finite(flat, threads):
        return
    places = non_finite_places(values, *((X.indices, X.indptr) if hasattr(X, "indices") else ()))
    if not len(places):
        return
    kind = "NaN" if np.isnan(values).any() else "infinity"
    shown = ", ".join(f"row {row} column {column}" for row, column in places[:3])
    more = f" and {len(places) - 3} more places" if len(places) > 3 else ""
    raise ValueError(f"Input X contains {kind}: {shown}{more} (counted from 0)")


def non_finite_places(values: Array, columns: Array | None = None, pointers: Array | None = None) -> Array:
    """(row, column) of each value that is not finite, of a matrix or with columns and pointers of CSR."""
    places = np.argwhere(~np.isfinite(values))
    if columns is None or pointers is None:
        return places
    entries = places[:, 0]
    return np.column_stack([np.searchsorted(pointers, entries, side="right") - 1, columns[entries]])


def float_type(X: Any) -> Any:
    """The dtypes for `validate_data`: float32 for small integers, otherwise float64 or float32 as given."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and dtype.itemsize <= 2:
        return np.float32
    return [np.float64, np.float32]


def sample_weights(weights: Any, n: int, out: Vector | None = None) -> Vector:
    """One finite weight >= 0 per row, not all 0, in `out`; None: all are 1."""
    values = np.empty(n) if out is None else out
    if weights is None:
        values.fill(1.0)
        return values
    known = isinstance(weights, np.ndarray) and weights.dtype.kind in "iuf"
    given = weights if known else np.array(weights, dtype=np.float64)
    if given.ndim == 0:
        given = np.broadcast_to(given, n)
    if given.shape != (n,):
        raise ValueError(f"sample_weight.shape == {given.shape}, expected {(n,)}!")
    some = False
    for part in parts(n):
        mine = values[part]
        mine[:] = given[part]
        wrong = np.flatnonzero(~(np.isfinite(mine) & (mine >= 0.0)))
        if len(wrong):
            row = part.start + wrong[0]
            raise ValueError(f"sample_weight[{row}] is {values[row]}: expected finite weights, 0 or more")
        some |= bool(mine.any())
    if not some:
        raise ValueError("sample_weight is zero for every row: there are no rows to fit")
    return values


def apply_class_weights(weights: Vector, class_weight: Any, classes: Array, y: Array, named: Array) -> None:
    """Multiply the weights by the factors of their classes: None, "balanced" or a dict with keys from `named`."""
    if class_weight is None:
        return
    factors: dict[Any, float] = {}
    if isinstance(class_weight, str) and class_weight == "balanced":
        sums = [sum(weights[part][y[part] == label].sum() for part in parts(len(y))) for label in classes]
        factors = {name: sum(sums) / (len(classes) * own) for name, own in zip(named.tolist(), sums, strict=True)}
    elif hasattr(class_weight, "items"):
        factors = dict(class_weight)
    else:
        raise ValueError(f'class_weight={class_weight!r}: expected None, "balanced" or a dict')
    for label, factor in factors.items():
        if not np.any(named == label):
            raise ValueError(f"class_weight names {label!r}, which is not a class; the classes are {named.tolist()}")
        positive(f"class_weight[{label!r}]", factor)
        mine = classes[named == label][0]
        for part in parts(len(y)):
            weights[part][y[part] == mine] *= factor


def scale_spread(X: Any) -> float:
    """max_j a_j / min_j a_j with a_j = max_i |x_ij|, over the features with a_j > 0."""
    if hasattr(X, "spread"):  # of a store it is known
        return float(X.spread)
    if hasattr(X, "indices"):
        size = np.zeros(X.shape[1])
        np.maximum.at(size, X.indices, np.abs(X.data))
    else:
        size = np.maximum(X.max(axis=0), -X.min(axis=0))
    return spread_of_sizes(size)


def spread_of_sizes(sizes: Array) -> float:
    """The largest of the sizes over the smallest above 0; 1 if there is none."""
    sizes = sizes[sizes > 0.0]
    # In float64: the ratio of two float32 may overflow float32, and that of two float64 float64.
    return min(float(sizes.max()) / float(sizes.min()), sys.float_info.max) if len(sizes) else 1.0
