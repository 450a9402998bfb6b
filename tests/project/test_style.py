"""Rules of the tree that linters do not check."""

import re

from tests.support import ROOT


def test_readme_and_ci_run_the_same_command():
    command = re.search(r"^\s*(python3 -m venv .*pytest.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert command, "README.md does not show how to run the tests"
    assert command[1].strip() in (ROOT / ".ci" / "run").read_text().splitlines()


def test_only_the_bindings_include_nanobind():
    for path in (ROOT / "src" / "core").rglob("*.hpp"):
        text = path.read_text()
        assert "nanobind" not in text, path
        assert "Python.h" not in text, path


def test_solvers_do_not_print_time_or_open_files():
    for path in (ROOT / "src" / "cutsvm" / "solvers").glob("*.py"):
        text = path.read_text()
        for word in ("print(", "perf_counter", "open(", "issparse", "verbose", "isinstance(X"):
            assert word not in text, f"{path}: {word}"


def test_files_have_at_most_400_lines():
    source = ROOT / "src"
    files = [path for kind in ("*.py", "*.hpp", "*.cpp") for path in source.rglob(kind)]
    found = {path.relative_to(source).as_posix() for path in files if path.read_text().count("\n") > 400}
    assert not found, "split these"
