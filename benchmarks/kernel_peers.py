"""The solvers that `kernel.py` compares, behind one small class, each fit in a process of its own.

Everybody minimises the F of `kernel_judge.py`; liquidSVM has no intercept. A fit gives the coefficients and the seconds
of training alone; a solver's own figures are kept as claims.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import multiprocessing
import os
import re
import resource
import sys
import sysconfig
import tempfile
import time
import types
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernel_data import Problem, Rows
from kernel_judge import Fitted, held_out_error, judge

Setting = dict[str, Any]
SHORT = 10.0  # seconds: a longer fit is not repeated
MEMORY = 3 << 30  # bytes that the process of a fit has had before
WARM_UP = 300  # rows of a first fit that is not timed
START = 120.0  # seconds for imports and the first fit
CHECKS = 900.0  # seconds for F and the test error, after a fit
MATRIX_ROWS = 40_000  # rows whose matrix of kernel values in float64 liquidSVM may hold
CACHE = 8000  # MB of kernel values for liquidSVM, if there are more


class Peer:
    """A solver: the ways to run it, the likely fastest first, its tolerances, and a timed fit."""

    name: str
    package: str
    module: str
    intercepts: tuple[bool, ...] = (True,)
    many_classes = True
    first_tol = 1e-3  # the default; with it the ways to run the solver are compared
    other_tols: tuple[float, ...] = (1e-1, 1e-2)
    tight_tol = 1e-4  # for small sets, and where no other is close enough
    slack = 2.0  # seconds beyond its limit before the process of a fit is ended
    environment: tuple[tuple[str, str], ...] = ()

    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    def version(self) -> str:
        with suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(self.package)
        return ""

    def variants(self, rows: Rows) -> list[Setting]:
        raise NotImplementedError

    def fit(self, rows: Rows, problem: Problem, setting: Setting, threads: int, limit: float) -> Fitted:
        raise NotImplementedError


def dense(coefficients: Any) -> np.ndarray:
    values = coefficients.toarray() if sp.issparse(coefficients) else coefficients
    return np.asarray(values, dtype=np.float64)


def timed(model: Any, X: Any, y: np.ndarray) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


class LibSVM(Peer):
    """scikit-learn's SVC, which computes in float64 on one core. Seconds: `fit`."""

    name, package, module = "sklearn SVC", "scikit-learn", "sklearn"

    def variants(self, rows: Rows) -> list[Setting]:
        return [{"layout": layout, "cache": cache} for cache in (1000, 200) for layout in rows.layouts()]

    def model(self, **options: Any) -> Any:
        from sklearn.svm import SVC

        return SVC(**options)

    def fit(self, rows: Rows, problem: Problem, setting: Setting, threads: int, limit: float) -> Fitted:
        X = rows.form(setting["layout"], setting.get("dtype", "float64"))
        model = self.model(C=problem.C, gamma=problem.gamma, tol=setting["tol"], cache_size=setting["cache"])
        seconds = timed(model, X, rows.y)
        layout = sp.csr_matrix if setting["layout"] == "csr" else np.asarray

        def predict(test: Any) -> np.ndarray:
            shape = rows._replace(X=test).form(setting["layout"], X.dtype)
            return np.asarray(model.predict(layout(shape)))

        return Fitted(seconds, model.support_, dense(model.dual_coef_), predict)


class Intelex(LibSVM):
    """scikit-learn-intelex, oneDAL's SVC. Seconds: `fit`."""

    name, package, module = "intelex SVC", "scikit-learn-intelex", "sklearnex"

    def variants(self, rows: Rows) -> list[Setting]:
        return [
            {"layout": layout, "cache": cache, "dtype": dtype}
            for dtype, cache in (("float32", 1000), ("float32", 200), ("float64", 1000))
            for layout in rows.layouts()
        ]

    def model(self, **options: Any) -> Any:
        from sklearnex.svm import SVC

        return SVC(**options)


