"""The tasks that models are trained for: classify, regress, quantile, oneclass, rank, roc, ordinal; kernel,
kernel-regress and kernel-oneclass.

A `Task` says all that differs between them, for model files, the command line and reports. `TASKS` resolves the names
that `--task` and model files use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from cutsvm._utils.types import Array
from cutsvm.io.models.model_format import ModelFileError


@dataclass(frozen=True, eq=False)
class Task:
    """What a model is trained for. Classes and functions are named "module:name", and imported when they are used."""

    name: str
    estimator: str
    measured_by: str  # a `Measure` of `cutsvm.cli.measures`
    description: str  # of the model, in reports
    # Labels, rows and weights
    label_noun: str = "classes"
    has_classes: bool = True
    has_targets: bool = False  # labels are real numbers to predict, and `coef_` is one row of weights
    needs_labels: bool = True  # the fit reads them
    max_classes: int | None = None
    has_queries: bool = False
    has_pairs: bool = False  # the loss is a mean over pairs of rows, otherwise a sum over rows
    has_kernel: bool = False  # the model is its support vectors, otherwise rows of weights
    has_thresholds: bool = False  # classes in any order, a threshold between every two
    weights_per_class: bool = False  # with more than two classes a row of weights for each
    # Training
    memory_limits_rows: bool = True  # with `--memory` the rows stay on disk
    on_cluster: bool = False  # the fit may be to rows in parts, on other machines
    iteration_unit: str = "iteration"
    path: str | None = None
    path_takes_estimator: bool = False  # otherwise its parameters
    cv_estimator: str | None = None
    # Predictions
    predicts_scores: bool = False  # `cutsvm predict` writes scores, not labels
    score_method: str = "decision_function"
    # LIBLINEAR's solver_type by the estimator's loss ("" if it has none) and by whether all classes are one problem
    liblinear_types: Mapping[tuple[str, bool], str] = field(default_factory=dict)
    # Options of the command line that not every task has, by their names in the namespace
    options: frozenset[str] = frozenset({"cost"})
    losses: tuple[str, ...] = ()  # of --loss
    solvers: tuple[str, ...] = ("auto", "ocas", "cpa")
    solvers_module: str = "cutsvm.solvers"
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the estimator, other than its defaults
    # Reports
    reported_by: str = "cutsvm.display.report.measures:of_classes"
    margin_caption: str | None = None
    score_name: str = "accuracy"

    def __str__(self) -> str:
        return self.name

    @property
    def estimator_name(self) -> str:
        return self.estimator.partition(":")[2]

    @property
    def measure(self) -> Any:
        return load(self.measured_by)()

    @property
    def writes_liblinear(self) -> bool:
        return bool(self.liblinear_types)

    def make_estimator(self, *args: Any, **params: Any) -> Any:
        return load(self.estimator)(*args, **params)

    def scores(self, estimator: Any, X: Any) -> Array:
        """f(x) of each row; of several classes one for each."""
        found: Array = getattr(estimator, self.score_method)(X)
        return found


def load(reference: str) -> Any:
    """The class or function called "module:name"."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


_LINEAR_OPTIONS = frozenset(
    "cost line_search shards cut_at guard exact epsilon buckets formulation checkpoint memory".split()
)
_LINEAR_SOLVERS = ("auto", "ocas", "sifting", "dcd", "newton", "cpa", "accpm", "batched", "local_dual")
_PAIR_LOSSES = ("hinge", "squared_hinge")
_PAIR_SOLVERS = ("auto", "ocas", "newton", "cpa", "batched")
_HINGE_TYPE = "L2R_L1LOSS_SVC_DUAL"
_TUBE_TYPE = "L2R_L1LOSS_SVR_DUAL"
_KERNEL_OPTIONS = frozenset({"kernel", "gamma", "degree", "coef0", "memory", "checkpoint"})

