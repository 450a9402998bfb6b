"""The tube loss: best intercepts, balanced slopes and precise values, at any scale of the targets."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.problem.line_search import exact
from cutsvm.problem.line_search.intercept import InterceptSettings
from cutsvm.problem.losses import Tube
from tests.support.reference import tube
from tests.support.strategies import next_to, rng_of, seeds, some_scores

SHAPES = st.sampled_from([(0.5, 1.0, 1.0), (0.0, 1.0, 1.0), (0.0, 0.9, 0.1), (0.3, 2.0, 0.5)])
SCALES = st.sampled_from([1e-6, 1.0, 1e6])


def some_loss(rng, n, shape, scale=1.0):
    epsilon, below, above = shape
    t = scale * (some_scores(rng, n) + rng.choice([0.0, 100.0]))
    return tube.Tube(t, rng.integers(0, 4, size=n) / 1.0, scale * epsilon, below, above)


def of_fractions(scores, loss):
    """The loss in exact arithmetic."""
    epsilon, below, above = map(Fraction, loss[2:])
    total = Fraction(0)
    for f, t, s in zip(scores, loss.t, loss.s, strict=True):
        r = Fraction(f) - Fraction(t)
        total += Fraction(s) * (below * max(0, -r - epsilon) + above * max(0, r - epsilon))
    return total


@given(seed=seeds, n=st.integers(1, 3000), shape=SHAPES, scale=SCALES)
def test_best_shift_is_a_quantile(seed, n, shape, scale):
    rng = rng_of(seed)
    loss = some_loss(rng, n, shape, scale)
    loss.s[0] = 1.0
    f = scale * some_scores(rng, n)
    found = Tube(*loss).best_shift(f)
    at, _ = tube.breakpoints(f, None, loss)
    lowest = min(tube.along(f, None, loss, k) for k in (at if n < 400 else rng.choice(at, 300)))
    assert tube.along(f, None, loss, found) <= lowest * (1 + 1e-9) + 1e-9 * scale


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_pinball_loss_finds_quantiles(quantile):
    t = np.random.default_rng(0).normal(size=1001)
    loss = Tube(t, np.ones(1001), 0.0, quantile, 1.0 - quantile)
    assert loss.best_shift(np.zeros(1001)) == pytest.approx(np.quantile(t, quantile, method="inverted_cdf"), abs=1e-2)


@given(seed=seeds, n=st.integers(2, 40), shape=SHAPES, decades=st.sampled_from([0, 6, 12, 30]))
def test_best_intercept_counts_light_rows_beside_heavy_ones(seed, n, shape, decades):
    rng = rng_of(seed)
    f, t = np.round(rng.normal(size=n), 2), np.round(rng.normal(size=n), 2)
    loss = tube.Tube(t, 10.0 ** rng.uniform(-decades / 2, decades / 2, size=n), *shape)
    found = Tube(*loss).best_shift(f)

    def lowest(places):
        return min(of_fractions([Fraction(x) + Fraction(float(k)) for x in f], loss) for k in places)

    assert lowest(next_to(found, f, t)) <= lowest(tube.breakpoints(f, None, loss)[0]) * Fraction(1 + 1e-11)


@given(seed=seeds, n=st.integers(2, 400), shape=SHAPES, most=st.sampled_from([1, 3, 20]))
def test_best_intercept_is_the_same_if_few_breakpoints_are_sorted(seed, n, shape, most):
    rng = rng_of(seed)
    t = rng.normal(size=5)[rng.integers(0, 5, n)]
    loss = Tube(t, rng.choice([0.0, 1.0], size=n) * 10.0 ** rng.uniform(-9, 9, size=n) + 1e-9, *shape)
    few = InterceptSettings(most=most, places=7, sample=16)
    f = some_scores(rng, n)
    assert loss.best_shift(f, counting=few) == loss.best_shift(f)


@given(seed=seeds, n=st.integers(2, 500), shape=SHAPES, scale=SCALES)
def test_balanced_slopes_sum_to_zero(seed, n, shape, scale):
    """With the best b, the tied rows can take up what is missing."""
    rng = rng_of(seed)
    loss = some_loss(rng, n, shape, scale)
    ours, g = Tube(*loss), np.empty(n)
    f = scale * some_scores(rng, n)
    f = f + ours.best_shift(f)
    heights = ours.slopes(f, np.array([0, n]), g, balanced=True)
    assert abs(g.sum()) <= 1e-9 * ours.steepness
    for other in (scale * some_scores(rng, n), loss.t + loss.epsilon, loss.t + scale * rng.normal(size=n)):
        assert tube.value(other, loss) >= g @ other + heights.offsets[0] - 1e-9 * heights.magnitudes[0]
    assert_allclose(ours.dual_heights(g, np.array([0, n])), heights)


@given(seed=seeds, n=st.integers(2, 400), shape=SHAPES, scale=SCALES)
def test_exact_search(seed, n, shape, scale):
    rng = rng_of(seed)
    loss = some_loss(rng, n, shape, scale)
    f, to = scale * some_scores(rng, n), loss.t + 0.1 * scale * rng.normal(size=n)
    tilt, curvature = scale * float(rng.normal() * n / 4), scale * float(rng.uniform(0.1, 5.0) * n)

    def h(k):
        return tube.along(f, to, loss, k) + tilt * k + 0.5 * curvature * k * k

    found = exact(Tube(*loss).line(f, to), tilt, curvature)
    for nearby in (0.0, found * (1 - 1e-4), found * (1 + 1e-4) + 1e-9, *np.linspace(0.0, 3.0, 50)):
        assert h(found) <= h(nearby) + 1e-9 * (abs(h(found)) + scale)


@given(seed=seeds, n=st.integers(1, 30), shape=SHAPES, far=st.sampled_from([0.0, 1.0, 1e8]))
def test_precise(seed, n, shape, far):
    """To the last digits for rows on a breakpoint, and no less than exact with an error."""
    rng = rng_of(seed)
    t = rng.normal(size=n) + far
    loss = tube.Tube(t, rng.random(n), *shape)
    scores = t + rng.choice([-1.0, 0.0, 1.0], size=n) * loss.epsilon
    rest = 1e-17 * (1.0 + far) * rng.normal(size=n)
    expected = of_fractions([Fraction(f) + Fraction(r) for f, r in zip(scores, rest, strict=True)], loss)
    ours = Tube(*loss)
    assert ours.precise(scores, rest) == pytest.approx(float(expected), rel=1e-6, abs=1e-300)
    assert Fraction(ours.precise(scores, rest, 1e-12 * (1.0 + far))) >= expected


@given(seed=seeds, n=st.integers(1, 200), shape=SHAPES, band=st.sampled_from([0.1, 1.0]))
def test_means_of_groups_are_below_the_loss(seed, n, shape, band):
    """Jensen: a group's mean row with the mean target costs no more than its rows, and as much where they were put."""
    rng = rng_of(seed)
    loss = some_loss(rng, n, shape)
    ours, f, group = Tube(*loss), some_scores(rng, n), np.empty(n, dtype=np.int32)
    kept = ours.sift(f, band, group)
    sums = ours.target_sums(group)
    for k in range(ours.groups):
        mine = np.flatnonzero(group == k)
        weight = loss.s[mine].sum()
        assert sums[k] == pytest.approx(loss.s[mine] @ loss.t[mine], abs=1e-9)
        if weight == 0.0:
            continue
        mean = ours.of_groups(np.array([k]), np.array([weight]), sums[k : k + 1] / weight)
        for scores, same in ((f, True), (some_scores(rng, n), False)):
            whole = ours.take(mine).value(np.ascontiguousarray(scores[mine]))
            one = mean.value(np.array([loss.s[mine] @ scores[mine] / weight]))
            assert one <= whole + 1e-9
            assert not same or one == pytest.approx(whole, abs=1e-9)
    assert_array_equal(kept, np.flatnonzero(group == core.KEPT))
    assert np.all(ours.distances(f, np.flatnonzero((group != core.KEPT) & (loss.s > 0.0))) > band)


@pytest.mark.parametrize("n", [0, 3])
def test_no_weight_and_no_rows(n):
    loss = Tube(np.arange(n, dtype=float), np.zeros(n), 0.1)
    assert loss.total == loss.weight == loss.value(np.ones(n)) == 0.0
    assert np.isfinite(loss.best_shift(np.zeros(n)))
