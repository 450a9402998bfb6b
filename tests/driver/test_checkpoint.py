"""Checkpoints: an interrupted fit resumes from its file with valid bounds and reaches the same solution."""

import errno
import logging
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cutsvm import LinearSVC, OrdinalSVC, RankingSVM, ROCAreaSVC, convert
from cutsvm.driver import checkpoint, checkpoint_file
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.checkpoint_file import CheckpointSettings
from cutsvm.driver.fingerprint import Fingerprint
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.io.files import temp_path
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Pairwise
from cutsvm.problem.pairs import PairOracle
from cutsvm.solvers import ACCPM, CPA, DCD, OCAS, Auto, Sifting
from cutsvm.solvers.protocol import SolverBase
from tests.support import ROOT
from tests.support.problems import SIFT_ANYTHING, long_data, many_classes, multiclass_oracle_of, oracle_of
from tests.support.reference import pairwise, svm

SOLVERS = {
    "ocas": OCAS(shards=3),
    "cpa": CPA(shards=2),
    "dcd": DCD(),
    "sifting": Sifting(inner=OCAS(shards=2), sample=0.3, band=0.2, settings=SIFT_ANYTHING),
    "sifting, dcd": Sifting(inner=DCD(), sample=0.3, band=0.2, settings=SIFT_ANYTHING),
    "accpm": ACCPM(),
    "accpm, I2": ACCPM(formulation="I2"),
    "auto": Auto(),
}
pytestmark = pytest.mark.usefixtures("every_iteration")


@pytest.fixture(scope="module")
def every_iteration():
    """Checkpoints are written after every iteration, without fsync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        before = checkpoint.configure(CheckpointSettings(0.0, 0.0, np.inf))
        yield
        checkpoint.configure(before)


def in_pieces(solver, oracle, C, path, *, tol=1e-6, steps=4, most=200):
    """Results of runs of a few iterations each, every one resumed from the last one's file."""
    results = []
    for _ in range(most):
        file = Checkpoint(path, Fingerprint({}, {}))
        results.append(run(solver, oracle(), C, Stop(tol=tol, max_iter=steps), checkpoint=file))
        file.close(converged=results[-1].status.converged)
        if results[-1].status is not Status.MAX_ITER:
            return results
        if not path.exists():  # a sample was not solved yet: the next run begins again, and gets further
            results.clear()
            steps *= 2
    return results


def check_bounds(results, low, high, C):
    """low <= min F <= high, and both bounds are monotone across interruptions."""
    slack = 1e-9 * high + 1e-12 * C
    primal, lower, iteration = np.inf, 0.0, -1
    for result in results:
        for record in result.history:
            assert record["lower"] <= high + slack and record["primal"] >= low - slack
            assert record["lower"] >= lower and record["primal"] <= primal + slack
            assert record["iteration"] >= iteration
            primal, lower, iteration = record["primal"], record["lower"], record["iteration"]
        assert result.n_iter == max(1, iteration)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(("seed", "steps"), [(0, 3), (3, 2), (460, 7)])
def test_bounds_hold_after_interruptions(name, intercept, seed, steps, tmp_path):
    X, a = long_data(n=60, d=3, seed=seed)
    C, path = 0.1, tmp_path / "file"
    low, high = svm.optimum(X, a, C, intercept)
    results = in_pieces(SOLVERS[name], lambda: oracle_of(X, a, intercept), C, path, tol=1e-4, steps=steps, most=12)
    check_bounds(results, low, high, C)
    # Sifting and centres have more to find again than so few iterations give.
    if "sifting" not in name and "accpm" not in name and steps > 2:
        assert results[-1].status is Status.CONVERGED and not path.exists()
        assert results[-1].primal <= high * (1.0 + 1.1e-4)


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize(
    "solver", [OCAS(shards=3), CPA(shards=2), Sifting(sample=0.3, band=0.2, settings=SIFT_ANYTHING)], ids=repr
)
def test_bounds_hold_for_multiclass(solver, intercept, tmp_path):
    X, y = many_classes(n=60, K=3)
    path = tmp_path / "file"
    low, high = svm.joint_optimum(X, y, np.ones(60), 0.5, intercept)
    results = in_pieces(solver, lambda: multiclass_oracle_of(X, y, intercept=intercept), 0.5, path, tol=1e-4, most=20)
    check_bounds(results, low, high, 0.5)
    if not isinstance(solver, Sifting):
        assert len(results) > 1 and results[-1].status is Status.CONVERGED


