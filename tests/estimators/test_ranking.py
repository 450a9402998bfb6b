"""RankingSVM, ROCAreaSVC, OrdinalSVC: scikit-learn's conventions, queries, weights, thresholds, files."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_absolute_error, ndcg_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import cutsvm
from cutsvm import OrdinalSVC, RankingSVM, ROCAreaSVC, load_model, pair_accuracy, save_model
from cutsvm.solvers import ACCPM, CPA, DCD, OCAS, Sifting
from tests.support.layouts import LAYOUTS
from tests.support.reference import pairwise


@pytest.fixture(scope="module")
def ranked():
    """30 queries of 20 rows with 4 levels, each with an offset of its own that says nothing about the order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    qid = np.repeat(np.arange(30), 20)
    value = X @ rng.normal(size=6) + 0.7 * rng.normal(size=600) + 3.0 * rng.normal(size=30)[qid]
    y = np.concatenate([np.argsort(np.argsort(value[qid == q])) // 5 for q in range(30)])
    return X, y, qid


def test_certificate_and_order(ranked):
    X, y, qid = ranked
    model = RankingSVM(C=10.0).fit(X, y, qid=qid)
    assert model.gap_ <= 1e-3 and model.converged_ and model.lower_bound_ <= model.objective_
    assert model.n_queries_ == 30 and model.n_skipped_queries_ == 0 and model.n_pairs_ == 30 * 6 * 25
    w = model.coef_[0]
    loss = pairwise.evaluate(X @ w, y, np.ones(600), np.arange(0, 601, 20))[2].sum() / model.n_pairs_
    assert model.objective_ == pytest.approx(0.5 * w @ w + 10.0 * loss)
    assert model.score(X, y, qid=qid) > 0.8
    assert_allclose(model.predict(X), X @ w, rtol=1e-12, atol=1e-12)
    assert {"iteration", "seconds", "primal", "lower", "gap", "planes", "passes"} <= set(model.history_[-1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(layout, ranked):
    X, y, qid = ranked
    X = np.round(X, 3)
    plain = RankingSVM(tol=1e-7).fit(X, y, qid=qid)
    other = RankingSVM(tol=1e-7).fit(LAYOUTS[layout](X), y, qid=qid)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-5)


def test_queries_in_any_order_and_of_any_kind(ranked):
    X, y, qid = ranked
    plain = RankingSVM(tol=1e-6).fit(X, y, qid=qid)
    mixed = np.random.default_rng(1).permutation(len(y))
    names = np.array([f"query {q}" for q in qid])
    for ids in (qid[mixed], names[mixed], pd.Series(names[mixed])):
        model = RankingSVM(tol=1e-6).fit(X[mixed], y[mixed], qid=ids)
        assert model.objective_ == pytest.approx(plain.objective_, rel=2e-6)
        assert model.score(X[mixed], y[mixed], qid=ids) == pytest.approx(plain.score(X, y, qid=qid), abs=1e-3)
    assert RankingSVM().fit(sparse.csr_array(X[mixed]), y[mixed], qid=qid[mixed]).converged_


def test_only_the_order_of_y_matters(ranked):
    X, y, qid = ranked
    a, b = RankingSVM().fit(X, y, qid=qid), RankingSVM().fit(X, np.exp(3.0 * y) - 100.0, qid=qid)
    assert_array_equal(a.coef_, b.coef_)


def test_weight_is_repetition(ranked):
    X, y, qid = (part[:200] for part in ranked)
    times = np.random.default_rng(2).integers(0, 4, size=200)
    again = np.repeat(np.arange(200), times)
    weighted = RankingSVM(tol=1e-6, solver=OCAS(shards=1)).fit(X, y, qid=qid, sample_weight=times)
    repeated = RankingSVM(tol=1e-6, solver=OCAS(shards=1)).fit(X[again], y[again], qid=qid[again])
    assert weighted.n_pairs_ == repeated.n_pairs_
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)
    assert weighted.score(X, y, qid, times) == pytest.approx(repeated.score(X[again], y[again], qid[again]))


def test_queries_without_a_pair_are_skipped_and_counted(ranked):
    X, y, qid = ranked
    flat = y.copy()
    flat[qid < 5] = 1
    model = RankingSVM().fit(X, flat, qid=qid)
    assert (model.n_queries_, model.n_skipped_queries_) == (30, 5)
    rest = RankingSVM().fit(X[qid >= 5], y[qid >= 5], qid=qid[qid >= 5])
    assert model.objective_ == pytest.approx(rest.objective_, rel=2e-3) and model.n_pairs_ == rest.n_pairs_


@pytest.mark.parametrize("solver", ["auto", "cpa"])
@pytest.mark.parametrize("weight", [1e12, 1e14, 1e300])
def test_a_query_without_a_pair_has_no_influence(solver, weight, ranked):
    """Neither its values nor its weights, however large."""
    X, y, qid = (column[:200] for column in ranked)
    alone = RankingSVM(solver=solver, C=50.0).fit(X, y, qid=qid)
    X, y, qid = np.vstack([1e9 * X[:5], X]), np.append([2] * 5, y), np.append([99] * 5, qid)
    weights = np.where(qid == 99, weight, 1.0)
    model = RankingSVM(solver=solver, C=50.0).fit(X, y, qid=qid, sample_weight=weights)
    assert (model.n_queries_, model.n_skipped_queries_) == (11, 1)
    assert model.n_pairs_ == alone.n_pairs_
    assert_array_equal(model.coef_, alone.coef_)
    assert (model.objective_, model.lower_bound_) == (alone.objective_, alone.lower_bound_)


@pytest.mark.parametrize("weight", [1e-200, 1e200])
@pytest.mark.parametrize("kind", [RankingSVM, ROCAreaSVC, OrdinalSVC])
def test_scaling_all_weights_changes_nothing(kind, weight, ranked):
    X, y = ranked[0][:60], ranked[1][:60]
    y = y // 2 if kind is ROCAreaSVC else y
    one, other = (kind().fit(X, y, sample_weight=np.full(60, s)) for s in (1.0, weight))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-9)


def test_query_with_zero_weights_is_ignored(ranked):
    X, y, qid = ranked
    weights = (qid > 0).astype(float)
    model = RankingSVM().fit(X, y, qid=qid, sample_weight=weights)
    assert model.n_queries_ == 29


def test_grid_search_with_routed_queries(ranked):
    X, y, qid = ranked
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RankingSVM().set_fit_request(qid=True).set_score_request(qid=True)
        pipeline = Pipeline([("scale", StandardScaler()), ("rank", ranker)])
        search = GridSearchCV(pipeline, {"rank__C": [0.01, 1.0, 100.0]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
        assert search.best_score_ > 0.75
        assert search.best_estimator_["rank"].n_queries_ == 30
        assert search.score(X, y, qid=qid) == pytest.approx(
            pair_accuracy(search.best_estimator_.predict(X), y, qid), abs=1e-12
        )


def test_ndcg_comes_from_scikit_learn(ranked):
    X, y, qid = ranked
    scores = RankingSVM().fit(X, y, qid=qid).predict(X)
    found = [ndcg_score([y[qid == q]], [scores[qid == q]], k=10) for q in range(30)]
    assert np.mean(found) > 0.8


@pytest.mark.parametrize("bad", [{"C": 0.0}, {"tol": -1.0}, {"max_iter": 0}, {"solver": "fast"}, {"max_time": 0.0}])
def test_bad_parameters(bad, ranked):
    X, y, qid = ranked
    with pytest.raises(ValueError, match=next(iter(bad))):
        RankingSVM(**bad).fit(X, y, qid=qid)


@pytest.mark.parametrize("solver", ["dcd", DCD(), Sifting(inner=DCD()), "accpm", ACCPM()])
def test_solvers_without_pairwise_loss_raise(solver, ranked):
    with pytest.raises(ValueError, match="does not solve problems of pairs of rows: use 'auto', 'ocas', 'cpa'"):
        RankingSVM(solver=solver).fit(*ranked)


@pytest.mark.parametrize("solver", ["ocas", "cpa", "sifting", OCAS(line_search="tca"), CPA(epsilon=1e-4)])
def test_solvers_agree(solver, ranked):
    X, y, qid = ranked
    best = RankingSVM(tol=1e-5).fit(X, y, qid=qid)
    model = RankingSVM(solver=solver).fit(X, y, qid=qid)
    assert best.lower_bound_ <= model.objective_ <= best.objective_ * 1.002
    assert model.lower_bound_ <= best.objective_


def test_bad_data(ranked):
    X, y, qid = ranked
    hole = X.copy()
    hole[4, 2] = np.nan
    cases = [
        ((hole, y, qid), {}, "Input X contains NaN: row 4 column 2"),
        ((X, np.where(y == 1, np.nan, y), qid), {}, "Input y contains NaN"),
        ((X, y, qid[:-1]), {}, "qid has 599 entries: expected one id for each of the 600 rows"),
        ((X, np.zeros(600), qid), {}, "there is no pair to learn from: y is the same .* in all 30 queries"),
        ((X, y, np.arange(600)), {}, "there is no pair to learn from: .* in all 600 queries"),
        ((X, y, qid), {"sample_weight": -np.ones(600)}, r"sample_weight\[0\] is -1.0"),
        ((X, y, qid), {"sample_weight": np.zeros(600)}, "sample_weight is zero for every row"),
        ((X, y, qid), {"sample_weight": np.ones(3)}, "sample_weight.shape"),
        ((X, y.astype(str), qid), {}, "y has dtype <U21: expected numbers"),
        ((X[:1], y[:1], qid[:1]), {}, "1 sample"),
    ]
    for arguments, more, words in cases:
        with pytest.raises(ValueError, match=words):
            RankingSVM().fit(*arguments, **more)


def test_bad_data_for_the_score(ranked):
    X, y, qid = ranked
    model = RankingSVM().fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="there is no pair to score"):
        model.score(X, np.ones(600), qid)
    with pytest.raises(ValueError, match="expected one value for each of the 600 scores"):
        model.score(X, y[:-1])
    with pytest.raises(ValueError, match=r"y\[0\] is nan"):
        pair_accuracy([1.0, 2.0], [np.nan, 1.0])


def test_max_time_stops_and_warns(ranked):
    X, y, qid = ranked
    with pytest.warns(ConvergenceWarning, match=r"Stopped at a gap of .* raise max_iter"):
        model = RankingSVM(C=1e6, tol=1e-9, max_iter=2).fit(X, y, qid=qid)
    assert not model.converged_ and model.lower_bound_ <= model.objective_


def test_warm_start(ranked):
    X, y, qid = ranked
    model = RankingSVM(warm_start=True, tol=1e-5).fit(X, y, qid=qid)
    first = model.history_[0]["primal"]
    model.fit(X, y, qid=qid)
    assert model.history_[0]["primal"] < first
    assert model.history_[0]["primal"] == pytest.approx(model.objective_, rel=1e-4)


def test_threads_do_not_change_a_bit(ranked):
    X, y, qid = ranked
    assert_array_equal(RankingSVM(n_jobs=1).fit(X, y, qid=qid).coef_, RankingSVM(n_jobs=2).fit(X, y, qid=qid).coef_)


def test_callbacks_and_pickle(ranked):
    X, y, qid = ranked
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RankingSVM(callbacks=[lambda r: seen.append(r) or len(seen) > 2]).fit(X, y, qid=qid)
    assert len(seen) == 3
    model.set_params(callbacks=None)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


# ROC area


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_roc_area_is_maximized(cancer):
    X, y = cancer
    model = ROCAreaSVC(C=1.0).fit(X, y)
    assert model.gap_ <= 1e-3
    area = roc_auc_score(y, model.decision_function(X))
    w = model.coef_[0]
    f = X @ w
    mean = np.maximum(0.0, 1.0 - (f[y == 1][:, None] - f[y == 0])).mean()
    assert model.objective_ == pytest.approx(0.5 * w @ w + mean)
    assert 1.0 - area <= mean
    assert model.n_pairs_ == (y == 1).sum() * (y == 0).sum()


def test_intercept_minimizes_the_training_error(cancer):
    X, y = cancer
    model = ROCAreaSVC(C=0.01).fit(X, y)
    f = X @ model.coef_[0]
    errors = [np.mean((f > t) != y) for t in np.concatenate([[f.min() - 1], f])]
    assert np.mean(model.predict(X) != y) == pytest.approx(min(errors))
    assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


def test_roc_area_is_like_ranking_with_two_levels(cancer):
    X, y = cancer
    a, b = ROCAreaSVC(tol=1e-6).fit(X, y), RankingSVM(tol=1e-6).fit(X, y, qid=np.zeros(len(y)))
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    assert b.score(X, y) == pytest.approx(roc_auc_score(y, a.decision_function(X)))


def test_unbalanced_classes_have_a_finite_intercept():
    """With few positives among many rows the best threshold may leave all on one side."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), np.arange(2000) < 20
    model = ROCAreaSVC().fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(569) % 3, "ROCAreaSVC takes two classes, y has 3; OrdinalSVC takes more"),
        (np.zeros(569), "only one class with weight: 0.0"),
        (np.linspace(0, 1, 569), "Unknown label type"),
    ],
)
def test_labels_that_are_not_two_classes(y, words, cancer):
    with pytest.raises(ValueError, match=words):
        ROCAreaSVC().fit(cancer[0], y)


def test_cross_validated_area(cancer):
    X, y = cancer
    assert cross_val_score(make_pipeline(StandardScaler(), ROCAreaSVC()), X, y, scoring="roc_auc").min() > 0.95


# Ordinal regression


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(800, 5))
    return X, np.digitize(X @ rng.normal(size=5) + 0.4 * rng.normal(size=800), [-2.0, -0.5, 0.5, 2.0]) + 1


def test_levels_and_thresholds(graded):
    X, y = graded
    model = OrdinalSVC(C=10.0).fit(X, y)
    assert model.gap_ <= 1e-3 and model.thresholds_.shape == (4,) and np.all(np.diff(model.thresholds_) > 0)
    assert mean_absolute_error(y, model.predict(X)) < 0.3
    assert model.score(X, y) == pytest.approx(pair_accuracy(model.decision_function(X), y))
    assert_array_equal(model.classes_, [1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="y has the label 9, which is no class of the model"):
        model.score(X, np.where(y == 2, 9, y))


def test_each_threshold_loss_is_minimal_at_its_thresholds(graded):
    X, y = graded
    absolute, zero_one = (OrdinalSVC(threshold_loss=loss).fit(X, y) for loss in ("absolute", "zero_one"))
    assert_array_equal(absolute.coef_, zero_one.coef_)
    away = [np.abs(model.predict(X) - y).mean() for model in (absolute, zero_one)]
    wrong = [np.mean(model.predict(X) != y) for model in (absolute, zero_one)]
    assert away[0] <= away[1] and wrong[1] <= wrong[0]
    with pytest.raises(ValueError, match="threshold_loss='squared': expected one of 'absolute', 'zero_one'"):
        OrdinalSVC(threshold_loss="squared").fit(X, y)


def test_text_labels_need_an_order(graded):
    X, y = graded
    words = np.array(["awful", "bad", "fair", "good", "best"])
    with pytest.warns(UserWarning, match="alphabetical order, 'awful' < 'bad' < 'best' < 'fair' < 'good'; levels="):
        OrdinalSVC().fit(X, words[y - 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stated = OrdinalSVC(levels=words.tolist()).fit(X, words[y - 1])
        series = pd.Series(pd.Categorical(words[y - 1], categories=words, ordered=True))
        categorical = OrdinalSVC().fit(X, series)
        plain = OrdinalSVC().fit(X, y)
    assert_array_equal(stated.predict(X), words[plain.predict(X) - 1])
    assert_array_equal(categorical.predict(X), stated.predict(X))
    assert_array_equal(stated.classes_, words)
    assert stated.score(X, words[y - 1]) == plain.score(X, y)
    assert_array_equal(stated.coef_, plain.coef_)


def test_bad_levels(graded):
    X, y = graded
    with pytest.raises(ValueError, match="y has the label 5, which is not among levels"):
        OrdinalSVC(levels=[1, 2, 3, 4]).fit(X, y)
    with pytest.raises(ValueError, match="expected each label once"):
        OrdinalSVC(levels=[1, 2, 3, 4, 5, 5]).fit(X, y)


def test_grid_search_by_absolute_error(graded):
    X, y = graded
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    search = GridSearchCV(OrdinalSVC(), {"C": [0.1, 10.0]}, scoring=scorer, cv=3).fit(X, y)
    assert -search.best_score_ < 0.35


# Files


@pytest.mark.parametrize("kind", [RankingSVM, ROCAreaSVC, OrdinalSVC])
def test_models_survive_saving(kind, graded, tmp_path):
    X, y = graded
    y = y > 2 if kind is ROCAreaSVC else y
    model = kind(C=2.0).fit(X, y, **({"qid": np.zeros(len(y))} if kind is RankingSVM else {}))
    save_model(model, tmp_path / "model")
    saved = load_model(tmp_path / "model")
    assert type(saved.estimator) is kind and saved.estimator.C == 2.0
    assert_array_equal(saved.estimator.predict(X), model.predict(X))
    assert saved.estimator.n_pairs_ == model.n_pairs_ and saved.estimator.gap_ == model.gap_
    assert saved.task == {RankingSVM: "rank", ROCAreaSVC: "roc", OrdinalSVC: "ordinal"}[kind]


def test_order_of_text_labels_survives_saving(graded, tmp_path):
    X, y = graded
    words = np.array(["z", "y", "x", "b", "a"])
    model = OrdinalSVC(levels=words.tolist()).fit(X, words[y - 1])
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model").estimator
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.fit(X, words[y - 1]).coef_, model.coef_)


def test_fit_from_a_file(ranked, tmp_path):
    X, y, qid = ranked
    path = tmp_path / "train.svm"
    lines = [
        f"{label} qid:{query} " + " ".join(f"{k}:{value!r}" for k, value in enumerate(row.tolist(), start=1))
        for row, label, query in zip(X, y, qid, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    model = RankingSVM().fit(path)
    assert model.n_queries_ == 30
    assert model.objective_ == pytest.approx(RankingSVM().fit(X, y, qid=qid).objective_, rel=1e-3)
    with pytest.raises(ValueError, match="the data set has its own queries: leave qid out"):
        RankingSVM().fit(path, qid=qid)
    with pytest.raises(ValueError, match="leave y out"):
        RankingSVM().fit(path, y)
    assert OrdinalSVC().fit(path).classes_.tolist() == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def ranked_store(tmp_path_factory):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(3000, 4)).astype(np.float32), np.repeat(np.arange(100), 30)
    y = np.round(X @ rng.normal(size=4) + rng.normal(size=3000))
    path = tmp_path_factory.mktemp("ranked") / "store"
    cutsvm.convert((X, y), path, qid=qid, block_bytes=10_000)
    return path, X, y, qid


@pytest.mark.parametrize("solver", ["auto", "ocas", "cpa"])
def test_fit_from_disk_equals_fit_in_memory(solver, ranked_store, caplog):
    path, X, y, qid = ranked_store
    with caplog.at_level("INFO", logger="cutsvm"):
        disk = RankingSVM(C=10.0, solver=solver, memory_limit="4GB").fit(path)
    assert "from disk: memory_limit is 4 GB" in caplog.text
    held = RankingSVM(C=10.0, solver=solver).fit(X, y, qid=qid)
    assert_array_equal(disk.coef_, held.coef_)
    assert (disk.objective_, disk.lower_bound_, disk.n_queries_) == (held.objective_, held.lower_bound_, 100)


def test_a_file_under_a_limit_stays_on_disk(tmp_path, caplog):
    lines = [f"{k % 3} qid:{k // 10} 1:{k % 7} 2:{k % 5}" for k in range(60)]
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    with caplog.at_level("INFO", logger="cutsvm"):
        disk = RankingSVM(memory_limit="4GB").fit(tmp_path / "train.svm")
    assert "train.svm: training from disk" in caplog.text
    assert_array_equal(disk.coef_, RankingSVM().fit(tmp_path / "train.svm").coef_)


def test_queries_on_disk_must_be_contiguous(ranked_store, tmp_path):
    path, X, y, qid = ranked_store
    cutsvm.convert((X, y), tmp_path / "mixed", qid=qid[::7].repeat(7)[:3000] % 5)
    with pytest.raises(ValueError, match="must be consecutive in the store"):
        RankingSVM(memory_limit="4GB").fit(tmp_path / "mixed")
    with pytest.raises(
        ValueError, match=r"memory_limit is 1 MB beside the .* holds: too little for a fit; expected at least [\d.]+ MB"
    ):
        RankingSVM(memory_limit="1MB").fit(path)
    with pytest.raises(ValueError, match="memory_limit='lots'"):
        RankingSVM(memory_limit="lots").fit(path)


@pytest.mark.parametrize("estimator", [ROCAreaSVC(), OrdinalSVC()], ids=lambda estimator: type(estimator).__name__)
def test_column_names_do_not_warn(estimator):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    fitted = estimator.fit(X, (X["a"] > 0.0).astype(int))  # warnings are errors here
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"] and len(fitted.predict(X)) == 40


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("kind", [ROCAreaSVC, OrdinalSVC])
def test_labelled_pairs_from_disk_equal_those_in_memory(kind, labels, ranked_store, tmp_path, caplog):
    """ROC area and levels: the same model from a store whose rows stay on disk, thresholds included."""
    _, X, y, _ = ranked_store
    y = (y > 0) if kind is ROCAreaSVC else np.clip(y, -2, 2)
    y = np.where(y > 0, "b", "a") if labels == "text" else y.astype(float)
    cutsvm.convert((X, y), tmp_path / "store", block_bytes=10_000)
    params = {"C": 10.0, **({"levels": ["b", "a"]} if kind is OrdinalSVC and labels == "text" else {})}
    held = kind(**params).fit(X, y)
    with caplog.at_level("INFO", logger="cutsvm"):
        disk = kind(**params, memory_limit="4GB").fit(tmp_path / "store")
    assert "from disk: memory_limit is 4 GB" in caplog.text
    for name in ("coef_", "intercept_", "classes_", *(("thresholds_",) if kind is OrdinalSVC else ())):
        assert_array_equal(getattr(disk, name), getattr(held, name))
    assert (disk.objective_, disk.lower_bound_) == (held.objective_, held.lower_bound_)
    assert_array_equal(disk.predict(X), held.predict(X))


@pytest.mark.parametrize("kind", [ROCAreaSVC, OrdinalSVC])
def test_labelled_pairs_resume_from_a_checkpoint(kind, ranked_store, tmp_path):
    _, X, y, _ = ranked_store
    y = (y > 0).astype(int)
    params = {"C": 1e3, "solver": "cpa", "tol": 1e-6, "checkpoint": tmp_path / "fit.ck"}
    with pytest.warns(ConvergenceWarning, match="The same call resumes from"):
        first = kind(**params, max_iter=3).fit(X, y)
    second = kind(**params).fit(X, y)
    assert second.converged_ and second.history_[0]["iteration"] == first.n_iter_ == 3
    assert second.lower_bound_ >= first.lower_bound_ and not (tmp_path / "fit.ck").exists()
