"""Numbers of an algorithm are fields of its settings, not constants of a module; tests pass settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support import ROOT
from tests.support.imports import modules, package_of

ALGORITHMS = {"driver", "estimators", "kernel_machines", "matrix", "problem", "qp", "solvers"}
# Constants that follow from float64, and constants of modules that have not become settings yet. They may only shrink.
CONSTANTS = {
    "matrix.magnitudes": "SLIGHTLY",
    "problem.certificate": "TINY UNIT",
    "problem.planes": "OVERFLOW",
}
# Constants that tests still replace, by file.
REPLACED: dict[str, str] = {}


def numbers_of(path: Path) -> Iterator[str]:
    """Names in capital letters that a module binds to numbers."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            constants = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            if constants and all(isinstance(value, int | float) for value in constants):
                names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
                yield from (name for name in names if name.isupper())


def replaced_in(path: Path) -> Iterator[str]:
    """Names in capital letters that a test sets in another module: by setattr, or by an assignment."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            yield from (name for word in words if (name := word.rpartition(".")[2]).isupper())
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr.isupper():
            if len(node.attr) > 1:  # single letters are the papers': X, C
                yield node.attr


def compare(found: dict[str, set[str]], listed: dict[str, str]) -> None:
    for place in sorted(found.keys() | listed.keys()):
        now, then = found.get(place, set()), set(listed.get(place, "").split())
        assert not now - then, f"{place}: make these fields of a settings class"
        assert not then - now, f"{place}: remove these from the list, they are gone"


def constants() -> dict[str, set[str]]:
    found = {name: set(numbers_of(path)) for name, path in modules().items() if package_of(name) in ALGORITHMS}
    return {name: names for name, names in found.items() if names}


def replaced() -> dict[str, set[str]]:
    tests = ROOT / "tests"
    found = {path.relative_to(tests).as_posix(): set(replaced_in(path)) for path in tests.rglob("*.py")}
    return {name: names for name, names in found.items() if names}


def test_modules_bind_no_numbers():
    compare(constants(), CONSTANTS)


def test_tests_replace_no_constants():
    compare(replaced(), REPLACED)
