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

The method is here twice: compiled (`core/reduced.hpp`), and below with NumPy and LAPACK, which is what the compiled one
is tested against, and what solves problems so large that LAPACK's factorisation is the faster one.
`benchmarks/reduced.py` sets both beside quadratic programming libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import lapack

from cutsvm._native import core
from cutsvm.types import Array, Ints, Vector

# From so many rows on LAPACK factorises M faster (measured: 0.6 of its time at 500 rows, the same at 1,000).
LARGE = 1000
MAX_STEPS = 60
TO_THE_WALL = 0.995
# Products x z and t u stay above LAG of their mean or, where one is lower already, above SINK of the share that it has:
# a step is made SHORTER until they do, at most so many TIMES.
LAG, SINK, SHORTER, TIMES = 1e-3, 0.9, 0.8, 30
# A step that is short, or that does not make the mean of the products less, is replaced by one that only halves it.
SHORT, LESS, BACK = 0.1, 0.95, 0.5
STUCK = 1e-10  # a step as short as this is round-off
# The bound is lowered by this share of all that was added and subtracted in it: what rounding may have cost.
ROUND_OFF = 4e-14
# The boundary is no place to start. Warm weights, and what they leave of 1, are at least FLOOR of equal ones; u starts
# above the highest plane by HEADROOM of the mean distance from it, and at least by LEAST_ROOM of the largest offset.
FLOOR, HEADROOM, LEAST_ROOM = 0.03, 0.3, 1e-3
RULES: dict[str, float] = {
    "max_steps": MAX_STEPS,
    "to_the_wall": TO_THE_WALL,
    "lag": LAG,
    "sink": SINK,
    "shorter": SHORTER,
    "times": TIMES,
    "too_short": SHORT,
    "less": LESS,
    "back": BACK,
    "stuck": STUCK,
    "round_off": ROUND_OFF,
    "floor": FLOOR,
    "headroom": HEADROOM,
    "least_room": LEAST_ROOM,
}

# What Newton's equations M dx + c db = r, c.dx = s give for (r, s): dx, its sums over the shards, A'dx, db.
# A'dx is None where x says all about w.
Direction = tuple[Vector, Vector, "Vector | None", Vector]
Newton = Callable[[Vector, Vector], Direction]


@dataclass(frozen=True, eq=False)
class Reduced:
    """A solution of the reduced problem."""

    w: Vector  # the minimiser, free coordinates last
    lower: float  # a lower bound of the objective
    value: float  # |w|^2/2 + C risk
    risk: float  # what the planes say of the risk at w
    weights: Vector  # x, in the order of the planes
    steps: int


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """The planes (a_k, c_k, o_k) and the shard of each; with their Gram matrix, one unknown per plane is used."""

    slopes: Vector  # one row (a_k, c_k) per plane
    offsets: Vector
    shard: Ints
    n_free: int  # how many c_k a plane has: 0 or 1
    gram: Vector | None = None

    def solve(self, C: float, tol: float, warm: Vector | None = None) -> Reduced:
        """The solution to an absolute tolerance of the objective, from `warm` weights if there are any."""
        rows = self.slopes.shape[1] if self.gram is None else len(self.gram)
        return (self.compiled if rows < LARGE else self.by_lapack)(C, tol, warm)

    def compiled(self, C: float, tol: float, warm: Vector | None = None) -> Reduced:
        w, weights = np.empty(self.slopes.shape[1]), np.empty(len(self.offsets))
        gram, start = _NO_GRAM if self.gram is None else self.gram, _COLD if warm is None else warm
        lower, value, risk, steps = core.reduced(
            self.slopes, self.offsets, self.shard, self.n_free, gram, C, tol, start, RULES, w, weights
        )
        return Reduced(w, lower, value, risk, weights, steps)

    def by_lapack(self, C: float, tol: float, warm: Vector | None = None) -> Reduced:
        planes = _Sorted(self)
        form = ByFeatures(planes, C) if self.gram is None else ByPlanes(planes, C, self.gram)
        state = _State(planes, C, form, None if warm is None else warm[planes.order])
        best = state.certified()
        while best.value - best.lower > tol and state.steps < MAX_STEPS and state.step():
            now = state.certified()
            if now.value - now.lower < best.value - best.lower:
                best = now
        return best.reduced(planes, form)


