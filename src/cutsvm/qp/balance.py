"""Weights x with c'x = 0, exactly or as nearly as rounding allows."""

from __future__ import annotations

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.qp.newton import cholesky, regularize_diagonal
from cutsvm.qp.settings import InteriorPointSettings
from cutsvm.qp.sorted_planes import SortedPlanes


def balanced(x: Vector, c: Vector) -> Vector:
    """x with c.x = 0: weights of the sign whose sum is larger are scaled down, which keeps every other constraint."""
    up, down = float(x @ np.maximum(c, 0.0)), float(x @ np.maximum(-c, 0.0))
    if up > down:
        return np.where(c > 0.0, x * (down / up), x)
    return np.where(c < 0.0, x * (up / down), x) if down > up else x


def projected(x: Vector, t: Vector, p: SortedPlanes, target: Vector, settings: InteriorPointSettings) -> Vector:
    """x with c'x = target, as nearly as x >= 0 and rounding allow, and with sums over the shards of at most 1.

    The nearest such x, with distances relative to x and t, so that small weights stay small:
    x (1 - (c - mean) v) and t (1 + mean v), with the shard's weighted mean of c, t counting as a plane with c = 0;
    the sum of x and t stays 1. The result is divided by the largest sum over a shard if that exceeds 1, which leaves
    c'x = 0 as it is.
    """
    least, best = np.inf, x
    for projections in range(settings.max_projections + 1):
        residual = compensated_sums(x, p.c) - target
        total = float(np.abs(residual).sum())
        if not total < least:
            break
        least, best = total, x
        small = p.intercept_bound * total <= settings.rounding_error * float(p.o @ x)
        if projections == settings.max_projections or small:
            break
        mean = p.per_shard(x[:, None] * p.c) / (p.per_shard(x) + t)[:, None]
        centered = p.c - mean[p.shard]
        rows = np.concatenate([np.sqrt(x)[:, None] * centered, np.sqrt(t)[:, None] * mean])
        normal = rows.T @ rows
        regularize_diagonal(normal, 0, settings.regularization)
        factor = cholesky(normal)
        if factor is None:
            break
        v = factor.solve(residual)
        x, t = x * np.clip(1.0 - centered @ v, 0.0, 2.0), t * np.clip(1.0 + mean @ v, 0.0, 2.0)
    scaled: Vector = best / max(1.0, float(p.per_shard(best).max()))
    return scaled


def compensated_sums(x: Vector, c: Vector) -> Vector:
    """c'x, with the rounding error of each product and each sum added at the end."""
    (x1, x2), (c1, c2), terms = _split(x[:, None]), _split(c), x[:, None] * c
    errors: Vector = (((x1 * c1 - terms) + x1 * c2 + x2 * c1) + x2 * c2).sum(axis=0)
    while len(terms) > 1:
        if len(terms) % 2:
            terms = np.concatenate([terms, np.zeros((1, c.shape[1]))])
        a, b = terms[::2], terms[1::2]
        terms = a + b
        added = terms - a
        errors = errors + ((a - (terms - added)) + (b - added)).sum(axis=0)
    total: Vector = terms[0] + errors
    return total


def _split(values: Vector) -> tuple[Vector, Vector]:
    """Two numbers of 26 bits with this sum (Veltkamp), whose products are exact."""
    big = 134217729.0 * values
    high = big - (big - values)
    return high, values - high
