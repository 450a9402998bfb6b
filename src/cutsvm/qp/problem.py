"""The reduced problem: the objective with planes in place of the risk.

    min over w, b    |w|^2/2 + C sum_p max(0, max over the planes k of shard p of  a_k.w + c_k.b + o_k)     (primal)
    max over x       C o.x - C^2 |A'x|^2/2   with  x >= 0,  sum of x over each shard <= 1,  c'x = 0          (dual)

with w = -C A'x and b the free coordinates, F of them. Any x that keeps to the constraints gives a lower bound of the
objective.

One free coordinate: c'x = 0 is had exactly, by making the heavier side lighter. Two and more: rounding always leaves
something of c'x, and the first planes may know no x > 0 that balances. So the caller gives a `reach`, with
|b_j| <= reach for some solution of the whole problem, and both sides are those of the problem with that box:

    min over w, b    as above, with |b_j| <= reach
    max over x       C o.x - C^2 |A'x|^2/2 - C reach |c'x|_1   with  x >= 0,  sum of x over each shard <= 1

whose bound is paid for and holds for any x. The box's multipliers are y+ and y-, c'x + y+ - y- = 0, their partners
reach - b and reach + b. Before a bound is taken, what is left of that equation is removed from x as well as can be.

Solved by a primal-dual interior point method (Mehrotra's predictor and corrector) from a start that keeps to the
constraints of both sides:

    repeat until primal - dual <= tol
        factorise  M = C A A' + diag(z/x) + E' diag(u/t) E     (E: which plane is whose shard)
                   and what b adds, c' (1/M) c + diag(y+/(reach - b) + y-/(reach + b))
        predictor: Newton step towards complementarity 0; see how far it could go
        corrector: Newton step towards complementarity sigma mu, with the predictor's second-order term
        go 99.5 % of the way to the boundary, at most 1

Letters: t = 1 - sum of x over the shard, u = the shard's maximum, m = a.w + c.b + o, z = u - m.
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
from cutsvm._utils.types import Array, Ints, Vector

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
# The same for sums whose rounding errors are summed too (c'x, where `reach` makes each digit count).
FINE = 1e-20
# Columns of c may depend on each other; then this share of the diagonal, times the number of rows as rounding goes with
# that, keeps b's equations solvable.
GUARD = 5e-16
# How often what is left of c'x is removed from x: the first time leaves what x >= 0 forbids, the others round-off.
POLISH = 3
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
    "fine": FINE,
    "guard": GUARD,
    "polish": POLISH,
    "floor": FLOOR,
    "headroom": HEADROOM,
    "least_room": LEAST_ROOM,
}

# What Newton's equations M dx + c db = r, c'dx - walls db = s give for (r, s): dx, its sums over the shards, A'dx, db.
# A'dx is None where x says all about w. The walls are the box's, 0 without it.
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
    n_free: int  # how many numbers c_k has
    gram: Vector | None = None
    reach: float = np.inf  # some solution of the whole problem has |b_j| <= reach; of use from n_free = 2 on

    def __post_init__(self) -> None:
        if self.n_free > 1 and not 0.0 < self.reach < np.inf:
            raise ValueError(f"reach: positive and finite expected with n_free = {self.n_free}, got {self.reach}")

    def solve(self, C: float, tol: float, warm: Vector | None = None) -> Reduced:
        """The solution to an absolute tolerance of the objective, from `warm` weights if there are any."""
        rows = self.slopes.shape[1] if self.gram is None else len(self.gram)
        return (self.compiled if rows < LARGE else self.by_lapack)(C, tol, warm)

    def compiled(self, C: float, tol: float, warm: Vector | None = None) -> Reduced:
        w, weights = np.empty(self.slopes.shape[1]), np.empty(len(self.offsets))
        gram, start = _NO_GRAM if self.gram is None else self.gram, _COLD if warm is None else warm
        lower, value, risk, steps = core.reduced(
            self.slopes, self.offsets, self.shard, self.n_free, self.reach, gram, C, tol, start, RULES, w, weights
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
        self.n_free, self.radius = problem.n_free, problem.reach
        self.features = problem.slopes.shape[1] - self.n_free
        self.slopes = problem.slopes
        self.o = problem.offsets[self.order]
        c = self.slopes[self.order, self.features :]
        self.leaning = np.flatnonzero(np.any(c, axis=0))  # free coordinates that no plane knows stay 0
        self.c = c[:, self.leaning]
        self.boxed = self.n_free > 1 and len(self.leaning) > 0

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
    gain: float  # C o.x, less what rounding may have added and what is off balance
    lower: float
    steps: int

    def reduced(self, problem: _Sorted, form: Form) -> Reduced:
        w = np.zeros(problem.features + problem.n_free)
        w[: problem.features] = coefficients = form.coefficients(self.w)
        w[problem.features + problem.leaning] = self.b
        lower = max(0.0, self.gain - 0.5 * form.exact_cost(self.x, self.w, coefficients))
        return Reduced(w, lower, self.value, self.risk, problem.as_given(self.x), self.steps)


class _Step(NamedTuple):
    """A direction for (x, t) and (z, u), with A'dx and db."""

    inside: Vector
    outside: Vector
    pull: Vector | None
    db: Vector


