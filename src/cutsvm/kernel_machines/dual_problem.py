"""The dual that every kernel machine with a piecewise linear loss has, and its variables.

    max over s of  c's - s'K s / 2,     low <= s <= high,     and, with a free intercept b, sum_v s_v = total

bounds from below

    F(w, b) = |w|^2 / 2 + total b + sum_v max(high_v (c_v - f_v - b), low_v (c_v - f_v - b)),     f_v = w.phi(x_v)

    machine                       variables of a row                          c          low    high
    two classes, hinge            one, y = 1                                  1          0      C s_i
                                  one, y = -1                                 -1         -C s_i 0
    regression, epsilon-tube      two                                         y - eps    0      C s_i
                                                                              y + eps    -C s_i 0
    one class, total = nu sum s   one                                         0          0      s_i

Rows with equal features and targets are one row with the sum of their weights: a weight is exactly the number of times
that a row occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._native import matrix_of
from cutsvm._utils.types import Ints, Vector


@dataclass(frozen=True, eq=False)
class DualProblem:
    """The variables: c, low, high and the row of each; start: an s within all constraints; least: a bound of F."""

    c: Vector
    low: Vector
    high: Vector
    row_of: Ints
    start: Vector
    free_intercept: bool = True
    least: float = 0.0

    def __len__(self) -> int:
        return len(self.c)

    def some(self, which: Ints) -> DualProblem:
        """Some of the variables; their rows keep their numbers."""
        parts = (self.c[which], self.low[which], self.high[which], self.row_of[which], self.start[which])
        return DualProblem(*parts, self.free_intercept, self.least)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows that are alike as one: `rows` has one of each group, `targets` its target, `weights` its sum of weights.

    kept: the original rows with weight; group and share: of each of them its group, and its share of the weight.
    merged: False if each row is a group of its own, in the order of their places within a target.
    """

    rows: Ints
    targets: Vector
    weights: Vector
    kept: Ints
    group: Ints
    share: Vector
    merged: bool = True

    def spread(self, coef: Vector, n: int) -> Vector:
        """Coefficients of the groups (along the last axis) for the n original rows, each by its share of the weight."""
        out = np.zeros((*coef.shape[:-1], n))
        out[..., self.kept] = coef[..., self.group] * self.share
        return out

    def sums(self, values: Vector) -> Vector:
        """Sums over the groups of values of the original rows."""
        found: Vector = np.bincount(self.group, values[self.kept], minlength=len(self.rows)).astype(np.float64)
        return found

    def counted(self, X: Any, counts: Vector) -> tuple[Any, Vector]:
        """Rows of X, and how often each occurs: the same bits for rows that are repeated and for their weights."""
        if self.merged:
            return X[self.rows], self.sums(counts)
        return X if len(self.kept) == len(counts) else X[self.kept], counts[self.kept]

    def in_order(self, targets: Vector, weights: Vector, counts: Vector) -> Groups:
        """The groups of rows in the order of their places, if there is nothing to merge; else the groups themselves.

        There is nothing to merge if no two rows with weight are alike, and each counts once. counts: what of the
        weights counts rows.
        """
        kept = self.kept
        if len(self.rows) < len(kept) or np.any(counts[kept] != 1.0):
            return self
        order = np.argsort(targets[kept], kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        rows = kept[order]
        return Groups(rows, targets[rows], weights[rows], kept, place, np.ones(len(kept)), merged=False)


def group_rows(X: Any, targets: Vector, weights: Vector, *, given: bool = False, threads: int = 1) -> Groups:
    """Groups of rows with equal features and targets, ordered by target and then by features, not by their places.

    Rows without weight are left out. given: X is a matrix of kernel values, whose rows are not compared.
    """
    kept = np.flatnonzero(weights > 0.0)
    keys = np.arange(len(kept)) if given else _feature_keys(X, kept, threads)
    order = np.lexsort((keys, targets[kept]))
    key, target = keys[order], targets[kept][order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (key[1:] != key[:-1]) | (target[1:] != target[:-1])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    own = weights[kept]
    sums: Vector = np.bincount(group, own, minlength=int(new.sum())).astype(np.float64)
    return Groups(kept[order[new]], target[new], sums, kept, group, own / sums[group])


def _feature_keys(X: Any, kept: Ints, threads: int) -> Ints:
    """Numbers that are equal where rows are, from a hash of the features."""
    hashes = np.empty(int(X.shape[0]), dtype=np.uint64)
    strided = isinstance(X, np.ndarray) and not (X.flags.c_contiguous or X.flags.f_contiguous)
    matrix_of(np.ascontiguousarray(X) if strided else X, threads).hashes(hashes)
    own = hashes[kept]
    _, first, inverse = np.unique(own, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    same = kept[first][inverse]
    again = np.flatnonzero(same != kept)
    if len(again) and (X[kept[again]] != X[same[again]]).sum():  # different rows with one hash
        return np.arange(len(kept))
    return inverse


def two_classes(y: Vector, caps: Vector, *, free_intercept: bool) -> DualProblem:
    """The hinge loss; y: 1 and -1, caps: C s_i."""
    low, high = np.where(y > 0.0, 0.0, -caps), np.where(y > 0.0, caps, 0.0)
    return DualProblem(y, low, high, np.arange(len(y)), np.zeros(len(y)), free_intercept)


def tube(y: Vector, caps: Vector, epsilon: float, *, free_intercept: bool) -> DualProblem:
    """The epsilon-insensitive loss; variables: those of rows above the tube, then those of rows below."""
    zero, rows = np.zeros(len(y)), np.arange(len(y))
    c, low, high = [y - epsilon, y + epsilon], [zero, -caps], [caps, zero]
    ends = (np.concatenate(c), np.concatenate(low), np.concatenate(high), np.concatenate([rows, rows]))
    return DualProblem(*ends, np.zeros(2 * len(y)), free_intercept)


def one_class(caps: Vector, nu: float) -> DualProblem:
    """|w|^2 / 2 - nu n rho + sum_i s_i max(0, rho - f_i), n = sum_i s_i, caps: s_i; the intercept is -rho."""
    ends, zero = np.cumsum(caps), np.zeros(len(caps))
    start = np.clip(nu * ends[-1] - (ends - caps), 0.0, caps)
    return DualProblem(zero, zero, caps, np.arange(len(caps)), start, True, -np.inf)
