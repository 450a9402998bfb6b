"""Arrays in temporary files, mapped into memory: the system writes their pages to disk when memory is short."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cutsvm._utils.errors import DataError

__all__ = ["TemporaryArrays"]


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
