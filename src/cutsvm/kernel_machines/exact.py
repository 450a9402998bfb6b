"""The exact solver of kernel machines: the hinge loss and a free intercept, by working sets on the dual.

`cutsvm.kernel_machines.dual_search` has the algorithm, for one problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Vector
from cutsvm.kernel_machines.context import FitOptions, KernelContext, Solution
from cutsvm.kernel_machines.dual_problem import two_classes
from cutsvm.kernel_machines.dual_search import Begin, solve
from cutsvm.kernel_machines.exact_settings import DualSolution, ExactSettings
from cutsvm.kernel_machines.gram import Points
from cutsvm.kernel_machines.kernel_rows import KernelRows, MatrixRows, SomeRows
from cutsvm.kernel_machines.one_vs_one import Machines, Problems

if TYPE_CHECKING:
    from typing import Self  # Python 3.11


@dataclass(frozen=True)
class Exact:
    """Working sets on the dual of the hinge loss, to a certified gap. fit_intercept: whether b is free, else 0."""

    fit_intercept: bool = True
    settings: ExactSettings = field(default=ExactSettings(), repr=False, kw_only=True)
    name: ClassVar[str] = "exact"
    loss: ClassVar[str] = "hinge"
    visits_rows: ClassVar[bool] = False
    mean_loss: ClassVar[bool] = False
    kernel_offset: ClassVar[float] = 0.0

    def with_intercept(self, fit_intercept: bool) -> Self:
        """The same solver; without an intercept if either says so."""
        return replace(self, fit_intercept=bool(self.fit_intercept and fit_intercept))

    def __call__(self, context: KernelContext, C: float) -> Iterator[Solution]:
        """Solutions of the problem of one pair of classes."""
        (solutions,) = self.pairs(context.points, context.problems, C, context.options)
        return solutions

    def pairs(self, points: Points, problems: Problems, C: float, options: FitOptions) -> Iterator[Iterator[Solution]]:
        """Solutions of the problem of each pair of classes.

        Many small problems are solved together, and what follows for each of them begins at that solution: on a shared
        matrix of all kernel values if it fits; or, where the matrix is large beside them, on values that are computed
        when a problem wants them.
        """
        all_rows, use = KernelRows(points), self.settings
        # The time that a certificate may take beyond the limit is for all of them.
        use = replace(use, seconds_after_limit=use.seconds_after_limit / len(problems))
        source = self._shared_values(all_rows, problems, options)
        alpha, scores, interrupted = np.zeros((len(problems.rows), 1)), np.zeros(0), False
        if source is not None:
            scores = np.empty(len(problems.rows))
            try:
                self._all_pairs(source, problems, np.array([C]), options, alpha, scores)
            except KeyboardInterrupt:
                interrupted = True
        for p, part in enumerate(problems.parts):
            own, f = problems.rows[part].astype(np.int64), None
            if len(problems) == 1:
                rows = all_rows
            elif source is None or (isinstance(source, np.ndarray) and source.dtype != np.float64):
                rows = KernelRows(points.take(own))
            elif isinstance(source, np.ndarray):
                rows, f = MatrixRows(all_rows, source, own), scores[part]
            else:
                rows, f = SomeRows(all_rows, own), scores[part]
            y, caps = np.copysign(1.0, problems.a[part]), C * np.abs(problems.a[part])
            problem = two_classes(y, caps, free_intercept=self.fit_intercept)
            begin = Begin(y * alpha[part, 0], f, p, interrupted)
            found = solve(problem, rows, options, use, begin)
            yield _of_pair(found, 1.0 / (C * float(problems.scale[p])))

    def _shared_values(self, all_rows: KernelRows, problems: Problems, options: FitOptions) -> Any:
        """What all problems are solved on: a matrix, or a block that computes values in float64; None: each alone."""
        n, largest, use = len(all_rows), int(problems.sizes.max()), self.settings
        if len(problems) == 1:
            return None
        small = largest <= use.computed_rows and 8 * largest**2 <= options.cache_bytes
        if all_rows.dtype.itemsize < 8 and small and all_rows.dense:
            return all_rows.precise_block()
        return all_rows.matrix() if all_rows.dtype.itemsize * n**2 <= options.cache_bytes else None

    def _all_pairs(
        self, source: Any, problems: Problems, Cs: Vector, options: FitOptions, alpha: Vector, scores: Vector
    ) -> Vector:
        """Solves all problems for each C by the values of a matrix or block, in alpha; their intercepts.

        scores: f at the rows of each problem for the last C; not computed if empty.
        """
        seen = np.empty((len(problems), len(Cs), 3))
        # Each thread has room for the values of one problem.
        most = max(1, options.cache_bytes // (8 * int(problems.sizes.max()) ** 2))
        core.solve_pairs(
            source,
            problems.rows,
            problems.a,
            problems.first,
            Cs,
            self.fit_intercept,
            self.settings.gap_shares[0] * options.tol,
            options.max_iter,
            options.deadline.left,
            alpha,
            seen,
            scores,
            *self.settings.pair_steps,
            min(options.threads, most),
        )
        return seen[:, :, 2]

    def batched(self, gram: Array, problems: Problems, Cs: Vector, options: FitOptions) -> Machines:
        """The machines for rising C, each the start for the next."""
        width = 1 if len(Cs) == 1 else core.VERSIONS
        alpha, intercepts = np.zeros((len(problems.rows), width)), np.zeros((len(problems), width))
        intercepts[:, : len(Cs)] = self._all_pairs(gram, problems, Cs, options, alpha, np.zeros(0))
        return Machines.of_alpha(problems, alpha, intercepts)


def _of_pair(solutions: Iterator[DualSolution], factor: float) -> Iterator[Solution]:
    """The same as alpha, with F and its bound times a factor."""
    for found in solutions:
        own = (factor * found.bounds.primal, factor * found.bounds.lower, found.iteration)
        yield Solution(np.abs(found.s), *own, found.ended, found.certified, found.bounds.intercept)
