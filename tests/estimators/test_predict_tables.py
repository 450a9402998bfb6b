"""Models of tables: the columns of what is predicted are found by name and preprocessed as in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import cutsvm
from cutsvm import KernelSVC, LinearSVC, LinearSVCCV, load_model, save_model
from cutsvm._utils.errors import DataError
from cutsvm.io.models.model_format import ModelFileError
from tests.fuzz.model_targets import join, split

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CITIES = np.array(["Oslo", "Paris", "Rome"])
NUMBERS = ["age", "price"]


def rows(n: int, seed: int, cities: Any = CITIES) -> Any:
    rng = np.random.default_rng(seed)
    age, price = rng.normal(size=n), 100.0 * rng.normal(size=n) + 50.0
    city = cities[rng.integers(0, len(cities), n)]
    answer = np.where(age + (city == "Paris") + 0.01 * price + 0.3 * rng.normal(size=n) > 1.0, "yes", "no")
    age[::17] = np.nan
    columns = {"id": np.arange(n), "age": pa.array(age, from_pandas=True), "price": price, "city": city}
    return pa.table({**columns, "click": answer})


TRAIN, TEST = rows(600, 1), rows(300, 2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("train")
    cutsvm.convert(TRAIN, folder / "t.store", label="click", exclude=["id"], scale="standard")
    return LinearSVC(tol=1e-6).fit(folder / "t.store")


@pytest.fixture(scope="module")
def expected(model: Any) -> np.ndarray:
    """The scores by scikit-learn's transformers, fitted to the same rows."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    made = make_column_transformer((numbers, NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["city"]))
    made.fit(TRAIN.to_pandas())
    X = made.transform(TEST.to_pandas())
    X = X.toarray() if sparse.issparse(X) else X
    return np.asarray(X @ model.coef_[0] + model.intercept_[0])


def forms(folder: Path) -> dict[str, Any]:
    """The rows to predict in all forms, with the columns in another order, one of them unknown, and no labels."""
    plain = TEST.drop_columns(["click"]).select(["city", "id", "price", "age"])
    (folder / "parts").mkdir()
    parquet.write_table(plain.slice(0, 100), folder / "parts" / "0.parquet")
    parquet.write_table(plain.slice(100), folder / "parts" / "1.parquet")
    parquet.write_table(TEST, folder / "labelled.parquet")
    plain.to_pandas().to_csv(folder / "plain.csv", index=False)
    return {
        "files": [folder / "parts" / "0.parquet", folder / "parts" / "1.parquet"],
        "folder": folder / "parts",
        "glob": str(folder / "parts" / "*.parquet"),
        "csv": folder / "plain.csv",
        "dataset": dataset.dataset(folder / "parts"),
        "table": plain,
        "reader": plain.to_reader(50),
        "labelled": folder / "labelled.parquet",
        "pandas": plain.to_pandas(),
        "polars": pl.from_arrow(plain),
        "lazy": pl.scan_parquet(folder / "parts" / "*.parquet"),
        "frames": iter([plain.slice(0, 120).to_pandas(), plain.slice(120).to_pandas()]),
    }


def test_every_form_of_a_table(model: Any, expected: np.ndarray, tmp_path: Path) -> None:
    found = {name: model.decision_function(form) for name, form in forms(tmp_path).items()}
    for name, scores in found.items():
        np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10, err_msg=name)
        np.testing.assert_array_equal(scores, found["table"], err_msg=name)


def test_score_takes_the_column_of_labels(model: Any, tmp_path: Path) -> None:
    given = forms(tmp_path)
    share = float(np.mean(model.predict(given["labelled"]) == TEST["click"].to_numpy()))
    assert model.score(given["labelled"]) == model.score(TEST.to_pandas()) == share
    frame = TEST.to_pandas()
    assert model.score(frame.drop(columns="click"), frame["click"]) == share
    with pytest.raises(ValueError, match="there are no labels to compare with"):
        model.score(given["folder"])


def test_rules_for_new_rows(model: Any) -> None:
    """A city that did not occur, one that is missing, and a missing number."""
    odd = pa.table({"city": ["Bern", None, "Rome"], "age": [0.0, 0.0, None], "price": [1.0, 1.0, 1.0]})
    none, missing, mean = model.decision_function(odd)
    assert none == missing
    known = model.decision_function(odd.set_column(1, "age", pa.array([0.0, 0.0, float(np.nanmean(TRAIN["age"]))])))
    assert mean == pytest.approx(known[2], abs=1e-12)


