"""Arrays in temporary files, mapped into memory: the system writes their pages to disk when memory is short."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cutsvm._utils.errors import DataError

__all__ = ["CollectedColumn", "TemporaryArrays"]

_IN_MEMORY = 32 << 20  # bytes of a column that is collected


class TemporaryArrays:
    """Allocates arrays in unnamed files of one folder; they disappear with the process."""

    def __init__(self, beside: str | os.PathLike[str]) -> None:
        folder = Path(beside).resolve().parent
        self.folder = folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of zeros. Its space on disk is allocated at once, so that later writes cannot fail."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        if size == 0:
            return np.zeros(shape, dtype=kind)
        try:
            with tempfile.TemporaryFile(dir=self.folder, prefix=".cutsvm-", suffix=".tmp") as stream:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(stream.fileno(), 0, size)
                else:
                    stream.truncate(size)
                mapped = mmap.mmap(stream.fileno(), size)
        except OSError as error:
            if error.errno == errno.ENOMEM:
                raise MemoryError(f"no address space for a file of {size:,} bytes") from None
            why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
            raise DataError(
                f"{self.folder}: no room for {size:,} bytes of temporary arrays: {why}; free some, or raise "
                "memory_limit"
            ) from None
        return np.frombuffer(mapped, dtype=kind).reshape(shape)


class CollectedColumn:
    """One value per row, numbers or texts, which come block by block; in an unnamed temporary file if they are many.

    dtype: of numbers. in_memory: bytes from which on they are in a file.
    """

    def __init__(self, dtype: DTypeLike = np.float64, in_memory: int = _IN_MEMORY) -> None:
        self._dtype, self._in_memory = np.dtype(dtype), in_memory
        self._parts: list[NDArray[Any]] = []
        self._bytes = self.rows = 0
        self._file: BinaryIO | None = None
        self._codes: dict[str, int] | None = None  # of texts

    def add(self, values: NDArray[Any]) -> None:
        """Add the values of a block."""
        is_text = values.dtype.kind not in "biuf"
        if self.rows and is_text is (self._codes is None):
            raise DataError("some values of a column are text and others are numbers")
        part = self._encoded(values) if is_text else values.astype(self._dtype)
        self._parts.append(part)
        self.rows += len(part)
        self._bytes += part.nbytes
        if self._bytes > self._in_memory:
            self._write()

    def _encoded(self, texts: NDArray[Any]) -> NDArray[np.int64]:
        codes = self._codes = {} if self._codes is None else self._codes
        distinct, inverse = np.unique(texts.astype(str), return_inverse=True)
        known = [codes.setdefault(text, len(codes)) for text in distinct.tolist()]
        return np.array(known, dtype=np.int64)[inverse]

    def _write(self) -> None:
        try:
            if self._file is None:
                self._file = cast("BinaryIO", tempfile.TemporaryFile(prefix=".cutsvm-", suffix=".tmp"))
            for part in self._parts:
                self._file.write(part.tobytes())
            self._file.flush()
        except OSError as error:
            raise DataError(f"{tempfile.gettempdir()}: no room for temporary arrays: {error.strerror}") from None
        self._parts, self._bytes = [], 0

    def values(self) -> NDArray[Any]:
        """All values: an array, or of numbers in a file a mapped one."""
        kind = self._dtype if self._codes is None else np.dtype(np.int64)
        if self._file is None:
            found = np.concatenate([np.empty(0, dtype=kind), *self._parts])
        else:
            self._write()
            found = np.memmap(self._file, dtype=kind, mode="r", shape=(self.rows,))
        return found if self._codes is None else np.asarray(list(self._codes))[found]
