"""Rows that a fit writes to disk: temporary stores, in a folder that is removed with them."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import cast

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Ints, Vector
from cutsvm.io.store.batches import Batch, Source
from cutsvm.io.store.manifest import NAME
from cutsvm.io.store.store import Store
from cutsvm.io.store.writer import STRIP, StoreWriter
from cutsvm.matrix.arrays import DenseRows, SparseRows
from cutsvm.matrix.protocol import RowBatch, RowsInMemory, RowsOnDisk, StoredBatch

__all__ = ["StoreFolder"]


class _Writer:
    """A store being written: rows, a value for each, and its number among all rows."""

    def __init__(self, path: Path, features: int, block_bytes: int, row_bytes: float) -> None:
        self.path, self.rows = path, 0
        data = path / f"data-{secrets.token_hex(8)}"
        data.mkdir(parents=True)
        strip = int(min(STRIP, max(1, block_bytes // row_bytes)))
        source = Source()  # its rows are added one batch at a time
        source.name = os.fspath(path)
        self._writer = StoreWriter(
            data, source, n_features=features, block_bytes=block_bytes, strip=strip, durable=False
        )

    def add(self, rows: RowsInMemory, values: Vector, numbers: Ints) -> None:
        self._writer.add(Batch(cast("DenseRows | SparseRows", rows).X, values, qid=numbers))
        self.rows += len(values)

    def finish(self) -> Store:
        """The store: the values are its y, the numbers its qid."""
        (self.path / NAME).write_bytes(self._writer.finish().to_json())
        return Store(self.path)

    def close(self) -> None:
        self._writer.close()


class StoreFolder:
    """Temporary stores in a folder beside the store that the rows come from, or in the system's temporary folder.

    read: gives the rows of one of them.
    """

    def __init__(self, store: Store, read: Callable[[Store], RowsOnDisk]) -> None:
        self._store, self._read = store, read

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        with suppress(OSError):
            return tempfile.TemporaryDirectory(prefix=".cutsvm-buckets-", dir=self._store.path.parent)
        return tempfile.TemporaryDirectory(prefix="cutsvm-buckets-")

    def write(self, many: int, pending: int, batches: Iterable[RowBatch]) -> list[StoredBatch | None]:
        store, parent = self._store, Path(self._folder.name) / "buckets"
        shutil.rmtree(parent, ignore_errors=True)
        writers: list[_Writer] = []
        try:
            for k in range(many):
                writers.append(_Writer(parent / f"{k:04d}", store.shape[1], pending // many, self.row_bytes))
            for k, rows, values, numbers in batches:
                writers[k].add(rows, values, numbers)
            written = [writer.finish() if writer.rows else None for writer in writers]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise DataError(
                f"{self._folder.name}: {error.strerror}: no room for the rows in buckets, about "
                f"{store.manifest.size:,} bytes; buckets=1 needs none"
            ) from error
        finally:
            for writer in writers:
                writer.close()
        return [None if copy is None else (self._read(copy), copy.y, cast("Ints", copy.qid)) for copy in written]

    @cached_property
    def row_bytes(self) -> float:
        """Bytes of a row on average."""
        return max(1.0, self._store.manifest.size / self._store.shape[0])

    def close(self) -> None:
        if "_folder" in vars(self):
            self._folder.cleanup()
