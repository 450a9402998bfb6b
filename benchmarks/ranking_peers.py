"""The solvers that ranking.py compares, behind the classes of peers.py.

Everybody minimises F(w) = |w|^2/2 + C/m sum of max(0, 1 - w.(x_i - x_j)) over the m pairs of one query with y_i > y_j.
All else is as in peers.py: `fit` gives w and the seconds of training alone, and only what `judge` makes of w counts.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import ranking_data
from peers import Fit, Peer, Setting, Verdict, Worker, as_csr, dlib_sparse, layouts, own_solver, serve, work
from ranking_data import RankSet

MOST_PAIRS = 2_000_000  # of explicit differences
MOST_ROWS = 8_000_000  # of dlib's vectors
OWN = ("auto", "cpa")


def judge(data: RankSet, w: np.ndarray, C: float) -> Verdict:
    """F(w) and the share of the pairs in the wrong order, in float64."""
    w = np.asarray(w, dtype=np.float64)
    scores = np.empty(data.n)
    for start in range(0, data.n, 50_000):
        scores[start : start + 50_000] = data.X[start : start + 50_000].astype(np.float64) @ w
    loss, right = ranking_data.pair_loss(scores, data.y, data.starts)
    return Verdict(float(w @ w / 2 + C * loss / data.pairs), 1.0 - right / data.pairs)


class Ours(Peer):
    """cutsvm.RankingSVM on all cores. Seconds: the whole `fit`, its checks and its certificate included."""

    name = "cutsvm"
    module = "cutsvm"
    certified = True
    slack = 30.0

    def ladders(self, data: Any, gaps: list[float]) -> dict[str, list[Setting]]:
        layout = layouts(data)[0]
        return {name: [{"layout": layout, "solver": name, "tol": gap} for gap in gaps] for name in OWN}

    def fit(self, data: Any, C: float, setting: Setting, limit: float) -> Fit:
        from cutsvm import RankingSVM

        X = self.form(data, setting["layout"])
        fixed: Setting = {"n_jobs": -1, "max_time": limit}
        model = RankingSVM(C, tol=setting["tol"], solver=own_solver(setting["solver"]), **fixed)
        qid = data.qid
        start = time.perf_counter()
        model.fit(X, data.y, qid=qid)
        seconds = time.perf_counter() - start
        self.claims = {
            "primal": float(model.objective_),
            "lower": float(model.lower_bound_),
            "iterations": int(model.n_iter_),
            "stopped": bool(model.converged_),
            **work(model.history_, data.n),
        }
        return np.ravel(model.coef_), 0.0, seconds


class Dlib(Peer):
    """dlib's svm_rank_trainer, whose C is ours: it too divides the loss by the number of pairs. One thread.

    It has two levels. With more, each level is one problem of its own for it, against all the rows below: these
    have the same pairs, but a row stands in several of them. Seconds: `train`; those of making its vectors from the
    arrays, row by row in Python, are told beside them.
    """

    name = "dlib"
    module = "dlib"

    def __init__(self) -> None:
        super().__init__()
        self.making: dict[Any, float] = {}  # seconds, by form

    def ladders(self, data: Any, gaps: list[float]) -> dict[str, list[Setting]]:
        epsilons = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
        return {"linear": [{"layout": layouts(data)[0], "epsilon": epsilon} for epsilon in epsilons]}

    def convert(self, data: Any, layout: str) -> Any:
        """Its problems. The shortest of three times counts, if they are short."""
        times: list[float] = []
        while not times or (times[0] < 1.0 and len(times) < 3):
            start = time.perf_counter()
            problems = self.problems(data, layout == "dense")
            times.append(time.perf_counter() - start)
        self.making[data.name, data.n, layout] = min(times)
        return problems

    def problems(self, data: Any, dense: bool) -> Any:
        import dlib

        if (rows := stored(data)) > MOST_ROWS:
            raise ValueError(f"{rows:.0e} vectors")
        X = data.X if dense else as_csr(data.X)
        problems = dlib.ranking_pairs() if dense else dlib.sparse_ranking_pairs()
        for start, end in pairwise(data.starts):
            levels = np.unique(data.y[start:end])
            below = vectors(X, np.arange(0), dense)
            for k, level in enumerate(levels):
                rows = vectors(X, start + np.flatnonzero(data.y[start:end] == level), dense)
                if k:
                    problem = dlib.ranking_pair() if dense else dlib.sparse_ranking_pair()
                    problem.relevant, problem.nonrelevant = rows, below
                    problems.append(problem)
                below.extend(rows)
        return problems

    def fit(self, data: Any, C: float, setting: Setting, limit: float) -> Fit:
        import dlib

        dense = setting["layout"] == "dense"
        trainer = dlib.svm_rank_trainer() if dense else dlib.svm_rank_trainer_sparse()
        trainer.c, trainer.epsilon = C, setting["epsilon"]
        problems = self.form(data, setting["layout"])
        self.claims = {"making": self.making[data.name, data.n, setting["layout"]]}
        start = time.perf_counter()
        model = trainer.train(problems)
        seconds = time.perf_counter() - start
        w = np.zeros(data.X.shape[1])
        if dense:
            w[:] = list(model.weights)
        else:
            for pair in model.weights:
                w[pair.first] = pair.second
        return w, 0.0, seconds


def stored(data: RankSet) -> int:
    """How many vectors dlib needs: with two levels the rows, with more a multiple of them."""
    parts = (ranking_data.steps(data.y[a:b]) for a, b in pairwise(data.starts))
    return sum(len(upper) + len(lower) for part in parts for upper, lower in part)


def vectors(X: Any, rows: np.ndarray, dense: bool) -> Any:
    """dlib's vectors of some rows."""
    import dlib

    found = dlib.vectors() if dense else dlib.sparse_vectors()
    for start in range(0, len(rows), 10_000):
        block = X[rows[start : start + 10_000]]
        found.extend([dlib.vector(row) for row in block.tolist()] if dense else dlib_sparse(sp.csr_matrix(block)))
    return found


class Differences(Peer):
    """scikit-learn's LinearSVC on one row x_i - x_j for each pair, C / m. One thread.

    Seconds: `fit`; making the differences is not counted.
    """

    name = "sklearn LinearSVC"
    module = "sklearn"

    def ladders(self, data: Any, gaps: list[float]) -> dict[str, list[Setting]]:
        return {"pairs": [{"tol": tol, "max_iter": 10**6} for tol in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)]}

    def convert(self, data: Any, layout: str) -> Any:
        if data.pairs > MOST_PAIRS:
            raise ValueError(f"{data.pairs:.0e} pairs")
        return ranking_data.differences(data)

    def fit(self, data: Any, C: float, setting: Setting, limit: float) -> Fit:
        from sklearn.svm import LinearSVC

        D, sign = self.form(data, "")
        model = LinearSVC(C=C / len(sign), loss="hinge", dual=True, fit_intercept=False, random_state=0, **setting)
        start = time.perf_counter()
        model.fit(D, sign)
        seconds = time.perf_counter() - start
        return model.coef_[0], 0.0, seconds


PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (Ours, Dlib, Differences)}


class RankWorker(Worker):
    """A process with one of these solvers and one of these sets."""

    kinds = PEERS

    @staticmethod
    def work(pipe: Any, name: str, set_name: str, folder: Path) -> None:
        serve(pipe, PEERS[name](), ranking_data.load(set_name, folder), few=300)
