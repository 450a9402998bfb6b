"""The one-class SVM from sorts and from quadprog on its dual: bounds of the optimum from both sides."""

from fractions import Fraction

import numpy as np
import quadprog


def tail_mean(f, s, nu):
    """The mean of the lowest nu-share of the scores by weight: row after row in their order."""
    left = nu * s.sum()
    total, size = 0.0, left
    for i in np.argsort(f, kind="stable"):
        part = min(left, s[i])
        total, left = total + part * f[i], left - part
    return total / size


def objective(X, s, nu, w, rho):
    """|w|^2/2 - rho + sum_i s_i max(0, rho - w.x_i) / (nu S)"""
    return 0.5 * w @ w - rho + s @ np.maximum(0.0, rho - X @ w) / (nu * s.sum())


def exact_objective(X, s, nu, w, rho):
    """F in exact arithmetic."""
    s, w, rho = [*map(Fraction, s)], [*map(Fraction, w)], Fraction(rho)
    short = sum(weight * max(Fraction(0), rho - f) for weight, f in zip(s, _scores(X, w), strict=True))
    return sum(a * a for a in w) / 2 - rho + short / (Fraction(nu) * sum(s))


def best_multiple(X, s, nu, w):
    """The lowest F at a multiple of w, in exact arithmetic."""
    s, w = [*map(Fraction, s)], [*map(Fraction, w)]
    left = Fraction(nu) * sum(s)
    mean, size = Fraction(0), left
    for f, weight in sorted(zip(_scores(X, w), s, strict=True)):
        part = min(left, weight)
        mean, left = mean + part * f / size, left - part
    square = sum(a * a for a in w)
    return -mean * mean / (2 * square) if mean > 0 else Fraction(0)


def _scores(X, w):
    return [sum(Fraction(x) * a for x, a in zip(row, w, strict=True)) for row in X]


def optimum(X, s, nu):
    """(low, high) with low <= min F <= high: min |sum_i alpha_i x_i|^2/2, 0 <= alpha_i <= s_i / (nu S), sum 1."""
    X, s = np.asarray(X, dtype=float)[s > 0], s[s > 0]
    n, most = len(s), s / (nu * s.sum())
    Q = X @ X.T
    ridge = 1e-11 * max(np.trace(Q) / n, 1e-300)  # quadprog wants a positive definite matrix
    bounds = np.hstack([np.ones((n, 1)), np.eye(n), -np.eye(n)])
    sides = np.concatenate([[1.0], np.zeros(n), -most])
    scale = max(np.trace(Q) / n, 1e-300)
    alpha = most / most.sum()
    if nu < 1.0 - 1e-9:
        alpha = quadprog.solve_qp((Q + ridge * np.eye(n)) / scale, np.zeros(n), bounds, sides, 1)[0]
        alpha = _allowed(alpha, most)
    a = X.T @ alpha
    square = a @ a
    mean = tail_mean(X @ a, s, nu)
    high = -0.5 * mean * mean / square if mean > 0.0 and square > 0.0 else 0.0
    return -0.5 * square, high


def _allowed(alpha, most):
    """alpha, clipped to what is allowed, with a sum of 1."""
    alpha = np.clip(alpha, 0.0, most)
    lack = 1.0 - alpha.sum()
    room = most - alpha if lack > 0 else alpha
    return alpha + lack * room / room.sum() if room.sum() > 0 else alpha
