"""Batched cutting planes on rows in parts."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm import LinearSVC, linear_path
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


def fit_or_refuse(solver, intercept, given):
    """The bounds of a fit, or the error of one that was refused."""
    try:
        model = LinearSVC(C=1e-3, solver=solver, intercept=intercept, max_time=20.0).fit(*given)
    except FloatingPointError as error:
        return str(error)
    return model.lower_bound_, model.objective_


@pytest.mark.parametrize("solver", ["batched", "local_dual", "sifting"])
@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize(("heavy", "light"), [(1e170, 1.0), (1.0, 1e-170), (1e170, 1e130)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_refused_as_in_memory(solver, intercept, heavy, light):
    """A class that weighs far more than the other is no overflow where b is free: it is on its side of the margin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=3000) > 0.0).astype(int)
    weights = np.where(y == 1, heavy, light)
    in_memory = fit_or_refuse("auto", intercept, (X, y, weights))
    in_parts = fit_or_refuse(solver, intercept, (of_arrays(Local(1), split_arrays(X, y, weights, parts=2)),))
    if isinstance(in_memory, str):
        assert in_parts == in_memory
    else:
        assert in_parts[0] <= in_memory[1] and in_memory[0] <= in_parts[1]
        assert in_parts[1] == pytest.approx(in_memory[1], rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_paths_accept_a_class_that_weighs_far_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=2000) > 0.0).astype(int)
    given = of_arrays(Local(1), split_arrays(X, y, np.where(y == 1, 1e170, 1.0), parts=2))
    least = 2.0 * np.count_nonzero(y == 0)  # R at w = 0 and b = 1
    for model in linear_path(given, Cs=[1e-4, 1e-3, 1e-2], solver="batched", max_time=20.0):
        assert model.lower_bound_ <= model.C * least and np.isfinite(model.objective_)
