"""Rows of the parts, counted before anything else is computed, and the grains that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.text import listed
from cutsvm.cluster.collections.base import Collection, Opener
from cutsvm.cluster.grains import Layout, LayoutSettings
from cutsvm.cluster.queries import Runs, edges_between_queries
from cutsvm.cluster.rows import Targets
from cutsvm.io.store.batches import value_type

__all__ = ["Head", "Heads", "head_of_part"]


@dataclass(frozen=True, eq=False)
class Head:
    """What is counted of a part. narrow: whether float32 holds its values. runs: its queries."""

    n: int
    d: int
    entries: int
    sparse: bool
    narrow: bool
    weighted: bool
    queried: bool
    feature_names: tuple[str, ...] | None
    runs: Runs | None = None


def head_of_part(value: Any, name: str, *, opener: Opener, queries: bool) -> Head:
    """Rows, columns and entries of a part; they are not looked at otherwise."""
    n = d = entries = 0
    is_sparse, narrow, weighted, queried, runs = False, True, False, False, []
    part = opener(value, name)
    for batch in part.read():
        X: Any = batch.X
        d = int(X.shape[1])
        n += int(X.shape[0])
        own_sparse = bool(sparse.issparse(X))
        is_sparse |= own_sparse
        entries += int(X.nnz) if own_sparse else int(X.shape[0]) * d
        narrow &= value_type(None, X.dtype) == np.float32
        weighted |= batch.weights is not None
        queried |= batch.qid is not None
        if queries and batch.qid is not None:
            runs.append(Runs.of(batch.qid, name))
    names = None if part.feature_names is None else tuple(map(str, part.feature_names))
    return Head(n, d, entries, is_sparse, narrow, weighted, queried, names, Runs.joined(runs) if runs else None)


@dataclass(frozen=True, eq=False)
class Heads:
    """Of all parts: the number of rows of each, columns, and the mean size of a row in memory."""

    sizes: Sequence[int]
    d: int
    row_bytes: float
    sparse: bool
    narrow: bool
    weighted: bool
    queried: bool
    feature_names: tuple[str, ...] | None = None
    runs: Sequence[Runs] = ()

    @property
    def n(self) -> int:
        return sum(self.sizes)

    @classmethod
    def known(cls, collection: Collection, targets: Targets) -> Heads | None:
        """What follows from what the collection says, after a round of the lengths alone; None: read the parts."""
        own = collection
        if own.d is None or own.narrow is None or own.sparse is None or own.weighted is None:
            return None
        if own.sparse and (own.entries is None or own.sizes is None):
            return None
        if own.queried is None or (targets == "levels" and own.queried):
            return None
        if own.sizes is None and own.lengths is None:
            return None
        sizes = (
            own.sizes
            if own.lengths is None
            else [int(size) for size in own.executor.collect(own.lengths, doing="count")]
        )
        assert sizes is not None
        names = None if own.feature_names is None else tuple(map(str, own.feature_names))
        row_bytes = _dense_bytes(own.d)
        if own.sparse:
            row_bytes = _sparse_bytes(own.entries or 0, sum(sizes))
        return cls(sizes, own.d, row_bytes, own.sparse, own.narrow, own.weighted, own.queried, names)

    @classmethod
    def of(cls, heads: Sequence[Head], names: Sequence[str]) -> Heads:
        """DataError if parts that have rows have different numbers of columns."""
        sizes = [head.n for head in heads]
        some = [(head, name) for head, name in zip(heads, names, strict=True) if head.n]
        if not some:
            raise DataError("the collection has no rows")
        d, feature_names = some[0][0].d, some[0][0].feature_names
        for head, name in some:
            if head.d != d:
                raise DataError(f"{name}: {head.d} columns, where {some[0][1]} has {d}")
            if head.feature_names != feature_names:
                raise DataError(
                    f"{name}: the columns are {_listed(head.feature_names)}, where {some[0][1]} has "
                    f"{_listed(feature_names)}"
                )
        is_sparse = any(head.sparse for head, _ in some)
        entries = sum(head.entries for head, _ in some)
        row_bytes = _sparse_bytes(entries, sum(sizes)) if is_sparse else _dense_bytes(d)
        runs = [head.runs for head, _ in some if head.runs is not None]
        found = (any(head.weighted for head, _ in some), any(head.queried for head, _ in some), feature_names)
        return cls(sizes, d, row_bytes, is_sparse, all(head.narrow for head, _ in some), *found, runs)

    def layout(self, targets: Targets, settings: LayoutSettings, most_query_bytes: int) -> Layout:
        """The layout of the rows; for levels with grains of whole queries."""
        wide = settings.is_wide(self.d, sparse=self.sparse)
        layout = Layout.of(self.n, self.row_bytes, settings, wide=wide)
        if targets != "levels":
            return layout
        edges = edges_between_queries(layout.edges, self.runs)
        largest = int(np.diff(edges).max())
        if largest * self.row_bytes > most_query_bytes:
            raise DataError(
                f"queries of up to {largest:,} rows: the rows of a query are compared with each other, and have to fit "
                f"{most_query_bytes:,} bytes on one worker; "
                + ("smaller queries do" if self.runs else "qid states them")
            )
        return Layout(edges, Layout.cut(len(edges) - 1, settings))


def _listed(names: Sequence[str] | None) -> str:
    return "without names" if names is None else listed(names)


def _dense_bytes(d: int) -> float:
    return float(np.dtype(np.float64).itemsize * d)


def _sparse_bytes(entries: int, rows: int) -> float:
    """Values and their columns; the mean over all rows does not depend on the parts."""
    return (np.dtype(np.float64).itemsize + np.dtype(np.int32).itemsize) * entries / max(1, rows)
