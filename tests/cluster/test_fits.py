"""Fits of collections: bounds at every iterate, the same bits for any parts, and what a fit in memory finds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import cutsvm
from cutsvm import LinearSVC, LinearSVR, QuantileSVR
from cutsvm._utils.errors import ClusterError
from cutsvm.cluster.collections.arrays import of_arrays
from cutsvm.cluster.facts import DrawSettings
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, open_parts, split_arrays
from cutsvm.problem.loss_makers import BinaryMaker, TargetMaker
from cutsvm.problem.losses import Hinge, Tube
from cutsvm.problem.losses.smooth import Huber, Logistic, SquaredHinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.parted import PartedRows, parted_oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import OCAS, Sifting
from cutsvm.solvers.line_batches import Batched
from tests.support.problems import SIFT_ANYTHING, iterates, some_problem
from tests.support.reference import smooth, svm
from tests.support.strategies import rng_of, seeds

SOLVERS = {
    "batched": Batched(),
    "sifting": Sifting(inner=OCAS(), sample=0.3, band=0.2, settings=SIFT_ANYTHING),
}
INTERCEPTS = [own.value for own in Intercept]


def small(rows: int = 4, sample: float = 0.5) -> OpenSettings:
    """Grains of few rows."""
    layout = LayoutSettings(bytes=1, least=1, fewest_rows=rows, most_chunks=7)
    return OpenSettings(layout=layout, draw=DrawSettings(sample_size=lambda n, d: max(1, int(sample * n))))


def parted(X, y, maker, intercept, *, weights=None, parts=3, targets="classes", room=None):
    """The oracle of rows in parts."""
    found = open_parts(split_arrays(X, y, weights, parts=parts), targets=targets, settings=small())
    return parted_oracle(Oracle, PartedRows(found, room), maker, Intercept(intercept))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@settings(max_examples=8)
@given(
    seed=seeds,
    n=st.integers(4, 40),
    d=st.integers(1, 5),
    parts=st.integers(1, 5),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
    room=st.sampled_from([None, 6, 20]),
)
def test_bounds_hold_at_every_iterate(name, intercept, seed, n, d, parts, C, room):
    X, a = some_problem(rng_of(seed), n, d)
    y, weights = np.sign(a), np.abs(a)
    if not (np.any((y > 0) & (weights > 0)) and np.any((y < 0) & (weights > 0))):
        return
    low, high = svm.optimum(X, a, C, intercept)
    round_off = 1e-9 * high + 1e-14 * C * weights.sum()
    maker = BinaryMaker(np.array([-1.0, 1.0]), np.ones(2), Hinge, 1)
    oracle = parted(X, y, maker, intercept, weights=weights, parts=parts, room=room)
    best = np.inf
    for iterate in islice(iterates(SOLVERS[name], oracle, C), 40):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        if iterate.exact:
            w, b = iterate.w[:d], iterate.w[d] if len(iterate.w) > d else 0.0
            assert iterate.primal == pytest.approx(svm.objective(X, a, C, intercept, w, b), rel=1e-9, abs=round_off)
        best = min(best, iterate.primal)
        if iterate.gap <= 1e-6:
            break
    assert name == "sifting" or best - iterate.lower <= 0.3 * best  # many of its iterations are of the sample


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "huber"])
@settings(max_examples=8)
@given(seed=seeds, n=st.integers(6, 40), d=st.integers(1, 4), C=st.sampled_from([1e-2, 1.0, 100.0]))
def test_bounds_of_smooth_losses(name, seed, n, d, C):
    rng = rng_of(seed)
    X = rng.normal(size=(n, d))
    y = np.where(np.arange(n) % 2, 1.0, -1.0) if name != "huber" else rng.normal(size=n)
    makers = {
        "logistic": BinaryMaker(np.array([-1.0, 1.0]), np.ones(2), Logistic, 1),
        "squared_hinge": BinaryMaker(np.array([-1.0, 1.0]), np.ones(2), SquaredHinge, 1),
        "huber": TargetMaker(Huber, 0.0, {"epsilon": 0.5}),
    }
    best = smooth.optimum(name, X, y, np.ones(n), C, "free", 0.5 if name == "huber" else 0.0)
    oracle = parted(X, y, makers[name], "free", targets="numbers" if name == "huber" else "classes")
    for iterate in islice(iterates(Batched(), oracle, C), 60):
        assert iterate.lower <= best * (1 + 1e-9) + 1e-12
        assert iterate.primal >= best * (1 - 1e-9) - 1e-12
        if iterate.gap <= 1e-6:
            break
    assert iterate.gap <= 0.05


@settings(max_examples=15)
@given(seed=seeds, n=st.integers(3, 50), d=st.integers(1, 4), shards=st.integers(1, 6))
def test_tangents_are_those_of_all_rows(seed, n, d, shards):
    """Values and slopes of rows in parts are sums over all rows; planes lie below the risk of their shard."""
    rng = rng_of(seed)
    X, t = rng.normal(size=(n, d)), rng.normal(size=n)
    parts = open_parts(split_arrays(X, t, parts=2), targets="numbers", settings=small())
    maker = TargetMaker(Tube, 0.0, {"epsilon": 0.1})
    oracle = parted_oracle(Oracle, PartedRows(parts), maker, Intercept.REGULARIZED).with_shards(shards)
    ws = [rng.normal(size=d + 1) for _ in range(3)]
    for w, tangent in zip(ws, oracle.tangents(ws), strict=True):
        residuals = X @ w[:-1] + w[-1] - t
        assert tangent.value == pytest.approx(np.maximum(0.0, np.abs(residuals) - 0.1).sum(), rel=1e-12, abs=1e-12)
        slopes = np.sign(residuals) * (np.abs(residuals) > 0.1)
        assert np.allclose(tangent.planes.slopes.sum(axis=0), slopes @ np.column_stack([X, np.ones(n)]))
        for other in ws:
            losses = np.maximum(0.0, np.abs(X @ other[:-1] + other[-1] - t) - 0.1)
            heights = tangent.planes.slopes @ other + tangent.planes.offsets
            of_shards = np.add.reduceat(losses, oracle.bounds[:-1])
            assert (heights <= of_shards + 1e-9).all()


def rows(n=9000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.2, "yes", "no"), rng.random(n)


def bits(model):
    numbers = [model.coef_, model.intercept_, np.array([model.objective_, model.lower_bound_])]
    return b"".join(np.ascontiguousarray(own, dtype=np.float64).tobytes() for own in numbers)


ESTIMATORS = {
    "hinge": LinearSVC(C=0.01),
    "hinge, batched": LinearSVC(C=0.01, solver="batched"),
    "regularized": LinearSVC(C=0.01, intercept="regularized", class_weight="balanced"),
    "squared hinge": LinearSVC(C=0.01, loss="squared_hinge"),
    "logistic": LinearSVC(C=0.01, loss="logistic"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parts_and_threads_do_not_change_a_bit(name):
    X, y, weights = rows()
    found = set()
    for parts, threads in ((1, 1), (3, 2), (8, 1), (64, 2)):
        collection = of_arrays(Local(threads), split_arrays(X, y, weights, parts=parts))
        found.add(bits(ESTIMATORS[name].fit(collection)))
    assert len(found) == 1
    alone = LinearSVC(**ESTIMATORS[name].get_params() | {"solver": "auto", "tol": 1e-4}).fit(X, y, weights)
    model = ESTIMATORS[name]
    assert model.lower_bound_ <= alone.objective_ * (1 + 1e-12) and alone.lower_bound_ <= model.objective_ * (1 + 1e-12)
    assert model.gap_ <= 1e-3 and list(model.classes_) == ["no", "yes"]


def test_uneven_and_empty_parts_and_sparse_ones():
    X, y, weights = rows()
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    cuts = [0, 0, 1, 2, 40, 4096, 4097, 9000, 9000]
    pieces = [slice(*cuts[k : k + 2]) for k in range(len(cuts) - 1)]
    dense = [(X[own], y[own], weights[own]) for own in pieces]
    thin = [(sparse.csr_matrix(X[own]), y[own], weights[own]) for own in pieces]
    models = [LinearSVC(C=0.01).fit(of_arrays(Local(), own)) for own in (dense, thin)]
    assert bits(models[0]) == bits(LinearSVC(C=0.01).fit(of_arrays(Local(), split_arrays(X, y, weights, parts=2))))
    assert models[1].lower_bound_ <= models[0].objective_ and models[0].lower_bound_ <= models[1].objective_


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVR(C=0.01, epsilon=0.1),
        LinearSVR(C=0.01, loss="squared_epsilon_insensitive"),
        LinearSVR(C=0.01, loss="huber", epsilon=0.5),
        QuantileSVR(C=0.01, quantile=0.8),
    ],
    ids=lambda own: f"{type(own).__name__}, {getattr(own, 'loss', 'pinball')}",
)
def test_regression(estimator):
    X, _, weights = rows()
    t = X @ np.arange(6.0) + 100.0 + np.random.default_rng(1).normal(size=len(X))
    models = [type(estimator)(**estimator.get_params()) for _ in range(2)]
    for model, parts in zip(models, (2, 7), strict=True):
        model.fit(of_arrays(Local(), split_arrays(X, t, weights, parts=parts)))
    alone = type(estimator)(**estimator.get_params() | {"tol": 1e-4}).fit(X, t, weights)
    assert bits(models[0]) == bits(models[1])
    assert models[0].lower_bound_ <= alone.objective_ and alone.lower_bound_ <= models[0].objective_


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_several_classes(multi_class):
    X, _, _ = rows()
    y = np.argmax(X[:, :3] + 0.3 * np.random.default_rng(2).normal(size=(len(X), 3)), axis=1)
    models = [
        LinearSVC(C=0.01, multi_class=multi_class).fit(of_arrays(Local(), split_arrays(X, y, parts=parts)))
        for parts in (1, 5)
    ]
    alone = LinearSVC(C=0.01, multi_class=multi_class, tol=1e-4).fit(X, y)
    assert bits(models[0]) == bits(models[1])
    assert models[0].lower_bound_ <= alone.objective_ and alone.lower_bound_ <= models[0].objective_


def test_a_store_and_memory_and_parts_give_the_same_bits(tmp_path):
    X, y, weights = rows()
    whole = of_arrays(Local(), split_arrays(X, y, weights, parts=1))
    cutsvm.convert((X, y), tmp_path / "rows.store", weight=weights)
    parts = open_parts(str(tmp_path / "rows.store"), executor=Local())
    memory = open_parts(whole)
    assert parts.facts.fingerprints == memory.facts.fingerprints
    assert len({bits(LinearSVC(C=0.01).fit(own)) for own in (parts, memory, whole)}) == 1


def test_a_rare_class_is_in_the_sample():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60_000, 3))
    y = np.zeros(60_000, dtype=int)
    y[::3000] = 1
    X[y == 1] += 3.0
    model = LinearSVC(C=1.0).fit(of_arrays(Local(), split_arrays(X, y, parts=4)))
    alone = LinearSVC(C=1.0, tol=1e-5).fit(X, y)
    assert model.converged_ and model.lower_bound_ <= alone.objective_ * (1 + 1e-12)


def test_checkpoint_of_a_killed_client(tmp_path):
    """The client is killed; another one with other parts goes on from its checkpoint, to the same bounds or better."""
    script = """
