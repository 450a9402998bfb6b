"""patch, unpatch and `python -m cutsvm.sklearn`."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sklearn.calibration
import sklearn.svm

import cutsvm
from cutsvm import sklearn as dropin
from cutsvm.sklearn.patching import is_patched

NAMES = ("LinearSVC", "LinearSVR", "SVC")
ORIGINAL = {name: getattr(sklearn.svm, name) for name in NAMES}
X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, 2.0, 0.0] > 0.0


@pytest.fixture
def module(monkeypatch):
    """Adds a module with these globals to those that are imported."""

    def add(**values):
        made = ModuleType("someones_module")
        vars(made).update(values)
        monkeypatch.setitem(sys.modules, made.__name__, made)
        return made

    yield add
    dropin.unpatch()


def test_names_of_scikit_learn_are_replaced_and_restored(module):
    importer = module(Classifier=sklearn.svm.LinearSVC, SVC=sklearn.svm.SVC, other=sklearn.svm.NuSVC, C=1.0)
    before = dict(vars(importer))
    assert not is_patched()
    for _ in range(2):  # a second call changes nothing
        dropin.patch()
        assert is_patched()
        for name in NAMES:
            assert getattr(sklearn.svm, name) is getattr(dropin, name)
        assert sklearn.calibration.LinearSVC is dropin.LinearSVC
        assert importer.Classifier is dropin.LinearSVC
        assert importer.SVC is dropin.SVC
        assert importer.other is sklearn.svm.NuSVC
    for _ in range(2):
        dropin.unpatch()
        assert not is_patched()
        for name in NAMES:
            assert getattr(sklearn.svm, name) is ORIGINAL[name]
        assert sklearn.calibration.LinearSVC is ORIGINAL["LinearSVC"]
        assert vars(importer) == before


def test_modules_imported_while_patched_are_restored(module):
    dropin.patch()
    importer = module(Classifier=sklearn.svm.LinearSVC)
    assert importer.Classifier is dropin.LinearSVC
    dropin.unpatch()
    assert importer.Classifier is ORIGINAL["LinearSVC"]


def test_names_imported_from_cutsvm_stay(module):
    importer = module(LinearSVC=dropin.LinearSVC)
    dropin.patch()
    dropin.unpatch()
    assert importer.LinearSVC is dropin.LinearSVC
    assert dropin.linear.LinearSVC is dropin.LinearSVC


def test_models_from_before_are_pickled_after(module):
    before = sklearn.svm.LinearSVC().fit(X, Y)
    dropin.patch()
    while_patched = sklearn.svm.LinearSVC().fit(X, Y)
    assert type(pickle.loads(pickle.dumps(before))) is ORIGINAL["LinearSVC"]
    text = pickle.dumps(while_patched)
    dropin.unpatch()
    again = pickle.loads(text)
    assert type(again) is dropin.LinearSVC
    np.testing.assert_array_equal(again.coef_, while_patched.coef_)
    assert isinstance(again, sklearn.svm.LinearSVC)


def test_defaults_of_scikit_learns_own_estimators_are_replaced(module):
    dropin.patch()
    model = sklearn.calibration.CalibratedClassifierCV(cv=2).fit(X, Y)
    assert type(model.calibrated_classifiers_[0].estimator) is dropin.LinearSVC


SCRIPT = """
import sys
import helper
from sklearn import svm
from sklearn.svm import LinearSVC
print(__name__, sys.argv[1:], svm.SVC.__module__, LinearSVC.__module__, helper.LinearSVC.__module__)
sys.exit(3)
"""


def run(*words, folder):
    command = [sys.executable, "-m", "cutsvm.sklearn", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(Path(cutsvm.__file__).parents[1])}  # in any folder
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


@pytest.mark.slow
def test_scripts_and_modules_are_run_with_the_patch(tmp_path):
    inner = tmp_path / "scripts"
    inner.mkdir()
    (inner / "script.py").write_text(SCRIPT)
    (inner / "helper.py").write_text("from sklearn.svm import LinearSVC\n")
    expected = "__main__ ['a', '-b'] cutsvm.sklearn.svc cutsvm.sklearn.linear cutsvm.sklearn.linear\n"
    for words, folder in (((inner / "script.py", "a", "-b"), tmp_path), (("-m", "script", "a", "-b"), inner)):
        done = run(*words, folder=folder)
        assert (done.returncode, done.stdout) == (3, expected), done.stderr


@pytest.mark.slow
def test_help_into_a_closed_pipe() -> None:
    """As in `python -m cutsvm.sklearn -h | head -0`."""
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "cutsvm.sklearn", "-h"]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words, code", [((), 2), (("-x",), 2), (("-m",), 2), (("--help",), 0)], ids=str)
def test_usage(tmp_path, words, code):
    done = run(*words, folder=tmp_path)
    assert done.returncode == code
    assert "usage: python -m cutsvm.sklearn script.py" in (done.stderr if code else done.stdout)


@pytest.mark.slow
def test_missing_script_is_named(tmp_path):
    done = run("missing.py", folder=tmp_path)
    assert done.returncode == 2
    assert "missing.py" in done.stderr
    assert "Traceback" not in done.stderr
