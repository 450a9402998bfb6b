"""LinearSVR, QuantileSVR and LinearSVRCV: conventions, optima, weights, stores, paths."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, QuantileRegressor, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR
from sklearn.svm import LinearSVR as SklearnLinearSVR

from cutsvm import LinearSVR, LinearSVRCV, QuantileSVR, convert, linear_path
from tests.support.reference import losses as reference

TUBE, SQUARED, HUBER = "epsilon_insensitive", "squared_epsilon_insensitive", "huber"
SHAPES = [
    (LinearSVR(), {"epsilon": 0.0}),
    (LinearSVR(epsilon=0.4), {"epsilon": 0.4}),
    (QuantileSVR(), {"below": 0.5, "above": 0.5}),
    (QuantileSVR(quantile=0.9), {"below": 0.9, "above": 0.1}),
]
MODELS = [
    *(model for model, _ in SHAPES),
    LinearSVR(loss=SQUARED),
    LinearSVR(loss=SQUARED, epsilon=0.3),
    LinearSVR(loss=HUBER, epsilon=0.5),
]


def clone_with(model, **params):
    return type(model)(**{**model.get_params(), **params})


def intercept_of(name):
    return {"fit_intercept": False} if name == "none" else {"intercept": name}


def small(seed=3, n=60, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.standard_t(3, size=n) + 1.5
    return X, y, rng.integers(0, 4, size=n).astype(float)


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize(("model", "shape"), SHAPES)
def test_optimum_of_piecewise_linear_losses(model, shape, intercept):
    X, y, weights = small()
    model = clone_with(model, C=0.7, tol=1e-6, **intercept_of(intercept)).fit(X, y, sample_weight=weights)
    low, high = reference.tube_optimum(X, y, weights, 0.7, intercept, **shape)
    assert high - low < 1e-4 * high
    assert model.lower_bound_ <= high and model.objective_ >= low
    assert model.converged_ and model.gap_ <= 1e-6
    own = reference.tube_objective(X, y, weights, 0.7, intercept, model.coef_, model.intercept_[0], **shape)
    assert model.objective_ == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("solver", ["ocas", "newton"])
@pytest.mark.parametrize(("loss", "epsilon"), [(SQUARED, 0.0), (SQUARED, 0.4), (HUBER, 0.4), (HUBER, 3.0)])
def test_optimum_of_smooth_losses(loss, epsilon, solver, intercept):
    X, y, weights = small()
    model = LinearSVR(C=0.7, loss=loss, epsilon=epsilon, tol=1e-7, solver=solver, **intercept_of(intercept))
    model.fit(X, y, sample_weight=weights)
    given = loss, X, y, weights, 0.7, intercept
    low, high = reference.smooth_optimum(*given, epsilon=epsilon)
    assert high - low < 1e-6 * high
    assert model.lower_bound_ <= high and model.objective_ >= low
    assert model.gap_ <= 1e-7
    own = reference.smooth_objective(*given, model.coef_, model.intercept_[0], epsilon=epsilon)
    assert model.objective_ == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_bounds_at_every_iterate(model):
    X, y, weights = small()
    fitted = clone_with(model, C=2.0, solver="ocas", tol=1e-5).fit(X, y, sample_weight=weights)
    best = clone_with(model, C=2.0, tol=1e-7).fit(X, y, sample_weight=weights)
    assert len(fitted.history_) > 3
    for record in fitted.history_:
        assert record["lower"] <= best.objective_ and record["primal"] >= best.lower_bound_


def test_epsilon_insensitive_is_that_of_svr():
    X, y, _ = small(n=200)
    ours = LinearSVR(C=0.5, epsilon=0.2, tol=1e-8).fit(X, y)
    theirs = SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-8).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-3)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-2)


def test_attributes_have_the_shapes_of_scikit_learn():
    X, y, _ = small()
    for ours, theirs in ((LinearSVR(), SklearnLinearSVR()), (QuantileSVR(), SklearnLinearSVR())):
        ours.fit(X, y), theirs.fit(X, y)
        assert ours.coef_.shape == theirs.coef_.shape == (5,)
        assert ours.intercept_.shape == theirs.intercept_.shape == (1,)
        assert ours.predict(X).shape == (60,)
        assert_allclose(ours.predict(X), X @ ours.coef_ + ours.intercept_, rtol=1e-12)


def test_huber_without_epsilon_is_the_absolute_loss():
    """Its limit: C epsilon H(r / epsilon) for small epsilon is C |r|."""
    X, y, _ = small()
    absolute, huber = LinearSVR().fit(X, y), LinearSVR(loss=HUBER).fit(X, y)
    assert_array_equal(absolute.coef_, huber.coef_)
    near = LinearSVR(1e5, loss=HUBER, epsilon=1e-5, tol=1e-4, solver="ocas").fit(X, y)
    assert near.objective_ == pytest.approx(absolute.objective_, rel=2e-3)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_quantiles_divide_the_rows(quantile):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.exponential(size=2000)
    model = QuantileSVR(quantile=quantile, tol=1e-6).fit(X, y)
    share = np.mean(y < model.predict(X) - 1e-9), np.mean(y <= model.predict(X) + 1e-9)
    assert share[0] <= quantile + 1e-3 and share[1] >= quantile - 1e-3


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("model", MODELS)
def test_weight_is_repetition(model, intercept):
    X, y, weights = small(n=300)
    rows = np.repeat(np.arange(300), weights.astype(int))
    weighted = clone_with(model, C=0.3, intercept=intercept).fit(X, y, sample_weight=weights)
    repeated = clone_with(model, C=0.3, intercept=intercept).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_n_jobs_does_not_change_a_bit(model):
    X, y, _ = small(n=5000)
    one, two = (clone_with(model, C=0.01, n_jobs=k, solver="ocas").fit(X, y) for k in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert_array_equal(one.intercept_, two.intercept_)
    assert one.lower_bound_ == two.lower_bound_


@pytest.mark.parametrize("model", MODELS)
def test_store_is_memory(model, tmp_path):
    X, y, weights = small(n=5000)
    convert([(X, y)], tmp_path / "rows.store")
    memory = clone_with(model, C=0.01, solver="ocas").fit(X, y, sample_weight=weights[:5000])
    disk = clone_with(model, C=0.01, solver="ocas", memory_limit="1GB")
    disk.fit(tmp_path / "rows.store", sample_weight=weights[:5000])
    assert disk.objective_ == pytest.approx(memory.objective_, rel=1e-9)
    assert disk.lower_bound_ == pytest.approx(memory.lower_bound_, rel=1e-6)
    assert disk.coef_.shape == (5,)


def test_several_targets_name_the_remedy():
    X, y, _ = small()
    both = np.column_stack([y, -y])
    with pytest.raises(ValueError, match=r"shape \(60, 2\): one target per row.*MultiOutputRegressor"):
        LinearSVR().fit(X, both)
    assert MultiOutputRegressor(LinearSVR()).fit(X, both).predict(X).shape == (60, 2)


def test_targets_that_are_no_numbers(tmp_path):
    with pytest.raises(ValueError, match="NaN"):
        LinearSVR().fit(np.eye(3), [1.0, np.nan, 2.0])
    with pytest.raises(ValueError):
        LinearSVR().fit(np.eye(3), ["a", "b", "c"])
    convert([(np.eye(3), np.array(["a", "b", "c"]))], tmp_path / "text.store")
    with pytest.raises(ValueError, match=r"y has dtype .*: expected numbers"):
        LinearSVR().fit(tmp_path / "text.store")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LinearSVR(epsilon=-0.1), "epsilon=-0.1: expected a finite number, 0 or more"),
        (LinearSVR(epsilon=np.inf), "epsilon=inf"),
        (LinearSVR(loss="l1"), "'epsilon_insensitive', 'squared_epsilon_insensitive', 'huber'"),
        (QuantileSVR(quantile=0.0), "quantile=0.0: expected a number between 0 and 1"),
        (QuantileSVR(quantile=1), "quantile=1"),
        (QuantileSVR(solver="newton"), "with quantile=0.5: use 'auto', 'ocas', 'cpa'"),
        (LinearSVR(solver="accpm"), "loss='epsilon_insensitive', epsilon=0.0: use 'auto', 'ocas', 'cpa'"),
    ],
)
def test_bad_parameters(model, words):
    X, y, _ = small()
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize("model", MODELS)
def test_constant_targets_are_fitted_exactly(model):
    """F = 0 at w = 0 and b = y: gap 0, not 0 / 0."""
    X, _, _ = small()
    fitted = clone_with(model).fit(X, np.full(60, 2.5))
    assert fitted.converged_
    assert_allclose(fitted.predict(X), 2.5, atol=0.5 + 1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_targets_far_from_0(model):
    X, y, _ = small(n=500)
    near, far = clone_with(model, tol=1e-4).fit(X, y), clone_with(model, tol=1e-4).fit(X, y + 1e6)
    assert far.gap_ <= 1e-4
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-4)


@pytest.mark.parametrize("model", MODELS)
def test_path(model):
    X, y, _ = small(n=400)
    models = linear_path(X, y, Cs=[0.01, 0.1, 1.0], estimator=model)
    assert [type(one) for one in models] == 3 * [type(model)]
    for one in models:
        alone = clone_with(model, C=one.C, tol=1e-6).fit(X, y)
        assert one.gap_ <= 1e-3
        assert one.lower_bound_ <= alone.objective_ and alone.lower_bound_ <= one.objective_


@pytest.mark.parametrize("model", MODELS)
def test_number_of_C_follows_the_units_of_y(model):
    """y in other units: the same range of C for w in these units."""
    X, y, _ = small()
    Cs = [one.C for one in linear_path(X, y, Cs=3, estimator=model, max_iter=1, tol=1.0)]
    unit, more = 1000.0, {}
    if isinstance(model, LinearSVR):
        more = {"epsilon": model.epsilon * unit}
    scaled = [one.C for one in linear_path(X, y * unit, Cs=3, estimator=model, max_iter=1, tol=1.0, **more)]
    power = 0 if isinstance(model, LinearSVR) and model.loss != TUBE else 1
    assert_allclose(scaled, np.array(Cs) * unit**power, rtol=1e-5)


def test_path_wants_a_linear_model():
    with pytest.raises(TypeError, match="expected LinearSVC"):
        linear_path(np.eye(3), [1.0, 2.0, 3.0], Cs=[1.0], estimator=SklearnLinearSVR())


@pytest.mark.parametrize("model", MODELS)
def test_warm_start_keeps_planes(model):
    X, y, _ = small(n=400)
    kept = clone_with(model, warm_start=True, solver="ocas").fit(X, y)
    first = kept.n_iter_
    assert kept.fit(X, y).n_iter_ < first
    changed = {"quantile": 0.3} if isinstance(model, QuantileSVR) else {"epsilon": 1.0}
    kept.set_params(**changed).fit(X, y)  # the planes are those of another loss
    alone = clone_with(kept, warm_start=False, tol=1e-6).fit(X, y)
    assert kept.lower_bound_ <= alone.objective_ and alone.lower_bound_ <= kept.objective_


@pytest.mark.parametrize("model", MODELS)
def test_checkpoint(model, tmp_path):
    X, y, _ = small(n=400)
    file = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning):
        clone_with(model, solver="ocas", max_iter=2, checkpoint=file).fit(X, y)
    name, value = ("quantile", 0.3) if isinstance(model, QuantileSVR) else ("epsilon", 1.0)
    with pytest.raises(ValueError, match=f"{name} {getattr(model, name)} there, {value} here"):
        clone_with(model, solver="ocas", checkpoint=file, **{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="y has other"):
        clone_with(model, solver="ocas", checkpoint=file).fit(X, y + 1e-9)
    resumed = clone_with(model, solver="ocas", checkpoint=file).fit(X, y)
    assert resumed.converged_ and resumed.history_[0]["iteration"] >= 2


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (LinearSVR(epsilon=0.1), SklearnLinearSVR),
        (LinearSVR(loss=SQUARED, fit_intercept=False), SklearnLinearSVR),
        (LinearSVR(loss=HUBER, epsilon=0.1), HuberRegressor),
        (QuantileSVR(quantile=0.7), QuantileRegressor),
        (LinearSVRCV(Cs=2, cv=2), SklearnLinearSVR),
    ],
)
def test_to_sklearn(model, kind):
    X, y, _ = small()
    twin = model.fit(X, y).to_sklearn()
    assert type(twin) is kind
    for given in (X, X.astype(np.float32), sparse.csr_array(X)):
        assert_allclose(twin.predict(given), model.predict(given), rtol=1e-5)


def test_cross_validation():
    X, y = load_diabetes(return_X_y=True)
    model = LinearSVRCV(Cs=6, cv=4, loss=SQUARED).fit(X, y)
    assert model.scores_.shape == model.gaps_.shape == (4, 6)
    assert model.C_ == model.Cs_[model.scores_.mean(axis=0).argmax()]
    assert np.all(model.gaps_ <= 1e-3)
    assert model.score(X, y) > 0.45
    first = np.arange(len(y)) < -(-len(y) // 4)
    alone = LinearSVR(model.C_, loss=SQUARED).fit(X[~first], y[~first])
    at = int(model.scores_.mean(axis=0).argmax())
    assert model.scores_[0, at] == pytest.approx(alone.score(X[first], y[first]), abs=2e-3)
    weighted = LinearSVRCV(Cs=[0.1, 1.0], cv=3, scoring="neg_mean_absolute_error")
    assert np.all(weighted.fit(X, y, sample_weight=np.arange(len(y)) % 3).scores_ < 0.0)


def test_huber_is_that_of_scikit_learn_at_its_scale():
    """docs/objective.md: epsilon times sigma, and C = 1 / (alpha sigma)."""
    X, y, _ = small(n=200)
    theirs = HuberRegressor(epsilon=1.5, alpha=0.3, tol=1e-9, max_iter=10_000).fit(X, y)
    epsilon, C = 1.5 * theirs.scale_, 1.0 / (0.3 * theirs.scale_)
    ours = LinearSVR(C, loss=HUBER, epsilon=epsilon, tol=1e-8, solver="newton").fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-3)


def test_squared_loss_is_ridge():
    X, y, _ = small(n=200)
    ours = LinearSVR(0.4, loss=SQUARED, tol=1e-9, solver="newton").fit(X, y)
    theirs = Ridge(alpha=1 / 0.8).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_held_out_predictions():
    X, y, _ = small(n=90)
    model = LinearSVRCV(Cs=[0.1, 1.0], cv=3).fit(X, y)
    for k in range(3):
        test = np.arange(90) // 30 == k
        alone = linear_path(X[~test], y[~test], Cs=[0.1, 1.0], estimator=LinearSVR())
        own = alone[[0.1, 1.0].index(model.C_)].predict(X[test])
        assert_allclose(model.held_out_scores_[test], own, rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("solver", ["auto", "ocas"])
def test_objective_is_that_of_the_rounded_intercept(loss, solver):
    """Targets that differ in their last digit: nothing lies between them, and F is that of the intercept returned."""
    targets, epsilon = [1e8, float(np.nextafter(1e8, np.inf))], 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a gap of 1e-3 does not exist
        model = LinearSVR(loss=loss, epsilon=epsilon, solver=solver).fit([[1.0], [1.0]], targets)
    score = Fraction(float(model.intercept_[0])) + Fraction(float(model.coef_[0]))
    r, e = [abs(score - Fraction(t)) for t in targets], Fraction(epsilon)
    exact = {
        "squared_epsilon_insensitive": sum(max(x - e, Fraction(0)) ** 2 for x in r),
        "huber": sum(x * x / 2 if x <= e else e * (x - e / 2) for x in r),
        "epsilon_insensitive": sum(max(x - e, Fraction(0)) for x in r),
    }[loss]
    exact += Fraction(float(model.coef_[0])) ** 2 / 2
    assert model.objective_ == pytest.approx(float(exact), rel=1e-9)
    assert Fraction(model.lower_bound_) <= exact
