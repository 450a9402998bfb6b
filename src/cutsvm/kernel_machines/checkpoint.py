"""The checkpoint of a fit of kernel machines: the dual vectors of all problems, from which the same fit goes on.

No bound is kept: the certificate of a dual vector is computed from the data, before the steps go on and at the end.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.driver.checkpoint_file import CheckpointFile
from cutsvm.driver.fingerprint import Fingerprint
from cutsvm.kernel_machines.context import log


@dataclass(eq=False)
class DualCheckpoint:
    """The file, and s of each problem so far."""

    path: str | os.PathLike[str]
    fingerprint: Fingerprint
    duals: dict[int, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.file = CheckpointFile(self.path, self.fingerprint)
        found = self.file.load()
        if found is None:
            return
        _, arrays, differences = found
        if differences:
            raise self.file.other_fit(differences)
        for name, s in arrays.items():
            if not (name[:1] == "s" and name[1:].isdigit() and s.dtype == np.float64 and s.ndim == 1):
                raise self.file.damaged(f"{name!r} is no dual vector")
            self.duals[int(name[1:])] = s
        log(f"going on from {self.file.name}: {len(self.duals)} dual vectors")

    def start(self, problem: int, low: Vector, high: Vector) -> Vector | None:
        """s of a problem, if there is one in the file."""
        s = self.duals.get(problem)
        if s is not None and not (s.shape == low.shape and bool(np.all((low <= s) & (s <= high)))):
            raise self.file.damaged("a dual vector does not fit the rows")
        return s

    def keep(self, problem: int, s: Vector) -> None:
        """Takes over s; writes the file if it is time."""
        self.duals[problem] = s
        if self.file.is_due:
            self._save()

    def close(self, *, converged: bool) -> None:
        """After the fit: removes the file of one that has converged, else writes what is known."""
        if converged:
            self.file.remove()
        elif self.duals:
            self._save()

    def _save(self) -> None:
        self.file.save({}, {f"s{problem}": s for problem, s in self.duals.items()})
