"""What a solver of kernel machines is given, and what is proven of its answer.

For each pair of classes, with m rows of weight s_i,

    F(w) = |w|^2 / (2 C m) + 1/m sum_i s_i loss(1 - y_i f(x_i)),     f(x) = w.phi(x) = sum_i coef_i K(x_i, x)

where loss(z) is max(0, z), or max(0, z)^2 / 2 for the solvers of the L2 machine. It is 1 / (C m) times the form that
other tools have, |w|^2 / 2 + C sum_i s_i loss(..), whose dual bounds it from below: for alpha_i = y_i coef_i >= 0

    hinge   sum_i alpha_i - |w|^2 / 2                                           if alpha_i <= C s_i
    L2      sum_i alpha_i - |w|^2 / 2 - sum_i alpha_i^2 / (2 C s_i)

and so does each multiple of alpha that is feasible: the best one is taken.

Both are computed in float64 from the kernel values that f has, and the bound is lowered by what rounding may have
added. With kernel values off by at most rho k_i k_j, k_i^2 = K(x_i, x_i), and sums of m terms in float64,

    |error of |w|^2|  <=  (rho + (2 m + 20) eps) (sum_i alpha_i k_i)^2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Protocol

import numpy as np

from cutsvm.kernel_machines.gram import EPS, ROWS, Points, blocks
from cutsvm.kernel_machines.one_vs_one import Machines, Problems, duals, pair_scores
from cutsvm.kernel_machines.watch import OutOfTimeError, Watch
from cutsvm.run import Iterate, Status
from cutsvm.types import Array, Ints, Vector

__all__ = ["Answer", "KernelSolver", "Settings", "Task", "bounds"]

HURRY = 1.0  # seconds that a certificate may take after Ctrl-C
GRACE = 0.5  # and after the time limit


@dataclass(frozen=True)
class Settings:
    """What an estimator says to its solver."""

    epochs: int
    average: float
    tol: float
    threads: int
    certify: bool = True  # prove how good an answer is also where that takes another pass over kernel values
    max_iter: int = 10_000
    finish: bool = False  # go on after the epochs until the gap is tol
    watch: Watch = field(default_factory=Watch)


@dataclass(frozen=True, eq=False)
class Answer(Iterate):
    """What a solver with an end of its own comes to; its bounds are NaN where they are not proven, for lack of time."""

    epochs: int = 0
    ended: Status = Status.EPOCHS
    proven: bool = False


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
    reserve: float = 0.0  # seconds to keep for the certificate, where there is a limit

    @property
    def kernel_free(self) -> bool:
        """Whether f(x) = w.x, so that no kernel value is needed."""
        return self.points.kernel.name == "linear" and self.gram is None

    def iterate(self, alpha: Vector, C: float, loss: str, *, satisfied: bool = False) -> Iterate:
        """An answer with its proof, if one is wanted; alpha: y_i coef_i for the rows of all problems."""
        primal, lower = self.bounds(alpha, C, loss, self.settings.watch)
        return Iterate(alpha, primal, lower, 0, satisfied=satisfied, swept=True)

    def answer(self, alpha: Vector, C: float, loss: str, epochs: int, ended: Status, *, hurry: bool = False) -> Answer:
        """The same where it is the end. Without a certificate if there is no time for it, or none is wanted."""
        found = Answer(alpha, np.nan, np.nan, 0, swept=True, epochs=epochs, ended=ended)
        if not self.settings.certify:
            return found
        watch = self.settings.watch.at_least(GRACE)
        try:
            primal, lower = self.bounds(alpha, C, loss, watch.within(HURRY) if hurry else watch)
        except OutOfTimeError:
            return found if hurry else replace(found, ended=Status.MAX_TIME)
        except KeyboardInterrupt:
            if not hurry:
                raise
            return found
        return replace(found, primal=primal, lower=lower, proven=True)

    def bounds(self, alpha: Vector, C: float, loss: str, watch: Watch) -> tuple[float, float]:
        """(F, a lower bound of F), each summed over the problems."""
        scores = self.scores(alpha, watch)
        points = self.points.precisely()
        primal, lower = bounds(self.problems, alpha, scores, C, loss, points.rounding, points.diagonal())
        return float(primal.sum()), float(lower.sum())

    def scores(self, alpha: Vector, watch: Watch) -> Vector:
        """f of each problem's own rows, from kernel values in float64, or from w if the kernel is linear."""
        problems, points = self.problems, self.points.precisely()
        if points.kernel.name == "linear":
            machines = [
                (problems.rows[problems.of(p)], problems.weights(points.X, p, alpha)) for p in range(len(problems))
            ]
            return np.concatenate([np.asarray(points.X[rows] @ w) for rows, w in machines])
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
        steps = list(blocks(len(points), ROWS)) if len(support) else []
        if not steps:
            scores[:] = 0.0
        for rows in watch.track("certificate", steps):
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


