"""RankingSVM.score and scorers by metric; searches never score without queries; a forgotten qid is warned of."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cutsvm import OrdinalSVC, RankingSVM, RankingSVMCV, ranking_path, ranking_scorer

GRID = {"C": [0.1, 10.0]}


@pytest.fixture(scope="module")
def graded():
    """30 queries of 20 rows with levels 0 to 4, and an offset of each query that says nothing about the order."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 5)), np.repeat(np.arange(30), 20)
    y = X @ [1, -1, 0.5, 0, 0] + 3.0 * rng.normal(size=30)[qid] + rng.normal(size=600)
    return X, np.clip(np.rint(y), 0, 4).astype(int), qid


def by_query(measure, scores, y, qid):
    rows = [qid == q for q in np.unique(qid)]
    return np.mean([measure(y[r], scores[r]) for r in rows if len(np.unique(y[r])) > 1 and y[r].max() > 0])


def test_score_by_metric(graded):
    X, y, qid = graded
    model = RankingSVM().fit(X, y, qid=qid)
    scores = model.predict(X)
    wanted = {
        "ndcg@10": by_query(lambda t, f: ndcg_score([t], [f], k=10), scores, y, qid),
        "ndcg": by_query(lambda t, f: ndcg_score([t], [f]), scores, y, qid),
        "map": by_query(lambda t, f: average_precision_score(t > 0, f), scores, y, qid),
        "pairs": model.score(X, y, qid),
    }
    for metric, value in wanted.items():
        assert model.score(X, y, qid=qid, metric=metric) == pytest.approx(value, rel=1e-12)
        assert ranking_scorer(metric)(model, X, y, qid=qid) == pytest.approx(value, rel=1e-12)
    with pytest.raises(ValueError, match="metric='auc': expected"):
        model.score(X, y, qid=qid, metric="auc")


def test_chosen_by_ndcg(graded):
    X, y, qid = graded
    chooser = RankingSVMCV(Cs=[0.1, 10.0], cv=3, scoring="ndcg@10").fit(X, y, qid=qid)
    held_out = chooser.held_out_scores_
    folds = [test for _, test in GroupKFold(3).split(X, y, qid)]
    wanted = [by_query(lambda t, f: ndcg_score([t], [f], k=10), held_out[t], y[t], qid[t]) for t in folds]
    best = chooser.Cs_.tolist().index(chooser.C_)
    np.testing.assert_allclose(chooser.scores_[:, best], wanted, rtol=1e-12)
    with pytest.raises(ValueError, match=r"scoring='mip': scikit-learn has no scorer .* 'ndcg@10', 'ndcg' and 'map'"):
        RankingSVMCV(scoring="mip").fit(X, y, qid=qid)


def test_search_routes_queries_by_itself(graded):
    """With routing on nothing has to be requested: the score is that of RankingSVMCV, which knows the queries."""
    X, y, qid = graded
    folds = {"cv": GroupKFold(3)}
    with sklearn.config_context(enable_metadata_routing=True):
        pairs = GridSearchCV(RankingSVM(tol=1e-6), GRID, **folds).fit(X, y, qid=qid, groups=qid)
        ndcg = GridSearchCV(
            make_pipeline(StandardScaler(with_std=False), RankingSVM(tol=1e-6)),
            {"rankingsvm__C": GRID["C"]},
            scoring=ranking_scorer("ndcg@10"),
            **folds,
        ).fit(X, y, qid=qid, groups=qid)
    wanted = RankingSVMCV(Cs=GRID["C"], cv=3, tol=1e-6).fit(X, y, qid=qid).scores_.mean(axis=0)
    np.testing.assert_allclose(pairs.cv_results_["mean_test_score"], wanted, atol=1e-3)
    wanted = RankingSVMCV(Cs=GRID["C"], cv=3, tol=1e-6, scoring="ndcg@10").fit(X, y, qid=qid).scores_.mean(axis=0)
    np.testing.assert_allclose(ndcg.cv_results_["mean_test_score"], wanted, atol=1e-3)


@pytest.mark.parametrize(
    "search",
    [
        lambda X, y, qid: GridSearchCV(RankingSVM(), GRID, cv=2).fit(X, y, qid=qid),
        lambda X, y, qid: RandomizedSearchCV(RankingSVM(), GRID, n_iter=1, cv=2).fit(X, y, qid=qid),
        lambda X, y, qid: cross_val_score(RankingSVM(), X, y, params={"qid": qid}, cv=2),
    ],
)
def test_search_without_routing_says_how(search, graded):
    """qid would reach fit and not score, and the result would be that of one query."""
    with pytest.raises(ValueError, match=r"sklearn.set_config\(enable_metadata_routing=True\) first"):
        search(*graded)


def test_score_without_queries_in_a_search_is_refused(graded):
    X, y, qid = graded
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RankingSVM().set_score_request(qid=False)
        search = GridSearchCV(ranker, GRID, cv=GroupKFold(2), error_score="raise")
        with pytest.raises(ValueError, match="qid is missing in the score"):
            search.fit(X, y, qid=qid, groups=qid)
    assert RankingSVM().fit(X, y, qid=qid).score(X[:20], y[:20]) > 0.5  # one query, scored by itself


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: RankingSVM().fit(X, y),
        lambda X, y: RankingSVMCV(Cs=[1.0], cv=2).fit(X, y),
        lambda X, y: ranking_path(X, y, Cs=[1.0]),
        lambda X, y: RankingSVM().fit(X, (y > 2).astype(float)),
    ],
)
def test_forgotten_queries_are_warned_of_once(fit, graded):
    X, y, _ = graded
    with pytest.warns(UserWarning, match="qid is missing, so that all rows are one query") as seen:
        fit(X, y)
    assert len(seen) == 1


def test_honest_data_without_queries_are_not_warned_of(graded):
    X, y, _ = graded
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankingSVM().fit(X, X[:, 0])  # a list of preferences: about as many levels as rows
        RankingSVM().fit(X, np.round(X[:, 0], 1))  # measured, not counted
        RankingSVM().fit(X[:100], y[:100])  # few rows
        RankingSVM().fit(X, y, qid=np.zeros(len(y)))  # said to be one query
        OrdinalSVC().fit(X, y)