def test_columns_that_are_not_there(model: Any) -> None:
    for form in (TEST, TEST.to_pandas()):
        less = form.drop(columns=["city"]) if form is not TEST else TEST.drop_columns(["city"])
        with pytest.raises(DataError, match="there is no column 'city', which the model was trained with"):
            model.predict(less)


def test_stores_of_other_scales_are_refused(model: Any, tmp_path: Path) -> None:
    cutsvm.convert(TEST, tmp_path / "own.store", label="click", exclude=["id"], scale="standard")
    with pytest.raises(DataError, match="column 'age' were not made as in training"):
        model.predict(tmp_path / "own.store")
    # Numbers as they are need no preprocessing that agrees.
    plain = TEST.select(["price", "click"])
    cutsvm.convert(TRAIN.select(["price", "click"]), tmp_path / "train.store", label="click")
    cutsvm.convert(plain, tmp_path / "plain.store", label="click")
    other = LinearSVC().fit(tmp_path / "train.store")
    np.testing.assert_array_equal(other.predict(tmp_path / "plain.store"), other.predict(plain))


def test_models_of_frames_find_their_columns() -> None:
    frame = TRAIN.to_pandas()[["price"]].assign(other=lambda own: own["price"] % 7.0)
    model = LinearSVC().fit(frame, TRAIN["click"].to_numpy())
    assert not hasattr(model, "preprocessing_")
    turned = pa.Table.from_pandas(frame[["other", "price"]]).append_column("text", pa.array(["x"] * len(frame)))
    np.testing.assert_array_equal(model.decision_function(turned), model.decision_function(frame))
    with pytest.raises(DataError, match="no column 'price', which the model was trained with"):
        model.predict(turned.drop_columns(["price"]))
    with pytest.raises(DataError, match=r"row 1, column 'price': .* the model has no value for it"):
        model.predict(pa.table({"price": [1.0, None], "other": [1.0, 2.0]}))


@pytest.mark.parametrize("estimator", [LinearSVCCV(Cs=2, cv=2), KernelSVC(random_state=0)])
def test_other_estimators_and_files(estimator: Any, tmp_path: Path) -> None:
    estimator.fit(cutsvm.open_dataset(TRAIN, label="click", exclude=["id"], scale="standard"))
    save_model(estimator, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.label == "click" and loaded.preprocessing is not None
    assert loaded.estimator.preprocessing_ == estimator.preprocessing_
    np.testing.assert_array_equal(loaded.predict(TEST), estimator.predict(TEST))
    np.testing.assert_array_equal(loaded.decision_function(TEST), estimator.decision_function(TEST))
    assert loaded.score(TEST) == estimator.score(TEST)


def test_files_of_earlier_versions_and_damaged_ones(model: Any, tmp_path: Path) -> None:
    save_model(model, tmp_path / "m")
    kind, header, arrays = split((tmp_path / "m").read_bytes())
    for change, says in (
        ({"columns": None}, "columns is not a list"),
        ({"columns": header["preprocessing"]["columns"][1:]}, "the features of the model"),
        ({"columns": [{**header["preprocessing"]["columns"][0], "scale": 0.0}]}, "scale of 'age'"),
    ):
        damaged = header | {"preprocessing": header["preprocessing"] | change}
        (tmp_path / "bad").write_bytes(join(kind, damaged, arrays))
        with pytest.raises(ModelFileError, match=says):
            load_model(tmp_path / "bad")
    header.pop("preprocessing")
    (tmp_path / "old").write_bytes(join(kind, header, arrays))
    old = load_model(tmp_path / "old")
    assert old.preprocessing is None and old.label is None
    np.testing.assert_array_equal(old.estimator.coef_, model.coef_)


def test_exports_without_preprocessing_say_so(model: Any, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="preprocessing_"):
        model.to_sklearn()
    numbers = LinearSVC().fit(cutsvm.open_dataset(TRAIN, label="click", columns=["price"]))
    numbers.classes_ = np.array([0, 1])
    save_model(numbers, tmp_path / "fine", format="liblinear")
    numbers.to_sklearn()
    scaled = LinearSVC().fit(cutsvm.open_dataset(TRAIN, label="click", columns=["price"], scale="minmax"))
    scaled.classes_ = np.array([0, 1])
    with pytest.raises(ModelFileError, match=r"has no preprocessing, .* 'price'"):
        save_model(scaled, tmp_path / "refused", format="liblinear")
