"""The analytic-centre solver: centres, buckets and oracles against brute force; its forms; its own stop test."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from cutsvm import LinearSVC
from cutsvm._utils.timing import clock
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.solvers import ACCPM, CPA, OCAS, Sifting
from cutsvm.solvers.accpm.analytic_center import Centre, CentreSettings, lowest
from cutsvm.solvers.accpm.oracles import ORACLES
from cutsvm.solvers.bucketing.buckets import Buckets, BucketSettings
from cutsvm.solvers.bucketing.score_bounds import Plain, Whitened
from cutsvm.solvers.protocol import new_context
from tests.support.layouts import LAYOUTS
from tests.support.problems import SIFT_ANYTHING, iterates, long_data, oracle_of, some_problem
from tests.support.reference import hinge, svm
from tests.support.strategies import rng_of, seeds, some_rows

INTERCEPTS = ["none", "regularized", "free"]
KINDS = [Plain, Whitened]


def separable(n=60, d=4, seed=0):
    """Two classes with room between them."""
    rng = np.random.default_rng(seed)
    X, a = rng.normal(size=(n, d)), np.tile([1.0, -1.0], n // 2)
    X[:, 0] += 6.0 * a
    return X, a


# The centre


def potential_at(centre, A, c):
    """Gradient and Hessian of the potential where the centre is."""
    rho, s = (8.0 + len(c)) / centre.radius**2, A @ centre.x - c
    scaled = A / s[:, None]
    return s, rho * centre.x - scaled.sum(axis=0), rho * np.eye(len(centre.x)) + scaled.T @ scaled


@given(
    seed=seeds, size=st.sampled_from([1, 2, 5, 40]), cuts=st.integers(1, 70), radius=st.sampled_from([0.1, 1.0, 30.0])
)
def test_centre_is_the_minimum_of_the_potential(seed, size, cuts, radius):
    """Fewer cuts than coordinates and more; Newton's method from the centre must find next to nothing to gain."""
    rng = rng_of(seed)
    target = rng.normal(size=size)
    target *= 0.7 * radius / np.linalg.norm(target)
    stretch = 10.0 ** rng.uniform(-1, 1, size=size)
    centre, A, c = Centre(size, radius), [], []
    for _ in range(cuts):
        normal = stretch * (centre.x - target)
        A.append(-normal / np.linalg.norm(normal))
        c.append(A[-1] @ centre.x)
        assert centre.cut(normal)
        if centre.slacks.min() < 1e-9 * radius:  # rounding is seen from here on
            return
        s, gradient, hessian = potential_at(centre, np.array(A), np.array(c))
        assert_allclose(centre.slacks, s, rtol=1e-6, atol=1e-12 * radius)
        assert gradient @ np.linalg.solve(hessian, gradient) <= 0.15  # 0.1 in the metric that is within a tenth of it
        assert np.linalg.norm(centre.x) < 2.0 * radius
        assert (np.array(A) @ target >= np.array(c) - 1e-9 * radius).all()


@pytest.mark.parametrize("normal", [np.zeros(3), np.array([np.nan, 0, 0]), np.array([np.inf, 0, 0])])
def test_zero_cut_is_ignored(normal):
    centre = Centre(3, 1.0)
    assert not centre.cut(normal)
    assert not centre.x.any()


@given(seed=seeds, n=st.integers(1, 30), fresh=st.booleans())
def test_the_search_finds_the_minimum_of_a_line(seed, n, fresh):
    rng = rng_of(seed)
    slacks, q = 10.0 ** rng.uniform(-6, 3, size=n), rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3, size=n)
    if fresh:  # the new cut, through the point itself
        slacks[0], q[0] = 0.0, abs(q[0])
    tilt, curvature = 10.0 * rng.normal(), 10.0 ** rng.uniform(-3, 3)

    def value(t):
        left = slacks + t * q
        return tilt * t + 0.5 * curvature * t * t - np.log(left).sum() if (left > 0.0).all() else np.inf

    t = lowest(slacks, q, tilt, curvature, CentreSettings())
    if t is None:
        assert not fresh and tilt - (q / slacks).sum() >= 0.0
        return
    end = min([s / -v for s, v in zip(slacks, q, strict=True) if v < 0.0], default=1e3 * (t + 1.0))
    best = min(value(minimize_scalar(value, (0.1 * t, t, min(10 * t, 0.5 * (t + end)))).x), value(t))
    assert t > 0.0
    assert value(t) <= best + 1e-3


