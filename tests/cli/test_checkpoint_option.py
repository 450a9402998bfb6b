"""`cutsvm train --checkpoint FILE`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from cutsvm import load_model
from cutsvm.driver import checkpoint_file
from cutsvm.driver.checkpoint_file import CheckpointSettings
from tests.support.cli import Run, blobs, write_svmlight


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """Data that take some iterations."""
    return write_svmlight(tmp_path / "hard.svm", *blobs([-1, 1], rows=400, width=12))


@pytest.mark.parametrize("words", [[], ["--task", "roc"]], ids=str)
def test_same_command_resumes(run: Run, hard: Path, words: list[str]) -> None:
    file = hard.parent / "file"
    command = ["train", "-c", 100, "-e", "1e-7", "--solver", "cpa", "--n-jobs", 1, "--checkpoint", file, hard, *words]
    first = run(*command, "--max-time", "1e-9")
    while not file.exists():  # the first iteration alone leaves nothing to go on from
        first = run(*command, "--max-time", "0.01")
    assert first.code == 0 and f"The same command resumes from {file}." in first.err
    before = load_model(f"{hard}.model").estimator
    second = run(*command)
    assert second.code == 0 and not file.exists()
    said = re.search(
        rf"^going on from {re.escape(str(file))}: iteration (\d+), gap (\S+), after \S+ s$", second.err, re.M
    )
    assert said and int(said[1]) == before.n_iter_
    assert re.search(r" s after \S+ s in earlier runs$", second.out, re.M)
    after = load_model(f"{hard}.model").estimator
    assert after.converged_ and after.n_iter_ > before.n_iter_ and after.objective_ <= before.objective_


def test_quiet_and_json(run: Run, hard: Path) -> None:
    file = hard.parent / "file"
    command = ["train", "-e", "1e-7", "--solver", "cpa", "--n-jobs", 1, "--checkpoint", file, hard]
    assert run(*command, "-q", "--max-time", "0.01").err == ""
    code, out, _ = run(*command, "--json")
    assert code == 0 and json.loads(out)["converged"]


def test_errors_are_one_line(run: Run, hard: Path) -> None:
    file = hard.parent / "file"
    command = ["train", "-e", "1e-9", "--solver", "cpa", "--n-jobs", 1, "-q", "--checkpoint", file, hard]
    while not file.exists():
        run(*command, "--max-time", "0.01")
    code, out, err = run(*command, "-c", 3)
    assert (code, out) == (2, "")
    assert err == (
        f"cutsvm: {file}: a checkpoint of another fit: C 1.0 there, 3.0 here. "
        "Delete the file to start over, or give checkpoint another name\n"
    )
    os.truncate(file, 500)
    code, out, err = run(*command)
    assert (code, out) == (2, "") and err.startswith(f"cutsvm: {file}: truncated: 500 of ") and err.count("\n") == 1


def test_unwritable_folder(run: Run, hard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is written all the same, and a warning says that the checkpoint was not."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(checkpoint_file, "write_atomically", refuse)
    before = checkpoint_file.configure(CheckpointSettings(seconds_before_first=0.0))
    try:
        code, out, err = run("train", "--n-jobs", 1, "-e", "1e-6", "--checkpoint", hard.parent / "file", hard)
    finally:
        checkpoint_file.configure(before)
    assert code == 0 and "certified" in out
    assert err.count("cannot be written: Permission denied. The fit goes on") == 1
    assert np.isfinite(load_model(f"{hard}.model").estimator.coef_).all()
