"""The squares of the pairwise loss, their second derivatives and their rounding errors against brute force."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.matrix import as_rows
from cutsvm.problem.certificate import gamma
from cutsvm.problem.losses import SquaredPairwise
from cutsvm.problem.pairs import PairOracle
from tests.problem.test_pairwise import problem, problems, some_scores
from tests.support.reference import pairwise
from tests.support.strategies import rng_of, seeds


@given(**problems, margin=st.sampled_from([1.0, 0.0, 0.5]), threads=st.integers(1, 3))
def test_slopes_and_sums(seed, n, levels, n_queries, margin, threads):
    f, y, s, starts = problem(rng_of(seed), n, levels, n_queries)
    loss = SquaredPairwise(y, s, starts, threads)
    found, (g, sums) = loss._square(f, margin), pairwise.squares(f, y, s, starts, margin)
    assert_allclose(found.slopes, g, rtol=1e-12, atol=1e-11)
    for mine, wanted in zip(found[1:], sums.T, strict=True):
        assert_allclose(mine, wanted, rtol=1e-12, atol=1e-10)
    assert loss.value(f) == pytest.approx(pairwise.squares(f, y, s, starts)[1][:, 1].sum(), rel=1e-12, abs=1e-10)
    assert loss.total == pytest.approx(loss.value(np.zeros(n)))


@given(**problems, threads=st.integers(1, 3))
def test_second_derivatives(seed, n, levels, n_queries, threads):
    rng = rng_of(seed)
    f, y, s, starts = problem(rng, n, levels, n_queries)
    H, v = pairwise.laplacian(f, y, s, starts), rng.normal(size=n)
    curvatures = SquaredPairwise(y, s, starts, threads).curvatures(f)
    assert_allclose(curvatures.product(v), H @ v, rtol=1e-11, atol=1e-10)
    assert_allclose(curvatures.diagonal, np.diagonal(H), rtol=1e-12)
    with pytest.raises(ValueError, match="one score"):
        curvatures.mixed(0, 1)


@given(seed=seeds, n=st.integers(2, 30), levels=st.integers(2, 30), scale=st.sampled_from([1.0, 1e3, 1e-3]))
def test_rounding_errors_are_within_their_bounds(seed, n, levels, scale):
    """In exact arithmetic, with scores far from 0 and weights of any size."""
    rng = rng_of(seed)
    f, y = scale * rng.normal(size=n) + rng.choice([0.0, 1e6]), rng.integers(0, levels, size=n)
    s, starts = 10.0 ** rng.uniform(-6, 6, size=n), np.array([0, n])
    y[:2] = 0, 1
    loss = SquaredPairwise(y, s, starts)
    out = np.empty(n)
    heights = loss.slopes(f, starts, out, balanced=True)
    exact = [Fraction(0)] * n
    value = Fraction(0)
    F, S = [Fraction(x) for x in f.tolist()], [Fraction(x) for x in s.tolist()]
    for i, j in pairwise.pairs(y, starts)[0]:
        short = max(Fraction(0), 1 - (F[i] - F[j]))
        value += S[i] * S[j] * short**2
        exact[i] -= 2 * S[i] * S[j] * short
        exact[j] += 2 * S[i] * S[j] * short
    offset = value - sum(g * score for g, score in zip(exact, F, strict=True))
    slack = 2.0 * gamma(n + 64) * heights.magnitudes[0]
    assert float(abs(Fraction(heights.offsets[0]) - offset)) <= slack
    assert float(abs(Fraction(loss.value(f)) - value)) <= slack
    wrong = sum(abs(Fraction(mine) - g) for mine, g in zip(out.tolist(), exact, strict=True))
    assert float(wrong) <= loss.slope_errors(heights)[0]
    assert slack <= loss.value_error(float(np.abs(f).max()))
    assert loss.precise(f, np.zeros(n)) == pytest.approx(float(value), rel=1e-12)
    assert Fraction(loss.precise(f, np.zeros(n), 1e-300)) >= value


def test_precise_loss_of_many_rows_is_an_upper_bound():
    """Too many for every pair to be evaluated: of the scores, and of any others as near as the error."""
    rng, n = np.random.default_rng(0), 1500
    f, y, s = rng.normal(size=n), rng.integers(0, 4, size=n), rng.random(n)
    loss = SquaredPairwise(y, s, np.array([0, 700, n]))
    rest, error = 1e-17 * rng.normal(size=n), 1e-9
    assert loss.precise(f, rest) == pytest.approx(loss.value(f), rel=1e-12)
    highest = loss.precise(f, rest, error)
    moved = f + error * np.sign(loss.squares(f).slopes)
    assert loss.value(f) < loss.value(moved) <= highest <= loss.value(f) * (1 + 1e-7)
    assert loss.value(moved) - loss.value(f) <= loss.change(loss.value(f), 2.0 * error)


def test_scores_far_from_zero():
    f, y, s, starts = problem(np.random.default_rng(0), 50, 5, 3)
    loss = SquaredPairwise(y, s, starts)
    assert loss.value(np.round(f) + 2.0**40) == pytest.approx(loss.value(np.round(f)), rel=1e-12)


@pytest.mark.parametrize("levels", [2, 10, 150_000])
def test_threads_do_not_change_a_bit(levels):
    """Enough rows of one query for several threads."""
    rng, n = np.random.default_rng(levels), 150_000
    f, y, s = np.round(rng.normal(size=n), 4), rng.integers(0, levels, size=n), rng.random(n)
    one, two = (SquaredPairwise(y, s, np.array([0, n]), threads) for threads in (1, 2))
    for a, b in zip(one.squares(f), two.squares(f), strict=True):
        assert_array_equal(a, b)
    for a, b in zip(one.products(f, s), two.products(f, s), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("weight", [1e-300, 1e-160, 1e160, 1e300])
def test_products_of_weights_neither_overflow_nor_underflow(weight):
    f, y, s, starts = problem(np.random.default_rng(1), 60, 4, 3)
    plain, scaled = SquaredPairwise(y, s, starts), SquaredPairwise(y, s * weight, starts)
    assert scaled.value(f) / scaled.total == pytest.approx(plain.value(f) / plain.total, rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite(bad):
    loss = SquaredPairwise(np.array([0, 1, 2, 0, 1]), np.ones(5), np.array([0, 3, 5]))
    found = loss.squares(np.array([0.0, bad, 1.0, 0.0, 0.0]))
    assert np.isnan(found.losses[0]) and found.losses[1] == 1.0
    assert_array_equal(found.slopes, [0.0, 0.0, 0.0, 2.0, -2.0])


def test_arrays_of_the_wrong_size_raise():
    y, s, starts, levels = np.zeros(3, np.int32), np.ones(3), np.array([0, 3]), np.array([1])
    f, g, memory = np.zeros(3), np.empty(3), core.PairMemory()
    with pytest.raises(ValueError, match="one entry per row"):
        core.pair_squares(y, s, starts, levels, np.zeros(2), 1.0, g, np.empty((1, 5)), memory, 1)
    with pytest.raises(ValueError, match="5 entries per query"):
        core.pair_squares(y, s, starts, levels, f, 1.0, g, np.empty((1, 4)), memory, 1)
    with pytest.raises(ValueError, match="one entry per row"):
        core.pair_products(y, s, starts, levels, f, 1.0, np.zeros(2), g, g, memory, 1)


@given(**problems, shards=st.integers(1, 30))
def test_planes_touch_the_loss(seed, n, levels, n_queries, shards):
    rng = rng_of(seed)
    _, y, s, starts = problem(rng, n, levels, n_queries)
    X, w = rng.integers(-3, 4, size=(n, 3)) / 2.0, rng.normal(size=3)
    oracle = PairOracle(as_rows(X, 1), SquaredPairwise(y, s, starts)).with_shards(shards)
    assert set(oracle.bounds) <= set(starts) and oracle.bounds[0] == 0 and oracle.bounds[-1] == n
    planes, here = oracle.planes(oracle.at(w)), oracle.value(oracle.at(w))
    assert planes.slopes.shape == (oracle.shards, 3)
    assert (planes.slopes @ w + planes.offsets).sum() == pytest.approx(here, rel=1e-9, abs=1e-9)
    other = rng.normal(size=3)
    there = oracle.value(oracle.at(other))
    assert (planes.slopes @ other + planes.offsets).sum() <= there + 1e-9 * (1.0 + here + there)


@given(**problems, tilt=st.floats(-20, 20), curvature=st.sampled_from([0.1, 3.0]))
def test_line_and_its_search(seed, n, levels, n_queries, tilt, curvature):
    rng = rng_of(seed)
    f, y, s, starts = problem(rng, n, levels, n_queries)
    loss, to = SquaredPairwise(y, s, starts), some_scores(rng, n)
    line, ks = loss.line(f, to), np.array([0.0, 0.3, 1.0, 1.7])
    look = line.evaluate(ks)
    values = [loss.value(f + k * (to - f)) for k in ks]
    assert_allclose(look.values, values, rtol=1e-9, atol=1e-9)
    for k, value, slope in zip(ks, look.values, look.slopes, strict=True):
        assert np.all(value + slope * (ks - k) <= np.array(values) + 1e-9 * (1 + abs(value)))

    def h(k):
        return loss.value(f + k * (to - f)) + tilt * k + 0.5 * curvature * k * k

    found = line.minimise(tilt, curvature, 1.0)
    best = min(map(h, np.concatenate([np.linspace(0, 4, 81), np.linspace(0, 100, 101)])))
    assert 0.0 <= found <= 100.0 and h(found) <= h(0.0) + 1e-9
    assert h(found) - best <= 0.02 * (h(0.0) - best) + 1e-9


def test_line_with_one_score_for_all():
    loss = SquaredPairwise(np.array([0, 1]), np.ones(2), np.array([0, 2]))
    look = loss.line(np.zeros(2)).evaluate(np.array([0.0, 5.0]))
    assert_array_equal(look.values, [1.0, 1.0])
    assert_array_equal(look.slopes, [0.0, 0.0])
