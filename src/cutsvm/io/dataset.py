"""Data sets: samples with labels, in memory or in a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm._utils.validation import scale_spread
from cutsvm.io.preprocessing import Preprocessing
from cutsvm.io.store.store import Store


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with labels, as read from a file.

    Attributes
    ----------
    X
        One row per sample: a csr_matrix, indices sorted, or an array.
    y
        One label per sample.
    qid
        The query of each sample, if the file has queries: int64, or text if any id is not a 64-bit integer.
    zero_based
        Whether indices of the file count from 0, else from 1. None: the file has columns and no indices.
    feature_ids
        The file's index of each column, increasing, if the columns are only the features seen; else None.
    source
        The name of the data, for messages.
    ignored
        How many distinct features of the file were dropped because the model has not seen them.
    weights
        The weight of each sample, if the file has weights.
    feature_names
        The names of the columns, if the file has names.
    preprocessing
        How the columns of a table became X, if the data are a table.
    """

    X: Any
    y: Array
    qid: Array | None
    zero_based: bool | None
    feature_ids: Array | None
    source: str
    ignored: int = 0
    weights: Array | None = None
    feature_names: list[str] | None = None
    preprocessing: Preprocessing | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        rows, features = self.X.shape
        return int(rows), int(features)

    def append(
        self,
        source: Any,
        *,
        format: str | None = None,
        label: Any = None,
        weight: Any = None,
        qid: Any = None,
        filter: Any = None,
        zero_based: bool | Literal["auto"] | None = None,
        n_features: int | None = None,
        block_bytes: int | None = None,
        progress: Callable[[int, int, float | None], object] | None = None,
    ) -> Dataset:
        """Of a store: append rows to it, which makes its next version.

        They get the columns, the type and the preprocessing of the store. Labels, weights and queries are needed where
        the store has them. Labels may be new ones.

        Parameters
        ----------
        source, format, label, weight, qid, filter, progress
            As for `convert`.
        zero_based
            Whether indices in svmlight files count from 0; None: as in the store.
        n_features
            Of sparse rows: a larger number of columns that the store has from now on.
        block_bytes
            Approximate size of a block.

        Returns
        -------
        Dataset
            This one, with the new rows at the end.
        """
        from cutsvm.io.store import append, writer

        given = {"format": format, "label": label, "weight": weight, "qid": qid, "filter": filter}
        more: dict[str, Any] = {"zero_based": zero_based, "n_features": n_features, "progress": progress}
        more["block_bytes"] = writer.BLOCK_BYTES if block_bytes is None else block_bytes
        own = self._changeable()
        append.append(own.store.path, source, **given, **more)
        return own._reopened()

    def delete(self, rows: Any) -> Dataset:
        """Of a store: delete rows from it, which makes its next version.

        They stay on disk until `compact`, and nothing reads them.

        Parameters
        ----------
        rows
            Numbers of rows in this data set, from 0; a slice of them; a mask, one truth value for each row; or a
            condition as text, such as "label == 3 and age > 90", which may name label, weight, qid, row (the number)
            and features.

        Returns
        -------
        Dataset
            This one without the rows; those behind them have smaller numbers now.
        """
        from cutsvm.io.store.delete import delete

        own = self._changeable()
        delete(own.store.path, rows, own.version)
        return own._reopened()

    def compact(
        self,
        *,
        block_bytes: int | None = None,
        progress: Callable[[int, int, float | None], object] | None = None,
    ) -> Dataset:
        """Of a store: write it again without its deleted rows, and what was appended in blocks of full size.

        It takes the disk space of the rows until it is done. Fits that read the store meanwhile fail, and say so.
        """
        from cutsvm.io.store import delete, writer

        size = writer.BLOCK_BYTES if block_bytes is None else block_bytes
        own = self._changeable()
        delete.compact(own.store.path, block_bytes=size, progress=progress)
        return own._reopened()

    def _changeable(self) -> StoredDataset:
        """This data set, if it is a store."""
        raise DataError(f"{self.source}: not a store; cutsvm.convert makes one, which can be changed")

    def with_labels(self, y: Array) -> Dataset:
        """The same samples with other labels."""
        return self._with(y=y)

    def _with(self, **changes: Any) -> Dataset:
        other = copy(self)
        other.__dict__.update(changes)  # the dataclass is frozen
        return other

    def in_order_of(self, names: Sequence[str] | None) -> Dataset:
        """The data with the columns `names` in this order, if both the data and the caller have names."""
        if names is None or self.feature_names is None or list(names) == self.feature_names:
            return self
        index = {name: column for column, name in enumerate(self.feature_names)}
        missing = [name for name in names if name not in index]
        if missing:
            raise ValueError(f"{self.source}: there is no column {missing[0]!r}, which the model was trained with")
        return self._with(X=self.X[:, [index[name] for name in names]], feature_names=list(names))

    @property
    def entries(self) -> int:
        """Number of stored values."""
        return int(self.X.nnz if hasattr(self.X, "nnz") else self.X.size)

    @property
    def spread(self) -> float:
        """max_j a_j / min_j a_j with a_j = max_i |x_ij|, over the features with a_j > 0."""
        return scale_spread(self.X)


class StoredDataset(Dataset):
    """A data set in a store. Labels, weights and queries are mapped; X is read at its first use.

    It is the version of the store at the time when it was opened, or after the last change that was made through it.
    """

    store: Store

    def __init__(self, store: Store, source: str | None = None) -> None:
        columns = {"qid": store.qid, "weights": store.weights, "feature_names": store.feature_names}
        stored = store.manifest.preprocessing
        preprocessing = None if stored is None else Preprocessing.from_dict(stored)
        known = {"source": source or os.fspath(store.path), "feature_ids": None, "ignored": 0}
        # The dataclass is frozen.
        self.__dict__.update(store=store, zero_based=store.manifest.zero_based, **columns, **known)
        self.__dict__.update(preprocessing=preprocessing)

    def __getattr__(self, name: str) -> Any:
        if name not in ("X", "y"):
            raise AttributeError(f"a data set has no attribute {name!r}")
        found = self.__dict__[name] = self.store.load() if name == "X" else self.store.y
        return found

    @property
    def version(self) -> int:
        """The number of this version: how often the store has changed, its conversion counted."""
        return self.store.manifest.version

    def _changeable(self) -> StoredDataset:
        return self

    def _reopened(self) -> Dataset:
        """This data set as the store is now."""
        store, source = Store(self.store.path), self.source
        self.__dict__.clear()
        StoredDataset.__init__(self, store, source)
        return self

    def ranked_labels(self, vector: Callable[[int], Array]) -> tuple[Array, Array | None]:
        """The labels as numbers; texts as their ranks in sorted order, and the sorted texts.

        vector: allocates the ranks.
        """
        names = self.store.texts("label_names")
        if names is None or "y" in self.__dict__:
            return self.y, None
        codes = self.store.codes("y", names)
        texts, ranks = np.unique(names, return_inverse=True)
        y = vector(len(codes))
        for start in range(0, len(codes), 1 << 20):
            y[start : start + (1 << 20)] = ranks[codes[start : start + (1 << 20)]]
        return y, texts

    def __repr__(self) -> str:
        rows, features = self.shape
        return f"StoredDataset({self.source!r}, {rows:,} rows, {features:,} features)"

    @property
    def loaded(self) -> bool:
        """Whether X is in memory."""
        return "X" in self.__dict__

    @property
    def shape(self) -> tuple[int, int]:
        return self.store.shape

    @property
    def entries(self) -> int:
        return self.store.manifest.entries

    @property
    def spread(self) -> float:
        return self.store.manifest.spread
