"""A walk over many C of large data in two parts, side by side: the hard C, and the others.

A second core helps one fit little: much of it is one step after another, on few rows. Two walks share nothing but the
rows, and so two cores do them in little more than half the time. Which C is in which part depends on the data alone, so
the answer is the same for any number of threads; on one thread the parts come one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from threading import Event, Lock
from time import perf_counter
from typing import Any

import numpy as np

from cutsvm._utils.threads import ThreadPool
from cutsvm.driver.path import walk
from cutsvm.driver.run import Callback, Record, Result, Solver, Status, Stop
from cutsvm.matrix import CompressionSettings, DenseRows, SparseRows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle

__all__ = ["walk_in_parts"]

# Values of X, and C, from which it pays.
LARGE, MANY = 4_000_000, 8
NARROW = 16  # features from which dense rows that are mostly zeros are made sparse: they are read many times
LITTLE, GROWTH = 0.2, 1.5  # the work of a C so small that it is known from others, and how it grows with the decades


def walk_in_parts(
    solver: Solver, oracle: Oracle, Cs: Sequence[float], stop: Stop, callbacks: Sequence[Callback] = (), **more: Any
) -> list[Result]:
    """`cutsvm.driver.path.walk`, in two parts where that pays."""
    if not _pays(oracle, Cs) or more.get("memory") is not None:
        return walk(solver, oracle, Cs, stop, callbacks, **more)
    stopped, one_at_a_time, began = Event(), Lock(), perf_counter()

    def watch(record: Record) -> bool:
        with one_at_a_time:
            asked = [bool(callback(record)) for callback in callbacks]
        return any(asked) or stopped.is_set()

    def part(Cs: Sequence[float], threads: int) -> list[Result]:
        spent = perf_counter() - began
        own = stop if stop.max_time is None else replace(stop, max_time=max(0.0, stop.max_time - spent))
        results = walk(solver, _twin(oracle, threads), Cs, own, [watch], **more)
        if any(result.status in (Status.INTERRUPTED, Status.CALLBACK) for result in results):
            stopped.set()
        return results

    if isinstance(oracle.rows, DenseRows):
        oracle.rows = oracle.rows.fast(CompressionSettings(min_features=NARROW))
    low, high = _halves(oracle, sorted(Cs))
    if oracle.threads == 1:
        found = [*part(high, 1), *part(low, 1)]
    else:
        with ThreadPool(1) as pool:
            other = pool.submit(part, low, oracle.threads - oracle.threads // 2)
            try:
                found = [*part(high, oracle.threads // 2), *_waited(other, stopped)]
            except BaseException:
                stopped.set()
                raise
    by_C = dict(zip([*high, *low], found, strict=True))
    return [by_C[C] for C in Cs]


def _waited(other: Any, stopped: Event) -> list[Result]:
    """The other part's results; Ctrl-C comes to the main thread, so that the other has to be told."""
    while True:
        try:
            results: list[Result] = other.result()
            return results
        except KeyboardInterrupt:
            stopped.set()


def _pays(oracle: Oracle, Cs: Sequence[float]) -> bool:
    known = isinstance(oracle.rows, (DenseRows, SparseRows)) and isinstance(oracle.loss, Hinge)
    return known and oracle.rows.entries >= LARGE and len(Cs) >= MANY


def _twin(oracle: Oracle, threads: int) -> Oracle:
    """The same risk with memory and threads of its own."""
    assert isinstance(oracle.rows, (DenseRows, SparseRows))
    loss = copy(oracle.loss)
    loss.threads = threads  # type: ignore[attr-defined]
    twin = type(oracle)(oracle.rows.with_threads(threads), loss, intercept=oracle.intercept, threads=threads)
    twin.given, twin.shift = oracle.given, oracle.shift
    return twin


def _halves(oracle: Oracle, Cs: list[float]) -> tuple[list[float], list[float]]:
    """Rising C cut where both parts are as much work: each C a little, and more the larger C s |x|^2 is in sum."""
    rows = oracle.rows
    assert isinstance(rows, (DenseRows, SparseRows))
    decades = np.log10(np.array(Cs) * oracle.loss.total * max(rows.mean_square, 1e-300))
    below = np.cumsum(LITTLE + np.maximum(0.0, decades) ** GROWTH)
    cut = min(max(1, int(np.argmin(np.abs(below - 0.5 * below[-1]))) + 1), len(Cs) - 1)
    return Cs[:cut], Cs[cut:]
