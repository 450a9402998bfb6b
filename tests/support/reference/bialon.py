"""P. Bialon: A linear SVM solver for a large number of training examples, Control and Cybernetics 38 (2009).

Algorithms 1, 2, 3, 4 and 6 and the bucket dispatch of section 6, line by line, in the paper's letters: rows a_j of A,
labels d_j, x = (omega; gamma) or (omega; gamma; z), the score of a row a_j omega - gamma, cuts g (the paper: gamma^k).

Mended, where the text contradicts itself:
  Algorithm 1   F has -ln(g.(x - x^k)), not defined where the solution is: g.x <= g.x^k. Here -ln(-g.(x - x^k)).
  Algorithm 2   returns omega for a vector that has a gamma, too: (omega; 0).
  Algorithm 4   on rows that can be separated it returns the gradient of the goal at a point with z < 0 and cuts off the
                solution. Here the sum of no rows is a constraint too: 0 - z <= 0.
  Algorithm 6   starts at 0: at x^k is meant. Its H-hat is the inverse Hessian itself here, every term updated.
  Section 6     v_j has the sign of d_j ... + 1 wrong, and the norm of a_j where (3) needs that of (a_j; -1).
  Stop test     (F^k(x^k) - k/2R)/k >= 12: the mean of -ln of the distances, and the distances in units of R.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np


class Data:
    """A, d, C, and totalgetandputcounter."""

    def __init__(self, A, d, C):
        self.A, self.d, self.C = A, d, C
        self.n, self.N = A.shape
        self.totalgetandputcounter = 0

    def take(self, j):
        self.totalgetandputcounter += 1
        return self.A[j], self.d[j]


def oracle_E(data, J, x):
    """Algorithm 2"""
    omega, gamma = x[: data.N], x[data.N]
    for j in J:  # 1
        a, d = data.take(j)  # 2
        if -d * (a @ omega - gamma) + 1 > 0:  # 3
            return -d * np.append(a, -1.0)  # 4
    return np.append(omega, 0.0)  # 7


def oracle_I1(data, J, x):
    """Algorithm 3"""
    omega, gamma = x[: data.N], x[data.N]
    r = np.append(omega, 0.0)
    for j in J:
        a, d = data.take(j)
        if -d * (a @ omega - gamma) + 1 > 0:
            r = r - data.C * d * np.append(a, -1.0)
    return r


def oracle_I2(data, J, x):
    """Algorithm 4"""
    omega, gamma, z = x[: data.N], x[data.N], x[data.N + 1]
    r = np.zeros(data.N + 1)
    s = 0.0
    if s - z > 0:  # mended: see above
        return np.append(r, -1.0)
    for j in J:
        a, d = data.take(j)
        if -d * (a @ omega - gamma) + 1 > 0:
            r = r - d * np.append(a, -1.0)
            s = s - d * (a @ omega - gamma) + 1
            if s - z > 0:
                return np.append(r, -1.0)
    return np.concatenate([omega, [0.0, data.C]])


ORACLES = {"E": oracle_E, "I1": oracle_I1, "I2": oracle_I2}


@dataclass
class Potential:
    """F^k: 4 |x|^2/R^2, and for each cut -ln of the distance from it, cuts normalised, and |x|^2/(2 R^2)."""

    R: float
    cuts: list = field(default_factory=list)  # (g, x^k), |g| = 1

    def add(self, g, x):
        self.cuts.append((g / np.linalg.norm(g), x.copy()))

    def distances(self, x):
        return np.array([-(g @ (x - at)) for g, at in self.cuts])

    @property
    def rho(self):
        return (8.0 + len(self.cuts)) / self.R**2

    def gradient(self, x, inverse):
        """With `inverse` in place of 1 / distances."""
        return self.rho * x + sum((g * i for (g, _), i in zip(self.cuts, inverse, strict=True)), np.zeros(len(x)))

    def hessian(self, x, inverse):
        H = self.rho * np.eye(len(x))
        for (g, _), i in zip(self.cuts, inverse, strict=True):
            H += np.outer(g, g) * i**2
        return H


def line_minimum(F, x, p):
    """argmin over t > 0 of F(x + t p), by bisection on the slope; x + t p has to be inside."""
    s, q = F.distances(x), np.array([-(g @ p) for g, _ in F.cuts])
    s[np.abs(s) < 1e-13 * F.R] = 0.0  # the new cut goes through x
    high = min((si / -qi for si, qi in zip(s, q, strict=True) if qi < 0.0), default=np.inf)

    def slope(t):
        return F.rho * (x + t * p) @ p - (q / (s + t * q)).sum()

    low, t = 0.0, 1.0
    if high == np.inf:
        while slope(t) < 0.0:
            t *= 2.0
        high = t
    for _ in range(200):
        t = 0.5 * (low + high)
        low, high = (t, high) if slope(t) < 0.0 else (low, t)
    return t


def algorithm_6(F, x, near):
    """The minimum of F, which has a new cut through x, until grad.H.grad <= near; the paper: 0.1."""
    old = 1.0 / F.distances(x)[:-1]
    H = np.linalg.inv(F.hessian(x, np.append(old, 0.0)))
    p = -H @ F.cuts[-1][0]
    x = x + line_minimum(F, x, p) * p  # 1
    while True:  # 2
        inverse = 1.0 / F.distances(x)
        gradient, H = F.gradient(x, inverse), np.linalg.inv(F.hessian(x, inverse))
        if gradient @ H @ gradient <= near:  # 5
            return x
        p = -H @ gradient
        x = x + line_minimum(F, x, p) * p  # 3, 4


class Dispatch:
    """Section 6: tau buckets by v_j at (omega^k; gamma^k)."""

    def __init__(self, data, omega, gamma, edges):
        """edges: from all v_j, where buckets begin, rising; the first begins at -infinity."""
        self.place = np.append(omega, gamma)
        lengths = np.array([np.linalg.norm(np.append(a, -1.0)) for a in data.A])
        self.v = (data.d * (data.A @ omega - gamma) - 1.0) / lengths
        bounds = [-np.inf, *edges(self.v), np.inf]
        self.buckets = [[j for j in range(data.n) if low <= self.v[j] < high] for low, high in pairwise(bounds)]
        data.totalgetandputcounter += 2 * data.n  # 3

    def exact_J(self, omega, gamma):
        """(4)"""
        c = np.linalg.norm(np.append(omega, gamma) - self.place)
        return [j for j in range(len(self.v)) if not self.v[j] >= c]

    def J(self, omega, gamma):
        """The rows of the buckets that have one of them: read bucket by bucket, footnote 2."""
        J = set(self.exact_J(omega, gamma))
        return [j for bucket in self.buckets if J & set(bucket) for j in bucket]


@dataclass
class Run:
    """x^k of every iteration, the cut made there, the number of gets and puts, the dispatches' iterations."""

    xs: list = field(default_factory=list)
    cuts: list = field(default_factory=list)
    counters: list = field(default_factory=list)
    dispatches: list = field(default_factory=list)


def algorithm_1(data, form, R, stop=12.0, near=0.1, edges=None, K=3, limit=2000):
    """The whole. edges: None means one bucket, and no dispatch."""
    F, run = Potential(R), Run()
    x = np.zeros(data.N + 1 + (form == "I2"))
    J, dispatch, since = range(data.n), None, 0
    for k in range(limit):
        if edges is not None and data.totalgetandputcounter - since >= 2 * K * data.n:  # Remark 1
            dispatch = Dispatch(data, x[: data.N], x[data.N], edges)
            since = data.totalgetandputcounter
            run.dispatches.append(k)
        if dispatch is not None:
            J = dispatch.J(x[: data.N], x[data.N])
        g = ORACLES[form](data, J, x)  # 3
        run.xs.append(x)
        run.cuts.append(g)
        run.counters.append(data.totalgetandputcounter)
        F.add(g, x)
        x = algorithm_6(F, x, near)  # 4
        if -np.log(F.distances(x) / R).mean() >= stop:
            run.xs.append(x)
            return run
    raise RuntimeError("no end")
