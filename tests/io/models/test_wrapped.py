"""Model files, skops and MLflow of pipelines and searches of scikit-learn's."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from cutsvm import (
    KernelSVC,
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
    load_model,
    save_model,
    skops_types,
)
from cutsvm.io.models.model_format import ModelFileError
from cutsvm.solvers import OCAS

LINEAR = {
    "LinearSVC": LinearSVC(loss="logistic"),
    "LinearSVCCV": LinearSVCCV(Cs=[0.1, 1.0], cv=2),
    "LinearSVR": LinearSVR(),
    "LinearSVRCV": LinearSVRCV(Cs=[0.1, 1.0], cv=2),
    "QuantileSVR": QuantileSVR(),
    "LinearOneClassSVM": LinearOneClassSVM(nu=0.1),
    "RankingSVM": RankingSVM(),
    "RankingSVMCV": RankingSVMCV(Cs=[0.1, 1.0], cv=2),
    "ROCAreaSVC": ROCAreaSVC(),
    "OrdinalSVC": OrdinalSVC(),
}


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Features of different scales far from 0, one of them constant, and three levels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) * [1.0, 100.0, 0.01, 0.0] + [5.0, 300.0, -2.0, 7.0]
    return pd.DataFrame(X, columns=list("abcd")), np.digitize((X[:, 1] - 300.0) / 100.0, [-0.5, 0.5])


def two_levels(name: str, y: np.ndarray) -> np.ndarray:
    return (y > 0).astype(int) if name == "ROCAreaSVC" else y


@pytest.mark.parametrize("name", LINEAR)
def test_weights_take_in_scalers(name: str, table: Any, tmp_path: Path) -> None:
    X, y = table
    pipeline = make_pipeline(MinMaxScaler((-1, 2)), "passthrough", StandardScaler(), MaxAbsScaler(), LINEAR[name])
    pipeline.fit(X, two_levels(name, y))
    save_model(pipeline, tmp_path / "m")
    found = load_model(tmp_path / "m").estimator
    assert found.feature_names_in_.tolist() == list("abcd") and found.gap_ == pipeline[-1].gap_
    method = "decision_function" if hasattr(pipeline, "decision_function") else "predict"
    wanted = getattr(pipeline, method)(X)
    np.testing.assert_allclose(getattr(found, method)(X), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "step", [StandardScaler(with_mean=False), StandardScaler(with_std=False), StandardScaler(), MinMaxScaler()]
)
def test_settings_of_scalers(step: Any, table: Any, tmp_path: Path) -> None:
    X, y = table
    pipeline = make_pipeline(step, LinearSVC()).fit(X.to_numpy(), y)
    save_model(pipeline, tmp_path / "m")
    found = load_model(tmp_path / "m").estimator
    np.testing.assert_allclose(
        found.decision_function(X.to_numpy()), pipeline.decision_function(X.to_numpy()), rtol=1e-9
    )


@pytest.mark.parametrize("step", [PCA(2), RobustScaler(), MinMaxScaler(clip=True)])
def test_other_steps_are_refused_with_what_to_use(step: Any, table: Any, tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), step, LinearSVC()).fit(*table)
    with pytest.raises(ModelFileError, match=rf"not {type(step).__name__}; keep the whole pipeline with skops"):
        save_model(pipeline, tmp_path / "m")
    pipeline = make_pipeline(StandardScaler(), KernelSVC()).fit(*table)
    with pytest.raises(ModelFileError, match="no room for the steps before KernelSVC: keep the whole pipeline"):
        save_model(pipeline, tmp_path / "m")
    assert not (tmp_path / "m").exists()


SEARCHES = {
    "grid": lambda model, grid: GridSearchCV(model, grid, cv=2),
    "random": lambda model, grid: RandomizedSearchCV(model, grid, n_iter=2, cv=2, random_state=0),
    "halving": lambda model, grid: HalvingGridSearchCV(model, grid, cv=2, random_state=0, min_resources=60),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_searches(kind: str, table: Any, tmp_path: Path) -> None:
    X, y = table
    plain = SEARCHES[kind](LinearSVC(), {"C": [0.01, 1.0]}).fit(X, y)
    save_model(plain, tmp_path / "m")
    assert load_model(tmp_path / "m").estimator.C == plain.best_params_["C"]
    piped = SEARCHES[kind](make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.01, 1.0]}).fit(X, y)
    save_model(piped, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").estimator.predict(X), piped.predict(X))


def test_searches_without_a_model(table: Any, tmp_path: Path) -> None:
    search = GridSearchCV(LinearSVC(), {"C": [0.01, 1.0]}, cv=2)
    with pytest.raises(NotFittedError, match="GridSearchCV is not fitted"):
        save_model(search, tmp_path / "m")
    with pytest.raises(ValueError, match=r"GridSearchCV\(refit=False\) chose parameters and fitted none"):
        save_model(search.set_params(refit=False).fit(*table), tmp_path / "m")
    with pytest.raises(ModelFileError, match="StandardScaler cannot be written"):
        save_model(make_pipeline(StandardScaler()).fit(table[0]), tmp_path / "m")


def test_skops_needs_our_classes_only(table: Any, tmp_path: Path) -> None:
    X, y = table
    pipeline = make_pipeline(StandardScaler(), LinearSVC(solver=OCAS())).fit(X, y)
    types = skops_types(pipeline)
    assert "cutsvm.estimators.linear.LinearSVC" in types and "cutsvm.solvers.ocas.OCAS" in types
    assert types == sorted(skops.io.get_untrusted_types(data=skops.io.dumps(pipeline)))
    skops.io.dump(pipeline, tmp_path / "m.skops")
    assert skops_types(tmp_path / "m.skops") == types
    again = skops.io.load(tmp_path / "m.skops", trusted=types)
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LINEAR, "KernelSVC"])
@pytest.mark.filterwarnings("ignore")
def test_mlflow(name: str, table: Any, tmp_path: Path) -> None:
    """Its default format is that of skops; history and status are kept."""
    mlflow = pytest.importorskip("mlflow.sklearn")
    X, y = table[0].to_numpy(), two_levels(name, table[1])
    model = pickle.loads(pickle.dumps(LINEAR.get(name, KernelSVC()))).fit(X, y)
    given = {"pip_requirements": [], "skops_trusted_types": skops_types(model)}  # without looking for requirements
    mlflow.save_model(model, str(tmp_path / "m"), **given)
    again = mlflow.load_model(str(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.history_ == model.history_ and again.status_ is model.status_ and again.callbacks is None
