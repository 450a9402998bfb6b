"""The reduced problem: the objective with planes in place of the risk.

    min over w, b    |w|^2/2 + C sum_p max(0, max over the planes k of shard p of  a_k.w + c_k b + o_k)     (primal)
    max over x       C o.x - C^2 |A'x|^2/2   with  x >= 0,  sum of x over each shard <= 1,  c.x = 0          (dual)

with w = -C A'x. Any x that keeps to the constraints gives a lower bound of the objective.

Solved by a primal-dual interior point method (Mehrotra's predictor and corrector) from a start that keeps to the
constraints of both sides:

    repeat until primal - dual <= tol
        factorise  M = C A A' + diag(z/x) + E' diag(u/t) E     (E: which plane is whose shard)
        predictor: Newton step towards complementarity 0; see how far it could go
        corrector: Newton step towards complementarity sigma mu, with the predictor's second-order term
        go 99.5 % of the way to the boundary, at most 1

Letters: t = 1 - sum of x over the shard, u = the shard's maximum, m = a.w + c b + o, z = u - m.
M is factorised as it is, one row per plane, or by Woodbury's formula with one row per feature, whichever is smaller.
`benchmarks/reduced.py` sets this beside quadratic programming libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from cutsvm.types import Array, Ints, Vector

MAX_STEPS = 60
TO_THE_WALL = 0.995
# The bound is lowered by this share of all that was added and subtracted in it: what rounding may have cost.
ROUND_OFF = 4e-14
# A start mixes this share of equal weights into the last solution: the boundary itself is no place to start.
EQUAL_SHARE = 0.1

# Solves M dx + c db = r, c.dx = s, given r and s, for dx, its sums over the shards, A'dx and db.
Newton = Callable[[Vector, Vector], tuple[Vector, Vector, Vector, Vector]]


@dataclass(frozen=True, eq=False)
class Reduced:
    """A solution of the reduced problem."""

    w: Vector  # the minimiser, free coordinates last
    lower: float  # a lower bound of the objective
    value: float  # |w|^2/2 + C risk
    risk: float  # what the planes say of the risk at w
    weights: Vector  # x, in the order of the planes
    steps: int


class ReducedProblem:
    """The planes (a_k, c_k, o_k) and the shard of each."""

    def __init__(self, slopes: Vector, offsets: Vector, shard: Ints, n_free: int, gram: Vector | None = None) -> None:
        # Planes side by side by shard; shards without planes say nothing.
        self.order = np.argsort(shard, kind="stable")
        _, self.starts, self.shard, self.sizes = np.unique(
            shard[self.order], return_index=True, return_inverse=True, return_counts=True
        )
        features = slopes.shape[1] - n_free
        self.A = slopes[self.order, :features]
        self.o = offsets[self.order]
        c = slopes[self.order, features:]
        self.n_free = n_free
        self.c = c if np.any(c) else c[:, :0]  # planes that balance do not know the free coordinates
        self.gram = None if gram is None else gram[np.ix_(self.order, self.order)]

    def per_shard(self, values: Vector) -> Vector:
        """Sum over each shard's planes."""
        return np.add.reduceat(values, self.starts, axis=0)

    def solve(self, C: float, tol: float, warm: Vector | None = None) -> Reduced:
        """The solution to an absolute tolerance of the objective, from `warm` weights if there are any."""
        state = _State(self, C, None if warm is None else warm[self.order])
        best = state.certified()
        while best.value - best.lower > tol and state.steps < MAX_STEPS and state.step():
            now = state.certified()
            if now.value - now.lower < best.value - best.lower:
                best = now
        return best


