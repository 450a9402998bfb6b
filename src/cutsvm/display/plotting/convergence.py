"""Plots of a fit. They need matplotlib (`pip install cutsvm[plot]`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cutsvm._utils.timing import PHASES
from cutsvm._utils.types import Vector
from cutsvm._utils.validation import one_of
from cutsvm.display.plotting.style import ABOVE, BELOW, BETWEEN, INK, SERIES, gap_axes, line_style, new_axes, style_axes
from cutsvm.display.summary import by_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

History = Sequence[Mapping[str, Any]]

Against = Literal["seconds", "passes"]

_STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)))  # for more series than there are colours

# Name and colour of each phase, from the bottom of the stack to its top.
_PHASES = {
    "scores": ("scores", "#0072B2"),
    "planes": ("planes", "#56B4E9"),
    "line_search": ("line search", "#D55E00"),
    "qp": ("reduced problem", "#E69F00"),
    "descent": ("coordinate descent", "#009E73"),
    "sift": ("sifting", "#CC79A7"),
    "centre": ("analytic centre", "#F0E442"),
    "hessian": ("second derivatives", "#882255"),
    "other": ("other", "#BBBBBB"),
}


def plot_convergence(history: Any, ax: Any = None, *, against: Against = "seconds") -> tuple[Axes, ...]:
    """Plot the objective and its lower bound, and the relative gap, against time or passes.

    Parameters
    ----------
    history : a fitted estimator or its `history_`; or several, as a list of estimators or as a dict from names to
        either. Of several one-vs-rest problems the bounds of the first and the gaps of all are drawn.
    ax : one matplotlib axes (the bounds only), or a pair (bounds, gap). By default a new figure with both.
    against : "seconds", or "passes" over the data, which do not depend on the machine.

    Returns
    -------
    axes : the axes drawn on.
    """
    one_of("against", against, ("seconds", "passes"))
    models = _histories(history)
    ax = new_axes(7.2, 5.6, 2, height_ratios=(3, 2)) if ax is None else ax
    axes = tuple(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    problems = {name: by_label(records) for name, records in models.items()}
    if len(models) == 1:
        only = next(iter(problems.values()))
        _draw_bounds(axes[0], next(iter(only.values())), against)
    else:
        first = {name: next(iter(each.values())) for name, each in problems.items()}
        _draw_several_bounds(axes[0], first, against)
    if len(axes) > 1:
        _draw_gaps(axes[1], problems, against)
        axes[0].tick_params(labelbottom=False)
    axes[-1].set_xlabel("seconds" if against == "seconds" else "passes over the data")
    for each in axes:
        style_axes(each, from_zero=True)
    return axes


def plot_time_breakdown(history: Any, ax: Axes | None = None) -> Axes:
    """Plot the seconds in scores, planes, line search, reduced problem, descent, sifting and the rest.

    Parameters
    ----------
    history : as for `plot_convergence`. One is drawn as cumulative seconds against iterations, several as one bar each.
        One-vs-rest problems are concatenated.
    ax : matplotlib axes. By default a new figure.

    Returns
    -------
    ax : the axes drawn on.
    """
    models = {name: _spent(records) for name, records in _histories(history).items()}
    if ax is None:
        ax = new_axes(7.2, 4.0 if len(models) == 1 else 1.3 + 0.5 * len(models))
    if len(models) == 1:
        _draw_layers(ax, next(iter(models.values())))
    else:
        _draw_bars(ax, {name: spent[:, -1] for name, spent in models.items()})
    return ax


class ConvergenceDisplay:
    """The convergence of a fit, as `plot_convergence` draws it.

    Create it with `from_estimator`. `plot` sets `figure_` and `ax_` (bounds, gap).
    """

    def __init__(self, *, history: Any, against: Against = "seconds") -> None:
        self.history, self.against = history, against

    @classmethod
    def from_estimator(cls, estimator: Any, *, against: Against = "seconds", ax: Any = None) -> ConvergenceDisplay:
        """Plot the history of a fitted estimator, or of several."""
        return cls(history=estimator, against=against).plot(ax=ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Plot on one axes or a pair of them; by default in a new figure."""
        self.ax_ = plot_convergence(self.history, ax, against=self.against)
        self.figure_ = self.ax_[0].figure
        return self


