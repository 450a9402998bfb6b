"""The terms of docs/glossary.md stand where it says."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.support import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text()
ENTRIES = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)


def test_terms_are_unique():
    terms = [term for term, _ in ENTRIES]
    assert len(terms) >= 30
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize(("term", "text"), ENTRIES, ids=[term for term, _ in ENTRIES])
def test_every_term_is_in_the_code(term, text):
    names = re.findall(r"`(cutsvm\.[\w.]+)`", text)
    assert names, f"{term}: no place in the code"
    for name in names:
        assert exists(name), f"{term}: {name}"


def exists(name: str) -> bool:
    """Whether this is a module, or a name in a module."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    return True


def test_names_are_looked_up():
    assert exists("cutsvm.qp.problem.ReducedProblem") and exists("cutsvm.solvers.ocas")
    assert not exists("cutsvm.qp.problem.Missing")
