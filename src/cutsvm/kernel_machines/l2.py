"""NN-ISDA and MN-SVM, two solvers of the L2 kernel machine: rounds of steps until each problem is within tol.

Melki and Kecman (2016) compare NL-SGD with them. The problem, its dual and all steps are in core/l2_dual.hpp. Both
methods take, now and then, some steps of conjugate gradients among the alphas above 0. These are ours: single steps
are slow where C is large.

The code that the paper compares with, GSVM, has K(x, z) + 1 in place of K(x, z): an intercept b = sum_i y_i alpha_i
with b^2 / 2 beside |w|^2 / 2. That is `intercept="regularized"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.records import Status
from cutsvm.kernel_machines.context import Deadline, FitOptions, KernelContext, OutOfTimeError, Solution
from cutsvm.kernel_machines.intercept import Intercept, RegularizedIntercept
from cutsvm.kernel_machines.one_vs_one import Machines, Problems


@dataclass(frozen=True)
class L2Settings:
    """Lengths of the rounds, the gaps to reach in float32, and what counts as no progress."""

    steps_per_round: int = 20_000  # of each problem
    # Of tol: the gap by values in float32 that ends a problem; the next one if the certificate is above tol.
    gap_shares: tuple[float, ...] = (0.8, 0.2, 0.05)
    patience: int = 50  # rounds in which the gap has to fall by `min_decrease`: else only rounding errors are left
    min_decrease: float = 0.01
    max_steps: int = 10_000_000  # of each problem of a batch


@dataclass(frozen=True)
class L2(RegularizedIntercept):
    """A solver of the L2 machine, by the method `name` in core/l2_dual.hpp; without an intercept unless asked for."""

    intercept: Intercept = None
    settings: L2Settings = field(default=L2Settings(), repr=False, kw_only=True)
    name: ClassVar[str]
    loss: ClassVar[str] = "l2"
    visits_rows: ClassVar[bool] = False
    mean_loss: ClassVar[bool] = False

    def __call__(self, context: KernelContext, C: float) -> Iterator[Solution]:
        """A solution after every round, with bounds from kernel values in float64.

        The bounds of the steps are from values in float32: they end a problem, and prove nothing where C is large. If
        the certificate is above tol, the steps continue to a smaller gap. Without time for a certificate the last
        solution stays.
        """
        problems, shares = context.problems, iter(self.settings.gap_shares)
        tol = next(shares) * context.options.tol
        alpha = np.zeros((len(problems.rows), 1))
        primal, lower = np.full(len(problems), np.inf), np.zeros(len(problems))
        unsolved = np.arange(len(problems))
        best = Solution(alpha[:, 0].copy(), *context.bounds(alpha[:, 0], C, self.loss, Deadline()), 0)
        yield best
        n_stalled, lowest_gap = 0, np.inf
        for iteration in count(1):
            primal[unsolved], dual = self._round(context, C, tol, unsolved, alpha)
            lower[unsolved] = np.maximum(lower[unsolved], dual)
            unsolved = np.flatnonzero(primal - lower > tol * primal)
            with suppress(OutOfTimeError):
                own = alpha[:, 0].copy()
                value, bound = context.bounds(own, C, self.loss, context.options.deadline)
                best = Solution(own, value, max(best.lower, bound), iteration)
            fell = best.gap < (1.0 - self.settings.min_decrease) * lowest_gap
            n_stalled, lowest_gap = (0, best.gap) if fell else (n_stalled + 1, lowest_gap)
            ended = self._ended(context, iteration, n_stalled)
            if not len(unsolved):
                unsolved, share = np.arange(len(problems)), next(shares, None)
                ended, tol = (Status.PRECISION, tol) if share is None else (ended, share * context.options.tol)
            yield replace(best, iteration=iteration, ended=ended)
            if ended is not None:
                return

    def _ended(self, context: KernelContext, iteration: int, n_stalled: int) -> Status | None:
        """Why this round is the last, if the gap is not within tol."""
        if n_stalled >= self.settings.patience:
            return Status.PRECISION
        if iteration >= context.options.max_iter:
            return Status.MAX_ITER
        return Status.MAX_TIME if context.options.deadline.left <= 0.0 else None

    def _round(self, context: KernelContext, C: float, tol: float, which: Ints, alpha: Vector) -> tuple[Vector, Vector]:
        """Steps on some problems, in alpha; (F, its dual) of each of them, by values in float32."""
        some, places = context.problems.some(which)
        own = alpha[places]
        primal, dual, _ = context.dual_steps(some, C, self.name, tol, self.settings.steps_per_round, own)
        alpha[places] = np.maximum(0.0, own)  # where only rounding errors are left, min_norm may end below 0
        return primal, dual

    def batched(self, gram: Array, problems: Problems, Cs: Vector, options: FitOptions) -> Machines:
        """The machines for rising C, each the start for the next."""
        versions = 1 if len(Cs) == 1 else core.VERSIONS
        alpha, seen = np.zeros((len(problems.rows), versions)), np.empty((len(problems), len(Cs), 3))
        core.kernel_l2(
            gram,
            problems.rows,
            problems.a,
            problems.first,
            Cs,
            self.name,
            options.tol,
            self.settings.max_steps,
            np.inf,
            alpha,
            seen,
            options.threads,
        )
        return Machines.of_alpha(problems, np.maximum(0.0, alpha))


@dataclass(frozen=True)
class ISDA(L2):
    """NN-ISDA: coordinate ascent on the dual of the L2 machine, by the non-negative iterative single data algorithm.

    Lj. Zigic, R. Strack and V. Kecman, "L2 Support Vector Machines Revisited", 2013; V. Kecman and Lj. Zigic,
    "Algorithms for Direct L2 Support Vector Machines", 2014.

        max over alpha >= 0 of  sum_i alpha_i - alpha'(Q + diag r) alpha / 2,    Q_ij = y_i y_j K_ij,  r_i = 1 / (C s_i)

        alpha = 0
        repeat  i = the row that violates its condition most:  g_i = 1 - ((Q + diag r) alpha)_i = 0, <= 0 if alpha_i = 0
                alpha_i = max(0, alpha_i + g_i / (Q_ii + r_i))
        until   primal - dual <= tol primal

    There is no free intercept, so a single alpha can move on its own, and clipping at 0 is all that a step needs.
    """

    name: ClassVar[str] = "isda"


@dataclass(frozen=True)
class MinNorm(L2):
    """MN-SVM: the L2 machine as the point of least norm in a polytope.

    R. Strack, "Geometric Approach to Support Vector Machines Learning for Large Datasets", 2013. The rows y_i phi(x_i),
    each with a coordinate of its own of length sqrt(r_i), r_i = 1 / (C s_i), span a polytope; up to its length the L2
    machine is its point nearest to 0:

        min over alpha >= 0, sum_i alpha_i = 1, of  alpha'(Q + diag r) alpha

        alpha = the vertex nearest to 0
        repeat  i = argmin h,   j = argmax of h where alpha_j > 0,     h = (Q + diag r) alpha
                move the weight from j to i that brings the point nearest to 0   (Mitchell, Demyanov, Malozemov 1974)
        until   primal - dual <= tol primal   for the best multiple of alpha
    """

    name: ClassVar[str] = "min_norm"
