"""Sifting: the risk of a working set bounds the risk of all rows; the solver."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import Fit, fit_path, run
from cutsvm.solvers import OCAS, Sifting
from cutsvm.solvers.sifting.full_pass import HeldPass
from cutsvm.solvers.sifting.solver import SiftingSettings
from tests.support.problems import iterates, long_data, oracle_of
from tests.support.strategies import rng_of, seeds

INTERCEPTS = ["none", "regularized", "free"]


def value(oracle, w):
    """R at w, with w's own b."""
    return oracle.value(oracle.score(w.copy()))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(4, 60), d=st.integers(1, 5), band=st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_working_set_risk_is_below_the_risk(intercept, seed, n, d, band):
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, d)), rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0], size=n)
    a[:2] = 1.0, -1.0
    full = oracle_of(X, a, intercept)
    size = full.size
    reference = full.score(rng.normal(size=size))
    whole = HeldPass(full, 1.0)
    working_set = whole.near(reference, band)
    round_off = 1e-12 * (1.0 + full.loss.total)
    assert value(working_set.oracle, reference.w) == pytest.approx(
        full.value(reference), abs=1e-9 * (1.0 + full.loss.total)
    )
    points = rng.normal(size=(5, size)) * rng.choice([0.1, 1.0, 10.0], size=(5, 1))
    before = [value(working_set.oracle, w) for w in points]
    for w, low in zip(points, before, strict=True):
        assert low <= value(full, w) + round_off * (1.0 + np.abs(w).sum() * np.abs(X).sum())
    whole.grow(working_set, full.score(points[0].copy()))
    for w, low in zip(points, before, strict=True):
        scale = round_off * (1.0 + np.abs(w).sum() * np.abs(X).sum())
        assert low - scale <= value(working_set.oracle, w) <= value(full, w) + scale
    assert value(working_set.oracle, points[0]) == pytest.approx(value(full, points[0]), rel=1e-9, abs=round_off)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
@given(seed=seeds, n=st.integers(6, 50), shards=st.integers(1, 6))
def test_planes_stay_valid_when_rows_join(intercept, seed, n, shards):
    """Old and new planes in one bundle bound the risk from below."""
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0, 2.0], size=n)
    full = oracle_of(X, a, intercept)
    whole = HeldPass(full, 1.0)
    working_set = whole.near(full.score(rng.normal(size=full.size)), 0.3)
    working_set.oracle = working_set.oracle.with_shards(shards)
    bundle = full.new_bundle(1.0)
    for _ in range(4):
        w = rng.normal(size=full.size)
        bundle.add(working_set.oracle.planes(working_set.oracle.score(w.copy())))
        whole.grow(working_set, full.score(w))
    for w in rng.normal(size=(10, full.size)):
        heights = bundle.slopes @ w + bundle.offsets
        tops = np.zeros(working_set.oracle.shards)
        np.maximum.at(tops, bundle.shard, heights)
        assert tops.sum() <= value(full, w) + 1e-9 * (1.0 + full.loss.total)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(4, 60), shards=st.integers(1, 6), points=st.integers(1, 16))
def test_tangents_touch_the_risk_and_stay_below(intercept, seed, n, shards, points):
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, 3)), rng.choice([-2.0, -1.0, 0.0, 1.0], size=n)
    a[:2] = 1.0, -1.0
    oracle = oracle_of(X, a, intercept).with_shards(shards)
    ws = rng.normal(size=(min(points, oracle.supports.batch), oracle.size))
    others, round_off = rng.normal(size=(5, oracle.size)), 1e-9 * (1.0 + oracle.loss.total)
    for w, (at, height, planes) in zip(ws, oracle.tangents(list(ws)), strict=True):
        assert_array_equal(at[:3], w[:3])
        assert height == pytest.approx(value(oracle, at), rel=1e-12)
        below = planes.slopes @ np.vstack([at, *others]).T + planes.offsets[:, None]
        assert below[:, 0].sum() == pytest.approx(height, abs=round_off)
        for other, low in zip(others, np.maximum(0.0, below[:, 1:]).sum(axis=0), strict=True):
            assert low <= value(oracle, other) + round_off * (1.0 + np.abs(X).sum())


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["float32", "fortran", "csr"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["plain", "weights", "rare", "sorted"])
def test_same_objective_as_the_inner_solver(kind, intercept, layout):
    X, a = long_data(positives=0.009 if kind == "rare" else 0.4)
    if kind == "weights":
        a = a * np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=len(a))
    if kind == "sorted":
        X, a = X[np.argsort(a, kind="stable")], np.sort(a)
    results = [
        run(solver, oracle_of(X, a, intercept, layout), 100.0 / len(a), Stop(tol=1e-4))
        for solver in (Sifting(), OCAS())
    ]
    working_set, plain = results
    assert working_set.status is Status.CONVERGED
    assert working_set.primal == pytest.approx(plain.primal, rel=2e-4)
    assert working_set.lower <= plain.primal and plain.lower <= working_set.primal
    assert working_set.history[-1]["passes"] <= 4


def test_sample_contains_rare_classes():
    X, a = long_data(positives=0.002)
    oracle = oracle_of(X, a)
    sample = oracle.draw(500, SiftingSettings().of_each, np.random.default_rng(0))
    signed = sample.loss.signed
    assert np.count_nonzero(signed > 0) == 60  # all there are
    for side in (1.0, -1.0):  # and they weigh what they weigh in all
        assert np.clip(side * signed, 0, None).sum() == pytest.approx(np.count_nonzero(side * a > 0))


@pytest.mark.parametrize(("n", "d"), [(1000, 3), (25_000, 2000)])
def test_falls_back_to_the_inner_solver(n, d):
    rng = np.random.default_rng(0)
    X = np.zeros((n, d), dtype=np.float32)
    X[:, :3] = rng.normal(size=(n, 3))
    a = np.where(X[:, 0] > 0, 1.0, -1.0)
    both = [list(islice(iterates(solver, oracle_of(X, a, layout="csr"), 1.0), 3)) for solver in (Sifting(), OCAS())]
    for one, other in zip(*both, strict=True):
        assert np.array_equal(one.w, other.w)


def test_long_sample_is_not_a_stall():
    X, a = long_data()
    result = run(Sifting(inner=OCAS(shards=1)), oracle_of(X, a), 10.0, Stop(tol=1e-3, patience=3))
    assert result.status is Status.CONVERGED


def test_start_replaces_the_sample():
    X, a = long_data()
    first = run(Sifting(), oracle_of(X, a), 0.01, Stop(tol=1e-4))
    (again,), _ = fit_path(Sifting(), oracle_of(X, a), [0.01], Fit(Stop(tol=1e-4), start=first.w))
    assert again.status is Status.CONVERGED
    assert again.history[-1]["visits"] < first.history[-1]["visits"]


@pytest.mark.parametrize("wrong", [{"sample": 0.0}, {"band": 2.0}, {"sample": "half"}])
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sifting(**wrong)


def test_repr_is_readable():
    inner = "line_search='exact', safe=True, first_step=1.0, shards='auto', cut_at=0.1, guard='stall', nudge=0.02, "
    inner += "exact=False, epsilon=None, buckets=1, both_sides=True, whiten=True"
    assert repr(Sifting()) == f"Sifting(inner=OCAS({inner}), sample='auto', band='auto', seed=0)"
