"""Every kind of source becomes a store that holds the same rows; bad ones are named with their place."""

import gzip
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import cutsvm
from cutsvm import DataError
from cutsvm.io import open_dataset, read_svmlight
from cutsvm.io.store import convert as convert_module
from cutsvm.io.store import writer as store_writer

N, D = 10_000, 5


@pytest.fixture(scope="module")
def rows():
    """X with some zeros, labels, weights, queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
    X[:, -1] = 1.0
    y = np.where(X.sum(axis=1) > 1.0, 1, -1)
    return X, y, rng.random(N), np.sort(rng.integers(0, 50, N))


@pytest.fixture(autouse=True)
def small_batches(read_with):
    """Blocks have 4096 rows, batches other numbers."""
    read_with(batch_bytes=8 * D * 3000, table_rows=3000, parsed_bytes=1 << 17)


def convert(source, path, **options):
    return cutsvm.convert(source, path / "store", block_bytes=4096 * 8 * D, **options)


def svmlight(path, X, y, qid=None, first=1):
    with open(path, "w") as file:
        for i, label in enumerate(y):
            query = "" if qid is None else f" qid:{qid[i]}"
            file.write(
                f"{label:g}{query}" + "".join(f" {j + first}:{float(X[i, j])!r}" for j in np.flatnonzero(X[i])) + "\n"
            )
    return path


def test_arrays_memory_maps_and_sparse(rows, tmp_path):
    X, y, weights, qid = rows
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    for number, given in enumerate((X, mapped, np.asfortranarray(X), sparse.csr_matrix(X), X.astype(np.float32))):
        data = convert((given, y), tmp_path / ".", weight=weights, qid=qid)
        assert_array_equal(data.X.toarray() if sparse.issparse(data.X) else data.X, X.astype(given.dtype))
        assert data.X.dtype == given.dtype
        assert sparse.issparse(data.X) == sparse.issparse(given), number
        for mine, theirs in ((data.y, y), (data.weights, weights), (data.qid, qid)):
            assert_array_equal(mine, theirs)
        blocks = [block.rows for block in data.store.manifest.blocks]
        assert len(blocks) > 1 and all(many % 4096 == 0 for many in blocks[:-1])
        assert data.store.squares == pytest.approx((X.astype(given.dtype) ** 2).sum(axis=1), rel=1e-6)


def test_small_integers_and_dtype(rows, tmp_path):
    X, y, *_ = rows
    whole = np.rint(X).astype(np.int8)
    assert convert((whole, y), tmp_path).X.dtype == np.float32
    assert convert((X, y), tmp_path, dtype=np.float32).X.dtype == np.float32
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        convert((X, y), tmp_path, dtype=np.int64)


def test_blocks_of_any_size_with_memory_used_again(rows, tmp_path):
    X, y, weights, qid = rows
    buffer = np.empty((777, D))

    def blocks():
        for start in range(0, N, 777):
            part = slice(start, min(N, start + 777))
            many = part.stop - part.start
            buffer[:many] = X[part]
            yield buffer[:many], y[part], weights[part], qid[part]

    data = convert(blocks(), tmp_path)
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, y)
    assert_array_equal(data.weights, weights)
    assert_array_equal(data.qid, qid)


def test_text_labels_and_queries_and_frames(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _, qid = rows
    names = np.array(["ham", "späm"])[(y > 0).astype(int)]
    frame = pandas.DataFrame(X, columns=list("abcde"))
    data = convert((frame, names), tmp_path, qid=np.char.add("q", qid.astype(str)))
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, names)
    assert data.qid[0] == f"q{qid[0]}" and len(set(data.qid)) == len(set(qid))
    assert data.feature_names == list("abcde")


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("packed", [False, True])
def test_svmlight(rows, tmp_path, first, packed):
    X, y, _, qid = rows
    path = svmlight(tmp_path / "a.svm", X, y, qid, first)
    if packed:
        path = tmp_path / "a.svm.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes()))
    data, expected = convert(path, tmp_path), read_svmlight(path)
    assert (data.X != expected.X).nnz == 0
    assert data.shape == expected.X.shape
    assert_array_equal(data.y, expected.y)
    assert_array_equal(data.qid, expected.qid)
    assert data.zero_based == expected.zero_based == (first == 0)


@pytest.mark.parametrize("place", [0, N // 2, N - 1])
def test_one_query_of_svmlight_is_text(rows, tmp_path, place, read_with):
    """One text id makes all ids text."""
    read_with(column_bytes=8 * 1000)
    X, y, _, qid = rows
    names = qid.astype(object)
    names[place] = "späte"
    path = svmlight(tmp_path / "a.svm", X, y, names)
    data, expected = convert(path, tmp_path), read_svmlight(path)
    assert expected.qid.dtype.kind == "U" and expected.qid[place] == "späte"
    assert_array_equal(data.qid, expected.qid)
    assert_array_equal(cutsvm.convert(data.store.path, tmp_path / "again").qid, expected.qid)


def test_index_0_in_the_last_line_shifts_all_columns(rows, tmp_path):
    X, y, *_ = rows
    path = svmlight(tmp_path / "late.svm", X, y)
    with open(path, "a") as file:
        file.write("1 0:7\n")
    data, expected = convert(path, tmp_path), read_svmlight(path)
    assert data.zero_based and len(data.store.manifest.blocks) > 1
    assert (data.X != expected.X).nnz == 0
    again = cutsvm.convert(data.store.path, tmp_path / "again")
    assert (again.X != expected.X).nnz == 0 and again.zero_based and again.shape == expected.X.shape


def test_several_svmlight_files(rows, tmp_path):
    X, y, *_ = rows
    paths = [svmlight(tmp_path / f"{k}.svm", X[k::2], y[k::2]) for k in range(2)]
    data, expected = convert(paths, tmp_path, n_features=9), read_svmlight(paths, n_features=9)
    assert (data.X != expected.X).nnz == 0 and data.shape == (N, 9)
    with pytest.raises(DataError, match="index 5 is beyond n_features=4"):
        convert(paths, tmp_path, n_features=4)


def test_npy_and_npz(rows, tmp_path):
    X, y, weights, qid = rows
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "Xy.npy", np.column_stack([X, y]))
    np.savez(tmp_path / "dense.npz", X=X, y=y, sample_weight=weights, qid=qid)
    np.savez_compressed(tmp_path / "fortran.npz", X=np.asfortranarray(X), y=y)
    parts = sparse.csr_matrix(X)
    csr = {"data": parts.data, "indices": parts.indices, "indptr": parts.indptr, "shape": parts.shape}
    np.savez(tmp_path / "sparse.npz", **csr, y=y)
    cases = [
        ("X.npy", str(tmp_path / "y.npy")),
        ("Xy.npy", -1),
        ("Xy.npy", "5"),
        ("dense.npz", None),
        ("fortran.npz", "y"),
        ("sparse.npz", None),
    ]
    for name, label in cases:
        for data in (convert(tmp_path / name, tmp_path, label=label), open_dataset(tmp_path / name, label=label)):
            assert_array_equal(data.X.toarray() if sparse.issparse(data.X) else data.X, X)
            assert_array_equal(data.y, y)
            assert (data.weights is not None) == (name == "dense.npz") == (data.qid is not None)


def tables(rows, folder):
    """The same table in every format."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    csv, feather = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.feather")

    X, y, weights, qid = rows
    columns = {name: X[:, j] for j, name in enumerate("abcde")}
    table = pa.table({"label": np.where(y > 0, "yes", "no"), **columns, "sample_weight": weights, "qid": qid})
    csv.write_csv(table, folder / "t.csv")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    (folder / "t.tsv").write_text((folder / "t.csv").read_text().replace(",", "\t"))
    parquet.write_table(table, folder / "t.parquet", row_group_size=4000)
    feather.write_feather(table, folder / "t.feather", chunksize=4000)
    with pa.ipc.new_stream(folder / "t.arrow", table.schema) as stream:
        stream.write_table(table)
    return [folder / f"t.{kind}" for kind in ("csv", "csv.gz", "tsv", "parquet", "feather", "arrow")]


