"""`cutsvm train --cluster` and `--engine`: the same model on threads and on a Dask cluster, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cutsvm.cluster.engines import ConnectSettings
from tests.support.cli import Run
from tests.support.cluster import dask_cluster

pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
FEATURES = ["a", "b", "c", "d"]


def frame(rows: int = 24_000) -> pandas.DataFrame:
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, 4)).round(3)
    score = X @ [1.0, -2.0, 0.5, 0.0] + random.standard_normal(rows)
    found = pandas.DataFrame(X, columns=FEATURES)
    return found.assign(label=np.where(score > 0, "yes", "no"), amount=score, qid=np.arange(rows) // 20)


def write(folder: Path, data: pandas.DataFrame, parts: int = 3) -> Path:
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(data)), parts)):
        data.iloc[rows].to_parquet(folder / f"p{k}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("cluster") / "data", frame())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with dask_cluster(2) as client:
        yield client.scheduler.address


def words(folder: Path, model: Path, *more: str) -> list[str]:
    return ["train", "-c", "0.01", "--columns", ",".join(FEATURES), *more, str(folder / "*.parquet"), str(model)]


def test_a_glob_of_files_on_threads(run: Run, folder: Path, tmp_path: Path) -> None:
    found = run(*words(folder, tmp_path / "m.model", "--engine", "local"))
    assert found.code == 0
    assert "24,000 rows, 4 features, 3 parts, 2 classes" in found.err
    plan = next(line for line in found.err.splitlines() if line.startswith("plan: local, "))
    assert "24,000 rows of 4 features in 3 parts" in plan
    assert "readings of all rows in" in plan
    assert "to the client" in plan
    assert found.out.splitlines()[0].startswith("certified: ")
    assert found.out.splitlines()[1].startswith("cluster: sifting, 4 readings of all rows in 4 rounds, ")
    predicted = run("predict", folder / "p1.parquet", tmp_path / "m.model", tmp_path / "out")
    assert predicted.code == 0
    assert len((tmp_path / "out").read_text().split()) == 8000


def test_the_model_of_a_dask_cluster_is_that_of_threads(run: Run, folder: Path, address: str, tmp_path: Path) -> None:
    models = []
    for name, where in (("local", ["--engine", "local"]), ("dask", ["--cluster", address])):
        models.append(tmp_path / f"{name}.model")
        found = run(*words(folder, models[-1], "-q", "--json", *where))
        assert (found.code, found.err) == (0, "")
    cluster = json.loads(found.out)["cluster"]
    assert cluster["engine"] == "dask"
    assert (cluster["workers"], cluster["parts"], cluster["held"]) == (2, 3, True)
    assert cluster["planned"]["reads"] <= cluster["reads"] <= cluster["planned"]["most_reads"]
    assert models[0].read_bytes() == models[1].read_bytes()


def test_a_bad_value_is_named_by_file_and_row(run: Run, address: str, tmp_path: Path) -> None:
    data = frame(6000)
    data.loc[4321, "c"] = np.nan
    bad = write(tmp_path / "bad", data)
    for where in (["--engine", "local"], ["--cluster", address]):
        found = run(*words(bad, tmp_path / "m.model", "-q", *where))
        assert found.code == 2
        assert f"{bad / 'p2.parquet'}: row 321, column 'c': expected a finite number, found nan" in found.err
        assert len(found.err.splitlines()) == 1
        assert not (tmp_path / "m.model").exists()


def test_targets_class_weights_and_checks_of_labels(run: Run, folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.model"
    found = run(*words(folder, model, "--engine", "local", "--task", "regress", "--label", "amount"))
    assert found.code == 0
    assert "targets from -" in found.err
    assert run(*words(folder, model, "--engine", "local", "-wyes", "2")).code == 0
    found = run(*words(folder, model, "--engine", "local", "-wmaybe", "2"))
    assert (found.code, "-wmaybe: there is no class 'maybe'" in found.err) == (2, True)
    found = run(*words(folder, model, "--engine", "local", "--label", "amount"))
    assert (found.code, "--task regress predicts numbers" in found.err) == (2, True)


def test_a_store_on_threads(run: Run, folder: Path, tmp_path: Path) -> None:
    store, columns = tmp_path / "a.store", ["--columns", ",".join(FEATURES)]
    assert run("convert", folder, store, *columns).code == 0
    found = run("train", "--engine", "local", "-c", "0.01", store, tmp_path / "m.model")
    assert found.code == 0
    assert "cluster: sifting" in found.out
    found = run("train", "--engine", "local", *columns, store, tmp_path / "m.model")
    assert (found.code, "--columns names a column of a table" in found.err) == (2, True)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--engine", "dask"], "where is its scheduler? --cluster tcp://HOST:8786 says it"),
        (["--engine", "local", "--cluster", "tcp://a:1"], "has no address: leave --cluster tcp://a:1 out"),
        (["--cluster", "tcp://a:1", "--task", "roc"], "--task roc does not train on a cluster"),
        (["--cluster", "tcp://a:1", "--task", "kernel"], "--task kernel does not train on a cluster"),
        (["--cluster", "tcp://a:1", "-v", "5"], "-v needs the rows on this machine; `cutsvm path -v` takes --cluster"),
        (["--cluster", "tcp://a:1", "--solver", "ocas"], "--solver ocas needs the rows on this machine: expected auto"),
        (["--engine", "local", "-C"], "-C needs the rows on this machine: leave it or --engine local out"),
        (["--engine", "local", "--scale", "standard"], "--scale needs the rows on this machine"),
        (["--engine", "local", "--report", "a.html"], "--report needs the rows on this machine"),
    ],
)
def test_what_is_refused_before_anything_is_read(run: Run, tmp_path: Path, more: list[str], message: str) -> None:
    found = run("train", *more, tmp_path / "none.parquet", tmp_path / "m.model")
    assert (found.code, len(found.err.splitlines())) == (2, 1)
    assert message in found.err


def test_data_that_a_cluster_does_not_read(run: Run, binary: Path, tmp_path: Path) -> None:
    found = run("train", "--engine", "local", binary, tmp_path / "m.model")
    assert found.code == 2
    assert "--engine local takes Parquet files or one store, this is svmlight" in found.err
    found = run("train", "--engine", "local", "-", tmp_path / "m.model")
    assert (found.code, "cannot read the standard input" in found.err) == (2, True)


def test_no_cluster_at_the_address(run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ConnectSettings(timeout=0.5)
    monkeypatch.setattr("cutsvm.cluster.engines.ConnectSettings", lambda: quick)
    found = run(*words(folder, tmp_path / "m.model", "--cluster", "tcp://127.0.0.1:9"))
    assert (found.code, len(found.err.splitlines())) == (1, 1)
    assert "tcp://127.0.0.1:9: no Dask scheduler answers there" in found.err


def test_an_engine_that_is_not_installed(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cutsvm.cluster.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    found = run(*words(folder, tmp_path / "m.model", "--cluster", "ray://127.0.0.1:9"))
    assert (found.code, len(found.err.splitlines())) == (2, 1)
    assert "pip install 'cutsvm[ray]'" in found.err


def test_a_path_on_threads_with_and_without_folds(run: Run, folder: Path) -> None:
    words = ["path", "--engine", "local", "--columns", ",".join(FEATURES), "--Cs", "0.001,0.1", "--json", folder]
    found = run(*words)
    assert found.code == 0
    alone = json.loads(found.out)
    assert alone["converged"] == [True, True]
    assert alone["cluster"]["planned"]["rounds"] is None
    found = run(*words, "-v", "3")
    assert found.code == 0
    assert np.shape(json.loads(found.out)["scores"]) == (3, 2)
    assert json.loads(found.out)["cluster"]["reads"] >= alone["cluster"]["reads"]
