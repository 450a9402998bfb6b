"""`cutsvm predict`: predictions of a model for data of any size, and a measure of their quality."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np

from cutsvm._utils import memory
from cutsvm.cli.data import check_input, check_output
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.cli.predictions import Predicted, format_of_output, writer
from cutsvm.cli.ranking_metric import measure_of
from cutsvm.estimators._predict import blocks, columns_of
from cutsvm.io.files import atomic_stream
from cutsvm.io.models.model_file import SavedModel, is_model_file, load_model
from cutsvm.io.models.tasks import TASKS
from cutsvm.io.settings import read_settings, use_read_settings


@dataclass(frozen=True)
class PredictSettings:
    """Memory of predictions, in bytes."""

    usual: int = 512 << 20  # what pieces of the usual size take, with all that is computed of them
    least: int = 32 << 20


def predict(options: argparse.Namespace) -> int:
    """Read the model, then the rows in blocks: predict, write, and compare with the labels."""
    messages = Messages(quiet=options.quiet)
    options.data, options.model, options.out = _files(options.files)
    _check_output(options)
    check_input(options.model)
    with as_command_error(options.model):
        model = load_model(options.model)
    if options.probability and not hasattr(model.estimator, "predict_proba"):
        raise CommandError(
            f"{options.model}: the model has no probabilities; cutsvm train --loss logistic makes one that has"
        )
    model.estimator.n_jobs = options.n_jobs
    classes = getattr(model.estimator, "classes_", None)
    with _within(options.memory), messages.collecting_warnings():
        predicted = _Predictions(options, model)
        if options.out is None:
            for _ in predicted:
                pass
        else:
            with _output(options.out, options.format) as stream, writer(options.format, stream, classes) as write:
                for part in predicted:
                    write(part)
    _report(options, predicted, messages)
    return 0


def _files(words: list[str]) -> tuple[list[str], str, str | None]:
    """DATA, MODEL and OUT of the words `DATA... MODEL [OUT]`: MODEL is the file that starts like a model."""
    models = [place for place, word in enumerate(words) if place and _starts_like_a_model(word)]
    if len(words) < 2:
        raise CommandError("expected DATA and MODEL (see cutsvm predict --help)")
    if not models:  # a pipe, or no model at all, which is then said of the word where it would be
        if len(words) > 3:
            raise CommandError(
                f"none of {', '.join(words[1:])} is a model file: expected DATA... MODEL [OUT], several DATA only "
                "before a MODEL that is a file"
            )
        return words[:1], words[1], words[2] if len(words) == 3 else None
    place = models[-1]
    if len(models) > 1:
        first, last = words[models[0]], words[place]
        if os.path.samefile(first, last):
            raise CommandError(f"{last}: is an input, it would be overwritten")
        raise CommandError(
            f"{first} and {last} are both model files: which one is MODEL? Only OUT follows it, and OUT is no model"
        )
    if len(words) > place + 2:
        raise CommandError(
            f"{words[place]} is the model, and {' '.join(words[place + 1 :])} follow: expected one OUT, and DATA first"
        )
    return words[:place], words[place], words[place + 1] if len(words) == place + 2 else None


def _starts_like_a_model(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and is_model_file(path)
    except OSError:
        return False


def _check_output(options: argparse.Namespace) -> None:
    options.probability = options.probability or options.b == "1"
    options.format = format_of_output(options.out, options.format)
    if options.scores and options.probability and options.format == "text":
        raise CommandError(
            "--scores and --probability write different numbers to OUT: leave one of them out; Parquet and Arrow have "
            "room for both"
        )
    for name in ("probability", "scores", "keep"):
        if getattr(options, name) and options.out is None:
            what = {"probability": "the probabilities", "scores": "the decision values", "keep": "the predictions"}
            raise CommandError(f"--{name} needs OUT, the file for {what[name]} (- for standard output)")
    if options.out == "-" and options.json:
        raise CommandError("--json and predictions cannot both go to standard output")
    if options.out not in (None, "-"):
        check_output(options.out, [*options.data, options.model])


class _Predictions:
    """The blocks of predictions; at their end the measure and the number of rows are known."""

    def __init__(self, options: argparse.Namespace, model: SavedModel) -> None:
        self._options, self._estimator, self.task = options, model.estimator, TASKS[model.task]
        data = options.data if len(options.data) > 1 else options.data[0]
        given = {"label": options.label, "keep": options.keep, "zero_based": options.zero_based}
        with as_command_error(options.data[0]):
            self.source = columns_of(model.estimator).open(data, **given)
        self._measured_by = measure_of(options, self.task)
        self.measure = self._measured_by.running(model.estimator)
        self.rows, self.labelled = 0, True

    def __iter__(self) -> Iterator[Predicted]:
        options, task = self._options, self.task
        with as_command_error(self.source.name):
            for block in blocks(self._estimator, self.source):
                self.labelled = block.y is not None
                if not self.labelled and options.out is None and task.needs_labels:
                    raise CommandError(
                        f"{self.source.name}: there are no labels to compare with: name OUT, a file for the "
                        "predictions, or - for standard output"
                    )
                found = self._predicted(block.X, block.kept)
                if self.labelled or not task.needs_labels:
                    values = found.labels if self._measured_by.uses_labels else found.scores
                    self.measure.add(block, values)
                self.rows += found.rows
                yield found

    def _predicted(self, X: Any, kept: Any) -> Predicted:
        """What is written, and what the measure needs."""
        options, task, estimator = self._options, self.task, self._estimator
        as_text = options.format == "text"
        scores = labels = chances = None
        if options.scores or task.predicts_scores:
            scores = task.scores(estimator, X)
        if options.probability:
            chances = np.asarray(estimator.predict_proba(X))
        if scores is None or not as_text:
            labels = np.asarray(estimator.predict(X))
        return Predicted(labels, scores, chances, kept)


@contextmanager
def _output(path: str, kind: str) -> Iterator[BinaryIO]:
    """The stream to write to; a file is complete or does not exist."""
    try:
        if path != "-":
            with atomic_stream(path, unnamed=True) as stream:
                yield stream
        elif kind == "text":
            yield cast("BinaryIO", _TextOutput())
        else:
            yield sys.stdout.buffer
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write the predictions to {path}: {error.strerror or error}", 1) from error


class _TextOutput(io.RawIOBase):
    """Standard output, which may be another stream of text than the one of the process."""

    def writable(self) -> bool:
        return True

    def write(self, piece: Any, /) -> int:
        return sys.stdout.write(bytes(piece).decode("utf-8"))


@contextmanager
def _within(limit: str | None) -> Iterator[None]:
    """Read in pieces that fit the limit, as `--memory` states it."""
    if limit is None:
        yield
        return
    use = PredictSettings()
    with as_command_error():
        room = memory.parse_limit(limit)
        if room < use.least:
            least = memory.format_bytes(use.least)
            raise CommandError(f"--memory {limit}: too little to read a block; expected at least {least}")
    with use_read_settings(read_settings().scaled(room / use.usual)):
        yield


def _report(options: argparse.Namespace, predicted: _Predictions, messages: Messages) -> None:
    """Print the measure, or that there is none."""
    quality, name = predicted.measure.result(), predicted.source.name
    if predicted.source.ignored:
        messages.warn(f"{name}: {predicted.source.ignored} features that the model does not know were ignored")
    for column, many in predicted.source.unseen.items():
        messages.warn(f"{name}: column {column!r}: {many:,} rows have a text that did not occur in training")
    for text in quality.warnings:
        messages.warn(text)
    if not predicted.labelled and predicted.task.needs_labels:
        messages.note(f"{name}: {predicted.rows:,} rows without labels to compare with")
    if options.json:
        data = options.data[0] if len(options.data) == 1 else options.data
        files = {"data": data, "model": options.model, "out": options.out}
        print_json({**quality.fields, "rows": predicted.rows, "ignored": predicted.source.ignored, **files})
    elif quality.text is not None and not options.quiet:
        for line in quality.text.split("\n"):
            (messages.note if options.out == "-" else print_result)(line)