# What stands for None in the compiled kernel.
_NO_GRAM, _COLD = np.empty((0, 0)), np.empty(0)


class _Sorted:
    """Planes side by side by shard; shards without planes say nothing."""

    def __init__(self, problem: ReducedProblem) -> None:
        self.order = np.argsort(problem.shard, kind="stable")
        _, self.starts, self.shard, self.sizes = np.unique(
            problem.shard[self.order], return_index=True, return_inverse=True, return_counts=True
        )
        self.n_free = problem.n_free
        self.features = problem.slopes.shape[1] - self.n_free
        self.slopes = problem.slopes
        self.o = problem.offsets[self.order]
        c = self.slopes[self.order, self.features :]
        self.c = c if np.any(c) else c[:, :0]  # planes that balance do not know the free coordinates

    def per_shard(self, values: Array) -> Vector:
        """Sum over each shard's planes."""
        sums: Vector = np.add.reduceat(values, self.starts, axis=0)
        return sums

    def as_given(self, values: Vector) -> Vector:
        """Values per plane, in the order in which the planes came."""
        given = np.empty_like(values)
        given[self.order] = values
        return given

    def tops(self, heights: Vector) -> Vector:
        """What the planes say of each shard's risk."""
        tops: Vector = np.maximum(0.0, np.maximum.reduceat(heights, self.starts))
        return tops


class Form(Protocol):
    """How w is held and Newton's equations are solved."""

    w: Any

    def cost(self, x: Vector) -> float:
        """|C A'x|^2"""

    def start(self, x: Vector) -> Any:
        """w = -C A'x"""

    def move(self, x: Vector, reach: float, pull: Vector | None) -> Any:
        """w after a step that led to x."""

    def heights(self) -> Vector:
        """A w + o"""

    def penalty(self) -> float:
        """|w|^2 / 2"""

    def coefficients(self, w: Any) -> Vector:
        """w as a vector of features."""

    def exact_cost(self, x: Vector, w: Any, coefficients: Vector) -> float:
        """|C A'x|^2 to the last digit, as the bound needs it."""

    def newton(self, state: _State) -> Newton | None:
        """Newton's equations, factorised; None where rounding does not let that be done."""


@dataclass(frozen=True, eq=False)
class _Certified:
    """Where the method stood, with the value there and the bound."""

    w: Any
    b: Vector
    x: Vector
    value: float
    risk: float
    gain: float  # C o.x, less what rounding may have added
    lower: float
    steps: int

    def reduced(self, problem: _Sorted, form: Form) -> Reduced:
        w = np.zeros(problem.features + problem.n_free)
        w[: problem.features] = coefficients = form.coefficients(self.w)
        w[problem.features : problem.features + len(self.b)] = self.b
        lower = max(0.0, self.gain - 0.5 * form.exact_cost(self.x, self.w, coefficients))
        return Reduced(w, lower, self.value, self.risk, problem.as_given(self.x), self.steps)


class _Step(NamedTuple):
    """A direction for (x, t) and (z, u), with A'dx and db."""

    inside: Vector
    outside: Vector
    pull: Vector | None
    db: Vector


