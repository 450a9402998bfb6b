"""What travels between processes gives the same bits there: matrices, losses, planes, bounds of values."""

import pickle
from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cutsvm.matrix import SparseRows, StackedRows, as_rows
from cutsvm.matrix.magnitudes import Magnitudes
from cutsvm.problem.losses import CrammerSinger, Hinge, Multinomial, Pairwise, SquaredPairwise, TailMean, Tube
from cutsvm.problem.losses.smooth import Huber, Logistic, SquaredHinge, SquaredTube
from cutsvm.problem.planes import Planes
from tests.support.layouts import LAYOUTS

N, D, K = 50, 4, 3
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
WEIGHTS, TARGETS = rng.uniform(0.1, 3.0, N), rng.normal(size=N)
SIGNED, CLASSES = np.where(TARGETS > 0, WEIGHTS, -WEIGHTS), rng.integers(0, K, N)
STARTS = np.array([0, 20, N])
LOSSES = {
    "hinge": Hinge(SIGNED),
    "tube": Tube(TARGETS, WEIGHTS, 0.1, 0.3, 0.7),
    "crammer-singer": CrammerSinger(CLASSES, WEIGHTS, K),
    "multinomial": Multinomial(CLASSES, WEIGHTS, K),
    "squared hinge": SquaredHinge(SIGNED),
    "logistic": Logistic(SIGNED),
    "squared tube": SquaredTube(TARGETS, WEIGHTS, 0.1),
    "huber": Huber(TARGETS, WEIGHTS, 0.1),
    "pairwise": Pairwise(CLASSES, WEIGHTS, STARTS),
    "squared pairwise": SquaredPairwise(CLASSES, WEIGHTS, STARTS),
    "tail": TailMean(WEIGHTS, 0.2),
}


def restored(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("again", [restored, copy], ids=["pickle", "copy"])
def test_losses(name, again):
    loss = LOSSES[name]
    shape = (N, K) if name in {"crammer-singer", "multinomial"} else N
    here, there = np.random.default_rng(1).normal(size=(2, *np.atleast_1d(shape)))
    value, at = loss.value(here), np.array([0.0, 0.5, 1.0])
    other = again(loss)
    assert (other.n, other.total, other.weight, other.threads) == (loss.n, loss.total, loss.weight, loss.threads)
    assert other.value(here) == value
    assert_array_equal(other.line(here, there).evaluate(at).values, loss.line(here, there).evaluate(at).values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows(layout):
    rows = as_rows(LAYOUTS[layout](X), 2)
    other, w = restored(rows), np.arange(1.0, D + 1.0)
    assert (type(other), other.n, other.d, other.entries, other.threads) == (type(rows), N, D, rows.entries, 2)
    found = [np.empty(N) for _ in range(2)]
    for own, scores in zip((rows, other), found, strict=True):
        own.scores(w, 0.5, scores)
    assert_array_equal(*found)


def test_a_part_of_sparse_rows_takes_its_own_values_along():
    whole = as_rows(LAYOUTS["csr"](X))
    part = restored(whole.part(10, 20))
    assert_array_equal(part.X.toarray(), X[10:20])
    assert len(part.arrays[0]) == part.entries < whole.entries


def test_columns_out_of_order():
    rows = SparseRows((np.ones(3), np.array([1, 0, 0], np.int32), np.array([0, 3], np.int32)), 2, sorted=False)
    assert not restored(rows).sorted


def test_stacked_rows():
    stacked = restored(StackedRows([as_rows(LAYOUTS[layout](X)) for layout in ("csr", "float32")]))
    assert_array_equal(stacked.parts[0].X.toarray(), X)
    assert stacked.n == 2 * N


def test_planes_and_magnitudes():
    planes = Planes(*(np.random.default_rng(k).normal(size=(3, D)) for k in range(3)))
    assert_array_equal(restored(planes).slopes, planes.slopes)
    for layout in ("float64", "csr"):
        magnitudes = as_rows(LAYOUTS[layout](X)).magnitudes
        assert isinstance(restored(magnitudes), Magnitudes)
        assert restored(magnitudes).product(np.ones(D)) == magnitudes.product(np.ones(D))
