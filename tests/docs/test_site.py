"""The documentation builds as a site without a warning; its links lead somewhere; no public name is missing."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

import cutsvm
import cutsvm.plotting
import cutsvm.solvers
from tests.support import ROOT

pytest.importorskip("sphinx")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "trees")]
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(folder / "html")], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


class Links(HTMLParser):
    """The places that a page leads to, and the names that can be led to in it."""

    def __init__(self, page):
        super().__init__()
        self.targets, self.names = [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names.add(attrs.get("id"))
        self.targets += [attrs[key] for key in ("href", "src") if attrs.get(key)]


def test_links_within_the_site(site):
    pages = {page: Links(page) for page in site.rglob("*.html")}
    assert len(pages) > 20
    for page, links in pages.items():
        for target in links.targets:
            if re.match(r"[a-z]+:", target):
                assert target.startswith(("https:", "data:")), f"{page.name}: {target}"
                continue
            path, _, name = unquote(target).partition("#")
            there = (page.parent / path.split("?")[0]).resolve() if path else page
            assert there.is_file(), f"{page.name}: {target}"
            if name and there in pages:
                assert name in pages[there].names, f"{page.name}: {target}"


def test_every_page_and_public_name_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    documented = Links(site / "api.html").names
    modules = (cutsvm, cutsvm.solvers, cutsvm.plotting)
    names = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    assert not names - documented - {"cutsvm.__version__", "cutsvm.solvers"}
