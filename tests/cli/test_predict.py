"""`cutsvm predict`: labels, scores, the base and the width of the model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cutsvm import LinearSVC, load_model, save_model
from tests.support.cli import Run, blobs, write_svmlight


@pytest.fixture
def model(run: Run, binary: Path) -> Path:
    assert run("train", "-q", "--n-jobs", 1, binary).code == 0
    return Path(f"{binary}.model")


def test_accuracy_line_and_labels(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    expected = load_model(model).estimator.predict(X)
    correct = int(np.sum(expected == y))
    code, out, err = run("predict", binary, model)
    assert (code, out, err) == (0, f"Accuracy = {100 * correct / 120:g}% ({correct}/120)\n", "")
    assert run("predict", binary, model, tmp_path / "out").out == out
    assert (tmp_path / "out").read_text() == "".join(f"{label}\n" for label in expected)


def test_scores(run: Run, binary: Path, three: Path, model: Path, tmp_path: Path) -> None:
    X, _ = blobs([-1, 1])
    assert run("predict", "--scores", binary, model, tmp_path / "out").code == 0
    np.testing.assert_array_equal(
        np.loadtxt(tmp_path / "out"), load_model(model).estimator.decision_function(csr_matrix(X))
    )
    run("train", "-q", "--n-jobs", 1, three)
    assert run("predict", "--scores", three, f"{three}.model", tmp_path / "out").code == 0
    assert np.loadtxt(tmp_path / "out").shape == (120, 3)


def test_standard_output(run: Run, binary: Path, model: Path) -> None:
    code, out, err = run("predict", binary, model, "-")
    assert code == 0 and set(out.split()) == {"1", "-1"} and len(out.split()) == 120
    assert err.startswith("Accuracy = ")


def test_quiet_and_json(run: Run, binary: Path, model: Path) -> None:
    assert run("predict", "-q", binary, model) == (0, "", "")
    code, out, err = run("predict", "--json", binary, model)
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert facts["rows"] == 120 and facts["accuracy"] == facts["correct"] / 120 and facts["ignored"] == 0


def test_unseen_features_are_counted_once(run: Run, model: Path, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    wide = write_svmlight(tmp_path / "wide", np.hstack([X, np.ones((120, 3))]), y)
    narrow = write_svmlight(tmp_path / "narrow", X[:, :3], y)
    code, out, err = run("predict", wide, model)
    assert code == 0 and out.startswith("Accuracy")
    assert err == f"cutsvm: warning: {wide}: 3 features that the model does not know were ignored\n"
    assert run("predict", narrow, model).code == 0
    assert run("predict", "-q", wide, model).err == ""


def test_index_base_of_the_model_is_used(run: Run, model: Path, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    zero = write_svmlight(tmp_path / "zero", X, y, first=0)
    code, out, err = run("predict", zero, model)
    assert (code, out) == (2, "")
    assert err.startswith(f"cutsvm: {zero}:1: ")
    # A zero-based model, and a test file in which feature 0 never occurs.
    run("train", "-q", "--n-jobs", 1, zero)
    X[:, 0] = 0.0
    without = write_svmlight(tmp_path / "without", X, y, first=0)
    estimator = load_model(f"{zero}.model").estimator
    run("predict", without, f"{zero}.model", tmp_path / "out")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), estimator.predict(X))
    assert run("predict", "--zero-based", "1", zero, model).code == 0


def test_model_trained_on_arrays(run: Run, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    names = np.where(y > 0, "yes", "no")
    save_model(LinearSVC().fit(X, names), tmp_path / "m")
    data = write_svmlight(tmp_path / "d", X, y)
    code, out, err = run("predict", data, tmp_path / "m", tmp_path / "out")
    assert (code, out) == (0, "") and "no accuracy" in err
    assert set((tmp_path / "out").read_text().split()) == {"yes", "no"}
    assert json.loads(run("predict", "--json", data, tmp_path / "m").out)["accuracy"] is None


def test_unknown_labels(run: Run, model: Path, tmp_path: Path) -> None:
    X, _ = blobs([-1, 1])
    data = write_svmlight(tmp_path / "d", X, np.zeros(120))
    code, out, err = run("predict", data, model)
    assert (code, out) == (0, "Accuracy = 0% (0/120)\n")
    assert "120 of 120 rows have a label that the model does not know" in err


def test_float_labels(run: Run, tmp_path: Path) -> None:
    X, y = blobs([0.5, 2])
    estimator = LinearSVC().fit(X, (y > 1).astype(int))
    estimator.classes_ = np.array([0.5, 2.0])
    save_model(estimator, tmp_path / "m")
    data = write_svmlight(tmp_path / "d", X, y)
    assert run("predict", data, tmp_path / "m", tmp_path / "out").out.startswith("Accuracy = 9")
    assert set((tmp_path / "out").read_text().split()) == {"0.5", "2"}


def test_invalid_options(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    before = binary.read_bytes()
    for words, says in (
        (["--scores", binary, model], "--scores needs OUT"),
        (["--json", binary, model, "-"], "cannot both"),
        ([binary, model, binary], "is an input"),
        ([binary, model, model], "is an input"),
        ([model, binary], "neither a cutsvm nor a LIBLINEAR model"),
        ([binary, model, tmp_path], "is a folder"),
        ([binary, model, tmp_path / "none" / "out"], "there is no folder"),
        ([tmp_path / "none", model], "No such file"),
        ([binary, tmp_path / "none"], "No such file"),
        ([binary, tmp_path], "is a folder"),
    ):
        code, out, err = run("predict", *words)
        assert (code, out) == (2, ""), words
        assert says in err and err.startswith("cutsvm: ") and err.count("\n") == 1
    assert binary.read_bytes() == before


def test_full_disk(run: Run, binary: Path, model: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    code, out, err = run("predict", binary, model, "/dev/full")
    assert (code, out) == (1, "")
    assert err == "cutsvm: cannot write the predictions to /dev/full: No space left on device\n"
