"""Fits after a store has changed: planes of shards that have not are kept, and lie below the new risk."""

import logging
import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import cutsvm
from cutsvm import LinearSVC, LinearSVR
from cutsvm.driver import checkpoint, warm_start
from cutsvm.driver.checkpoint_file import CheckpointSettings
from cutsvm.driver.shard_traits import FoundShard, ShardTraits
from cutsvm.driver.warm_start import new_bounds
from cutsvm.solvers import OCAS, Sifting
from tests.support.problems import SIFT_ANYTHING
from tests.support.reference import svm
from tests.support.strategies import examples, rng_of, seeds

SOLVERS = {
    "ocas": OCAS(shards=5),
    "sifting": Sifting(inner=OCAS(shards=2), sample=0.3, band=0.2, settings=SIFT_ANYTHING),
    "auto": "auto",
}
CHANGES = ["append", "range", "one row", "random rows", "both", "compact", "weights"]


@pytest.fixture(scope="module", autouse=True)
def no_waits():
    """Files are not synced, and checkpoints are written after every iteration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        before = checkpoint.configure(CheckpointSettings(0.0, 0.0, np.inf))
        yield
        checkpoint.configure(before)


def some_rows(rng, n, d):
    y = rng.choice([-1, 1], n)
    y[:2] = 1, -1
    return rng.normal(size=(n, d)), y, rng.choice([0.0, 0.5, 1.0, 2.0], n, p=[0.1, 0.2, 0.5, 0.2])


def change(data, what, rng):
    """Changes the store; class weights for the next fit."""
    n, d = data.shape
    if what in ("append", "both"):
        X, y, s = some_rows(rng, int(rng.integers(2, n)), d)
        data.append((X, y), weight=s)
    gone = np.zeros(data.shape[0], dtype=bool)
    if what in ("range", "both"):
        first = int(rng.integers(2, n - 2))
        gone[first : first + int(rng.integers(1, 5))] = True
    elif what == "one row":
        gone[2 + int(rng.integers(n - 2))] = True
    elif what in ("random rows", "compact"):
        gone[2:] = rng.random(n - 2) < 0.3
    data.delete(gone)
    if what == "compact":
        data.compact()
    return {1: float(rng.choice([0.5, 2.0]))} if what == "weights" else None


def check_planes(context, X, a, rng):
    """Each plane lies below the loss of its shard's rows, and all together below R."""
    bounds = context.oracle.bounds
    assert bounds[0] == 0 and bounds[-1] == len(a) and (np.diff(bounds) > 0).all()
    for w in rng.normal(size=(20, context.oracle.size)) * 10.0 ** rng.integers(-2, 2, size=(20, 1)):
        b = w[-1] if len(w) > X.shape[1] else 0.0
        losses = np.abs(a) * np.maximum(0.0, 1.0 - np.sign(a) * (X @ w[: X.shape[1]] + b))
        for bundle in context.bundles:
            heights = bundle.slopes @ w + bundle.offsets
            size = 1e-12 * (1.0 + np.abs(heights).max(initial=0.0) + losses.sum())
            if bundle is context.bundle:
                assert (heights <= np.add.reduceat(losses, bounds[:-1])[bundle.shard] + size).all()
            assert bundle.height(w) <= losses.sum() + size


