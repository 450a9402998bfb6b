"""convert: writes any source as a store, in one pass and with bounded memory.

The new data go into a folder of their own inside the store. When all of them are on disk, the manifest is replaced
atomically, and then the old data are removed. So a kill at any moment leaves the old store as it was or, if there was
none, a folder without a manifest: it is incomplete, and `convert` can be run again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from numpy.typing import DTypeLike

from cutsvm._utils.errors import DataError
from cutsvm.io.columns import ColumnSpec, Labels
from cutsvm.io.dataset import Dataset, StoredDataset
from cutsvm.io.formats.svmlight import ZeroBased
from cutsvm.io.open import as_source, log_summary
from cutsvm.io.store.batches import ReadAgain, Source
from cutsvm.io.store.manifest import is_store
from cutsvm.io.store.segments import Progress, new_segment
from cutsvm.io.store.store import Store
from cutsvm.io.store.versions import locked, remove_leftovers, switch
from cutsvm.io.store.writer import BLOCK_BYTES


def convert(
    source: Any,
    store: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Any = None,
    weight: Any = None,
    qid: Any = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    filter: Any = None,
    categorical: Literal["one-hot", "refuse"] = "one-hot",
    missing: Literal["mean", "zero", "refuse"] = "mean",
    scale: Literal["none", "standard", "minmax"] = "none",
    labels: Labels = "required",
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
    dtype: DTypeLike | None = None,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress | None = None,
) -> Dataset:
    """Write a store: a folder of memory-mapped blocks from which estimators train with bounded memory.

    Parameters
    ----------
    source
        What `open_dataset` takes: files, folders, tables and lazy frames; also a pair of arrays (X, y), memory maps
        too; or an iterator of blocks: frames, or (X, y), (X, y, weights) or (X, y, weights, qid). Nothing is loaded as
        a whole.
    store
        The folder. An existing store is replaced once the new one is complete; any other folder is left alone.
    format, label, columns, exclude, filter, categorical, missing, scale, labels, zero_based, n_features
        As for `open_dataset`. What is done to the columns of a table (means, scales, categories) is computed from all
        rows, kept in the store, and carried to the models that are trained from it. For that, a table is read twice if
        it has texts, a scale or missing values.
    weight, qid
        Of a table: the columns of weights and queries, by default those called sample_weight and qid. Of a pair of
        arrays: arrays.
    dtype
        float32 or float64; by default float32 is kept, small integers become float32, all else float64.
    block_bytes
        Approximate size of a block; a fit has up to three of them mapped.
    progress
        Called after each batch with the rows so far, the bytes written, and the share done or None.

    Returns
    -------
    Dataset
        The store, opened.

    Raises
    ------
    DataError
        Its text says where and what was expected. An existing store is as it was.
    """
    if block_bytes < 1:
        raise ValueError(f"block_bytes must be 1 or more, got {block_bytes}")
    target = Path(store)
    _check_target(target)
    spec = ColumnSpec(label, weight, qid, columns, exclude, (), filter, labels, categorical, missing, scale)
    rows = as_source(source, spec.checked(), format, zero_based)
    made = not target.exists()
    try:
        with locked(target):
            remove_leftovers(target)
            form = {"dtype": dtype, "n_features": n_features, "block_bytes": block_bytes}
            try:
                _fill(target, rows, form, progress)
            except ReadAgain:
                _fill(target, rows, form, progress)
            remove_leftovers(target)
    except BaseException:
        if made:
            with suppress(OSError):
                target.rmdir()
        raise
    return StoredDataset(Store(target))


def _fill(target: Path, rows: Source, form: dict[str, Any], progress: Progress | None) -> None:
    """Write the rows to a new data folder, and switch to the version that has them."""
    with new_segment(target, rows, form, progress) as (_, manifest):
        switch(target, manifest)
    log_summary(rows)


@contextmanager
def as_store(source: Any, **options: Any) -> Iterator[Dataset]:
    """The store of this path; any other source is converted to a temporary one, in the folder for temporary files.

    options: of `convert`.
    """
    if isinstance(source, str | os.PathLike) and is_store(source):
        yield StoredDataset(Store(source))
        return
    with tempfile.TemporaryDirectory(prefix="cutsvm-") as folder:
        data = convert(source, Path(folder) / "store", **options)
        assert isinstance(data, StoredDataset)
        yield StoredDataset(data.store, source=data.store.manifest.source)


def _check_target(target: Path) -> None:
    """Raise unless the target is a store, an empty folder, or does not exist."""
    if target.is_dir():
        if any(target.iterdir()) and not is_store(target):
            raise DataError(f"{target}: a folder that is not a store; it is left alone")
    elif target.exists() or target.is_symlink():
        raise DataError(f"{target}: exists and is not a folder; it is left alone")
    elif not target.parent.is_dir():
        raise DataError(f"{target}: there is no folder {os.fspath(target.parent)!r} to write to")
