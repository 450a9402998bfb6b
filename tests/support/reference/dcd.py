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


def epoch(X, a, q, C, unit, above, below, alpha, order, w, run, seed):
    """Changes alpha and w = (w, b) in place; returns the gap, the steepest and flattest slope, the rows that stay."""
    y, top = np.where(a < 0, -1.0, 1.0), C * np.abs(a)
    gap, slopes, leave = 0.0, [], set()
    for place in permutation(len(order), run, seed):
        i = order[place]
        g = y[i] * (X[i] @ w[:-1] + w[-1]) - 1.0
        gap += top[i] * max(0.0, -g) + alpha[i] * g
        if (alpha[i] == 0.0 and g > above) or (alpha[i] == top[i] and g < below):
            leave.add(i)
            continue
        rests = (alpha[i] == 0.0 and g >= 0.0) or (alpha[i] == top[i] and g <= 0.0)
        slopes.append(0.0 if rests else g)
        if rests or g == 0.0:
            continue
        step = g / q[i] if q[i] > 0.0 else np.copysign(np.inf, g)
        now = np.clip(alpha[i] - step, 0.0, top[i])
        w += (now - alpha[i]) * y[i] * np.append(X[i], unit)
        alpha[i] = now
    return gap, max(slopes, default=-np.inf), min(slopes, default=np.inf), [i for i in order if i not in leave]


def value(unit, alpha, w):
    """sum_i alpha_i - |w|^2/2 - b^2/(2 unit): what an epoch raises."""
    return alpha.sum() - 0.5 * w[:-1] @ w[:-1] - (0.5 * w[-1] ** 2 / unit if unit else 0.0)
