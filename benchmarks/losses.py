"""Every loss beside every peer that has it: time to a given accuracy on a long, a wide and a small set.

    python benchmarks/losses.py [--losses logistic,huber] [--shapes long,small] [--C 1e2,1e4,1e6] [--gaps 1e-2,1e-3]
    python benchmarks/losses.py --quick                  # small subsets, into a temporary folder

Everybody minimises F(w) = |w|^2/2 + C sum_i loss(f_i, y_i) without an intercept, on the same number of cores. The
steps, the measure and most options are those of binary.py. Writes results/losses.csv and losses.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import losses_data
import losses_report
from binary import FIELDS, OURS, Problem, Row, parser, words, write
from binary_report import reached
from data import DataSet
from losses_data import CLASSES, LOSSES, TARGETS, Measure
from losses_peers import PEERS, LossWorker
from peers import Answer, Peer, Setting, Verdict

DEFAULTS = {
    "sets": [],
    "solver": ["auto"],
    "peers": [name for name in PEERS if name != OURS],
    "name": "losses",
    # To end peers that are far behind early: there are 72 problems.
    "time_limit": 20.0,
    "repeat": 2,
    "repeat_limit": 2.0,
    "patience": 3.0,
}
QUICK = {"C": [1e2, 1e4], "time_limit": 5.0, "repeat": 1}
FEW = 2000  # rows of --quick
AHEAD = 1.3  # a peer's runs are repeated if they took at most this many times the best peer's seconds
SHORTEST = 2.0  # seconds that every peer gets


class LossProblem(Problem):
    """One loss, one set and one C."""

    kinds = PEERS
    fields = (*FIELDS, "loss", "shape", "reference", "cores")

    def __init__(self, dataset: DataSet, Cn: float, workers: dict[str, Any], options: Any, measure: Measure) -> None:
        super().__init__(dataset, Cn, workers, options)
        self.common = measure
        self.reference = "lower bound"

    def ascend(self, peer: Peer, variant: str, ladder: list[Setting]) -> None:
        """As in binary.py; and who comes later gets a multiple of the best peer's time to the smallest gap."""
        super().ascend(peer, variant, ladder)
        best = self.best_peer(self.gaps[-1])
        if best is not None:
            self.limit = min(self.limit, max(SHORTEST, self.options.patience * best))

    def best_peer(self, gap: float) -> float | None:
        """The fewest seconds in which a peer got within the gap so far."""
        return min((row["seconds"] for row in self.rows if reached(row, gap)), default=None)

    def bar(self, name: str, gap: float) -> float:
        bar, best = super().bar(name, gap), self.best_peer(gap)
        return bar if best is None or name in self.options.solver else min(bar, AHEAD * best)

    def judge(self, answer: Answer) -> Verdict:
        assert answer.w is not None
        verdict, bound = self.common.judge(answer.w, self.C)
        self.lower = max(self.lower, bound)
        return verdict

    def set_reference(self) -> None:
        """Without a bound as tight as a tenth of the smallest gap, the best answer of all takes its place."""
        best = min((row["objective"] for row in self.rows if row["objective"] != ""), default=0.0)
        if self.reference == "best answer" or best - self.lower > 0.1 * self.gaps[-1] * best:
            self.lower, self.reference = best, "best answer"
        super().set_reference()
        for row in self.rows:
            row["reference"] = self.reference

    def row(self, answer: Answer) -> Row:
        loss = self.data.loss
        about = {"loss": loss, "shape": losses_data.shape_of(self.data.name), "cores": self.options.cores}
        return super().row(answer) | about


def problem_names(options: argparse.Namespace) -> list[str]:
    """LOSS SET for every loss and shape that is asked for."""
    names = []
    for loss in options.losses:
        sets = TARGETS if LOSSES[loss].regression else CLASSES
        for shape in options.shapes:
            base, _, rows = sets[shape].partition(":")
            few = str(min(FEW, int(rows or FEW))) if options.quick else rows
            names.append(f"{loss} {base}:{few}" if few else f"{loss} {base}")
    return names


def solve_all(options: argparse.Namespace) -> None:
    """Run every problem; the CSV is rewritten after each, so that an interrupted run keeps what it has."""
    names, missing = losses_data.available(problem_names(options), options.data)
    absent = [name for name in (OURS, *options.peers) if not PEERS[name].installed()]
    for what, left_out in (("no file", missing), ("not installed", absent)):
        if left_out:
            print(f"Skipped, {what}: {', '.join(left_out)}.")
    rows: list[Row] = []
    for name in names:
        dataset = losses_data.load(name, options.data)
        measure = Measure(dataset)
        solvers = [peer for peer in (OURS, *options.peers) if peer not in absent and dataset.loss in PEERS[peer].losses]
        workers = {peer: LossWorker(peer, name, options.data) for peer in solvers}
        try:
            for cost in options.C:
                Cn = float(dataset.n if cost == "n" else cost)
                rows += LossProblem(dataset, Cn, workers, options, measure).run()
                write(rows, options.out / f"{options.name}.csv", LossProblem.fields)
        finally:
            for worker in workers.values():
                worker.stop()


def main() -> None:
    options_of = parser(__doc__.split("\n")[0])
    options_of.set_defaults(**DEFAULTS)
    add = options_of.add_argument
    add("--losses", type=words, default=list(LOSSES), help="comma-separated")
    add("--shapes", type=words, default=list(CLASSES), help="long, wide, small")
    add("--cores", type=int, default=1, help="cores that everybody may use")
    add("--quick", action="store_true", help=f"subsets of {FEW} rows, into a temporary folder")
    options = options_of.parse_args()
    if options.quick:
        options_of.set_defaults(**QUICK, out=Path(tempfile.mkdtemp(prefix="losses-")))
        options = options_of.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        # The processes of the solvers inherit this, and BLAS and thread pools start as many threads.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
        solve_all(options)
    losses_report.make(options.out / f"{options.name}.csv", options.gaps)


if __name__ == "__main__":
    main()
