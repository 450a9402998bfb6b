"""LinearOneClassSVM: bounds at every iterate, optima of independent solvers, weights, sources, checkpoints, files."""

from __future__ import annotations

import os
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM

from cutsvm import LinearOneClassSVM, convert, load_model, open_dataset, plotting, save_model
from cutsvm.driver import checkpoint
from cutsvm.driver.checkpoint_file import CheckpointSettings
from cutsvm.driver.one_class import lower_bound
from cutsvm.driver.records import Status
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import TailMean
from cutsvm.problem.tails import TailOracle
from cutsvm.solvers import CPA, DCD, OCAS, Auto
from tests.support.layouts import LAYOUTS
from tests.support.problems import iterates
from tests.support.reference import one_class
from tests.support.strategies import rng_of, seeds

SOLVERS = {
    "auto": Auto(),
    "ocas": OCAS(),
    "ocas, cuts at the best point": OCAS(cut_at=0.0),
    "ocas, tca": OCAS(line_search="tca"),
    "ocas, exact": OCAS(exact=True),
    "cpa": CPA(),
    "cpa, exact": CPA(exact=True, epsilon=1e-12),
}
nus = st.sampled_from([0.02, 0.1, 0.25, 0.5, 0.8, 1.0])


def some_problem(rng, n, d):
    """Rows around a point near the origin or far from it, some of them tied or repeated, with weights, some of 0."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1) + rng.choice([0.0, 0.3, 1.0, 10.0]) * rng.normal(size=d)
    kind = rng.random()
    if kind < 0.3:
        X = np.round(X)
    elif kind < 0.5:
        X = X[rng.integers(n, size=n)]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 3.7], size=n) if rng.random() < 0.5 else np.ones(n)
    weights[rng.integers(n)] = 1.0
    return X, weights


def far_rows(n=400, d=5, seed=0):
    """Rows that a half-space separates from the origin, the features correlated."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3.0 * rng.normal(size=d)


@pytest.mark.parametrize("name", SOLVERS)
@given(seed=seeds, n=st.integers(1, 25), d=st.integers(1, 5), nu=nus)
def test_bounds_hold_at_every_iterate(name, seed, n, d, nu):
    rng = rng_of(seed)
    X, s = some_problem(rng, n, d)
    low, high = one_class.optimum(X, s, nu)
    round_off = 1e-9 * max(-low, 1e-9 * float((X * X).sum(axis=1).max()))
    records = []
    model = LinearOneClassSVM(nu=nu, tol=1e-6, solver=SOLVERS[name], max_iter=300, callbacks=[records.append])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, sample_weight=s)
    assert len(records) == len(model.history_)
    previous = np.inf, -np.inf
    for record in records:
        assert record.lower <= high + round_off
        assert record.primal >= low - round_off
        assert record.primal <= previous[0] and record.lower >= previous[1]
        previous = record.primal, record.lower
    w, rho = model.coef_[0], model.offset_[0]
    assert model.objective_ == pytest.approx(one_class.objective(X, s, nu, w, rho), abs=round_off + 1e-12)
    assert low - round_off <= model.objective_ and model.lower_bound_ <= min(high + round_off, model.objective_)
    if model.status_ is Status.CONVERGED:
        assert model.objective_ <= high + 2e-6 * abs(high) + round_off


