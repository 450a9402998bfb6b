"""NDCG and average precision of many queries at once against scikit-learn's functions, query by query."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from cutsvm import pair_accuracy, ranking_score
from tests.support.strategies import rng_of, seeds


def by_scikit_learn(metric, scores, y, qid, weights):
    """The weighted mean over the queries that are not left out, their number, and how many are left out."""
    values, of_query, left_out = [], [], 0
    for one in np.unique(qid):
        rows = qid == one
        if len(np.unique(y[rows])) == 1 or y[rows].max() <= 0:
            left_out += 1
            continue
        if metric == "map":
            values.append(average_precision_score(y[rows] > 0, scores[rows]))
        else:
            k = int(metric[5:]) if "@" in metric else None
            values.append(ndcg_score([y[rows]], [scores[rows]], k=k))
        of_query.append(weights[rows].mean())
    return values, of_query, left_out


@pytest.mark.parametrize("metric", ["ndcg", "ndcg@1", "ndcg@3", "map"])
@given(seed=seeds, n=st.integers(2, 40), levels=st.integers(2, 6), n_queries=st.integers(1, 6), ties=st.booleans())
def test_values_are_scikit_learns(metric, seed, n, levels, n_queries, ties):
    rng = rng_of(seed)
    y, qid = rng.integers(0, levels, size=n) * 0.5, rng.integers(0, n_queries, size=n)
    scores = rng.integers(-2, 3, size=n) / 2.0 if ties else rng.normal(size=n)
    weights = rng.integers(1, 4, size=n) / 2.0
    values, of_query, left_out = by_scikit_learn(metric, scores, y, qid, weights)
    if not values:
        with pytest.raises(ValueError, match="there is no query to measure"):
            ranking_score(scores, y, qid, metric=metric)
        return
    found = ranking_score(scores, y, qid, metric=metric, sample_weight=weights)
    assert found.value == pytest.approx(np.average(values, weights=of_query), rel=1e-12)
    assert (found.n_queries, found.n_left_out) == (len(np.unique(qid)), left_out)
    # A row of weight 0 is as if it were not there.
    more = ranking_score([*scores, 9.0], [*y, 7.0], [*qid, 0], metric=metric, sample_weight=[*weights, 0.0])
    assert more == found


def test_pairs_are_pair_accuracy_and_gains_may_be_exponential():
    rng = np.random.default_rng(0)
    scores, y, qid = rng.normal(size=60), rng.integers(0, 4, size=60), np.repeat([3, 1, 2], 20)
    y[qid == 1] = 2
    assert ranking_score(scores, y, qid, metric="pairs").value == pair_accuracy(scores, y, qid)
    assert ranking_score(scores, y, qid, metric="pairs").n_left_out == 1
    gains = 2.0**y - 1
    wanted = np.mean([ndcg_score([gains[qid == q]], [scores[qid == q]], k=5) for q in (2, 3)])
    assert ranking_score(scores, gains, qid, metric="ndcg@5").value == pytest.approx(wanted, rel=1e-12)
    assert float(ranking_score(scores, gains, qid, metric="ndcg@5")) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("metric", ["ndcg@0", "ndcg@", "NDCG", "map@3", "", 10, None])
def test_unknown_metric(metric):
    with pytest.raises(ValueError, match=r"metric=.*expected 'pairs', 'ndcg', 'ndcg@k' \(as 'ndcg@10'\) or 'map'"):
        ranking_score([1.0, 2.0], [0, 1], metric=metric)


@pytest.mark.parametrize(
    ("scores", "y", "words"),
    [
        ([1.0, 2.0], [-1, 1], "y has the value -1: gains of NDCG are not below 0"),
        ([1.0, 2.0], [1], "expected one value for each of the 2 scores"),
        ([1.0, np.nan], [0, 1], r"scores\[1\] is NaN"),
        ([], [], "there are no rows"),
        ([1.0, 2.0], ["a", "b"], "expected numbers"),
    ],
)
def test_bad_input(scores, y, words):
    with pytest.raises(ValueError, match=words):
        ranking_score(scores, y, metric="ndcg")


def test_average_precision_takes_relevance_from_the_sign():
    """y of -1 and 1 are classes as good as 0 and 1."""
    scores = [0.3, 0.2, 0.1, 0.7]
    found = ranking_score(scores, [1, -1, 1, -1], metric="map").value
    assert found == pytest.approx(average_precision_score([1, 0, 1, 0], scores))
    with pytest.raises(ValueError, match="there is no query to measure"):
        ranking_score(scores, [0, -1, 0, -1], metric="map")
