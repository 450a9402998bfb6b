"""append: more rows for a store, as they come from any source.

The new rows go into a data folder of their own: a segment. Their labels, weights and queries are then written behind
those of the store, in the same files, which are longer from then on than the manifest says; the switch to the new
manifest makes them count. So a kill at any moment leaves the old version or the new one, and an append takes as long as
what is appended.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.files import parse_json, sync
from cutsvm.io.formats.svmlight import ZeroBased
from cutsvm.io.open import as_source, log_summary
from cutsvm.io.preprocessing import Preprocessing
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import Batch, ReadAgain, Source, is_sparse
from cutsvm.io.store.manifest import COLUMNS, Change, Manifest, Part, read_manifest
from cutsvm.io.store.segments import Progress, is_current, new_segment
from cutsvm.io.store.store import Store
from cutsvm.io.store.versions import locked, now, remove_leftovers, switch
from cutsvm.io.store.writer import BLOCK_BYTES, write_texts

_NAMES = {"y": "label_names", "qid": "qid_names"}
_WORDS = {"y": "labels", "qid": "queries"}


def append(
    target: Path,
    source: Any,
    *,
    format: str | None = None,
    label: Any = None,
    weight: Any = None,
    qid: Any = None,
    filter: Any = None,
    zero_based: ZeroBased | None = None,
    n_features: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress | None = None,
) -> int:
    """Appends the rows of a source, and returns their number; `StoredDataset.append` documents the parameters."""
    with locked(target):
        old = read_manifest(target)
        remove_leftovers(target)
        if (
            n_features is not None
            and n_features != old.features
            and (old.layout == "dense" or n_features < old.features)
        ):
            raise DataError(f"{target}: it has {old.features} features, n_features={n_features} is not possible")
        features = old.features if n_features is None else n_features
        base: ZeroBased = zero_based if zero_based is not None else "auto" if old.zero_based is None else old.zero_based
        given = as_source(source, _spec(old, label, weight, qid, filter), format, base)
        rows = FittedSource(given, Store(target), features)
        form = {"dtype": old.dtype, "n_features": features, "block_bytes": block_bytes}
        try:
            many = _fill(target, old, rows, form, progress)
        except ReadAgain:
            many = _fill(target, old, rows, form, progress)
        log_summary(given)
    return many


def _spec(old: Manifest, label: Any, weight: Any, qid: Any, filter: Any) -> ColumnSpec:
    """How tables are read: with the preprocessing of the store; if it has none, all columns are numbers."""
    if old.preprocessing is None:
        return ColumnSpec(label, weight, qid, filter=filter, categorical="refuse", missing="refuse").checked()
    known = Preprocessing.from_dict(old.preprocessing)
    return ColumnSpec(label, weight, qid, filter=filter, preprocessing=known).checked()


def _fill(target: Path, old: Manifest, rows: FittedSource, form: dict[str, Any], progress: Progress | None) -> int:
    """Writes the rows, and switches to the version that has them."""
    with new_segment(target, rows, form, progress) as (folder, fresh):
        try:
            parts = _joined(target, old, fresh, rows.name, folder)
            sync(folder)
            change = Change("append", old.rows + fresh.rows, rows.name, now())
            more = {"entries": old.entries + fresh.entries, "features": form["n_features"], "parts": parts}
            spread, segments = max(old.spread, fresh.spread), [*old.segments, *fresh.segments]
            switch(target, old.changed(change, **more, spread=spread, segments=segments))
        except BaseException:
            if not is_current(target, folder):
                _shorten(target, old)
            raise
    for name in COLUMNS.keys() & fresh.parts.keys():  # they are in the store's own columns now
        (target / fresh.part_name(name)).unlink(missing_ok=True)
    return fresh.rows


class FittedSource(Source):
    """The rows of a source with the layout and the columns of a store."""

    def __init__(self, source: Source, store: Store, features: int) -> None:
        self._source, self._sparse, self._features = source, store.sparse, features
        self._store, self._where = store, os.fspath(store.path)
        self.name, self.feature_names = source.name, store.feature_names
        self.zero_based = store.manifest.zero_based

    def __iter__(self) -> Iterator[Batch]:
        self._first = 0
        for batch in self._source:
            self.share = self._source.share
            X, base = batch.X, batch.base
            if batch.y is None and self._has_labels:
                raise DataError(f"{self.name}: its rows have no labels, those of {self._where} have")
            if is_sparse(X):
                X, base = self._checked_sparse(X.tocsr(), base)
            else:
                X = self._in_order(np.asarray(X))
                X = sparse.csr_matrix(X) if self._sparse else X
            self._first += X.shape[0]
            yield Batch(X, batch.y, batch.weights, batch.qid, base)

    @cached_property
    def _has_labels(self) -> bool:
        """Whether labels of the store are other than those of rows without labels, 0."""
        return self._store.texts("label_names") is not None or bool(np.any(self._store.column("y")))

    def _checked_sparse(self, X: Any, base: int) -> tuple[Any, int]:
        top = int(X.indices.max(initial=-1)) - base + 1
        if top > self._features:
            more = (
                f"; n_features={top} (at the command line --features {top}) makes it wider"
                if self._sparse
                else "; convert all rows again for more"
            )
            raise DataError(
                f"{self.name}: index {top - 1 + base} (from row {self._first} on), but {self._where} has "
                f"{self._features} features{more}"
            )
        if self._sparse:
            return X, base
        dense = np.zeros((X.shape[0], self._features), dtype=X.dtype)
        entries = X.tocoo()
        np.add.at(dense, (entries.row, entries.col - base), entries.data)
        return dense, 0

    def _in_order(self, X: Array) -> Array:
        """The columns in the order of the store, by their names if both have names."""
        theirs, ours = self._source.feature_names, self.feature_names
        if theirs is not None and ours is not None and theirs != ours:
            missing = [name for name in ours if name not in theirs]
            if missing:
                raise DataError(f"{self.name}: there is no column {missing[0]!r}, which {self._where} has")
            return X[:, [theirs.index(name) for name in ours]]
        if X.ndim == 2 and X.shape[1] != self._features:
            raise DataError(
                f"{self.name}: rows of {X.shape[1]} features, but {self._where} has {self._features}; rows of a store "
                "have the same features: convert all of them again for others"
            )
        return X


def _joined(target: Path, old: Manifest, fresh: Manifest, name: str, folder: Path) -> dict[str, Part]:
    """The parts of the store after the rows of `fresh`, which are written behind those of the columns."""
    parts = dict(old.parts)
    for column in ("weights", "qid"):
        if (column in old.parts) != (column in fresh.parts):
            theirs, ours = ("have no", "have some") if column in old.parts else ("have", "have none")
            raise DataError(f"{name}: its rows {theirs} {column}, those of {target} {ours}")
    for column in COLUMNS:
        if column in old.parts:  # hashes are not, in stores of earlier versions
            numbers = _Numbers(target, old, fresh, column, name)
            parts[column] = _extended(target, old.parts[column], numbers)
            if numbers.grown:
                texts = _NAMES[column]
                parts[texts] = write_texts(folder, texts, list(numbers.codes))
                sync(target / parts[texts].file)
    return parts


class _Numbers:
    """A column of the new rows, as numbers of the store: texts by its codes, which new texts extend."""

    def __init__(self, target: Path, old: Manifest, fresh: Manifest, column: str, name: str) -> None:
        self._path, self._given = target / fresh.part_name(column), np.dtype(fresh.parts[column].dtype)
        self._dtype, self._column, self._place = np.dtype(old.parts[column].dtype), column, f"{target}"
        self._name, self.codes = name, dict[str, int]()
        self._own: list[str] | None = None
        texts, what = _NAMES.get(column, ""), _WORDS.get(column, "")
        if texts in fresh.parts:
            self._own = _texts(target, fresh, texts)
        if texts in old.parts:
            self.codes = {text: code for code, text in enumerate(_texts(target, old, texts))}
            if self._own is None and column == "y":
                raise DataError(f"{name}: {what} are numbers, those of {target} are text")
        elif self._own is not None:
            raise DataError(f"{name}: {what} are text, those of {target} are numbers")
        self._known = len(self.codes)

    @property
    def grown(self) -> bool:
        """Whether there are new texts; known after the last number."""
        return len(self.codes) > self._known

    def __iter__(self) -> Iterator[Array]:
        many, first = read_settings().column_bytes // 8, 0
        while len(values := np.fromfile(self._path, dtype=self._given, count=many, offset=8 * first)):
            yield self._converted(values, first)
            first += len(values)

    def _converted(self, values: Array, first: int) -> Array:
        if self._known:
            own, places = self._own, values
            if own is None:  # queries that are numbers here
                numbers, places = np.unique(values, return_inverse=True)
                own = [str(number) for number in numbers.tolist()]
            codes = [self.codes.setdefault(text, len(self.codes)) for text in own]
            return np.array(codes, dtype=np.int64)[places]
        if self._dtype.kind == "i" and self._given.kind == "f":
            wrong = np.flatnonzero(values != np.rint(values))
            if len(wrong):
                row, what = int(wrong[0]), _WORDS[self._column]
                raise DataError(
                    f"{self._name}: row {first + row}: {what} of {self._place} are whole numbers, found {values[row]}"
                )
        return values.astype(self._dtype)


def _texts(target: Path, manifest: Manifest, name: str) -> list[str]:
    texts: list[str] = parse_json((target / manifest.part_name(name)).read_bytes())
    return texts


def _extended(target: Path, part: Part, numbers: Iterable[Array]) -> Part:
    """Writes numbers behind a column."""
    size, crc = part.size, part.crc32
    with open(target / part.file, "r+b") as file:
        file.truncate(size)
        file.seek(size)
        for values in numbers:
            data = np.ascontiguousarray(values, dtype=part.dtype).data.cast("B")
            size += file.write(data)
            crc = zlib.crc32(data, crc)
        file.flush()
        os.fsync(file.fileno())
    return Part(part.dtype, size, crc, part.file)


def _shorten(target: Path, manifest: Manifest) -> None:
    """Takes back what an append that failed has written behind the columns."""
    for name in COLUMNS.keys() & manifest.parts.keys():
        if os.path.getsize(target / manifest.part_name(name)) > manifest.parts[name].size:
            os.truncate(target / manifest.part_name(name), manifest.parts[name].size)