class _State:
    """Where the interior point method stands: `inside` holds x and t, `outside` their partners z and u."""

    def __init__(self, problem: _Sorted, C: float, form: Form, warm: Vector | None) -> None:
        self.problem, self.C, self.form, self.steps = problem, C, form, 0
        shard = problem.shard
        equal: Vector = np.reciprocal(problem.sizes + 1.0, dtype=np.float64)
        x: Vector = equal[shard]
        if warm is not None:
            x = np.maximum(warm, FLOOR * x)
            x = x / np.maximum(1.0, problem.per_shard(x) * (1.0 + FLOOR * equal))[shard]
        # The best multiple of x: the dual is a parabola along it.
        gain, cost = C * float(problem.o @ x), form.cost(x)
        if 0.0 < gain < cost:
            x = x * (gain / cost)
        self.b = np.zeros(problem.c.shape[1])
        form.w = form.start(x)
        self.m = form.heights()
        top = problem.tops(self.m)
        room = top[shard] - self.m
        u = top + max(HEADROOM * float(room.mean()), LEAST_ROOM * float(np.abs(problem.o).max()), 1e-300)
        self._set(np.concatenate([x, 1.0 - problem.per_shard(x)]), np.concatenate([u[shard] - self.m, u]))

    def _set(self, inside: Vector, outside: Vector) -> None:
        planes = len(self.problem.o)
        self.inside, self.outside = inside, outside
        self.x, self.t = inside[:planes], inside[planes:]
        self.z, self.u = outside[:planes], outside[planes:]

    def step(self) -> bool:
        """One step; False when rounding leaves nothing to gain."""
        with np.errstate(all="ignore"):  # overflow close to the boundary is noticed below
            newton = self.form.newton(self)
            if newton is None:
                return False
            products = self.inside * self.outside
            mu = products.mean()
            step = self._direction(newton, -products)
            aim = mu * (self._ahead(step, self._reach(step)).mean() / mu) ** 3
            step = self._direction(newton, aim - products - step.inside * step.outside)
            reach = min(1.0, TO_THE_WALL * self._reach(step))
            if reach < SHORT or self._ahead(step, reach).mean() > LESS * mu:  # astray: back to the central path first
                step = self._direction(newton, BACK * mu - products)
                reach = min(1.0, TO_THE_WALL * self._reach(step))
            reach = self._central(step, reach, min(LAG, SINK * products.min() / mu))
        if not (np.isfinite(step.inside).all() and np.isfinite(step.outside).all() and reach > STUCK):
            return False
        self._set(self.inside + reach * step.inside, self.outside + reach * step.outside)
        self.b = self.b - reach * step.db
        self.form.w = self.form.move(self.x, reach, step.pull)
        self.m = self.form.heights() + self.problem.c @ self.b
        self.steps += 1
        return True

    def _direction(self, newton: Newton, change: Vector) -> _Step:
        """Newton's direction that changes the products by `change` and meets all constraints."""
        p, planes = self.problem, len(self.x)
        astray = self.u[p.shard] - self.m - self.z
        right = change[:planes] / self.x - astray - (change[planes:] / self.t)[p.shard]
        dx, sums, pull, db = newton(right, -(self.x @ p.c))
        inside = np.concatenate([dx, -sums])
        return _Step(inside, (change - self.outside * inside) / self.inside, pull, db)

    def _reach(self, step: _Step) -> float:
        """The longest step, up to 1 / TO_THE_WALL, that keeps x, t, z and u positive."""
        steepest = max(float((-step.inside / self.inside).max()), float((-step.outside / self.outside).max()))
        return 1.0 / max(TO_THE_WALL, steepest)

    def _ahead(self, step: _Step, reach: float) -> Vector:
        """The products x z and t u after such a step."""
        return (self.inside + reach * step.inside) * (self.outside + reach * step.outside)

    def _central(self, step: _Step, reach: float, lag: float) -> float:
        """The step made shorter until no product lags far behind their mean."""
        for _ in range(TIMES):
            products = self._ahead(step, reach)
            if products.min() >= lag * products.mean():
                break
            reach *= SHORTER
        return reach

    def certified(self) -> _Certified:
        """The value at w and b, and a bound from x, made to keep to the constraints exactly."""
        p, C = self.problem, self.C
        risk = float(p.tops(self.m).sum())
        value = self.form.penalty() + C * risk
        x: Vector = self.x
        sums = p.per_shard(x)
        if np.any(sums > 1.0):  # by round-off
            x = x / np.maximum(1.0, sums)[p.shard]
        if p.c.shape[1]:
            x = _balanced(x, p.c[:, 0])
        gain = C * float(p.o @ x)
        gain -= ROUND_OFF * (gain + C * float(x @ np.abs(self.m - p.o)))
        return _Certified(self.form.w, self.b, x, value, risk, gain, gain - 0.5 * self.form.cost(x), self.steps)


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