class ThunderSVM(Peer):
    """thundersvm-cpu, in float32. Seconds: the call of its library, without copies of the model to Python.

    For sparse rows version 0.3.3 hands integer labels to a library that reads real ones, and so finds a class in every
    row; here it gets real ones. Its waiting threads sleep: while other programs ran, they took most of the time.
    """

    name, package, module, many_classes = "thundersvm", "thundersvm-cpu", "thundersvm", False
    environment = (("OMP_WAIT_POLICY", "PASSIVE"),)

    def variants(self, rows: Rows) -> list[Setting]:
        return [{"layout": layout, "threads": threads} for layout in rows.layouts() for threads in ("all", 1)]

    def fit(self, rows: Rows, problem: Problem, setting: Setting, threads: int, limit: float) -> Fitted:
        from thundersvm import SVC

        X = rows.form(setting["layout"], np.float32)
        used = threads if setting["threads"] == "all" else setting["threads"]
        model = SVC(kernel="rbf", C=problem.C, gamma=problem.gamma, tol=setting["tol"], n_jobs=used)
        wrapper = sys.modules["thundersvm.thundersvm"]
        library = TimedLibrary(wrapper.thundersvm, rows.y)
        wrapper.thundersvm = library
        try:
            model.fit(X, rows.y)
        finally:
            wrapper.thundersvm = library.library
        return Fitted(library.seconds, model.support_, dense(model.dual_coef_))


class TimedLibrary:
    """thundersvm's library, with the seconds of training, and real labels for sparse rows."""

    def __init__(self, library: Any, y: np.ndarray) -> None:
        self.library, self.seconds = library, 0.0
        self.labels = np.ascontiguousarray(y, dtype=np.float32)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def dense_model_scikit(self, *arguments: Any) -> None:
        self._train(self.library.dense_model_scikit, arguments)

    def sparse_model_scikit(self, *arguments: Any) -> None:
        labels = self.labels.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self._train(self.library.sparse_model_scikit, (*arguments[:4], labels, *arguments[5:]))

    def _train(self, train: Any, arguments: tuple[Any, ...]) -> None:
        start = time.perf_counter()
        train(*arguments)
        self.seconds = time.perf_counter() - start


class LiquidSVM(Peer):
    """liquidSVM, without intercept, one fold of all rows. Seconds: `train` and `select`.

    Its kernel is exp(-|x - z|^2 / gamma^2) and its lambda 1 / (2 C n); it stops when the gap, of a loss that is clipped
    at 2, is below `tol` C n. Where rows have a larger loss, it stops early, whatever `tol` is.
    """

    name, package, module, many_classes = "liquidSVM", "liquidSVM", "liquidSVM", False
    intercepts = (False,)
    other_tols, tight_tol = (1e-2, 1e-4), 1e-5

    def variants(self, rows: Rows) -> list[Setting]:
        if rows.n > MATRIX_ROWS:  # its cache works with one thread only
            return [{"layout": "dense", "threads": 1, "memory": f"cache {CACHE}"}]
        return [{"layout": "dense", "threads": threads, "memory": "matrix"} for threads in ("all", 1)]

    def fit(self, rows: Rows, problem: Problem, setting: Setting, threads: int, limit: float) -> Fitted:
        liquid = import_liquid()
        X = rows.form("dense", np.float64)
        memory = ["0", "3", "1", "3", "3"] if setting["memory"] == "matrix" else ["0", "3", "2", str(CACHE), "3", "3"]
        used = threads if setting["threads"] == "all" else setting["threads"]
        model = liquid.SVM(
            X,
            rows.y,
            svm_type="SVM_HINGE_2D",
            ws_type="FULL_SET",
            loss_type="CLASSIFICATION_LOSS",
            folds_kind="BLOCKS",
            folds=1,
            gammas=f"{problem.gamma**-0.5:.18f}",  # it reads no exponents
            lambdas=f"{0.5 / (problem.C * rows.n):.18f}",
            threads=used,
        )
        start = time.perf_counter()
        model.train(s=["0.0", f"{setting['tol']:.9f}"], k=memory)
        model.select()
        seconds = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.sol"
            liquid._libliquidSVM.liquid_svm_write_solution(model.cookie, str(path).encode(), 0, None)
            pairs = re.findall(r"(\d+):(\S+)", path.read_text())
        support = np.array([int(row) for row, _ in pairs], dtype=np.intp)
        return Fitted(seconds, support, np.array([[float(value) for _, value in pairs]]))


def import_liquid() -> Any:
    """liquidSVM, whose import asks for two things that Python has no more: pkg_resources and a name of sysconfig."""
    sys.modules.setdefault("pkg_resources", types.ModuleType("pkg_resources"))
    original = sysconfig.get_config_var
    sysconfig.get_config_var = lambda name: original("EXT_SUFFIX" if name == "SO" else name)
    try:
        import liquidSVM
    finally:
        sysconfig.get_config_var = original
    return liquidSVM


