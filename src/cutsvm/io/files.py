"""Files: atomic writes, checked reads of files that may be damaged or change meanwhile, JSON from untrusted files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from cutsvm._utils.errors import DataError

_MAX_DEPTH = 32  # levels of lists and objects in JSON; files of cutsvm have five


def write_atomically(
    path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], *, repeated: bool = False
) -> None:
    """Write the pieces to a temporary file in the folder of `path`, sync it, and rename it to `path`.

    repeated: the program writes this file many times. The temporary file then always has the same name (`temp_path`),
    so that kills leave at most one of them behind, which the next write replaces.

    If anything fails (disk full, folder read-only), the old file stays as it was and the temporary one is removed. A
    pipe or a device is written to directly: replacing `/dev/null` would remove it.
    """
    with atomic_stream(path, repeated=repeated) as stream:
        stream.writelines(pieces)


@contextmanager
def atomic_stream(path: str | os.PathLike[str], *, repeated: bool = False, unnamed: bool = False) -> Iterator[BinaryIO]:
    """The same for what is written within this context; an error in it leaves `path` as it was.

    unnamed: the temporary file has no name until it is complete, where the system can do that, so that a kill leaves
    nothing behind. It is for files that take long to write.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    # Under /dev a plain file may be an open stream, as `/dev/stdout` with `> file`.
    if mode is not None and (not stat.S_ISREG(mode) or os.fspath(path).startswith("/dev/")):
        with open(path, "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    temporary = temp_path(target) if repeated else target.parent / f".cutsvm-{secrets.token_hex(8)}.tmp"
    try:
        if repeated:
            temporary.unlink(missing_ok=True)
        # Not tempfile: its files are private, and a model should have the permissions of any new file.
        descriptor = _without_name(target.parent) if unnamed else None
        named = descriptor is None
        if descriptor is None:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if not named:
                _give_name(stream.fileno(), temporary)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except OSError as error:
        # The user knows the name of the target, not of the temporary file.
        error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        temporary.unlink(missing_ok=True)
    # So that the new name survives a power failure. Some network file systems cannot: the file itself is safe.
    with suppress(OSError):
        sync(target.parent)


def _without_name(folder: Path) -> int | None:
    """The descriptor of a new file without a name; None where the system or the file system has none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    with suppress(OSError):
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    return None


def _give_name(descriptor: int, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # With the descriptor of a folder the link in /proc is followed, without one it would be copied.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder)
    finally:
        os.close(folder)


def temp_path(path: str | os.PathLike[str]) -> Path:
    """The name of the temporary file of repeated writes."""
    # A short name: the target's may already be as long as the file system allows.
    target = Path(os.path.realpath(path))
    return target.parent / f".cutsvm-{hashlib.sha256(os.fsencode(target)).hexdigest()[:16]}.tmp"


def sync(path: Path) -> None:
    """Write what the system holds of a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Version:
    """The length and times of an open file, to detect later that it has changed; None: of a stream, which has none."""

    def __init__(self, name: str, descriptor: int | None) -> None:
        self._name, self._descriptor = name, descriptor
        self._status = None if descriptor is None else os.fstat(descriptor)

    @property
    def size(self) -> int | None:
        """Bytes of a regular file; None for pipes and devices."""
        status = self._status
        return None if status is None or not stat.S_ISREG(status.st_mode) else status.st_size

    def check(self) -> None:
        """Raise DataError if the file has changed since."""
        before = self._status
        if before is None or self._descriptor is None or not stat.S_ISREG(before.st_mode):
            return
        now = os.fstat(self._descriptor)
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


def parse_json(text: bytes) -> Any:
    """The value of an ASCII text; any defect is a ValueError.

    NaN and infinities, which are not JSON, and values nested in more than 32 levels are refused: printing, comparing or
    hashing them later would exhaust the stack.
    """
    try:
        value = json.loads(text.decode("ascii"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [item for parent in level for item in _children(parent)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _children(value: Any) -> list[Any]:
    """The lists and objects directly inside a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in inside if isinstance(item, list | dict)]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not allowed")
