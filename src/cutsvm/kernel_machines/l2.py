"""What the two solvers of the L2 kernel machine share: rounds of steps until each problem is within tol.

The problem, its dual and both methods are in core/l2_dual.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Vector
from cutsvm.driver.run import Iterate
from cutsvm.kernel_machines.one_vs_one import Machines, Problems
from cutsvm.kernel_machines.task import Settings, Task
from cutsvm.kernel_machines.watch import OutOfTimeError

__all__ = ["L2"]

STEPS = 20_000  # of each problem between iterates
SHARES = (0.8, 0.2, 0.05)  # of tol, for the gap by values in float32: the next where the last was not enough
PATIENCE, LITTLE = 50, 0.01  # rounds in which the gap has to get smaller by this share: else it is all rounding errors
MOST = 10_000_000  # of each problem, where only the answers count


@dataclass(frozen=True)
class L2:
    """A solver of the L2 machine, by the method of this name in core/l2_dual.hpp."""

    method: ClassVar[str]
    loss: ClassVar[str] = "l2"

    def __call__(self, task: Task, C: float) -> Iterator[Iterate]:
        return rounds(self.method, task, C)

    def together(self, gram: Array, problems: Problems, Cs: Vector, settings: Settings) -> Machines:
        """The machines for rising C, each the start for the next."""
        versions = 1 if len(Cs) == 1 else core.VERSIONS
        alpha, seen = np.zeros((len(problems.rows), versions)), np.empty((len(problems), len(Cs), 3))
        core.kernel_l2(
            gram,
            problems.rows,
            problems.a,
            problems.first,
            Cs,
            self.method,
            settings.tol,
            MOST,
            np.inf,
            alpha,
            seen,
            settings.threads,
        )
        return Machines.of_alpha(problems, np.maximum(0.0, alpha))


def rounds(method: str, task: Task, C: float) -> Iterator[Iterate]:
    """An iterate after every round, with bounds from kernel values in float64.

    The rounds have them from values in float32, which say when a problem is done but prove nothing where C is large:
    where that was not enough they go on to a smaller gap. Without time for a new certificate the last one stays.
    """
    assert task.gram is not None
    problems, shares = task.problems, iter(SHARES)
    tol = next(shares) * task.settings.tol
    alpha, best = np.zeros((len(problems.rows), 1)), 0.0
    stalled, reached = 0, np.inf
    left = np.arange(len(problems))
    primal, lower = np.full(len(problems), np.inf), np.zeros(len(problems))
    found = task.iterate(alpha[:, 0].copy(), C, "l2")
    yield found
    while True:
        some, places = problems.some(left)
        own, seen = alpha[places], np.empty((len(left), 1, 3))
        core.kernel_l2(
            task.gram,
            some.rows,
            some.a,
            some.first,
            np.array([C]),
            method,
            tol,
            STEPS,
            max(0.0, task.settings.watch.left - task.reserve),
            own,
            seen,
            task.settings.threads,
        )
        alpha[places] = np.maximum(0.0, own)  # where rounding errors are all there is, min_norm may end below 0
        primal[left], lower[left] = seen[:, 0, 0], np.maximum(lower[left], seen[:, 0, 1])
        left = np.flatnonzero(primal - lower > tol * primal)
        done = not len(left)
        left = left if len(left) else np.arange(len(problems))
        with suppress(OutOfTimeError):
            found = task.iterate(alpha[:, 0].copy(), C, "l2")
        best = max(best, found.lower)
        found = replace(found, lower=best)
        stalled, reached = (0, found.gap) if found.gap < (1.0 - LITTLE) * reached else (stalled + 1, reached)
        share = next(shares, None) if done else 1.0
        yield replace(found, satisfied=share is None or stalled >= PATIENCE)
        if done and share is not None:
            tol = share * task.settings.tol
