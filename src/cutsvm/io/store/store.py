"""Reading a store: a folder of rows in blocks that are mapped into memory when they are used."""

from __future__ import annotations

import errno
import mmap
import os
import zlib
from collections.abc import Iterator
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
from cutsvm.io.store.manifest import COLUMNS, DELETED, read_manifest

_Signature = tuple[int, int, int, int]  # of a file: its inode, size, and times of change
_SQUARES_RTOL = 1e-9  # other instruction sets add in another order
_CHUNK = 1 << 17  # numbers that are checked at a time
_COPIED = 1 << 22  # bytes of rows that are copied for it


class Store:
    """Rows on disk, those that are not deleted: numbers of rows, blocks and columns count no others.

    A block is checked when it is first read, and again if its file has changed since: length, checksum, valid CSR,
    finite values. It is then used in place. If its file is truncated while it is mapped, or the disk fails, zeros are
    read and `check_intact` raises (core/mapped_files.hpp); callers call it after they have used a block.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(path)
        sizes = [block.live for block in self.manifest.blocks]
        self.edges: NDArray[np.int64] = np.cumsum([0, *sizes], dtype=np.int64)
        self._checked: dict[int, _Signature] = {}

    @property
    def shape(self) -> tuple[int, int]:
        return self.manifest.rows, self.manifest.features

    @property
    def sparse(self) -> bool:
        return self.manifest.layout == "csr"

    def read(self, number: int, *, whole: bool = True) -> tuple[Array, ...]:
        """The arrays of a block: (X,) or (values, columns, pointers). Mapped, or copied without the deleted rows."""
        arrays = self.map_block(number, whole=whole)
        if self.is_whole(number):
            return arrays
        chosen = np.concatenate([rows for _, rows in self.live_rows(number)])
        if not self.sparse:
            return (arrays[0][chosen],)
        rows = self._csr(arrays)[chosen]
        return rows.data, rows.indices, rows.indptr

    def is_whole(self, number: int) -> bool:
        """Whether no row of a block is deleted."""
        block = self.manifest.blocks[number]
        return block.live == block.rows

    def live_rows(self, number: int, most: int = _CHUNK) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The rows of a block that are not deleted, in pieces: the number of the first of them, and their places.

        Numbers are those among the rows that are not deleted, places those in the file. most: rows of a piece.
        """
        block, count = self.manifest.blocks[number], 0
        for begin in range(0, block.rows, most):
            end = min(block.rows, begin + most)
            rows = np.flatnonzero(~self.deleted(block.first + begin, block.first + end)) + begin
            if len(rows):
                yield int(self.edges[number]) + count, rows
            count += len(rows)
        if count != block.live:
            file = self.path / self.manifest.part_name(DELETED)
            raise DataError(f"{file}: damaged: {count} rows of {block.file} are left, expected {block.live}")

    def deleted(self, begin: int, end: int) -> NDArray[np.bool_]:
        """Whether each row is deleted; numbers of rows count all that the blocks hold."""
        found = np.zeros(end - begin, dtype=np.bool_)
        if DELETED in self.manifest.parts:
            first = begin // 8
            bits = np.unpackbits(self._deleted_bits[first : -(-end // 8)], bitorder="little")[begin - 8 * first :]
            found[: len(bits)] = bits[: len(found)]  # rows appended later have no bits
        return found

    @cached_property
    def _deleted_bits(self) -> NDArray[np.uint8]:
        return self._part(DELETED)

    def map_block(self, number: int, *, whole: bool = True) -> tuple[Array, ...]:
        """The arrays of a block with its deleted rows, mapped.

        whole: read all pages now; otherwise they are read when they are used.
        """
        manifest = self.manifest
        block = manifest.blocks[number]
        file = self.path / block.file
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

    def _csr(self, arrays: tuple[Array, ...]) -> Any:
        """The rows of a CSR block as SciPy's matrix."""
        parts: Any = arrays
        matrix: Any = csr_matrix(parts, shape=(len(arrays[2]) - 1, self.manifest.features))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def check_intact(self) -> None:
        """Raise DataError if a mapped page could not be read, so that zeros took its place."""
        if not self._files.lost:
            return
        manifest = self.manifest
        sizes = {part.file: part.size for part in manifest.parts.values()}
        sizes |= {block.file: manifest.block_size(block) for block in manifest.blocks}
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
            f"{file}: row {self._number(number, row)}, column {column}: expected a finite number, found "
            f"{values[~np.isfinite(values)][0]} (counted from 0); run convert again"
        )

    def _number(self, number: int, place: int) -> int:
        """The number of the row at this place in a block, or of the next one that is not deleted."""
        first = self.manifest.blocks[number].first
        return int(self.edges[number]) + place - int(self.deleted(first, first + place).sum())

    def _check_squares(self, file: Path, number: int, arrays: tuple[Array, ...]) -> None:
        """Check the column |x_i|^2 against the rows, in chunks: a block may have millions of rows."""
        block = self.manifest.blocks[number]
        row_bytes = -(-self.manifest.block_size(block) // block.rows)
        most = _CHUNK if self.is_whole(number) else max(1, min(_CHUNK, _COPIED // row_bytes))
        for first, rows in self.live_rows(number, most):
            found, begin, end = np.empty(len(rows)), int(rows[0]), int(rows[-1]) + 1
            if self.sparse:
                values, columns, pointers = arrays
                every = np.empty(end - begin)
                core.Matrix(values, columns, pointers[begin : end + 1], self.manifest.features).squares(every)
                found = every[rows - begin]
            else:
                X = arrays[0][begin:end]
                core.Matrix(X if len(X) == len(rows) else arrays[0][rows]).squares(found)
            known = self.squares[first : first + len(rows)]
            wrong = np.flatnonzero(~np.isclose(found, known, rtol=_SQUARES_RTOL, atol=0.0))
            if len(wrong):
                row = int(wrong[0])
                raise DataError(
                    f"{file}: row {first + row}: the square of the row is {found[row]}, in squares.bin it is "
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
        file = self.path / part.file
        data, _ = self._map(file, part.size, grows=name in COLUMNS)
        _check(file, data, part.crc32)
        self.check_intact()
        return data

    def _map(
        self, file: Path, size: int, *, soon: bool = True, grows: bool = False
    ) -> tuple[NDArray[np.uint8], _Signature]:
        """The bytes of a file of this size, mapped, and its signature.

        soon: advise the system that all of it will be read. grows: an append may have made it longer.
        """
        try:
            with open(file, "rb") as stream:
                status = os.fstat(stream.fileno())
                signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                if status.st_size < size or (status.st_size > size and not grows):
                    what = "truncated" if status.st_size < size else "too long"
                    raise DataError(f"{file}: {what}: {status.st_size} bytes, expected {size}; run convert again")
                if size == 0:
                    return np.empty(0, dtype=np.uint8), signature
                if soon and hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(stream.fileno(), 0, size, os.POSIX_FADV_WILLNEED)
                # Unmapped with the last array that refers to it.
                return self._files.map(stream.fileno(), size), signature
        except FileNotFoundError:
            if self._is_replaced():
                raise DataError(f"{self.path}: the store has changed since it was opened; open it again") from None
            raise DataError(f"{file}: missing; run convert again") from None
        except OSError as error:
            if error.errno != errno.ERANGE:
                raise
            raise DataError(f"{file}: truncated while it was read; run convert again") from None

    def _is_replaced(self) -> bool:
        """Whether there is another version by now."""
        with suppress(DataError):
            return read_manifest(self.path) != self.manifest
        return False

    @cached_property
    def y(self) -> Array:
        """The labels, as numbers or texts."""
        return self._named("y", "label_names")

    @cached_property
    def labels(self) -> Array:
        """The distinct labels, ascending."""
        names = self.texts("label_names")
        if names is None:
            found = distinct(self.column("y"))
        else:  # deleted rows may have had labels that no other has
            found = np.unique(np.asarray(names)[distinct(self.codes("y", names))])
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
    def hashes(self) -> Array | None:
        """A hash of every row; None in stores of earlier versions of cutsvm."""
        return self.column("hashes") if "hashes" in self.manifest.parts else None

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
            pointers[self.edges[k] + 1 : self.edges[k + 1] + 1] = ends[1:].astype(index, copy=False) + start
            start += len(own)
        self.check_intact()
        parts: Any = (values, columns, pointers)
        matrix: Any = csr_matrix(parts, shape=(n, d))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix


def _check(file: Path, data: NDArray[np.uint8], crc32: int) -> None:
    if zlib.crc32(data.data) != crc32:
        raise DataError(f"{file}: damaged: the checksum does not match; run convert again")
