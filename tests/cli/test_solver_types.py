"""`cutsvm train -s N`: LIBLINEAR's solver types, against LIBLINEAR itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutsvm import load_model
from cutsvm.cli.liblinear_types import TYPES
from tests.support.cli import Run, blobs, write_svmlight

MEANINGS = {
    0: ("classify", "logistic"),
    1: ("classify", "squared_hinge"),
    2: ("classify", "squared_hinge"),
    3: ("classify", "hinge"),
    4: ("classify", "hinge"),
    7: ("classify", "logistic"),
    11: ("regress", "squared_epsilon_insensitive"),
    12: ("regress", "squared_epsilon_insensitive"),
    13: ("regress", "epsilon_insensitive"),
    21: ("oneclass", None),
}


def rows(number: int, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs([1.0, 2.0, 3.0][:n_classes])
    if number > 20:
        return X + 4.0, np.ones(len(X))
    return X, y if number < 10 else np.round(X @ [1.0, -1.0, 0.5, 0.0, 2.0] + 0.1 * y, 4)


def test_every_type_is_tested() -> None:
    assert set(MEANINGS) == set(TYPES)


@pytest.mark.parametrize("number", MEANINGS)
def test_task_loss_and_intercept(run: Run, tmp_path: Path, number: int) -> None:
    data = write_svmlight(tmp_path / "d", *rows(number))
    task, loss = MEANINGS[number]
    code, _, err = run("train", "-s", number, "--n-jobs", 1, data)
    (said,) = [line for line in err.splitlines() if line.startswith(f"-s {number} (")]
    assert code == 0 and f"--task {task}" in said and (loss is None or f"--loss {loss}" in said)
    saved = load_model(f"{data}.model")
    assert saved.task == task and getattr(saved.estimator, "loss", None) == loss
    if task == "oneclass":
        assert run("train", "-s", number, "-B", 1, data).code == 2
        return
    assert "no intercept" in said and saved.estimator.fit_intercept is False
    code, _, err = run("train", "-s", number, "-B", 1, "-p" if number > 10 else "-c", 0.5, "--n-jobs", 1, data)
    estimator = load_model(f"{data}.model").estimator
    assert code == 0 and "a regularised intercept" in err
    assert (estimator.fit_intercept, estimator.intercept) == (True, "regularized")
    assert getattr(estimator, "epsilon", 0.5) == 0.5


def objective(number: int, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """|w|^2 / 2 + b^2 / 2 + 0.2 sum of LIBLINEAR's losses."""
    w, b = np.ravel(model.coef_), float(model.intercept_[0])
    scores = X @ w + b
    margins = np.where(y == 2.0, 1.0, -1.0) * scores
    tube = np.maximum(0.0, np.abs(scores - y) - 0.1)
    losses = {3: np.maximum(0.0, 1.0 - margins), 13: tube}
    losses |= dict.fromkeys((1, 2), losses[3] ** 2) | dict.fromkeys((11, 12), tube**2)
    losses |= dict.fromkeys((0, 7), np.logaddexp(0.0, -margins))
    return float(w @ w + b * b) / 2.0 + 0.2 * float(losses[number].sum())