class _State:
    """Where the interior point method stands: `inside` holds x and t, `outside` their partners z and u.

    If b has a box, its multipliers y+ and y- come after t, and their partners reach - b and reach + b after u.
    """

    def __init__(self, problem: _Sorted, C: float, form: Form, warm: Vector | None) -> None:
        self.problem, self.C, self.form, self.steps = problem, C, form, 0
        shard = problem.shard
        equal: Vector = np.reciprocal(problem.sizes + 1.0, dtype=np.float64)
        x: Vector = equal[shard]
        if warm is not None:
            x = np.maximum(warm, FLOOR * x)
            x = x / np.maximum(1.0, problem.per_shard(x) * (1.0 + FLOOR * equal))[shard]
        # Far off balance the method may go in circles: where both sides have weight, it starts from balance.
        c = problem.c
        if not problem.boxed and c.shape[1] == 1 and c.min() < 0.0 < c.max():
            x = _balanced(x, c[:, 0])
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
        inside, outside = np.concatenate([x, 1.0 - problem.per_shard(x)]), np.concatenate([u[shard] - self.m, u])
        if problem.boxed:
            equals = np.ones(2 * len(self.b))
            inside = np.concatenate([inside, float((inside * outside).mean()) / problem.radius * equals])
            outside = np.concatenate([outside, problem.radius * equals])
        self._set(inside, outside)

    def _set(self, inside: Vector, outside: Vector) -> None:
        planes, shards, free = len(self.problem.o), len(self.problem.starts), len(self.b)
        parts = [planes, planes + shards, planes + shards + free]
        self.inside, self.outside = inside, outside
        self.x, self.t, self.y_up, self.y_down = np.split(inside, parts)
        self.z, self.u, self.above, self.below = np.split(outside, parts)

    @property
    def walls(self) -> Vector:
        """What the box adds to the equations of b."""
        return self.y_up / self.above + self.y_down / self.below

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
        if self.problem.boxed:
            self.b = np.clip(self.b, -self.problem.radius, self.problem.radius)
        self.form.w = self.form.move(self.x, reach, step.pull)
        self.m = self.form.heights() + self.problem.c @ self.b
        self.steps += 1
        return True

    def _direction(self, newton: Newton, change: Vector) -> _Step:
        """Newton's direction that changes the products by `change` and meets all constraints."""
        p, planes, pairs = self.problem, len(self.x), len(self.x) + len(self.t)
        astray = self.u[p.shard] - self.m - self.z
        right = change[:planes] / self.x - astray - (change[planes:pairs] / self.t)[p.shard]
        off = -(self.x @ p.c)
        if p.boxed:
            by_walls = np.split(change[pairs:] / self.outside[pairs:], 2)
            off = off - self.y_up + self.y_down - by_walls[0] + by_walls[1]
        dx, sums, pull, db = newton(right, off)
        inside = np.concatenate([dx, -sums])
        outside = (change[:pairs] - self.outside[:pairs] * inside) / self.inside[:pairs]
        if p.boxed:
            away = np.concatenate([db, -db])
            dy = (change[pairs:] - self.inside[pairs:] * away) / self.outside[pairs:]
            inside, outside = np.concatenate([inside, dy]), np.concatenate([outside, away])
        return _Step(inside, outside, pull, db)

    def _reach(self, step: _Step) -> float:
        """The longest step, up to 1 / TO_THE_WALL, that keeps all pairs positive."""
        steepest = max(float((-step.inside / self.inside).max()), float((-step.outside / self.outside).max()))
        return 1.0 / max(TO_THE_WALL, steepest)

    def _ahead(self, step: _Step, reach: float) -> Vector:
        """The products of the pairs after such a step."""
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
        x = _polished(self.x, self.t, p, self.y_down - self.y_up) if p.boxed else self._exact()
        gain = C * float(p.o @ x)
        moved = self.m - p.o
        if p.boxed:
            moved = moved - p.c @ self.b
        gain -= ROUND_OFF * (gain + C * float(x @ np.abs(moved)))
        if p.boxed:
            off = (1.0 + ROUND_OFF) * float(np.abs(_fine_sums(x, p.c)).sum()) + FINE * float((x @ np.abs(p.c)).sum())
            gain -= C * p.radius * off
        return _Certified(self.form.w, self.b, x, value, risk, gain, gain - 0.5 * self.form.cost(x), self.steps)

    def _exact(self) -> Vector:
        """x within its shards, and balanced."""
        p = self.problem
        x: Vector = self.x
        sums = p.per_shard(x)
        if np.any(sums > 1.0):  # by round-off
            x = x / np.maximum(1.0, sums)[p.shard]
        return _balanced(x, p.c[:, 0]) if p.c.shape[1] else x


