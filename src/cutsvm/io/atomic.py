"""Write a file so that a reader sees the old contents or the new ones, never a part."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["temp_path", "write_atomically"]


def write_atomically(
    path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], *, again: bool = False
) -> None:
    """Write the pieces to a new file beside `path`, sync it, and put it in the place of `path`.

    again: one program writes this file time and again. The new file then always has the same name, so that kills
    leave one of them behind at most, which the next write takes the place of (`temp_path`).

    If anything fails (disk full, folder read-only), the file that was there stays as it was and no part of
    the new one is left behind. A pipe or a device is written to directly: replacing `/dev/null` would remove
    it.
    """
    mode = _mode(Path(path))
    # Under /dev even a plain file is someone's open stream, as in `/dev/stdout` with `> file`.
    if mode is not None and (not stat.S_ISREG(mode) or os.fspath(path).startswith("/dev/")):
        with open(path, "wb") as stream:
            stream.writelines(pieces)
        return
    target = Path(os.path.realpath(path))
    beside = temp_path(target) if again else target.parent / f".cutsvm-{secrets.token_hex(8)}.tmp"
    try:
        if again:
            beside.unlink(missing_ok=True)
        # Not tempfile: its files are private, and a model should get the permissions of any other new file.
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(beside, stat.S_IMODE(mode))
        os.replace(beside, target)
    except OSError as error:
        # The user knows the target's name, not the passing one's.
        error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(target.parent)


def temp_path(path: str | os.PathLike[str]) -> Path:
    """What a file that is written time and again is called before it is complete."""
    # A short name: the target's may already be as long as the file system allows.
    target = Path(os.path.realpath(path))
    return target.parent / f".cutsvm-{hashlib.sha256(os.fsencode(target)).hexdigest()[:16]}.tmp"


def _mode(path: Path) -> int | None:
    """The file's kind and permissions, None if there is no such file."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can do that."""
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
