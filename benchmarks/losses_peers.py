"""The solvers that losses.py compares, behind the classes of peers.py.

Everybody minimises F(w) = |w|^2/2 + C sum_i loss(f_i, y_i), f = X w, with the losses of losses_data.py; the last column
of X is 1, and nobody has another intercept. `losses` says which of them a solver has, and each class how its own
parameters are set for that. All else is as in peers.py.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import losses_data
import peers
from data import DataSet
from losses_data import LOSSES, Measure
from peers import Estimator, Fit, Peer, Setting, Worker, cores, layouts, serve

TOLERANCES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
MOST_FEATURES = 2000  # of methods with a matrix of features x features, or with dense rows
MANY = 10**6  # iterations: no limit


def ladder(key: str, values: tuple[float, ...] = TOLERANCES, **fixed: Any) -> list[Setting]:
    """A setting for each value of one parameter, from loose to tight."""
    return [fixed | {key: value} for value in values]


def parameter(data: DataSet) -> float:
    """epsilon or the quantile."""
    return LOSSES[data.loss].parameter


def median_cost(data: DataSet, C: float) -> tuple[float, float]:
    """C and epsilon of an epsilon-insensitive loss that is ours: that of the median is half of one with epsilon 0."""
    return (C / 2, 0.0) if data.loss == "pinball-0.5" else (C, parameter(data))


class LossPeer(Peer):
    """A peer, and the losses that it has."""

    losses: tuple[str, ...] = ()

    def ends(self, setting: Setting) -> bool:
        return False  # none of them has an iteration limit that cannot be lifted, but one


class Ours(peers.Ours, LossPeer):
    """cutsvm's estimators without an intercept. Seconds: the whole `fit`, its checks and its certificate included."""

    losses = tuple(LOSSES)

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"auto": ladder("tol", tuple(gaps), layout=layouts(data)[0], solver="auto")}

    def model(self, data: DataSet, C: float, options: Setting) -> Any:
        import cutsvm

        options["fit_intercept"] = False
        if not LOSSES[data.loss].regression:
            return cutsvm.LinearSVC(C, loss=data.loss, **options)
        if data.loss.startswith("pinball"):
            return cutsvm.QuantileSVR(C, quantile=parameter(data), **options)
        return cutsvm.LinearSVR(C, loss=data.loss, epsilon=parameter(data), **options)


class Liblinear(peers.Liblinear, LossPeer):
    """LIBLINEAR without a bias. Its losses and its C are ours; `-p` is epsilon. -s 0, 2 and 11 are of Newton's kind.

    Seconds: its C function `train`; making its sparse rows is not counted.
    """

    bias = -1
    kinds = {  # noqa: RUF012 - never changed
        "hinge": (3,),
        "squared_hinge": (2, 1),
        "logistic": (0, 7),
        "epsilon_insensitive": (13,),
        "squared_epsilon_insensitive": (11, 12),
        "pinball-0.5": (13,),
    }
    losses = tuple(kinds)

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {f"-s {s}": ladder("e", s=s) for s in self.kinds[data.loss]}

    def options(self, data: DataSet, C: float, setting: Setting) -> str:
        C, epsilon = median_cost(data, C)
        return f"{super().options(data, C, setting)} -p {epsilon}"

    def ends(self, setting: Setting) -> bool:
        return setting["s"] not in (0, 2, 11)  # its dual methods stop at a number of iterations that is compiled in


class SklearnLinear(LossPeer, Estimator):
    """scikit-learn's estimators on float64, CSR where zeros abound. Seconds: `fit`."""

    module = "sklearn"

    def convert(self, data: DataSet, layout: str) -> Any:
        return super().convert(data, layout or layouts(data)[0]).astype(np.float64)


class SklearnLinearSVC(SklearnLinear):
    """scikit-learn's LinearSVC: its C is ours. It copies the rows."""

    name = "sklearn LinearSVC"
    losses = ("hinge", "squared_hinge")

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        ways = {"primal": False, "dual": True} if LOSSES[data.loss].smooth else {"dual": True}
        return {name: ladder("tol", dual=dual, max_iter=MANY) for name, dual in ways.items()}

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.svm import LinearSVC

        return LinearSVC(C=C, loss=data.loss, fit_intercept=False, random_state=0, **setting)


class SklearnLinearSVR(SklearnLinearSVC):
    """scikit-learn's LinearSVR: its C and epsilon are ours, C/2 and 0 for the median. It copies the rows."""

    name = "sklearn LinearSVR"
    losses = ("epsilon_insensitive", "squared_epsilon_insensitive", "pinball-0.5")

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.svm import LinearSVR

        C, epsilon = median_cost(data, C)
        loss = "epsilon_insensitive" if data.loss == "pinball-0.5" else data.loss
        return LinearSVR(C=C, epsilon=epsilon, loss=loss, fit_intercept=False, random_state=0, **setting)


