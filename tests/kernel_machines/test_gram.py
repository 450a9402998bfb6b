"""Kernel values in blocks against scikit-learn's and the twin's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import pairwise as peers

from cutsvm.kernel_machines.gram import GramSettings, Kernel, Points, alike
from tests.support.layouts import LAYOUTS
from tests.support.reference import kernel_machines as twin

PEERS = {
    "rbf": lambda X, Z: peers.rbf_kernel(X, Z, gamma=0.3),
    "poly": lambda X, Z: peers.polynomial_kernel(X, Z, degree=3, gamma=0.3, coef0=0.5),
    "linear": peers.linear_kernel,
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PEERS)
def test_kernel_values(name, layout):
    """All blocks, some rows and columns, other points, a subset; far from the origin, in float64 and in float32."""
    settings = GramSettings(block_rows=7, block_columns=5)
    rng = np.random.default_rng(3)
    X, Z = (np.round(rng.normal(size=(n, 4)) + 3.0, 3).astype(np.float32).astype(np.float64) for n in (23, 9))
    kernel, make = Kernel(name, 0.3, 3, 0.5), LAYOUTS[layout]
    expected = PEERS[name](X, X)
    assert_allclose(expected, twin.gram(name, X, X, gamma=0.3, degree=3, coef0=0.5), rtol=1e-10)
    for precise, rtol in ((True, 1e-10), (False, 3e-5)):
        tables = []
        for threads in (1, 2, 3):
            points = Points(make(X), kernel, threads, precise=precise, settings=settings)
            tables.append(np.empty((23, 23)))
            points.matrix(tables[-1])
            assert_allclose(tables[-1], expected, rtol=rtol)
        assert_array_equal(tables[0], tables[1])
        assert_array_equal(tables[0], tables[2])
        rows, columns = np.array([3, 3, 20]), np.array([8, 0, 1, 4, 2, 7])
        out = np.empty((3, 6))
        points.values(rows, points.like(make(Z)), columns, out)
        assert_allclose(out, PEERS[name](X[rows], Z[columns]), rtol=rtol)
        points.take(rows).values(slice(0, 3), points.like(make(Z)), columns, out)
        assert_allclose(out, PEERS[name](X[rows], Z[columns]), rtol=rtol)
        points.take(rows).precisely().values(slice(0, 3), points.precisely(), np.arange(6), out)
        assert_allclose(out, expected[np.ix_(rows, range(6))], rtol=1e-10)
        base = np.empty((23, 23))
        points.matrix(base, base=True)
        plain = peers.euclidean_distances(X, X, squared=True) if name == "rbf" else X @ X.T
        assert_allclose(base, plain, rtol=rtol, atol=rtol)
        for out in (np.empty_like(base), np.empty((23, 23), dtype=np.float32), base):
            kernel.of_base(base, out)
            assert_allclose(out, expected, rtol=max(10 * rtol, 3e-6))


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_matrix, sparse.csr_array])
def test_given_kernel_values(kind):
    K = np.arange(36.0).reshape(6, 6)
    points = Points(kind(K), Kernel("precomputed"), 2)
    out = np.empty((6, 6), dtype=np.float32)
    points.matrix(out)
    assert_array_equal(out, K)
    some = points.take(np.array([4, 1]))
    out = np.empty((2, 2))
    some.matrix(out)
    assert_array_equal(out, K[np.ix_([4, 1], [4, 1])])
    assert points.precisely() is points


def test_the_diagonal_of_rbf_is_1():
    X = 1e6 + np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    values = np.empty((50, 50), dtype=np.float32)
    Points(X.astype(np.float32), Kernel("rbf", 1.0), 1, precise=False).matrix(values)
    assert_array_equal(np.diag(values), 1.0)
    assert values.min() >= 0.0 and values.max() <= 1.0


def test_rows_of_two_kinds_become_csr():
    dense, thin = np.eye(3), sparse.csr_matrix(np.eye(3))
    assert alike(dense, dense)[0] is dense
    assert alike(thin, thin)[1] is thin
    for pair in (alike(dense, thin), alike(thin, dense)):
        for one in pair:
            assert sparse.issparse(one) and one.format == "csr"
            assert_array_equal(one.toarray(), np.eye(3))
