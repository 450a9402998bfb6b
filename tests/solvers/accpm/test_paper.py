"""ACCPM beside a literal transcription of Bialon's paper: oracles, centres, buckets, whole runs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._utils.timing import clock
from cutsvm.solvers import ACCPM
from cutsvm.solvers.accpm.analytic_center import Centre, CentreSettings
from cutsvm.solvers.accpm.oracles import ORACLES
from cutsvm.solvers.accpm.solver import ACCPMSettings
from cutsvm.solvers.bucketing.buckets import Buckets, BucketSettings, ranges
from tests.support.problems import iterates, long_data, oracle_of
from tests.support.reference import bialon, svm
from tests.support.strategies import rng_of, seeds

# Every term of H updated, and lines searched to the end, as in the transcription.
LITERAL = CentreSettings(factor=1.0, flat=1e-26, tries=200)
REMARK_1 = BucketSettings(only_if_it_pays=False)


def separable(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X, a = rng.normal(size=(n, d)), np.tile([1.0, -1.0], n // 2)
    X[:, 0] += 4.0 * a
    return X, a


def data_of(form, n=60, d=3, seed=0):
    return separable(n, d, seed) if form == "E" else long_data(n, d, seed=seed)


def flipped(x, N):
    """(omega; gamma; z) of (w, b, z), and the other way round: the score is a.omega - gamma there, w.x + b here."""
    y = np.array(x, dtype=float)
    y[N] = -y[N]
    return y


def edges_of(count):
    """Where our buckets begin."""

    def edges(v):
        order = np.sort(v)
        inside = int(np.searchsorted(order, 0.0))
        begins = [begin for begin, _ in ranges(inside, len(v), count) if begin not in (0, inside)]
        return np.unique(np.append(order[begins], 0.0))

    return edges


@pytest.mark.parametrize("form", ["E", "I1", "I2"])
@given(seed=seeds, n=st.integers(2, 40), d=st.integers(1, 5), dispatched=st.booleans(), level=st.floats(-0.2, 1.3))
def test_oracles_are_algorithms_2_to_4(form, seed, n, d, dispatched, level):
    """The same cut, after the same number of rows, from the rows in their order and from buckets."""
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n)
    oracle, C = oracle_of(X, a, "free"), 10.0 ** rng.uniform(-2, 2)
    kept, data = Buckets(oracle, count=6, settings=REMARK_1), bialon.Data(X, a, C)
    cut = ORACLES[form](kept, C, early=True)
    J, at = range(n), rng.normal(size=d + 1)
    if dispatched:
        kept.dispatch(at)
        dispatch = bialon.Dispatch(data, at[:d], -at[d], edges_of(6))
    w = at + 10.0 ** rng.uniform(-2, 1) * rng.normal(size=d + 1)
    if dispatched:
        J = dispatch.J(w[:d], -w[d])
    data.totalgetandputcounter = 0
    loss = np.maximum(0.0, 1.0 - a * (X @ w[:d] + w[d])).sum()
    x = np.append(w, level * loss) if form == "I2" else w
    with clock() as time:
        ours = cut(x)
    theirs = bialon.ORACLES[form](data, J, flipped(x, d))
    assert_allclose(ours.gradient, flipped(theirs, d), rtol=1e-9, atol=1e-11 * (1.0 + C * n * np.abs(X).max()))
    read = time.counts["visits"] - (form == "E" and ours.planes is not None)  # the plane of the row that was found
    if not (form == "I2" and loss == 0.0):
        assert read == data.totalgetandputcounter


@given(seed=seeds, n=st.integers(1, 60), d=st.integers(1, 4), count=st.integers(2, 16), step=st.floats(0.0, 3.0))
def test_the_set_J_is_that_of_4(seed, n, d, count, step):
    """Bucket by bucket the rows of the paper's J and no other buckets."""
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n)
    kept = Buckets(oracle_of(X, a, "free"), count=count)
    at = rng.normal(size=d + 1)
    kept.dispatch(at)
    dispatch = bialon.Dispatch(bialon.Data(X, a, 1.0), at[:d], -at[d], edges_of(count))
    assert [list(part.numbers) for part in kept.parts] == [bucket for bucket in dispatch.buckets if bucket]
    w = at + step * rng.normal(size=d + 1)
    near = [j for part in kept.near(w)[0] for j in part.numbers]
    assert near == dispatch.J(w[:d], -w[d])
    inside = set(np.flatnonzero(1.0 - a * (X @ w[:d] + w[d]) > 0.0).tolist())
    assert inside <= set(dispatch.exact_J(w[:d], -w[d])) <= set(near)


