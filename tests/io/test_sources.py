"""Every kind of source gives the same data set; some have no labels, or columns to keep."""

import gzip
import io
import os
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cutsvm
from cutsvm import DataError, LinearOneClassSVM, LinearSVC, open_dataset
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.open import as_source, is_source

pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
dataset, parquet = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
N = 60


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "city": pd.Series(rng.choice(["Oslo", "Paris", "Rome"], N)).mask(rng.random(N) < 0.1),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, N), unit="D"),
            "sample_weight": rng.random(N),
            "qid": np.sort(rng.integers(0, 5, N)),
        }
    )
    return frame.assign(label=np.where(frame["a"].fillna(0) + rng.normal(size=N) > 0, "yes", "no"))


@pytest.fixture
def folder(frame, tmp_path):
    """Halves in folders that state a column, and whole files of all formats."""
    for year, part in ((2023, frame[: N // 2]), (2024, frame[N // 2 :])):
        (tmp_path / "years" / f"year={year}").mkdir(parents=True)
        part.to_parquet(tmp_path / "years" / f"year={year}" / "part-0.parquet", index=False)
        part.to_csv(tmp_path / f"half{year}.csv", index=False)
        (tmp_path / "years" / "_SUCCESS").write_text("")
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    feather.write_feather(pa.Table.from_pandas(frame), tmp_path / "t.feather")
    return tmp_path


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def assert_same(found, expected, name=""):
    assert_allclose(dense(found.X), dense(expected.X), rtol=1e-14, err_msg=name)
    assert_array_equal(found.y, expected.y, err_msg=name)
    assert_allclose(found.weights, expected.weights, rtol=1e-15, err_msg=name)
    assert_array_equal(found.qid, expected.qid, err_msg=name)
    assert found.feature_names == expected.feature_names, name
    assert found.preprocessing == expected.preprocessing, name


def sources(frame, folder):
    pl, duckdb, fsspec = (pytest.importorskip(name) for name in ("polars", "duckdb", "fsspec"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    memory = fsspec.filesystem("memory")
    for name in ("t.parquet", "t.csv", "t.feather"):
        memory.pipe(f"/tables/{name}", (folder / name).read_bytes())
    yield from ((name, folder / f"t.{name}") for name in ("csv", "csv.gz", "tsv", "feather", "parquet"))
    yield "glob", f"{folder}/t.par*"
    yield "several", [folder / "half2023.csv", folder / "half2024.csv"]
    yield "glob of several", f"{folder}/half*.csv"
    yield "address", "memory://tables/t.parquet"
    yield "address of text", "memory://tables/t.csv"
    yield "address of Arrow", "memory://tables/t.feather"
    yield "glob of addresses", "memory://tables/*.parquet"
    yield "pandas", frame
    yield "polars", pl.from_pandas(frame)
    yield "lazy", pl.scan_parquet(folder / "t.parquet")
    yield "DuckDB", duckdb.sql(f"select * from '{folder}/t.parquet'")
    yield "table", table
    yield "reader", table.to_reader(max_chunksize=7)
    yield "dataset", dataset.dataset(folder / "t.parquet")
    yield "dataset in memory", dataset.dataset(table)
    yield "blocks", (frame[start : start + 9] for start in range(0, N, 9))
    yield "batches", iter(table.to_batches(max_chunksize=8))


def test_every_kind_gives_the_same_data(frame, folder, read_with, tmp_path):
    read_with(table_rows=16, csv_bytes=700)
    expected = open_dataset(folder / "t.parquet")
    assert expected.feature_names == ["a", "city=Oslo", "city=Paris", "city=Rome", "day"]
    assert_allclose(np.nanmean(frame["a"]), expected.preprocessing.columns[0].fill)
    for name, source in sources(frame, folder):
        assert is_source(source) or name in ("pandas", "polars"), name
        assert_same(open_dataset(source), expected, name)
    for name, source in sources(frame, folder):
        if name in ("lazy", "reader", "blocks", "several", "csv.gz", "address"):
            stored = cutsvm.convert(source, tmp_path / "store", block_bytes=1000)
            assert_same(stored, expected, name)
            assert_same(open_dataset(tmp_path / "store"), expected, name)
            assert [column.name for column in stored.preprocessing.columns] == ["a", "city", "day"]


def test_fit(frame, folder, tmp_path):
    expected = LinearSVC(tol=1e-6).fit(folder / "t.parquet")
    for name, source in sources(frame, folder):
        if name in ("pandas", "lazy", "DuckDB", "table", "blocks", "several", "dataset"):
            limit = "2GB" if name in ("table", "blocks") else None
            model = LinearSVC(tol=1e-6, memory_limit=limit).fit(source)
            assert_allclose(model.coef_, expected.coef_, atol=1e-2, err_msg=name)
            assert model.preprocessing_["label"] == "label" and len(model.preprocessing_["columns"]) == 3
    cutsvm.convert(folder / "t.parquet", tmp_path / "store")
    model = LinearSVC(tol=1e-6).fit(tmp_path / "store")
    assert model.preprocessing_ == expected.preprocessing_
    numbers = frame[["a"]].fillna(0.0)
    assert not hasattr(model.fit(numbers, frame["label"]), "preprocessing_")
    with pytest.raises(TypeError, match="have the labels in a column, and leave y out"):
        model.fit(pa.Table.from_pandas(numbers), frame["label"])


def test_folders_state_columns(frame, folder):
    data = open_dataset(folder / "years")
    assert data.shape == (N, 6) and data.feature_names[-1] == "year"
    assert set(data.X[:, -1]) == {2023, 2024}
    theirs = open_dataset(dataset.dataset(folder / "years", partitioning="hive"))
    assert_same(theirs, data)
    late = open_dataset(folder / "years", filter="year == 2024")
    assert_array_equal(late.y, frame["label"][N // 2 :])


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.feather"])
def test_columns_and_filter(frame, folder, name):
    condition = "day >= '2024-02-01' and (city in ['Rome', 'Oslo'] or not a < 0.5) and a is not None"
    data = open_dataset(folder / name, columns=["day", "a"], filter=condition)
    kept = (frame["day"] >= "2024-02-01") & (frame["city"].isin(["Rome", "Oslo"]) | ~(frame["a"] < 0.5))
    kept &= frame["a"].notna()
    assert data.feature_names == ["day", "a"] and 0 < len(data.y) < N
    assert_array_equal(data.X[:, 1], frame["a"][kept])
    import pyarrow.compute as pc

    same = open_dataset(folder / name, columns=["day", "a"], filter=pc.field("a") > 0.1, exclude=["day"])
    assert_array_equal(same.X[:, 0], frame["a"][frame["a"] > 0.1])
    with pytest.raises(DataError, match="no samples"):
        open_dataset(folder / name, filter="a > 1e9")


def test_later_files_must_have_the_columns(folder):
    (folder / "other.csv").write_text("a,label\n1,yes\n")
    with pytest.raises(DataError, match=r"other\.csv: there is no column 'city', which .*half2023\.csv has"):
        open_dataset([folder / "half2023.csv", folder / "other.csv"])
    (folder / "half2024.csv").write_text((folder / "half2023.csv").read_text().replace("\n", "\nx", 3))
    with pytest.raises(DataError, match=r"half2024\.csv: row 0, column 'a': expected a number, found 'x"):
        open_dataset([folder / "half2023.csv", folder / "half2024.csv"])
    with pytest.raises(DataError, match="files of several formats"):
        open_dataset([folder / "t.csv", folder / "t.parquet"])
    with pytest.raises(FileNotFoundError, match="No such file"):
        open_dataset(f"{folder}/nothing*.csv")


# Rows to predict.


def read(source, **options):
    source = as_source(source, ColumnSpec(**options))
    batches = list(source)
    X = np.vstack([dense(batch.X) for batch in batches])
    return X, [batch.y for batch in batches], batches


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.feather"])
def test_tables_without_labels(frame, folder, name, read_with):
    read_with(table_rows=16)
    known = open_dataset(folder / name).preprocessing
    bare = pa.Table.from_pandas(frame.drop(columns=["label", "qid", "sample_weight"]).assign(id=range(N)))
    if name == "t.csv":
        bare.to_pandas().to_csv(folder / name, index=False)
    else:
        (parquet.write_table if name == "t.parquet" else feather.write_feather)(bare, folder / name)
    X, y, batches = read(folder / name, labels="optional", preprocessing=known, keep=["id", "city"])
    assert_allclose(X, dense(open_dataset(frame).X), rtol=1e-14)
    assert all(part is None for part in y)
    ids = [value for batch in batches for value in batch.kept.column("id").to_pylist()]
    assert ids == list(range(N)) and batches[0].kept.schema.names == ["id", "city"]
    with pytest.raises(DataError, match="there is no column 'label'"):
        as_source(folder / name, ColumnSpec(preprocessing=known))
    with pytest.raises(DataError, match="there is no column 'name'"):
        as_source(folder / name, ColumnSpec(preprocessing=known, labels="none", keep=["name"]))
    stream = bare.to_reader(max_chunksize=9)  # read once, and not copied
    assert_allclose(read(stream, labels="none", preprocessing=known)[0], X)


def test_labels_are_left_alone(frame):
    X, y, _ = read(frame[["a", "label"]], labels="none")
    assert X.shape == (N, 1) and y == [None]
    X, y, _ = read(frame[["a", "label"]], labels="optional")
    assert X.shape == (N, 1) and y[0].tolist() == frame["label"].tolist()


def test_svmlight_without_labels(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("# a comment\n1:0.5 3:2 # x\n2:1\n1:1\n")
    X, y, _ = read(path, labels="optional")
    assert_array_equal(X[:, 1:], [[0.5, 0, 2], [0, 1, 0], [1, 0, 0]])
    assert y == [None]
    path.write_text("qid:2 1:1\nqid:3 1:2\n")
    (batch,) = as_source(path, ColumnSpec(labels="optional"))
    assert batch.y is None and batch.qid.tolist() == [2, 3]
    path.write_text("1 1:0.5\n-1 2:1\n")
    assert read(path, labels="optional")[1][0].tolist() == [1, -1] and read(path, labels="none")[1] == [None]
    for text, says in [
        ("1:1\n\n2:1\n", "t.svm:2: expected index:value, found an empty line"),
        ("1:1\n1 2:1\n", "t.svm:2: expected index:value"),
        ("1 1:1\n2:1\n", "t.svm:2: expected a label before"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError, match=says):
            read(path, labels="optional")


def test_arrays_and_blocks_without_labels(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X)
    for source in (tmp_path / "x.npy", tmp_path / "x.npz", X, (X, None), iter([X[:2], X[2:]]), iter([(X, None)])):
        found, y, _ = read(source, labels="optional")
        assert_array_equal(found, X)
        assert all(part is None for part in y)
    with pytest.raises(DataError, match="where are the labels"):
        as_source(tmp_path / "x.npy", ColumnSpec())
    two, y, _ = read([tmp_path / "x.npy", tmp_path / "x.npy"], label="1")
    assert_array_equal(two[:, 0], [*X[:, 0], *X[:, 0]])


def test_standard_input_and_pipes(monkeypatch, folder, frame):
    for name, format in (("t.csv", "csv"), ("t.parquet", None), ("t.feather", None)):
        stream = io.BufferedReader(io.BytesIO((folder / name).read_bytes()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        assert_same(open_dataset("-", format=format), open_dataset(folder / name))
    pipe = folder / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes((folder / "t.csv").read_bytes()))
    writer.start()
    assert_same(open_dataset(pipe), open_dataset(folder / "t.csv"))
    writer.join()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"1 1:2\n-1 2:1\n"))))
    data = open_dataset("-")
    assert data.source == "standard input" and data.y.tolist() == [1, -1]


def test_stores_of_earlier_versions_open(tmp_path):
    """A manifest without `preprocessing`."""
    import json

    from cutsvm.io.store.manifest import NAME, _digest
    from cutsvm.io.store.store import Store

    cutsvm.convert((np.eye(2), [0, 1]), tmp_path / "store")
    file = tmp_path / "store" / NAME
    fields = json.loads(file.read_text())
    del fields["preprocessing"], fields["sha256"]
    file.write_text(json.dumps({**fields, "sha256": _digest(fields)}))
    assert Store(tmp_path / "store").manifest.preprocessing is None
    assert open_dataset(tmp_path / "store").preprocessing is None


def test_one_class_needs_no_labels(tmp_path):
    X = np.abs(np.random.default_rng(0).normal(size=(50, 3))) + 1.0
    np.save(tmp_path / "x.npy", X)
    table = pa.table({name: X[:, column] for column, name in enumerate("abc")})
    expected = LinearOneClassSVM(nu=0.1).fit(X)
    for source, limit in ((tmp_path / "x.npy", None), (table, None), (table, "2GB")):
        model = LinearOneClassSVM(nu=0.1, memory_limit=limit).fit(source)
        assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    assert model.preprocessing_["label"] is None
    with pytest.raises(DataError, match="which column has the labels"):
        LinearSVC().fit(table)


def test_folders_above_state_nothing(tmp_path):
    """Only the folders below the one that is named, or that all files are in, state columns."""
    table = pa.table({"a": [1.0, 2.0], "label": [0, 1]})
    for year in (1, 2):
        (tmp_path / "run=7" / f"year={year}").mkdir(parents=True)
        parquet.write_table(table, tmp_path / "run=7" / f"year={year}" / "t.parquet")
    files = sorted((tmp_path / "run=7").rglob("*.parquet"))
    assert open_dataset(files[0]).feature_names == ["a"]
    for source in (files, tmp_path / "run=7", str(tmp_path / "run=7" / "*" / "*.parquet")):
        data = open_dataset(source)
        assert data.feature_names == ["a", "year"] and data.X[:, 1].tolist() == [1, 1, 2, 2]


def test_wide_tables(tmp_path):
    """Nothing is quadratic in the number of columns."""
    names = [f"f{k}" for k in range(5_000)]
    (tmp_path / "t.csv").write_text(f"{','.join(names)},label\n" + ("1," * len(names) + "0\n") * 3)
    began = time.perf_counter()
    data = open_dataset(tmp_path / "t.csv")
    assert data.shape == (3, 5_000) and time.perf_counter() - began < 8.0
    table = pa.table({name: [1.0, 2.0] for name in names} | {"label": [0, 1]})
    assert open_dataset(table, columns=names[::-1]).feature_names == names[::-1]
    assert time.perf_counter() - began < 16.0


def test_texts_of_all_types():
    texts = ["b", None, "a", "b"]
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    for kind in kinds:
        column = pa.array(texts).cast(kind)
        data = open_dataset(pa.table({"t": column, "label": pa.array(list("xyxy")).cast(kind)}))
        assert_array_equal(dense(data.X), [[0, 1], [0, 0], [1, 0], [0, 1]], err_msg=str(kind))
        assert data.y.tolist() == list("xyxy")


def test_the_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "label": [0, 1, 1]}, index=[7, 5, 6])
    frame.to_parquet(tmp_path / "t.parquet")
    named = frame.rename_axis("id")
    for source in (frame, tmp_path / "t.parquet", named, iter([frame[:2], frame[2:]])):
        data = open_dataset(source)
        assert data.feature_names == ["a"] and data.X[:, 0].tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="block 1: there is no column 'a', which block 0 has"):
        open_dataset(iter([frame, frame[["label"]]]))
    with pytest.raises(DataError, match="DataFrame: Could not convert 'x'"):
        open_dataset(pd.DataFrame({"a": [1, "x"], "label": [0, 1]}))


def test_features_of_the_same_name():
    table = pa.table({"a": ["b", "c"], "a=b": [1, 2], "label": [0, 1]})
    with pytest.raises(DataError, match="two features would be called 'a=b'; leave a column out"):
        open_dataset(table)
    assert open_dataset(table, exclude=["a"]).feature_names == ["a=b"]
