"""LinearSVC: linear support vector classification with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import log_expit, log_softmax, softmax
from sklearn import svm
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.metaestimators import available_if

from cutsvm._utils import threads, validation
from cutsvm._utils.types import Array, Vector
from cutsvm.driver import fingerprint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.fingerprint import Scalar
from cutsvm.estimators._base import CertifiedClassifier
from cutsvm.estimators._ingest import TrainingData
from cutsvm.estimators._linear import LinearModel, Makers, Problems
from cutsvm.estimators._predict import by_block
from cutsvm.problem.loss_makers import BinaryMaker, JointMaker
from cutsvm.problem.losses import CrammerSinger, Hinge, Loss, Multinomial
from cutsvm.problem.losses.smooth import Logistic, SquaredHinge
from cutsvm.problem.multiclass import CrammerSingerOracle, MultinomialOracle
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.protocol import Solver


class JointLoss(NamedTuple):
    """Several classes in one problem: loss(classes by number, weights, number of classes, threads), and its oracle."""

    loss: Callable[..., Loss]
    oracle: type[Oracle]


class Losses(NamedTuple):
    """What a value of `loss` stands for: with two classes loss(y_i s_i, threads), with several by `multi_class`."""

    binary: Callable[..., Loss]
    joint: Mapping[str, JointLoss]

    @property
    def multi_class(self) -> list[str]:
        """The legal values of `multi_class`; the first is what "auto" means."""
        return [*self.joint, "ovr"]


LOSSES = {
    "hinge": Losses(Hinge, {"crammer_singer": JointLoss(CrammerSinger, CrammerSingerOracle)}),
    "squared_hinge": Losses(SquaredHinge, {}),
    "logistic": Losses(Logistic, {"multinomial": JointLoss(Multinomial, MultinomialOracle)}),
}
MULTI_CLASS = ("auto", "crammer_singer", "multinomial", "ovr")


def _has_probabilities(estimator: LinearSVC) -> bool:
    """For `available_if`: AttributeError unless the loss is that of a probability."""
    loss, _ = estimator._fitted_settings
    if estimator.loss == loss == "logistic":
        return True
    if estimator.loss == "logistic":
        raise AttributeError(
            f"the model was fitted with loss={loss!r}, which has no probabilities; the parameter was changed since: "
            "fit it again"
        )
    raise AttributeError(
        f'loss={estimator.loss!r} has no probabilities: take loss="logistic", or calibrate the scores with '
        "sklearn.calibration.CalibratedClassifierCV"
    )


@dataclass(eq=False, repr=False)
class LinearSVC(CertifiedClassifier, LinearModel):
    """Linear support vector machine with a certified duality gap.

    For two classes it minimises, over w and b,

        F = |w|^2 / 2 + C sum_i s_i loss(y_i (w.x_i + b)),     s = sample_weight x class_weight

        loss(m) = max(0, 1 - m)        "hinge"
                  max(0, 1 - m)^2      "squared_hinge"
                  log(1 + exp(-m))     "logistic"

    and for K > 2 classes one such problem per class against the rest, or all in one, over w_k and b_k,

        F = sum_k |w_k|^2 / 2 + C sum_i s_i loss_i,     f_ik = w_k.x_i + b_k

        loss_i = max_k ([k != y_i] + f_ik - f_iy)       "hinge" (Crammer and Singer)
                 log sum_k exp(f_ik) - f_iy             "logistic" (multinomial)

    where y is the class of the row. It stops when the relative gap between F and a lower bound of F is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the margin; it multiplies the *sum* over the rows.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        "logistic" makes it logistic regression, with `predict_proba` and `predict_log_proba`.
    tol : float, default=1e-3
        Relative gap (objective - lower bound) / objective at which to stop. It bounds the relative error of the
        objective.
    solver : {"auto", "ocas", "sifting", "dcd", "cpa", "accpm"} or a solver object, default="auto"
        "ocas" is optimised cutting planes, "sifting" the same on a working set of rows, "dcd" dual coordinate descent,
        "cpa" plain cutting planes, "accpm" those at analytic centres; "auto" chooses one of the first three and says
        why. `cutsvm.solvers` has them all with their settings. "dcd" and "accpm" do not solve every problem; the error
        says which do. Rows in parts have "batched" and "local_dual", too.
    multi_class : {"auto", "crammer_singer", "multinomial", "ovr"}, default="auto"
        More than two classes: all in one problem ("crammer_singer" with the hinge, "multinomial" with the logistic
        loss), or each against the rest ("ovr", with any loss). "auto" is the former where there is one.
    fit_intercept : bool, default=True
        Whether to fit b; if not, b = 0.
    intercept : {"free", "regularized"}, default="free"
        "free": b is not regularised, as in `sklearn.svm.SVC`. "regularized": b^2 / 2 is added to F, as in LIBLINEAR.
    class_weight : dict or "balanced", default=None
        Factors for the classes' weights; classes that are not named have 1. "balanced": total weight /
        (number of classes x weight of the class).
    max_iter : int, default=10_000
        Limit on iterations; each reads the data once or twice.
    max_time : float, default=None
        Limit in seconds. The best model so far is kept, with its gap; the same holds after Ctrl-C.
    n_jobs : int, default=None
        Threads: None is 1, -1 all cores. The result is the same to the last bit for any number, but for
        `DCD(asynchronous=True)`, and "accpm", whose linear algebra may differ in the last digits from call to call.
    warm_start : bool, default=False
        Start from the last fit: its solution and, where they are still valid, its planes. They are if only C or weights
        have changed, or if rows were added at the end; this is checked.
    memory_limit : str or int, default=None
        Private memory that a fit from a file or a store may add to what the process holds: "300MB", "2GB", or bytes;
        "2GB total" for the whole process; "auto" for 60 % of what is free now. The rows stay on disk (for a file in a
        temporary store) and are read block by block; a solver's result is the same (solver="auto" may choose another
        one). Without a limit a store is loaded if it takes less than 60 % of the machine's memory. Arrays are read in
        place.
    checkpoint : str or path, default=None
        A file to which the state of the fit is written every few seconds. After a kill, or when `max_time`, `max_iter`
        or Ctrl-C has ended a fit, the same call with the same data resumes from it, in bounds, iterations and seconds;
        the limits are for each call. It is removed when a fit converges. `tol`, the limits, `n_jobs` and `memory_limit`
        may change in between; a file of other data or parameters is refused.
    callbacks : list of callables, default=None
        Each is called with a `cutsvm.Record` after every iteration; one that returns True ends the fit.
    verbose : int, default=0
        1: one line per iteration through the logger "cutsvm", to stderr if it has no handler.
    random_state : int, RandomState instance or None, default=None
        Seeds what a solver draws at random: samples of rows, and the order of coordinate descent. None is the solver's
        own seed, which is fixed: the result is the same from run to run. With a `checkpoint`, an int or None.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    objective_ : float
        F at the solution, recomputed from the data; summed over the one-vs-rest problems.
    lower_bound_ : float
        A lower bound of the minimum of F.
    gap_ : float
        (objective_ - lower_bound_) / objective_.
    converged_ : bool
    status_ : cutsvm.Status
        How the fit ended; `status_.value` says it in words.
    n_iter_ : int
        Iterations; the most of any one-vs-rest problem.
    history_ : list of dict
        One record per iteration: iteration, seconds, primal, lower, gap, planes, passes (sweeps over all rows),
        visits (rows visited in all), rows_read (rows read for planes; the others were read for their scores),
        rows_written (rows put into buckets), note (what "auto" chose, and why), and the seconds spent so far in scores,
        planes, line search, reduced problem (qp), descent, sift and centre. `cutsvm.plotting` draws it.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from cutsvm import LinearSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.01).fit(X, y)
    >>> bool(model.gap_ <= 1e-3)
    True
    """

    _: KW_ONLY
    loss: Literal["hinge", "squared_hinge", "logistic"] = "hinge"
    multi_class: Literal["auto", "crammer_singer", "multinomial", "ovr"] = "auto"
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None

    def _check_params(self) -> Solver:
        validation.one_of("loss", self.loss, tuple(LOSSES))
        validation.one_of("multi_class", self.multi_class, MULTI_CLASS)
        if self.multi_class not in ("auto", *LOSSES[self.loss].multi_class):
            legal = "; ".join(f"{loss!r} has {', '.join(map(repr, own.multi_class))}" for loss, own in LOSSES.items())
            raise ValueError(f"multi_class={self.multi_class!r} with loss={self.loss!r}: {legal}")
        return super()._check_params()

    @property
    def _multi_class(self) -> str:
        """`multi_class`, and what "auto" means."""
        return LOSSES[self.loss].multi_class[0] if self.multi_class == "auto" else self.multi_class

    def _joint(self, n_classes: int) -> JointLoss | None:
        """The loss of this number of classes in one problem; None if each problem is of two classes."""
        return LOSSES[self.loss].joint.get(self._multi_class) if n_classes > 2 else None

    def _problems(self, data: TrainingData) -> Problems:
        """Of two classes the second one is positive, of more each against the rest, or all are in one problem."""
        if self._joint(len(data.classes)) is not None:
            return {"": partial(self._joint_loss, data)}
        if len(data.classes) == 2:
            return {"": partial(self._binary_loss, data, data.classes[1], in_place=True)}
        names = map(str, data.class_names)
        losses = (partial(self._binary_loss, data, positive, in_place=False) for positive in data.classes)
        return dict(zip(names, losses, strict=True))

    def _binary_loss(self, data: TrainingData, positive: Any, *, in_place: bool) -> Loss:
        """The loss of one class against the rest. in_place: the weights themselves take the sign, n numbers less."""
        signed = data.weights if in_place else data.rows.vector(data.rows.n)
        np.copyto(signed, data.weights)
        validation.negate(signed, data.y, positive)
        return LOSSES[self.loss].binary(signed, self._threads(data))

    def _joint_loss(self, data: TrainingData) -> Loss:
        """The loss of all classes in one problem."""
        joint, many = self._joint(len(data.classes)), len(data.classes)
        assert joint is not None
        # Rows of a class without weight have no weight either, and may have any label.
        labels = data.rows.vector(len(data.y), np.int32)
        for part in validation.parts(len(data.y)):
            labels[part] = np.minimum(np.searchsorted(data.classes, data.y[part]), many - 1)
        return joint.loss(labels, data.weights, many, self._threads(data))

    def _makers(self, data: TrainingData) -> Makers:
        """The same for a collection, whose y and weights are those of one row for each class."""
        assert data.parts is not None
        own, many = data.parts.facts.labels, len(data.classes)
        factors = data.weights / own.weights[np.searchsorted(own.labels, data.classes)]
        joint = self._joint(many)
        if joint is not None:
            return {"": JointMaker(data.classes, factors, joint.loss)}
        make = LOSSES[self.loss].binary
        if many == 2:
            return {"": BinaryMaker(data.classes, factors, make, 1)}
        return {str(name): BinaryMaker(data.classes, factors, make, k) for k, name in enumerate(data.class_names)}

    def _threads(self, data: TrainingData) -> int:
        return threads.count(self.n_jobs, data.rows.entries)

    def _oracle_kind(self, data: TrainingData) -> type[Oracle]:
        joint = self._joint(len(data.classes))
        return Oracle if joint is None else joint.oracle

    def _outputs(self, n_labels: int) -> int:
        return 1 if self._joint(n_labels) is None else n_labels

    def _weigh(self, data: TrainingData) -> None:
        validation.apply_class_weights(data.weights, self.class_weight, data.classes, data.y, data.class_names)

    def _settings(self, data: TrainingData) -> dict[str, Scalar]:
        several = {"multi_class": self._multi_class} if len(data.classes) > 2 else {}
        return {"loss": self.loss, **several}

    def _described(self, data: TrainingData) -> tuple[str, str]:
        problem, remedy = super()._described(data)
        return problem, remedy if self._joint(len(data.classes)) is None else ', or multi_class="ovr"'

    def _checkpoint_of(self, solver: Solver, data: TrainingData, **more: Scalar) -> Checkpoint | None:
        return super()._checkpoint_of(solver, data, **more, classes=" ".join(map(str, data.classes.tolist())))

    def _hash_of_y(self, data: TrainingData) -> str:
        return fingerprint.of_labels(data.y, data.classes)

    def _fitted_from(self, data: TrainingData) -> dict[str, Any]:
        return {"classes_": data.class_names, "_fitted_as": (self.loss, self._multi_class)}

    @property
    def _fitted_settings(self) -> tuple[str, str]:
        """`loss` and `multi_class` of the fit, of which the weights are; before it the parameters."""
        found: tuple[str, str] = self.__dict__.get("_fitted_as") or (self.loss, self._multi_class)
        return found

    def _mark_fitted(self) -> None:
        self._fitted_as = self.loss, self._multi_class

    def _as_fitted(self) -> LinearSVC:
        if self._fitted_settings == (self.loss, self._multi_class):
            return self
        twin = copy(self)
        twin.__dict__.update(zip(("loss", "multi_class"), self._fitted_settings, strict=True))
        return twin

    def _weights_of(self, W: Vector, b: Vector) -> dict[str, Array]:
        return {"coef_": W, "intercept_": b}

    def _log_odds(self, X: Any) -> Vector:
        """The logarithms of the classes' probabilities, up to a number for each row."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([np.zeros(len(scores)), scores])
        odds: Vector = log_expit(scores) if self._fitted_settings[1] == "ovr" else scores
        return odds

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @by_block
    def predict_proba(self, X: Any) -> Vector:
        """The probability of each class, in the order of `classes_`; with loss="logistic" only.

        Two classes: 1 / (1 + exp(-f)) for the second, f being the score. More: exp(f_k) / sum_l exp(f_l) in one
        problem; each against the rest, 1 / (1 + exp(-f_k)) divided by their sum.
        """
        probabilities: Vector = softmax(self._log_odds(X), axis=1)
        return probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @by_block
    def predict_log_proba(self, X: Any) -> Vector:
        """The logarithms of `predict_proba`, exact where that is 0; with loss="logistic" only."""
        logarithms: Vector = log_softmax(self._log_odds(X), axis=1)
        return logarithms

    def to_sklearn(self) -> Any:
        """A fitted model of scikit-learn's that predicts the same, for tools that know scikit-learn's classes only.

        It is `sklearn.svm.LinearSVC` or, with loss="logistic", `sklearn.linear_model.LogisticRegression` (in
        `sklearn.multiclass.OneVsRestClassifier`, without class weights, if there are several classes, each against the
        rest). A new fit of it minimises the same objective; its intercept is regularised, in LogisticRegression free.
        """
        # tol and max_iter belong to other algorithms.
        params = {"C": self.C, "class_weight": self.class_weight, "fit_intercept": self.fit_intercept}
        loss, multi_class = self._fitted_settings
        if loss != "logistic":
            return self._copy_fit(svm.LinearSVC(loss=loss, dual=True, multi_class=multi_class, **params))
        if len(self.classes_) == 2 or multi_class != "ovr":
            return self._copy_fit(LogisticRegression(**params))
        # A fit to one row per class makes the attributes; then the weights are replaced.
        twin = OneVsRestClassifier(LogisticRegression(C=self.C, fit_intercept=self.fit_intercept))
        twin.fit(np.eye(len(self.classes_), self.coef_.shape[1]), self.classes_)
        for one, W, b in zip(twin.estimators_, self.coef_, self.intercept_, strict=True):
            one.coef_, one.intercept_ = np.array(W, dtype=np.float64, ndmin=2), np.array([b], dtype=np.float64)
        return twin
