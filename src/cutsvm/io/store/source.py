"""The rows of a store, or of a data set in memory, as a source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
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
            _check_columns(self.name, self.preprocessing, wanted)

    def __iter__(self) -> Iterator[Batch]:
        store = self.store
        # Not store.y: the texts of all rows at once would take more memory than a block.
        texts = store.texts("label_names")
        labels = store.column("y") if texts is None else store.codes("y", texts)
        for k, (start, stop) in enumerate(pairwise(store.edges)):
            mine = slice(int(start), int(stop))
            arrays = store.read(k)
            X: Any = arrays[0]
            if store.sparse:
                X = sparse.csr_matrix(arrays, shape=(mine.stop - mine.start, store.shape[1]))
            weights, qid = (None if part is None else part[mine] for part in (store.weights, store.qid))
            self.share = (k + 1) / len(store.manifest.blocks)
            y = labels[mine] if texts is None else np.asarray(texts)[labels[mine]]
            yield Batch(X, y if self._labels else None, weights, qid)

    def check_intact(self) -> None:
        self.store.check_intact()


def _check_columns(name: str, found: Preprocessing | None, wanted: Preprocessing) -> None:
    """Refuse a store whose features were made in another way than those of the model: other categories or scales.

    What missing values were replaced by may differ: that is no more than another number in these places.
    """
    known = {} if found is None else {column.name: column for column in found.columns}
    for column in wanted.columns:
        own = known.get(column.name)
        if own is None and not column.changes_values:
            continue
        if own is None or (own.categories, own.shift, own.scale) != (column.categories, column.shift, column.scale):
            raise DataError(
                f"{name}: the features of column {column.name!r} were not made as in training: their categories or "
                "scales are others; give the files that the store was made from"
            )


class DatasetSource(ArraySource):
    """The rows of a data set in memory."""

    def __init__(self, data: Dataset, spec: ColumnSpec) -> None:
        y = None if spec.labels == "none" else data.y
        super().__init__(data.source, data.X, y, weights=data.weights, qid=data.qid)
        self.data, self.zero_based = data, data.zero_based
        self.feature_names, self.preprocessing = data.feature_names, data.preprocessing
        if spec.preprocessing is not None:
            _check_columns(self.name, self.preprocessing, spec.preprocessing)
