"""Pictures of a fit."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from cutsvm.plotting import plot_convergence

matplotlib = pytest.importorskip("matplotlib")


def history(label: str = "", steps: int = 8) -> list[dict[str, Any]]:
    primal = 10 + 10 / np.arange(1, steps + 1)
    lower = 10 - 10 / np.arange(1, steps + 1)
    return [
        {"seconds": 0.1 * k, "primal": p, "lower": b, "gap": (p - b) / p, "tol": 1e-2, "label": label}
        for k, (p, b) in enumerate(zip(primal, lower, strict=True))
    ]


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


def test_one_axes_gets_the_bounds(figure: Any) -> None:
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


def test_odd_histories(figure: Any) -> None:
    axes = figure.subplots(2, 1)
    solved = {"seconds": 0.0, "primal": 0.0, "lower": 0.0, "gap": 0.0}
    plot_convergence([solved], axes)
    plot_convergence([{**solved, "lower": -np.inf, "primal": 3.0, "gap": np.inf}, {**solved, "seconds": 1.0}], axes)
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="no history"):
        plot_convergence([])
