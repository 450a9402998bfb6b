"""What a solver of kernel machines is given (options, time limit, kernel values), and the solutions that it yields."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from cutsvm._native import core
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.records import Status, relative_gap
from cutsvm.kernel_machines.certificate import CertificateSettings, KernelErrors, all_bounds, linear_bounds
from cutsvm.kernel_machines.gram import Points, blocks, with_constant
from cutsvm.kernel_machines.one_vs_one import Machines, Problems, duals, pair_scores

if TYPE_CHECKING:
    from typing import Self  # Python 3.11

T = TypeVar("T")
LOGGER = logging.getLogger("cutsvm.kernel")


def panel_rows(most: int, columns: int, itemsize: int, panel_bytes: int | None, least: int = 16) -> int:
    """The rows whose kernel values with this number of columns are computed at a time, `most` if memory allows it."""
    if panel_bytes is None:
        return most
    return min(most, max(least, panel_bytes // (itemsize * max(1, columns))))


class OutOfTimeError(Exception):
    """A loop would take longer than there is time for."""


@dataclass(frozen=True)
class Deadline:
    """The seconds that a fit may take from `began` on; verbose: log the progress of long loops."""

    max_time: float | None = None
    verbose: bool = False
    log_every: float = 5.0  # seconds between lines of progress
    began: float = field(default_factory=perf_counter)

    @property
    def left(self) -> float:
        """Seconds that are left, 0 if there are none; infinite without a limit."""
        return float("inf") if self.max_time is None else max(0.0, self.max_time - self.spent)

    @property
    def spent(self) -> float:
        return perf_counter() - self.began

    def within(self, seconds: float) -> Deadline:
        """The same with at most `seconds` left."""
        return replace(self, max_time=self.spent + min(self.left, seconds))

    def at_least(self, seconds: float) -> Deadline:
        """The same with at least `seconds` left."""
        return self if self.left >= seconds else replace(self, max_time=self.spent + seconds)

    def track(self, what: str, steps: Iterable[T], share: float = 1.0) -> Iterator[T]:
        """Iterates over steps of equal length.

        Raises OutOfTimeError as soon as the steps so far show that all of them take clearly more than `share` of the
        seconds that were left at the beginning.
        """
        steps = steps if isinstance(steps, Sequence) else list(steps)
        began, available, shown = perf_counter(), share * self.left, perf_counter()
        for done, step in enumerate(steps):
            now = perf_counter()
            spent = now - began
            expected = spent * len(steps) / max(1, done)
            if spent > available or (spent > 0.1 * available and expected > 1.25 * available):
                raise OutOfTimeError(what)
            if self.verbose and now - shown >= self.log_every:
                shown = now
                log(f"{what}: {100 * done // len(steps)} %, {now - began:.0f} s")
            yield step


def log(text: str) -> None:
    """One line through the logger "cutsvm.kernel"."""
    LOGGER.info("%s", text)


class DualKeeper(Protocol):
    """Where dual vectors are kept while a fit runs: see `cutsvm.kernel_machines.checkpoint`."""

    def start(self, problem: int, low: Vector, high: Vector) -> Vector | None:
        """s of a problem, if there is one."""

    def keep(self, problem: int, s: Vector) -> None:
        """Takes over s."""


@dataclass(frozen=True)
class FitOptions:
    """The estimator's parameters for its solver."""

    epochs: int
    average: float
    tol: float
    threads: int
    certify: bool = True  # compute objective and bound also where that takes another pass over kernel values
    max_iter: int = 10_000
    finish: bool = False  # continue after the epochs until the gap is tol
    adaptive: bool = False  # many problems at once: fewer epochs where more gain little
    after_epochs: Status = Status.EPOCHS  # MAX_ITER if that has left fewer epochs than were asked for
    seed: int = 0  # of rows that are drawn at random
    panel_bytes: int | None = None  # for kernel values of some rows with many; None: blocks of rows have a fixed size
    cache_bytes: int = 1 << 30  # for kernel rows that are kept
    checkpoint: DualKeeper | None = None
    deadline: Deadline = field(default_factory=Deadline)


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver yields: alpha_i = y_i coef_i >= 0 for the rows of all problems, F and a lower bound of F.

    certified: F and the bound were computed; else they are NaN. ended: why this is the last, unless its gap is tol.
    """

    alpha: Vector
    primal: float
    lower: float
    iteration: int  # epochs, or rounds of steps
    ended: Status | None = None
    certified: bool = True
    intercept: float = 0.0
    least: float = 0.0  # an objective up to this counts as 0

    @property
    def gap(self) -> float:
        """(primal - lower) / primal"""
        return relative_gap(self.primal, self.lower, self.least)


@dataclass(frozen=True, eq=False)
class KernelContext:
    """Problems on rows that are visited in one `order`, and the kernel values of these rows.

    gram: all of them in float32, if they fit; else the solver computes those that it needs from `points`.
    """

    options: FitOptions
    points: Points
    problems: Problems
    order: Ints
    gram: Array | None
    reserve: float = 0.0  # seconds to keep for the certificate, where there is a limit
    certificate: CertificateSettings = field(default=CertificateSettings())

    @cached_property
    def precise_points(self) -> Points:
        """The rows, for kernel values in float64."""
        return self.points.precisely()

    @cached_property
    def linear_rows(self) -> Any:
        """With a linear kernel the rows whose products are its values: the kernel's offset is a column of them."""
        return with_constant(self.precise_points.X, self.points.kernel.offset)

    @property
    def kernel_free(self) -> bool:
        """Whether f(x) = w.x + b, so that no kernel value is needed."""
        return self.points.kernel.name == "linear" and self.gram is None

    def dual_steps(
        self, problems: Problems, C: float, method: str, tol: float, n_steps: int, alpha: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Steps on alpha, in place; (F, its dual, number of steps) of each problem, by values in float32."""
        assert self.gram is not None
        seen = np.empty((len(problems), 1, 3))
        core.kernel_l2(
            self.gram,
            problems.rows,
            problems.a,
            problems.first,
            np.array([C]),
            method,
            tol,
            n_steps,
            max(0.0, self.options.deadline.left - self.reserve),
            alpha,
            seen,
            self.options.threads,
        )
        return seen[:, 0, 0], seen[:, 0, 1], seen[:, 0, 2]

    def solution(
        self, alpha: Vector, C: float, loss: str, iteration: int, ended: Status, *, interrupted: bool = False
    ) -> Solution:
        """The last solution of a solver: without objective and bound if there is no time for them."""
        found = Solution(alpha, np.nan, np.nan, iteration, ended, certified=False)
        if not self.options.certify:
            return found
        deadline = self.options.deadline.at_least(self.certificate.seconds_after_limit)
        if interrupted:
            deadline = deadline.within(self.certificate.seconds_after_interrupt)
        try:
            primal, lower = self.bounds(alpha, C, loss, deadline)
        except OutOfTimeError:
            return found if interrupted else replace(found, ended=Status.MAX_TIME)
        except KeyboardInterrupt:
            if not interrupted:
                raise
            return found
        return Solution(alpha, primal, lower, iteration, ended)

    def bounds(self, alpha: Vector, C: float, loss: str, deadline: Deadline) -> tuple[float, float]:
        """(F, a lower bound of F), each summed over the problems.

        F is raised by its rounding error. Where that is not small beside tol, and for small problems always, kernel
        values and sums are in extended precision.
        """
        points = self.precise_points
        if points.kernel.name == "linear":
            primals, lowers = linear_bounds(self.problems, alpha, self.linear_rows, C, loss, self.certificate)
            return float(primals.sum()), float(lowers.sum())
        errors = KernelErrors(points.rounding, points.diagonal(), points.given)
        width = 1 if points.given else int(points.X.shape[1])
        values = [(part.stop - part.start) * int(np.count_nonzero(alpha[part])) for part in self.problems.parts]
        work = width * sum(values)
        if work > self.certificate.extended_below:
            found = all_bounds(self.problems, alpha, self.scores(alpha, deadline), C, loss, errors)
            primal, lower, error = (float(np.sum(values)) for values in found)
            if work > self.certificate.extended_limit or not error > min(1e-7, 0.01 * self.options.tol) * primal:
                return primal, lower
        found = all_bounds(self.problems, alpha, self._extended_scores(alpha, deadline), C, loss, errors)
        return float(np.sum(found[0])), float(np.sum(found[1]))

    def _extended_scores(self, alpha: Vector, deadline: Deadline) -> Array:
        """f of each problem's own rows in extended precision."""
        problems, points = self.problems, self.precise_points
        signed = np.copysign(alpha, problems.a).astype(np.longdouble)
        scores = np.zeros(len(signed), dtype=np.longdouble)
        pieces = [
            (part, slice(part.start + piece.start, part.start + piece.stop))
            for part in problems.parts
            for piece in blocks(part.stop - part.start, points.settings.block_rows)
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            for part, piece in deadline.track("certificate", pieces):
                support = part.start + np.flatnonzero(alpha[part])
                values = points.extended(problems.rows[piece], problems.rows[support])
                scores[piece] = values @ signed[support]
        return scores

    def scores(self, alpha: Vector, deadline: Deadline) -> Vector:
        """f of each problem's own rows, from kernel values in float64."""
        problems, points = self.problems, self.precise_points
        labels = int(problems.high.max()) + 1
        dual = duals(problems, alpha, labels, len(points))
        support = np.flatnonzero(dual.any(axis=0))
        # The support in the order of its classes, which every problem of a row shows.
        classes = np.empty(len(points), dtype=np.int64)
        for p, part in enumerate(problems.parts):
            classes[problems.rows[part]] = np.where(np.signbit(problems.a[part]), problems.low[p], problems.high[p])
        support = support[np.argsort(classes[support], kind="stable")]
        edges = np.searchsorted(classes[support], np.arange(labels + 1))
        scores = np.empty((len(points), len(problems)))
        many = panel_rows(points.settings.block_rows, len(support), 8, self.options.panel_bytes)
        steps = list(blocks(len(points), many)) if len(support) else []
        if not steps:
            scores[:] = 0.0
        for rows in deadline.track("certificate", steps):
            kernel = np.empty((rows.stop - rows.start, len(support)))
            points.values(rows, points, support, kernel)
            scores[rows] = pair_scores(kernel, dual[:, support], edges)
        return np.concatenate([scores[problems.rows[part], p] for p, part in enumerate(problems.parts)])


class KernelSolver(Protocol):
    """A small frozen object."""

    name: ClassVar[str]  # as a parameter of the estimator
    loss: ClassVar[str]  # "hinge" or "l2": see `cutsvm.kernel_machines.certificate`
    visits_rows: ClassVar[bool]  # whether the order of the rows matters

    @property
    def mean_loss(self) -> bool:
        """Whether C weighs the mean of the losses, else their sum."""

    @property
    def kernel_offset(self) -> float:
        """What is added to all kernel values: 1 for a regularised intercept."""

    def with_intercept(self, fit_intercept: bool) -> Self:
        """The same solver, with an intercept or without."""

    def __call__(self, context: KernelContext, C: float) -> Iterator[Solution]:
        """Solutions until the caller has enough, or until the solver can do no more."""

    def batched(self, gram: Array, problems: Problems, Cs: Vector, options: FitOptions) -> Machines:
        """The machines for up to `core.VERSIONS` rising values of C, from the whole matrix of kernel values."""


@runtime_checkable
class PairSolver(KernelSolver, Protocol):
    """A solver that computes the kernel values it wants by itself."""

    def pairs(self, points: Points, problems: Problems, C: float, options: FitOptions) -> Iterator[Iterator[Solution]]:
        """The solutions of each pair of classes."""