_CLASSIFY = Task(
    "classify",
    "cutsvm.estimators.linear:LinearSVC",
    "cutsvm.cli.measures:Accuracy",
    "a linear support vector machine",
    on_cluster=True,
    weights_per_class=True,
    path="cutsvm.estimators.path:linear_path",
    path_takes_estimator=True,
    cv_estimator="cutsvm.estimators.path_cv:LinearSVCCV",
    liblinear_types={
        ("hinge", False): _HINGE_TYPE,
        ("hinge", True): _HINGE_TYPE,
        ("squared_hinge", False): "L2R_L2LOSS_SVC",
        ("logistic", False): "L2R_LR",
        # The largest score wins as well, and LIBLINEAR would compute other probabilities for L2R_LR.
        ("logistic", True): "MCSVM_CS",
    },
    options=_LINEAR_OPTIONS | {"bias", "weights", "multi_class", "loss", "type"},
    losses=("hinge", "squared_hinge", "logistic"),
    solvers=_LINEAR_SOLVERS,
)
_REGRESS = Task(
    "regress",
    "cutsvm.estimators.regression:LinearSVR",
    "cutsvm.cli.measures:RegressionErrors",
    "linear support vector regression",
    on_cluster=True,
    label_noun="targets",
    has_classes=False,
    has_targets=True,
    path="cutsvm.estimators.path:linear_path",
    path_takes_estimator=True,
    cv_estimator="cutsvm.estimators.path_cv:LinearSVRCV",
    score_method="predict",
    liblinear_types={
        ("epsilon_insensitive", False): _TUBE_TYPE,
        ("squared_epsilon_insensitive", False): "L2R_L2LOSS_SVR",
        ("huber", False): _TUBE_TYPE,  # it has no such loss, and predicts the same
    },
    options=_LINEAR_OPTIONS | {"bias", "loss", "tube", "type"},
    losses=("epsilon_insensitive", "squared_epsilon_insensitive", "huber"),
    solvers=_LINEAR_SOLVERS,
    reported_by="cutsvm.display.report.measures:of_targets",
    score_name="R^2",
)
_QUANTILE = Task(
    "quantile",
    "cutsvm.estimators.regression:QuantileSVR",
    "cutsvm.cli.measures:PinballLoss",
    "linear quantile regression",
    on_cluster=True,
    label_noun="targets",
    has_classes=False,
    has_targets=True,
    score_method="predict",
    liblinear_types={("", False): _TUBE_TYPE},
    options=_LINEAR_OPTIONS | {"bias", "quantile"},
    solvers=tuple(name for name in _LINEAR_SOLVERS if name != "newton"),
    reported_by="cutsvm.display.report.measures:of_quantile",
)
_ONE_CLASS = Task(
    "oneclass",
    "cutsvm.estimators.one_class:LinearOneClassSVM",
    "cutsvm.cli.measures:Inliers",
    "a linear one-class support vector machine: rows below a threshold are outliers",
    has_classes=False,
    needs_labels=False,
    liblinear_types={("", False): "ONECLASS_SVM"},
    options=_LINEAR_OPTIONS - {"cost", "shards", "buckets", "formulation"} | {"nu", "type"},
    reported_by="cutsvm.display.report.measures:of_inliers",
    margin_caption="The score of each row; below 0 it is an outlier.",
)
_RANK = Task(
    "rank",
    "cutsvm.estimators.ranking:RankingSVM",
    "cutsvm.cli.measures:PairsInOrder",
    "a ranking support vector machine: it orders the rows of each query",
    on_cluster=True,
    label_noun="levels",
    has_classes=False,
    has_queries=True,
    path="cutsvm.estimators.path:ranking_path",
    cv_estimator="cutsvm.estimators.path_cv:RankingSVMCV",
    predicts_scores=True,
    score_method="predict",
    has_pairs=True,
    options=_LINEAR_OPTIONS | {"loss", "metric"},
    losses=_PAIR_LOSSES,
    solvers=_PAIR_SOLVERS,
    reported_by="cutsvm.display.report.measures:of_queries",
    margin_caption="Score differences of random pairs of rows of one query, the row with the higher label first: below "
    "0 the pair is in the wrong order, below 1 it has a loss.",
    score_name="pairs in order",
)
_ROC = Task(
    "roc",
    "cutsvm.estimators.ordinal:ROCAreaSVC",
    "cutsvm.cli.measures:ROCArea",
    "a linear model trained for the area under the ROC curve",
    max_classes=2,
    predicts_scores=True,
    liblinear_types={(loss, False): _HINGE_TYPE for loss in _PAIR_LOSSES},
    has_pairs=True,
    options=_LINEAR_OPTIONS | {"loss"},
    losses=_PAIR_LOSSES,
    solvers=_PAIR_SOLVERS,
    margin_caption="How far each row is on its side of the threshold; below 0 it is on the wrong side.",
)
_ORDINAL = Task(
    "ordinal",
    "cutsvm.estimators.ordinal:OrdinalSVC",
    "cutsvm.cli.measures:LevelAccuracy",
    "a linear model for ordered classes, with a threshold between every two",
    label_noun="levels",
    has_thresholds=True,
    has_pairs=True,
    options=_LINEAR_OPTIONS | {"loss"},
    losses=_PAIR_LOSSES,
    solvers=_PAIR_SOLVERS,
    margin_caption="The scores of the rows of each level. The lines are the thresholds between levels.",
)
_KERNEL = Task(
    "kernel",
    "cutsvm.estimators.kernel:KernelSVC",
    "cutsvm.cli.measures:Accuracy",
    "a support vector machine with a kernel",
    has_kernel=True,
    memory_limits_rows=False,
    iteration_unit="round",
    options=_KERNEL_OPTIONS | {"cost", "epochs", "average", "seed", "weights"},
    solvers=("auto", "exact", "sgd", "isda", "min_norm"),
    solvers_module="cutsvm.kernel_machines",
    parameters={"random_state": 0},
)
_KERNEL_REGRESS = Task(
    "kernel-regress",
    "cutsvm.estimators.kernel_regression:KernelSVR",
    "cutsvm.cli.measures:RegressionErrors",
    "support vector regression with a kernel",
    label_noun="targets",
    has_classes=False,
    has_targets=True,
    has_kernel=True,
    memory_limits_rows=False,
    iteration_unit="round",
    score_method="predict",
    options=_KERNEL_OPTIONS | {"cost", "tube"},
    solvers=("auto",),
    solvers_module="cutsvm.kernel_machines",
    reported_by="cutsvm.display.report.measures:of_targets",
    score_name="R^2",
)
_KERNEL_ONE_CLASS = Task(
    "kernel-oneclass",
    "cutsvm.estimators.kernel_one_class:KernelOneClassSVM",
    "cutsvm.cli.measures:Inliers",
    "a one-class support vector machine with a kernel: rows below a threshold are outliers",
    has_classes=False,
    needs_labels=False,
    has_kernel=True,
    memory_limits_rows=False,
    iteration_unit="round",
    options=_KERNEL_OPTIONS | {"nu"},
    solvers=("auto",),
    solvers_module="cutsvm.kernel_machines",
    reported_by="cutsvm.display.report.measures:of_inliers",
    margin_caption="The score of each row; below 0 it is an outlier.",
)
_ALL = (
    _CLASSIFY,
    _REGRESS,
    _QUANTILE,
    _ONE_CLASS,
    _RANK,
    _ROC,
    _ORDINAL,
    _KERNEL,
    _KERNEL_REGRESS,
    _KERNEL_ONE_CLASS,
)
TASKS = {task.name: task for task in _ALL}


def task_of(estimator: Any) -> Task:
    """The task that an estimator is for, by its class or a base class of it."""
    names = [kind.__name__ for kind in type(estimator).__mro__]
    for task in TASKS.values():
        if task.estimator_name in names:
            return task
    known = ", ".join(task.estimator_name for task in TASKS.values())
    raise ModelFileError(f"{names[0]} cannot be written; expected one of {known}")