@pytest.mark.parametrize("limit", [None, "2GB"], ids=["in memory", "on disk"])
@pytest.mark.parametrize("solver", SOLVERS)
@examples(6)
@given(
    seed=seeds,
    n=st.integers(8, 40),
    d=st.integers(1, 3),
    what=st.sampled_from(CHANGES),
    intercept=st.sampled_from(["free", "regularized", "none"]),
    kind=st.sampled_from(["dense", "csr"]),
)
def test_kept_planes_lie_below_the_new_risk(limit, solver, seed, n, d, what, intercept, kind, tmp_path_factory):
    rng, C = rng_of(seed), 0.5
    X, y, s = some_rows(rng, n, d)
    s[:2] = 1.0
    path = tmp_path_factory.mktemp("changed") / "store"
    data = cutsvm.convert((sparse.csr_matrix(X) if kind == "csr" else X, y), path, weight=s, block_bytes=256)
    how = {"fit_intercept": intercept != "none", "intercept": "free" if intercept == "none" else intercept}
    how |= {"solver": SOLVERS[solver], "tol": 1e-5, "max_iter": 80, "memory_limit": limit}
    model, seen = LinearSVC(C, warm_start=True, **how), []
    whole = warm_start.take_up

    def watched(context, *words):
        whole(context, *words)
        now = data.X.toarray() if kind == "csr" else data.X
        weights = np.where(data.y == 1, (model.class_weight or {}).get(1, 1.0), 1.0)
        check_planes(context, now, data.y * data.weights * weights, rng)
        seen.append(context.reused)

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", ConvergenceWarning)
        patch.setattr(warm_start, "take_up", watched)
        model.fit(path)
        weights = change(data, what, rng)
        model.set_params(class_weight=weights).fit(path)
    assert len(seen) == 1 and seen[0] in model.history_[0]["note"]
    now = data.X.toarray() if kind == "csr" else data.X
    a = data.y * data.weights * np.where(data.y == 1, (weights or {}).get(1, 1.0), 1.0)
    low, high = sorted(svm.optimum(now, a, C, intercept))
    assert model.lower_bound_ <= high * (1.0 + 1e-12) and model.objective_ >= low * (1.0 - 1e-14)
    F = svm.objective(now, a, C, intercept, model.coef_[0], model.intercept_[0])
    assert model.objective_ == pytest.approx(F, rel=1e-10)


