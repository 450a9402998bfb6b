"""Whether a solver still makes progress, and how one goes on from what is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cutsvm.solvers.protocol import Iterate

__all__ = ["Progress", "resume_from"]


class Progress:
    """Counts iterations in which the gap hardly shrinks: at that pace a run would end at its limit.

    share: of the gap, by which it has to shrink to count as progress.
    """

    def __init__(self, share: float = 1e-3) -> None:
        self._share, self._primal, self._lower, self._count = share, np.inf, -np.inf, 0

    def stalled(self, primal: float, lower: float, *, counts: bool = True) -> int:
        """Iterations since the bounds last came closer by `share` of the gap, this one included."""
        gained = (self._primal - primal) + (lower - self._lower)
        if gained > self._share * (primal - lower):
            self._primal, self._lower, self._count = primal, lower, 0
        elif counts:
            self._count += 1
        return self._count


def resume_from(iterates: Iterator[Iterate], known: Iterate) -> Iterator[Iterate]:
    """The iterates of a solver that began where something is known: no bound is ever worse than the known one."""
    first = next(iterates)  # where it began
    progress = Progress()  # of the solver's own bounds
    progress.stalled(first.primal, first.lower)
    for iterate in iterates:
        # It may have to find again what was known; as long as it makes progress it has not stalled.
        moved = progress.stalled(iterate.primal, iterate.lower) == 0
        best = iterate
        if iterate.primal > known.primal:
            best = replace(iterate, w=known.w, penalty=known.penalty, risk=known.risk, exact=known.exact)
        yield replace(best, lower=max(iterate.lower, known.lower), pending=iterate.pending or moved)
