"""Data for the solvers' tests."""

import numpy as np

from cutsvm.matrix import as_rows
from cutsvm.problem.losses import CrammerSinger, Hinge
from cutsvm.problem.multiclass import CrammerSingerOracle
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.protocol import new_context
from cutsvm.solvers.sifting.solver import SiftingSettings
from tests.support.layouts import LAYOUTS


def long_data(n=30_000, d=5, positives=0.4, seed=0):
    """Many rows of few features whose classes overlap; a = label times weight."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 1.0 - positives), 1.0, -1.0)


def oracle_of(X, a, intercept="regularized", layout="float64", threads=1):
    rows = as_rows(LAYOUTS[layout](X), threads)
    return Oracle(rows, Hinge(a, threads), intercept=Intercept(intercept), threads=threads)


def many_classes(n=400, d=4, K=4, seed=0):
    """Overlapping classes around K points, some rarer than others."""
    rng = np.random.default_rng(seed)
    y = np.minimum(rng.geometric(0.4, size=n) - 1, K - 1)
    y[:K] = np.arange(K)
    return 2.0 * rng.normal(size=(K, d))[y] + rng.normal(size=(n, d)), y.astype(np.int32)


def multiclass_oracle_of(X, y, s=None, intercept="none", layout="float64", threads=1):
    weights = np.ones(len(y)) if s is None else s
    loss = CrammerSinger(y, weights, int(y.max()) + 1, threads)
    return CrammerSingerOracle(
        as_rows(LAYOUTS[layout](X), threads), loss, intercept=Intercept(intercept), threads=threads
    )


def from_disk(oracle, room=None):
    """The same oracle, as if there were no memory for numbers of all rows, and for this many rows themselves."""
    oracle.matrix.held, oracle.matrix.room = False, room
    return oracle


def some_problem(rng, n, d):
    """Rows of mixed kind (overlapping, separable, repeated, on one side) with weights, some of them 0."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.3:
        X = np.round(X)  # ties
    y = np.where(X @ rng.normal(size=d) + rng.choice([0.0, 1.0]) * rng.normal(size=n) > rng.normal(), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if rng.random() < 0.3:
        y = np.sort(y)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 3.7], size=n) if rng.random() < 0.5 else np.ones(n)
    weights[np.argmax(y)] = weights[np.argmin(y)] = 1.0
    return X, y * weights


# Sifting steps aside where it does not pay; with these settings it never does.
SIFT_ANYTHING = SiftingSettings(least_rows=0, least_rows_per_feature=0, of_each=2)


def iterates(solver, oracle, C, *, bundle=None, start=None, tol=0.0):
    """The generator of iterates of a solver."""
    context = new_context(solver, oracle, [C], tol, start=start)
    if bundle is not None:
        context.bundle = bundle
    return solver(context, C)
