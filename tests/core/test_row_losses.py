"""Losses of one score per row against their twins, and what makes their dual variables bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from tests.support.reference.row_losses import LOSSES, random_alpha, random_loss
from tests.support.strategies import rng_of, seeds, sizes

SMOOTH = [name for name, kind in LOSSES.items() if kind.smooth]
Cs = st.sampled_from([1e-6, 0.3, 1.0, 1e5])
few = st.integers(1, 40)


def random_scores(rng, loss, n):
    """Some of them at the margin or at the edge of the tube, some far off."""
    f = rng.normal(size=n) * 10.0 ** rng.integers(-1, 3)
    edge = loss.y if hasattr(loss, "a") else loss.t + rng.choice([-1.0, 0.0, 1.0], size=n) * loss.epsilon
    return np.where(rng.random(n) < 0.3, edge, f)


def by_shards(rows, method, *args, shards, threads=1):
    """Offsets, sizes and magnitudes of a method."""
    bounds, out = np.linspace(0, rows.n, shards + 1).astype(np.int64), np.empty((3, shards))
    method(*args[:1], bounds, *args[1:], out, threads)
    return bounds, out


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=sizes, shards=st.integers(1, 4), threads=st.integers(1, 3))
def test_values_and_slopes(name, seed, n, shards, threads):
    rng = rng_of(seed)
    loss = random_loss(LOSSES[name], rng, n)
    rows, f, g = loss.rows(), random_scores(rng, loss, n), np.empty(n)
    assert rows.n == n
    assert rows.value(f, threads) == pytest.approx(loss.value(f).sum(), rel=1e-12)
    assert rows.value(f, threads) == rows.value(f, 1)
    bounds, (offsets, sizes_, magnitudes) = by_shards(rows, rows.slopes, f, g, shards=shards, threads=threads)
    tied = loss.value(f) > 0.0 if not loss.smooth else np.ones(n, dtype=bool)  # at an edge there are several slopes
    assert_allclose(g[tied], loss.slope(f)[tied], rtol=1e-12, atol=1e-300)
    planes = loss.value(f) - g * f
    scale = 1e-12 * (loss.value(f) + np.abs(g * f)).sum()
    assert_allclose(offsets, np.add.reduceat(planes, bounds[:-1]) * (np.diff(bounds) > 0), atol=scale)
    assert_allclose(sizes_, np.add.reduceat(np.abs(g), bounds[:-1]) * (np.diff(bounds) > 0), rtol=1e-12)
    assert np.all(magnitudes >= np.abs(offsets) * (1.0 - 1e-12))
    if loss.smooth:
        curvatures = np.empty(n)
        rows.curvatures(f, curvatures, threads)
        away = np.abs(loss.slope(f + 1e-9) - loss.slope(f - 1e-9)) > 0.0  # not at an edge, to this or that side of it
        assert_allclose(curvatures[away], loss.curvature(f)[away], rtol=1e-9, atol=2.0 * loss.s.max())


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=few)
def test_offsets_are_the_largest(name, seed, n):
    """Fenchel and Young: offset(g) + g f <= l(f) for all f and all legal g, and = for g = l'(f)."""
    rng = rng_of(seed)
    loss = random_loss(LOSSES[name], rng, n)
    rows, f, g = loss.rows(), random_scores(rng, loss, n), np.empty(n)
    by_shards(rows, rows.slopes, f, g, shards=1)
    value, scale = loss.value(f), 1e-12 * (loss.value(f) + np.abs(g * f)).sum()
    _, (offsets, *_) = by_shards(rows, rows.dual_heights, g, shards=1)
    assert_allclose(offsets.sum() + g @ f, value.sum(), atol=scale + 1e-300)
    other = -loss.y * random_alpha(loss, rng, 1.0)
    _, (offsets, sizes_, magnitudes) = by_shards(rows, rows.dual_heights, other, shards=1)
    assert_allclose(offsets, loss.offset(other).sum(), rtol=1e-12, atol=1e-12 * magnitudes[0])
    assert_allclose(sizes_, np.abs(other).sum(), rtol=1e-12)
    assert magnitudes[0] >= np.abs(loss.offset(other)).sum() * (1.0 - 1e-12)
    assert np.all(loss.offset(other) + other * f <= value + 1e-12 * (1.0 + value + np.abs(other * f)))


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=sizes, C=Cs, threads=st.integers(1, 3))
def test_gaps_and_dual_value(name, seed, n, C, threads):
    """A row's gap is 0 exactly if alpha stands for a slope at its score."""
    rng = rng_of(seed)
    loss = random_loss(LOSSES[name], rng, n)
    rows, f, alpha = loss.rows(), random_scores(rng, loss, n), random_alpha(loss, rng, C)
    gaps = np.empty(n)
    rows.gaps(f, alpha, C, gaps, threads)
    offsets = C * loss.offset(-loss.y * alpha / C)
    sizes_ = C * loss.value(f) + np.abs(alpha) * (4.0 + np.abs(f)) + np.abs(offsets)  # targets are below 4
    assert np.all(gaps >= -1e-15 * sizes_)
    assert np.all(np.abs(gaps - loss.gaps(f, alpha, C)) <= 1e-13 * sizes_)
    value = rows.dual_value(alpha, C, threads)
    assert value == rows.dual_value(alpha, C, 1)
    assert_allclose(value, offsets.sum(), rtol=1e-9, atol=1e-13 * sizes_.sum())
    rows.gaps(f, -C * loss.y * loss.slope(f), C, gaps, threads)
    assert np.all(np.abs(gaps) <= 1e-13 * C * (1.0 + np.abs(f)) * (loss.s + np.abs(loss.slope(f))))


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=few, C=Cs, above=st.floats(0.0, 2.0), below=st.floats(-2.0, 0.0))
def test_rows_at_rest(name, seed, n, C, above, below):
    """Their gap is 0, and stays so for scores that change by less than above or below."""
    rng = rng_of(seed)
    loss = random_loss(LOSSES[name], rng, n)
    rows, f, alpha = loss.rows(), random_scores(rng, loss, n), random_alpha(loss, rng, C)
    rest, gaps = np.empty(n, dtype=bool), np.empty(n)
    rows.at_rest(f, alpha, C, above, below, rest, 1)
    ranges = np.array([loss.range(i, alpha[i], C) for i in range(n)])
    m = loss.y * f
    clear = np.abs(m - ranges.T - np.array([[above], [below]])).min(axis=0) > 1e-9 * (1.0 + np.abs(m))
    assert_array_equal(rest[clear], ((m - ranges[:, 0] > above) & (m - ranges[:, 1] < below))[clear])
    for change in (-above, -below):
        rows.gaps(f + loss.y * change, alpha, C, gaps, 1)
        assert np.all(np.abs(gaps[rest]) <= 1e-12 * (C + np.abs(alpha) * (3.0 + np.abs(f)))[rest])


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=sizes, C=Cs, threads=st.integers(1, 3))
def test_clip(name, seed, n, C, threads):
    rng = rng_of(seed)
    loss = random_loss(LOSSES[name], rng, n)
    alpha = 3.0 * C * rng.normal(size=n)
    clipped = alpha.copy()
    loss.rows().clip(clipped, C, threads)
    assert_array_equal(clipped, [np.clip(alpha[i], *loss.limits(i, C)) for i in range(n)])


