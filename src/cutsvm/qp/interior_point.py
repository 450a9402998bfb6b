"""The interior-point method for the reduced problem, with NumPy and LAPACK: the twin of `core/reduced.hpp`.

Mehrotra's predictor-corrector method, from a start inside the constraints of both sides:

    repeat until primal - dual <= tol
        factorise  M = C A A' + diag(z/x) + E' diag(u/t) E     (E: which plane belongs to which shard)
                   and what b adds, c' (1/M) c + diag(y+/(bound - b) + y-/(bound + b))
        predictor: Newton step towards complementarity 0; how far it can go gives sigma
        corrector: Newton step towards complementarity sigma mu, with the predictor's second-order term
        go `fraction_to_boundary` of the way to the boundary, at most 1

Letters: t = 1 - sum of x over the shard, u = the shard's maximum, m = a.w + c.b + o, z = u - m. x, t and the box's y+
and y- are multipliers; z, u, bound - b and bound + b are the slacks of their constraints. The box's equation is
c'x + y+ - y- = 0. Before a bound is computed, x is projected onto c'x = y- - y+.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.qp.newton import Form, Newton, cholesky, regularize_diagonal
from cutsvm.qp.settings import InteriorPointSettings
from cutsvm.qp.sorted_planes import ReducedSolution, SortedPlanes


@dataclass(frozen=True, eq=False)
class _Certified:
    """A point of the method, with its objective and the lower bound there."""

    w: Any
    b: Vector
    x: Vector
    value: float
    risk: float
    linear: float  # C o.x, less its rounding errors and C bound |c'x|_1
    lower: float
    steps: int

    def solution(self, planes: SortedPlanes, form: Form) -> ReducedSolution:
        w = np.zeros(planes.features + planes.n_free)
        w[: planes.features] = coefficients = form.coefficients(self.w)
        w[planes.features + planes.active_intercepts] = self.b
        lower = max(0.0, self.linear - 0.5 * form.exact_quadratic(self.x, self.w, coefficients))
        return ReducedSolution(w, lower, self.value, self.risk, planes.in_given_order(self.x), self.steps)


class _Step(NamedTuple):
    """A direction for multipliers and slacks, with A'dx and db."""

    multipliers: Vector
    slacks: Vector
    combined: Vector | None
    db: Vector


