"""Parquet files and stores as parts: workers read them themselves, in bounded pieces."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
from scipy import sparse

import cutsvm
from cutsvm._utils.errors import ClusterError, DataError
from cutsvm.cluster import parquet
from cutsvm.cluster.collections import parquet as parquet_files
from cutsvm.cluster.collections.kinds import as_collection
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, is_collection, open_parts
from cutsvm.io.settings import read_settings, use_read_settings
from tests.support.collections import add, facts_bits, rows_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
fsspec = pytest.importorskip("fsspec")

N = 1000
SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=32, least=16))
RNG = np.random.default_rng(0)
X, Y, WEIGHTS = RNG.normal(size=(N, 3)), RNG.integers(0, 3, N), RNG.random(N)
COLUMNS = {"a": X[:, 0], "b": X[:, 1], "label": Y, "c": X[:, 2], "sample_weight": WEIGHTS}


def opened(*data, **options):
    return open_parts(*data, executor=Local(2), settings=SMALL, **options)


@pytest.fixture(scope="module")
def expected():
    return facts_bits(opened(X, Y, WEIGHTS).facts)


def write(folder, table, cuts=(0, 100, 100, 730, N), **options):
    folder.mkdir(exist_ok=True)
    for k, (begin, end) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(table.slice(begin, end - begin), folder / f"part-{k}.parquet", **options)
    return folder


@pytest.mark.parametrize("group", [37, 200, 5000])
def test_parquet(tmp_path, expected, group):
    folder = write(tmp_path / "data", pa.table(COLUMNS), row_group_size=group)
    for path in (folder, str(folder / "*.parquet"), sorted(folder.iterdir())):
        files = parquet(path)
        assert is_collection(files)
        parts = opened(files)
        assert facts_bits(parts.facts) == expected
        assert parts.facts.feature_names == ("a", "b", "c")
        assert parts.executor.traffic.rounds == 1  # rows are counted by the footers
        assert parts.fold(rows_of, add) == N


def test_parquet_is_read_in_pieces(tmp_path, expected):
    folder = write(tmp_path / "data", pa.table(COLUMNS))
    with use_read_settings(read_settings().scaled(1e-3)):
        assert facts_bits(opened(parquet(folder)).facts) == expected
        collection = as_collection(parquet(folder), None, None, None, Local(1), "classes")
        part = collection.opener(collection.column.values[2], "part")
        sizes = [batch.X.shape[0] for batch in part.read(13, 600)]
    assert sum(sizes) == 587 and max(sizes) <= 65


def test_a_row_group_is_not_decoded_for_each_chunk(tmp_path, expected, monkeypatch):
    opens = []
    monkeypatch.setattr(
        parquet_files, "open_stream", lambda file, own=parquet_files.open_stream: opens.append(1) or own(file)
    )
    folder = write(tmp_path / "data", pa.table(COLUMNS), (0, 20, N))
    parts = opened(parquet(folder))
    assert facts_bits(parts.facts) == expected
    assert len(parts.chunks) == 32 and parts.executor.traffic.parts == 32
    opens.clear()
    assert list(parts.each(rows_of, add)) == [32] * 31 + [8]
    assert len(opens) <= 10  # 8 groups, 4 for each thread


def test_files_are_closed_without_the_garbage_collector(tmp_path):
    parts = opened(parquet(write(tmp_path / "data", pa.table(COLUMNS), row_group_size=300)))
    gc.collect()
    gc.disable()
    try:
        before = pa.total_allocated_bytes()
        for _ in range(3):
            assert parts.fold(rows_of, add) == N
        assert pa.total_allocated_bytes() <= before
    finally:
        gc.enable()


@pytest.mark.slow
def test_parquet_on_worker_processes(tmp_path, expected, dask_client):
    from cutsvm.cluster import connect

    folder = write(tmp_path / "data", pa.table(COLUMNS), row_group_size=300)
    for hold in (True, False):
        settings = OpenSettings(layout=SMALL.layout, hold=hold)
        parts = open_parts(parquet(folder), executor=connect(dask_client), settings=settings)
        assert facts_bits(parts.facts) == expected
        assert list(parts.each(rows_of, add)) == [32] * 31 + [8]
        assert parts.fold(rows_of, add, here=False) == N


def test_parquet_of_a_remote_file_system(tmp_path, expected):
    folder = write(tmp_path / "data", pa.table(COLUMNS))
    remote = fsspec.filesystem("memory")
    for file in folder.iterdir():
        remote.put(str(file), f"/bucket/{file.name}")
    try:
        parts = opened(parquet("memory://bucket/*.parquet", label="label"))
        assert facts_bits(parts.facts) == expected
        remote.pipe("/bucket/part-2.parquet", (folder / "part-0.parquet").read_bytes())
        with pytest.raises(ClusterError, match=r"memory://bucket/part-2.parquet: the file has changed"):
            parts.fold(rows_of, add)
    finally:
        remote.rm("/bucket", recursive=True)


def test_columns_of_parquet(tmp_path):
    folder = write(tmp_path / "data", pa.table({**COLUMNS, "name": ["x"] * N, "seen": np.arange(N) > 3}))
    with pytest.raises(DataError, match=r"part-0.parquet: column 'name' holds text, expected numbers"):
        opened(parquet(folder))
    facts = opened(parquet(folder, exclude=["name", "b"])).facts
    assert facts.feature_names == ("a", "c", "seen") and facts.weighted
    facts = opened(parquet(folder, label="name", weight="sample_weight", columns=["b", "a"]), targets="none").facts
    assert facts.feature_names == ("b", "a")
    with pytest.raises(DataError, match="there is no column 'nothing'"):
        opened(parquet(folder, label="nothing"))
    assert opened(parquet(folder, label="a", exclude=["name"]), targets="numbers").facts.labels.low == X[:, 0].min()


def test_text_labels_categories_and_vectors_of_parquet(tmp_path):
    names = np.array(["no", "yes", "maybe"])[Y]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    table = pa.table({"x": vectors, "label": pa.array(names).dictionary_encode()})
    facts = opened(parquet(write(tmp_path / "data", table))).facts
    assert facts.labels.labels.tolist() == ["maybe", "no", "yes"] and facts.d == 3
    assert facts.fingerprints == opened(X, names).facts.fingerprints


def test_missing_and_changed_values_of_parquet(tmp_path):
    table = pa.table({"a": pa.array([1.0, 2.0, None, 4.0]), "label": [0, 1, 0, 1]})
    folder = write(tmp_path / "data", table, (0, 1, 4))
    with pytest.raises(DataError, match=r"part-1.parquet: row 1, column 'a': expected a finite number, found nan"):
        opened(parquet(folder))
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "label": pa.array([0, 1, 0, None])})
    with pytest.raises(DataError, match=r"part-1.parquet: row 2, column 'label': expected a value, found none"):
        opened(parquet(write(tmp_path / "data", table, (0, 1, 4))))
    parts = opened(parquet(write(tmp_path / "data", pa.table(COLUMNS))))
    write(tmp_path / "data", pa.table({**COLUMNS, "b": -X[:, 1]}))
    with pytest.raises(ClusterError, match=r"part-0.parquet: rows 0 to .* not the same as when they were first read"):
        parts.fold(rows_of, add)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_store(tmp_path, is_sparse):
    matrix = sparse.csr_matrix(X * (X > 0.5)) if is_sparse else X
    cutsvm.convert((matrix, Y), tmp_path / "rows.store")
    parts = opened(tmp_path / "rows.store")
    assert facts_bits(parts.facts) == facts_bits(opened(matrix, Y).facts)
    assert parts.executor.traffic.rounds == 1
    data = cutsvm.open_dataset(tmp_path / "rows.store")
    assert opened(data, targets="none").facts.n == N
    with pytest.raises(DataError, match="expected Parquet files or a store, found svmlight"):
        (tmp_path / "rows.svm").write_text("1 1:2\n")
        opened(tmp_path / "rows.svm")