@pytest.mark.parametrize("solver", [OCAS(shards=3), CPA(), Auto()], ids=repr)
def test_bounds_hold_for_pairs(solver, tmp_path):
    rng = np.random.default_rng(0)
    X, y, starts = rng.normal(size=(40, 4)), rng.integers(0, 3, 40).astype(float), np.array([0, 15, 28, 40])
    low, high = pairwise.optimum(X, y, np.ones(40), starts, 0.5)
    results = in_pieces(
        solver, lambda: PairOracle(as_rows(X), Pairwise(y, np.ones(40), starts)), 0.5, tmp_path / "file", steps=2
    )
    check_bounds(results, low, high, 0.5)
    assert len(results) > 1 and results[-1].status is Status.CONVERGED


class EnoughError(Exception):
    """Raised in the middle of a fit."""


def cut_off(model, records, *data, **more):
    """Fits until `records` records were seen, then raises."""
    seen = []

    def count(record):
        seen.append(record)
        if len(seen) > records:
            raise EnoughError

    with pytest.raises(EnoughError):
        model.set_params(callbacks=[count]).fit(*data, **more)
    model.set_params(callbacks=None)
    return seen[-1]


def resumed(make, path, *data, **more):
    """Cut off half-way, the fit ends as it would have; returns that which was not cut off, and the other's rest."""
    full = make().fit(*data, **more)
    model = make().set_params(checkpoint=path)
    last = cut_off(model, len(full.history_) // 2, *data, **more)
    assert path.exists()
    model.fit(*data, **more)
    assert model.converged_ and not path.exists()
    tol = model.tol
    assert model.objective_ == pytest.approx(full.objective_, rel=2.0 * tol)
    assert full.lower_bound_ <= model.objective_ and model.lower_bound_ <= full.objective_
    mine = [record for record in model.history_ if record["label"] == last.label]
    assert mine[0]["iteration"] == last.iteration and mine[0]["seconds"] >= last.seconds
    assert mine[0]["gap"] == pytest.approx(last.gap)
    return full, model


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("solver", ["ocas", "cpa", "dcd", "sifting", "accpm", "auto"])
def test_two_classes(solver, intercept, tmp_path):
    X, y = long_data(n=20_000 if solver == "sifting" else 5_000, d=8)
    full, model = resumed(lambda: LinearSVC(0.1, tol=1e-5, solver=solver, intercept=intercept), tmp_path / "file", X, y)
    if solver in ("ocas", "cpa", "dcd"):  # their work is not lost
        assert len(model.history_) < 0.75 * len(full.history_) + 4


def test_resumed_fit_repeats_no_iterations(tmp_path):
    X, y = long_data(n=3000, d=30)
    full, model = resumed(lambda: LinearSVC(1.0, tol=1e-6, solver=OCAS(shards=4)), tmp_path / "file", X, y)
    assert model.n_iter_ <= full.n_iter_ + 3


def test_separation_problem_of_accpm(tmp_path):
    X, y = long_data(n=300, d=4)
    X += y[:, None] * 3.0
    resumed(lambda: LinearSVC(1e3, tol=1e-4, solver=ACCPM(formulation="E")), tmp_path / "file", X, y)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["ocas", "cpa", "dcd", "accpm", "auto"])
def test_one_vs_rest(solver, tmp_path):
    X, y = many_classes(n=2000, K=4)
    full, model = resumed(lambda: LinearSVC(tol=1e-3, solver=solver, multi_class="ovr"), tmp_path / "file", X, y)
    # The problems that were solved take one look.
    assert sum(record["label"] == "0" for record in model.history_) == 1
    assert np.mean(full.predict(X) == model.predict(X)) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["ocas", "cpa", "sifting"])
def test_all_classes_at_once(solver, tmp_path):
    X, y = many_classes(n=2000, K=4)
    resumed(lambda: LinearSVC(tol=1e-4, solver=solver), tmp_path / "file", sparse.csr_matrix(X), y)


@pytest.mark.parametrize("make", [RankingSVM, ROCAreaSVC, OrdinalSVC])
@pytest.mark.parametrize("solver", ["ocas", "cpa", "auto"])
def test_pairs(make, solver, tmp_path):
    X, y = many_classes(n=600, K=2 if make is ROCAreaSVC else 4)
    more = {"qid": np.arange(600) % 7} if make is RankingSVM else {}
    resumed(lambda: make(100.0, tol=1e-5, solver=solver), tmp_path / "file", X, y, **more)


