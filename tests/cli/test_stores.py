"""`cutsvm convert`, `cutsvm info STORE`, and training and predicting from stores and tables."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import cutsvm
from cutsvm.io import open_dataset
from cutsvm.io.store.manifest import NAME
from cutsvm.io.store.store import Store
from tests.support.cli import Run, blobs, write_svmlight


@pytest.fixture
def store(run: Run, binary: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store"
    assert run("convert", "-q", binary, path).code == 0
    return path


def test_convert(run: Run, binary: Path, tmp_path: Path) -> None:
    code, out, err = run("convert", binary, tmp_path / "store")
    assert (code, out) == (0, f"store: {tmp_path / 'store'}\n")
    assert "120 rows, 5 features, 600 values" in err and "converting: 100 %" in err
    assert open_dataset(tmp_path / "store").shape == (120, 5)
    code, out, err = run("convert", "--json", "--float32", binary, _copy(binary), tmp_path / "two")
    assert code == 0 and json.loads(out)["rows"] == 240
    assert open_dataset(tmp_path / "two").X.dtype == np.float32


def _copy(path: Path) -> Path:
    return Path(shutil.copy(path, path.with_suffix(".copy")))


def test_info(run: Run, store: Path, binary: Path) -> None:
    code, out, err = run("info", store)
    assert (code, err) == (0, "")
    for words in ("120", "5, counted from 1", "600 float64, csr", "-1, 1", "no weights, no queries", str(binary)):
        assert words in out, words
    code, out, _ = run("info", "--json", store)
    facts = json.loads(out)
    assert code == 0 and facts["classes"] == [-1, 1] and facts["blocks"] == 1 and facts["largest_norm"] > 0


@pytest.mark.parametrize("limit", [[], ["--memory", "1GB"]])
@pytest.mark.parametrize("source", ["store", "file"])
def test_train_gives_the_same_model(run: Run, store: Path, binary: Path, tmp_path: Path, limit, source) -> None:
    given = store if source == "store" else binary
    code, out, err = run("train", "--json", *limit, given, tmp_path / "a.model")
    assert code == 0 and json.loads(out)["rows"] == 120
    assert ("from disk: the limit is 1 GB and the process holds" in err) == bool(limit)
    assert f"{given}: 120 rows" in err  # and not the temporary store of a file
    code, theirs, _ = run("train", "--json", "--solver", "ocas", binary, tmp_path / "b.model")
    assert json.loads(out)["objective"] == json.loads(theirs)["objective"]
    assert run("predict", store, tmp_path / "a.model").out == run("predict", binary, tmp_path / "b.model").out


def test_tables_with_text_labels(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    X, y = blobs([0, 1])
    lines = [f"{a},{b},{'yes' if label else 'no'}" for (a, b), label in zip(X[:, :2].tolist(), y, strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,answer", *lines]) + "\n")
    code, _, err = run("train", path)
    assert code == 2 and "which column has the labels? label= expects one of the columns 'a', 'b', 'answer'" in err
    assert run("train", "--label", "answer", path, tmp_path / "m").code == 0
    code, out, _ = run("predict", "--label", "answer", path, tmp_path / "m", tmp_path / "out")
    assert code == 0 and out.startswith("Accuracy = ")
    assert set((tmp_path / "out").read_text().split()) == {"yes", "no"}
    assert "'a', 'b'" in run("info", tmp_path / "m").out
    turned = ["b,answer,a", *(f"{b},{label},{a}" for a, b, label in (line.split(",") for line in lines))]
    (tmp_path / "turned.csv").write_text("\n".join(turned) + "\n")
    assert run("predict", "--label", "answer", tmp_path / "turned.csv", tmp_path / "m").out == out
    (tmp_path / "turned.csv").write_text("b,answer\n1,yes\n")
    code, _, err = run("predict", "--label", "answer", tmp_path / "turned.csv", tmp_path / "m")
    assert code == 2 and "there is no column 'a', which the model was trained with" in err
    code, _, err = run("train", "-w1", "5", "--label", "answer", path, tmp_path / "m")
    assert code == 2 and "-w1: there is no class '1'; the data have 'no', 'yes'" in err
    assert run("convert", "-q", "--label", "-1", path, tmp_path / "store").code == 0
    assert "'a', 'b'" in run("info", tmp_path / "store").out


def test_bad_usage(run: Run, store: Path, binary: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir(store))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("x")
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    bad = write_svmlight(tmp_path / "bad.svm", *blobs([-1, 1]))
    with open(bad, "a") as file:
        file.write("1 1:x\n")
    for words, says in [
        (["convert", binary], "STORE"),
        (["convert", tmp_path / "nothing", store], "nothing: No such file or directory"),
        (["convert", store, store], "is an input"),
        (["convert", binary, tmp_path / "photos"], "photos: a folder that is not a store; it is left alone"),
        (["convert", binary, binary], "exists and is not a folder"),
        (["convert", binary, tmp_path / "no" / "store"], "there is no folder"),
        (["convert", bad, store], "bad.svm:121: expected a number as value, found '1:x'"),
        (["convert", tmp_path / "x.npy", store], "where are the labels?"),
        (["convert", "--label", "a", binary, store], "svmlight files have their labels in front"),
        (["convert", binary, store, "--also", tmp_path / "x.npy"], "files of several formats"),
        (["train", tmp_path / "photos"], "photos: not a store: it has no manifest.json"),
        (["info", tmp_path / "photos"], "photos: not a store: it has no manifest.json"),
        (["train", "--memory", "1GB", "--also", binary, binary], "is an input already"),
        (["train", "--label", "a", binary], "label= names a column of a table; svmlight files have their labels"),
        (["predict", store, store], "is a folder, expected a file"),
    ]:
        code, out, err = run(*words)
        assert (code, out) == (2, ""), (words, out, err)
        assert err.startswith("cutsvm") and err.count("\n") == 1 and says in err, err
    assert sorted(os.listdir(store)) == before


def test_damaged_stores(run: Run, store: Path, tmp_path: Path) -> None:
    block = store / Store(store).manifest.block_name(0)
    os.truncate(block, 10)
    for command in (["info"], ["train"], ["train", "--memory", "1GB"]):
        code, out, err = run(*command, "-q", store) if command != ["info"] else run("info", store)
        assert (code, out) == (2, "") and "truncated: 10 bytes, expected" in err and err.count("\n") == 1
    (store / NAME).unlink()
    code, _, err = run("train", store)
    assert code == 2 and err == f"cutsvm: {store}: incomplete: run convert again\n"


def test_ranking_from_a_store(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60)
    cutsvm.convert((X, y.astype(float)), tmp_path / "store", qid=np.repeat(np.arange(6), 10))
    found = []
    for limit in ([], ["--memory", "4GB"]):
        code, out, _ = run("train", "--task", "rank", "--json", *limit, tmp_path / "store", tmp_path / "model")
        assert code == 0
        found.append(json.loads(out)["objective"])
    assert found[0] == found[1]


@pytest.mark.parametrize("task", ["roc", "ordinal"])
def test_pairs_of_labels_from_a_store(task: str, run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 2 if task == "roc" else 4, size=60)
    cutsvm.convert((X, y.astype(float)), tmp_path / "store")
    found = []
    for k, limit in enumerate(([], ["--memory", "4GB", "--checkpoint", tmp_path / "ck"])):
        code, out, _ = run("train", "--task", task, "--json", *limit, tmp_path / "store", tmp_path / f"model{k}")
        assert code == 0
        found.append({name: json.loads(out)[name] for name in ("objective", "lower_bound", "classes")})
    assert found[0] == found[1]
    models = [cutsvm.load_model(tmp_path / f"model{k}").estimator for k in (0, 1)]
    assert models[0].classes_.dtype == models[1].classes_.dtype == np.int64
    assert np.array_equal(models[0].predict(X), models[1].predict(X))
