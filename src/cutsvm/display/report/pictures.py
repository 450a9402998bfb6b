"""The pictures of a report: drawn by `cutsvm.plotting`, written as SVG that takes its colours from the page."""

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
from cutsvm.display.plotting.style import INK, SERIES
from cutsvm.display.report.context import ReportContext
from cutsvm.display.report.markup import Markup, tag, text
from cutsvm.display.report.measures import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Picture", "pictures", "pictures_of_fit", "pictures_of_model", "weights_picture"]

WIDTH = 4.8  # inches: at this width text is as large as that of the page on a phone
FEATURES = 15

# Colours of our pictures, and the page's names for them: each has one for paper and one for the dark.
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
    """What to draw, on a figure of this height in inches, and what it says."""

    name: str
    height: float
    draw: Callable[[Figure], object]
    alt: str
    caption: str


def pictures(chosen: list[Picture]) -> Markup:
    """The pictures side by side, where there is room."""
    with _style():
        drawn = [
            tag("figure", _svg(picture), tag("figcaption", picture.caption), id=f"picture-{picture.name}")
            for picture in chosen
        ]
    return tag("div", *drawn, class_="pictures") if drawn else Markup("")


def pictures_of_fit(context: ReportContext) -> list[Picture]:
    """How the fit went: the path over C, the bounds against time and against passes, and where the time went."""
    found = [_path(context)] if context.chooses and getattr(context.estimator, "path_", None) else []
    history = [record for record in context.history if np.isfinite(record["primal"])]
    if len(history) < 2:
        return found
    found.append(_convergence(history, "seconds"))
    if history[-1]["passes"] > history[0]["passes"]:
        found.append(_convergence(history, "passes"))
    layers = "Seconds so far, and what they were spent on."
    draw = lambda figure: plot_time_breakdown(history, _one(figure))  # noqa: E731
    return [*found, Picture("time", 3.2, draw, "Time spent in each part of the fit", layers)]


def pictures_of_model(context: ReportContext, measured: Measured | None) -> list[Picture]:
    """What the model does with the rows: margins, the ROC curve where there is one; and the largest weights."""
    found = []
    if context.y is not None and context.scores is not None and measured is not None:
        found.append(_margins(context))
        if measured.area is not None:
            found.append(_roc(context, measured.area))
    return found


def weights_picture(display: WeightsDisplay) -> Picture:
    """The largest weights."""
    words = "The largest weights. A feature with a wide range of values matters more than its weight says."
    height = 1.2 + 0.21 * max(4, len(display.names))
    return Picture("weights", height, lambda figure: display.plot(_one(figure)), "Weights by feature", words)


def _path(context: ReportContext) -> Picture:
    estimator = context.estimator
    name = context.task.score_name if estimator.scoring is None else "score"
    name = estimator.scoring if isinstance(estimator.scoring, str) else name
    words = (
        "Every C that was tried: the mean score of the folds with one standard deviation to either side, the length of "
        "the weights, and the gap of the fit to all rows."
    )

    def draw(figure: Figure) -> None:
        PathDisplay.from_estimator(estimator, ax=figure.subplots(3, 1, sharex=True), score_name=name)
        figure.axes[0].set_title("", loc="left")

    return Picture("path", 5.2, draw, f"Score, length of the weights and gap against C; C = {estimator.C_:g}", words)


def _convergence(history: list[dict[str, Any]], against: Any) -> Picture:
    words = {
        "seconds": "From above the objective of the best model so far, from below what is proven to be unreachable: "
        "the best possible objective lies in between. Below, the gap between the two.",
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
    return Picture("margins", 3.2, lambda figure: display.plot(_one(figure)), "Distribution of margins", caption)


def _roc(context: ReportContext, area: float) -> Picture:
    def draw(figure: Figure) -> None:
        from sklearn.metrics import RocCurveDisplay

        assert context.classes is not None and context.y is not None and context.scores is not None
        known = np.isin(context.y, context.classes)
        positive = (context.y == context.classes[1])[known].astype(int)
        ax = _one(figure)
        RocCurveDisplay.from_predictions(positive, context.scores[known], ax=ax, name="model")
        ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (2, 3)), zorder=1)
        ax.set(xlabel="false positives, share of the negative rows", ylabel="true positives, share of the positive")
        if (legend := ax.get_legend()) is not None:
            legend.remove()

    words = (
        f"Every threshold at once. The area below is {area:.4f}: the share of pairs of rows, one of each class, that "
        "are in order; by chance it is one half."
    )
    return Picture("roc", 4.4, draw, f"ROC curve, area {area:.4f}", words)


def _one(figure: Figure) -> Axes:
    return figure.subplots()


@contextmanager
def _style() -> Iterator[None]:
    """Text as text, in the page's own colours; without pyplot: no window system is asked for."""
    import matplotlib as mpl

    ink = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    plain = {"svg.fonttype": "none", "svg.hashsalt": "cutsvm", "font.family": "sans-serif", "font.size": 10}
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        settings: dict[Any, Any] = {**ink, **plain, **clear, "axes.prop_cycle": f"cycler(color={list(SERIES)!r})"}
        mpl.rcParams.update(settings)
        # The browser has glyphs that matplotlib's font has not.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _svg(picture: Picture) -> Markup:
    """The picture as a part of the page: its ids its own, its colours the page's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, picture.height), layout="constrained")
    picture.draw(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    whole = buffer.getvalue()
    body = whole[whole.index("<svg") :]
    # A style in it would be the whole page's.
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    size = re.search(r'viewBox="([^"]+)"', body)
    opening = f'<svg role="img" aria-label="{text(picture.alt)}" viewBox="{size[1] if size else ""}">'
    body = re.sub(r"^<svg[^>]*>", lambda _: opening, body)
    # Within tags alone: what is between them are words.
    body = re.sub(r"<[^>]+>", lambda found: _adapted(found[0], picture.name), body)
    return Markup(re.sub(r">\s+<", "><", body).strip())


def _adapted(opening: str, prefix: str) -> str:
    """A tag with ids, colours and fonts that suit the page, and no more digits than a screen has points."""
    if opening.startswith("<g"):
        opening = re.sub(r' id="[^"]*"', "", opening)  # nothing points to these
    opening = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", re.sub(r"\s+", " ", opening))
    opening = opening.replace("xlink:href=", "href=")
    for start in (' id="', 'href="#', "url(#"):
        opening = opening.replace(start, f"{start}{prefix}-")
    for colour, name in _COLOURS.items():
        opening = opening.replace(f": {colour}", f": var(--{name})")
    opening = re.sub(r"font: ([^;\"]*?px) [^;\"]*", r"font: \1 var(--font)", opening)
    return re.sub(r"font-family: [^;\"]*", "font-family: var(--font)", opening)
