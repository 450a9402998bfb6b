"""scikit-learn's callbacks: events of a fit, and how a callback ends it."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from cutsvm import (
    KernelSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    OrdinalSVC,
    RankingSVM,
    RankingSVMCV,
    ROCAreaSVC,
)
from cutsvm.driver import run

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 3))
Y = np.digitize(X @ [1.0, -1.0, 0.5], [-0.5, 0.5])
TWO = (Y > 1).astype(int)


class Witness:
    """Records its events."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.calls: list[str] = []
        self.models: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        self.calls.append(f"end {context.task_name}")
        if context.task_name == "iteration":
            self.models.append(fitted_estimator)
        return self.calls.count("end iteration") >= self.most


CASES: dict[str, tuple[Any, Any]] = {
    "two": (LinearSVC(tol=1e-4), TWO),
    "many": (LinearSVC(), Y),
    "one-vs-rest": (LinearSVC(multi_class="ovr"), Y),
    "rank": (RankingSVM(), Y),
    "roc": (ROCAreaSVC(), TWO),
    "ordinal": (OrdinalSVC(), Y),
    "kernel": (KernelSVC(solver="isda"), TWO),
    "one class": (LinearOneClassSVM(), TWO),
}


@pytest.mark.parametrize("name", CASES)
def test_every_iteration_is_a_task(name: str) -> None:
    estimator, y = CASES[name]
    witness = Witness()
    model = clone(estimator).set_callbacks(witness).fit(X, y)
    many = len(model.history_) + 1  # one more begins, and has nothing to show
    inner = ["begin iteration", "end iteration"] * many
    assert witness.calls == ["setup", "begin fit", *inner, "end fit", "teardown"]
    plain = clone(estimator).set_callbacks().fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    assert not [attribute for attribute in vars(model) if "task" in attribute]


@pytest.mark.parametrize("name", ["two", "many", "rank"])
def test_every_iteration_has_its_model(name: str) -> None:
    estimator, y = CASES[name]
    witness = Witness()
    model = clone(estimator).set_callbacks(witness).fit(X, y)
    *models, last = witness.models
    assert last is None and len(models) == len(model.history_)
    np.testing.assert_allclose(models[-1].predict(X), model.predict(X))
    scores = [m.decision_function(X) if hasattr(m, "classes_") else m.predict(X) for m in models]
    assert all(np.shape(s) == np.shape(scores[-1]) for s in scores) and len(np.unique(scores, axis=0)) > 1


@pytest.mark.parametrize("name", ["one-vs-rest", "roc", "ordinal", "kernel"])
def test_no_model_where_w_is_part_of_it(name: str) -> None:
    estimator, y = CASES[name]
    witness = Witness()
    clone(estimator).set_callbacks(witness).fit(X, y)
    assert set(witness.models) == {None}


def test_a_callback_can_end_a_fit() -> None:
    with pytest.warns(ConvergenceWarning, match="a callback asked to stop"):
        model = LinearSVC(tol=1e-12).set_callbacks(Witness(most=3)).fit(X, TWO)
    assert model.status_ is run.Status.CALLBACK and len(model.history_) == 3


def test_scoring_during_training() -> None:
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = LinearSVC().set_callbacks(monitor).fit(X, TWO, sample_weight=np.ones(80))
    lines = [line for line in monitor.get_logs().data if line["task_name"] == "iteration"]
    assert len(lines) == len(model.history_)
    assert lines[-1]["accuracy"] == model.score(X, TWO)


@pytest.mark.parametrize(
    "chooser", [LinearSVCCV(Cs=[0.1, 1.0], cv=2), RankingSVMCV(Cs=[0.1, 1.0], cv=2)], ids=lambda c: type(c).__name__
)
def test_cross_validation_is_one_task(chooser: Any) -> None:
    witness = Witness()
    clone(chooser).set_callbacks(witness).fit(X, Y)
    assert witness.calls == ["setup", "begin fit", "end fit", "teardown"]


def test_fit_from_a_file_and_failing_fit(tmp_path: Any) -> None:
    path = tmp_path / "train.svm"
    path.write_text("1 1:1\n-1 1:-1\n" * 5)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    LinearSVC().set_callbacks(monitor).fit(path)
    witness = Witness()
    with pytest.raises(ValueError, match="only one class"):
        LinearSVC().set_callbacks(witness).fit(X, np.ones(80))
    assert witness.calls == ["setup", "begin fit", "teardown"]


def test_within_a_grid_search() -> None:
    monitor = callback.ScoringMonitor(scoring="accuracy")
    search = GridSearchCV(LinearSVC().set_callbacks(monitor), {"C": [0.1, 1.0]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, TWO)
    names = {line["estimator_name"] for line in monitor.get_logs().data}
    assert "LinearSVC" in names


def test_copies_and_pickles_keep_callbacks() -> None:
    estimator = LinearSVC().set_callbacks(Witness())
    for twin in (clone(estimator), deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert twin.fit(X, TWO) is twin
        (witness,) = twin._skl_callbacks
        assert witness.calls[0] == "setup" and witness.calls[-1] == "teardown"
        assert twin.predict(X).shape == TWO.shape
    assert pickle.loads(pickle.dumps(LinearSVC().fit(X, TWO))).fit(X, TWO).converged_
