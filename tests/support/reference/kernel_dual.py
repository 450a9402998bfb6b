"""The dual of a kernel machine with a piecewise linear loss, as it is written, and its optimum from quadprog.

    max over s of  c's - s'K s / 2,     low <= s <= high,     and, with a free intercept, sum_v s_v = total

K: kernel values of the rows of the variables.
"""

import numpy as np
import quadprog


def values(name, X, Z, gamma=1.0, coef0=0.0, degree=1, offset=0.0):
    """Kernel values in extended precision."""
    X, Z = X.astype(np.longdouble), Z.astype(np.longdouble)
    dots = X @ Z.T
    if name == "rbf":
        squares = [((x - Z) ** 2).sum(axis=1) for x in X]
        return np.exp(-gamma * np.array(squares, dtype=np.longdouble).reshape(dots.shape)) + offset
    if name == "poly":
        return (gamma * dots + coef0) ** degree + offset
    return (np.tanh(gamma * dots + coef0) if name == "sigmoid" else dots) + offset


def dual_value(K, c, s):
    return c @ s - 0.5 * s @ K @ s


def losses(g, low, high):
    """The losses of the variables: the largest s g with low <= s <= high."""
    return np.maximum(high * g, low * g)


def primal(K, c, low, high, s, b, total=0.0):
    """F at w = sum_v s_v phi(x_v) and b."""
    f = K @ s
    return 0.5 * s @ f + total * b + losses(c - f - b, low, high).sum()


def best_primal(K, c, low, high, s, total=0.0, *, free_intercept=True):
    """(F, b) at the best intercept: F is piecewise linear in b, with corners where a slope is b."""
    if not free_intercept:
        return primal(K, c, low, high, s, 0.0), 0.0
    f = K @ s
    return min((0.5 * s @ f + total * b + losses(c - f - b, low, high).sum(), b) for b in c - f)


def optimality(K, c, low, high, s, *, free_intercept=True):
    """(top, bottom): the largest slope that may be followed upwards, the least of those downwards."""
    g = c - K @ s
    top = max((v for v, free in zip(g, s < high, strict=True) if free), default=-np.inf)
    bottom = min((v for v, free in zip(g, s > low, strict=True) if free), default=np.inf)
    return top, bottom


def optimum(K, c, low, high, total=0.0, *, free_intercept=True):
    """(lower, upper) with lower <= min F <= upper, usually equal to 8 digits, and the s of lower."""
    free, s = low < high, low.copy()
    if free.any():
        own = K[np.ix_(free, free)]
        n = len(own)
        # quadprog wants a positive definite matrix, which rounded values need not be.
        least = max(0.0, -2.0 * float(np.linalg.eigvalsh(own)[0]))
        H = own + (least + 1e-10 * max(float(np.trace(own)) / n, 1e-300)) * np.eye(n)
        ones = np.ones((n, 1 if free_intercept else 0))
        bounds = np.hstack([ones, np.eye(n), -np.eye(n)])
        sides = np.concatenate([[total - s[~free].sum()] * ones.shape[1], low[free], -high[free]])
        slopes = c[free] - K[np.ix_(free, ~free)] @ s[~free]
        s[free] = np.clip(quadprog.solve_qp(H, slopes, bounds, sides, ones.shape[1])[0], low[free], high[free])
    upper, b = best_primal(K, c, low, high, s, total, free_intercept=free_intercept)
    missing = abs(s.sum() - total) if free_intercept else 0.0
    return dual_value(K, c, s) - missing * (abs(b) + 1.0), upper, s