class InteriorPoint:
    """The state of the method: `multipliers` holds x and t, `slacks` z and u.

    If b has a box, y+ and y- come after t, and bound - b and bound + b after u.
    """

    def __init__(
        self, planes: SortedPlanes, C: float, form: Form, warm_start: Vector | None, settings: InteriorPointSettings
    ) -> None:
        self.planes, self.C, self.form, self.settings, self.steps = planes, C, form, settings, 0
        x = self._initial_weights(warm_start)
        # The best multiple of x: the dual is a parabola along it.
        linear, quadratic = C * float(planes.o @ x), form.quadratic(x)
        if 0.0 < linear < quadratic:
            x = x * (linear / quadratic)
        self.b = np.zeros(planes.c.shape[1])
        form.start(x)
        self.m = form.plane_values()
        risks, shard = planes.shard_risks(self.m), planes.shard
        distance = float((risks[shard] - self.m).mean())
        least = settings.min_initial_slack * float(np.abs(planes.o).max())
        u = risks + max(settings.initial_slack * distance, least, 1e-300)
        multipliers, slacks = np.concatenate([x, 1.0 - planes.per_shard(x)]), np.concatenate([u[shard] - self.m, u])
        if planes.boxed:
            ones = np.ones(2 * len(self.b))
            mu = float((multipliers * slacks).mean())
            multipliers = np.concatenate([multipliers, mu / planes.intercept_bound * ones])
            slacks = np.concatenate([slacks, planes.intercept_bound * ones])
        self._set(multipliers, slacks)

    def _initial_weights(self, warm_start: Vector | None) -> Vector:
        """Equal weights, or `warm_start` moved inside the constraints."""
        planes, floor = self.planes, self.settings.min_initial_weight
        equal: Vector = np.reciprocal(planes.sizes + 1.0, dtype=np.float64)
        x: Vector = equal[planes.shard]
        if warm_start is not None:
            x = np.maximum(warm_start, floor * x)
            x = x / np.maximum(1.0, planes.per_shard(x) * (1.0 + floor * equal))[planes.shard]
        # From c'x far from 0 the method may cycle: it starts from c'x = 0 where c has both signs.
        c = planes.c
        if not planes.boxed and c.shape[1] == 1 and c.min() < 0.0 < c.max():
            x = balanced(x, c[:, 0])
        return x

    def _set(self, multipliers: Vector, slacks: Vector) -> None:
        planes, shards, free = len(self.planes.o), len(self.planes.starts), len(self.b)
        parts = [planes, planes + shards, planes + shards + free]
        self.multipliers, self.slacks = multipliers, slacks
        self.x, self.t, self.y_up, self.y_down = np.split(multipliers, parts)
        self.z, self.u, self.above, self.below = np.split(slacks, parts)

    def solve(self, tol: float) -> ReducedSolution:
        """The best solution found, to an absolute tolerance of the objective."""
        best = self._certified()
        while best.value - best.lower > tol and self.steps < self.settings.max_steps and self._step():
            now = self._certified()
            if now.value - now.lower < best.value - best.lower:
                best = now
        return best.solution(self.planes, self.form)

    def _step(self) -> bool:
        """One step; False when rounding leaves nothing to gain."""
        with np.errstate(all="ignore"):  # overflow close to the boundary is noticed below
            box_curvature = self.y_up / self.above + self.y_down / self.below
            newton = self.form.newton(self.x, self.t, self.z, self.u, box_curvature)
            if newton is None:
                return False
            step, step_length = self._predictor_corrector(newton)
        finite = np.isfinite(step.multipliers).all() and np.isfinite(step.slacks).all()
        if not (finite and step_length > self.settings.stalled_step_length):
            return False
        self._set(self.multipliers + step_length * step.multipliers, self.slacks + step_length * step.slacks)
        self.b = self.b - step_length * step.db
        if self.planes.boxed:
            self.b = np.clip(self.b, -self.planes.intercept_bound, self.planes.intercept_bound)
        self.form.move(self.x, step_length, step.combined)
        self.m = self.form.plane_values() + self.planes.c @ self.b
        self.steps += 1
        return True

    def _predictor_corrector(self, newton: Newton) -> tuple[_Step, float]:
        settings = self.settings
        products = self.multipliers * self.slacks
        mu = products.mean()
        step = self._direction(newton, -products)
        target = mu * (self._products_after(step, self._max_step_length(step)).mean() / mu) ** 3
        step = self._direction(newton, target - products - step.multipliers * step.slacks)
        step_length = min(1.0, settings.fraction_to_boundary * self._max_step_length(step))
        mu_after = self._products_after(step, step_length).mean()
        if step_length < settings.min_step_length or mu_after > settings.max_mu_ratio * mu:
            step = self._direction(newton, settings.recentering_mu_ratio * mu - products)
            step_length = min(1.0, settings.fraction_to_boundary * self._max_step_length(step))
        centrality = min(settings.min_centrality, settings.centrality_decrease * products.min() / mu)
        return step, self._backtrack(step, step_length, centrality)

    def _direction(self, newton: Newton, change: Vector) -> _Step:
        """Newton's direction that changes the products by `change` and meets all constraints."""
        p, planes, pairs = self.planes, len(self.x), len(self.x) + len(self.t)
        dual_residual = self.u[p.shard] - self.m - self.z
        r = change[:planes] / self.x - dual_residual - (change[planes:pairs] / self.t)[p.shard]
        s = -(self.x @ p.c)
        if p.boxed:
            change_up, change_down = np.split(change[pairs:] / self.slacks[pairs:], 2)
            s = s - self.y_up + self.y_down - change_up + change_down
        dx, sums, combined, db = newton(r, s)
        multipliers = np.concatenate([dx, -sums])
        slacks = (change[:pairs] - self.slacks[:pairs] * multipliers) / self.multipliers[:pairs]
        if p.boxed:
            box_slacks = np.concatenate([db, -db])
            dy = (change[pairs:] - self.multipliers[pairs:] * box_slacks) / self.slacks[pairs:]
            multipliers, slacks = np.concatenate([multipliers, dy]), np.concatenate([slacks, box_slacks])
        return _Step(multipliers, slacks, combined, db)

    def _max_step_length(self, step: _Step) -> float:
        """The longest step, up to 1 / fraction_to_boundary, that keeps all multipliers and slacks positive."""
        steepest = max(float((-step.multipliers / self.multipliers).max()), float((-step.slacks / self.slacks).max()))
        return 1.0 / max(self.settings.fraction_to_boundary, steepest)

    def _products_after(self, step: _Step, step_length: float) -> Vector:
        """The products of multipliers and slacks after such a step."""
        return (self.multipliers + step_length * step.multipliers) * (self.slacks + step_length * step.slacks)

    def _backtrack(self, step: _Step, step_length: float, centrality: float) -> float:
        """The step length, shortened until no product is below `centrality` times their mean."""
        for _ in range(self.settings.max_backtracks):
            products = self._products_after(step, step_length)
            if products.min() >= centrality * products.mean():
                break
            step_length *= self.settings.backtracking
        return step_length

    def _certified(self) -> _Certified:
        """The value at w and b, and the lower bound from x made feasible."""
        p, C, settings = self.planes, self.C, self.settings
        risk = float(p.shard_risks(self.m).sum())
        value = self.form.penalty() + C * risk
        x = projected(self.x, self.t, p, self.y_down - self.y_up, settings) if p.boxed else self._feasible()
        linear = C * float(p.o @ x)
        products = self.m - p.o
        if p.boxed:
            products = products - p.c @ self.b
        linear -= settings.rounding_error * C * float(x @ (np.abs(p.o) + np.abs(products)))
        if p.boxed:
            imbalance = (1.0 + settings.rounding_error) * float(np.abs(compensated_sums(x, p.c)).sum())
            imbalance += settings.compensated_rounding_error * float((x @ np.abs(p.c)).sum())
            linear -= C * p.intercept_bound * imbalance
        lower = linear - 0.5 * self.form.quadratic(x)
        return _Certified(self.form.w, self.b, x, value, risk, linear, lower, self.steps)

    def _feasible(self) -> Vector:
        """x with sums over the shards of at most 1, and c'x = 0."""
        p = self.planes
        x: Vector = self.x
        sums = p.per_shard(x)
        if np.any(sums > 1.0):  # by round-off
            x = x / np.maximum(1.0, sums)[p.shard]
        return balanced(x, p.c[:, 0]) if p.c.shape[1] else x


