"""Solvers on the pairwise loss: bounds at every iterate, the optimum of explicit pairs, shards and threads."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Pairwise
from cutsvm.problem.pairs import PairOracle
from cutsvm.solvers import CPA, OCAS, Auto, Sifting
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


def oracle_of(X, y, s, starts, layout="float64", threads=1):
    return PairOracle(as_rows(LAYOUTS[layout](X), threads), Pairwise(y, s, starts, threads), threads=threads)


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
