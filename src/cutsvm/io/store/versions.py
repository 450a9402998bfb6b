"""Versions of a store: the lock under which it changes, the switch to the next one, and what is left over."""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from cutsvm._utils.errors import DataError
from cutsvm.io.files import write_atomically
from cutsvm.io.locks import exclusive
from cutsvm.io.store.manifest import NAME, Manifest, is_store_entry, read_manifest


def now() -> str:
    """The time of a change."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Lock the store against other changes; the lock ends with the process."""
    target.mkdir(exist_ok=True)
    with exclusive(target) as alone:
        if not alone:
            raise DataError(f"{target}: another process is changing this store")
        yield


def new_folder(target: Path) -> Path:
    """A name for a data folder."""
    return target / f"data-{secrets.token_hex(8)}"


def switch(target: Path, manifest: Manifest) -> None:
    """Make this the current version; its files are on the disk."""
    write_atomically(target / NAME, [manifest.to_json()])


def is_full(error: OSError) -> bool:
    """Whether there is no room on the disk, or no more of it is allowed."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def remove_leftovers(target: Path) -> None:
    """Remove what the manifest does not name: it is incomplete or replaced."""
    used: set[str] = set()
    if (target / NAME).exists():
        try:
            used = read_manifest(target).files()
        except DataError:  # damaged, or of a newer version: its data are unknown
            return
    folders = {file.partition("/")[0] for file in used}
    for entry in target.iterdir():
        if not is_store_entry(entry.name):
            continue
        if entry.name in folders:
            for file in entry.iterdir():
                if f"{entry.name}/{file.name}" not in used:
                    file.unlink()
        elif entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
