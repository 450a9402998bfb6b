"""lower <= min F <= primal at every iterate for losses with two breakpoints, and what else solvers keep."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutsvm
from cutsvm.driver import checkpoint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.checkpoint_file import CheckpointSettings
from cutsvm.driver.fingerprint import Fingerprint
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import Fit, fit_path, run
from cutsvm.driver.warm_start import Slot
from cutsvm.matrix import StoreRows, as_rows
from cutsvm.problem.losses import Tube
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import CPA, OCAS, Sifting
from tests.support.layouts import LAYOUTS
from tests.support.problems import SIFT_ANYTHING, from_disk, iterates
from tests.support.reference import svm, tube
from tests.support.strategies import examples, rng_of, seeds

SIFTING = {"sample": 0.3, "band": 0.2, "settings": SIFT_ANYTHING}
SOLVERS = {
    "ocas": lambda shards: OCAS(shards=shards),
    "ocas, tca": lambda shards: OCAS(shards=shards, line_search="tca"),
    "ocas, exact": lambda shards: OCAS(exact=True),
    "cpa": lambda shards: CPA(shards=shards),
    "cpa, exact": lambda shards: CPA(exact=True, epsilon=1e-12),
    "sifting": lambda shards: Sifting(inner=OCAS(shards=shards), **SIFTING),
    "sifting, streamed": lambda shards: Sifting(inner=OCAS(shards=shards), **SIFTING),
}
INTERCEPTS = [i.value for i in Intercept]
SHAPES = [(0.5, 1.0, 1.0), (0.0, 1.0, 1.0), (0.0, 0.9, 0.1), (0.2, 3.0, 0.5)]


def some_problem(rng, n, d, shape, scale=1.0):
    """Rows with ties and repetitions, some without weight, and targets of any scale."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.3:
        X = np.round(X)
    t = X @ rng.normal(size=d) + rng.choice([0.0, 1.0]) * rng.standard_t(3, size=n) + rng.choice([0.0, 5.0])
    if rng.random() < 0.3:
        t = np.round(2.0 * t) / 2.0  # on breakpoints at w = 0
    if rng.random() < 0.3:
        again = rng.integers(0, n, size=n)
        X, t = X[again], t[again]
    s = rng.choice([0.0, 0.5, 1.0, 2.0, 3.7], size=n) if rng.random() < 0.5 else np.ones(n)
    s[0] = 1.0
    epsilon, below, above = shape
    return X, tube.Tube(scale * t, s, scale * epsilon, below, above)


def oracle_of(X, loss, intercept="none", layout="float64", threads=1):
    rows = as_rows(LAYOUTS[layout](X), threads)
    return Oracle(rows, Tube(*loss, threads), intercept=Intercept(intercept), threads=threads)


def optimum(X, loss, C, intercept):
    """From quadprog, in units in which targets are of size 1."""
    unit = float(np.abs(loss.t).max()) + loss.epsilon or 1.0
    a, t = tube.hinges(loss)
    low, high = svm.optimum(np.vstack([X, X]), a, C / unit, intercept, t / unit)
    return low * unit**2, high * unit**2


def objective(X, loss, C, intercept, w, b):
    penalty = 0.5 * w @ w + (0.5 * b * b if intercept == "regularized" else 0.0)
    return penalty + C * tube.value(X @ w + b, loss)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@examples(40)
