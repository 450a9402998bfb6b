"""The reduced problem, compiled and with LAPACK: against quadprog and against each other, in both forms."""

from dataclasses import fields, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import quadprog
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.problem.rounding import Magnitudes, RowScale
from cutsvm.qp.problem import ReducedProblem
from cutsvm.qp.settings import InteriorPointSettings, compiled_settings
from tests.support.strategies import rng_of, seeds

SOLVERS = {"compiled": ReducedProblem.compiled, "lapack": ReducedProblem.lapack}
FORMS = ["planes", "features"]

UNIT_SCALE = RowScale(Magnitudes.of_norm(1.0, 3), 1, 0, False, 0.0)


def some_planes(rng, m, d, shards, n_free):
    shard = np.concatenate([np.arange(shards), rng.integers(0, shards, size=m)])[:m]
    slopes = rng.normal(size=(m, d + n_free))
    return slopes, np.abs(rng.normal(size=m)), shard


def odd_planes(rng, m, d, shards, n_free):
    """Duplicates, zero slopes, any scale, shards of one plane, shard numbers with gaps."""
    slopes, offsets, shard = some_planes(rng, m, d, shards, n_free)
    slopes *= 10.0 ** rng.uniform(-4, 4) * 10.0 ** rng.uniform(-1, 1, size=(m, 1))
    again = rng.integers(0, m, size=m // 3)
    slopes[: len(again)], offsets[: len(again)] = slopes[again], offsets[again]
    slopes[rng.random(m) < 0.1] = 0.0
    shard[rng.random(m) < 0.1] = 1000 + rng.integers(0, 3)
    if n_free and rng.random() < 0.3:
        slopes[:, d:] = 0.0
    if n_free > 1:
        kind = rng.integers(0, 4)
        if kind == 0:  # an inactive intercept
            slopes[:, d + rng.integers(n_free)] = 0.0
        elif kind == 1:  # columns that depend on each other
            slopes[:, d] = slopes[:, d + 1 :] @ rng.normal(size=n_free - 1)
        elif kind == 2:  # no weights balance
            slopes[:, d:] = np.abs(slopes[:, d:])
    return slopes, offsets * 10.0 ** rng.uniform(-4, 4), shard


def class_planes(rng, m, d, shards, n_free):
    """Free intercepts as in a multi-class problem: rows wrongly assigned to a class less rows of it."""
    slopes, offsets, shard = some_planes(rng, m, d, shards, n_free)
    pairs = rng.integers(0, n_free + 1, size=(m, 30, 2))
    counts = np.zeros((m, n_free + 1))
    for wrong, right in pairs.transpose(1, 2, 0):
        np.add.at(counts, (np.arange(m), wrong), 1.0)
        np.add.at(counts, (np.arange(m), right), -1.0)
    slopes[:, d:] = counts[:, :n_free] / 30
    return slopes, offsets, shard


def problem_of(form, slopes, offsets, shard, n_free, intercept_bound=100.0):
    A = slopes[:, : slopes.shape[1] - n_free]
    return ReducedProblem(slopes, offsets, shard, n_free, A @ A.T if form == "planes" else None, intercept_bound)


def objective(problem, C, w):
    """|w|^2/2 + C risk, in more digits than the solvers have."""
    d = len(w) - problem.n_free
    wide = w.astype(np.longdouble)
    heights = problem.slopes.astype(np.longdouble) @ wide + problem.offsets
    oracle = sum(max(0.0, heights[problem.shard == p].max()) for p in np.unique(problem.shard))
    return 0.5 * np.sum(wide[:d] ** 2) + C * oracle


def bound_of(problem, C, x):
    """The lower bound that x gives for the problem with |b_j| <= intercept_bound, exactly."""
    exact = [Fraction(weight) for weight in x]
    pull = [sum(Fraction(a) * weight for a, weight in zip(column, exact, strict=True)) for column in problem.slopes.T]
    gain = sum(Fraction(o) * weight for o, weight in zip(problem.offsets, exact, strict=True))
    d = len(pull) - problem.n_free
    off = Fraction(problem.intercept_bound) * sum(abs(c) for c in pull[d:])
    return Fraction(C) * (gain - off) - Fraction(C) ** 2 * sum(a * a for a in pull[:d]) / 2


def objective_in_the_box(problem, C):
    """The objective where quadprog finds it lowest with |b_j| <= intercept_bound, close to the optimum."""
    size, ids = problem.slopes.shape[1], np.unique(problem.shard)
    member = (problem.shard[:, None] == ids[None, :]).astype(float)
    d, f, s = size - problem.n_free, problem.n_free, len(ids)
    # In w, b / intercept_bound and the shards' risks, scaled. quadprog needs a positive definite matrix:
    # a proximal term is added around the last solution, five times.
    high = problem.offsets.max()
    extra = np.concatenate([np.zeros(d), np.full(f + s, 1e-7 * C * high)])
    curvature = np.diag(np.concatenate([np.ones(d), np.zeros(f + s)]) + extra)
    line = np.concatenate([np.zeros(d + f), np.full(s, C * high)])
    planes = np.hstack([-problem.slopes[:, :d], -problem.intercept_bound * problem.slopes[:, d:], high * member])
    risks = np.hstack([np.zeros((s, size)), np.eye(s)])
    box = np.hstack([np.zeros((f, d)), np.eye(f), np.zeros((f, s))])
    constraints = np.vstack([planes, risks, box, -box])
    sides = np.concatenate([problem.offsets, np.zeros(s), -np.ones(2 * f)])
    scale = np.abs(constraints).max(axis=1)
    found = np.zeros(size + s)
    for _ in range(5):
        found = quadprog.solve_qp(curvature, extra * found - line, (constraints / scale[:, None]).T, sides / scale)[0]
    return objective(
        problem, C, np.concatenate([found[:d], problem.intercept_bound * np.clip(found[d:size], -1.0, 1.0)])
    )


def by_quadprog(slopes, offsets, shard, n_free, C):
    """The dual's value: max C o.x - C^2 |A'x|^2/2."""
    m, d = len(offsets), slopes.shape[1] - n_free
    A = slopes[:, :d]
    Q = C * A @ A.T
    Q += 1e-10 * max(1.0, np.trace(Q) / m) * np.eye(m)
    member = (shard[:, None] == np.unique(shard)[None, :]).astype(float)
    constraints = np.hstack([slopes[:, d:], np.eye(m), -member])
    sides = np.concatenate([np.zeros(n_free), np.zeros(m), -np.ones(member.shape[1])])
    try:
        x = quadprog.solve_qp(Q, offsets, constraints, sides, n_free)[0]
    except ValueError:  # c of one sign: only x = 0 is feasible
        return 0.0
    x = np.maximum(x, 0.0)  # it is infeasible by 1e-6 or so
    x /= np.maximum(1.0, member.T @ x)[np.unique(shard, return_inverse=True)[1]]
    for c in slopes[:, d:].T:
        up, down = x @ np.maximum(c, 0.0), x @ np.maximum(-c, 0.0)
        x *= np.where(c > 0.0, min(1.0, down / max(up, 1e-300)), min(1.0, up / max(down, 1e-300)))
    return C * (offsets @ x - 0.5 * C * np.sum((A.T @ x) ** 2))


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
def test_solution_and_bound(solver, form, n_free, seed, m, d, shards, C):
    slopes, offsets, shard = some_planes(rng_of(seed), m, d, shards, n_free)
    expected = by_quadprog(slopes, offsets, shard, n_free, C)
    scale = max(expected, 1e-6 * C * offsets.max())
    reduced = SOLVERS[solver](problem_of(form, slopes, offsets, shard, n_free), C, 1e-7 * scale)
    assert reduced.value - reduced.lower <= 1e-7 * scale
    assert reduced.value >= expected - 1e-9 * scale
    x = reduced.weights
    assert reduced.lower <= C * offsets @ x - 0.5 * C * C * np.sum((slopes[:, :d].T @ x) ** 2) + 1e-13 * scale
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
def test_compiled_is_lapack(form, n_free, seed, m, d, shards, C, relative_tol, warm):
    """The same method, step by step."""
    rng = rng_of(seed)
    problem = problem_of(form, *some_planes(rng, m, d, shards, n_free), n_free)
    start = rng.random(m) * (rng.random(m) < 0.5) / m if warm else None
    tol = relative_tol * problem.compiled(C, np.inf).value
    ours, twin = problem.compiled(C, tol, start), problem.lapack(C, tol, start)
    assert abs(ours.steps - twin.steps) <= 1
    assert abs(ours.value - twin.value) <= 1e-9 * twin.value + tol
    assert ours.lower <= twin.value
    assert twin.lower <= ours.value
    if ours.steps == twin.steps:
        for name in ("value", "lower", "risk"):
            close = 1e-6 * twin.value + 1e-12 * C * problem.offsets.max()  # the optimum may be 0
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
    round_off = 1e-11 * C * problem.offsets.sum()  # the value, unlike the bound, is not corrected for it
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


def test_compiled_settings_have_the_same_values_and_are_built_once():
    settings = InteriorPointSettings(max_steps=7, backtracking=0.5)
    compiled = compiled_settings(settings)
    assert compiled_settings(InteriorPointSettings(max_steps=7, backtracking=0.5)) is compiled
    names = {name for name in dir(compiled) if not name.startswith("_")}
    assert names | {"lapack_rows"} == {field.name for field in fields(settings)}
    for name in names:
        assert getattr(compiled, name) == getattr(settings, name), name


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


def test_bundle_drops_only_idle_planes():
    """A plane below the others is dropped; the minimum stays."""
    rng = rng_of(1)
    bundle = Bundle(3, 0, lambda: UNIT_SCALE)
    for _ in range(4):
        bundle.add(Planes(rng.normal(size=(2, 3)), 1 + rng.random(2), np.zeros((2, 2))))
    bundle.add(Planes(np.zeros((2, 3)), np.full(2, 1e-9), np.zeros((2, 2))))
    before = bundle.minimise(1.0, 1e-10)
    for _ in range(3):
        bundle._rising = True
        bundle._idle[: len(bundle)] += 1
        bundle._idle[: len(bundle)] *= bundle._weights[: len(bundle)] < 1e-3
    bundle.drop_idle(2)
    assert len(bundle) < 10
    assert bundle.minimise(1.0, 1e-10).lower == pytest.approx(before.lower, rel=1e-6)


@pytest.mark.parametrize("size", [6, 60])
def test_bundle_with_several_free_intercepts(size):
    """The lower bound increases to the minimum of the reduced problem with all planes."""
    slopes, offsets, _ = class_planes(rng_of(3), 40, size, 1, 3)
    scale = RowScale(Magnitudes.of_norm(10.0, 3), 1, 3, False, 1e3)
    bundle = Bundle(size + 3, 3, lambda: scale, reach=1e3)
    assert bundle.reach == 1e3
    whole = problem_of("features", slopes, offsets, np.arange(40) % 2, 3, 1e3).solve(1.0, 1e-9)
    lower = 0.0
    for start in range(0, 40, 2):
        bundle.add(Planes(slopes[start : start + 2], offsets[start : start + 2], np.zeros((2, 2))))
        now = bundle.minimise(1.0, 1e-9).lower
        assert lower - 1e-8 <= now <= whole.value
        lower = now
    assert lower == pytest.approx(whole.value, rel=1e-7)


def test_the_bound_of_an_empty_bundle_is_zero():
    reduced = Bundle(3, 0, lambda: UNIT_SCALE).minimise(1.0, 1e-3)
    assert reduced.lower == 0.0
    assert not reduced.w.any()
