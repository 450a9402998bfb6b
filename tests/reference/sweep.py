"""Twins of src/core/sweep.hpp."""

from itertools import pairwise

import numpy as np


def scores(X, w, b):
    return X.astype(float) @ w + b


def accumulate(X, old, fresh, bounds, sums):
    """sums[p] += sum over shard p of (fresh_i - old_i) (x_i, 1); returns them, the weight moved, the rows read."""
    change = fresh - old
    wide = np.hstack([X.astype(float), np.ones((len(X), 1))])[:, : sums.shape[1]]
    ranges = list(pairwise(bounds))
    parts = [change[a:b] @ wide[a:b] for a, b in ranges]
    moved = [np.abs(change[a:b]).sum() for a, b in ranges]
    return sums + np.array(parts), np.array(moved), int(np.count_nonzero(change))


def blend(start, end, k):
    return (1 - k) * start + k * end