@given(seed=seeds, n=st.integers(1, 12), d=st.integers(1, 3), nu=st.sampled_from([0.07, 0.3, 0.5, 1.0]))
def test_lower_bound_holds_in_exact_arithmetic(seed, n, d, nu):
    """As small a gap as float64 allows, on rows far from 0, of different scales, with weights far apart."""
    rng = rng_of(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.choice([0.0, 0.0, 3.0], size=d) + rng.choice([0.0, 1.0, 1e8], size=d)
    s = 10.0 ** rng.uniform(-12, 12, size=n) if rng.random() < 0.5 else np.ones(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearOneClassSVM(nu=nu, tol=1e-16).fit(X, sample_weight=s)
    lower, exact = Fraction(model.lower_bound_), one_class.best_multiple(X, s, nu, model.coef_[0])
    assert lower <= exact
    assert exact - lower <= Fraction(1e-5) * abs(lower) + Fraction(1e-13 * np.abs(X).max() ** 2)
    objective = one_class.exact_objective(X, s, nu, model.coef_[0], model.offset_[0])
    assert objective == pytest.approx(model.objective_, rel=1e-6, abs=1e-13 * np.abs(X).max() ** 2)


@given(seed=seeds, n=st.integers(2, 20), d=st.integers(1, 4), nu=nus, shift=st.floats(-3.0, 3.0))
def test_any_C_proves_a_lower_bound(seed, n, d, nu, shift):
    """Below 1 / M^2 and above it."""
    rng = rng_of(seed)
    X, s = some_problem(rng, n, d)
    _, high = one_class.optimum(X, s, nu)
    oracle = TailOracle(as_rows(X), TailMean(s, nu))
    C = 10.0**shift / max(float(((s @ X / s.sum()) ** 2).sum()), 1e-6)
    found = [lower_bound(iterate.lower, C) for _, iterate in zip(range(30), iterates(OCAS(), oracle, C), strict=False)]
    assert max(found) <= high + 1e-9 * max(abs(high), 1e-9 * float((X * X).sum(axis=1).max()))
    assert found == sorted(found)


@pytest.mark.parametrize("name", ["auto", "ocas, tca", "cpa"])
@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9, 1.0])
def test_reaches_the_optimum_of_scikit_learn(name, nu):
    X = far_rows()
    low, high = one_class.optimum(X, np.ones(len(X)), nu)
    model = LinearOneClassSVM(nu=nu, tol=1e-9, solver=SOLVERS[name]).fit(X)
    assert model.status_ is Status.CONVERGED and model.gap_ <= 1e-9
    assert low * (1 + 1e-8) <= model.objective_ <= high * (1 - 1e-8)
    if nu < 1.0:  # with nu=1 LIBSVM's rho is infinite
        peer = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(X)
        scale = nu * len(X)  # its dual variables sum to nu n
        np.testing.assert_allclose(model.coef_, peer.coef_ / scale, rtol=1e-3, atol=1e-4)
        theirs = one_class.objective(X, np.ones(len(X)), nu, peer.coef_[0] / scale, peer.offset_[0] / scale)
        assert model.lower_bound_ <= theirs
        assert model.objective_ <= theirs + 1e-8 * abs(theirs)
        assert np.mean(model.predict(X) != peer.predict(X)) <= 3 / len(X)  # rows on the margin up to rounding
        assert np.mean(model.predict(X) == -1) <= nu <= np.mean(model.decision_function(X) <= 1e-6 * model.offset_)
    else:
        np.testing.assert_allclose(model.coef_[0], X.mean(axis=0), rtol=1e-10)


@pytest.mark.parametrize("solver", [OCAS(), CPA()], ids=["ocas", "cpa"])
@pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])
def test_no_half_space_without_the_origin(nu, solver):
    """Few iterations prove that w = 0 is the answer: the origin is the mean of some rows that a tail may hold."""
    rng = np.random.default_rng(0)
    inside = rng.normal(size=(2000, 10))
    for X in (inside - inside.mean(axis=0), np.vstack([inside, -inside]), inside + 0.05 * (nu < 1.0)):
        model = LinearOneClassSVM(nu=nu, solver=solver).fit(X)
        if nu == 1.0 and X.mean(axis=0).any() and model.coef_.any():  # then the mean row is not 0
            np.testing.assert_allclose(model.coef_[0], X.mean(axis=0), rtol=1e-8)
            continue
        assert model.status_ is Status.CONVERGED and model.n_iter_ < 100
        assert not model.coef_.any() and model.offset_ == 0.0 and model.objective_ == model.gap_ == 0.0
        assert -1e-12 < model.lower_bound_ <= 0.0
        assert np.all(model.predict(X) == 1)


def test_rows_of_zeros():
    model = LinearOneClassSVM().fit(np.zeros((5, 2)))
    assert not model.coef_.any() and model.objective_ == model.gap_ == 0.0 and model.converged_
    X = np.abs(np.random.default_rng(0).normal(size=(100, 3)))
    X[:30] = 0.0
    assert not LinearOneClassSVM(nu=0.3).fit(X).coef_.any()  # a tail of zeros
    assert LinearOneClassSVM(nu=0.4).fit(X).objective_ < 0.0


def test_margins_that_are_small_beside_the_mean_row():
    """C is raised on the way: the relative gap is that of F, however near to 0 it is."""
    X = np.random.default_rng(0).exponential(size=(10_000, 1))
    for nu in (1e-4, 1e-3, 0.1):
        model = LinearOneClassSVM(nu=nu, tol=1e-6).fit(X)
        mean = one_class.tail_mean(X[:, 0], np.ones(10_000), nu)
        assert model.objective_ == pytest.approx(-0.5 * mean**2, rel=2e-6)
        iterations = [record["iteration"] for record in model.history_]
        assert iterations == sorted(set(iterations)) and model.n_iter_ == iterations[-1]


