"""Atomic writes: a reader sees the old contents of a file or the new ones, never a part."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["temp_path", "write_atomically"]


def write_atomically(
    path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], *, repeated: bool = False
) -> None:
    """Write the pieces to a temporary file in the folder of `path`, sync it, and rename it to `path`.

    repeated: the program writes this file many times. The temporary file then always has the same name (`temp_path`),
    so that kills leave at most one of them behind, which the next write replaces.

    If anything fails (disk full, folder read-only), the old file stays as it was and the temporary one is removed. A
    pipe or a device is written to directly: replacing `/dev/null` would remove it.
    """
    mode = _mode(Path(path))
    # Under /dev a plain file may be an open stream, as `/dev/stdout` with `> file`.
    if mode is not None and (not stat.S_ISREG(mode) or os.fspath(path).startswith("/dev/")):
        with open(path, "wb") as stream:
            stream.writelines(pieces)
        return
    target = Path(os.path.realpath(path))
    temporary = temp_path(target) if repeated else target.parent / f".cutsvm-{secrets.token_hex(8)}.tmp"
    try:
        if repeated:
            temporary.unlink(missing_ok=True)
        # Not tempfile: its files are private, and a model should have the permissions of any new file.
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except OSError as error:
        # The user knows the name of the target, not of the temporary file.
        error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def temp_path(path: str | os.PathLike[str]) -> Path:
    """The name of the temporary file of repeated writes."""
    # A short name: the target's may already be as long as the file system allows.
    target = Path(os.path.realpath(path))
    return target.parent / f".cutsvm-{hashlib.sha256(os.fsencode(target)).hexdigest()[:16]}.tmp"


def _mode(path: Path) -> int | None:
    """Kind and permissions of the file; None if it does not exist."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, if the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse to sync a folder; the file itself is safe
    finally:
        os.close(descriptor)
