"""The site: python -m sphinx -W --keep-going docs build/site

The pages are plain Markdown that reads as well without a build, so three things are made here and not in the pages:
the tables of contents, from the front page's links; pages for files outside docs/ that a page links to; and docstrings
as reStructuredText, since they are written as plain text.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx import addnodes
from sphinx.application import Sphinx

import cutsvm

DOCS = Path(__file__).parent
ROOT = DOCS.parent
LISTS = {"Parameters", "Attributes", "Returns", "Raises"}  # of a docstring's sections

project = "cutsvm"
author = copyright = "The cutsvm developers"
release = version = cutsvm.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_static"]
smartquotes_action = "D"  # dashes; the quotes of "auto" stay, since it is a value
highlight_language = "none"  # indented blocks are commands and formulas; Python is fenced and says so

html_theme = "furo"
html_title = "cutsvm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "github-dark"

# What is copied is what is typed: neither prompts nor answers.
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. ", True

myst_heading_anchors = 3
default_role = "literal"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# scikit-learn's own, the same for every estimator.
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request, set_callbacks"}
python_maximum_signature_line_length = 90


def contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Appends to an index page, for each of its headings, the table of contents that its links make."""
    if not docname.endswith("index"):
        return
    for part in source[0].split("\n## "):
        pages = dict.fromkeys(re.findall(r"\]\(([\w/-]+)\.md\)", part))
        if pages:
            caption = [] if part.startswith("# ") else [f":caption: {part.splitlines()[0]}"]
            source[0] += "\n".join(["", "```{toctree}", ":hidden:", *caption, "", *pages, "```", ""])


def outside(path: str | Path) -> str | None:
    """The name of the page for a file that is in the project and not in docs/."""
    full = Path(os.path.normpath(path))
    if not full.is_file() or full.is_relative_to(DOCS) or not full.is_relative_to(ROOT):
        return None
    return "files/" + full.relative_to(ROOT).as_posix().removesuffix(".md")


def tidy(app: Sphinx, doctree: nodes.document) -> None:
    """A session ends with an empty line for doctest's sake, which is not shown."""
    for node in doctree.findall(nodes.literal_block):
        node.children = [nodes.Text(node.astext().rstrip("\n"))]
        node.rawsource = node.astext()


def lead_outside(app: Sphinx, doctree: nodes.document) -> None:
    """Points links to files outside docs/ at their pages."""
    here = app.env.docname
    for node in list(doctree.findall(nodes.Element)):
        if node.get("reftype") != "myst" or not isinstance(node, (addnodes.pending_xref, addnodes.download_reference)):
            continue
        is_page = isinstance(node, addnodes.pending_xref)  # Markdown: its target has no suffix, and starts at docs/
        path = DOCS / f"{node['reftarget']}.md" if is_page else (DOCS / here).parent / node["reftarget"]
        page = outside(path)
        if page:
            uri = app.builder.get_relative_uri(here, page)
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def pages_outside(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The pages for files outside docs/: Markdown as such, anything else as it is."""
    linked = {
        Path(app.env.doc2path(docname)).parent / target
        for docname in app.env.found_docs
        for target in re.findall(r"\]\((\.\./[^)#]+)", Path(app.env.doc2path(docname)).read_text())
    }
    for path in sorted(filter(outside, linked)):
        text, name = path.read_text(), os.path.normpath(path).removeprefix(f"{ROOT}/")
        if path.suffix == ".md":
            body = MarkdownIt("commonmark").enable("table").render(text)
            body = body.replace("<table>", '<div class="table-wrapper"><table class="docutils">')
            body = body.replace("</table>", "</table></div>").replace("<code>", '<code class="literal">')
        else:
            kind = "python" if path.suffix == ".py" else "none"
            body = f"<h1>{name}</h1>" + app.builder.highlighter.highlight_block(text, kind)
        yield outside(path) or "", {"title": name, "body": body}, "page.html"


def escaped(text: str) -> str:
    """Plain text as reStructuredText, but for what is in backticks: |w|, coef_ and * are just that."""
    parts = re.split(r"(`[^`]*`)", text)
    marks = r"(?<!\*\w)[|*](?!\w+\*)(?<!\w\*)|(?<=\w)_(?!\w)"
    parts[::2] = [re.sub(marks, r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def prose(text: str) -> str:
    """Paragraphs; those that are indented are formulas, and sessions stay as they are."""
    out, formula = [], False
    for paragraph in re.split(r"\n\n+", text.strip("\n")):
        if paragraph.startswith("    "):
            out.append(paragraph if formula else f"::\n\n{paragraph}")
        else:
            out.append(paragraph if paragraph.startswith(">>>") else escaped(paragraph))
        formula = paragraph.startswith("    ")
    return "\n\n".join(out)


def items(text: str) -> str:
    """A list of `name : kind` with what is said of each below it."""
    out = []
    for item in re.split(r"^(?=\S)", text.strip("\n"), flags=re.MULTILINE)[1:]:
        head, _, said = item.partition("\n")
        name, _, kind = head.partition(" : ")
        said = indent(escaped(dedent(said).strip("\n")), "  ")
        out.append(f"* ``{name}``" + (f" : *{escaped(kind)}*" if kind else "") + (f"\n\n{said}" if said else ""))
    return "\n\n".join(out)


def plain_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with numpydoc's sections."""
    first, *sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", "\n".join(lines), flags=re.MULTILINE)
    parts = [prose(first)]
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        parts += [f".. rubric:: {title}", (items if title in LISTS else prose)(text)]
    lines[:] = "\n\n".join([*parts, ""]).split("\n")


def setup(app: Sphinx) -> None:
    app.connect("source-read", contents)
    app.connect("doctree-read", tidy)
    app.connect("doctree-read", lead_outside, priority=100)  # before downloads are collected
    app.connect("html-collect-pages", pages_outside)
    app.connect("autodoc-process-docstring", plain_docstring)
