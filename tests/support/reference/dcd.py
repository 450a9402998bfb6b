"""Twins of src/core/dcd.hpp."""

import numpy as np

MASK = 2**64 - 1


def draws(seed):
    """splitmix64: the upper 32 bits of each number."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield (z ^ (z >> 31)) >> 32


def permutation(count, run, seed):
    """0..count-1 in runs of neighbours, the runs shuffled by Fisher and Yates."""
    runs = [range(first, min(count, first + run)) for first in range(0, count, run)]
    numbers = draws(seed)
    for left in range(len(runs), 1, -1):
        k = (next(numbers) * left) >> 32
        runs[left - 1], runs[k] = runs[k], runs[left - 1]
    return [place for part in runs for place in part]


def epoch(X, loss, q, C, unit, above, below, alpha, order, w, run, seed):
    """Changes alpha and w = (w, b) in place; returns the gap, the steepest and flattest slope, the rows that stay.

    loss: one of `tests.support.reference.row_losses`.
    """
    gap, slopes, leave = 0.0, [], set()
    for place in permutation(len(order), run, seed):
        i = order[place]
        y, f = loss.y[i], X[i] @ w[:-1] + w[-1]
        gap += loss.take([i]).gaps(np.array([f]), alpha[[i]], C)[0]
        low, high = loss.range(i, alpha[i], C)
        if y * f - low > above and y * f - high < below:
            leave.add(i)
            continue
        slopes.append(y * f - np.clip(y * f, low, high))
        if slopes[-1] == 0.0:
            continue
        now = loss.best(i, y * f - q[i] * alpha[i], q[i], C)
        w += (now - alpha[i]) * y * np.append(X[i], unit)
        alpha[i] = now
    return gap, max(slopes, default=-np.inf), min(slopes, default=np.inf), [i for i in order if i not in leave]


def value(loss, unit, alpha, w, C):
    """sum_i C offset_i(-y_i alpha_i / C) - |w|^2/2 - b^2/(2 unit): what an epoch raises."""
    square = w[:-1] @ w[:-1] + (w[-1] ** 2 / unit if unit else 0.0)
    return C * loss.offset(-loss.y * alpha / C).sum() - 0.5 * square
