"""Model files of every loss: cutsvm's own format and LIBLINEAR's, both ways with LIBLINEAR itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from cutsvm import LinearOneClassSVM, LinearSVC, LinearSVR, LinearSVRCV, QuantileSVR, load_model, save_model

ESTIMATORS = {
    "squared hinge": (LinearSVC(C=0.3, loss="squared_hinge"), 2),
    "squared hinge, three classes": (LinearSVC(loss="squared_hinge", intercept="regularized"), 3),
    "logistic": (LinearSVC(C=0.3, loss="logistic"), 2),
    "multinomial": (LinearSVC(loss="logistic"), 3),
    "logistic, each against the rest": (LinearSVC(loss="logistic", multi_class="ovr", tol=1e-4), 3),
    "tube": (LinearSVR(C=2.0, epsilon=0.25), 0),
    "tube without intercept": (LinearSVR(epsilon=0.25, fit_intercept=False), 0),
    "squared tube": (LinearSVR(epsilon=0.25, loss="squared_epsilon_insensitive", intercept="regularized"), 0),
    "huber": (LinearSVR(epsilon=0.5, loss="huber"), 0),
    "quantile": (QuantileSVR(quantile=0.75), 0),
    "one class": (LinearOneClassSVM(nu=0.2), 0),
}
TYPES = {
    "squared hinge": "L2R_L2LOSS_SVC",
    "squared hinge, three classes": "L2R_L2LOSS_SVC",
    "logistic": "L2R_LR",
    "multinomial": "MCSVM_CS",
    "logistic, each against the rest": "L2R_LR",
    "squared tube": "L2R_L2LOSS_SVR",
    "one class": "ONECLASS_SVM",
}


def rows(n_classes: int) -> tuple[Any, Any]:
    random = np.random.default_rng(n_classes)
    X = random.normal(size=(90, 4)) + 1.0
    score = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * random.normal(size=90)
    return X, score if not n_classes else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def fitted(name: str) -> tuple[Any, Any]:
    estimator, n_classes = ESTIMATORS[name]
    X, y = rows(n_classes)
    return clone(estimator).fit(X, y), X


@pytest.mark.parametrize("name", ESTIMATORS)
def test_round_trip(tmp_path: Path, name: str) -> None:
    model, X = fitted(name)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
    for attribute in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(model, attribute), strict=True)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    assert (loaded.objective_, loaded.gap_, loaded.status_) == (model.objective_, model.gap_, model.status_)
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_round_trip_of_the_text(tmp_path: Path, name: str) -> None:
    model, X = fitted(name)
    save_model(model, tmp_path / "m", format="liblinear")
    assert (tmp_path / "m").read_text().split()[1] == TYPES.get(name, "L2R_L1LOSS_SVR_DUAL")
    loaded = load_model(tmp_path / "m").estimator
    np.testing.assert_array_equal(loaded.coef_, model.coef_, strict=True)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    # LIBLINEAR has no multinomial model: the labels are the same, and no probabilities are claimed.
    if hasattr(model, "predict_proba") and name != "multinomial":
        np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    else:
        assert not hasattr(loaded, "predict_proba")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_liblinear_predicts_the_same(tmp_path: Path, name: str) -> None:
    theirs = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    model, X = fitted(name)
    save_model(model, tmp_path / "m", format="liblinear")
    loaded = theirs.load_model(str(tmp_path / "m"))
    values, _, _ = theirs.predict(np.zeros(len(X)), X, loaded, "-q")
    # Rows on the threshold are on either side of it, up to rounding.
    clear = np.abs(model.decision_function(X)) > 1e-9 if name == "one class" else np.ones(len(X), dtype=bool)
    assert clear.sum() > 80
    np.testing.assert_allclose(np.array(values)[clear], model.predict(X)[clear], rtol=1e-9)
    if "logistic" in name:
        _, _, chances = theirs.predict(np.zeros(len(X)), X, loaded, "-q -b 1")
        order = np.argsort(loaded.get_labels())
        np.testing.assert_allclose(np.array(chances)[:, order], model.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("options", ["-s 0 -B 1", "-s 6", "-s 7", "-s 1 -B 1", "-s 2", "-s 5 -B 1"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_of_liblinear(tmp_path: Path, options: str, n_classes: int) -> None:
    theirs = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    X, y = rows(n_classes)
    trained = theirs.train(y[::-1], X[::-1], f"{options} -q")
    theirs.save_model(str(tmp_path / "m"), trained)
    model = load_model(tmp_path / "m").estimator
    labels, _, _ = theirs.predict(y, X, trained, "-q")
    np.testing.assert_array_equal(model.predict(X), labels)
    assert hasattr(model, "predict_proba") == (options[3] in "067")
    if hasattr(model, "predict_proba"):
        _, _, chances = theirs.predict(y, X, trained, "-q -b 1")
        order = np.argsort(trained.get_labels())
        np.testing.assert_allclose(model.predict_proba(X), np.array(chances)[:, order], rtol=1e-9)


@pytest.mark.parametrize("options", ["-s 11", "-s 11 -B 1", "-s 12 -B 0.5", "-s 13 -B 1", "-s 13", "-s 21 -n 0.3"])
def test_other_models_of_liblinear(tmp_path: Path, options: str) -> None:
    theirs = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    X, y = rows(0)
    trained = theirs.train(y, X, f"{options} -q")
    theirs.save_model(str(tmp_path / "m"), trained)
    saved = load_model(tmp_path / "m")
    assert saved.task == ("oneclass" if "21" in options else "regress")
    values, _, scores = theirs.predict(y, X, trained, "-q")
    np.testing.assert_allclose(saved.estimator.predict(X), values, rtol=1e-9)
    if saved.task == "oneclass":
        np.testing.assert_allclose(saved.estimator.decision_function(X), np.ravel(scores), rtol=1e-6, atol=1e-9)


def test_a_chosen_C_is_written_as_its_model(tmp_path: Path) -> None:
    X, y = rows(0)
    model = LinearSVRCV(Cs=[0.1, 1.0], cv=3, epsilon=0.1).fit(X, y)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    assert type(loaded) is LinearSVR and (loaded.C, loaded.epsilon) == (model.C_, 0.1)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