# Rows in buckets


def everything(X, a, w):
    """Loss and plane at (w, b), from all rows."""
    f = X @ w[: X.shape[1]] + (w[X.shape[1]] if len(w) > X.shape[1] else 0.0)
    return hinge.value(f, a), f


@pytest.mark.slow
@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(
    seed=seeds,
    whiten=st.booleans(),
    n=st.integers(2, 60),
    d=st.integers(1, 5),
    count=st.integers(2, 20),
    layout=st.sampled_from(["float64", "fortran", "csr", "csr_long", "strided"]),
)
def test_skipped_rows_do_not_change_the_oracle(intercept, both_sides, whiten, seed, n, d, count, layout):
    rng = rng_of(seed)
    X, a = some_problem(rng, n, d)
    oracle = oracle_of(X, a, intercept, layout)
    kept = Buckets(oracle, count=count, both_sides=both_sides, whiten=whiten)
    at = rng.normal(size=oracle.size)
    kept.dispatch(at)
    assert_array_equal(np.sort(np.concatenate([part.numbers for part in kept.parts])), np.arange(n))
    assert [p.low for p in kept.parts[1:]] >= [p.high for p in kept.parts[:-1]]
    for step in (0.0, 1e-3, 0.1, 1.0, 10.0):
        w = at + step * rng.normal(size=oracle.size)
        loss, _ = everything(X, a, w)
        sums = [kept.sums(w, limit) for limit in (0.0, 0.3 * loss, 0.9 * loss, np.inf)]
        assert sums[-1].whole
        scale = np.abs(a).sum() * (1.0 + np.abs(X).max()) * (1.0 + np.abs(w).max())
        assert sums[-1].loss == pytest.approx(loss, rel=1e-12, abs=1e-13 * scale)
        for s, limit in zip(sums, (0.0, 0.3 * loss, 0.9 * loss, np.inf), strict=True):
            assert s.loss > limit or s.whole
        # The plane touches the loss at w and is below it elsewhere, and so are those of a part of the rows.
        for s in sums:
            assert s.slope @ w + s.offset == pytest.approx(s.loss, abs=1e-12 * scale)
            other = w + rng.normal(size=oracle.size)
            assert s.slope @ other + s.offset <= everything(X, a, other)[0] + 1e-11 * scale


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_few_rows_are_read_near_the_last_dispatch(intercept):
    X, a = long_data(4000)
    oracle = oracle_of(X, a, intercept)
    at = run(OCAS(), oracle, 0.01, Stop(tol=1e-3)).w
    move = 1e-3 * np.ones(oracle.size)
    reads = {}
    for both_sides in (False, True):
        kept = Buckets(oracle, count=16, both_sides=both_sides)
        with clock() as time:
            kept.sums(at)
            assert time.counts["passes"] == 1
            kept.dispatch(at)
            assert time.counts["rows_written"] == len(a)
            kept.read = 0
            kept.sums(at + move)
        reads[both_sides] = kept.read
    inside = np.count_nonzero(hinge.losses(everything(X, a, at)[1], a))
    assert inside < reads[False] < inside + 0.1 * len(a)
    assert reads[True] < 0.1 * len(a)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(2, 40), d=st.integers(1, 6), layout=st.sampled_from(["float64", "fortran32", "csr"]))