def balanced(x: Vector, c: Vector) -> Vector:
    """x with c.x = 0: weights of the sign whose sum is larger are scaled down, which keeps every other constraint."""
    up, down = float(x @ np.maximum(c, 0.0)), float(x @ np.maximum(-c, 0.0))
    if up > down:
        return np.where(c > 0.0, x * (down / up), x)
    return np.where(c < 0.0, x * (up / down), x) if down > up else x


def projected(x: Vector, t: Vector, p: SortedPlanes, target: Vector, settings: InteriorPointSettings) -> Vector:
    """x with c'x = target, as nearly as x >= 0 and rounding allow, and with sums over the shards of at most 1.

    The nearest such x, with distances relative to x and t, so that small weights stay small:
    x (1 - (c - mean) v) and t (1 + mean v), with the shard's weighted mean of c, t counting as a plane with c = 0;
    the sum of x and t stays 1. The result is divided by the largest sum over a shard if that exceeds 1, which leaves
    c'x = 0 as it is.
    """
    least, best = np.inf, x
    for projections in range(settings.max_projections + 1):
        residual = compensated_sums(x, p.c) - target
        total = float(np.abs(residual).sum())
        if not total < least:
            break
        least, best = total, x
        small = p.intercept_bound * total <= settings.rounding_error * float(p.o @ x)
        if projections == settings.max_projections or small:
            break
        mean = p.per_shard(x[:, None] * p.c) / (p.per_shard(x) + t)[:, None]
        centered = p.c - mean[p.shard]
        rows = np.concatenate([np.sqrt(x)[:, None] * centered, np.sqrt(t)[:, None] * mean])
        normal = rows.T @ rows
        regularize_diagonal(normal, 0, settings.regularization)
        factor = cholesky(normal)
        if factor is None:
            break
        v = factor.solve(residual)
        x, t = x * np.clip(1.0 - centered @ v, 0.0, 2.0), t * np.clip(1.0 + mean @ v, 0.0, 2.0)
    scaled: Vector = best / max(1.0, float(p.per_shard(best).max()))
    return scaled


def compensated_sums(x: Vector, c: Vector) -> Vector:
    """c'x, with the rounding error of each product and each sum added at the end."""
    (x1, x2), (c1, c2), terms = _split(x[:, None]), _split(c), x[:, None] * c
    errors: Vector = (((x1 * c1 - terms) + x1 * c2 + x2 * c1) + x2 * c2).sum(axis=0)
    while len(terms) > 1:
        if len(terms) % 2:
            terms = np.concatenate([terms, np.zeros((1, c.shape[1]))])
        a, b = terms[::2], terms[1::2]
        terms = a + b
        added = terms - a
        errors = errors + ((a - (terms - added)) + (b - added)).sum(axis=0)
    total: Vector = terms[0] + errors
    return total


def _split(values: Vector) -> tuple[Vector, Vector]:
    """Two numbers of 26 bits with this sum (Veltkamp), whose products are exact."""
    big = 134217729.0 * values
    high = big - (big - values)
    return high, values - high