def test_data_on_disk_and_in_memory_share_a_checkpoint(tmp_path):
    """memory_limit and n_jobs may change between two calls, and with them whether rows are on disk."""
    X, y = long_data(n=4000, d=10)
    convert((X, y), tmp_path / "store")
    path, store = tmp_path / "file", tmp_path / "store"
    model = LinearSVC(tol=1e-6, solver="ocas", memory_limit="1GB", checkpoint=path)
    first = cut_off(model, 6, store)
    second = cut_off(model.set_params(memory_limit=None, n_jobs=2), 4, store)
    assert second.iteration == first.iteration + 4
    third = cut_off(model.set_params(memory_limit="1GB"), 2, store)
    assert third.lower >= second.lower > first.lower
    model.fit(X, y)
    assert model.converged_ and model.n_iter_ > third.iteration


def test_limits_apply_to_each_call(tmp_path):
    X, y = long_data(n=3000, d=20)
    path = tmp_path / "file"
    model = LinearSVC(tol=1e-6, solver="cpa", checkpoint=path, max_iter=4)
    for call in range(1, 4):
        with pytest.warns(ConvergenceWarning, match="The same call resumes from .*file"):
            model.fit(X, y)
        assert model.n_iter_ == 4 * call and path.exists()
    model.set_params(max_iter=10_000, max_time=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ is Status.MAX_TIME and model.n_iter_ == 12
    # A larger tol is met by what is there already.
    model.set_params(tol=1.1 * model.gap_, max_time=None).fit(X, y)
    assert model.status_ is Status.CONVERGED and model.n_iter_ == 12 and not path.exists()


def test_nothing_is_written_before_anything_is_known(tmp_path):
    """Sifting solves a sample first; until then there is nothing to go on from."""
    X, y = long_data(n=3000, d=4)
    path, there = tmp_path / "file", []
    solver = Sifting(settings=SIFT_ANYTHING)
    LinearSVC(tol=1e-5, solver=solver, checkpoint=path, callbacks=[lambda _: there.append(path.exists())]).fit(X, y)
    known = [record["primal"] < 3000.0 for record in LinearSVC(tol=1e-5, solver=solver).fit(X, y).history_]
    assert there == known and True in known and False in known[1:]


def test_interrupted_problem_keeps_its_planes(tmp_path):
    X, y = many_classes(n=2000, K=3)
    model = LinearSVC(tol=1e-5, solver="ocas", multi_class="ovr", checkpoint=tmp_path / "file")
    model.set_params(callbacks=[lambda record: record.label == "1" and record.iteration == 5])
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    planes = [record["planes"] for record in model.history_ if record["label"] == "1"][-1]
    model.set_params(callbacks=None).fit(X, y)
    mine = [record for record in model.history_ if record["label"] == "1"]
    assert mine[0]["iteration"] == 5 and mine[1]["planes"] >= planes


def test_custom_solver(tmp_path):
    class Mine(SolverBase):
        def __call__(self, context, C):
            return OCAS()(context, C)

        def __repr__(self):
            return "Mine()"

    resumed(lambda: LinearSVC(tol=1e-5, solver=Mine()), tmp_path / "file", *long_data(n=1000, d=6))


def test_ctrl_c_keeps_the_file(tmp_path):
    def interrupt(record):
        if record.iteration == 5:
            raise KeyboardInterrupt

    X, y = long_data(n=2000, d=10)
    model = LinearSVC(tol=1e-6, solver="ocas", checkpoint=tmp_path / "file", callbacks=[interrupt])
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    model.set_params(callbacks=None).fit(X, y)
    assert model.history_[0]["iteration"] == 5 and model.converged_


def test_resuming_is_logged(tmp_path, caplog):
    X, y = long_data(n=2000, d=10)
    path = tmp_path / "file"
    model = LinearSVC(tol=1e-6, solver="ocas", checkpoint=path)
    last = cut_off(model, 5, X, y)
    with caplog.at_level(logging.INFO, logger="cutsvm"):
        model.fit(X, y)
    assert f"going on from {path}: iteration 5, gap {last.gap:.1e}, after " in caplog.text


@pytest.fixture
def saved(tmp_path):
    """Data, an interrupted model and its checkpoint."""
    X, y = long_data(n=500, d=5)
    model = LinearSVC(tol=1e-6, solver="ocas", checkpoint=tmp_path / "file")
    cut_off(model, 4, X, y)
    return X, y, model


def refused(model, X, y, match, **more):
    path = model.checkpoint
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match) as caught:
        model.fit(X, y, **more)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"C": 2.0}, "C 1.0 there, 2.0 here. Delete the file"),
        ({"intercept": "regularized"}, "intercept free there, regularized here"),
        ({"fit_intercept": False}, "intercept free there, none here"),
        ({"solver": "cpa"}, r"solver OCAS\(.*\) there, CPA\(.*\) here"),
        ({"class_weight": {1: 2.0}}, "the weights are others"),
    ],
    ids=str,
)
def test_other_parameters(saved, params, says):
    X, y, model = saved
    refused(model.set_params(**params), X, y, says)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda X, y: (X[:-1], y[:-1]), "rows 500 there, 499 here"),
        (lambda X, y: (X[:, :-1], y), "features 5 there, 4 here"),
        (lambda X, y: (-X, y), "X has other values"),
        (lambda X, y: (X[:, ::-1], y), "X has other values"),
        (lambda X, y: (X[::-1], y[::-1]), "X has other values"),
        (lambda X, y: (X.astype(np.float32), y), "X has other values"),
        (lambda X, y: (X + 1e-7 * (np.arange(len(X)) == 77)[:, None], y), "X has other values"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 77, -y, y)), "y has other labels"),
        (lambda X, y: (X, np.where(y > 0, 2, 1)), "classes -1.0 1.0 there, 1 2 here"),
    ],
)
def test_other_data(saved, change, says):
    X, y, model = saved
    refused(model, *change(X, y), says)


