"""The measure of `kernel.py`, the same for every solver: F, and the value of the dual, from the coefficients.

F(w, b) = |w|^2 / 2 + C sum_i max(0, 1 - y_i (w.phi(x_i) + b)) with an RBF kernel, at the best b, in float64; with more
than two classes the sum of F over all pairs of them. The value of the dual at the same coefficients, where they are
feasible, is a lower bound of F, whoever found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from kernel_data import Rows

BLOCK_BYTES = 200_000_000  # kernel values of a block of rows
FEASIBLE = 1e-7  # relative violation of the dual's constraints at which its value still counts as a bound


class Fitted(NamedTuple):
    """What a solver found: coefficients as scikit-learn's `SVC` has them, over the rows `support`."""

    seconds: float
    support: np.ndarray
    dual: np.ndarray  # (classes - 1) x support
    predict: Callable[[Any], np.ndarray] | None = None  # None: the sign of the score
    claims: dict[str, Any] | None = None


class Verdict(NamedTuple):
    """F at the best intercept, the dual's value (NaN: not feasible), and the intercept of the last pair."""

    objective: float
    dual: float
    intercept: float


def kernel_blocks(X: np.ndarray, V: np.ndarray, gamma: float) -> Iterator[tuple[slice, np.ndarray]]:
    """Kernel values of all rows of X with all of V, block by block: the rows and their values."""
    squares = np.einsum("ij,ij->i", V, V)
    step = max(1, BLOCK_BYTES // (8 * max(1, len(V))))
    for start in range(0, len(X), step):
        rows = slice(start, min(start + step, len(X)))
        K = X[rows] @ V.T
        K *= -2.0
        K += np.einsum("ij,ij->i", X[rows], X[rows])[:, None]
        K += squares
        np.maximum(K, 0.0, out=K)
        K *= -gamma
        yield rows, np.exp(K, out=K)


def judge(rows: Rows, found: Fitted, C: float, gamma: float, intercept: bool) -> Verdict:
    """F and the dual's value, summed over the pairs of classes."""
    X, classes = rows.form("dense", np.float64), rows.classes
    label = np.searchsorted(classes, rows.y)
    owner, k = label[found.support], len(classes)
    pairs = {pair: pair_coefficients(found.dual, owner, *pair) for pair in combinations(range(k), 2)}
    scores = np.zeros((rows.n, k))  # in column j: the score in the pair of the row's class and j
    for i in range(k):
        others = [j for j in range(k) if j != i]
        columns = np.column_stack([pairs[min(i, j), max(i, j)] for j in others])
        mine = np.flatnonzero(label == i)
        for block, K in kernel_blocks(X[mine], X[found.support], gamma):
            scores[np.ix_(mine[block], others)] = K @ columns
    verdicts = [judge_pair(*pair, pairs[pair], scores, label, found.support, C, intercept) for pair in pairs]
    sums = np.sum([verdict[:2] for verdict in verdicts], axis=0)
    return Verdict(float(sums[0]), float(sums[1]), verdicts[-1].intercept)


def pair_coefficients(dual: np.ndarray, owner: np.ndarray, i: int, j: int) -> np.ndarray:
    """Of the pair of classes i < j, the coefficient of every support row, positive for rows of class j."""
    c = np.where(owner == i, dual[j - 1], 0.0) + np.where(owner == j, dual[i], 0.0)
    return c if c[owner == j].sum() >= c[owner == i].sum() else -c


def judge_pair(
    i: int, j: int, c: np.ndarray, scores: np.ndarray, label: np.ndarray, support: np.ndarray, C: float, intercept: bool
) -> Verdict:
    first, second = scores[label == i, j], scores[label == j, i]
    f, y = np.concatenate([first, second]), np.repeat([-1.0, 1.0], [len(first), len(second)])
    # The loss is least at the breakpoint b = y - f where its slope, minus the number of positive rows at first, is 0.
    b = float(np.partition(y - f, len(second) - 1)[len(second) - 1]) if intercept else 0.0
    own = label[support]
    at_support = np.where(own == i, scores[support, j], 0.0) + np.where(own == j, scores[support, i], 0.0)
    square, alpha = float(c @ at_support), c * np.where(own == j, 1.0, -1.0)
    total = float(alpha.sum())
    within = alpha.min(initial=0.0) >= -FEASIBLE * C and alpha.max(initial=0.0) <= C * (1.0 + FEASIBLE)
    feasible = within and (not intercept or abs(c.sum()) <= FEASIBLE * total)
    loss = float(np.maximum(0.0, 1.0 - y * (f + b)).sum())
    return Verdict(square / 2 + C * loss, total - square / 2 if feasible else np.nan, b)


def held_out_error(rows: Rows, found: Fitted, gamma: float, intercept: float) -> float:
    """The share of the held-out rows in the wrong class; NaN if there are none."""
    if not len(rows.y_test):
        return np.nan
    if found.predict is not None:
        return float(np.mean(found.predict(rows.X_test) != rows.y_test))
    test = rows._replace(X=rows.X_test, y=rows.y_test).form("dense", np.float64)
    V, owner = rows.form("dense", np.float64)[found.support], np.searchsorted(rows.classes, rows.y[found.support])
    c, scores = pair_coefficients(found.dual, owner, 0, 1), np.empty(len(test))
    for block, K in kernel_blocks(test, V, gamma):
        scores[block] = K @ c + intercept
    return float(np.mean(np.where(scores > 0, 1.0, -1.0) != rows.y_test))
