"""KernelSVC with the exact solver: SVC's optimum, weights, the layout of the model."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from cutsvm import KernelSVC, Status
from cutsvm.kernel_machines import Exact
from cutsvm.kernel_machines.auto import Auto, AutoSettings
from cutsvm.kernel_machines.exact_settings import ExactSettings
from tests.support.reference import kernel_dual as twin

KERNELS = ["rbf", "poly", "linear", "precomputed"]
seeds = st.integers(0, 2**32 - 1)


# Of polynomials far from the origin, and of matrices that are no kernel's: the fit warns, and is as it should be.
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_polynomials_far_from_the_origin(k, intercept):
    """Kernel values about 1e12, of rank 4: steps of pairs alone take minutes. It ends where rounding errors do."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(loc=100.0, size=(80, 2)), rng.integers(0, k, size=80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(kernel="poly", fit_intercept=intercept).fit(X, y)
    assert model.gap_ <= 0.1 and model.n_iter_ < 300


def kernel_of(name, X, Z, gamma=0.3):
    if name == "rbf":
        return rbf_kernel(X, Z, gamma=gamma)
    return polynomial_kernel(X, Z, degree=2, gamma=gamma, coef0=1.0) if name == "poly" else X @ Z.T


def classes(seed, n, k=2, d=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, size=n - k)])
    return rng.normal(size=(n, d)) + 0.8 * np.eye(k, d)[y], y, rng


def value(K, y, weights, C, f, norm, b):
    """What SVC minimises."""
    return 0.5 * norm + C * weights @ np.maximum(0.0, 1.0 - y * (f + b))


@given(
    seed=seeds, n=st.integers(2, 60), kernel=st.sampled_from(["rbf", "poly", "linear"]),
    C=st.sampled_from([0.01, 1.0, 50.0]), weighted=st.booleans(),
)  # fmt: skip
def test_the_optimum_of_svc(seed, n, kernel, C, weighted):
    """The objective of both models from their coefficients; the certificate is about that of SVC, too."""
    X, labels, rng = classes(seed, n)
    weights = rng.choice([0.5, 1.0, 2.0, 3.0], size=n) if weighted else np.ones(n)
    K, y = kernel_of(kernel, X, X), 2.0 * labels - 1.0
    params = {"C": C, "kernel": kernel, "gamma": 0.3, "degree": 2, "coef0": 1.0}
    model = KernelSVC(**params, tol=1e-6).fit(X, labels, weights)
    peer = SVC(**params, tol=1e-8, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(X, labels, weights)
    found = []
    for one in (model, peer):
        coef = np.zeros(n)
        coef[one.support_] = one.dual_coef_[0]
        f = K @ coef
        assert_allclose(one.decision_function(X), f + one.intercept_[0], rtol=1e-6, atol=1e-6)
        found.append(value(K, y, weights, C, f, coef @ f, one.intercept_[0]) / (C * weights.sum()))
    assert model.converged_ and model.objective_ == pytest.approx(found[0], rel=1e-7)
    assert model.lower_bound_ <= found[1] * (1.0 + 1e-9) and found[0] <= found[1] * (1.0 + 1e-5)


@given(seed=seeds, n=st.integers(3, 40), k=st.integers(2, 4), intercept=st.booleans(), C=st.sampled_from([0.1, 10.0]))
def test_pairs_reach_their_optima(seed, n, k, intercept, C):
    """The sum of the optima of an independent QP for each pair."""
    X, y, _ = classes(seed, max(n, k), k)
    K, low, high = rbf_kernel(X, gamma=0.5), 0.0, 0.0
    for a, b in combinations(range(k), 2):
        rows = np.flatnonzero((y == a) | (y == b))
        sign = np.where(y[rows] == b, 1.0, -1.0)
        ends = np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0)
        found = twin.optimum(K[np.ix_(rows, rows)], sign, *ends, free_intercept=intercept)
        low, high = low + found[0] / (C * len(rows)), high + found[1] / (C * len(rows))
    for solver in ("exact", Exact(settings=ExactSettings(working_set=4, round=1))):
        model = KernelSVC(C, gamma=0.5, solver=solver, fit_intercept=intercept, tol=1e-5).fit(X, y)
        assert model.converged_ and model.lower_bound_ <= high * (1 + 1e-9) and low * (1 - 1e-7) <= model.objective_
        assert intercept or not model.intercept_.any()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("intercept", [True, False])
