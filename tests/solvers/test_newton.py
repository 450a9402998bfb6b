"""Newton's method, and every other solver that takes smooth losses: lower <= min F <= primal at every iterate."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import Fit, fit_path, run
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Multinomial
from cutsvm.problem.losses.smooth import Huber, Logistic, SquaredHinge, SquaredTube
from cutsvm.problem.multiclass import MultinomialOracle
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import CPA, DCD, OCAS, Auto, Newton
from cutsvm.solvers.newton import NewtonSettings
from tests.support.layouts import LAYOUTS
from tests.support.problems import from_disk, iterates, many_classes, some_problem
from tests.support.reference import smooth
from tests.support.strategies import examples, rng_of, seeds

SAMPLED = NewtonSettings(few_rows=0, sample=3, share=0.9)
SOLVERS = {
    "newton": lambda seed: Newton(),
    "newton, of a sample": lambda seed: Newton(seed=seed, settings=SAMPLED),
    "newton, conjugate gradients": lambda seed: Newton(
        seed=seed, settings=NewtonSettings(dense_features=0, sparse_features=0)
    ),
    "ocas": lambda seed: OCAS(shards=1 + seed % 7),
    "cpa": lambda seed: CPA(shards=1 + seed % 7),
    "dcd": lambda seed: DCD(seed=seed),
    "auto": lambda seed: Auto(),
}
JOINT = [name for name in SOLVERS if name != "dcd"]
INTERCEPTS = [i.value for i in Intercept]


def random_loss(name, rng, X, a):
    """The loss of rows with labels and weights a, or of targets made from them; y, s and epsilon for the twin."""
    y, s = np.copysign(1.0, a), np.abs(a)
    if name in ("squared_hinge", "logistic"):
        return {"squared_hinge": SquaredHinge, "logistic": Logistic}[name], (a,), (y, s, 0.0)
    t = X @ rng.normal(size=X.shape[1]) + rng.choice([0.0, 1.0, 100.0]) * rng.normal(size=len(X)) + rng.normal()
    epsilon = float(rng.choice([0.01, 0.5, 3.0]))
    return {"squared_tube": SquaredTube, "huber": Huber}[name], (t, s, epsilon), (t, s, epsilon)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", smooth.LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
@examples(12)
@given(
    seed=seeds,
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0, 1e4]),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided", "csr_long"]),
)
def test_bounds_hold_at_every_iterate(solver, name, intercept, seed, n, d, C, layout):
    rng = rng_of(seed)
    X, a = some_problem(rng, n, d)
    kind, arguments, (y, s, epsilon) = random_loss(name, rng, X, a)
    best = smooth.optimum(name, X, y, s, C, intercept, epsilon)
    oracle = Oracle(as_rows(LAYOUTS[layout](X)), kind(*arguments), intercept=Intercept(intercept))
    round_off = 1e-9 * best + 1e-13 * C * oracle.loss.total
    previous = np.inf
    for iterate in islice(iterates(SOLVERS[solver](seed), oracle, C, tol=1e-8), 60):
        assert iterate.lower <= best + round_off
        assert iterate.primal >= best - 1e-7 * best - round_off  # SciPy's answer is from above
        exact = smooth.objective(name, X, y, s, C, intercept, iterate.w, epsilon)[0]
        assert iterate.primal == pytest.approx(exact, rel=1e-9, abs=round_off)
        assert iterate.primal <= previous * (1.0 + 1e-8) + round_off  # a point within tol is taken as it is
        previous = min(previous, iterate.primal)
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break
    else:
        assert not solver.startswith("newton") or previous - best <= 1e-6 * best + round_off


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", smooth.LOSSES)
@examples(12)
@given(seed=seeds, n=st.integers(2, 60), d=st.integers(1, 8), C=st.sampled_from([0.01, 1.0, 1e3]))
def test_newton_reaches_the_optimum(name, intercept, seed, n, d, C):
    rng = rng_of(seed)
    X, a = some_problem(rng, n, d)
    kind, arguments, (y, s, epsilon) = random_loss(name, rng, X, a)
    best = smooth.optimum(name, X, y, s, C, intercept, epsilon)
    result = run(Newton(), Oracle(as_rows(X), kind(*arguments), intercept=Intercept(intercept)), C, Stop(tol=1e-6))
    assert result.status is Status.CONVERGED
    assert result.primal <= best * (1 + 2e-6) + 1e-9
    assert result.lower >= best * (1 - 2e-6) - 1e-9


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", JOINT)
@examples(6)
@given(
    seed=seeds, n=st.integers(6, 40), d=st.integers(1, 4), K=st.integers(3, 5), C=st.sampled_from([0.01, 1.0, 100.0])
)
def test_bounds_of_the_multinomial_loss(solver, intercept, seed, n, d, K, C):
    rng = rng_of(seed)
    X, y = many_classes(n, d, K, seed)
    s = rng.choice([0.5, 1.0, 3.0], size=n)
    best = smooth.multinomial_optimum(X, y, s, C, K, intercept)
    oracle = MultinomialOracle(as_rows(X), Multinomial(y, s, K), intercept=Intercept(intercept))
    for iterate in islice(iterates(SOLVERS[solver](seed), oracle, C, tol=1e-6), 60):
        assert iterate.lower <= best * (1 + 1e-8)
        assert iterate.primal >= best * (1 - 1e-6)
        W, b = oracle.parts(iterate.w)
        penalty = 0.5 * (W**2).sum() + (0.5 * b @ b if intercept == "regularized" else 0.0)
        assert iterate.primal == pytest.approx(penalty + C * smooth.multinomial(X @ W.T + b, y, s)[0], rel=1e-9)
        if iterate.gap <= 1e-6:
            break
    else:
        assert not solver.startswith("newton")


def overlapping(n=50_000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d)
    return X, np.where(f + rng.normal(size=n) > 0.3, 1.0, -1.0), f + rng.normal(size=n)


def losses_of(y, t, threads=1):
    s = np.ones(len(t))
    return {
        "squared_hinge": SquaredHinge(y, threads),
        "logistic": Logistic(y, threads),
        "squared_tube": SquaredTube(t, s, 0.1, threads),
        "huber": Huber(t, s, 0.5, threads),
    }


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", smooth.LOSSES)
def test_threads_do_not_change_a_bit(name, intercept):
    X, y, t = overlapping(30_000)
    results = []
    for threads in (1, 2, 3):
        loss = losses_of(y, t, threads)[name]
        oracle = Oracle(as_rows(X, threads), loss, intercept=Intercept(intercept), threads=threads)
        results.append(run(Newton(), oracle, 0.1, Stop(tol=1e-6)))
    for other in results[1:]:
        assert np.array_equal(results[0].w, other.w)
        assert [r["lower"] for r in results[0].history] == [r["lower"] for r in other.history]


@pytest.mark.parametrize("name", smooth.LOSSES)
def test_a_sample_saves_passes(name):
    """Second derivatives of a sample are enough for most of the way: the rows are read few times."""
    X, y, t = overlapping()
    oracle = Oracle(as_rows(X), losses_of(y, t)[name], intercept=Intercept.FREE)
    result = run(Newton(), oracle, 1.0, Stop(tol=1e-4))
    assert result.status is Status.CONVERGED
    assert result.history[-1]["passes"] <= 12
    whole = run(Newton(settings=NewtonSettings(few_rows=10**6)), oracle, 1.0, Stop(tol=1e-8))
    assert result.lower <= whole.primal <= result.primal * (1 + 1e-8)


@pytest.mark.parametrize("room", [None, 200])
@pytest.mark.parametrize("name", smooth.LOSSES)
def test_little_room_for_rows(name, room):
    """The sample is as large as there is room for; the answer is as good."""
    X, y, t = overlapping()
    oracle = from_disk(Oracle(as_rows(X), losses_of(y, t)[name], intercept=Intercept.FREE), room)
    result = run(Newton(), oracle, 0.01, Stop(tol=1e-5))
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("solver", ["newton", "newton, conjugate gradients", "dcd"])
@pytest.mark.parametrize("name", smooth.LOSSES)
def test_path(name, solver):
    """Every C of a path has its bounds, and the optimum between them."""
    X, y, t = overlapping(400)
    Cs = [1e-3, 0.1, 1.0, 0.01]
    loss = losses_of(y, t)[name]
    found, _ = fit_path(SOLVERS[solver](0), Oracle(as_rows(X), loss), Cs, Fit(Stop(tol=1e-4)))
    labels, epsilon = (y, 0.0) if name in ("squared_hinge", "logistic") else (t, loss.epsilon)
    for C, result in zip(Cs, found, strict=True):
        best = smooth.optimum(name, X, labels, np.ones(400), C, "none", epsilon)
        assert result.status is Status.CONVERGED
        assert result.lower <= best * (1 + 1e-9)
        assert best * (1 - 1e-9) <= result.primal <= best * (1 + 2e-4)


def test_a_misleading_sample_does_no_harm():
    """All the weight is on rows that a sample misses."""
    X, y, _ = overlapping(30_000)
    s = np.full(len(y), 1e-9)
    s[::10_000] = 1.0
    oracle = Oracle(as_rows(X), SquaredHinge(y * s), intercept=Intercept.FREE)
    result = run(Newton(), oracle, 1.0, Stop(tol=1e-5, max_iter=500))
    assert result.status is Status.CONVERGED


def test_rows_of_zeros_and_of_one_side():
    """Nothing to learn: w = 0, and the best b."""
    X = np.zeros((50, 3))
    for loss in (SquaredHinge(np.where(np.arange(50) < 20, 1.0, -1.0)), Huber(np.arange(50.0), np.ones(50), 1.0)):
        for intercept in Intercept:
            result = run(Newton(), Oracle(as_rows(X), loss, intercept=intercept), 1.0, Stop(tol=1e-6))
            assert result.status is Status.CONVERGED
            assert not result.w[:3].any()


def test_settings_are_kept_with_another_seed():
    solver = Newton(settings=SAMPLED).seeded(7)
    assert solver.seed == 7 and solver.settings is SAMPLED
    assert replace(solver, seed=0) == Newton(settings=SAMPLED)