@given(seed=seeds, size=st.sampled_from([2, 3, 6]), cuts=st.integers(1, 12), R=st.sampled_from([0.1, 1.0, 30.0]))
def test_the_centre_is_algorithm_6(seed, size, cuts, R):
    rng = rng_of(seed)
    target = rng.normal(size=size)
    target *= 0.7 * R / np.linalg.norm(target)
    centre, F, x = Centre(size, R, LITERAL), bialon.Potential(R), np.zeros(size)
    for _ in range(cuts):
        g = 10.0 ** rng.uniform(-1, 1, size=size) * (x - target)
        assert centre.cut(g)
        F.add(g, x)
        x = bialon.algorithm_6(F, x, near=0.1)
        assert_allclose(centre.x, x, atol=1e-6 * R)
        assert_allclose(centre.slacks, F.distances(x), rtol=1e-4, atol=1e-6 * R)
        assert centre.mean_log_distance == pytest.approx(np.log(F.distances(x) / R).mean(), abs=1e-3)


class Points:
    """The points at which a run asks the oracle, and the number of gets and puts before it does the next time."""

    def __init__(self, monkeypatch, form):
        self.xs, self.gradients, self.counts = [], [], []
        kind, points = ORACLES[form], self

        class Noted(kind):
            def __call__(self, x):
                points.xs.append(x.copy())
                answer = super().__call__(x)
                points.gradients.append(answer.gradient)
                points.counts.append(dict(points.time.counts))
                return answer

        monkeypatch.setitem(ORACLES, form, Noted)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize("form", ["E", "I1", "I2"])
def test_whole_runs(form, count, seed, monkeypatch):
    """Algorithm 1 with its oracles, its buckets and its stop test: the same points, cuts, dispatches, gets and puts."""
    X, a = data_of(form, seed=seed)
    (n, N), C = X.shape, 100.0 if form == "E" else 1.0
    points = Points(monkeypatch, form)
    settings = ACCPMSettings(centre=LITERAL, buckets=REMARK_1)
    solver = ACCPM(formulation=form, buckets=count, one_radius=True, epsilon=float(np.exp(-6.0)), settings=settings)
    with clock() as time:
        points.time = time
        for iterate in iterates(solver, oracle_of(X, a, "free"), C):
            if iterate.satisfied:
                break
    longest = np.sqrt(C * n)  # the paper says of R that it is known: what ours takes
    units = [longest, 1.0 + longest * np.sqrt(1.0 + np.square(X).sum(axis=1).max()), n][: 3 if form == "I2" else 2]
    data = bialon.Data(X, a, C)
    edges = edges_of(count) if count > 1 else None
    run = bialon.algorithm_1(data, form, float(np.linalg.norm(units)), stop=6.0, edges=edges)
    assert len(points.xs) == len(run.xs) - 1
    scale = np.abs(run.xs).max()
    for ours, theirs in zip(points.xs, run.xs, strict=False):
        assert_allclose(flipped(ours, N), theirs, atol=1e-5 * scale)
    for ours, theirs in zip(points.gradients, run.cuts, strict=True):
        assert_allclose(flipped(ours, N), theirs, rtol=1e-5, atol=1e-5 * (1.0 + np.abs(theirs).max()))
    if form == "E":
        return  # the bounds of (E) read rows for themselves
    # Ours reads all rows once more, for their lengths.
    counted = [counts["visits"] + counts["rows_written"] - n for counts in points.counts]
    assert_array_equal(counted, run.counters)
    written = [counts["rows_written"] for counts in points.counts]
    assert [k for k, (old, new) in enumerate(pairwise([0, *written])) if new > old] == run.dispatches


@pytest.mark.parametrize("form", ["E", "I1", "I2"])
def test_the_solution_is_the_optimum(form):
    """By the transcription alone: its stop test leaves next to nothing."""
    X, a = data_of(form, 30, 2)
    C = 100.0 if form == "E" else 1.0
    data = bialon.Data(X, a, C)
    x = bialon.algorithm_1(data, form, 100.0).xs[-1]
    low, high = svm.optimum(X, a, C, "free")
    value = svm.objective(X, a, C, "free", x[:2], -x[2])
    assert low * (1 - 1e-9) <= value <= high * 1.01


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("form", ["E", "I1", "I2"])
@pytest.mark.parametrize("one_radius", [False, True])
@pytest.mark.parametrize("pays", [False, True])
@settings(max_examples=8)  # of each of 36 mixes
@given(seed=seeds, early=st.booleans(), count=st.sampled_from([1, 2, 7, 16]), both_sides=st.booleans())
def test_bounds_hold_at_every_iterate(form, intercept, one_radius, pays, seed, early, count, both_sides):
    """Every formulation and every setting, the paper's among them."""
    X, a = data_of(form, 40, 3, seed=seed % 1000)
    C = 100.0 if form == "E" else 10.0 ** (seed % 5 - 2)
    low, high = svm.optimum(X, a, C, intercept)
    slack = 1e-9 * high
    dispatches = ACCPMSettings(buckets=BucketSettings(only_if_it_pays=pays, K=1, cost=1.0))
    solver = ACCPM(
        formulation=form,
        buckets=count,
        early_return=early,
        both_sides=both_sides,
        one_radius=one_radius,
        epsilon=float(np.exp(-12.0)),
        settings=dispatches,
    )
    for k, iterate in enumerate(iterates(solver, oracle_of(X, a, intercept), C)):
        assert iterate.lower <= high + slack
        assert iterate.primal >= low - slack
        if iterate.satisfied or k == 400:
            break
    assert iterate.satisfied
