"""Ranking: time to a given accuracy beside dlib and explicit pairs, time of the loss, and quality on MQ2008.

    python benchmarks/ranking.py [--sets letor_mq2008,abalone-10] [--C 1e2,1e4] [--gaps 1e-2,1e-3]
    python benchmarks/ranking.py --only loss,quality
    python benchmarks/ranking.py --quick                  # small sets, into a temporary folder

The steps, the measure and most options of the first part are those of binary.py; C multiplies the mean over the pairs.
Writes results/ranking.csv, ranking_loss.csv, ranking_quality.csv, ranking.md and ranking.png.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import data
import ranking_data
import ranking_report
from binary import FIELDS, OURS, Problem, parser, words, write
from peers import CORES, Answer, Verdict
from provenance import write_rows
from ranking_data import LETOR, ORDINAL, SYNTHETIC, RankSet
from ranking_peers import OWN, PEERS, RankWorker, judge

Row = dict[str, Any]
SECTIONS = ("time", "loss", "quality")
LARGER = ORDINAL[:6]
MANY = 500_000  # sets with so many rows run at the last C only
DEFAULTS = {
    "sets": [*LETOR, *(f"{name}-{levels}" for name in LARGER for levels in (2, 10)), *SYNTHETIC],
    "C": [1e2, 1e4],
    "gaps": [1e-2, 1e-3],
    "solver": list(OWN),
    "peers": [name for name in PEERS if name != OURS],
    "name": "ranking",
    # Together these keep all of it within twelve minutes.
    "time_limit": 20.0,
    "repeat": 3,
    "repeat_limit": 3.0,
    "patience": 3.0,
}
QUICK = {
    "sets": ["letor_mq2008:2000", "stock-2", "stock-10", "abalone-10", "one-1e5-2:20000", "many-1e6-5:10000"],
    "C": [1e2],
    "time_limit": 2.0,
    "repeat": 1,
}
QUALITY_SET = "letor_mq2008"
COSTS = (1.0, 10.0, 100.0, 1e3, 1e4)
ALPHAS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)


class RankProblem(Problem):
    """One ranking set and one C. The field `Cn` holds C: in both benchmarks that is the weight of the mean loss."""

    kinds = PEERS
    fields = (*FIELDS, "queries", "levels", "pairs", "making")

    def __init__(self, dataset: Any, C: float, workers: dict[str, Any], options: Any) -> None:
        super().__init__(dataset, C, workers, options)
        self.C = C
        self.size = {"queries": dataset.queries, "levels": dataset.classes, "pairs": dataset.pairs}

    def row(self, answer: Answer) -> Row:
        return super().row(answer) | self.size | {"making": answer.claims.get("making", "")}

    def judge(self, answer: Answer) -> Verdict:
        assert answer.w is not None
        return judge(self.data, answer.w, self.C)  # type: ignore[arg-type]


def time(options: argparse.Namespace) -> None:
    """Run every problem; the CSV is rewritten after each, so that an interrupted run keeps what it has."""
    names, missing = available(options.sets, options.data)
    absent = [name for name in options.peers if not PEERS[name].installed()]
    for what, left_out in (("no file", missing), ("not installed", absent)):
        if left_out:
            print(f"Skipped, {what}: {', '.join(left_out)}.")
    rows: list[Row] = []
    for name in names:
        dataset = ranking_data.load(name, options.data)
        solvers = [OURS, *(peer for peer in options.peers if peer not in absent)]
        workers = {peer: RankWorker(peer, name, options.data) for peer in solvers}
        try:
            for C in options.C if dataset.n < MANY else options.C[-1:]:
                rows += RankProblem(dataset, float(C), workers, options).run()
                write(rows, options.out / f"{options.name}.csv", RankProblem.fields)
        finally:
            for worker in workers.values():
                worker.stop()


def available(names: list[str], folder: Path) -> tuple[list[str], list[str]]:
    """As in ranking_data, for names with a number of rows too."""
    there = set(ranking_data.available([name.partition(":")[0] for name in names], folder)[0])
    return [n for n in names if n.partition(":")[0] in there], [n for n in names if n.partition(":")[0] not in there]


def loss(options: argparse.Namespace) -> None:
    """Seconds of one evaluation of the loss, of one query, against rows, levels and threads; the rounds take turns."""
    from cutsvm.problem.losses import Pairwise

    sizes = (1_000, 10_000, 100_000) if options.quick else (10_000, 100_000, 1_000_000)
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for n, levels in product(sizes, (2, 10, 0)):
        y = rng.permutation(n).astype(np.float64) if levels == 0 else rng.integers(levels, size=n).astype(np.float64)
        scores = rng.standard_normal((2, n))
        losses = {k: Pairwise(y, np.ones(n), np.array([0, n]), k) for k in sorted({1, CORES})}
        seconds: dict[int, list[float]] = {k: [] for k in losses}
        for turn, k in product(range(2 + options.loss_repeat), losses):  # the first two rounds warm up
            start = perf_counter()
            losses[k].count(scores[turn % 2], 1.0)
            seconds[k].append(perf_counter() - start)
        for k, times in seconds.items():
            place = {"n": n, "levels": levels or n, "each": levels == 0, "threads": k}
            rows.append(place | {"seconds": median(times[2:])})
            print(*rows[-1].values(), flush=True)
    save(options.out / f"{options.name}_loss.csv", rows)


def quality(options: argparse.Namespace) -> None:
    """Ranking and regression in the same folds of queries, each with its constant chosen on the training part."""
    if not available([QUALITY_SET], options.data)[0]:
        print(f"Skipped, no file: {QUALITY_SET}.")
        return
    whole = ranking_data.load(QUALITY_SET, options.data)
    whole = whole.subset(3000) if options.quick else whole
    methods: dict[str, tuple[tuple[float, ...], Callable[[float, RankSet], Any]]] = {
        "RankingSVM": (COSTS, ranker),
        "Ridge": (ALPHAS, regression),
    }
    rows: list[Row] = []
    for fold, (train, test) in enumerate(folds(whole, 5)):
        for name, (grid, fit) in methods.items():
            inner = list(folds(train, 3))
            scores = {k: np.mean([ordered(fit(k, part), rest) for part, rest in inner]) for k in grid}
            best = max(grid, key=lambda k: scores[k])
            model = fit(best, train)
            row = {"method": name, "fold": fold, "constant": best, "queries": test.queries, "pairs": test.pairs}
            row |= {"in_order": ordered(model, test), "in_order_training": ordered(model, train)}
            row["ndcg"] = ndcg(model, test)
            rows.append(row)
            print(*row.values(), flush=True)
    save(options.out / f"{options.name}_quality.csv", rows)


def ranker(C: float, part: RankSet) -> Any:
    from cutsvm import RankingSVM

    return RankingSVM(C, n_jobs=-1, max_time=30.0).fit(part.X, part.y, qid=part.qid)


def regression(alpha: float, part: RankSet) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(alpha).fit(part.X, part.y)


def folds(whole: RankSet, k: int) -> Iterator[tuple[RankSet, RankSet]]:
    """The rows in k folds that keep queries whole: training part and rest."""
    from sklearn.model_selection import GroupKFold

    qid = whole.qid
    for parts in GroupKFold(k).split(whole.X, groups=qid):
        train, test = (ranking_data.by_query("", whole.X[rows], whole.y[rows], qid[rows]) for rows in parts)
        yield train, test


def ordered(model: Any, part: RankSet) -> float:
    """The share of all pairs that are in order, a tie as a half."""
    return ranking_data.pair_loss(np.ravel(model.predict(part.X)), part.y, part.starts)[1] / part.pairs


def ndcg(model: Any, part: RankSet) -> float:
    """NDCG@10, the mean over the queries that have pairs."""
    from sklearn.metrics import ndcg_score

    scores = np.ravel(model.predict(part.X))
    values = []
    for start, end in zip(part.starts[:-1].tolist(), part.starts[1:].tolist(), strict=True):
        y = part.y[start:end]
        if y.min() < y.max():
            values.append(ndcg_score(y[None], scores[None, start:end], k=10))
    return float(np.mean(values))


def save(path: Path, rows: list[Row]) -> None:
    write_rows(path, list(rows[0]), rows)


def arguments() -> argparse.Namespace:
    found = parser(__doc__.split("\n")[0])
    found.set_defaults(**DEFAULTS, out=None)
    found.add_argument("--only", type=words, default=list(SECTIONS), help=f"comma-separated: {', '.join(SECTIONS)}")
    found.add_argument("--loss-repeat", type=int, default=9, help="timed rounds of the loss")
    found.add_argument("--quick", action="store_true", help="small sets, and a temporary folder")
    if found.parse_known_args()[0].quick:
        found.set_defaults(**QUICK)
    options = found.parse_args()
    results = Path(__file__).parent / "results"
    options.out = options.out or (data.TEMPORARY / "quick" if options.quick else results)
    return options


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        for section in (time, loss, quality):
            if section.__name__ in options.only:
                section(options)
    ranking_report.make(options.out / f"{options.name}.csv")


if __name__ == "__main__":
    main()
