"""Every code block of the documentation runs or is listed in NOT_RUN; the table of bad input is up to date."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import sklearn

from cutsvm.cli import main
from tests.support import ROOT
from tests.support.docs.code_blocks import NOT_RUN, SHELL, blocks, commands, kinds, pages
from tests.support.docs.run_blocks import run_page, without_figures
from tests.support.docs.setups import SETUPS


def test_every_block_is_run_or_listed() -> None:
    found: Counter[str] = Counter()
    for page in pages():
        for block in blocks(page):
            found += kinds(block)
    assert found.keys() == {"script", "session", "cutsvm", "options", "not run", "no code"}


def test_lists_have_no_unused_entries() -> None:
    shown = [block for page in pages() for block in blocks(page)]
    used = [" ".join(command.words) for block in shown if block.language in SHELL for command in commands(block)]
    for prefix in NOT_RUN:
        assert any(text.startswith(prefix) for text in used), prefix
    assert {name for block in shown for name in block.notes.get("setup", [])} == SETUPS.keys()


def test_commands_within_a_line_have_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    """`cutsvm train -B -1 ...` in a sentence or a table."""
    option = r"(?<![\w-])--?[A-Za-z][\w-]*"
    shown = {(page, *found) for page in pages() for found in re.findall(r"`cutsvm ([a-z]+) ([^`]+)`", page.read_text())}
    assert len(shown) > 15
    for page, command, words in shown:
        assert main([command, "--help"]) == 0, f"{page}: cutsvm {command}"
        known = set(re.findall(option, capsys.readouterr().out))
        given = {re.sub(r"^-w\d+$", "-wLABEL", word) for word in re.findall(option, words)}
        assert given <= known, f"{page}: cutsvm {command} {words}"


# Of scikit-learn and Python, whose next version may say it otherwise.
NOT_OUR_WORDS = re.compile("Unknown label type|Found array|contains NaN|is expecting|not valid JSON")


def test_bad_input_page_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "tools/bad_input_table.py"))["page"]()
    shown = (ROOT / "docs/bad-input.md").read_text()
    for now, then in zip(made.splitlines(), shown.splitlines(), strict=True):
        assert now.split("`")[::2] == then.split("`")[::2]  # what was given, and the exit code
        assert without_figures(now) == without_figures(then) or NOT_OUR_WORDS.search(now)


# Pages with a limit on memory: what other tests have left in this process would count.
OWN_PROCESS = ("larger-than-memory.md",)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path, folder: Path) -> None:
    if page.name in OWN_PROCESS:
        program = "import sys, pathlib, tests.support.docs.run_blocks as run; run.run_page(pathlib.Path(sys.argv[1]))"
        command = [sys.executable, "-W", "error", "-c", program]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "MPLBACKEND": "agg"}
        done = subprocess.run([*command, str(page)], env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        return
    plt.switch_backend("agg")
    with sklearn.config_context():
        missing = run_page(page)
    plt.close("all")
    if missing:
        pytest.skip(f"all but {'; '.join(missing)}")


WRONG = {
    "a name that is not there": ("```python\nX\n```", "name 'X' is not defined"),
    "an error": ("    cutsvm info nothing", "page.md:1: cutsvm info nothing\ncutsvm: nothing: No such file"),
    "another output": ("```python\n>>> 1 + 1\n3\n```", "Expected:\n    3\nGot:\n    2"),
    "other words": ("```console\n$ cutsvm --version\ncatsvm 1.0\n```", "page.md:2: cutsvm --version"),
    "no prompt": ("```console\ncutsvm --version\n```", "page.md:2: a transcript begins with"),
    "no option": ("    python benchmarks/binary.py --fast", "unrecognized arguments: --fast"),
    "no value": ("    python benchmarks/papers/bialon.py --only table9", "--only"),
    "no script": ("    python benchmarks/none.py", "none.py"),
    "no command": ("Text.\n\n    rm -r x", "page.md:3: neither run nor in NOT_RUN: rm -r x"),
    "no command after one": ("    pip install . && rm -r x", "neither run nor in NOT_RUN: rm -r x"),
    "no command in a list": ("- item\n\n  ```sh\n  rm -r x\n  ```", "page.md:4: neither run nor in NOT_RUN"),
    "no language": ("```\n1 + 1\n```", "page.md:2: a block of the kind ''"),
    "another language": ("```perl\n1\n```", "page.md:2: a block of the kind 'perl'"),
    "a session that is called text": ("```text\n>>> 1\n```", "page.md:2: a block of the kind 'text'"),
    "no block": ("Text.\n\n>>> 1 + 1\n2", "page.md:3: >>> outside of a block"),
    "no setup": ("<!-- setup: moon -->\n```python\n1\n```", "moon"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_detected(case: str, folder: Path) -> None:
    text, says = WRONG[case]
    page = folder / "page.md"
    page.write_text(text)
    with pytest.raises((AssertionError, ValueError, NameError, KeyError, OSError)) as caught:
        run_page(page)
    assert says in str(caught.value)


def test_a_page_is_one_program(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(
        "<!-- setup: two_classes -->\n\n    cutsvm train -q train.svm && pip install x  # a model\n\n"
        "```python\nfrom cutsvm import load_model\n\nmodel = load_model('train.svm.model').estimator\n```\n\n"
        "<!-- needs: no_such_library -->\n```python\nimport no_such_library\n```\n\n"
        "```console\n$ python -c \"\n> for k in range(2):\n>     print('line', k)\"\nline 0\nline 1\n```\n\n"
        "- In a list:\n\n  ```python\n  >>> model.score(X, y) > 0.8\n  True\n  ```\n"
    )
    assert run_page(page) == ["page.md:13: there is no no_such_library"]
