"""The pairwise loss, its line, thresholds and queries against brute force."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from cutsvm import pair_accuracy
from cutsvm._native import core
from cutsvm._utils import queries
from cutsvm.estimators._thresholds import best_thresholds, level_of
from cutsvm.matrix import as_rows
from cutsvm.problem.line_search import Exact, by_tangents
from cutsvm.problem.line_search.tangents import TangentSettings
from cutsvm.problem.losses import Pairwise
from cutsvm.problem.pairs import PairOracle
from tests.support.reference import pairwise
from tests.support.strategies import rng_of, seeds

COSTS = {"absolute": lambda y, at: np.abs(y - at), "zero_one": lambda y, at: y != at}


def some_scores(rng, n):
    """Half of the time with many ties among each other and at a distance of 1."""
    return rng.integers(-4, 5, size=n) / 2.0 if rng.random() < 0.5 else rng.normal(size=n)


def problem(rng, n, levels, n_queries):
    """Scores, values y of up to so many levels, weights (some of them 0), and where queries start; some are empty."""
    y = rng.permutation(n) / 7.0 if levels >= n else rng.integers(0, levels, size=n) * 1.5 - 1.0
    s = rng.integers(0, 4, size=n) / 2.0 if rng.random() < 0.5 else np.ones(n)
    starts = np.concatenate([[0], np.sort(rng.integers(0, n + 1, size=n_queries - 1)), [n]]).astype(np.int64)
    return some_scores(rng, n), y, s, starts


problems = {
    "seed": seeds,
    "n": st.integers(1, 60) | st.sampled_from([129, 150]),  # few rows, and enough to be sorted
    "levels": st.integers(1, 60) | st.just(150),
    "n_queries": st.integers(1, 10) | st.just(100),
}


@given(**problems, margin=st.sampled_from([1.0, 0.0, 0.5]), threads=st.integers(1, 3))
def test_evaluation(seed, n, levels, n_queries, margin, threads):
    f, y, s, starts = problem(rng_of(seed), n, levels, n_queries)
    loss = Pairwise(y, s, starts, threads)
    expected = pairwise.evaluate(f, y, s, starts, margin)
    for found, wanted in zip(loss.count(f, margin), expected, strict=True):
        assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert loss.value(f) == pytest.approx(pairwise.evaluate(f, y, s, starts)[2].sum(), rel=1e-12, abs=1e-12)
    assert loss.total == pytest.approx(sum(s[i] * s[j] for query in pairwise.pairs(y, starts) for i, j in query))


@pytest.mark.parametrize("levels", [2, 10, 150_000])
def test_threads_do_not_change_a_bit(levels):
    """Enough rows of one query for several threads."""
    rng, n = np.random.default_rng(levels), 150_000
    f, y, s = np.round(rng.normal(size=n), 4), rng.integers(0, levels, size=n), rng.random(n)
    one, two = (Pairwise(y, s, np.array([0, n]), threads).count(f, 1.0) for threads in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [2, 10, 33, 1025, 20_000])
def test_many_rows_and_levels(levels):
    """Trees of several depths, and an order found by counting, against pairs in blocks.

    Of thousandths that differ by 1 round-off would say which pairs count: the margin is a bit less.
    """
    rng, n, margin = np.random.default_rng(levels), 20_000, 1.0 - 1e-12
    f, y = np.round(rng.normal(size=n), 3), rng.integers(0, levels, size=n)
    results = []
    for threads in (1, 2, 5):
        results.append(Pairwise(y, np.ones(n), np.array([0, n]), threads).count(f, margin))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert_array_equal(a, b)
    expected, loss = np.zeros(n), 0.0
    for rows in np.array_split(np.arange(n), 50):
        counts = (y[rows, None] > y) & (f[rows, None] - f < margin)
        expected[rows] -= counts.sum(axis=1)
        expected += counts.sum(axis=0)
        loss += ((margin - (f[rows, None] - f)) * counts).sum()
    assert_array_equal(results[0].slopes, expected)
    assert results[0].losses[0] == pytest.approx(loss)


def test_cache_is_used_for_the_same_scores_only():
    """Arrays of scores are used again and again by solvers, with other numbers in them."""
    f, y, s, starts = problem(np.random.default_rng(3), 30, 4, 2)
    loss = Pairwise(y, s, starts)
    first = loss.value(f)
    f[7] += 1.5
    assert loss.value(f) == pytest.approx(pairwise.evaluate(f, y, s, starts)[2].sum()) != first


def test_counts_are_exact_beyond_32_bits():
    """200,000 rows make 10^10 pairs, every one of them counted."""
    n = 200_000
    y = np.arange(n) % 2
    loss = Pairwise(y, np.ones(n), np.array([0, n]), 2)
    assert loss.total == (n // 2) ** 2
    assert loss.misordered(y.astype(float)).sum() == 0.0
    assert loss.misordered(-y.astype(float)).sum() == (n // 2) ** 2


def test_scores_far_from_zero():
    """The slopes sum to 0, so that an offset of all scores must not change the loss."""
    f, y, s, starts = problem(np.random.default_rng(0), 50, 5, 3)
    loss = Pairwise(y, s, starts)
    assert loss.value(f + 2.0**30) == pytest.approx(loss.value(np.round(f * 2**20) / 2**20), rel=1e-4)
    assert loss.value(np.round(f) + 2.0**40) == pytest.approx(loss.value(np.round(f)), rel=1e-12)


@pytest.mark.parametrize("n", [40, 300])  # every pair looked at, and sorted
@pytest.mark.parametrize("levels", [2, 5, 40])
@pytest.mark.parametrize("heavy", ["lowest", "highest", "middle"])
def test_heavy_level_does_not_absorb_the_others(n, levels, heavy):
    """Slopes are sums of what is asked for, never the difference of two sums over all levels."""
    rng = np.random.default_rng(n + levels)
    f, y, s = rng.normal(size=n), rng.integers(0, levels, size=n), rng.integers(1, 9, size=n) / 4.0
    y[:levels] = np.arange(levels)
    s[y == {"lowest": 0, "highest": levels - 1, "middle": levels // 2}[heavy]] *= 2.0**60
    found = Pairwise(y, s, np.array([0, n])).count(f, 1.0)
    counts = (y[:, None] > y) & (f[:, None] - f < 1.0)
    above, below = (np.array([fsum(s[row]) for row in mask]) for mask in (counts, counts.T))
    assert_allclose(found.slopes, s * (below - above), rtol=1e-13, atol=0)
    assert found.weights[0] == pytest.approx(fsum(s * above), rel=1e-13)


def test_heavy_query_does_not_absorb_the_others():
    """Totals and the offsets of planes are sums over queries of their own."""
    rng = np.random.default_rng(0)
    y, f, starts = np.tile([0, 1, 2, 1], 5), rng.normal(size=20), np.arange(0, 21, 4)
    y[:4] = 3  # no pair
    s = np.ones(20)
    alone = Pairwise(y, s, starts)
    s[:4] = 1e14
    heavy = Pairwise(y, s, starts)
    assert heavy.total == alone.total == 20.0
    s[4:8] = 1e10
    offsets = [
        Pairwise(y, weights, starts).slopes(f, starts, np.empty(20), balanced=True).offsets for weights in (s, s**0)
    ]
    assert_array_equal(offsets[0][2:], offsets[1][2:])


@pytest.mark.parametrize("weight", [1e-300, 1e-160, 1e160, 1e300])
def test_products_of_weights_neither_overflow_nor_underflow(weight):
    f, y, s, starts = problem(np.random.default_rng(1), 60, 4, 3)
    plain, scaled = Pairwise(y, s, starts), Pairwise(y, s * weight, starts)
    assert scaled.value(f) / scaled.total == pytest.approx(plain.value(f) / plain.total, rel=1e-12)
    y, s = np.array([0, 1]), np.array([weight, 3.0 / weight])
    assert Pairwise(y, s, np.array([0, 2])).n_pairs == pytest.approx(3.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite(bad):
    f = np.array([0.0, bad, 1.0])
    assert np.isnan(Pairwise(np.array([0, 1, 2]), np.ones(3), np.array([0, 3])).value(f))


def test_arrays_of_the_wrong_size_raise():
    y, s, starts, levels = np.zeros(3, np.int32), np.ones(3), np.array([0, 3]), np.array([1])
    f, g, one, memory = np.zeros(3), np.empty(3), np.empty(1), core.PairMemory()
    with pytest.raises(ValueError, match="one entry per row"):
        core.pair_slopes(y, s, starts, levels, np.zeros(2), 1.0, g, one, one, memory, 1)
    with pytest.raises(ValueError, match="one entry per query"):
        core.pair_slopes(y, s, starts, levels, f, 1.0, g, np.empty(2), one, memory, 1)
    with pytest.raises(ValueError, match="one entry per query"):
        core.pair_slopes(y, s, np.array([0, 1, 3]), levels, f, 1.0, g, one, one, memory, 1)
    with pytest.raises(ValueError, match="rising from 0 to n"):
        core.pair_slopes(y, s, np.array([0, 2]), levels, f, 1.0, g, one, one, memory, 1)


@given(**problems, shards=st.integers(1, 30))
def test_planes_touch_the_loss(seed, n, levels, n_queries, shards):
    rng = rng_of(seed)
    _, y, s, starts = problem(rng, n, levels, n_queries)
    X, w = rng.integers(-3, 4, size=(n, 3)) / 2.0, rng.normal(size=3)
    oracle = PairOracle(as_rows(X, 1), Pairwise(y, s, starts)).with_shards(shards)
    assert set(oracle.bounds) <= set(starts) and oracle.bounds[0] == 0 and oracle.bounds[-1] == n
    planes = oracle.planes(oracle.at(w))
    assert planes.slopes.shape == (oracle.shards, 3)
    assert (planes.slopes @ w + planes.offsets).sum() == pytest.approx(oracle.value(oracle.at(w)), abs=1e-9)
    other = rng.normal(size=3)
    assert (planes.slopes @ other + planes.offsets).sum() <= oracle.value(oracle.at(other)) + 1e-9


@given(**problems, tilt=st.floats(-20, 20), curvature=st.sampled_from([0.0, 0.1, 3.0]))
def test_line_and_its_search(seed, n, levels, n_queries, tilt, curvature):
    rng = rng_of(seed)
    f, y, s, starts = problem(rng, n, levels, n_queries)
    loss, to = Pairwise(y, s, starts), some_scores(rng, n)
    line = loss.line(f, to)
    assert not hasattr(line, "crossing")
    ks = np.array([0.0, 0.3, 1.0, 1.7])
    look = line.evaluate(ks)
    values = [loss.value(f + k * (to - f)) for k in ks]
    assert_allclose(look.values, values, rtol=1e-9, atol=1e-9)
    for k, value, slope in zip(ks, look.values, look.slopes, strict=True):
        assert np.all(value + slope * (ks - k) <= np.array(values) + 1e-9 * (1 + abs(value)))

    def h(k):
        return loss.value(f + k * (to - f)) + tilt * k + 0.5 * curvature * k * k

    found = by_tangents(line, tilt, curvature, 1.0)
    best = min(map(h, np.concatenate([np.linspace(0, 4, 81), np.linspace(0, 100, 101)])))
    assert 0.0 <= found <= 100.0 and h(found) <= h(0.0) + 1e-9
    nearer = by_tangents(line, tilt, curvature, 1.0, TangentSettings(flat=0.0))  # else it ends at half the slope
    assert h(nearer) - best <= 0.02 * (h(0.0) - best) + 1e-9


def test_line_with_one_score_for_all():
    loss = Pairwise(np.array([0, 1]), np.ones(2), np.array([0, 2]))
    look = loss.line(np.zeros(2)).evaluate(np.array([0.0, 5.0]))
    assert_array_equal(look.values, [1.0, 1.0])
    assert_array_equal(look.slopes, [0.0, 0.0])


@given(**problems)
def test_pair_accuracy(seed, n, levels, n_queries):
    f, y, s, starts = problem(rng_of(seed), n, levels, n_queries)
    qid = np.repeat(np.arange(n_queries), np.diff(starts))
    if not any(s[i] * s[j] for query in pairwise.pairs(y, starts) for i, j in query):
        with pytest.raises(ValueError, match=r"no pair|zero for every row"):
            pair_accuracy(f, y, qid, s)
        return
    shuffled = rng_of(seed).permutation(n)
    found = pair_accuracy(f[shuffled], y[shuffled], qid[shuffled], s[shuffled])
    assert found == pytest.approx(pairwise.in_order(f, y, s, starts))


def test_pair_accuracy_of_two_levels_is_the_roc_area():
    rng = np.random.default_rng(0)
    f, y, s = np.round(rng.normal(size=500), 1), rng.integers(0, 2, 500), rng.random(500)
    assert pair_accuracy(f, y, None, s) == pytest.approx(roc_auc_score(y, f, sample_weight=s))


@pytest.mark.parametrize("loss", COSTS)
@given(seed=seeds, n=st.integers(1, 7), count=st.integers(2, 4))
def test_thresholds_are_the_best(loss, seed, n, count):
    rng = rng_of(seed)
    f, levels, s = some_scores(rng, n), rng.integers(0, count, size=n), rng.integers(0, 4, size=n) / 2.0
    s[0] = 1.0
    thresholds = best_thresholds(f, levels, s, count, loss)
    assert thresholds.shape == (count - 1,) and np.all(np.diff(thresholds) >= 0)
    cost = (s * COSTS[loss](levels, level_of(f, thresholds))).sum()
    assert cost == pytest.approx(pairwise.lowest_cost(f, levels, s, count, COSTS[loss]))


@pytest.mark.parametrize("loss", COSTS)
@pytest.mark.parametrize("weight", [1e17, 1e100])
def test_thresholds_count_light_rows_beside_heavy_ones(loss, weight):
    """Row 0 is at its place whatever the threshold; the others, of the same scores as without it, decide."""
    scores, levels, weights = np.arange(7.0), np.array([0, 0, 1, 0, 1, 1, 1]), np.ones(7)
    weights[0] = weight
    assert_array_equal(best_thresholds(scores, levels, weights, 2, loss), [3.5])


def test_thresholds_between_neighbouring_floats():
    low = 1.0
    high = np.nextafter(low, 2.0)
    thresholds = best_thresholds(np.array([low, high]), np.array([0, 1]), np.ones(2), 2, "absolute")
    assert level_of(np.array([low, high]), thresholds).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("qid", "same_as"),
    [
        ([3, 3, 1, 3], [0, 0, 1, 0]),
        (["b", "b", "a", "b"], [0, 0, 1, 0]),
        (np.array(["b", 3, (1, 2), "b"], dtype=object), [0, 1, 2, 0]),
        (np.array([2.0, 2.0, 1.0, 1.0]), [0, 0, 1, 1]),
        (None, [0, 0, 0, 0]),
    ],
)
def test_ids_of_any_kind(qid, same_as):
    codes, same_as = queries.encode(qid, 4), np.array(same_as)
    assert_array_equal(codes[:, None] == codes, same_as[:, None] == same_as)


@pytest.mark.parametrize(
    ("qid", "words"),
    [
        ([1, 2], r"qid has 2 entries: expected one id for each of the 3 rows"),
        ([[1], [2], [3]], r"qid has the shape \(3, 1\)"),
        ([1.0, np.nan, 2.0], r"qid\[1\] is missing"),
        (np.array(["a", "b", None], dtype=object), r"qid\[2\] is missing"),
    ],
)
def test_bad_ids(qid, words):
    with pytest.raises(ValueError, match=words):
        queries.encode(qid, 3)


def test_ids_that_cannot_be_compared():
    with pytest.raises(TypeError, match="expected numbers or text"):
        queries.encode(np.array([[1], {}, 2], dtype=object), 3)


def test_rows_of_a_query_become_contiguous():
    order, starts = queries.query_by_query(np.array([2, 2, 0, 1, 1]))
    assert order is None and starts.tolist() == [0, 2, 3, 5]
    order, starts = queries.query_by_query(np.array([1, 0, 1, 0]))
    assert order is not None and order.tolist() == [1, 3, 0, 2] and starts.tolist() == [0, 2, 4]


@pytest.mark.parametrize("queries", [1, 3, 4000])
def test_sample_approximates_all_pairs(queries):
    """The loss along a line of scores from few of the rows: whole queries where those are many."""
    rng, n = np.random.default_rng(queries), 40_000
    starts = np.linspace(0, n, queries + 1).astype(np.int64)
    y, s = rng.integers(0, 4, size=n), rng.random(n)
    f = 0.5 * y + rng.normal(size=n)
    loss = Pairwise(y, s, starts)
    line = loss.line(f, 2.0 * f)
    few = line.sample()
    assert few is not None and 1000 < few.n < 4000
    ks = np.array([-0.5, 0.0, 1.0])
    some, all_rows = few.evaluate(ks), line.evaluate(ks)
    np.testing.assert_allclose(some.values, all_rows.values, rtol=0.1)
    np.testing.assert_allclose(some.slopes, all_rows.slopes, atol=0.1 * np.abs(all_rows.slopes).max())
    if queries == 4000:  # a query is there as a whole or not at all
        picked = loss.sample
        assert set(np.diff(picked.loss.starts)) <= {0, *np.diff(starts)}


def test_no_sample_of_few_rows_or_without_pairs():
    n = 40_000
    assert Pairwise(np.arange(100.0), np.ones(100), np.array([0, 100])).line(np.zeros(100)).sample() is None
    rare = np.zeros(n)
    rare[1] = 1.0
    assert Pairwise(rare, np.ones(n), np.array([0, n])).line(np.zeros(n)).sample() is None


def test_zero_step_is_no_start_of_the_next_search():
    """The next search would have to double its step many times."""
    y, f = np.array([0.0, 1.0]), np.array([0.0, 0.5])
    search, seen = Exact(), []
    assert search(Pairwise(y, np.ones(2), np.array([0, 2])).line(f, -f), 0.0, 1.0) == 0.0
    line = Pairwise(y, np.ones(2), np.array([0, 2])).line(f, 2.0 * f)
    evaluate = line.evaluate
    line.evaluate = lambda ks: (seen.append(ks[0]), evaluate(ks))[1]
    search(line, 0.0, 0.1)
    assert seen[:2] == [0.0, 1.0]
