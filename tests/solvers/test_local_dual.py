"""Local dual descent: bounds at every iterate, planes of dual vectors, and bits that do not depend on the parts."""

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cutsvm import LinearSVC, LinearSVR
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.grains import Counts, Layout, LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.problem.sums import add_sums
from cutsvm.solvers import Auto, LocalDual
from cutsvm.solvers.local_dual import LocalProblem, contributions, local_planes_of
from cutsvm.solvers.protocol import new_context
from tests.support.problems import iterates, some_problem
from tests.support.reference import svm
from tests.support.strategies import rng_of, seeds


def text(n, d, rng, per_row=20):
    """Sparse rows of unit length with labels that most of them agree with."""
    columns = rng.integers(0, d, (n, per_row))
    X = sparse.csr_matrix((rng.random(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, d))
    X.sum_duplicates()
    X = sparse.csr_matrix(sparse.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1)).A1) @ X)
    y = np.sign(X @ rng.normal(size=d) + 0.1 * rng.normal(size=n))
    return X, np.where(y == 0, 1.0, y)


@pytest.mark.parametrize("intercept", [own.value for own in Intercept])
@settings(max_examples=10)
@given(
    seed=seeds,
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    shards=st.integers(1, 8),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
)
def test_bounds_hold_at_every_iterate(intercept, seed, n, d, shards, C):
    X, a = some_problem(rng_of(seed), n, d)
    low, high = svm.optimum(X, a, C, intercept)
    round_off = 1e-9 * high + 1e-14 * C * np.abs(a).sum()
    oracle = Oracle(as_rows(X), Hinge(a), Intercept(intercept))
    for iterate in islice(iterates(LocalDual(shards=shards, seed=seed % 7), oracle, C), 25):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        W, b = iterate.w[:d], iterate.w[d] if len(iterate.w) > d else 0.0
        exact = svm.objective(X, a, C, "none" if intercept == "none" else "regularized", W, b)
        if intercept == "free":
            exact -= 0.5 * b**2
        assert iterate.primal == pytest.approx(exact, rel=1e-9, abs=round_off)


@pytest.mark.parametrize("intercept", [own.value for own in Intercept])
@settings(max_examples=6)
@given(seed=seeds, n=st.integers(2, 60), d=st.integers(1, 8), shards=st.sampled_from([1, 3, 8]))
def test_reaches_the_optimum(intercept, seed, n, d, shards):
    X, a = some_problem(rng_of(seed), n, d)
    oracle = Oracle(as_rows(X), Hinge(a), Intercept(intercept))
    result = run(LocalDual(shards=shards), oracle, 1.0, Stop(tol=1e-4, max_iter=3000))
    assert result.status is Status.CONVERGED
    assert result.primal <= svm.optimum(X, a, 1.0, intercept)[1] * (1.0 + 1e-4) + 1e-9


@settings(max_examples=20)
@given(seed=seeds, sigma=st.sampled_from([0.01, 0.5, 1.0, 8.0]), epochs=st.integers(0, 5))
def test_planes_of_shards_are_below_their_risks_everywhere(seed, sigma, epochs):
    rng = rng_of(seed)
    X, a = some_problem(rng, 30, 4)
    oracle = Oracle(as_rows(X), Hinge(a), Intercept.REGULARIZED).with_shards(3)
    C, w, u = 2.0, rng.normal(size=5), rng.normal(size=(3, 5))
    problem = LocalProblem(C, sigma, epochs, 0.0, 1)
    found = oracle.sum_shards(local_planes_of, add_sums, list(u), points=w[None], w=w, problem=problem)
    assert found.values[0] == pytest.approx(oracle.risk(w), rel=1e-12)
    for k, point in enumerate([w, *rng.normal(size=(20, 5))]):
        losses = np.abs(a) * np.maximum(0.0, 1.0 - np.sign(a) * (X @ point[:-1] + point[-1]))
        for p, (begin, end) in enumerate(pairwise(oracle.bounds.tolist())):
            risk, round_off = losses[begin:end].sum(), 1e-12 * (1.0 + np.abs(a).sum() * (1.0 + np.abs(X).max()))
            tangent, dual = (own.slopes[p] @ point + own.offsets[p] for own in (found.planes(0), found.planes(1)))
            assert max(tangent, dual) <= risk + round_off
            assert k > 0 or tangent == pytest.approx(risk, abs=round_off)  # it touches at w


