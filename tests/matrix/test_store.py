"""Rows on disk give what rows in memory give, to the last bit: each kernel, and whole fits."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import cutsvm
from cutsvm import KernelSVC, LinearSVC, OrdinalSVC, RankingSVM, ROCAreaSVC
from cutsvm._utils import memory
from cutsvm.driver.records import Stop
from cutsvm.driver.run import run
from cutsvm.io import open_dataset
from cutsvm.matrix import Choices, SparseRows, StoreRows, as_rows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import CPA, DCD, OCAS, Auto, Sifting
from cutsvm.solvers.sifting.solver import SiftingSettings
from tests.support.problems import iterates

N, D, K = 30_000, 7, 3


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    y = np.where(X @ rng.normal(size=D) + rng.normal(size=N) > 0.2, 1, -1)
    return X, y


KINDS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csr32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
}


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """The same rows in memory and on disk, in several blocks."""
    X, y = problem()
    X = KINDS[request.param](X)
    path = tmp_path_factory.mktemp("rows") / "store"
    data = cutsvm.convert((X, y), path, block_bytes=4096 * X.dtype.itemsize * D)
    assert len(data.store.manifest.blocks) > 3
    return as_rows(X, 2), StoreRows(data.store, 2)


def test_shape_and_attributes(both):
    ours, disk = both
    assert (disk.n, disk.d, disk.entries) == (ours.n, ours.d, ours.entries)


def test_scores(both):
    w, W, b = np.linspace(-1, 1, D), np.random.default_rng(1).normal(size=(K, D)), np.arange(K, dtype=float)
    single, many = [], []
    for rows in both:
        single.append(np.empty(N))
        rows.scores(w, 0.5, single[-1])
        many.append(np.empty((N, K)))
        rows.scores_many(W, b, many[-1])
    assert_array_equal(*single)
    assert_array_equal(*many)


@pytest.mark.parametrize("shards", [1, 3, 16, 40])
@pytest.mark.parametrize("extra", [0, 1])
def test_accumulate(both, shards, extra):
    rng = np.random.default_rng(2)
    bounds = np.linspace(0, N, shards + 1).astype(np.int64)
    start, middle = rng.normal(size=N), rng.normal(size=N)
    end = middle.copy()
    end[9000:9100] += 0.1  # one block of many
    found = []
    for rows in both:
        old, sums, moved = start.copy(), np.full((shards, D + extra), 0.1), np.zeros(shards)
        read = [rows.accumulate(old, fresh, bounds, sums, moved) for fresh in (middle, end, end)]
        assert read == [N, 100, 0]
        found.append((old, sums, moved))
    for mine, theirs in zip(*found, strict=True):
        assert_array_equal(mine, theirs)


@pytest.mark.parametrize("shards", [1, 5, 33])
def test_accumulate_choices(both, shards):
    rng = np.random.default_rng(3)
    y, weights = rng.integers(0, K, N).astype(np.int32), rng.random(N)
    bounds = np.linspace(0, N, shards + 1).astype(np.int64)
    fresh = rng.integers(0, K, N).astype(np.int32)
    found = []
    for rows in both:
        old, sums, moved = y.copy(), np.zeros((shards, K * D)), np.zeros(shards)
        read = rows.accumulate_choices(Choices(y, weights, old, fresh, K), bounds, sums, moved)
        assert read == np.count_nonzero(y != fresh)
        found.append((sums, old))
    for mine, theirs in zip(*found, strict=True):
        assert_array_equal(mine, theirs)


def test_tangents(both):
    rng = np.random.default_rng(5)
    signed, W, b = rng.choice([-1.0, 2.0], size=N), rng.normal(size=(K, D)), np.zeros(K)
    edges = np.linspace(0, N, 8).astype(np.int64)
    found = [(np.zeros((7 * K, D + 1)), np.zeros((7 * K, 2))) for _ in both]
    for rows, (sums, heights) in zip(both, found, strict=True):
        rows.tangents(signed, W, b, edges, sums, heights)
        assert heights.all()
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])


def test_group_sums(both):
    rng = np.random.default_rng(4)
    weights, group = rng.normal(size=N), rng.integers(-1, 4, N).astype(np.int32)
    group[4096:8192] = -1  # a block that is not read
    found = []
    for rows in both:
        sums = np.full((4, D + 1), 0.3)
        assert rows.group_sums(weights, group, sums) == np.count_nonzero(group >= 0)
        found.append(sums)
    assert_array_equal(*found)


@pytest.mark.parametrize("step", [1, 3, 1000, N])
def test_take_and_squares(both, step):
    which = np.arange(5, N, step)
    w = np.linspace(-1, 1, D)
    found = []
    for rows in both:
        some = rows.take(which)
        scores, squares = np.empty(some.n), np.empty(N)
        some.scores(w, 0.0, scores)
        rows.squares(squares)
        found.append((scores, squares))
        if isinstance(some, SparseRows):
            assert some.arrays[1].dtype == np.int32 and some.sorted
    for mine, theirs in zip(*found, strict=True):
        assert_array_equal(mine, theirs)


def test_take_needs_increasing_rows(both):
    for rows in ([2, 1], [-1, 1], [0, N]):
        with pytest.raises(ValueError, match="rising numbers"):
            both[1].take(np.array(rows))
    assert both[1].take(np.array([], dtype=np.int64)).n == 0


def fitted(X, y=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(**{"C": 1e-3, "n_jobs": 2, **params}).fit(X, y)


def same(mine, theirs):
    """The same answer, the same certificate and the same steps."""
    assert_array_equal(mine.coef_, theirs.coef_)
    assert_array_equal(mine.intercept_, theirs.intercept_)
    assert (mine.objective_, mine.lower_bound_, mine.n_iter_) == (
        theirs.objective_,
        theirs.lower_bound_,
        theirs.n_iter_,
    )
    assert [record["passes"] for record in mine.history_] == [record["passes"] for record in theirs.history_]


@pytest.mark.slow
@pytest.mark.parametrize("solver", [OCAS(), OCAS(shards=5), CPA(), Sifting()], ids=repr)
@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_fits_of_two_classes(both, solver, intercept):
    disk = both[1]
    data = open_dataset(disk.store.path)
    params = {"solver": solver, "intercept": intercept, "tol": 1e-4}
    from_disk = fitted(data, memory_limit="1GB", **params)
    assert not data.loaded and from_disk.converged_
    same(from_disk, fitted(data.X, data.y, **params))
    assert from_disk.n_features_in_ == D


@pytest.mark.slow
@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
@pytest.mark.parametrize("solver", ["ocas", "sifting"])
def test_fits_of_several_classes(both, multi_class, solver, tmp_path):
    X, y = both[1].store.load(), problem()[1] + np.arange(N) % 2
    data = cutsvm.convert((X, y), tmp_path / "store", block_bytes=4096 * 8 * D)
    params = {"solver": solver, "multi_class": multi_class, "tol": 1e-2}
    same(fitted(tmp_path / "store", memory_limit="1GB", **params), fitted(X, y, **params))
    assert len(np.unique(data.y)) == 4


def test_auto_sifts_rows_on_disk(both):
    data = open_dataset(both[1].store.path)
    model = fitted(data, memory_limit="1GB", solver="auto")
    assert "sifting: 30,000 rows on disk" in model.history_[-1]["note"]
    same(model, fitted(data.X, data.y, solver="sifting"))
    oracle = Oracle(both[1], Hinge(np.where(data.y > 0, 1.0, -1.0)), intercept=Intercept.FREE)
    wide = SiftingSettings(least_rows=10**9)
    assert "too few for sifting" in Auto(sifting=Sifting(settings=wide)).choose(oracle, 1.0)[1]


@pytest.mark.slow
@pytest.mark.parametrize("room", [2_000, 4_000, 9_000])
def test_little_memory(both, room):
    """The working set outgrows the memory; the answer is as accurate."""
    rows = StoreRows(both[1].store, 2, room=room)
    data = open_dataset(both[1].store.path)
    signed = np.where(data.y > 0, 1.0, -1.0)
    oracle = Oracle(rows, Hinge(signed, 2), intercept=Intercept.FREE, threads=2)
    taken = []
    take = rows.take
    rows.take = lambda which: taken.append(len(which)) or take(which)
    lowest = fitted(data.X, data.y, solver="ocas", C=1.0, tol=1e-5)
    for iterate in iterates(Sifting(), oracle, 1.0, tol=1e-4):
        assert iterate.lower <= lowest.objective_ * (1 + 1e-9)
        if iterate.gap <= 1e-4:
            break
    assert iterate.primal <= lowest.objective_ * (1 + 1.1e-4)
    assert max(taken) <= room


def test_weights_in_the_store_are_used(tmp_path):
    X, y = problem()
    weights = np.random.default_rng(5).random(N)
    path = tmp_path / "store"
    cutsvm.convert((X, y), path, weight=weights)
    same(fitted(path, solver="ocas"), LinearSVC(1e-3, n_jobs=2, solver="ocas").fit(X, y, weights))
    same(fitted(path, solver="ocas", memory_limit="1GB"), fitted(path, solver="ocas"))


def test_a_file_under_a_limit(tmp_path):
    X, y = problem()
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    model = fitted(tmp_path / "rows.npz", memory_limit=10**9, solver="ocas")
    same(model, fitted(X, y, solver="ocas"))


def test_dcd_needs_memory(both):
    path = both[1].store.path
    for solver in ("dcd", DCD(), Sifting(inner=DCD())):
        with pytest.raises(ValueError, match=r"rows on disk: use .auto., .ocas., .cpa., .sifting., .accpm."):
            fitted(path, solver=solver, memory_limit="1GB")
        fitted(path, solver=solver)


def test_a_store_is_loaded_where_it_fits(both, monkeypatch):
    path, loads = both[1].store.path, []
    load = cutsvm.io.store.store.Store.load
    monkeypatch.setattr("cutsvm.io.store.store.Store.load", lambda store: loads.append(1) or load(store))
    fitted(path, solver="ocas")
    assert len(loads) == 1
    size = both[1].store.manifest.size
    need = size + 64 * N
    settings = memory.MemorySettings(fixed=-(10**9))
    for most, on_disk in ((need - 1, True), (need + 1, False)):
        monkeypatch.setattr(memory, "total", lambda most=most: most / settings.machine_share)
        assert memory.plan(N, size, None, settings=settings).on_disk == on_disk


def test_a_limit_that_is_too_small_says_what_is_needed(both, caplog):
    path = both[1].store.path
    with pytest.raises(
        ValueError, match=r"memory_limit is 1 MB beside the .* holds: too little for a fit; expected at least [\d.]+ MB"
    ):
        fitted(path, memory_limit="1MB")
    with caplog.at_level("INFO", logger="cutsvm"):
        fitted(path, memory_limit="1GB", solver="ocas")
    assert "training from disk: memory_limit is 1 GB" in caplog.text


@pytest.mark.parametrize(
    ("text", "size"),
    [(5, 5), ("5", 5), ("300MB", 3 * 10**8), ("2 GB", 2 * 10**9), ("1.5k", 1500), ("1GiB", 2**30), ("7b", 7)],
)
def test_sizes(text, size):
    assert memory.parse_limit(text) == size


@pytest.mark.parametrize("text", [0, -1, True, 1.5, "", "GB", "x", "-1GB", "1ZB", "0MB", "1 0MB", None])
def test_bad_sizes(text):
    with pytest.raises(ValueError, match=r"memory_limit=.*expected bytes"):
        memory.parse_limit(text)
    if text is not None:
        with pytest.raises(ValueError, match="memory_limit="):
            LinearSVC(memory_limit=text).fit([[0.0], [1.0]], [0, 1])


def test_known_and_unknown_memory(monkeypatch):
    assert memory.private() > 0 and memory.total() > 0
    assert memory._status("/no/such/file", "x") == 0
    assert [memory.format_bytes(size) for size in (5, 1500, 2e6, 3.2e9)] == ["5 bytes", "1.5 kB", "2 MB", "3.2 GB"]


@pytest.mark.parametrize("limit", [None, "1GB"])
def test_every_estimator_has_the_names_of_a_store_s_features(limit, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["height", "width"]).assign(label=np.arange(60) % 2)
    frame.to_parquet(tmp_path / "rows.parquet")
    cutsvm.convert(tmp_path / "rows.parquet", tmp_path / "rows.store", label="label")
    for make in (LinearSVC, RankingSVM, ROCAreaSVC, OrdinalSVC, KernelSVC):
        params = {} if make is KernelSVC else {"memory_limit": limit}
        model = make(**params).fit(tmp_path / "rows.store")
        assert list(model.feature_names_in_) == ["height", "width"], make


@pytest.mark.parametrize("solver", [OCAS(shards=2), CPA(shards=1)], ids=["ocas", "cpa"])
@pytest.mark.parametrize("intercept", list(Intercept))
def test_few_planes_leave_bounds_valid(both, solver, intercept):
    """With memory for twelve planes a fit takes longer; its bounds hold at every iterate, and meet."""
    ours, disk = both
    C, loss = 0.1, Hinge(np.asarray(disk.store.y, dtype=np.float64))
    size = disk.d + (intercept is not Intercept.NONE)
    few = StoreRows(disk.store, 2, plane_bytes=memory.bytes_of_planes(12, size))
    exact = run(OCAS(), Oracle(ours, loss, intercept, 2), C, Stop(1e-6, 1000))
    whole, found = (run(solver, Oracle(rows, loss, intercept, 2), C, Stop(1e-3, 3000)) for rows in (disk, few))
    assert found.status.converged
    most, of_few = (max(record["planes"] for record in result.history) for result in (whole, found))
    assert of_few <= 12 < most
    for record in found.history:
        assert record["lower"] <= exact.primal * (1.0 + 1e-12)
        assert record["primal"] >= exact.lower * (1.0 - 1e-12)
