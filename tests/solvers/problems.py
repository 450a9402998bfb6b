"""Data for the solvers' tests."""

import numpy as np

from conftest import LAYOUTS
from cutsvm.losses import Hinge
from cutsvm.risk import Intercept, Risk
from cutsvm.rows import as_rows


def long_data(n=30_000, d=5, positives=0.4, seed=0):
    """Many rows of few features whose classes overlap; a = label times weight."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 1.0 - positives), 1.0, -1.0)


def risk_of(X, a, intercept="regularized", layout="float64", threads=1):
    rows = as_rows(LAYOUTS[layout](X), threads)
    return Risk(rows, Hinge(a, threads), intercept=Intercept(intercept), threads=threads)
