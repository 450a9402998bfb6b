"""`cutsvm predict`: a data file and a model in, predictions and how good they are out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cutsvm._utils.text import printable
from cutsvm.cli.data import check_source, check_target, read_like, zero_based
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, result
from cutsvm.cli.tasks import Measure, measure, predictions

__all__ = ["predict"]

_LINES_PER_PIECE = 8192


def predict(options: argparse.Namespace) -> int:
    """Read the model and the rows, predict, compare with the labels."""
    from cutsvm.io.models.model_file import load_model

    say = Messages(quiet=options.quiet)
    _check_output(options)
    check_source(options.model)
    with as_command_error(options.model):
        model = load_model(options.model)
    data = read_like(options.data, model, zero_based(options.zero_based), options.label)
    if data.ignored:
        say.warn(f"{options.data}: {data.ignored} features that the model does not know were ignored")
    with as_command_error(options.data):
        predicted = predictions(model.task, model.estimator, data.X, scores=options.scores)
        as_scores = options.scores or model.task in ("rank", "roc")
        good = measure(model.task, model.estimator, data, say, None if as_scores else predicted)
    if options.out is not None:
        _write(options.out, _score_lines(predicted) if as_scores else _label_lines(predicted))
    _report(options, good, len(data.y), data.ignored)
    return 0


def _check_output(options: argparse.Namespace) -> None:
    if options.scores and options.out is None:
        raise CommandError("--scores needs OUT, the file for the decision values (- for standard output)")
    if options.out == "-" and options.json:
        raise CommandError("--json and predictions cannot both go to standard output")
    if options.out not in (None, "-"):
        check_target(options.out, [options.data, options.model])


def _label_lines(predicted: npt.NDArray[Any]) -> Iterator[bytes]:
    """One label a line: 1 and not 1.0 where it is a whole number."""
    for start in range(0, len(predicted), _LINES_PER_PIECE):
        part = predicted[start : start + _LINES_PER_PIECE].tolist()
        yield "".join(f"{_label(value)}\n" for value in part).encode("utf-8", "backslashreplace")


def _label(value: Any) -> str:
    # A text may hold a line break, which would make two lines of it, or an escape sequence for the terminal.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else printable(str(value))


def _score_lines(scores: npt.NDArray[np.float64]) -> Iterator[bytes]:
    """One line of decision values a row, exact to the last bit."""
    rows = scores.reshape(len(scores), -1)
    for start in range(0, len(rows), _LINES_PER_PIECE):
        part = rows[start : start + _LINES_PER_PIECE].tolist()
        yield "".join(" ".join(map(repr, row)) + "\n" for row in part).encode("ascii")


def _write(out: str, lines: Iterator[bytes]) -> None:
    from cutsvm.io.atomic import write_atomically

    if out == "-":
        for piece in lines:
            sys.stdout.write(piece.decode("utf-8"))
        return
    try:
        write_atomically(out, lines)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write the predictions to {out}: {error.strerror}", 1) from error


def _report(options: argparse.Namespace, good: Measure, total: int, ignored: int) -> None:
    if options.json:
        files = {"data": options.data, "model": options.model, "out": options.out}
        print_json({**good.facts, "rows": total, "ignored": ignored, **files})
    elif good.words is not None and not options.quiet:
        if options.out == "-":
            Messages(quiet=False).note(good.words)
        else:
            result(good.words)
