"""The solvers that the benchmarks compare, each behind the same small class, each in a process of its own.

Everybody minimises F(w, b) = (|w|^2 + b^2)/2 + C sum_i max(0, 1 - y_i (w.x_i + b)), and with more than two classes
F(W, b) = sum_k (|w_k|^2 + b_k^2)/2 + C sum_i max_k ((k != y_i) + s_ik - s_iy_i), s_ik = w_k.x_i + b_k: the intercept is
one more weight, for a constant feature of 1. `fit` gives w, b and the seconds of training alone. What `judge`
makes of w and b is all that counts; a solver's own figures are kept as claims.
"""

from __future__ import annotations

import ctypes
import importlib.util
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from data import DataSet, load, svmlight_file

Setting = dict[str, Any]
Fit = tuple[np.ndarray, Any, float]  # w, b (numbers of classes x features and classes, if these are more than two), s


def cores() -> int:
    """How many cores this process, and those that it starts, may use."""
    return len(os.sched_getaffinity(0))


CORES = cores()


class Verdict(NamedTuple):
    """What an answer is worth: F, and the share of the rows that it puts into the wrong class."""

    objective: float
    error: float


def judge(data: DataSet, w: np.ndarray, b: Any, C: float) -> Verdict:
    """F(w, b) and the error on the rows, in float64, block by block: the one measure for everybody."""
    w, b = np.asarray(w, dtype=np.float64), np.asarray(b, dtype=np.float64)
    score = two_class_losses if data.classes == 2 else multi_class_losses
    loss = wrong = 0.0
    for start in range(0, data.n, 50_000):
        rows = slice(start, start + 50_000)
        losses, errors = score(data.X[rows].astype(np.float64) @ w.T + b, data.y[rows])
        loss += losses.sum()
        wrong += np.count_nonzero(errors)
    return Verdict(float((np.vdot(w, w) + np.vdot(b, b)) / 2 + C * loss), float(wrong / data.n))


