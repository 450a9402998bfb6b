"""`--metric ndcg@10`: the measure of `--task rank`, in place of the share of pairs in order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.cli.measures import Measure, PairsInOrder
from cutsvm.cli.messages import CommandError
from cutsvm.cli.running_measures import Evaluation
from cutsvm.io.models.tasks import TASKS, Task
from cutsvm.problem.ranking_measures import Metric, ranking_score


class RankingMetric(PairsInOrder):
    """NDCG or mean average precision: the mean over the queries; over folds the mean of that."""

    def __init__(self, metric: Metric) -> None:
        self.metric, self.key, self.title = metric, metric.name, metric.title

    def of_scores(self, estimator: Any, scores: Vector, y: Array, qid: Array | None) -> Evaluation:
        """The measure of these scores; qid: of each row, if there are queries."""
        try:
            found = ranking_score(scores, y, qid, metric=self.metric.name)
        except ValueError as error:  # no query to measure, or gains below 0
            return Evaluation(None, {self.key: None}, (str(error),))
        left_out = f", {found.n_left_out:,} left out" if found.n_left_out else ""
        text = f"{self.title} = {found.value:.6g} ({found.n_queries:,} queries{left_out})"
        counts = {"queries": found.n_queries, "queries_left_out": found.n_left_out}
        return Evaluation(text, {self.key: found.value, **counts})

    def cross_validated(self, folds: Sequence[Evaluation], predicted: Array, y: Array) -> Evaluation:
        values = [fold.fields[self.key] for fold in folds]
        known = [value for value in values if value is not None]
        if not known:
            raise ValueError("no fold has a query to measure")
        fields = {f"cross_validation_{self.key}": float(np.mean(known)), "of_folds": values}
        return Evaluation(f"Cross Validation {self.title} = {np.mean(known):.6g}", fields)


def measure_of(options: argparse.Namespace, task: Task) -> Measure:
    """The measure of the task, or that of `--metric`."""
    chosen: Metric | None = getattr(options, "metric", None)
    if chosen is not None and not task.has_queries:
        takers = " and ".join(other.name for other in TASKS.values() if other.has_queries)
        raise CommandError(f"--metric applies to --task {takers}, not to {task}")
    usual = chosen is None or chosen.kind == "pairs"
    measure: Measure = task.measure if usual or chosen is None else RankingMetric(chosen)
    return measure
