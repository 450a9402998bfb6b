"""Every bad input ends in one line on standard error and exit code 2, never in a traceback."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.cli import Run

BAD_DATA = {
    "empty file": (b"", "no samples"),
    "comments only": (b"# nothing\n\n", "no samples"),
    "not a label": (b"1 1:1\nyes 1:2\n", ":2: "),
    "no colon": (b"1 1:1\n-1 2\n", ":2: "),
    "bad value": (b"1 1:1\n-1 2:x\n", ":2: "),
    "nan": (b"1 1:1\n-1 2:nan\n", ":2: "),
    "inf": (b"1 1:inf\n-1 2:1\n", ":1: "),
    "negative index": (b"1 -1:1\n-1 2:1\n", ":1: "),
    "same index twice": (b"1 1:1 1:2\n-1 2:1\n", ":1: "),
    "nan label": (b"nan 1:1\n-1 2:1\n", ":1: "),
    "one class": (b"1 1:1\n1 2:1\n", "all labels are 1, expected two"),
    "continuous labels": (b"0.5 1:1\n1.5 1:2\n" * 9, "continuous"),
    "binary": (bytes(range(256)), "data"),
    "utf-16": ("1 1:1\n-1 1:2\n".encode("utf-16"), "data"),
    "cut gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "data"),
    "bad zstd": (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "data"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(run: Run, tmp_path: Path, case: str) -> None:
    text, says = BAD_DATA[case]
    path = tmp_path / "data"
    path.write_bytes(text)
    code, out, err = run("train", "-q", "--n-jobs", 1, path)
    assert (code, out) == (2, ""), err
    assert err.startswith("cutsvm: ") and err.count("\n") == 1 and says in err
    assert os.listdir(tmp_path) == ["data"]


USAGE = [
    (["fly"], "fly"),
    (["train"], "DATA"),
    (["train", "a", "b", "c"], "a: No such file"),
    (["train", "-c", "0", "DATA"], "argument -c: expected a positive number, got '0'"),
    (["train", "-c", "-1", "DATA"], "got '-1'"),
    (["train", "-c", "nan", "DATA"], "got 'nan'"),
    (["train", "-c", "inf", "DATA"], "got 'inf'"),
    (["train", "-c", "one", "DATA"], "got 'one'"),
    (["train", "-c"], "argument -c"),
    (["train", "-e", "0", "DATA"], "argument -e"),
    (["train", "-v", "1", "DATA"], "argument -v: expected a whole number, 2 or more"),
    (["train", "-v", "x", "DATA"], "argument -v"),
    (["train", "-B", "2", "DATA"], "argument -B: expected 1 (regularised intercept) or -1 (none)"),
    (["train", "-Bx", "DATA"], "argument -B"),
    (["train", "-w", "1", "DATA"], "-wLABEL needs a label"),
    (["train", "DATA", "-w1"], "-wLABEL needs a label"),
    (["train", "-wx", "1", "DATA"], "-wx: there is no class 'x'; the data have -1, 1"),
    (["train", "-w1", "-3", "DATA"], "expected a positive number, got '-3'"),
    (["train", "-w7", "2", "DATA"], "-w7: there is no class '7'"),
    (["train", "--shards", "0", "DATA"], "--shards: expected a whole number, 1 or more"),
    (["train", "--n-jobs", "0", "DATA"], "--n-jobs"),
    (["train", "--n-jobs", "1.5", "DATA"], "--n-jobs"),
    (["train", "--max-time", "0", "DATA"], "--max-time"),
    (["train", "--solver", "magic", "DATA"], "--solver"),
    (["train", "--zero-based", "2", "DATA"], "--zero-based"),
    (["train", "--format", "pickle", "DATA"], "--format"),
    (["train", "--task", "kernel", "--gamma", "0", "DATA"], "gamma=0: expected a finite number above 0"),
    (["train", "--task", "kernel", "--gamma", "-1", "DATA"], "gamma=-1: expected a finite number above 0"),
    (["train", "--task", "kernel", "--gamma", "nan", "DATA"], "gamma=nan: expected a finite number above 0"),
    (["train", "--task", "kernel", "--gamma", "wide", "DATA"], "gamma='wide': expected one of 'scale', 'auto'"),
    (["train", "--task", "kernel", "--kernel", "poly", "--degree", "1.5", "DATA"], "degree=1.5: expected a whole"),
    (["train", "--task", "kernel", "--kernel", "poly", "--coef0", "inf", "DATA"], "coef0=inf: expected a finite"),
    (["train", "--task", "kernel", "--kernel", "precomputed", "DATA"], "argument --kernel"),
    (["train", "--task", "kernel", "--epochs", "0", "DATA"], "epochs=0: expected a whole number, at least 1"),
    (
        ["train", "--task", "kernel", "--solver", "sgd", "--average", "2", "DATA"],
        "average=2: expected a number from 0 to 1",
    ),
    (
        ["train", "--task", "kernel", "--solver", "sgd", "--seed", "-1", "DATA"],
        "seed=-1: expected a whole number, at least 0",
    ),
    (["train", "--task", "kernel", "--epochs", "1", "--seed", "5000000000", "DATA"], "expected a whole number below"),
    (["train", "--task", "kernel", "--memory", "lots", "DATA"], "memory_limit='lots'"),
    (["train", "--task", "kernel", "--memory", "1kB", "--solver", "isda", "DATA"], "too little for a fit"),
    (
        ["train", "--task", "kernel", "-e", "1e-2", "--epochs", "3", "DATA"],
        "-e and --epochs 3: sgd ends after its epochs at any gap, leave one out",
    ),
    (
        ["train", "--task", "kernel", "--epochs", "5", "--solver", "isda", "DATA"],
        "--epochs applies to --solver sgd, not to isda",
    ),
    (["train", "--task", "kernel", "--seed", "1", "--solver", "min_norm", "DATA"], "--seed applies to --solver sgd"),
    (
        ["train", "--task", "kernel", "--gamma", "1", "--kernel", "linear", "DATA"],
        "--kernel rbf, poly and sigmoid, not to linear",
    ),
    (
        ["train", "--task", "kernel", "--degree", "2", "DATA"],
        "--degree applies to --kernel poly, not to rbf",
    ),
    (
        ["train", "--task", "kernel", "--solver", "ocas", "DATA"],
        "--solver ocas is not available for --task kernel: expected auto, exact, sgd, isda or min_norm",
    ),
    (
        ["train", "--task", "kernel", "-B", "1", "DATA"],
        "-B applies to --task classify, regress and quantile, not to kernel",
    ),
    (
        ["train", "--task", "kernel", "--shards", "2", "DATA"],
        "--shards applies to --task classify, regress, quantile, rank, roc and ord",
    ),
    (["train", "--task", "kernel", "--line-search", "tca", "DATA"], "--line-search applies to --task classify"),
    (["train", "--task", "kernel", "--multi-class", "ovr", "DATA"], "--multi-class applies to --task classify"),
    (
        ["train", "--task", "kernel", "--solver", "sgd", "--checkpoint", "f", "DATA"],
        'checkpoint: solver="sgd" has none',
    ),
    (
        ["train", "--task", "kernel", "--format", "liblinear", "DATA"],
        "LIBLINEAR's format holds linear classifiers, regressors and one-class models, not KernelSVC",
    ),
    (["train", "--task", "kernel", "-w7", "2", "DATA"], "-w7: there is no class '7'"),
    (["train", "--gamma", "1", "DATA"], "and kernel-oneclass, not to classify"),
    (["train", "--kernel", "rbf", "--task", "rank", "DATA"], "and kernel-oneclass, not to rank"),
    (["train", "--solver", "sgd", "DATA"], "--solver sgd is not available for --task classify: expected auto"),
    (
        ["train", "--task", "rank", "--solver", "isda", "DATA"],
        "--solver isda is not available for --task rank: expected",
    ),
    (
        ["train", "--task", "rank", "-B", "1", "DATA"],
        "-B applies to --task classify, regress and quantile, not to rank",
    ),
    (["train", "--task", "roc", "-w1", "2", "DATA"], "-wLABEL applies to --task classify"),
    (["train", "--task", "ordinal", "--multi-class", "ovr", "DATA"], "--multi-class applies to --task classify"),
    (
        ["train", "--task", "rank", "--solver", "dcd", "DATA"],
        "--solver dcd is not available for --task rank: expected auto",
    ),
    (
        ["train", "--task", "rank", "--format", "liblinear", "DATA"],
        "LIBLINEAR's format holds linear classifiers, regressors and one-class models, not RankingSVM",
    ),
    (["train", "--line-search", "best", "DATA"], "--line-search"),
    (
        ["train", "--line-search", "exact", "--solver", "cpa", "DATA"],
        "--line-search applies to --solver ocas and sifting, not to cpa",
    ),
    (
        ["train", "--line-search", "tca", "--solver", "dcd", "DATA"],
        "--line-search applies to --solver ocas and sifting, not to dcd",
    ),
    (["train", "--line-search", "tca", "--solver", "accpm", "DATA"], "not to accpm"),
    (["train", "--shards", "4", "--solver", "accpm", "DATA"], "not to accpm"),
    (["train", "--task", "rank", "--solver", "accpm", "DATA"], "--solver accpm is not available for --task rank"),
    (["train", "--report", "r.txt", "DATA"], "--report r.txt: expected a name that ends in .html"),
    (["train", "--report", "none/r.html", "DATA"], "none/r.html: there is no folder"),
    (["train", "--report", "r.html", "-v", "2", "DATA"], "leave one of them out"),
    (["train", "--report", "r.html", "DATA", "r.html"], "r.html: MODEL and --report are one file, expected two"),
    (["train", "--memory", "lots", "DATA"], "memory_limit='lots': expected bytes as a whole number, or text as"),
    (["train", "--memory", "1kB", "DATA"], "already: too little for a fit; expected at least"),
    (["train", "--memory", "1GB", "--task", "rank", "-v", "2", "DATA"], "leave one of them out"),
    (["train", "--checkpoint", "nowhere/f", "DATA"], "checkpoint='nowhere/f': there is no folder"),
    (["train", "--checkpoint", ".", "DATA"], "checkpoint='.': it exists and is not a file"),
    (["train", "--checkpoint", "DATA", "DATA"], "DATA: not a checkpoint, so it is left alone"),
    (["train", "--checkpoint", "m", "DATA", "m"], "m: MODEL and --checkpoint are one file, expected two"),
    (["train", "--checkpoint", "f", "-v", "2", "DATA"], "leave one of them out"),
    (["train", "-v", "200", "DATA"], "200"),
    (["train", "none"], "none: No such file"),
    (["train", "."], "which column has the labels?"),
    (["train", "DATA", "--also", "none"], "none: No such file"),
    (["train", "DATA", "."], "files of several formats"),
    (["train", "DATA", "nowhere/m"], "there is no folder"),
    (["train", "DATA", "DATA"], "is an input"),
    (["train", "DATA", "table.csv"], "files of several formats: DATA is read as svmlight, table.csv as csv"),
    (["train", "-"], "-: MODEL, the file to write, must be named"),
    (["train", "nothing://x.csv", "m"], "nothing://x.csv: Protocol not known: nothing"),
    (["train", "--filter", "b >", "--label", "b", "table.csv"], "filter 'b >': not a condition"),
    (["train", "--columns", "c", "--label", "b", "table.csv"], "there is no column 'c'; the columns are 'a', 'b'"),
    (["train", "table.csv"], "which column has the labels?"),
    (["predict", "DATA"], "MODEL"),
    (["check"], "DATA"),
    (["check", "none"], "No such file"),
    (["check", "."], "which column has the labels?"),
    (["info"], "MODEL"),
    (["info", "none"], "No such file"),
    (["info", "."], ".: not a store: it has no manifest.json"),
    (["info", "DATA"], "neither a cutsvm nor a LIBLINEAR model"),
    (["demo", "--rows", "3"], "--rows"),
]


@pytest.mark.parametrize(("words", "says"), USAGE, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_bad_usage(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str) -> None:
    monkeypatch.chdir(binary.parent)
    binary.rename("DATA")
    Path("OTHER").write_text("1 1:1\n")
    Path("table.csv").write_text("a,b\n1,2\n")
    before = sorted(os.listdir())
    code, out, err = run(*words)
    last = err.splitlines()[-1]
    assert (code, out) == (2, ""), err
    assert says in last
    assert re.match(r"cutsvm( train| predict| check| info| demo)?: ", last)
    assert sorted(os.listdir()) == before


def test_unreadable_file(run: Run, binary: Path) -> None:
    binary.chmod(0)
    if os.access(binary, os.R_OK):
        pytest.skip("this user may read everything")
    code, _, err = run("train", binary)
    assert code == 2 and err == f"cutsvm: {binary}: Permission denied\n"


def test_unwritable_folder(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, out, err = run("train", binary)
    assert (code, out) == (1, "")
    assert err == f"cutsvm: {binary}.model: no permission to write there\n"


@pytest.mark.parametrize("name", ["new\nline", "esc\x1b[31m", "[bold]", "blank s"])
def test_strange_file_names(run: Run, binary: Path, name: str) -> None:
    path = binary.rename(binary.parent / name)
    code, out, err = run("train", "--n-jobs", 1, path)
    assert code == 0 and "model: " in out
    assert "\x1b" not in err
    code, _, err = run("info", path)
    assert code == 2 and err.count("\n") == 1 and "\x1b" not in err


def test_out_of_memory(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("cutsvm.cli.data.open_dataset", large)
    assert run("train", binary) == (1, "", "cutsvm: not enough memory\n")


def test_overflow(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_text("1 1:1e300\n-1 1:-1e300\n" * 5)
    code, out, err = run("train", "-c", "1e300", "--n-jobs", 1, path)
    assert code in (0, 2), err
    assert code == 0 or (out == "" and err.splitlines()[-1].startswith("cutsvm: "))
