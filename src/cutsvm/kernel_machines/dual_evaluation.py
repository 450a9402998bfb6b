"""What is known of the dual at one s, computed from kernel values in float64 or extended precision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.kernel_machines.context import Deadline, FitOptions
from cutsvm.kernel_machines.dual_certificate import (
    DualBounds,
    ValueErrors,
    bounds_of_scores,
    dual_bounds,
    weight_bounds,
)
from cutsvm.kernel_machines.dual_problem import DualProblem
from cutsvm.kernel_machines.exact_settings import ExactSettings
from cutsvm.kernel_machines.gram import EPS
from cutsvm.kernel_machines.kernel_rows import KernelRows


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores and bounds at s; total: of s, as the problem wants it."""

    problem: DualProblem
    rows: KernelRows
    options: FitOptions
    settings: ExactSettings
    total: float
    s: Vector

    def _support(self) -> tuple[Ints, Vector]:
        """Rows with a coefficient, and the sum of it over their variables."""
        coef: Vector = np.bincount(self.problem.row_of, self.s, minlength=len(self.rows)).astype(np.float64)
        support = np.flatnonzero(coef)
        return support, coef[support]

    def scores(self, which: Ints, deadline: Deadline) -> Vector:
        """f of these rows."""
        return self.rows.scores(*self._support(), which, deadline) if len(which) else np.zeros(0)

    def score_errors(self) -> Vector:
        """Bounds of the errors of `scores` at all rows."""
        support, coef = self._support()
        size = float(np.abs(coef) @ self.rows.lengths[support])
        return (self.rows.rounding + EPS * (2 * self.rows.score_terms(len(support)) + 20)) * size * self.rows.lengths

    def bounds(self, variables: Ints, f: Vector, deadline: Deadline, *, last: bool) -> DualBounds:
        """The bounds, from these variables; the others are at 0 and have no loss."""
        problem, s = self.problem.some(variables), self.s[variables]
        support, coef = self._support()
        terms = self.rows.score_terms(len(support))
        errors = ValueErrors(self.rows.rounding, self.rows.lengths[problem.row_of], self.rows.given, terms)
        found = dual_bounds(problem, s, f[problem.row_of], errors, self.total)
        if self._is_large(found) and (last or self._may_be_within_tol(found)):
            own, use = np.unique(problem.row_of), self.settings
            most = use.extended_most if self._in_the_way(found) else use.extended_limit
            if self.rows.width * len(own) * len(support) <= most:
                wide = np.zeros(len(self.rows), dtype=np.longdouble)
                wide[own] = self.rows.extended_scores(support, coef, own, deadline)
                errors = replace(errors, terms=len(support))
                found = dual_bounds(problem, s, wide[problem.row_of], errors, self.total)
        return self._of_weights(found)

    def bounds_of_scores(self, f: Vector, off: Vector) -> DualBounds:
        """The bounds from an f of all rows that is off by at most `off`."""
        row_of = self.problem.row_of
        errors = ValueErrors(self.rows.rounding, self.rows.lengths[row_of], self.rows.given, 0)
        found = bounds_of_scores(self.problem, self.s, f[row_of], off[row_of], errors, self.total)
        return self._of_weights(found)

    def _is_large(self, found: DualBounds) -> bool:
        """Whether rounding errors are not small beside tol."""
        return found.error > min(1e-7, 0.01 * self.options.tol) * abs(found.primal)

    def _in_the_way(self, found: DualBounds) -> bool:
        """Whether rounding errors may be why the gap is above tol."""
        return found.width > self.options.tol * abs(found.primal) and self._may_be_within_tol(found)

    def _may_be_within_tol(self, found: DualBounds) -> bool:
        """Whether the gap may be within tol but for rounding errors."""
        return found.width <= self.options.tol * abs(found.primal) + 4.0 * found.error

    def _of_weights(self, found: DualBounds) -> DualBounds:
        """If the kernel is linear, the same with F at the weights w, which are rounded: a model predicts with them."""
        if not (self.rows.linear and np.isfinite(found.primal)):
            return found
        coef: Vector = np.bincount(self.problem.row_of, self.s, minlength=len(self.rows)).astype(np.float64)
        own = weight_bounds(self.problem, self.rows.points.original, coef, found, self.total)
        if self.rows.width * len(self.rows) <= self.settings.extended_limit and self._is_large(own):
            own = weight_bounds(self.problem, self.rows.points.original, coef, found, self.total, np.longdouble)
        return own
