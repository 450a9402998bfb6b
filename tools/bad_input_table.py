"""Tries bad input of every kind on the command line and in Python, and writes docs/bad-input.md.

    python tools/bad_input_table.py

Each row is what was given and what was really said, run anew.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from cutsvm import KernelSVC, LinearSVC, OrdinalSVC, RankingSVM, ROCAreaSVC, open_dataset, save_model
from cutsvm.cli import main

GOOD = "1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1\n"
FILES: dict[str, str | bytes] = {
    "an empty file": "",
    "only comments": "# nothing\n",
    "a label that is no number": "1 1:1\nspam 1:1\n",
    "no label": "1 1:1\n1:2 2:3\n",
    "several labels": "1 1:1\n1,3 1:1\n",
    "an index that is no number": "1 1:1\n-1 a:1\n",
    "a negative index": "1 1:1\n-1 -3:1\n",
    "no value": "1 1:1\n-1 1:\n",
    "a value that is no number": "1 1:1\n-1 1:x\n",
    "NaN": "1 1:1\n-1 1:nan\n",
    "infinity": "1 1:1\n-1 1:inf\n",
    "a number too large for float64": "1 1:1\n-1 1:1e999\n",
    "the same index twice": "1 1:1\n-1 7:1 7:2\n",
    "an index over 2^63": "1 1:1\n-1 99999999999999999999:1\n",
    "qid without an id": "1 qid: 1:1\n",
    "qid on some lines only": "1 qid:1 1:1\n-1 1:1\n",
    "one class": "1 1:1\n1 1:2\n",
    "labels that are measurements": "0.3 1:1\n1.7 1:2\n2.2 1:3\n",
    "binary data": bytes(range(256)) * 4,
    "UTF-16": GOOD.encode("utf-16"),
    "a gzip file cut short": gzip.compress(GOOD.encode() * 1000)[:60],
    "numbers that overflow": "1 1:1e300\n-1 1:-1e300\n",
    "Windows line ends, tabs, no last newline, unsorted": GOOD.replace("\n", "\r\n").replace(" ", "\t") + "1 2:1 1:1",
    "empty lines and label-only lines": GOOD + "\n\n1\n-1\n",
    "query ids that are words": "1 qid:cats 1:1\n-1 qid:dogs 1:-1\n",
    "indices beyond 2^31": "1 1:1 9000000000:1\n-1 9000000000:-1 12000000000:1\n",
}


def call(*words: str) -> tuple[int, str]:
    """Exit code, and the last line on stderr (or stdout if that is empty)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as end:
            code = int(end.code or 0)
    lines = (out.getvalue() if code == 0 else err.getvalue()).strip().splitlines()
    return code, lines[0] if code == 0 and lines else (lines[-1] if lines else "")


