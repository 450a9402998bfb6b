"""HTML out of Python calls. Text is escaped unless it is `Markup`, so that a name cannot be taken for a tag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cutsvm._utils.text import printable

__all__ = ["Markup", "join", "table", "tag", "text"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as HTML: what is HTML already stays so, anything else is escaped, line breaks and all."""
    if isinstance(value, Markup):
        return value
    lines = (printable(line) for line in str(value).split("\n"))
    return Markup(escape("\n".join(lines), quote=True))


def join(parts: Iterable[object]) -> Markup:
    return Markup("".join(text(part) for part in parts))


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """<name attribute="...">inside</name>; of `class_` the underscore goes, of `aria_label` it is a hyphen."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    given = "".join(f' {key}="{text(value)}"' for key, value in named.items())
    return Markup(f"<{name}{given}>{join(inside)}</{name}>")


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = (), *, numbers: bool = False) -> Markup:
    """A table whose first column names the rows; numbers: the other columns are of numbers."""
    kind = "number" if numbers else None
    titles = [tag("th", title, scope="col", class_=kind if k else None) for k, title in enumerate(head)]
    top = tag("thead", tag("tr", *titles)) if titles else ""
    lines = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", value, class_=kind) for value in rest))
        for first, *rest in rows
    ]
    # What is too wide for a phone is moved within its frame, the page is not.
    return tag("div", tag("table", top, tag("tbody", *lines)), class_="wide")
