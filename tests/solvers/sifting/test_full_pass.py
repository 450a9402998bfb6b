"""Sifting without memory per row: the same answer in few passes, with temporary files."""

import errno
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cutsvm
from cutsvm import LinearSVC
from cutsvm._utils import memory
from cutsvm._utils.errors import DataError
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.io.temporary_arrays import TemporaryArrays
from cutsvm.matrix import StoreRows
from cutsvm.solvers import OCAS, Sifting
from cutsvm.solvers.sifting.full_pass import HeldPass, StreamedPass, full_pass
from tests.support.problems import from_disk, long_data, multiclass_oracle_of, oracle_of

INTERCEPTS = ["none", "regularized", "free"]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("layout", ["float32", "csr"])
@pytest.mark.parametrize("room", [None, 1500])
def test_same_answer_as_with_scores_in_memory(intercept, layout, room):
    X, a = long_data()
    results = [
        run(Sifting(), oracle, 100.0 / len(a), Stop(tol=1e-6))
        for oracle in (from_disk(oracle_of(X, a, intercept, layout), room), oracle_of(X, a, intercept, layout))
    ]
    ours, held = results
    assert ours.status is held.status is Status.CONVERGED
    assert ours.primal == pytest.approx(held.primal, rel=2e-6)
    assert ours.lower <= held.primal and held.lower <= ours.primal


def test_little_memory_takes_few_passes():
    """One pass to sample, one to build the working set, one or two to verify."""
    X, a = long_data()
    result = run(Sifting(), from_disk(oracle_of(X, a), 1500), 100.0 / len(a), Stop(tol=1e-3))
    assert result.status is Status.CONVERGED
    assert result.history[-1]["passes"] <= 4


def test_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 4))
    y = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(30_000, 3)), axis=1)
    results = [
        run(solver, oracle, 1e-3, Stop(tol=1e-4))
        for solver, oracle in (
            (Sifting(), from_disk(multiclass_oracle_of(X, y), 6000)),
            (OCAS(), multiclass_oracle_of(X, y)),
        )
    ]
    assert all(result.status is Status.CONVERGED for result in results)
    assert results[0].primal == pytest.approx(results[1].primal, rel=2e-4)


def test_scores_are_held_or_streamed():
    X, a = long_data()
    assert isinstance(full_pass(oracle_of(X, a), 1.0), HeldPass)
    assert isinstance(full_pass(from_disk(oracle_of(X, a)), 1.0), StreamedPass)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    X, a = long_data()
    path = tmp_path_factory.mktemp("data") / "store"
    cutsvm.convert((X.astype(np.float32), np.where(a > 0, "yes", "no")), path, block_bytes=100_000)
    return path


class WithoutMemory(LinearSVC):
    """As if the limit left no memory for a number of each row, and for so few rows."""

    def _memory_plan(self, store):
        return memory.Plan(True, 2000, "from disk", vectors_in_memory=False)


def fit_without_memory(store, **settings):
    return WithoutMemory(C=0.01, memory_limit="1GB", **settings).fit(store)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_scores_in_files_change_no_bit(solver, store):
    ours = fit_without_memory(store, solver=solver)
    X, a = long_data()
    held = LinearSVC(C=0.01, solver=solver).fit(X.astype(np.float32), np.where(a > 0, "yes", "no"))
    assert_array_equal(ours.coef_, held.coef_)
    assert (ours.objective_, ours.lower_bound_) == (held.objective_, held.lower_bound_)
    assert_array_equal(ours.classes_, held.classes_)
    assert [name for name in os.listdir(store.parent) if name.startswith(".cutsvm")] == []


def test_auto_chooses_sifting(store):
    model = fit_without_memory(store, tol=1e-9, class_weight={"yes": 2.0}, max_iter=100_000)
    assert model.history_[0]["note"].startswith("sifting")
    X, a = long_data()
    held = LinearSVC(C=0.01, tol=1e-9, class_weight={"yes": 2.0}, solver="ocas", max_iter=100_000)
    held.fit(X.astype(np.float32), np.where(a > 0, "yes", "no"))
    assert model.objective_ == pytest.approx(held.objective_, rel=1e-9)
    assert list(model.classes_) == ["no", "yes"]


def test_one_vs_rest_from_disk(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 4)).astype(np.float32)
    y = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(30_000, 3)), axis=1)
    cutsvm.convert((X, y), tmp_path / "store", block_bytes=100_000)
    ours = fit_without_memory(tmp_path / "store", multi_class="ovr", solver="ocas")
    held = LinearSVC(C=0.01, multi_class="ovr", solver="ocas").fit(X, y)
    assert_allclose(ours.coef_, held.coef_, rtol=0, atol=0)


def test_full_disk(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DataError, match=r"no room for 240,000 bytes of temporary arrays: the disk is full; free some"):
        fit_without_memory(store)


def test_temporary_arrays(tmp_path):
    arrays = TemporaryArrays(tmp_path / "store")
    assert arrays.folder == tmp_path.resolve()
    a = arrays.zeros((3, 2))
    assert_array_equal(a, np.zeros((3, 2)))
    a[1] = 5.0
    assert a.sum() == 10.0
    assert arrays.zeros(0).shape == (0,)
    assert os.listdir(tmp_path) == []
    assert TemporaryArrays("/proc/nowhere").folder != tmp_path  # not to be written to


def test_rows_in_files(store):
    rows = StoreRows(cutsvm.open_dataset(store).store, temporary=TemporaryArrays(store))
    assert not rows.held
    assert rows.vector(5).tolist() == [0.0] * 5
