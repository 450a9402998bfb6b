"""What a solver of kernel machines is given, and what is proven of its answer.

For each pair of classes, with m rows of weight s_i,

    F(w) = |w|^2 / (2 C m) + 1/m sum_i s_i loss(1 - y_i f(x_i)),     f(x) = w.phi(x) = sum_i coef_i K(x_i, x)

where loss(z) is max(0, z), or max(0, z)^2 / 2 for the solvers of the L2 machine. It is 1 / (C m) times the form that
other tools have, |w|^2 / 2 + C sum_i s_i loss(..), whose dual bounds it from below: for alpha_i = y_i coef_i >= 0

    hinge   sum_i alpha_i - |w|^2 / 2                                           if alpha_i <= C s_i
    L2      sum_i alpha_i - |w|^2 / 2 - sum_i alpha_i^2 / (2 C s_i)

and so does each multiple of alpha that is feasible: the best one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cutsvm.kernel_machines.gram import ROWS, Points, blocks
from cutsvm.kernel_machines.one_vs_one import Machines, Problems, duals, pair_scores
from cutsvm.run import Iterate
from cutsvm.types import Array, Ints, Vector

__all__ = ["KernelSolver", "Settings", "Task", "bounds"]


@dataclass(frozen=True)
class Settings:
    """What an estimator says to its solver."""

    epochs: int
    average: float
    tol: float
    threads: int
    max_time: float | None = None
    certify: bool = True  # prove how good an answer is also where that takes another pass over kernel values


@dataclass(frozen=True, eq=False)
class Task:
    """Problems on rows that come in one `order`, and the kernel values of these rows.

    gram: all of them, in float32, if there is room; else they are computed from `points` when they are wanted.
    """

    settings: Settings
    points: Points
    problems: Problems
    order: Ints
    gram: Array | None

    @property
    def kernel_free(self) -> bool:
        """Whether f(x) = w.x, so that no kernel value is needed."""
        return self.points.kernel.name == "linear" and self.gram is None

    def iterate(self, alpha: Vector, C: float, loss: str, *, satisfied: bool = False) -> Iterate:
        """An answer with its proof, if one is wanted; alpha: y_i coef_i for the rows of all problems."""
        if not self.settings.certify:
            return Iterate(alpha, np.nan, np.nan, 0, satisfied=satisfied, swept=True)
        primal, lower = bounds(self.problems, alpha, self.scores(alpha), C, loss)
        return Iterate(alpha, float(primal.sum()), float(lower.sum()), 0, satisfied=satisfied, swept=True)

    def scores(self, alpha: Vector) -> Vector:
        """f of each problem's own rows, from kernel values in float64."""
        problems, points = self.problems, self.points.precisely()
        labels = int(problems.high.max()) + 1
        dual = duals(problems, alpha, labels, len(points))
        support = np.flatnonzero(dual.any(axis=0))
        # The support in the order of its classes: a row's class is in any problem that it is in.
        classes = np.empty(len(points), dtype=np.int64)
        for p in range(len(problems)):
            part = problems.of(p)
            classes[problems.rows[part]] = np.where(np.signbit(problems.a[part]), problems.low[p], problems.high[p])
        support = support[np.argsort(classes[support], kind="stable")]
        edges = np.searchsorted(classes[support], np.arange(labels + 1))
        scores = np.empty((len(points), len(problems)))
        for rows in blocks(len(points), ROWS):
            kernel = np.empty((rows.stop - rows.start, len(support)))
            points.values(rows, points, support, kernel)
            scores[rows] = pair_scores(kernel, dual[:, support], edges)
        return np.concatenate([scores[problems.rows[problems.of(p)], p] for p in range(len(problems))])


class KernelSolver(Protocol):
    """A small frozen object."""

    @property
    def loss(self) -> str:
        """ "hinge" or "l2": see `bounds`."""
        ...

    def __call__(self, task: Task, C: float) -> Iterator[Iterate]:
        """Iterates until the caller has enough; their `w` is y_i coef_i for the rows of all problems."""
        ...

    def together(self, gram: Array, problems: Problems, Cs: Vector, settings: Settings) -> Machines:
        """The machines for up to `core.VERSIONS` rising values of C, from the whole matrix of kernel values."""
        ...


def bounds(problems: Problems, alpha: Vector, scores: Vector, C: float, loss: str) -> tuple[Vector, Vector]:
    """(F, a lower bound of F) for each problem; scores: f of each problem's own rows."""
    primal, lower = np.empty(len(problems)), np.empty(len(problems))
    for p, m in enumerate(problems.sizes):
        part = problems.of(p)
        own, cap = alpha[part], C * np.abs(problems.a[part])
        margins = np.copysign(1.0, problems.a[part]) * scores[part]
        norm, miss = float(own @ margins), np.maximum(0.0, 1.0 - margins)
        if loss == "hinge":
            value = 0.5 * norm + float(cap @ miss)
            curve, most = norm, _room(own, cap)
        else:
            value = 0.5 * norm + 0.5 * float(cap @ miss**2)
            curve, most = norm + float(np.sum(own[cap > 0.0] ** 2 / cap[cap > 0.0])), np.inf
        multiple = _best(float(own.sum()), curve, most)
        bound = multiple * own.sum() - 0.5 * multiple**2 * curve
        primal[p], lower[p] = value / (C * m), min(max(0.0, bound), value) / (C * m)
    return primal, lower


def _best(linear: float, curve: float, most: float) -> float:
    """argmax of linear z - curve z^2 / 2 over 0 <= z <= most; 0 where that is no bound."""
    if curve > 0.0:
        return min(most, linear / curve)
    return most if curve == 0.0 and linear > 0.0 else 0.0


def _room(alpha: Vector, cap: Vector) -> float:
    """The largest multiple of alpha that is nowhere above cap."""
    some = alpha > 0.0
    return float(np.min(cap[some] / alpha[some])) if some.any() else np.inf
