"""The random sample that sifting begins with."""

from __future__ import annotations

from typing import cast

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints
from cutsvm.matrix import in_order
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.sifting.settings import SiftingSettings

__all__ = ["draw_sample"]


@timed("sift")
def draw_sample(oracle: Oracle, size: int, rng: np.random.Generator, settings: SiftingSettings) -> Oracle:
    """The risk of a random sample, in which each class has its weight in all rows; rare classes are kept."""
    matrix, loss = oracle.matrix, cast("GroupedLoss", oracle.loss)
    chosen = in_order(rng.integers(0, matrix.n, size))
    drawn = loss.take(chosen)
    more = [chosen]
    left = settings.of_each
    if matrix.room is not None:
        left = 1 + int((1.0 - settings.sample_room) * matrix.room / loss.labels)
    least = min(settings.of_each, left)
    for label in range(loss.labels):
        if np.count_nonzero(drawn.label_mask(label)) < least:
            of_class = _rows_of(loss, label)
            few = len(of_class) <= least
            more.append(of_class if few else of_class[rng.integers(0, len(of_class), least)])
    if len(more) > 1:
        chosen = in_order(np.concatenate(more))
        drawn = loss.take(chosen)
    factors = np.ones(len(chosen))
    for label, total in enumerate(loss.label_totals()):
        mine = drawn.label_mask(label)
        if total > 0.0:
            factors[mine] = total / np.abs(drawn.row_weights[mine]).sum()
    return oracle.restrict(matrix.take(chosen).fast(), loss.take(chosen, factors))


def _rows_of(loss: GroupedLoss, label: int) -> Ints:
    """The rows of one class, found some at a time: a rare class must not take memory for all rows."""
    parts = validation.parts(loss.n)
    return np.concatenate([np.flatnonzero(loss.part(part).label_mask(label)) + part.start for part in parts])
