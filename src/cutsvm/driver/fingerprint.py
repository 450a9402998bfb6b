"""What a fit is of, in a few words: enough to tell whether a checkpoint belongs to the same data and parameters.

Every value counts: there is a hash of each row (`core/sweep.hpp`), and one SHA-256 of these, of the labels, of the
weights and of the queries. The hash of a row is the same dense or sparse, as float32 or float64, in memory or on disk.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from cutsvm._utils.types import Array
from cutsvm._utils.validation import parts
from cutsvm.matrix import DenseRows, SparseRows, StoreRows, WholeRows
from cutsvm.problem.parted import PartedRows

_WORDS = {
    "X": "X has other values",
    "y": "y has other labels",
    "weights": "the weights are others (sample_weight, class_weight)",
    "queries": "the queries are others",
}

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Fingerprint:
    """The parameters that make the problem, with the shape of the data; and hashes of the data.

    store: the name of the store that the rows come from, if they do.
    """

    settings: dict[str, Scalar]
    hashes: dict[str, str]
    store: str | None = None

    def differences(self, there: Any) -> list[str]:
        """What is different in the header of a checkpoint, in words."""
        settings, hashes = there.get("settings"), there.get("hashes")
        if not isinstance(settings, dict) or not isinstance(hashes, dict):
            return ["it does not say of what it is"]
        names = dict.fromkeys([*self.settings, *settings])
        found = [
            f"{name} {_shown(settings.get(name))} there, {_shown(self.settings.get(name))} here"
            for name in names
            if settings.get(name) != self.settings.get(name)
        ]
        # Of data of another size all hashes are others, too.
        if not found:
            found = [words for name, words in _WORDS.items() if self.hashes.get(name) != hashes.get(name)]
        return found

    def is_earlier_version(self, there: Any) -> bool:
        """Whether a checkpoint is of the same problem with an earlier version of the same store."""
        settings = there.get("settings")
        if self.store is None or there.get("store") != self.store or not isinstance(settings, dict):
            return False
        return {**settings, "rows": 0} == {**self.settings, "rows": 0}


def of_rows(rows: WholeRows | PartedRows) -> str:
    """A hash of X: one pass over the rows, unless they are in a store that has their hashes.

    Of a collection it is one of labels and weights, too: those of its grains, which the first reading has found.
    """
    if isinstance(rows, PartedRows):
        return hashlib.sha256(b"".join(chain.from_iterable(rows.parts.facts.fingerprints))).hexdigest()
    if isinstance(rows, StoreRows) and (hashes := rows.store.hashes) is not None:
        return _digest(hashes[part] for part in parts(rows.n))
    return _digest(row_hashes(part) for _, part in rows.blocks())


def row_hashes(rows: DenseRows | SparseRows) -> Array:
    """A hash of each row."""
    out = np.empty(rows.n, dtype=np.uint64)
    rows.hashes(out)
    return out


def of_column(values: Array) -> str:
    """A hash of numbers of which there is one per row."""
    return _digest(np.asarray(values[part], dtype=np.float64) for part in parts(len(values)))


def of_labels(y: Array, classes: Array) -> str:
    """A hash of labels of any kind."""
    return _digest(np.searchsorted(classes, y[part]).astype(np.int64) for part in parts(len(y)))


def _digest(arrays: Iterable[Array]) -> str:
    found = hashlib.sha256()
    for values in arrays:
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()


def solver_name(solver: Any) -> str:
    """The solver with its settings; a function is the same one in the next process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(solver))


def _shown(value: Any) -> str:
    text = f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
