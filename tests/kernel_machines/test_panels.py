"""Kernel values of some rows at a time: how many rows memory allows, and that the scores do not depend on it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cutsvm.kernel_machines.context import FitOptions, KernelContext, panel_rows
from cutsvm.kernel_machines.gram import Kernel, Points
from cutsvm.kernel_machines.one_vs_one import pairwise
from cutsvm.kernel_machines.sgd import SGD


@pytest.mark.parametrize(("panel_bytes", "rows"), [(None, 512), (10**9, 512), (8 * 1000 * 100, 100), (1, 16)], ids=str)
def test_rows_of_a_panel(panel_bytes, rows):
    assert panel_rows(512, 1000, 8, panel_bytes) == rows


def test_small_panels_give_the_same_solution():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(300, 3)), np.repeat([0, 1], 150)
    X[labels == 1] += 0.7
    found = []
    for panel_bytes in (None, 4 * 300 * 20):
        options = replace(FitOptions(4, 0.5, 1e-3, 1), panel_bytes=panel_bytes)
        points = Points(X, Kernel("rbf", 0.5), 1, precise=False)
        problems = pairwise(labels, np.ones(300), np.arange(300), mean_loss=False)
        context = KernelContext(options, points, problems, np.arange(300), None)
        found.append(list(SGD()(context, 1.0))[-1])
    assert_allclose(found[1].alpha, found[0].alpha, atol=1e-4)
    assert_allclose(found[1].primal, found[0].primal, rtol=1e-4)
    assert found[1].lower <= found[1].primal