@given(
    seed=seeds,
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    shards=st.integers(1, 64),
    shape=st.sampled_from(SHAPES),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0, 1e4]),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided"]),
)
def test_bounds_hold_at_every_iterate(name, intercept, seed, n, d, shards, shape, scale, C, layout):
    X, loss = some_problem(rng_of(seed), n, d, shape, scale)
    C *= scale
    low, high = optimum(X, loss, C, intercept)
    round_off = 1e-8 * high + 1e-13 * C * tube.value(np.zeros(n), loss)
    previous = np.inf
    oracle = oracle_of(X, loss, intercept, layout)
    if "streamed" in name:
        from_disk(oracle)
    for iterate in islice(iterates(SOLVERS[name](shards), oracle, C), 300 if "sifting" in name else 60):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        w, b = iterate.w[:d], iterate.w[d] if len(iterate.w) > d else 0.0
        assert iterate.primal == pytest.approx(objective(X, loss, C, intercept, w, b), rel=1e-9, abs=round_off)
        assert iterate.primal <= previous + round_off or name == "cpa, exact"
        previous = min(previous, iterate.primal)
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break
    else:
        assert previous - iterate.lower <= 0.3 * previous


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@examples(30)
@given(
    seed=seeds,
    n=st.integers(2, 60),
    d=st.integers(1, 8),
    shards=st.sampled_from([1, 2, 7, 64]),
    shape=st.sampled_from(SHAPES),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_reaches_the_optimum(name, intercept, seed, n, d, shards, shape, scale):
    X, loss = some_problem(rng_of(seed), n, d, shape, scale)
    low, high = optimum(X, loss, scale, intercept)
    oracle = oracle_of(X, loss, intercept)
    if "streamed" in name:
        from_disk(oracle)
    result = run(SOLVERS[name](shards), oracle, scale, Stop(tol=1e-5, max_iter=3000))
    round_off = 1e-8 * high + 1e-13 * scale * tube.value(np.zeros(n), loss)
    no_loss = result.primal <= round_off  # targets that are 2 epsilon apart, up to their last digit
    assert result.status in (Status.CONVERGED, Status.EPSILON) or no_loss
    assert result.primal <= high * (1 + 2e-5) + round_off
    assert result.lower >= low * (1 - 2e-5) - round_off


def long_problem(n=30_000, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    t = X @ rng.normal(size=d) + 4.0 + rng.standard_t(3, size=n)
    return X, tube.Tube(t, rng.choice([0.5, 1.0, 2.0], size=n), 0.3, 1.0, 1.0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", [OCAS(shards=3), OCAS(shards=40), Sifting()], ids=str)
def test_threads_do_not_change_a_bit(solver, intercept):
    X, loss = long_problem(20_500)
    results = [run(solver, oracle_of(X, loss, intercept, threads=k), 0.01, Stop(tol=1e-5)) for k in (1, 2, 3)]
    for other in results[1:]:
        assert np.array_equal(results[0].w, other.w)
        assert [r["lower"] for r in results[0].history] == [r["lower"] for r in other.history]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_repetitions(shape, intercept):
    rng = np.random.default_rng(1)
    X, t, s = rng.normal(size=(200, 3)), rng.normal(size=200), rng.integers(0, 4, size=200)
    once = run(OCAS(), oracle_of(X, tube.Tube(t, s / 1.0, *shape), intercept), 0.1, Stop(tol=1e-9))
    X, t = np.repeat(X, s, axis=0), np.repeat(t, s)
    repeated = run(OCAS(), oracle_of(X, tube.Tube(t, np.ones(len(t)), *shape), intercept), 0.1, Stop(tol=1e-9))
    assert once.primal == pytest.approx(repeated.primal, rel=2e-9)
    assert np.allclose(once.w, repeated.w, atol=1e-4)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sifting_is_ocas_in_fewer_visits(shape, intercept):
    X, loss = long_problem()
    loss = tube.Tube(loss.t, loss.s, *shape)
    C = 0.1
    plain = run(OCAS(), oracle_of(X, loss, intercept), C, Stop(tol=1e-6))
    results = [
        run(Sifting(), oracle, C, Stop(tol=1e-6))
        for oracle in (oracle_of(X, loss, intercept), from_disk(oracle_of(X, loss, intercept), 6000))
    ]
    for sifted in results:
        assert sifted.status is Status.CONVERGED
        assert sifted.primal == pytest.approx(plain.primal, rel=2e-6)
        assert sifted.lower <= plain.primal and plain.lower <= sifted.primal
    assert results[0].history[-1]["visits"] < plain.history[-1]["visits"]


def test_store_is_memory(tmp_path):
    X, loss = long_problem()
    rows = StoreRows(cutsvm.convert((X, loss.t), tmp_path / "store", block_bytes=100_000).store, 1)
    assert rows.n == len(X)
    for solver in (OCAS(), CPA(), Sifting()):
        ours = run(solver, Oracle(rows, Tube(*loss), Intercept.FREE), 1e-3, Stop(tol=1e-5))
        held = run(solver, oracle_of(X, loss, "free"), 1e-3, Stop(tol=1e-5))
        assert np.array_equal(ours.w, held.w)
        assert (ours.primal, ours.lower) == (held.primal, held.lower)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", [OCAS(), CPA(), Sifting()], ids=str)
def test_path(solver, intercept):
    """One path over C has the answers of separate fits, and takes fewer passes."""
    X, loss = long_problem()
    Cs = np.geomspace(1.0, 100.0, 8) / len(X)
    on_path, _ = fit_path(solver, oracle_of(X, loss, intercept), Cs, Fit(Stop(tol=1e-4)))
    alone = [run(solver, oracle_of(X, loss, intercept), C, Stop(tol=1e-4)) for C in Cs]
    for ours, single in zip(on_path, alone, strict=True):
        assert ours.status is Status.CONVERGED
        assert ours.lower <= single.primal and single.lower <= ours.primal
    passes = [sum(result.history[-1]["passes"] for result in results) for results in (on_path, alone)]
    assert passes[0] < passes[1] or isinstance(solver, Sifting)


@pytest.mark.parametrize("solver", [OCAS(shards=3), Sifting(inner=OCAS(shards=2), **SIFTING)], ids=["ocas", "sifting"])
def test_checkpoint(solver, tmp_path):
    X, loss = some_problem(np.random.default_rng(5), 60, 4, SHAPES[0])
    low, high = optimum(X, loss, 1.0, "free")
    before, steps, n_runs = checkpoint.configure(CheckpointSettings(0.0, 0.0, np.inf)), 6, 0
    result = None
    while result is None or result.status is Status.MAX_ITER:
        file = Checkpoint(tmp_path / "file", Fingerprint({}, {}))
        result = run(solver, oracle_of(X, loss, "free"), 1.0, Stop(tol=1e-6, max_iter=steps), checkpoint=file)
        file.close(converged=result.status.converged)
        assert result.lower <= high * (1 + 1e-9)
        n_runs += 1
        if not (tmp_path / "file").exists():  # a sample was not solved yet: the next run begins again, and gets further
            steps *= 2
    checkpoint.configure(before)
    assert n_runs > 1
    assert result.status is Status.CONVERGED
    assert low * (1 - 1e-9) <= result.primal <= high * (1 + 1e-5)


@pytest.mark.parametrize(
    ("change", "kept"),
    [("nothing", True), ("C", True), ("weights up", True), ("targets", False), ("epsilon", False), ("above", False)],
)
def test_warm_start(change, kept):
    """Planes are kept as long as they hold, and bounds hold in any case."""
    X, loss = some_problem(np.random.default_rng(7), 80, 4, (0.5, 1.0, 1.0))
    places, C = {}, 1.0
    fit_path(OCAS(), oracle_of(X, loss, "free"), [C], Fit(Stop(tol=1e-6), warm_start=Slot(places, "")))
    changes = {
        "weights up": {"s": 1.5 * loss.s},
        "targets": {"t": loss.t + (np.arange(80) == 3)},
        "epsilon": {"epsilon": 0.25},
        "above": {"above": 0.5},
    }
    loss, C = loss._replace(**changes.get(change, {})), 0.5 if change == "C" else C
    slot, oracle = Slot(places, ""), oracle_of(X, loss, "free")
    [again], _ = fit_path(OCAS(), oracle, [C], Fit(Stop(tol=1e-6), warm_start=slot))
    low, high = optimum(X, loss, C, "free")
    assert again.lower <= high * (1 + 1e-9) and again.primal >= low * (1 - 1e-9)
    fresh = run(OCAS(), oracle_of(X, loss, "free"), C, Stop(tol=1e-6))
    assert (again.history[-1]["passes"] < fresh.history[-1]["passes"]) == kept


def test_targets_within_the_tube_need_no_model():
    X = np.random.default_rng(0).normal(size=(50, 3))
    loss = tube.Tube(np.full(50, 0.1), np.ones(50), 0.5, 1.0, 1.0)
    for solver in (OCAS(), CPA(), Sifting(settings=SIFT_ANYTHING)):
        for intercept in INTERCEPTS:
            result = run(solver, oracle_of(X, loss, intercept), 1.0, Stop(tol=1e-3))
            assert result.status is Status.CONVERGED
            assert result.primal == result.lower == 0.0
