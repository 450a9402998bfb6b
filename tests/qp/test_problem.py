"""The reduced problem, compiled and with LAPACK: against quadprog and against each other, in both forms."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.qp.problem import ReducedProblem
from cutsvm.qp.settings import InteriorPointSettings, compiled_settings
from tests.support.reduced_problems import (
    FORMS,
    bound_of,
    by_quadprog,
    class_planes,
    objective,
    objective_in_the_box,
    odd_planes,
    problem_of,
    signed_planes,
    some_planes,
)
from tests.support.strategies import rng_of, seeds

SOLVERS = {"compiled": ReducedProblem.compiled, "lapack": ReducedProblem.lapack}


@pytest.mark.parametrize("planes_of", [some_planes, signed_planes])
@pytest.mark.parametrize("n_free", [0, 1])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@given(
    seed=seeds,
    m=st.integers(1, 40),
    d=st.integers(1, 12),
    shards=st.integers(1, 10),
    C=st.sampled_from([0.01, 1.0, 1e4]),
)
def test_solution_and_bound(solver, form, n_free, planes_of, seed, m, d, shards, C):
    slopes, offsets, shard = planes_of(rng_of(seed), m, d, shards, n_free)
    expected = by_quadprog(slopes, offsets, shard, n_free, C)
    scale = max(expected, 1e-6 * C * np.abs(offsets).max())
    reduced = SOLVERS[solver](problem_of(form, slopes, offsets, shard, n_free), C, 1e-7 * scale)
    assert reduced.value - reduced.lower <= 1e-7 * scale
    assert reduced.value >= expected - 1e-9 * scale
    x = reduced.weights
    bound = C * offsets @ x - 0.5 * C * C * np.sum((slopes[:, :d].T @ x) ** 2)
    assert reduced.lower <= max(0.0, bound) + 1e-13 * scale
    heights = slopes @ reduced.w + offsets
    oracle = sum(max(0.0, heights[shard == p].max()) for p in np.unique(shard))
    w = reduced.w[:d]
    assert reduced.value == pytest.approx(0.5 * w @ w + C * oracle, rel=1e-9)
    assert reduced.value >= reduced.lower
    assert np.all(reduced.weights >= 0)
    for p in np.unique(shard):
        assert reduced.weights[shard == p].sum() <= 1 + 1e-12
    if n_free:
        assert abs(reduced.weights @ slopes[:, d]) <= 1e-12 * np.abs(slopes[:, d]).max()


@pytest.mark.parametrize("planes_of", [some_planes, signed_planes])
@pytest.mark.parametrize("n_free", [0, 1, 3])
@pytest.mark.parametrize("form", FORMS)
@given(
    seed=seeds,
    m=st.integers(1, 60),
    d=st.integers(1, 30),
    shards=st.integers(1, 12),
    C=st.sampled_from([0.01, 1.0, 1e4]),
    relative_tol=st.sampled_from([np.inf, 0.3, 1e-2, 1e-6]),
    warm=st.booleans(),
)
def test_compiled_is_lapack(form, n_free, planes_of, seed, m, d, shards, C, relative_tol, warm):
    """The same method, step by step."""
    rng = rng_of(seed)
    problem = problem_of(form, *planes_of(rng, m, d, shards, n_free), n_free)
    start = rng.random(m) * (rng.random(m) < 0.5) / m if warm else None
    tol = relative_tol * problem.compiled(C, np.inf).value
    ours, twin = problem.compiled(C, tol, start), problem.lapack(C, tol, start)
    assert abs(ours.steps - twin.steps) <= 1
    assert abs(ours.value - twin.value) <= 1e-9 * twin.value + tol
    assert ours.lower <= twin.value
    assert twin.lower <= ours.value
    if ours.steps == twin.steps:
        for name in ("value", "lower", "risk"):
            close = 1e-6 * twin.value + 1e-12 * C * np.abs(problem.offsets).max()  # the optimum may be 0
            assert getattr(ours, name) == pytest.approx(getattr(twin, name), rel=1e-5, abs=close)
        assert_allclose(ours.weights, twin.weights, atol=1e-4)


@pytest.mark.parametrize("n_free", [0, 1, 2, 5])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@given(
    seed=seeds,
    m=st.integers(1, 40),
    d=st.integers(1, 20),
    shards=st.integers(1, 40),
    C=st.sampled_from([1e-6, 1e-2, 1.0, 1e3, 1e6, 1e9]),
    relative_tol=st.sampled_from([np.inf, 1.0, 1e-3, 0.0]),
    intercept_bound=st.sampled_from([1e-3, 1.0, 1e3, 1e6]),
)
def test_bound_is_never_above_the_optimum(solver, form, n_free, seed, m, d, shards, C, relative_tol, intercept_bound):
    """Whatever the planes, C and the tolerance: the bound is below the objective at every w that any solver finds."""
    problem = problem_of(form, *odd_planes(rng_of(seed), m, d, shards, n_free), n_free, intercept_bound)
    start = problem.lapack(C, np.inf)
    found = SOLVERS[solver](problem, C, relative_tol * start.value)
    best = min(objective(problem, C, other.w) for other in (found, start, problem.compiled(C, 0.0)))
    assert 0.0 <= found.lower <= best
    assert np.isfinite(found.w).all()
    if n_free > 1:
        assert np.abs(found.w[d:]).max() <= intercept_bound
        assert found.lower <= max(0.0, bound_of(problem, C, found.weights))
    round_off = 1e-11 * C * np.abs(problem.offsets).sum()  # the value, unlike the bound, is not corrected for it
    if form == "features" or m <= d:  # more planes than features make a Gram matrix of low rank: not as exact, not used
        assert found.value == pytest.approx(float(objective(problem, C, found.w)), rel=1e-4, abs=round_off)
    assert np.all(found.weights >= 0.0)
    for p in np.unique(problem.shard):
        assert found.weights[problem.shard == p].sum() <= 1 + 1e-12


@pytest.mark.parametrize("planes_of", [some_planes, class_planes])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@given(
    seed=seeds,
    n_free=st.integers(2, 6),
    m=st.integers(1, 40),
    d=st.integers(1, 12),
    shards=st.integers(1, 10),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    intercept_bound=st.sampled_from([0.1, 10.0, 1e3]),
)
def test_several_free_intercepts(solver, form, planes_of, seed, n_free, m, d, shards, C, intercept_bound):
    """The problem with |b_j| <= intercept_bound is solved, whether its planes balance or not."""
    problem = problem_of(form, *planes_of(rng_of(seed), m, d, shards, n_free), n_free, intercept_bound)
    expected = float(objective_in_the_box(problem, C))
    scale = max(expected, 1e-4 * C * problem.offsets.max())
    tol = (1e-8 if form == "features" or m <= d else 1e-6) * scale  # a Gram matrix of low rank is not as exact
    found = SOLVERS[solver](problem, C, tol)
    assert found.value - found.lower <= tol
    assert found.lower <= expected
    assert found.value >= expected - 1e-4 * scale
    assert found.value == pytest.approx(float(objective(problem, C, found.w)), abs=1e-9 * scale)
    assert np.abs(found.w[d:]).max() <= intercept_bound
    assert found.lower <= max(0.0, bound_of(problem, C, found.weights))
    assert np.all(found.weights >= 0)
    assert np.bincount(problem.shard, weights=found.weights).max() <= 1 + 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, n_free=st.integers(2, 6), warm=st.booleans())
def test_a_large_intercept_bound_leaves_the_lower_bound_tight(solver, form, seed, n_free, warm):
    """Weights balance to the last digits, so that an intercept bound of a million leaves the lower bound tight."""
    rng = rng_of(seed)
    slopes, offsets, shard = some_planes(rng, 40, 30, 8, n_free)
    slopes[:20] = -slopes[20:]  # weights that balance exist
    slopes[:20, :30] += rng.normal(size=(20, 30))
    problem = problem_of(form, slopes, offsets, shard, n_free, 1e6)
    start = rng.random(40) * (rng.random(40) < 0.5) / 40 if warm else None
    found = SOLVERS[solver](problem, 1.0, 0.0, start)
    best = float(objective(problem, 1.0, found.w))
    assert found.lower <= best
    assert best - found.lower <= 1e-8 * best
    assert np.abs(found.w[30:]).max() < 1e3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, n_free=st.integers(2, 5), C=st.sampled_from([0.01, 1.0, 1e3]))
def test_inactive_and_dependent_free_intercepts(solver, form, seed, n_free, C):
    """A free intercept with slope 0 in every plane stays 0; a linearly dependent one does not change the minimum."""
    rng = rng_of(seed)
    slopes, offsets, shard = class_planes(rng, 30, 40, 4, n_free)
    plain = problem_of(form, slopes, offsets, shard, n_free, 1e3)
    more = np.hstack([slopes, np.zeros((30, 2)), slopes[:, 40:].sum(axis=1, keepdims=True), -slopes[:, 40:41]])
    odd = problem_of(form, more, offsets, shard, n_free + 4, 1e3)
    tol = 1e-7 * plain.solve(C, 0.0).value
    expected, found = SOLVERS[solver](plain, C, tol), SOLVERS[solver](odd, C, tol)
    assert found.value - found.lower <= tol
    assert abs(found.value - expected.value) <= 2 * tol
    assert_array_equal(found.w[40 + n_free : 42 + n_free], 0.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("m", [1, 3, 40])
def test_weights_that_cannot_balance(solver, form, m):
    """c has one sign: the risk goes to 0 with b, and so does the lower bound."""
    rng = rng_of(m)
    slopes, offsets, shard = some_planes(rng, m, 50, 3, 4)
    slopes[:, 50:] = 0.5 + rng.random((m, 4))
    found = SOLVERS[solver](problem_of(form, slopes, offsets, shard, 4, 1e6), 1.0, 1e-9)
    assert np.isfinite(found.w).all()
    assert np.abs(found.w).max() <= 1e6
    assert 0.0 <= found.lower <= found.value <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("m", [2, 30, 150])
def test_more_free_intercepts_than_planes(solver, form, m):
    """As in the first iterations with a hundred classes."""
    problem = problem_of(form, *class_planes(rng_of(m), m, 200, 5, 104), 104, 1e4)
    found = SOLVERS[solver](problem, 10.0, 1e-6)
    assert found.value - found.lower <= 1e-6
    assert found.lower <= float(objective(problem, 10.0, found.w))


@pytest.mark.parametrize("intercept_bound", [np.inf, 0.0, np.nan])
def test_several_free_intercepts_need_an_intercept_bound(intercept_bound):
    with pytest.raises(ValueError, match="intercept_bound: positive and finite expected with n_free = 2"):
        ReducedProblem(np.ones((1, 3)), np.ones(1), np.zeros(1, dtype=np.int64), 2, None, intercept_bound)


@pytest.mark.parametrize("n_free", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_compiled_repeats_to_the_last_bit(form, n_free):
    problem = problem_of(form, *some_planes(rng_of(5), 90, 100, 7, n_free), n_free)
    first, second = problem.compiled(10.0, 1e-6), problem.compiled(10.0, 1e-6)
    assert_array_equal(first.w, second.w)
    assert_array_equal(first.weights, second.weights)
    assert first.lower == second.lower


@pytest.mark.parametrize(("form", "rows"), [("planes", 20), ("features", 4)])
def test_lapack_solves_from_lapack_rows_on(form, rows):
    slopes, offsets, shard = some_planes(rng_of(2), 20, 4, 3, 0)
    problem = problem_of(form, slopes, offsets, shard, 0)
    for lapack_rows, method in [(rows, ReducedProblem.lapack), (rows + 1, ReducedProblem.compiled)]:
        found = replace(problem, settings=InteriorPointSettings(lapack_rows=lapack_rows)).solve(1.0, 1e-3)
        assert_array_equal(found.w, method(problem, 1.0, 1e-3).w)
    assert np.any(problem.lapack(1.0, 1e-3).w != problem.compiled(1.0, 1e-3).w)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_max_steps_ends_the_method_with_a_bound(solver, form):
    problem = problem_of(form, *some_planes(rng_of(4), 30, 20, 3, 1), 1)
    short = SOLVERS[solver](replace(problem, settings=InteriorPointSettings(max_steps=2)), 1.0, 0.0)
    best = SOLVERS[solver](problem, 1.0, 0.0)
    assert short.steps <= 2 < best.steps
    assert short.lower <= best.value <= short.value


def test_wrong_shapes_are_refused():
    A, o, shard, gram, none = np.ones((2, 3)), np.ones(2), np.zeros(2, dtype=np.int64), np.empty((0, 0)), np.empty(0)
    w, x = np.empty(3), np.empty(2)
    solve = partial(core.solve_reduced, compiled_settings(InteriorPointSettings()))
    assert solve(A, o, shard, 1, np.inf, gram, 1.0, 1.0, none, w, x)[1] > 0.0
    for args in [
        (A[:1], o, shard, 0, np.inf, gram, 1.0, 1.0, none, w, x),
        (A, o, shard[:1], 0, np.inf, gram, 1.0, 1.0, none, w, x),
        (A[:0], o[:0], shard[:0], 0, np.inf, gram, 1.0, 1.0, none, w, x[:0]),
        (A, o, shard, 3, 1.0, gram, 1.0, 1.0, none, w, x),
        (A, o, shard, 2, np.inf, gram, 1.0, 1.0, none, w, x),
        (A, o, shard, 2, 0.0, gram, 1.0, 1.0, none, w, x),
        (A[:, :1], o, shard, 1, np.inf, gram, 1.0, 1.0, none, w[:1], x),
        (np.ones((3, 2)).T, o, shard, 0, np.inf, gram, 1.0, 1.0, none, w, x),
        (A, o, shard, 0, np.inf, np.ones((3, 3)), 1.0, 1.0, none, w, x),
        (A, o, shard, 0, np.inf, gram, 1.0, 1.0, o[:1], w, x),
        (A, o, shard, 0, np.inf, gram, 1.0, 1.0, none, w[:2], x),
        (A, o, shard, 0, np.inf, gram, 1.0, 1.0, none, w, x[:1]),
    ]:
        with pytest.raises(ValueError, match="expected"):
            solve(*args)
    with pytest.raises(TypeError):  # the kernel would write into a copy
        solve(A, o, shard, 0, np.inf, gram, 1.0, 1.0, none, w.astype(np.float32), x)


@pytest.mark.parametrize("solver", SOLVERS)
def test_does_not_cycle(solver):
    """Planes on which predictor and corrector alone cycle."""
    slopes, offsets, shard = some_planes(rng_of(383646), 24, 1, 1, 0)
    reduced = SOLVERS[solver](ReducedProblem(slopes, offsets, shard, 0), 0.01, 1e-10)
    assert reduced.value - reduced.lower <= 1e-10
    assert reduced.steps < 30


@pytest.mark.parametrize("solver", ["compiled", "lapack"])
def test_a_start_far_from_balanced_weights(solver):
    """Weights of one sign of c only, two shards, and a constraint that needs both signs."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        slopes = rng.uniform(-1.0, 1.0, size=(2, 21))
        slopes[:, -1] = -0.363, 0.942
        problem = ReducedProblem(slopes, rng.uniform(1.0, 1.2, size=2), np.array([2, 3]), 1)
        found = getattr(problem, solver)(3.0, 1e-6, np.array([0.5, 0.0]))
        assert found.value - found.lower <= 1e-6
        assert found.steps < 30


