"""Shared by all fuzzing targets."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm.io.dataset import Dataset
from tests.fuzz.mutate import mutate_bytes, mutate_text

__all__ = ["Target", "WrongAcceptanceError", "check_dataset", "require", "same_matrix"]


class WrongAcceptanceError(Exception):
    """Something was accepted that is not what the file says, or refused that had to be accepted."""


def require(holds: Any, what: str) -> None:
    if not holds:
        raise WrongAcceptanceError(what)


class Target:
    """A reader. `make` makes an input; `check` gives it to the package: True accepted, False refused.

    `check` raises nothing but findings: the package's own errors are refusals only if they name the file.
    """

    name = ""
    suffix = ""
    text = False
    refusals: tuple[type[Exception], ...] = (DataError,)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / f"input{self.suffix}"
        self.seeds = self.make_seeds()

    def make_seeds(self) -> list[bytes]:
        raise NotImplementedError

    def make(self, random: Random) -> bytes:
        mutate = mutate_text if self.text else mutate_bytes
        return mutate(random, random.choice(self.seeds), self.seeds)

    def check(self, data: bytes) -> bool:
        self.path.write_bytes(data)
        try:
            self.read(data)
        except self.refusals as error:
            require(
                os.fspath(self.path) in str(error) and len(str(error)) < 5000, f"a clear message, not {error!r:.200}"
            )
            return False
        return True

    def read(self, data: bytes) -> None:
        """Reads the file, and compares what comes back with an independent reader."""
        raise NotImplementedError


def check_dataset(data: Dataset) -> None:
    """What every data set promises: shapes agree, CSR is valid and in canonical form, all numbers are finite."""
    X, n = data.X, len(data.y)
    require(n > 0 and X.shape[0] == n and data.y.ndim == 1, "one label per row")
    require(X.dtype in (np.float32, np.float64), "float32 or float64")
    require(data.y.dtype.kind in "iufbUO" and (data.y.dtype.kind != "f" or np.isfinite(data.y).all()), "usable labels")
    if hasattr(X, "indptr"):
        pointers, columns = X.indptr.astype(object), X.indices
        require(len(pointers) == n + 1 and pointers[0] == 0 and pointers[-1] == len(columns) == len(X.data), "pointers")
        require(all(a <= b for a, b in pairwise(pointers)), "rising pointers")
        require(not len(columns) or 0 <= columns.min() <= columns.max() < X.shape[1], "columns inside the shape")
        rows = np.repeat(np.arange(n), np.diff(X.indptr))
        if len(columns) > 1:
            ahead = (np.diff(rows) > 0) | (np.diff(columns.astype(np.int64)) > 0)
            require(ahead.all(), "columns of a row rise, each once")
    require(np.isfinite(X.data if hasattr(X, "indptr") else X).all(), "finite values")
    if data.weights is not None:
        require(data.weights.shape == (n,) and np.isfinite(data.weights).all() and (data.weights >= 0).all(), "weights")
    if data.qid is not None:
        require(data.qid.shape == (n,) and data.qid.dtype.kind in "iubUO", "one query per row")
    names = data.feature_names
    require(names is None or len(names) == X.shape[1], "a name for every feature")


def same_matrix(found: Any, expected: Any) -> None:
    """Equal entry by entry, in the type of what was found."""
    expected = np.asarray(expected)
    if expected.dtype == np.bool_:
        expected = expected.view(np.uint8) != 0
    with np.errstate(over="ignore"):
        require(found.shape == expected.shape, f"the shape {expected.shape}, not {found.shape}")
        require(np.array_equal(found, expected.astype(found.dtype)), "the values of the file")
