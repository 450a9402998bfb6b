"""`cutsvm train --report FILE.html`: the model as an HTML page."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Any

from cutsvm.cli.data import as_labels, check_picture
from cutsvm.cli.messages import CommandError, Messages, as_command_error
from cutsvm.display.report import write_report as write
from cutsvm.display.report.context import Origin
from cutsvm.estimators._base import Certified
from cutsvm.io.dataset import Dataset, StoredDataset

_TRAINED_ON = (
    "Measured on the training rows, on which the model does better than on new ones: cutsvm train -v 5 and "
    "cutsvm predict measure it on new rows."
)
_ON_DISK = "The rows stayed on disk, so nothing was measured on them: use cutsvm predict."


def check_report(options: argparse.Namespace, target: str, inputs: list[str]) -> None:
    """Refuse, before the work, a report that cannot be drawn or written."""
    if options.folds is not None:
        raise CommandError("--report is of one model, -v writes none: leave one of them out")
    check_picture("--report", options.report, inputs, (".html", ".htm"))
    for name, other in (("MODEL", target), ("--checkpoint", options.checkpoint)):
        if other is not None and os.path.realpath(options.report) == os.path.realpath(other):
            raise CommandError(f"{options.report}: {name} and --report are one file, expected two")


def write_report(options: argparse.Namespace, estimator: Certified, data: Dataset, model: str, seconds: float) -> bool:
    """Write the page and return whether that succeeded. A failure is only reported: the model is already written."""
    on_disk = isinstance(data, StoredDataset) and not data.loaded
    origin = Origin(
        command=shlex.join(["cutsvm", *options.words]),
        model=model,
        shape=data.shape,
        entries=data.entries,
        seconds=seconds,
        remark=_ON_DISK if on_disk else _TRAINED_ON,
    )
    X = None if on_disk else data.with_labels(as_labels(data.y))
    given = {"feature_names": _feature_names(data), "source": data.source, "origin": origin}
    try:
        with as_command_error(options.report):
            write(estimator, X, None, file=options.report, **given)
    except (CommandError, KeyboardInterrupt) as error:
        Messages(quiet=False).note(f"cutsvm: no report was written: {str(error) or 'interrupted'}")
        return False
    return True


def _feature_names(data: Dataset) -> Sequence[Any] | None:
    """The names of the features in the file, or their indices."""
    if data.feature_ids is not None:
        ids: list[int] = data.feature_ids.tolist()
        return ids
    if data.feature_names is not None or data.zero_based is None:
        return data.feature_names
    first = 0 if data.zero_based else 1
    return range(first, first + data.shape[1])
