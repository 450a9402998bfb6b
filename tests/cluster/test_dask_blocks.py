"""Blocks of Dask collections as the values of columns: read in every round, shared within it, released after it."""

import numpy as np
import pytest

from cutsvm.cluster import connect
from cutsvm.cluster.protocol import Column
from tests.support import cluster_tasks as tasks
from tests.support.cluster import wait_until

dask = pytest.importorskip("dask")
GROUPS = [[0, 1], [1, 2], [2, 3], [3, 0]]


@pytest.fixture
def executor(dask_client):
    with connect(dask_client) as executor:
        yield executor


@pytest.fixture
def blocks(tmp_path):
    """Four delayed blocks that leave a file each time they are computed."""
    return Column([dask.delayed(tasks.counted)(k, folder=str(tmp_path)) for k in range(4)], 4)


def test_a_block_is_read_once_in_a_round_and_again_in_the_next(executor, blocks, tmp_path):
    for rounds in (1, 2, 3):
        assert list(executor.collect(blocks.regroup(GROUPS).map(tasks.plus))) == [1, 3, 5, 3]
        assert [tasks.runs(tmp_path, k) for k in range(4)] == [rounds] * 4


def test_held_blocks_are_read_once(executor, blocks, tmp_path):
    held = executor.hold(blocks)
    for _ in range(3):
        assert list(executor.collect(held.regroup(GROUPS).map(tasks.plus))) == [1, 3, 5, 3]
    assert [tasks.runs(tmp_path, k) for k in range(4)] == [1] * 4


def test_nothing_is_left_after_a_round(executor, blocks):
    list(executor.collect(blocks.map(tasks.plus)))
    assert wait_until(lambda: not any(executor.client.has_what().values()))


def test_blocks_of_arrays_futures_and_plain_values_together(executor):
    da = pytest.importorskip("dask.array")
    X = np.arange(20.0).reshape(10, 2)
    blocks = da.from_array(X, chunks=(5, 2)).to_delayed().ravel().tolist()
    future = executor.client.submit(np.negative, X)
    column = Column([*blocks, future, X[:3], (blocks[0], [future])], 5)
    *arrays, (first, (second,)) = executor.collect(column)
    for found, expected in zip([*arrays, first, second], [X[:5], X[5:], -X, X[:3], X[:5], -X], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_few_blocks_are_in_memory_at_a_time(executor, tmp_path):
    """A worker computes a block, then what is made of it, before the next block."""
    made = [dask.delayed(tasks.logged)(k, folder=str(tmp_path), word="read") for k in range(40)]
    column = Column(made, 40).map(tasks.logged, folder=str(tmp_path), word="used")
    assert list(executor.collect(column)) == list(range(40))
    words = [path.name.split("-")[1] for path in sorted(tmp_path.iterdir(), key=lambda path: path.name)]
    kept = np.cumsum([1 if word == "read" else -1 for word in words])
    assert kept[-1] == 0
    assert kept.max() <= 8  # on two workers


def test_large_shared_arguments_give_no_warning(executor):
    assert (
        list(executor.collect(executor.put([1, 2]).map(tasks.size_of_shared, shared=bytes(20 << 20)))) == [20 << 20] * 2
    )
