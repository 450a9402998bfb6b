"""Examples and docstrings run; links within the tree are valid. test_code_blocks.py runs the pages."""

import doctest
import re
import runpy

import pytest
import sklearn

import cutsvm.display.report
import cutsvm.estimators.kernel
import cutsvm.estimators.linear
import cutsvm.estimators.ordinal
import cutsvm.estimators.path
import cutsvm.estimators.path_cv
import cutsvm.estimators.ranking
import cutsvm.estimators.ranking_scorer
import cutsvm.io.models.skops_types
import cutsvm.problem.ranking_measures
from tests.support import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("plot_*.py")), ids=lambda path: path.stem)
def test_example(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert len(example.read_text().splitlines()) < 60
    with sklearn.config_context():  # one turns on metadata routing
        runpy.run_path(str(example), run_name="__main__")
    assert list(tmp_path.glob("*.png"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        cutsvm.estimators.kernel,
        cutsvm.estimators.linear,
        cutsvm.estimators.path,
        cutsvm.estimators.ordinal,
        cutsvm.estimators.ranking,
        cutsvm.estimators.ranking_scorer,
        cutsvm.problem.ranking_measures,
        cutsvm.io.models.skops_types,
        cutsvm.estimators.path_cv,
        cutsvm.display.report,
    ],
    ids=lambda module: module.__name__,
)
def test_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks/README.md"], ids=str
)
def test_links_are_valid(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page}: {target}"
