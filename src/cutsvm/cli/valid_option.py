"""`cutsvm train --valid FILE`: the measure of the task on rows that were not trained on."""

from __future__ import annotations

import argparse
from typing import Any

from cutsvm.cli.data import check_input
from cutsvm.cli.messages import CommandError, Messages, as_command_error, one_line, print_result
from cutsvm.cli.ranking_metric import measure_of
from cutsvm.cli.running_measures import Evaluation
from cutsvm.estimators._base import Certified
from cutsvm.estimators._predict import blocks, columns_of


def check_valid(options: argparse.Namespace) -> None:
    """Refuse, before the work, a file that is not there, and options that exclude each other."""
    if options.valid is not None:
        if options.folds is not None:
            raise CommandError("--valid measures the model, -v makes none: leave one of them out")
        check_input(options.valid, folder=True)
    elif options.metric is not None and options.folds is None:
        raise CommandError("--metric is the measure of -v FOLDS or --valid FILE: add one of them")


def evaluate_valid(options: argparse.Namespace, estimator: Certified) -> Evaluation | None:
    """The measure on the rows of `--valid`, and its lines.

    None if the rows cannot be read or measured: that is only reported, for the model is already written.
    """
    try:
        found = _evaluate(options, estimator)
    except CommandError as error:
        Messages(quiet=False).note(f"cutsvm: nothing was measured on {options.valid}: {one_line(str(error))}")
        return None
    for text in found.warnings:
        Messages(quiet=options.quiet).warn(f"{options.valid}: {text}")
    if found.text is not None and not options.json:
        for line in found.text.split("\n"):
            print_result(f"{options.valid}: {line}")
    return found


def _evaluate(options: argparse.Namespace, estimator: Certified) -> Evaluation:
    """The measure, block by block."""
    with as_command_error(options.valid):
        rows = columns_of(estimator).open(options.valid, label=options.label, zero_based=options.zero_based)
        running = measure_of(options, options.task).running(estimator)
        for block in blocks(estimator, rows):
            if block.y is None and options.task.needs_labels:
                raise CommandError(f"{options.valid}: there are no labels to compare with")
            running.add(block, None)
    if rows.ignored:
        text = f"{options.valid}: {rows.ignored} features that the model does not know were ignored"
        Messages(quiet=options.quiet).warn(text)
    return running.result()


def valid_fields(options: argparse.Namespace, found: Evaluation | None) -> dict[str, Any]:
    """The measure as a field of `--json`."""
    return {"valid": None if found is None else {"data": options.valid, **found.fields}}
