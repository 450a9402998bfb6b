"""What our pictures have in common: colours, axes, and text that is shown as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cutsvm._utils.text import printable
from cutsvm._utils.types import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, told apart with any kind of colour vision; vermillion above, blue below.
ABOVE, BELOW, BETWEEN, INK, GRID = "#D55E00", "#0072B2", "#BBBBBB", "#333333", "#E6E6E6"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MOST_DOTS = 60


def tidy(ax: Axes, lines: Literal["x", "y"] = "y") -> None:
    """Axes as lines to read from, not as a box around the picture."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=lines, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)


def mark(points: Sequence[Any] | Vector) -> dict[str, Any]:
    """A line with a dot per point, as long as the dots can be told apart."""
    dots = {"marker": "o", "markersize": 3.5} if len(points) <= MOST_DOTS else {}
    return {"linewidth": 1.8, "zorder": 3, **dots}


def new_axes(width: float, height: float) -> Axes:
    """The axes of a new figure of so many inches."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained", dpi=150)
    return ax


def shown(text: object, longest: int = 32) -> str:
    """A name as a label: on one line, not too long, and with dollars that do not start a formula."""
    plain = printable(str(text))
    if len(plain) > longest:
        plain = f"{plain[: longest - 1]}…"
    return plain.replace("$", r"\$")
