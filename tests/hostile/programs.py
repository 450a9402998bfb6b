"""Optima in arbitrary precision, enclosed from both sides.

A program is a convex piecewise quadratic function of u,

    F(u) = sum over penalised coordinates of u_k^2 / 2 + sum_i c_i max(0, max_j (1 - g_ij . u))

in which the last `free` coordinates are not penalised. Its dual has one alpha_ij >= 0 per piece, sum_j alpha_ij <= c_i:

    D(alpha) = sum alpha_ij - |sum alpha_ij g_ij|^2 / 2      if the free coordinates of sum alpha_ij g_ij are 0

`solve` finds both optima by a primal-dual interior-point method, `pivot` and `lemke` by pivoting, which no spread of
the weights can disturb. All compute with floats of many bits and prove nothing. `enclose` then evaluates F and D
in ball arithmetic from the exact data: these two numbers prove where the optimum lies. Residuals of the free
coordinates cost |residual| x |u_free|, for which a bound of some minimiser is known (`Program.free_bound`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat, ctx, fmpq

TIGHT = 1e-20  # relative width that is asked of an enclosure
MOST_ITERATIONS = 200
MOST_PIVOTS, MOST_LEMKE = 60, 20  # of the latter for each row
CENTRE = arb(1) / 2  # what is left of mu in a step back to the central path


Method = Callable[["Program"], tuple[list[arb], list[list[arb]]]]


class ReferenceFailedError(Exception):
    """No tight enclosure was found."""


@contextmanager
def precision(bits: int):
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def exact(value: Any) -> fmpq:
    """A float, integer or Fraction as a rational number."""
    if isinstance(value, fmpq):
        return value
    ratio = value if isinstance(value, Fraction) else Fraction(value)
    return fmpq(ratio.numerator, ratio.denominator)


@dataclass(frozen=True)
class Enclosure:
    """low <= minimum <= high, exactly; of several problems, the sums."""

    low: fmpq
    high: fmpq

    def __add__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Program:
    """One entry of `pieces` for each i: the list of its g_ij. Numbers are rationals, or balls that enclose them."""

    pieces: list[list[list[Any]]]
    costs: list[Any]
    free: int = 0

    @property
    def size(self) -> int:
        return len(self.pieces[0][0])

    @property
    def penalised(self) -> int:
        return self.size - self.free

    def free_bound(self) -> arb:
        """Some minimiser has no free coordinate, or difference of two of them, beyond this.

        |w*|^2 / 2 <= F(0) = sum of c. For this w* the function of the free coordinates is polyhedral, and at one of its
        vertices enough pieces tie to connect all of them: each tie bounds a difference by 1 + |w| |g|.
        """
        longest = arb(0)
        for row in self.pieces:
            for piece in row:
                longest = longest.max(squares(arb(g) for g in piece[: self.penalised]).sqrt())
        weights = sum((arb(c) for c in self.costs), arb(0))
        return max(1, self.free) * (1 + (2 * weights).sqrt() * 2 * longest)

    def objective(self, u: Sequence[Any]) -> arb:
        """F(u) in balls."""
        u = [arb(value) for value in u]
        total = squares(u[: self.penalised]) / 2
        for row, cost in zip(self.pieces, self.costs, strict=True):
            loss = arb(0)
            for piece in row:
                loss = loss.max(1 - dot(piece, u))
            total += arb(cost) * loss
        return total

    def dual(self, alpha: Sequence[Sequence[Any]]) -> arb:
        """D(alpha) in balls, less what the residuals of the free coordinates may cost."""
        total, sums = arb(0), [arb(0)] * self.size
        for row, own in zip(self.pieces, alpha, strict=True):
            for piece, a in zip(row, own, strict=True):
                total += arb(a)
                sums = [value + arb(a) * arb(g) for value, g in zip(sums, piece, strict=True)]
        total -= squares(sums[: self.penalised]) / 2
        if self.free:
            total -= sum((abs(value) for value in sums[self.penalised :]), arb(0)) * self.free_bound()
        return total


def dot(left: Sequence[Any], right: Sequence[arb]) -> arb:
    return sum((arb(g) * value for g, value in zip(left, right, strict=True)), arb(0))


def squares(values: Iterable[arb]) -> arb:
    """The sum of the squares. (A ball around 0 to the power of 2 is not a number in python-flint.)"""
    return sum((value * value for value in values), arb(0))


def merged(pieces: list[list[list[fmpq]]], costs: list[fmpq], free: int = 0) -> Program:
    """The program with equal rows added up and rows without cost left out."""
    known: dict[Any, int] = {}
    kept: list[list[list[fmpq]]] = []
    sums: list[fmpq] = []
    for row, cost in zip(pieces, costs, strict=True):
        if cost == 0:
            continue
        key = tuple(tuple((g.p, g.q) for g in piece) for piece in row)
        if key not in known:
            known[key] = len(kept)
            kept.append(row)
            sums.append(fmpq(0))
        sums[known[key]] += cost
    return Program(kept, sums, free)


def lower_end(value: arb) -> fmpq:
    return _rational(value.lower())


def upper_end(value: arb) -> fmpq:
    return _rational(value.upper())


def _rational(end: arb) -> fmpq:
    """An end of a ball, as a rational that is exact."""
    mantissa, exponent = end.mid().man_exp()
    two = fmpq(2) ** abs(int(exponent))
    value = fmpq(mantissa)
    return value * two if exponent >= 0 else value / two


def enclose(program: Program) -> Enclosure:
    """The minimum of the program."""
    if not program.pieces:
        return Enclosure(fmpq(0), fmpq(0))
    low, high = fmpq(0), None
    for method, bits in methods(program):
        with precision(bits):
            u, alpha = method(program)
            F, D = program.objective(u), program.dual(feasible(program, alpha))
            if not (F.is_finite() and D.is_finite()):
                continue
            above, below = upper_end(F), lower_end(D)
        high = above if high is None else min(high, above)
        low = max(low, below)
        if high - low <= exact(TIGHT) * high:
            return Enclosure(low, high)
    raise ReferenceFailedError(
        "nothing finite" if high is None else f"relative width of the enclosure: {float_of((high - low) / high):.3g}"
    )


def float_of(value: fmpq) -> float:
    return float(Fraction(int(value.p), int(value.q))) if value != 0 else 0.0


def feasible(program: Program, alpha: Sequence[Sequence[arb]]) -> list[list[arb]]:
    """alpha, scaled down where round-off has put a sum above its c_i."""
    found = []
    for own, cost in zip(alpha, program.costs, strict=True):
        own = [a.mid() if a > 0 else arb(0) for a in own]
        limit, total = arb(cost).lower(), sum(own, arb(0)).upper()
        if total > limit:
            own = [(a * (limit / total)).lower() for a in own]
            own = [a if a > 0 else arb(0) for a in own]
        found.append(own)
    return found


class _State:
    """An interior point: u, xi_i > 0 with s_ij = xi_i - (1 - g_ij . u) > 0, a_ij > 0 with q_i = 1 - sum_j a_ij > 0."""

    def __init__(self, program: Program) -> None:
        self.n, self.size, self.penalised = len(program.pieces), program.size, program.penalised
        self.G = [[[arb(g).mid() for g in piece] for piece in row] for row in program.pieces]
        self.c = [arb(cost).mid() for cost in program.costs]
        self.u = [arb(0)] * self.size
        self.xi = [arb(2)] * self.n
        self.a = [[arb(1) / (len(row) + 1)] * len(row) for row in self.G]
        self.refresh()

    def refresh(self) -> None:
        """What follows from u, xi and a."""
        self.u, self.xi = [v.mid() for v in self.u], [v.mid() for v in self.xi]
        self.a = [[v.mid() for v in own] for own in self.a]
        self.q = [(1 - sum(own, arb(0))).mid() for own in self.a]
        self.s = [
            [(xi - 1 + dot(piece, self.u)).mid() for piece in row] for row, xi in zip(self.G, self.xi, strict=True)
        ]
        self.residual = [self.u[k] if k < self.penalised else arb(0) for k in range(self.size)]
        for row, own, cost in zip(self.G, self.a, self.c, strict=True):
            for piece, a in zip(row, own, strict=True):
                for k in range(self.size):
                    self.residual[k] -= cost * a * piece[k]
        self.residual = [v.mid() for v in self.residual]

    def products(self) -> list[arb]:
        """s_ij a_ij and xi_i q_i, all equal on the central path."""
        found = []
        for i in range(self.n):
            found += [s * a for s, a in zip(self.s[i], self.a[i], strict=True)]
            found.append(self.xi[i] * self.q[i])
        return found

    def inside(self) -> bool:
        return all(v > 0 for values in (self.xi, self.q, *self.s, *self.a) for v in values)


@dataclass
class _Move:
    u: list[arb]
    xi: list[arb]
    a: list[list[arb]]
    s: list[list[arb]]
    q: list[arb]

    def longest(self, state: _State) -> arb:
        """The largest step, at most 1, at which nothing is negative."""
        step = arb(1)
        for value, change in self._pairs(state):
            if change < 0 and value < -change * step:
                step = (-value / change).mid()
        return step

    def _pairs(self, state: _State):
        yield from zip(state.xi, self.xi, strict=True)
        yield from zip(state.q, self.q, strict=True)
        for i in range(state.n):
            yield from zip(state.s[i], self.s[i], strict=True)
            yield from zip(state.a[i], self.a[i], strict=True)


class _Newton:
    """The linear system at a state, reduced to u; one factorisation for predictor and corrector."""

    def __init__(self, state: _State) -> None:
        self.state = st = state
        self.D = [[a / s for a, s in zip(st.a[i], st.s[i], strict=True)] for i in range(st.n)]
        self.E = [q / xi for q, xi in zip(st.q, st.xi, strict=True)]
        self.total = [sum(D, e) for D, e in zip(self.D, self.E, strict=True)]
        left, right = [], []
        for i in range(st.n):
            J = len(self.D[i])
            for j in range(J):
                line = [arb(0)] * st.size
                for k in range(J):
                    if j == k:
                        others = self.total[i] - self.D[i][j] if J > 1 else self.E[i]
                        weight = st.c[i] * self.D[i][j] * others / self.total[i]
                    else:
                        weight = -st.c[i] * self.D[i][j] * self.D[i][k] / self.total[i]
                    line = [v + weight * g for v, g in zip(line, st.G[i][k], strict=True)]
                left.append(line)
                right.append(st.G[i][j])
        H = arb_mat(right).transpose() * arb_mat(left)
        H = [
            [H[r, k].mid() + (1 if r == k and r < st.penalised else 0) for k in range(st.size)] for r in range(st.size)
        ]
        # A diagonal scaling takes out the scales of the features.
        self.scale = [1 / H[k][k].sqrt() if H[k][k] > 0 else arb(1) for k in range(st.size)]
        tiny = arb(2) ** (-(ctx.prec * 3) // 4)
        for r in range(st.size):
            H[r] = [v * self.scale[r] * z for v, z in zip(H[r], self.scale, strict=True)]
            H[r][r] += tiny  # free coordinates may have a direction that changes nothing
        self.H = arb_mat(H).mid()

    def move(self, target: list[list[arb]], target_xi: list[arb], residual: arb | int = 1) -> _Move:
        """The step for s da + a ds = target_ij, xi dq + q dxi = target_xi_i, and so much of the residual removed."""
        st = self.state
        T = [
            sum((t / s for t, s in zip(target[i], st.s[i], strict=True)), target_xi[i] / st.xi[i]) for i in range(st.n)
        ]
        rhs = [-v * residual for v in st.residual]
        for i in range(st.n):
            for j, piece in enumerate(st.G[i]):
                factor = st.c[i] * (target[i][j] / st.s[i][j] - self.D[i][j] * T[i] / self.total[i])
                rhs = [v + factor * g for v, g in zip(rhs, piece, strict=True)]
        right = arb_mat([[(v * z).mid()] for v, z in zip(rhs, self.scale, strict=True)])
        found = self.H.solve(right, nonstop=True, algorithm="approx")
        du = [(found[k, 0] * self.scale[k]).mid() for k in range(st.size)]
        along = [[dot(piece, du) for piece in row] for row in st.G]
        dxi = []
        for i in range(st.n):
            pull = sum((D * g for D, g in zip(self.D[i], along[i], strict=True)), arb(0))
            dxi.append(((T[i] - pull) / self.total[i]).mid())
        ds = [[(g + x).mid() for g in row] for row, x in zip(along, dxi, strict=True)]
        da = [
            [((t - a * d) / s).mid() for t, a, d, s in zip(target[i], st.a[i], ds[i], st.s[i], strict=True)]
            for i in range(st.n)
        ]
        dq = [-sum(own, arb(0)) for own in da]
        return _Move(du, dxi, da, ds, dq)


def solve(program: Program) -> tuple[list[arb], list[list[arb]]]:
    """u and alpha close to the optimum (Mehrotra's predictor and corrector), as far as the working precision goes."""
    state = _State(program)
    best: tuple[arb, list[arb], list[list[arb]]] | None = None
    stalled = 0
    for _ in range(MOST_ITERATIONS):
        alpha = [[a * cost for a in own] for own, cost in zip(state.a, state.c, strict=True)]
        F = program.objective(state.u)
        gap = F - program.dual(feasible(program, alpha))
        if best is None or gap.mid() < best[0]:
            best, stalled = (gap.mid(), state.u, alpha), 0
        else:
            stalled += 1
        if gap.mid() <= arb(TIGHT) / 8 * F.mid() or stalled > 25:
            break
        if not _step(state):
            break
    assert best is not None
    return best[1], best[2]


def _step(state: _State) -> bool:
    products = state.products()
    mu = (sum(products, arb(0)) / len(products)).mid()
    newton = _Newton(state)
    pairs = [[s * a for s, a in zip(state.s[i], state.a[i], strict=True)] for i in range(state.n)]
    ends = [xi * q for xi, q in zip(state.xi, state.q, strict=True)]
    first = newton.move([[-v for v in row] for row in pairs], [-v for v in ends])
    step = first.longest(state)
    after = arb(0)
    for xi, dxi, q, dq in zip(state.xi, first.xi, state.q, first.q, strict=True):
        after += (xi + step * dxi) * (q + step * dq)
    for i in range(state.n):
        for s, ds, a, da in zip(state.s[i], first.s[i], state.a[i], first.a[i], strict=True):
            after += (s + step * ds) * (a + step * da)
    sigma = ((after / len(products) / mu) ** 3).mid()
    goal = sigma * mu
    target = [
        [goal - v - ds * da for v, ds, da in zip(pairs[i], first.s[i], first.a[i], strict=True)] for i in range(state.n)
    ]
    target_xi = [goal - v - dx * dq for v, dx, dq in zip(ends, first.xi, first.q, strict=True)]
    second = newton.move(target, target_xi)
    if not all(v.is_finite() for v in second.u):
        return False
    step = second.longest(state)
    if step < 0.1:  # too far from the central path: back to it first
        goal = mu * CENTRE
        second = newton.move([[goal - v for v in row] for row in pairs], [goal - v for v in ends], 1 - CENTRE)
        step = second.longest(state)
    step = step * (1 - (1 - step).max(arb(2) ** -20) / 16) if step < 1 else step * (1 - arb(2) ** -24)
    before = state.u, state.xi, state.a
    for _ in range(4):
        state.u = [v + step * d for v, d in zip(before[0], second.u, strict=True)]
        state.xi = [v + step * d for v, d in zip(before[1], second.xi, strict=True)]
        state.a = [[v + step * d for v, d in zip(o, m, strict=True)] for o, m in zip(before[2], second.a, strict=True)]
        state.refresh()
        if state.inside():
            return True
        step = step / 2
    return False


def pivot(program: Program) -> tuple[list[arb], list[list[arb]]]:
    """The same by block principal pivoting (Judice and Pires), which knows no scales and no central path.

    It is fast, but may cycle.
    """
    return _by_complementarity(program, _complementary)


def lemke(program: Program) -> tuple[list[arb], list[list[arb]]]:
    """The same by Lemke's method, which always ends."""
    return _by_complementarity(program, _lemke)


def _by_complementarity(
    program: Program, solve_problem: Callable[[list[list[arb]], list[arb]], list[arb]]
) -> tuple[list[arb], list[list[arb]]]:
    """alpha >= 0 and xi >= 0 solve a linear complementarity problem,

        w = Q alpha + E' xi - 1 >= 0,  alpha.w = 0,      v = c - E alpha >= 0,  xi.v = 0

    with E adding up the pieces of a row. A tiny multiple of the identity makes all principal minors positive; free
    coordinates are penalised very little.
    """
    rows = [(i, piece) for i, row in enumerate(program.pieces) for piece in row]
    many, n = len(rows), len(program.pieces)
    G = arb_mat([[arb(g).mid() for g in piece] for _, piece in rows])
    costs = [arb(c).mid() for c in program.costs]
    tiny = arb(2) ** (-(ctx.prec // 4))
    heavy = (program.free_bound() ** 2 / min(costs, key=lambda c: c.log()) / tiny).mid() if program.free else arb(1)
    weights = [arb(1)] * program.penalised + [heavy] * program.free
    scaled = arb_mat([[g * z for g, z in zip(line, weights, strict=True)] for line in G.table()])
    Q = (scaled * G.transpose()).table()
    M = [[v.mid() for v in line] + [arb(0)] * n for line in Q] + [[arb(0)] * (many + n) for _ in range(n)]
    for k, (i, _) in enumerate(rows):
        M[k][many + i], M[many + i][k] = arb(1), arb(-1)
        own = squares(G[k, c] for c in range(program.penalised)).mid()
        M[k][k] += tiny * (own if own > 0 else 1)
    for i in range(n):
        M[many + i][many + i] = tiny * costs[i]
    z = solve_problem(M, [arb(-1)] * many + costs)
    alpha, place = [], 0
    for row in program.pieces:
        alpha.append(z[place : place + len(row)])
        place += len(row)
    u = (arb_mat([z[:many]]) * scaled).table()[0]
    return [v.mid() for v in u], alpha


def _complementary(M: list[list[arb]], q: list[arb]) -> list[arb]:
    """z >= 0 with w = M z + q >= 0 and z.w = 0, for M with positive principal minors."""
    size, basic, fewest, patience = len(q), set(), len(q) + 1, 10
    z = [arb(0)] * size
    for _ in range(MOST_PIVOTS):
        order = sorted(basic)
        z = [arb(0)] * size
        if order:
            A = arb_mat([[M[r][c] for c in order] for r in order])
            found = A.solve(arb_mat([[-q[r]] for r in order]), nonstop=True, algorithm="approx")
            for k, r in enumerate(order):
                z[r] = found[k, 0].mid()
        wrong = [r for r in order if not z[r] >= 0]
        for r in range(size):
            if r not in basic and q[r].mid() + sum((M[r][c] * z[c] for c in order), arb(0)).mid() < 0:
                wrong.append(r)
        if not wrong:
            return z
        if len(wrong) < fewest:
            fewest, patience = len(wrong), 10
        elif patience:
            patience -= 1
        else:
            wrong = [max(wrong)]
        basic ^= set(wrong)
    return z


def _lemke(M: list[list[arb]], q: list[arb]) -> list[arb]:
    """The same: the columns of the tableau are w, z and the artificial variable, which enters first and leaves last."""
    size = len(q)
    tie = arb(2) ** (-(ctx.prec // 3))
    # Numbers that differ a little from row to row break ties.
    right = [(v + abs(v) * tie * (1 + k)).mid() for k, v in enumerate(q)]
    rows = [
        [arb(int(r == c)) for c in range(size)] + [-v for v in M[r]] + [-(1 + tie * (r + 1) * (r + 1)).mid()]
        for r in range(size)
    ]
    basis, entering = list(range(size)), 2 * size
    leaving = min(range(size), key=lambda r: right[r] / -rows[r][-1])
    for _ in range(MOST_LEMKE * size):
        factor = rows[leaving][entering]
        rows[leaving] = [(v / factor).mid() if v != 0 else v for v in rows[leaving]]
        right[leaving] = (right[leaving] / factor).mid()
        for r in range(size):
            times = rows[r][entering]
            if r != leaving and times != 0:
                rows[r] = [(v - times * p).mid() if p != 0 else v for v, p in zip(rows[r], rows[leaving], strict=True)]
                right[r] = (right[r] - times * right[leaving]).mid()
        left, basis[leaving] = basis[leaving], entering
        if left == 2 * size:
            break
        entering = left + size if left < size else left - size
        ratios = [(right[r] / rows[r][entering], r) for r in range(size) if rows[r][entering] > 0]
        if not ratios:
            break
        leaving = min(ratios)[1]
    z = [arb(0)] * size
    for r, variable in enumerate(basis):
        if size <= variable < 2 * size and right[r] > 0:
            z[variable - size] = right[r]
    return z


def methods(program: Program) -> list[tuple[Method, int]]:
    """Methods and their bits, one after the other until the enclosure is tight."""
    sizes = [abs(arb(cost)).log() for cost in program.costs]
    spread = max(sizes, key=float) - min(sizes, key=float)
    first: list[tuple[Method, int]] = [(solve, 400)] if spread < 50 else []
    return [*first, (pivot, 1600), (lemke, 1600), (pivot, 6400), (lemke, 6400), (solve, 1600), (lemke, 25600)]
