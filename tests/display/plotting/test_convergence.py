"""Plots of a fit."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from cutsvm import LinearSVC, LinearSVCCV, linear_path
from cutsvm._utils.timing import PHASES
from cutsvm.plotting import PathDisplay, plot_convergence, plot_time_breakdown

matplotlib = pytest.importorskip("matplotlib")


def history(label: str = "", steps: int = 8) -> list[dict[str, Any]]:
    primal = 10 + 10 / np.arange(1, steps + 1)
    lower = 10 - 10 / np.arange(1, steps + 1)
    return [
        {"seconds": 0.1 * k, "primal": p, "lower": b, "gap": (p - b) / p, "tol": 1e-2, "label": label}
        | {"seconds_scores": 0.05 * k, "seconds_line_search": 0.02 * k, "seconds_qp": 0.01 * k}
        for k, (p, b) in enumerate(zip(primal, lower, strict=True))
    ]


@pytest.fixture(scope="module")
def model() -> LinearSVC:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return LinearSVC(solver="ocas").fit(X, X[:, 0] + rng.normal(size=300) > 0)


@pytest.fixture
def figure() -> Any:
    from matplotlib.figure import Figure

    return Figure()


def test_bounds_and_gap(figure: Any) -> None:
    axes = figure.subplots(2, 1)
    drawn = plot_convergence(history(), axes)
    assert drawn == tuple(axes)
    upper, lower = drawn[0].get_lines()
    assert (upper.get_ydata() >= lower.get_ydata()).all()
    assert drawn[0].get_legend() is not None
    assert drawn[1].get_yscale() == "log"
    assert drawn[1].get_xlabel() == "seconds"
    figure.savefig(io.BytesIO())


def test_single_axes_shows_the_bounds(figure: Any) -> None:
    ax = figure.subplots()
    assert plot_convergence(history(), ax) == (ax,)
    assert len(ax.get_lines()) == 2 and ax.get_xlabel() == "seconds"


def test_a_new_figure() -> None:
    import matplotlib.pyplot as plt

    with plt.style.context("default"):
        plt.switch_backend("agg")
        axes = plot_convergence(history())
        assert len(axes) == 2 and axes[0].figure is axes[1].figure
        plt.close(axes[0].figure)


def test_several_problems_and_many_points(figure: Any) -> None:
    axes = figure.subplots(2, 1)
    plot_convergence(history("a", 100) + history("b"), axes)
    gaps = [line for line in axes[1].get_lines() if line.get_label() in "ab"]
    assert [len(line.get_xdata()) for line in gaps] == [100, 8]
    assert [line.get_marker() for line in gaps] == ["None", "o"]


def test_unusual_histories(figure: Any) -> None:
    axes = figure.subplots(2, 1)
    solved = {"seconds": 0.0, "primal": 0.0, "lower": 0.0, "gap": 0.0}
    plot_convergence([solved], axes)
    plot_convergence([{**solved, "lower": -np.inf, "primal": 3.0, "gap": np.inf}, {**solved, "seconds": 1.0}], axes)
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="no history"):
        plot_convergence([])


def test_a_fitted_model_in_place_of_its_history(figure: Any, model: LinearSVC) -> None:
    ax = figure.subplots()
    plot_convergence(model, ax)
    assert len(ax.get_lines()[0].get_xdata()) == len(model.history_)
    with pytest.raises(ValueError, match="no history"):
        plot_convergence(LinearSVC(), ax)
    with pytest.raises(ValueError, match="no history"):
        plot_time_breakdown([LinearSVC()], ax)


def test_several_models_converge(figure: Any, model: LinearSVC) -> None:
    axes = figure.subplots(2, 1)
    plot_convergence({"here": model, "there": history(steps=4)}, axes)
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["here", "there"]
    above_and_below = axes[0].get_lines()
    assert len(above_and_below) == 4
    assert [line.get_color() for line in above_and_below[::2]] == [line.get_color() for line in axes[1].get_lines()[:2]]
    assert len({line.get_color() for line in above_and_below}) == 2
    figure.savefig(io.BytesIO())


def test_time_of_one_model(figure: Any, model: LinearSVC) -> None:
    ax = figure.subplots()
    assert plot_time_breakdown(model, ax) is ax
    assert ax.get_xlabel() == "iteration" and "seconds" in ax.get_ylabel()
    last = model.history_[-1]
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == ["other", "reduced problem", "line search", "planes", "scores"]  # as the layers lie, top first
    top = ax.collections[-1].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(last["seconds"])
    assert ax.get_ylim()[1] >= top
    figure.savefig(io.BytesIO())


def test_time_of_consecutive_problems(figure: Any) -> None:
    ax = figure.subplots()
    plot_time_breakdown(history("a", 5) + history("b", 4), ax)
    layers = [collection.get_paths()[0].vertices for collection in ax.collections]
    assert max(points[:, 0].max() for points in layers) == 8  # 5 + 4 records, counted from 0
    assert layers[-1][:, 1].max() == pytest.approx(0.4 + 0.3)
    assert layers[0][:, 1].max() == pytest.approx(0.2 + 0.15)


def test_time_of_several_models(figure: Any, model: LinearSVC) -> None:
    ax = figure.subplots()
    plot_time_breakdown({"a": model, "b": history()}, ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    ends = [0.0, 0.0]
    for bar in ax.patches:
        place = round(bar.get_y() + bar.get_height() / 2)
        ends[place] = max(ends[place], bar.get_x() + bar.get_width())
    assert ends == pytest.approx([model.history_[-1]["seconds"], 0.7])
    assert [text.get_text() for text in ax.texts][1] == "0.7 s"
    figure.savefig(io.BytesIO())


def test_names_of_models(figure: Any, model: LinearSVC) -> None:
    def names(models: Any) -> list[str]:
        ax = figure.subplots()
        plot_time_breakdown(models, ax)
        return [label.get_text() for label in ax.get_yticklabels()]

    other = LinearSVC(solver="cpa")
    other.history_ = model.history_
    assert names([model, other]) == ["ocas", "cpa"]
    assert names([model, model]) == ["model 1", "model 2"]
    assert names([history(), history()]) == ["model 1", "model 2"]


def test_every_phase_has_a_name_and_a_colour(figure: Any) -> None:
    ax = figure.subplots()
    spent = {"seconds": 2.0, "label": ""} | {f"seconds_{phase}": 0.1 for phase in PHASES}
    plot_time_breakdown([spent], ax)
    assert len({tuple(layer.get_facecolor()[0]) for layer in ax.collections}) == len(PHASES) + 1
    plot_time_breakdown([{"seconds": 0.0}], figure.subplots())  # a fit that took no time
    figure.savefig(io.BytesIO())


def test_new_figures_for_time(model: LinearSVC) -> None:
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    for models in (model, [model] * 8):
        before = set(plt.get_fignums())
        plot_time_breakdown(models)
        (fresh,) = set(plt.get_fignums()) - before
        plt.close(fresh)


def test_path_display(figure: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) > 0
    chooser = LinearSVCCV([0.1, 1.0, 10.0], cv=3).fit(X, y)
    display = PathDisplay.from_estimator(chooser, ax=figure.subplots(3, 1), score_name="accuracy")
    assert [ax.get_ylabel() for ax in display.ax_] == ["accuracy", "|w|", "relative gap"]
    assert display.figure_ is figure and display.chosen == chooser.C_
    assert "is chosen" in display.ax_[0].get_title(loc="left")
    figure.clear()
    plain = PathDisplay.from_estimator(linear_path(X, y, Cs=[0.1, 1.0]), ax=figure.subplots(2, 1))
    assert len(plain.ax_) == 2
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="3 axes expected, got 1"):
        PathDisplay.from_estimator(chooser, ax=figure.axes[0])
    for nothing in ([], [LinearSVC()], LinearSVCCV([0.1], cv=3, refit=False).fit(X, y)):
        with pytest.raises(ValueError, match="there is no path to draw"):
            PathDisplay.from_estimator(nothing)
