"""Files of one folder, and rows to predict, whose columns differ in type from the first file or the training data."""

import datetime as dt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm import DataError, LinearSVC, open_dataset

pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
N = 40


def table(seed=0, **columns):
    rng = np.random.default_rng(seed)
    x, city = rng.normal(size=N), rng.choice(["Oslo", "Rome"], N)
    label = np.where(x + (city == "Rome") > 0.5, "yes", "no")
    return pa.table({"x": x, "city": list(city), "label": list(label), **columns})


def write(folder, tables):
    for name, rows in tables.items():
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, path, row_group_size=7)
    return folder


@pytest.mark.parametrize(
    "first", [pa.array([1, 2] * 20), pa.array([1] * N, pa.int8()), pa.nulls(N)], ids=lambda values: str(values.type)
)
def test_whole_or_no_numbers_in_the_first_file(tmp_path, first):
    tables = [table(x=first), table(1)]
    model = LinearSVC().fit(table(2))
    expected = np.concatenate([model.decision_function(part) for part in tables])
    write(tmp_path, {"a": tables[0], "b": tables[1]})
    assert_allclose(model.decision_function(tmp_path), expected, rtol=1e-14)
    read = open_dataset(tmp_path, columns=["x"])
    assert_allclose(read.X[N:, 0], tables[1]["x"], rtol=1e-7)
    if not pa.types.is_null(first.type):
        chosen = open_dataset(tmp_path, columns=["x"], filter="-0.9 < x < 0.9").X
        values = tables[1]["x"].to_numpy()
        assert_allclose(chosen[:, 0], values[np.abs(values) < 0.9], rtol=1e-7)


def test_times_after_dates(tmp_path):
    days, noon = [dt.date(2024, 1, 1)] * N, [dt.datetime(2024, 1, 1, 12)] * N
    write(tmp_path, {"a": table(day=days), "b": table(day=noon)})
    assert set(open_dataset(tmp_path, columns=["day"]).X[N:, 0]) == {19723.5}


def test_folders_that_state_texts(tmp_path):
    write(tmp_path / "train", {"zip=01/a": table(0), "zip=1/a": table(1), "zip=AB/a": table(2)})
    model = LinearSVC().fit(tmp_path / "train")
    write(tmp_path / "new", {"zip=01/a": table(0)})
    expected = model.decision_function(tmp_path / "train")[:N]
    assert_array_equal(model.decision_function(tmp_path / "new"), expected)


def test_folder_of_missing_values(tmp_path):
    write(tmp_path, {"year=__HIVE_DEFAULT_PARTITION__/a": table(0), "year=2024/a": table(1)})
    read = open_dataset(tmp_path)
    assert read.preprocessing.columns[-1].kind == "number"
    assert_array_equal(read.X[:, -1], 2024.0)
    assert open_dataset(tmp_path, filter="year is None").shape[0] == N


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("x", pa.array([dt.date(2024, 1, 1)] * N)),
        ("x", pa.array(["1.5"] * N)),
        ("day", pa.array([19000.0] * N)),
        ("city", pa.array([["Oslo"]] * N)),
        ("city", pa.array([{"name": "Oslo"}] * N)),
    ],
    ids=["date", "text", "number", "list", "struct"],
)
def test_what_the_training_data_did_not_hold(tmp_path, column, values):
    train = table(day=[dt.date(2024, 1, 1)] * N)
    model = LinearSVC().fit(train)
    new = train.set_column(train.schema.get_field_index(column), column, values)
    with pytest.raises(DataError, match=f"column '{column}' holds .*, expected .* as in the training data"):
        model.predict(new)
    write(tmp_path, {"a": train, "b": new})
    with pytest.raises(DataError, match=f"b.parquet: .*column '{column}' holds"):
        LinearSVC().fit(tmp_path)


def test_a_feature_called_y_is_no_label():
    points = table().select(["x"]).append_column("y", pa.array(np.arange(N)))
    model = LinearSVC().fit(points.to_pandas(), table()["label"].to_pylist())
    with pytest.raises(ValueError, match="no labels"):
        model.score(points)


def test_files_without_names(tmp_path):
    """Features that are made of texts cannot be found by their index."""
    model = LinearSVC().fit(table())
    (tmp_path / "rows.svm").write_text("1 1:0.5 2:1\n")
    np.save(tmp_path / "rows.npy", np.zeros((2, 3)))
    for name in ("rows.svm", "rows.npy"):
        with pytest.raises(DataError, match=f"{name}: it has no names of columns"):
            model.predict(tmp_path / name)


def test_labels_are_not_read_to_predict(tmp_path):
    model = LinearSVC().fit(table())
    expected = model.decision_function(table())
    some = pa.array([None, *table()["label"].to_pylist()[1:]])
    holes = table().set_column(2, "label", some)
    assert_array_equal(model.decision_function(holes), expected)
    with pytest.raises(DataError, match="row 0, column 'label': expected a value"):
        model.score(holes)
    write(tmp_path, {"a": table(), "b": table().drop_columns(["label"])})
    assert_array_equal(model.decision_function(tmp_path), np.tile(expected, 2))


def test_words_for_what_a_csv_file_should_hold(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("day,label\n2024-01-01,1\n2024-01-02,0\n")
    model = LinearSVC().fit(path)
    path.write_text("day\ntoday\n")
    with pytest.raises(DataError, match="column 'day': expected a date, found 'today'"):
        model.predict(path)


def test_an_empty_label_of_a_csv_file_is_missing(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,label\n1,yes\n2,NA\n")
    assert_array_equal(open_dataset(path).y, ["yes", "NA"])
    path.write_text("x,label\n1,yes\n2,\n")
    with pytest.raises(DataError, match="row 1, column 'label': expected a value, found none"):
        open_dataset(path)
