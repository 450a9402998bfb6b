"""What it takes to reproduce a model: its parameters, the call, the versions."""

from __future__ import annotations

import inspect
import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from cutsvm.display.report.context import ReportContext

# Parameters that change neither the model nor its certificate.
MONITORING = ("callbacks", "verbose")


def parameters(estimator: Any) -> list[tuple[str, Any, bool]]:
    """Name and value of each parameter, and whether it differs from the default."""
    defaults = {name: given.default for name, given in inspect.signature(type(estimator)).parameters.items()}
    found = estimator.get_params(deep=False).items()
    return [(name, plain(value), not _same(value, defaults.get(name))) for name, value in found]


def plain(value: Any) -> Any:
    """NumPy scalars and arrays as Python numbers and lists, which are shorter to print."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value) if type(value) in (list, tuple) else value
    return value


def _same(value: Any, default: Any) -> bool:
    return type(plain(value)) is type(default) and repr(plain(value)) == repr(default)


def call(context: ReportContext) -> str:
    """Python code that fits the same model."""
    estimator = context.estimator
    given = [(name, value) for name, value, own in parameters(estimator) if own and name not in MONITORING]
    words = ", ".join(f"{name}={value!r}" for name, value in given)
    name = type(estimator).__name__
    imports = [f"from cutsvm import {name}", *_imports(words, context.task.solvers_module)]
    # The estimator does not know its training rows: a report may have others.
    data = "X, y, qid=qid" if context.task.has_queries else "X, y"
    steps = () if context.wrapped is None else context.wrapped.steps
    before = [f"# X is what these steps have made of the rows: {', '.join(map(one_line, steps))}"] if steps else []
    return "\n".join([*imports, "", *before, f"model = {name}({words}).fit({data})"])


def one_line(step: Any) -> str:
    """An estimator of scikit-learn's as code, without line breaks."""
    return " ".join(repr(step).split())


def _imports(words: str, solvers: str) -> list[str]:
    """Imports of the classes that appear in the parameters, if they are known."""
    names = dict.fromkeys(re.findall(r"\b([A-Z]\w*)\(", words))
    homes = [import_module(home) for home in (solvers, "sklearn.model_selection")]
    found: dict[str, list[str]] = {}
    for name in names:
        home = next((home.__name__ for home in homes if name in home.__all__), None)
        if home is not None:
            found.setdefault(home, []).append(name)
    return [f"from {home} import {', '.join(sorted(own))}" for home, own in found.items()]


def versions() -> list[tuple[str, str]]:
    """The versions of Python and of the libraries."""
    found = [("Python", platform.python_version())]
    for name in ("cutsvm", "numpy", "scipy", "scikit-learn"):
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:  # run from a folder that was never installed
            found.append((name, "unknown"))
    return [*found, ("system", f"{platform.system()} {platform.machine()}")]
