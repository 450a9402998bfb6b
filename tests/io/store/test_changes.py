"""Stores that change: append, delete, compact; each version is whole, and reads as if it had been converted at once."""

import json
import os
import pickle
import shutil
import zlib
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

import cutsvm
from cutsvm import DataError, LinearSVC
from cutsvm.io import open_dataset
from cutsvm.io.store import append, delete, manifest, versions
from cutsvm.io.store.store import Store
from cutsvm.matrix import StoreRows, as_rows
from tests.support.strategies import examples, rng_of, seeds

BLOCK = 4096 * 4 * 3


def rows_of(rng, n, kind="dense", labels=("a", "b")):
    X = (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.6)).astype(np.float32)
    y = np.array(labels)[rng.integers(0, len(labels), n)]
    return (sparse.csr_matrix(X) if kind == "csr" else X), y


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def make(path, n=9000, kind="dense", **options):
    X, y = rows_of(np.random.default_rng(3), n, kind)
    return cutsvm.convert((X, y), path, block_bytes=BLOCK, **options), dense(X), y


def check(data, X, y):
    """The data set has these rows, however they are read."""
    assert data.shape == X.shape
    assert_array_equal(dense(data.X), X)
    assert_array_equal(data.y, y)
    assert_array_equal(data.store.labels, np.unique(y))
    assert data.store.manifest.rows == len(y) and data.store.edges[-1] == len(y)
    on_disk, in_memory = StoreRows(data.store, 2), as_rows(X)
    scores, expected = np.empty(len(y)), np.empty(len(y))
    on_disk.scores(np.arange(3.0), 0.5, scores)
    in_memory.scores(np.arange(3.0), 0.5, expected)
    assert_array_equal(scores, expected)
    some = np.unique(np.linspace(0, len(y) - 1, 50).astype(np.int64))
    assert_array_equal(dense(on_disk.take(some).X), X[some])
    low, high = len(y) // 3, 2 * len(y) // 3
    part = np.vstack([dense(rows.X) for _, rows in on_disk.run(low, high)])
    assert_array_equal(part, X[low:high])
    hashes = np.empty(len(y), dtype=np.uint64)
    in_memory.hashes(hashes)
    assert_array_equal(data.store.hashes, hashes)
    assert data.entries == (np.count_nonzero(X) if data.store.sparse else X.size)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@examples(6)
@given(seed=seeds, steps=st.lists(st.sampled_from(["append", "rows", "range", "mask", "compact"]), max_size=5))
def test_any_changes(kind, seed, steps, tmp_path_factory):
    rng, path = rng_of(seed), tmp_path_factory.mktemp("changes") / "store"
    data, X, y = make(path, n=int(rng.integers(1, 9000)), kind=kind)
    for number, step in enumerate(steps):
        if step == "append":
            more, labels = rows_of(rng, int(rng.integers(1, 5000)), rng.choice(["dense", "csr"]), ("b", "c"))
            assert data.append((more, labels), block_bytes=BLOCK) is data
            X, y = np.vstack([X, dense(more)]), np.concatenate([y, labels])
        elif step == "compact":
            data.compact(block_bytes=BLOCK)
        else:
            gone = np.zeros(len(y), dtype=bool)
            ends = np.sort(rng.integers(0, len(y), 2))
            gone[ends[0] : ends[1]] = True
            if step != "range":
                gone = rng.random(len(y)) < rng.choice([0.01, 0.5])
            if gone.all():
                continue
            given = {"rows": np.flatnonzero(gone), "range": slice(*ends.tolist()), "mask": gone}[step]
            data.delete(given)
            X, y = X[~gone], y[~gone]
        check(data, X, y)
        if number == len(steps) - 1:
            check(open_dataset(path), X, y)
    shutil.rmtree(path)


def test_history(tmp_path):
    data, X, y = make(tmp_path / "store")
    data.append((X[:10], y[:10])).delete([3, 4, 5, 100]).delete(slice(0, 2)).compact()
    found = [(change.action, change.rows, change.what) for change in data.store.manifest.history]
    assert found == [
        ("convert", 9000, "arrays"),
        ("append", 9010, "arrays"),
        ("delete", 9006, "4 rows: 3:6, 100"),
        ("delete", 9004, "2 rows: 0:2"),
        ("compact", 9004, "6 deleted rows removed, 2 segments joined"),
    ]
    assert data.version == 5 and all(change.time.endswith("+00:00") for change in data.store.manifest.history)
    before = (tmp_path / "store" / manifest.NAME).read_bytes()
    data.delete([]).delete(np.zeros(9004, dtype=bool)).compact()  # nothing to do
    assert (tmp_path / "store" / manifest.NAME).read_bytes() == before


