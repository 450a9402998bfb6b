"""The sections of a report, from the certificate to how to reproduce the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutsvm.display.plotting.models import WeightsDisplay
from cutsvm.display.report import reproduce
from cutsvm.display.report.context import ReportContext
from cutsvm.display.report.markup import Markup, join, table, tag
from cutsvm.display.report.measures import Confusion, Measured, measure
from cutsvm.display.report.pictures import MAX_FEATURES, pictures, pictures_of_fit, pictures_of_model, weights_picture
from cutsvm.display.summary import (
    by_label,
    describe_gap,
    iteration_unit,
    requested_tol,
    seconds_before_resume,
    total_passes,
)

_MAX_CLASSES = 16  # of a confusion matrix; of more classes the most frequent errors are listed


def sections(context: ReportContext) -> Markup:
    """All sections that are not empty."""
    measured = measure(context)
    found = (
        _section("fit", "Convergence", pictures(pictures_of_fit(context))),
        _section("quality", "Quality", _quality(context, measured)),
        _section("features", "Largest weights", _features(context)),
        _section("choice", "Choice of C", _choice(context)),
        _section("trained", "Training", table(_facts(context))),
        _section("parameters", "Parameters", _parameters(context)),
        _section("again", "How to reproduce it", _again(context)),
    )
    return join(found)


def _section(name: str, title: str, inside: Markup) -> Markup:
    if not inside:
        return Markup("")
    return tag("section", tag("h2", title, id=name), inside, aria_labelledby=name)


def certificate(context: ReportContext) -> Markup:
    """The certificate in words, and its numbers."""
    estimator = context.estimator
    objective, lower, gap = (_number(estimator, name) for name in ("objective_", "lower_bound_", "gap_"))
    said = describe_gap(gap)
    if said is None:
        why = "There is no bound for this model: it was not computed, or its file has none."
        if np.isfinite(gap):
            why = f"The fit was stopped early: the lower bound is {lower:.6g}, the objective {objective:.6g}."
        return tag("div", tag("p", "Nothing is proven", class_="claim"), tag("p", why), class_="certificate open")
    done = bool(estimator.converged_)
    tol = requested_tol(estimator)
    why = estimator.status_.value if hasattr(estimator, "status_") else "status unknown"
    early = "Stopped" if tol is None else "Stopped early"
    head = tag("p", "Certified" if done else f"{early}: {why}", class_="badge")
    claim = tag("p", said[0].upper() + said[1:], class_="claim")
    proof = tag(
        "p",
        f"No {'machine with this kernel' if context.task.has_kernel else 'weights'} can bring the objective below "
        f"{lower:.6g} on the rows it was trained on, with these parameters; this model has {objective:.6g}. "
        "This is a statement about the training problem, not about predictions on new rows.",
    )
    numbers = [("objective", f"{objective:.6g}"), ("proven lower bound", f"{lower:.6g}")]
    numbers.append(("relative gap", f"{gap:.2g}"))
    numbers.append(("tol", f"{tol:g}") if tol is not None else ("tol", "none: fixed epochs"))
    cards = [tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers]
    return tag("div", head, claim, proof, tag("dl", *cards), class_=f"certificate {'done' if done else 'open'}")


def _number(estimator: Any, name: str) -> float:
    value = getattr(estimator, name, None)
    return float("nan") if value is None else float(np.max(value))


def _facts(context: ReportContext) -> list[tuple[str, object]]:
    """The model, the data, and the work that the fit took."""
    estimator, origin = context.estimator, context.origin
    rows: list[tuple[str, object]] = [("model", f"{type(estimator).__name__}, {context.task.description}")]
    rows += _wrapping(context)
    rows += _data(context)
    rows.append(("features", f"{estimator.n_features_in_:,}"))
    rows += _labels(context)
    if hasattr(estimator, "n_pairs_"):
        rows.append(("pairs", f"{estimator.n_pairs_:,.10g}"))
    if hasattr(estimator, "n_queries_"):
        skipped = f"{estimator.n_skipped_queries_:,} of them with one level, which makes no pair"
        rows.append(("queries", f"{estimator.n_queries_:,}, {skipped}"))
    if hasattr(estimator, "n_support_"):
        rows.append(("support vectors", f"{int(np.sum(estimator.n_support_)):,}"))
    if hasattr(estimator, "C_"):
        rows.append(("C", f"{estimator.C_:.6g}, chosen by cross-validation"))
    rows += _work(context)
    if origin.model is not None:
        rows.append(("model file", origin.model))
    return rows


def _wrapping(context: ReportContext) -> list[tuple[str, object]]:
    """The search that chose the parameters, and the steps before the estimator."""
    found: list[tuple[str, object]] = []
    if context.wrapped is not None and (search := context.wrapped.search) is not None:
        best = ", ".join(f"{name} = {reproduce.plain(value)!r}" for name, value in search.best_params_.items())
        score = getattr(search, "best_score_", None)
        shown = "" if score is None else f", mean score {score:.4f}"
        found.append((f"chosen by {type(search).__name__}", f"{best}{shown}"))
    if context.wrapped is not None and context.wrapped.steps:
        found.append(("steps before it", ", ".join(reproduce.one_line(step) for step in context.wrapped.steps)))
    return found


def _data(context: ReportContext) -> list[tuple[str, object]]:
    """The rows; only the command line knows that they are the training rows."""
    given = "" if context.origin.shape is not None else " given to this report"
    found: list[tuple[str, object]] = []
    if context.source is not None:
        found.append((f"data{given}", context.source))
    if context.shape is not None:
        sparse = "" if context.entries is None else f", with {context.entries:,} nonzeros"
        found.append((f"rows{given}", f"{context.shape[0]:,}{sparse}"))
    return found


def _labels(context: ReportContext) -> list[tuple[str, object]]:
    if context.task.has_targets and context.y is not None and len(context.y):
        return [(context.task.label_noun, f"from {context.y.min():.6g} to {context.y.max():.6g}")]
    if context.classes is None:
        return []
    names, more = context.classes[:_MAX_CLASSES].tolist(), len(context.classes) - _MAX_CLASSES
    if context.y is not None and more <= 0:
        names = [f"{label} ({np.count_nonzero(context.y == label):,} rows)" for label in names]
    return [(context.task.label_noun, ", ".join(map(str, names)) + (f" and {more:,} more" if more > 0 else ""))]


def _work(context: ReportContext) -> list[tuple[str, object]]:
    """The solver, its iterations, passes and seconds."""
    estimator, history = context.estimator, context.history
    note = str(history[-1].get("note", "")) if history else ""
    rows: list[tuple[str, object]] = [("solver", note or str(estimator.solver))]
    if getattr(estimator, "n_iter_", None) is not None:
        rows.append((iteration_unit(estimator), f"{int(np.max(estimator.n_iter_)):,}"))
    if not history:
        return rows
    if total_passes(estimator):
        rows.append(("passes over the data", f"{total_passes(estimator):g}"))
    seconds = context.origin.seconds
    if seconds is None:
        seconds = sum(records[-1]["seconds"] for records in by_label(history).values())
    before = seconds_before_resume(estimator)
    return [*rows, ("seconds", f"{seconds:.3g}" + (f", after {before:.3g} in earlier runs" if before else ""))]


def _quality(context: ReportContext, measured: Measured | None) -> Markup:
    """The measures of the task, the plots, and the confusion matrix."""
    if measured is None:
        remark = context.origin.remark or "No labelled rows were given to this report, so nothing was measured."
        return tag("p", remark, class_="remark")
    rows: list[tuple[object, object]] = list(measured.others)
    confusion = measured.confusion
    if confusion is not None and confusion.total:
        share = 100 * confusion.correct / confusion.total
        rows.append(("accuracy", f"{share:.4g} % ({confusion.correct:,} of {confusion.total:,} rows)"))
        if confusion.unknown:
            rows.append(("unknown labels", f"{confusion.unknown:,} rows, counted as errors"))
    if measured.area is not None:
        rows.append(("ROC area", f"{100 * measured.area:.5g} %"))
    if measured.level_error is not None:
        rows.append(("mean absolute error", f"{measured.level_error:.4g} levels"))
    if measured.pairs is not None:
        rows.append(("pairs in order", f"{100 * measured.pairs:.5g} %"))
    elif context.task.has_queries:
        rows.append(("pairs in order", "the rows make no pair"))
    where = context.origin.remark or "Measured on the rows that this report was given."
    parts = [table(rows), tag("p", where, class_="remark"), pictures(pictures_of_model(context, measured))]
    return join([*parts, _confusion(confusion)] if confusion is not None else parts)


def _confusion(confusion: Confusion) -> Markup:
    """The confusion matrix, or of many classes the most frequent errors."""
    classes, counts = [str(label) for label in confusion.classes.tolist()], confusion.counts
    if len(classes) > _MAX_CLASSES:
        wrong = counts - np.diag(np.diag(counts))
        worst = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_CLASSES]
        pairs = [divmod(int(at), len(classes)) for at in worst if wrong.flat[at] > 0]
        rows = [(classes[i], classes[j], f"{wrong[i, j]:,}") for i, j in pairs]
        head = tag("h3", "The most frequent errors")
        return join([head, table(rows, ("true class", "predicted", "rows"), numbers=True)]) if rows else Markup("")
    totals = counts.sum(axis=1)
    lines = []
    for i, name in enumerate(classes):
        shares = counts[i] / max(1, totals[i])
        # The tint of a cell shows its share of the row.
        cells = [
            tag("td", f"{n:,}", class_="number", style=f"--share: {share:.3f}")
            for n, share in zip(counts[i].tolist(), shares.tolist(), strict=True)
        ]
        found = f"{100 * shares[i]:.1f} %" if totals[i] else "no rows"
        lines.append(tag("tr", tag("th", name, scope="row"), *cells, tag("td", found, class_="number")))
    titles = [tag("th", title, scope="col", class_="number") for title in (*classes, "recall")]
    top = tag("thead", tag("tr", tag("th", "true \\ predicted", scope="col"), *titles))
    matrix = tag("table", top, tag("tbody", *lines), class_="confusion")
    return join([tag("h3", "Confusion matrix"), tag("div", matrix, class_="wide")])


def _features(context: ReportContext) -> Markup:
    """The largest weights, as a plot and as a table."""
    if not hasattr(context.estimator, "coef_"):
        return Markup("")
    display = WeightsDisplay.of(context.estimator, feature_names=context.feature_names, top=MAX_FEATURES)
    if not display.names:
        return tag("p", "All weights are 0: every row has the same score.", class_="remark")
    outputs = [f"for {name}" for name in display.outputs] if len(display.weights) > 1 else ["weight"]
    most = outputs[:_MAX_CLASSES]
    columns = display.weights.T[:, : len(most)]
    rows = [(name, *(f"{w:.4g}" for w in own)) for name, own in zip(display.names, columns.tolist(), strict=True)]
    left_out = len(outputs) - len(most)
    rest = [tag("p", f"{left_out:,} more columns are not shown.", class_="remark")] if left_out > 0 else []
    drawn = [] if left_out > 0 else [weights_picture(display)]
    listed = tag("div", table(rows, ("feature", *most), numbers=True), *rest)
    return tag("div", pictures(drawn), listed, class_="beside" if len(most) < 4 else None)


def _choice(context: ReportContext) -> Markup:
    """A row for each C."""
    estimator = context.estimator
    if not context.chose_C:
        return Markup("")
    rows = []
    for k, C in enumerate(np.asarray(estimator.Cs_).tolist()):
        own = estimator.scores_[:, k]
        own = own[~np.isnan(own)]
        score = f"{own.mean():.4f} ± {own.std():.4f}" if len(own) else "none"
        marked = tag("strong", f"{C:.4g}, chosen") if C == estimator.C_ else f"{C:.4g}"
        rows.append((marked, score, f"{np.nanmax(estimator.gaps_[:, k]):.1e}"))
    head = ("C", f"score in {len(estimator.scores_)} folds", "largest gap")
    return table(rows, head, numbers=True)


def _parameters(context: ReportContext) -> Markup:
    """The parameters of the model; those that are not the defaults are bold."""
    found = [given for given in reproduce.parameters(context.estimator) if given[0] not in reproduce.MONITORING]
    rows = [(tag("code", name), tag("strong", repr(v)) if own else repr(v)) for name, v, own in found]
    return join([table(rows), tag("p", "Bold: not the default.", class_="remark")])


def _again(context: ReportContext) -> Markup:
    """The command or the Python code, and the versions."""
    command, model = context.origin.command, context.origin.model
    parts = []
    if command is not None:
        parts.append(tag("pre", tag("code", command)))
        if model is not None:
            parts.append(tag("p", "The model, in Python:"))
            use = f"from cutsvm import load_model\n\nmodel = load_model({model!r}).estimator"
            parts.append(tag("pre", tag("code", use)))
    else:
        parts.append(tag("pre", tag("code", reproduce.call(context))))
    return join([*parts, table(reproduce.versions())])
