"""Queries of the parts: where they start, so that no grain ends within one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array, Ints
from cutsvm.cluster.rows import plain

__all__ = ["Runs", "edges_between_queries"]


@dataclass(frozen=True, eq=False)
class Runs:
    """Consecutive rows of the same query: the first row of each, and the query; `rows` in all."""

    starts: Ints
    ids: Array
    rows: int

    @classmethod
    def of(cls, qid: Any, name: str) -> Runs:
        if qid is None:
            raise DataError(f"{name}: there are no queries, which other parts have")
        ids = plain(np.asarray(qid))
        if ids.dtype == object or (ids.dtype.kind == "f" and np.isnan(ids).any()):
            wrong = next(k for k, one in enumerate(ids.tolist()) if one is None or one != one or ids.dtype == object)
            raise DataError(
                f"{name}: row {wrong}: expected a query, found {ids.tolist()[wrong]!r}; queries are numbers or text"
            )
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: len(ids)])
        return cls(starts, ids[starts], len(ids))

    @classmethod
    def joined(cls, several: Sequence[Runs]) -> Runs:
        """Of rows that follow each other; a query that goes on in the next rows is one."""
        if not several:
            return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), 0)
        kinds = {runs.ids.dtype.kind in "biuf" for runs in several}
        if len(kinds) > 1:
            raise DataError("queries are text in some parts and numbers in others")
        before = np.cumsum([0, *(runs.rows for runs in several)])
        starts = np.concatenate([runs.starts + first for runs, first in zip(several, before, strict=False)])
        ids = np.concatenate([runs.ids for runs in several])
        fresh = np.append(True, ids[1:] != ids[:-1])[: len(ids)]
        return cls(starts[fresh], ids[fresh], int(before[-1]))


def edges_between_queries(edges: Ints, runs: Sequence[Runs]) -> Ints:
    """The first start of a query at or after each edge; DataError if the rows of a query are not consecutive."""
    n = edges[-1]
    if not runs:  # all rows are one query
        return np.array([0, n])
    whole = Runs.joined(runs)
    ids, first, counts = np.unique(whole.ids, return_index=True, return_counts=True)
    again = np.flatnonzero(counts > 1)
    if len(again):
        query = ids[again[np.argmin(first[again])]].item()
        raise DataError(
            f"the query {query!r} appears again after rows of others: sort the rows by query, so that those of one "
            "query follow each other"
        )
    starts = np.append(whole.starts, n)
    return np.unique(starts[np.searchsorted(starts, edges)])
