"""Names in the code are the established terms: docs/glossary.md has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support import ROOT
from tests.support.imports import PACKAGE

# Words that are not to be part of a name, as the field has others for these things.
WORDS = frozenset(
    "abreast aim aims apart astray audible bars camp camps doctor goal goals kink kinks knot knots knotted "
    "leaning look looks masses observed opening outcome outcomes over passing pitch prepare reach recipe role "
    "roles scout scratch settle settled side sides sifted sources spare spill still stray strays subject survey "
    "telling trail voice walk walks wall warm".split()
)
PHRASES = re.compile("going_on|in_words|what_is_not_there")
# Names that contain one of them and are the established term.
ESTABLISHED = {
    "warm_start",  # scikit-learn's parameter
    "both_sides",  # a parameter of ACCPM
    "bars",  # of a chart
    "_draw_bars",
}
# Names that have not been replaced yet, by package. The list may only shrink.
LEFT = {}


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that is defined: classes, functions, arguments, variables, attributes, aliases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def is_wrong(name: str) -> bool:
    parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    return name not in ESTABLISHED and bool(parts & WORDS or PHRASES.search(name.lower()))


def names_by_package() -> Iterator[tuple[str, set[str]]]:
    """The names of each file: those that Python defines, and all that C++ mentions outside of comments and strings."""
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
        package = path.relative_to(PACKAGE).parts[0].partition(".")[0]
        yield package, {path.stem, *names_in(ast.parse(path.read_text()))}
    for path in sorted([*(ROOT / "src").rglob("*.hpp"), *(ROOT / "src").rglob("*.cpp")]):
        code = re.sub(r'//[^\n]*|"(\\.|[^"\\])*"', "", path.read_text())
        yield path.relative_to(ROOT).parts[1], {path.stem, *re.findall(r"[A-Za-z_]\w*", code)}


def wrong_names() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package, names in names_by_package():
        found[package] = found.get(package, set()) | {name for name in names if is_wrong(name)}
    return {package: names for package, names in found.items() if names}


def test_names_are_the_established_terms():
    found = wrong_names()
    for package in sorted(found.keys() | LEFT.keys()):
        now, listed = found.get(package, set()), set(LEFT.get(package, "").split())
        assert not now - listed, f"{package}: names that docs/glossary.md has other words for"
        assert not listed - now, f"{package}: remove these from LEFT, they are gone"


def test_parts_of_names():
    assert is_wrong("KnottedLine") and is_wrong("TO_THE_WALL") and is_wrong("_settle") and is_wrong("failures_in_words")
    assert not is_wrong("overlap") and not is_wrong("lookup") and not is_wrong("warm_start")