@given(seed=seeds, tol=st.sampled_from([10.0, 1.0, 0.1]))
def test_a_relative_tol_tolerance_still_gives_a_bound(seed, tol):
    slopes, offsets, shard = some_planes(rng_of(seed), 20, 4, 3, 0)
    best = ReducedProblem(slopes, offsets, shard, 0).solve(100.0, tol=1e-6)
    rough = ReducedProblem(slopes, offsets, shard, 0).solve(100.0, tol=tol)
    assert rough.value - rough.lower <= tol
    assert rough.lower <= best.value + 1e-9
    assert rough.steps <= best.steps


@pytest.mark.parametrize("solver", SOLVERS)
def test_begins_again_where_it_cycles(solver, monkeypatch):
    """From a weight of 0 the method comes back to the same three points; from equal weights it needs no step."""
    slopes = np.array([[402.70596585, -136.21477249, 72.4487756, 94.39031448, 97.54899107]])
    problem = ReducedProblem(slopes, np.array([131.0]), np.zeros(1, dtype=np.int64), 0, slopes @ slopes.T)
    cycling = SOLVERS[solver](problem, 1 / 131, 1e-9, np.zeros(1))
    assert cycling.value - cycling.lower > 0.1
    if solver == "lapack":
        monkeypatch.setattr(ReducedProblem, "compiled", ReducedProblem.lapack)
    found = problem.solve(1 / 131, 1e-9, np.zeros(1))
    assert found.value - found.lower <= 1e-9
    assert found.value == pytest.approx(by_quadprog(slopes, problem.offsets, problem.shard, 0, 1 / 131), rel=1e-9)
