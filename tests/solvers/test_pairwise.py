"""Solvers on the pairwise loss: bounds at every iterate, the optimum of explicit pairs, shards and threads."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.matrix import as_rows
from cutsvm.problem.certificate import gamma
from cutsvm.problem.losses import Pairwise, SquaredPairwise
from cutsvm.problem.pairs import PairOracle
from cutsvm.solvers import CPA, OCAS, Auto, Newton, Sifting
from tests.support.layouts import LAYOUTS
from tests.support.problems import iterates
from tests.support.reference import pairwise
from tests.support.strategies import rng_of, seeds

SOLVERS = {
    "ocas": lambda shards: OCAS(shards=shards),
    "ocas, cuts at the best point": lambda shards: OCAS(shards=shards, cut_at=0.0),
    "ocas, gca": lambda shards: OCAS(shards=shards, line_search="gca"),
    "ocas, gca2": lambda shards: OCAS(shards=shards, line_search="gca2"),
    "ocas, tca": lambda shards: OCAS(shards=shards, line_search="tca"),
    "ocas, exact": lambda shards: OCAS(exact=True),
    "cpa": lambda shards: CPA(shards=shards),
    "cpa, exact": lambda shards: CPA(exact=True, epsilon=1e-12),
    "sifting, which steps aside": lambda shards: Sifting(inner=OCAS(shards=shards)),
    "auto": lambda shards: Auto(),
}
SMOOTH_SOLVERS = {
    "newton": lambda shards: Newton(),
    **{name: SOLVERS[name] for name in ("ocas", "ocas, cuts at the best point", "ocas, gca", "cpa", "auto")},
}


def some_problem(rng, n, d, levels, n_queries):
    """Rows of several queries, ties and weights of 0 among them, with one pair at least."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.3:
        X = np.round(X)
    y = X @ rng.normal(size=d) + rng.choice([0.0, 1.0]) * rng.normal(size=n)
    y = np.argsort(np.argsort(y)) * levels // n
    starts = np.concatenate([[0], np.sort(rng.integers(2, n + 1, size=n_queries - 1)), [n]]).astype(np.int64)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 3.7], size=n) if rng.random() < 0.5 else np.ones(n)
    y[0], y[1], weights[:2] = y.min(), y.min() + 1, 1.0
    return X, y, weights, starts


def oracle_of(X, y, s, starts, layout="float64", threads=1, loss=Pairwise):
    return PairOracle(as_rows(LAYOUTS[layout](X), threads), loss(y, s, starts, threads), threads=threads)


problems = {
    "seed": seeds,
    "n": st.integers(2, 12),
    "d": st.integers(1, 5),
    "levels": st.integers(2, 12),
    "n_queries": st.integers(1, 4),
}


@pytest.mark.parametrize("name", SOLVERS)
@given(
    **problems,
    shards=st.integers(1, 5),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0, 1e4]),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided", "csr_long"]),
)
def test_bounds_hold_at_every_iterate(name, seed, n, d, levels, n_queries, shards, C, layout):
    X, y, s, starts = some_problem(rng_of(seed), n, d, levels, n_queries)
    low, high = pairwise.optimum(X, y, s, starts, C)
    oracle = oracle_of(X, y, s, starts, layout)
    round_off = 1e-9 * high + 2e-12 * C * oracle.loss.total  # pairs that close to the margin do not count
    previous = np.inf
    for iterate in islice(iterates(SOLVERS[name](shards), oracle, C), 60):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        loss = pairwise.evaluate(X @ iterate.w, y, s, starts)[2].sum()
        objective = 0.5 * iterate.w @ iterate.w + C * loss
        assert iterate.primal == pytest.approx(objective, rel=1e-8, abs=round_off)
        assert iterate.primal <= previous + round_off or name == "cpa, exact"
        previous = min(previous, iterate.primal)
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break
    else:
        assert previous - iterate.lower <= 0.3 * previous


@pytest.mark.parametrize("name", SOLVERS)
@given(**problems, shards=st.integers(1, 4))
def test_reaches_the_optimum_of_explicit_pairs(name, seed, n, d, levels, n_queries, shards):
    X, y, s, starts = some_problem(rng_of(seed), n, d, levels, n_queries)
    low, high = pairwise.optimum(X, y, s, starts, 1.0)
    result = run(SOLVERS[name](shards), oracle_of(X, y, s, starts), 1.0, Stop(tol=1e-5, max_iter=3000))
    assert result.status is Status.CONVERGED
    assert result.primal <= high * (1 + 2e-5) + 1e-9
    assert result.lower >= low * (1 - 2e-5) - 1e-9


@pytest.mark.parametrize("name", SMOOTH_SOLVERS)
@given(
    **problems,
    shards=st.integers(1, 5),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0, 1e4]),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided", "csr_long"]),
    weight=st.sampled_from([1.0, 1.0, 1e-100, 1e100]),
)
def test_bounds_of_squares_hold_at_every_iterate(name, seed, n, d, levels, n_queries, shards, C, layout, weight):
    X, y, s, starts = some_problem(rng_of(seed), n, d, levels, n_queries)
    best = pairwise.squared_optimum(X, y, s, starts, C)
    oracle = oracle_of(X, y, weight * s, starts, layout, loss=SquaredPairwise)
    cost = C * Pairwise(y, s, starts).total / oracle.loss.total  # the same problem in other units
    round_off, previous = 1e-9 * best + 1e-14 * C, np.inf
    for iterate in islice(iterates(SMOOTH_SOLVERS[name](shards), oracle, cost), 60):
        assert iterate.lower <= best + round_off
        w = iterate.w
        sums = pairwise.squares(X @ w, y, s, starts)[1]
        rounded = round_off + C * gamma(3 * n + 64) * sums[:, 4].sum()  # a loss is a difference of sums of scores
        assert iterate.primal >= best - rounded
        assert iterate.primal == pytest.approx(0.5 * w @ w + C * sums[:, 1].sum(), rel=1e-9, abs=rounded)
        assert iterate.primal <= previous + round_off
        previous = iterate.primal
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break
    else:
        # Rows in order at a large C: the loss is below the rounding errors of what it is a sum of.
        assert name != "newton" or previous - iterate.lower <= 1e-3 * previous


