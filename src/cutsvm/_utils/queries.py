"""Query ids: one per row, of any kind, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Ints


def encode(qid: Any, n: int) -> Ints:
    """The ids as numbers, equal where the ids are; None is one query."""
    if qid is None:
        return np.zeros(n, dtype=np.int64)
    ids: Array = np.asarray(qid)
    if ids.shape != (n,):
        shape = f"{len(ids)} entries" if ids.ndim == 1 else f"the shape {ids.shape}"
        raise ValueError(f"qid has {shape}: expected one id for each of the {n} rows")
    if ids.dtype == object:
        return _by_hash(ids)
    if ids.dtype.kind == "f":
        _refuse_missing(np.isnan(ids))
    return np.asarray(np.unique(ids, return_inverse=True)[1], dtype=np.int64)


def _by_hash(ids: Array) -> Ints:
    """Objects need no order, so that text and numbers may stand side by side."""
    _refuse_missing(np.array([one is None or one != one for one in ids], dtype=bool))
    known: dict[Any, int] = {}
    try:
        return np.array([known.setdefault(one, len(known)) for one in ids], dtype=np.int64)
    except TypeError as error:
        raise TypeError(f"qid: expected numbers or text ({error})") from None


def _refuse_missing(missing: Array) -> None:
    if missing.any():
        raise ValueError(f"qid[{int(np.argmax(missing))}] is missing: expected one id for each row")


def query_by_query(codes: Ints) -> tuple[Ints | None, Ints]:
    """The order that puts the rows of a query side by side (None: they are), and where each query then starts."""
    order: Ints | None = None
    runs = _starts(codes)
    if len(runs) > 2 and len(runs) - 1 > len(np.unique(codes)):
        order = np.argsort(codes, kind="stable")
        runs = _starts(codes[order])
    return order, runs


def without_unpaired(y: Array, order: Ints | None, starts: Ints) -> tuple[Ints | None, Ints, int]:
    """Order and starts without the queries whose rows all have one y, and how many these are.

    They make no pair, so nothing of theirs, neither values nor weights, is to have an influence on the others. If no
    query makes a pair, all stay.
    """
    mine = y if order is None else y[order]
    sizes = np.diff(starts)
    paired = np.minimum.reduceat(mine, starts[:-1]) < np.maximum.reduceat(mine, starts[:-1])
    skipped = int(np.count_nonzero(~paired))
    if skipped in (0, len(sizes)):
        return order, starts, 0
    rows = np.flatnonzero(np.repeat(paired, sizes))
    return rows if order is None else order[rows], np.append(0, np.cumsum(sizes[paired])), skipped


def _starts(codes: Ints) -> Ints:
    """Where runs of equal codes start, and the end."""
    changes = np.flatnonzero(np.diff(codes)) + 1
    return np.concatenate([[0], changes, [len(codes)]]).astype(np.int64)