def command_line(folder: Path) -> list[tuple[str, str, str]]:
    rows = []
    for given, text in FILES.items():
        path = folder / "data.svm"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        code, said = call("train", "--n-jobs=1", str(path), str(folder / "m.model"))
        rows.append((f"train: {given}", said.replace(f"{folder}/", ""), str(code)))
    good = folder / "good.svm"
    good.write_text(GOOD)
    model = folder / "good.model"
    call("train", str(good), str(model))
    zero, wide, torn = folder / "zero.svm", folder / "wide.svm", folder / "torn.model"
    zero.write_text("1 0:1\n")
    wide.write_text(GOOD + "1 1:1 99:3\n")
    alone, grades = folder / "alone.svm", folder / "grades.svm"
    alone.write_text("1 qid:1 1:1\n2 qid:2 1:2\n")
    grades.write_text("1 1:1\n2 1:2\n3 1:3\n")
    torn.write_bytes(model.read_bytes()[:-5])
    words = folder / "words.csv"
    words.write_text("a,label\n1,3.5\n2,high\n")
    holes, empty = folder / "holes.csv", folder / "empty"
    holes.write_text("a,city,label\n1,Oslo,0\n,Rome,1\n3,Rome,1\n")
    empty.mkdir()
    cases = {
        "train: a file that is not there": ["train", str(folder / "nothing")],
        "train: a folder without files of data": ["train", str(empty)],
        "train: standard input without MODEL": ["train", "-"],
        "train: a glob without files": ["train", str(folder / "nothing*.svm")],
        "train: files of several formats": ["train", str(good), str(words)],
        "train: a table with a missing value, --missing refuse": ["train", "--missing", "refuse", str(holes)],
        "train: a table with texts, --categorical refuse": ["train", "--categorical", "refuse", str(holes)],
        "train: a table without such a column": ["train", "--exclude", "id", str(holes)],
        "train: a filter that is none": ["train", "--filter", "a => 3", str(holes)],
        "train: a filter with another column": ["train", "--filter", "b > 3", str(holes)],
        "train: the same file twice": ["train", str(good), str(good)],
        "train: MODEL in a folder that is not there": ["train", str(good), str(folder / "no" / "m")],
        "train: -c 0": ["train", "-c", "0", str(good)],
        "train: -e x": ["train", "-e", "x", str(good)],
        "train: -w7 2 without a class 7": ["train", "-w7", "2", str(good)],
        "train: an option that does not exist": ["train", "--fast", str(good)],
        "train: --memory lots": ["train", "--memory", "lots", str(good)],
        "train: --memory 1kB": ["train", "--memory", "1kB", str(good)],
        "train: --checkpoint in a folder that is not there": [
            "train",
            "--checkpoint",
            str(folder / "no" / "f"),
            str(good),
        ],
        "train: --checkpoint is a data file": ["train", "--checkpoint", str(wide), str(good)],
        "train --task rank: queries of one row": ["train", "--task", "rank", str(alone)],
        "train --task rank: -B": ["train", "--task", "rank", "-B", "1", str(good)],
        "train --task roc: three classes": ["train", "--task", "roc", str(grades)],
        "train --task ordinal: --solver dcd": ["train", "--task", "ordinal", "--solver", "dcd", str(grades)],
        "train --task regress: a label that is text": ["train", "--task", "regress", str(words)],
        "train --task regress: --loss hinge": ["train", "--task", "regress", "--loss", "hinge", str(good)],
        "train --task quantile: --quantile 2": ["train", "--task", "quantile", "--quantile", "2", str(good)],
        "train --task oneclass: --nu 0": ["train", "--task", "oneclass", "--nu", "0", str(good)],
        "train --task oneclass: -c 1": ["train", "--task", "oneclass", "-c", "1", str(good)],
        "train: -s 0 and --task regress": ["train", "-s", "0", "--task", "regress", str(good)],
        "train: -s 5": ["train", "-s", "5", str(good)],
        "predict: -b 1, no logistic model": ["predict", "-b", "1", str(good), str(model), str(folder / "out")],
        "predict: index 0, model counted from 1": ["predict", str(zero), str(model)],
        "predict: features the model does not know": ["predict", str(wide), str(model)],
        "predict: a model cut short": ["predict", str(good), str(torn)],
        "predict: a model that is no model": ["predict", str(good), str(good)],
        "info: a data file": ["info", str(good)],
    }
    for given, words in cases.items():
        code, said = call(*words)
        rows.append((given, said.replace(f"{folder}/", "").replace(str(folder), "a-folder"), str(code)))
    return [*rows, *kernels(folder, good), *checkpoints(folder, good), *stores(folder, good)]


def kernels(folder: Path, good: Path) -> list[tuple[str, str, str]]:
    """Kernel machines: files, options that do not go together, and a model that was damaged."""
    file, model, rows = folder / "data.svm", folder / "kernel.model", []

    def tried(given: str, *words: str) -> None:
        code, said = call(*words)
        rows.append((given, said.replace(f"{folder}/", ""), str(code)))

    train = ["train", "--task", "kernel"]
    for given in ("an empty file", "NaN", "one class"):
        file.write_text(str(FILES[given]))
        tried(f"train --task kernel: {given}", *train, str(file), str(model))
    options = {
        "--gamma 0": ["--gamma", "0"],
        "--gamma -1": ["--gamma", "-1"],
        "--gamma of a linear kernel": ["--kernel", "linear", "--gamma", "1"],
        "--degree of an RBF kernel": ["--degree", "2"],
        "-e and --epochs": ["-e", "1e-4", "--epochs", "3"],
        "--epochs of isda": ["--solver", "isda", "--epochs", "5"],
        "--solver ocas": ["--solver", "ocas"],
        "-B": ["-B", "1"],
        "--solver isda in too little memory": ["--solver", "isda", "--memory", "10B"],
        "--format liblinear": ["--format", "liblinear"],
    }
    for given, words in options.items():
        tried(f"train --task kernel: {given}", *train, *words, str(good), str(model))
    tried("train --task classify: --gamma 1", "train", "--gamma", "1", str(good))
    call(*train, str(good), str(model))
    model.write_bytes(model.read_bytes()[:-5])
    tried("predict: a kernel machine cut short", "predict", str(good), str(model))
    return rows


