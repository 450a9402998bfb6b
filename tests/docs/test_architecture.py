"""docs/architecture.md: its picture shows the imports, its table every package, and its fit what is called."""

from __future__ import annotations

import importlib
import inspect
import re
from types import CodeType
from typing import Any
from xml.etree import ElementTree

from sklearn.datasets import make_classification

from cutsvm import LinearSVC
from tests.support import ROOT
from tests.support.calls import on_each_call
from tests.support.imports import map_of_the_code
from tools.package_diagram import PICTURE, import_graph, public_packages, svg

PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_picture_is_drawn_from_the_imports():
    assert PICTURE.read_text() == svg(), "python -m tools.package_diagram draws it again"


def test_arrows_lead_to_all_that_is_imported():
    """What can be reached by arrows is what can be reached by imports."""
    graph = import_graph()
    arrows: dict[str, set[str]] = {package: set() for package in graph}
    for path in ElementTree.fromstring(PICTURE.read_text()).iter("{http://www.w3.org/2000/svg}path"):
        if "data-from" in path.attrib:
            arrows[path.attrib["data-from"]].add(path.attrib["data-to"])
    assert set(arrows) == set(map_of_the_code())
    for package in graph:
        assert arrows[package] <= graph[package], package
        assert reachable(arrows, package) == reachable(graph, package), package


def reachable(graph: dict[str, set[str]], package: str) -> set[str]:
    found, left = set(), [package]
    while left:
        for other in graph[left.pop()] - found:
            found.add(other)
            left.append(other)
    return found


def test_stability_of_every_package():
    rows = dict(re.findall(r"^\| `(\w+)` \| (public|private) \|", PAGE, re.MULTILINE))
    assert set(rows) == {"cutsvm", *map_of_the_code()}
    assert {package for package, stability in rows.items() if stability == "public"} == {"cutsvm", *public_packages()}


def test_the_fit_calls_what_the_page_says_in_this_order():
    steps = re.findall(r"^\d+\. `(cutsvm[\w.]+)`", PAGE, re.MULTILINE)
    assert len(steps) >= 20
    X, y = make_classification(2_000, 20, random_state=0)
    calls = first_calls(lambda: LinearSVC(C=1).fit(X, y))
    places = [calls.get(code_of(name), -1) for name in steps]
    assert -1 not in places, f"not called: {steps[places.index(-1)]}"
    assert places == sorted(places), "called in another order"


def first_calls(run: Any) -> dict[CodeType, int]:
    """Which functions are called, and when for the first time."""
    calls: dict[CodeType, int] = {}

    on_each_call(run, lambda frame: calls.setdefault(frame.f_code, len(calls)))
    return calls


def code_of(name: str) -> CodeType:
    """The code of a function, or of the constructor of a class."""
    module, _, path = name.rpartition(".")
    try:
        value = getattr(importlib.import_module(module), path)
    except ModuleNotFoundError:  # a method
        module, _, owner = module.rpartition(".")
        value = getattr(getattr(importlib.import_module(module), owner), path)
    if inspect.isclass(value):
        value = value.__init__
    code: CodeType = inspect.unwrap(value).__code__
    return code
