"""lower <= min F <= primal at every iterate: every solver, layout, intercept, number of shards."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import ACCPM, CPA, DCD, OCAS, Auto, Sifting
from cutsvm.solvers.line_batches import Batched
from tests.support.layouts import LAYOUTS
from tests.support.problems import SIFT_ANYTHING, from_disk, iterates, some_problem
from tests.support.reference import svm
from tests.support.strategies import rng_of, seeds

# By shards, or by what else makes one run differ from another.
SIFTING = {"sample": 0.3, "band": 0.2, "settings": SIFT_ANYTHING}
SOLVERS = {
    "ocas": lambda shards: OCAS(shards=shards),
    "ocas, cuts at the best point": lambda shards: OCAS(shards=shards, cut_at=0.0),
    "ocas, unguarded": lambda shards: OCAS(shards=shards, guard="none"),
    "ocas, gca": lambda shards: OCAS(shards=shards, line_search="gca"),
    "ocas, gca2": lambda shards: OCAS(shards=shards, line_search="gca2"),
    "ocas, tca": lambda shards: OCAS(shards=shards, line_search="tca"),
    "ocas, exact": lambda shards: OCAS(exact=True),
    "ocas, epsilon": lambda shards: OCAS(shards=shards, epsilon=1e-12),
    "cpa": lambda shards: CPA(shards=shards),
    "cpa, exact": lambda shards: CPA(exact=True, epsilon=1e-12),
    "dcd": lambda shards: DCD(seed=shards),
    "dcd, asynchronous": lambda shards: DCD(seed=shards, asynchronous=True),
    "sifting": lambda shards: Sifting(inner=OCAS(shards=shards), **SIFTING),
    "sifting, streamed": lambda shards: Streaming(Sifting(inner=OCAS(shards=shards), **SIFTING), None),
    "sifting, little room": lambda shards: Streaming(
        Sifting(inner=OCAS(shards=shards), settings=SIFT_ANYTHING), 4 + shards % 16
    ),
    "sifting, dcd": lambda shards: Sifting(inner=DCD(seed=shards), **SIFTING),
    "batched": lambda shards: Batched(shards=shards),
    "auto": lambda shards: Auto(),
    # Every mix of its settings: it takes many steps, and one run for each would take minutes.
    "accpm": lambda shards: ACCPM(
        formulation="I2" if shards % 2 else "I1", buckets=shards, both_sides=shards % 4 < 2, whiten=shards % 3 == 1
    ),
}


@dataclass
class Streaming:
    """The solver, without memory for numbers of all rows."""

    solver: Sifting
    room: int | None

    def order_path(self, oracle, Cs):
        return self.solver.order_path(from_disk(oracle, self.room), Cs)

    def presolve(self, context):
        return self.solver.presolve(context)

    def __call__(self, context, C):
        return self.solver(context, C)


INTERCEPTS = [i.value for i in Intercept]


def largest(X, a):
    """The largest s_i |x_i|^2, b's 1 included."""
    return float((np.abs(a) * (1.0 + np.square(X).sum(axis=1))).max())


