"""Rows that a fit writes to disk: temporary files, mapped into memory, in a folder that is removed with them.

A store of the user is checked and described so that it lasts. These last for a fit, and there are many of them, some of
a few rows: the bare numbers are written, and read where they are mapped.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._native import core
from cutsvm._utils.errors import DataError
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.io.store.store import Store
from cutsvm.matrix.arrays import DenseRows, SparseRows, index_type
from cutsvm.matrix.protocol import RowBatch, RowsInMemory, StoredBatch

__all__ = ["MappedDense", "MappedSparse", "StoreFolder"]

Allocate = Callable[[int | tuple[int, int], DTypeLike], Array]


class MappedDense(DenseRows):
    """Rows that are mapped; numbers of each row are where `allocate` puts them."""

    allocate: Allocate

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:  # type: ignore[override]
        return self.allocate(shape, dtype)


class MappedSparse(SparseRows):
    """The same of sparse rows."""

    allocate: Allocate

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:  # type: ignore[override]
        return self.allocate(shape, dtype)


class _Writer:
    """Files being written: of the rows, of a value for each, and of its number among all rows."""

    def __init__(self, path: Path, buffer: int, index: np.dtype[Any] | None) -> None:
        names = ("X",) if index is None else ("values", "columns", "pointers")
        self.files: dict[str, IO[bytes]] = {
            name: open(path.with_suffix(f".{name}"), "wb", buffering=buffer) for name in (*names, "signed", "numbers")
        }
        self.rows, self.entries, self._index = 0, 0, index
        if index is not None:
            self.files["pointers"].write(np.zeros(1, index).data)

    def add(self, rows: RowsInMemory, values: Vector, numbers: Ints) -> None:
        if self._index is None:
            self.files["X"].write(np.ascontiguousarray(cast("DenseRows", rows).X).data)
        else:
            mine, columns, pointers = cast("SparseRows", rows).arrays
            first, last = int(pointers[0]), int(pointers[-1])
            self.files["values"].write(np.ascontiguousarray(mine[first:last]).data)
            self.files["columns"].write(np.ascontiguousarray(columns[first:last], dtype=self._index).data)
            self.files["pointers"].write((pointers[1:] - first + self.entries).astype(self._index).data)
            self.entries += last - first
        self.files["signed"].write(np.ascontiguousarray(values, dtype=np.float64).data)
        self.files["numbers"].write(np.ascontiguousarray(numbers, dtype=np.int64).data)
        self.rows += len(values)


class StoreFolder:
    """Temporary files in a folder beside the store that the rows come from, or in the system's temporary folder.

    allocate: makes arrays with one entry per row.
    """

    def __init__(self, store: Store, threads: int, allocate: Allocate) -> None:
        self._store, self._threads, self._allocate = store, threads, allocate
        self._files = core.MappedFiles()

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        with suppress(OSError):
            return tempfile.TemporaryDirectory(prefix=".cutsvm-buckets-", dir=self._store.path.parent)
        return tempfile.TemporaryDirectory(prefix="cutsvm-buckets-")

    def write(self, many: int, pending: int, batches: Iterable[RowBatch]) -> list[StoredBatch | None]:
        folder, store = Path(self._folder.name), self._store
        for old in folder.iterdir():
            old.unlink()
        self._files = core.MappedFiles()
        index = index_type(store.manifest.entries) if store.sparse else None
        buffer = max(1 << 12, pending // (3 * many))
        try:
            with ExitStack() as stack:
                writers = [_Writer(folder / f"{k:04d}", buffer, index) for k in range(many)]
                for writer in writers:
                    for file in writer.files.values():
                        stack.enter_context(file)
                for k, rows, values, numbers in batches:
                    writers[k].add(rows, values, numbers)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise DataError(
                f"{folder}: {error.strerror}: no room for the rows in buckets, about "
                f"{store.manifest.size:,} bytes; buckets=1 needs none"
            ) from error
        return [self._mapped(folder / f"{k:04d}", writer) if writer.rows else None for k, writer in enumerate(writers)]

    def _mapped(self, path: Path, writer: _Writer) -> StoredBatch:
        def array(name: str, dtype: DTypeLike, count: int) -> Array:
            if not count:
                return np.empty(0, dtype)
            with open(path.with_suffix(f".{name}"), "rb") as file:
                mapped: Array = self._files.map(file.fileno(), count * np.dtype(dtype).itemsize).view(dtype)
                return mapped

        n, d, dtype = writer.rows, self._store.shape[1], self._store.manifest.dtype
        rows: MappedDense | MappedSparse
        if writer._index is None:
            rows = MappedDense(array("X", dtype, n * d).reshape(n, d), self._threads)
        else:
            values, columns = array("values", dtype, writer.entries), array("columns", writer._index, writer.entries)
            rows = MappedSparse((values, columns, array("pointers", writer._index, n + 1)), d, self._threads)
        rows.allocate = self._allocate
        return cast("RowsInMemory", rows), array("signed", np.float64, n), array("numbers", np.int64, n)

    def check_intact(self) -> None:
        """Raise DataError if a mapped page could not be read, so that zeros took its place."""
        if self._files.lost:
            raise DataError(f"{self._folder.name}: a temporary file could not be read: check the disk")

    @cached_property
    def row_bytes(self) -> float:
        """Bytes of a row on average."""
        return max(1.0, self._store.manifest.size / self._store.shape[0])

    def close(self) -> None:
        if "_folder" in vars(self):
            self._folder.cleanup()
