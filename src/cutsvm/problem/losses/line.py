"""The loss along a line of scores, for losses whose kernels look at it in `core.LINE_POINTS` places at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Vector


@dataclass(frozen=True)
class LossLineValues:
    """See `cutsvm.problem.losses.Look`."""

    values: Vector
    slopes: Vector
    knots: Vector


class LossLine:
    """See `cutsvm.problem.losses.Line`: a loss's two kernels, `look` and `crossing`, and the arrays that both take."""

    def __init__(
        self, n: int, look: Callable[..., None], crossing: Callable[..., float], arrays: tuple[Any, ...], threads: int
    ) -> None:
        self.n, self._look, self._crossing, self._arrays, self._threads = n, look, crossing, arrays, threads

    def look(self, ks: Vector) -> LossLineValues:
        many = len(ks)
        at = np.full(core.LINE_POINTS, ks[-1])
        at[:many] = ks
        out = np.empty((3, core.LINE_POINTS))
        self._look(*self._arrays, at, out, self._threads)
        constant, slopes, knots = out[:, :many]
        return LossLineValues(constant + ks * slopes, slopes, knots)

    def crossing(self, low: float, high: float, slope: float, curvature: float, level: float) -> float:
        return self._crossing(*self._arrays, low, high, slope, curvature, level, self._threads)
