"""A fitted model as one HTML page: `cutsvm.report`."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.resources import files
from string import Template
from typing import Any

__all__ = ["report"]


def report(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    file: str | os.PathLike[str] | None = None,
    qid: Any = None,
    feature_names: Sequence[Any] | None = None,
    source: str | None = None,
) -> str:
    """Describe a fitted estimator in one self-contained HTML page: certificate, plots, measures and parameters.

    Parameters
    ----------
    estimator : any fitted estimator of cutsvm; one that `load_model` has read has no history to plot. Also a pipeline
        that ends in one, or a search that has found one.
    X, y : rows with labels to measure the model on, preferably not those of its training; of a pipeline as its first
        step takes them. Or in place of both a data set, or a path that `open_dataset` reads. Without them nothing is
        measured.
    file : where to write the page; an existing file is replaced once the new one is complete.
    qid : the queries of the rows, for `RankingSVM`.
    feature_names : one per feature; by default `feature_names_in_`.
    source : the name of the rows in the report.

    Returns
    -------
    str : the page. Needs matplotlib (`pip install cutsvm[plot]`).

    Examples
    --------
    >>> from cutsvm import LinearSVC, report
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> page = report(LinearSVC(C=0.01).fit(X, y), X, y)
    >>> "of the best possible objective" in page
    True
    """
    given = {"qid": qid, "feature_names": feature_names, "source": source}
    return write_report(estimator, X, y, file=file, **given)


def write_report(estimator: Any, X: Any, y: Any, *, file: str | os.PathLike[str] | None, **given: Any) -> str:
    """The page, also written to `file` if it is not None; given: arguments of `build_context`."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("a report needs matplotlib for its plots: pip install 'cutsvm[plot]'")
    from cutsvm.display.report.context import build_context
    from cutsvm.display.report.markup import text
    from cutsvm.display.report.sections import certificate, sections
    from cutsvm.io.files import write_atomically

    context = build_context(estimator, X, y, **given)
    name = type(context.estimator).__name__
    page = Template(files("cutsvm.display.report").joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=text(name if context.source is None else f"{name}: {os.path.basename(context.source)}"),
        made=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        certificate=certificate(context),
        sections=sections(context),
    )
    if file is not None:
        write_atomically(file, [page.encode("utf-8")])
    return page
