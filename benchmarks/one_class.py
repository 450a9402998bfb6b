"""The linear one-class SVM: time to a relative gap, beside LIBLINEAR -s 21 and scikit-learn's two.

    python benchmarks/one_class.py [--sets correlated,waves] [--nu 0.5,0.1,0.01] [--gaps 1e-2,1e-3,1e-4]

Writes results/one_class.csv and results/one_class.md. No solver's own figures are trusted: F is computed by one
function from the w that came back, at its best multiple and rho, and the gap with the lower bound of a cutsvm run to
1e-6. Peers run with smaller and smaller tolerances until an answer is close enough; the time is that of the fit alone,
without LIBLINEAR's copy of the data. After a fit that took longer than --time-limit no smaller tolerance is tried.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from liblinear.liblinearutil import parameter, problem, train
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM

from cutsvm import LinearOneClassSVM
from provenance import commit, write_rows

Fit = Callable[[Any, float, float], tuple[float, Any]]  # seconds and w, from X, nu and a tolerance
FIELDS = ["set", "n", "d", "nu", "solver", "tol", "seconds", "gap"]


def correlated(rng: np.random.Generator) -> Any:
    """Correlated features around a point away from the origin."""
    return rng.normal(size=(100_000, 50)) @ rng.normal(size=(50, 50)) / 50**0.5 + 1.5 * rng.random(50)


def waves(rng: np.random.Generator) -> Any:
    """Random Fourier features of points on a ring: each nu describes another shape."""
    points = rng.normal(size=(20_000, 2))
    ring = 3.0 * points / np.linalg.norm(points, axis=1, keepdims=True) + 0.3 * rng.normal(size=points.shape)
    return RBFSampler(gamma=1.0, n_components=200, random_state=0).fit_transform(ring)


SETS: dict[str, Callable[[np.random.Generator], Any]] = {"correlated": correlated, "waves": waves}


def objective(X: Any, w: Any, nu: float) -> float:
    """F at the best multiple of w and its best rho."""
    scores, share = X @ w, nu * len(X)
    place = int(np.ceil(share * (1.0 - 1e-12))) - 1
    rho = np.partition(scores, place)[place]
    mean = rho - np.maximum(0.0, rho - scores).sum() / share
    return float(-0.5 * mean * mean / (w @ w)) if mean > 0.0 else 0.0


def timed(fit: Callable[[], Any], weights: Callable[[Any], Any]) -> tuple[float, Any]:
    began = perf_counter()
    found = fit()
    return perf_counter() - began, weights(found)


def ours(X: Any, nu: float, tol: float) -> tuple[float, Any]:
    return timed(lambda: LinearOneClassSVM(nu=nu, tol=tol, n_jobs=-1).fit(X), lambda model: model.coef_[0])


def liblinear(X: Any, nu: float, tol: float) -> tuple[float, Any]:
    data, options = problem([1] * len(X), X), parameter(f"-s 21 -n {nu} -e {tol} -q")
    return timed(lambda: train(data, options), lambda model: np.array(model.w[: X.shape[1]]))


def libsvm(X: Any, nu: float, tol: float) -> tuple[float, Any]:
    model = OneClassSVM(kernel="linear", nu=nu, tol=tol, cache_size=1000)
    return timed(lambda: model.fit(X), lambda model: model.coef_[0])


def sgd(X: Any, nu: float, tol: float) -> tuple[float, Any]:
    model = SGDOneClassSVM(nu=nu, tol=tol, random_state=0, average=True)
    return timed(lambda: model.fit(X), lambda model: model.coef_.ravel())


SOLVERS: dict[str, Fit] = {
    "cutsvm": ours,
    "LIBLINEAR -s 21": liblinear,
    "sklearn OneClassSVM": libsvm,
    "sklearn SGDOneClassSVM": sgd,
}


def measure(name: str, X: Any, nu: float, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each solver and gap: the first tolerance with which the answer is that close."""
    best = LinearOneClassSVM(nu=nu, tol=1e-6, n_jobs=-1).fit(X).lower_bound_
    for solver, fit in SOLVERS.items():
        known: list[tuple[float, float, float]] = []
        for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
            if solver == "cutsvm" and tol not in options.gaps:
                continue
            seconds, w = min((fit(X, nu, tol) for _ in range(options.repeat)), key=lambda run: run[0])
            found = objective(X, w, nu)
            known.append((tol, seconds, (found - best) / -found if found < 0.0 else np.inf))
            if seconds > options.time_limit or known[-1][2] <= min(options.gaps):
                break
        for gap in options.gaps:
            enough = [run for run in known if run[2] <= gap and (solver != "cutsvm" or run[0] <= gap)]  # ours: proved
            tol, seconds, reached = min(enough, key=lambda run: run[1]) if enough else (np.nan, np.nan, known[-1][2])
            row = dict(zip(FIELDS, (name, *X.shape, nu, solver, tol, seconds, reached), strict=True))
            print(row, flush=True)
            yield row | {"wanted": gap}


def table(rows: list[dict[str, Any]], gaps: list[float]) -> str:
    head = ["data", "nu", "solver", *(f"gap {gap:g}" for gap in gaps)]
    lines = [f"Seconds of a fit, measured on {commit()}.", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for place in dict.fromkeys((row["set"], row["n"], row["d"], row["nu"], row["solver"]) for row in rows):
        mine = [row for row in rows if (row["set"], row["n"], row["d"], row["nu"], row["solver"]) == place]
        cells = [f"{row['seconds']:.3f}" if row["seconds"] > 0 else f"not ({row['gap']:.0e})" for row in mine]
        name, n, d, nu, solver = place
        lines.append(f"| {name}, {n:,} x {d} | {nu:g} | {solver} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    def numbers(text: str) -> list[float]:
        return [float(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--nu", type=numbers, default=[0.5, 0.1, 0.01])
    parser.add_argument("--gaps", type=numbers, default=[1e-2, 1e-3, 1e-4])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in options.sets:
        X = np.ascontiguousarray(SETS[name](np.random.default_rng(0)))
        for nu in options.nu:
            rows += measure(name, X, nu, options)
    options.out.mkdir(exist_ok=True)
    write_rows(options.out / "one_class.csv", [*FIELDS, "wanted"], rows)
    text = table(rows, options.gaps)
    (options.out / "one_class.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