@pytest.mark.parametrize("scale", [1e-60, 1e-6, 1e6, 1e60])
def test_scale_of_the_rows(scale):
    X = far_rows()
    model, other = LinearOneClassSVM(nu=0.2).fit(X), LinearOneClassSVM(nu=0.2).fit(scale * X)
    np.testing.assert_allclose(other.coef_ / scale, model.coef_, rtol=1e-9)
    assert other.objective_ / scale / scale == pytest.approx(model.objective_, rel=1e-9)
    with pytest.raises(FloatingPointError, match="scale the features"):
        LinearOneClassSVM().fit(1e100 * X)


@given(seed=seeds, n=st.integers(2, 30), d=st.integers(1, 4), nu=nus)
def test_a_weight_is_a_repetition(seed, n, d, nu):
    rng = rng_of(seed)
    X = some_problem(rng, n, d)[0] + 5.0
    s = rng.integers(0, 4, size=n)
    s[0] = 1
    weighted = LinearOneClassSVM(nu=nu, tol=1e-8).fit(X, sample_weight=s)
    repeated = LinearOneClassSVM(nu=nu, tol=1e-8).fit(np.repeat(X, s, axis=0))
    other = LinearOneClassSVM(nu=nu, tol=1e-8).fit(X, sample_weight=1e200 * s)
    for model in (repeated, other):
        assert model.objective_ == pytest.approx(weighted.objective_, rel=2e-8, abs=1e-12)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_X(name):
    X = far_rows().astype(np.float32).astype(np.float64)
    model, other = LinearOneClassSVM(nu=0.2).fit(X), LinearOneClassSVM(nu=0.2).fit(LAYOUTS[name](X))
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6)
    np.testing.assert_array_equal(other.predict(LAYOUTS[name](X)), model.predict(X))


def test_threads_do_not_change_a_bit():
    X = far_rows(n=60_000, d=20)
    models = [LinearOneClassSVM(nu=0.1, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2, 3)]
    for other in models[1:]:
        np.testing.assert_array_equal(other.coef_, models[0].coef_)
        assert other.offset_ == models[0].offset_ and other.lower_bound_ == models[0].lower_bound_


def test_methods_agree():
    X = far_rows()
    model = LinearOneClassSVM(nu=0.1)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "offset_")
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(labels, np.where(model.decision_function(X) >= 0.0, 1, -1))
    np.testing.assert_array_equal(model.decision_function(X), model.score_samples(X) - model.offset_)
    assert model.coef_.shape == (1, 5) and model.intercept_.shape == (1,)
    np.testing.assert_array_equal(model.offset_, -model.intercept_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.5, np.nan, "0.5", None, True])
def test_bad_nu(nu):
    with pytest.raises(ValueError, match=r"nu=.*expected a (finite )?number above 0"):
        LinearOneClassSVM(nu=nu).fit(far_rows())


@pytest.mark.parametrize("solver", ["dcd", "sifting", "accpm", DCD(), OCAS(buckets=4)])
def test_solvers_that_do_not_solve_it(solver):
    with pytest.raises(ValueError, match="use 'auto', 'ocas' or 'cpa'"):
        LinearOneClassSVM(solver=solver).fit(far_rows())


def test_other_bad_parameters():
    with pytest.raises(ValueError, match="one shard"):
        LinearOneClassSVM(solver=OCAS(shards=4)).fit(far_rows())
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        LinearOneClassSVM().fit(far_rows(), sample_weight=np.zeros(400))


def test_limits_keep_the_best_model():
    X = far_rows(n=2000, d=20)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = LinearOneClassSVM(nu=0.01, tol=1e-9, max_iter=3).fit(X)
    assert model.status_ is Status.MAX_ITER and not model.converged_ and model.n_iter_ == 3
    assert model.lower_bound_ < model.objective_ < 0.0 and 0.0 < model.gap_ < 1.0
    with pytest.warns(ConvergenceWarning, match="a callback asked to stop"):
        model = LinearOneClassSVM(nu=0.01, tol=1e-9, callbacks=[lambda record: record.iteration == 2]).fit(X)
    assert model.status_ is Status.CALLBACK and model.objective_ < 0.0
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        LinearOneClassSVM(nu=0.01, tol=1e-14, max_time=1e-9).fit(X)