def two_class_losses(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of every row, and whether its class is wrong."""
    margins = y * scores
    return np.maximum(0.0, 1.0 - margins), margins <= 0


def multi_class_losses(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of every row, and whether its class is wrong; a tie is wrong."""
    own = (np.arange(len(y)), y.astype(int) - 1)
    rises = scores - scores[own][:, None]
    rises[own] = -1.0
    worst = rises.max(axis=1)
    return np.maximum(0.0, 1.0 + worst), worst >= 0


def as_csr(X: Any) -> sp.csr_matrix:
    """X as CSR. A dense one goes block by block, which takes a quarter of the memory."""
    if isinstance(X, sp.csr_matrix):
        return X
    blocks = [sp.csr_matrix(X[start : start + 100_000]) for start in range(0, X.shape[0], 100_000)]
    return sp.csr_matrix(sp.vstack(blocks, format="csr"))


def with_ones(data: DataSet, layout: str) -> Any:
    """X with a constant feature of 1 after the others."""
    ones = np.ones((data.n, 1), dtype=np.float32)
    if layout == "csr":
        return sp.hstack([as_csr(data.X), sp.csr_matrix(ones)], format="csr")
    return np.hstack([data.X, ones])


def layouts(data: DataSet) -> list[str]:
    """How a set may be handed over, the likely best first: a dense one with many zeros also as CSR."""
    if data.sparse:
        return ["csr"]
    return ["csr", "dense"] if data.density < 0.5 else ["dense"]


class Peer:
    """A solver, the forms of the data that it wants, and its ladders of settings from loose to tight."""

    name: str
    module: str
    certified = False
    slack = 2.0  # seconds that a fit may take beyond training, before its process is ended

    def __init__(self) -> None:
        self._forms: dict[tuple[str, int, str], Any] = {}
        self.claims: dict[str, Any] = {}

    @classmethod
    def installed(cls) -> bool:
        return importlib.util.find_spec(cls.module) is not None

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        """Settings from loose to tight, one ladder per way of running the solver."""
        raise NotImplementedError

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        """Train; a solver that can stop by itself does so after `limit` seconds."""
        raise NotImplementedError

    def effort(self, setting: Setting) -> float:
        """What time is proportional to, where that is known; else 0."""
        return 0.0

    def ends(self, setting: Setting) -> bool:
        """Whether the same answer as at the setting before means that no tighter setting brings more.

        So it is with an iteration limit. A method of few long steps may pass several settings in one of them.
        """
        return True

    def form(self, data: DataSet, layout: str) -> Any:
        """The data in the form that the solver reads, made once."""
        key = (data.name, data.n, layout)
        if key not in self._forms:
            self._forms[key] = self.convert(data, layout)
        return self._forms[key]

    def convert(self, data: DataSet, layout: str) -> Any:
        return as_csr(data.X) if layout == "csr" else data.X


class Estimator(Peer):
    """A peer with the interface of scikit-learn. Seconds: its `fit`."""

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        """The estimator for a setting, which has no layout any more."""
        raise NotImplementedError

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        setting = dict(setting)
        X = self.form(data, setting.pop("layout", ""))
        model = self.model(data, C, setting)
        start = time.perf_counter()
        model.fit(X, data.y)
        seconds = time.perf_counter() - start
        return *self.answer(model), seconds

    def answer(self, model: Any) -> tuple[np.ndarray, float]:
        """w and b of a fitted model."""
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


# Solvers of cutsvm that have no name there: how they are made.
MADE: dict[str, tuple[str, dict[str, Any]]] = {"sifting": ("Sifting", {}), "dcd-async": ("DCD", {"asynchronous": True})}
OWN = ("auto", "ocas", "sifting", "dcd")
OWN_MULTI = ("auto", "ocas", "sifting")  # those that have more than two classes


def own_solver(name: str) -> Any:
    """What `LinearSVC(solver=...)` takes for a name of ours; AttributeError when this cutsvm does not have it."""
    from cutsvm import solvers

    if name not in MADE:
        return name
    kind, settings = MADE[name]
    return getattr(solvers, kind)(**settings)


def work(history: list[dict[str, Any]], n: int) -> dict[str, Any]:
    """What a fit of ours read: full passes, rows visited in all, and what the solver says that it did."""
    last = history[-1]
    passes = last["passes"]
    notes = dict.fromkeys(str(record["note"]) for record in history if record.get("note"))
    visits = last.get("visits", passes * n + last.get("rows_read", 0))
    return {"passes": passes, "visits": visits, "note": " | ".join(notes)}


class Ours(Peer):
    """cutsvm.LinearSVC. Seconds: the whole `fit`, its checks and its certificate included.

    After every fit the time of one pass over the data is taken, the best so far.
    """

    name = "cutsvm"
    module = "cutsvm"
    certified = True
    slack = 30.0

    def __init__(self) -> None:
        super().__init__()
        self._passes: dict[tuple[str, int, str], float] = {}

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        layout = layouts(data)[0]
        names = OWN if data.classes == 2 else OWN_MULTI
        return {name: [{"layout": layout, "solver": name, "tol": gap} for gap in gaps] for name in names}

    def model(self, data: DataSet, C: float, options: Setting) -> Any:
        """The estimator with these options."""
        from cutsvm import LinearSVC

        if data.classes > 2:
            options["multi_class"] = "crammer_singer"
        return LinearSVC(C, intercept="regularized", **options)

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        layout, tol = setting["layout"], setting["tol"]
        options = {"tol": tol, "solver": own_solver(setting["solver"]), "n_jobs": -1, "max_time": limit}
        X = self.form(data, layout)
        model = self.model(data, C, options)
        start = time.perf_counter()
        model.fit(X, data.y)
        seconds = time.perf_counter() - start
        self.claims = {
            "primal": float(model.objective_),
            "lower": float(model.lower_bound_),
            "iterations": int(np.max(model.n_iter_)),
            "stopped": bool(np.all(model.converged_)),
            "pass_seconds": self.one_pass(data, layout),
            **work(model.history_, data.n),
        }
        if data.classes > 2:
            return model.coef_, model.intercept_, seconds
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), seconds

    def one_pass(self, data: DataSet, layout: str, rounds: int = 3) -> float:
        """Seconds for the scores of all rows on all cores, by the kernel that a fit uses: the best so far.

        The scores are those of one class, so with more classes this is the time of reading X, not of their scores.
        """
        from cutsvm._utils.threads import count
        from cutsvm.matrix import as_rows

        rows = as_rows(self.form(data, layout), count(-1))
        w, out = np.linspace(-1.0, 1.0, rows.d), np.empty(rows.n)
        key = (data.name, data.n, layout)
        for _ in range(rounds):
            start = time.perf_counter()
            rows.scores(w, 0.5, out)
            self._passes[key] = min(time.perf_counter() - start, self._passes.get(key, np.inf))
        return self._passes[key]


