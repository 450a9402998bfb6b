"""Files that other processes may write to while they are read: a change is detected and raises."""

from __future__ import annotations

import io
import os
import stat
from typing import Any

from cutsvm._utils.errors import DataError

__all__ = ["SourceFile", "Version"]


class Version:
    """The length and times of an open file, to detect later that it has changed."""

    def __init__(self, name: str, descriptor: int) -> None:
        self._name, self._descriptor = name, descriptor
        self._status = os.fstat(descriptor)

    @property
    def size(self) -> int | None:
        """Bytes of a regular file; None for pipes and devices."""
        return self._status.st_size if stat.S_ISREG(self._status.st_mode) else None

    def check(self) -> None:
        """Raise DataError if the file has changed since."""
        before, now = self._status, os.fstat(self._descriptor)
        if not stat.S_ISREG(before.st_mode):
            return
        if now.st_size < before.st_size:
            raise DataError(
                f"{self._name}: truncated while it was read: {now.st_size} bytes, at first {before.st_size}; "
                "read it again when it is complete"
            )
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise DataError(f"{self._name}: changed while it was read; read it again when no process writes to it")


class SourceFile(io.FileIO):
    """A file for libraries that trust the lengths in its headers.

    A read never allocates more than the file holds: a length in a damaged header cannot exhaust the memory. The file
    is not mapped, so that truncating it meanwhile gives short reads and no SIGBUS.
    """

    def __init__(self, path: str, descriptor: int | None = None) -> None:
        super().__init__(path if descriptor is None else descriptor, "rb")
        self.path, self.version = path, Version(path, self.fileno())

    def duplicate(self) -> SourceFile:
        """A duplicate of the open file, at its beginning, for a caller that closes it; both share the file position."""
        self.seek(0)
        return SourceFile(self.path, os.dup(self.fileno()))

    def __del__(self) -> None:
        """Close the file of a source that was not read to its end, without a ResourceWarning."""
        self.close()

    def read(self, size: int | None = -1, /) -> Any:
        if size is None or size < 0:
            return super().read()
        left = os.fstat(self.fileno()).st_size - self.tell() if self.version.size is not None else size
        return super().read(max(0, min(size, left)))
