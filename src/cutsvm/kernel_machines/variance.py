"""The variance of all entries of X, which gamma="scale" goes by."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.kernel_machines.gram import is_sparse


@np.errstate(over="ignore", invalid="ignore")  # an overflow makes the objective infinite, which is an error
def variance_of(X: Any, counts: Vector | None = None) -> float:
    """The variance of all entries of X, whose rows occur `counts` times each (once by default).

    It is the mean of (x - mean)^2, since E x^2 - (E x)^2 cancels far from 0.
    """
    d = int(X.shape[1])
    if counts is not None and np.all(counts == 1.0):
        counts = None
    if counts is None:
        counts, repeated = np.ones(int(X.shape[0])), False
    else:
        repeated = True
    if not is_sparse(X):
        if not repeated:
            return float(X.var(dtype=np.float64))
        size = float(counts.sum()) * d
        mean = float(np.einsum("i,ij->", counts, X, dtype=np.float64)) / size
        away = np.subtract(X, mean, dtype=np.float64)
        return float(np.einsum("i,ij,ij->", counts, away, away)) / size
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    often = np.repeat(counts, np.diff(X.indptr))
    size = float(counts.sum()) * d
    mean = float(X.data @ often) / size
    return (
        float(np.subtract(X.data, mean, dtype=np.float64) ** 2 @ often) + (size - float(often.sum())) * mean**2
    ) / size
