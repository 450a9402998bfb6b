"""cutsvm's models in scikit-learn's LinearSVC, ONNX and skops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
import skops.io
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from cutsvm import (
    KernelOneClassSVM,
    KernelSVC,
    KernelSVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    OrdinalSVC,
    QuantileSVR,
    RankingSVM,
    RankingSVMCV,
    ROCAreaSVC,
    Status,
    load_model,
    save_model,
    solvers,
)
from cutsvm.kernel_machines import ISDA


def rows(n_classes: int, n: int = 120) -> tuple[Any, Any]:
    random = np.random.default_rng(n_classes)
    y = random.integers(n_classes, size=n)
    return random.normal(size=(n, 4)) + np.eye(4)[y], np.array(["ant", "bee", "cat"])[y]


MODELS = {
    "two": (LinearSVC(C=0.3), 2),
    "no intercept": (LinearSVC(fit_intercept=False), 2),
    "Crammer and Singer": (LinearSVC(C=0.3), 3),
    "one-vs-rest": (LinearSVC(multi_class="ovr", intercept="regularized"), 3),
    "weighted": (LinearSVC(class_weight={"bee": 3.0}), 3),
    "chosen C": (LinearSVCCV(Cs=[0.01, 0.1], cv=3), 3),
    "ROC area": (ROCAreaSVC(), 2),
}


@pytest.mark.parametrize("name", MODELS)
def test_to_sklearn_predicts_the_same(name: str) -> None:
    estimator, n_classes = MODELS[name]
    X, y = rows(n_classes)
    model = sklearn.base.clone(estimator).fit(X, y)
    twin = model.to_sklearn()
    assert type(twin) is sklearn.svm.LinearSVC
    assert twin.n_features_in_ == 4 and twin.n_iter_ == model.n_iter_
    for attribute in ("coef_", "intercept_", "classes_"):
        np.testing.assert_array_equal(getattr(twin, attribute), getattr(model, attribute))
    other = np.random.default_rng(9).normal(size=(200, 4))
    for given in (other, other.astype(np.float32), sp.csr_array(other)):
        np.testing.assert_array_equal(twin.predict(given), model.predict(given))
        np.testing.assert_allclose(twin.decision_function(given), model.decision_function(given), rtol=1e-6, atol=1e-9)
    assert twin.score(X, y) == model.score(X, y)


def test_equivalent_estimator_has_the_same_objective() -> None:
    X, y = rows(2)
    twin = LinearSVC(C=0.3, class_weight="balanced", fit_intercept=False).fit(X, y).to_sklearn()
    assert (twin.loss, twin.C, twin.class_weight, twin.fit_intercept) == ("hinge", 0.3, "balanced", False)
    again = sklearn.base.clone(twin).set_params(tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(again.coef_, twin.coef_, atol=0.02)
    chosen = LinearSVCCV(Cs=[0.01, 0.1], cv=3).fit(X, y)
    assert chosen.to_sklearn().C == chosen.C_
    assert ROCAreaSVC(C=0.3).fit(X, y).to_sklearn().C == sklearn.svm.LinearSVC().C


def test_result_is_an_independent_scikit_learn_model() -> None:
    X, y = rows(3)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = LinearSVC().fit(table, y)
    twin = model.to_sklearn()
    assert twin.feature_names_in_.tolist() == list("abcd")
    twin.coef_[:] = 0.0
    assert model.coef_.any()
    twin = pickle.loads(pickle.dumps(model.to_sklearn()))
    np.testing.assert_array_equal(twin.predict(table), model.predict(table))


def test_unfitted_models_raise() -> None:
    for estimator in (LinearSVC(), ROCAreaSVC(), LinearSVCCV(Cs=[0.1], cv=2, refit=False).fit(*rows(2))):
        with pytest.raises(NotFittedError):
            estimator.to_sklearn()
    for estimator in (KernelSVC(), KernelSVR(), KernelOneClassSVM()):
        with pytest.raises(NotFittedError):
            estimator.to_sklearn()


def test_loaded_models_convert(tmp_path: Any) -> None:
    X, y = rows(3)
    labels = np.unique(y, return_inverse=True)[1]
    model = LinearSVC().fit(X, labels)
    for format in ("cutsvm", "liblinear"):
        save_model(model, tmp_path / format, format=format)
        twin = load_model(tmp_path / format).estimator.to_sklearn()
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))


@pytest.mark.parametrize("name", MODELS)
def test_onnx(name: str) -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    estimator, n_classes = MODELS[name]
    X, y = rows(n_classes)
    X = X.astype(np.float32)
    model = sklearn.base.clone(estimator).fit(X, y)
    # Scores go into the graph as float32: rows in the middle between two classes may change sides.
    made = skl2onnx.to_onnx(model.to_sklearn(), X[:1])
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    labels = session.run(None, {session.get_inputs()[0].name: X})[0]
    scores = model.decision_function(X)
    ranked = np.sort(scores, axis=1) if scores.ndim == 2 else np.stack([-np.abs(scores), np.abs(scores)], axis=1)
    clear = ranked[:, -1] - ranked[:, -2] > 1e-4
    assert clear.sum() > 100
    np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


def number_rows() -> tuple[Any, Any]:
    random = np.random.default_rng(7)
    X = (random.normal(size=(150, 4)) + 2.0).astype(np.float32)
    return X, X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * random.normal(size=150)


LOSSES = {
    "squared hinge": (LinearSVC(loss="squared_hinge"), 2),
    "squared hinge, three classes": (LinearSVC(loss="squared_hinge"), 3),
    "logistic": (LinearSVC(loss="logistic"), 2),
    "multinomial": (LinearSVC(loss="logistic"), 3),
    "logistic, each against the rest": (LinearSVC(loss="logistic", multi_class="ovr"), 3),
    "tube": (LinearSVR(epsilon=0.1), 0),
    "squared tube": (LinearSVR(epsilon=0.1, loss="squared_epsilon_insensitive"), 0),
    "Huber": (LinearSVR(epsilon=0.5, loss="huber"), 0),
    "chosen C": (LinearSVRCV(Cs=[0.1, 1.0], cv=3), 0),
    "quantile": (QuantileSVR(quantile=0.9), 0),
    "one class": (LinearOneClassSVM(nu=0.1), 0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_onnx_of_other_losses(name: str) -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    estimator, n_classes = LOSSES[name]
    X, y = number_rows() if not n_classes else rows(n_classes)
    X = X.astype(np.float32)
    model = sklearn.base.clone(estimator).fit(X, y)
    twin = model.to_sklearn()
    options = {id(twin): {"zipmap": False}} if hasattr(model, "predict_proba") else None
    made = skl2onnx.to_onnx(twin, X[:1], options=options)
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: X})
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found[1], model.predict_proba(X), atol=1e-5)
    elif name == "one class":
        # Scores are float32 there: rows on the threshold may be on either side.
        clear = np.abs(model.decision_function(X)) > 1e-4
        assert clear.sum() > 140
        np.testing.assert_array_equal(found[0].ravel()[clear], model.predict(X)[clear])
    elif n_classes == 0:
        np.testing.assert_allclose(found[0].ravel(), model.predict(X), rtol=1e-4, atol=1e-4)
    else:
        assert np.mean(found[0] == model.predict(X)) > 0.99


def gaussian(X: Any, Z: Any) -> Any:
    return rbf_kernel(X, Z, gamma=0.3)


KERNEL_MODELS = {
    "two classes": (KernelSVC(2.0), 2, sklearn.svm.SVC),
    "three classes": (KernelSVC(2.0, class_weight="balanced"), 3, sklearn.svm.SVC),
    "five classes": (KernelSVC(2.0), 5, sklearn.svm.SVC),
    "sgd, five classes": (KernelSVC(2.0, solver="sgd"), 5, sklearn.svm.SVC),
    "regularised intercept": (KernelSVC(solver=ISDA("regularized")), 3, sklearn.svm.SVC),
    "regression": (KernelSVR(epsilon=0.05), 0, sklearn.svm.SVR),
    "regression without intercept": (KernelSVR(fit_intercept=False), 0, sklearn.svm.SVR),
    "one class": (KernelOneClassSVM(nu=0.2), 0, sklearn.svm.OneClassSVM),
}
KERNEL_NAMES = ["rbf", "poly", "linear", "sigmoid", "precomputed", "function"]


def kernel_fit(name: str, kernel: str, kind: Any) -> tuple[Any, Any, Any]:
    """A fitted model, rows for it, and those that it was fitted to."""
    estimator, n_classes, _ = KERNEL_MODELS[name]
    random = np.random.default_rng(0)
    X, other = random.normal(size=(120, 5)) + 1.0, random.normal(size=(60, 5)) + 1.0
    y = X @ random.normal(size=5)
    if n_classes:
        y = np.array(["ant", "bee", "cat", "dog", "eel"])[np.argsort(np.argsort(y)) * n_classes // 120]
    if kernel == "precomputed":
        X, other = gaussian(X, X), gaussian(other, X)
    elif kind is not np.asarray:
        X[random.random(X.shape) < 0.3] = 0.0
    params = {"kernel": gaussian if kernel == "function" else kernel, "coef0": 0.5, "degree": 2}
    return sklearn.base.clone(estimator).set_params(**params).fit(kind(X), y), kind(other), kind(X)


@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr_matrix", "csr_array"])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_kernel_machines_predict_the_same(name: str, kernel: str, kind: Any) -> None:
    if (kernel == "precomputed" and kind is not np.asarray) or (kernel == "sigmoid" and "regularised" in name):
        pytest.skip("libsvm has no such thing, or it is no kernel")
    model, other, X = kernel_fit(name, kernel, kind)
    twin = model.to_sklearn()
    assert type(twin) is KERNEL_MODELS[name][2]
    for rows in (other, X):
        if hasattr(model, "decision_function"):
            scores = model.decision_function(rows)
            np.testing.assert_allclose(twin.decision_function(rows), scores, rtol=1e-10, atol=1e-10)
            clear = np.abs(scores).min(axis=tuple(range(1, scores.ndim))) > 1e-9
            np.testing.assert_array_equal(twin.predict(rows)[clear], model.predict(rows)[clear])
        else:
            np.testing.assert_allclose(twin.predict(rows), model.predict(rows), rtol=1e-10, atol=1e-10)
        if hasattr(model, "score_samples"):
            np.testing.assert_allclose(twin.score_samples(rows), model.score_samples(rows), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(twin.n_support_, model.n_support_)
    assert twin.n_features_in_ == model.n_features_in_
    again = pickle.loads(pickle.dumps(twin))
    np.testing.assert_array_equal(again.predict(other), twin.predict(other))
    if kernel == "linear":
        sign = -1.0 if len(getattr(model, "classes_", ())) > 2 else 1.0
        found = twin.coef_.toarray() if sp.issparse(twin.coef_) else twin.coef_
        np.testing.assert_allclose(found, sign * model.coef_, rtol=1e-8, atol=1e-9)


def test_attributes_have_the_signs_and_the_order_of_svc() -> None:
    """For two classes positive scores are for the second, for more those of a pair are for its first."""
    for n_classes in (2, 3):
        random = np.random.default_rng(0)
        X = random.normal(size=(90, 3))
        y = np.digitize(X[:, 0], [0.0] if n_classes == 2 else [-0.5, 0.5])
        twin = KernelSVC(gamma=0.5, tol=1e-9).fit(X, y).to_sklearn()
        peer = sklearn.svm.SVC(gamma=0.5, tol=1e-9).fit(X, y)
        np.testing.assert_array_equal(twin.support_, peer.support_)
        np.testing.assert_allclose(twin.dual_coef_, peer.dual_coef_, atol=1e-3)
        np.testing.assert_allclose(twin.intercept_, peer.intercept_, atol=1e-3)


def test_new_fit_of_the_twin_has_the_same_objective() -> None:
    X, y = number_rows()
    model = KernelSVR(3.0, epsilon=0.2, gamma=0.4, tol=1e-8).fit(X, y)
    again = sklearn.base.clone(model.to_sklearn()).set_params(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-3)


def test_one_class_without_support_has_inliers_only() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = KernelOneClassSVM(kernel="linear").fit(X)
    assert not len(model.support_) and np.all(model.to_sklearn().predict(X) == 1)


@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Attribute `prob:FutureWarning")  # the converter reads them
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid"])
@pytest.mark.parametrize("name", ["two classes", "three classes", "five classes", "regression", "one class"])
def test_onnx_of_kernel_machines(name: str, kernel: str) -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, rows, _ = kernel_fit(name, kernel, np.float32)
    made = skl2onnx.to_onnx(model.to_sklearn(), rows[:1])
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    found = np.ravel(session.run(None, {session.get_inputs()[0].name: rows})[0])
    if name == "regression":
        np.testing.assert_allclose(found, model.predict(rows), rtol=1e-3, atol=1e-3)
        return
    # Scores are float32 there, and ties of votes go to the first class.
    scores = model.decision_function(rows)
    ranked = np.sort(scores, axis=1) if scores.ndim == 2 else None
    clear = np.abs(scores) > 1e-3 if ranked is None else ranked[:, -1] - ranked[:, -2] > 0.7
    assert clear.sum() > 40
    np.testing.assert_array_equal(found[clear], model.predict(rows)[clear])


STORED = {
    "LinearSVC": LinearSVC(),
    "one-vs-rest": LinearSVC(multi_class="ovr"),
    "not converged": LinearSVC(max_iter=1, solver="cpa"),
    "LinearSVCCV": LinearSVCCV(Cs=[0.1, 1.0], cv=3),
    "RankingSVM": RankingSVM(),
    "RankingSVMCV": RankingSVMCV(Cs=[0.1, 1.0], cv=3),
    "ROCAreaSVC": ROCAreaSVC(),
    "OrdinalSVC": OrdinalSVC(),
    "KernelSVC": KernelSVC(epochs=2),
    "KernelSVC, linear": KernelSVC(kernel="linear", solver="isda"),
    "KernelSVR": KernelSVR(),
    "KernelOneClassSVM": KernelOneClassSVM(),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr_matrix", "csr_array"])
@pytest.mark.parametrize("name", STORED)
def test_skops_loads_every_estimator(name: str, kind: Any) -> None:
    """Nothing has to be trusted but the classes of estimators; skops cannot load enums."""
    X, y = rows(2)
    X, y = kind(X), (y == "bee").astype(int)
    model = sklearn.base.clone(STORED[name]).fit(X, y)
    stored = skops.io.dumps(model)
    types = skops.io.get_untrusted_types(data=stored)
    own = type(model)
    assert set(types) <= {f"{cls.__module__}.{cls.__name__}" for cls in (own, LinearSVC, RankingSVM)}
    for again in (skops.io.loads(stored, trusted=types), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.status_ is model.status_ and isinstance(again.status_, Status)
        assert again.status_.converged == model.converged_
        vectors = getattr(again, "support_vectors_", X)
        assert type(vectors) is type(X)


def test_skops_with_a_solver_object_and_with_warm_start() -> None:
    X, y = rows(2)
    model = LinearSVC(solver=solvers.OCAS(), warm_start=True).fit(X, y)
    stored = skops.io.dumps(model)
    types = skops.io.get_untrusted_types(data=stored)
    assert all(name.startswith("cutsvm.") for name in types)
    again = skops.io.loads(stored, trusted=types)
    np.testing.assert_array_equal(again.fit(X, y).coef_, model.fit(X, y).coef_)


def test_unfitted_estimator_has_no_status() -> None:
    assert not hasattr(LinearSVC(), "status_")
    with pytest.raises(AttributeError, match="it is not fitted"):
        _ = KernelSVC().status_
