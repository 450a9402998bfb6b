"""SVC of cutsvm.sklearn beside scikit-learn's: the same solution, without rows that have no part in it."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import svm
from sklearn.utils.estimator_checks import check_estimator

from cutsvm import sklearn as dropin
from cutsvm.sklearn.screening import possible_support


class AllSizes(dropin.SVC):
    """An SVC that screens the rows of small data too."""

    _least_rows = 0


def two_classes(seed: int, n: int = 150, noise: float = 0.3):
    random = np.random.default_rng(seed)
    X = random.normal([2.0, 0.0, -1.0], 1.0, size=(n, 3))
    y = (X @ [1.0, -1.0, 0.5] + noise * random.normal(size=n) > 1.0).astype(int)
    return X, y, random


@pytest.mark.slow
def test_scikit_learn_conventions_are_kept_as_by_scikit_learn():
    """SVC of scikit-learn does not pass every check of its own; the drop-in is not to fail another one."""

    def failed(estimator):
        results = check_estimator(estimator, on_fail=None, on_skip=None)
        return {result["check_name"] for result in results if result["status"] == "failed"}

    for params in ({}, {"kernel": "linear"}):
        assert failed(AllSizes(**params)) <= failed(svm.SVC(**params))


@given(
    seed=st.integers(0, 1000),
    C=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    noise=st.sampled_from([0.0, 0.3, 2.0]),
    whole=st.booleans(),
    weighted=st.booleans(),
)
def test_no_support_vector_is_left_out(seed, C, noise, whole, weighted):
    X, y, random = two_classes(seed, 40, noise)
    if whole:  # equal rows, rows on the margin, and solutions without a row between the bounds of alpha
        X = np.round(X)
    if len(np.unique(y)) < 2:
        y[0] = 1 - y[0]
    weights = random.integers(1, 4, size=len(y)).astype(float) if weighted else np.ones(len(y))
    exact = svm.SVC(kernel="linear", C=C, tol=1e-8).fit(X, y, weights)
    alpha = np.abs(exact.dual_coef_).ravel()
    support = exact.support_[alpha > 1e-5 * alpha.max()]
    kept = possible_support(X, 2.0 * y - 1.0, weights, C)
    assert kept[support].all()


def test_rows_without_weight_are_left_out():
    X, y, _ = two_classes(0)
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    assert not possible_support(X, 2.0 * y - 1.0, weights, 1.0)[weights == 0.0].any()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, pd.DataFrame])
@pytest.mark.parametrize("class_weight", [None, {"yes": 3.0}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_solution_is_scikit_learns(kind, class_weight, weighted, caplog):
    X, y, random = two_classes(1, 1000)
    labels = np.array(["no", "yes"])[y]
    X = kind(X) if kind is not pd.DataFrame else pd.DataFrame(X, columns=["a", "b", "c"])
    weights = random.random(len(y)) if weighted else None
    params = {"kernel": "linear", "tol": 1e-8, "class_weight": class_weight}
    theirs = svm.SVC(**params).fit(X, labels, weights)
    with caplog.at_level(logging.INFO, "cutsvm"):
        ours = AllSizes(**params).fit(X, labels, weights)
    (record,) = caplog.records
    assert "of 1,000 rows are proven to be no support vectors" in record.getMessage()
    assert not record.getMessage().startswith("AllSizes: 0 of")
    assert vars(ours).keys() == vars(theirs).keys()
    for name in ("support_", "n_support_", "classes_", "shape_fit_", "class_weight_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert type(getattr(ours, name)) is type(getattr(theirs, name))
    assert ours.support_.dtype == theirs.support_.dtype
    if kind is pd.DataFrame:
        np.testing.assert_array_equal(ours.feature_names_in_, theirs.feature_names_in_)
    if kind is not sp.csr_matrix:
        np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "linear", "class_weight": "balanced"},
        {"kernel": "linear", "max_iter": 10_000},
        {"kernel": "precomputed"},
        pytest.param({"kernel": lambda X, Z: X @ Z.T}, id="a function"),
    ],
    ids=str,
)
def test_everything_else_is_scikit_learns_own_fit(params, caplog):
    X, y, _ = two_classes(2)
    X = X @ X.T if params.get("kernel") == "precomputed" else X
    theirs = svm.SVC(**params).fit(X, y)
    with caplog.at_level(logging.INFO, "cutsvm"):
        ours = AllSizes(**params).fit(X, y)
    assert len(caplog.records) == 1
    assert "is not trained by cutsvm; scikit-learn's own fit follows" in caplog.text
    np.testing.assert_array_equal(ours.dual_coef_, theirs.dual_coef_)
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


@pytest.mark.parametrize(
    "params, y, weight",
    [
        ({"C": -1.0}, None, None),
        ({"kernel": "linear", "C": "1"}, None, None),
        ({"kernel": "linear"}, "one class", None),
        ({"kernel": "linear"}, "numbers", None),
        ({"kernel": "linear"}, None, np.ones(3)),
        ({"kernel": "linear", "class_weight": {"no": 2.0}}, None, None),
    ],
    ids=str,
)
def test_messages_are_scikit_learns(params, y, weight):
    X, labels, _ = two_classes(3)
    labels = {"one class": np.zeros(len(X)), "numbers": X[:, 0]}.get(y, labels)
    messages = []
    for kind in (AllSizes, svm.SVC):
        with pytest.raises((ValueError, TypeError)) as caught:
            kind(**params).fit(X, labels, weight)
        messages.append((type(caught.value), str(caught.value).replace("AllSizes", "SVC")))
    assert messages[0] == messages[1]
