"""The import graph of the package, read from its source without importing it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support import ROOT

PACKAGE = ROOT / "src" / "cutsvm"


class Import(NamedTuple):
    """`importer` imports `name`, which is a module or stands in the module `imported`; paths are relative to cutsvm."""

    importer: str
    imported: str
    name: str


@cache
def modules() -> dict[str, Path]:
    """Dotted path below cutsvm -> file; the path of cutsvm/__init__.py is empty."""
    paths = {path: path.relative_to(PACKAGE).with_suffix("").parts for path in sorted(PACKAGE.rglob("*.py"))}
    return {".".join(parts).removesuffix("__init__").rstrip("."): path for path, parts in paths.items()}


@cache
def imports() -> list[Import]:
    """All imports between modules of cutsvm, those in functions and under TYPE_CHECKING included."""
    return [found for name, path in modules().items() for found in _imports_of(name, path)]


def package_of(module: str) -> str:
    """The folder or module directly below cutsvm that holds `module`."""
    return module.partition(".")[0]


def map_of_the_code() -> dict[str, set[str]]:
    """Package -> the packages that it may import, from the table in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.split("## Map of the code\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*)\|$", section, re.MULTILINE)
    return {package: set(re.findall(r"`(\w+)`", allowed)) for package, allowed in rows}


def _imports_of(importer: str, path: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "cutsvm":
                    imported = alias.name.partition(".")[2]
                    yield Import(importer, imported, imported.rpartition(".")[2])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            top, _, base = (node.module or "").partition(".")
            if top == "cutsvm":
                for alias in node.names:
                    full = f"{base}.{alias.name}".lstrip(".")
                    yield Import(importer, full if full in modules() else base, alias.name)
