"""Plots of regressors and one-class models: predicted against true values, residuals, scores."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm import LinearOneClassSVM, LinearSVC, LinearSVR, QuantileSVR, report

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from cutsvm.plotting import MarginDisplay, ResidualsDisplay, WeightsDisplay


def numbers(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3)) + 3.0
    return X, X @ [1.0, -2.0, 0.5] + 0.3 * random.normal(size=n)


def test_predicted_against_true_values() -> None:
    X, y = numbers()
    model = LinearSVR(epsilon=0.2).fit(X, y)
    ax = Figure().subplots()
    display = ResidualsDisplay.from_estimator(model, X, y, ax=ax)
    assert display.ax_ is ax and display.n_shown == 200
    points = ax.collections[0].get_offsets()
    order = np.argsort(points[:, 0])
    np.testing.assert_allclose(points[order, 0], np.sort(y))
    np.testing.assert_allclose(points[order, 1], model.predict(X)[np.argsort(y)])
    assert len(ax.lines) == 3  # the line, and epsilon from it
    assert len(ResidualsDisplay.from_estimator(QuantileSVR().fit(X, y), X, y, ax=Figure().subplots()).ax_.lines) == 1


def test_a_sample_of_many_rows() -> None:
    X, y = numbers(3000)
    display = ResidualsDisplay.from_estimator(LinearSVR().fit(X, y), X, y, ax=Figure().subplots())
    assert display.n_shown == len(display.ax_.collections[0].get_offsets()) == 2000


def test_residuals_as_margins() -> None:
    X, y = numbers()
    model = LinearSVR(epsilon=0.2).fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    np.testing.assert_allclose(display.groups[""], y - model.predict(X))
    assert [at for _, at in display.lines] == [-0.2, 0.0, 0.2]
    display = MarginDisplay.from_estimator(QuantileSVR().fit(X, y), X, y, ax=Figure().subplots())
    assert [at for _, at in display.lines] == [0.0]


def test_scores_of_one_class_models() -> None:
    X, y = numbers()
    model = LinearOneClassSVM(nu=0.1).fit(X)
    display = MarginDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    np.testing.assert_allclose(display.groups[""], model.decision_function(X))
    labels = np.where(np.arange(200) % 10, 1, -1)
    display = MarginDisplay.from_estimator(model, X, labels, ax=Figure().subplots())
    assert {name: len(values) for name, values in display.groups.items()} == {"label 1": 180, "label -1": 20}


def test_the_logistic_loss_has_no_line_at_1() -> None:
    X, y = numbers()
    for loss, lines in (("hinge", 2), ("squared_hinge", 2), ("logistic", 1)):
        model = LinearSVC(loss=loss).fit(X, y > np.median(y))
        display = MarginDisplay.from_estimator(model, X, y > np.median(y), ax=Figure().subplots())
        assert len(display.lines) == lines


def test_weights_of_a_regressor() -> None:
    X, y = numbers()
    display = WeightsDisplay.from_estimator(LinearSVR().fit(X, y), ax=Figure().subplots())
    assert display.names == ["x1", "x0", "x2"] and display.weights.shape == (1, 3)


def test_reports() -> None:
    X, y = numbers()
    page = report(LinearSVR(epsilon=0.2).fit(X, y), X, y)
    assert 'id="picture-predicted"' in page and 'id="picture-residuals"' in page and "R^2" in page
    assert "Confusion" not in page and "targets" in page
    assert "Confusion" not in report(QuantileSVR().fit(X, y), X, y)
    assert "inliers" in report(LinearOneClassSVM().fit(X), X, y)
    with pytest.raises(ValueError, match="LinearSVR predicts numbers, and y has"):
        report(LinearSVR().fit(X, y), X, np.array(["a", "b"])[np.arange(200) % 2])
