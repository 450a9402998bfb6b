"""The rows of a store, or of a data set in memory, as a source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.dataset import Dataset
from cutsvm.io.formats.arrays import ArraySource
from cutsvm.io.preprocessing import Preprocessing
from cutsvm.io.store.batches import Batch, Source
from cutsvm.io.store.store import Store


class StoreSource(Source):
    """The rows of a store. Its columns are preprocessed already, by what a model expects or not at all."""

    def __init__(self, store: Store, spec: ColumnSpec | None = None) -> None:
        self.store = store
        self.name, self.feature_names = os.fspath(store.path), store.feature_names
        self.zero_based = store.manifest.zero_based
        stored = store.manifest.preprocessing
        self.preprocessing = None if stored is None else Preprocessing.from_dict(stored)
        self._labels = spec is None or spec.labels != "none"
        wanted = None if spec is None else spec.preprocessing
        if wanted is not None:
            _check_same(self.name, self.feature_names, self.preprocessing, wanted)

    def __iter__(self) -> Iterator[Batch]:
        store = self.store
        for k, (start, stop) in enumerate(pairwise(store.edges)):
            mine = slice(int(start), int(stop))
            arrays = store.read(k)
            X: Any = arrays[0]
            if store.sparse:
                X = sparse.csr_matrix(arrays, shape=(mine.stop - mine.start, store.shape[1]))
            weights, qid = (None if part is None else part[mine] for part in (store.weights, store.qid))
            self.share = (k + 1) / len(store.manifest.blocks)
            yield Batch(X, store.y[mine] if self._labels else None, weights, qid)


def _check_same(name: str, names: list[str] | None, found: Preprocessing | None, wanted: Preprocessing) -> None:
    """Raise unless the rows are those that the model expects: its columns, with the same means and scales."""
    if found is not None and found.columns == wanted.columns:
        return
    if found is None and names == wanted.feature_names:
        return
    raise DataError(
        f"{name}: rows with other columns, means or scales than the model was trained with; give the files that "
        "they were made from"
    )


class DatasetSource(ArraySource):
    """The rows of a data set in memory."""

    def __init__(self, data: Dataset, spec: ColumnSpec) -> None:
        y = None if spec.labels == "none" else data.y
        super().__init__(data.source, data.X, y, weights=data.weights, qid=data.qid)
        self.data, self.zero_based = data, data.zero_based
        self.feature_names, self.preprocessing = data.feature_names, data.preprocessing
        if spec.preprocessing is not None:
            _check_same(self.name, self.feature_names, self.preprocessing, spec.preprocessing)