class SvmOcas(Peer):
    """libocas's command line tool. Seconds: its own `ocas_time`, which leaves out reading the file."""

    name = "svmocas"
    fixed: tuple[str, ...] = ("-b", "1")
    certified = True
    slack = 120.0

    @classmethod
    def installed(cls) -> bool:
        return shutil.which(cls.name) is not None

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        threads = sorted({1, CORES})
        return {f"{p} threads": [{"r": gap, "p": p} for gap in gaps] for p in threads}

    def convert(self, data: DataSet, layout: str) -> Path:
        return svmlight_file(data)

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        options = [part for key, value in setting.items() for part in (f"-{key}", str(value))]
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            command = [self.name, "-c", repr(C), *self.fixed, "-t", str(limit), *options]
            command += [str(self.form(data, "")), str(model)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit + self.slack - 10)
            if done.returncode != 0 or not model.exists():
                raise RuntimeError((done.stderr or done.stdout)[-300:])
            weights = np.loadtxt(model)
        seconds = {key: float(value) for key, value in re.findall(r"(\w+_time)\s*:\s*([.\d]+)", done.stdout)}
        # A line has Q_P and Q_D, and then their difference and their ratio, whose names end in Q_D and Q_P.
        primal, lower = zip(*re.findall(r" Q_P=([-+.\deE]+), Q_D=([-+.\deE]+)", done.stdout), strict=True)
        self.claims = {
            "primal": float(primal[-1]),
            "lower": float(lower[-1]),
            "iterations": len(primal) - 1,
            "stopped": "<= TolRel" in done.stdout,
            "standstills": sum(before == after for before, after in pairwise(primal[1:])),
            "parts": seconds,
        }
        return *self.answer(data, weights), seconds["ocas_time"]

    def answer(self, data: DataSet, weights: np.ndarray) -> tuple[np.ndarray, Any]:
        """w and b from the lines of a model file; the last line is b."""
        w = np.zeros(data.X.shape[1])
        w[: len(weights) - 1] = weights[:-1]  # features after the last one in use have no line
        return w, float(weights[-1])


class MultiSvmOcas(SvmOcas):
    """libocas's tool for more than two classes: one thread, and no intercept of its own, so that X has one more column.

    `ones=False` leaves that column and the intercept out.
    """

    name = "msvmocas"
    fixed = ()

    def __init__(self, ones: bool = True) -> None:
        super().__init__()
        self.ones = ones

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"1 thread": [{"r": gap} for gap in gaps]}

    def convert(self, data: DataSet, layout: str) -> Path:
        if not self.ones:
            return svmlight_file(data)
        return svmlight_file(data._replace(name=f"{data.name}-ones", X=with_ones(data, layouts(data)[0])))

    def answer(self, data: DataSet, weights: np.ndarray) -> tuple[np.ndarray, Any]:
        """W and b from a model file with a line per feature and a column per class."""
        d, classes = data.X.shape[1], weights.shape[1]
        W = np.zeros((classes, d + self.ones))
        W[:, : len(weights)] = weights.T
        return (W[:, :-1], W[:, -1]) if self.ones else (W, np.zeros(classes))


class Liblinear(Peer):
    """LIBLINEAR -B 1, -s 3 or, with more than two classes, -s 4. Seconds: its C function `train`.

    Making its sparse rows before is not counted.
    """

    name = "LIBLINEAR"
    module = "liblinear"
    bias = 1

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        s = 3 if data.classes == 2 else 4
        return {f"-s {s}": [{"s": s, "e": e} for e in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)]}

    def convert(self, data: DataSet, layout: str) -> Any:
        from liblinear.liblinear import problem

        return problem(data.y, as_csr(data.X), self.bias)

    def options(self, data: DataSet, C: float, setting: Setting) -> str:
        """Its command line."""
        return f"-s {setting['s']} -c {C!r} -e {setting['e']}"

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        from liblinear.liblinear import liblinear, parameter, toPyModel

        problem = self.form(data, "")
        options = parameter(f"{self.options(data, C, setting)} -B {self.bias} -q")
        liblinear.set_print_string_function(options.print_func)
        ctypes.CDLL(None).srand(1)  # as in a new process: the same answer every time
        start = time.perf_counter()
        pointer = liblinear.train(problem, options)
        seconds = time.perf_counter() - start
        model = toPyModel(pointer)
        if data.classes == 2:
            w, b = model.get_decfun()
            return np.asarray(w), float(b), seconds
        shape = (model.nr_feature + 1, model.nr_class)
        weights = np.ctypeslib.as_array(model.w, shape)[:, np.argsort(model.get_labels())]
        return weights[:-1].T, weights[-1], seconds


