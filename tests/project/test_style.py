"""ruff, mypy and the promises that the tree makes about itself."""

import re
import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.parametrize("tool", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=" ".join)
def test_tool(tool):
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_and_ci_run_the_same_command():
    command = re.search(r"^\s*(python3 -m venv .*pytest.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert command, "README.md does not show how to run the tests"
    assert command[1].strip() in (ROOT / ".ci" / "run").read_text()


def test_only_the_bindings_know_nanobind():
    for path in (ROOT / "src" / "core").rglob("*.hpp"):
        text = path.read_text()
        assert "nanobind" not in text, path
        assert "Python.h" not in text, path


def test_solvers_know_nothing_of_printing_timing_and_files():
    for path in (ROOT / "src" / "cutsvm" / "solvers").glob("*.py"):
        text = path.read_text()
        for word in ("print(", "perf_counter", "open(", "issparse", "verbose", "isinstance(X"):
            assert word not in text, f"{path}: {word}"