import sys, time
import numpy as np
from cutsvm import LinearSVC
from cutsvm.cluster.collections.arrays import of_arrays
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import split_arrays
from cutsvm.driver import checkpoint_file as checkpoint
from tests.cluster.test_fits import rows
checkpoint.configure(checkpoint.CheckpointSettings(seconds_before_first=0.0, min_seconds_between=0.0))
X, y, weights = rows()
def slow(record):
    if record.planes and record.lower > 0:
        print(record.lower, flush=True)
        time.sleep(30)
LinearSVC(C=1.0, tol=1e-6, solver="batched", checkpoint=sys.argv[1], callbacks=[slow]).fit(
    of_arrays(Local(), split_arrays(X, y, weights, parts=3)))
"""
    file = tmp_path / "fit.checkpoint"
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE, env=environment, text=True
    ) as child:
        assert child.stdout is not None
        lower = float(child.stdout.readline())
        while not file.exists():
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
    X, y, weights = rows()
    model = LinearSVC(C=1.0, tol=1e-6, solver="batched", checkpoint=str(file))
    model.fit(of_arrays(Local(), split_arrays(X, y, weights, parts=8)))
    assert model.history_[0]["lower"] >= lower and model.gap_ <= 1e-6 and not file.exists()
    with pytest.raises(ValueError, match="another fit"):
        LinearSVC(C=1.0, solver="batched", checkpoint=str(_stale(file, X, y))).fit(
            of_arrays(Local(), split_arrays(X + 1.0, y, parts=2))
        )


def _stale(file, X, y):
    """A checkpoint of a fit that was cut short."""
    from cutsvm.driver import checkpoint_file as checkpoint

    before = checkpoint.configure(checkpoint.CheckpointSettings(seconds_before_first=0.0, min_seconds_between=0.0))
    try:
        with pytest.warns(UserWarning):
            LinearSVC(C=1.0, solver="batched", tol=1e-9, max_iter=40, checkpoint=str(file)).fit(
                of_arrays(Local(), split_arrays(X, y, parts=2))
            )
    finally:
        checkpoint.configure(before)
    return file


def test_rows_that_change_between_two_readings_are_named():
    import dask
    import dask.array as da

    X, y, _ = rows(4000)
    reads = []

    def read(k):
        """A part that reads differently the second time."""
        reads.append(k)
        return X[1000 * k : 1000 * (k + 1)] + (1.0 if reads.count(k) > 1 else 0.0)

    parts = [da.from_delayed(dask.delayed(read)(k), (1000, 6), np.float64) for k in range(4)]
    with pytest.raises(ClusterError, match="not the same as when they were first read"):
        LinearSVC(C=0.01).fit(da.concatenate(parts), da.from_array(y, chunks=1000))
