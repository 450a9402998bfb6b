"""Twins of src/core/pairwise.hpp and src/core/pair_squares.hpp: every pair is made."""

from itertools import combinations, pairwise, product

import numpy as np

from tests.support.reference import smooth, svm


def pairs(y, starts):
    """(i, j) of one query with y_i > y_j, query by query."""
    return [[(i, j) for i, j in product(range(a, b), repeat=2) if y[i] > y[j]] for a, b in pairwise(starts)]


def evaluate(f, y, s, starts, margin=1.0):
    """Slopes by row; by query the weight of the pairs that count, and their loss."""
    g, weights, losses = np.zeros(len(y)), [], []
    for query in pairs(y, starts):
        counted = [(i, j) for i, j in query if f[i] - f[j] < margin]
        for i, j in counted:
            g[i] -= s[i] * s[j]
            g[j] += s[i] * s[j]
        weights.append(sum(s[i] * s[j] for i, j in counted))
        losses.append(sum(s[i] * s[j] * (margin - (f[i] - f[j])) for i, j in counted))
    return g, np.array(weights), np.array(losses)


def squares(f, y, s, starts, margin=1.0):
    """Slopes by row; by query the weight of the pairs that count, then loss, offset, size and magnitude."""
    g, sums = np.zeros(len(y)), []
    for query, (a, b) in zip(pairs(y, starts), pairwise(starts), strict=True):
        z = np.abs(f - (0.5 * f[a:b].min() + 0.5 * f[a:b].max() if b > a else 0.0))
        counted = [(i, j, s[i] * s[j], margin - (f[i] - f[j])) for i, j in query if f[i] - f[j] < margin]
        own = np.zeros(len(y))
        for i, j, weight, short in counted:
            own[i] -= 2.0 * weight * short
            own[j] += 2.0 * weight * short
        loss = sum(weight * short**2 for _, _, weight, short in counted)
        magnitude = sum(w * ((margin + 2 * z[i]) ** 2 + (margin + 2 * z[j]) ** 2) for i, j, w, _ in counted)
        weight = sum(weight for _, _, weight, _ in counted)
        sums.append([weight, loss, loss - own @ f, np.abs(own).sum(), magnitude])
        g += own
    return g, np.array(sums)


def laplacian(f, y, s, starts, margin=1.0):
    """The second derivatives of the squares."""
    H = np.zeros((len(y), len(y)))
    for i, j in (pair for query in pairs(y, starts) for pair in query if f[pair[0]] - f[pair[1]] < margin):
        H[np.ix_([i, j], [i, j])] += 2.0 * s[i] * s[j] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return H


def in_order(f, y, s, starts):
    """The share of the pairs that are in order, ties at one half."""
    every = [(s[i] * s[j], np.sign(f[i] - f[j])) for query in pairs(y, starts) for i, j in query]
    return sum(weight * (1 + side) / 2 for weight, side in every) / sum(weight for weight, _ in every)


def differences(X, y, s, starts):
    """A row x_i - x_j and its weight for each pair."""
    every = [pair for query in pairs(y, starts) for pair in query]
    i, j = np.array(every).T
    return X[i] - X[j], s[i] * s[j]


def optimum(X, y, s, starts, C):
    """(low, high) with low <= min |w|^2/2 + C x loss <= high."""
    return svm.optimum(*differences(X, y, s, starts), C, "none")


def squared_optimum(X, y, s, starts, C):
    """min |w|^2/2 + C x loss, with the squares, from above, by SciPy on the explicit pairs."""
    rows, weights = differences(X, y, s, starts)
    return smooth.optimum("squared_hinge", rows, np.ones(len(rows)), weights, C, "none")


def lowest_cost(f, levels, s, count, cost):
    """The lowest sum of s x cost(level, prediction) over all rising thresholds, by trying them all."""
    values = np.unique(f)
    places = np.concatenate([values - 1e-9, [values[-1] + 1.0]])
    best = np.inf
    for picked in combinations(np.repeat(places, count - 1), count - 1):
        if np.all(np.diff(picked) >= 0):
            found = np.searchsorted(picked, f, side="left")
            best = min(best, (s * cost(levels, found)).sum())
    return best
