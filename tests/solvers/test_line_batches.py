"""Batched cutting planes on rows in parts."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm import LinearSVC
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.local import Local


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_planes_have_slopes_of_both_signs_in_a_free_intercept(loss):
    """Newton's steps come to the best b from one side: planes of that side alone bound nothing."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 3))
    y = (X @ rng.normal(size=3) + 0.3 + rng.normal(size=3000) > 0.0).astype(int)
    weights = rng.random(3000) * (rng.random(3000) < 0.9)
    given = of_arrays(Local(1), split_arrays(X, y, weights, parts=2))
    for C in (0.001, 0.1, 1.0):
        model = LinearSVC(C=C, loss=loss, tol=1e-4).fit(given)
        assert model.converged_ and model.n_iter_ < 20
