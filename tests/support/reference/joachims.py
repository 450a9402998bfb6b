"""T. Joachims: Training linear SVMs in linear time, KDD 2006. Algorithms 1 and 2 line by line, in the paper's letters.

Lines are numbered as in the boxes. Lists begin at 0 here, at 1 in the paper. The quadratic program of line 4 is given
to quadprog.
"""

from dataclasses import dataclass, field

import numpy as np
import quadprog


@dataclass
class Run:
    """What line 10 (Algorithm 1) or 25 (Algorithm 2) returns, and (w, xi) of every iteration before.

    closest: how near to the margin a row (or a pair) was whose constraint was chosen by `<`, at the nearest, by
    iteration. Rows nearer than rounding errors may be on either side.
    """

    ws: list = field(default_factory=list)
    xis: list = field(default_factory=list)
    closest: list = field(default_factory=list)

    @property
    def w(self):
        return self.ws[-1]

    @property
    def xi(self):
        return self.xis[-1]

    @property
    def iterations(self):
        return len(self.ws)


def argmin(W, C, N):
    """(w, xi) = argmin over w, xi >= 0 of w'w/2 + C xi subject to a.w >= b - xi for all (a, b) in W.

    quadprog wants a positive definite matrix: xi gets a proximal term around its last value, until that stays.
    """
    if not W:
        return np.zeros(N), 0.0
    a, b = np.array([a for a, _ in W]), np.array([b for _, b in W])
    # In w / s and xi: constraints s a.(w / s) + xi >= b and xi >= 0.
    s = np.sqrt(C)
    H = np.diag([1.0] * N + [1e-3])
    constraints = np.vstack([np.hstack([s * a, np.ones((len(b), 1))]), np.eye(N + 1)[-1:]])
    sides = np.concatenate([b, [0.0]])
    xi = 0.0
    for _ in range(200):
        linear = np.zeros(N + 1)
        linear[N] = 1e-3 * xi - 1.0
        found = quadprog.solve_qp(H, linear, constraints.T, sides)[0]
        last, xi = xi, found[N]
        if abs(xi - last) <= 1e-15:
            break
    return s * found[:N], float(xi)


def algorithm_1(x, y, C, epsilon, limit=10_000):
    """OP2: classification. y_i in {-1, 1}."""
    n, N = x.shape
    run = Run()
    W = []  # 2
    for _ in range(limit):  # 3
        w, xi = argmin(W, C, N)  # 4
        c = np.zeros(n)
        for i in range(n):  # 5
            c[i] = 1 if y[i] * (w @ x[i]) < 1 else 0  # 6
        # 7, 8
        W.append((sum(c[i] * y[i] * x[i] for i in range(n)) / n, sum(c) / n))
        run.ws.append(w)
        run.xis.append(xi)
        run.closest.append(np.abs(1 - y * (x @ w)).min())
        if sum(c) / n - sum(c[i] * y[i] * (w @ x[i]) for i in range(n)) / n <= xi + epsilon:  # 9
            return run  # 10
    raise RuntimeError("no end")


def condensed(x, y, w, *, as_printed=False):
    """Lines 5 to 22 of Algorithm 2: c+ and c-, in the order in which the rows were given. y_i in {1, .., R}.

    Line 14 is printed with (n_r - a + 1). The proof of theorem 5 has (n_r - a), which counts the rows of rank r that
    are not passed yet, the i-th among them; with the +1 the sums of c+ and c- differ. `as_printed` has the +1.
    """
    n = len(y)
    score = x @ w
    order = sorted(range(n), key=lambda i: -score[i])  # 5
    c_plus, c_minus = np.zeros(n), np.zeros(n)  # 6
    number = {r: sum(y[i] == r for i in range(n)) for r in set(y)}  # 7
    R = max(y)
    for r in range(2, R + 1):  # 8
        i, j, a, b = 0, 0, 0, 0  # 9
        while i < n:  # 10
            if y[order[i]] == r:  # 11
                while j < n and score[order[i]] - score[order[j]] < 1:  # 12
                    if y[order[j]] < r:  # 13
                        b += 1  # 14
                        c_minus[order[j]] += number[r] - a + (1 if as_printed else 0)
                    j += 1  # 16
                a += 1  # 18
                c_plus[order[i]] += b
            i += 1  # 20
    return c_plus, c_minus


def algorithm_2(x, y, C, epsilon, limit=10_000):
    """OP5: ordinal regression. y_i in {1, .., R}."""
    n, N = x.shape
    P = [(i, j) for i in range(n) for j in range(n) if y[i] > y[j]]
    m = len(P)
    run = Run()
    W = []  # 2
    for _ in range(limit):  # 3
        w, xi = argmin(W, C, N)  # 4
        c_plus, c_minus = condensed(x, y, w)  # 5 to 22
        a = sum((c_plus[i] - c_minus[i]) * x[i] for i in range(n)) / m
        b = sum(c_plus[i] + c_minus[i] for i in range(n)) / (2 * m)
        W.append((a, b))  # 23
        run.ws.append(w)
        run.xis.append(xi)
        run.closest.append(min(abs(1 - w @ (x[i] - x[j])) for i, j in P))
        if b - sum((c_plus[i] - c_minus[i]) * (w @ x[i]) for i in range(n)) / m <= xi + epsilon:  # 24
            return run  # 25
    raise RuntimeError("no end")


def iterations_at_most(C, epsilon, R):
    """Lemma 2. R = max |x_i| for Algorithm 1, 2 max |x_i| for Algorithm 2."""
    return max(2 / epsilon, 8 * C * R**2 / epsilon**2)
