"""Weights that balance: exactly with one free intercept, up to rounding with several."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cutsvm.qp.interior_point import balanced, compensated_sums, projected
from cutsvm.qp.settings import InteriorPointSettings
from cutsvm.qp.sorted_planes import SortedPlanes
from tests.support.reduced_problems import some_planes
from tests.support.strategies import rng_of, seeds

SETTINGS = InteriorPointSettings()


@given(seed=seeds, m=st.integers(1, 60), columns=st.integers(1, 4))
def test_compensated_sums_are_within_their_error(seed, m, columns):
    """Also where the terms cancel: the error is one of the terms, not of the sum."""
    rng = rng_of(seed)
    x, c = rng.random(m) * 10.0 ** rng.uniform(-8, 0, size=m), rng.normal(size=(m, columns))
    x, c = np.concatenate([x, x]), np.concatenate([c, -c * (1.0 + 1e-14 * rng.normal(size=c.shape))])
    for found, column in zip(compensated_sums(x, c), c.T, strict=True):
        terms = [Fraction(a) * Fraction(b) for a, b in zip(x, column, strict=True)]
        error = abs(Fraction(found) - sum(terms))
        assert error <= SETTINGS.rounding_error * abs(found) + SETTINGS.compensated_rounding_error * sum(
            map(abs, terms)
        )


@given(seed=seeds, m=st.integers(1, 30))
def test_balanced_scales_one_sign_down(seed, m):
    rng = rng_of(seed)
    x, c = rng.random(m), rng.normal(size=m)
    found = balanced(x, c)
    assert abs(found @ c) <= 1e-14 * (x @ np.abs(c))
    assert np.all(found >= 0.0) and np.all(found <= x)


@given(seed=seeds, m=st.integers(8, 40), shards=st.integers(1, 4))
def test_projected_weights_meet_their_target(seed, m, shards):
    """Weights near a solution of c'x = target are moved onto it; they stay feasible, and small weights small."""
    rng = rng_of(seed)
    slopes, offsets, shard = some_planes(rng, m, 3, shards, 2)
    planes = SortedPlanes(slopes, offsets, shard, 2, 1e6)
    x = rng.random(m) / (2 * m)
    target = x @ planes.c
    off = x * (1.0 + 1e-3 * rng.normal(size=m))
    found = projected(off, 1.0 - planes.per_shard(off), planes, target, SETTINGS)
    assert np.abs(found @ planes.c - target).max() <= 1e-13
    assert np.all(found >= 0.0) and planes.per_shard(found).max() <= 1.0
    assert_allclose(found, x, rtol=0.2)
