"""RankingSVM, ROCAreaSVC and OrdinalSVC with loss="squared_hinge"."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize

import cutsvm
from cutsvm import OrdinalSVC, RankingSVM, RankingSVMCV, ROCAreaSVC, load_model, ranking_path, save_model
from cutsvm.solvers import CPA, OCAS, Newton
from tests.support.reference import pairwise

SQUARED = {"loss": "squared_hinge"}


@pytest.fixture(scope="module")
def ranked():
    """15 queries of 20 rows with 4 levels."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(300, 6)), np.repeat(np.arange(15), 20)
    value = X @ rng.normal(size=6) + 0.7 * rng.normal(size=300) + 3.0 * rng.normal(size=15)[qid]
    y = np.concatenate([np.argsort(np.argsort(value[qid == q])) // 5 for q in range(15)])
    return X, y, qid


def objective(w, X, y, s, starts, C):
    """F and its gradient from the explicit pairs."""
    rows, weights = pairwise.differences(X, y, s, starts)
    short, share = np.maximum(0.0, 1.0 - rows @ w), C * weights / weights.sum()
    return 0.5 * w @ w + share @ short**2, w - 2.0 * rows.T @ (share * short)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("solver", ["auto", "ocas", "cpa", OCAS(line_search="gca"), CPA(shards=3), Newton()])
def test_the_optimum_of_explicit_pairs(solver, C, ranked):
    X, y, qid = ranked
    s = np.random.default_rng(1).integers(1, 4, size=300).astype(float)
    problem = (X, y, s, np.arange(0, 301, 20), C)
    best = minimize(objective, np.zeros(6), problem, jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 0.0})
    model = RankingSVM(C=C, tol=1e-4, solver=solver, loss="squared_hinge").fit(X, y, qid=qid, sample_weight=s)
    assert model.converged_ and model.n_queries_ == 15
    assert model.lower_bound_ <= best.fun <= model.objective_ * (1 + 1e-9)
    assert model.objective_ == pytest.approx(best.fun, rel=2e-4)
    assert model.objective_ == pytest.approx(objective(model.coef_[0], *problem)[0], rel=1e-12)


def test_auto_is_newton(ranked):
    X, y, qid = ranked
    model = RankingSVM(tol=1e-7, **SQUARED).fit(X, y, qid=qid)
    assert model.history_[0]["note"].startswith("newton: a smooth loss")
    assert model.converged_ and model.n_iter_ < 10 and model.score(X, y, qid=qid) > 0.8


def test_weight_is_repetition(ranked):
    X, y, qid = ranked
    times = np.random.default_rng(2).integers(0, 4, size=300)
    again = np.repeat(np.arange(300), times)
    weighted = RankingSVM(tol=1e-8, **SQUARED).fit(X, y, qid=qid, sample_weight=times)
    repeated = RankingSVM(tol=1e-8, **SQUARED).fit(X[again], y[again], qid=qid[again])
    assert weighted.n_pairs_ == repeated.n_pairs_
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("weight", [1e-200, 1e200])
@pytest.mark.parametrize("kind", [RankingSVM, ROCAreaSVC, OrdinalSVC])
def test_scaling_all_weights_changes_nothing(kind, weight, ranked):
    X, y = ranked[0][:60], ranked[1][:60]
    y = y // 2 if kind is ROCAreaSVC else y
    one, other = (kind(**SQUARED).fit(X, y, sample_weight=np.full(60, s)) for s in (1.0, weight))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weight", [1e12, 1e300])
def test_a_query_without_a_pair_has_no_influence(weight, ranked):
    X, y, qid = ranked
    alone = RankingSVM(C=50.0, **SQUARED).fit(X, y, qid=qid)
    X, y, qid = np.vstack([1e9 * X[:5], X]), np.append([2] * 5, y), np.append([99] * 5, qid)
    model = RankingSVM(C=50.0, **SQUARED).fit(X, y, qid=qid, sample_weight=np.where(qid == 99, weight, 1.0))
    assert (model.n_queries_, model.n_skipped_queries_) == (16, 1)
    assert_array_equal(model.coef_, alone.coef_)
    assert (model.objective_, model.lower_bound_) == (alone.objective_, alone.lower_bound_)


def test_features_far_from_zero(ranked):
    """Only differences of rows count."""
    X, y, qid = ranked
    X = np.round(X * 2.0**10) / 2.0**10
    near, far = (RankingSVM(tol=1e-6, **SQUARED).fit(X + shift, y, qid=qid) for shift in (0.0, 1e6))
    assert far.converged_ and far.objective_ == pytest.approx(near.objective_, rel=2e-6)


def test_sparse_rows_and_threads(ranked):
    X, y, qid = ranked
    one = RankingSVM(tol=1e-6, n_jobs=1, **SQUARED).fit(X, y, qid=qid)
    assert_array_equal(RankingSVM(tol=1e-6, n_jobs=2, **SQUARED).fit(X, y, qid=qid).coef_, one.coef_)
    other = RankingSVM(tol=1e-6, **SQUARED).fit(sparse.csr_array(X), y, qid=qid)
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-6)


