"""The tail loss: its value, planes and slopes along lines against sorts, with ties, weights and repeated rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.problem.losses.tail import TailMean, quantile
from tests.support.reference import one_class
from tests.support.strategies import rng_of, seeds, sizes, some_scores

nus = st.sampled_from([1e-3, 0.01, 0.07, 0.1, 0.3, 0.5, 0.9, 1.0])


def some_weights(rng, n):
    s = rng.choice([0.0, 0.5, 1.0, 2.0, 3.7], size=n) if rng.random() < 0.7 else np.full(n, rng.choice([1.0, 0.3]))
    s[rng.integers(n)] = 1.0
    return s


@given(seed=seeds, n=sizes, nu=nus)
def test_value_is_that_of_sorted_scores(seed, n, nu):
    rng = rng_of(seed)
    f, s = some_scores(rng, n), some_weights(rng, n)
    mean = one_class.tail_mean(f, s, nu)
    loss = TailMean(s, nu)
    assert loss.tail(f).mean == pytest.approx(mean, abs=1e-11)
    assert loss.value(f) == pytest.approx(max(0.0, 1.0 - mean), abs=1e-11)
    assert loss.precise(f, np.zeros(n)) == pytest.approx(loss.value(f), abs=1e-13)
    assert loss.value(f + loss.best_shift(f)) == pytest.approx(0.0, abs=1e-11)
    lines = [0.5, 1.0, -2.0, float(np.median(f)), loss.tail(f).quantile]
    assert max(loss.mean_at(f, rho) for rho in lines) <= mean + 1e-11


@given(seed=seeds, n=st.integers(1, 40), nu=nus)
def test_planes_touch_the_loss_and_are_nowhere_above(seed, n, nu):
    rng = rng_of(seed)
    f, s, g = some_scores(rng, n) - 1.0, some_weights(rng, n), np.empty(n)
    loss = TailMean(s, nu)
    offsets, sizes, magnitudes = loss.slopes(f, np.array([0, n]), g, balanced=False)
    alpha = -g
    assert offsets == sizes == 1.0 and magnitudes == 0.0
    assert np.all(alpha >= 0.0) and alpha.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(alpha <= s / (nu * s.sum()) * (1.0 + 1e-12))
    assert 1.0 - alpha @ f == pytest.approx(1.0 - one_class.tail_mean(f, s, nu), abs=1e-10)
    for other in rng.normal(size=(20, n)) * 3.0:
        assert 1.0 - alpha @ other <= loss.value(other) + 1e-11


@given(seed=seeds, n=st.integers(1, 40), nu=nus)
def test_ties_share_the_tail_by_weight(seed, n, nu):
    rng = rng_of(seed)
    s, g = some_weights(rng, n), np.empty(n)
    TailMean(s, nu).slopes(np.full(n, 0.3), np.array([0, n]), g, balanced=False)
    np.testing.assert_allclose(-g, s / s.sum(), rtol=1e-12)


@given(seed=seeds, n=st.integers(1, 60), nu=nus)
def test_line_has_values_and_slopes_on_the_right(seed, n, nu):
    rng = rng_of(seed)
    f, to, s = some_scores(rng, n) - 1.0, some_scores(rng, n) - 1.0, some_weights(rng, n)
    loss = TailMean(s, nu)
    ks = np.array([0.0, 0.25, 0.7, 1.0])
    found = loss.line(f, to).evaluate(ks)
    for k, value, slope in zip(ks, found.values, found.slopes, strict=True):
        here, ahead = f + k * (to - f), f + (k + 1e-6) * (to - f)
        assert value == pytest.approx(loss.value(here), abs=1e-11)
        if value > 1e-3:
            rise = one_class.tail_mean(here, s, nu) - one_class.tail_mean(ahead, s, nu)
            assert slope <= 1e-6 + rise / 1e-6 + 1e-4  # of a convex function: no larger than any difference
            assert slope >= rise / 1e-6 - 1e-4 - 1e-6 * np.abs(to - f).max() / nu


@given(seed=seeds, n=sizes, size=st.floats(0.0, 1.0))
def test_quantile_of_weights_is_that_of_sorted_scores(seed, n, size):
    rng = rng_of(seed)
    f, s = some_scores(rng, n), rng.integers(0, 4, size=n).astype(float)
    s[rng.integers(n)] = 1.0
    order = np.argsort(f, kind="stable")
    heap = np.cumsum(s[order])
    wanted = max(1e-3, size * heap[-1])
    assert quantile(f, s, wanted) == f[order[np.searchsorted(heap, wanted)]]
    whole = np.repeat(f, s.astype(int))
    assert quantile(f, s, wanted) == quantile(whole, None, wanted)


def test_last_digits():
    """Rest digits count, and an error makes the loss no smaller."""
    rng = np.random.default_rng(0)
    f, s = rng.normal(size=200), np.ones(200)
    loss, rest = TailMean(s, 0.3), 1e-12 * rng.normal(size=200)
    mean = one_class.tail_mean(f + rest, s, 0.3)
    assert loss.precise(f, rest) == pytest.approx(1.0 - mean, rel=1e-14)
    for _ in range(20):
        moved = f + rest + 1e-9 * rng.uniform(-1, 1, size=200)
        assert loss.precise(f, rest, 1e-9) >= 1.0 - one_class.tail_mean(moved, s, 0.3)
