"""What a new user tries with a folder of tables, as transcripts: what version 0.1 answered, and what is answered now.

Private memory of `predict` and of kernel machines, which were on the same list, is measured in tests/robust.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import cutsvm
from tests.support.cli import Run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

CITIES = ("Lima", "Oslo", "Rome")


class Transcript(NamedTuple):
    """A command, the answer of version 0.1 to it, and texts that the answer has now."""

    words: str
    before: str
    after: tuple[str, ...]
    files: tuple[str, ...] = ()  # that the command writes


TRANSCRIPTS = (
    Transcript(
        "predict score.parquet m.model out.txt",
        "score.parquet: which column has the labels? label= expects one of the columns 'a', 'b', 'c'",
        ("without labels to compare with",),
        ("out.txt",),
    ),
    Transcript(
        "predict score.csv m.model out.txt",
        "score.csv: which column has the labels? label= expects one of the columns 'a', 'b', 'c'",
        ("without labels to compare with",),
        ("out.txt",),
    ),
    Transcript("predict bought.parquet bought.model", "which column has the labels?", ("Accuracy = 9",)),
    Transcript("train folder f.model", "folder: not a store: it has no manifest.json", ("300 rows",), ("f.model",)),
    Transcript(
        "train folder/1.parquet folder/2.parquet f.model",
        "unrecognized arguments: f.model",
        ("300 rows",),
        ("f.model",),
    ),
    Transcript(
        "train folder/*.parquet f.model", "folder/*.parquet: No such file or directory", ("300 rows",), ("f.model",)
    ),
    Transcript(
        "train folder --columns a,b --filter c>0 f.model",
        "unrecognized arguments: --columns a,b --filter c>0",
        ("2 features",),
        ("f.model",),
    ),
    Transcript(
        "train text.parquet t.model",
        "column 'city' holds text, expected numbers; leave it out or make it numbers first",
        ("6 features",),
        ("t.model",),
    ),
    Transcript(
        "train missing.parquet x.model", "row 3, column 'b': expected a value, found none", ("mean",), ("x.model",)
    ),
    Transcript(
        "path rows.store --memory 2GB -v 3 --Cs 0.1,1",
        "unrecognized arguments: --memory 2GB",
        ("best: C =", "passes over the data"),
    ),
    Transcript(
        "train rows.store -v 3 --memory 2GB",
        "--memory is for training, -v has all rows in memory: leave one of them out",
        ("Cross Validation Accuracy = 8",),
    ),
    Transcript("check train.csv", "train.csv:1: expected a number as label", ("rows         300",)),
    Transcript("check rows.store", "rows.store: is a folder, expected a file", ("rows         300",)),
    Transcript("train -wyes 2 train.parquet w.model", "expected a number as label, got 'yes'", (), ("w.model",)),
    Transcript("train -s 3 -B 1 train.svm s.model", "unrecognized arguments: -s 3", ("-s 3",), ("s.model",)),
    Transcript("train -C train.svm", "unrecognized arguments: -C", ("Best C = ",)),
    Transcript("predict -b 1 train.parquet p.model p.txt", "unrecognized arguments: -b 1", ("Accuracy",), ("p.txt",)),
    Transcript("", "the following arguments are required: COMMAND", ("examples:", "cutsvm train")),
    Transcript("completion bash", "invalid choice: 'completion'", ("complete",)),
)


def table(seed: int) -> Any:
    """300 rows: three numbers, a text, and a label that depends on both."""
    rng = np.random.default_rng(seed)
    X, city = rng.normal(size=(300, 3)), rng.choice(CITIES, 300)
    y = np.where(X[:, 0] + 0.5 * (city == "Oslo") + 0.1 * rng.normal(size=300) > 0.0, "yes", "no")
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "city": city, "label": y})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the transcripts, in the working folder."""
    monkeypatch.chdir(tmp_path)
    whole = table(0)
    numbers = whole.drop_columns(["city"])
    pq.write_table(numbers, "train.parquet")
    pq.write_table(numbers.drop_columns(["label"]), "score.parquet")
    for name, columns in (("train", numbers), ("score", numbers.drop_columns(["label"]))):
        columns.to_pandas().to_csv(f"{name}.csv", index=False)
    (tmp_path / "folder").mkdir()
    pq.write_table(numbers.slice(0, 100), "folder/1.parquet")
    pq.write_table(numbers.slice(100), "folder/2.parquet")
    pq.write_table(whole, "text.parquet")
    holes = pa.array(whole["b"].to_numpy(), mask=np.arange(300) == 3)
    pq.write_table(numbers.set_column(1, "b", holes), "missing.parquet")
    pq.write_table(numbers.rename_columns(["a", "b", "c", "bought"]), "bought.parquet")
    signs = np.where(whole["label"].to_numpy(zero_copy_only=False) == "yes", 1, -1)
    lines = zip(signs, *(whole[name].to_numpy() for name in "abc"), strict=True)
    Path("train.svm").write_text("".join(f"{y} 1:{a} 2:{b} 3:{c}\n" for y, a, b, c in lines))
    cutsvm.convert("train.parquet", "rows.store")
    return tmp_path


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.words or "cutsvm")
def test_command(transcript: Transcript, folder: Path, run: Run) -> None:
    assert run("train", "-q", "train.parquet", "m.model").code == 0
    if "bought" in transcript.words:
        assert run("train", "-q", "--label", "bought", "bought.parquet", "bought.model").code == 0
    if "p.model" in transcript.words:
        assert run("train", "-q", "--loss", "logistic", "train.parquet", "p.model").code == 0
    result = run(*transcript.words.split())
    said = result.out + result.err
    assert result.code == 0, said
    assert transcript.before not in said
    for text in transcript.after:
        assert text in said
    for name in transcript.files:
        assert Path(name).stat().st_size > 0