def test_appended_rows_fit_the_store(tmp_path):
    data, X, y = make(tmp_path / "dense", n=20)
    with pytest.raises(DataError, match=r"rows of 2 features, but .*dense has 3; .*convert all of them again"):
        data.append((np.ones((1, 2)), ["a"]))
    with pytest.raises(DataError, match=r"labels are numbers, those of .* are text"):
        data.append((X, np.ones(20)))
    with pytest.raises(DataError, match=r"no samples"):
        data.append((X[:0], y[:0]))
    with pytest.raises(DataError, match=r"its rows have weights, those of .* have none"):
        data.append((X, y), weight=np.ones(20))
    with pytest.raises(DataError, match=r"row 7, column 1: expected a finite number"):
        data.append((np.where(np.arange(60).reshape(20, 3) == 22, np.nan, X), y))
    assert data.version == 1 and len(os.listdir(tmp_path / "dense")) == 2
    check(open_dataset(tmp_path / "dense"), X, y)
    data.append((X.astype(np.float64), y))
    assert data.X.dtype == np.float32


def test_rows_without_labels(tmp_path):
    """They have the label 0, and go where all rows are such: it is no class of a store that has labels."""
    X = np.eye(3)
    for y in ([1, 2, 1], ["a", "b", "a"]):
        data = cutsvm.convert((X, np.array(y)), tmp_path / "labelled")
        for source in ((X, None), iter([(X, None)])):
            with pytest.raises(DataError, match=r"its rows have no labels, those of .*labelled have"):
                data.append(source)
        assert data.shape == (3, 3)
    assert_array_equal(cutsvm.convert((X, None), tmp_path / "none").append((X, None)).y, np.zeros(6))


def test_sparse_rows_may_be_wider_if_that_is_asked_for(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 3:1\n0 2:1\n")
    (tmp_path / "b.svm").write_text("2 5:7\n")
    data = cutsvm.convert(tmp_path / "a.svm", tmp_path / "store")
    with pytest.raises(DataError, match=r"b.svm: index 5 .* has 3 features; n_features=5 .* makes it wider"):
        data.append(tmp_path / "b.svm")
    data.append(tmp_path / "b.svm", n_features=5)
    assert_array_equal(data.X.toarray(), [[2, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 7]])
    assert_array_equal(data.y, [1, 0, 2])
    with pytest.raises(DataError, match="it has 5 features, n_features=4 is not possible"):
        data.append(tmp_path / "b.svm", n_features=4)
    (tmp_path / "c.svm").write_text("2 0:7\n")
    with pytest.raises(DataError, match=r"c.svm:1: "):  # the store counts from 1
        data.append(tmp_path / "c.svm")


def test_weights_and_queries(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    s, qid = rng.random(30), np.repeat(["u", "v", "w"], 10)
    data = cutsvm.convert((X, y), tmp_path / "store", weight=s, qid=qid)
    data.append((X[:5], y[:5].astype(float)), weight=s[:5], qid=np.full(5, "x")).append(
        (X[:2], y[:2]), weight=s[:2], qid=[7, 7]
    )
    data.delete([0, 31])
    keep = np.setdiff1d(np.arange(37), [0, 31])
    assert_array_equal(data.weights, np.concatenate([s, s[:5], s[:2]])[keep])
    assert_array_equal(data.qid, np.concatenate([qid, ["x"] * 5, ["7", "7"]])[keep])
    assert data.y.dtype == np.int64
    with pytest.raises(DataError, match=r"row 1: labels of .* are whole numbers, found 0.5"):
        data.append((X[:2], [1.0, 0.5]), weight=s[:2], qid=[7, 7])
    with pytest.raises(DataError, match="its rows have no qid"):
        data.append((X[:2], y[:2]), weight=s[:2])


def test_tables_get_the_columns_of_the_store(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"age": [30.0, 95, np.nan, 40], "city": ["Paris", "Rome", "Paris", "Oslo"], "y": [1, 0, 1, 0]})
    data = cutsvm.convert(table, tmp_path / "store", scale="standard")
    columns = data.feature_names
    data.append(pd.DataFrame({"y": [1, 0], "more": [1, 2], "city": ["Bonn", "Rome"], "age": [91.0, np.nan]}))
    assert data.feature_names == columns
    ages = np.array([30.0, 95, 55, 40])
    X = dense(data.X)
    assert_array_equal(X[4, 1:], 0.0)  # a city that the store does not know
    np.testing.assert_allclose(X[4:, 0], [(91 - 55) / ages.std(), 0.0], rtol=1e-12)
    for text, left in (("city == 'Rome' and label == 0", 4), ("age > 90", 3), ("row == 1", 2)):
        assert data.delete(text).shape[0] == left, text
    with pytest.raises(ValueError, match=r"there is no column 'town'; the columns are 'row', 'age'"):
        data.delete("town == 'Rome'")
    assert data.append(table, filter="city == 'Paris'").shape[0] == 4
    assert_array_equal(data.y[2:], 1)


def test_rows_by_a_condition(tmp_path):
    pytest.importorskip("pyarrow")
    data, X, y = make(tmp_path / "store", kind="csr")
    assert_array_equal(data.delete("label == 'b' and row < 100").y, np.concatenate([y[:100][y[:100] != "b"], y[100:]]))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["x", "unit price", "z"])
    for kind in (frame, sparse.csr_matrix(X)):
        data = cutsvm.convert((kind, y), tmp_path / "named", block_bytes=BLOCK)
        if data.feature_names is not None:
            assert_array_equal(data.delete("`unit price` > 0.5 or z < 0").X, X[~((X[:, 1] > 0.5) | (X[:, 2] < 0))])


