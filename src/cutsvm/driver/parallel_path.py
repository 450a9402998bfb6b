"""A path over many C of large data, in two parts side by side: the hard C, and the others.

A second core helps one fit little: much of it is sequential, on few rows. Two paths share nothing but the rows, and so
two cores do them in little more than half the time. Which C is in which part depends on the data alone, so the answer
is the same for any number of threads; on one thread the parts come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event, Lock
from typing import cast

import numpy as np

from cutsvm._utils.threads import ThreadPool
from cutsvm.driver.records import Callback, Record, Result, Status
from cutsvm.matrix import RowsInMemory
from cutsvm.problem.oracle import Oracle

__all__ = ["FitPart", "SplitSettings", "fit_in_two_parts"]

# Fits the path over some of the C, on the threads of the oracle, with one callback.
FitPart = Callable[[Oracle, Sequence[float], Callback], list[Result]]


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


def fit_in_two_parts(
    fit_part: FitPart, oracle: Oracle, Cs: Sequence[float], callbacks: Sequence[Callback], split: SplitSettings
) -> list[Result]:
    """One result for each C, in their order."""
    stopped, lock = Event(), Lock()

    def watch(record: Record) -> bool:
        with lock:
            asked = [bool(callback(record)) for callback in callbacks]
        return any(asked) or stopped.is_set()

    def part(Cs: Sequence[float], threads: int) -> list[Result]:
        results = fit_part(oracle.with_threads(threads), Cs, watch)
        if any(result.status in (Status.INTERRUPTED, Status.CALLBACK) for result in results):
            stopped.set()
        return results

    low, high = _halves(oracle, sorted(Cs), split)
    found = _both(part, low, high, oracle.threads, stopped)
    by_C = dict(zip([*high, *low], found, strict=True))
    return [by_C[C] for C in Cs]


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
    decades = np.log10(np.array(Cs) * oracle.loss.weight * max(square, 1e-300))
    below = np.cumsum(split.little + np.maximum(0.0, decades) ** split.growth)
    cut = min(max(1, int(np.argmin(np.abs(below - 0.5 * below[-1]))) + 1), len(Cs) - 1)
    return Cs[:cut], Cs[cut:]
