"""Data files, and a way to run the command line inside the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutsvm.cli import main
from tests.support.cli import CommandResult, Run, blobs, write_svmlight


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """run("train", path) -> exit code, standard output, standard error"""

    def call(*words: object) -> CommandResult:
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return CommandResult(code, captured.out, captured.err)

    return call


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "binary.svm", *blobs([-1, 1]))


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "three.svm", *blobs([1, 2, 5]))