def test_other_weights_queries_and_estimators(saved, tmp_path):
    X, y, model = saved
    refused(model, X, y, "the weights are others", sample_weight=np.linspace(1.0, 2.0, len(y)))
    refused(ROCAreaSVC(solver="ocas", checkpoint=model.checkpoint), X, y, "estimator LinearSVC there, ROCAreaSVC here")
    rank = RankingSVM(1e3, tol=1e-6, checkpoint=tmp_path / "rank")
    cut_off(rank, 2, X, y, qid=np.arange(len(y)) // 100)
    refused(rank, X, y, "the queries are others", qid=np.arange(len(y)) // 50)


def test_parameters_outside_the_problem_may_change(saved):
    X, y, model = saved
    model.set_params(tol=1e-4, max_iter=500, max_time=60.0, n_jobs=2, memory_limit="1GB", warm_start=True)
    assert model.fit(X, y).history_[0]["iteration"] == 4


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-5], "truncated"),
        (lambda data: data[:30], "the first line is truncated"),
        (lambda data: data + b"x", "bytes after its end"),
        (lambda data: data[:-70] + bytes([data[-70] ^ 1]) + data[-69:], "damaged: the checksum does not match"),
        (lambda data: data.replace(b"cutsvm-checkpoint 1", b"cutsvm-checkpoint 9", 1), "written by a newer cutsvm"),
        (lambda data: b"1 1:1 2:0.5\n-1 1:2\n", "not a checkpoint, so it is left alone"),
    ],
)
def test_damaged_file_is_named_and_kept(saved, damage, says):
    X, y, model = saved
    model.checkpoint.write_bytes(damage(model.checkpoint.read_bytes()))
    refused(model, X, y, says)


def test_inconsistent_file_raises(saved):
    """A crafted file with a valid checksum and inconsistent contents."""
    from cutsvm.io.models.model_format import pack, unpack

    X, y, model = saved
    path = model.checkpoint
    with open(path, "rb") as stream:
        header, arrays = unpack(str(path), stream, "checkpoint")

    def written(header, arrays):
        path.write_bytes(b"".join(pack(header, arrays, "checkpoint")))
        return path

    for name, change in {
        "bounds": lambda a: a + 1,
        "shard": lambda a: a + 99,
        "slopes": lambda a: a[:, :-1],
        "offsets": lambda a: a * np.nan,
        "w0": lambda a: a[:-1],
    }.items():
        written(header, {**arrays, name: change(arrays[name])})
        refused(model, X, y, "damaged")
    written(header, {**arrays, "dual": np.zeros(3)})
    refused(model, X, y, "damaged")
    written({**header, "problems": 7}, arrays)
    refused(model, X, y, "damaged")
    written({k: v for k, v in header.items() if k != "settings"}, arrays)
    refused(model, X, y, "does not say of what it is")


