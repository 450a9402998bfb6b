"""Reading data for the commands, and refusing to write over what is not ours."""

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

__all__ = ["as_labels", "check_source", "check_target", "read_like", "read_rows", "zero_based"]

Base = bool | Literal["auto"]


def zero_based(option: str) -> Base:
    """`--zero-based` as the reader takes it."""
    return "auto" if option == "auto" else option == "1"


def read_rows(paths: list[str], base: Base, label: str | None = None) -> Dataset:
    """The rows of one or several files or of a store, to train on."""
    from cutsvm.io import open_dataset, read_svmlight

    for path in paths:
        check_source(path, folder=len(paths) == 1)
    with as_command_error(paths[0]):
        if len(paths) == 1:
            return open_dataset(paths[0], zero_based=base, label=label)
        if label is not None:
            raise CommandError("--label belongs to one table; several files are svmlight, with labels in front")
        return read_svmlight(paths, zero_based=base)


def read_like(path: str, model: SavedModel, base: Base, label: str | None = None) -> Dataset:
    """The rows of a file with the features, and the base, that the model was trained with."""
    from cutsvm.io import open_dataset, read_svmlight
    from cutsvm.io.open import format_of

    if base == "auto" and model.zero_based is not None:
        base = model.zero_based
    check_source(path, folder=True)
    with as_command_error(path):
        if label is not None or format_of(path) != "svmlight":
            return _in_order(open_dataset(path, label=label), model.estimator)
        return read_svmlight(
            path,
            zero_based=base,
            n_features=model.estimator.n_features_in_,
            feature_ids=model.feature_ids,
            extra="ignore",
        )


def _in_order(data: Dataset, estimator: Any) -> Dataset:
    """The data with their columns in the order that the model knows, by their names if both have some."""
    names = vars(estimator).pop("feature_names_in_", None)  # an array has none, and scikit-learn would ask for them
    if names is None or data.feature_names is None or list(names) == data.feature_names:
        return data
    missing = [name for name in names if name not in data.feature_names]
    if missing:
        raise CommandError(f"{data.source}: there is no column {missing[0]!r}, which the model was trained with")
    order = [data.feature_names.index(name) for name in names]
    return data.with_columns(order)


def check_source(path: str, *, folder: bool = False) -> None:
    """A missing file or, where it cannot be a store, a folder, in the same words for every command."""
    with as_command_error(path):
        os.stat(path)
    if os.path.isdir(path) and not folder:
        raise CommandError(f"{path}: is a folder, expected a file")


def as_labels(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as integers where they are whole numbers, so that 1 is shown and stored as 1 and not as 1.0."""
    if y.dtype.kind not in "iuf":
        return y
    whole = bool(np.all(np.isfinite(y)) and np.all(y == np.rint(y)) and np.all(np.abs(y) < 2**53))
    return y.astype(np.int64) if whole else y


def check_target(path: str, sources: list[str]) -> None:
    """Refuse, before the work, a file that cannot be written or that is one of the inputs."""
    target = Path(path)
    if target.is_dir():
        raise CommandError(f"{path}: is a folder, expected the name of a file to write")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {str(folder)!r} to write to")
    there = target.exists()
    if there and any(os.path.exists(source) and target.samefile(source) for source in sources):
        raise CommandError(f"{path}: is an input, it would be written over")
    # A new file beside takes the place of a plain file; a pipe or a device is written to as it is.
    if not os.access(target if there and not target.is_file() else folder, os.W_OK):
        raise CommandError(f"{path}: no permission to write there", 1)
