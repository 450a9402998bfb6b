"""`cutsvm train --paper NAME`: the problem, the algorithm and the stopping rule of one of the five papers.

What a paper does not say is set as its page in `docs/papers/` tells. -c is the C of the paper: two of them write C / n
in front of the sum of the losses, so that ours is theirs divided by the number of rows.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cutsvm.cli.messages import CommandError, flag

# Options that state the problem or the algorithm, by their names in the namespace: a paper sets them.
_SETTINGS = (
    "type loss solver line_search shards exact epsilon cut_at guard formulation buckets multi_class tol bias weights "
    "kernel degree coef0 average epochs"
).split()
# A gap that no fit reaches: the paper's own rule ends it.
_OWN_RULE = 1e-12


@dataclass(frozen=True)
class Paper:
    """How a paper trains.

    takes: the settings that the user may state, which are parameters of the paper. parameters: of the estimator, given
        the options and the number of rows. intercept: there is one. mean_loss: C multiplies the mean of the losses of
        the rows, not their sum.
    """

    name: str
    citation: str
    tasks: tuple[str, ...]
    takes: frozenset[str]
    parameters: Callable[[argparse.Namespace, int], dict[str, Any]]
    intercept: bool = True
    mean_loss: bool = False
    max_classes: int | None = None

    def check(self, options: argparse.Namespace) -> None:
        """Refuse options that the paper sets, and tasks that it does not have."""
        if options.task.name not in self.tasks:
            raise CommandError(f"--paper {self.name} is for --task {' and '.join(self.tasks)}, not for {options.task}")
        for name in _SETTINGS:
            given = getattr(options, name, None)
            stated = given is not None and given != [] and (name, given) != ("solver", "auto")
            if stated and name not in self.takes:
                raise CommandError(f"--paper {self.name} sets {flag(name)}: leave it out")

    def cost(self, options: argparse.Namespace, rows: int) -> float:
        """Our C. The losses of pairs have their mean in both."""
        cost: float = options.cost
        return cost / rows if self.mean_loss and not options.task.has_pairs else cost

    def check_classes(self, options: argparse.Namespace, count: int) -> None:
        """Refuse more classes than the paper has; levels of pairs may be any number."""
        if self.max_classes is not None and not options.task.has_pairs and count > self.max_classes:
            raise CommandError(f"--paper {self.name} takes two classes, here are {count}")


def _joachims(options: argparse.Namespace, rows: int) -> dict[str, Any]:
    """Algorithm 1, and Algorithm 2 for pairs: b = 0, epsilon = 0.001."""
    from cutsvm.solvers import CPA

    return {"solver": CPA(exact=True, epsilon=_or(options.epsilon, 1e-3), shards=1), "tol": _OWN_RULE}


def _franc_sonnenburg(options: argparse.Namespace, rows: int) -> dict[str, Any]:
    """Algorithm 1: b = 0, lambda = 0.1, condition (9) with the epsilon of the experiments, C / 1000."""
    from cutsvm.solvers import OCAS

    epsilon = 1e-3 * options.cost if options.epsilon is None else options.epsilon
    solver = OCAS(exact=True, epsilon=epsilon, shards=1, guard="none", cut_at=_or(options.cut_at, 0.1))
    return {"solver": solver, "tol": _OWN_RULE}


def _arnosti(options: argparse.Namespace, rows: int) -> dict[str, Any]:
    """GCA2, or TCA, GCA and OCA by --line-search: b = 0, epsilon = 0.01, every plane kept."""
    from cutsvm.solvers import OCAS
    from cutsvm.solvers.cutting_planes import PlaneSettings

    solver = OCAS(
        line_search=options.line_search or "gca2",
        safe=False,
        first_step=0.5,
        shards=1,
        guard=options.guard or "none",
        planes=PlaneSettings(qp_share=1e-6, patience=sys.maxsize),
    )
    return {"solver": solver, "tol": _or(options.tol, 0.01)}


def _bialon(options: argparse.Namespace, rows: int) -> dict[str, Any]:
    """(I2) with both mechanisms, Remark 1's rule for dispatches, a free intercept, and the stop test at exp(-12)."""
    from cutsvm.solvers import ACCPM
    from cutsvm.solvers.accpm.solver import ACCPMSettings
    from cutsvm.solvers.bucketing.buckets import BucketSettings

    solver = ACCPM(
        formulation=options.formulation or "I2",
        buckets=16 if options.buckets is None else options.buckets,
        one_radius=True,
        epsilon=_or(options.epsilon, math.exp(-12.0)),
        settings=ACCPMSettings(buckets=BucketSettings(only_if_it_pays=False)),
    )
    return {"solver": solver, "tol": _OWN_RULE}


def _melki(options: argparse.Namespace, rows: int) -> dict[str, Any]:
    """NL-SGD: the shuffled rows in turn, lambda = 1/C, the mean of the last half of the updates."""
    from cutsvm.kernel_machines import SGD

    # The paper has five epochs for up to 366 rows, two for its sets of 997 and 2,427, and one from 5,620 on.
    epochs = 5 if rows < 500 else 2 if rows < 5000 else 1
    return {
        "solver": SGD(step="1/m", C_times="mean"),
        "epochs": epochs if options.epochs is None else options.epochs,
        "average": _or(options.average, 0.5),
    }


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


_FOUND = (
    Paper(
        "joachims",
        "T. Joachims, Training linear SVMs in linear time, KDD 2006",
        ("classify", "rank", "roc", "ordinal"),
        frozenset({"epsilon"}),
        _joachims,
        intercept=False,
        mean_loss=True,
        max_classes=2,
    ),
    Paper(
        "franc-sonnenburg",
        "V. Franc and S. Sonnenburg, Optimized cutting plane algorithm for support vector machines, ICML 2008",
        ("classify",),
        frozenset({"epsilon", "cut_at"}),
        _franc_sonnenburg,
        intercept=False,
        mean_loss=True,
        max_classes=2,
    ),
    Paper(
        "arnosti",
        "N. Arnosti, Reducing training time for linear SVMs, 2010",
        ("classify",),
        frozenset({"tol", "line_search", "guard"}),
        _arnosti,
        intercept=False,
    ),
    Paper(
        "bialon",
        "P. Bialon, A linear support vector machine solver for a large number of training examples, 2009",
        ("classify",),
        frozenset({"epsilon", "formulation", "buckets"}),
        _bialon,
        max_classes=2,
    ),
    Paper(
        "melki",
        "G. Melki and V. Kecman, Speeding up online training of L1 support vector machines, 2016",
        ("kernel",),
        frozenset({"average", "epochs"}),
        _melki,
    ),
)
PAPERS = {paper.name: paper for paper in _FOUND}