def test_pairs_of_many_rows(kernel, intercept):
    """Values for each pair when it wants them, a shared matrix in float32, and each pair alone: one optimum.

    More rows than have a matrix in float64; the same bits for any number of threads.
    """
    X, y, _ = classes(5, 2400, 3)
    params = {"kernel": kernel, "gamma": 0.3, "degree": 2, "coef0": 1.0, "fit_intercept": intercept, "C": 0.5}
    shared = Exact(settings=ExactSettings(computed_rows=0))
    fits = ({}, {"solver": shared}, {"memory_limit": "60MB"})
    models = [KernelSVC(**params, n_jobs=2, **own).fit(X, y) for own in fits]
    for model in models:
        assert model.converged_ and all(model.lower_bound_ <= other.objective_ for other in models)
    model, own = models[0], {key: params[key] for key in ("kernel", "gamma", "degree", "coef0", "C")}
    if intercept:  # which SVC always has
        total = 0.0
        for pair in combinations(range(3), 2):
            rows = np.flatnonzero(np.isin(y, pair))
            peer = SVC(**own, tol=1e-5).fit(X[rows], y[rows])
            K, sign = kernel_of(kernel, X[rows], X[rows]), np.where(y[rows] == pair[1], 1.0, -1.0)
            norm = peer.dual_coef_[0] @ K[np.ix_(peer.support_, peer.support_)] @ peer.dual_coef_[0]
            found = value(K, sign, np.ones(len(rows)), 0.5, peer.decision_function(X[rows]), norm, 0.0)
            total += found / (0.5 * len(rows))
        assert model.lower_bound_ <= total and model.objective_ <= total * (1 + 1.1e-3)
    same = KernelSVC(**params, n_jobs=1).fit(X, y)
    assert_array_equal(same.dual_coef_, model.dual_coef_)
    assert (same.objective_, same.lower_bound_) == (model.objective_, model.lower_bound_)


@given(
    seed=seeds, n=st.integers(4, 25), kernel=st.sampled_from(["rbf", "poly", "linear"]), k=st.integers(2, 3),
    layout=st.sampled_from([np.asarray, np.float32, sparse.csr_matrix]), intercept=st.booleans(),
)  # fmt: skip
def test_a_weight_is_a_number_of_rows(seed, n, kernel, k, layout, intercept):
    """To the last bit of the objective, for gamma too; rows without weight might as well not be there."""
    X, y, rng = classes(seed, n, k)
    counts = rng.integers(0, 4, size=n)
    counts[:k] = 1
    again, order = np.repeat(np.arange(n), counts), rng.permutation(counts.sum())
    params = {"kernel": kernel, "fit_intercept": intercept, "tol": 1e-5}
    weighted = KernelSVC(**params, n_jobs=1).fit(layout(X), y, counts)
    repeated = KernelSVC(**params, n_jobs=2).fit(layout(X[again][order]), y[again][order])
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert not set(weighted.support_) & set(np.flatnonzero(counts == 0))
    assert_allclose(weighted.decision_function(layout(X)), repeated.decision_function(layout(X)), rtol=1e-3, atol=1e-3)
    same = KernelSVC(**params, n_jobs=2).fit(layout(X), y, counts)
    assert_array_equal(same.dual_coef_, weighted.dual_coef_)
    assert (same.objective_, same.lower_bound_) == (weighted.objective_, weighted.lower_bound_)
    assert_array_equal(same.intercept_, weighted.intercept_)


def test_gamma_scale_counts_rows():
    X, y, rng = classes(0, 30)
    counts = rng.integers(1, 4, size=30)
    for layout in (np.asarray, sparse.csr_matrix):
        model = KernelSVC().fit(layout(X), y, counts)
        assert model.gamma_ == pytest.approx(1.0 / (3 * np.repeat(X, counts, axis=0).var()), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 4])