class SklearnLogistic(SklearnLinear):
    """scikit-learn's LogisticRegression: its C is ours."""

    name = "sklearn LogisticRegression"
    losses = ("logistic",)

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        newton = "newton-cholesky" if data.X.shape[1] <= MOST_FEATURES else "newton-cg"
        solvers = [newton, "lbfgs", "liblinear", "sag", "saga"]
        fixed = {"layout": layouts(data)[0], "max_iter": MANY}
        return {solver: ladder("tol", solver=solver, **fixed) for solver in solvers}

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=C, fit_intercept=False, random_state=0, **setting)


class SklearnSGD(LossPeer, Estimator):
    """scikit-learn's SGDClassifier or SGDRegressor, alpha = 1/(C n), 2/(C n) for the median. Seconds: `fit`.

    A rung is a number of epochs; the last and the averaged iterate are tried. With the squared hinge SGDClassifier's
    own step lengths diverge, so that it has those of SGDRegressor.
    """

    name = "sklearn SGD"
    module = "sklearn"
    losses = tuple(loss for loss in LOSSES if loss != "pinball-0.9")

    ladders = peers.SklearnSGD.ladders
    effort = peers.SklearnSGD.effort

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        C, epsilon = median_cost(data, C)
        names = {"logistic": "log_loss", "pinball-0.5": "epsilon_insensitive"}
        options = {"loss": names.get(data.loss, data.loss), "alpha": 1 / (C * data.n), "tol": None} | setting
        options |= {"fit_intercept": False, "random_state": 0}
        if LOSSES[data.loss].regression:
            return SGDRegressor(epsilon=epsilon, **options)
        if data.loss == "squared_hinge":
            options |= {"learning_rate": "invscaling", "eta0": 0.01}
        return SGDClassifier(**options)


class SnapML(LossPeer, Estimator):
    """snapml's SupportVectorMachine and LogisticRegression, regularizer = 1/C, with as many threads as cores."""

    name = "snapml"
    module = "snapml"
    losses = ("hinge", "squared_hinge", "logistic")

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        fixed = {"layout": layouts(data)[0], "n_jobs": cores()}
        if data.loss != "logistic":
            return {"dual": ladder("tol", TOLERANCES[1:], **fixed)}
        ways = {"dual": True, "primal": False}
        return {name: ladder("tol", TOLERANCES[1:], dual=dual, **fixed) for name, dual in ways.items()}

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from snapml import LogisticRegression, SupportVectorMachine

        options = {"regularizer": 1 / C, "max_iter": MANY, "fit_intercept": False, "normalize": False} | setting
        options["random_state"] = 0
        if data.loss == "logistic":
            return LogisticRegression(**options)
        return SupportVectorMachine(loss=data.loss, **options)


class Rehline(LossPeer):
    """rehline: its C is ours. The squared epsilon-insensitive loss is written with its own pieces. Seconds: `fit`.

    Its piece ReHU is z^2/2 for z > 0, so that z = sqrt(2) (|y - f| - epsilon) is ours, one piece for each sign.
    """

    name = "rehline"
    module = "rehline"
    losses = tuple(loss for loss in LOSSES if loss != "logistic")

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"": ladder("tol", layout=layouts(data)[0], max_iter=MANY)}

    def convert(self, data: DataSet, layout: str) -> Any:
        return super().convert(data, layout).astype(np.float64)

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        setting = dict(setting)
        X = self.form(data, setting.pop("layout"))
        start = time.perf_counter()
        w = self.pieces(X, data, C, setting) if data.loss.startswith("squared_eps") else self.named(X, data, C, setting)
        return w, 0.0, time.perf_counter() - start

    def named(self, X: Any, data: DataSet, C: float, setting: Setting) -> np.ndarray:
        from rehline import plqERM_Ridge

        value = parameter(data)
        losses = {
            "hinge": {"name": "svm"},
            "squared_hinge": {"name": "squared svm"},
            "epsilon_insensitive": {"name": "svr", "epsilon": value},
            "huber": {"name": "huber", "tau": value},
        }
        loss = losses.get(data.loss, {"name": "QR", "qt": value})
        found: np.ndarray = plqERM_Ridge(loss=loss, C=C, **setting).fit(X, data.y).coef_
        return found

    def pieces(self, X: Any, data: DataSet, C: float, setting: Setting) -> np.ndarray:
        from rehline import ReHLine

        root, epsilon = np.sqrt(2.0), parameter(data)
        S = root * np.vstack([np.ones(data.n), -np.ones(data.n)])
        T = root * np.vstack([-data.y - epsilon, data.y - epsilon])
        found: np.ndarray = ReHLine(C=C, S=S, T=T, Tau=np.full(S.shape, np.inf), **setting).fit(X).coef_
        return found


