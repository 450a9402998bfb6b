"""scikit-learn's own tests of its SVMs, with the patch; `tools/sklearn_tests.py` runs more of them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import ROOT
from tools.sklearn_tests import EXPECTED, FILES, outcomes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("file", ["svm.tests.test_svm", "svm.tests.test_sparse"])
def test_no_failures_but_those_expected(file):
    found = outcomes(file, patched=True)
    assert Counter(found.values())["passed"] > 100
    assert {test for test, end in found.items() if end == "failed"} == {
        t for t in EXPECTED if t.startswith(f"{file}::")
    }


def test_page_names_every_file_and_failure():
    page = (ROOT / "docs" / "drop-in.md").read_text()
    for file in FILES:
        assert f"`{file}`" in page
    for test in EXPECTED:
        assert f"`{test}`" in page