def test_scores_stay_within_their_bounds(kind, intercept, seed, n, d, layout):
    rng = rng_of(seed)
    X = some_rows(rng, n, d) * 10.0 ** rng.integers(-3, 4, size=d) + rng.integers(-2, 3)
    X[:, rng.random(d) < 0.3] = 7.0  # features that are the same for all rows
    X = X.astype(np.float32).astype(np.float64)
    oracle = oracle_of(X, np.ones(n), intercept, layout)
    moves = kind(oracle, oracle.matrix)
    for _ in range(5):
        change = rng.normal(size=oracle.size) * 10.0 ** rng.integers(-3, 4, size=oracle.size)
        moved = np.abs(X @ change[:d] + (change[d] if oracle.size > d else 0.0))
        scale = np.abs(X).max() * np.abs(change).max()
        assert (moved <= moves.move(change) * moves.lengths * (1 + 1e-9) + 1e-9 * scale).all()


def test_whitened_bounds_are_tight_for_similar_rows():
    """A move across the rows' plane changes no score by much."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X = np.hstack([X, X[:, :1] + 1e-3 * rng.normal(size=(500, 1)) + 5.0])
    oracle = oracle_of(X, np.ones(500), "regularized")
    change = np.array([1.0, 0.0, 0.0, -1.0, 5.0])
    moved = np.abs(X @ change[:4] + 5.0)
    plain, whitened = (moves.move(change) * moves.lengths for moves in (kind(oracle, oracle.matrix) for kind in KINDS))
    assert (moved <= whitened).all()
    assert (whitened < 0.01 * plain).all()


def test_dispatch_waits_until_it_pays():
    """Far from anywhere no row can be spared; with small steps far from the last dispatch all are read in vain."""
    X, a = long_data(1000)
    cost = 4.0
    rng, when = np.random.default_rng(0), {}
    for literal in (False, True):
        settings = BucketSettings(only_if_it_pays=not literal, cost=cost)
        kept = Buckets(oracle_of(X, a), count=8, settings=settings)
        places, w = [], np.zeros(6)
        for step in range(60):
            w = 100.0 * rng.normal(size=6) if step < 30 else 1.0 + 1e-6 * rng.normal(size=6)
            before = kept.place
            kept.dispatch_if_due(w)
            if kept.place is not before:
                places.append(step)
            kept.sums(w)
        when[literal] = places
    assert when[True][:4] == [6, 13, 20, 27]  # after 2 K = 6 readings of all rows: there is none where they are sorted
    assert len(when[False]) == 2 and when[False][0] == 6 and when[False][1] > 30 + cost


def test_rows_are_dispatched_by_the_rule_of_remark_1():
    """Not before 2 K n rows were read since the last time, and never with one bucket."""
    X, a = long_data(1000)
    for count, due in ((1, np.inf), (2, 6), (16, 6)):
        kept = Buckets(oracle_of(X, a), count=count, settings=BucketSettings(only_if_it_pays=False))
        w = np.ones(6)
        with clock() as time:
            for sweeps in range(20):
                assert (time.counts["rows_written"] > 0) == (sweeps > due)
                kept.dispatch_if_due(w)
                kept.sums(w)
    assert kept.place is not None


def test_long_and_zero_rows_are_in_their_buckets():
    """A row without features and without b keeps its loss wherever w goes."""
    X, a = np.array([[0.0], [3.0], [-0.1], [0.0]]), np.array([1.0, 1.0, -1.0, 0.0])
    kept = Buckets(oracle_of(X, a, "none"), count=4, both_sides=True)
    kept.dispatch(np.array([2.0]))
    for w in ([2.0], [2.5], [-7.0]):
        assert kept.sums(np.array(w)).loss == pytest.approx(everything(X, a, np.array(w))[0])


# The oracles


@pytest.mark.parametrize("form", ["I1", "I2", "E"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(2, 40), d=st.integers(1, 5), dispatched=st.booleans(), early=st.booleans())
def test_cuts_keep_the_solution(intercept, form, dispatched, early, seed, n, d):
    rng = rng_of(seed)
    X, a = some_problem(rng, n, d)
    oracle, C = oracle_of(X, a, intercept), 10.0 ** rng.uniform(-2, 2)
    kept = Buckets(oracle, count=6, both_sides=bool(rng.integers(2)))
    cut = ORACLES[form](kept, C, early=early)
    if dispatched:
        kept.dispatch(rng.normal(size=oracle.size))
    x = rng.normal(size=oracle.size)
    loss, f = everything(X, a, x)
    point = np.append(x, rng.choice([-0.1, 0.3, 1.1]) * loss) if form == "I2" else x
    answer = cut(point)
    assert answer.risk is None or answer.risk == pytest.approx(loss, rel=1e-9, abs=1e-12)
    slacks = np.where(a == 0.0, 0.0, 1.0 - np.sign(a) * f)
    for _ in range(5):
        other = rng.normal(size=oracle.size)
        value = everything(X, a, other)[0]
        if answer.planes is not None:
            heights = answer.planes.slopes @ other + answer.planes.offsets
            assert heights.max() <= value + 1e-9 * (1.0 + value)
        if form == "I1":  # the gradient of F
            here, there = (oracle.penalty(w) + C * v for w, v in ((x, loss), (other, value)))
            assert here + answer.gradient @ (other - x) <= there + 1e-9 * (1.0 + there)
        elif form == "I2" and loss > point[-1]:  # some R_j - z, which x violates: feasible points are below
            feasible = np.append(other, value + rng.random())
            assert answer.gradient @ (feasible - point) <= 1e-9 * (1.0 + value)
    if form == "I2" and loss <= point[-1]:
        assert_allclose(answer.gradient[-1], C)
    if form == "E" and slacks.max() <= 0.0:
        assert answer.risk == 0.0 and answer.planes is None
    if form == "E" and slacks.max() > 0.0:  # a row that is inside the margin
        rows = -np.sign(a)[:, None] * np.hstack([X, np.ones((n, 1))])[:, : oracle.size]
        match = np.abs(rows - answer.gradient).max(axis=1) <= 1e-12 * (1.0 + np.abs(X).max())
        assert (match & (slacks > 0.0)).any()


def test_cut_at_z_below_zero():
    """Where nothing is lost, R - z <= 0 still says z >= 0."""
    X, a = separable()
    oracle = oracle_of(X, a, "none")
    cut = ORACLES["I2"](Buckets(oracle, count=1), 1.0, early=True)
    answer = cut(np.array([1.0, 0.0, 0.0, 0.0, -0.5]))
    assert_array_equal(answer.gradient, [0.0, 0.0, 0.0, 0.0, -1.0])


def test_early_return_reads_fewer_rows():
    X, a = long_data(20_000)
    read = {}
    for early in (False, True):
        with clock() as time:
            list(islice(iterates(ACCPM(formulation="I2", buckets=1, early_return=early), oracle_of(X, a), 10.0), 60))
        read[early] = time.counts["visits"] - time.counts["rows_read"]
    assert read[True] < 0.7 * read[False]


# The solver


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("form", ["I1", "I2", "E"])
@pytest.mark.parametrize("layout", ["float64", "csr"])
def test_all_formulations_have_the_same_solution(form, intercept, layout):
    """On rows that can be separated, with a C that asks for it, (E) is the problem too."""
    X, a = separable()
    low, high = svm.optimum(X, a, 10.0, intercept)
    for early in (True, False):
        solver = ACCPM(formulation=form, early_return=early)
        result = run(solver, oracle_of(X, a, intercept, layout), 10.0, Stop(tol=1e-6))
        assert result.status is Status.CONVERGED
        assert result.primal <= high * (1 + 1e-5)
        assert low * (1 - 1e-5) <= result.lower <= high * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("form", ["I1", "I2"])
@pytest.mark.parametrize("kind", ["weights", "unbalanced", "sorted", "huge C", "tiny C"])
def test_all_kinds_of_data(kind, form, intercept):
    X, a = long_data(300, 4, positives=0.03 if kind == "unbalanced" else 0.4)
    C = {"huge C": 1e4, "tiny C": 1e-5}.get(kind, 0.1)
    if kind == "weights":
        a = a * np.random.default_rng(1).choice([0.0, 0.2, 1.0, 7.0], size=len(a))
    if kind == "sorted":
        X, a = X[np.argsort(a)], np.sort(a)
    low, high = svm.optimum(X, a, C, intercept)
    result = run(ACCPM(formulation=form, both_sides=True), oracle_of(X, a, intercept), C, Stop(tol=1e-5))
    assert result.status is Status.CONVERGED
    assert result.primal <= high * (1 + 2e-5)
    assert low * (1 - 2e-5) <= result.lower <= high * (1 + 1e-9)


@pytest.mark.parametrize("form", ["I1", "I2"])
def test_fewer_cuts_than_features(form):
    """Woodbury's formula all along."""
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(200, 150)), np.tile([1.0, -1.0], 100)
    X[:, 0] += a
    result = run(ACCPM(formulation=form), oracle_of(X, a, "regularized"), 1e-3, Stop(tol=1e-2))
    assert result.status is Status.CONVERGED
    assert result.primal <= svm.optimum(X, a, 1e-3, "regularized")[1] * 1.02


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_classes_that_overlap_cannot_be_separated(C, intercept):
    X, a = long_data(500, 3)
    with pytest.raises(ValueError, match=r'The classes overlap, or C=.* use formulation="I1" or "I2"'):
        run(ACCPM(formulation="E"), oracle_of(X, a, intercept), C, Stop(tol=1e-6))


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_one_inseparable_row(intercept):
    X, a = separable(400)
    X, a = np.vstack([X, X[7]]), np.append(a, -a[7])
    with pytest.raises(ValueError, match="no plane that separates the classes is a solution"):
        run(ACCPM(formulation="E"), oracle_of(X, a, intercept), 100.0, Stop(tol=1e-6))