def test_the_layout_is_that_of_svc(k, kernel):
    X, y, _ = classes(1, 120, k, d=4)
    given_K = rbf_kernel(X, gamma=0.3)
    data = given_K if kernel == "precomputed" else X
    params = {"kernel": kernel, "gamma": 0.3, "degree": 2, "coef0": 1.0}
    model, peer = KernelSVC(**params, tol=1e-7).fit(data, y), SVC(**params, tol=1e-8).fit(data, y)
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_", "classes_"):
        assert getattr(model, name).ndim == getattr(peer, name).ndim, name
    assert model.intercept_.shape == peer.intercept_.shape and len(model.dual_coef_) == len(peer.dual_coef_)
    # Of several classes a positive score is for the later one of a pair, in SVC for the earlier.
    assert_allclose(model.intercept_, peer.intercept_ if k == 2 else -peer.intercept_, atol=2e-3)
    K = given_K if kernel == "precomputed" else kernel_of(kernel, X, X)
    edges = np.concatenate([[0], np.cumsum(model.n_support_)])
    assert_array_equal(np.bincount(y[model.support_], minlength=k), model.n_support_)
    votes = np.zeros((120, k))
    for p, (low, high) in enumerate(combinations(range(k), 2)):
        f = np.full(120, model.intercept_[p])
        for mine, other in ((low, high), (high, low)):
            part = slice(edges[mine], edges[mine + 1])
            f += K[:, model.support_[part]] @ model.dual_coef_[other - (other > mine), part]
        if k == 2:
            assert_allclose(model.decision_function(data), f, rtol=1e-9, atol=1e-9)
            assert_allclose(f, peer.decision_function(data), atol=2e-3)
        votes[np.arange(120), np.where(f > 0, high, low)] += 1
    if k > 2:
        assert np.all(np.abs(model.decision_function(data) - votes) < 0.34)
    assert np.mean(model.predict(data) == peer.predict(data)) > 0.97


