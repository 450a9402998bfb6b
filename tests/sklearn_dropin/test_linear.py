"""LinearSVC and LinearSVR of cutsvm.sklearn beside scikit-learn's."""

from __future__ import annotations

import inspect
import logging
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cutsvm import Status
from cutsvm import sklearn as dropin
from cutsvm.sklearn.training import gap_of_tol

PAIRS = [(dropin.LinearSVC, svm.LinearSVC), (dropin.LinearSVR, svm.LinearSVR), (dropin.SVC, svm.SVC)]
CERTIFICATE = {"objective_", "lower_bound_", "gap_"}


def rows(n_classes: int, n: int = 80):
    """Overlapping classes with text labels, features of several scales."""
    random = np.random.default_rng(n_classes)
    codes = np.arange(n) % n_classes
    X = (random.normal(size=(n, 5)) + 1.5 * np.eye(5)[codes]) * [1.0, 2.0, 0.5, 1.0, 3.0]
    return X, np.array(["ant", "bee", "cat"])[codes]


def targets(n: int = 80):
    random = np.random.default_rng(7)
    X = random.normal(size=(n, 4))
    return X, X @ [1.0, -2.0, 0.0, 0.5] + 3.0 + random.normal(size=n)


def fit_exactly(estimator, X, y, **more):
    """A fit by scikit-learn to nearly the last digit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.set_params(tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, y, **more)


@pytest.mark.parametrize("ours, theirs", PAIRS)
def test_signatures_and_defaults_are_scikit_learns(ours, theirs):
    assert ours.__name__ == theirs.__name__
    assert issubclass(ours, theirs)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours().get_params() == theirs().get_params()
    assert repr(ours()) == repr(theirs())
    for name, method in inspect.getmembers(theirs, inspect.isfunction):
        assert list(inspect.signature(getattr(ours, name)).parameters) == list(inspect.signature(method).parameters)
    assert ours().__sklearn_tags__() == theirs().__sklearn_tags__()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "hinge"},
        {"multi_class": "crammer_singer"},
        {"multi_class": "crammer_singer", "penalty": "l1", "fit_intercept": False},
        {"fit_intercept": False},
        {"intercept_scaling": 10.0},
        {"intercept_scaling": 0.1, "loss": "hinge", "C": 0.1},
        {"class_weight": "balanced", "C": 0.1},
        {"class_weight": "balanced", "multi_class": "crammer_singer"},
        {"class_weight": {"ant": 3.0, "bee": 0.5}},
        {"class_weight": {"ant": 3.0, "bee": 0.5}, "multi_class": "crammer_singer"},
        {"dual": False},
    ],
    ids=str,
)
def test_linear_svc_has_scikit_learns_optimum(params, n_classes):
    X, y = rows(n_classes)
    if isinstance(params.get("class_weight"), dict) and n_classes == 3:
        params = {**params, "class_weight": {**params["class_weight"], "cat": 1.0}}
    weight = np.random.default_rng(0).integers(0, 4, size=len(y)).astype(float)
    for more in ({}, {"sample_weight": weight}):
        theirs = fit_exactly(svm.LinearSVC(**params), X, y, **more)
        for kind in (np.asarray, np.float32, np.asfortranarray, sp.csr_matrix, sp.csc_array, pd.DataFrame):
            ours = dropin.LinearSVC(**params, tol=1e-6).fit(kind(X), y, **more)
            close = 1e-4 if kind is not np.float32 else 1e-3
            np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0.0, atol=close)
            np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0.0, atol=close)
            np.testing.assert_array_equal(ours.classes_, theirs.classes_)
            np.testing.assert_allclose(ours.decision_function(kind(X)), theirs.decision_function(X), atol=20.0 * close)
            assert ours.lower_bound_ <= ours.objective_
            assert ours.gap_ <= 1e-9


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"epsilon": 0.5},
        {"epsilon": 0.5, "loss": "squared_epsilon_insensitive"},
        {"loss": "squared_epsilon_insensitive", "C": 0.1, "dual": False},
        {"fit_intercept": False},
        {"intercept_scaling": 10.0, "epsilon": 0.2},
    ],
    ids=str,
)
def test_linear_svr_has_scikit_learns_optimum(params):
    X, y = targets()
    weight = np.random.default_rng(0).integers(0, 4, size=len(y)).astype(float)
    for more in ({}, {"sample_weight": weight}):
        theirs = fit_exactly(svm.LinearSVR(**params), X, y, **more)
        for kind in (np.asarray, sp.csr_matrix, pd.DataFrame):
            ours = dropin.LinearSVR(**params, tol=1e-6).fit(kind(X), y, **more)
            np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0.0, atol=1e-4)
            np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_certificate_is_that_of_the_objective(loss):
    X, y = rows(2)
    weight = np.random.default_rng(0).random(len(y))
    model = dropin.LinearSVC(C=0.3, loss=loss, intercept_scaling=2.0).fit(X, y, weight)
    hinge = np.maximum(0.0, 1.0 - np.where(y == "bee", 1.0, -1.0) * model.decision_function(X))
    penalty = (np.sum(model.coef_**2) + (model.intercept_[0] / 2.0) ** 2) / 2.0
    power = 1 if loss == "hinge" else 2
    assert model.objective_ == pytest.approx(penalty + 0.3 * np.sum(weight * hinge**power), rel=1e-9)
    better = fit_exactly(svm.LinearSVC(C=0.3, loss=loss, intercept_scaling=2.0), X, y, sample_weight=weight)
    assert np.linalg.norm(model.coef_ - better.coef_) <= 1e-4 * np.sqrt(2.0 * model.objective_)


def test_certificate_of_two_classes_in_one_problem():
    """F = sum_k |w_k|^2 / 2 + C sum_i max(0, 1 - v_i) with w_2 = -w_1: |v|^2 / 4 and the hinge loss of v."""
    X, y = rows(2)
    model = dropin.LinearSVC(C=0.3, multi_class="crammer_singer").fit(X, y)
    hinge = np.maximum(0.0, 1.0 - np.where(y == "bee", 1.0, -1.0) * model.decision_function(X))
    penalty = (np.sum(model.coef_**2) + model.intercept_[0] ** 2) / 4.0
    assert model.objective_ == pytest.approx(penalty + 0.3 * np.sum(hinge), rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_attributes_have_scikit_learns_types(n_classes, fit_intercept):
    X, y = rows(n_classes)
    frame = pd.DataFrame(X, columns=list("abcde"))
    cases = [
        (dropin.LinearSVC(fit_intercept=fit_intercept), svm.LinearSVC(fit_intercept=fit_intercept), y),
        (dropin.LinearSVR(fit_intercept=fit_intercept), svm.LinearSVR(fit_intercept=fit_intercept), X[:, 0]),
    ]
    for ours, theirs, y in cases:
        ours, theirs = ours.fit(frame, y), fit_exactly(theirs, frame, y)
        assert vars(ours).keys() - CERTIFICATE == vars(theirs).keys()
        for name in ("coef_", "intercept_", "n_iter_", "n_features_in_", "feature_names_in_"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            assert type(mine) is type(other)
            assert np.shape(mine) == np.shape(other)
            assert getattr(mine, "dtype", None) == getattr(other, "dtype", None)


def error_of(estimator, X, y, weight=None):
    with pytest.raises((ValueError, TypeError)) as caught:
        estimator.fit(X, y, weight)
    return type(caught.value), str(caught.value)


BAD_PARAMETERS = [
    {"C": 0.0},
    {"C": "1"},
    {"tol": -1.0},
    {"max_iter": -1},
    {"max_iter": 1.5},
    {"loss": "logistic"},
    {"loss": None},
    {"dual": "yes"},
    {"dual": 1},
    {"fit_intercept": 1},
    {"intercept_scaling": 0.0},
    {"verbose": -1},
    {"random_state": "zero"},
    {"random_state": -1},
]


@pytest.mark.parametrize("params", BAD_PARAMETERS, ids=str)
@pytest.mark.parametrize("ours, theirs", PAIRS[:2])
def test_messages_about_parameters_are_scikit_learns(ours, theirs, params):
    X, y = rows(2)
    y = np.arange(len(y)) % 2
    assert error_of(ours(**params), X, y) == error_of(theirs(**params), X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"penalty": "l1", "loss": "hinge"},
        {"penalty": "l1", "dual": True},
        {"loss": "hinge", "dual": False},
        {"penalty": "elasticnet"},
        {"multi_class": "ovo"},
        {"class_weight": "equal"},
        {"class_weight": {"ant": 1.0, "elk": 2.0}},
    ],
    ids=str,
)
def test_messages_about_combinations_are_scikit_learns(params):
    X, y = rows(2)
    assert error_of(dropin.LinearSVC(**params), X, y) == error_of(svm.LinearSVC(**params), X, y)


def test_message_about_loss_and_dual_of_regression_is_scikit_learns():
    X, y = targets()
    assert error_of(dropin.LinearSVR(dual=False), X, y) == error_of(svm.LinearSVR(dual=False), X, y)


@pytest.mark.parametrize("ours, theirs", PAIRS[:2])
def test_messages_about_data_are_scikit_learns(ours, theirs):
    X, _ = rows(2)
    y = np.arange(len(X)) % 2
    bad = [
        (X[:5], y, None),
        (X[0], y, None),
        (np.where(X > 2.0, np.nan, X), y, None),
        (X, np.column_stack([y, y]), None),
        (X, None, None),
        (X, y, np.ones(3)),
        (X, y, np.full(len(y), np.nan)),
        (X, y, ["much"] * len(y)),
        (X[:0], y[:0], None),
    ]
    for arguments in bad:
        assert error_of(ours(), *arguments) == error_of(theirs(), *arguments)


def test_messages_about_labels_are_scikit_learns():
    X, _ = rows(2)
    for y in (np.zeros(len(X)), np.linspace(0.0, 1.0, len(X))):
        assert error_of(dropin.LinearSVC(), X, y) == error_of(svm.LinearSVC(), X, y)


@pytest.mark.parametrize(
    "model, word",
    [
        (dropin.LinearSVC(penalty="l1", dual=False, random_state=0), "penalty='l1'"),
        (dropin.SVC(), "kernel='rbf'"),
        (dropin.SVC(kernel="linear"), "80 rows are few"),
    ],
    ids=str,
)
def test_fall_through_is_scikit_learns_model_and_one_line_in_the_log(model, word, caplog):
    X, y = rows(3)
    theirs = dict(PAIRS)[type(model)](**model.get_params())
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, "cutsvm"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X, y)
        model.fit(X, y)
    assert vars(model).keys() == vars(theirs).keys()
    np.testing.assert_array_equal(model.decision_function(X), theirs.decision_function(X))
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert word in record.getMessage()
    assert "scikit-learn's own fit" in record.getMessage()


def test_negative_weights_are_left_to_scikit_learn(caplog):
    X, y = rows(2)
    weight = np.where(np.arange(len(y)) < 10, -1.0, 1.0)
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, "cutsvm"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = dropin.LinearSVC(random_state=0).fit(X, y, weight)
        theirs = svm.LinearSVC(random_state=0).fit(X, y, weight)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert "sample_weight" in caplog.text


@pytest.mark.parametrize("name, y", [("LinearSVC", np.arange(80) % 2), ("LinearSVR", np.linspace(0.0, 1.0, 80))])
def test_overflow_is_left_to_scikit_learn(name, y, monkeypatch, caplog):
    def overflow(*_):
        raise FloatingPointError("the objective would overflow")

    X, _ = rows(2)
    monkeypatch.setattr(f"cutsvm.sklearn.training.Quiet{name}.fit", overflow)
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, "cutsvm"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = getattr(dropin, name)(random_state=0).fit(X, y)
        theirs = getattr(svm, name)(random_state=0).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert "the objective would overflow; scikit-learn's own fit follows" in caplog.text


def test_ctrl_c_ends_the_script(monkeypatch):
    def interrupted(model, *_):
        model.status_ = Status.INTERRUPTED
        return model

    monkeypatch.setattr("cutsvm.sklearn.training.QuietLinearSVC.fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dropin.LinearSVC().fit(*rows(2))


def test_certificate_goes_with_the_fit_that_it_is_of():
    X, y = rows(2)
    model = dropin.LinearSVC(random_state=0).fit(X, y)
    assert vars(model).keys() >= CERTIFICATE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(penalty="l1", dual=False).fit(X, y)
    assert not vars(model).keys() & CERTIFICATE


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_few_iterations_warn_in_scikit_learns_words(loss):
    X, y = rows(3, 2000)
    with pytest.warns(ConvergenceWarning, match="^Liblinear failed to converge, increase the number of iterations."):
        model = dropin.LinearSVC(loss=loss, max_iter=1, C=100.0, tol=1e-6).fit(X, y)
    assert model.n_iter_ == 1
    assert model.gap_ > gap_of_tol(1e-6)


def test_tolerance_below_rounding_errors_does_not_warn():
    X, y = rows(2)
    model = dropin.LinearSVC(loss="hinge", tol=1e-14, max_iter=100_000).fit(X, y)
    assert model.gap_ < 1e-9


def test_next_random_numbers_are_those_after_scikit_learns_fit():
    X, y = rows(2)
    states = []
    for kind in (dropin.LinearSVC, svm.LinearSVC):
        state = np.random.RandomState(3)
        fit = kind(random_state=state).fit(X, y)
        assert fit.random_state is state
        states.append(state.randint(1 << 30))
    assert states[0] == states[1]


def test_models_are_pickled_and_cloned():
    X, y = rows(3)
    for kind in (dropin.LinearSVC, dropin.SVC):
        model = kind(C=0.3).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        assert type(again) is kind
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert clone(model).get_params() == model.get_params()
        assert not hasattr(clone(model), "classes_")


def test_metadata_routing_knows_sample_weight():
    with sklearn.config_context(enable_metadata_routing=True):
        request = dropin.LinearSVC().set_fit_request(sample_weight=True).get_metadata_routing()
    assert request.fit.requests == {"sample_weight": True}


def test_dense_and_sparse_coefficients():
    X, y = rows(2)
    model = dropin.LinearSVC().fit(X, y)
    dense = model.coef_.copy()
    scores = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.densify().coef_, dense)


@pytest.mark.parametrize("tol, gap", [(1e-4, 1e-8), (0.1, 1e-3), (100.0, 1e-3), (1e-300, np.finfo(float).eps)])
def test_gap_of_tol(tol, gap):
    assert gap_of_tol(tol) == pytest.approx(gap, rel=1e-12)
