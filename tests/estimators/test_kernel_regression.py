"""KernelSVR: the optimum of independent solvers, bounds, weights, layouts, limits, files."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
import quadprog
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from cutsvm import KernelSVR, LinearSVR, Status, convert, load_model, report, save_model
from tests.support.layouts import LAYOUTS

KERNELS = ["rbf", "poly", "linear"]


def some_rows(n=60, d=3, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + noise * rng.normal(size=n) + 3.0


def values(model, X, Z):
    if model.kernel == "rbf":
        return rbf_kernel(X, Z, gamma=model.gamma_)
    if model.kernel == "poly":
        return polynomial_kernel(X, Z, degree=model.degree, gamma=model.gamma_, coef0=model.coef0)
    return X @ Z.T


def objective(model, K, y, weights):
    """F by hand, from the coefficients."""
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    losses = np.maximum(0.0, np.abs(y - K @ coef - model.intercept_[0]) - model.epsilon)
    return 0.5 * coef @ K @ coef + model.C * weights @ losses


def objective_of_quadprog(K, y, caps, epsilon, intercept):
    """F at the solution of quadprog, of max y'(a - b) - epsilon (a + b)'1 - (a - b)'K(a - b) / 2, with the best b."""
    n = len(y)
    G = np.block([[K, -K], [-K, K]]) + 1e-9 * np.eye(2 * n)
    c = np.concatenate([y - epsilon, -y - epsilon])
    A, low = np.column_stack([np.eye(2 * n), -np.eye(2 * n)]), np.concatenate([np.zeros(2 * n), -caps, -caps])
    if intercept:
        A, low = np.column_stack([np.r_[np.ones(n), -np.ones(n)], A]), np.r_[0.0, low]
    s = quadprog.solve_qp(G, c, A, low, int(intercept))[0]
    coef = s[:n] - s[n:]
    rest = y - K @ coef
    candidates = np.r_[rest - epsilon, rest + epsilon] if intercept else np.zeros(1)
    losses = [caps @ np.maximum(0.0, np.abs(rest - b) - epsilon) for b in candidates]
    return 0.5 * coef @ K @ coef + min(losses)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_optimum_of_a_quadratic_program(seed, kernel, intercept):
    rng = np.random.default_rng(seed)
    X, y = some_rows(seed=seed)
    y -= 0.0 if intercept else 3.0
    weights = rng.choice([0.5, 1.0, 3.0], size=len(y))
    C, epsilon = float(rng.choice([0.1, 1.0, 20.0])), float(rng.choice([0.0, 0.1, 0.5]))
    model = KernelSVR(C, kernel=kernel, coef0=1.0, degree=2, epsilon=epsilon, fit_intercept=intercept, tol=1e-7)
    model.fit(X, y, weights)
    K = values(model, X, X)
    other = objective_of_quadprog(K, y, C * weights, epsilon, intercept)
    assert model.converged_ and model.gap_ <= 1e-7
    assert model.lower_bound_ <= other and model.objective_ * (1.0 - 1e-7) <= other <= model.objective_ * (1.0 + 1e-3)
    assert model.objective_ == pytest.approx(objective(model, K, y, weights), rel=1e-9)
    assert model.gap_ == (model.objective_ - model.lower_bound_) / model.objective_
    np.testing.assert_allclose(
        model.predict(X), values(model, X, X[model.support_]) @ model.dual_coef_[0] + model.intercept_, atol=1e-9
    )
    assert intercept or model.intercept_.tolist() == [0.0]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C, epsilon", [(1.0, 0.1), (10.0, 0.0), (0.05, 0.3)])
def test_as_svr(kernel, C, epsilon):
    X, y = some_rows(200)
    params = {"C": C, "epsilon": epsilon, "kernel": kernel, "coef0": 0.5, "degree": 2}
    model, peer = KernelSVR(tol=1e-8, **params).fit(X, y), SVR(tol=1e-8, **params).fit(X, y)
    other = some_rows(100, seed=9)[0]
    np.testing.assert_allclose(model.predict(other), peer.predict(other), atol=2e-3)
    assert model.dual_coef_.shape == (1, len(model.support_)) and model.n_support_.tolist() == [len(model.support_)]
    assert model.intercept_.shape == (1,) and np.all(np.diff(model.support_) > 0)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    if kernel == "linear":
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    else:
        assert not hasattr(model, "coef_")


def test_a_linear_kernel_is_linear_regression():
    X, y = some_rows()
    model, linear = KernelSVR(kernel="linear", tol=1e-8).fit(X, y), LinearSVR(epsilon=0.1, tol=1e-8).fit(X, y)
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-7)
    np.testing.assert_allclose(model.predict(X), linear.predict(X), atol=1e-3)


