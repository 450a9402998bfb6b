"""The loss along a line of scores, for losses whose kernels evaluate it at `core.LINE_POINTS` points at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Vector
from cutsvm.problem.line_search.breakpoints import exact


@dataclass(frozen=True)
class LossLineValues:
    """See `cutsvm.problem.losses.Look`."""

    values: Vector
    slopes: Vector
    breakpoints: Vector


class LossLine:
    """See `cutsvm.problem.losses.Line`: a loss's two kernels, `evaluate` and `crossing`, and the arrays that both
    take."""

    exact = True

    def __init__(
        self,
        n: int,
        evaluate: Callable[..., None],
        crossing: Callable[..., float],
        arrays: tuple[Any, ...],
        threads: int,
    ) -> None:
        self.n, self._evaluate, self._crossing, self._arrays, self._threads = n, evaluate, crossing, arrays, threads

    def evaluate(self, ks: Vector) -> LossLineValues:
        many = len(ks)
        at = np.full(core.LINE_POINTS, ks[-1])
        at[:many] = ks
        out = np.empty((3, core.LINE_POINTS))
        self._evaluate(*self._arrays, at, out, self._threads)
        constant, slopes, breakpoints = out[:, :many]
        return LossLineValues(constant + ks * slopes, slopes, breakpoints)

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        return exact(self, tilt, curvature, guess)

    def crossing(self, low: float, high: float, slope: float, curvature: float, level: float) -> float:
        return self._crossing(*self._arrays, low, high, slope, curvature, level, self._threads)
