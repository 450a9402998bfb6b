"""The code blocks of the documentation, and how each is run.

    ```python          a script, or a session with >>>
    ```sh, indented    commands: `cutsvm ...`, `python -c ...`, `python benchmarks/...`, or one of NOT_RUN
    ```console         the same after "$ " (and "> ", which goes on); in between is the output
    ```text            output or a formula: nothing to do
    anything else      an error, so that no block is passed over

A comment before a block says what it starts from, <!-- setup: queries --> (see setups.py), and what may be missing,
<!-- needs: skl2onnx -->. How they are run is in run_blocks.py.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

from tests.support import ROOT

PYTHON = {"python", "pycon"}
SHELL = {"sh", "console"}
# Not code. In braces are the instructions of the site's generator.
NO_CODE = {"text", "{toctree}", "{eval-rst}", "{include}", "{figure}", "{image}"}

# How a command begins that no test can run, and why.
NOT_RUN = {
    "python3 -m venv": "makes an environment; the tests are in one",
    "pip install": "would change the environment of the tests; .ci/run begins with it",
    "apt-get install": "would change the machine",
    "python -m pytest": "these very tests",
    "python -m cutsvm.sklearn": "tests/sklearn_dropin/test_patching.py runs it",
    "ruff check": "a step of .ci/run",
    "ruff format": "a step of .ci/run",
    "mypy": "a step of .ci/run",
}


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    text: str
    line: int  # of the page, that the text begins at, from 1
    notes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return place(self.page, self.line)

    @property
    def is_session(self) -> bool:
        return self.text.lstrip().startswith(">>>")


@dataclass(frozen=True)
class Command:
    words: list[str]
    output: list[str]  # that the page shows

    @property
    def kind(self) -> str:
        text = " ".join(self.words)
        if self.words[0] == "cutsvm":
            return "cutsvm"
        if self.words[:2] == ["python", "-c"]:
            return "script"
        if text.startswith("python benchmarks/"):
            return "options"
        if any(text.startswith(prefix) for prefix in NOT_RUN):
            return "not run"
        raise ValueError(f"neither run nor in NOT_RUN: {text}")


def place(page: Path, line: int) -> str:
    return f"{page.relative_to(ROOT) if page.is_relative_to(ROOT) else page.name}:{line}"


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def blocks(page: Path) -> Iterator[Block]:
    """All code blocks of a page. An indented one is a session or commands."""
    notes: dict[str, list[str]] = {}
    for token in MarkdownIt("commonmark").parse(page.read_text()):
        first = token.map[0] + 1 if token.map else 0
        if token.type == "html_block":
            found = re.findall(r"<!-- (setup|needs): (.+?) -->", token.content)
            notes = notes | {key: names.split(", ") for key, names in found}
            continue
        if token.type == "fence":
            yield Block(page, token.info.strip(), token.content, first + 1, notes)
        elif token.type == "code_block":
            language = "python" if token.content.startswith(">>>") else "sh"
            yield Block(page, language, token.content, first, notes)
        elif token.type == "blockquote_open" and token.level == 2:
            raise ValueError(f"{place(page, first)}: >>> outside of a block is a quotation; put ```python around it")
        notes = {}


def commands(block: Block) -> list[Command]:
    found = []
    for text, output in typed(block):
        words = shlex.split(text, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            found.append(Command([words[0].removeprefix(".venv/bin/"), *words[1:end]], output))
            words = words[end + 1 :]
    return found


def typed(block: Block) -> list[tuple[str, list[str]]]:
    """What is typed in, and the output that is shown of it."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language != "console":
        return [(line, []) for line in lines]
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif not found:
            raise ValueError('a transcript begins with "$ "')
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            found[-1][1].append(line)
    return found


def kinds(block: Block) -> Counter[str]:
    """The number of commands of each kind in a block; an unknown command raises."""
    try:
        if block.language in PYTHON:
            return Counter(["session" if block.is_session else "script"])
        if block.language in SHELL:
            return Counter(command.kind for command in commands(block))
        if block.language.split(" ")[0] in NO_CODE and not block.text.startswith((">>> ", "$ ")):
            return Counter(["no code"])
        raise ValueError(f"a block of the kind {block.language!r}")
    except ValueError as error:
        raise ValueError(f"{block.place}: {error}") from error
