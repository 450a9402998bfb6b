"""A store as parts: its blocks, which workers map from a folder that they all see."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import ClusterError
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.protocol import Executor
from cutsvm.io.store.batches import Batch, value_type
from cutsvm.io.store.store import Store

__all__ = ["of_store"]


@lru_cache(maxsize=4)
def _opened(path: str, name: str, version: int) -> Store:
    """The store in this version: its blocks are checked once in a process."""
    store = Store(path)
    if (store.manifest.name, store.manifest.version) != (name, version):
        raise ClusterError(f"{path}: the store has changed since the fit began; fit again")
    return store


@dataclass(frozen=True)
class StoreBlock:
    """A block of a store."""

    path: str
    name: str
    version: int
    number: int
    rows: int
    labels: bool
    feature_names: Sequence[str] | None = None

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
        store = _opened(self.path, self.name, self.version)
        rows = slice(begin, self.rows if end is None else end)
        first = int(store.edges[self.number])
        mine = slice(first + rows.start, first + rows.stop)
        arrays = store.read(self.number, whole=False)
        X: Any = arrays[0]
        if store.sparse:
            X = sparse.csr_matrix(arrays, shape=(self.rows, store.shape[1]))
        # Copies: a file that is truncated later would be read as zeros.
        own, texts = X[rows].copy(), store.texts("label_names")
        y = None
        if self.labels:
            y = store.column("y")[mine].copy() if texts is None else np.asarray(texts)[store.codes("y", texts)[mine]]
        weights, qid = (None if part is None else part[mine].copy() for part in (store.weights, store.qid))
        store.check_intact()
        yield Batch(own, y, weights, qid)


def of_store(executor: Executor, store: Store, *, labels: bool) -> Collection:
    """The blocks of a store. All that has to be counted is in its manifest."""
    manifest, path = store.manifest, os.path.abspath(store.path)
    names = None if store.feature_names is None else tuple(store.feature_names)
    sizes = [block.live for block in manifest.blocks]
    about = (path, manifest.name, manifest.version)
    values = [StoreBlock(*about, number, rows, labels, names) for number, rows in enumerate(sizes)]
    return Collection(
        executor,
        executor.put(values),
        _itself,
        [f"{path}, block {number}" for number in range(len(sizes))],
        sizes=sizes,
        d=store.shape[1],
        sparse=store.sparse,
        narrow=bool(value_type(None, manifest.dtype) == np.float32),
        entries=manifest.entries,
        feature_names=names,
        weighted=store.weights is not None,
        queried=store.qid is not None,
    )


def _itself(value: StoreBlock, name: str) -> StoreBlock:
    return value
