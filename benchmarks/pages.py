"""Places for figures and tables on the pages of the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping


def with_table(text: str, name: str, lines: list[str]) -> str:
    """The text with these lines between `<!-- NAME -->` and `<!-- end -->`, if it has such a place."""
    before, mark, rest = text.partition(f"<!-- {name} -->\n")
    if not mark:
        return text
    _, end, after = rest.partition("<!-- end -->")
    return "\n".join([before + mark, *lines, end + after])


def with_figures(text: str, figures: Mapping[str, str]) -> str:
    """The text with every `<!-- =NAME -->...<!-- / -->` filled in."""
    return re.sub(r"(<!-- =(\S+) -->).*?(<!-- / -->)", lambda found: found[1] + figures[found[2]] + found[3], text)