@pytest.mark.parametrize("number", [1, 2, 3, 0, 7, 11, 12, 13])
@pytest.mark.parametrize("bias", [[], ["-B", "1"]], ids=["no intercept", "-B 1"])
def test_weights_are_those_of_liblinear(run: Run, tmp_path: Path, number: int, bias: list[str]) -> None:
    theirs = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    X, y = rows(number, 2)
    data, model = write_svmlight(tmp_path / "d", X, y), tmp_path / "m"
    words = ["-s", str(number), "-c", "0.2", *bias]
    assert run("train", "-q", *words, "-e", 1e-7, "--n-jobs", 1, data, model).code == 0
    trained = theirs.train(y, X, " ".join([*words, "-e", "1e-6", "-q"]))
    theirs.save_model(str(tmp_path / "t"), trained)
    ours, expected = load_model(model).estimator, load_model(tmp_path / "t").estimator
    lower = ours.lower_bound_
    excess = [objective(number, found, X, y) - lower for found in (ours, expected)]
    # LIBLINEAR orders the rows by the C library's rand(): its -s 13 ends up to 2e-3 above the optimum, depending on the
    # calls before.
    assert 0.0 <= excess[0] <= 1e-6 * lower and excess[1] <= 1e-2 * lower
    # F is 1-strongly convex: |w - w*|^2 / 2 <= F(w) - F(w*). LIBLINEAR ends after 1,000 iterations, wherever it is.
    distance = np.hypot(np.linalg.norm(ours.coef_ - expected.coef_), ours.intercept_ - expected.intercept_)
    assert distance <= sum(np.sqrt(2.0 * np.array(excess)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-s", "0", "--task", "regress"], "not --task regress; --task regress is -s 11, 12, 13"),
        (["-s", "13", "--task", "classify"], "not --task classify; --task classify is -s 0, 1, 2, 3, 4, 7"),
        (["-s", "3", "--task", "rank"], "not --task rank; --task rank has no -s: leave -s out"),
        (["-s", "3", "--loss", "logistic"], "not --loss logistic; --loss logistic is -s 0, 7"),
        (["-s", "3", "--multi-class", "crammer_singer"], "--multi-class crammer_singer is -s 4"),
        (["-s", "5"], "L1R_L2LOSS_SVC regularises with |w|_1, which is not available here"),
        (["-s", "6"], "L1R_LR regularises with |w|_1"),
        (["-s", "8"], "expected one of 0, 1, 2, 3, 4, 7, 11, 12, 13, 21, got '8'"),
        (["-s", "x"], "expected one of 0, 1"),
        (["-s", "3", "-p", "0.1"], "-p applies to --task regress and kernel-regress, not to classify"),
        (["-s", "21", "-c", "1"], "-c applies to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_contradictions(run: Run, binary: Path, words: list[str], message: str) -> None:
    code, out, err = run("train", *words, binary)
    assert (code, out) == (2, "") and message in err and len(err.splitlines()) == 1
    assert not Path(f"{binary}.model").exists()


def test_same_task_and_loss_beside_the_type_are_fine(run: Run, binary: Path) -> None:
    words = ["--task", "classify", "--loss", "logistic", "-s", 0, "-e", 0.01]
    code, _, err = run("train", *words, binary)
    assert code == 0 and "-e 0.01 is the relative gap, not LIBLINEAR's tolerance" in err


def test_path_takes_types(run: Run, binary: Path) -> None:
    code, out, err = run("path", "-s", 2, "-B", 1, "--Cs", "0.1,1", "--json", binary)
    assert code == 0 and "-s 2 (L2R_L2LOSS_SVC)" in err and json.loads(out)["Cs"] == [0.1, 1.0]


def test_a_solver_for_two_classes_names_a_type(run: Run, three: Path) -> None:
    code, _, err = run("train", "-q", "-s", 4, "--solver", "dcd", three)
    assert code == 2 and "here are 3: take -s 3" in err
    assert run("train", "-q", "-s", 3, "--solver", "dcd", three).code == 0
    code, _, err = run("train", "-q", "--solver", "dcd", three)
    assert code == 2 and "here are 3: add --multi-class ovr" in err


@pytest.mark.parametrize("number", [2, 11])
def test_best_cost(run: Run, tmp_path: Path, number: int) -> None:
    """`train -C` is `path -v 5`, and its last line is LIBLINEAR's."""
    data = write_svmlight(tmp_path / "d", *rows(number))
    wanted = json.loads(run("path", "--json", "-s", number, "-v", 5, data).out)
    code, out, _ = run("train", "-C", "-s", number, data)
    best = max(wanted["mean_scores"])
    shown = f"R^2 = {best:g}" if number > 10 else f"accuracy = {100 * best:g}%"
    assert code == 0 and out.splitlines()[-1] == f"Best C = {wanted['C']:g}  CV {shown}"
    assert not Path(f"{data}.model").exists()
    doubled = json.loads(run("train", "-C", "-s", number, "-c", 100, "-v", 3, "--json", data, tmp_path / "m").out)
    assert doubled["Cs"] == [100.0, 200.0, 400.0, 800.0] and len(doubled["scores"]) == 3
    assert load_model(tmp_path / "m").estimator.C == doubled["C"]
    quiet = run("train", "-C", "-q", "-s", number, data).out
    assert quiet == out.splitlines()[-1] + "\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task", "kernel"], "-C finds the C of --task classify, regress, rank, not of kernel"),
        (["--paper", "joachims"], "-C cross-validates many C, --paper is for one fit"),
        (["--valid", "more"], "-C cross-validates many C, --valid is for one fit"),
    ],
)
def test_best_cost_refuses(run: Run, binary: Path, words: list[str], message: str) -> None:
    code, out, err = run("train", "-C", *words, binary)
    assert (code, out) == (2, "") and message in err