class Ours(Peer):
    """cutsvm.KernelSVC. Seconds: the whole `fit`, its checks and its certificate included."""

    package = module = "cutsvm"
    slack = 60.0

    def __init__(self, solver: str) -> None:
        self.name, self.solver = f"cutsvm {solver}", solver
        self.intercepts = (False,) if solver == "sgd" else (True, False)  # with one, "sgd" solves another problem

    def variants(self, rows: Rows) -> list[Setting]:
        return [{"layout": rows.layouts()[0]}]

    def fit(self, rows: Rows, problem: Problem, setting: Setting, threads: int, limit: float) -> Fitted:
        from cutsvm import KernelSVC

        options = {"tol": setting["tol"], "solver": self.solver, "n_jobs": threads, "max_time": limit}
        options["fit_intercept"] = setting["intercept"]
        X = rows.form(setting["layout"])
        model = KernelSVC(C=problem.C, kernel="rbf", gamma=problem.gamma, **options)
        seconds = timed(model, X, rows.y)
        by = problem.C * rows.n if len(rows.classes) == 2 else np.nan  # of pairs with different numbers of rows: no sum
        claims = {"claimed_objective": model.objective_ * by, "claimed_lower": model.lower_bound_ * by}
        claims |= {"claimed_gap": model.gap_, "proved": bool(model.converged_)}
        layout = setting["layout"]

        def predict(test: Any) -> np.ndarray:
            return np.asarray(model.predict(rows._replace(X=test).form(layout)))

        return Fitted(seconds, model.support_, dense(model.dual_coef_), predict, claims)


PEERS = {peer.name: peer for peer in (LibSVM(), Intelex(), ThunderSVM(), LiquidSVM())}


def run(peer: Peer, rows: Rows, problem: Problem, setting: Setting, limit: float, options: Any) -> dict[str, Any]:
    """One fit in a process of its own: status, seconds, and what `judge` makes of the answer."""
    context = multiprocessing.get_context("spawn")  # in a forked process cutsvm has one thread: OpenMP may hang there
    pipe, end = context.Pipe()
    process = context.Process(target=_work, args=(end, peer, rows, problem, setting, limit, options), daemon=True)
    process.start()
    end.close()
    failed: dict[str, Any] = {"status": "error", "seconds": ""}
    try:
        for stage, patience in (("start", START), ("fit", limit + peer.slack), ("check", CHECKS)):
            if not pipe.poll(patience):
                late = stage == "fit"
                return failed | ({"status": "limit", "seconds": limit} if late else {"message": f"no end of {stage}"})
            message = pipe.recv()
            if "status" in message:
                return message
        return failed
    except EOFError:
        process.join()
        return failed | {"message": f"its process ended with code {process.exitcode}"}
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def _work(pipe: Any, peer: Peer, rows: Rows, problem: Problem, setting: Setting, limit: float, options: Any) -> None:
    """What the process of a fit does."""
    warnings.simplefilter("ignore")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    os.environ.update(peer.environment)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    memory = int(options.most_memory * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    np.ones(MEMORY // 8)  # memory that the host of a virtual machine has taken back is slow for the first who needs it
    few = rows._replace(X=rows.X[:WARM_UP], y=rows.y[:WARM_UP])
    with suppress(Exception):
        peer.fit(few, problem, setting, options.threads, 5.0)
    pipe.send({})
    try:
        fits = [peer.fit(rows, problem, setting, options.threads, limit)]
        pipe.send({})
        while len(fits) < options.repeat and fits[0].seconds < SHORT:
            fits.append(peer.fit(rows, problem, setting, options.threads, limit))
        found = fits[-1]
        verdict = judge(rows, found, problem.C, problem.gamma, setting["intercept"])
        seconds = float(np.median([fit.seconds for fit in fits]))
        answer = {"status": "ok" if seconds <= limit else "limit", "seconds": seconds, "rounds": len(fits)}
        answer |= {"support": len(found.support), "objective": verdict.objective, "dual": verdict.dual}
        answer["test_error"] = held_out_error(rows, found, problem.gamma, verdict.intercept)
        pipe.send(answer | (found.claims or {}))
    except Exception as error:  # a solver that fails is reported, and the others go on
        pipe.send({"status": "error", "seconds": "", "message": f"{type(error).__name__}: {error}"})
