"""`cutsvm train -v`: cross-validation."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from cutsvm._utils.types import Array
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.cli.ranking_metric import measure_of
from cutsvm.cli.tasks import cost_of
from cutsvm.estimators._base import Certified
from cutsvm.io.dataset import Dataset


def cross_validate(options: argparse.Namespace, estimator: Certified, data: Dataset, y: Array) -> int:
    """Train on all folds but one, predict that one.

    Prints the accuracy or the errors over all rows as LIBLINEAR does; for ranking and ROC area the mean over the folds.
    """
    messages, task = Messages(quiet=options.quiet), options.task
    measure = measure_of(options, task)
    # Of one-class models 1 or -1, whatever the labels are.
    predicted, gaps, folds = np.empty_like(y, dtype=None if task.needs_labels else np.int64), [], []
    with as_command_error(options.data), messages.collecting_warnings():
        for number, (train, test) in enumerate(_folds(options, data, y), start=1):
            model = clone(estimator)
            if "cost" in task.options:
                model.set_params(C=cost_of(options, len(train)))
            model.fit(_subset(data, train).with_labels(y[train]))
            if model.status_.name == "INTERRUPTED":
                # A fit keeps its best model on Ctrl-C, but the whole cross-validation must end.
                raise KeyboardInterrupt
            gaps.append(float(np.max(model.gap_)))
            part = _subset(data, test)
            labels = model.predict(part.X) if measure.uses_labels else None
            folds.append(measure.evaluate(model, part, labels))
            for text in folds[-1].warnings:
                messages.warn(text)
            if labels is not None:
                predicted[test] = labels
            messages.note(f"fold {number} of {options.folds}: {folds[-1].short_text}, gap {gaps[-1]:.1e}")
        result = measure.cross_validated(folds, predicted, y)
    if options.json:
        settings = {"rows": len(y), "folds": options.folds, "gaps": gaps, "C": options.cost, "data": options.data}
        if options.paper is not None:
            settings |= {"paper": options.paper, "paper_C": options.cost}
        print_json({**result.fields, **settings})
    else:
        print_result(str(result.text))
    return 0


def _subset(data: Dataset, rows: Array) -> Dataset:
    """Some of the rows, in memory."""
    qid = None if data.qid is None else data.qid[rows]
    weights = None if data.weights is None else data.weights[rows]
    return Dataset(data.X[rows], data.y[rows], qid, data.zero_based, data.feature_ids, data.source, weights=weights)


def _folds(options: argparse.Namespace, data: Dataset, y: Array) -> Any:
    """Pairs of training and test rows: queries stay whole, and folds are stratified by class if there are classes."""
    if not options.task.has_queries:
        return splitter(options).split(data.X, y)
    if data.qid is None:
        return KFold(n_splits=options.folds, shuffle=True, random_state=0).split(data.X, y)
    queries = len(np.unique(data.qid))
    if queries < options.folds:
        raise CommandError(f"-v {options.folds}: {data.source} has only {queries} queries, which stay whole")
    return GroupKFold(n_splits=options.folds).split(data.X, y, data.qid)


def splitter(options: argparse.Namespace) -> KFold | StratifiedKFold:
    """Folds of rows, shuffled with a fixed seed; stratified if there are classes."""
    kind = StratifiedKFold if options.task.has_classes else KFold
    return kind(n_splits=options.folds, shuffle=True, random_state=0)
