"""A new data folder of a store: written as a whole, and removed unless the next version names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.io.store.batches import Source
from cutsvm.io.store.manifest import NAME, Manifest, read_manifest
from cutsvm.io.store.versions import is_full, new_folder
from cutsvm.io.store.writer import StoreWriter

# Called after each batch with the rows so far, the bytes written, and the share done (None: unknown).
Progress = Callable[[int, int, float | None], object]


@contextmanager
def new_segment(
    target: Path, rows: Source, form: dict[str, Any], progress: Progress | None
) -> Iterator[tuple[Path, Manifest]]:
    """The folder of all rows of a source, and a manifest of a store that has nothing else.

    form: of the `StoreWriter`. Within the context the caller switches to a version that has the folder; without that
    the folder is removed.
    """
    folder = new_folder(target)
    writer = StoreWriter(folder, rows, **form)
    try:
        folder.mkdir()
        for batch in rows:
            writer.add(batch)
            if progress is not None:
                progress(writer.rows, writer.written, rows.share)
        yield folder, writer.finish()
    except BaseException as error:
        if not is_current(target, folder):
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError) and is_full(error):
            there = "; the store is as it was" if (target / NAME).exists() else ""
            text = f"{target}: {error.strerror}: after {writer.rows:,} rows, {writer.written:,} bytes{there}"
            raise DataError(text) from error
        raise
    finally:
        writer.close()


def is_current(target: Path, folder: Path) -> bool:
    """Whether the current version has this data folder."""
    if not (target / NAME).exists():
        return False
    return any(file.startswith(f"{folder.name}/") for file in read_manifest(target).files())