def test_the_plane_of_one_row_by_hand():
    """x = 2, y = 1, w = u = 0, C = 3, sigma = 0.5: the best alpha is 1 / (sigma |x|^2) = 0.5, below C."""
    oracle = Oracle(as_rows(np.array([[2.0]])), Hinge(np.array([1.0])))
    zero = np.zeros(1)
    sums = local_planes_of(0, oracle, zero, points=zero[None], w=zero, problem=LocalProblem(3.0, 0.5, 1, 0.0, 0))
    plane = sums.planes(1)
    assert sums.values.tolist() == [1.0]
    assert plane.slopes[0, 0] == pytest.approx(-0.5 * 2.0 / 3.0, rel=1e-15)
    assert plane.offsets[0] == pytest.approx(0.5 / 3.0, rel=1e-12) and plane.offsets[0] <= 0.5 / 3.0


def test_contributions_add_up_to_the_minimiser():
    X, a = some_problem(np.random.default_rng(1), 60, 5)
    solver = LocalDual(shards=4)
    context = new_context(solver, Oracle(as_rows(X), Hinge(a)), [1.0])
    next(iterate for iterate in solver(context, 1.0) if not iterate.pending and iterate.gap <= 0.1)
    reduced = context.bundle.minimise(1.0, 1e-9)
    u = contributions(context.bundle, 1.0, 4)
    assert u.shape == (4, 5) and np.abs(u).sum(axis=1).all()
    np.testing.assert_allclose(u.sum(axis=0), reduced.w, atol=1e-5)


def bits(model):
    return model.coef_.tobytes(), np.asarray(model.intercept_).tobytes(), float(model.objective_).hex(), model.gap_


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(0.05, solver="local_dual"),
        LinearSVC(0.05, loss="logistic", solver="local_dual"),
        LinearSVR(0.05, epsilon=0.1, solver="local_dual"),
    ],
    ids=["hinge", "logistic", "tube"],
)
def test_same_bits_for_any_parts(estimator):
    X, y = text(9_000, 9_000, np.random.default_rng(0))
    found = []
    for parts, threads in ((1, 1), (5, 2), ([10, 4_000, 8_999], 1)):
        estimator.fit(of_arrays(Local(threads), split_arrays(X, y, parts=parts)))
        assert estimator.converged_ and estimator.gap_ <= 1e-3
        found.append(bits(estimator))
    assert found[0] == found[1] == found[2]
    memory = type(estimator)(**{**estimator.get_params(), "solver": "dcd", "tol": 1e-6}).fit(X, y)
    assert estimator.lower_bound_ <= memory.objective_ * (1.0 + 1e-12)
    assert estimator.objective_ >= memory.lower_bound_ * (1.0 - 1e-12)


def test_auto_takes_it_for_wide_sparse_rows_in_parts():
    X, y = text(9_000, 9_000, np.random.default_rng(0))
    model = LinearSVC(0.01).fit(of_arrays(Local(1), split_arrays(X, y, parts=2)))
    assert model.history_[0]["note"].startswith("local_dual: 9,000 sparse rows") and model.converged_
    model.fit(of_arrays(Local(1), split_arrays(X[:, :8_000].toarray()[:500], y[:500], parts=2)))
    assert model.history_[0]["note"].startswith("batched")
    assert Auto().settings.wide_features == LayoutSettings().wide


def test_wide_rows_are_in_few_chunks_of_whole_grains():
    n, row_bytes = 300_000, 600.0
    narrow, wide = Layout.of(n, row_bytes), Layout.of(n, row_bytes, wide=True)
    assert np.array_equal(narrow.edges, wide.edges)
    assert len(narrow.chunks) > len(wide.chunks) and len(wide.chunks) - 1 <= LayoutSettings().wide_chunks
    assert Counts.of(n, row_bytes, LayoutSettings(), wide=True).chunks == len(wide.chunks) - 1
    most = Counts.of(10**9, row_bytes, LayoutSettings(), wide=True)
    assert most.each * most.rows * row_bytes <= LayoutSettings().chunk_bytes
