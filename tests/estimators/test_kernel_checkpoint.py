"""Checkpoints of KernelSVC, KernelSVR and KernelOneClassSVM: what is resumed, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cutsvm import KernelOneClassSVM, KernelSVC, KernelSVR, Status
from cutsvm.driver import checkpoint_file
from cutsvm.driver.checkpoint_file import CheckpointSettings

MODELS = {
    "two classes": KernelSVC(10.0, tol=1e-6),
    "three classes": KernelSVC(10.0, tol=1e-6, class_weight={0: 2.0}),
    "regression": KernelSVR(10.0, tol=1e-6),
    "regression, no intercept": KernelSVR(10.0, tol=1e-6, fit_intercept=False),
    "one class": KernelOneClassSVM(nu=0.3, tol=1e-6),
}
everyone = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True)
def always():
    """Checkpoints are written whenever they may be."""
    before = checkpoint_file.configure(CheckpointSettings(0.0, 0.0, np.inf))
    yield
    checkpoint_file.configure(before)


def some_rows(name, n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + 0.5 * rng.normal(size=n)
    if "classes" in name:
        y = np.digitize(y, [0.0] if name == "two classes" else [-0.5, 0.5])
    return X, None if name == "one class" else y


def cut_off(name, path, **params):
    """A fit that ends at once, by its limit on iterations."""
    model = clone(MODELS[name]).set_params(checkpoint=path, max_iter=1, **params)
    with pytest.warns(ConvergenceWarning, match="same call resumes"):
        return model.fit(*some_rows(name))


@everyone
def test_a_fit_goes_on(name, tmp_path, caplog):
    path, (X, y) = tmp_path / "fit.checkpoint", some_rows(name)
    first = cut_off(name, path)
    assert first.status_ is Status.MAX_ITER and path.exists()
    with caplog.at_level("INFO", "cutsvm.kernel"):
        model = clone(first).set_params(max_iter=10_000).fit(X, y)
    assert "going on from" in caplog.text
    assert model.converged_ and not path.exists()
    # The first record is that of the dual vector in the file, certified again.
    if name != "three classes":
        assert model.history_[0]["gap"] == pytest.approx(first.history_[-1]["gap"], rel=1e-3)
    plain = clone(MODELS[name]).fit(X, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-6)
    assert model.lower_bound_ <= plain.objective_ and plain.lower_bound_ <= model.objective_


SCRIPT = """
import os, signal, sys
import numpy as np
from cutsvm import KernelOneClassSVM, KernelSVR
from cutsvm.driver import checkpoint_file

path, name = sys.argv[1:]
checkpoint_file.configure(checkpoint_file.CheckpointSettings(0.0, 0.0, np.inf))
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))

def kill(record):
    if record.iteration:
        os.kill(os.getpid(), signal.SIGKILL)

own = {"tol": 1e-7, "checkpoint": path, "callbacks": [kill]}
(KernelSVR(50.0, **own) if name == "regression" else KernelOneClassSVM(nu=0.3, **own)).fit(X, X[:, 0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["regression", "one class"])
def test_sigkill(name, tmp_path):
    path = tmp_path / "fit.checkpoint"
    ended = subprocess.run([sys.executable, "-c", SCRIPT, os.fspath(path), name], env=os.environ.copy())
    assert ended.returncode == -signal.SIGKILL and path.exists()
    X = np.random.default_rng(0).normal(size=(400, 4))
    plain = KernelSVR(50.0, tol=1e-7) if name == "regression" else KernelOneClassSVM(nu=0.3, tol=1e-7)
    model = clone(plain).set_params(checkpoint=path).fit(X, X[:, 0])
    plain.fit(X, X[:, 0])
    assert model.converged_ and not path.exists()
    assert model.history_[0]["gap"] < plain.history_[0]["gap"] and model.n_iter_ < plain.n_iter_
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-7)


@everyone
def test_a_checkpoint_of_another_fit_is_refused(name, tmp_path):
    path, (X, y) = tmp_path / "fit.checkpoint", some_rows(name)
    cut_off(name, path)
    kept, model = path.read_bytes(), clone(MODELS[name]).set_params(checkpoint=path)
    changes = {"gamma": 0.7, "kernel": "linear", "degree": 2}
    changes |= {"nu": 0.25} if name == "one class" else {"C": 5.0, "fit_intercept": not model.fit_intercept}
    changes |= {"epsilon": 0.05} if "regression" in name else {}
    for change in changes.items():
        with pytest.raises(ValueError, match="a checkpoint of another fit"):
            clone(model).set_params(**dict([change])).fit(X, y)
    with pytest.raises(ValueError, match="X has other values"):
        clone(model).set_params(gamma=MODELS[name].fit(X, y).gamma_).fit(X + 1e-7, y)
    with pytest.raises(ValueError, match="the weights are others"):
        clone(model).set_params(gamma=MODELS[name].gamma_).fit(X, y, np.r_[1.5, np.ones(len(X) - 1)])
    if y is not None:
        with pytest.raises(ValueError, match="y has other labels"):
            model.fit(X, np.r_[y[1:], y[:1]])
    other = KernelSVR if "classes" in name else KernelSVC
    with pytest.raises(ValueError, match="another fit: estimator"):
        other(checkpoint=path).fit(X, np.arange(len(X)) % 2)
    assert path.read_bytes() == kept


@everyone
def test_limits_and_tolerance_may_change(name, tmp_path):
    path = tmp_path / "fit.checkpoint"
    cut_off(name, path)
    model = clone(MODELS[name]).set_params(checkpoint=path, tol=1e-3, n_jobs=2, memory_limit="200 MB", max_time=60.0)
    model.fit(*some_rows(name))
    assert model.converged_ and not path.exists()


@pytest.mark.parametrize("machine", [KernelSVR, KernelOneClassSVM])
def test_bad_files(machine, tmp_path):
    X, y = some_rows("regression")
    with pytest.raises(ValueError, match="there is no folder"):
        machine(checkpoint=tmp_path / "no" / "file").fit(X, y)
    (tmp_path / "text").write_text("some text")
    with pytest.raises(ValueError, match="not a checkpoint"):
        machine(checkpoint=tmp_path / "text").fit(X, y)
    with pytest.raises(ValueError, match="expected the name of a file"):
        machine(checkpoint=3).fit(X, y)
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning):
        machine(checkpoint=path, max_iter=1, tol=1e-7).fit(X, y)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="truncated"):
        machine(checkpoint=path).fit(X, y)
