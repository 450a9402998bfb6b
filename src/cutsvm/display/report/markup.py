"""HTML built from Python calls. Text is escaped unless it is `Markup`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cutsvm._utils.text import printable


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as HTML: `Markup` as it is, anything else escaped."""
    if isinstance(value, Markup):
        return value
    lines = (printable(line) for line in str(value).split("\n"))
    return Markup(escape("\n".join(lines), quote=True))


def join(parts: Iterable[object]) -> Markup:
    return Markup("".join(text(part) for part in parts))


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """<name attribute="...">inside</name>; `class_` becomes class, `aria_label` aria-label."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    given = "".join(f' {key}="{text(value)}"' for key, value in named.items())
    return Markup(f"<{name}{given}>{join(inside)}</{name}>")


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = (), *, numbers: bool = False) -> Markup:
    """A table whose first column names the rows; numbers: the other columns hold numbers."""
    kind = "number" if numbers else None
    titles = [tag("th", title, scope="col", class_=kind if k else None) for k, title in enumerate(head)]
    top = tag("thead", tag("tr", *titles)) if titles else ""
    lines = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", value, class_=kind) for value in rest))
        for first, *rest in rows
    ]
    # A table that is too wide for a phone scrolls within its frame.
    return tag("div", tag("table", top, tag("tbody", *lines)), class_="wide")
