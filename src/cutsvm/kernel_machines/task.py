"""What a solver of kernel machines is given, and what is proven of its answer.

For each pair of classes, with m rows of weight s_i,

    F(w) = |w|^2 / (2 C m) + 1/m sum_i s_i loss(1 - y_i f(x_i)),     f(x) = w.phi(x) = sum_i coef_i K(x_i, x)

where loss(z) is max(0, z), or max(0, z)^2 / 2 for the solvers of the L2 machine. It is 1 / (C m) times the form that
other tools have, |w|^2 / 2 + C sum_i s_i loss(..), whose dual bounds it from below: for alpha_i = y_i coef_i >= 0

    hinge   sum_i alpha_i - |w|^2 / 2                                           if alpha_i <= C s_i
    L2      sum_i alpha_i - |w|^2 / 2 - sum_i alpha_i^2 / (2 C s_i)

and so does each multiple of alpha that is feasible: the best one is taken.

Both are computed from the kernel values that f has, in float64 or better. F is raised, and the bound lowered, by what
rounding may have made of them. With kernel values off by at most rho k_i k_j, k_i^2 = K(x_i, x_i), and sums of m terms,

    |error of |w|^2|   <=  (rho + (2 m + 20) eps) (sum_i alpha_i k_i)^2
    |error of f(x_i)|  <=  (rho + (2 m + 20) eps) k_i sum_j alpha_j k_j
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.run import Iterate, Status
from cutsvm.kernel_machines.gram import EPS, ROWS, Points, blocks, is_sparse
from cutsvm.kernel_machines.one_vs_one import Machines, Problems, duals, pair_scores
from cutsvm.kernel_machines.watch import OutOfTimeError, Watch

__all__ = ["Answer", "KernelSolver", "Settings", "Task", "bounds"]

HURRY = 1.0  # seconds that a certificate may take after Ctrl-C
GRACE = 0.5  # and after the time limit
SMALL, LARGE = (
    1_000_000,
    100_000_000,
)  # products of numbers up to which extended precision costs little, and is possible


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
        return Iterate(alpha, primal, lower, 0, satisfied=satisfied, exact=True)

    def answer(self, alpha: Vector, C: float, loss: str, epochs: int, ended: Status, *, hurry: bool = False) -> Answer:
        """The same where it is the end. Without a certificate if there is no time for it, or none is wanted."""
        found = Answer(alpha, np.nan, np.nan, 0, exact=True, epochs=epochs, ended=ended)
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
        """(F, a lower bound of F), each summed over the problems.

        F is raised by what rounding may have taken from it. Where that is more than it should be, and for small
        problems anyway, kernel values and sums are made in extended precision.
        """
        points = self.points.precisely()
        if points.kernel.name == "linear":
            primals, lowers = linear_bounds(self.problems, alpha, points.X, C, loss)
            return float(primals.sum()), float(lowers.sum())
        rounding, diagonal = points.rounding, points.diagonal()
        width = 1 if points.given else int(points.X.shape[1])
        parts = [self.problems.of(p) for p in range(len(self.problems))]
        work = width * sum((part.stop - part.start) * int(np.count_nonzero(alpha[part])) for part in parts)
        if work > SMALL:
            found = all_bounds(
                self.problems, alpha, self.scores(alpha, watch), C, loss, rounding, diagonal, points.given
            )
            primal, lower, error = (float(np.sum(values)) for values in found)
            if work > LARGE or not error > min(1e-7, 0.01 * self.settings.tol) * primal:
                return primal, lower
        found = all_bounds(
            self.problems, alpha, self._extended_scores(alpha, watch), C, loss, rounding, diagonal, points.given
        )
        return float(np.sum(found[0])), float(np.sum(found[1]))

    def _extended_scores(self, alpha: Vector, watch: Watch) -> Array:
        """f of each problem's own rows in extended precision."""
        problems, points = self.problems, self.points.precisely()
        signed = np.copysign(alpha, problems.a).astype(np.longdouble)
        scores = np.zeros(len(signed), dtype=np.longdouble)
        pieces = [
            (part, slice(part.start + piece.start, part.start + piece.stop))
            for part in map(problems.of, range(len(problems)))
            for piece in blocks(part.stop - part.start, ROWS)
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            for part, piece in watch.track("certificate", pieces):
                support = part.start + np.flatnonzero(alpha[part])
                values = points.extended(problems.rows[piece], problems.rows[support])
                scores[piece] = values @ signed[support]
        return scores

    def scores(self, alpha: Vector, watch: Watch) -> Vector:
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


def bounds(problems: Problems, alpha: Vector, scores: Array, C: float, loss: str) -> tuple[Vector, Vector]:
    """(F, a lower bound of F) for each problem; scores: f of each problem's own rows, from exact kernel values."""
    return all_bounds(problems, alpha, scores, C, loss, 0.0, None, given=False)[:2]


def all_bounds(
    problems: Problems,
    alpha: Vector,
    scores: Array,
    C: float,
    loss: str,
    rounding: float,
    diagonal: Vector | None,
    given: bool,
) -> tuple[Vector, Vector, Vector]:
    """(F, a lower bound of F, what rounding may make of F) for each problem; scores: f of each problem's own rows.

    rounding, diagonal: of the kernel values in float64, as in `Points`. Values that are `given` are what they are, and
    their rounding is how far they may be from those of a kernel: infinite if they are those of none at all, in which
    case F has no lower bound. The sums are made in the precision of the scores, and values that were not given too.
    """
    eps = float(np.finfo(scores.dtype).eps)
    values_off = 0.0 if given else rounding * eps / EPS
    kernel_off = rounding if given else values_off
    answer = np.empty((3, len(problems)))
    for p, m in enumerate(problems.sizes):
        part = problems.of(p)
        own, cap = alpha[part].astype(scores.dtype), C * np.abs(problems.a[part]).astype(scores.dtype)
        margins = np.copysign(1.0, problems.a[part]) * scores[part]
        norm, miss = own @ margins, np.maximum(0.0, 1.0 - margins)
        lengths = np.abs(margins) if diagonal is None else np.sqrt(np.maximum(0.0, diagonal[problems.rows[part]]))
        sums = (2 * int(m) + 20) * eps  # relative error of a sum over the rows of sums over the support
        total = own @ lengths.astype(scores.dtype)
        reach = total * total if diagonal is not None else own @ np.abs(margins)
        tiny = float(np.finfo(np.float64).tiny) * (1.0 + own.sum()) ** 2  # what underflow may take
        off = (values_off + sums) * reach + tiny
        curve = norm + (kernel_off + sums) * reach + tiny
        if given and np.isfinite(rounding):
            _refuse_negative(float(norm), float((kernel_off + sums) * reach + tiny))
        away = (values_off + sums) * (lengths * total if diagonal is not None else lengths) + tiny
        if loss == "hinge":
            value, lost, most = 0.5 * norm + cap @ miss, cap @ away, (1.0 - 4.0 * EPS) * _room(own, cap)
        else:
            value, lost, most = 0.5 * norm + 0.5 * cap @ miss**2, cap @ (away * (miss + 0.5 * away)), np.inf
            curve += (1.0 + sums) * np.sum(own[cap > 0.0] ** 2 / cap[cap > 0.0])
        error = 0.5 * off + lost + sums * abs(value)
        linear = own.sum() * (1.0 - sums)
        multiple = _best(linear, curve, most)
        bound = multiple * linear - 0.5 * multiple * multiple * curve
        bound -= 8.0 * EPS * (multiple * linear + 0.5 * multiple * multiple * abs(curve))
        lower = -np.inf if np.isinf(rounding) else min(max(0.0, bound), value)
        answer[:, p] = np.array([value + error, lower, error]) / (C * m)
    return answer[0], answer[1], answer[2]


def linear_bounds(problems: Problems, alpha: Vector, X: Any, C: float, loss: str) -> tuple[Vector, Vector]:
    """(F, a lower bound of F) for each problem with a linear kernel.

    F is that of w = sum_i alpha_i y_i x_i as it is stored, in float64. Its entries are off by at most m eps
    sum_i alpha_i |x_ij|, which is all that the bound has to allow for.
    """
    primal, lower = np.empty(len(problems)), np.empty(len(problems))
    for p, m in enumerate(problems.sizes):
        part = problems.of(p)
        rows = X[problems.rows[part]]
        w, cap = problems.weights(X, p, alpha), C * np.abs(problems.a[part])
        terms = int(np.diff(rows.indptr).max(initial=0)) if is_sparse(rows) else int(rows.shape[1])
        scores, eps = _linear_scores(rows, w)
        lengths = np.sqrt(
            np.asarray(abs(rows).power(2).sum(axis=1)).ravel() if is_sparse(rows) else (rows**2).sum(axis=1)
        )
        wide = w.astype(scores.dtype)
        norm, size = wide @ wide, np.sqrt(wide @ wide)
        miss = np.maximum(0.0, 1.0 - np.copysign(1.0, problems.a[part]) * scores)
        away = (terms + 4) * eps * size * lengths
        if loss == "hinge":
            value, lost = 0.5 * norm + cap @ miss, cap @ away
        else:
            value, lost = 0.5 * norm + 0.5 * cap @ miss**2, cap @ (away * (miss + 0.5 * away))
        error = lost + (int(m) + len(w) + 20) * eps * value
        own, tiny = alpha[part].astype(scores.dtype), float(np.finfo(np.float64).tiny)
        reach = size + (int(m) + 20) * EPS * (own @ lengths) + tiny * (1.0 + own.sum())
        curve, most = reach * reach, (1.0 - 4.0 * EPS) * _room(own, cap)
        if loss == "l2":
            curve, most = curve + (1.0 + m * EPS) * np.sum(own[cap > 0.0] ** 2 / cap[cap > 0.0]), np.inf
        linear = own.sum() * (1.0 - (int(m) + 4) * eps)
        multiple = _best(linear, curve, most)
        bound = multiple * linear - 0.5 * multiple * multiple * curve
        bound -= 8.0 * EPS * (multiple * linear + 0.5 * multiple * multiple * curve)
        primal[p], lower[p] = (value + error) / (C * m), min(max(0.0, bound), value) / (C * m)
    return primal, lower


def _linear_scores(rows: Any, w: Vector) -> tuple[Array, float]:
    """X w, in extended precision where that is possible, and the rounding unit of that precision."""
    if (3 * rows.nnz if is_sparse(rows) else rows.size) > LARGE:
        return np.asarray(rows @ w), EPS
    wide = w.astype(np.longdouble)
    scores = np.zeros(rows.shape[0], dtype=np.longdouble)
    if is_sparse(rows):
        products = rows.data.astype(np.longdouble) * wide[rows.indices]
        np.add.at(scores, np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), products)
    else:
        for some in blocks(rows.shape[0], ROWS):
            scores[some] = rows[some].astype(np.longdouble) @ wide
    return scores, float(np.finfo(np.longdouble).eps)


def _refuse_negative(norm: float, error: float) -> None:
    """|w|^2 is not below 0, unless the kernel is none."""
    if norm < -error:
        raise ValueError(
            "the kernel matrix is not positive semi-definite: with the coefficients that were found its quadratic form "
            f"is {norm:.3g}, below 0"
        )


def _best(linear: Any, curve: Any, most: Any) -> Any:
    """argmax of linear z - curve z^2 / 2 over 0 <= z <= most; 0 where that is no bound."""
    if curve > 0.0:
        return min(most, linear / curve)
    return most if curve == 0.0 and linear > 0.0 else 0.0


def _room(alpha: Array, cap: Array) -> Any:
    """The largest multiple of alpha that is nowhere above cap."""
    some = alpha > 0.0
    return np.min(cap[some] / alpha[some]) if some.any() else np.inf
