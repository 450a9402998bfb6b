"""Locks on folders, which end with the process that holds them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def exclusive(folder: Path) -> Iterator[bool]:
        """Locks a folder; False if another process holds the lock. Folders cannot be locked there: a file in it is."""
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
        try:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                yield False
                return
            yield True
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        finally:
            os.close(descriptor)

else:
    import fcntl

    @contextmanager
    def exclusive(folder: Path) -> Iterator[bool]:
        """Locks a folder; False if another process holds the lock."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(descriptor)
