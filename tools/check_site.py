"""Checks the built documentation: links within it lead somewhere, and every page and public name is in it.

python -m sphinx -q -W --keep-going docs build/site && python tools/check_site.py build/site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import cutsvm
import cutsvm.plotting
import cutsvm.solvers

DOCS = Path(__file__).parent.parent / "docs"


class Page(HTMLParser):
    """The links of a page, and the ids that links can name."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and key == "id":
                self.ids.add(value)
            elif value and key in ("href", "src"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Every link within the site that leads nowhere, and every link out of it that is not https."""
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    broken = []
    for file, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                if not link.startswith(("https:", "data:")):
                    broken.append(f"{file.name}: {link}")
                continue
            path, _, name = unquote(link).partition("#")
            target = (file.parent / path.split("?")[0]).resolve() if path else file
            if not target.is_file() or (name and target in pages and name not in pages[target].ids):
                broken.append(f"{file.name}: {link}")
    return broken


def missing(site: Path) -> list[str]:
    """Every page of docs/ and every public name that is not in the site."""
    pages = [file.relative_to(DOCS).with_suffix(".html") for file in DOCS.rglob("*.md")]
    documented = Page(site / "api.html").ids | {"cutsvm.__version__", "cutsvm.solvers"}
    modules = (cutsvm, cutsvm.solvers, cutsvm.plotting)
    names = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    return [str(page) for page in pages if not (site / page).is_file()] + sorted(names - documented)


def main() -> int:
    """1 if there is anything to say, else 0."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    site = Path(sys.argv[1])
    found = [f"broken link: {link}" for link in broken_links(site)] + [f"missing: {name}" for name in missing(site)]
    for line in found:
        print(line, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