def checkpoints(folder: Path, good: Path) -> list[tuple[str, str, str]]:
    """Files of another fit, and files that were damaged."""
    file, rows = folder / "fit.ck", []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = open_dataset(good)
        LinearSVC(solver="cpa", tol=1e-9, max_iter=1, checkpoint=file).fit(data.X, data.y.astype(int))
    whole = file.read_bytes()
    other = folder / "other.svm"
    other.write_text(GOOD.replace("0.5", "0.6"))
    cases: dict[str, tuple[bytes, list[str]]] = {
        "another C": (whole, ["-c", "2", str(good)]),
        "another file of as many rows": (whole, [str(other)]),
        "a checkpoint cut short": (whole[:-9], [str(good)]),
        "a checkpoint that was altered": (whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], [str(good)]),
        "a checkpoint of a newer version": (whole.replace(b"checkpoint 1", b"checkpoint 2", 1), [str(good)]),
    }
    for given, (content, words) in cases.items():
        file.write_bytes(content)
        code, said = call("train", "-q", "--solver", "cpa", "--checkpoint", str(file), *words)
        rows.append((f"train --checkpoint: {given}", said.replace(f"{folder}/", ""), str(code)))
    file.unlink()
    return rows


TABLES = {
    "no label column": "a,b\n1,2\n",
    "a label that is missing": "a,label\n1,0\n2,\n",
    "text in a column of numbers": "a,label\n1,0\nx,1\n",
    "infinity": "a,label\n1,0\ninf,1\n",
}


def stores(folder: Path, good: Path) -> list[tuple[str, str, str]]:
    """Tables that cannot be converted, and stores that were damaged afterwards."""
    rows = []

    def tried(given: str, *words: str) -> None:
        code, said = call(*words)
        said = re.sub(r"data-[0-9a-f]{16}", "data-...", said.replace(f"{folder}/", ""))
        rows.append((given, said, str(code)))

    for given, text in TABLES.items():
        (folder / "table.csv").write_text(text)
        tried(f"convert: {given}", "convert", "-q", str(folder / "table.csv"), str(folder / "new.store"))
    parts = {"data": [1.0, 2.0], "indptr": [0, 1, 2], "shape": [2, 3], "y": [0, 1]}
    np.savez(folder / "rows.npz", indices=[0, 3], **parts)
    np.save(folder / "rows.npy", np.eye(3))
    os.truncate(folder / "rows.npy", 150)
    tried("train: CSR with a column index out of range", "train", "-q", str(folder / "rows.npz"))
    tried("train: an array cut short", "train", "-q", "--label", "0", str(folder / "rows.npy"))
    (folder / "photos").mkdir()
    (folder / "photos" / "a.jpg").write_text("x")
    tried("convert: over a folder of other things", "convert", "-q", str(good), str(folder / "photos"))
    damages: dict[str, Callable[[Path], object]] = {
        "a block cut short": lambda data: os.truncate(next(data.glob("block-*")), 10),
        "a block that is missing": lambda data: next(data.glob("block-*")).unlink(),
        "a block that was altered": lambda data: _alter(next(data.glob("block-*"))),
        "a manifest that is missing": lambda data: (data.parent / "manifest.json").unlink(),
        "a manifest that was altered": lambda data: _alter(data.parent / "manifest.json"),
    }
    for given, damage in damages.items():
        store = folder / "good.store"
        shutil.rmtree(store, ignore_errors=True)
        call("convert", "-q", str(good), str(store))
        damage(next(store.glob("data-*")))
        tried(f"train: a store with {given}", "train", "-q", str(store), str(folder / "m.model"))
    return rows


def _alter(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-4] + bytes([content[-4] ^ 1]) + content[-3:])