def test_tables(rows, tmp_path):
    X, y, weights, qid = rows
    for path in tables(rows, tmp_path):
        for data in (convert(path, tmp_path), open_dataset(path)):
            assert_array_equal(data.X, X, err_msg=path.name)
            assert_array_equal(data.y, np.where(y > 0, "yes", "no"))
            assert_array_equal(data.weights, weights)
            assert_array_equal(data.qid, qid)
            assert data.feature_names == list("abcde") and data.zero_based is None


def test_tables_without_names_or_with_other_ones(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "bare.csv").write_text("1,2.5,0\n3,4,1\n")
    data = open_dataset(tmp_path / "bare.csv", label=-1)
    assert_array_equal(data.X, [[1, 2.5], [3, 4]])
    assert_array_equal(data.y, [0, 1])
    (tmp_path / "named.csv").write_text('"a; b";click\n1;0\n2;1\n')
    data = open_dataset(tmp_path / "named.csv", label="click")
    assert data.feature_names == ["a; b"] and data.y.tolist() == [0, 1]


BAD_TABLES = {
    "no label": ("a,b\n1,2\n", {}, "which column has the labels? label= expects one of the columns 'a', 'b'"),
    "wrong label": ("a,b\n1,2\n", {"label": "c"}, "there is no column 'c'; the columns are 'a', 'b'"),
    "number too large": ("a,b\n1,2\n", {"label": 2}, "there is no column 2"),
    "empty": ("", {}, "no samples"),
    "only names": ("a,label\n", {}, "no samples"),
    "hole": ("a,label\n1,0\n,1\n", {"missing": "refuse"}, "row 1, column 'a': expected a value, found none"),
    "nan": ("a,label\n1,0\nnan,1\n", {"missing": "refuse"}, "row 1, column 'a': expected a value, found none"),
    "infinity": ("a,label\n1,0\n2,1\ninf,1\n", {}, "row 2, column 'a': expected a finite number, found inf"),
    "hole in labels": ("a,label\n1,0\n2,\n", {}, "row 1, column 'label': expected a value, found none"),
    "text": (
        "a,city,label\n1,Rome,0\n",
        {"categorical": "refuse"},
        "row 0, column 'city': expected a number, found 'Rome'",
    ),
    "text below": ("a,label\n1,0\n2,1\nx,1\n", {}, "row 2, column 'a': expected a number, found 'x'"),
    "ragged": ("a,label\n1,0\n2,1,3\n", {}, "Expected 2 columns, got 3"),
    "twice": ("a,a,label\n1,2,0\n", {}, "the column 'a' appears twice"),
    "negative weight": ("a,w,label\n1,1,0\n2,-1,0\n", {"weight": "w"}, "row 1: expected a finite weight, 0 or more"),
    "one column for two": ("a,label\n1,0\n", {"qid": "label"}, "must be different columns"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(case, tmp_path):
    pytest.importorskip("pyarrow")
    text, options, says = BAD_TABLES[case]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError) as error:
        convert(tmp_path / "t.csv", tmp_path, **options)
    assert says in str(error.value) and str(tmp_path / "t.csv") in str(error.value)
    assert not (tmp_path / "store").exists()


def test_bad_parquet(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": ["x"], "label": [1]}), path)
    with pytest.raises(DataError, match="column 'a' holds text, expected numbers"):
        convert(path, tmp_path, categorical="refuse")
    parquet.write_table(pa.table({"a": [1.0, None], "label": [1, 2]}), path)
    with pytest.raises(DataError, match="row 1, column 'a': expected a value, found none"):
        convert(path, tmp_path, missing="refuse")
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"t\.parquet"):
        convert(path, tmp_path)


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.csv").write_text("a,label\n1,0\n")
    with pytest.raises(ImportError, match=r"needs the package pyarrow: pip install cutsvm\[files\]"):
        open_dataset(tmp_path / "t.csv")


def bad_blocks():
    X, y = np.ones((3, 2)), np.ones(3)
    holes = X.copy()
    holes[1, 0] = np.nan
    good = (X, y)
    return {
        "nan": ([good, (holes, y)], "row 4, column 0: expected a finite number, found nan"),
        "sparse nan": ([(sparse.csr_matrix(holes), y)], "row 1, column 0"),
        "width": ([good, (X[:, :1], y)], "from row 3 on, rows of 1 features, before 2"),
        "kind": ([good, (sparse.csr_matrix(X), y)], "the rows are sparse, before dense"),
        "labels": ([(X, y[:2])], "3 rows but labels of shape (2,)"),
        "nan label": ([(X, y * np.nan)], "row 0: expected a label, found nan"),
        "text then": ([good, (X, ["a", "b", "c"])], "labels are text, before they were numbers"),
        "type then": ([good, (X, [1, 2, 3])], "from row 3 on y is int64, before it was float64"),
        "weights": ([(X, y, y), good], "some rows have weights, others have none"),
        "half queries": ([(X, y, None, y / 2)], "row 0: expected a whole number as query, found 0.5"),
        "no pair": ([X], "block 0: expected (X, y)"),
        "text": ([(np.full((3, 2), "a"), y)], "expected numbers"),
        "none": ([], "no samples"),
    }


@pytest.mark.parametrize("case", bad_blocks())
def test_bad_blocks(case, tmp_path):
    blocks, says = bad_blocks()[case]
    with pytest.raises(DataError) as error:
        convert(iter(blocks), tmp_path)
    assert says in str(error.value)
    assert not (tmp_path / "store").exists()


BAD_FILES = {
    "nothing.npy": (b"", "not a .npy file"),
    "text.npz": (b"hello", "not a .npz file"),
    "bad.svm": (b"1 1:1\n" * 30_000 + b"-1 1:x\n", "bad.svm:30001: expected a number as value"),
    "half.svm": (b"1 qid:1 1:1\n" * 30_000 + b"1 1:1\n", "qid"),
    "empty.svm": (b"# nothing\n", "no samples"),
    "huge.svm": (b"1 1:1\n-1 9000000000:1\n", "too large for a store"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(name, tmp_path):
    content, says = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        convert(tmp_path / name, tmp_path, label=0 if name.endswith("npy") else None)
    assert says in str(error.value)


def test_bad_calls(rows, tmp_path):
    X, y, *_ = rows
    np.save(tmp_path / "X.npy", X)
    for call, kind, says in [
        (lambda: convert(X, tmp_path), TypeError, "expected a path"),
        (lambda: convert((X, y[1:]), tmp_path), DataError, "labels of shape"),
        (lambda: convert((X[0], y), tmp_path), DataError, "expected a matrix"),
        (lambda: convert(tmp_path / "X.npy", tmp_path), DataError, "where are the labels"),
        (lambda: convert(tmp_path / "X.npy", tmp_path, label=9), DataError, "number of one of the 5 columns"),
        (lambda: convert(tmp_path / "no.svm", tmp_path), FileNotFoundError, "no.svm"),
        (lambda: convert(tmp_path / "X.npy", tmp_path, format="xls"), ValueError, "format must be one of"),
        (lambda: cutsvm.convert((X, y), tmp_path / "s", block_bytes=0), ValueError, "block_bytes"),
        (lambda: cutsvm.convert((X, y), tmp_path / "no" / "s"), DataError, "there is no folder"),
        (lambda: cutsvm.convert((X, y), tmp_path / "X.npy"), DataError, "exists and is not a folder"),
    ]:
        with pytest.raises(kind, match=says):
            call()


def test_wide_rows_are_cut_into_smaller_blocks(tmp_path):
    X = np.arange(40.0 * 1000).reshape(40, 1000)
    data = cutsvm.convert((X, np.ones(40)), tmp_path / "store", block_bytes=80_000)
    assert_array_equal(data.X, X)
    assert [block.rows for block in data.store.manifest.blocks] == [10, 10, 10, 10]


def test_progress_is_reported(rows, tmp_path):
    X, y, *_ = rows
    path, again = svmlight(tmp_path / "a.svm", X, y), tmp_path / "again"
    np.savez(tmp_path / "a.npz", X=X, y=y)
    cutsvm.convert((X, y), again)
    for source in ((X, y), path, tmp_path / "a.npz", again, *tables(rows, tmp_path)):
        said = []
        convert(source, tmp_path, progress=lambda *state, said=said: said.append(state))
        assert said[-1][0] == N and said[-1][2] in (None, 1.0), source
        assert said == sorted(said)
    assert store_writer.STRIP == 4096 and convert_module.BLOCK_BYTES % 4096 == 0