@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=few)
def test_a_part_is_the_loss_of_its_rows(name, seed, n):
    rng = rng_of(seed)
    loss = random_loss(LOSSES[name], rng, n)
    begin, end = np.sort(rng.integers(0, n + 1, size=2)).tolist()
    f = random_scores(rng, loss, n)
    expected = loss.value(f)[begin:end].sum()
    some = loss.rows().part(begin, end)
    assert some.n == end - begin
    assert some.value(f[begin:end], 1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("m", [-1e4, -800.0, -40.0, 40.0, 800.0, 1e4])
def test_logistic_far_from_the_margin(m):
    """Nothing overflows, and steps reach the optimum from either end."""
    loss, f = core.RowLoss("logistic", np.ones(1)), np.full(1, m)
    gaps = np.empty(1)
    for share in (0.0, 1e-300, 1e-17, 0.5, 1.0 - 1e-16, 1.0):
        loss.gaps(f, np.full(1, share), 1.0, gaps, 1)
        assert np.isfinite(gaps[0]) and gaps[0] >= -1e-12 * abs(m)
        alpha, w = np.full(1, share), np.array([m - share, 0.0])  # x = 1, and the other rows have w = m - share
        w[0] += share
        order = np.zeros(1, dtype=np.int32)
        core.Matrix(np.ones((1, 1))).descend((loss, np.ones(1), 1.0, 0.0, np.inf, -np.inf, alpha), order, w, 1, 0, 1)
        loss.gaps(w[:1], alpha, 1.0, gaps, 1)
        assert abs(gaps[0]) <= 1e-12 * abs(m)
        assert 0.0 <= alpha[0] <= 1.0


def test_invalid_arguments_raise():
    loss, two, three = core.RowLoss("hinge", np.ones(2)), np.zeros(2), np.zeros(3)
    calls = [
        lambda: loss.dual_value(three, 1.0, 1),
        lambda: loss.gaps(three, two, 1.0, two, 1),
        lambda: loss.gaps(two, three, 1.0, two, 1),
        lambda: loss.gaps(two, two, 1.0, three, 1),
        lambda: loss.at_rest(two, two, 1.0, 0.0, 0.0, np.empty(3, dtype=bool), 1),
        lambda: loss.clip(three, 1.0, 1),
        lambda: loss.part(0, 3),
        lambda: loss.part(-1, 1),
        lambda: loss.part(2, 1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="expected"):
            call()
    with pytest.raises(TypeError):  # a copy would lose what is written
        loss.clip(np.zeros(2, dtype=np.float32), 1.0, 1)
