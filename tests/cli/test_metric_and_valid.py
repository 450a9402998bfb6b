"""`--metric` of ranking in predict, path and train -v; `train --valid FILE` of every task."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from cutsvm import load_model, open_dataset
from tests.support.cli import Run, blobs, write_svmlight


def write_queries(path: Path, seed: int, n_queries: int) -> Path:
    """Queries of 10 rows with levels 0 to 2; the rows of the first query all have level 1."""
    rng = np.random.default_rng(seed)
    X, qid = np.round(rng.normal(size=(10 * n_queries, 4)), 4), np.repeat(np.arange(n_queries), 10)
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=len(X)), [-0.7, 0.7])
    y[:10] = 1
    lines = write_svmlight(path, X, y).read_text().splitlines()
    path.write_text("".join(f"{line.replace(' ', f' qid:{q} ', 1)}\n" for line, q in zip(lines, qid, strict=True)))
    return path


@pytest.fixture
def ranking(tmp_path: Path) -> Path:
    return write_queries(tmp_path / "train.svm", 0, 20)


@pytest.fixture
def held_out(tmp_path: Path) -> Path:
    return write_queries(tmp_path / "test.svm", 1, 8)


def test_metric_of_predict(run: Run, ranking: Path, held_out: Path) -> None:
    model = Path(f"{ranking}.model")
    assert run("train", "-q", "--task", "rank", ranking).code == 0
    data = open_dataset(held_out)
    y, scores = data.y.reshape(8, 10)[1:], load_model(model).estimator.predict(data.X).reshape(8, 10)[1:]
    wanted = {
        "ndcg@3": ndcg_score(y, scores, k=3),
        "map": np.mean([average_precision_score(t > 0, f) for t, f in zip(y, scores, strict=True)]),
    }
    for metric, value in wanted.items():
        facts = json.loads(run("predict", "--json", "--metric", metric, held_out, model).out)
        assert facts[metric] == pytest.approx(value, rel=1e-12)
        assert (facts["queries"], facts["queries_left_out"]) == (8, 1)
        out = run("predict", "--metric", metric, held_out, model).out
        assert out == f"{metric.upper()} = {value:.6g} (8 queries, 1 left out)\n"
    assert run("predict", "--metric", "pairs", held_out, model).out == run("predict", held_out, model).out


def test_metric_of_folds_and_paths(run: Run, ranking: Path) -> None:
    facts = json.loads(run("train", "--json", "--task", "rank", "-v", 4, "--metric", "ndcg@5", ranking).out)
    assert facts["cross_validation_ndcg@5"] == pytest.approx(np.mean(facts["of_folds"])) and len(facts["of_folds"]) == 4
    assert "Cross Validation MAP = 0." in run("train", "--task", "rank", "-v", 4, "--metric", "map", ranking).out
    grid = ("path", "--json", "--task", "rank", "--Cs", "0.1,1", "-v", 4, ranking)
    chosen = json.loads(run(*grid, "--metric", "ndcg@5").out)
    assert chosen["scoring"] == "ndcg@5" and chosen["mean_scores"][1] == pytest.approx(facts["cross_validation_ndcg@5"])
    assert json.loads(run(*grid, "--scoring", "ndcg@5").out)["scores"] == chosen["scores"]
    assert json.loads(run(*grid, "--metric", "pairs").out)["scores"] == json.loads(run(*grid).out)["scores"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "--metric", "ndcg"), "--metric applies to --task rank, not to classify"),
        (("train", "--task", "rank", "--metric", "ndcg"), "--metric is the measure of -v FOLDS or --valid FILE"),
        (
            ("train", "--task", "rank", "-v", 3, "--metric", "ndcg@0"),
            "expected ndcg@K (as ndcg@10), ndcg, map or pairs",
        ),
        (("path", "--task", "rank", "--metric", "ndcg"), "--metric is the score of -v FOLDS: add -v"),
        (("path", "--task", "rank", "-v", 3, "--metric", "map", "--scoring", "ndcg"), "leave one of them out"),
        (("train", "-v", 3, "--valid", "more.svm"), "--valid measures the model, -v makes none"),
        (("train", "--valid", "more.svm"), "more.svm: No such file or directory"),
    ],
)
def test_refused(run: Run, ranking: Path, words: tuple[object, ...], message: str) -> None:
    code, out, err = run(*words, ranking)
    assert code == 2 and out == "" and message in err
    assert not Path(f"{ranking}.model").exists()


def test_metric_of_another_task(run: Run, binary: Path) -> None:
    run("train", "-q", binary)
    code, out, err = run("predict", "--metric", "ndcg", binary, f"{binary}.model")
    assert code == 2 and out == "" and "--metric applies to --task rank, not to classify" in err


@pytest.mark.parametrize("task", ["classify", "regress", "quantile", "oneclass", "rank", "roc", "ordinal", "kernel"])
def test_valid(run: Run, tmp_path: Path, task: str) -> None:
    """The measure of `cutsvm predict`, after the name of the file; as fields with --json."""
    levels = [1.0, 2.0] if task == "roc" else [0.0, 1.0, 2.0]
    files = [write_svmlight(tmp_path / name, *blobs(levels, seed=seed)) for seed, name in enumerate(["a", "b"])]
    if task == "rank":
        files = [write_queries(tmp_path / name, seed, 9) for seed, name in enumerate(["a", "b"])]
    code, out, _ = run("train", "--task", task, files[0], tmp_path / "m", "--valid", files[1])
    assert code == 0
    shown = run("predict", files[1], tmp_path / "m").out
    assert out.splitlines()[2:] == [f"{files[1]}: {line}" for line in shown.splitlines()]
    facts = json.loads(run("train", "--json", "--task", task, files[0], tmp_path / "m", "--valid", files[1]).out)
    wanted = json.loads(run("predict", "--json", files[1], tmp_path / "m").out)
    assert facts["valid"].pop("data") == str(files[1])
    assert facts["valid"] and facts["valid"].items() <= wanted.items()


def test_valid_that_cannot_be_measured_leaves_the_model(run: Run, ranking: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.svm").write_text("1 qid:1 1:1\nno line\n")
    code, out, err = run("train", "--task", "rank", ranking, "--valid", tmp_path / "bad.svm")
    assert code == 1 and "certified" in out and "nothing was measured on" in err and "bad.svm:2" in err
    assert load_model(f"{ranking}.model").task == "rank"


def test_valid_of_a_table_orders_columns_by_name(run: Run, tmp_path: Path) -> None:
    X, y = blobs([0.0, 1.0], width=2)
    for name, columns in (("a", [0, 1]), ("b", [1, 0])):
        rows = "".join(f"{t:g},{row[0]},{row[1]}\n" for t, row in zip(y, X[:, columns].tolist(), strict=True))
        (tmp_path / f"{name}.csv").write_text(f"y,{','.join(f'x{c}' for c in columns)}\n{rows}")
    out = [run("train", "-q", tmp_path / "a.csv", "--valid", tmp_path / f"{name}.csv").out for name in "ab"]
    assert out[0].partition(": ")[2] == out[1].partition(": ")[2] != ""


def test_paper_is_a_field_of_cross_validation(run: Run, binary: Path) -> None:
    facts = json.loads(run("train", "--json", "-v", 3, "--paper", "joachims", "-c", 5, binary).out)
    assert (facts["paper"], facts["paper_C"]) == ("joachims", 5.0)


def test_forgotten_queries(run: Run, tmp_path: Path) -> None:
    path = write_svmlight(tmp_path / "flat.svm", *blobs([0.0, 1.0, 2.0], rows=300))
    code, _, err = run("train", "--task", "rank", path)
    assert code == 0 and err.count("qid is missing, so that all rows are one query") == 1