def _balanced(x: Vector, c: Vector) -> Vector:
    """x with c.x = 0: the heavier side made lighter, which keeps to every other constraint."""
    up, down = float(x @ np.maximum(c, 0.0)), float(x @ np.maximum(-c, 0.0))
    if up > down:
        return np.where(c > 0.0, x * (down / up), x)
    return np.where(c < 0.0, x * (up / down), x) if down > up else x


def _polished(x: Vector, t: Vector, p: _Sorted, aim: Vector) -> Vector:
    """x with c'x = aim as nearly as may be, and within its shards.

    The nearest such x, distances being taken in shares of x and t: what is next to nothing stays so. That is
    x (1 - (c - mean) v) and t (1 + mean v), with the shard's mean of c, t counting as a plane with c = 0; so the sum of
    x and t stays 1. Where x >= 0 forbids that, all of x is made smaller by one factor, which leaves c'x = 0 as it is.
    """
    least, best = np.inf, x
    for times in range(POLISH + 1):
        off = _fine_sums(x, p.c) - aim
        total = float(np.abs(off).sum())
        if not total < least:
            break
        least, best = total, x
        if times == POLISH or p.radius * total <= ROUND_OFF * float(p.o @ x):
            break
        mean = p.per_shard(x[:, None] * p.c) / (p.per_shard(x) + t)[:, None]
        spread = p.c - mean[p.shard]
        rows = np.concatenate([np.sqrt(x)[:, None] * spread, np.sqrt(t)[:, None] * mean])
        middle = rows.T @ rows
        _guard(middle, 0)
        factor = _cholesky(middle)
        if factor is None:
            break
        v = factor.solve(off)
        x, t = x * np.clip(1.0 - spread @ v, 0.0, 2.0), t * np.clip(1.0 + mean @ v, 0.0, 2.0)
    scaled: Vector = best / max(1.0, float(p.per_shard(best).max()))
    return scaled


def _fine_sums(x: Vector, c: Vector) -> Vector:
    """c'x, with the rounding error of each product and each sum added in the end."""
    (x1, x2), (c1, c2), terms = _split(x[:, None]), _split(c), x[:, None] * c
    lost: Vector = (((x1 * c1 - terms) + x1 * c2 + x2 * c1) + x2 * c2).sum(axis=0)
    while len(terms) > 1:
        if len(terms) % 2:
            terms = np.concatenate([terms, np.zeros((1, c.shape[1]))])
        a, b = terms[::2], terms[1::2]
        terms = a + b
        share = terms - a
        lost = lost + ((a - (terms - share)) + (b - share)).sum(axis=0)
    total: Vector = terms[0] + lost
    return total


