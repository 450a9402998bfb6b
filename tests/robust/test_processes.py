"""Fits in forked processes, in joblib's workers, and killed or starved commands: small versions of the scripts here."""

import os
import random
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed

from cutsvm import LinearSVC
from cutsvm._utils import threads
from tests.robust import kills

pytestmark = pytest.mark.slow

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as on Linux")
COMMAND = [sys.executable, "-m", "cutsvm.cli"]


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 15))  # enough numbers for two threads
    return X, np.where(X @ rng.normal(size=15) + rng.normal(size=len(X)) > 0.0, 1, -1)


def fit(C=0.01):
    X, y = problem()
    return LinearSVC(C=C, n_jobs=2, solver="ocas").fit(X, y).coef_.tobytes()


@FORK
def test_child_forked_after_a_fit_does_not_hang():
    """GNU OpenMP hangs in such a child if it is asked for threads."""
    expected = fit()  # has started OpenMP's threads
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: this process has threads
        pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        os.write(write, fit())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        found = stream.read()
    assert os.waitpid(pid, 0)[1] == 0
    assert found == expected


@FORK
def test_child_forked_during_a_fit_does_not_hang():
    """A lock that the other thread held at that moment must not stop the child."""
    with threads.one_blas_thread(), threads._blas.lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            fit()
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers_give_the_same_bits(backend):
    expected = [fit(C) for C in (0.01, 0.1)]
    found = Parallel(n_jobs=2, backend=backend)(delayed(fit)(C) for C in (0.01, 0.1, 0.01, 0.1))
    assert found == expected * 2


@FORK
@LINUX
@pytest.mark.parametrize("part", kills.PARTS)
def test_nothing_is_lost_after_a_kill(part, tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        many = 5 if part in ("append", "delete", "compact", "predict") else 2
        counts = kills.PARTS[part](many, random.Random(1), tmp_path)
    capsys.readouterr()
    assert not [key for key in counts if key.split(":")[0].isupper()], counts


@LINUX
@pytest.mark.parametrize(
    ("command", "closed"),
    [*(("--version", how) for how in (">&-", "<&- >&- 2>&-", "> /dev/full", "| true")), ("predict", ">&-")],
)
def test_streams_that_are_closed_or_full(command, closed, tmp_path):
    """A shell closes the streams before Python starts. The script faults.py has all commands and ways."""
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 1:-1\n1 1:2\n-1 2:1\n")
    words = {"--version": "--version", "predict": f"predict {tmp_path}/rows.svm {tmp_path}/some.model -"}
    if command == "predict":
        X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), [1, -1, 1, -1]
        from cutsvm import save_model

        save_model(LinearSVC().fit(X, y), tmp_path / "some.model", zero_based=False)
    shell = f"{' '.join(COMMAND)} {words[command]} 2>{tmp_path}/errors {closed}"
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=False)
    told = done.stderr + (tmp_path / "errors").read_text()
    assert done.returncode in (0, 1) and "Traceback" not in told and "Exception" not in told, told
