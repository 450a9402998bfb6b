"""The code blocks of the documentation, and how they are run.

A page is one program: its blocks run in order, in one namespace and in one folder.

    ```python          runs; a session with >>> has to print what it shows
    ```sh, indented    `cutsvm ...` runs and ends well; of `python benchmarks/...` the options are parsed;
                       what begins like an entry of NOT_RUN is left out
    ```console         the same for the lines after "$ "; between them is the output, whose words are compared
    ```text            output or a formula: nothing to run
    anything else      an error, so that no block is passed over

A comment before a block says what it starts from, <!-- setup: queries --> (see setups.py), and what may be missing,
<!-- needs: skl2onnx -->.
"""

from __future__ import annotations

import argparse
import doctest
import importlib.util
import io
import re
import runpy
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from markdown_it import MarkdownIt

import setups
from cutsvm.cli import main

ROOT = Path(__file__).parents[2]

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
    found: list[Command] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "console" and not line.startswith("$ "):
            found[-1].output.append(line)
            continue
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            found.append(Command([words[0].removeprefix(".venv/bin/"), *words[1:end]], []))
            words = words[end + 1 :]
    return found


def kinds(block: Block) -> Counter[str]:
    """How much of what there is to do in a block. What is not known is an error."""
    try:
        if block.language in PYTHON:
            return Counter(["session" if block.is_session else "script"])
        if block.language in SHELL:
            return Counter(command.kind for command in commands(block))
        if block.language.split(" ")[0] in NO_CODE:
            return Counter(["no code"])
        raise ValueError(f"a block of the kind {block.language!r}")
    except ValueError as error:
        raise ValueError(f"{block.place}: {error}") from error


def run_page(page: Path) -> list[str]:
    """Run a page in the current folder. Returns what was left out because a library is missing."""
    names: dict[str, Any] = {"__name__": "__main__"}
    missing = []
    for block in blocks(page):
        kinds(block)
        absent = [name for name in block.notes.get("needs", []) if importlib.util.find_spec(name) is None]
        if absent:
            missing.append(f"{block.place}: there is no {', '.join(absent)}")
            continue
        for name in block.notes.get("setup", []):
            names |= setups.SETUPS[name]()
        if block.language in PYTHON:
            (run_session if block.is_session else run_script)(block, names)
        elif block.language in SHELL:
            run_commands(block)
    return missing


def run_script(block: Block, names: dict[str, Any]) -> None:
    # The empty lines are for a traceback that names the line of the page.
    exec(compile("\n" * (block.line - 1) + block.text, block.page, "exec"), names)


def run_session(block: Block, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, block.place, str(block.page), block.line - 1)
    said: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)
    names |= test.globs


def run_commands(block: Block) -> None:
    for command in commands(block):
        shown = f"{block.place}: {' '.join(command.words)}"
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            if command.kind == "cutsvm":
                code = main(command.words[1:])
            elif command.kind == "options":
                code = parse_options(command.words[1:])
            else:
                continue
        assert code == 0, f"{shown}\n{out.getvalue()}{err.getvalue()}"
        if command.output:
            assert without_figures(out.getvalue()) == without_figures("\n".join(command.output)), shown


def without_figures(text: str) -> str:
    """They differ from machine to machine, the words do not."""
    return re.sub(r"\d+(\.\d+)?(e[+-]\d+)?", "0", text).strip()


class Parsed(BaseException):
    """The options were fine; here the work would begin."""


def parse_options(words: list[str]) -> int:
    """Run a script until it has parsed its options."""
    script = ROOT / words[0]
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(*args: Any, **kwargs: Any) -> None:
        parse(*args, **kwargs)
        raise Parsed

    with (
        own_modules(script.parent),
        warnings.catch_warnings(),
        mock.patch.object(sys, "argv", words),
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse_and_stop),
    ):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Parsed:
            return 0
        except SystemExit as end:
            return int(end.code or 0)
    raise ValueError(f"{words[0]} has not looked at its options")


@contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """Modules beside a script can be imported, and are forgotten afterwards: their names are short, as `data`."""
    path, before = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(ROOT / "benchmarks")):
                del sys.modules[name]
