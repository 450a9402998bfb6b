"""LIBLINEAR's models at the command line, against LIBLINEAR itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.cli import Run, blobs, write_svmlight

theirs = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")

LABELS = {2: [-1.0, 1.0], 3: [3.0, 7.0, 11.0]}


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("intercept", [[], ["-B"], ["-B", "-1"]], ids=" ".join)
@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_liblinear_predicts_with_our_model(
    run: Run, tmp_path: Path, n_classes: int, intercept: list[str], multi_class: str
) -> None:
    X, y = blobs(LABELS[n_classes])
    data, model, out = write_svmlight(tmp_path / "d", X, y), tmp_path / "m", tmp_path / "out"
    options = ["-q", "--format", "liblinear", "--multi-class", multi_class, "--n-jobs", 1, *intercept]
    assert run("train", *options, data, model).code == 0
    assert run("predict", data, model, out).code == 0
    loaded = theirs.load_model(str(model))
    labels, _, _ = theirs.predict(y, X, loaded, "-q")
    np.testing.assert_array_equal(labels, np.loadtxt(out))
    assert loaded.bias == (-1 if "-1" in intercept else 1)


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("options", ["-s 3", "-s 3 -B 1", "-s 4 -B 1", "-s 1 -B 0.5", "-s 2 -B 1 -R", "-s 5"])
def test_cutsvm_predicts_with_liblinear_model(run: Run, tmp_path: Path, n_classes: int, options: str) -> None:
    X, y = blobs(LABELS[n_classes])
    X, y = X[::-1], y[::-1]  # their first label is that of the first row
    data, model, out = write_svmlight(tmp_path / "d", X, y), tmp_path / "m", tmp_path / "out"
    trained = theirs.train(y, X, options + " -q")
    theirs.save_model(str(model), trained)
    labels, (accuracy, _, _), _ = theirs.predict(y, X, trained, "-q")
    assert json.loads(run("predict", "--json", data, model, out).out)["accuracy"] == pytest.approx(accuracy / 100)
    np.testing.assert_array_equal(np.loadtxt(out), labels)
    facts = json.loads(run("info", "--json", model).out)
    assert facts["format"] == "liblinear"


def test_path_writes_liblinear_format(run: Run, tmp_path: Path) -> None:
    X, y = blobs(LABELS[3])
    data, model = write_svmlight(tmp_path / "d", X, y), tmp_path / "m"
    common = ["path", data, "--Cs", "0.1,1", "--n-jobs", 1, "-q"]
    assert run(*common, "-v", 2, "--model", model, "--format", "liblinear").code == 0
    labels, _, _ = theirs.predict(y, X, theirs.load_model(str(model)), "-q")
    assert np.mean(labels == y) > 0.5
    code, _, err = run(*common, "-v", 2, "--format", "liblinear")
    assert code == 2 and "add --model" in err
    halves = write_svmlight(tmp_path / "halves", *blobs([0.5, 1.5]))
    code, _, err = run("path", halves, "-v", 2, "--model", tmp_path / "n", "--format", "liblinear")
    assert code == 2 and "integer labels" in err
