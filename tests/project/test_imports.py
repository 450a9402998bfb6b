"""Imports between packages follow the map of the code in CONTRIBUTING.md."""

from __future__ import annotations

import importlib
import inspect
import re
from graphlib import TopologicalSorter
from typing import get_args

from tests.support.imports import PACKAGE, imports, map_of_the_code, modules, package_of


def test_the_map_names_every_package():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert set(map_of_the_code()) == folders | files


def test_the_map_has_no_cycles():
    assert list(TopologicalSorter(map_of_the_code()).static_order())


def test_imports_follow_the_map():
    allowed = map_of_the_code()
    found = set()
    for importer, imported, _ in imports():
        source, target = package_of(importer), package_of(imported)
        if source and target not in {source, "_core"} and target not in allowed[source]:
            found.add((source, imported))
    assert not found, "imports that the map in CONTRIBUTING.md does not allow"


def test_every_arrow_of_the_map_is_used():
    used = {(package_of(importer), package_of(imported)) for importer, imported, _ in imports()}
    arrows = {(package, other) for package, allowed in map_of_the_code().items() for other in allowed}
    assert not arrows - used


def is_kind(value: type) -> bool:
    """Whether this is a class of matrices or losses, and no protocol of them or argument of its methods."""
    home = value.__module__
    return home.startswith("cutsvm.") and home != "cutsvm.matrix.protocol" and not getattr(value, "_is_protocol", False)


def test_solvers_import_no_kinds_of_data_and_losses():
    """Solvers import protocols of matrices and losses, never the classes that implement them."""
    found = set()
    for importer, imported, name in imports():
        if package_of(importer) == "solvers" and re.match(r"matrix|problem\.losses", imported):
            value = getattr(importlib.import_module(f"cutsvm.{imported}"), name, None)
            kinds = [kind for kind in get_args(value) or [value] if inspect.isclass(kind)]
            if any(is_kind(kind) for kind in kinds):
                found.add((importer, name))
    assert not found


def test_every_module_is_found():
    assert {"", "solvers", "solvers.ocas", "estimators.linear"} <= set(modules())
