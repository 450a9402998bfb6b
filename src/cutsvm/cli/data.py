"""Reading data for the commands, and checks of input and output paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from cutsvm.cli.messages import CommandError, as_command_error

if TYPE_CHECKING:
    from cutsvm.io.dataset import Dataset
    from cutsvm.io.models.model_file import SavedModel

__all__ = ["as_labels", "check_input", "check_output", "read_for_model", "read_rows", "zero_based"]

Base = bool | Literal["auto"]


def zero_based(option: str) -> Base:
    """The value of `--zero-based` for the reader."""
    return "auto" if option == "auto" else option == "1"


def read_rows(paths: list[str], base: Base, label: str | None = None) -> Dataset:
    """The training data in a store, in a file or in several."""
    from cutsvm.io import open_dataset, read_svmlight

    for path in paths:
        check_input(path, folder=len(paths) == 1)
    with as_command_error(paths[0]):
        if len(paths) == 1:
            return open_dataset(paths[0], zero_based=base, label=label)
        if label is not None:
            raise CommandError("--label belongs to one table; several files are svmlight, with labels in front")
        return read_svmlight(paths, zero_based=base)


def read_for_model(path: str, model: SavedModel, base: Base, label: str | None = None) -> Dataset:
    """The data of a file, its columns those of the model, its indices counted as in training."""
    from cutsvm.io import open_dataset, read_svmlight
    from cutsvm.io.open import format_of

    if base == "auto" and model.zero_based is not None:
        base = model.zero_based
    check_input(path, folder=True)
    with as_command_error(path):
        if label is not None or format_of(path) != "svmlight":
            # Arrays have no names: scikit-learn would warn if the estimator had some.
            names = vars(model.estimator).pop("feature_names_in_", None)
            return open_dataset(path, label=label).in_order_of(names)
        return read_svmlight(
            path,
            zero_based=base,
            n_features=model.estimator.n_features_in_,
            feature_ids=model.feature_ids,
            extra="ignore",
        )


def check_input(path: str, *, folder: bool = False) -> None:
    """Raise if the path does not exist, or is a folder where no store is allowed."""
    with as_command_error(path):
        os.stat(path)
    if os.path.isdir(path) and not folder:
        raise CommandError(f"{path}: is a folder, expected a file")


def as_labels(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as integers if all are whole numbers, so that 1 is shown and stored as 1 and not as 1.0."""
    if y.dtype.kind not in "iuf":
        return y
    whole = bool(np.all(np.isfinite(y)) and np.all(y == np.rint(y)) and np.all(np.abs(y) < 2**53))
    return y.astype(np.int64) if whole else y


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
