"""The optimum of piecewise linear losses by quadprog on the dual, with bounds from both sides."""

import numpy as np
import quadprog

from tests.support.reference import hinge, multiclass


def hinges(f, a, t):
    """sum of max(0, a (t - f)); the hinge loss has t = sign(a)."""
    return np.maximum(0.0, a * (t - f)).sum()


def objective(X, a, C, intercept, w, b, t=None):
    """|w|^2/2 (+ b^2/2 if regularised) + C sum of losses; a = label times weight, or with t those of hinges."""
    penalty = 0.5 * w @ w + (0.5 * b * b if intercept == "regularized" else 0.0)
    f = X @ w + b
    return penalty + C * (hinge.value(f, a) if t is None else hinges(f, a, t))


def best_intercept(f, a, t):
    """argmin over b of the loss of f + b, by trying every breakpoint."""
    return min(t - f, key=lambda b: hinges(f + b, a, t))


def optimum(X, a, C, intercept, t=None):
    """(low, high) with low <= min F <= high, usually equal to 9 digits; a and t as of `objective`."""
    X, t, keep = np.asarray(X, dtype=float), np.sign(a) if t is None else t, a != 0
    X, a, t = X[keep], a[keep], t[keep]
    y = np.sign(a)
    wide = np.hstack([X, np.ones((len(X), 1))]) if intercept == "regularized" else X
    Z = y[:, None] * wide
    n = len(y)
    Q = Z @ Z.T
    ridge = 1e-9 * max(1.0, np.trace(Q) / n)  # quadprog wants a positive definite matrix
    bounds = np.hstack([np.eye(n), -np.eye(n)])
    sides = np.concatenate([np.zeros(n), -C * np.abs(a)])
    equalities = 0
    if intercept == "free":
        bounds, sides, equalities = np.hstack([y[:, None], bounds]), np.concatenate([[0.0], sides]), 1
    alpha = quadprog.solve_qp(Q + ridge * np.eye(n), y * t, bounds, sides, equalities)[0]
    alpha = np.clip(alpha, 0.0, C * np.abs(a))
    if intercept == "free":  # balance exactly: the heavier side gives way
        up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
        alpha = np.where(y > 0, alpha * min(1.0, down / up), alpha * min(1.0, up / down)) if up and down else 0 * alpha
    v = Z.T @ alpha
    low = alpha @ (y * t) - 0.5 * v @ v
    w = v[: X.shape[1]]
    b = {"regularized": lambda: v[-1], "free": lambda: best_intercept(X @ w, a, t), "none": lambda: 0.0}[intercept]()
    return low, objective(X, a, C, intercept, w, b, t)


def joint_objective(X, y, s, C, intercept, W, b):
    """sum_k |w_k|^2/2 (+ |b|^2/2 if regularised) + C sum of Crammer and Singer's losses."""
    penalty = 0.5 * (W * W).sum() + (0.5 * b @ b if intercept == "regularized" else 0.0)
    return penalty + C * multiclass.value(X @ W.T + b, y, s)


def joint_optimum(X, y, s, C, intercept):
    """(low, high) with low <= min F <= high: quadprog on the primal, over W, b and one slack per row with weight.

    quadprog wants a positive definite matrix: b and the slacks are held near their last values, again and again.
    """
    keep = s > 0
    X, y, s = np.asarray(X, dtype=float)[keep], y[keep], s[keep]
    (n, d), K = X.shape, int(y.max()) + 1
    near = 1e-4
    H = np.concatenate([np.full(K * d, 1.0 / C), np.full(K, 1.0 / C if intercept == "regularized" else near)])
    H = np.concatenate([H, np.full(n, near)])  # of F / C, so that slacks and weights are of one size
    held = np.concatenate([np.zeros(K * d), np.full(K, near * (intercept == "free")), np.full(n, near)])
    columns, sides = [], []
    for i in range(n):
        for k in range(K):
            column = np.zeros(len(H))
            if k != y[i]:
                column[k * d : (k + 1) * d] -= X[i]
                column[y[i] * d : (y[i] + 1) * d] += X[i]
                if intercept != "none":
                    column[K * d + k] -= 1.0
                    column[K * d + y[i]] += 1.0
            column[K * d + K + i] = 1.0
            columns.append(column)
            sides.append(float(k != y[i]))
    constraints, z, high = np.array(columns).T, np.zeros(len(H)), C * s.sum()
    for _ in range(50):
        linear = held * z - np.concatenate([np.zeros(K * d + K), s])
        z = quadprog.solve_qp(np.diag(H), linear, constraints, np.array(sides))[0]
        W, b = z[: K * d].reshape(K, d), z[K * d : K * d + K] * (intercept != "none")
        before, high = high, min(high, joint_objective(X, y, s, C, intercept, W, b))
        if before - high <= 1e-10 * high:
            break
    return high * (1.0 - 1e-6), high