@pytest.mark.parametrize("memory_limit", ["100MB", None])
def test_threads_do_not_choose_how_pairs_are_solved(memory_limit):
    """Each thread has room for a problem: where there is room for few, there are few threads."""
    X, y, _ = classes(2, 3000, 3, 5)
    one, two = (KernelSVC(C=2.0, memory_limit=memory_limit, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.objective_ == two.objective_
    assert_array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("scale", [1e10, 1e19, 1e40, 1e150])
def test_the_scale_of_the_rows_does_not_matter(scale, k):
    """Squares of such rows are no numbers of float32."""
    X, y, _ = classes(0, 200, k)
    plain, scaled = (KernelSVC().fit(by * X, y) for by in (1.0, scale))
    assert scaled.converged_ and scaled.lower_bound_ <= plain.objective_ and plain.lower_bound_ <= scaled.objective_
    assert np.mean(plain.predict(X) == scaled.predict(scale * X)) > 0.99


def test_one_row_far_away_or_too_far():
    X, y, _ = classes(0, 200)
    X[5, 1] = 1e36
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    far, given = KernelSVC(gamma=0.1).fit(X, y), KernelSVC(kernel="precomputed").fit(K, y)
    assert far.converged_ and far.lower_bound_ <= given.objective_ and given.lower_bound_ <= far.objective_
    with pytest.raises(FloatingPointError, match="scale the features"):
        KernelSVC().fit(1e160 * X, y)


@pytest.mark.parametrize("limit", [None, 4000, 100])
def test_little_memory_gives_the_same_answer(limit):
    X, y, _ = classes(2, 200, 3)
    tight = ExactSettings(working_set=16, cache_rows=16, round=2)
    model = KernelSVC(5.0, gamma=0.4, tol=1e-5, solver=Exact(settings=tight), memory_limit=limit).fit(X, y)
    plain = KernelSVC(5.0, gamma=0.4, tol=1e-5).fit(X, y)
    assert model.converged_ and model.objective_ == pytest.approx(plain.objective_, rel=2e-5)
    assert_allclose(model._pair_scores(X), plain._pair_scores(X), atol=0.05)


def test_auto_takes_sgd_for_many_rows():
    X, y, _ = classes(0, 60)
    few = Auto(settings=AutoSettings(exact_rows=59))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        large, small = KernelSVC(solver=few).fit(X, y), KernelSVC(solver="auto").fit(X, y)
        assert_array_equal(large.dual_coef_, KernelSVC(solver="sgd").fit(X, y).dual_coef_)
        twice = KernelSVC(solver=few).fit(np.repeat(X[:59], 2, axis=0), np.repeat(y[:59], 2))
        without = KernelSVC(solver=few, fit_intercept=False).fit(X, y)
        few_epochs = KernelSVC(epochs=2, fit_intercept=False).fit(X, y)
    assert_array_equal(small.dual_coef_, KernelSVC(solver="exact").fit(X, y).dual_coef_)
    assert large.intercept_.any() and small.intercept_.any()
    assert not without.intercept_.any() and not few_epochs.intercept_.any()
    weighted = KernelSVC(solver=few).fit(X[:59], y[:59], np.full(59, 2.0))  # 59 different rows, however often
    assert twice._solver_name == weighted._solver_name == "exact"
    assert_allclose(twice.decision_function(X), weighted.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize(
    ("params", "status", "advice"),
    [({"max_time": 1e-9}, Status.MAX_TIME, "raise max_time"), ({"max_iter": 3}, Status.MAX_ITER, "raise max_iter")],
)
def test_limits(params, status, advice, kernel):
    X, y, _ = classes(3, 250, 3)
    data = X @ X.T if kernel == "precomputed" else X
    solver = Exact(settings=ExactSettings(working_set=4, round=1))
    with pytest.warns(ConvergenceWarning, match=advice) as caught:
        model = KernelSVC(solver=solver, kernel=kernel, tol=1e-9, memory_limit=1000, **params).fit(data, y)
    assert len(caught) == 1 and model.status_ is status
    assert 0.0 <= model.lower_bound_ <= model.objective_ and np.isfinite(model.decision_function(data)).all()


def test_ctrl_c_and_callbacks_end_all_pairs():
    X, y, _ = classes(3, 200, 3)
    for how in (Status.INTERRUPTED, Status.CALLBACK):
        seen = []

        def end(record, how=how, seen=seen):
            seen.append(record)
            if how is Status.INTERRUPTED:
                raise KeyboardInterrupt
            return True

        with pytest.warns(ConvergenceWarning, match=how.value):
            model = KernelSVC(callbacks=[end], memory_limit=1000).fit(X, y)
        assert model.status_ is how and len(seen) == 3
        assert [record.to_dict() for record in seen] == model.history_
        assert 0.0 <= model.lower_bound_ <= model.objective_


@pytest.mark.parametrize("weights", [[1, 1, 0, 0], [0, 0, 1, 1]])
def test_weight_in_one_class_only_is_refused(weights):
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match="only one class with weight"):
        KernelSVC().fit(X, y, weights)


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("intercept", [True, False])
def test_bound_holds_where_rounding_dominates(scale, intercept):
    """Duplicates with different labels, weights and C over decades."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(12, 2)) * scale, 2, axis=0), rng.permutation(np.arange(24) % 2)
    gamma, weight = (0.5 / scale**2 if scale > 1e-100 else 1.0), {0: 1e-3, 1: 1e3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(2.0, gamma=gamma, class_weight=weight, fit_intercept=intercept, max_iter=200).fit(X, y)
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    low, high = np.where(y == 1, 0.0, -2e-3), np.where(y == 1, 2e3, 0.0)
    found = twin.optimum(K, 2.0 * y - 1.0, low, high, free_intercept=intercept)
    assert model.lower_bound_ <= found[1] / 48.0 * (1 + 1e-9) and found[0] / 48.0 * (1 - 1e-7) <= model.objective_
