"""`cutsvm predict`: predictions of a model for a data file, and a measure of their quality."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from cutsvm._utils.text import printable
from cutsvm._utils.types import Array
from cutsvm.cli.data import check_input, check_output, read_for_model, write_output
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.cli.ranking_metric import measure_of
from cutsvm.io.models.model_file import SavedModel, load_model
from cutsvm.io.models.tasks import TASKS

_LINES_PER_PIECE = 8192


def predict(options: argparse.Namespace) -> int:
    """Read the model and the rows, predict, and compare with the labels."""
    messages = Messages(quiet=options.quiet)
    _check_output(options)
    check_input(options.model)
    with as_command_error(options.model):
        model = load_model(options.model)
    data = read_for_model(options.data, model, options.zero_based, options.label)
    if data.ignored:
        messages.warn(f"{options.data}: {data.ignored} features that the model does not know were ignored")
    with as_command_error(options.data):
        task = TASKS[model.task]
        chances = _probabilities(options, model, data.X)
        as_scores = options.scores or task.predicts_scores
        predicted = task.scores(model.estimator, data.X) if as_scores else np.asarray(model.estimator.predict(data.X))
        quality = measure_of(options, task).evaluate(model.estimator, data, None if as_scores else predicted)
    for text in quality.warnings:
        messages.warn(text)
    lines = _lines(predicted, as_scores) if chances is None else _probability_lines(model.estimator, predicted, chances)
    if options.out == "-":
        for piece in lines:
            sys.stdout.write(piece.decode("utf-8"))
    elif options.out is not None:
        write_output(options.out, lines, "the predictions to ")
    if options.json:
        files = {"data": options.data, "model": options.model, "out": options.out}
        print_json({**quality.fields, "rows": len(data.y), "ignored": data.ignored, **files})
    elif quality.text is not None and not options.quiet:
        for line in quality.text.split("\n"):
            (messages.note if options.out == "-" else print_result)(line)
    return 0


def _check_output(options: argparse.Namespace) -> None:
    options.probability = options.probability or options.b == "1"
    if options.scores and options.probability:
        raise CommandError("--scores and --probability write different numbers to OUT: leave one of them out")
    if options.probability and options.out is None:
        raise CommandError("--probability needs OUT, the file for the probabilities (- for standard output)")
    if options.scores and options.out is None:
        raise CommandError("--scores needs OUT, the file for the decision values (- for standard output)")
    if options.out == "-" and options.json:
        raise CommandError("--json and predictions cannot both go to standard output")
    if options.out not in (None, "-"):
        check_output(options.out, [options.data, options.model])


def _probabilities(options: argparse.Namespace, model: SavedModel, X: Any) -> Array | None:
    """The probabilities of the classes, if they are to be written."""
    if not options.probability:
        return None
    if not hasattr(model.estimator, "predict_proba"):
        raise CommandError(
            f"{options.model}: the model has no probabilities; cutsvm train --loss logistic makes one that has"
        )
    return np.asarray(model.estimator.predict_proba(X))


def _probability_lines(estimator: Any, predicted: Array, chances: Array) -> Iterator[bytes]:
    """As LIBLINEAR: a line `labels` with the classes, then of each row its label and their probabilities."""
    classes = " ".join(map(_label, estimator.classes_.tolist()))
    yield f"labels {classes}\n".encode("utf-8", "backslashreplace")
    for start in range(0, len(chances), _LINES_PER_PIECE):
        part = slice(start, start + _LINES_PER_PIECE)
        rows = zip(predicted[part].tolist(), chances[part].tolist(), strict=True)
        lines = (f"{_label(label)} {' '.join(map(repr, row))}\n" for label, row in rows)
        yield "".join(lines).encode("utf-8", "backslashreplace")


def _lines(predicted: Array, as_scores: bool) -> Iterator[bytes]:
    """One label a line, whole numbers as 1 and not as 1.0; or one line of scores a row, exact to the last bit."""
    rows = predicted.reshape(len(predicted), -1) if as_scores else predicted
    for start in range(0, len(rows), _LINES_PER_PIECE):
        part = rows[start : start + _LINES_PER_PIECE].tolist()
        lines = (" ".join(map(repr, row)) if as_scores else _label(row) for row in part)
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _label(value: Any) -> str:
    # A text may hold a line break or an escape sequence for the terminal.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else printable(str(value))