def test_which_rows(tmp_path):
    data, _, _ = make(tmp_path / "store", n=10)
    for which, says in (
        (10, "there is no row 10; they are numbered from 0 to 9"),
        ([-1], "there is no row -1"),
        (np.ones(9, dtype=bool), r"a mask of 10 rows expected, found the shape \(9,\)"),
        ([0.5], "expected a condition as text, numbers of rows, a slice or a mask"),
        (slice(None), "no rows would be left"),
    ):
        with pytest.raises(ValueError, match=says):
            data.delete(which)
    other = open_dataset(tmp_path / "store")
    data.delete(3)
    with pytest.raises(DataError, match=r"has changed since it was opened \(version 1, now 2\)"):
        other.delete(3)
    assert open_dataset(tmp_path / "store").shape == (9, 3)
    (tmp_path / "a.svm").write_text("1 1:1\n0 1:2\n")
    memory = open_dataset(tmp_path / "a.svm")
    for change in (partial(memory.append, "b.svm"), partial(memory.delete, 1), memory.compact):
        with pytest.raises(DataError, match=r"a.svm: not a store; cutsvm.convert makes one"):
            change()


def test_a_label_of_deleted_rows_is_no_class(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    data = cutsvm.convert((X, np.array(["a", "b", "c"])[np.arange(60) % 3]), tmp_path / "store")
    data.delete(np.arange(60) % 3 == 2)
    for limit in (None, "2GB"):
        model = LinearSVC(memory_limit=limit, class_weight="balanced").fit(tmp_path / "store")
        assert model.classes_.tolist() == ["a", "b"]
        fresh = LinearSVC(class_weight="balanced").fit(
            X[np.arange(60) % 3 < 2], np.array(["a", "b"])[np.arange(40) % 2]
        )
        np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-9)


def test_a_reader_keeps_its_version(tmp_path):
    data, X, y = make(tmp_path / "store")
    before = open_dataset(tmp_path / "store")
    rows = StoreRows(before.store)
    _ = before.y, before.store.squares
    data.append((X[:50], y[:50])).delete(slice(0, 4000))
    out = np.empty(9000)
    rows.scores(np.ones(3), 0.0, out)
    assert_array_equal(before.y, y)
    assert_array_equal(pickle.loads(pickle.dumps(before)).X, X)
    data.compact()
    with pytest.raises(DataError, match="the store has changed since it was opened; open it again"):
        open_again = StoreRows(before.store)
        open_again.scores(np.ones(3), 0.0, out)


