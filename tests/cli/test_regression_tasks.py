"""`cutsvm train --task regress|quantile|oneclass` and `--loss`, with predict, info, path and -v."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_squared_error, r2_score

import cutsvm
from cutsvm import LinearOneClassSVM, LinearSVC, LinearSVR, QuantileSVR, load_model
from tests.support.cli import Run, blobs, write_svmlight


def numbers(rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    X = np.round(random.normal(size=(rows, 4)), 4)
    return X, np.round(X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.3 * random.normal(size=rows), 4)


def far_from_origin() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    return np.round(random.normal(size=(120, 3)) + 4.0, 4), np.where(np.arange(120) % 12, 1.0, -1.0)


@pytest.fixture
def real(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "real.svm", *numbers())


@pytest.fixture
def far(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "far.svm", *far_from_origin())


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber"])
def test_regress(run: Run, real: Path, tmp_path: Path, loss: str) -> None:
    X, y = numbers()
    code, out, err = run("train", "--task", "regress", "--loss", loss, "-p", 0.2, "-c", 3, "--n-jobs", 1, real)
    assert code == 0 and "certified" in out and "targets from" in err and "classes" not in err
    saved = load_model(f"{real}.model")
    assert saved.task == "regress" and isinstance(saved.estimator, LinearSVR)
    assert (saved.estimator.loss, saved.estimator.epsilon, saved.estimator.C) == (loss, 0.2, 3.0)
    expected = LinearSVR(C=3.0, epsilon=0.2, loss=loss, n_jobs=1).fit(X, y).predict(X)
    code, out, _ = run("predict", real, f"{real}.model", tmp_path / "out")
    predicted = np.loadtxt(tmp_path / "out")
    np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == f"Mean squared error = {mean_squared_error(y, predicted):.6g} (regression)"
    assert lines[1] == f"Mean absolute error = {mean_absolute_error(y, predicted):.6g}"
    assert lines[2] == f"R^2 = {r2_score(y, predicted):.6g}"
    correlation = np.corrcoef(y, predicted)[0, 1] ** 2
    assert lines[3] == f"Squared correlation coefficient = {correlation:.6g} (regression)"
    shown = run("info", f"{real}.model").out
    assert loss in shown and "epsilon" in shown and "0.2" in shown
    facts = json.loads(run("info", "--json", f"{real}.model").out)
    assert (facts["loss"], facts["epsilon"]) == (loss, 0.2)


def test_regress_cross_validation(run: Run, real: Path) -> None:
    code, out, err = run("train", "--task", "regress", "-v", 3, real)
    assert code == 0 and "fold 3 of 3: Mean squared error = " in err
    assert out.startswith("Cross Validation Mean squared error = ")
    assert "\nCross Validation Squared correlation coefficient = " in out
    facts = json.loads(run("train", "--json", "--task", "regress", "-v", 3, real).out)
    assert 0.0 < facts["cross_validation_mean_squared_error"] < 0.3 and facts["cross_validation_r2"] > 0.9


def test_regress_on_constant_labels(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "flat.svm"
    path.write_text("2 1:1\n2 1:2\n2 1:3\n")
    assert run("train", "-q", "--task", "regress", path).code == 0
    code, out, _ = run("predict", path, f"{path}.model")
    assert code == 0 and "R^2 = undefined" in out


def test_path_of_regression(run: Run, real: Path, tmp_path: Path) -> None:
    common = ["path", "--task", "regress", "-p", 0.1, "--Cs", "0.01,1", "--n-jobs", 1, real]
    code, out, _ = run(*common)
    assert code == 0 and "|w|" in out
    code, out, _ = run(*common, "-v", 3, "--model", tmp_path / "m", "--plot", tmp_path / "p.png")
    assert code == 0 and "R^2" in out and "best: C = 1" in out and (tmp_path / "p.png").stat().st_size > 0
    assert load_model(tmp_path / "m").estimator.epsilon == 0.1
    facts = json.loads(run(*common, "-v", 3, "--json", "--scoring", "neg_mean_squared_error").out)
    assert all(score < 0 for score in facts["mean_scores"])
    code, _, err = run("path", "--task", "quantile", real)
    assert code == 2 and "invalid choice: 'quantile'" in err
    code, _, err = run("path", "-s", 21, real)
    assert code == 2 and "-s 21 is --task oneclass, which has no path over C" in err


def test_quantile(run: Run, real: Path, tmp_path: Path) -> None:
    _, y = numbers()
    code, out, _ = run("train", "--task", "quantile", "--quantile", 0.8, real)
    assert code == 0 and "certified" in out
    estimator = load_model(f"{real}.model").estimator
    assert isinstance(estimator, QuantileSVR) and estimator.quantile == 0.8
    code, out, _ = run("predict", real, f"{real}.model", tmp_path / "out")
    predicted = np.loadtxt(tmp_path / "out")
    loss, below = mean_pinball_loss(y, predicted, alpha=0.8), np.mean(y < predicted)
    assert out == f"Pinball loss = {loss:.6g} (quantile 0.8)\nRows below = {100 * below:.6g}%\n"
    assert "quantile" in run("info", f"{real}.model").out
    code, out, _ = run("train", "--task", "quantile", "--quantile", 0.8, "-v", 3, real)
    assert code == 0 and out.startswith("Cross Validation Pinball loss = ") and "Rows below" in out


def test_oneclass(run: Run, far: Path, tmp_path: Path) -> None:
    _, y = far_from_origin()
    code, out, err = run("train", "--task", "oneclass", "-n", 0.1, far)
    assert code == 0 and "certified" in out and "classes" not in err
    estimator = load_model(f"{far}.model").estimator
    assert isinstance(estimator, LinearOneClassSVM) and estimator.nu == 0.1
    code, out, _ = run("predict", far, f"{far}.model", tmp_path / "out")
    predicted = np.loadtxt(tmp_path / "out")
    inside, correct = int(np.sum(predicted == 1)), int(np.sum(predicted == y))
    assert set(predicted) == {-1.0, 1.0} and inside >= 0.85 * len(y)
    assert out.splitlines() == [
        f"Inliers = {100 * inside / 120:g}% ({inside}/120)",
        f"Accuracy = {100 * correct / 120:g}% ({correct}/120)",
    ]
    shown = run("info", f"{far}.model").out
    assert "threshold" in shown and "nu " in shown
    assert run("predict", "--scores", far, f"{far}.model", tmp_path / "scores").code == 0
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "scores") >= 0, predicted == 1)
    code, out, _ = run("train", "--task", "oneclass", "-v", 3, far)
    assert code == 0 and out.startswith("Cross Validation Inliers = ") and "Cross Validation Accuracy" in out


def test_oneclass_needs_no_classes(run: Run, tmp_path: Path) -> None:
    X, _ = far_from_origin()
    data = write_svmlight(tmp_path / "same.svm", X, np.full(len(X), 7.0))
    assert run("train", "--task", "oneclass", data).code == 0
    code, out, _ = run("predict", data, f"{data}.model")
    assert code == 0 and out.startswith("Inliers = ") and "Accuracy" not in out


@pytest.mark.parametrize("labels", [[-1, 1], [1, 2, 5]])
@pytest.mark.parametrize("multi_class", [[], ["--multi-class", "ovr"]], ids=["auto", "ovr"])
def test_logistic_writes_probabilities(run: Run, tmp_path: Path, labels: list[float], multi_class: list[str]) -> None:
    X, y = blobs(labels)
    data, out = write_svmlight(tmp_path / "d", X, y), tmp_path / "out"
    assert run("train", "-q", "--loss", "logistic", *multi_class, "--n-jobs", 1, data).code == 0
    model = load_model(f"{data}.model").estimator
    assert isinstance(model, LinearSVC) and model.loss == "logistic"
    for option in (["-b", "1"], ["--probability"]):
        code, said, _ = run("predict", *option, data, f"{data}.model", out)
        assert code == 0 and said.startswith("Accuracy = ")
        head, *lines = out.read_text().splitlines()
        assert head == "labels " + " ".join(map(str, labels))
        found = np.array([line.split() for line in lines], dtype=float)
        np.testing.assert_array_equal(found[:, 0], model.predict(X))
        np.testing.assert_allclose(found[:, 1:], model.predict_proba(X), rtol=1e-12)
    assert "logistic" in run("info", f"{data}.model").out


def test_squared_hinge(run: Run, three: Path) -> None:
    code, out, _ = run("train", "--loss", "squared_hinge", "--solver", "newton", "--n-jobs", 1, three)
    assert code == 0 and "certified" in out
    model = load_model(f"{three}.model").estimator
    assert model.loss == "squared_hinge" and model.coef_.shape == (3, 5)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_with_real_labels(run: Run, tmp_path: Path, suffix: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y = numbers(60)
    table = pandas.DataFrame(X, columns=list("abcd")).assign(price=y)
    path = tmp_path / f"t.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    assert run("train", "--task", "regress", "--label", "price", path).code == 0
    assert "R^2 = 0.9" in run("predict", "--label", "price", path, f"{path}.model").out
    assert load_model(f"{path}.model").estimator.feature_names_in_.tolist() == list("abcd")


def test_text_labels_name_their_place(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.csv"
    path.write_text("a,label\n1,3.5\n2,4\n3,spam\n")
    for command in ("train", "path"):
        code, out, err = run(command, "--task", "regress", path)
        assert (code, out) == (2, "") and f"{path}:4: --task regress needs numbers as labels, got 'spam'" in err
    svm = tmp_path / "t.svm"
    svm.write_text("1.5 1:1\nspam 1:2\n")
    code, _, err = run("train", "--task", "regress", svm)
    assert code == 2 and f"{svm}:2: expected a number as label" in err
    path.write_text("a,label\n1,3.5\n2,4\n3,5\n")
    assert run("train", "-q", "--task", "regress", path).code == 0
    path.write_text("a,label\n1,low\n2,high\n")
    code, out, err = run("predict", path, f"{path}.model", tmp_path / "out")
    assert code == 0 and out == "" and "are text and the model predicts numbers" in err
    assert len((tmp_path / "out").read_text().split()) == 2


@pytest.mark.parametrize("task", ["regress", "quantile", "oneclass"])
def test_stores_and_memory_limits(run: Run, real: Path, tmp_path: Path, task: str) -> None:
    store = tmp_path / "s.store"
    assert run("convert", "-q", real, store).code == 0
    fits = [
        json.loads(run("train", "--json", "-q", "--task", task, *given).out)
        for given in ([real], [store, tmp_path / "m"])
    ]
    assert fits[0]["objective"] == pytest.approx(fits[1]["objective"], rel=2e-3)
    assert all(fit["converged"] for fit in fits)
    code, out, err = run("train", "--task", task, "--memory", "2GB", real, tmp_path / "n")
    assert code == 0 and "certified" in out and "training" in err


def test_check_with_real_labels(run: Run, real: Path) -> None:
    code, out, err = run("check", real)
    assert code == 0 and err == "" and "150" in out


def test_report_of_every_task(run: Run, real: Path, far: Path, binary: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for words, data, expected in (
        (["--task", "regress", "-p", 0.1], real, ["R^2", 'id="picture-predicted"', 'id="picture-residuals"']),
        (["--task", "quantile"], real, ["mean pinball loss", "rows below the prediction", "picture-residuals"]),
        (["--task", "oneclass"], far, ["inliers", "accuracy", 'id="picture-margins"']),
        (["--loss", "logistic"], binary, ["accuracy", "Confusion matrix", "&#x27;logistic&#x27;"]),
    ):
        page = tmp_path / "r.html"
        assert run("train", *words, "--report", page, data, tmp_path / "m").code == 0
        text = page.read_text()
        assert all(word in text for word in expected)
        assert ("Confusion matrix" in text) == (data is binary)


BAD = [
    (["--task", "regress", "--loss", "hinge"], "--loss hinge is not a loss of --task regress: classify has hinge"),
    (["--loss", "huber"], "--loss huber is not a loss of --task classify"),
    (["--task", "quantile", "--loss", "hinge"], "not to quantile"),
    (["-p", "0.1"], "-p applies to --task regress and kernel-regress, not to classify"),
    (["--task", "regress", "-p", "-1"], "epsilon=-1"),
    (["--task", "regress", "-p", "x"], "epsilon='x'"),
    (["--task", "quantile", "--quantile", "2"], "quantile=2: expected a number between 0 and 1"),
    (["--quantile", "0.5"], "--quantile applies to --task quantile, not to classify"),
    (["--task", "oneclass", "--nu", "0"], "nu=0"),
    (["--nu", "0.5"], "--nu applies to --task oneclass and kernel-oneclass, not to classify"),
    (["--task", "oneclass", "-c", "1"], "-c applies to --task classify"),
    (["--task", "regress", "-w1", "2"], "-wLABEL applies to --task classify"),
    (["--task", "oneclass", "-B", "1"], "-B applies to --task classify, regress and quantile, not to oneclass"),
    (["--task", "quantile", "--solver", "newton"], "--solver newton is not available for --task quantile"),
    (["--solver", "newton"], "does not solve problems with loss='hinge'"),
    (["--loss", "squared_hinge", "--multi-class", "crammer_singer"], "multi_class='crammer_singer' with loss="),
    (["--task", "regress", "--paper", "joachims"], "--paper joachims is for --task classify"),
    (["--loss", "logistic", "--paper", "joachims"], "--paper joachims sets --loss: leave it out"),
    (["-s", "3", "--paper", "joachims"], "--paper joachims sets -s: leave it out"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda value: " ".join(value)[:40] if value else "")
def test_bad_usage(run: Run, binary: Path, words: list[str], message: str) -> None:
    code, out, err = run("train", *words, binary)
    assert (code, out) == (2, "") and message in err
    assert not Path(f"{binary}.model").exists()


def test_probabilities_need_a_logistic_model(run: Run, binary: Path, tmp_path: Path) -> None:
    run("train", "-q", binary)
    code, _, err = run("predict", "-b", 1, binary, f"{binary}.model", tmp_path / "out")
    assert code == 2 and "the model has no probabilities; cutsvm train --loss logistic" in err
    code, _, err = run("predict", "-b", 1, binary, f"{binary}.model")
    assert code == 2 and "--probability needs OUT" in err
    code, _, err = run("predict", "-b", 1, "--scores", binary, f"{binary}.model", tmp_path / "out")
    assert code == 2 and "leave one of them out" in err
    assert cutsvm.load_model(f"{binary}.model").task == "classify"


def test_classes_that_are_measurements_point_to_regression(run: Run, real: Path) -> None:
    for command in ("train", "path"):
        code, out, err = run(command, real)
        assert (code, out) == (2, "") and "are no classes for --task classify; --task regress predicts numbers" in err