def test_warm_start():
    X = far_rows(n=3000, d=20)
    model = LinearOneClassSVM(nu=0.05, tol=1e-6, warm_start=True).fit(X)
    cold = model.n_iter_
    model.fit(X)
    assert model.converged_ and model.n_iter_ <= cold
    model.set_params(nu=0.06).fit(X)
    fresh = LinearOneClassSVM(nu=0.06, tol=1e-6).fit(X)
    assert model.objective_ == pytest.approx(fresh.objective_, rel=2e-6)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("one class") / "rows.store"
    X = far_rows(n=5000).astype(np.float32)
    s = np.random.default_rng(1).integers(0, 3, size=5000).astype(float)
    convert([(X[:2000], np.zeros(2000), s[:2000]), (X[2000:], np.ones(3000), s[2000:])], path)
    return path, X, s


def test_data_sets(store, tmp_path):
    """Labels of a file or store are ignored, its weights are not; rows on disk give the same bits."""
    path, X, s = store
    model = LinearOneClassSVM(nu=0.1).fit(X, sample_weight=s)
    for source, limit in ((path, None), (open_dataset(path), None), (path, "1GB")):
        other = LinearOneClassSVM(nu=0.1, memory_limit=limit).fit(source)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert other.objective_ == model.objective_ and other.lower_bound_ == model.lower_bound_
    with pytest.raises(ValueError, match="too little for a fit"):
        LinearOneClassSVM(memory_limit="1MB").fit(path)
    file = tmp_path / "rows.svm"
    file.write_text("".join(f"7 1:{a} 2:{b}\n" for a, b in far_rows(d=2)))
    np.testing.assert_allclose(
        LinearOneClassSVM().fit(file).coef_, LinearOneClassSVM().fit(sparse.csr_matrix(far_rows(d=2))).coef_, rtol=1e-12
    )


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_checkpoint(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    before = checkpoint.configure(CheckpointSettings(0.0, 0.0, np.inf))
    try:
        X, path = far_rows(n=2000, d=20), tmp_path / "fit.checkpoint"
        whole = LinearOneClassSVM(nu=0.02, tol=1e-8, solver=solver).fit(X)
        model, history = LinearOneClassSVM(nu=0.02, tol=1e-8, solver=solver, checkpoint=path, max_iter=5), []
        for _ in range(100):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X)
            history += model.history_
            if model.converged_:
                break
            assert path.exists()
        assert model.converged_ and not path.exists()
        assert [record["lower"] for record in history] == sorted(record["lower"] for record in history)
        assert model.objective_ == pytest.approx(whole.objective_, rel=2e-8)
        assert model.n_iter_ > 5
        with pytest.warns(ConvergenceWarning):
            clone(model).fit(X)
        with pytest.raises(ValueError, match=r"nu 0\.02 there, 0\.03 here"):
            clone(model).set_params(nu=0.03).fit(X)
        with pytest.raises(ValueError, match="weights are others"):
            clone(model).fit(X, sample_weight=np.arange(2000))
    finally:
        checkpoint.configure(before)


def test_model_file(tmp_path):
    X = far_rows()
    model = LinearOneClassSVM(nu=0.1, solver=OCAS(cut_at=0.2)).fit(X)
    save_model(model, tmp_path / "model")
    saved = load_model(tmp_path / "model")
    assert saved.task == "oneclass" and type(saved.estimator) is LinearOneClassSVM
    assert saved.estimator.get_params() == model.get_params()
    np.testing.assert_array_equal(saved.estimator.decision_function(X), model.decision_function(X))
    for name in ("objective_", "lower_bound_", "gap_", "status_", "converged_", "n_iter_", "offset_"):
        assert getattr(saved.estimator, name) == getattr(model, name)


def test_picture_of_an_objective_below_0():
    pytest.importorskip("matplotlib").use("Agg")
    model = LinearOneClassSVM(nu=0.1).fit(far_rows())
    low, high = plotting.plot_convergence(model)[0].get_ylim()
    assert low < model.lower_bound_ < model.objective_ < high == 0.0


def test_to_sklearn():
    X = far_rows()
    model = LinearOneClassSVM(nu=0.1).fit(X)
    twin = model.to_sklearn()
    assert type(twin) is SGDOneClassSVM and twin.nu == 0.1
    other = far_rows(seed=1)
    for given_rows in (other, sparse.csr_array(other)):
        np.testing.assert_array_equal(twin.predict(given_rows), model.predict(given_rows))
        np.testing.assert_allclose(twin.decision_function(given_rows), model.decision_function(given_rows), rtol=1e-9)
