"""Plots of a fitted model: the margins of rows, and the largest weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cutsvm._utils import queries
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.display.errors import marks_outliers
from cutsvm.display.plotting.style import ABOVE, BELOW, INK, SERIES, label_text, new_axes, style_axes
from cutsvm.io.models.tasks import task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_PAIRS = 20_000  # a random sample of the pairs of rows
_N_BINS = 60
_MAX_LEGEND = 12  # groups
_TAIL = 0.002  # share of the rows at either end that the scale ignores


class MarginDisplay:
    """A histogram of the margins of rows: below 0 they are misclassified, below 1 they have a loss.

    Create it with `from_estimator`. What is drawn depends on the estimator:

    - two classes: y f(x), by class; without the line at 1 for `ROCAreaSVC`, whose loss is of pairs
    - more classes: the score of the row's own class minus the best of the others
    - `OrdinalSVC`: the score, by level, and the thresholds
    - `RankingSVM`: score differences of 20,000 random pairs of rows of one query with different y
    - `LinearSVR`, `QuantileSVR`: the residuals y - f(x), and epsilon
    - `LinearOneClassSVM`: the score, by label if the labels are 1 (inlier) and -1

    `plot` sets `figure_` and `ax_`. Outliers are drawn at the ends.

    Parameters
    ----------
    groups : dict from names to values
    lines : pairs of a name and a position of vertical lines; the first has its name on the left
    xlabel, ylabel : labels of the axes
    ordered : whether the groups have an order, which their colours show
    """

    def __init__(
        self,
        *,
        groups: Mapping[str, Vector],
        lines: Sequence[tuple[str, float]],
        xlabel: str = "margin",
        ylabel: str = "rows",
        ordered: bool = False,
    ) -> None:
        self.groups, self.lines, self.xlabel, self.ylabel = dict(groups), list(lines), xlabel, ylabel
        self.ordered = ordered

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, qid: Any = None, ax: Axes | None = None
    ) -> MarginDisplay:
        """Plot the margins of rows X with labels y; qid: their queries, for `RankingSVM`."""
        return margins(estimator, scores_of(estimator, X), np.asarray(y), qid).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> MarginDisplay:
        """Plot on these axes; by default in a new figure."""
        ax = new_axes(7.2, 4.0) if ax is None else ax
        edges = self._edges()
        inside = [np.clip(values, edges[0], edges[-1]) for values in self.groups.values()]
        ax.hist(
            inside, edges.tolist(), stacked=True, histtype="stepfilled", color=self._colours(), label=list(self.groups)
        )
        for place, (name, at) in enumerate(self.lines):
            ax.axvline(at, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
            # Above the bars, the first name left of its line, as two lines may be close.
            align, shift = ("left", 2) if place else ("right", -2)
            style: dict[str, Any] = {"color": INK, "fontsize": 9, "textcoords": "offset points", "ha": align}
            ax.annotate(name, (at, 1.0), (shift, 3), xycoords=("data", "axes fraction"), **style)
        if 1 < len(self.groups) <= _MAX_LEGEND:
            ax.legend(frameon=False, loc="center right" if self.lines else "best", fontsize=9)
        ax.set_xlabel(self.xlabel)
        ax.set_ylabel(self.ylabel)
        style_axes(ax)
        ax.set_xlim(edges[0], edges[-1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _edges(self) -> Vector:
        """Edges of the bins: they cover the lines and all values but the tails."""
        values = np.concatenate([*self.groups.values(), np.empty(0)])
        ends = np.quantile(values, [_TAIL, 1.0 - _TAIL]) if len(values) else np.zeros(2)
        places = [*ends.tolist(), *(at for _, at in self.lines)]
        low, high = min(places), max(places)
        room = 0.04 * (high - low) or 1.0
        return np.linspace(low - room, high + room, _N_BINS + 1)

    def _colours(self) -> list[Any]:
        if self.ordered:
            from matplotlib import colormaps

            return [colormaps["cividis"](share) for share in np.linspace(0.0, 1.0, len(self.groups))]
        return [SERIES[place % len(SERIES)] for place in range(len(self.groups))]


class WeightsDisplay:
    """The largest weights by feature name: bars for one row of weights, coloured cells for several.

    Create it with `from_estimator`. `plot` sets `figure_` and `ax_`.

    Parameters
    ----------
    weights : array of shape (n_outputs, n_shown), the features with the largest norms first
    names : of the features shown
    outputs : classes that positive weights of each row favour; of one row also the class of negative weights
    """

    def __init__(self, *, weights: Any, names: Sequence[str], outputs: Sequence[str]) -> None:
        self.weights, self.names, self.outputs = np.atleast_2d(weights), list(names), list(outputs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Sequence[Any] | None = None, top: int = 20, ax: Axes | None = None
    ) -> WeightsDisplay:
        """Plot the `top` features of a fitted linear model.

        feature_names: one per feature; by default `feature_names_in_`, or x0, x1, ... as in scikit-learn.
        """
        return cls.of(estimator, feature_names=feature_names, top=top).plot(ax=ax)

    @classmethod
    def of(cls, estimator: Any, *, feature_names: Sequence[Any] | None = None, top: int = 20) -> WeightsDisplay:
        """The display of the `top` features, not plotted yet."""
        if not hasattr(estimator, "coef_"):
            raise ValueError(
                f"{type(estimator).__name__} has no weights of features to draw: it is not linear or fitted"
            )
        coef = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else np.asarray(estimator.coef_)
        names = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
        if names is not None and len(names) != coef.shape[-1]:
            raise ValueError(
                f"feature_names has {len(names)} names: expected one for each of {coef.shape[-1]} features"
            )
        coef = np.atleast_2d(coef)
        lengths = np.abs(coef[0]) if len(coef) == 1 else np.sqrt(np.einsum("kj,kj->j", coef, coef))
        many = min(top, int(np.count_nonzero(lengths)))
        best = np.argpartition(-lengths, many - 1)[:many] if many else np.empty(0, dtype=np.int64)
        best = best[np.lexsort((best, -lengths[best]))]
        called = [f"x{j}" if names is None else str(names[j]) for j in best.tolist()]
        return cls(weights=coef[:, best], names=called, outputs=output_names(estimator))

    def plot(self, ax: Axes | None = None) -> WeightsDisplay:
        """Plot on these axes; by default in a new figure."""
        ax = new_axes(7.2, 1.4 + 0.24 * max(4, len(self.names))) if ax is None else ax
        if len(self.weights) == 1:
            self._draw_bars(ax)
        else:
            self._draw_cells(ax)
        middle = 0.0 if len(self.weights) == 1 else 0.5
        ax.set_yticks(middle + np.arange(len(self.names)), [label_text(name) for name in self.names])
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_bars(self, ax: Axes) -> None:
        from matplotlib.patches import Patch

        weights = self.weights[0]
        ax.barh(range(len(weights)), weights, 0.7, color=np.where(weights > 0.0, ABOVE, BELOW))
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.invert_yaxis()
        ax.set_xlabel("weight")
        style_axes(ax, lines="x")
        patches = [Patch(color=ABOVE), Patch(color=BELOW)]
        words = [f"for {label_text(name)}" for name in self.outputs]
        ax.legend(patches, words, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=9)

    def _draw_cells(self, ax: Axes) -> None:
        farthest = float(np.abs(self.weights).max(initial=0.0)) or 1.0
        cells = ax.pcolormesh(self.weights.T, cmap="PuOr_r", vmin=-farthest, vmax=farthest, edgecolors="white", lw=0.6)
        ax.set_xticks(
            0.5 + np.arange(len(self.outputs)), [label_text(name, 16) for name in self.outputs], rotation=45, ha="right"
        )
        ax.set_ylim(len(self.names), 0)
        bar = ax.figure.colorbar(cells, ax=ax, label="weight")
        bar.outline.set_visible(False)
        for spine in ax.spines.values():
            spine.set_visible(False)


def scores_of(estimator: Any, X: Any) -> Vector:
    """The scores of rows; those of `RankingSVM` are its predictions."""
    find = getattr(estimator, "decision_function", estimator.predict)
    scores: Vector = np.asarray(find(X))
    return scores


def output_names(estimator: Any) -> list[str]:
    """The class that each row of `coef_` favours; of one row also the other class."""
    classes = [str(label) for label in getattr(estimator, "classes_", np.empty(0)).tolist()]
    if len(classes) < 2 or hasattr(estimator, "thresholds_"):
        return ["higher", "lower"]
    if len(classes) == 2:
        return classes[::-1]
    if hasattr(estimator, "dual_coef_"):
        return [f"{later} / {earlier}" for earlier, later in combinations(classes, 2)]
    return classes


def margins(estimator: Any, scores: Vector, y: Array, qid: Any = None) -> MarginDisplay:
    """The `MarginDisplay` of known scores."""
    task = task_of(estimator)
    if task.has_targets:
        return _residuals(estimator, scores, y)
    if not task.needs_labels:
        kinds = {"label 1": y == 1, "label -1": y == -1} if marks_outliers(y) else {"": np.ones(len(y), dtype=bool)}
        groups = {name: scores[mine] for name, mine in kinds.items()}
        return MarginDisplay(groups=groups, lines=[("outliers", 0.0)], xlabel="score")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        own = _differences(scores, y, qid)
        lines = [("wrong order", 0.0), ("margin", 1.0)]
        return MarginDisplay(groups={"": own}, lines=lines, xlabel="score difference of a pair", ylabel="pairs drawn")
    if hasattr(estimator, "thresholds_"):
        groups = {f"level {label_text(label)}": scores[y == label] for label in classes}
        lines = [("" if k else "thresholds", float(at)) for k, at in enumerate(estimator.thresholds_)]
        return MarginDisplay(groups=groups, lines=lines, xlabel="score", ordered=True)
    lines = [("wrong", 0.0)]
    ends_at_1 = "hinge" in getattr(estimator, "loss", "hinge")  # the logistic loss is nowhere 0
    joint = getattr(estimator, "loss", "") == "hinge" and getattr(estimator, "multi_class", "ovr") != "ovr"
    if not hasattr(estimator, "n_pairs_") and ends_at_1 and (len(classes) == 2 or joint):
        lines.append(("margin", 1.0))
    if len(classes) == 2:
        signs = zip((-1, 1), classes, strict=True)
        groups = {f"class {label_text(label)}": sign * scores[y == label] for sign, label in signs}
        return MarginDisplay(groups=groups, lines=lines, xlabel="y f(x)")
    ahead = _ahead(scores, y, classes)
    words = "votes" if hasattr(estimator, "dual_coef_") else "score"
    return MarginDisplay(groups={"": ahead}, lines=lines, xlabel=f"{words} of its class minus the best other")


def _residuals(estimator: Any, scores: Vector, y: Array) -> MarginDisplay:
    """The display of y - f(x), with lines at 0 and at epsilon."""
    epsilon = float(getattr(estimator, "epsilon", 0.0))
    lines = [("", -epsilon), ("", 0.0), ("epsilon", epsilon)] if epsilon > 0.0 else [("", 0.0)]
    return MarginDisplay(groups={"": y - scores}, lines=lines, xlabel="true value minus predicted")


def class_indices(labels: Array, classes: Array) -> Ints:
    """The index of each label among the classes; arbitrary for unknown labels."""
    order = np.argsort(classes, kind="stable")
    at: Ints = order[np.searchsorted(classes, labels, sorter=order).clip(max=len(order) - 1)]
    return at


def _ahead(scores: Vector, y: Array, classes: Array) -> Vector:
    """Score of the row's class minus the best other score; rows of unknown classes are left out."""
    at = class_indices(y, classes)
    known = classes[at] == y
    at, others = at[known], scores[known].copy()
    rows = np.arange(len(at))
    own = others[rows, at]
    others[rows, at] = -np.inf
    ahead: Vector = own - others.max(axis=1)
    return ahead


def _differences(scores: Vector, y: Array, qid: Any) -> Vector:
    """Score differences of random pairs of one query, the higher y first; all pairs are equally likely."""
    order, starts = queries.query_by_query(queries.encode(qid, len(y)))
    if order is not None:
        scores, y = scores[order], y[order]
    sizes = np.diff(starts).astype(np.float64)
    random = np.random.default_rng(0)
    found, drawn = list[Vector](), 0
    # Most draws may be pairs with equal y; 20 rounds suffice to see the distribution.
    for _ in range(20):
        which = random.choice(len(sizes), size=_N_PAIRS, p=sizes**2 / np.sum(sizes**2))
        i, j = (starts[which] + (random.random(_N_PAIRS) * sizes[which]).astype(np.int64) for _ in range(2))
        differ = y[i] != y[j]
        i, j = i[differ], j[differ]
        found.append(np.where(y[i] > y[j], scores[i] - scores[j], scores[j] - scores[i]))
        drawn += len(found[-1])
        if drawn >= _N_PAIRS:
            break
    return np.concatenate(found)[:_N_PAIRS]