def python() -> list[tuple[str, str]]:
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    cases: dict[str, Callable[[], object]] = {
        "NaN in X": lambda: LinearSVC().fit(np.where(X == 3, np.nan, X), y),
        "infinity in a CSR X": lambda: LinearSVC().fit(sparse.csr_matrix(np.where(X > 3, np.inf, X)), y),
        "float64 values near overflow": lambda: LinearSVC(C=1e150).fit(X * 1e200, y),
        "one class": lambda: LinearSVC().fit(X, np.zeros(4)),
        "continuous labels": lambda: LinearSVC().fit(X, [0.1, 0.2, 0.3, 0.4]),
        "integer labels of dtype object": lambda: LinearSVC().fit(X, y.astype(object)),
        "no rows": lambda: LinearSVC().fit(X[:0], y[:0]),
        "negative weight": lambda: LinearSVC().fit(X, y, [1, 1, -1, 1]),
        "all weights 0": lambda: LinearSVC().fit(X, y, [0, 0, 0, 0]),
        "weight on one class only": lambda: LinearSVC().fit(X, y, [1, 0, 1, 0]),
        "unknown label in class_weight": lambda: LinearSVC(class_weight={7: 2.0}).fit(X, y),
        "C = 0": lambda: LinearSVC(C=0).fit(X, y),
        "tol = 0": lambda: LinearSVC(tol=0).fit(X, y),
        "unknown solver": lambda: LinearSVC(solver="sgd").fit(X, y),
        "another width at predict": lambda: LinearSVC().fit(X, y).predict(X[:, :1]),
        "CSR with a column index out of range": lambda: LinearSVC().fit(_broken(X), y),
        "ranking: qid of another length": lambda: RankingSVM().fit(X, y, qid=[1, 1, 2]),
        "ranking: a qid that is missing": lambda: RankingSVM().fit(X, y, qid=[1, 1, np.nan, 2]),
        "ranking: no pair": lambda: RankingSVM().fit(X, y, qid=[1, 2, 3, 4]),
        "ranking: NaN in y": lambda: RankingSVM().fit(X, [1.0, np.nan, 2.0, 3.0]),
        "ranking: text in y": lambda: RankingSVM().fit(X, ["low", "high", "low", "high"]),
        "ranking: negative weight": lambda: RankingSVM().fit(X, y, sample_weight=[1, 1, -1, 1]),
        "ROC area: three classes": lambda: ROCAreaSVC().fit(X, [0, 1, 2, 1]),
        "ordinal: text without an order": lambda: OrdinalSVC().fit(X, ["low", "high", "low", "high"]),
        "ordinal: a label that levels do not name": lambda: OrdinalSVC(levels=[0, 2]).fit(X, y),
        "kernel: a precomputed kernel that is not square": lambda: KernelSVC(kernel="precomputed").fit(X, y),
        "kernel: gamma = 0": lambda: KernelSVC(gamma=0.0).fit(X, y),
        "kernel: one class": lambda: KernelSVC().fit(X, np.zeros(4)),
        "kernel: NaN in X": lambda: KernelSVC().fit(np.where(X == 3, np.nan, X), y),
        "kernel: saving a precomputed kernel": lambda: save_model(
            KernelSVC(kernel="precomputed").fit(X @ X.T, y), os.devnull
        ),
        "max_iter = 1": lambda: LinearSVC(max_iter=1).fit(X * [1e6, 1e-3], y),
    }
    rows = []
    for given, attempt in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                attempt()
                rows.append((given, "fits"))
            except Exception as error:
                rows.append((given, f"{type(error).__name__}: {str(error).splitlines()[0]}"))
    return rows


def _broken(X: np.ndarray) -> sparse.csr_matrix:
    wrong = sparse.csr_matrix(X)
    wrong.indices[0] = 9
    return wrong


def clean(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        lines = ["# Bad input, and what is said", "", "Made by `tools/bad_input_table.py`: every row was run."]
        lines += ["", "## Command line", "", "| given | said | exit code |", "|---|---|---|"]
        lines += [f"| {clean(given)} | `{clean(said)}` | {code} |" for given, said, code in command_line(folder)]
    lines += ["", "## Python", "", "| given | said |", "|---|---|"]
    lines += [f"| {clean(given)} | `{clean(said)}` |" for given, said in python()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent.parent / "docs" / "bad-input.md").write_text(page())
