"""`cutsvm append`, `delete` and `compact`, and the versions in `cutsvm info`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutsvm.io import open_dataset
from tests.support.cli import Run


@pytest.fixture
def store(run: Run, binary: Path, tmp_path: Path) -> Path:
    assert run("convert", "-q", binary, tmp_path / "store").code == 0
    return tmp_path / "store"


def test_changes_and_versions(run: Run, store: Path, binary: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.svm"
    copy.write_bytes(binary.read_bytes())
    code, out, err = run("append", store, binary, copy)
    assert (code, out) == (0, f"store: {store}, version 2, 360 rows\n") and "appended 240, " in err
    code, out, err = run("delete", store, "--rows", "0:10,35,300")
    assert (code, out) == (0, f"store: {store}, version 3, 348 rows\n") and "deleted 12, " in err
    lines = run("info", store).out.splitlines()
    assert "rows       348, and 12 deleted ones on disk" in lines
    assert lines[-3].startswith("version 1  ") and lines[-3].endswith(f": convert, 120 rows then ({binary})")
    assert lines[-2].endswith(f": append, 360 rows then ({binary} and 1 more)")
    assert lines[-1].endswith(": delete, 348 rows then (12 rows: 0:10, 35, 300)")
    code, out, _ = run("compact", "--json", store)
    facts = json.loads(out)
    assert (code, facts["rows"], facts["version"]) == (0, 348, 4) and facts["freed_bytes"] > 0
    facts = json.loads(run("info", "--json", store).out)
    assert facts["deleted"] == 0 and [change["action"] for change in facts["history"]][2:] == ["delete", "compact"]
    assert run("train", "-q", store, tmp_path / "m").code == 0


def test_a_checkpoint_that_stays(run: Run, store: Path, binary: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = ["train", "--solver", "ocas", "--shards", 4, "-c", 10, "-e", "1e-5", "--checkpoint", state]
    assert run(*words, "-q", "--keep-checkpoint", store, tmp_path / "m").code == 0 and state.exists()
    code, out, err = run(*words, "--json", "--keep-checkpoint", store, tmp_path / "m")
    assert code == 0 and "going on from" in err and json.loads(out)["gap"] <= 1e-5
    assert run("append", "-q", store, binary).code == 0
    assert run("delete", "-q", store, "--rows", "0").code == 0
    code, _, err = run(*words, store, tmp_path / "m")
    assert code == 0 and not state.exists()  # as without the option
    assert ", of an earlier version of the store: " in err and ", 1 of 4 shards changed" in err
    code, _, err = run("train", "--keep-checkpoint", store)
    assert code == 2 and "--keep-checkpoint: of which file? --checkpoint FILE says it" in err


def test_rows_by_a_filter(run: Run, store: Path) -> None:
    pytest.importorskip("pyarrow")
    many = int((open_dataset(store).y[10:] == -1).sum())
    code, out, _ = run("delete", "--json", store, "--filter", "label == -1 and row >= 10")
    assert code == 0 and json.loads(out)["deleted"] == many > 0
    code, _, err = run("delete", store, "--filter", "label = 1")
    assert code == 2 and "filter 'label = 1': not a condition" in err
    code, _, err = run("delete", store, "--filter", "age > 3")
    assert code == 2 and "there is no column 'age'; the columns are 'row', 'label'" in err
    for text, says in (("row", "expected a comparison"), ("label == 'a'", "filter \"label == 'a'\": ")):
        code, _, err = run("delete", store, "--filter", text)
        assert code == 2 and says in err, err


def test_mistakes_are_named(run: Run, store: Path, binary: Path, tmp_path: Path) -> None:
    wide = tmp_path / "wide.svm"
    wide.write_text("1 9:1\n")
    for words, says in (
        (["append", store, tmp_path / "none.svm"], "none.svm: No such file"),
        (["append", binary, binary], "binary.svm: not a store, but a file; cutsvm convert makes stores"),
        (["append", tmp_path / "none", binary], "none: there is no such store"),
        (["append", store, wide], "index 9 (from row 0 on), but"),
        (["delete", store], "one of the arguments --rows --filter is required"),
        (["delete", store, "--rows", "5:x"], "expected numbers of rows and ranges as 10:20,35, got '5:x'"),
        (["delete", store, "--rows", "7:7"], "expected a range with its first row before its end, got '7:7'"),
        (["delete", store, "--rows", "100:999"], "there is no row 120; they are numbered from 0 to 119"),
        (["delete", store, "--rows", "5,500"], "there is no row 500; they are numbered from 0 to 119"),
        (["delete", store, "--rows", "0:120"], "no rows would be left"),
        (["convert", binary, "-"], "a store is a folder, it cannot be written to the standard output"),
        (["compact", tmp_path], "not a store: it has no manifest.json"),
    ):
        code, out, err = run(*words)
        assert code == 2 and says in err and not out, (words, err)
    assert open_dataset(store).shape == (120, 5)
    assert run("append", "-q", store, wide, "--features", "9").code == 0
    assert open_dataset(store).shape == (121, 9)