class PathDisplay:
    """The path over C: |w|, the gap, and the scores of the folds if there are any, against C.

    Create it with `from_estimator`. `plot` sets `figure_` and `ax_` (one axes for each panel).
    """

    def __init__(
        self,
        *,
        Cs: Any,
        norms: Any,
        gaps: Any,
        tol: float,
        scores: Any = None,
        chosen: float | None = None,
        score_name: str = "score",
    ) -> None:
        self.Cs, self.norms, self.gaps, self.tol = np.asarray(Cs), np.asarray(norms), np.asarray(gaps), tol
        self.scores = None if scores is None else np.asarray(scores)
        self.chosen, self.score_name = chosen, score_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, score_name: str = "score") -> PathDisplay:
        """Plot a fitted `LinearSVCCV` or `RankingSVMCV`, or the list that `linear_path` returns."""
        chooses = hasattr(estimator, "scores_")
        models = list(getattr(estimator, "path_", ()) if chooses else estimator)
        if not models or not all(hasattr(model, "coef_") for model in models):
            raise ValueError(
                "there is no path to draw: expected a fitted LinearSVCCV (with refit), or a list of models"
            )
        display = cls(
            Cs=[model.C for model in models],
            norms=[np.linalg.norm(model.coef_) for model in models],
            gaps=[model.gap_ for model in models],
            tol=models[0].tol,
            scores=estimator.scores_ if chooses else None,
            chosen=estimator.C_ if chooses else None,
            score_name=score_name,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Plot on two axes, with scores three; by default in a new figure."""
        panels = [self._draw_norms, self._draw_gaps]
        if self.scores is not None:
            panels.insert(0, self._draw_scores)
        ax = new_axes(7.2, 1.2 + 1.8 * len(panels), len(panels)) if ax is None else ax
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != len(panels):
            raise ValueError(f"ax: {len(panels)} axes expected, got {len(axes)}")
        for draw, each in zip(panels, axes, strict=True):
            draw(each)
            each.set_xscale("log")
            style_axes(each)
            if self.chosen is not None:
                each.axvline(self.chosen, color=ABOVE, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
        axes[-1].set_xlabel("C")
        if self.chosen is not None:
            axes[0].set_title(f"C = {self.chosen:.3g} is chosen", loc="left", fontsize=11, color=INK)
        self.ax_, self.figure_ = axes, axes[0].figure
        return self

    def _draw_scores(self, ax: Axes) -> None:
        """The mean over the folds, plus and minus one standard deviation."""
        assert self.scores is not None
        done = self.scores[~np.isnan(self.scores).all(axis=1)]
        mean, spread = done.mean(axis=0), done.std(axis=0)
        ax.fill_between(self.Cs, mean - spread, mean + spread, color=BETWEEN, alpha=0.35, linewidth=0)
        ax.plot(self.Cs, mean, color=BELOW, **line_style(self.Cs))
        ax.set_ylabel(self.score_name)

    def _draw_norms(self, ax: Axes) -> None:
        ax.plot(self.Cs, np.where(self.norms > 0.0, self.norms, np.nan), color=INK, **line_style(self.Cs))
        ax.set_yscale("log")
        ax.set_ylabel("|w|")

    def _draw_gaps(self, ax: Axes) -> None:
        ax.plot(self.Cs, np.where(self.gaps > 0.0, self.gaps, np.nan), color=INK, **line_style(self.Cs))
        gap_axes(ax, self.tol)


def _histories(what: Any) -> dict[str, History]:
    """One history or several, by name."""
    if isinstance(what, Mapping):
        named = {str(name): _history(each) for name, each in what.items()}
    elif _is_history(what):
        named = {"": _history(what)}
    else:
        named = {name: _history(each) for name, each in zip(_names(what), what, strict=True)}
    if not named or not all(named.values()):
        raise ValueError("there is no history to draw: the model was loaded from a file or not fitted")
    return named


def _is_history(what: Any) -> bool:
    """Whether it is a history, or an estimator that has one."""
    if hasattr(what, "history_") or not isinstance(what, Iterable):
        return True
    return all(isinstance(each, Mapping) for each in what)


def _history(what: Any) -> History:
    """The history itself, or that of an estimator."""
    found: History = what if isinstance(what, Sequence) else getattr(what, "history_", ())
    return found


def _names(models: Sequence[Any]) -> list[str]:
    """Names of the models: their solvers if these are distinct, otherwise numbers."""
    solvers = [str(getattr(model, "solver", "")) for model in models]
    distinct = len(set(solvers)) == len(solvers)
    return solvers if distinct else [f"model {k}" for k in range(1, len(models) + 1)]


def _column(records: History, name: str) -> Vector:
    return np.array([record[name] for record in records], dtype=np.float64)


def _bounds(records: History, against: Against) -> tuple[Vector, Vector, Vector]:
    """Seconds or passes, the lowest objective so far and the highest bound so far."""
    primal, lower = _column(records, "primal"), _column(records, "lower")
    return _column(records, against), np.fmin.accumulate(primal), np.fmax.accumulate(lower)


def _draw_bounds(ax: Axes, records: History, against: Against) -> None:
    """The objective, its lower bound, and the band between them, which contains the optimum."""
    spent, primal, lower = _bounds(records, against)
    ax.fill_between(spent, lower, primal, color=BETWEEN, alpha=0.35, linewidth=0)
    ax.plot(spent, primal, color=ABOVE, label="objective of the model", **line_style(spent))
    ax.plot(spent, lower, color=BELOW, label="proven lower bound", **line_style(spent))
    _set_objective_limits(ax, [float(primal[-1])])
    ax.legend(frameon=False, loc="lower right")
    ax.set_title("The best possible objective lies in the grey band", loc="left", fontsize=11, color=INK)


def _draw_several_bounds(ax: Axes, models: Mapping[str, History], against: Against) -> None:
    """The same pair of lines for each model, each model in its own colour."""
    ends = []
    for place, (name, records) in enumerate(models.items()):
        spent, primal, lower = _bounds(records, against)
        ax.plot(spent, primal, label=name, **line_style(spent), **_series(place))
        ax.plot(spent, lower, **line_style(spent), **_series(place))
        ends.append(float(primal[-1]))
    _set_objective_limits(ax, ends)
    ax.legend(frameon=False, loc="lower right")
    ax.set_title("From above: the objective. From below: its proven lower bound", loc="left", fontsize=11, color=INK)


def _set_objective_limits(ax: Axes, ends: Sequence[float]) -> None:
    """Limit the axis to 1.5 times the final objective, above 0 or below it; the first points may be far off."""
    near, below = max(ends), min(ends)
    low, high = min(0.0, 1.5 * below), max(0.0, 1.5 * near)
    ax.set_ylim(low, high if high > low else 1.0)
    ax.set_ylabel("objective")


def _series(place: int) -> dict[str, Any]:
    count = len(SERIES)
    return {"color": SERIES[place % count], "linestyle": _STYLES[place // count % len(_STYLES)]}


def _draw_gaps(ax: Axes, models: Mapping[str, Mapping[str, History]], against: Against) -> None:
    """The relative gap on a logarithmic scale, and the tolerance if the history has it."""
    for place, problems in enumerate(models.values()):
        colours = {"color": INK} if len(models) == 1 else _series(place)
        shades = np.linspace(1.0, 0.35, len(problems))
        for shade, (label, records) in zip(shades, problems.items(), strict=True):
            gap = _column(records, "gap")
            shown = np.where(gap > 0, gap, np.nan)
            style: dict[str, Any] = {**colours, "alpha": float(shade), **line_style(gap)}
            ax.plot(_column(records, against), shown, label=label, **style)
    last = next(iter(next(iter(models.values())).values()))[-1]
    gap_axes(ax, last.get("tol"))


def _spent(history: History) -> Vector:
    """Cumulative seconds: a row for each phase and one for the rest of the time, a column for each iteration."""
    before = np.zeros(len(PHASES) + 1)
    parts = []
    for records in by_label(history).values():
        named = np.array([[float(r.get(f"seconds_{phase}", 0.0)) for r in records] for phase in PHASES])
        other = np.maximum(0.0, _column(records, "seconds") - named.sum(axis=0))
        parts.append(before[:, None] + np.vstack([named, other]))
        before = parts[-1][:, -1]
    return np.hstack(parts)


def _draw_layers(ax: Axes, spent: Vector) -> None:
    """Stacked layers, one for each phase, against iterations."""
    shown = [(*_PHASES[phase], row) for phase, row in zip((*PHASES, "other"), spent, strict=True) if row[-1] > 0.0]
    names, colours, rows = zip(*shown, strict=True) if shown else (["other"], [BETWEEN], [spent[-1]])
    layers = ax.stackplot(np.arange(spent.shape[1]), *rows, labels=names, colors=colours)
    for layer in layers:
        layer.set(edgecolor="white", linewidth=0.6)
    ax.legend(layers[::-1], names[::-1], frameon=False, loc="upper left")  # in the order of the layers
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("iteration")
    ax.set_ylabel("seconds so far")
    style_axes(ax, from_zero=True)
    ax.set_xlim(0.0, max(1, spent.shape[1] - 1))
    ax.set_ylim(bottom=0.0)


def _draw_bars(ax: Axes, models: Mapping[str, Vector]) -> None:
    """A bar for each model, the first on top, labelled with its sum."""
    totals = np.array(list(models.values()))
    places, left = np.arange(len(models)), np.zeros(len(models))
    for phase, seconds in zip((*PHASES, "other"), totals.T, strict=True):
        if not seconds.any():
            continue
        name, colour = _PHASES[phase]
        ax.barh(places, seconds, 0.62, left, label=name, color=colour, edgecolor="white", linewidth=0.6)
        left += seconds
    for place, total in zip(places, left, strict=True):
        style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": INK, "fontsize": 9}
        ax.annotate(f"{total:.3g} s", (total, place), (4, 0), **style)
    ax.set_yticks(places, list(models))
    ax.invert_yaxis()
    ax.set_xlabel("seconds")
    style_axes(ax, lines="x", from_zero=True)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.0, 1.12 * float(left.max()) or 1.0)
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles, names, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, borderaxespad=0.2)