class SklearnLinearSVC(Estimator):
    """scikit-learn's LinearSVC on float64, CSR where zeros abound. Seconds: `fit`, which copies the rows."""

    name = "sklearn LinearSVC"
    module = "sklearn"

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"dual": [{"tol": tol, "max_iter": 10**6} for tol in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)]}

    def convert(self, data: DataSet, layout: str) -> Any:
        return super().convert(data, layouts(data)[0]).astype(np.float64)

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.svm import LinearSVC

        return LinearSVC(C=C, loss="hinge", dual=True, intercept_scaling=1, random_state=0, **setting)


class SklearnSGD(Estimator):
    """scikit-learn's SGDClassifier, alpha = 1/(C n), the constant column in X. Seconds: `fit`.

    A rung is a number of epochs; the last and the averaged iterate are tried.
    """

    name = "sklearn SGD"
    module = "sklearn"

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        epochs = (1, 3, 10, 30, 100, 300, 1000)
        layout = layouts(data)[0]
        return {
            name: [{"layout": layout, "average": average, "max_iter": k} for k in epochs]
            for name, average in (("last", False), ("averaged", True))
        }

    def effort(self, setting: Setting) -> float:
        return float(setting["max_iter"])

    def convert(self, data: DataSet, layout: str) -> Any:
        return with_ones(data, layout)

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from sklearn.linear_model import SGDClassifier

        alpha = 1 / (C * data.n)
        return SGDClassifier(alpha=alpha, tol=None, fit_intercept=False, random_state=0, **setting)

    def answer(self, model: Any) -> tuple[np.ndarray, float]:
        return model.coef_[0, :-1], float(model.coef_[0, -1])


class SnapML(Estimator):
    """snapml's SupportVectorMachine, regularizer = 1/C, its own constant feature. Seconds: `fit`."""

    name = "snapml"
    module = "snapml"

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        tols = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
        layout = layouts(data)[0]
        return {
            f"{jobs} threads": [{"layout": layout, "n_jobs": jobs, "tol": tol} for tol in tols]
            for jobs in sorted({1, CORES})
        }

    def model(self, data: DataSet, C: float, setting: Setting) -> Any:
        from snapml import SupportVectorMachine

        fixed = {"fit_intercept": True, "normalize": False, "max_iter": 10**6, "random_state": 0}
        return SupportVectorMachine(regularizer=1 / C, **fixed, **setting)


class Dlib(Peer):
    """dlib's svm_c_linear_trainer, C times n. Seconds: `train`; making its vectors before is not counted.

    From Python only the absolute accuracy can be set; it also stops when its risk is known to 1e-4 of itself.
    """

    name = "dlib"
    module = "dlib"

    def ladders(self, data: DataSet, gaps: list[float]) -> dict[str, list[Setting]]:
        epsilons = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-7)
        return {"linear": [{"layout": layouts(data)[0], "epsilon": eps} for eps in epsilons]}

    def convert(self, data: DataSet, layout: str) -> Any:
        import dlib

        rows = dlib.vectors() if layout == "dense" else dlib.sparse_vectors()
        for start in range(0, data.n, 10_000):
            block = data.X[start : start + 10_000]
            if layout == "dense":
                rows.extend([dlib.vector(row) for row in block.tolist()])
            else:
                rows.extend(dlib_sparse(sp.csr_matrix(block)))
        return rows, dlib.array(data.y.tolist())

    def fit(self, data: DataSet, C: float, setting: Setting, limit: float) -> Fit:
        import dlib

        dense = setting["layout"] == "dense"
        trainer = dlib.svm_c_trainer_linear() if dense else dlib.svm_c_trainer_sparse_linear()
        trainer.set_c(C * data.n)
        trainer.epsilon = setting["epsilon"]
        rows, labels = self.form(data, setting["layout"])
        start = time.perf_counter()
        model = trainer.train(rows, labels)
        seconds = time.perf_counter() - start
        w = np.zeros(data.X.shape[1])
        if dense:
            w[:] = list(model.weights)
        else:
            for pair in model.weights:
                w[pair.first] = pair.second
        return w, -float(model.bias), seconds  # dlib's function is w.x - bias


