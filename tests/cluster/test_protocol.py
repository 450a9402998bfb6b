"""Columns, sums in a fixed tree, sizes of results."""

from dataclasses import dataclass
from functools import reduce

import numpy as np
import pytest
from scipy import sparse

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import Window, apply, fold, size_of, worker_error
from tests.support.cluster_tasks import joined, plus, scaled


def test_own_arguments_have_one_for_each_element():
    with pytest.raises(ValueError, match="own: 3 values expected, got 2"):
        Local(1).put([1, 2, 3]).map(scaled, [0, 0], factor=1)


def test_only_held_columns_are_regrouped():
    column = Local(1).put([1, 2])
    for used in (column.map(plus), column.regroup([[0, 1]])):
        with pytest.raises(ValueError, match="hold the column first"):
            used.regroup([[0]])


def test_another_version_of_the_client():
    with pytest.raises(ClusterError, match=r"a worker runs cutsvm .* and the client 9\.9: install the same version"):
        apply("9.9", [], [], [], 1)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 16, 17, 30, 64])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_fold_is_a_fixed_tree(count, jobs):
    def tree(values, width):
        while len(values) > width:
            values = [joined(*values[k : k + width]) for k in range(0, len(values), width)]
        return joined(*values) if len(values) > 1 else values[0]

    def add(*values):
        return values[0] if len(values) == 1 else joined(*values)

    names = [str(k) for k in range(count)]
    executor = Local(jobs)
    here, there = (fold(executor, executor.put(names), add, width=4, here=here) for here in (True, False))
    assert here == there
    # The same as level by level, up to brackets around single elements, which `add` leaves out.
    assert here.replace("(", "").replace(")", "").split() == names
    if count in (4, 16, 64):
        assert here == tree(names, 4)


def test_a_fold_of_nothing():
    with pytest.raises(ValueError, match="no parts"):
        fold(Local(1), Local(1).put([]), plus)


def test_a_fold_differs_from_a_plain_sum_in_the_last_bits_only():
    values = np.random.default_rng(0).normal(size=100).tolist()
    total = fold(Local(2), Local(2).put(values), plus)
    assert total == pytest.approx(reduce(plus, values), rel=1e-12)


@dataclass
class Result:
    values: np.ndarray
    names: list[str]


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (np.zeros((3, 4), dtype=np.float32), 48),
        (b"12345", 5),
        ("text", 4),
        ([np.zeros(2), 1.0, None], 32),
        ({"a": np.zeros(2)}, 17),
        (Result(np.zeros(5), ["ab", "c"]), 43),
    ],
)
def test_sizes(value, size):
    assert size_of(value) == size


def test_the_size_of_a_sparse_matrix_is_that_of_its_arrays():
    matrix = sparse.csr_matrix(np.eye(1000))
    arrays = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    assert arrays <= size_of(matrix) <= arrays + 100


def test_results_are_fetched_in_bounded_numbers():
    window = Window(most=10, bytes=1000)
    assert [window.count(largest) for largest in (0, 1, 300, 5000)] == [1, 10, 3, 1]


def test_errors_of_workers():
    error = DataError("a.csv:3: no number")
    assert worker_error(error) is error
    missing = worker_error(ModuleNotFoundError("No module named 'cutsvm.cluster'"))
    assert isinstance(missing, ClusterError)
    assert "a worker cannot import cutsvm.cluster, the client runs cutsvm" in str(missing)
