"""Reading only near rows: values, lines, planes and solver steps equal those of all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import cutsvm
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import Fit, fit_path, run
from cutsvm.matrix import StoreRows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import CPA, OCAS, Sifting
from cutsvm.solvers.bucketing.buckets import BucketSettings
from cutsvm.solvers.bucketing.near_rows import NearRowsOracle, near_rows
from cutsvm.solvers.cutting_planes import Exact, search
from cutsvm.solvers.protocol import new_context
from tests.support.problems import (
    SIFT_ANYTHING,
    iterates,
    long_data,
    many_classes,
    multiclass_oracle_of,
    oracle_of,
    some_problem,
)
from tests.support.strategies import rng_of, seeds

INTERCEPTS = ["none", "regularized", "free"]


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(2, 60), d=st.integers(1, 5), layout=st.sampled_from(["float64", "fortran", "csr"]))
def test_same_values_and_planes(intercept, both_sides, whiten, seed, n, d, layout):
    rng = rng_of(seed)
    X, a = some_problem(rng, n, d)
    a[:2] = 1.0, -1.0  # without one of the labels a free b has no place
    whole = oracle_of(X, a, intercept, layout)
    scale = np.abs(a).sum() * (1.0 + np.abs(X).max())
    solver = OCAS(buckets=8, both_sides=both_sides, whiten=whiten)
    context = new_context(solver, whole, [1.0])
    with near_rows(context, solver):
        near = context.oracle
        assert isinstance(near, NearRowsOracle)
        at = rng.normal(size=whole.size)
        old = near.at(at.copy())  # made before the dispatch, asked for after it
        near.buckets.dispatch(at)
        for step in (0.0, 1e-3, 0.1, 1.0, 5.0):
            w = at + step * rng.normal(size=whole.size)
            here, there = near.at(w.copy()), whole.at(w.copy())
            value = whole.value(there)
            far = scale * (1.0 + np.abs(here.w).max())
            assert near.value(here) == pytest.approx(value, rel=1e-11, abs=1e-12 * far)
            plane = near.planes(here)
            assert plane.slopes[0] @ here.w + plane.offsets[0] == pytest.approx(value, abs=1e-11 * far)
            other = whole.at(w + rng.normal(size=whole.size))
            assert plane.slopes[0] @ other.w + plane.offsets[0] <= whole.value(other) + 1e-10 * far
            k = rng.random()
            middle = near.between(old, here, k)
            true = whole.between(whole.at(old.w.copy()), whole.at(here.w.copy()), k)
            assert near.value(middle) == pytest.approx(whole.value(true), rel=1e-10, abs=1e-11 * far)
            old = middle


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(2, 60), short=st.sampled_from([1.0, 1e-2, 1e-4]))
def test_line_search_leaves_the_near_rows(intercept, seed, n, short):
    """The end may be next to the start, and the lowest point far beyond both."""
    rng = rng_of(seed)
    X, a = some_problem(rng, n, 3)
    a[:2] = 1.0, -1.0
    whole, C = oracle_of(X, a, intercept), 1.0
    start, end = rng.normal(size=whole.size), rng.normal(size=whole.size)
    end = start + short * (end - start)
    solver = OCAS(buckets=8, whiten=False)
    context = new_context(solver, whole, [1.0])
    with near_rows(context, solver):
        near = context.oracle
        near.buckets.dispatch(start)
        points = [oracle.score(w.copy()) for w in (start, end) for oracle in (near, whole)]
        mine, theirs = search(near, points[0], points[2], C, Exact()), search(whole, points[1], points[3], C, Exact())
        low, high = (F(whole, start + k * (end - start), C) for k in (theirs, mine))
        assert high == pytest.approx(low, rel=1e-9, abs=1e-9)


def F(oracle, w, C):
    return oracle.penalty(w) + C * oracle.value(oracle.score(w))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", [CPA, OCAS])
@pytest.mark.parametrize("more", [{"both_sides": False, "whiten": False}, {"whiten": False}, {}])
def test_buckets_do_not_change_the_answer(solver, more, intercept):
    X, a = long_data(3000, 4)
    plain = run(solver(shards=1), oracle_of(X, a, intercept), 0.1, Stop(tol=1e-5))
    by_rows = BucketSettings(only_if_it_pays=False)  # rows are what is counted here
    near = run(solver(buckets=16, bucketing=by_rows, **more), oracle_of(X, a, intercept), 0.1, Stop(tol=1e-5))
    for mine, other in ((plain, near), (near, plain)):
        assert mine.status is Status.CONVERGED
        assert mine.lower <= other.primal
    assert near.primal == pytest.approx(plain.primal, rel=1e-5)
    # The objective that was known without reading all rows is the one that all rows give.
    assert near.history[-1]["primal"] == pytest.approx(near.primal, rel=1e-12)
    assert near.n_iter <= 1.2 * plain.n_iter + 3
    if solver is CPA:
        read = [r.history[-1]["visits"] - r.history[-1]["rows_read"] for r in (plain, near)]
        assert read[1] < 0.8 * read[0]
        assert near.history[-1]["rows_written"] >= len(a)


@pytest.mark.parametrize("solver", [CPA, OCAS])
def test_from_a_store(solver, tmp_path):
    X, a = long_data(6000, 4)
    store = cutsvm.convert((X, a), tmp_path / "rows.store", block_bytes=1000 * 32).store
    oracle = Oracle(StoreRows(store), Hinge(a), intercept=Intercept.FREE)
    near = run(solver(buckets=8), oracle, 0.1, Stop(tol=1e-5))
    assert near.primal == pytest.approx(
        run(solver(shards=1), oracle_of(X, a, "free"), 0.1, Stop(tol=1e-5)).primal, rel=1e-5
    )
    assert near.history[-1]["rows_written"] >= len(a)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.store"]


@pytest.mark.parametrize("solver", [CPA, OCAS])
def test_inside_sifting(solver):
    X, a = long_data(3000)
    result = run(
        Sifting(inner=solver(buckets=8), settings=SIFT_ANYTHING), oracle_of(X, a, "free"), 0.01, Stop(tol=1e-4)
    )
    assert result.status is Status.CONVERGED
    assert result.primal == pytest.approx(run(OCAS(), oracle_of(X, a, "free"), 0.01, Stop(tol=1e-5)).primal, rel=2e-4)


@pytest.mark.parametrize("solver", [CPA, OCAS])
def test_invalid_arguments_raise(solver):
    with pytest.raises(ValueError, match="shards=4, buckets=8: with buckets there is one shard"):
        solver(shards=4, buckets=8)
    with pytest.raises(ValueError, match="buckets=0"):
        solver(buckets=0)
    with pytest.raises(TypeError, match="a hinge loss expected"):
        next(iterates(solver(buckets=8), multiclass_oracle_of(*many_classes(50)), 1.0))


def test_points_keep_their_precision():
    """Scores that are blended again and again do not drift from those of the rows."""
    X, a = long_data(2000, 4)
    whole = oracle_of(X, a, "free")
    solver = OCAS(buckets=8)
    context = new_context(solver, whole, [1.0])
    with near_rows(context, solver):
        near = context.oracle
        rng = np.random.default_rng(0)
        point = near.at(np.zeros(whole.size))
        for _ in range(40):
            trial = near.at(point.w + 0.1 * rng.normal(size=whole.size))
            point = near.between(point, trial, 0.3)
        assert_allclose(near.value(point), whole.value(whole.score(point.w)), rtol=1e-11)
        assert near.buckets.place is not None


@pytest.mark.parametrize("solver", [CPA, OCAS])
def test_path(solver):
    """A point that was evaluated for another C is not taken for one with the scores of near rows."""
    X, a = long_data(500, 3)
    Cs = [1e-3, 1e-2, 0.1]
    results, _ = fit_path(solver(buckets=4), oracle_of(X, a, "free"), Cs, Fit(Stop(tol=1e-5)))
    for C, result in zip(Cs, results, strict=True):
        exact = run(solver(shards=1), oracle_of(X, a, "free"), C, Stop(tol=1e-6))
        assert result.status is Status.CONVERGED
        assert result.lower <= exact.primal and exact.lower <= result.primal
