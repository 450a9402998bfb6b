"""`cutsvm train --task rank|roc|ordinal`, with predict, info and -v."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cutsvm import load_model, pair_accuracy
from tests.support.cli import Run, blobs, write_svmlight


@pytest.fixture
def ranking(tmp_path: Path) -> Path:
    """20 queries of 10 rows with 3 levels, the rows of all queries mixed."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(200, 4)), 4)
    qid = rng.permutation(np.repeat(np.arange(20), 10))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=200), [-0.7, 0.7])
    path = write_svmlight(tmp_path / "ranking.svm", X, y)
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line.replace(' ', f' qid:{q} ', 1)}\n" for line, q in zip(lines, qid, strict=True)))
    return path


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    rng = np.random.default_rng(6)
    X = np.round(rng.normal(size=(150, 3)), 4)
    return write_svmlight(tmp_path / "graded.svm", X, np.digitize(X @ [1.0, -1.0, 0.5], [-1.0, 0.0, 1.0]))


def test_rank(run: Run, ranking: Path, tmp_path: Path) -> None:
    code, out, err = run("train", "--task", "rank", "-c", 10, ranking)
    assert code == 0 and "certified" in out and "3 levels, 20 queries" in err
    model = load_model(f"{ranking}.model")
    assert model.task == "rank" and model.estimator.n_queries_ == 20
    code, out, _ = run("predict", ranking, f"{ranking}.model", tmp_path / "scores")
    assert code == 0 and out.startswith("Pairs in order = 9") and out.endswith("%\n")
    assert len(np.loadtxt(tmp_path / "scores")) == 200
    facts = json.loads(run("predict", "--json", ranking, f"{ranking}.model").out)
    assert facts["rows"] == 200 and 0.8 < facts["pairs_in_order"] < 1.0
    shown = run("info", f"{ranking}.model").out
    assert "rank" in shown and "of 20 queries, 0 of them without a pair" in shown
    assert json.loads(run("info", "--json", f"{ranking}.model").out)["n_queries"] == 20


def test_squared_hinge_of_pairs(run: Run, ranking: Path, binary: Path, graded: Path) -> None:
    for task, data in {"rank": ranking, "roc": binary, "ordinal": graded}.items():
        facts = json.loads(run("train", "--json", "--task", task, "--loss", "squared_hinge", data).out)
        assert facts["loss"] == "squared_hinge" and facts["gap"] <= 1e-3
        assert "squared_hinge" in run("info", f"{data}.model").out
    assert run("train", "--task", "rank", "--loss", "squared_hinge", "--solver", "newton", ranking).code == 0
    code, _, err = run("train", "--task", "rank", "--loss", "logistic", ranking)
    assert code == 2 and "rank has hinge and squared_hinge" in err
    code, _, err = run("train", "--task", "rank", "--solver", "newton", ranking)
    assert code == 2 and 'with loss="squared_hinge"' in err


def test_rank_with_queries_named_by_text(run: Run, ranking: Path) -> None:
    plain = json.loads(run("train", "--json", "--task", "rank", ranking).out)
    ranking.write_text(ranking.read_text().replace("qid:", "qid:night-"))
    named = json.loads(run("train", "--json", "--task", "rank", ranking).out)
    assert named["queries"] == plain["queries"] == 20
    assert named["objective"] == pytest.approx(plain["objective"], rel=2e-3)


def test_rank_without_queries_is_one_query(run: Run, graded: Path) -> None:
    code, _, err = run("train", "--task", "rank", graded)
    assert code == 0 and "4 levels, 1 query" in err


def test_queries_without_a_pair_are_counted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "few.svm"
    path.write_text("1 qid:1 1:1\n2 qid:1 1:2\n1 qid:2 1:1\n1 qid:2 1:3\n")
    code, _, err = run("train", "--task", "rank", path)
    assert code == 0 and "1 of 2 queries have one level, and make no pair" in err


def test_data_without_pairs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.svm"
    path.write_text("1 qid:1 1:1\n2 qid:2 1:2\n")
    code, out, err = run("train", "--task", "rank", path)
    assert code == 2 and "there is no pair to learn from" in err and out == ""
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    code, _, err = run("train", "--task", "rank", path)
    assert code == 2 and "all labels are 1, expected two levels or more" in err


def test_predict_without_a_pair(run: Run, ranking: Path, tmp_path: Path) -> None:
    run("train", "-q", "--task", "rank", ranking)
    path = tmp_path / "flat.svm"
    path.write_text("1 qid:1 1:1\n2 qid:2 1:2\n")
    code, out, err = run("predict", path, f"{ranking}.model", "-")
    assert code == 0 and len(out.split()) == 2 and "there is no pair to score" in err


def test_roc(run: Run, binary: Path, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    assert run("train", "--task", "roc", binary).code == 0
    model = load_model(f"{binary}.model").estimator
    code, out, _ = run("predict", binary, f"{binary}.model", tmp_path / "scores")
    area = pair_accuracy(model.decision_function(X), y)
    assert (code, out) == (0, f"ROC area = {100 * area:.6g}%\n")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores"), model.decision_function(X), rtol=1e-12)
    assert "where the training error is lowest" in run("info", f"{binary}.model").out


def test_roc_takes_two_classes(run: Run, three: Path, binary: Path, tmp_path: Path) -> None:
    code, _, err = run("train", "--task", "roc", three)
    assert code == 2 and "3 classes, --task roc takes two" in err
    run("train", "-q", "--task", "roc", binary)
    path = tmp_path / "ones.svm"
    path.write_text("1 1:1\n1 1:2\n")
    code, out, err = run("predict", path, f"{binary}.model")
    assert code == 0 and out == "" and "all rows are of one class" in err


def test_ordinal(run: Run, graded: Path, tmp_path: Path) -> None:
    assert run("train", "--task", "ordinal", "-c", 100, graded).code == 0
    code, out, _ = run("predict", graded, f"{graded}.model", tmp_path / "levels")
    assert code == 0 and out.startswith("Accuracy = ") and "mean absolute error" in out
    assert set((tmp_path / "levels").read_text().split()) <= {"0", "1", "2", "3"}
    assert run("predict", "--scores", graded, f"{graded}.model", tmp_path / "scores").code == 0
    assert len(set((tmp_path / "scores").read_text().split())) > 100
    shown = run("info", f"{graded}.model").out
    assert "thresholds" in shown and "ordinal" in shown


@pytest.mark.parametrize(("task", "words"), [("rank", "Pairs in order"), ("roc", "ROC area"), ("ordinal", "Accuracy")])
def test_cross_validation(run: Run, ranking: Path, binary: Path, graded: Path, task: str, words: str) -> None:
    data = {"rank": ranking, "roc": binary, "ordinal": graded}[task]
    code, out, err = run("train", "--task", task, "-v", 3, data)
    assert code == 0 and out.startswith(f"Cross Validation {words} = ") and "fold 3 of 3" in err
    facts = json.loads(run("train", "--task", task, "--json", "-v", 3, data).out)
    assert next(value for name, value in facts.items() if name.startswith("cross_validation")) > 0.6


def test_cross_validation_keeps_queries_whole(run: Run, ranking: Path) -> None:
    code, _, err = run("train", "--task", "rank", "-v", 21, ranking)
    assert code == 2 and "has only 20 queries, which stay whole" in err