def test_bounds_at_every_record():
    X, y = some_rows(300)
    seen = []
    model = KernelSVR(20.0, tol=1e-6, callbacks=[seen.append]).fit(X, y)
    best = KernelSVR(20.0, tol=1e-8).fit(X, y)
    assert len(seen) == len(model.history_) > 1
    for record in seen:
        assert record.lower <= best.objective_ and best.lower_bound_ <= record.primal


def test_weights_are_repetitions():
    X, y = some_rows()
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    rows, targets = np.repeat(X, times, axis=0), np.repeat(y, times)
    weighted, repeated = KernelSVR(2.0, gamma=0.4).fit(X, y, times), KernelSVR(2.0, gamma=0.4).fit(rows, targets)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-13)
    assert weighted.objective_ == repeated.objective_
    assert KernelSVR().fit(X, y, times).gamma_ == pytest.approx(KernelSVR().fit(rows, targets).gamma_, rel=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(layout, kernel):
    X, y = some_rows()
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    X = np.float32(X).astype(np.float64)
    given = LAYOUTS[layout](X)
    params = {"kernel": kernel, "gamma": 0.3, "tol": 1e-9}
    model, dense = KernelSVR(**params).fit(given, y), KernelSVR(**params).fit(X, y)
    np.testing.assert_allclose(model.predict(given), dense.predict(X), atol=2e-4)
    assert model.objective_ == pytest.approx(dense.objective_, rel=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n", [300, 3000])
def test_threads_give_the_same_bits(n, kind):
    X, y = some_rows(n)
    one, three = (KernelSVR(5.0, n_jobs=jobs).fit(kind(X), y) for jobs in (1, 3))
    np.testing.assert_array_equal(one.dual_coef_, three.dual_coef_)
    np.testing.assert_array_equal(one.predict(kind(X)), three.predict(kind(X)))
    assert (one.objective_, one.lower_bound_) == (three.objective_, three.lower_bound_)


def test_order_of_the_rows_does_not_matter():
    X, y = some_rows()
    order = np.random.default_rng(3).permutation(len(y))
    model, other = KernelSVR(gamma=0.5).fit(X, y), KernelSVR(gamma=0.5).fit(X[order], y[order])
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=0, atol=1e-12)


def test_precomputed_values():
    X, y = some_rows()
    K = rbf_kernel(X, gamma=0.4)
    model, other = KernelSVR(kernel="precomputed", tol=1e-8).fit(K, y), KernelSVR(gamma=0.4, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(K), other.predict(X), atol=1e-4)
    assert model.support_vectors_.shape == (0, 0) and model.objective_ == pytest.approx(other.objective_, rel=1e-7)
    with pytest.raises(ValueError, match="expected a square matrix"):
        KernelSVR(kernel="precomputed").fit(K[:, :5], y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("target", [0.0, 0.3, -7.3, 1e9])
def test_constant_targets(target, epsilon, intercept):
    X, _ = some_rows(30)
    model = KernelSVR(1e3, epsilon=epsilon, fit_intercept=intercept).fit(X, np.full(30, target))
    if intercept or target == 0.0:
        assert model.converged_ and model.objective_ == model.lower_bound_ == model.gap_ == 0.0
        np.testing.assert_array_equal(model.predict(X), np.full(30, target))
        assert not len(model.support_)
    else:
        assert model.converged_ and model.objective_ > 0.0


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("centre", [0.1, 0.4, 1.0, 1.0 / 3.0, -7.3, 1e6])
def test_targets_on_the_tube(centre, kernel, C):
    """Both ends of the tube are targets, rounded: w = 0 has no loss but last digits."""
    X, _ = some_rows(30)
    y = np.where(X[:, 0] > 0.0, centre + 0.1, centre - 0.1)
    model = KernelSVR(C, epsilon=0.1, kernel=kernel).fit(X, y)
    assert model.converged_ and model.status_ is Status.CONVERGED and model.gap_ == 0.0
    assert 0.0 == model.lower_bound_ <= model.objective_ <= 1e-15 * C * 30 * (abs(centre) + 1.0)
    assert not len(model.support_) and model.history_[-1]["gap"] == 0.0
    np.testing.assert_allclose(model.predict(X), centre, rtol=1e-15)


def test_a_small_objective_is_no_zero():
    """Targets just outside of the tube: F is small, and has its bounds all the same."""
    X, _ = some_rows(30)
    y = np.where(X[:, 0] > 0.0, 0.1, -0.1) * (1.0 + 1e-4)
    model = KernelSVR(epsilon=0.1).fit(X, y)
    assert model.converged_ and 0.0 < model.lower_bound_ <= model.objective_ < 1e-6
    assert model.gap_ == (model.objective_ - model.lower_bound_) / model.objective_


def test_one_row_and_rows_that_are_all_the_same():
    X, y = some_rows(1)
    model = KernelSVR().fit(X, y)
    assert model.converged_ and model.predict(X) == y
    model = KernelSVR(epsilon=0.0, tol=1e-6).fit(np.ones((5, 2)), [1.0, 2.0, 3.0, 4.0, 100.0])
    assert model.converged_ and model.predict([[1.0, 1.0]]) == pytest.approx(3.0)
    assert model.objective_ == pytest.approx(2 + 1 + 0 + 1 + 97)


def test_targets_far_from_0():
    X, y = some_rows()
    near, far = KernelSVR(tol=1e-6).fit(X, y), KernelSVR(tol=1e-6).fit(X, y + 2.0**40)
    np.testing.assert_allclose(far.predict(X) - 2.0**40, near.predict(X), atol=0.01)
    assert far.objective_ == pytest.approx(near.objective_, rel=0.01)


def test_limits_on_time_and_iterations():
    X, y = some_rows(6000, d=10)
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = KernelSVR(1e4, gamma=1.0, epsilon=0.0, tol=1e-9, max_time=1.0).fit(X, y)
    assert time.perf_counter() - began < 8.0
    assert model.status_ is Status.MAX_TIME and not model.converged_
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = KernelSVR(1e3, tol=1e-9, max_iter=1).fit(X[:300], y[:300])
    assert model.status_ is Status.MAX_ITER and model.n_iter_ == 1 and model.gap_ > 1e-9


def test_a_callback_ends_the_fit():
    X, y = some_rows()
    with pytest.warns(ConvergenceWarning):
        model = KernelSVR(tol=1e-9, callbacks=[lambda record: True]).fit(X, y)
    assert model.status_ is Status.CALLBACK and len(model.history_) == 1


def test_little_memory():
    X, y = some_rows(3000, d=5)
    some, all_values = KernelSVR(memory_limit="60 MB", tol=1e-5).fit(X, y), KernelSVR(tol=1e-5).fit(X, y)
    assert some.objective_ == pytest.approx(all_values.objective_, rel=2e-5)


BAD = [
    {"C": 0.0},
    {"C": -1.0},
    {"epsilon": -0.1},
    {"epsilon": np.nan},
    {"kernel": "cosine"},
    {"kernel": None},
    {"gamma": 0.0},
    {"gamma": "big"},
    {"degree": 0},
    {"coef0": np.inf},
    {"kernel": "poly", "coef0": -1.0},
    {"tol": 0.0},
    {"max_iter": 0},
    {"max_time": -1.0},
    {"memory_limit": "much"},
    {"fit_intercept": "yes"},
]


@pytest.mark.parametrize("params", BAD, ids=str)
def test_bad_parameters(params):
    name = "coef0" if "coef0" in params else next(iter(params))
    with pytest.raises(ValueError, match=name):
        KernelSVR(**params).fit(*some_rows(10))


def test_bad_data():
    X, y = some_rows(10)
    with pytest.raises(ValueError, match="dtype"):
        KernelSVR().fit(X, np.array(["a"] * 10))
    with pytest.raises(ValueError, match="one target per row"):
        KernelSVR().fit(X, np.column_stack([y, y]))
    with pytest.raises(NotFittedError):
        KernelSVR().predict(X)
    with pytest.raises(FloatingPointError, match="scale the features"), np.errstate(all="ignore"):
        KernelSVR(kernel="linear").fit(1e200 * X, y)


def test_grid_search_clone_and_pickle():
    X, y = some_rows(100)
    search = GridSearchCV(KernelSVR(epsilon=0.05), {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5 and search.best_params_["C"] == 10.0
    model = search.best_estimator_
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, np.float32])
@pytest.mark.parametrize("kernel", [*KERNELS, "sigmoid"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_model_files(kernel, kind, tmp_path):
    X, y = some_rows()
    model = KernelSVR(3.0, kernel=kernel, epsilon=0.05, coef0=0.25).fit(kind(X), y)
    save_model(model, tmp_path / "model")
    saved = load_model(tmp_path / "model")
    assert saved.task == "kernel-regress" and type(saved.estimator) is KernelSVR
    assert saved.estimator.get_params() == model.get_params()
    np.testing.assert_array_equal(saved.predict(kind(X)), model.predict(kind(X)))
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "gamma_", "objective_", "status_"):
        np.testing.assert_array_equal(getattr(saved.estimator, name), getattr(model, name), strict=True)


def test_sources_and_reports(tmp_path):
    X, y = some_rows()
    convert((X, y), tmp_path / "rows.store")
    model = KernelSVR().fit(str(tmp_path / "rows.store"))
    np.testing.assert_array_equal(model.predict(X), KernelSVR().fit(X, y).predict(X))
    np.testing.assert_array_equal(model.predict(str(tmp_path / "rows.store")), model.predict(X))
    assert model.score(str(tmp_path / "rows.store")) == pytest.approx(model.score(X, y))
    report(model, X, y, file=tmp_path / "report.html")
    assert "KernelSVR" in (tmp_path / "report.html").read_text()
