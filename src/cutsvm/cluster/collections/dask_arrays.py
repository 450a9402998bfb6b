"""Dask arrays: a block of rows is a part, whether its size is known or not; blocks may be sparse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.dask_parts import column_of, dask
from cutsvm.cluster.protocol import Executor
from cutsvm.io.store.batches import value_type

__all__ = ["of_dask_array"]


def of_dask_array(executor: Executor, X: Any, y: Any, sample_weight: Any, qid: Any) -> Collection:
    """X with two dimensions; the others are Dask arrays or arrays in memory with one entry per row, or None."""
    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimensions: expected a matrix, rows x features")
    if np.isnan(X.shape[1]):
        raise DataError("the number of columns of X is not known: X.compute_chunk_sizes() finds it")
    if not X.shape[1]:
        raise DataError("X has no columns: expected a matrix, rows x features")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    given = {"y": y, "sample_weight": sample_weight, "qid": qid}
    rows = X.to_delayed().ravel().tolist()
    columns = [_blocks_like(X, own, name, len(rows)) for name, own in given.items()]
    values = list(zip(rows, *columns, strict=True))
    known = not any(np.isnan(size) for size in X.chunks[0])
    column, opener = column_of(executor, values)
    dtype = X.dtype
    return Collection(
        executor,
        column,
        opener,
        [f"part {k}" for k in range(len(values))],
        sizes=[int(size) for size in X.chunks[0]] if known else None,
        d=int(X.shape[1]),
        sparse=bool(sparse.issparse(X._meta)),
        narrow=bool(value_type(None, dtype) == np.float32) if dtype is not None and dtype.kind in "biuf" else None,
        weighted=sample_weight is not None,
        queried=qid is not None,
    )


def _blocks_like(X: Any, values: Any, name: str, count: int) -> list[Any]:
    """Blocks of a column of labels, weights or queries, with the rows of the blocks of X."""
    da = dask("dask.array")
    if values is None:
        return [None] * count
    known = not any(np.isnan(size) for size in X.chunks[0])
    if not isinstance(values, da.Array) and hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if not isinstance(values, da.Array):
        whole = np.asarray(values)
        if not whole.ndim:
            raise DataError(f"{name}: expected an array with an entry for each row of X, got {values!r}")
        if not known:
            raise DataError(
                f"{name} is in memory and the sizes of the blocks of X are not known: "
                "X.compute_chunk_sizes() finds them"
            )
        _check_rows(name, len(whole), X.shape[0])
        edges = np.cumsum([0, *X.chunks[0]]).tolist()
        return [whole[begin:end] for begin, end in itertools.pairwise(edges)]
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{name} has {values.ndim} dimensions: expected one number or text per row")
    if known and not np.isnan(values.shape[0]):
        _check_rows(name, values.shape[0], X.shape[0])
        if values.chunks[0] != X.chunks[0]:
            values = values.rechunk((X.chunks[0],))
    elif values.numblocks[0] != count:
        raise DataError(
            f"{name} has {values.numblocks[0]} blocks and X has {count}, of sizes that are not known: "
            "compute_chunk_sizes() of both finds them"
        )
    return list(values.to_delayed().ravel().tolist())


def _check_rows(name: str, have: int, rows: int) -> None:
    if have != rows:
        raise DataError(f"{name} has {have} entries and X has {rows} rows")