def dlib_sparse(X: sp.csr_matrix) -> list[Any]:
    """dlib's sparse vectors for a block of rows."""
    import dlib

    indices, values, ends = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
    rows = []
    for start, end in pairwise(ends):
        row = dlib.sparse_vector()
        row.extend([dlib.pair(j, v) for j, v in zip(indices[start:end], values[start:end], strict=True)])
        rows.append(row)
    return rows


PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Ours, SvmOcas, Liblinear, SklearnLinearSVC, SklearnSGD, SnapML, Dlib, MultiSvmOcas)
}
TWO_CLASS = ("svmocas", "LIBLINEAR", "sklearn LinearSVC", "sklearn SGD", "snapml", "dlib")
MULTI_CLASS = ("msvmocas", "LIBLINEAR")


SHORT = 0.2  # seconds of a fit


class Answer(NamedTuple):
    """What came back from a worker: a model with its training time, or why there is none."""

    status: str  # "ok", "limit" or "error"
    seconds: float
    w: np.ndarray | None = None
    b: Any = 0.0
    claims: dict[str, Any] = {}  # noqa: RUF012 - never changed
    message: str = ""


class Worker:
    """A process that holds one solver and one data set, and is ended when a fit takes too long."""

    kinds: Mapping[str, type[Peer]] = PEERS

    def __init__(self, peer: str, set_name: str, folder: Path) -> None:
        self.arguments = (peer, set_name, folder)
        self.slack = self.kinds[peer].slack
        self.process: Any = None

    def fit(self, C: float, setting: Setting, limit: float) -> Answer:
        if self.process is None:
            self._start()
        try:
            self.pipe.send((C, setting, limit))
            self.pipe.recv()  # the data are in the form that this setting wants
            if not self.pipe.poll(limit + self.slack):
                self.stop()
                return Answer("limit", limit)
            answer: Answer = self.pipe.recv()
        except (EOFError, BrokenPipeError):
            self.stop()
            return Answer("error", 0.0, message="its process ended")
        return answer._replace(status="limit") if answer.seconds > limit else answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=self.work, args=(end, *self.arguments), daemon=True)
        self.process.start()
        end.close()
        self.pipe.recv()  # imports, loading and the warm-up are done

    @staticmethod
    def work(pipe: Any, name: str, set_name: str, folder: Path) -> None:
        """What the process does."""
        serve(pipe, PEERS[name](), load(set_name, folder))

    def stop(self) -> None:
        """End the process, at once."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def serve(pipe: Any, peer: Peer, data: Any, few: int = 2000) -> None:
    """The worker: warm up on a few rows, then fit whatever is asked for."""
    warnings.simplefilter("ignore")
    small = data.subset(few)
    for ladder in peer.ladders(small, [0.1]).values():
        _answer(peer, small, (1.0 / small.n, ladder[0], 5.0))
    pipe.send("ready")
    while job := _next(pipe):
        with suppress(Exception):  # a peer that cannot have the data says so when it is to fit them
            peer.form(data, job[1].get("layout", ""))
        pipe.send("go")
        pipe.send(_answer(peer, data, job))


def _next(pipe: Any) -> Any:
    """The next job; None when the benchmark is gone."""
    try:
        return pipe.recv()
    except EOFError:
        return None


def _answer(peer: Peer, data: DataSet, job: tuple[float, Setting, float]) -> Answer:
    try:
        w, b, seconds = peer.fit(data, *job)
        if seconds < SHORT:  # a process that has just woken up takes twice as long: again, without a pause
            again = [peer.fit(data, *job)[2] for _ in range(3)]
            seconds = sorted(again)[1]
    except Exception as error:  # a peer that fails is reported, not fatal
        return Answer("error", 0.0, message=f"{type(error).__name__}: {error}")
    return Answer("ok", seconds, w, b, peer.claims)
