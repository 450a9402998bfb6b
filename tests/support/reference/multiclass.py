"""The multi-class hinge loss of Crammer and Singer, row by row."""

from itertools import pairwise

import numpy as np


def heights(f, y):
    """[k != y_i] + f_ik - f_iy"""
    rows = np.arange(len(f))
    h = f - f[rows, y][:, None] + 1.0
    h[rows, y] = 0.0
    return h


def value(f, y, s):
    return float(s @ heights(f, y).max(axis=1))


def choices(f, y, s):
    """The class with the largest height; of equal ones its own first, then the next after its own, in a circle."""
    K, h = f.shape[1], heights(f, y)
    chosen = []
    for row, own, weight in zip(h, y, s, strict=True):
        order = [(own + step) % K for step in range(K)]
        chosen.append(max(order, key=lambda k: row[k]) if weight > 0 else own)  # max takes the first of equal ones
    return np.array(chosen, dtype=np.int32)


def pulls(choice, y, s, bounds, K):
    """Offsets, and the weight that each class gains, per shard."""
    offsets, pulls = np.zeros(len(bounds) - 1), np.zeros((len(bounds) - 1, K))
    for p in range(len(offsets)):
        for i in range(bounds[p], bounds[p + 1]):
            if choice[i] != y[i]:
                offsets[p] += s[i]
                pulls[p, choice[i]] += s[i]
                pulls[p, y[i]] -= s[i]
    return offsets, pulls


def slope_sums(X, choice, y, s, bounds, K):
    """sum over each shard of s_i (x_i in the class chosen, -x_i in its own)"""
    sums = np.zeros((len(bounds) - 1, K, X.shape[1]))
    for p in range(len(sums)):
        for i in range(bounds[p], bounds[p + 1]):
            if choice[i] != y[i]:
                sums[p, choice[i]] += s[i] * X[i]
                sums[p, y[i]] -= s[i] * X[i]
    return sums.reshape(len(sums), -1)


def along(f, to, y, s, k):
    """The loss at a point of the line."""
    return value(f + k * (to - f), y, s)


def breakpoints(f, to, y, s):
    """All places where some row's envelope of lines turns, and by how much: every pair of lines is looked at."""
    c, r = heights(f, y), heights(to, y) - heights(f, y)
    found = []
    for row, rises, weight in zip(c, r, s, strict=True):
        for a in range(len(row)):
            for b in range(len(row)):
                if rises[b] <= rises[a] or weight == 0:
                    continue
                k = (row[a] - row[b]) / (rises[b] - rises[a])
                left, right = _slopes(row, rises, k)
                found.append((k, weight * (right - left)))
    return found


def _slopes(row, rises, k):
    """The envelope's slopes left and right of k."""
    h = row + k * rises
    top = rises[h >= h.max() - 1e-9 * (1.0 + np.abs(h).max())]
    return top.min(), top.max()


def best_step(f, to, y, s, tilt, curvature, most=100.0):
    """min over k in [0, most] of the loss + tilt k + curvature k^2/2: at a breakpoint or where a piece has slope 0."""
    at = sorted({0.0, most, *(k for k, _ in breakpoints(f, to, y, s) if 0.0 < k < most)})
    points = list(at)
    for low, high in pairwise(at):
        slope = (along(f, to, y, s, high) - along(f, to, y, s, low)) / (high - low) + tilt
        if curvature > 0.0:
            points.append(float(np.clip(-slope / curvature, low, high)))
    values = [along(f, to, y, s, k) + tilt * k + 0.5 * curvature * k * k for k in points]
    return points[int(np.argmin(values))], min(values)


def distances(f, y):
    """How far the largest height is above the next."""
    h = np.sort(heights(f, y), axis=1)
    return h[:, -1] - h[:, -2]
