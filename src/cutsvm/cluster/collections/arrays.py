"""Arrays in memory as a collection of any number of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutsvm.cluster.collections.base import Collection, arrays_of
from cutsvm.cluster.protocol import Executor

__all__ = ["of_arrays", "split_arrays"]


def split_arrays(
    X: Any, y: Any = None, sample_weight: Any = None, *, qid: Any = None, parts: int | Sequence[int] = 1
) -> list[tuple[Any, Any, Any, Any]]:
    """The rows in this number of parts of about the same size, or cut at these rows: (X, y, weights, qid) of each."""
    n = X.shape[0]
    edges = np.linspace(0, n, parts + 1).astype(np.int64) if isinstance(parts, int) else np.array([0, *parts, n])
    columns = [None if own is None else np.asarray(own) for own in (y, sample_weight, qid)]
    return [
        (X[begin:end], *(None if own is None else own[begin:end] for own in columns))
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def of_arrays(executor: Executor, parts: Sequence[tuple[Any, ...]]) -> Collection:
    """Parts (X, y), (X, y, weights) or (X, y, weights, qid) in memory; None stands for what there is not."""
    whole = [(*part, None, None, None)[:4] for part in parts]
    return Collection(
        executor,
        executor.put(whole),
        arrays_of,
        [f"part {k}" for k in range(len(whole))],
        here=True,
    )