def bounds(
    problems: Problems,
    alpha: Vector,
    scores: Vector,
    C: float,
    loss: str,
    rounding: float = EPS,
    diagonal: Vector | None = None,
) -> tuple[Vector, Vector]:
    """(F, a lower bound of F) for each problem; scores: f of each problem's own rows.

    rounding, diagonal: of the kernel values, as in `Points`; without them they are taken to be exact. An infinite
    rounding is that of a matrix that is no kernel: F has no lower bound then.
    """
    primal, lower = np.empty(len(problems)), np.empty(len(problems))
    for p, m in enumerate(problems.sizes):
        part = problems.of(p)
        own, cap = alpha[part], C * np.abs(problems.a[part])
        margins = np.copysign(1.0, problems.a[part]) * scores[part]
        norm, miss = float(own @ margins), np.maximum(0.0, 1.0 - margins)
        sums = (2 * int(m) + 20) * EPS  # relative error of a sum over the rows of sums over the support
        reach = float(np.abs(own) @ np.abs(margins))
        if diagonal is not None:
            reach = float(own @ np.sqrt(np.maximum(0.0, diagonal[problems.rows[part]]))) ** 2
        error = (rounding + sums) * reach
        if np.isfinite(rounding):
            _refuse_negative(norm, error)
        if loss == "hinge":
            value = 0.5 * norm + float(cap @ miss)
            curve, most = norm + error, (1.0 - 4.0 * EPS) * _room(own, cap)
        else:
            value = 0.5 * norm + 0.5 * float(cap @ miss**2)
            square = float(np.sum(own[cap > 0.0] ** 2 / cap[cap > 0.0]))
            curve, most = norm + error + (1.0 + sums) * square, np.inf
        linear = fsum(own)
        multiple = _best(linear, curve, most)
        bound = multiple * linear - 0.5 * multiple**2 * curve
        bound -= 8.0 * EPS * (multiple * linear + 0.5 * multiple**2 * abs(curve))
        primal[p], lower[p] = value / (C * m), min(max(0.0, bound), value) / (C * m)
        if np.isinf(rounding):
            lower[p] = -np.inf
    return primal, lower


def _refuse_negative(norm: float, error: float) -> None:
    """|w|^2 is not below 0, unless the kernel is none."""
    if norm < -error:
        raise ValueError(
            "the kernel matrix is not positive semi-definite: with the coefficients that were found its quadratic form "
            f"is {norm:.3g}, below 0"
        )


def _best(linear: float, curve: float, most: float) -> float:
    """argmax of linear z - curve z^2 / 2 over 0 <= z <= most; 0 where that is no bound."""
    if curve > 0.0:
        return min(most, linear / curve)
    return most if curve == 0.0 and linear > 0.0 else 0.0


def _room(alpha: Vector, cap: Vector) -> float:
    """The largest multiple of alpha that is nowhere above cap."""
    some = alpha > 0.0
    return float(np.min(cap[some] / alpha[some])) if some.any() else np.inf
