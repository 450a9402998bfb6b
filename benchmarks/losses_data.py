"""The losses of losses.py, the sets that each is measured on, and the common measure of an answer.

A problem is named LOSS SET, as in "logistic covtype" or "huber abalone:1000". X is as in data.py, with one more column
of ones after the others, so that nobody needs an intercept. The targets of regression have mean 0 and variance 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import data
from data import DEFAULT_FOLDER, DataSet
from peers import Verdict, as_csr, layouts, with_ones

# The sets by their shape. NAME:ROWS takes a random subset.
CLASSES = {"long": "covtype", "wide": "arxiv:20000", "small": "a9a:3000"}
TARGETS = {"long": "covtype-elevation", "wide": "arxiv-words:20000", "small": "abalone"}
# The file of a regression set.
FILES = {"covtype-elevation": "covtype", "arxiv-words": "arxiv", "abalone": "ordinal/abalone"}

Pieces = tuple[np.ndarray, np.ndarray]


class Loss(NamedTuple):
    """A loss of one row as a function of its score f: its values and slopes at scores, given y."""

    formula: str
    pieces: Callable[[np.ndarray, np.ndarray, float], Pieces]
    regression: bool = False
    parameter: float = 0.0  # epsilon, or the quantile q
    smooth: bool = False


def hinge(f: np.ndarray, y: np.ndarray, _: float) -> Pieces:
    return np.maximum(0.0, 1.0 - y * f), np.where(y * f < 1.0, -y, 0.0)


def squared_hinge(f: np.ndarray, y: np.ndarray, _: float) -> Pieces:
    short = np.maximum(0.0, 1.0 - y * f)
    return short**2, -2.0 * y * short


def logistic(f: np.ndarray, y: np.ndarray, _: float) -> Pieces:
    return np.logaddexp(0.0, -y * f), -y * np.exp(-np.logaddexp(0.0, y * f))


def epsilon_insensitive(f: np.ndarray, y: np.ndarray, epsilon: float) -> Pieces:
    outside = np.maximum(0.0, np.abs(f - y) - epsilon)
    return outside, np.sign(f - y) * (outside > 0)


def squared_epsilon_insensitive(f: np.ndarray, y: np.ndarray, epsilon: float) -> Pieces:
    outside = np.maximum(0.0, np.abs(f - y) - epsilon)
    return outside**2, 2.0 * np.sign(f - y) * outside


def huber(f: np.ndarray, y: np.ndarray, epsilon: float) -> Pieces:
    inside = np.clip(f - y, -epsilon, epsilon)
    return inside * (f - y - inside / 2), inside


def pinball(f: np.ndarray, y: np.ndarray, q: float) -> Pieces:
    return np.maximum(q * (y - f), (1.0 - q) * (f - y)), np.where(f < y, -q, 1.0 - q)


LOSSES = {
    "hinge": Loss("max(0, 1 - y f)", hinge),
    "squared_hinge": Loss("max(0, 1 - y f)^2", squared_hinge, smooth=True),
    "logistic": Loss("log(1 + exp(-y f))", logistic, smooth=True),
    "epsilon_insensitive": Loss("max(0, |y - f| - 0.1)", epsilon_insensitive, True, 0.1),
    "squared_epsilon_insensitive": Loss("max(0, |y - f| - 0.1)^2", squared_epsilon_insensitive, True, 0.1, smooth=True),
    "huber": Loss("r^2/2 for |r| <= 0.5, 0.5 |r| - 0.125 beyond, r = y - f", huber, True, 0.5, smooth=True),
    "pinball-0.5": Loss("0.5 |y - f|", pinball, True, 0.5),
    "pinball-0.9": Loss("0.9 max(0, y - f) + 0.1 max(0, f - y)", pinball, True, 0.9),
}


def shape_of(name: str) -> str:
    """Whether the set of a problem is the long, the wide or the small one; "" for another."""
    stem = name.partition(" ")[2].partition(":")[0]
    shapes = {sets[shape].partition(":")[0]: shape for sets in (CLASSES, TARGETS) for shape in sets}
    return shapes.get(stem, "")


def available(names: list[str], folder: Path) -> tuple[list[str], list[str]]:
    """Split names of problems into those whose set can be loaded and those whose file is missing."""

    def exists(name: str) -> bool:
        stem = name.partition(" ")[2]
        base = stem.partition(":")[0]
        return (folder / f"{FILES[base]}.npz").exists() if base in FILES else bool(data.available([stem], folder)[0])

    found = [name for name in names if exists(name)]
    return found, [name for name in names if name not in found]


def load(name: str, folder: Path = DEFAULT_FOLDER) -> DataSet:
    """The problem LOSS SET, its rows with the column of ones."""
    loss, _, stem = name.partition(" ")
    base, _, rows = stem.partition(":")
    if LOSSES[loss].regression:
        found = _regression(base, folder)
        found = found.subset(int(rows)) if rows else found
        found = found._replace(y=(found.y - found.y.mean()) / found.y.std())
    else:
        found = data.load(stem, folder)
    return found._replace(name=name, X=with_ones(found, "csr" if found.sparse else "dense"), loss=loss)


def _regression(base: str, folder: Path) -> DataSet:
    with np.load(folder / f"{FILES[base]}.npz") as file:
        if base == "covtype-elevation":
            X = file["X"]
            return DataSet(base, data.unit_range(X[:, 1:]), X[:, 0].astype(np.float64))
        if base == "abalone":
            return DataSet(base, data.unit_range(file["X"]), file["y_real"])
        counts = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
    words = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    return DataSet(base, data.tfidf(counts), np.log1p(words))


class Measure:
    """The common measure of answers to one problem: F and what is known of its minimum, in float64."""

    def __init__(self, problem: DataSet) -> None:
        self.loss, self.y = LOSSES[problem.loss], problem.y
        form = as_csr(problem.X) if layouts(problem)[0] == "csr" else problem.X
        self.X = form.astype(np.float64)

    def evaluate(self, w: np.ndarray, C: float) -> tuple[float, np.ndarray]:
        """F(w), and its gradient if the loss is smooth."""
        values, slopes = self.loss.pieces(self.X @ w, self.y, self.loss.parameter)
        return float(w @ w / 2 + C * values.sum()), w + C * (self.X.T @ slopes)

    def judge(self, w: np.ndarray, C: float) -> tuple[Verdict, float]:
        """F and the error, and a number that F is nowhere below.

        The error is the share of rows in the wrong class, or the mean of |y - f|. F is 1-strongly convex, so that it
        is nowhere below F(w) - |g|^2/2 with the gradient g of a smooth one.
        """
        w = np.asarray(w, dtype=np.float64)
        scores = self.X @ w
        values, slopes = self.loss.pieces(scores, self.y, self.loss.parameter)
        objective = float(w @ w / 2 + C * values.sum())
        wrong = np.abs(self.y - scores) if self.loss.regression else self.y * scores <= 0
        bound = 0.0
        if self.loss.smooth:
            gradient = w + C * (self.X.T @ slopes)
            bound = max(0.0, objective - float(gradient @ gradient) / 2)
        return Verdict(objective, float(np.mean(wrong))), bound
