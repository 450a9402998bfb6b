"""Sources of rows that are arrays: in memory, memory-mapped, in .npy and .npz files, or given block by block."""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.validation import csr_is_sorted
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.files import SourceFile
from cutsvm.io.store.batches import Batch, as_csr, is_sparse

__all__ = ["ArraySource", "BlockSource", "NpySource", "NpzSource"]

Array = NDArray[Any]
CHUNK = 32 << 20  # bytes of rows in a batch, about
# What reading an archive raises: damaged, cut off, encrypted, packed in a way that is not known.
_ZIPPED = (
    zipfile.BadZipFile,
    EOFError,
    ValueError,
    OSError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
)
_LONGEST = 1 << 48  # of an array's sides: one that is empty would pass any test of its length


class ArraySource:
    """A matrix, dense or sparse or a data frame, and one label (weight, query) per row."""

    zero_based: bool | None = None

    def __init__(self, name: str, X: Any, y: Any, *, weights: Any = None, qid: Any = None) -> None:
        self.name = name
        self._frame = hasattr(X, "iloc")
        self.feature_names = [str(column) for column in X.columns] if self._frame else None
        self._X = as_csr(X, name) if is_sparse(X) else X if self._frame else np.asanyarray(X)
        if len(self._X.shape) != 2:
            raise DataError(f"{name}: expected a matrix, rows x features, found the shape {self._X.shape}")
        self._columns = [None if part is None else np.asanyarray(part) for part in (y, weights, qid)]
        for what, part in zip(("labels", "weights", "queries"), self._columns, strict=True):
            if part is not None and part.shape != (self._X.shape[0],):
                raise DataError(f"{name}: {self._X.shape[0]} rows, but {what} of shape {part.shape}")
        self._done = 0

    def __iter__(self) -> Iterator[Batch]:
        n, d = self._X.shape
        per_row = 12 * self._X.nnz // max(n, 1) if is_sparse(self._X) else 8 * d
        step = max(1, CHUNK // max(1, per_row))
        for start in range(0, n, step):
            mine = slice(start, min(n, start + step))
            X = self._X.iloc[mine].to_numpy() if self._frame else self._X[mine]
            y, weights, qid = (None if part is None else part[mine] for part in self._columns)
            assert y is not None
            self._done = mine.stop
            yield Batch(X, y, weights, qid)

    def done(self) -> float:
        return float(self._done / max(1, self._X.shape[0]))


class BlockSource:
    """An iterator of (X, y), (X, y, weights) or (X, y, weights, qid)."""

    zero_based: bool | None = None
    feature_names: list[str] | None = None

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.name, self._blocks = "blocks", blocks

    def __iter__(self) -> Iterator[Batch]:
        for number, block in enumerate(self._blocks):
            if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
                raise DataError(f"block {number}: expected (X, y), (X, y, weights) or (X, y, weights, qid)")
            X, y, *more = block
            if hasattr(X, "iloc") and self.feature_names is None and number == 0:
                self.feature_names = [str(column) for column in X.columns]
            yield Batch(X if is_sparse(X) else np.asarray(X), np.asarray(y), *more)

    def done(self) -> None:
        return None


class NpySource:
    """A .npy file, read some rows at a time; the labels are one of its columns or another such file."""

    zero_based: bool | None = None
    feature_names: list[str] | None = None

    def __init__(self, path: str, columns: ColumnSpec) -> None:
        self.name = path
        self._X = _NpyFile(path)
        if len(self._X.shape) != 2:
            raise DataError(f"{path}: expected a matrix, rows x features, found the shape {self._X.shape}")
        self._columns = [
            self._column(what, column)
            for what, column in (("label", columns.label), ("weight", columns.weight), ("qid", columns.qid))
        ]
        used = {column for column in self._columns if isinstance(column, int)}
        self._features = [column for column in range(self._X.shape[1]) if column not in used] if used else None
        self._done = 0

    def _column(self, what: str, column: str | int | None) -> _NpyFile | int | None:
        """Where the labels (weights, queries) are: a file or a column."""
        rows, width = self._X.shape
        if column is None and what == "label":
            raise DataError(
                f"{self.name}: where are the labels? label= expects the number of a column (0 is the first, -1 the "
                "last) or another .npy file"
            )
        if column is None:
            return None
        if isinstance(column, str) and column.endswith(".npy"):
            file = _NpyFile(column)
            if file.shape != (rows,):
                words = {"label": "labels", "weight": "weights", "qid": "queries"}[what]
                raise DataError(f"{self.name}: {rows} rows, but {words} of shape {file.shape}")
            return file
        number = _number(column)
        if number is None or not -width <= number < width:
            raise DataError(
                f"{self.name}: {what}={column!r}: expected the number of one of the {width} columns or a .npy file"
            )
        return number % width

    def __iter__(self) -> Iterator[Batch]:
        n, d = self._X.shape
        step = max(1, CHUNK // max(1, d * self._X.dtype.itemsize))
        for start in range(0, n, step):
            stop = min(n, start + step)
            X = self._X.rows(start, stop)
            parts = (self._part(column, X, start, stop) for column in self._columns)
            y, weights, qid = parts
            assert y is not None
            self._done = stop
            yield Batch(X if self._features is None else X[:, self._features], y, weights, qid)
        for file in (self._X, *self._columns):
            if isinstance(file, _NpyFile):
                file.close()

    @staticmethod
    def _part(column: _NpyFile | int | None, X: Array, start: int, stop: int) -> Array | None:
        if isinstance(column, _NpyFile):
            return column.rows(start, stop)
        return None if column is None else X[:, column].copy()

    def done(self) -> float:
        return float(self._done / max(1, self._X.shape[0]))


class _NpyFile:
    """The array of a .npy file, of one or two dimensions, read some rows at a time and never mapped."""

    def __init__(self, path: str) -> None:
        self._file = SourceFile(path)
        self._path = path
        self.shape, self._fortran, self.dtype = _header(self._file, path, ".npy file of numbers")
        self._offset = self._file.tell()
        needed, size = self._offset + math.prod(self.shape) * self.dtype.itemsize, self._file.version.size
        if size is not None and needed > size:
            raise DataError(f"{path}: cut short: {size} bytes, expected {needed}")

    def rows(self, start: int, stop: int) -> Array:
        if len(self.shape) == 1 or not self._fortran:
            width = math.prod(self.shape[1:])
            return self._read(start * width, (stop - start) * width).reshape(stop - start, *self.shape[1:])
        n, d = self.shape
        part = np.empty((stop - start, d), dtype=self.dtype, order="F")
        for column in range(d):
            part[:, column] = self._read(column * n + start, stop - start)
        return part

    def _read(self, first: int, count: int) -> Array:
        """`count` values from the one numbered `first` on, in the order of the file."""
        flat = np.empty(count, dtype=self.dtype)
        view, at = flat.view(np.uint8).data, self._offset + first * self.dtype.itemsize
        while len(view):
            read = os.preadv(self._file.fileno(), [view], at)
            if read == 0:
                self._file.version.check()
                raise DataError(f"{self._path}: cut short")
            view, at = view[read:], at + read
        return _plain_bools(flat)

    def close(self) -> None:
        self._file.version.check()
        self._file.close()


# Whatever parsing the header of an array as NumPy does it can raise: a literal, tokens, a dtype.
_HEADER_ERRORS = (ValueError, EOFError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)


def _header(stream: Any, path: str, what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns lie side by side, and dtype of the array in the stream, checked."""
    try:
        version = npy_format.read_magic(stream)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            shape, fortran, dtype = read(stream)
    except _HEADER_ERRORS as error:
        raise DataError(f"{path}: not a {what} ({error})") from None
    if dtype.kind not in "iufbUS" or dtype.itemsize == 0:
        raise DataError(f"{path}: not a {what} (it holds {dtype}, expected numbers or text)")
    if len(shape) > 2 or any(type(side) is not int or not 0 <= side < _LONGEST for side in shape):
        raise DataError(f"{path}: not a {what} (its shape is {shape})")
    return tuple(map(int, shape)), bool(fortran), dtype


def _plain_bools(values: Array) -> Array:
    """Truth values that are 0 or 1, whatever bytes a file has for them."""
    return values.view(np.uint8) != 0 if values.dtype == np.bool_ else values


def _number(column: str | int) -> int | None:
    try:
        return int(column)
    except ValueError:
        return None


class NpzSource:
    """A .npz file with y and X, or y and the parts of a CSR matrix (data, indices, indptr, shape), read as a stream.

    Weights and queries are in it as sample_weight and qid.
    """

    zero_based: bool | None = None
    feature_names: list[str] | None = None

    def __init__(self, path: str, columns: ColumnSpec) -> None:
        self.name = path
        self._file = SourceFile(path)
        if self._file.read(2) != b"PK":  # a zip file may have anything in front; NumPy takes that for something else
            raise DataError(f"{path}: not a .npz file (it does not begin as one)")
        try:
            self._zip = zipfile.ZipFile(self._file)
        except _ZIPPED as error:
            raise DataError(f"{path}: not a .npz file ({error})") from None
        self._members = {name.removesuffix(".npy"): name for name in self._zip.namelist()}
        members = self._members
        self._label = str(columns.label or "y")
        if self._label not in members:
            raise DataError(f"{path}: no array {self._label!r} with the labels; there are {', '.join(sorted(members))}")
        self._sparse = "X" not in members and {"data", "indices", "indptr", "shape"} <= set(members)
        if not self._sparse and "X" not in members:
            raise DataError(f"{path}: no array 'X'; there are {', '.join(sorted(members))}")
        self._weight = str(columns.weight or ("sample_weight" if "sample_weight" in members else "")) or None
        self._qid = str(columns.qid or ("qid" if "qid" in members else "")) or None
        self._done = 0.0

    def __iter__(self) -> Iterator[Batch]:
        try:
            y = self._vector(self._label)
            weights = None if self._weight is None else self._vector(self._weight, len(y))
            qid = None if self._qid is None else self._vector(self._qid, len(y))
            start = 0
            for X in self._csr_batches() if self._sparse else self._dense_batches():
                mine = slice(start, start + X.shape[0])
                own = [None if part is None else part[mine] for part in (weights, qid)]
                start = mine.stop
                if start > len(y):
                    break
                self._done = start / max(1, len(y))
                yield Batch(X, y[mine], own[0], own[1])
        except DataError:
            raise
        except _ZIPPED as error:
            raise DataError(f"{self.name}: damaged ({error})") from None
        self._file.version.check()
        if start != len(y):
            raise DataError(f"{self.name}: {start} rows, but {len(y)} labels")

    def _member(self, name: str) -> _Member:
        if name not in self._members:
            raise DataError(f"{self.name}: no array {name!r}; there are {', '.join(sorted(self._members))}")
        return _Member(self._zip, self.name, name, self._members[name])

    def _vector(self, name: str, length: int | None = None) -> Array:
        member = self._member(name)
        if len(member.shape) != 1 or length not in (None, member.shape[0]):
            wanted = "one number per row" if length is None else f"{length} numbers, one for each label"
            raise DataError(f"{self.name}: {name} has the shape {member.shape}, expected {wanted}")
        return member.rest()

    def _dense_batches(self) -> Iterator[Array]:
        member = self._member("X")
        if len(member.shape) != 2:
            raise DataError(f"{self.name}: X has the shape {member.shape}, expected rows x features")
        if member.fortran:  # the rows of such a file are not together
            yield member.rest()
            return
        n, d = member.shape
        step = max(1, CHUNK // max(1, d * member.dtype.itemsize))
        for start in range(0, n, step):
            rows = min(step, n - start)
            yield member.read(rows * d).reshape(rows, d)
        member.end()

    def _csr_batches(self) -> Iterator[Any]:
        n, d = self._csr_shape()
        pointers = self._whole_numbers("indptr").rest().astype(np.int64)
        if len(pointers) != n + 1 or pointers[0] != 0 or (np.diff(pointers) < 0).any():
            raise DataError(f"{self.name}: indptr does not rise from 0 in {n + 1} steps")
        values, columns = self._member("data"), self._whole_numbers("indices")
        if len(values.shape) != 1 or values.shape != columns.shape or pointers[-1] > values.shape[0]:
            raise DataError(
                f"{self.name}: data and indices have the shapes {values.shape} and {columns.shape}, expected vectors "
                f"of {pointers[-1]} numbers each, as indptr says"
            )
        start = 0
        while start < n:
            stop = int(np.searchsorted(pointers, pointers[start] + CHUNK // 12, side="right")) - 1
            stop = min(n, max(start + 1, stop))
            many = int(pointers[stop] - pointers[start])
            own = values.read(many), columns.read(many), pointers[start : stop + 1] - pointers[start]
            yield self._csr(own, (stop - start, d))
            start = stop
        if pointers[-1] == values.shape[0]:
            values.end()
            columns.end()

    def _csr(self, parts: tuple[Array, Array, Array], shape: tuple[int, int]) -> Any:
        values, columns, pointers = parts
        if values.dtype.kind not in "iufb":
            raise DataError(f"{self.name}: data holds {values.dtype}, expected numbers")
        try:
            csr_is_sorted(values, columns, pointers, shape)
        except ValueError as error:
            raise DataError(f"{self.name}: not a valid sparse matrix: {error}") from None
        narrow = max(shape[1], len(values)) < 2**31
        index = np.int32 if narrow else np.int64
        return sparse.csr_matrix((values, columns.astype(index), pointers.astype(index)), shape=shape)

    def _csr_shape(self) -> tuple[int, int]:
        member = self._whole_numbers("shape")
        sides = member.rest().tolist() if member.shape == (2,) else []
        if len(sides) != 2 or not all(0 <= side < _LONGEST for side in sides):
            raise DataError(f"{self.name}: shape is {sides}, expected two whole numbers, rows and features")
        return sides[0], sides[1]

    def _whole_numbers(self, name: str) -> _Member:
        member = self._member(name)
        if member.dtype.kind not in "iu" or len(member.shape) != 1:
            raise DataError(f"{self.name}: {name} holds {member.dtype} of shape {member.shape}, expected whole numbers")
        return member

    def done(self) -> float:
        return self._done


class _Member:
    """One array of a .npz file, read bit by bit."""

    def __init__(self, archive: zipfile.ZipFile, path: str, name: str, member: str) -> None:
        self._stream, self._path, self._name = archive.open(member), path, name
        self.shape, self.fortran, self.dtype = _header(self._stream, f"{path}: {name}", "array of numbers or text")
        needed, size = math.prod(self.shape) * self.dtype.itemsize, archive.getinfo(member).file_size
        if needed > size:
            raise DataError(f"{path}: {name} is cut short: {size} bytes, expected at least {needed}")

    def read(self, count: int) -> Array:
        data = self._stream.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise DataError(f"{self._path}: {self._name} is cut short")
        return _plain_bools(np.frombuffer(data, dtype=self.dtype))

    def end(self) -> None:
        """Reads on to the end of the member: only there its checksum is compared."""
        while self._stream.read(CHUNK):
            pass

    def rest(self) -> Array:
        flat = self.read(math.prod(self.shape))
        self.end()
        return flat.reshape(self.shape, order="F" if self.fortran else "C")