class ByPlanes:
    """M itself, one row per plane. w is held as -C G x, its products with the planes; no feature is touched."""

    def __init__(self, problem: _Sorted, C: float, gram: Vector) -> None:
        self.problem, self.C = problem, C
        one_shard = len(problem.starts) == 1
        self.gram = gram if one_shard else gram[np.ix_(problem.order, problem.order)]
        self.w: tuple[Vector, Vector]  # x and -C G x

    def cost(self, x: Vector) -> float:
        return self.C**2 * float(x @ (self.gram @ x))

    def start(self, x: Vector) -> tuple[Vector, Vector]:
        return x, -self.C * (self.gram @ x)

    def move(self, x: Vector, reach: float, pull: Vector | None) -> tuple[Vector, Vector]:
        return self.start(x)

    def heights(self) -> Vector:
        return self.w[1] + self.problem.o

    def penalty(self) -> float:
        x, products = self.w
        return -0.5 * self.C * float(x @ products)

    def coefficients(self, w: tuple[Vector, Vector]) -> Vector:
        p = self.problem
        coefficients: Vector = -self.C * (p.as_given(w[0]) @ p.slopes[:, : p.features])
        return coefficients

    def exact_cost(self, x: Vector, w: tuple[Vector, Vector], coefficients: Vector) -> float:
        pull = coefficients if x is w[0] else self.coefficients((x, x))
        return float(pull @ pull)

    def newton(self, state: _State) -> Newton | None:
        p = self.problem
        M = self.C * self.gram
        M[np.diag_indices_from(M)] += state.z / state.x
        for start, size, stiff in zip(p.starts, p.sizes, state.u / state.t, strict=True):
            M[start : start + size, start : start + size] += stiff
        solve = _cholesky(M)
        if solve is None:
            return None
        f = p.c.shape[1]
        across = solve(p.c) if f else p.c

        def newton(r: Vector, s: Vector) -> Direction:
            dx, db = solve(r), s
            if f:
                db = np.asarray(np.linalg.solve(p.c.T @ across, p.c.T @ dx - s), dtype=np.float64)
                dx = dx - across @ db
            return dx, p.per_shard(dx), None, db

        return newton


class ByFeatures:
    """M = K + B B' with B = sqrt(C) A and K the rest, which inverts shard by shard; then one row per feature.

    With k = x/z, its sum s over the shard and r = t/u:  (1/K) v = k (v - mean + mean r/(r + s)), mean = sum of k v / s.
    Written as distances from the mean, nothing large is subtracted from anything large. w follows its own step and
    not x: close to the solution x is known to fewer digits.
    """

    def __init__(self, problem: _Sorted, C: float) -> None:
        self.problem, self.C, self.root = problem, C, float(np.sqrt(C))
        self.A = problem.slopes[problem.order, : problem.features]
        self.B = np.hstack([self.root * self.A, problem.c])
        self.w: Vector

    def cost(self, x: Vector) -> float:
        pull = self.C * (x @ self.A)
        return float(pull @ pull)

    def start(self, x: Vector) -> Vector:
        return -self.C * (x @ self.A)

    def move(self, x: Vector, reach: float, pull: Vector | None) -> Vector:
        assert pull is not None
        return self.w - reach * self.C * pull

    def heights(self) -> Vector:
        return self.A @ self.w + self.problem.o

    def penalty(self) -> float:
        return 0.5 * float(self.w @ self.w)

    def coefficients(self, w: Vector) -> Vector:
        return w

    def exact_cost(self, x: Vector, w: Vector, coefficients: Vector) -> float:
        return self.cost(x)

    def newton(self, state: _State) -> Newton | None:
        p, B = self.problem, self.B
        k = state.x / state.z
        total = p.per_shard(k)
        rest = state.t / state.u / (state.t / state.u + total)

        def over_K(v: Vector) -> tuple[Vector, Vector]:
            """(1/K) v, and its sums over the shards without adding up what cancels."""
            mean = p.per_shard(k * v) / total
            sums = mean * rest * total
            out = k * (v - mean[p.shard])
            return out + k * ((sums - p.per_shard(out)) / total)[p.shard], sums

        means: Array = p.per_shard(k[:, None] * B) / total[:, None]
        spread = B - means[p.shard]
        spread *= np.sqrt(k)[:, None]
        means *= np.sqrt(rest * total)[:, None]
        H = spread.T @ spread + means.T @ means
        d = p.features
        H[np.arange(d), np.arange(d)] += 1.0
        solve = _cholesky(H)
        if solve is None:
            return None

        def newton(r: Vector, s: Vector) -> Direction:
            right = B.T @ over_K(r)[0]
            right[d:] -= s
            y = solve(right)
            return *over_K(r - B @ y), y[:d] / self.root, y[d:]

        return newton
