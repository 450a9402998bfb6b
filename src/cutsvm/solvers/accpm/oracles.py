"""The oracles of the analytic-centre solver: what is known of the problem at a point x, as a cut.

P. Bialon: A linear Support Vector Machine solver for a large number of training examples, Control and Cybernetics 38
(2009), Algorithms 2 to 4, for three forms of the problem min |w|^2/2 + C R(w, b), R = sum_i s_i max(0, 1 - y_i f_i):

    (I1)  x = (w, b)       min |w|^2/2 + C R
    (I2)  x = (w, b, z)    min |w|^2/2 + C z   subject to  R_j - z <= 0 for all j, R_j the loss of the first j rows
    (E)   x = (w, b)       min |w|^2/2         subject to  1 - y_j f_j <= 0 for all j

An oracle returns the gradient of a constraint that x violates, or that of the goal if there is none: where it rises,
the solution is not. "Mechanism 1", `early`, stops reading at the first constraint found violated, row by row as in the
paper; rows come in the order of their buckets (`cutsvm.solvers.bucketing.buckets`). Without it (I2) reads all rows and
returns the last constraint, which implies the others, and (E) that of the row furthest inside the margin.

Beside the cut an answer has what it says about the risk: a plane under R, whatever was read of it; and R, if all was.

Corrected: (I2) needs R_j - z <= 0 for j = 0 too, that is z >= 0. On data that can be separated the paper's oracle may
otherwise return the gradient of the goal at a point with z < R = 0, and so cut off the solution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.problem.certificate import dual_bound
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.qp.problem import ReducedProblem
from cutsvm.solvers.bucketing.buckets import Buckets
from cutsvm.solvers.bucketing.parts import Worst


@dataclass(frozen=True, eq=False)
class Answer:
    """The gradient of the cut at x, planes under the risk (one per shard), and the risk at x if it is known."""

    gradient: Vector
    planes: Planes | None
    risk: float | None


class CutOracle(ABC):
    """Answers at points x; early: it stops reading where it can."""

    extra = 0  # coordinates beside (w, b)

    def __init__(self, buckets: Buckets, C: float, *, early: bool) -> None:
        self.buckets, self.C, self.early = buckets, C, early

    @abstractmethod
    def __call__(self, x: Vector) -> Answer: ...


class Inexact1(CutOracle):
    """Algorithm 3, for (I1): every call reads all rows."""

    def __call__(self, x: Vector) -> Answer:
        sums = self.buckets.sums(x)
        return Answer(_penalty_gradient(self.buckets.oracle, x) + self.C * sums.slope, sums.planes(), sums.loss)


class Inexact2(CutOracle):
    """Algorithm 4, for (I2)."""

    extra = 1

    def __call__(self, x: Vector) -> Answer:
        w, z = x[:-1], x[-1]
        sums = self.buckets.sums(w, limit=float(z) if self.early else np.inf)
        known = sums.loss if sums.whole else None
        if sums.loss > z:
            return Answer(np.append(sums.slope, -1.0), sums.planes(), known)
        return Answer(np.append(_penalty_gradient(self.buckets.oracle, w), self.C), sums.planes(), known)


class Separating(CutOracle):
    """Algorithm 2, for (E). Every row that was cut with is a shard of its own: the bundle is the SVM of those rows."""

    far = 4.0  # see `bound`

    def __init__(self, buckets: Buckets, C: float, *, early: bool) -> None:
        super().__init__(buckets, C, early=early)
        self.shards: dict[int, int] = {}  # of the rows cut with, by their number
        self.ratio = buckets.loss.total / buckets.loss.lightest

    def __call__(self, x: Vector) -> Answer:
        found = self.buckets.first(x) if self.early else self.buckets.worst(x)
        return Answer(_penalty_gradient(self.buckets.oracle, x), None, 0.0) if found is None else self._row(found)

    def _row(self, worst: Worst) -> Answer:
        """The constraint of one row, and the plane under its loss, unless that is known."""
        slope, offset = worst.planes.slopes[0], worst.planes.offsets[0]
        gradient: Vector = slope / offset
        if worst.number in self.shards:
            return Answer(gradient, None, None)
        shard = self.shards[worst.number] = len(self.shards)
        slopes, offsets = np.zeros((shard + 1, len(gradient))), np.zeros(shard + 1)
        slopes[shard], offsets[shard], errors = slope, offset, np.zeros((shard + 1, 3))
        errors[shard] = worst.planes.errors[0]
        return Answer(gradient, Planes(slopes, offsets, errors), None)

    def bound(self, bundle: Bundle, tol: float) -> float:
        """A lower bound of |w|^2/2 over all w, b that separate the rows: that of the SVM with a much larger C.

        If the rows cannot be separated it gets above the objective at 0, C S, S the weight of all rows: then some
        y_i (x_i, 1) add up to 0 with weights 0 <= u_i <= s_i of which one is s_i, so R >= sum u_i >= min s_i anywhere,
        and C is made `far` S / min s_i times larger.
        """
        d = bundle.slopes.shape[1] - bundle.n_free
        few = len(bundle) <= d
        gram = bundle.slopes[:, :d] @ bundle.slopes[:, :d].T if few else None
        problem = ReducedProblem(bundle.slopes, bundle.offsets, bundle.shard, bundle.n_free, gram)
        C = self.far * self.ratio * self.C
        x, scale = problem.solve(C, tol).weights, self.buckets.oracle.scale(C)
        return dual_bound(bundle.slopes, bundle.offsets, bundle.errors, bundle.shard, x, C, scale)


ORACLES: dict[str, type[CutOracle]] = {"I1": Inexact1, "I2": Inexact2, "E": Separating}


def _penalty_gradient(oracle: Oracle, w: Vector) -> Vector:
    """The gradient of |w|^2/2: free coordinates are not in it."""
    gradient = w.copy()
    gradient[oracle.size - oracle.n_free :] = 0.0
    return gradient
