"""The log and the progress bar."""

from __future__ import annotations

import copy
import io
import logging
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sklearn.base import clone

from cutsvm import LinearSVC
from cutsvm.display.callbacks import Log, ProgressBar, decades, describe


@dataclass(frozen=True)
class Line:
    """As much of a Record as the displays use."""

    iteration: int = 3
    seconds: float = 0.5
    primal: float = 2.0
    lower: float = 1.0
    gap: float = 0.5
    planes: int = 4
    passes: int = 6
    tol: float = 1e-3
    label: str = ""
    note: str = ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The package's logger without handlers, restored afterwards."""
    found = logging.getLogger("cutsvm")
    before = found.level, found.handlers[:], found.propagate
    found.setLevel(logging.NOTSET)
    found.handlers.clear()
    yield found
    found.setLevel(before[0])
    found.handlers[:], found.propagate = before[1], before[2]


def test_describe() -> None:
    assert describe(Line()) == (
        "iteration    3  objective 2.000000e+00  bound 1.000000e+00  gap 5.00e-01  4 planes  6 passes  0.50 s"
    )
    assert describe(Line(label="7")).startswith("class 7 against the rest: iteration")


def test_log_reaches_stderr_without_any_setup(logger: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logger.propagate = False  # pytest has handlers at the root
    log = Log()
    log(Line())
    log(Line(iteration=4))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == describe(Line()) + "\n" + describe(Line(iteration=4)) + "\n"


def test_log_uses_the_programs_own_setup(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    Log()(Line())
    assert [record.name for record in caplog.records] == ["cutsvm"]
    assert logger.handlers == []
    logger.setLevel(logging.ERROR)
    Log()(Line())
    assert len(caplog.records) == 1
    assert capsys.readouterr().err == ""


def test_decades() -> None:
    assert decades(1.0, 0.1, 1e-3) == pytest.approx((1, 3))
    assert decades(1.0, 1e-9, 1e-3) == pytest.approx((3, 3))
    assert decades(1.0, 5.0, 1e-3) == pytest.approx((0, 3))
    assert decades(math.inf, 0.1, 1e-3) == pytest.approx((1, 3))
    assert decades(0.1, 0.01, 1e-3) == pytest.approx((1, 2))
    assert decades(1.0, math.nan, 1e-3) == pytest.approx((0, 3))
    assert decades(math.nan, 0.1, 1e-3) == pytest.approx((1, 3))
    assert decades(1e-5, 1e-5, 1e-3) == (0, 0)
    assert decades(0.0, 0.0, 1e-3)[1] == 0


def test_plain_output_is_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("cutsvm.display.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    with ProgressBar(stream=stream, every=5) as bar:
        for second in range(12):
            now[0] = float(second)
            assert bar(Line(iteration=second)) is None
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == ["5", "10", "11"]


def test_the_last_line_is_not_printed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    bar = ProgressBar(stream=stream, every=0)
    bar(Line())
    bar.close()
    bar.close()
    assert stream.getvalue().count("\n") == 1
    with ProgressBar(stream=stream):
        pass
    assert stream.getvalue().count("\n") == 1


def test_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with ProgressBar(stream=stream) as bar:
        bar(Line(gap=1.0))
        bar(Line(gap=0.01, label="[red]"))
        bar(Line(gap=0.0, label="b"))
        bar(Line(gap=1e-4, label="c"))
    shown = stream.getvalue()
    assert "gap 1.0e-04" in shown and "6 passes" in shown
    assert "nan" not in shown
    assert shown.count("\x1b[?25h") == 1  # the cursor is shown again, once
    bar.close()
    assert stream.getvalue() == shown


def test_bar_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar(Line())
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == describe(Line()) + "\n"


def test_one_bar_per_problem_without_a_context() -> None:
    stream = io.StringIO()
    bar = ProgressBar(stream=stream)
    for label in "ab":
        bar(Line(label=label))
        bar(Line(label=label, gap=1e-4))
    assert [line.split(":")[0] for line in stream.getvalue().splitlines()] == [
        "class a against the rest",
        "class b against the rest",
    ]


def test_a_bar_can_be_copied_while_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar(stream=Terminal(), every=7) as bar:
        bar(Line())
        twin = pickle.loads(pickle.dumps(copy.deepcopy(bar)))
    assert twin.every == 7
    assert clone(LinearSVC(callbacks=[bar])).callbacks[0].every == 7


def test_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with ProgressBar(stream=stream) as bar:
        bar(Line())
    assert stream.getvalue() == describe(Line()) + "\n"


def test_verbose_logs_every_iteration(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="cutsvm"):
        model = LinearSVC(verbose=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert len(caplog.records) == 1 + len(model.history_)  # what was chosen comes first
    assert "gap" in caplog.text
