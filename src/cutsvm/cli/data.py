"""The files of the commands: reading data, checks of input and output paths, writing."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cutsvm._utils.types import Array
from cutsvm.cli.inputs import check_inputs
from cutsvm.cli.messages import CommandError, as_command_error
from cutsvm.io import Dataset, open_dataset
from cutsvm.io.files import write_atomically
from cutsvm.io.formats.svmlight import ZeroBased
from cutsvm.io.paths import format_of


def read_rows(paths: list[str], base: ZeroBased, label: str | None = None, **options: Any) -> Dataset:
    """The training data in a store, in a file or in several; options: of `open_dataset`."""
    check_inputs(paths)
    with as_command_error(paths[0]):
        return open_dataset(paths[0] if len(paths) == 1 else paths, **{"zero_based": base, "label": label, **options})


def check_input(path: str, *, folder: bool = False) -> None:
    """Raise if the path does not exist, or is a folder where no store is allowed."""
    with as_command_error(path):
        os.stat(path)
    if os.path.isdir(path) and not folder:
        raise CommandError(f"{path}: is a folder, expected a file")


def as_labels(y: Array) -> Array:
    """Labels as integers if all are whole numbers, so that 1 is shown and stored as 1 and not as 1.0."""
    if y.dtype.kind not in "iuf":
        return y
    whole = bool(np.all(np.isfinite(y)) and np.all(y == np.rint(y)) and np.all(np.abs(y) < 2**53))
    return y.astype(np.int64) if whole else y


def as_targets(data: Dataset, task: object) -> Array:
    """The labels as numbers to predict; `CommandError` names the place of the first one that is not a number."""
    y = data.y
    if y.dtype.kind in "biuf":
        return y.astype(np.float64)
    for row, value in enumerate(y.tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            # A table of text has a line of names above its rows.
            kind = format_of(data.source) if os.path.isfile(data.source) else None
            place = f"{data.source}:{row + 2}" if kind == "csv" else f"{data.source}: row {row + 1}"
            raise CommandError(f"{place}: --task {task} needs numbers as labels, got {str(value)[:40]!r}") from None
    return y.astype(np.float64)


def check_output(path: str, inputs: list[str]) -> None:
    """Raise if the path cannot be written or is one of the inputs."""
    target = Path(path)
    if target.is_dir():
        raise CommandError(f"{path}: is a folder, expected the name of a file to write")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {str(folder)!r} to write to")
    exists = target.exists()
    if exists and any(os.path.exists(source) and target.samefile(source) for source in inputs):
        raise CommandError(f"{path}: is an input, it would be overwritten")
    # A plain file is replaced by a new one in its folder; a pipe or a device is written to.
    if not os.access(target if exists and not target.is_file() else folder, os.W_OK):
        raise CommandError(f"{path}: no permission to write there", 1)


def check_picture(option: str, path: str, inputs: list[str], suffixes: tuple[str, ...]) -> None:
    """Refuse, before the work, a file with plots that cannot be drawn or written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CommandError(f"{option} needs matplotlib: pip install 'cutsvm[plot]'")
    # The suffix keeps a data file from being overwritten.
    if os.path.splitext(path)[1].lower() not in suffixes:
        names = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        raise CommandError(f"{option} {path}: expected a name that ends in {names}")
    check_output(path, inputs)


def write_output(path: str, pieces: Iterable[bytes], what: str = "") -> None:
    """Write a file, all of it or nothing; what: is written, for messages."""
    try:
        write_atomically(path, pieces)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write {what}{path}: {error.strerror}", 1) from error


def write_figure(path: str, figure: Any) -> None:
    """Write a figure of matplotlib in the format of the suffix."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=os.path.splitext(path)[1][1:].lower())
    write_output(path, [buffer.getvalue()])