class _State:
    """Where the interior point method stands."""

    def __init__(self, problem: ReducedProblem, C: float, warm: Vector | None) -> None:
        self.problem, self.C, self.steps = problem, C, 0
        shard = problem.shard
        equal = (1.0 / (problem.sizes + 1.0))[shard]
        x = equal if warm is None else (1.0 - EQUAL_SHARE) * warm + EQUAL_SHARE * equal
        # The best multiple of x: the dual is a parabola along it.
        pull = x @ problem.A
        gain, cost = float(problem.o @ x), C * float(pull @ pull)
        if 0.0 < gain < cost:
            x = x * (gain / cost)
        self.x = x
        self.t = 1.0 - problem.per_shard(x)
        self.b = np.zeros(problem.c.shape[1])
        self.w = -C * (x @ problem.A)
        self.m = self._heights()
        top = np.maximum(0.0, np.maximum.reduceat(self.m, problem.starts))
        room = top[shard] - self.m
        self.u = top + max(float(room.mean()), 1e-3 * float(np.abs(problem.o).max()), 1e-300)
        self.z = self.u[shard] - self.m

    def _heights(self) -> Vector:
        """m, the planes' heights at w and b."""
        p = self.problem
        return p.A @ self.w + p.o + p.c @ self.b

    def step(self) -> bool:
        """One step; False when rounding leaves nothing to gain."""
        p, x, t, u, z = self.problem, self.x, self.t, self.u, self.z
        with np.errstate(all="ignore"):  # overflow close to the boundary is noticed below
            newton = self._factorise()
            if newton is None:
                return False
            astray = u[p.shard] - self.m - z
            mu = (x @ z + t @ u) / (len(x) + len(t))
            step = self._direction(newton, astray, -x * z, -t * u)
            reach = self._reach(step)
            dx, dt, du, dz = step[:4]
            ahead = (x + reach * dx) @ (z + reach * dz) + (t + reach * dt) @ (u + reach * du)
            sigma = (ahead / (len(x) + len(t)) / mu) ** 3
            step = self._direction(newton, astray, sigma * mu - x * z - dx * dz, sigma * mu - t * u - dt * du)
            reach = min(1.0, TO_THE_WALL * self._reach(step))
        dx, dt, du, dz, pull, db = step
        if not (np.isfinite(dx).all() and np.isfinite(dz).all() and reach > 1e-10):
            return False
        self.x, self.t, self.u, self.z = x + reach * dx, t + reach * dt, u + reach * du, z + reach * dz
        # w follows its own step, not x: close to the solution x is known to fewer digits.
        self.w, self.b = self.w - reach * self.C * pull, self.b - reach * db
        self.m = self._heights()
        self.steps += 1
        return True

    def _direction(self, newton: Newton, astray: Vector, rx: Vector, rt: Vector) -> tuple[Vector, ...]:
        """Newton's direction towards x z = x z + rx, t u = t u + rt with all constraints met."""
        p = self.problem
        r = rx / self.x - astray - (rt / self.t)[p.shard]
        dx, sums, pull, db = newton(r, -(self.x @ p.c))
        return dx, -sums, (rt + self.u * sums) / self.t, (rx - self.z * dx) / self.x, pull, db

    def _reach(self, step: tuple[Vector, ...]) -> float:
        """The longest step, up to 1 / TO_THE_WALL, that keeps x, t, u and z positive."""
        longest = 1.0 / TO_THE_WALL
        for now, change in zip((self.x, self.t, self.u, self.z), step[:4], strict=True):
            longest = min(longest, 1.0 / max(1e-300, float(np.max(-change / now))))
        return longest

    def _factorise(self) -> Newton | None:
        return _by_features(self) if self.problem.gram is None else _by_planes(self)

    def certified(self) -> Reduced:
        """The value at w and b, and a bound from x, made to keep to the constraints exactly."""
        p, C, w = self.problem, self.C, self.w
        risk = float(np.maximum(0.0, np.maximum.reduceat(self.m, p.starts)).sum())
        value = 0.5 * float(w @ w) + C * risk
        x = self.x / np.maximum(1.0, p.per_shard(self.x))[p.shard]  # over 1 only by round-off
        x = _balanced(x, p.c[:, 0]) if p.c.shape[1] else x
        pull = C * (x @ p.A)
        gain, cost = C * float(p.o @ x), float(pull @ pull)
        lower = gain - 0.5 * cost - ROUND_OFF * (gain + C * float(x @ np.abs(self.m - p.o)))
        weights = np.empty_like(x)
        weights[p.order] = x
        b = np.zeros(p.n_free)
        b[: len(self.b)] = self.b
        return Reduced(np.concatenate([w, b]), max(0.0, lower), value, risk, weights, self.steps)


def _balanced(x: Vector, c: Vector) -> Vector:
    """x with c.x = 0: the heavier side made lighter, which keeps to every other constraint."""
    up, down = float(x @ np.maximum(c, 0.0)), float(x @ np.maximum(-c, 0.0))
    if up > down:
        return np.where(c > 0.0, x * (down / up), x)
    return np.where(c < 0.0, x * (up / down), x) if down > up else x


def _cholesky(matrix: Array) -> Callable[[Vector], Vector] | None:
    """A solver for a symmetric positive definite matrix, which is overwritten."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None

    def solve(right: Vector) -> Vector:
        solution: Vector = lapack.dpotrs(factor, right, lower=1)[0]
        return solution

    return solve


def _by_planes(state: _State) -> Newton | None:
    """M itself, one row per plane."""
    p = state.problem
    assert p.gram is not None
    M = state.C * p.gram
    M[np.diag_indices_from(M)] += state.z / state.x
    for start, size, stiff in zip(p.starts, p.sizes, state.u / state.t, strict=True):
        M[start : start + size, start : start + size] += stiff
    solve = _cholesky(M)
    if solve is None:
        return None
    f = p.c.shape[1]
    across = solve(p.c) if f else p.c

    def newton(r: Vector, s: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        dx, db = solve(r), s
        if f:
            db = np.linalg.solve(p.c.T @ across, p.c.T @ dx - s)
            dx = dx - across @ db
        return dx, p.per_shard(dx), dx @ p.A, db

    return newton


def _by_features(state: _State) -> Newton | None:
    """M = K + B B' with B = sqrt(C) A and K the rest, which inverts shard by shard; then one row per feature.

    With k = x/z, its sum s over the shard and r = t/u:  (1/K) v = k (v - mean + mean r/(r + s)), mean = sum of k v / s.
    Written as distances from the mean, nothing large is subtracted from anything large.
    """
    p = state.problem
    root = np.sqrt(state.C)
    B = np.hstack([root * p.A, p.c])
    k = state.x / state.z
    total = p.per_shard(k)
    rest = state.t / state.u / (state.t / state.u + total)

    def over_K(v: Vector) -> tuple[Vector, Vector]:
        """(1/K) v, and its sums over the shards without adding up what cancels."""
        mean = p.per_shard(k * v) / total
        sums = mean * rest * total
        out = k * (v - mean[p.shard])
        return out + k * ((sums - p.per_shard(out)) / total)[p.shard], sums

    means = p.per_shard(k[:, None] * B) / total[:, None]
    spread = np.sqrt(k)[:, None] * (B - means[p.shard])
    means *= np.sqrt(rest * total)[:, None]
    H = spread.T @ spread + means.T @ means
    d = p.A.shape[1]
    H[np.arange(d), np.arange(d)] += 1.0
    solve = _cholesky(H)
    if solve is None:
        return None

    def newton(r: Vector, s: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        right = B.T @ over_K(r)[0]
        right[d:] -= s
        y = solve(right)
        return *over_K(r - B @ y), y[:d] / root, y[d:]

    return newton