def oracle_of(X, a, intercept, layout="float64", threads=1):
    return Oracle(
        as_rows(LAYOUTS[layout](X), threads), Hinge(a, threads), intercept=Intercept(intercept), threads=threads
    )


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@given(
    seed=seeds,
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    shards=st.integers(1, 64),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0, 1e4]),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided", "csr_long"]),
)
def test_bounds_hold_at_every_iterate(name, intercept, seed, n, d, shards, C, layout):
    X, a = some_problem(rng_of(seed), n, d)
    low, high = svm.optimum(X, a, C, intercept)
    round_off = 1e-9 * high + 1e-14 * C * np.abs(a).sum()
    previous = np.inf
    long = "accpm" in name or (name.startswith("sifting") and "dcd" not in name)
    steps = 300 if long or name == "batched" else 60  # centres move slowly; a sample takes steps too
    for iterate in islice(iterates(SOLVERS[name](shards), oracle_of(X, a, intercept, layout), C), steps):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        w, b = iterate.w[:d], iterate.w[d] if len(iterate.w) > d else 0.0
        assert iterate.primal == pytest.approx(svm.objective(X, a, C, intercept, w, b), rel=1e-9, abs=round_off)
        assert iterate.primal <= previous + round_off or name == "cpa, exact"  # the point of each iteration, as it is
        previous = min(previous, iterate.primal)
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break
    else:
        # Coordinate descent takes more epochs the larger C |x|^2 is.
        slow = "dcd" in name and C * largest(X, a) > 1.0
        assert previous - iterate.lower <= 0.3 * previous or slow


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@given(seed=seeds, n=st.integers(2, 60), d=st.integers(1, 8), shards=st.sampled_from([1, 2, 7, 64]))
def test_reaches_the_optimum(name, intercept, seed, n, d, shards):
    X, a = some_problem(rng_of(seed), n, d)
    C = 1.0 / largest(X, a) if "dcd" in name else 1.0
    low, high = svm.optimum(X, a, C, intercept)
    # Multipliers find a free b slowly, and slower still for the few rows that sifting keeps of few.
    tol = 1e-2 if name == "sifting, dcd" and intercept == "free" else 1e-5
    result = run(SOLVERS[name](shards), oracle_of(X, a, intercept), C, Stop(tol=tol, max_iter=3000))
    assert result.status is Status.CONVERGED
    assert result.primal <= high * (1 + 2 * tol) + 1e-9
    assert result.lower >= low * (1 - 2 * tol) - 1e-9


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shards", [1, 3, 40])
def test_threads_do_not_change_a_bit(intercept, shards, overlapping):
    X, y = overlapping
    X = np.vstack([X] * 4)  # several blocks
    results = []
    for threads in (1, 2, 3):
        oracle = oracle_of(X, np.tile(y, 4).astype(float), intercept, threads=threads)
        results.append(run(OCAS(shards=shards), oracle, 0.01, Stop(tol=1e-4)))
    for other in results[1:]:
        assert np.array_equal(results[0].w, other.w)
        assert [r["lower"] for r in results[0].history] == [r["lower"] for r in other.history]


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shards", [1, 8])
@pytest.mark.parametrize("C", [1e2, 1e6, 1e9])
def test_bound_survives_round_off(C, shards, intercept):
    """Distant classes and a huge C: slopes are small differences of large sums."""
    rng = np.random.default_rng(0)
    a = rng.choice([-1.0, 1.0], size=3000)
    X = rng.normal(size=(3000, 20))
    X[:, 0] += 3 * a
    X[:, 1] += 2 * a
    wide = X.astype(np.longdouble)
    for iterate in islice(iterates(OCAS(shards=shards), oracle_of(X, a, intercept), C), 150):
        w = iterate.w.astype(np.longdouble)
        loss = np.maximum(0, 1 - a * (wide @ w[:20] + (w[20] if len(w) > 20 else 0))).sum()
        exact = 0.5 * np.sum(w[: 20 if intercept == "free" else 21] ** 2) + C * loss
        assert iterate.lower <= exact * (1 + 1e-13)
        if iterate.primal - iterate.lower <= 1e-12 * iterate.primal:
            break
    if C < 1e9:
        assert iterate.primal - iterate.lower <= 1e-3 * iterate.primal


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_rows_sorted_by_label(sort, intercept, overlapping):
    """Shards may hold one class only."""
    X, y = overlapping
    order = np.argsort(y, kind="stable") if sort else np.arange(len(y))
    result = run(OCAS(shards=16), oracle_of(X[order], y[order].astype(float), intercept), 1.0, Stop(tol=1e-5))
    assert result.status is Status.CONVERGED
    assert result.n_iter < 60


def test_epsilon_is_the_papers(overlapping):
    """R(w) <= xi + epsilon, as means over the rows."""
    X, y = overlapping
    C = 100.0 / len(y)
    last = None
    for last in iterates(CPA(epsilon=0.001, shards=1), oracle_of(X, y.astype(float), "none"), C):
        if last.satisfied:
            break
    assert last.primal - last.lower <= C * len(y) * (0.001 + 1e-3)
    loose = run(CPA(epsilon=0.1, shards=1), oracle_of(X, y.astype(float), "none"), C, Stop(tol=1e-9))
    assert loose.status is Status.EPSILON
    assert loose.status.converged


def test_bundle_is_valid_for_another_C(overlapping):
    """Planes do not depend on C: bounds from a bundle made at another C hold, and need fewer passes."""
    X, y = overlapping
    oracle = oracle_of(X, y.astype(float), "regularized")
    bundle = oracle.new_bundle(0.02)
    for iterate in iterates(OCAS(shards=1), oracle, 0.01, bundle=bundle):
        if iterate.primal - iterate.lower < 1e-4 * iterate.primal:
            break
    fresh = run(OCAS(shards=1), oracle_of(X, y.astype(float), "regularized"), 0.02, Stop(tol=1e-4))
    count = -1  # as n_iter counts: the start is no iteration
    for iterate in iterates(OCAS(shards=1), oracle, 0.02, bundle=bundle):
        count += 1
        assert iterate.lower <= fresh.primal
        if iterate.primal - iterate.lower < 1e-4 * iterate.primal:
            break
    assert count <= fresh.n_iter
