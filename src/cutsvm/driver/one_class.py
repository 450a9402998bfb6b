"""The fit of a one-class problem: a constant that makes its objective one of the kind that solvers minimise.

    F(w) = |w|^2/2 - m(w),    m(w) = the mean of the lowest nu-share of the scores w.x_i, by weight

is not |w|^2/2 + C R(w) with R >= 0. But m(t w) = t m(w) for t >= 0, so with M = max of m over |u| = 1, or 0 if that is
negative, min F = -M^2/2. For any C > 0 let

    H(v) = |v|^2/2 + C max(0, 1 - m(v))

which has its minimum at a multiple of the same w, and

    min H = C - C^2 M^2/2    if C M^2 <= 1,    else 1 / (2 M^2)

So a lower bound of H is one of F (`lower_bound`), whatever C is, and a point v is one of F: the best multiple of it,
w = v m(v) / |v|^2, has F = -m(v)^2 / (2 |v|^2). The planes of H do not depend on C.

M <= |a| for every a = sum_i alpha_i x_i with 0 <= alpha_i <= s_i / (nu S) and sum_i alpha_i = 1; the first such a is
the mean row, and C = 1 / |a|^2. If M turns out to be far smaller, the run goes on with a larger C and the same planes.

If no w separates the rows from the origin, M = 0 and w = 0 is the answer. That is the result as soon as F is proven to
be nowhere below -`least`: M is then below 1e-7 times the largest coordinate of the means of tails that are planes, or
not told from 0 by rounding errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.driver.records import Callback, Observer, Record, Status, Stop
from cutsvm.driver.run import Fit, run_at
from cutsvm.problem.certificate import UNIT, gamma
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle
from cutsvm.problem.tails import TailOracle
from cutsvm.solvers.protocol import Solver, new_context

__all__ = ["OneClassModel", "OneClassSettings", "fit_one_class", "lower_bound", "model_at", "relative_gap"]


@dataclass(frozen=True)
class OneClassSettings:
    """zero: margins M below this share of what the slopes of planes have as coordinates count as none: the reduced
        problem does not tell them from 0. So do those below `rounding` times the rounding error of a slope, and those
        whose square is below `tiny`.

    huge: the square of the length of the mean row must be below; its own square must not overflow.
    rescale: the run goes on with a larger C where C M^2 is proven to be below this; and with rounding errors in the
    way, below `rescale_stalled`.
    retries: how often it goes on if F, recomputed from the data, is not within tol.
    """

    zero: float = 1e-7
    rounding: float = 16.0
    tiny: float = 1e-140
    huge: float = 1e140
    rescale: float = 1e-6
    rescale_stalled: float = 0.5
    retries: int = 5


SETTINGS = OneClassSettings()


class OneClassModel(NamedTuple):
    """w, rho, and F there."""

    w: Vector
    rho: float
    objective: float


@dataclass(frozen=True, eq=False)
class OneClassResult:
    """lower <= min F <= objective = F(w, rho)."""

    w: Vector
    rho: float
    objective: float
    lower: float
    gap: float
    status: Status
    n_iter: int
    history: list[dict[str, Any]] = field(repr=False)


def lower_bound(lower: float, C: float) -> float:
    """The lower bound of F that a lower bound of H at C proves."""
    if lower <= 0.0:
        return -np.inf
    outward = 1.0 + 8.0 * UNIT
    return -outward * ((C - lower) / C / C if 2.0 * lower > C else 0.25 / lower) if lower < C else 0.0


def relative_gap(objective: float, lower: float, least: float) -> float:
    """(objective - lower) / |objective|; 0 if F is nowhere below -least, since w = 0 is the answer then."""
    if lower >= -least:
        return 0.0
    return (objective - lower) / -objective if objective < 0.0 else np.inf


def model_at(oracle: TailOracle, v: Vector) -> OneClassModel:
    """The best multiple w of v, with its rho and F; w = 0 if F is not below 0 at any of them. Two passes."""
    loss, square = oracle.loss, float(v @ v)
    mean = loss.tail(oracle.score(v).scores).mean if square > 0.0 else 0.0
    if not mean > 0.0:
        return OneClassModel(np.zeros_like(v), 0.0, 0.0)
    w = v * (mean / square)
    scores = oracle.score(w).scores
    rho = loss.threshold(scores)
    return OneClassModel(w, rho, oracle.penalty(w) - loss.mean_at(scores, rho))


class _Verdict(Enum):
    CONVERGED = "the gap is within tol"
    RESCALE = "C is far too small"
    ASKED = "a callback asked to stop"


class _Watch:
    """The callback of all runs: records of F in place of those of H, for the history and the callers' callbacks.

    error: the rounding error of a slope. lower: the best lower bound of F so far. best: the v with the lowest F.
    """

    def __init__(self, fit: Fit, bundle: Bundle, lower: float, error: float, settings: OneClassSettings) -> None:
        self.tol, self.lower, self.settings = fit.stop.tol, lower, settings
        self.callbacks: Sequence[Callback] = fit.callbacks
        self._bundle, self._error = bundle, error
        self.C, self.target = 1.0, fit.stop.tol
        self.best: Vector | None = None
        self.primal = 0.0
        self.history: list[Record] = []
        self.verdict: _Verdict | None = None
        self._before: dict[str, float] = {}  # what earlier runs have counted

    def begin(self, C: float, target: float) -> None:
        """A new run at C, until the gap is at most the target."""
        if self.history:
            last = self.history[-1]
            names = ["seconds", "passes", "visits", "rows_read", *(n for n in vars(last) if n.startswith("seconds_"))]
            self._before = {name: getattr(last, name) for name in names}
            self._before["iteration"] = last.iteration + 1
        self.C, self.target, self.verdict = C, target, None

    @property
    def least(self) -> float:
        """F above -least counts as 0."""
        zero, rounding = self.settings.zero * self._bundle.largest, self.settings.rounding * self._error
        return 0.5 * max(zero * zero, rounding * rounding, self.settings.tiny)

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.lower, self.least)

    @property
    def excess(self) -> float:
        """At least C M^2."""
        return -2.0 * self.lower * self.C

    def __call__(self, record: Record) -> bool:
        raise TypeError("a record of H without its point")

    def observe(self, record: Record, oracle: Oracle, w: Vector) -> bool:
        """Translates a record; True ends the run."""
        square = 2.0 * oracle.penalty(w)
        mean = 1.0 - max(0.0, (record.primal - 0.5 * square) / self.C)
        primal = -0.5 * mean * mean / square if mean > 0.0 and square > 0.0 else 0.0
        if self.best is None or primal < self.primal:
            self.best, self.primal = w.copy(), primal
        self.lower = max(self.lower, lower_bound(record.lower, self.C))
        before = {name: getattr(record, name) + value for name, value in self._before.items()}
        fresh = {"primal": self.primal, "lower": self.lower, "gap": self.gap, "tol": self.tol}
        self.history.append(replace(record, **fresh, **before))  # type: ignore[arg-type]
        asked = [_call(callback, self.history[-1], oracle, w) for callback in self.callbacks]
        if self.gap <= self.target:
            self.verdict = _Verdict.CONVERGED
        elif any(asked):
            self.verdict = _Verdict.ASKED
        elif self.excess < self.settings.rescale:
            self.verdict = _Verdict.RESCALE
        return self.verdict is not None


def _call(callback: Callback, record: Record, oracle: Oracle, w: Vector) -> bool:
    if isinstance(callback, Observer):
        return callback.observe(record, oracle, w)
    return bool(callback(record))


def fit_one_class(
    solver: Solver, oracle: TailOracle, fit: Fit, settings: OneClassSettings = SETTINGS
) -> OneClassResult:
    """Minimises F until its relative gap is fit.stop.tol, or another rule of `fit.stop` ends it. fit.start is a w."""
    square, error = _mean_row(oracle)
    if not square < settings.huge:
        raise FloatingPointError("the objective would overflow: scale the features")
    # No run ends by the gap of H: `_Watch` knows that of F.
    stop, tol = _with(fit.stop, tol=-1.0), fit.stop.tol
    C = 1.0 / max(square, settings.tiny)
    context = new_context(solver, oracle, [C], tol, start=None if fit.start is None else C * fit.start)
    part = None if fit.checkpoint is None else fit.checkpoint.part("", context, C)
    if context.start is not None and not len(context.bundle):
        context.bundle.add(oracle.planes(oracle.at(np.zeros(oracle.size))))
    watch = _Watch(fit, context.bundle, -0.5 * square, error, settings)
    target, retries = tol, 0
    while True:
        watch.begin(C, target)
        status = run_at(solver, context, C, stop, [watch], part=part).status
        assert watch.best is not None
        stop, part = _with(fit.stop, tol=-1.0, max_iter=fit.stop.max_iter - watch.history[-1].iteration - 1), None
        stalled = status is Status.PRECISION and watch.excess < settings.rescale_stalled and watch.gap > tol
        if stalled or (status is Status.CALLBACK and watch.verdict is _Verdict.RESCALE):
            scale = 1.0 / watch.excess
            C, context.start = C * scale, watch.best * scale if watch.best.any() else None
            continue
        found = model_at(oracle, watch.best if watch.lower < -watch.least else np.zeros(oracle.size))
        lower = min(watch.lower, found.objective)
        gap = relative_gap(found.objective, lower, watch.least)
        if watch.verdict is _Verdict.CONVERGED:
            status = Status.CONVERGED
            if gap > tol:  # the scores of combined points have drifted from those of w
                target, retries, status, context.start = 0.5 * target, retries + 1, Status.PRECISION, watch.best
                watch.primal = min(0.0, found.objective)
                if retries <= settings.retries:
                    continue
        elif gap <= tol and status is not Status.EPSILON:
            status = Status.CONVERGED
        history = [record.to_dict() for record in watch.history]
        return OneClassResult(*found, lower, gap, status, max(1, history[-1]["iteration"]), history)


def _mean_row(oracle: TailOracle) -> tuple[float, float]:
    """At least the square of the length of the mean row; and the rounding error of the length of any plane's slope."""
    with np.errstate(over="ignore"):
        planes = oracle.planes(oracle.at(np.zeros(oracle.size)))
        error = float(planes.errors[0, 0]) * oracle.magnitudes.norm
        length = float(np.linalg.norm(planes.slopes[0])) * (1.0 + gamma(oracle.size + 8)) + error
        # A later plane is a sum that has been changed, until `stale` times its weight have moved.
        return length * length * (1.0 + 8.0 * UNIT), oracle.settings.stale * error


def _with(stop: Stop, **changes: Any) -> Stop:
    """Another rule with the same deadline."""
    other = replace(stop, **changes)
    object.__setattr__(other, "deadline", stop.deadline)
    return other
