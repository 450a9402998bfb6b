"""Arrays as parts: what the first reading finds does not depend on the parts, and what is wrong is named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm.cluster.facts import DrawSettings
from cutsvm.cluster.fetch import fetch, rows_with_label
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, is_collection, open_parts, split_arrays
from tests.support.collections import add, facts_bits, rows_of

SMALL = OpenSettings(
    layout=LayoutSettings(fewest_rows=16, least=8), draw=DrawSettings(sample_size=lambda n, d: n // 3, measured=40)
)


def made_rows(n, *, is_sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    if is_sparse:
        X = sparse.csr_matrix(X * (rng.random(X.shape) < 0.4))
    return X, rng.integers(0, 3, n), rng.random(n) * (rng.random(n) < 0.8)


def opened(parts, **options):
    return open_parts(parts, executor=Local(1), settings=SMALL, **options)


@given(
    n=st.integers(20, 200),
    is_sparse=st.booleans(),
    targets=st.sampled_from(["classes", "numbers", "none"]),
    data=st.data(),
)
def test_facts_are_the_same_bits_for_any_parts(n, is_sparse, targets, data):
    X, y, weights = made_rows(n, is_sparse=is_sparse)
    whole = opened([(X, y, weights)], targets=targets)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=12)))
    again = opened(split_arrays(X, y, weights, parts=cuts), targets=targets)
    assert facts_bits(again.facts) == facts_bits(whole.facts)
    np.testing.assert_array_equal(again.layout.edges, whole.layout.edges)


def test_facts():
    X, y, weights = made_rows(500)
    facts = opened(split_arrays(X, y, weights, parts=3)).facts
    assert (facts.n, facts.d, facts.entries, facts.sparse, facts.weighted) == (500, 5, 2500, False, True)
    used = weights > 0
    assert facts.weight == pytest.approx(weights.sum())
    assert facts.squares == pytest.approx((X**2).sum() / 500)
    np.testing.assert_array_equal(facts.labels.labels, [0, 1, 2])
    np.testing.assert_array_equal(facts.labels.counts, np.bincount(y[used]))
    np.testing.assert_allclose(facts.labels.weights, np.bincount(y, weights))
    np.testing.assert_array_equal(facts.magnitudes.low, X.min(axis=0))
    np.testing.assert_array_equal(facts.magnitudes.high, X.max(axis=0))
    for drawn, about in ((facts.sample, 166), (facts.measured, 40)):
        assert abs(len(drawn.numbers) - about) < 50
        assert (np.diff(drawn.numbers) > 0).all()
        np.testing.assert_array_equal(drawn.block.X, X[drawn.numbers])
        np.testing.assert_array_equal(drawn.block.y, y[drawn.numbers])
        np.testing.assert_array_equal(drawn.block.weights, weights[drawn.numbers])
    assert not np.array_equal(facts.sample.numbers[:20], facts.measured.numbers[:20])


def test_facts_of_numbers():
    X, y, weights = made_rows(300)
    y = np.where(weights > 0, y - 0.5, 1e9)
    facts = opened(split_arrays(X, y, weights, parts=4), targets="numbers").facts
    assert (facts.labels.low, facts.labels.high, len(facts.labels.labels)) == (-0.5, 1.5, 0)
    expected = [(weights * own).sum() for own in (np.ones(300), y, np.abs(y), y * y)]
    np.testing.assert_allclose(facts.labels.sums, expected)


def test_all_rows_are_drawn_where_there_are_few():
    X, y, _ = made_rows(30)
    facts = open_parts(X, y).facts
    np.testing.assert_array_equal(facts.measured.block.X, X)
    assert not facts.weighted and facts.weight == 30.0


def test_labels_of_rows_without_weight_do_not_count():
    X, y, _ = made_rows(100)
    weights = (y != 1).astype(float)
    np.testing.assert_array_equal(opened(split_arrays(X, y, weights, parts=3)).facts.labels.labels, [0, 2])
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        opened([(X, y, np.zeros(100))])


def test_labels_may_be_text():
    X, y, _ = made_rows(100)
    names = np.array(["no", "maybe", "yes"], dtype=object)[y]
    facts = opened([(X[:3], names[:3]), (X[3:], names[3:].astype(str))]).facts
    assert facts.labels.labels.tolist() == ["maybe", "no", "yes"]


def test_parts_of_any_size_and_type():
    X, y, _ = made_rows(100)
    X = X.astype(np.float32).astype(np.float64)
    whole = opened([(X, y)])
    parts = [
        (np.empty((0, 0)), np.empty(0)),
        (X[:1].astype(np.float32), y[:1]),
        (np.asfortranarray(X[1:60]), y[1:60].astype(float)),
        (X[:0], y[:0]),
        (X[60:].tolist(), y[60:].tolist()),
    ]
    assert facts_bits(opened(parts).facts) == facts_bits(whole.facts)


def test_dense_and_sparse_parts_together():
    X, y, _ = made_rows(100, is_sparse=True)
    whole = opened([(X, y)])
    assert whole.facts.sparse
    facts = opened([(X[:50].tocsc(), y[:50]), (X[50:].toarray(), y[50:])]).facts
    assert facts.sparse and facts.fingerprints[0] == whole.facts.fingerprints[0]


def changed(values, place, value):
    values = np.array(values, dtype=float)
    values[place] = value
    return values


X, Y, WEIGHTS = made_rows(60)


@pytest.mark.parametrize(
    "second, message",
    [
        ((changed(X, (7, 2), np.nan), Y, WEIGHTS), "part 1: row 7, column 2: expected a finite number, found nan"),
        ((changed(X, (50, 0), np.inf), Y, WEIGHTS), "part 1: row 50, column 0: expected a finite number, found inf"),
        ((X, changed(Y, 9, np.nan), WEIGHTS), "part 1: row 9: expected a label, found nan"),
        ((X, Y, changed(WEIGHTS, 11, -1)), "part 1: row 11: expected a finite weight, 0 or more, found -1"),
        ((X, Y, changed(WEIGHTS, 11, np.nan)), "part 1: row 11: expected a finite weight, 0 or more, found nan"),
        ((X[:, :4], Y, WEIGHTS), "part 1: 4 columns, where part 0 has 5"),
        ((X, Y[:-1], WEIGHTS), "part 1: 60 rows but labels of shape"),
        ((X, Y, WEIGHTS[:-1]), "part 1: 60 rows but weights of shape"),
        ((X, Y), "part 1: there are no weights, which other parts have"),
        ((X, None, WEIGHTS), "part 1: there are no labels"),
        ((X, Y.astype(str), WEIGHTS), "labels are text in some parts and numbers in others"),
        ((X, np.where(Y > 0, Y, None), WEIGHTS), "part 1: row .*: expected a label, found None"),
        ((X.astype(str), Y, WEIGHTS), "part 1: from row 0 on: expected numbers"),
        ((X[0], Y, WEIGHTS), "part 1: expected a matrix, rows x features, found the shape"),
    ],
)
def test_errors_name_part_row_and_column(second, message):
    with pytest.raises(DataError, match=message):
        opened([(X, Y, WEIGHTS), second])


def test_errors_about_targets():
    with pytest.raises(DataError, match="part 0: from row 0 on: expected numbers as y"):
        opened([(X, Y.astype(str))], targets="numbers")
    with pytest.raises(DataError, match="no rows"):
        opened([(X[:0], Y[:0])])
    few = OpenSettings(draw=DrawSettings(most_labels=10))
    with pytest.raises(DataError, match="Unknown label type: y has more than 10 distinct values"):
        open_parts(X, X[:, 0], settings=few)


def test_fetch():
    X, y, weights = made_rows(300)
    parts = opened(split_arrays(X, y, weights, parts=7))
    before = parts.executor.traffic.rounds
    numbers = np.array([0, 5, 6, 77, 290, 299])
    block = fetch(parts, numbers)
    assert parts.executor.traffic.rounds == before + 1
    np.testing.assert_array_equal(block.X, X[numbers])
    np.testing.assert_array_equal(block.y, y[numbers])
    np.testing.assert_array_equal(block.weights, weights[numbers])
    assert fetch(parts, numbers[:0]).n == 0


def test_rows_with_label():
    X, y, weights = made_rows(300)
    y[:] = 0
    y[[3, 50, 51, 200, 299]] = 1
    weights[:] = 1
    weights[51] = 0
    one, other = (opened(split_arrays(X, y, weights, parts=count)) for count in (2, 9))
    assert rows_with_label(one, 1, 10, seed=0).numbers.tolist() == [3, 50, 200, 299]
    draws = [rows_with_label(parts, 1, 2, seed=0).numbers.tolist() for parts in (one, other)]
    assert draws[0] == draws[1] and len(draws[0]) == 2
    found = {tuple(rows_with_label(one, 1, 2, seed=seed).numbers.tolist()) for seed in range(30)}
    assert len(found) > 3
    drawn = rows_with_label(other, 0, 20, seed=1)
    np.testing.assert_array_equal(drawn.block.X, X[drawn.numbers])
    assert rows_with_label(one, 9, 5, seed=0).block.n == 0


def test_rows_that_change_between_readings():
    X, y, _ = made_rows(100)
    reread = OpenSettings(layout=SMALL.layout, hold=False)
    parts = open_parts(split_arrays(X, y, parts=3), executor=Local(1), settings=reread)
    assert parts.fold(rows_of, add) == 100
    X[40, 0] += 1e-9
    with pytest.raises(ClusterError, match=r"part 1: rows .* are not the same as when they were first read"):
        parts.fold(rows_of, add)


def test_arrays_are_no_collection():
    assert not is_collection(X) and not is_collection([X]) and not is_collection("path") and not is_collection(None)
