"""`cutsvm train --report FILE.html`: the model as a page."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
from typing import TYPE_CHECKING, Any

from cutsvm.cli.data import as_labels, check_target
from cutsvm.cli.messages import CommandError, Messages, as_command_error
from cutsvm.io.dataset import StoredDataset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cutsvm.estimators._base import Certified
    from cutsvm.io.dataset import Dataset

__all__ = ["check_report", "write_report"]

_TRAINED_ON = (
    "Measured on the rows that the model was trained on, on which it does better than on new ones: "
    "cutsvm train -v 5 and cutsvm predict tell how well it does on those."
)
_ON_DISK = "The rows stayed on disk, so nothing was measured on them: cutsvm predict does that."


def check_report(options: argparse.Namespace, target: str, sources: list[str]) -> None:
    """What cannot be drawn or written is better said before the work."""
    if options.folds is not None:
        raise CommandError("--report is of one model, -v writes none: leave one of them out")
    if importlib.util.find_spec("matplotlib") is None:
        raise CommandError("--report needs matplotlib: pip install 'cutsvm[plot]'")
    # By its name, too: so it cannot be a data file that is written over.
    if os.path.splitext(options.report)[1].lower() not in (".html", ".htm"):
        raise CommandError(f"--report {options.report}: expected a name that ends in .html")
    for name, other in (("MODEL", target), ("--checkpoint", options.checkpoint)):
        if other is not None and os.path.realpath(options.report) == os.path.realpath(other):
            raise CommandError(f"{options.report}: {name} and --report are one file, expected two")
    check_target(options.report, sources)


def write_report(options: argparse.Namespace, estimator: Certified, data: Dataset, model: str, seconds: float) -> bool:
    """Write the page; whether that went well. The model is safe by then, so it is said and no more."""
    from cutsvm.display.report import written
    from cutsvm.display.report.context import Origin

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
            written(estimator, X, None, file=options.report, **given)
    except (CommandError, KeyboardInterrupt) as error:
        Messages(quiet=False).note(f"cutsvm: there is no report: {str(error) or 'interrupted'}")
        return False
    return True


def _feature_names(data: Dataset) -> Sequence[Any] | None:
    """What the file calls its features: by name, or by index."""
    if data.feature_ids is not None:
        ids: list[int] = data.feature_ids.tolist()
        return ids
    if data.feature_names is not None or data.zero_based is None:
        return data.feature_names
    first = 0 if data.zero_based else 1
    return range(first, first + data.shape[1])
