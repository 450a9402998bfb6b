"""Model files of kernel machines: a loaded model predicts the same bits, and bad files raise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cutsvm import KernelSVC
from cutsvm.io.models.model_file import ModelFileError, load_model, save_model
from cutsvm.kernel_machines import ISDA, SGD, MinNorm
from tests.support.model_files import array, tamper

LAYOUTS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr": sparse.csr_matrix,
    "csr32": lambda X: sparse.csr_array(X.astype(np.float32)),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # two epochs are few


def data(classes: Any = (0, 1, 2), rows: int = 60, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, width)) + 2.0
    X[random.random(X.shape) < 0.3] = 0.0
    return X, np.asarray(classes)[np.arange(rows) % len(classes)]


def fitted(classes: Any = (0, 1, 2), **params: Any) -> KernelSVC:
    return KernelSVC(**{"random_state": 0, "epochs": 2, **params}).fit(*data(classes))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [["no", "yes"], [3, 5, 7, 9]], ids=["two", "four"])
def test_a_loaded_model_predicts_the_same_bits(tmp_path: Path, kernel: str, layout: str, classes: Any) -> None:
    X, y = data(classes)
    model = KernelSVC(2.0, kernel=kernel, coef0=0.5, random_state=1).fit(LAYOUTS[layout](X), y)
    save_model(model, tmp_path / "m", zero_based=True, feature_ids=[1, 3, 4, 8, 10**12])
    saved = load_model(tmp_path / "m")
    assert (saved.task, saved.zero_based, saved.format) == ("kernel", True, "cutsvm")
    for turned in LAYOUTS.values():
        ours, theirs = saved.estimator, model
        np.testing.assert_array_equal(ours.predict(turned(X)), theirs.predict(turned(X)), strict=True)
        np.testing.assert_array_equal(ours.decision_function(turned(X)), theirs.decision_function(turned(X)))
    vectors, known = saved.estimator.support_vectors_, model.support_vectors_
    assert sparse.issparse(vectors) == sparse.issparse(known) and vectors.dtype == known.dtype
    assert abs(vectors - known).max() == 0.0
    for name in ("support_", "n_support_", "dual_coef_", "classes_", *(["coef_", "intercept_"] * (kernel == "linear"))):
        np.testing.assert_array_equal(getattr(saved.estimator, name), getattr(model, name), strict=True)


def test_parameters_and_certificate(tmp_path: Path) -> None:
    weights = {0: 2.0, 2: 0.5}
    model = fitted(C=3.0, gamma=0.25, degree=2, average=0.25, class_weight=weights, max_time=60.0)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    assert loaded.get_params() == model.get_params()
    for name in ("gamma_", "objective_", "lower_bound_", "gap_", "n_iter_", "converged_", "status_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name), name


@pytest.mark.parametrize(
    "solver",
    [
        "isda",
        "min_norm",
        SGD(step="1/m"),
        SGD(order="random", iterates="before", C_times="mean"),
        SGD(intercept="regularized"),
        ISDA(),
        MinNorm(intercept="regularized"),
    ],
    ids=str,
)
def test_solvers_by_name_and_as_objects(tmp_path: Path, solver: Any) -> None:
    save_model(fitted(solver=solver), tmp_path / "m")
    assert load_model(tmp_path / "m").estimator.solver == solver


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
@pytest.mark.parametrize("solver", ["sgd", ISDA(intercept="regularized")], ids=str)
def test_intercepts(tmp_path: Path, kernel: str, classes: Any, solver: Any) -> None:
    model = fitted(classes, kernel=kernel, solver=solver)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    assert np.all(model.intercept_ != 0.0)
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_, strict=True)
    X, _ = data(classes)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    path = tamper(tmp_path, lambda h: array(h, "intercept").update(shape=[len(model.intercept_), 1]), model=model)
    with pytest.raises(ModelFileError, match="numbers in 'intercept'"):
        load_model(path)


def test_solvers_of_linear_models_are_ignored(tmp_path: Path) -> None:
    for name in ("OCAS", "KernelSolver", "resolve"):
        path = tamper(
            tmp_path, lambda h, n=name: h["params"].update(solver={"solver": n, "options": {}}), model=fitted()
        )
        assert load_model(path).estimator.solver == "auto"


def test_models_without_certificate_or_support_vectors(tmp_path: Path) -> None:
    save_model(fitted(certify=False, solver="sgd"), tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    assert loaded.gap_ is None and loaded.certify is False
    empty = fitted()
    empty.support_, empty.n_support_ = empty.support_[:0], np.zeros(3, dtype=int)
    empty.support_vectors_, empty.dual_coef_ = empty.support_vectors_[:0], empty.dual_coef_[:, :0]
    save_model(empty, tmp_path / "m")
    X, _ = data()
    np.testing.assert_array_equal(load_model(tmp_path / "m").estimator.predict(X), empty.predict(X))


def test_invalid_models_raise(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="not fitted"):
        save_model(KernelSVC(), tmp_path / "m")
    X, y = data()
    with pytest.raises(ModelFileError, match="precomputed kernel has no support vectors to write"):
        save_model(KernelSVC(kernel="precomputed", random_state=0).fit(X @ X.T, y), tmp_path / "m")
    with pytest.raises(
        ModelFileError,
        match="holds linear classifiers, regressors and one-class models, not KernelSVC: use the format cutsvm",
    ):
        save_model(fitted(), tmp_path / "m", format="liblinear")
    broken = fitted()
    broken.dual_coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match="not finite"):
        save_model(broken, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_truncated_and_damaged(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(fitted(), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=str(path)):
            load_model(path)
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(ModelFileError):
            load_model(path)


HOSTILE = {
    "no gamma": lambda h: h.pop("gamma"),
    "gamma 0": lambda h: h.update(gamma=0.0),
    "gamma text": lambda h: h.update(gamma="scale"),
    "gamma too large": lambda h: h.update(gamma=10**400),
    "gamma whole": lambda h: h.update(gamma=1),
    "kernel": lambda h: h["params"].update(kernel="precomputed"),
    "kernel of no kind": lambda h: h["params"].update(kernel={"solver": "SGD", "options": {}}),
    "linear without weights": lambda h: h["params"].update(kernel="linear"),
    "degree": lambda h: h["params"].update(degree=1.5),
    "degree without end": lambda h: h["params"].update(degree=10**400),
    "coef0": lambda h: h["params"].update(coef0="x"),
    "coef0 too large": lambda h: h["params"].update(coef0=10**400),
    "width": lambda h: h.update(n_features=6),
    "no width": lambda h: h.pop("n_features"),
    "negative width": lambda h: h.update(n_features=-5),
    "giant width": lambda h: h.update(n_features=10**30),
    "a class more": lambda h: h["classes"].update(values=[0, 1, 2, 3]),
    "a class less": lambda h: h["classes"].update(values=[0, 1]),
    "dual_coef as integers": lambda h: array(h, "dual_coef").update(dtype="<i8"),
    "dual_coef turned": lambda h: array(h, "dual_coef")["shape"].reverse(),
    "support as reals": lambda h: array(h, "support").update(dtype="<f8"),
    "n_support as reals": lambda h: array(h, "n_support").update(dtype="<f8"),
    "other name": lambda h: array(h, "n_support").update(name="n"),
    "task": lambda h: h.update(task="classify"),
}
DENSE = {"vectors turned": lambda h: array(h, "support_vectors")["shape"].reverse()}
SPARSE = {
    "columns as reals": lambda h: array(h, "support_indices").update(dtype="<f4"),
    "values flat": lambda h: array(h, "support_data").update(name="support_vectors"),
    "no pointers": lambda h: array(h, "support_indptr").update(name="x"),
}


@pytest.fixture(scope="module")
def models() -> dict[str, KernelSVC]:
    X, y = data()
    return {"dense": fitted(), "sparse": KernelSVC(epochs=1, random_state=0).fit(sparse.csr_matrix(X), y)}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(
            pytest.param(kind, change, id=f"{kind}: {case}")
            for kind in ("dense", "sparse")
            for case, change in HOSTILE.items()
        ),
        *(pytest.param("dense", change, id=case) for case, change in DENSE.items()),
        *(pytest.param("sparse", change, id=case) for case, change in SPARSE.items()),
    ],
)
def test_hostile_headers(tmp_path: Path, models: dict[str, KernelSVC], kind: str, change: Any) -> None:
    path = tamper(tmp_path, change, models[kind])
    with pytest.raises(ModelFileError, match=str(path)):
        load_model(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.support_vectors_.indices.__setitem__(0, 5), "columns within"),
        (lambda m: m.support_vectors_.indices.__setitem__(0, -1), "columns within"),
        (lambda m: m.support_vectors_.indptr.__setitem__(1, 10**6), "row pointers"),
        (lambda m: m.support_vectors_.indptr.__setitem__(0, 1), "row pointers"),
        (lambda m: m.n_support_.__setitem__(0, -1), "a class for every"),
        (lambda m: m.n_support_.__setitem__(slice(2), [2**62, 2**62]), "a class for every"),
        (lambda m: m.support_.__setitem__(0, -1), "rows of the training data"),
    ],
)
def test_inconsistent_numbers_raise(tmp_path: Path, change: Any, says: str) -> None:
    X, y = data()
    model = KernelSVC(epochs=1, random_state=0).fit(sparse.csr_matrix(X), y)
    change(model)
    save_model(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match=says):
        load_model(tmp_path / "m")


def test_feature_names(tmp_path: Path) -> None:
    model = fitted()
    model.feature_names_in_ = np.array(list("abcde"), dtype=object)
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").estimator.feature_names_in_, model.feature_names_in_)
