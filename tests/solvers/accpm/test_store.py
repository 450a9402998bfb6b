"""The analytic-centre solver from rows on disk: the same sums and answers, files removed, bounded memory."""

import errno
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import cutsvm
from cutsvm import LinearSVC
from cutsvm._utils.errors import DataError
from cutsvm._utils.timing import clock
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.matrix import StoreRows, as_rows, temporary_stores
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import ACCPM, OCAS
from cutsvm.solvers.accpm.oracles import ORACLES
from cutsvm.solvers.bucketing.bucket_files import BucketFiles, buckets_of
from cutsvm.solvers.bucketing.buckets import Buckets
from tests.support.problems import iterates

INTERCEPTS = ["none", "regularized", "free"]
KINDS = {"dense": lambda X: X, "csr": sparse.csr_matrix}
N, D = 9000, 6


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """Makes the same risk in memory and from a store of several blocks; a = label times weight."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.8), 3)
    score = X @ rng.normal(size=D) + 0.5 * rng.normal(size=N)
    a = np.where(score > 0.3, 1.0, -1.0) * rng.choice([0.0, 1.0, 2.0], size=N)
    X = KINDS[request.param](X)
    path = tmp_path_factory.mktemp("accpm") / "rows.store"
    store = cutsvm.convert((X, np.sign(a)), path, block_bytes=3000 * D * 8).store
    assert len(store.manifest.blocks) > 2

    def risks(intercept):
        return [
            Oracle(rows, Hinge(a, 2), intercept=Intercept(intercept), threads=2)
            for rows in (as_rows(X, 2), StoreRows(store, 2))
        ]

    return risks


def folders(store_rows):
    return sorted(path.name for path in store_rows.store.path.parent.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_same_sums(both, intercept, whiten):
    rng = np.random.default_rng(1)
    settings = {"count": 8, "both_sides": True, "whiten": whiten}
    memory, disk = (buckets_of(oracle, **settings) for oracle in both(intercept))
    assert type(memory) is Buckets and type(disk) is BucketFiles
    assert_allclose(disk.moves.lengths, memory.moves.lengths, rtol=1e-9)
    at = rng.normal(size=memory.oracle.size)
    for dispatches in range(3):
        for step in (0.0, 0.01, 0.3, 3.0):
            w = at + step * rng.normal(size=len(at))
            mine, theirs = memory.sums(w), disk.sums(w)
            assert theirs.whole
            assert theirs.loss == pytest.approx(mine.loss, rel=1e-11)
            assert_allclose(theirs.slope, mine.slope, atol=1e-9 * N)
            assert theirs.offset == pytest.approx(mine.offset, rel=1e-11)
            assert memory.worst(w).slack == pytest.approx(disk.worst(w).slack, rel=1e-12)
            for limit in (0.0, 0.5 * mine.loss):
                early, same = memory.sums(w, limit), disk.sums(w, limit)
                assert early.loss > limit
                assert same.loss == pytest.approx(early.loss, rel=1e-9)
            assert memory.first(w).number == disk.first(w).number
        if dispatches < 2:
            at = rng.normal(size=len(at))
            with clock() as time:
                memory.dispatch(at)
                before = dict(time.counts)
                disk.dispatch(at)
            assert time.counts["rows_written"] == 2 * before["rows_written"] == 2 * N
            assert sum(part.n for part in disk.parts) == N
            numbers = np.concatenate([part.numbers for part in disk.parts])
            assert_array_equal(np.sort(numbers), np.arange(N))
            assert all(low.high <= high.low for low, high in zip(disk.parts, disk.parts[1:], strict=False))
            assert sum(part.totals is not None for part in disk.parts) >= 2
    disk.close()
    assert folders(disk.matrix) == ["rows.store"]


def test_few_rows_are_read_near_the_last_dispatch(both):
    memory, disk = both("free")
    at = run(OCAS(), memory, 0.01, Stop(tol=1e-3)).w
    reads = {}
    for both_sides in (False, True):
        kept = buckets_of(disk, count=16, both_sides=both_sides)
        kept.dispatch(at)
        with clock() as time:
            kept.sums(at + 1e-3)
        reads[both_sides] = time.counts["visits"] - time.counts["rows_read"]
        kept.close()
    assert reads[True] < 0.1 * N < reads[False] < 0.7 * N


@pytest.mark.slow
@pytest.mark.parametrize(("form", "intercept"), [("I1", "none"), ("I1", "free"), ("I2", "regularized")])
def test_the_same_answer(both, form, intercept):
    """Cut for cut the same but for rounding, with dispatches and without."""
    found = []
    for more in ({"buckets": 1}, {"both_sides": True, "whiten": True}):
        for oracle in both(intercept):
            found.append(run(ACCPM(formulation=form, **more), oracle, 0.01, Stop(tol=1e-5)))
            assert found[-1].status is Status.CONVERGED
    assert_allclose([result.primal for result in found], found[0].primal, rtol=1.1e-5)
    for mine, theirs in zip(found[::2], found[1::2], strict=True):
        assert theirs.lower <= mine.primal and mine.lower <= theirs.primal
        last = theirs.history[-1]
        assert last["rows_written"] == mine.history[-1]["rows_written"] or form == "I2"
        assert last["visits"] - last["rows_read"] <= 1.1 * (mine.history[-1]["visits"] - mine.history[-1]["rows_read"])
    assert folders(oracle.matrix) == ["rows.store"]


def test_the_same_iterates(both):
    """(I1) reads all rows that matter at every point: bounds agree to rounding as long as the centres do."""
    memory, disk = both("regularized")
    mine, theirs = (islice(iterates(ACCPM(buckets=4), oracle, 0.01), 25) for oracle in (memory, disk))
    for a, b in zip(mine, theirs, strict=True):
        assert b.primal == pytest.approx(a.primal, rel=1e-9)
        assert b.lower == pytest.approx(a.lower, rel=1e-9, abs=1e-9)


def test_separation(tmp_path):
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(3000, 4)), np.tile([1.0, -1.0], 1500)
    X[:, 0] += 6.0 * a
    store = cutsvm.convert((X, a), tmp_path / "rows.store", block_bytes=500 * 32).store
    results = [
        run(ACCPM(formulation="E"), Oracle(rows, Hinge(a), intercept=Intercept.FREE), 10.0, Stop(tol=1e-6))
        for rows in (as_rows(X), StoreRows(store))
    ]
    assert results[1].primal == pytest.approx(results[0].primal, rel=1e-6)
    assert folders(StoreRows(store)) == ["rows.store"]


def test_oracles_name_the_same_row(both):
    rng = np.random.default_rng(2)
    memory, disk = both("free")
    ours, theirs = (ORACLES["E"](buckets_of(oracle, count=4), 1.0, early=False) for oracle in (memory, disk))
    for _ in range(3):
        x = rng.normal(size=memory.size)
        assert_allclose(theirs(x).gradient, ours(x).gradient, rtol=1e-12)
        ours.buckets.dispatch(x)
        theirs.buckets.dispatch(x)
        assert list(theirs.shards) == list(ours.shards)
    theirs.buckets.close()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["stopped", "error", "let go"])
def test_files_are_removed(both, when):
    _, disk = both("free")
    solver, before = ACCPM(), folders(disk.matrix)
    if when == "error":

        def callback(record):
            if record.rows_written:
                assert len(folders(disk.matrix)) == 2
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            run(solver, disk, 0.1, Stop(tol=1e-9), [callback])
    elif when == "stopped":
        assert run(solver, disk, 0.1, Stop(tol=1e-9, max_iter=30)).history[-1]["rows_written"]
    else:
        running = iterates(solver, disk, 0.1)
        list(islice(running, 30))
        assert len(folders(disk.matrix)) == 2
        del running
    assert folders(disk.matrix) == before


def test_buckets_fall_back_to_the_temporary_folder(both, monkeypatch, tmp_path):
    _, disk = both("none")
    make = temporary_stores.tempfile.TemporaryDirectory

    def refuse(prefix, dir=None):
        if dir is not None:
            raise PermissionError(errno.EACCES, "not here")
        return make(prefix=prefix, dir=tmp_path)

    monkeypatch.setattr(temporary_stores.tempfile, "TemporaryDirectory", refuse)
    kept = buckets_of(disk, count=4)
    kept.dispatch(np.ones(D))
    assert len(list(tmp_path.iterdir())) == 1
    kept.close()
    assert not list(tmp_path.iterdir())


def test_full_disk_raises(both, monkeypatch):
    _, disk = both("none")

    def full(self, rows, values, numbers):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(temporary_stores._Writer, "add", full)
    with pytest.raises(
        DataError, match=r"No space left on device: no room for the rows in buckets, .* buckets=1 needs none"
    ):
        run(ACCPM(), disk, 0.1, Stop(tol=1e-9))
    assert folders(disk.matrix) == ["rows.store"]


def test_the_estimator_trains_from_a_store(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5000, 4))
    y = np.where(X @ rng.normal(size=4) + rng.normal(size=5000) > 0, "yes", "no")
    cutsvm.convert((X, y), tmp_path / "rows.store", block_bytes=1000 * 32)
    ours = LinearSVC(0.01, solver="accpm", tol=1e-6).fit(X, y)
    theirs = LinearSVC(0.01, solver="accpm", tol=1e-6, memory_limit="2GB").fit(tmp_path / "rows.store")
    assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-9)
    assert theirs.history_[-1]["rows_written"] == ours.history_[-1]["rows_written"] > 0