class Skglm(SklearnLinear):
    """skglm's Huber datafit, a mean, with L1_plus_L2(alpha = 1/(C n), l1_ratio = 0); compiled by the warm-up."""

    name = "skglm"
    module = "skglm"
    losses = ("huber",)

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        tols = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
        ways = ("AndersonCD", "FISTA")
        return {name: ladder("tol", tols, layout=layouts(data)[0], solver=name) for name in ways}

    def convert(self, data: DataSet, layout: str) -> Any:
        X = super().convert(data, layout)
        return X.tocsc() if layout == "csr" else np.asfortranarray(X)

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from skglm import GeneralizedLinearEstimator, datafits, penalties, solvers

        options = {"tol": setting["tol"], "max_iter": MANY}
        if setting["solver"] == "FISTA":
            solver = solvers.FISTA(**options)
        else:
            solver = solvers.AndersonCD(fit_intercept=False, **options)
        penalty = penalties.L1_plus_L2(1 / (C * data.n), 0.0)
        return GeneralizedLinearEstimator(datafits.Huber(parameter(data)), penalty, solver)

    def answer(self, model: Any) -> tuple[np.ndarray, float]:
        return np.ravel(model.coef_), 0.0


class Glum(SklearnLinear):
    """glum's GeneralizedLinearRegressor, alpha = 1/(C n), l1_ratio = 0, the classes as 0 and 1."""

    name = "glum"
    module = "glum"
    losses = ("logistic",)

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        name = "irls-ls" if data.X.shape[1] <= MOST_FEATURES else "lbfgs"
        fixed = {"layout": layouts(data)[0], "max_iter": MANY}
        return {name: ladder("gradient_tol", TOLERANCES[1:], solver=name, **fixed)}

    def convert(self, data: DataSet, layout: str) -> Any:
        X = super().convert(data, layout)
        return X.tocsc() if layout == "csr" else X

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from glum import GeneralizedLinearRegressor

        fixed = {"family": "binomial", "l1_ratio": 0.0, "fit_intercept": False}
        return GeneralizedLinearRegressor(alpha=1 / (C * data.n), **fixed, **setting)

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        return super().fit(data._replace(y=(data.y > 0).astype(np.float64)), C, setting, limit)


class SklearnQuantile(SklearnLinear):
    """scikit-learn's QuantileRegressor. Its penalty is |w|_1, so that it runs without: right where C is large."""

    name = "sklearn QuantileRegressor"
    losses = ("pinball-0.5", "pinball-0.9")

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"highs": [{"solver": "highs"}]}

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.linear_model import QuantileRegressor

        return QuantileRegressor(quantile=parameter(data), alpha=0.0, fit_intercept=False, **setting)


class Statsmodels(LossPeer):
    """statsmodels' QuantReg on dense rows. It has no penalty: right where C is large. Seconds: `QuantReg` and `fit`."""

    name = "statsmodels"
    module = "statsmodels"
    losses = ("pinball-0.5", "pinball-0.9")

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"": ladder("p_tol", TOLERANCES[1:], max_iter=MANY)}

    def convert(self, data: DataSet, layout: str) -> Any:
        if data.X.shape[1] > MOST_FEATURES:
            raise ValueError("dense rows only")
        return (data.X.toarray() if data.sparse else data.X).astype(np.float64)

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        from statsmodels.regression.quantile_regression import QuantReg

        X = self.form(data, "")
        start = time.perf_counter()
        found = QuantReg(data.y, X).fit(q=parameter(data), **setting)
        return np.asarray(found.params), 0.0, time.perf_counter() - start


class ScipyLBFGS(LossPeer):
    """SciPy's L-BFGS-B on F / (C n), written in NumPy: what there is without a library. Smooth losses only."""

    name = "SciPy L-BFGS"
    module = "scipy"
    losses = tuple(name for name, loss in LOSSES.items() if loss.smooth)

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"": ladder("gtol", (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8))}

    def convert(self, data: DataSet, layout: str) -> Measure:
        return Measure(data)

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        from scipy.optimize import minimize

        measure = self.form(data, "")
        scale = 1 / (C * data.n)

        def mean(w: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = measure.evaluate(w, C)
            return scale * value, scale * gradient

        options = {"maxiter": MANY, "maxfun": MANY, "ftol": 0.0, **setting}
        start = time.perf_counter()
        found = minimize(mean, np.zeros(data.X.shape[1]), jac=True, method="L-BFGS-B", options=options)
        return found.x, 0.0, time.perf_counter() - start


# In the order in which they run: those that are often fast first, because the others get no more than a multiple.
KINDS: tuple[type[LossPeer], ...] = (
    Ours,
    Liblinear,
    SklearnLinearSVC,
    SklearnLinearSVR,
    SklearnLogistic,
    Glum,
    SnapML,
    Skglm,
    ScipyLBFGS,
    Rehline,
    SklearnSGD,
    Statsmodels,
    SklearnQuantile,
)
PEERS: dict[str, type[LossPeer]] = {peer.name: peer for peer in KINDS}


class LossWorker(Worker):
    """A process with one of these solvers and one of these problems."""

    kinds = PEERS

    @staticmethod
    def work(pipe: Any, name: str, set_name: str, folder: Path) -> None:
        serve(pipe, PEERS[name](), losses_data.load(set_name, folder))
