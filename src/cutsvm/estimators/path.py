"""Paths over C: fits at several values of C that share planes and solutions (`cutsvm.solvers.path`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cutsvm._utils import validation
from cutsvm._utils.types import Vector
from cutsvm._utils.warn import is_in_loop, warn
from cutsvm.cluster.folds import find_scale
from cutsvm.driver.records import Status
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.estimators._linear import LinearModel
from cutsvm.estimators._predict import COLUMN_ATTRIBUTES
from cutsvm.estimators.linear import LinearSVC
from cutsvm.estimators.ranking import RankingSVM
from cutsvm.matrix import WholeRows

Model = TypeVar("Model", bound=Certified)
Linear = TypeVar("Linear", bound=LinearModel)
Fitted = TypeVar("Fitted", LinearModel, RankingSVM)


@overload
def linear_path(
    X: Any, y: Any = None, *, Cs: Any, estimator: None = None, sample_weight: Any = None, **params: Any
) -> list[LinearSVC]: ...


@overload
def linear_path(
    X: Any, y: Any = None, *, Cs: Any, estimator: Linear, sample_weight: Any = None, **params: Any
) -> list[Linear]: ...


def linear_path(
    X: Any,
    y: Any = None,
    *,
    Cs: Any,
    estimator: LinearModel | None = None,
    sample_weight: Any = None,
    **params: Any,
) -> Any:
    """Fits a linear model at every C, in much less time than separate fits.

    Parameters
    ----------
    X, y, sample_weight : as for `LinearSVC.fit`; a data set or a path in place of X and y, too.
    Cs : rising sequence of numbers above 0, or int
        An int: this number of them, in equal ratios, where C (sum of weight x |x|^2) goes from 1 to 1e6. With losses
        that are linear in the residuals it is divided by the mean distance of y from its mean.
    estimator : LinearSVC, LinearSVR or QuantileSVR, default=None
        The model to fit, with its parameters; its C is not used. None is `LinearSVC()`.
    params : parameters of the estimator except C and checkpoint
        `max_time` is for the whole path: models that are not done by then have the best known solution for their C,
        with its gap. The same holds after Ctrl-C.

    Returns
    -------
    list of LinearSVC, or of models of the estimator's class
        One for each C, in their order, each fitted and with its own certificate.

    Examples
    --------
    >>> from cutsvm import linear_path
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = linear_path(X / X.max(axis=0), y, Cs=[0.01, 0.1, 1.0])
    >>> [model.C for model in models], all(model.gap_ <= 1e-3 for model in models)
    ([0.01, 0.1, 1.0], True)
    """
    template = LinearSVC() if estimator is None else clone(estimator)
    if not isinstance(template, LinearModel) or isinstance(template, type):
        raise TypeError(f"estimator={estimator!r}: expected LinearSVC(...), LinearSVR(...) or QuantileSVR(...)")
    return _fit_path(template, params, Cs, (X, y, sample_weight))


def ranking_path(
    X: Any, y: Any = None, *, Cs: Any, qid: Any = None, sample_weight: Any = None, **params: Any
) -> list[RankingSVM]:
    """Fits `RankingSVM` at every C: X, y, qid and sample_weight as for its `fit`.

    An int for Cs: C (mean of |x|^2) goes from 1 to 1e6, since here C is the weight of a mean.
    """
    return _fit_path(RankingSVM(), params, Cs, (X, y, sample_weight), qid)


def _fit_path(
    template: Fitted, params: dict[str, Any], Cs: Any, given: tuple[Any, Any, Any], qid: Any = None
) -> list[Fitted]:
    """Models like the template with these parameters, one for each C; given: X, y, sample_weight."""
    if "C" in params:
        raise TypeError("C: a path has several of them, give Cs")
    template = type(template)(**{**template.get_params(deep=False), **params})
    if template.checkpoint is not None:
        raise ValueError(f"checkpoint={os.fspath(template.checkpoint)!r}: a checkpoint is of one fit, not of a path")
    check(Cs)
    solver = template._check_params()
    with ingest(template, *given, qid=qid) as data:
        models = copies(template, grid_of(Cs, template, data))
        template._fit_path(models, solver, data)
        warn_of(models, data)
    return models


def check(Cs: Any) -> None:
    """Raises ValueError unless Cs is a number of values, or positive numbers in rising order."""
    if isinstance(Cs, (int, np.integer)) and not isinstance(Cs, bool):
        validation.whole("Cs", Cs, least=1)
        return
    if isinstance(Cs, (str, bytes)) or not hasattr(Cs, "__iter__"):
        raise ValueError(f"Cs={Cs!r}: expected numbers above 0 in rising order, or how many")
    values = list(Cs)
    if not values:
        raise ValueError("Cs is empty: expected numbers above 0 in rising order, or how many")
    for k, value in enumerate(values):
        validation.positive(f"Cs[{k}]", value)
        if k and not values[k - 1] < value:
            what = "the same again" if values[k - 1] == value else f"after {values[k - 1]!r}"
            raise ValueError(f"Cs[{k}]={value!r}: {what}; expected each C once, in rising order")


def grid_of(Cs: Any, template: LinearModel | RankingSVM, data: TrainingData) -> list[float]:
    """The values of C for an estimator; of a collection whose scale is not known that may take a round."""
    if not isinstance(Cs, (int, np.integer)):
        return [float(value) for value in Cs]
    if data.parts is None:
        return grid(Cs, data.rows, data.weights, template._loss_scale(data))
    own = data if data.scale is not None else replace(data, scale=find_scale(data.parts))
    assert own.scale is not None
    return _in_equal_ratios(int(Cs), template._loss_scale(own) * own.scale.squares, 1.0, 1e6)


def grid(
    Cs: Any, rows: WholeRows, weights: Vector, scale: float = 1.0, lowest: float = 1.0, highest: float = 1e6
) -> list[float]:
    """The values of C; an int: their number, with C scale (sum of weights_i |x_i|^2) in equal ratios from lowest to
    highest.

    At the lowest the loss begins to matter; at the highest the margin does not any more.
    """
    if not isinstance(Cs, (int, np.integer)):
        return [float(value) for value in Cs]
    squares = [weights[part] @ rows.squares_of(part.start, min(part.stop, rows.n)) for part in validation.parts(rows.n)]
    return _in_equal_ratios(int(Cs), scale * sum(map(float, squares)), lowest, highest)


def _in_equal_ratios(many: int, unit: float, lowest: float, highest: float) -> list[float]:
    """To 6 digits, so that weights and repeated rows give the same C."""
    unit = float(f"{unit:.6g}") or 1.0
    return [float(f"{C:.6g}") for C in np.geomspace(lowest / unit, highest / unit, many)]


def copies(template: Model, Cs: Sequence[float]) -> list[Model]:
    """The same estimator for each C, with what is known of the columns."""
    params = template.get_params(deep=False)
    models = [type(template)(**{**params, "C": C}) for C in Cs]
    for model in models:
        for name in COLUMN_ATTRIBUTES:
            if hasattr(template, name):
                setattr(model, name, getattr(template, name))
    return models


def warn_of(models: Sequence[Certified], data: TrainingData) -> None:
    """Warns once for all models that have not converged, about the one with the largest gap."""
    late = [model for model in models if not model.converged_]
    if any(model.status_ is Status.INTERRUPTED for model in late) and is_in_loop():
        raise KeyboardInterrupt
    if late:
        # After Ctrl-C the other C end for want of time: that is not why.
        interrupted = [model for model in late if model.status_ is Status.INTERRUPTED]
        worst = max(interrupted or late, key=lambda model: model.gap_)
        many = f"{len(late)} of {len(models)} C are not at tol; the worst is C={worst.C:g}. "
        warn(many + worst._advice(data), ConvergenceWarning)
