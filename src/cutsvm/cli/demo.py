"""`cutsvm demo`: a fit on synthetic data, its certificate, and a picture."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import LinearSVC as Peer

from cutsvm.cli.chart import gap_chart
from cutsvm.cli.data import write_figure
from cutsvm.cli.messages import Messages, certificate, print_result
from cutsvm.cli.train import fit_with_progress
from cutsvm.display.summary import total_passes
from cutsvm.estimators.linear import LinearSVC

_FEATURES = 40
_COMPARED_ROWS = 50_000
_PICTURE = "cutsvm-demo.png"


def demo(options: argparse.Namespace) -> int:
    """Generate data, train, show the certificate and the gap over time, compare, draw."""
    X, y = make_data(options.rows)
    print_result(f"Two overlapping classes: {len(X):,} rows, {_FEATURES} features, {X.nbytes / 1e6:.0f} MB.")
    model = LinearSVC(n_jobs=-1)
    seconds = fit_with_progress(model, Messages(quiet=False), X, y)
    words = certificate(float(np.max(model.gap_)), model.tol)
    print_result(f"{'certified' if model.converged_ else 'not converged'}: {words}")
    print_result(f"           {total_passes(model):g} passes over the data, {seconds:.2f} s")
    print_result(f"           {model.lower_bound_:.8g} <= best possible <= {model.objective_:.8g} = this model")
    print_result(f"           accuracy on the training data {100 * model.score(X, y):.2f} %\n")
    print_result("The gap over time:")
    for line in gap_chart(model.history_, encoding=getattr(sys.stdout, "encoding", None)):
        print_result(line)
    if not options.no_compare:
        _compare(X[:_COMPARED_ROWS], y[:_COMPARED_ROWS])
    print_result("\n" + draw(model.history_, _PICTURE))
    print_result("Next: cutsvm train --help, or in Python: from cutsvm import LinearSVC")
    return 0


def make_data(rows: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Two overlapping classes with correlated features; the same data on every call."""
    random = np.random.default_rng(20080707)
    independent = random.standard_normal((rows, _FEATURES), dtype=np.float32)
    mixing = np.eye(_FEATURES, dtype=np.float32)
    mixing += np.float32(0.07) * random.standard_normal((_FEATURES, _FEATURES), dtype=np.float32)
    X = independent @ mixing
    direction = random.standard_normal(_FEATURES, dtype=np.float32)
    scores = X @ direction
    noise = random.standard_normal(rows, dtype=np.float32)
    decision = scores + np.float32(0.4) * scores.std() * noise - np.float32(0.3) * scores.std()
    return X, np.where(decision > 0, 1, -1).astype(np.int64)


def hinge_objective(w: npt.NDArray[Any], b: float, X: npt.NDArray[Any], y: npt.NDArray[np.int64], C: float) -> float:
    """|w|^2/2 + b^2/2 + C sum of hinge: the problem that scikit-learn's LinearSVC solves."""
    margins = y * (X.astype(np.float64) @ w + b)
    return float(w @ w + b * b) / 2 + C * float(np.maximum(0.0, 1.0 - margins).sum())


def _compare(X: npt.NDArray[np.float32], y: npt.NDArray[np.int64]) -> None:
    """Solve one problem by cutsvm and by scikit-learn's LinearSVC, and compare both with the lower bound."""
    print_result(f"\nThe same problem on {len(X):,} of the rows (hinge loss, C = 1, intercept regularised):")
    print_result(f"  {'':24}{'seconds':>9}  {'objective':>12}  above the proven bound")
    ours = LinearSVC(intercept="regularized", n_jobs=-1)
    peer = Peer(loss="hinge", dual=True, random_state=0)
    bound = 0.0
    for name, model in (("cutsvm", ours), ("scikit-learn LinearSVC", peer)):
        # scikit-learn's may warn that it did not converge; the table shows it.
        with Messages(quiet=True).collecting_warnings():
            began = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - began
        objective = hinge_objective(model.coef_[0], float(model.intercept_[0]), X, y, 1.0)
        bound = float(model.lower_bound_) if model is ours else bound
        print_result(f"  {name:24}{seconds:9.3f}  {objective:12.6g}  {100 * (objective / bound - 1):.2g} %")


def draw(history: Sequence[Mapping[str, Any]], path: str) -> str:
    """Write the picture if matplotlib is installed; returns what to print about it."""
    if importlib.util.find_spec("matplotlib") is None:
        return "For a picture: pip install 'cutsvm[plot]'"
    from matplotlib.figure import Figure

    from cutsvm.plotting import plot_convergence

    # Without pyplot: it needs no window system and leaves no state behind.
    figure = Figure(figsize=(7.2, 5.6), layout="constrained", dpi=150)
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    plot_convergence(history, axes)
    write_figure(path, figure)
    return f"Picture: {path}"
