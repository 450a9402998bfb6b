"""The figures of README and docs are what the scripts write from the stored results."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import ROOT

BENCHMARKS = ROOT / "benchmarks"
PAPERS = ["arnosti", "bialon", "franc_sonnenburg", "joachims", "melki"]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The modules of benchmarks/ can be imported, and are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(BENCHMARKS / "papers"))
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_pages_are_up_to_date(scripts: None) -> None:
    figures = module("figures")
    assert figures.outdated(ROOT / name for name in figures.PAGES) == []


def test_an_outdated_page_is_found(scripts: None, tmp_path: Path) -> None:
    figures = module("figures")
    page = tmp_path / "page.md"
    page.write_text("<!-- =svmlight.ratio -->1000<!-- / --> times as fast\n")
    assert figures.outdated([page]) == [str(page)]
    assert "1000" not in figures.filled(page)


def test_a_figure_that_nobody_computes_is_an_error(scripts: None, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- =nobody.knows -->7<!-- / -->\n")
    with pytest.raises(KeyError, match=r"nobody\.knows"):
        module("figures").filled(page)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_pages_of_papers_are_up_to_date(name: str, scripts: None, tmp_path: Path) -> None:
    stored, docs = tmp_path / f"{name}.csv", tmp_path / "docs"
    shutil.copy(BENCHMARKS / "papers" / "results" / f"{name}.csv", stored)
    (docs / "papers").mkdir(parents=True)
    page = docs / "papers" / f"{name}.md"
    shutil.copy(ROOT / "docs" / "papers" / f"{name}.md", page)
    module(f"{name}_report").make(stored, docs)
    assert page.read_text() == (ROOT / "docs" / "papers" / f"{name}.md").read_text()


def test_table_of_commands_is_up_to_date(scripts: None, tmp_path: Path) -> None:
    stored, docs = tmp_path / "commands.csv", tmp_path / "docs"
    shutil.copy(BENCHMARKS / "papers" / "results" / "commands.csv", stored)
    (docs / "papers").mkdir(parents=True)
    page = shutil.copy(ROOT / "docs" / "papers" / "index.md", docs / "papers" / "index.md")
    module("commands").make(stored, docs)
    assert page.read_text() == (ROOT / "docs" / "papers" / "index.md").read_text()


@pytest.mark.parametrize("name", PAPERS)
def test_pages_of_papers_open_with_their_command(name: str) -> None:
    text = (ROOT / "docs" / "papers" / f"{name}.md").read_text()
    option = f"cutsvm train --paper {name.replace('_', '-')} "
    assert option in text[:1500]
    table = text.partition("## Box by box")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 10
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 4 and cells[0] and cells[3], row
