"""Reading a store: a folder of rows in blocks that are mapped into memory when they are used."""

from __future__ import annotations

import errno
import mmap
import os
import zlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from cutsvm._native import core
from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm._utils.validation import csr_is_sorted, distinct, non_finite_places
from cutsvm.io.files import parse_json
from cutsvm.io.store.manifest import read_manifest

_Signature = tuple[int, int, int, int]  # of a file: its inode, size, and times of change
_SQUARES_RTOL = 1e-9  # other instruction sets add in another order
_CHUNK = 1 << 17  # numbers that are checked at a time


class Store:
    """Rows on disk.

    A block is checked when it is first read, and again if its file has changed since: length, checksum, valid CSR,
    finite values. It is then used in place. If its file is truncated while it is mapped, or the disk fails, zeros are
    read and `check_intact` raises (core/mapped_files.hpp); callers call it after they have used a block.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(path)
        sizes = [block.rows for block in self.manifest.blocks]
        self.edges: NDArray[np.int64] = np.cumsum([0, *sizes], dtype=np.int64)
        self._checked: dict[int, _Signature] = {}

    @property
    def shape(self) -> tuple[int, int]:
        return self.manifest.rows, self.manifest.features

    @property
    def sparse(self) -> bool:
        return self.manifest.layout == "csr"

    def read(self, number: int, *, whole: bool = True) -> tuple[Array, ...]:
        """The arrays of a block, mapped: (X,) or (values, columns, pointers).

        whole: read all pages now; otherwise they are read when they are used.
        """
        manifest = self.manifest
        block = manifest.blocks[number]
        file = self.path / manifest.block_name(number)
        known = self._checked.get(number)
        data, signature = self._map(file, manifest.block_size(block), soon=whole or known is None)
        fresh = signature != known
        if fresh:
            _check(file, data, block.crc32)
        if whole and not fresh:
            data[:: mmap.PAGESIZE].max(initial=0)  # reads every page, without the interpreter's lock
        arrays = [
            data[at : at + count * np.dtype(kind).itemsize].view(kind) for at, kind, count in manifest.sections(block)
        ]
        if not self.sparse:
            found: tuple[Array, ...] = (arrays[0].reshape(block.rows, manifest.features),)
        else:
            # The pointers are copied: they stay valid if the file is truncated.
            pointers, columns, values = arrays[0].copy(), arrays[1], arrays[2]
            found = values, columns, pointers
            if fresh:
                self._check_csr(file, found)
        if fresh:
            self._check_values(file, number, found)
        self.check_intact()
        self._checked[number] = signature
        return found

    def check_intact(self) -> None:
        """Raise DataError if a mapped page could not be read, so that zeros took its place."""
        if not self._files.lost:
            return
        manifest = self.manifest
        sizes = {manifest.part_name(name): part.size for name, part in manifest.parts.items()}
        for number, block in enumerate(manifest.blocks):
            sizes[manifest.block_name(number)] = manifest.block_size(block)
        for name, size in sizes.items():
            with suppress(OSError):
                found = os.stat(self.path / name).st_size
                if found < size:
                    raise DataError(
                        f"{self.path / name}: truncated while it was read: {found} bytes, expected {size}; "
                        "run convert again"
                    )
        raise DataError(f"{self.path}: a file of the store could not be read: check the disk, or run convert again")

    def _check_csr(self, file: Path, arrays: tuple[Array, ...]) -> None:
        values, columns, pointers = arrays
        try:
            valid = csr_is_sorted(values, columns, pointers, (len(pointers) - 1, self.manifest.features))
        except ValueError:
            valid = False
        if not valid or int(pointers[-1]) != len(values):
            raise DataError(f"{file}: damaged: its rows are not valid CSR; run convert again")

    def _check_values(self, file: Path, number: int, arrays: tuple[Array, ...]) -> None:
        """Refuse values that are not finite, and squares that are not those of the rows."""
        values = arrays[0]
        if core.all_finite(values.reshape(-1), 1):
            self._check_squares(file, number, arrays)
            return
        row, column = non_finite_places(*arrays)[0].tolist()
        raise DataError(
            f"{file}: row {int(self.edges[number]) + row}, column {column}: expected a finite number, found "
            f"{values[~np.isfinite(values)][0]} (counted from 0); run convert again"
        )

    def _check_squares(self, file: Path, number: int, arrays: tuple[Array, ...]) -> None:
        """Check the column |x_i|^2 against the rows, in chunks: a block may have millions of rows."""
        first, last = int(self.edges[number]), int(self.edges[number + 1])
        for begin in range(0, last - first, _CHUNK):
            end = min(last - first, begin + _CHUNK)
            found = np.empty(end - begin)
            if self.sparse:
                values, columns, pointers = arrays
                core.Matrix(values, columns, pointers[begin : end + 1], self.manifest.features).squares(found)
            else:
                core.Matrix(arrays[0][begin:end]).squares(found)
            known = self.squares[first + begin : first + end]
            wrong = np.flatnonzero(~np.isclose(found, known, rtol=_SQUARES_RTOL, atol=0.0))
            if len(wrong):
                row = int(wrong[0])
                raise DataError(
                    f"{file}: row {first + begin + row}: the square of the row is {found[row]}, in squares.bin it is "
                    f"{known[row]}; run convert again"
                )

    def __getstate__(self) -> dict[str, Any]:
        """The state without the mappings: a copy in another process maps the files itself."""
        return {key: value for key, value in vars(self).items() if key != "_files"}

    @cached_property
    def _files(self) -> core.MappedFiles:
        return core.MappedFiles()

    def column(self, name: str) -> Array:
        """One number per row, mapped: y, weights, qid or squares."""
        numbers: Array = self._part(name).view(self.manifest.parts[name].dtype)
        if numbers.dtype.kind == "f":
            self._check_column(name, numbers)
        return numbers

    def _check_column(self, name: str, numbers: Array) -> None:
        """Labels are finite, weights and squares are 0 or more; |x|^2 may be beyond the largest number."""
        for start in range(0, len(numbers), _CHUNK):
            part = numbers[start : start + _CHUNK]
            legal = np.ones(len(part), dtype=np.bool_) if name == "squares" else np.isfinite(part)
            if name != "y":
                legal &= part >= 0.0
            if not legal.all():
                row = start + int(np.argmin(legal))
                raise DataError(
                    f"{self.path / self.manifest.part_name(name)}: row {row}: expected a finite number"
                    f"{'' if name == 'y' else ', 0 or more'}, found {numbers[row]} (counted from 0); run convert again"
                )

    def texts(self, name: str) -> list[str] | None:
        """A list of texts: feature_names, label_names or qid_names; None if the store has none."""
        if name not in self.manifest.parts:
            return None
        file = self.path / self.manifest.part_name(name)
        try:
            words = parse_json(self._part(name).tobytes())
        except ValueError as error:
            raise DataError(f"{file}: not valid JSON: {error}") from None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(f"{file}: expected a list of texts")
        return words

    def _part(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a part, mapped, their checksum verified."""
        part = self.manifest.parts[name]
        file = self.path / self.manifest.part_name(name)
        data, _ = self._map(file, part.size)
        _check(file, data, part.crc32)
        self.check_intact()
        return data

    def _map(self, file: Path, size: int, *, soon: bool = True) -> tuple[NDArray[np.uint8], _Signature]:
        """The bytes of a file of this size, mapped, and its signature.

        soon: advise the system that all of it will be read.
        """
        try:
            with open(file, "rb") as stream:
                status = os.fstat(stream.fileno())
                signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                if status.st_size != size:
                    what = "truncated" if status.st_size < size else "too long"
                    raise DataError(f"{file}: {what}: {status.st_size} bytes, expected {size}; run convert again")
                if size == 0:
                    return np.empty(0, dtype=np.uint8), signature
                if soon and hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(stream.fileno(), 0, size, os.POSIX_FADV_WILLNEED)
                # Unmapped with the last array that refers to it.
                return self._files.map(stream.fileno(), size), signature
        except FileNotFoundError:
            raise DataError(f"{file}: missing; run convert again") from None
        except OSError as error:
            if error.errno != errno.ERANGE:
                raise
            raise DataError(f"{file}: truncated while it was read; run convert again") from None

    @cached_property
    def y(self) -> Array:
        """The labels, as numbers or texts."""
        return self._named("y", "label_names")

    @cached_property
    def labels(self) -> Array:
        """The distinct labels, ascending."""
        names, numbers = self.texts("label_names"), self.column("y")
        found = distinct(numbers) if names is None else np.unique(names)
        self.check_intact()
        return found

    @cached_property
    def weights(self) -> Array | None:
        return self.column("weights") if "weights" in self.manifest.parts else None

    @cached_property
    def qid(self) -> Array | None:
        """The queries, as numbers or texts; None if there are none."""
        return self._named("qid", "qid_names") if "qid" in self.manifest.parts else None

    @cached_property
    def squares(self) -> Array:
        """|x_i|^2 of every row."""
        return self.column("squares")

    @cached_property
    def feature_names(self) -> list[str] | None:
        names = self.texts("feature_names")
        if names is not None and len(names) != self.manifest.features:
            raise DataError(f"{self.path}: {len(names)} names of {self.manifest.features} features")
        return names

    def _named(self, column: str, texts: str) -> Array:
        names = self.texts(texts)
        return self.column(column) if names is None else np.asarray(names)[self.codes(column, names)]

    def codes(self, column: str, names: list[str]) -> Array:
        """The index in `names` of each row's text."""
        codes = self.column(column)
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
            raise DataError(f"{self.path}: {column} has a code without a text; run convert again")
        return codes

    def load(self) -> Any:
        """All rows in memory: an array, or a csr_matrix."""
        n, d = self.shape
        blocks = range(len(self.manifest.blocks))
        if not self.sparse:
            X = np.empty((n, d), dtype=self.manifest.dtype)
            for k in blocks:
                X[self.edges[k] : self.edges[k + 1]] = self.read(k)[0]
            self.check_intact()
            return X
        entries = self.manifest.entries
        index = np.int32 if entries < 2**31 else np.int64
        values, columns = np.empty(entries, dtype=self.manifest.dtype), np.empty(entries, dtype=index)
        pointers, start = np.zeros(n + 1, dtype=index), 0
        for k in blocks:
            own, where, ends = self.read(k)
            values[start : start + len(own)], columns[start : start + len(own)] = own, where
            pointers[self.edges[k] + 1 : self.edges[k + 1] + 1] = ends[1:].astype(index) + start
            start += len(own)
        self.check_intact()
        parts: Any = (values, columns, pointers)
        matrix: Any = csr_matrix(parts, shape=(n, d))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix


def _check(file: Path, data: NDArray[np.uint8], crc32: int) -> None:
    if zlib.crc32(data.data) != crc32:
        raise DataError(f"{file}: damaged: the checksum does not match; run convert again")
