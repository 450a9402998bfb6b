"""Kernel machines that are one problem on all rows: regression and one class, by the exact solver.

The coefficients of a solution, its `alpha`, have signs here: f(x) = sum_i alpha_i K(x, x_i) + intercept.

Regression: where w = 0 has no loss but what rounding the targets may have added, w = 0 is the answer: F is 0 there for
targets that differ by no more than that.

One class: min F = -M^2 / 2, where M is the distance of the origin from the reduced hull of the rows in feature space,
and M may be 0. Then no relative gap would end the steps. So the solver minimises F - `constant`, which is the same
problem (c = -constant, as sum_v s_v = 1), to a gap of tol (|F| + constant), with constant = least / tol; and if F is
proven to be nowhere below -`least`, w = 0 is the answer. rho is the score of some row; it is taken a little lower, by
the rounding errors of scores, so that this row is an inlier however its score is summed up. That adds as much to F.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.driver.one_class import relative_gap
from cutsvm.kernel_machines.context import FitOptions, Solution
from cutsvm.kernel_machines.dual_problem import one_class, tube
from cutsvm.kernel_machines.dual_search import solve
from cutsvm.kernel_machines.exact_settings import ExactSettings
from cutsvm.kernel_machines.gram import EPS, Points
from cutsvm.kernel_machines.kernel_rows import KernelRows


@dataclass(frozen=True)
class SingleSettings:
    """zero: distances M below this share of the mean of sqrt(K(x, x)) count as 0, of a one-class machine.

    rho_share: of tol |F|: the most that rho is taken lower. last_digits: losses up to this multiple of a target count
    as 0 where w = 0, of regression.
    """

    zero: float = 1e-6
    rho_share: float = 0.05
    last_digits: float = 4.0 * EPS
    exact: ExactSettings = field(default=ExactSettings())


@dataclass(frozen=True, eq=False)
class OneClassSolution(Solution):
    """F may be below 0: the gap is relative to |F|. F above -least counts as 0."""

    @property
    def gap(self) -> float:
        return one_class_gap(self.primal, self.lower, self.least)


def one_class_gap(objective: float, lower: float, least: float = 0.0) -> float:
    """(objective - lower) / |objective|, 0 if w = 0 is the answer; NaN if they are not known."""
    return np.nan if math.isnan(objective) else relative_gap(objective, lower, least)


def regression(
    points: Points,
    targets: Vector,
    caps: Vector,
    epsilon: float,
    options: FitOptions,
    *,
    free_intercept: bool,
    shift: float = 0.0,
    settings: SingleSettings | None = None,
) -> Iterator[Solution]:
    """Solutions of |w|^2 / 2 + sum_i caps_i max(0, |y_i - f(x_i)| - epsilon); shift: what was taken off all targets."""
    use = SingleSettings() if settings is None else settings
    problem = tube(targets, caps, epsilon, free_intercept=free_intercept)
    last_digits = use.last_digits * float(caps @ (np.abs(targets) + abs(shift) + epsilon))
    for found in solve(problem, KernelRows(points), options, use.exact):
        coef = found.s[: len(caps)] + found.s[len(caps) :]
        own = (found.bounds.primal, found.bounds.lower, found.iteration, found.ended, found.certified)
        at_zero = not found.s.any() and found.bounds.lower >= 0.0
        yield Solution(coef, *own, found.bounds.intercept, last_digits if at_zero else 0.0)


def one_class_machine(
    points: Points, weights: Vector, nu: float, options: FitOptions, settings: SingleSettings | None = None
) -> Iterator[OneClassSolution]:
    """Solutions of |w|^2 / 2 - rho + 1 / (nu S) sum_i s_i max(0, rho - f(x_i)), S = sum_i s_i; intercept: -rho."""
    use = SingleSettings() if settings is None else settings
    rows, caps = KernelRows(points), weights / (nu * float(weights.sum()))
    least = 0.5 * (use.zero * float(weights @ rows.lengths) / float(weights.sum())) ** 2
    problem = one_class(caps, nu)
    constant = least / options.tol
    moved = constant * math.fsum(problem.start)
    for found in solve(replace(problem, c=np.full(len(caps), -constant)), rows, options, use.exact):
        bounds = found.bounds
        off = 4.0 * EPS * (abs(bounds.primal) + moved)
        primal, lower = bounds.primal + moved + off, bounds.lower + moved - off
        own = (found.iteration, found.ended, found.certified)
        if found.certified and lower >= -least:
            yield OneClassSolution(np.zeros_like(found.s), 0.0, min(lower, 0.0), *own, 0.0, least)
        else:
            below = min(_score_error(rows, found.s), use.rho_share * options.tol * abs(primal))
            intercept = bounds.intercept + constant + below
            yield OneClassSolution(found.s, primal + below, lower, *own, intercept, least)


def _score_error(rows: KernelRows, s: Vector) -> float:
    """A bound of the rounding errors of scores of the rows."""
    values, terms = 0.0 if rows.given else rows.rounding, 2 * int(np.count_nonzero(s)) + 20
    return (values + EPS * terms) * float(np.abs(s) @ rows.lengths) * float(rows.lengths.max(initial=0.0))
