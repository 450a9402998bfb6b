"""The plots of a report, as SVG with the colours of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cutsvm.display.plotting.convergence import PathDisplay, plot_convergence, plot_time_breakdown
from cutsvm.display.plotting.models import WeightsDisplay, margins
from cutsvm.display.plotting.residuals import ResidualsDisplay
from cutsvm.display.plotting.style import INK, SERIES
from cutsvm.display.report.context import ReportContext
from cutsvm.display.report.markup import Markup, tag, text
from cutsvm.display.report.measures import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 4.8  # inches: text is then as large as that of the page on a phone
MAX_FEATURES = 15

# Colours of the plots, and the names of the page for them, in its light and its dark mode.
_COLOURS = {
    "#333333": "ink",
    "#000000": "ink",
    "#ffffff": "paper",
    "#e6e6e6": "line",
    "#bbbbbb": "grey",
    "#d55e00": "vermillion",
    "#0072b2": "blue",
    "#009e73": "green",
    "#cc79a7": "purple",
    "#e69f00": "orange",
    "#56b4e9": "sky",
    "#f0e442": "yellow",
}


class Picture(NamedTuple):
    """How to draw a plot, its height in inches, and its texts."""

    name: str
    height: float
    draw: Callable[[Figure], object]
    alt: str
    caption: str


def pictures(chosen: list[Picture]) -> Markup:
    """The plots side by side if they fit."""
    with _style():
        drawn = [
            tag("figure", _svg(picture), tag("figcaption", picture.caption), id=f"picture-{picture.name}")
            for picture in chosen
        ]
    return tag("div", *drawn, class_="pictures") if drawn else Markup("")


def pictures_of_fit(context: ReportContext) -> list[Picture]:
    """Plots of the fit: the path over C, the bounds against time and passes, and the time of each phase."""
    found = [_path(context)] if context.chose_C and getattr(context.estimator, "path_", None) else []
    history = [record for record in context.history if np.isfinite(record["primal"])]
    if len(history) < 2:
        return found
    found.append(_convergence(history, "seconds"))
    if history[-1]["passes"] > history[0]["passes"]:
        found.append(_convergence(history, "passes"))
    layers = "Cumulative seconds of each phase of the fit."
    draw = lambda figure: plot_time_breakdown(history, figure.subplots())  # noqa: E731
    return [*found, Picture("time", 3.2, draw, "Time spent in each part of the fit", layers)]


def pictures_of_model(context: ReportContext, measured: Measured | None) -> list[Picture]:
    """Plots of the rows: margins, and the ROC curve of two classes; or true and predicted numbers, and residuals."""
    found = []
    if context.task.has_targets and context.y is not None and context.scores is not None:
        return [_true_and_predicted(context), _residuals(context)] if measured is not None else []
    if context.y is not None and context.scores is not None and measured is not None:
        found.append(_margins(context))
        if measured.area is not None:
            found.append(_roc(context, measured.area))
    return found


def weights_picture(display: WeightsDisplay) -> Picture:
    """The largest weights."""
    words = "The largest weights. A feature with a wide range of values matters more than its weight says."
    height = 1.2 + 0.21 * max(4, len(display.names))
    return Picture("weights", height, lambda figure: display.plot(figure.subplots()), "Weights by feature", words)


def _path(context: ReportContext) -> Picture:
    estimator = context.estimator
    name = context.task.score_name if estimator.scoring is None else "score"
    name = estimator.scoring if isinstance(estimator.scoring, str) else name
    words = (
        "For every C: the mean score of the folds plus and minus one standard deviation, the norm of the weights, and "
        "the gap of the fit to all rows."
    )

    def draw(figure: Figure) -> None:
        PathDisplay.from_estimator(estimator, ax=figure.subplots(3, 1, sharex=True), score_name=name)
        figure.axes[0].set_title("", loc="left")

    return Picture("path", 5.2, draw, f"Score, norm of the weights and gap against C; C = {estimator.C_:g}", words)


def _convergence(history: list[dict[str, Any]], against: Any) -> Picture:
    words = {
        "seconds": "The objective of the best model so far and its proven lower bound: the best possible objective "
        "lies between them. Below, the relative gap.",
        "passes": "The same against passes over the data, which do not depend on the machine.",
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        plot_convergence(history, axes, against=against)
        axes[0].set_title("", loc="left")

    return Picture(against, 4.4, draw, f"Objective, lower bound and gap against {against}", words[against])


def _margins(context: ReportContext) -> Picture:
    assert context.y is not None and context.scores is not None
    display = margins(context.estimator, context.scores, context.y, context.qid)
    caption = context.task.margin_caption
    if caption is None:
        loss = ", below 1 it has a loss" if len(display.lines) > 1 else ""
        caption = f"The margin of each row: below 0 it is misclassified{loss}."
    return Picture("margins", 3.2, lambda figure: display.plot(figure.subplots()), "Distribution of margins", caption)


def _true_and_predicted(context: ReportContext) -> Picture:
    assert context.y is not None and context.scores is not None
    display = ResidualsDisplay.of(context.estimator, context.scores, context.y)
    sample = f" {display.n_shown:,} random rows of {len(context.y):,}." if display.n_shown < len(context.y) else ""
    words = f"Each row at its true value and the one predicted. On the line they are the same.{sample}"
    draw = lambda figure: display.plot(figure.subplots())  # noqa: E731
    return Picture("predicted", 4.4, draw, "Predicted against true values", words)


def _residuals(context: ReportContext) -> Picture:
    assert context.y is not None and context.scores is not None
    display = margins(context.estimator, context.scores, context.y)
    words = "True value minus predicted: above 0 the prediction is too low."
    if len(display.lines) > 1:
        words += " The outer lines are epsilon from 0."
    draw = lambda figure: display.plot(figure.subplots())  # noqa: E731
    return Picture("residuals", 3.2, draw, "Distribution of residuals", words)


def _roc(context: ReportContext, area: float) -> Picture:
    def draw(figure: Figure) -> None:
        from sklearn.metrics import RocCurveDisplay

        assert context.classes is not None and context.y is not None and context.scores is not None
        known = np.isin(context.y, context.classes)
        positive = (context.y == context.classes[1])[known].astype(int)
        ax = figure.subplots()
        RocCurveDisplay.from_predictions(positive, context.scores[known], ax=ax, name="model")
        ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (2, 3)), zorder=1)
        ax.set(xlabel="false positives, share of the negative rows", ylabel="true positives, share of the positive")
        if (legend := ax.get_legend()) is not None:
            legend.remove()

    words = (
        f"One point for every threshold. The area below the curve is {area:.4f}: the share of pairs of rows, one of "
        "each class, that are in order; by chance it is one half."
    )
    return Picture("roc", 4.4, draw, f"ROC curve, area {area:.4f}", words)


@contextmanager
def _style() -> Iterator[None]:
    """Keep text as text, in the colours of the page; pyplot, which needs a window system, is not used."""
    import matplotlib as mpl

    ink = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    plain = {"svg.fonttype": "none", "svg.hashsalt": "cutsvm", "font.family": "sans-serif", "font.size": 10}
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        settings: dict[Any, Any] = {**ink, **plain, **clear, "axes.prop_cycle": f"cycler(color={list(SERIES)!r})"}
        mpl.rcParams.update(settings)
        # Browsers have glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _svg(picture: Picture) -> Markup:
    """The plot as SVG inside the page: with unique ids and the colours of the page."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, picture.height), layout="constrained")
    picture.draw(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    whole = buffer.getvalue()
    body = whole[whole.index("<svg") :]
    # A style would apply to the whole page.
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    size = re.search(r'viewBox="([^"]+)"', body)
    start = f'<svg role="img" aria-label="{text(picture.alt)}" viewBox="{size[1] if size else ""}">'
    body = re.sub(r"^<svg[^>]*>", lambda _: start, body)
    # Only tags are changed, not the text between them.
    body = re.sub(r"<[^>]+>", lambda found: _adapt_tag(found[0], picture.name), body)
    return Markup(re.sub(r">\s+<", "><", body).strip())


def _adapt_tag(markup: str, prefix: str) -> str:
    """A tag with the ids, colours and fonts of the page, and two digits after the decimal point."""
    if markup.startswith("<g"):
        markup = re.sub(r' id="[^"]*"', "", markup)  # they are not referenced
    markup = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", re.sub(r"\s+", " ", markup))
    markup = markup.replace("xlink:href=", "href=")
    for prefixed in (' id="', 'href="#', "url(#"):
        markup = markup.replace(prefixed, f"{prefixed}{prefix}-")
    for colour, name in _COLOURS.items():
        markup = markup.replace(f": {colour}", f": var(--{name})")
    markup = re.sub(r"font: ([^;\"]*?px) [^;\"]*", r"font: \1 var(--font)", markup)
    return re.sub(r"font-family: [^;\"]*", "font-family: var(--font)", markup)
