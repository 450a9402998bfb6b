"""Numbers of threads of fits and of BLAS."""

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from cutsvm import LinearSVC
from cutsvm._utils import threads


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_n_jobs_none_is_one_thread():
    assert threads.count(None) == threads.count(1) == 1
    assert threads.count(-1) >= 1


def _count(pipe):
    pipe.send([threads.count(jobs) for jobs in (None, 1, 2, -1)])


@pytest.mark.slow
def test_daemon_process_has_threads():
    """joblib gives a daemonic process one job, since it may not start processes; threads are allowed."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_count, args=(theirs,), daemon=True)
    process.start()
    assert ours.recv() == [threads.count(jobs) for jobs in (None, 1, 2, -1)]
    process.join()


def test_blas_threads_are_restored():
    """Also when fits overlap, and when one of them fails."""
    before = blas_threads()
    X = np.random.default_rng(0).normal(size=(3000, 5))
    y = X[:, 0] > 0
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda C: LinearSVC(C=C).fit(X, y), [0.1, 1.0, 10.0, 0.5]))
    assert all(model.converged_ for model in models)
    assert blas_threads() == before
    with pytest.raises(RuntimeError), threads.one_blas_thread():
        assert set(blas_threads()) <= {1}
        raise RuntimeError
    assert blas_threads() == before


def test_fits_in_threads_do_not_disturb_each_other(overlapping):
    X, y = overlapping
    alone = LinearSVC(C=0.01).fit(X, y).coef_
    with ThreadPoolExecutor(4) as pool:
        for model in pool.map(lambda _: LinearSVC(C=0.01, n_jobs=2).fit(X, y), range(8)):
            assert_allclose(model.coef_, alone, rtol=1e-9, atol=1e-12)


def test_little_data_use_one_thread(monkeypatch):
    before = threads.configure(threads.ThreadSettings(min_size=1000))
    monkeypatch.setattr(threads.core, "max_threads", lambda: 4)
    try:
        assert threads.count(2, 999) == 1
        assert threads.count(2, 1000) == threads.count(2) == 2
    finally:
        threads.configure(before)