def test_small_C_skips_separation():
    X, a = separable()
    with pytest.raises(ValueError, match=r"C=0\.0001 is too small"):
        run(ACCPM(formulation="E"), oracle_of(X, a, "regularized"), 1e-4, Stop(tol=1e-6))


def test_separation_starts_without_planes():
    X, a = separable()
    oracle, bundle = oracle_of(X, a), None
    with pytest.raises(ValueError, match="begins without planes"):
        bundle = _filled(oracle)
        next(iterates(ACCPM(formulation="E"), oracle, 1.0, bundle=bundle))


def _filled(oracle):
    """A bundle with the plane at 0."""
    from cutsvm.solvers.cutting_planes import begin

    context = new_context(OCAS(shards=1), oracle, [1.0])
    begin(context)
    return context.bundle


@pytest.mark.slow
@pytest.mark.parametrize("form", ["I1", "I2"])
def test_threads_do_not_change_a_bit(form, overlapping):
    X, y = overlapping
    results = []
    for threads in (1, 2, 3):
        oracle = oracle_of(np.vstack([X] * 4), np.tile(y, 4).astype(float), "free", threads=threads)
        results.append(run(ACCPM(formulation=form, both_sides=True), oracle, 0.01, Stop(tol=1e-3)))
    for other in results[1:]:
        assert_array_equal(results[0].w, other.w)
        assert [r["lower"] for r in results[0].history] == [r["lower"] for r in other.history]