def test_thresholds_of_squares(ranked):
    X, y, _ = ranked
    ordinal = OrdinalSVC(C=10.0, **SQUARED).fit(X, y)
    assert ordinal.converged_ and len(ordinal.thresholds_) == 3
    two = ROCAreaSVC(C=10.0, **SQUARED).fit(X, y > 1)
    assert two.converged_ and (two.predict(X) == (y > 1)).mean() > 0.7
    assert_allclose(two.to_sklearn().decision_function(X), two.decision_function(X), rtol=1e-12)


def test_what_is_not_legal_says_what_is(ranked):
    X, y, qid = ranked
    with pytest.raises(ValueError, match=r"loss='logistic'.*'hinge'.*'squared_hinge'"):
        RankingSVM(loss="logistic").fit(X, y, qid=qid)
    with pytest.raises(
        ValueError, match="use 'auto', 'ocas', 'cpa', 'sifting', 'batched'; with loss=\"squared_hinge\" also 'newton'"
    ):
        RankingSVM(solver="newton").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"does not solve problems of pairs of rows: use 'auto', .*'newton'"):
        RankingSVM(solver="dcd", **SQUARED).fit(X, y, qid=qid)


def test_planes_of_another_loss_are_not_kept(ranked):
    X, y, qid = ranked
    fresh = RankingSVM(**SQUARED).fit(X, y, qid=qid)
    model = RankingSVM(warm_start=True).fit(X, y, qid=qid).set_params(**SQUARED).fit(X, y, qid=qid)
    assert model.converged_ and model.lower_bound_ <= fresh.objective_
    assert model.objective_ == pytest.approx(fresh.objective_, rel=2e-3)


def test_checkpoint_is_of_one_loss(ranked, tmp_path):
    X, y, qid = ranked
    file = tmp_path / "fit.checkpoint"
    with pytest.warns(match="Stopped at a gap"):
        RankingSVM(C=100.0, max_iter=1, tol=1e-9, checkpoint=file).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="loss"):
        RankingSVM(C=100.0, max_iter=1, tol=1e-9, checkpoint=file, **SQUARED).fit(X, y, qid=qid)


def test_path_and_cross_validation(ranked):
    X, y, qid = ranked
    path = ranking_path(X, y, qid=qid, Cs=[0.1, 1.0, 10.0], **SQUARED)
    for model in path:
        alone = RankingSVM(C=model.C, **SQUARED).fit(X, y, qid=qid)
        assert model.gap_ <= 1e-3 and model.objective_ == pytest.approx(alone.objective_, rel=2e-3)
    chosen = RankingSVMCV(Cs=[0.1, 10.0], cv=3, **SQUARED).fit(X, y, qid=qid)
    assert chosen.C_ in (0.1, 10.0) and chosen.score(X, y, qid=qid) > 0.8


def test_store_is_as_memory(ranked, tmp_path):
    X, y, qid = ranked
    cutsvm.convert((X, y), tmp_path / "store", qid=qid)
    inside = RankingSVM(tol=1e-6, **SQUARED).fit(X, y, qid=qid)
    stored = RankingSVM(tol=1e-6, memory_limit="2GB", **SQUARED).fit(tmp_path / "store")
    assert stored.converged_ and stored.objective_ == pytest.approx(inside.objective_, rel=2e-6)
    assert_allclose(stored.coef_, inside.coef_, rtol=1e-4, atol=1e-6)


def test_model_file_keeps_the_loss(ranked, tmp_path):
    X, y, qid = ranked
    model = RankingSVM(**SQUARED).fit(X, y, qid=qid)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model").estimator
    assert again.loss == "squared_hinge"
    assert_array_equal(again.predict(X), model.predict(X))
