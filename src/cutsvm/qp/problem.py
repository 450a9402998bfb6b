"""The reduced problem: the objective with planes in place of the risk.

    min over w, b    |w|^2/2 + C sum_p max(0, max over the planes k of shard p of  a_k.w + c_k.b + o_k)     (primal)
    max over x       C o.x - C^2 |A'x|^2/2   with  x >= 0,  sum of x over each shard <= 1,  c'x = 0          (dual)

with w = -C A'x and b the free intercepts. Any feasible x gives a lower bound of the objective.

With one free intercept, x is scaled so that c'x = 0 holds exactly. With two and more, rounding leaves a residual of
c'x, and c'x = 0 may hold for x = 0 only. So the caller gives an `intercept_bound`, with |b_j| <= intercept_bound for
some solution of the whole problem, and both sides are those of the problem with that box:

    min over w, b    as above, with |b_j| <= intercept_bound
    max over x       C o.x - C^2 |A'x|^2/2 - C intercept_bound |c'x|_1   with  x >= 0,  sum of x over each shard <= 1

The method is implemented twice: compiled (`core/reduced.hpp`), and with NumPy and LAPACK (`cutsvm.qp.interior_point`),
which tests compare with the compiled one, and which solves problems so large that LAPACK factorises faster.
`benchmarks/reduced.py` compares both with quadratic programming libraries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Ints, Vector
from cutsvm.qp.interior_point import InteriorPoint
from cutsvm.qp.newton import ByFeatures, ByPlanes
from cutsvm.qp.settings import InteriorPointSettings, compiled_settings
from cutsvm.qp.sorted_planes import ReducedSolution, SortedPlanes


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """The planes (a_k, c_k, o_k) and the shard of each.

    M has one row per plane if their Gram matrix is given, otherwise one per feature.
    """

    slopes: Vector  # one row (a_k, c_k) per plane
    offsets: Vector
    shard: Ints
    n_free: int  # the length of c_k
    gram: Vector | None = None
    intercept_bound: float = np.inf  # used from n_free = 2 on
    settings: InteriorPointSettings = field(default=InteriorPointSettings())

    def __post_init__(self) -> None:
        if self.n_free > 1 and not 0.0 < self.intercept_bound < np.inf:
            raise ValueError(
                f"intercept_bound: positive and finite expected with n_free = {self.n_free}, got {self.intercept_bound}"
            )

    def solve(self, C: float, tol: float, warm_start: Vector | None = None) -> ReducedSolution:
        """The solution to an absolute tolerance of the objective, from the weights `warm_start` if given.

        From a start near the boundary the method may cycle, far from the solution: then it begins with equal weights.
        """
        rows = self.slopes.shape[1] if self.gram is None else len(self.gram)
        method = self.compiled if rows < self.settings.lapack_rows else self.lapack
        found = method(C, tol, warm_start)
        if warm_start is None or found.value - found.lower <= max(tol, self.settings.failed_gap * found.value):
            return found
        again = method(C, tol, None)
        return again if again.value - again.lower < found.value - found.lower else found

    def compiled(self, C: float, tol: float, warm_start: Vector | None = None) -> ReducedSolution:
        """`solve` with the compiled method."""
        w, weights = np.empty(self.slopes.shape[1]), np.empty(len(self.offsets))
        lower, value, risk, steps = core.solve_reduced(
            compiled_settings(self.settings),
            self.slopes,
            self.offsets,
            self.shard,
            self.n_free,
            self.intercept_bound,
            np.empty((0, 0)) if self.gram is None else self.gram,
            C,
            tol,
            np.empty(0) if warm_start is None else warm_start,
            w,
            weights,
        )
        return ReducedSolution(w, lower, value, risk, weights, steps)

    def lapack(self, C: float, tol: float, warm_start: Vector | None = None) -> ReducedSolution:
        """`solve` with NumPy and LAPACK."""
        planes = SortedPlanes(self.slopes, self.offsets, self.shard, self.n_free, self.intercept_bound)
        regularization = self.settings.regularization
        form = (
            ByFeatures(planes, C, regularization)
            if self.gram is None
            else ByPlanes(planes, C, self.gram, regularization)
        )
        start = None if warm_start is None else warm_start[planes.order]
        return InteriorPoint(planes, C, form, start, self.settings).solve(tol)
