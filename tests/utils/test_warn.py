"""Warnings point at the line that called cutsvm."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cutsvm import LinearSVC, LinearSVCCV, RankingSVM, linear_path

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
y = X[:, 0] + rng.normal(size=300) > 0.0
SHORT = {"tol": 1e-12, "max_iter": 1}


@pytest.mark.parametrize(
    "fit",
    [
        lambda: LinearSVC(**SHORT).fit(X, y),
        lambda: LinearSVCCV(Cs=2, **SHORT).fit(X, y),
        lambda: RankingSVM(**SHORT).fit(X, y, qid=np.zeros(300)),
        lambda: linear_path(X, y, Cs=[0.1, 1.0], **SHORT),
        lambda: make_pipeline(StandardScaler(), LinearSVC(**SHORT)).fit(X, y),
    ],
)
def test_place_of_the_warning(fit):
    with pytest.warns(ConvergenceWarning) as seen:
        fit()
    assert {Path(warning.filename).name for warning in seen} == {Path(__file__).name}
