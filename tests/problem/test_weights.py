"""The weight of a loss: the same bits wherever in memory the weights are, which differs from process to process."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm.problem.losses import Hinge, Tube
from cutsvm.problem.losses.smooth import Huber, Logistic, SquaredHinge, SquaredTube


def moved(values, offset):
    """A copy that begins `offset` numbers after a multiple of 64 bytes."""
    memory = np.empty(len(values) + 16)
    first = -(memory.ctypes.data // 8) % 8 + offset
    copy = memory[first : first + len(values)]
    copy[:] = values
    return copy


@pytest.mark.parametrize("n", [0, 7, 2000, 70_000])
def test_weight_does_not_depend_on_the_place_in_memory(n):
    signed = np.random.default_rng(0).normal(size=n)
    for make in (Hinge, SquaredHinge, Logistic):
        assert len({make(moved(signed, offset)).weight for offset in range(8)}) == 1
    for make in (Tube, SquaredTube, Huber):
        weights = [make(np.zeros(n), moved(np.abs(signed), offset), epsilon=0.5).weight for offset in range(8)]
        assert len(set(weights)) == 1
        assert weights[0] == pytest.approx(np.abs(signed).sum())
