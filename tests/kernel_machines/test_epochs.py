"""NL-SGD of many problems with `epochs="auto"`: they double, and end where they gain little."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm.kernel_machines import SGD
from cutsvm.kernel_machines.context import FitOptions
from cutsvm.kernel_machines.one_vs_one import pairwise
from cutsvm.kernel_machines.sgd import SGDSettings

CS = np.array([0.5, 4.0, 50.0])


def problem(seed, n=60, classes=3, noise=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    X = rng.normal(size=(n, 2)) * noise + 3.0 * np.eye(classes)[labels][:, :2]
    gram = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(np.float32)
    return gram, pairwise(labels, rng.uniform(0.5, 2.0, n), rng.permutation(n))


@given(
    seed=st.integers(0, 2**32 - 1),
    average=st.sampled_from([0.0, 0.3, 0.5]),
    iterates=st.sampled_from(["after", "before"]),
)
def test_doubled_epochs_are_those_of_a_fixed_number(seed, average, iterates):
    """With a gain that is always enough they go on to the last power of two."""
    gram, problems = problem(seed)
    always = SGD(iterates=iterates, settings=SGDSettings(min_gain=-np.inf, few_losses=-1.0))
    options = FitOptions(9, average, 1e-3, 1, adaptive=True)
    doubled = always.batched(gram, problems, CS, options)
    fixed = always.batched(gram, problems, CS, replace(options, epochs=8, adaptive=False))
    assert_allclose(doubled.coef, fixed.coef, rtol=1e-12, atol=1e-14)
    assert_array_equal(doubled.columns, fixed.columns)
    assert_array_equal(doubled.used, fixed.used)


@pytest.mark.parametrize(
    ("settings", "epochs"), [({"min_gain": 2.0}, 1), ({"few_losses": 1.0}, 1), ({"min_gain": -1e9}, 16)]
)
def test_where_epochs_end(settings, epochs):
    gram, problems = problem(0)
    solver = SGD(settings=SGDSettings(**{"few_losses": -1.0} | settings))
    options = FitOptions(20, 0.5, 1e-3, 1, adaptive=True)
    found = solver.batched(gram, problems, CS, options)
    fixed = solver.batched(gram, problems, CS, replace(options, epochs=epochs, adaptive=False))
    assert_allclose(found.coef, fixed.coef, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("average", [0.6, 1.0])
def test_a_mean_over_more_than_one_half_has_all_epochs(average):
    """The first half of the steps is then a part of the mean."""
    gram, problems = problem(1)
    options = FitOptions(5, average, 1e-3, 1, adaptive=True)
    found, fixed = (SGD().batched(gram, problems, CS, replace(options, adaptive=own)) for own in (True, False))
    assert_array_equal(found.coef, fixed.coef)