@given(**problems, C=st.sampled_from([1e-2, 1.0, 10.0]))
def test_newton_reaches_the_optimum_of_squares(seed, n, d, levels, n_queries, C):
    X, y, s, starts = some_problem(rng_of(seed), n, d, levels, n_queries)
    best = pairwise.squared_optimum(X, y, s, starts, C)
    result = run(Newton(), oracle_of(X, y, s, starts, loss=SquaredPairwise), C, Stop(tol=1e-6, max_iter=200))
    assert result.status is Status.CONVERGED
    assert result.primal == pytest.approx(best, rel=2e-6)
    assert result.lower <= best * (1 + 1e-9)


@pytest.mark.parametrize("C", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("name", ["newton", "ocas"])
def test_bound_of_squares_survives_round_off(name, C):
    """Rows that are nearly in order at a large C: losses are small differences of large sums."""
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(400, 5)), 400
    y = np.digitize(X @ rng.normal(size=5), [-1.0, 0.0, 1.0])
    starts = np.array([0, 150, n])
    oracle = oracle_of(X, y, np.ones(n), starts, loss=SquaredPairwise)
    cost, wide = C / oracle.loss.total, X.astype(np.longdouble)
    counts = (y[:, None] > y) & ((np.arange(n) < 150)[:, None] == (np.arange(n) < 150))
    lowest, highest = np.inf, 0.0
    for iterate in islice(iterates(SMOOTH_SOLVERS[name](1), oracle, cost), 60):
        f = wide @ iterate.w.astype(np.longdouble)
        short = np.maximum(0, 1 - (f[:, None] - f))[counts]
        exact = 0.5 * np.sum(iterate.w.astype(np.longdouble) ** 2) + cost * np.sum(short * short)
        lowest, highest = min(lowest, exact), max(highest, iterate.lower)
        if iterate.primal - iterate.lower <= 1e-9 * iterate.primal:
            break
    assert highest <= lowest
    assert iterate.primal - iterate.lower <= (1e-4 if name == "newton" else 0.5) * iterate.primal


def test_newton_takes_whole_queries_of_long_data():
    """No sample of rows, which would not make the pairs of all."""
    rng, n = np.random.default_rng(0), 25_000
    X = rng.normal(size=(n, 4))
    y, starts = np.digitize(X @ rng.normal(size=4) + rng.normal(size=n), [0.0]), np.arange(0, n + 1, 50)
    oracle = oracle_of(X, y, np.ones(n), starts, loss=SquaredPairwise)
    result = run(Auto(), oracle, 10.0 / oracle.loss.total, Stop(tol=1e-6))
    assert result.status is Status.CONVERGED and result.n_iter <= 10
    assert "newton" in Auto().choose(oracle, 1.0)[1]


@pytest.mark.parametrize("n_queries", [1, 40])
def test_threads_do_not_change_a_bit_of_squares(n_queries):
    rng, n = np.random.default_rng(1), 12_000
    X = rng.normal(size=(n, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=n)
    starts, results = np.linspace(0, n, n_queries + 1).astype(np.int64), []
    for threads in (1, 2, 3):
        oracle = oracle_of(X, y, np.ones(n), starts, threads=threads, loss=SquaredPairwise)
        results.append(run(Newton(), oracle, 10.0 / oracle.loss.total, Stop(tol=1e-5)))
    for other in results[1:]:
        assert np.array_equal(results[0].w, other.w)
        assert [r["lower"] for r in results[0].history] == [r["lower"] for r in other.history]


def test_the_papers_stopping_rule():
    """No constraint is violated by more than epsilon, in units of the mean over the pairs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = np.digitize(X @ rng.normal(size=5) + rng.normal(size=300), [-1.0, 0.0, 1.0])
    oracle = oracle_of(X, y, np.ones(300), np.array([0, 300]))
    C = 100.0 / oracle.loss.total
    loose = run(CPA(epsilon=0.01, shards=1), oracle, C, Stop(tol=1e-12))
    tight = run(CPA(epsilon=1e-4, shards=1), oracle, C, Stop(tol=1e-12))
    assert loose.status is tight.status is Status.EPSILON
    assert loose.n_iter < tight.n_iter
    assert tight.primal - tight.lower <= 100.0 * 1e-4 * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_queries", "shards"), [(140_000, 1, 1), (12_000, 1, 8), (12_000, 40, 1), (12_000, 40, 8)]
)
def test_threads_do_not_change_a_bit(n, n_queries, shards):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=n)
    starts = np.linspace(0, n, n_queries + 1).astype(np.int64)
    results = []
    for threads in (1, 2, 3):
        oracle = oracle_of(X, y, np.ones(n), starts, threads=threads)
        results.append(run(OCAS(shards=shards), oracle, 10.0 / oracle.loss.total, Stop(tol=1e-3)))
    for other in results[1:]:
        assert np.array_equal(results[0].w, other.w)
        assert [r["lower"] for r in results[0].history] == [r["lower"] for r in other.history]
