"""SIGINT to a running process: it ends soon, and the model is kept."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from cutsvm import KernelSVC, LinearSVC, Status
from tests.support.signals import default_sigint

pytestmark = pytest.mark.slow

SOON = 20.0  # seconds; on an idle machine it is a fraction of one

PRELUDE = """
import os, signal, sys, threading, time, warnings
import numpy as np
from cutsvm import *
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)

def two(n, d):
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + 4.0 * rng.normal(size=n) > 0, 1, -1)

def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
"""

KEPT = """
began = time.perf_counter()
interrupt_after({moment})
model.fit(X, y)
print(model.status_.name, time.perf_counter() - began, len(model.predict(X[:5])), 0.0 <= model.gap_ <= 1.0)
"""

# They would all take far longer than the signal.
WORK = {
    "one native call": "X, y = two(4_000, 5); model = KernelSVC(1e6, tol=1e-7)",
    "cutting planes": """
X, y = two(100_000, 20)
model = LinearSVC(1e3, tol=1e-13, solver="cpa", callbacks=[lambda record: time.sleep(0.2)])
""",
    "coordinate descent": 'X, y = two(100_000, 20); model = LinearSVC(1e4, tol=1e-13, solver="dcd")',
}


def run(code, seconds=120):
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        preexec_fn=default_sigint,
    )


@pytest.mark.parametrize("name", WORK)
def test_signal_ends_a_fit_and_keeps_the_model(name):
    done = run(WORK[name] + KEPT.format(moment=3.0))  # on a busy machine the kernel matrix takes more than a second
    assert done.returncode == 0, done.stderr
    status, seconds, rows, proven = done.stdout.split()
    assert (status, rows) == ("INTERRUPTED", "5") and float(seconds) < 3.0 + SOON
    assert proven == "True" or name == "one native call"


def test_signal_ends_a_native_call():
    """One call of coordinate ascent that takes seconds and does not return to Python."""
    code = """
from cutsvm._native import core
X, y = two(3_000, 5)
K, first = (X @ X.T).astype(np.float32), np.array([0, 3_000])
alpha, seen = np.zeros((3_000, 1)), np.empty((1, 1, 3))
interrupt_after(0.5)
try:
    core.kernel_l2(K, np.arange(3_000, dtype=np.int32), y.astype(float), first, np.array([1e6]), "hinge", 1e-15, 10**9,
                   np.inf, alpha, seen, 1)
    print("ran to its end")
except KeyboardInterrupt:
    print("ended")
"""
    assert run(code).stdout == "ended\n"


def test_max_time_ends_a_native_call():
    from cutsvm._native import core

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5))
    K, a = (X @ X.T).astype(np.float32), np.where(rng.random(2_000) < 0.5, 1.0, -1.0)
    alpha, seen = np.zeros((2_000, 1)), np.empty((1, 1, 3))
    began = time.perf_counter()
    rows, first = np.arange(2_000, dtype=np.int32), np.array([0, 2_000])
    core.kernel_l2(K, rows, a, first, np.array([1e6]), "hinge", 1e-15, 10**9, 0.2, alpha, seen, 1)
    assert 0.1 < time.perf_counter() - began < SOON
    assert alpha.max() > 0.0 and np.isfinite(seen).all()


def test_the_command_line_keeps_the_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 5))
    np.savez(tmp_path / "d.npz", X=X, y=np.where(X[:, 0] + 4.0 * rng.normal(size=4_000) > 0, 1, -1))
    words = ["train", "--task", "kernel", "-c", "1e6", "-e", "1e-7", str(tmp_path / "d.npz")]
    child = subprocess.Popen(
        [sys.executable, "-m", "cutsvm.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_sigint,
    )
    assert child.stderr is not None
    said = child.stderr.readline()  # the rows are read
    time.sleep(1.5)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, "Traceback" in err) == (0, False), said + err
    assert out.startswith("not converged: gap") and (tmp_path / "d.npz.model").exists()


def test_signal_ends_a_grid_search():
    """The fit keeps its model and raises the interruption again for the search."""
    fits = []

    class Interrupted(LinearSVC):
        def _callbacks(self):
            def stop(record):
                fits.append(record)
                raise KeyboardInterrupt

            return [stop]

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(Interrupted(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert len(fits) == 1
    with pytest.warns(match="interrupted"):
        assert Interrupted().fit(X, y).status_ is Status.INTERRUPTED


def test_the_time_limit_holds_for_the_kernel_matrix_and_the_certificate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9_000, 300))
    y = np.where(X @ rng.normal(size=300) > 0, 1, -1)
    began = time.perf_counter()
    with pytest.warns(match="the time limit was reached"):
        model = KernelSVC(max_time=0.3).fit(X, y)
    assert time.perf_counter() - began < 0.3 + SOON / 4
    assert model.status_ is Status.MAX_TIME and set(model.predict(X[:9])) <= {-1, 1}
