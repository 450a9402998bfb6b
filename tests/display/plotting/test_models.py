"""Plots of a fitted model: margins, weights, and scikit-learn's ROC curve."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from cutsvm import KernelSVC, LinearSVC, OrdinalSVC, RankingSVM, ROCAreaSVC
from cutsvm.display.plotting.models import margins
from cutsvm.plotting import ConvergenceDisplay, MarginDisplay, WeightsDisplay, plot_convergence

pytest.importorskip("matplotlib")


@pytest.fixture
def figure() -> Any:
    from matplotlib.figure import Figure

    return Figure()


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, X @ [1.0, -2.0, 0.0] + 0.5 * rng.normal(size=200)


def test_margins_of_two_classes(figure: Any, rows: Any) -> None:
    X, score = rows
    y = np.where(score > 0, 1, -1)
    model = LinearSVC().fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, ax=figure.subplots())
    assert display.figure_ is figure and display.ax_.get_xlabel() == "y f(x)"
    values = np.concatenate(list(display.groups.values()))
    assert np.mean(values < 0) == pytest.approx(1 - model.score(X, y))
    hinge = np.maximum(0.0, 1.0 - values).sum()
    assert 0.5 * np.sum(model.coef_**2) + model.C * hinge == pytest.approx(model.objective_)
    assert [name for name, _ in display.lines] == ["wrong", "margin"]
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["class 1", "class -1"]  # top first
    drawn = display.ax_.patches[-1].get_path().vertices[:, 1].max()
    assert drawn <= len(y)
    figure.savefig(io.BytesIO())


def test_margins_of_more_classes(figure: Any, rows: Any) -> None:
    X, score = rows
    y = np.digitize(score, [-1.0, 1.0])
    for model in (LinearSVC().fit(X, y), LinearSVC(multi_class="ovr").fit(X, y), KernelSVC(random_state=0).fit(X, y)):
        display = MarginDisplay.from_estimator(model, X, y, ax=figure.subplots())
        (values,) = display.groups.values()
        assert np.mean(values > 0) == pytest.approx(model.score(X, y))
        assert len(display.lines) == (2 if getattr(model, "multi_class", "") in ("auto", "crammer_singer") else 1)


def test_scores_of_levels_and_pairs(figure: Any, rows: Any) -> None:
    X, score = rows
    y = np.digitize(score, [-1.0, 1.0])
    levels = OrdinalSVC().fit(X, y)
    display = MarginDisplay.from_estimator(levels, X, y, ax=figure.subplots())
    assert [at for _, at in display.lines] == levels.thresholds_.tolist() and len(display.groups) == 3
    qid = np.arange(200) % 4  # not side by side
    ranker = RankingSVM().fit(X, y, qid=qid)
    display = MarginDisplay.from_estimator(ranker, X, y, qid=qid, ax=figure.subplots())
    (values,) = display.groups.values()
    # The share of drawn pairs in order is that of all pairs, but for chance.
    assert np.mean(values > 0) == pytest.approx(ranker.score(X, y, qid=qid), abs=0.02)
    assert np.array_equal(values, next(iter(margins(ranker, ranker.predict(X), y, qid).groups.values())))
    area = ROCAreaSVC().fit(X, y > 0)
    display = MarginDisplay.from_estimator(area, X, y > 0, ax=figure.subplots())
    assert [name for name, _ in display.lines] == ["wrong"]
    same = MarginDisplay.from_estimator(ranker, X, np.ones(200), ax=figure.subplots())  # no pair at all
    assert not len(same.groups[""])
    figure.savefig(io.BytesIO())


def test_weights_of_one_row(figure: Any, rows: Any) -> None:
    X, score = rows
    y = np.where(score > 0, "$yes$", "no")
    model = LinearSVC().fit(X, y)
    display = WeightsDisplay.from_estimator(model, feature_names=["a", "b_$x$", "c"], top=2, ax=figure.subplots())
    order = np.argsort(-np.abs(model.coef_[0]))[:2]
    assert display.names == [["a", "b_$x$", "c"][j] for j in order]
    assert np.array_equal(display.weights, model.coef_[:, order])
    assert display.outputs == ["no", "$yes$"][::1] if model.classes_[1] == "no" else ["$yes$", "no"]
    figure.savefig(io.BytesIO())  # dollars are no formula
    assert WeightsDisplay.of(model).names == [f"x{j}" for j in np.argsort(-np.abs(model.coef_[0]))]
    with pytest.raises(ValueError, match="has 2 names: expected one for each of 3"):
        WeightsDisplay.from_estimator(model, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="no weights"):
        WeightsDisplay.from_estimator(KernelSVC(random_state=0).fit(X, y))


def test_weights_of_several_rows(figure: Any, rows: Any) -> None:
    X, score = rows
    y = np.digitize(score, [-1.0, 1.0])
    display = WeightsDisplay.from_estimator(LinearSVC().fit(X, y), ax=figure.subplots())
    assert display.outputs == ["0", "1", "2"] and display.weights.shape == (3, 3)
    pairs = WeightsDisplay.from_estimator(KernelSVC(kernel="linear", random_state=0).fit(X, y), ax=figure.subplots())
    assert pairs.outputs == ["1 / 0", "2 / 0", "2 / 1"]
    figure.savefig(io.BytesIO())
    assert WeightsDisplay.of(LinearSVC().fit(np.zeros((4, 2)), [0, 1, 0, 1])).names == []


def test_new_figures(rows: Any) -> None:
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    X, score = rows
    model = LinearSVC(solver="ocas").fit(X, score > 0)
    for display in (
        MarginDisplay.from_estimator(model, X, score > 0),
        WeightsDisplay.from_estimator(model),
        ConvergenceDisplay.from_estimator(model, against="passes"),
    ):
        display.figure_.savefig(io.BytesIO())
        plt.close(display.figure_)


def test_convergence_against_passes(figure: Any, rows: Any) -> None:
    X, score = rows
    model = LinearSVC(solver="ocas").fit(X, score > 0)
    axes = plot_convergence(model, figure.subplots(2, 1), against="passes")
    assert axes[1].get_xlabel() == "passes over the data"
    assert axes[0].get_lines()[0].get_xdata().tolist() == [record["passes"] for record in model.history_]
    with pytest.raises(ValueError, match="against='weeks'"):
        plot_convergence(model, axes, against="weeks")


def test_the_roc_curve_is_scikit_learns(figure: Any, rows: Any) -> None:
    from sklearn.metrics import RocCurveDisplay, roc_auc_score

    X, score = rows
    y = score > 0
    for model in (LinearSVC(), ROCAreaSVC(), KernelSVC(random_state=0)):
        display = RocCurveDisplay.from_estimator(model.fit(X, y), X, y, ax=figure.subplots())
        assert np.isclose(display.roc_auc, roc_auc_score(y, model.decision_function(X)))