def long_store(path, n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return cutsvm.convert((X, y), path, block_bytes=1 << 15), X, y


@pytest.mark.parametrize("limit", [None, "2GB"], ids=["in memory", "on disk"])
def test_what_is_kept_is_said_and_saves_passes(limit, tmp_path, caplog):
    data, X, y = long_store(tmp_path / "store")
    how = {"C": 0.1, "solver": OCAS(shards=16), "memory_limit": limit}
    model = LinearSVC(warm_start=True, **how).fit(data.store.path)
    model = pickle.loads(pickle.dumps(model))  # the next fit may be in another process
    for step, says in (
        (lambda: data.append((X[:60], y[:60])), ", 0 of 16 shards changed"),
        (lambda: data.delete(slice(1000, 1060)), ", 1 of 16 shards changed"),
        (data.compact, ", 0 of 16 shards changed"),
        (lambda: data.delete(np.arange(data.shape[0]) % 100 == 7), " 16 of 16 shards changed; it begins at the last w"),
    ):
        step()
        with caplog.at_level(logging.INFO, logger="cutsvm.warm_start"):
            model.fit(data.store.path)
        assert says in model.history_[0]["note"] and says in caplog.records[-1].message
        cold = LinearSVC(**how).fit(data.store.path)
        assert model.history_[-1]["passes"] < cold.history_[-1]["passes"]
        assert model.lower_bound_ <= cold.objective_ and cold.lower_bound_ <= model.objective_
    again = model.fit(data.store.path).history_[0]["note"]
    kept, _, many = again.split(": ")[1].split(" planes")[0].split(" ")[:3]
    assert kept == many and ", 0 of 16 shards changed" in again


def test_weights_and_targets(tmp_path):
    """Weights of classes scale planes; other targets or weights of rows on disk drop those of their shards."""
    data, X, y = long_store(tmp_path / "store")
    model = LinearSVC(0.1, solver=OCAS(shards=8), warm_start=True, memory_limit="2GB", class_weight="balanced")
    model.fit(data.store.path)
    data.append((X[:500], y[:500] * 0 + 1))
    note = model.fit(data.store.path).history_[0]["note"]
    assert ", 0 of 8 shards changed" in note and model.history_[0]["lower"] > 0.7 * model.objective_
    s = np.ones(6500)
    s[:10] = 2.0
    assert ", 1 of 8 shards changed" in model.fit(data.store.path, sample_weight=s).history_[0]["note"]
    model.set_params(class_weight=None).fit(data.store.path)
    assert ", 1 of 8 shards changed" in model.fit(data.store.path, sample_weight=s).history_[0]["note"]
    target = cutsvm.convert((X, X[:, 0] + y), tmp_path / "targets")
    regression = LinearSVR(0.1, solver=OCAS(shards=8), warm_start=True, memory_limit="2GB").fit(target.store.path)
    target.append((X[:9], X[:9, 0])).delete([5000])
    note = regression.fit(target.store.path).history_[0]["note"]
    assert ", 1 of 8 shards changed" in note and regression.history_[0]["lower"] > 0.5 * regression.objective_


def test_bounds_after_a_change():
    def shard(rows):
        return ShardTraits(rows, 0, 0, "", "", "", None)

    old = [shard(10), shard(10), shard(10)]
    for found, n, expected, numbers in (
        ([(0, 0), (1, 10), (2, 20)], 30, [0, 10, 20, 30], [0, 1, 2]),
        ([(0, 0), (1, 10), (2, 20)], 35, [0, 10, 20, 35], [0, 1, 2]),  # new rows join the last shard
        ([(0, 0), (1, 10), (2, 20)], 40, [0, 10, 20, 40], [0, 1, 2]),
        ([(0, 0), (1, 10), (2, 20)], 99, [0, 10, 20, 30, 99], [0, 1, 2]),  # or are many
        ([(0, 0), (2, 17)], 27, [0, 10, 17, 27], [0, 2]),
        ([(1, 0)], 15, [0, 10, 15], [0]),
        ([(2, 0)], 10, [0, 10], [0]),
    ):
        shards = [FoundShard(*place, 1.0) for place in found]
        bounds, places = new_bounds(shards, old, n)
        assert (bounds.tolist(), places) == (expected, numbers)


@pytest.mark.parametrize("limit", [None, "2GB"], ids=["in memory", "on disk"])
@pytest.mark.parametrize("solver", ["ocas", "sifting"])
def test_a_checkpoint_of_an_earlier_version(solver, limit, tmp_path, caplog):
    data, X, y = long_store(tmp_path / "store")
    how = {"C": 0.1, "solver": SOLVERS[solver], "memory_limit": limit, "tol": 1e-7, "checkpoint": tmp_path / "state"}

    def interrupted():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            near = [lambda record: record.primal < 0.8 * 0.1 * data.shape[0]]  # 0.1 n is F at w = 0
            LinearSVC(callbacks=near, **how).fit(data.store.path)
        assert (tmp_path / "state").exists()

    for step in (
        lambda: data.append((X[:60], y[:60])),
        lambda: data.delete(slice(1000, 1060)),
        lambda: data.delete(np.arange(data.shape[0]) % 100 == 7),
    ):
        interrupted()
        step()
        with caplog.at_level(logging.INFO, logger="cutsvm"):
            model = LinearSVC(**how).fit(data.store.path)
        assert "of an earlier version of the store" in caplog.text
        assert "checkpoint of an earlier version" in model.history_[0]["note"]
        assert model.converged_ and not (tmp_path / "state").exists()
        cold = LinearSVC(0.1, tol=1e-6).fit(data.store.path)
        assert model.lower_bound_ <= cold.objective_ and cold.lower_bound_ <= model.objective_
        assert model.history_[0]["primal"] < 0.9 * 0.1 * data.shape[0]  # it begins at the last w
    interrupted()
    other, _, _ = long_store(tmp_path / "other", seed=1)
    for words in ((other.store.path,), (X, y)):
        with pytest.raises(ValueError, match="a checkpoint of another fit"):
            LinearSVC(**how).fit(*words)
    data.append((X[:60], y[:60]))
    with pytest.raises(ValueError, match=r"a checkpoint of another fit: C 0.1 there, 0.2 here"):
        LinearSVC(**how | {"C": 0.2}).fit(data.store.path)


def test_planes_in_a_checkpoint_of_an_earlier_version(tmp_path):
    data, X, y = long_store(tmp_path / "store")
    how = {"C": 0.1, "solver": OCAS(shards=8), "memory_limit": "2GB", "checkpoint": tmp_path / "state"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        LinearSVC(max_iter=5, tol=1e-9, **how).fit(data.store.path)
    data.delete(slice(5990, 6000)).append((X[:10], y[:10]))
    model = LinearSVC(tol=1e-9, max_iter=1, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.store.path)
    assert ", 1 of 8 shards changed" in model.history_[0]["note"]
    assert 0.5 * model.objective_ < model.history_[0]["lower"]  # before a pass


def test_damaged_traits_are_refused():
    whole = [3, 1, 2, "a", "b", "c", [[1.0, 2.0]]]
    assert ShardTraits.from_json(whole).table == [(1.0, 2.0)]
    for place, value in ((0, -1), (1, True), (2, 1.5), (3, 7), (6, [[1.0, 0.0]]), (6, [1.0])):
        with pytest.raises((TypeError, ValueError)):
            ShardTraits.from_json([*whole[:place], value, *whole[place + 1 :]])
