"""Dask arrays, DataFrames and delayed parts as parts, on threads of this process and on worker processes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, is_collection, open_parts
from tests.support.collections import add, facts_bits, rows_of

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N = 1000
SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=32, least=16))
REREAD = OpenSettings(layout=SMALL.layout, hold=False)
RNG = np.random.default_rng(0)
X, Y, WEIGHTS = RNG.normal(size=(N, 4)), RNG.integers(0, 3, N), RNG.random(N)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(label=np.array(["u", "v", "w"])[Y], weight=WEIGHTS)


def opened(*data, settings=SMALL, **options):
    return open_parts(*data, executor=Local(2), settings=settings, **options)


@pytest.fixture(scope="module")
def expected():
    return facts_bits(opened(X, Y, WEIGHTS).facts)


@pytest.mark.parametrize("chunks", [(100, 2), ((1, 499, 500), -1), (N, 1)])
def test_arrays(chunks, expected):
    parts = opened(da.from_array(X, chunks=chunks), da.from_array(Y, chunks=77), WEIGHTS)
    assert facts_bits(parts.facts) == expected
    assert parts.executor.traffic.rounds == 1


def test_arrays_whose_sizes_are_not_known(expected):
    own = [da.from_array(values, chunks=150) for values in (X, Y, WEIGHTS)]
    own[0] = own[0].rechunk((150, -1))
    some = [values[own[1] >= 0] for values in own]
    assert np.isnan(some[0].shape[0])
    parts = opened(*some)
    assert facts_bits(parts.facts) == expected
    assert parts.executor.traffic.rounds == 2


def test_arrays_with_sparse_blocks():
    matrix = sparse.random(N, 30, 0.2, format="csr", random_state=0)
    expected = facts_bits(opened(matrix, Y).facts)
    said = da.from_array(matrix.toarray(), chunks=(170, -1)).map_blocks(sparse.csr_matrix)
    assert facts_bits(opened(said, Y).facts) == expected
    blocks = [
        da.from_delayed(dask.delayed(matrix[begin : begin + 500]), shape=(500, 30), dtype=float) for begin in (0, 500)
    ]
    assert facts_bits(opened(da.concatenate(blocks), Y).facts) == expected  # they say that they are dense


def test_frames_by_the_names_of_columns():
    parts = opened(dd.from_pandas(FRAME, npartitions=7), "label", "weight")
    facts = parts.facts
    assert facts.feature_names == ("a", "b", "c", "d")
    assert facts.labels.labels.tolist() == ["u", "v", "w"] and facts.weighted
    assert facts.fingerprints == opened(X, FRAME["label"].to_numpy(), WEIGHTS).facts.fingerprints
    assert parts.executor.traffic.rounds == 2


def test_frames_with_series():
    frame = dd.from_pandas(FRAME.assign(flag=X[:, 0] > 0, small=Y.astype(np.int8)), npartitions=5)
    facts = opened(frame.drop(columns=["label", "weight"]), frame["label"], frame["weight"]).facts
    assert facts.d == 6
    np.testing.assert_array_equal(facts.sample.block.X[:, 4], X[facts.sample.numbers, 0] > 0)


def test_frames_are_computed_once_in_a_round(tmp_path):
    def counted(frame):
        with open(tmp_path / "reads", "a") as stream:
            stream.write("read\n")
        return frame

    frame = dd.from_pandas(FRAME, npartitions=8).map_partitions(counted, meta=FRAME)
    parts = opened(frame, "label", "weight", settings=REREAD)
    (tmp_path / "reads").unlink()
    assert parts.fold(rows_of, add) == N
    assert len(parts.chunks) == 32
    assert 5 <= (tmp_path / "reads").read_text().count("read") <= 8  # the last ones of the round before are kept


@pytest.mark.parametrize(
    "column, holds",
    [
        (FRAME["label"], "text"),
        (FRAME["label"].astype("category"), "categories"),
        (pd.Series(pd.date_range("2020-01-01", periods=N)), "dates"),
        (FRAME["label"].astype(object), "values of type object"),
    ],
)
def test_columns_that_are_no_numbers_are_refused(column, holds):
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(FRAME.assign(city=column), npartitions=2)
    with pytest.raises(DataError, match=f"column 'city' holds {holds}, expected numbers; leave it out, or encode it"):
        opened(frame, "label", "weight")


def test_delayed_parts(expected):
    cuts = [(0, 0), (0, 1), (1, 900), (900, N)]
    tuples = [dask.delayed((X[a:b], Y[a:b], WEIGHTS[a:b])) for a, b in cuts]
    assert facts_bits(opened(tuples).facts) == expected
    frames = [dask.delayed(FRAME.iloc[a:b]) for a, b in cuts]
    facts = opened(frames, "label", "weight").facts
    assert facts.feature_names == ("a", "b", "c", "d")
    assert facts.fingerprints == opened(X, FRAME["label"].to_numpy(), WEIGHTS).facts.fingerprints


def test_what_is_a_collection():
    array, frame = da.from_array(X), dd.from_pandas(FRAME, npartitions=1)
    assert is_collection(array) and is_collection(frame) and is_collection([dask.delayed((X, Y))])
    assert not is_collection([array]) and not is_collection(FRAME) and not is_collection([])


def test_errors():
    array, frame = da.from_array(X, chunks=(300, -1)), dd.from_pandas(FRAME, npartitions=4)
    with pytest.raises(DataError, match="y has 999 entries and X has 1000 rows"):
        opened(array, Y[:-1])
    with pytest.raises(DataError, match=r"y has 10 blocks and X has 4, of sizes that are not known"):
        opened(array[da.from_array(Y, chunks=300) >= 0], da.from_array(Y, chunks=100))
    with pytest.raises(DataError, match=r"y is in memory .* X.compute_chunk_sizes\(\)"):
        opened(array[da.from_array(Y, chunks=300) >= 0], Y)
    with pytest.raises(DataError, match="X has 1 dimensions"):
        opened(array[:, 0], Y)
    with pytest.raises(DataError, match="there is no column 'nothing'; the columns are 'a', 'b'"):
        opened(frame, "nothing")
    with pytest.raises(DataError, match="y has 2 partitions and X has 4"):
        opened(frame[["a", "b"]], frame["label"].repartition(npartitions=2))
    worse = FRAME.copy()
    worse.loc[600, "c"] = np.nan
    with pytest.raises(DataError, match="partition 2: row 100, column 'c': expected a finite number, found nan"):
        opened(dd.from_pandas(worse, npartitions=4), "label", "weight")
    with pytest.raises(DataError, match=r"part 0: expected \(X, y\), \(X, y, weights\) or a pandas frame, got str"):
        opened([dask.delayed("text")])
    with pytest.raises(DataError, match="part 1: the columns are 'a', 'b', where part 0 has 'a', 'c'"):
        opened([dask.delayed(FRAME[["a", "c", "label"]]), dask.delayed(FRAME[["a", "b", "label"]])])


def unreadable():
    raise FileNotFoundError("no such bucket")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_an_error_in_what_makes_a_part_names_the_part(engine, dask_client):
    from cutsvm.cluster.engines import connect

    executor = Local(2) if engine == "local" else connect(dask_client)
    parts = [dask.delayed((X[:500], Y[:500])), dask.delayed((X[500:], Y[500:])), dask.delayed(unreadable)()]
    with pytest.raises(ClusterError, match=r"^part 2: FileNotFoundError: no such bucket") as caught:
        open_parts(parts, executor=executor, settings=SMALL)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_blocks_that_read_differently_the_second_time():
    drawn = da.from_array(X, chunks=(300, -1)).map_blocks(lambda block: block + np.random.default_rng().normal())
    parts = opened(drawn, Y)
    with pytest.raises(ClusterError, match=r"part 0: rows 0 to .* not the same as when they were first read"):
        parts.fold(rows_of, add)


@pytest.mark.slow
@pytest.mark.parametrize("hold", [True, False])
def test_on_worker_processes(dask_client, expected, hold):
    from cutsvm.cluster.engines import connect

    executor = connect(dask_client)
    settings = OpenSettings(layout=SMALL.layout, hold=hold)
    arrays = da.from_array(X, chunks=(170, -1)), da.from_array(Y, chunks=90), da.from_array(WEIGHTS, chunks=-1)
    parts = open_parts(*arrays, executor=executor, settings=settings)
    assert facts_bits(parts.facts) == expected
    assert parts.fold(rows_of, add) == N
    worse = np.array(X)
    worse[444, 2] = np.inf
    with pytest.raises(DataError, match="part 2: row 104, column 2: expected a finite number, found inf"):
        open_parts(da.from_array(worse, chunks=(170, -1)), Y, executor=executor, settings=settings)
