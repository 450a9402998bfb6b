"""The input of `fit` if it is a collection: Dask arrays and frames, data sets of Ray and Spark, Parquet on a cluster.

Nothing of the rows comes here but sums and samples. The `TrainingData` of a collection have y and weights of very few
rows that stand for all: one for each class with its weight, or the smallest and the largest target.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from cutsvm._utils import memory
from cutsvm._utils.types import Array, Vector
from cutsvm.cluster.open import open_parts
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.protocol import Executor, Traffic
from cutsvm.display.callbacks import Log, ensure_log_handler
from cutsvm.driver.records import RoundObserver
from cutsvm.estimators._missing_queries import warn_of_missing_queries
from cutsvm.matrix import PlaneMemory
from cutsvm.problem.parted import PartedRows

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified
    from cutsvm.estimators._ingest import TrainingData


def ingest_collection(estimator: Certified, X: Any, y: Any, sample_weight: Any, qid: Any = None) -> TrainingData:
    """The data of `estimator.fit(X, y, sample_weight)`; sets `n_features_in_` and `feature_names_in_`."""
    from cutsvm.estimators._ingest import TrainingData

    if not estimator._trains_on_parts:
        raise ValueError(
            f"{type(estimator).__name__} does not fit collections of parts ({type(X).__name__}), since "
            f"{estimator._no_parts}: give arrays in memory or a store; LinearSVC, LinearSVR, QuantileSVR, "
            "RankingSVM, LinearSVCCV and LinearSVRCV take collections"
        )
    with ExitStack() as resources:
        watch = partial(_watch, estimator, resources)
        parts = open_parts(X, y, sample_weight, qid=qid, targets=estimator._targets, watch=watch)
        facts = parts.facts
        rows: Any = _rows(estimator, parts)  # what is asked of the rows of a collection is less than of others
        estimator.n_features_in_ = facts.d
        for name in ("feature_names_in_", "preprocessing_", "_zero_based", "_feature_ids"):
            estimator.__dict__.pop(name, None)
        if facts.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(facts.feature_names, dtype=object)
        classes = _classes(estimator, parts) if estimator._targets == "classes" else np.empty(0, dtype=np.int64)
        own, weights = standing_for_all(parts, classes)
        if estimator._targets == "levels" and qid is None and facts.sample.block.qid is None:
            assert facts.sample.block.y is not None
            warn_of_missing_queries(facts.sample.block.y)
        return TrainingData(
            rows,
            rows,
            own,
            weights,
            classes,
            classes,
            weighted=facts.weighted,
            parts=parts,
            resources=resources.pop_all(),
        )


def _watch(estimator: Certified, resources: ExitStack, executor: Executor, before: Traffic) -> None:
    """Callbacks are told how far each round is, until the resources are closed; not if someone else is told already.

    With `max_time` the executor does not wait for workers any longer than that.
    """
    if estimator.max_time is not None:
        executor.deadline = perf_counter() + estimator.max_time
        resources.callback(setattr, executor, "deadline", np.inf)
    callbacks = [*(estimator.callbacks or ()), *([Log()] if estimator.verbose else ())]
    if estimator.verbose:
        ensure_log_handler()
    told = [own for own in callbacks if isinstance(own, RoundObserver)]
    if executor.progress is not None or not told:
        return

    def progress(done: int, parts: int) -> None:
        for own in told:
            own.observe_round(executor.traffic.rounds - before.rounds, executor.traffic.doing, done, parts)

    executor.progress = progress
    resources.callback(setattr, executor, "progress", None)


def _rows(estimator: Certified, parts: Parts) -> PartedRows:
    """The rows with the limits of the client's memory."""
    facts = parts.facts
    size = (12 if facts.sparse else 8) * facts.entries
    plan = memory.plan_parts(
        facts.n,
        size,
        estimator.memory_limit,
        outputs=estimator._outputs(len(facts.labels.labels)),
        features=facts.d,
        problems=estimator._n_problems,
        sparse=facts.sparse,
    )
    planes = None if plan.plane_bytes is None else PlaneMemory(plan.plane_bytes, np.zeros)
    return PartedRows(parts, plan.room, planes)


def _classes(estimator: Certified, parts: Parts) -> Array:
    """The labels of rows with weight, at least two."""
    labels = parts.facts.labels
    classes = labels.labels[labels.weights > 0.0]
    check_classification_targets(classes)
    if len(classes) < 2:
        only = classes.tolist()[0] if len(classes) else "none"
        name = type(estimator).__name__
        raise ValueError(f"{name} needs rows of at least 2 classes; there is only one class with weight: {only!r}")
    return classes


def standing_for_all(parts: Parts, classes: Array) -> tuple[Array, Vector]:
    """y and weights of few rows: one for each class with its weight, or the smallest and the largest target."""
    labels = parts.facts.labels
    if len(classes):
        return classes, labels.weights[labels.weights > 0.0].copy()
    return np.array([labels.low, labels.high]), np.ones(2)
