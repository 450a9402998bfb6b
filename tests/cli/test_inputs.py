"""Files that the commands read: several of them, folders, globs, standard input; and the columns of tables."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from cutsvm import open_dataset
from tests.support.cli import Run, blobs, write_svmlight

pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two Parquet files with texts, dates, missing values and labels that are texts."""
    rng = np.random.default_rng(0)
    for year in (2023, 2024):
        a = rng.normal(size=50)
        table = pa.table(
            {
                "id": np.arange(50),
                "a": pa.array(a, mask=rng.random(50) < 0.2),
                "b": pa.array(rng.normal(size=50), mask=np.arange(50) == 3),
                "city": rng.choice(["Oslo", "Rome"], 50),
                "day": pa.array(rng.integers(18_000, 19_000, 50).astype("datetime64[D]")),
                "label": np.where(a > 0, "yes", "no"),
            }
        )
        (tmp_path / "data" / f"year={year}").mkdir(parents=True)
        parquet.write_table(table, tmp_path / "data" / f"year={year}" / "part.parquet")
    return tmp_path / "data"


def test_a_folder_of_tables(run: Run, folder: Path, tmp_path: Path) -> None:
    options = ["--exclude", "id,year", "--scale", "standard"]
    code, out, err = run("convert", folder, tmp_path / "store", *options)
    assert code == 0 and "100 rows, 5 features" in err
    filled = open_dataset(folder, exclude=["id", "year"]).preprocessing
    assert filled is not None and [column.name for column in filled.columns] == ["a", "b", "city", "day"]
    note = next(line for line in err.splitlines() if "filled" in line)
    assert "missing values of 2 columns with their means; city: 2 columns, one for each value" in note
    assert "day: in days since 1970-01-01; numbers and dates scaled to mean 0 and standard deviation 1" in note
    code, out, err = run("train", "--json", folder, tmp_path / "m", *options)
    from_files = json.loads(out)
    assert code == 0 and "filled" in err and from_files["rows"] == 100
    assert json.loads(run("train", "--json", tmp_path / "store", tmp_path / "m").out)["rows"] == 100
    limited = json.loads(run("train", "--json", "--memory", "2GB", folder, tmp_path / "m", *options).out)
    assert limited["objective"] == pytest.approx(from_files["objective"], rel=1e-2)
    files = sorted(folder.rglob("*.parquet"))
    code, out, _ = run("train", "--json", *files, "--exclude", "id,year", "--scale", "standard")
    assert code == 0 and json.loads(out)["model"] == f"{files[0]}.model"
    assert run("path", "--json", *files, "--columns", "a,b", "--Cs", "1", "--filter", "year == 2023").code == 0


def test_check(run: Run, folder: Path, tmp_path: Path) -> None:
    code, out, err = run("check", folder, "--exclude", "id")
    assert (code, err) == (0, "")
    for words in (
        "rows         100",
        "yes  ",
        "city: text, 2 different values",
        "b: number, 2 missing",
        "year: number",
    ):
        assert words in out, words
    facts = json.loads(run("check", "--json", folder, "--filter", "city == 'Rome'").out)
    assert facts["rows"] < 100 and facts["columns"][3] == {"name": "city", "kind": "text", "missing": 0, "values": 1}
    assert run("convert", "-q", folder, tmp_path / "store").code == 0
    code, out, _ = run("check", tmp_path / "store")
    assert code == 0 and "city: text" in out
    (tmp_path / "t.csv").write_text("a,label\n1,0\nx,1\n2,1\n")
    code, _, err = run("check", tmp_path / "t.csv")
    assert code == 2 and "t.csv: row 1, column 'a': expected a number, found 'x'" in err
    code, out, _ = run("check", *(write_svmlight(tmp_path / f"{k}.svm", *blobs([-1, 1])) for k in "ab"))
    assert code == 0 and "rows         240" in out


def test_standard_input(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    give(b"1 1:2\n-1 2:1\n")
    code, _, err = run("train", "-", tmp_path / "m")
    assert code == 0 and "standard input: 2 rows, 2 features" in err
    give(b"a,city,label\n1,Rome,0\n2,Oslo,1\n3,Rome,1\n")
    code, _, err = run("train", "--format", "csv", "-", tmp_path / "m")
    assert code == 0 and "standard input: city: 2 columns, one for each value" in err
    give(b"a,label\n1,0\n2,1\n")
    assert run("convert", "-q", "--format", "csv", "-", tmp_path / "store").code == 0
    assert open_dataset(tmp_path / "store").shape == (2, 1)


def test_the_last_word_of_train(run: Run, tmp_path: Path) -> None:
    """It is the model if there is no such file, or a model; other files are data."""
    first, second = (write_svmlight(tmp_path / f"{k}.svm", *blobs([-1, 1])) for k in "ab")
    assert json.loads(run("train", "--json", first, tmp_path / "m").out)["rows"] == 120
    assert json.loads(run("train", "--json", first, second, tmp_path / "m").out)["rows"] == 240
    before = second.read_bytes()
    found = json.loads(run("train", "--json", first, second).out)
    assert found["rows"] == 240 and found["model"] == f"{first}.model" and second.read_bytes() == before
    (tmp_path / "empty").touch()
    assert json.loads(run("train", "--json", first, tmp_path / "empty").out)["model"] == str(tmp_path / "empty")