def test_standard_input(folder: Path) -> None:
    """`cat train.svm | cutsvm train - m.model`: before, `-: No such file or directory`."""
    words = [sys.executable, "-m", "cutsvm.cli", "train", "-", "stdin.model"]
    result = subprocess.run(words, input=Path("train.svm").read_bytes(), capture_output=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert b"300 rows" in result.stderr and Path("stdin.model").exists()


def _polars() -> Any:
    return pytest.importorskip("polars").scan_parquet("train.parquet")


def _duckdb() -> Any:
    return pytest.importorskip("duckdb").sql("select * from 'train.parquet'")


SOURCES: dict[str, Callable[[], Any]] = {
    "folder": lambda: "folder",
    "list of files": lambda: ["folder/1.parquet", "folder/2.parquet"],
    "glob": lambda: "folder/*.parquet",
    "pyarrow dataset": lambda: pytest.importorskip("pyarrow.dataset").dataset("folder"),
    "pyarrow table": lambda: pq.read_table("train.parquet"),
    "polars LazyFrame": _polars,
    "DuckDB relation": _duckdb,
    "store": lambda: "rows.store",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_fit_predict_and_score(kind: str, folder: Path) -> None:
    """Before, one of

    not a store: it has no manifest.json · This LinearSVC estimator requires y to be passed · No such file or directory
    X is a LazyFrame, which has no values yet · could not convert string to float: 'a.store' · missing argument: 'y'
    """
    numbers = pq.read_table("train.parquet")
    X = np.column_stack([numbers[name].to_numpy() for name in "abc"])
    y = numbers["label"].to_numpy(zero_copy_only=False).astype(str)
    known = cutsvm.LinearSVC().fit(X, y)
    model = cutsvm.LinearSVC().fit(SOURCES[kind]())
    np.testing.assert_array_equal(model.coef_, known.coef_)
    np.testing.assert_array_equal(model.predict(SOURCES[kind]()), known.predict(X))
    np.testing.assert_array_equal(model.decision_function(SOURCES[kind]()), known.decision_function(X))
    assert model.score(SOURCES[kind]()) == known.score(X, y)


def test_choice_of_C_out_of_core(folder: Path) -> None:
    """Before: "memory_limit='300MB': folds have their rows in memory; `linear_path` has not"."""
    model = cutsvm.LinearSVCCV(Cs=[0.1, 1.0], cv=3, memory_limit="300MB").fit("rows.store")
    assert model.scores_.shape == (3, 2) and model.gaps_.max() <= 1e-3


def test_memory_limit_is_beside_what_the_process_holds(folder: Path) -> None:
    """Before: "memory_limit is 120 MB: too little for a fit; expected at least 218 MB", most of it in use already."""
    assert cutsvm.LinearSVC(memory_limit="120MB").fit("rows.store").converged_


def test_rows_come_and_go(folder: Path) -> None:
    """Before: 'Dataset' object has no attribute 'append'."""
    data = cutsvm.open_dataset("rows.store")
    data.append("train.parquet")
    assert cutsvm.open_dataset("rows.store").shape == (600, 3)
    cutsvm.open_dataset("rows.store").delete(range(300))
    assert cutsvm.open_dataset("rows.store").shape == (300, 3)


def test_forgotten_queries(folder: Path) -> None:
    """Before: one big query without a word."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    with pytest.warns(UserWarning, match="qid"):
        cutsvm.RankingSVM().fit(X, y)


def test_ranking_measures(folder: Path) -> None:
    """Before: `score` knew the share of pairs only."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(300, 3)), np.repeat(np.arange(30), 10)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = cutsvm.RankingSVM().fit(X, y, qid=qid)
    for metric in ("pairs", "ndcg@5", "map"):
        assert 0.9 < model.score(X, y, qid=qid, metric=metric) <= 1.0
