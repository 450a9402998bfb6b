"""Fits for one or several C with one oracle; one C is a path of length one (`cutsvm.solvers.path`).

A path over many C of large data is split into two parts, side by side: the hard C, and the others. A second core helps
one fit little: much of it is sequential, on few rows. Two paths share nothing but the rows, and so two cores do them in
little more than half the time. Which C is in which part depends on the data alone, so the answer is the same for any
number of threads; on one thread the parts come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import TYPE_CHECKING, cast

import numpy as np

from cutsvm._utils.threads import ThreadPool
from cutsvm._utils.types import Vector
from cutsvm.driver.records import Callback, Record, Result, Status, Stop
from cutsvm.driver.run import run_at
from cutsvm.matrix import CompressionSettings, RowsInMemory
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.protocol import Solver, new_context

if TYPE_CHECKING:
    from cutsvm.driver.checkpoint import Checkpoint
    from cutsvm.driver.warm_start import Slot

__all__ = ["Fit", "SplitSettings", "fit_path", "run"]


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit is run with, besides its data: stopping rule, callbacks, and what it goes on from.

    label: of the problem, among those of one estimator. start: a w to begin at. warm_start: what an earlier fit has
    left is used, and what this one knows is left for the next.
    """

    stop: Stop
    callbacks: Sequence[Callback] = ()
    label: str = ""
    start: Vector | None = None
    checkpoint: Checkpoint | None = None
    warm_start: Slot | None = None


@dataclass(frozen=True)
class SplitSettings:
    """entries, many_values: entries of X, and values of C, from which two parts pay.

    min_features: from which dense rows that are mostly zeros are made sparse: they are read many times.
    little, growth: the work of a C so small that it is known from others, and how it grows with the decades.
    """

    entries: int = 4_000_000
    many_values: int = 8
    min_features: int = 16
    little: float = 0.2
    growth: float = 1.5


def run(
    solver: Solver,
    oracle: Oracle,
    C: float,
    stop: Stop,
    callbacks: Sequence[Callback] = (),
    *,
    start: Vector | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """The fit at one C."""
    return fit_path(solver, oracle, [C], Fit(stop, callbacks, "", start, checkpoint))[0][0]


def fit_path(
    solver: Solver, oracle: Oracle, Cs: Sequence[float], fit: Fit, split: SplitSettings | None = None
) -> tuple[list[Result], Oracle]:
    """One result for each C, in their order; and the oracle as a solver has left it, maybe with a faster matrix.

    The limit on time is for all C together. If the path is cut short, the C that are left have the best that is known
    for them, with its gap.
    """
    split = split or SplitSettings()
    matrix = oracle.matrix
    large = matrix.entries >= split.entries and len(Cs) >= split.many_values
    if large and oracle.supports.dual and oracle.whole and fit.warm_start is None:
        compression = CompressionSettings(min_features=split.min_features)
        return _in_two_parts(solver, oracle.with_fast_matrix(compression), Cs, fit, split)
    return _one_path(solver, oracle, Cs, fit)


def _one_path(solver: Solver, oracle: Oracle, Cs: Sequence[float], fit: Fit) -> tuple[list[Result], Oracle]:
    if fit.checkpoint is not None and len(Cs) > 1:
        raise ValueError("checkpoint: it is for a fit with one C")
    context = new_context(solver, oracle, Cs, fit.stop.tol)
    part = None
    if fit.checkpoint is not None:
        context.start = fit.start
        part = fit.checkpoint.part(fit.label, context, Cs[0])
    elif fit.warm_start is not None:
        fit.warm_start.restore(context)
        if fit.start is not None:
            context.evaluate(fit.start)
    elif fit.start is not None:
        if len(Cs) > 1:
            context.evaluate(fit.start)
        context.start = fit.start
    results: dict[float, Result] = {}
    stop = fit.stop
    for C in context.Cs:
        result = run_at(solver, context, C, stop, fit.callbacks, label=fit.label, part=part)
        if result.status.ends_all:
            stop = replace(stop, max_time=0.0)
        results[C] = result
        if len(Cs) > 1:
            context.know(result.w, result.loss)
    if fit.warm_start is not None and fit.checkpoint is None:
        fit.warm_start.keep(context)
    return [results[C] for C in Cs], context.oracle


def _in_two_parts(
    solver: Solver, oracle: Oracle, Cs: Sequence[float], fit: Fit, split: SplitSettings
) -> tuple[list[Result], Oracle]:
    stopped, lock = Event(), Lock()

    def watch(record: Record) -> bool:
        with lock:
            asked = [bool(callback(record)) for callback in fit.callbacks]
        return any(asked) or stopped.is_set()

    def part(Cs: Sequence[float], threads: int) -> list[Result]:
        own = replace(fit, callbacks=[watch])
        results, _ = _one_path(solver, oracle.with_threads(threads), Cs, own)
        if any(result.status in (Status.INTERRUPTED, Status.CALLBACK) for result in results):
            stopped.set()
        return results

    low, high = _halves(oracle, sorted(Cs), split)
    found = _both(part, low, high, oracle.threads, stopped)
    by_C = dict(zip([*high, *low], found, strict=True))
    return [by_C[C] for C in Cs], oracle


def _both(
    part: Callable[[Sequence[float], int], list[Result]],
    low: Sequence[float],
    high: Sequence[float],
    threads: int,
    stopped: Event,
) -> list[Result]:
    """The results of the high C, then those of the low ones, which have a thread of their own if there are two."""
    if threads == 1:
        return [*part(high, 1), *part(low, 1)]
    with ThreadPool(1) as pool:
        other = pool.submit(part, low, threads - threads // 2)
        try:
            return [*part(high, threads // 2), *_waited(other, stopped)]
        except BaseException:
            stopped.set()
            raise


def _waited(other: Future[list[Result]], stopped: Event) -> list[Result]:
    """The other part's results; Ctrl-C comes to the main thread, so that the other has to be told."""
    while True:
        try:
            return other.result()
        except KeyboardInterrupt:
            stopped.set()


def _halves(oracle: Oracle, Cs: list[float], split: SplitSettings) -> tuple[list[float], list[float]]:
    """Increasing C cut where both parts are as much work: each C a little, and more the larger C s |x|^2 is in sum."""
    square = cast("RowsInMemory", oracle.matrix).mean_square
    decades = np.log10(np.array(Cs) * oracle.loss.total * max(square, 1e-300))
    below = np.cumsum(split.little + np.maximum(0.0, decades) ** split.growth)
    cut = min(max(1, int(np.argmin(np.abs(below - 0.5 * below[-1]))) + 1), len(Cs) - 1)
    return Cs[:cut], Cs[cut:]
