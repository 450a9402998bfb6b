"""LinearSVC with every loss: conventions, optima, probabilities, what is legal, random_state."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC as SklearnLinearSVC

from cutsvm import LinearSVC, LinearSVCCV, convert, linear_path, load_model, save_model
from cutsvm.solvers import CPA, DCD, OCAS, Auto, Newton, Sifting
from tests.support.layouts import LAYOUTS
from tests.support.reference import losses as reference

SMOOTH = ("squared_hinge", "logistic")


def small(seed=3, n=60, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + rng.normal(size=n) > 0.2, rng.integers(0, 4, size=n).astype(float)


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("solver", ["ocas", "newton"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_optimum(loss, solver, intercept):
    """Against BFGS, with weights; and the objective is that of coef_ and intercept_."""
    X, y, weights = small()
    params = {"fit_intercept": False} if intercept == "none" else {"intercept": intercept}
    model = LinearSVC(C=0.7, loss=loss, tol=1e-7, solver=solver, **params).fit(X, y, sample_weight=weights)
    given = X, np.where(y, 1.0, -1.0), weights, 0.7, intercept
    low, high = reference.smooth_optimum(loss, *given)
    assert high - low < 1e-6 * high
    assert model.lower_bound_ <= high and model.objective_ >= low
    assert model.converged_ and model.gap_ <= 1e-7
    own = reference.smooth_objective(loss, *given, model.coef_[0], model.intercept_[0])
    assert model.objective_ == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_bounds_at_every_iterate(loss):
    X, y, weights = small()
    model = LinearSVC(C=2.0, loss=loss, tol=1e-6, solver="ocas").fit(X, y, sample_weight=weights)
    low, high = reference.smooth_optimum(loss, X, np.where(y, 1.0, -1.0), weights, 2.0, "free")
    assert len(model.history_) > 3
    assert all(record["lower"] <= high and record["primal"] >= low for record in model.history_)


def test_squared_hinge_is_that_of_scikit_learn():
    X, y, _ = small(n=200)
    ours = LinearSVC(C=0.3, loss="squared_hinge", intercept="regularized", tol=1e-9, solver="newton").fit(X, y)
    theirs = SklearnLinearSVC(C=0.3, tol=1e-12, dual=False, max_iter=100_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_weight_is_repetition(loss, intercept):
    X, y, weights = small(n=300)
    rows = np.repeat(np.arange(300), weights.astype(int))
    params = {"C": 0.3, "loss": loss, "intercept": intercept, "class_weight": "balanced"}
    weighted, repeated = LinearSVC(**params).fit(X, y, sample_weight=weights), LinearSVC(**params).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("solver", ["ocas", "newton"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_n_jobs_does_not_change_a_bit(loss, solver, overlapping):
    X, y = overlapping
    one, two = (LinearSVC(C=0.01, loss=loss, solver=solver, n_jobs=k).fit(X, y) for k in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert_array_equal(one.intercept_, two.intercept_)
    assert one.lower_bound_ == two.lower_bound_


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(layout, overlapping):
    X, y = overlapping
    reference = LinearSVC(C=0.01, loss="logistic").fit(X, y)
    model = LinearSVC(C=0.01, loss="logistic").fit(LAYOUTS[layout](X), y)
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-3)
    assert_allclose(model.predict_proba(LAYOUTS[layout](X)), reference.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("loss", SMOOTH)
def test_store_is_memory(loss, tmp_path, overlapping):
    X, y = overlapping
    convert([(X, y)], tmp_path / "rows.store")
    params = {"C": 0.01, "loss": loss, "solver": "ocas"}
    memory, disk = LinearSVC(**params).fit(X, y), LinearSVC(**params, memory_limit="1GB").fit(tmp_path / "rows.store")
    assert disk.objective_ == pytest.approx(memory.objective_, rel=1e-9)
    assert disk.lower_bound_ == pytest.approx(memory.lower_bound_, rel=1e-6)


@pytest.mark.parametrize("loss", SMOOTH)
def test_one_against_the_rest(loss):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(loss=loss, multi_class="ovr", tol=1e-5, solver="newton").fit(X, y)
    parts = [LinearSVC(loss=loss, tol=1e-5, solver="newton").fit(X, y == k) for k in range(3)]
    assert model.coef_.shape == (3, 4)
    assert_allclose(model.coef_, np.vstack([part.coef_ for part in parts]))
    assert model.objective_ == pytest.approx(sum(part.objective_ for part in parts), rel=1e-12)


def test_probabilities_are_those_of_logistic_regression():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = LinearSVC(C=0.1, loss="logistic", tol=1e-10, solver="newton").fit(X, y)
    theirs = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)
    assert_array_equal(ours.predict(X), ours.classes_[ours.predict_proba(X).argmax(axis=1)])


@pytest.mark.parametrize("kind", [LinearSVC, lambda: LinearSVCCV(Cs=[1.0], cv=2)], ids=["LinearSVC", "LinearSVCCV"])
def test_probabilities_are_those_of_the_fit(kind, overlapping, tmp_path):
    """A parameter that was changed after the fit does not make probabilities of hinge scores."""
    X, y = overlapping
    model = kind().fit(X, y)
    save_model(model, tmp_path / "m")
    for fitted in (model, load_model(tmp_path / "m").estimator):
        fitted.set_params(loss="logistic")
        assert not hasattr(fitted, "predict_proba")
        with pytest.raises(AttributeError) as raised:
            fitted.predict_proba(X)
        assert "the model was fitted with loss='hinge', which has no probabilities" in str(raised.value.__cause__)
        save_model(fitted, tmp_path / "again")
        assert load_model(tmp_path / "again").estimator.loss == "hinge"
    assert_allclose(model.fit(X, y).predict_proba(X).sum(axis=1), 1.0)
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(loss="logistic").fit(X, y)
    before = model.predict_proba(X)
    assert_array_equal(model.set_params(multi_class="ovr").predict_proba(X), before)


@pytest.mark.parametrize("value", ["no", 2, None, 0.5])
def test_flags_are_true_or_false(value, overlapping):
    for make in (lambda v: OCAS(exact=v), lambda v: CPA(exact=v), lambda v: DCD(asynchronous=v)):
        with pytest.raises(ValueError, match=r"(exact|asynchronous)=.*: expected True or False"):
            make(value)
    with pytest.raises(ValueError, match=r"fit_intercept=.*: expected True or False"):
        LinearSVC(fit_intercept=value).fit(*overlapping)
    assert LinearSVC(fit_intercept=np.bool_(False), warm_start=0).fit(*overlapping).intercept_ == 0.0


def test_probabilities_of_several_classes():
    X, y = load_iris(return_X_y=True)
    ours = LinearSVC(C=0.1, loss="logistic", multi_class="ovr", tol=1e-10, solver="newton").fit(X, y)
    theirs = OneVsRestClassifier(LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000)).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), rtol=1e-9)


def test_multinomial_probabilities():
    X, y = load_iris(return_X_y=True)
    ours = LinearSVC(C=0.1, loss="logistic", tol=1e-8, solver="newton").fit(X, y)
    theirs = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)
    assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), rtol=1e-9)


def test_probabilities_of_large_scores():
    """No NaN where every sigmoid, or all but one, is 0 in float64."""
    X, y = np.array([[-1.0], [1.0], [2.0], [-2.0]]), [0, 1, 1, 0]
    model = LinearSVC(loss="logistic").fit(X, y)
    far = np.array([[1e6], [-1e6]]) / model.coef_[0, 0]
    assert_array_equal(model.predict_proba(far), [[0.0, 1.0], [1.0, 0.0]])
    assert_allclose(model.predict_log_proba(far)[[0, 1], [0, 1]], -1e6, rtol=1e-5)
    several = LinearSVC(loss="logistic", multi_class="ovr").fit(np.eye(6), np.arange(6) % 3)
    several.intercept_ = several.intercept_ - 2000.0
    assert_allclose(several.predict_proba(np.eye(6)).sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_other_losses_have_no_probabilities(loss, method):
    X, y, _ = small()
    model = LinearSVC(loss=loss).fit(X, y)
    assert not hasattr(model, method)
    with pytest.raises(AttributeError, match="has no attribute") as error:
        getattr(model, method)(X)
    assert "CalibratedClassifierCV" in str(error.value.__cause__)


@pytest.mark.parametrize(
    ("loss", "multi_class"),
    [
        ("squared_hinge", "crammer_singer"),
        ("hinge", "multinomial"),
        ("squared_hinge", "multinomial"),
        ("logistic", "crammer_singer"),
    ],
)
def test_illegal_combinations_name_the_legal_ones(loss, multi_class):
    with pytest.raises(
        ValueError, match="'hinge' has 'crammer_singer', 'ovr'; 'squared_hinge' has 'ovr'; 'logistic' has"
    ):
        LinearSVC(loss=loss, multi_class=multi_class).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("bad", [{"loss": "l2"}, {"multi_class": "ovo"}, {"random_state": "x"}])
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=str(next(iter(bad.values())))):
        LinearSVC(**bad).fit(np.eye(4), [0, 1, 0, 1])


def test_solver_for_another_loss_names_those_that_are_legal():
    with pytest.raises(
        ValueError,
        match=r"with loss='hinge': use 'auto', 'ocas', 'cpa', 'dcd', 'sifting', 'accpm', 'batched', 'local_dual'$",
    ):
        LinearSVC(solver="newton").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"^ACCPM.*loss='logistic': use 'auto', 'ocas', 'cpa',.*'newton'"):
        LinearSVC(solver="accpm", loss="logistic").fit(np.eye(4), [0, 1, 0, 1])


def test_auto_is_crammer_and_singer_for_the_hinge():
    X, y = load_iris(return_X_y=True)
    auto, joint = LinearSVC().fit(X, y), LinearSVC(multi_class="crammer_singer").fit(X, y)
    assert_array_equal(auto.coef_, joint.coef_)
    assert auto.to_sklearn().multi_class == "crammer_singer"
    assert LinearSVC(loss="squared_hinge").fit(X, y).to_sklearn().multi_class == "ovr"


@pytest.mark.parametrize(
    ("n_classes", "multi_class", "kind"),
    [(2, "ovr", LogisticRegression), (3, "auto", LogisticRegression), (3, "ovr", OneVsRestClassifier)],
)
def test_to_sklearn(n_classes, multi_class, kind):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], np.array(["ant", "bee", "cat"])[y[y < n_classes]]
    model = LinearSVC(loss="logistic", C=0.2, multi_class=multi_class).fit(X, y)
    twin = model.to_sklearn()
    assert type(twin) is kind
    for given in (X, X.astype(np.float32), sparse.csr_array(X)):
        assert_array_equal(twin.predict(given), model.predict(given))
        assert_allclose(twin.predict_proba(given), model.predict_proba(given), rtol=1e-6)
    twin = LinearSVC(loss="squared_hinge").fit(X, y).to_sklearn()
    assert type(twin) is SklearnLinearSVC and twin.loss == "squared_hinge"


@pytest.mark.parametrize("loss", SMOOTH)
def test_path(loss):
    X, y, _ = small(n=400)
    models = linear_path(X, y, Cs=[0.01, 0.1, 1.0], loss=loss)
    for model in models:
        alone = LinearSVC(model.C, loss=loss, tol=1e-6).fit(X, y)
        assert model.gap_ <= 1e-3
        assert model.lower_bound_ <= alone.objective_ and alone.lower_bound_ <= model.objective_
    assert models[-1].loss == loss


@pytest.mark.parametrize("loss", SMOOTH)
def test_warm_start_keeps_planes(loss):
    X, y, _ = small(n=400)
    model = LinearSVC(loss=loss, warm_start=True, solver="ocas").fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    model.set_params(loss="hinge").fit(X, y)  # the planes are those of another loss
    alone = LinearSVC(tol=1e-6).fit(X, y)
    assert model.lower_bound_ <= alone.objective_ and alone.lower_bound_ <= model.objective_


@pytest.mark.parametrize("loss", SMOOTH)
def test_checkpoint_of_another_loss_is_refused(loss, tmp_path):
    X, y, _ = small(n=400)
    file = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning):
        LinearSVC(loss=loss, solver="ocas", max_iter=2, checkpoint=file).fit(X, y)
    with pytest.raises(ValueError, match=f"loss {loss} there, hinge here"):
        LinearSVC(solver="ocas", checkpoint=file).fit(X, y)
    resumed = LinearSVC(loss=loss, solver="ocas", checkpoint=file).fit(X, y)
    assert resumed.converged_ and resumed.history_[0]["iteration"] >= 2 and not file.exists()


def test_cross_validation_scores_probabilities():
    X, y, _ = small(n=300)
    model = LinearSVCCV(Cs=[0.01, 0.1, 1.0], cv=3, loss="logistic", scoring="neg_log_loss").fit(X, y)
    assert model.scores_.shape == (3, 3) and np.all(model.scores_ < 0.0)
    assert model.predict_proba(X).shape == (300, 2)


def test_random_state_seeds_every_solver():
    assert DCD().seeded(5) == DCD(seed=5)
    assert Newton().seeded(5) == Newton(seed=5)
    assert Sifting(inner=DCD()).seeded(5) == Sifting(inner=DCD(seed=5), seed=5)
    assert Auto().seeded(5).seed == 5


def test_random_state_changes_the_order_of_coordinate_descent(overlapping):
    X, y = overlapping
    fits = [LinearSVC(C=0.01, solver="dcd", random_state=state).fit(X, y) for state in (None, None, 1, 1, 2)]
    default, again, one, one_again, two = (model.coef_ for model in fits)
    assert_array_equal(default, again)
    assert_array_equal(one, one_again)
    assert not np.array_equal(one, two)
    assert_array_equal(default, LinearSVC(C=0.01, solver="dcd").fit(X, y).coef_)
    drawn = LinearSVC(C=0.01, solver="dcd", random_state=np.random.RandomState(1)).fit(X, y)
    assert_array_equal(drawn.coef_, one)
    assert all(abs(model.objective_ - fits[0].objective_) <= 1e-3 * fits[0].objective_ for model in fits)


def test_random_state_draws_another_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 4))
    y = X[:, 0] + rng.normal(size=25_000) > 0
    one, same, other = (LinearSVC(solver="sifting", random_state=state).fit(X, y) for state in (1, 1, 2))
    assert_array_equal(one.coef_, same.coef_)
    assert not np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("solver", ["dcd", "newton", "ocas"])
def test_bounds_of_tiny_weights(loss, solver):
    """The square of a weight underflows; the bounds are those of weights of 1 at a C that makes up for them."""
    X, y = np.array([[1.0], [-1.0], [2.0]]), [1, 0, 1]
    tiny = LinearSVC(loss=loss, solver=solver, intercept="regularized", tol=1e-6).fit(X, y, np.full(3, 1e-165))
    same = LinearSVC(C=1e-165, loss=loss, solver="ocas", intercept="regularized", tol=1e-6).fit(X, y)
    for record in tiny.history_:
        assert record["lower"] <= same.objective_ * (1 + 1e-9)
        assert record["primal"] >= same.lower_bound_ * (1 - 1e-9)