def _split(values: Vector) -> tuple[Vector, Vector]:
    """Two numbers of 26 bits with this sum (Veltkamp), whose products are exact."""
    big = 134217729.0 * values
    high = big - (big - values)
    return high, values - high


def _guard(matrix: Array, first: int) -> Vector:
    """Makes the diagonal larger from `first` on, where rows may depend on each other; gives what was added."""
    places = np.arange(first, len(matrix))
    diagonal: Vector = matrix[places, places]
    added: Vector = np.where(diagonal > 0.0, GUARD * len(matrix) * diagonal, 1.0)
    matrix[places, places] += added
    return added


class _Cholesky:
    """L with L L' = a symmetric positive definite matrix."""

    def __init__(self, factor: Array) -> None:
        self._factor = factor

    def solve(self, right: Vector) -> Vector:
        solution: Vector = lapack.dpotrs(self._factor, right, lower=1)[0]
        return solution

    def forward(self, right: Vector) -> Vector:
        """(1/L) right"""
        solution: Vector = lapack.dtrtrs(self._factor, right, lower=1)[0]
        return solution

    def backward(self, right: Vector) -> Vector:
        """(1/L') right"""
        solution: Vector = lapack.dtrtrs(self._factor, right, lower=1, trans=1)[0]
        return solution


def _cholesky(matrix: Array) -> _Cholesky | None:
    """The factor of a symmetric matrix, which is overwritten; None if that is not positive definite."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
    return None if failed else _Cholesky(factor)


class ByPlanes:
    """M itself, one row per plane. w is held as -C G x, its products with the planes; no feature is touched."""

    def __init__(self, problem: _Sorted, C: float, gram: Vector) -> None:
        self.problem, self.C = problem, C
        one_shard = len(problem.starts) == 1
        self.gram = gram if one_shard else gram[np.ix_(problem.order, problem.order)]
        self.w: tuple[Vector, Vector]  # x and -C G x

    def cost(self, x: Vector) -> float:
        return self.C * self.C * float(x @ (self.gram @ x))

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
        factor = _cholesky(M)
        if factor is None:
            return None
        if p.boxed:
            return self._boxed(factor, state.walls)
        f = p.c.shape[1]
        across = factor.solve(p.c) if f else p.c

        def newton(r: Vector, s: Vector) -> Direction:
            dx, db = factor.solve(r), s
            if f:
                db = np.asarray(np.linalg.solve(p.c.T @ across, p.c.T @ dx - s), dtype=np.float64)
                dx = dx - across @ db
            return dx, p.per_shard(dx), None, db

        return newton

    def _boxed(self, factor: _Cholesky, walls: Vector) -> Newton | None:
        """With M = L L' and V = (1/L) c, b's equations are V'V + walls: a sum of squares, however M is conditioned."""
        p = self.problem
        V = factor.forward(p.c)
        middle = V.T @ V
        middle[np.diag_indices_from(middle)] += walls
        guard = _guard(middle, 0)
        inner = _cholesky(middle)
        if inner is None:
            return None

        def newton(r: Vector, s: Vector) -> Direction:
            half = factor.forward(r)
            db = inner.solve(V.T @ half - s)
            db = db + inner.solve(guard * db)  # as if there were no guard, but where rows depend on each other
            dx = factor.backward(half - V @ db)
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
        if p.boxed:
            H[np.arange(d, len(H)), np.arange(d, len(H))] += state.walls
            guard = _guard(H, d)
        factor = _cholesky(H)
        if factor is None:
            return None

        def newton(r: Vector, s: Vector) -> Direction:
            right = B.T @ over_K(r)[0]
            right[d:] -= s
            y = factor.solve(right)
            if p.boxed:  # as if there were no guard, but where rows depend on each other
                y = y + factor.solve(np.concatenate([np.zeros(d), guard * y[d:]]))
            return *over_K(r - B @ y), y[:d] / self.root, y[d:]

        return newton
