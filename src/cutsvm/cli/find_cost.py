"""`cutsvm train -C`: the best C by cross-validation, as LIBLINEAR's `train -C`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cutsvm.cli.messages import CommandError, flag
from cutsvm.io.models.tasks import TASKS, load


@dataclass(frozen=True)
class SearchSettings:
    """LIBLINEAR's: folds, and C doubled from that of -c up to `highest`."""

    folds: int = 5
    ratio: float = 2.0
    highest: float = 1024.0

    def costs(self, first: float) -> list[float]:
        found = [first]
        while found[-1] * self.ratio <= self.highest:
            found.append(found[-1] * self.ratio)
        return found


def find_cost(options: argparse.Namespace, settings: SearchSettings | None = None) -> int:
    """Run `cutsvm path -v`: 10 C that suit the data, or from that of -c on. A model is written if MODEL is stated."""
    settings = settings or SearchSettings()
    if options.task.path is None:
        known = ", ".join(task.name for task in TASKS.values() if task.path is not None)
        raise CommandError(f"-C finds the C of --task {known}, not of {options.task}")
    for name in ("paper", "checkpoint", "report", "valid"):
        if getattr(options, name) is not None:
            raise CommandError(f"-C cross-validates many C, {flag(name)} is for one fit: leave one of them out")
    options.folds = options.folds or settings.folds
    options.Cs = 10 if options.cost is None else settings.costs(options.cost)
    options.scoring = options.plot = None
    options.format = None if options.model is None else options.format
    return int(load("cutsvm.cli.path:path")(options))  # it imports the module of train
