"""Twins of src/core/sweep.hpp."""

from fractions import Fraction
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


def squares(X):
    return (X.astype(float) ** 2).sum(axis=1)


def group_sums(X, s, group, sums):
    """Adds |s_i| (x_i, 1) of each row to its group's sum, if it is in one; and the rows read."""
    wide = np.hstack([X, np.ones((len(X), 1))])
    found, read = sums.copy(), 0
    for row, weight, g in zip(wide, np.abs(s), group, strict=True):
        if g >= 0 and weight > 0:
            found[g] += weight * row
            read += 1
    return found, read


def compress(X):
    """Values, columns and row pointers of what is not 0."""
    rows, columns = np.nonzero(X)
    return X[rows, columns], columns, np.searchsorted(rows, np.arange(len(X) + 1))


def valid_csr(columns, pointers, d):
    """(valid, sorted), row by row; what is not valid is not sorted either, unless only a column is out of range."""
    if pointers[0] != 0 or any(i > j for i, j in pairwise(pointers)) or pointers[-1] > len(columns):
        return False, False
    rows = [list(columns[i:j]) for i, j in pairwise(pointers)]
    fits = all(0 <= j < d for row in rows for j in row)
    rises = all(i < j for row in rows for i, j in pairwise([-1, *row]))
    return fits, rises


def column_ranges(X):
    """The least and the largest value of each feature."""
    return X.astype(float).min(axis=0), X.astype(float).max(axis=0)


def exact_scores(X, w, b):
    """x_i . w + b without rounding."""
    factors = [Fraction(float(value)) for value in w]
    return [sum((Fraction(float(x)) * v for x, v in zip(row, factors, strict=True)), Fraction(float(b))) for row in X]


def row_hashes(X):
    """The sum over the values other than 0 of the splitmix64 finalizer of (feature, value), modulo 2^64."""
    values = X.astype(float)
    places = np.arange(1, X.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = values.view(np.uint64) ^ places
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where(values != 0.0, z ^ (z >> np.uint64(31)), np.uint64(0)).sum(axis=1, dtype=np.uint64)