def test_empty_file_starts_a_new_fit(tmp_path):
    path = tmp_path / "file"
    path.touch()
    assert LinearSVC(checkpoint=path).fit(*long_data(n=300, d=3)).converged_
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "none" / "file", "there is no folder"),
        (lambda folder: folder, "is not a file"),
        (lambda folder: "", "expected the name of a file"),
        (lambda folder: 7, "checkpoint=7"),
        (lambda folder: folder / "store" / "file", "is a store"),
    ],
)
def test_invalid_paths_raise_before_data_are_read(make, says, tmp_path):
    convert(long_data(n=30, d=2), tmp_path / "store")
    with pytest.raises(ValueError, match=says):
        LinearSVC(checkpoint=make(tmp_path)).fit("no such data")


def test_unwritable_file_does_not_end_the_fit(tmp_path, monkeypatch):
    def full(path, pieces, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    X, y = long_data(n=2000, d=10)
    monkeypatch.setattr(checkpoint_file, "write_atomically", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearSVC(tol=1e-6, solver="ocas", checkpoint=tmp_path / "file").fit(X, y)
    assert model.converged_ and len(model.history_) > 3
    assert len(caught) == 1 and "file cannot be written: No space left on device. The fit goes on" in str(caught[0])


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    """A file that takes long to write is written less often; the first one is written early."""
    now, times = 0.0, []

    def slow(path, pieces, **more):
        nonlocal now
        times.append(now)
        now += 2.0

    def tick():
        nonlocal now
        now += 0.5
        return now

    monkeypatch.setattr(checkpoint_file, "write_atomically", slow)
    monkeypatch.setattr(checkpoint_file, "perf_counter", tick)
    X, y = long_data(n=2000, d=30)
    before = checkpoint.configure(CheckpointSettings(1.0, 5.0, 0.1))
    LinearSVC(tol=1e-6, solver="cpa", checkpoint=tmp_path / "file").fit(X, y)
    checkpoint.configure(before)
    assert len(times) > 1 and times[0] < 3.0
    assert np.diff(times).min() >= 20.0


def test_temporary_file_of_a_killed_fit_is_removed(saved):
    X, y, model = saved
    temp_path(model.checkpoint).write_text("half of")
    model.fit(X, y)
    assert os.listdir(model.checkpoint.parent) == []


FIT = """
import sys
import numpy as np
from cutsvm import LinearSVC
from cutsvm.driver.checkpoint_file import CheckpointSettings, configure
sys.path.insert(0, sys.argv[2])
from tests.support.problems import long_data

configure(CheckpointSettings(0.0, 0.02, np.inf))
model = LinearSVC(10.0, tol=1e-5, solver="cpa", intercept="regularized", checkpoint=sys.argv[1])
model.fit(*long_data(n=5_000, d=30))
print(model.history_[0]["iteration"], model.converged_, model.objective_, model.lower_bound_)
"""


@pytest.mark.slow
def test_sigkill(tmp_path):
    """At any moment the file is a complete checkpoint, and the next process resumes from it."""
    path = tmp_path / "file"
    words = [sys.executable, "-c", FIT, str(path), str(ROOT)]
    for wait in np.random.default_rng().uniform(0.0, 0.3, size=2):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    left = path.exists()
    rest = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert rest[1] == "True" and (int(rest[0]) > 0) == left
    whole = LinearSVC(10.0, tol=1e-5, solver="cpa", intercept="regularized").fit(*long_data(n=5_000, d=30))
    assert float(rest[2]) == pytest.approx(whole.objective_, rel=2e-5)
    assert float(rest[3]) <= whole.objective_ and whole.lower_bound_ <= float(rest[2])
    assert os.listdir(tmp_path) == []


def test_planes_with_huge_offsets_are_read_back(tmp_path):
    """Weights over many decades: the next fit reads the checkpoint."""
    X, y = np.array([[-0.6], [0.0], [0.5], [0.2]]), [0, 0, 0, 1]
    model = LinearSVC(C=1e3, solver="dcd", fit_intercept=False, max_iter=2, checkpoint=tmp_path / "checkpoint")
    weights = np.array([2e15, 2e212, 2e8, 1e-100])
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, sample_weight=weights)
    assert (tmp_path / "checkpoint").exists()
    with pytest.warns(ConvergenceWarning):
        again = clone(model).fit(X, y, sample_weight=weights)
    assert again.lower_bound_ <= again.objective_ <= model.objective_
