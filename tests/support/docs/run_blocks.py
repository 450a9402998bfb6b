"""Runs the code blocks of a page.

A page is one program: its blocks run in order, in one namespace and in the current folder. Scripts and commands have to
end well, sessions to print what they show, and commands the words that they show. Of a benchmark only the options are
parsed: it would take long.
"""

from __future__ import annotations

import argparse
import doctest
import importlib.util
import io
import re
import runpy
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from cutsvm.cli import main
from tests.support import ROOT
from tests.support.docs.code_blocks import PYTHON, SHELL, Block, Command, blocks, commands, kinds
from tests.support.docs.setups import SETUPS


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
            names |= SETUPS[name]()
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
            code = run_command(command)
        assert code == 0, f"{shown}\n{out.getvalue()}{err.getvalue()}"
        if command.output:
            assert without_figures(out.getvalue()) == without_figures("\n".join(command.output)), shown


def run_command(command: Command) -> int:
    """The exit code."""
    if command.kind == "cutsvm":
        return main(command.words[1:])
    if command.kind == "options":
        return parse_options(command.words[1:])
    if command.kind == "script":
        exec(command.words[2], {"__name__": "__main__"})
    return 0


def without_figures(text: str) -> str:
    """The text without its numbers, which differ between machines."""
    return re.sub(r"\d+(\.\d+)?(e[+-]\d+)?", "0", text).strip()


class Parsed(BaseException):
    """Raised once the options have been parsed."""


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
