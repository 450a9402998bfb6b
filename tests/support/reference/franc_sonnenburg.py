"""V. Franc, S. Sonnenburg: Optimized cutting plane algorithm for SVMs, ICML 2008. Algorithm 1 and the line search of
appendix A, with the paper's letters: m rows, C in front of the mean loss."""

from dataclasses import dataclass, field

import numpy as np

from tests.support.reference.joachims import argmin


@dataclass
class Run:
    """w_b, w_t, F(w_b) and F_t(w_t) of every iteration.

    closest: how near to the margin a row was at w_c, where the plane is made, at the nearest, by iteration.
    """

    w_bs: list = field(default_factory=list)
    w_ts: list = field(default_factory=list)
    above: list = field(default_factory=list)
    below: list = field(default_factory=list)
    closest: list = field(default_factory=list)

    @property
    def iterations(self):
        return len(self.w_bs)


def F(x, y, C, w):
    """Problem (1) with the risk (2)."""
    return 0.5 * w @ w + C * np.maximum(0, 1 - y * (x @ w)).mean()


def line_search(x, y, C, w_b, w_t):
    """k* = argmin over k >= 0 of F(w_b (1 - k) + w_t k): appendix A, by sorting."""
    m = len(y)
    A0 = (w_t - w_b) @ (w_t - w_b)
    B0 = w_b @ (w_t - w_b)
    if A0 == 0:  # nothing to search: the paper's first w_t is w_b = 0
        return 0.0
    B = [C / m * y[i] * (x[i] @ (w_b - w_t)) for i in range(m)]
    C_ = [C / m * (1 - y[i] * (x[i] @ w_b)) for i in range(m)]

    def subdifferential(k):
        """Table 5: the interval of G's slopes at k."""
        low = high = k * A0 + B0
        for i in range(m):
            value = k * B[i] + C_[i]
            if value > 0 or (B[i] != 0 and k == -C_[i] / B[i]):
                at_kink = B[i] != 0 and k == -C_[i] / B[i]
                low += min(0, B[i]) if at_kink else B[i]
                high += max(0, B[i]) if at_kink else B[i]
        return low, high

    if subdifferential(0.0)[1] >= 0:
        return 0.0
    K = sorted({-C_[i] / B[i] for i in range(m) if B[i] != 0 and -C_[i] / B[i] > 0})
    left = 0.0
    for k in [*K, np.inf]:
        # Between two kinks G' is linear: value at the left end, just right of it, and slope A0.
        slope = subdifferential(left)[1]
        zero = left - slope / A0
        if zero <= k:
            return zero
        low, high = subdifferential(k)
        if low <= 0 <= high:
            return k
        left = k
    raise AssertionError("G is not bounded from below")


def algorithm_1(x, y, C, epsilon, mu=0.1, limit=10_000):
    """OCAS, until condition (9); mu is the paper's lambda in (8)."""
    m, n = x.shape
    run = Run()
    W = []  # 1: t = 0
    w_b = np.zeros(n)
    for _ in range(limit):  # 2
        w_t, xi = argmin(W, C, n)  # 3
        k = line_search(x, y, C, w_b, w_t)  # 4
        w_b = w_b * (1 - k) + w_t * k
        w_c = w_b * (1 - mu) + w_t * mu  # (8)
        pi = y * (x @ w_c) < 1  # (5): any subgradient
        a = -(pi * y) @ x / m
        b = np.maximum(0, 1 - y * (x @ w_c)).mean() - a @ w_c  # (4)
        W.append((-a, b))  # 5: R(w) >= a.w + b, or -a.w >= b - xi
        run.w_bs.append(w_b)
        run.w_ts.append(w_t)
        run.above.append(F(x, y, C, w_b))
        run.below.append(0.5 * w_t @ w_t + C * xi)
        run.closest.append(np.abs(1 - y * (x @ w_c)).min())
        if run.above[-1] - run.below[-1] <= epsilon:  # 7, (9)
            return run
    raise RuntimeError("no end")


def iterations_at_most(C, epsilon, Q):
    """Theorem 1: what one plane adds is at least min(epsilon / 2, epsilon^2 / (8 C^2 Q^2)), and all together C at most.

    With the violation epsilon / C of a constraint it is Lemma 2 of Joachims. Q = max |x_i|.
    """
    return max(2 * C / epsilon, 8 * C**3 * Q**2 / epsilon**2)