@pytest.mark.parametrize("one_radius", [False, True])
@pytest.mark.parametrize("form", ["I1", "I2", "E"])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_the_papers_stop_test_ends_runs(form, one_radius, scale):
    """The mean distance from the cuts in units of R: exp(-12) is where the paper stops, however features are scaled."""
    X, a = separable(200) if form == "E" else long_data(400, 4)
    oracle, C = oracle_of(scale * X, a, "free"), (100.0 if form == "E" else 0.1) / scale**2
    paper = ACCPM(formulation=form, epsilon=np.exp(-12.0), one_radius=one_radius)
    result = run(paper, oracle, C, Stop(tol=1e-15, max_iter=3000))
    assert result.status is Status.EPSILON
    assert result.status.converged
    assert result.gap < 1e-3
    loose = run(replace(paper, epsilon=1e-2), oracle, C, Stop(tol=1e-12))
    assert loose.status is Status.EPSILON
    assert loose.n_iter < result.n_iter


def test_history_counts_rows_read_and_written(overlapping):
    X, y = overlapping
    model = LinearSVC(0.01, solver="accpm", tol=1e-4).fit(X, y)
    last = model.history_[-1]
    assert last["rows_written"] >= len(y)
    assert last["rows_written"] % len(y) == 0
    assert last["visits"] - last["rows_read"] < last["iteration"] * len(y)  # some were skipped
    assert last["seconds_centre"] > 0.0
    plain = LinearSVC(0.01, solver=ACCPM(buckets=1), tol=1e-4).fit(X, y).history_[-1]
    assert plain["rows_written"] == 0
    assert plain["passes"] >= plain["iteration"]
    assert model.objective_ == pytest.approx(LinearSVC(0.01, tol=1e-4).fit(X, y).objective_, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("form", ["I1", "I2"])
def test_buckets_do_not_change_the_answer(form, intercept, overlapping):
    """Without them and with them the cuts are the same but for rounding (I1), and so is the objective."""
    X, y = overlapping
    found = []
    for more in ({"buckets": 1}, {}, {"both_sides": True}, {"both_sides": True, "whiten": True}):
        solver = ACCPM(formulation=form, **more)
        found.append(run(solver, oracle_of(X, y.astype(float), intercept), 0.01, Stop(tol=1e-5)))
    assert_allclose([result.primal for result in found], found[0].primal, rtol=1e-5)
    if form == "I1":
        assert max(result.n_iter for result in found) <= 1.1 * min(result.n_iter for result in found)


@pytest.mark.parametrize("form", ["I1", "I2"])
def test_a_start_near_the_solution_is_kept(form, overlapping):
    X, y = overlapping
    oracle = oracle_of(X, y.astype(float), "free")
    best = run(OCAS(), oracle, 0.01, Stop(tol=1e-6))
    for iterate in islice(iterates(ACCPM(formulation=form), oracle, 0.01, start=best.w), 50):
        assert iterate.primal <= best.primal * (1 + 1e-12)
        assert iterate.lower <= best.primal
    assert iterate.gap < 0.02


def test_zero_gap_ends_the_solver():
    X, a = separable(20, 2)
    result = run(ACCPM(), oracle_of(X, a, "none"), 1.0, Stop(tol=1e-300))
    assert result.status is Status.PRECISION
    assert result.gap < 1e-9


def test_inside_sifting():
    X, a = long_data(3000)
    result = run(Sifting(inner=ACCPM(buckets=1), settings=SIFT_ANYTHING), oracle_of(X, a, "free"), 0.01, Stop(tol=1e-3))
    assert result.status is Status.CONVERGED
    assert result.primal == pytest.approx(run(OCAS(), oracle_of(X, a, "free"), 0.01, Stop(tol=1e-4)).primal, rel=2e-3)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"formulation": "I3"}, "formulation='I3': expected one of 'I1', 'I2', 'E'"),
        ({"buckets": 0}, "buckets=0"),
        ({"buckets": 1.5}, "buckets=1.5"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
    ],
)
def test_bad_settings_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        ACCPM(**bad)


def test_multiclass_losses_raise():
    from tests.support.problems import many_classes, multiclass_oracle_of

    with pytest.raises(TypeError, match="a hinge loss expected"):
        next(iterates(ACCPM(), multiclass_oracle_of(*many_classes(50)), 1.0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout):
    X, a = long_data(500, 3)
    X = np.round(X * 4) / 4  # the same in float32
    result = run(ACCPM(), oracle_of(X, a, "free", layout), 0.01, Stop(tol=1e-3))
    assert result.primal == pytest.approx(run(CPA(), oracle_of(X, a, "free"), 0.01, Stop(tol=1e-4)).primal, rel=2e-3)
