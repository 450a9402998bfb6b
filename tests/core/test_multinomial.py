"""The kernels of the multinomial logistic loss against SciPy's functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cutsvm._native import core
from cutsvm.problem.losses import Multinomial
from tests.support.reference import smooth
from tests.support.strategies import rng_of, seeds, sizes

classes = st.integers(2, 12)


def some_scores(rng, n, K):
    return rng.normal(size=(n, K)) * 10.0 ** rng.integers(-3, 4)


@given(seed=seeds, n=sizes, K=classes, threads=st.integers(1, 3))
def test_value_and_slopes(seed, n, K, threads):
    rng = rng_of(seed)
    f, y, s = some_scores(rng, n, K), rng.integers(0, K, size=n).astype(np.int32), rng.random(n)
    value, slopes = smooth.multinomial(f, y, s)
    scale = float(s @ np.abs(f).max(axis=1)) + s.sum()
    assert core.multinomial_value(f, y, s, threads) == pytest.approx(value, rel=1e-12, abs=1e-13 * scale)
    assert core.multinomial_value(f, y, s, threads) == core.multinomial_value(f, y, s, 1)
    g = np.empty((n, K))
    offset, size, magnitude = core.multinomial_slopes(f, y, s, g, threads)
    assert_allclose(g, slopes, atol=1e-13 * s.max())
    assert np.abs(g.sum(axis=1)).max() <= 1e-14 * s.max() * K
    assert offset == pytest.approx(value - (g * f).sum(), abs=1e-12 * scale)
    assert size == pytest.approx(np.abs(g).sum(), rel=1e-12)
    assert magnitude >= abs(offset)


@given(seed=seeds, n=st.integers(1, 40), K=classes)
def test_planes_are_nowhere_above(seed, n, K):
    rng = rng_of(seed)
    f, y, s = some_scores(rng, n, K), rng.integers(0, K, size=n).astype(np.int32), rng.random(n)
    g = np.empty((n, K))
    offset, _, magnitude = core.multinomial_slopes(f, y, s, g, 1)
    for _ in range(5):
        other = some_scores(rng, n, K)
        room = 1e-12 * (magnitude + np.abs(g * other).sum())
        assert offset + (g * other).sum() <= smooth.multinomial(other, y, s)[0] + room


@given(seed=seeds, n=sizes, K=classes, k=st.floats(-2.0, 2.0), threads=st.integers(1, 3))
def test_along_a_line(seed, n, K, k, threads):
    rng = rng_of(seed)
    f, to, s = rng.normal(size=(n, K)), rng.normal(size=(n, K)), rng.random(n)
    y = rng.integers(0, K, size=n).astype(np.int32)
    value, slope, curvature = core.multinomial_along(f, to, y, s, k, threads)
    here = f + k * (to - f)
    expected, slopes = smooth.multinomial(here, y, s)
    assert value == pytest.approx(expected, rel=1e-11)
    assert slope == pytest.approx((slopes * (to - f)).sum(), rel=1e-9, abs=1e-11 * n)
    bends = Multinomial(y, s, K).curvatures(here)
    assert curvature == pytest.approx((bends.product(to - f) * (to - f)).sum(), rel=1e-9, abs=1e-11 * n)


@given(seed=seeds, n=st.integers(1, 20), K=classes)
def test_second_derivatives(seed, n, K):
    """The product is the change of the slopes, and `diagonal` and `mixed` are its parts."""
    rng = rng_of(seed)
    f, y, s = rng.normal(size=(n, K)), rng.integers(0, K, size=n).astype(np.int32), rng.random(n)
    loss, change = Multinomial(y, s, K), rng.normal(size=(n, K))
    h = 1e-5
    ahead, behind = (smooth.multinomial(f + sign * h * change, y, s)[1] for sign in (1, -1))
    bends = loss.curvatures(f)
    assert_allclose(bends.product(change), (ahead - behind) / (2 * h), atol=1e-8)
    for k in range(K):
        unit = np.zeros((n, K))
        unit[:, k] = 1.0
        product = bends.product(unit)
        assert_allclose(product[:, k], bends.diagonal[:, k], atol=1e-15)
        for m in set(range(K)) - {k}:
            assert_allclose(product[:, m], -bends.mixed(k, m), atol=1e-15)


def test_bad_input_is_refused():
    f, s = np.zeros((2, 3)), np.ones(2)
    with pytest.raises(ValueError, match="labels below"):
        core.multinomial_value(f, np.array([0, 3], dtype=np.int32), s, 1)
    with pytest.raises(ValueError, match="one entry per row"):
        core.multinomial_value(f, np.array([0], dtype=np.int32), s, 1)
    with pytest.raises(ValueError, match="shape of f"):
        core.multinomial_slopes(f, np.array([0, 1], dtype=np.int32), s, np.zeros((2, 2)), 1)
    with pytest.raises(ValueError, match="labels from 0 to 2"):
        Multinomial(np.array([3]), np.ones(1), 3)
