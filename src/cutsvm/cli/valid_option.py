"""`cutsvm train --valid FILE`: the measure of the task on rows that were not trained on."""

from __future__ import annotations

import argparse
from copy import copy
from typing import Any

from cutsvm.cli.data import check_input, read_for_model
from cutsvm.cli.measures import Evaluation
from cutsvm.cli.messages import CommandError, Messages, as_command_error, one_line, print_result
from cutsvm.cli.ranking_metric import measure_of
from cutsvm.estimators._base import Certified
from cutsvm.io.dataset import Dataset
from cutsvm.io.models.model_file import SavedModel


def check_valid(options: argparse.Namespace) -> None:
    """Refuse, before the work, a file that is not there, and options that exclude each other."""
    if options.valid is not None:
        if options.folds is not None:
            raise CommandError("--valid measures the model, -v makes none: leave one of them out")
        check_input(options.valid, folder=True)
    elif options.metric is not None and options.folds is None:
        raise CommandError("--metric is the measure of -v FOLDS or --valid FILE: add one of them")


def evaluate_valid(options: argparse.Namespace, estimator: Certified, data: Dataset) -> Evaluation | None:
    """The measure on the rows of `--valid`, and its lines; data: those of the training, whose features it has.

    None if the rows cannot be read or measured: that is only reported, for the model is already written.
    """
    try:
        found = _evaluate(options, estimator, data)
    except CommandError as error:
        Messages(quiet=False).note(f"cutsvm: nothing was measured on {options.valid}: {one_line(str(error))}")
        return None
    for text in found.warnings:
        Messages(quiet=options.quiet).warn(f"{options.valid}: {text}")
    if found.text is not None and not options.json:
        for line in found.text.split("\n"):
            print_result(f"{options.valid}: {line}")
    return found


def _evaluate(options: argparse.Namespace, estimator: Certified, data: Dataset) -> Evaluation:
    twin = copy(estimator)  # reading takes the feature names from it
    saved = SavedModel(twin, data.zero_based, data.feature_ids, options.task.name)
    rows = read_for_model(options.valid, saved, options.zero_based, options.label)
    if rows.ignored:
        text = f"{options.valid}: {rows.ignored} features that the model does not know were ignored"
        Messages(quiet=options.quiet).warn(text)
    with as_command_error(options.valid):
        found: Evaluation = measure_of(options, options.task).evaluate(twin, rows)
    return found


def valid_fields(options: argparse.Namespace, found: Evaluation | None) -> dict[str, Any]:
    """The measure as a field of `--json`."""
    return {"valid": None if found is None else {"data": options.valid, **found.fields}}
