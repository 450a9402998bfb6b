"""The same call gives the same bits: nothing that a solver does depends on free memory, the clock or the load."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

import cutsvm
from cutsvm import LinearSVC, RankingSVM, convert
from cutsvm._utils import memory, threads

PACKAGE = Path(cutsvm.__file__).parent


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Mostly zeros, and wide enough that a copy as CSR may pay."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 70)) * (rng.random((40_000, 70)) < 0.1)
    y = np.where(X @ rng.normal(size=70) + rng.normal(size=len(X)) > 0.0, 1, -1)
    path = tmp_path_factory.mktemp("reproducible") / "rows.store"
    convert((X.astype(np.float32), y), path)
    return path


def bits(model):
    return model.coef_.tobytes(), model.intercept_.tobytes(), model.objective_, model.lower_bound_, model.n_iter_


def test_memory_that_other_programs_use_changes_nothing(store, monkeypatch):
    """Neither free memory nor the pages that a process holds change the model."""
    settings = memory.MemorySettings()
    # A few thousand rows can be held: the plan matters.
    limits = [settings.fixed + 12_000_000, f"{5 * settings.step + settings.fixed + 12_000_000} total"]
    held = 4 * settings.step + 1_000_000
    found = []
    for more, free in ((0, 10**6), (200_000, 10**9), (7_000_000, 10**12)):
        monkeypatch.setattr(memory, "private", lambda more=more: held + more)
        monkeypatch.setattr("os.sysconf", _with_free(free))
        found.append([bits(LinearSVC(C=0.01, memory_limit=limit).fit(store)) for limit in limits])
    assert found[0] == found[1] == found[2]


def _with_free(free):
    from os import sysconf

    return lambda name: free if name == "SC_AVPHYS_PAGES" else sysconf(name)


def test_the_layout_of_rows_does_not_depend_on_free_memory(monkeypatch):
    rows = cutsvm.matrix.DenseRows(np.eye(cutsvm.matrix.arrays.COMPRESSION.min_features))
    kinds = []
    for free in (0, 10**12):
        monkeypatch.setattr("os.sysconf", _with_free(free))
        kinds.append(type(rows.fast()))
    assert kinds == [cutsvm.matrix.SparseRows] * 2


def test_no_module_reads_free_memory_or_addresses():
    """Free memory, load, and orders that depend on hashes or addresses; a seed that is not given is the user's wish."""
    asked = re.compile(r"AVPHYS|MemAvailable|MemFree|getloadavg|virtual_memory|cpu_percent|\bhash\(|\bid\(")
    found = [line for path in PACKAGE.rglob("*.py") for line in path.read_text().splitlines() if asked.search(line)]
    assert found == ['    found = [_status("/proc/meminfo", "MemAvailable")]']  # of memory_limit="auto"


SAME = """
import sys
from cutsvm import LinearSVC, RankingSVM
import numpy as np
model = LinearSVC(C=0.01, memory_limit=sys.argv[2], n_jobs=2).fit(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 8))
ranking = RankingSVM(C=1.0, n_jobs=2).fit(X, X[:, 0] + rng.normal(size=3000), qid=np.repeat(np.arange(300), 10))
print(model.coef_.tobytes().hex(), model.objective_.hex(), ranking.coef_.tobytes().hex())
"""


@pytest.mark.slow
def test_processes_agree(store):
    """Other hash seeds, other addresses, another moment."""
    outputs = []
    for seed in ("0", "123"):
        words = [sys.executable, "-c", SAME, str(store), "1GB"]
        env = {**__import__("os").environ, "PYTHONHASHSEED": seed}
        outputs.append(subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout)
    assert outputs[0] == outputs[1] and outputs[0].strip()


def _problem(features):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, features))
    return X, np.where(X @ rng.normal(size=features) + rng.normal(size=3000) > 0.0, 1, -1)


def test_concurrent_fits_give_the_same_bits():
    """The reduced problem's matrix products are large enough here for BLAS to use several threads if it may."""
    X, y = _problem(300)
    jobs = [
        lambda: LinearSVC(C=0.1, solver="ocas").fit(X, y),
        lambda: LinearSVC(C=1.0, solver="cpa", max_iter=40, tol=1e-9).fit(X, y),
        lambda: RankingSVM(C=1.0).fit(X[:, :9], y, qid=np.repeat(np.arange(300), 10)),
    ]
    with pytest.warns(match="Stopped at a gap"):
        alone = [bits(job()) for job in jobs]
        with ThreadPoolExecutor(2) as pool:
            at_once = [bits(model) for model in pool.map(lambda job: job(), jobs * 2)]
    assert at_once == alone * 2


def test_blas_is_limited_in_every_thread_until_the_last_fit_ends():
    def limits():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    def inside():
        with threads.one_blas_thread():
            return limits()

    before = limits()
    with threads.one_blas_thread():
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(inside).result() == {1}
        assert limits() == {1}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() == {1}
    assert limits() == before


def test_equal_breakpoints_are_not_extracted(monkeypatch):
    """At w = 0 all scores are equal, and so are the breakpoints of all rows of a class: they must not take memory."""
    from cutsvm.problem.line_search import breakpoints
    from cutsvm.problem.losses import Hinge

    rng = np.random.default_rng(0)
    signed = np.where(rng.random(20_000) < 0.4, 1.0, -1.0) * rng.random(20_000)
    taken = []

    def counted(*arguments):
        taken.append(1)
        raise AssertionError("breakpoints were taken out")

    for scores in (np.zeros(20_000), np.full(20_000, 1.0), np.full(20_000, -1.0), np.repeat([0.3, 5.0], 10_000)):
        line = Hinge(signed).line(scores.copy())
        expected = breakpoints.lowest(line, 1e-12)
        monkeypatch.setattr(line, "_crossing", counted)
        few = breakpoints.LineSearchSettings(most=100)
        assert breakpoints.lowest(line, 1e-12, few) == pytest.approx(expected, rel=1e-12)
    assert not taken


def test_floats_between():
    from cutsvm.problem.line_search.intercept import floats_between

    for low, high in ((-1.0, 1.0), (0.0, 1e-300), (-1e300, -1e-300), (1.0, 1.0 + 1e-15)):
        ks = floats_between(low, high)
        assert len(ks) and (np.diff(ks) > 0).all() and low < ks[0] and ks[-1] < high
    assert len(floats_between(1.0, np.nextafter(1.0, 2.0))) == 0
    assert_array_equal(floats_between(-5e-324, 5e-324), [0.0])
