"""`cutsvm train --task kernel`, with predict, info and -v."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutsvm import KernelSVC, load_model, open_dataset
from tests.support.cli import Run, blobs, write_svmlight


def test_same_model_as_the_estimator(run: Run, three: Path, tmp_path: Path) -> None:
    code, out, err = run("train", "--task", "kernel", "-c", 4, "--gamma", 0.5, three)
    assert code == 0 and "120 rows, 5 features (counted from 1), 600 nonzeros, 3 classes" in err
    saved = load_model(f"{three}.model")
    rows, y = open_dataset(three).X, blobs([1, 2, 5])[1]
    expected = KernelSVC(4.0, gamma=0.5).fit(rows, y.astype(int))
    assert (saved.task, saved.zero_based) == ("kernel", False)
    np.testing.assert_array_equal(saved.estimator.decision_function(rows), expected.decision_function(rows))
    share = 100 * expected.gap_ / (1 - expected.gap_)
    first, second = out.splitlines()
    assert first.startswith(f"certified: within {float(f'{share:.2g}'):g} % of the best possible objective (gap ")
    assert expected.converged_ and ", tol 1e-03)" in first
    rounds = "1 round" if expected.n_iter_ == 1 else f"{expected.n_iter_} rounds"
    assert f"{len(expected.support_)} support vectors, {rounds}, " in first
    assert second == f"model: {three}.model"
    code, out, _ = run("predict", three, f"{three}.model", tmp_path / "labels")
    correct = int((expected.predict(rows) == y).sum())
    assert (code, out) == (0, f"Accuracy = {100 * correct / 120:g}% ({correct}/120)\n")
    assert (tmp_path / "labels").read_text().split() == list(map(str, expected.predict(rows)))
    assert run("predict", "--scores", three, f"{three}.model", tmp_path / "scores").code == 0
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "scores"), expected.decision_function(rows))


@pytest.mark.parametrize("solver", ["isda", "min_norm"])
def test_solvers_stop_at_the_requested_gap(run: Run, binary: Path, solver: str) -> None:
    code, out, _ = run("train", "--task", "kernel", "--solver", solver, "-e", 1e-2, binary)
    assert code == 0 and "tol 1e-02), " in out and " support vectors, 1 round, " in out
    shown = run("info", f"{binary}.model").out
    assert f"solver       {solver}, 1 round\n" in shown and "the certified gap is within tol" in shown


@pytest.fixture
def built(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """built(options) -> the parameters of the estimator that they make"""
    seen: list[dict[str, Any]] = []

    def stop(self: KernelSVC, *_: object) -> None:
        seen.append(self.get_params())
        raise ValueError("enough seen")

    monkeypatch.setattr(KernelSVC, "fit", stop)

    def call(*words: object) -> dict[str, Any]:
        assert run("train", "--task", "kernel", *words, binary).code == 2
        return seen.pop()

    return call


@pytest.mark.parametrize(
    ("words", "params"),
    [
        ([], {"C": 1.0, "kernel": "rbf", "gamma": "scale", "solver": "auto", "n_jobs": -1}),
        (["--solver", "auto"], {"solver": "auto"}),
        (["--solver", "exact"], {"solver": "exact"}),
        (["--gamma", "auto", "--epochs", "7", "--average", "0"], {"gamma": "auto", "epochs": 7, "average": 0}),
        (["--solver", "sgd", "--epochs", "auto", "--average", "0.25"], {"epochs": "auto", "average": 0.25}),
        (
            ["--kernel", "poly", "--degree", "2", "--coef0", "1.5", "--gamma", "3"],
            {"kernel": "poly", "degree": 2, "coef0": 1.5, "gamma": 3},
        ),
        (["--kernel", "linear", "-c", "9", "-w1", "2"], {"kernel": "linear", "C": 9.0, "class_weight": {1: 2.0}}),
        (["--solver", "isda", "-e", "1e-5"], {"solver": "isda", "tol": 1e-5}),
        (["--solver", "min_norm"], {"solver": "min_norm", "tol": 1e-3}),
        (["--memory", "2GB", "--max-time", "5"], {"memory_limit": "2GB total", "max_time": 5.0}),
        (["--solver", "sgd", "--seed", "12", "--n-jobs", "2"], {"random_state": 12, "n_jobs": 2}),
    ],
)
def test_options_are_passed_to_the_estimator(built: Any, words: list[object], params: dict[str, Any]) -> None:
    assert {name: value for name, value in built(*words).items() if name in params} == params


def test_json(run: Run, three: Path) -> None:
    code, out, _ = run("train", "--task", "kernel", "--json", "--kernel", "poly", "--degree", 2, three)
    facts = json.loads(out)
    assert code == 0 and facts["task"] == "kernel" and facts["rows"] == 120
    assert facts["tol"] == 1e-3 and facts["converged"] is True and facts["status"] == "the certified gap is within tol"
    assert (facts["kernel"], facts["degree"], facts["coef0"], facts["solver"]) == ("poly", 2, 0.0, "auto")
    assert 0.0 < facts["lower_bound"] <= facts["objective"] and facts["gamma"] > 0.0
    assert len(facts["n_support"]) == 3 and facts["classes"] == [1, 2, 5]
    shown = json.loads(run("info", "--json", f"{three}.model").out)
    for name in ("kernel", "gamma", "degree", "n_support", "objective", "lower_bound", "gap", "status", "tol"):
        assert shown[name] == facts[name], name
    score = json.loads(run("predict", "--json", three, f"{three}.model").out)
    assert score["rows"] == 120 and score["accuracy"] > 0.7


def test_info(run: Run, three: Path) -> None:
    run("train", "-q", "--task", "kernel", "-w5", 2, three)
    model = load_model(f"{three}.model").estimator
    lines = dict(line.split("  ", 1) for line in run("info", f"{three}.model").out.splitlines())
    shown = {name: text.strip() for name, text in lines.items()}
    assert shown["task"] == "kernel" and shown["class weight"] == "{5: 2.0}"
    assert shown["kernel"] == f"rbf, gamma {model.gamma_:.6g} (scale)"
    one, two, five = model.n_support_
    assert shown["support"] == f"{one + two + five} vectors, sparse float64: {one} of 1, {two} of 2, {five} of 5"
    rounds = "1 round" if model.n_iter_ == 1 else f"{model.n_iter_} rounds"
    assert shown["solver"] == f"auto, {rounds}" and shown["status"] == "the certified gap is within tol"
    assert shown["certificate"].startswith("within ") and "tol" in shown["certificate"]
    run("train", "-q", "--task", "kernel", "--kernel", "linear", three)
    assert "kernel       linear\n" in run("info", f"{three}.model").out


def test_cross_validation(run: Run, three: Path) -> None:
    code, out, err = run("train", "--task", "kernel", "-v", 3, "--memory", "1GB", three)
    assert code == 0 and out.startswith("Cross Validation Accuracy = ") and "fold 3 of 3: Accuracy = " in err
    again = json.loads(run("train", "--task", "kernel", "-v", 3, "--json", three).out)
    assert out == f"Cross Validation Accuracy = {100 * again['cross_validation_accuracy']:g}%\n"
    assert not Path(f"{three}.model").exists()


def test_tables_and_stores(run: Run, binary: Path, tmp_path: Path) -> None:
    """Sparse and dense rows of the same data, trained on one and predicted on the other."""
    X, y = blobs([-1, 1])
    X += 2.0
    write_svmlight(binary, X, y)
    np.savez(tmp_path / "table.npz", X=X, y=y)
    run("convert", "-q", binary, tmp_path / "store")
    files = [binary, tmp_path / "table.npz", tmp_path / "store"]
    said = set()
    for source in files:
        assert run("train", "-q", "--task", "kernel", "-c", 0.1, source, tmp_path / "m").code == 0
        said |= {run("predict", other, tmp_path / "m").out for other in files}
    assert len(said) == 1 and said.pop().startswith("Accuracy = 9")
    for task in ("classify", "kernel"):
        code, out, _ = run("train", "--task", task, "-v", 2, tmp_path / "store")
        assert code == 0 and out.startswith("Cross Validation Accuracy = ")


def test_weights_of_a_table_are_used(run: Run, tmp_path: Path) -> None:
    X, y = blobs([0, 1])
    for name, weight in (("even", 1.0), ("odd", 50.0)):
        columns = [
            "a,b,label,sample_weight",
            *(f"{a},{b},{k},{weight if k else 1}" for (a, b), k in zip(X[:, :2], y, strict=True)),
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(columns))
        assert run("train", "-q", "--task", "kernel", tmp_path / f"{name}.csv").code == 0
    counts = []
    for name in ("even", "odd"):
        run("predict", "-q", tmp_path / "even.csv", tmp_path / f"{name}.csv.model", tmp_path / "out")
        counts.append((tmp_path / "out").read_text().split().count("1"))
    assert counts[1] > counts[0]


@pytest.mark.parametrize("task", ["classify", "kernel", "roc", "ordinal"])
def test_weights_are_used_in_cross_validation(run: Run, tmp_path: Path, task: str) -> None:
    """Rows with wrong labels and next to no weight, against the same rows with full weight."""
    X, y = blobs([0, 1], rows=200)
    wrong = np.arange(200) % 5 == 0
    said = []
    for weight in (1e-6, 1.0):
        lines = [
            f"{a},{b},{k if not bad else 1 - k},{weight if bad else 1}"
            for (a, b), k, bad in zip(X[:, :2] + [[4.0 * k, 0.0] for k in y], y, wrong, strict=True)
        ]
        (tmp_path / "d.csv").write_text("\n".join(["a,b,label,sample_weight", *lines]))
        said.append(run("train", "--task", task, "-v", 2, "--json", tmp_path / "d.csv").out)
    assert json.loads(said[0])["gaps"] != json.loads(said[1])["gaps"]


def test_max_time(run: Run, three: Path) -> None:
    code, out, err = run("train", "--task", "kernel", "--solver", "isda", "--max-time", 1e-9, three)
    assert code == 0 and out.startswith("not converged: gap 1.0e+00, tol 1e-03\n")
    assert "warning: not converged (the time limit was reached)" in err and "a larger --max-time" in err
    code, out, _ = run("predict", three, f"{three}.model")
    assert code == 0 and out.startswith("Accuracy = ")


def test_ctrl_c_keeps_the_model(run: Run, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cutsvm.kernel_machines import SGD

    def interrupted(*_: object) -> Any:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(SGD, "_epochs", interrupted)
    code, out, err = run("train", "--task", "kernel", "--solver", "sgd", three)
    assert code == 0 and out.startswith("not converged: gap ")
    assert "interrupted; the best model so far is kept" in err and Path(f"{three}.model").exists()


def test_quiet(run: Run, binary: Path) -> None:
    assert run("train", "-q", "--task", "kernel", binary) == (0, "", "")


def test_unconverged_model(run: Run, binary: Path) -> None:
    run("train", "-q", "--task", "kernel", binary)
    model = Path(f"{binary}.model")
    model.write_bytes(model.read_bytes()[:-5])
    for command in (["predict", binary, model], ["info", model]):
        code, out, err = run(*command)
        assert (code, out) == (2, "") and "truncated" in err


def test_progress(run: Run, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the kernel matrix and the certificate, where they take long; not when quiet."""
    from cutsvm.kernel_machines.context import Deadline
    from cutsvm.kernel_machines.gram import GramSettings, Points

    monkeypatch.setattr("cutsvm.estimators._kernel.Deadline", partial(Deadline, log_every=0.0))
    monkeypatch.setattr("cutsvm.estimators._kernel.Points", partial(Points, settings=GramSettings(block_rows=30)))
    for quiet in ([], ["-q"]):
        code, _, err = run("train", "--task", "kernel", "--solver", "sgd", *quiet, three)
        assert code == 0
        for words in ("kernel matrix: 50 %", "certificate: 11 %"):
            assert err.count(words) == (0 if quiet else 1)
