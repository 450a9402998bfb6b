"""LinearSVCCV and RankingSVMCV: scikit-learn's conventions, folds, scorers, limits, bad input."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cutsvm import LinearSVC, LinearSVCCV, RankingSVM, RankingSVMCV, Status, linear_path, load_model, save_model
from tests.support.bad_values import BAD_CS

CS = [0.01, 0.1, 1.0]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(600, 8, n_informative=5, flip_y=0.1, random_state=0)
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("scoring", [None, "roc_auc", "f1", "balanced_accuracy"])
def test_chooses_what_a_grid_search_chooses(scoring, data):
    X, y = data
    ours = LinearSVCCV(CS, cv=4, scoring=scoring, tol=1e-6).fit(X, y)
    theirs = GridSearchCV(LinearSVC(tol=1e-6), {"C": CS}, cv=4, scoring=scoring).fit(X, y)
    by_fold = np.array([theirs.cv_results_[f"split{k}_test_score"] for k in range(4)])
    assert_allclose(ours.scores_, by_fold, atol=0.011)
    assert ours.scores_.mean(axis=0)[CS.index(ours.C_)] == ours.scores_.mean(axis=0).max()
    assert ours.C == ours.C_ and ours.Cs_.tolist() == CS


def test_model_equals_the_point_of_the_path(data):
    X, y = data
    model = LinearSVCCV(CS, cv=3).fit(X, y)
    alone = linear_path(X, y, Cs=CS)
    for mine, other in zip(model.path_, alone, strict=True):
        assert_array_equal(mine.coef_, other.coef_)
    chosen = model.path_[CS.index(model.C_)]
    assert_array_equal(model.coef_, chosen.coef_)
    assert (model.objective_, model.lower_bound_, model.gap_) == (
        chosen.objective_,
        chosen.lower_bound_,
        chosen.gap_,
    )
    assert model.converged_ and model.status_ is Status.CONVERGED and model.gaps_.max() <= 1e-3
    assert_array_equal(model.predict(X), chosen.predict(X))


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_n_jobs_does_not_change_a_bit(kind, data):
    X = sparse.csr_matrix(data[0]) if kind == "csr" else data[0]
    one, two = (LinearSVCCV(4, cv=3, n_jobs=k).fit(X, data[1]) for k in (1, 2))
    assert_array_equal(one.scores_, two.scores_)
    assert_array_equal(one.gaps_, two.gaps_)
    assert_array_equal(one.coef_, two.coef_)
    assert one.C_ == two.C_


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_more_classes(multi_class):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = LinearSVCCV(CS, cv=StratifiedKFold(3, shuffle=True, random_state=0), multi_class=multi_class).fit(X, names)
    assert model.scores_.shape == (3, 3) and model.scores_.max() > 0.9
    assert model.coef_.shape == (3, 4) and set(model.predict(X)) == {"a", "b", "c"}


def test_weights_pass_to_fits_and_scores(data):
    """A row of weight 0 is used neither to train nor to score."""
    X, y = data
    spoilt = y.copy()
    spoilt[::5] = 1 - spoilt[::5]
    weights = np.ones(600)
    weights[::5] = 0.0
    folds = [(np.flatnonzero(np.arange(600) % 3 != k), np.flatnonzero(np.arange(600) % 3 == k)) for k in range(3)]
    kept = np.flatnonzero(weights)
    place = np.full(600, -1)
    place[kept] = np.arange(len(kept))
    small = [(place[a][place[a] >= 0], place[b][place[b] >= 0]) for a, b in folds]
    weighted = LinearSVCCV(CS, cv=folds, tol=1e-6).fit(X, spoilt, sample_weight=weights)
    without = LinearSVCCV(CS, cv=small, tol=1e-6).fit(X[kept], y[kept])
    assert_allclose(weighted.scores_, without.scores_, atol=1e-9)
    assert weighted.objective_ == pytest.approx(without.objective_, rel=1e-6)


def test_scorers_of_any_kind(data):
    X, y = data
    seen = []

    def plain(model, X, y):
        seen.append(model.coef_)
        return model.score(X, y)

    weighted = make_scorer(roc_auc_score, response_method="decision_function")
    assert LinearSVCCV(CS, cv=3, scoring=plain).fit(X, y, sample_weight=np.ones(600)).scores_.shape == (3, 3)
    assert len(seen) == 9
    assert LinearSVCCV(CS, cv=3, scoring=weighted).fit(X, y).scores_.min() > 0.5


def test_groups_and_splitters(data):
    groups = np.arange(600) // 50
    model = LinearSVCCV(CS, cv=GroupKFold(4)).fit(*data, groups=groups)
    assert model.scores_.shape == (4, 3)


def test_without_refit(data):
    model = LinearSVCCV(CS, cv=3, refit=False).fit(*data)
    assert model.C_ in CS and not hasattr(model, "path_") and not hasattr(model, "coef_")


def test_in_pipelines_and_files(data, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), LinearSVCCV(4, cv=3))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.9
    model = clone(pipe[-1]).fit(*data)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(data[0]), model.predict(data[0]))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model").estimator
    assert isinstance(loaded, LinearSVC) and loaded.C == model.C_
    assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))


def test_warm_start_starts_from_the_last_model(data):
    model = LinearSVCCV(CS, cv=3, warm_start=True).fit(*data)
    before = model.objective_
    assert model.fit(*data).objective_ == pytest.approx(before, rel=2e-3)


@pytest.mark.parametrize(("Cs", "message"), BAD_CS, ids=str)
def test_bad_Cs(Cs, message, data):
    with pytest.raises(ValueError, match=message):
        LinearSVCCV(Cs).fit(*data)


def test_bad_input(data):
    X, y = data
    with pytest.raises(ValueError, match="scoring='nonsense': scikit-learn has no scorer of this name"):
        LinearSVCCV(CS, scoring="nonsense").fit(X, y)
    with pytest.raises(ValueError, match="expected one scorer"):
        LinearSVCCV(CS, scoring=["f1", "accuracy"]).fit(X, y)
    with pytest.raises(ValueError, match="fold 1: all rows to train on are of one class, 1"):
        LinearSVCCV(CS, cv=[(np.flatnonzero(y == 1), np.flatnonzero(y == 0))]).fit(X, y)
    with pytest.raises(ValueError, match="memory_limit='1GB': RankingSVMCV has the rows of its folds in memory, since"):
        RankingSVMCV(CS, memory_limit="1GB").fit(X, y)
    with pytest.raises(ValueError, match="checkpoint='x': a checkpoint is of one fit, here are many"):
        LinearSVCCV(CS, checkpoint="x").fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        LinearSVCCV(CS).fit(X, np.ones(600))


def test_max_time(data):
    with pytest.warns(ConvergenceWarning):
        model = LinearSVCCV(CS, cv=3, max_time=1e-9).fit(*data)
    assert model.lower_bound_ <= model.objective_ and model.scores_.shape == (3, 3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_finished_points(n_jobs, data):
    calls = []

    def interrupt(record):
        calls.append(record)
        if len(calls) == 12:
            raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVCCV(CS, cv=5, tol=1e-6, callbacks=[interrupt], n_jobs=n_jobs).fit(*data)
    assert not np.isnan(model.scores_[0]).all() and np.isnan(model.scores_[-1]).all()
    assert model.C_ in CS and np.isfinite(model.coef_).all() and model.coef_.any()
    assert model.lower_bound_ <= model.objective_


@pytest.fixture(scope="module")
def ranked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.digitize(X @ rng.normal(size=5) + rng.normal(size=400), [-1, 0, 1])
    return X, y, np.char.add("q", rng.integers(0, 20, size=400).astype(str))


def test_ranking_folds_keep_queries_whole(ranked):
    X, y, qid = ranked
    seen = []

    def score(model, X, y, qid=None, sample_weight=None):
        seen.append(set(qid.tolist()))
        return model.score(X, y, qid=qid)

    model = RankingSVMCV([0.1, 1.0, 10.0], cv=4, scoring=score).fit(X, y, qid=qid)
    plain = RankingSVMCV([0.1, 1.0, 10.0], cv=4).fit(X, y, qid=qid)
    assert_array_equal(model.scores_, plain.scores_)
    folds = seen[::3]
    assert sum(map(len, folds)) == len(set.union(*folds)) == 20
    assert plain.n_queries_ == 20 and plain.gap_ <= 1e-3 and plain.score(X, y, qid=qid) > 0.6
    alone = RankingSVM(plain.C_, tol=1e-5).fit(X, y, qid=qid)
    assert plain.lower_bound_ <= alone.objective_ and alone.lower_bound_ <= plain.objective_


def test_ranking_with_one_query_and_bad_input(ranked):
    X, y, qid = ranked
    assert RankingSVMCV(3, cv=3).fit(X, y, qid=np.zeros(len(y))).scores_.shape == (3, 3)
    with pytest.raises(ValueError, match="cv=30: there are only 20 queries, and they stay whole"):
        RankingSVMCV(3, cv=30).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="fold 1: there is no pair to learn from"):
        RankingSVMCV(3, cv=[(np.arange(2), np.arange(2, 400))]).fit(
            X, np.r_[1, 1, y[2:]], qid=np.r_[0, 0, np.ones(398)]
        )
    with pytest.raises(ValueError, match="fold 1: there is no pair to score"):
        RankingSVMCV(3, cv=[(np.arange(2, 400), np.arange(2))]).fit(
            X, np.r_[1, 1, y[2:]], qid=np.r_[0, 0, np.ones(398)]
        )


class _Own(LinearSVCCV):
    """A subclass with fewer parameters than the class, and one of its own."""

    def __init__(self, Cs=3, extra=1, n_jobs=None, max_time=None, callbacks=None):
        super().__init__(Cs=Cs, n_jobs=n_jobs, max_time=max_time, callbacks=callbacks, tol=1e-2)
        self.extra = extra


def test_subclass_with_its_own_parameters():
    X, y = load_breast_cancer(return_X_y=True)
    own, plain = _Own(extra=2).fit(X, y), LinearSVCCV(3, tol=1e-2).fit(X, y)
    assert_array_equal(own.scores_, plain.scores_)
    assert_array_equal(own.coef_, plain.coef_)
    assert clone(own).extra == 2