def as_version_1(path):
    """The store as it was written by cutsvm before stores could change."""
    file = path / manifest.NAME
    fields = json.loads(file.read_bytes())
    (segment,) = fields.pop("segments")
    for name in ("history", "name", "preprocessing", "sha256"):
        fields.pop(name)
    fields["parts"].pop("hashes")
    os.unlink(path / segment["data"] / "hashes.bin")
    for part in fields["parts"].values():
        part.pop("file")
    fields |= {"version": 1, "data": segment["data"], "blocks": [block[:3] for block in segment["blocks"]]}
    fields["sha256"] = manifest._digest(fields)
    file.write_text(json.dumps(fields))


def test_stores_of_version_1(tmp_path):
    data, X, y = make(tmp_path / "store")
    as_version_1(tmp_path / "store")
    data = open_dataset(tmp_path / "store")
    assert data.store.hashes is None and data.version == 1
    assert_array_equal(data.X, X)
    LinearSVC(memory_limit="2GB", warm_start=True, C=1e-3).fit(data).fit(data)
    data.append((X[:5], y[:5])).delete([0])
    assert_array_equal(data.X, np.vstack([X, X[:5]])[1:])
    assert data.store.hashes is None
    check(data.compact(), np.vstack([X, X[:5]])[1:], np.concatenate([y, y[:5]])[1:])


def test_changes_exclude_each_other(tmp_path):
    data, X, y = make(tmp_path / "store", n=10)
    data.delete(0)
    with versions.locked(tmp_path / "store"):
        for change in (partial(data.append, (X, y)), partial(data.delete, 1), data.compact):
            with pytest.raises(DataError, match="another process is changing this store"):
                change()


class StoppedError(Exception):
    pass


def stop_after(monkeypatch, module, name, calls=0):
    """A function of a module that raises after some calls."""
    whole, count = getattr(module, name), [calls]

    def function(*words, **options):
        if not count[0]:
            raise StoppedError
        count[0] -= 1
        return whole(*words, **options)

    monkeypatch.setattr(module, name, function)


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_failure_leaves_the_old_version(calls, tmp_path, monkeypatch):
    data, X, y = make(tmp_path / "store")
    data.delete([1])
    X, y = np.delete(X, 1, axis=0), np.delete(y, 1)
    with monkeypatch.context() as patch:
        stop_after(patch, append, "_extended", calls)  # some columns are longer by then
        with pytest.raises(StoppedError):
            data.append((X, y))
    check(open_dataset(tmp_path / "store"), X, y)
    for module, change in (
        (append, partial(data.append, (X, y))),
        (delete, partial(data.delete, 1)),
        (delete, data.compact),
    ):
        with monkeypatch.context() as patch:
            stop_after(patch, module, "switch")
            with pytest.raises(StoppedError):
                change()
        check(open_dataset(tmp_path / "store"), X, y)
    names = {name for name in os.listdir(tmp_path / "store") if name.startswith("data-")}
    assert names == {file.partition("/")[0] for file in Store(tmp_path / "store").manifest.files()}


def test_damage_is_named(tmp_path):
    data, _, _ = make(tmp_path / "store")
    data.delete([1, 2, 5000])
    file = tmp_path / "store" / data.store.manifest.part_name("deleted")
    bits = bytearray(file.read_bytes())
    bits[511] ^= 128  # row 4095, the last one of its block
    file.write_bytes(bits)
    with pytest.raises(DataError, match=r"deleted.bin: damaged: the checksum does not match"):
        _ = open_dataset(tmp_path / "store").X
    fields = json.loads((tmp_path / "store" / manifest.NAME).read_bytes())
    fields["parts"]["deleted"]["crc32"] = zlib.crc32(file.read_bytes())
    fields.pop("sha256")
    fields["sha256"] = manifest._digest(fields)
    (tmp_path / "store" / manifest.NAME).write_text(json.dumps(fields))
    with pytest.raises(
        DataError, match=r"deleted.bin: damaged: 4093 rows of .*block-000000.bin are left, expected 4094"
    ):
        _ = open_dataset(tmp_path / "store").X
    del fields["parts"]["deleted"], fields["sha256"]
    fields["sha256"] = manifest._digest(fields)
    (tmp_path / "store" / manifest.NAME).write_text(json.dumps(fields))
    with pytest.raises(DataError, match="it does not say which rows are deleted"):
        open_dataset(tmp_path / "store")
