"""warm_start: planes and dual vectors that are still valid are reused, others are not."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from cutsvm import LinearSVC, RankingSVM
from cutsvm.solvers import OCAS, Sifting
from tests.support.reference import svm
from tests.support.strategies import examples, rng_of, seeds

CHANGES = ["nothing", "C", "more rows", "weights up", "weights down", "labels", "rows", "order", "sign", "dropped"]


def changed(what, X, y, s, C, rng):
    """The problem after a change."""
    n = len(y)
    if what == "C":
        C *= float(rng.choice([0.1, 3.0, 30.0]))
    elif what == "more rows":
        X, y, s = (
            np.vstack([X, rng.normal(size=(5, X.shape[1]))]),
            np.append(y, rng.choice([-1.0, 1.0], 5)),
            np.append(s, np.ones(5)),
        )
    elif what == "weights up":
        s = s * rng.uniform(1.0, 3.0, n)
    elif what == "weights down":
        s = s * rng.uniform(0.2, 1.0, n)
    elif what == "labels":
        y = y.copy()
        y[2:] = rng.choice([-1.0, 1.0], n - 2)
    elif what == "rows":
        X = X.copy()
        X[rng.integers(n)] *= 0.5
    elif what == "order":
        X = X[rng.permutation(n)]
    elif what == "sign":
        X = -X
    elif what == "dropped":
        s = np.where(np.arange(n) == n - 1, 0.0, s)
    return X, y, s, C


@pytest.mark.parametrize("intercept", ["free", "regularized", None])
@pytest.mark.parametrize("solver", ["auto", "dcd", OCAS(shards=4)], ids=str)
@examples(25)
@given(seed=seeds, n=st.integers(8, 30), d=st.integers(1, 3), what=st.sampled_from(CHANGES))
def test_bounds_hold_after_any_change(solver, intercept, seed, n, d, what):
    rng = rng_of(seed)
    X, y, s, C = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n), rng.choice([0.5, 1.0, 2.0], size=n), 0.5
    y[:2] = 1.0, -1.0
    how = {"intercept": intercept or "free", "fit_intercept": intercept is not None}
    model = LinearSVC(C, solver=solver, tol=1e-5, warm_start=True, max_iter=80, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=s)
        X, y, s, C = changed(what, X, y, s, C, rng)
        model.set_params(C=C).fit(X, y, sample_weight=s)
    low, high = sorted(svm.optimum(X, y * s, C, intercept or "none"))
    assert model.lower_bound_ <= high
    assert model.objective_ >= low * (1.0 - 1e-14)
    F = svm.objective(X, y * s, C, intercept or "none", model.coef_[0], model.intercept_[0])
    assert model.objective_ == pytest.approx(F, rel=1e-10)


@pytest.mark.parametrize("solver", ["ocas", "dcd", "sifting"])
def test_planes_are_reused(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=30_000) > 0
    model = LinearSVC(1e-2, solver=solver, warm_start=True).fit(X, y)
    first = model.objective_
    again = model.fit(X, y)
    assert again.history_[-1]["passes"] == 0 or again.n_iter_ <= 2
    assert again.objective_ <= first * (1 + 1e-12)
    other = model.set_params(C=2e-2).fit(X, y)
    cold = LinearSVC(2e-2, solver=solver).fit(X, y)
    assert other.gap_ <= 1e-3 and other.history_[-1]["passes"] <= cold.history_[-1]["passes"] + 3


def test_more_rows_keep_the_planes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5))
    y = X[:, 0] + rng.normal(size=3000) > 0
    model = LinearSVC(0.1, solver=OCAS(shards=4), warm_start=True).fit(X[:2900], y[:2900])
    model.fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.history_[0]["lower"] > 0.9 * model.objective_  # before a pass: the old rows' bound
    spoilt = X.copy()
    spoilt[5, 3] += 1e-9  # one value: the planes of its shard are not used
    note = model.fit(spoilt, y).history_[0]["note"]
    assert "1 of 4 shards changed" in note


def test_planes_of_sifting_bound_the_next_fit():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30_000, 4))
    y = X[:, 0] + rng.normal(size=30_000) > 0
    model = LinearSVC(1e-3, solver=Sifting(), warm_start=True).fit(X, y)
    model.fit(X, y)
    assert model.history_[0]["gap"] <= 1e-3


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_more_classes(multi_class):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(0.1, multi_class=multi_class, warm_start=True).fit(X, y)
    warm = model.set_params(C=0.3).fit(X, y)
    cold = LinearSVC(0.3, multi_class=multi_class, tol=1e-6).fit(X, y)
    assert warm.lower_bound_ <= cold.objective_ * (1 + 1e-9) and cold.lower_bound_ <= warm.objective_ * (1 + 1e-9)
    assert warm.fit(X, np.roll(y, 7)).converged_
    assert warm.fit(X[:100], y[:100]).coef_.shape == (1, 4)


def test_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y, qid = rng.integers(0, 3, size=200), np.repeat(np.arange(10), 20)
    model = RankingSVM(1.0, warm_start=True).fit(X, y, qid=qid)
    assert model.fit(X, y, qid=qid).history_[0]["gap"] <= 1e-3
    for other, queries in ((rng.permutation(y), qid), (y, np.repeat(np.arange(20), 10))):
        cold = RankingSVM(1.0, tol=1e-6).fit(X, other, qid=queries)
        warm = model.fit(X, other, qid=queries)
        assert warm.lower_bound_ <= cold.objective_ * (1 + 1e-9) and cold.lower_bound_ <= warm.objective_ * (1 + 1e-9)


def test_nothing_is_kept_without_warm_start():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(warm_start=True).fit(X, y)
    assert "_warm" in vars(model)
    assert "_warm" not in vars(model.set_params(warm_start=False).fit(X, y))
