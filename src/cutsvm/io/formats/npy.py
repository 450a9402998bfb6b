"""Sources of rows in .npy and .npz files, read some rows at a time."""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm._utils.validation import csr_is_sorted
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.files import SourceFile
from cutsvm.io.paths import Input
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import Batch, Source

# What reading an archive raises if it is damaged, truncated, encrypted, or compressed in an unknown way.
_DECODING_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)
_ZIP_ERRORS = (*_DECODING_ERRORS, EOFError, ValueError, OSError, OverflowError, RuntimeError)
# What parsing the header of an array raises: in its literal, its tokens, its dtype.
_HEADER_ERRORS = (ValueError, EOFError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)
_MAX_LENGTH = 1 << 48  # of a dimension: an empty array could state any


class NpySource(Source):
    """A .npy file; the labels are one of its columns, or another such file."""

    def __init__(self, input: Input | str, columns: ColumnSpec) -> None:
        input = Input(input) if isinstance(input, str) else input
        path = self.name = input.name
        self._X = _NpyFile(path, input.held)
        self._labels = columns.labels
        if len(self._X.shape) != 2:
            raise DataError(f"{path}: expected a matrix, rows x features, found the shape {self._X.shape}")
        self._columns = [
            self._column(what, column)
            for what, column in (("label", columns.label), ("weight", columns.weight), ("qid", columns.qid))
        ]
        used = {column for column in self._columns if isinstance(column, int)}
        self._features = [column for column in range(self._X.shape[1]) if column not in used] if used else None

    def _column(self, what: str, column: str | int | None) -> _NpyFile | int | None:
        """The file or the number of the column that holds the labels (weights, queries)."""
        rows, width = self._X.shape
        if column is None and what == "label" and self._labels == "required":
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
        step = max(1, read_settings().batch_bytes // max(1, d * self._X.dtype.itemsize))
        for start in range(0, n, step):
            stop = min(n, start + step)
            X = self._X.rows(start, stop)
            y, weights, qid = (self._part(column, X, start, stop) for column in self._columns)
            self.share = stop / n
            own = X if self._features is None else X[:, self._features]
            yield Batch(own, None if self._labels == "none" else y, weights, qid)
        for file in (self._X, *self._columns):
            if isinstance(file, _NpyFile):
                file.close()

    @staticmethod
    def _part(column: _NpyFile | int | None, X: Array, start: int, stop: int) -> Array | None:
        if isinstance(column, _NpyFile):
            return column.rows(start, stop)
        return None if column is None else X[:, column].copy()


class _NpyFile:
    """The array of a .npy file, of one or two dimensions; it is read and not mapped."""

    def __init__(self, path: str, held: SourceFile | None = None) -> None:
        self._file = SourceFile(path) if held is None else held.duplicate()
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
        """`count` values in the order of the file, from value number `first` on."""
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


def _header(stream: Any, path: str, what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and dtype of the array in the stream, checked."""
    try:
        version = npy_format.read_magic(stream)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote
            shape, fortran, dtype = read(stream)
    except _HEADER_ERRORS as error:
        raise DataError(f"{path}: not a {what} ({error})") from None
    if dtype.kind not in "iufbUS" or dtype.itemsize == 0:
        raise DataError(f"{path}: not a {what} (it holds {dtype}, expected numbers or text)")
    if len(shape) > 2 or any(type(length) is not int or not 0 <= length < _MAX_LENGTH for length in shape):
        raise DataError(f"{path}: not a {what} (its shape is {shape})")
    return tuple(map(int, shape)), bool(fortran), dtype


def _plain_bools(values: Array) -> Array:
    """Booleans that are 0 or 1, whatever bytes the file holds for them."""
    return values.view(np.uint8) != 0 if values.dtype == np.bool_ else values


def _number(column: str | int) -> int | None:
    try:
        return int(column)
    except ValueError:
        return None


class NpzSource(Source):
    """A .npz file with y and X, or y and the arrays of a CSR matrix (data, indices, indptr, shape).

    Weights and queries are called sample_weight and qid.
    """

    def __init__(self, input: Input | str, columns: ColumnSpec) -> None:
        input = Input(input) if isinstance(input, str) else input
        path = self.name = input.name
        self._file = SourceFile(path) if input.held is None else input.held.duplicate()
        if self._file.read(2) != b"PK":  # a zip file may begin with anything, but NumPy reads only files that begin so
            raise DataError(f"{path}: not a .npz file (it does not start with PK)")
        try:
            self._zip = zipfile.ZipFile(self._file)
        except _ZIP_ERRORS as error:
            raise DataError(f"{path}: not a .npz file ({error})") from None
        self._members = {name.removesuffix(".npy"): name for name in self._zip.namelist()}
        members = self._members
        self._label: str | None = str(columns.label or "y")
        if columns.labels == "none" or (columns.labels == "optional" and not columns.label and "y" not in members):
            self._label = None
        elif self._label not in members:
            raise DataError(f"{path}: no array {self._label!r} with the labels; there are {', '.join(sorted(members))}")
        self._sparse = "X" not in members and {"data", "indices", "indptr", "shape"} <= set(members)
        if not self._sparse and "X" not in members:
            raise DataError(f"{path}: no array 'X'; there are {', '.join(sorted(members))}")
        self._weight = str(columns.weight or ("sample_weight" if "sample_weight" in members else "")) or None
        self._qid = str(columns.qid or ("qid" if "qid" in members else "")) or None

    def __iter__(self) -> Iterator[Batch]:
        try:
            y, weights, qid = self._vectors()
            length = next((len(part) for part in (y, weights, qid) if part is not None), None)
            start = 0
            for X in self._csr_batches() if self._sparse else self._dense_batches():
                mine = slice(start, start + X.shape[0])
                own = [None if part is None else part[mine] for part in (y, weights, qid)]
                start = mine.stop
                if length is not None and start > length:
                    break
                self.share = None if length is None else start / max(1, length)
                yield Batch(X, own[0], own[1], own[2])
        except DataError:
            raise
        except _ZIP_ERRORS as error:
            raise DataError(f"{self.name}: damaged ({error})") from None
        self._file.version.check()
        if length not in (None, start):
            raise DataError(f"{self.name}: {start} rows, but {length} labels")

    def _vectors(self) -> list[Array | None]:
        """Labels, weights and queries, of one length."""
        found: list[Array | None] = []
        for name in (self._label, self._weight, self._qid):
            length = next((len(part) for part in found if part is not None), None)
            found.append(None if name is None else self._vector(name, length))
        return found

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
        if member.fortran:  # the values of a row are not adjacent
            yield member.rest()
            return
        n, d = member.shape
        step = max(1, read_settings().batch_bytes // max(1, d * member.dtype.itemsize))
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
        start, entries = 0, read_settings().batch_bytes // 12
        while start < n:
            stop = int(np.searchsorted(pointers, pointers[start] + entries, side="right")) - 1
            stop = min(n, max(start + 1, stop))
            many = int(pointers[stop] - pointers[start])
            own = values.read(many), columns.read(many), pointers[start : stop + 1] - pointers[start]
            yield self._csr(own, (stop - start, d))
            start = stop
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
        shape = member.rest().tolist() if member.shape == (2,) else []
        if len(shape) != 2 or not all(0 <= length < _MAX_LENGTH for length in shape):
            raise DataError(f"{self.name}: shape is {shape}, expected two whole numbers, rows and features")
        return shape[0], shape[1]

    def _whole_numbers(self, name: str) -> _Member:
        member = self._member(name)
        if member.dtype.kind not in "iu" or len(member.shape) != 1:
            raise DataError(f"{self.name}: {name} holds {member.dtype} of shape {member.shape}, expected whole numbers")
        return member


class _Member:
    """One array of a .npz file, read as a stream."""

    def __init__(self, archive: zipfile.ZipFile, path: str, name: str, member: str) -> None:
        self._stream, self._path, self._name = archive.open(member), path, name
        self.shape, self.fortran, self.dtype = _header(self._stream, f"{path}: {name}", "array of numbers or text")
        needed = self._stream.tell() + math.prod(self.shape) * self.dtype.itemsize
        size = archive.getinfo(member).file_size
        if needed > size:
            raise DataError(f"{path}: {name} is cut short: {size} bytes, expected {needed}")

    def read(self, count: int) -> Array:
        data = self._stream.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise DataError(f"{self._path}: {self._name} is cut short")
        return _plain_bools(np.frombuffer(data, dtype=self.dtype))

    def end(self) -> None:
        """Read to the end of the member: only there its checksum is compared."""
        while self._stream.read(read_settings().batch_bytes):
            pass

    def rest(self) -> Array:
        flat = self.read(math.prod(self.shape))
        self.end()
        return flat.reshape(self.shape, order="F" if self.fortran else "C")
