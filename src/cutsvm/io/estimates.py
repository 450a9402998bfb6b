"""Estimates, over the training rows, of what preprocessing needs: means, scales and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.formats.arrow_values import Kind, numbers, words
from cutsvm.io.preprocessing import TableColumn
from cutsvm.io.settings import read_settings

_SHOWN = 3
_STRIP = 4096  # values that are summed together


@dataclass
class NumberEstimate:
    """Count, mean, sum of squared deviations and extremes of the values of a column.

    Values are summed in strips of a fixed length, so that batches of other lengths do not change a bit.
    """

    name: str
    kind: Kind
    squares: bool  # whether deviations and extremes are needed
    count: int = 0
    missing: int = 0
    mean: float = 0.0
    deviations: float = 0.0
    least: float = np.inf
    largest: float = -np.inf

    def __post_init__(self) -> None:
        self._rest = np.empty(0)  # values of the strip that is not complete

    def add(self, column: Any) -> None:
        values = numbers(column)
        if values.dtype.kind == "f":
            missing = np.isnan(values)
            many = int(np.count_nonzero(missing))
            if many:
                values = values[~missing]
                self.missing += many
        values = np.concatenate([self._rest, values], dtype=np.float64)
        whole = len(values) // _STRIP * _STRIP
        self._rest = values[whole:].copy()
        if whole:
            self._merge(values[:whole].reshape(-1, _STRIP))

    def _merge(self, strips: Array) -> None:
        """As Chan, Golub and LeVeque combine the sums of two samples, strip by strip."""
        n = strips.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            means = strips.mean(axis=1)
            if not np.isfinite(means).all():
                # Of finite values near the largest number the sum overflows, their mean does not.
                means = (strips / n).sum(axis=1)
            around = np.square(strips - means[:, None]).sum(axis=1) if self.squares else np.zeros(len(means))
            for own, deviations in zip(means.tolist(), around.tolist(), strict=True):
                self._merge_sample(n, own, deviations)
        if self.squares:
            self.least = min(self.least, float(strips.min()))
            self.largest = max(self.largest, float(strips.max()))

    def _merge_sample(self, n: int, mean: float, deviations: float) -> None:
        before, step = self.count, mean - self.mean
        self.count += n
        self.deviations += deviations + step * step * (before * n / self.count)
        self.mean += step * (n / self.count)

    def column(self, source: str, missing: str, scale: str) -> TableColumn:
        """What is to be done to the column: scikit-learn's SimpleImputer, StandardScaler and MinMaxScaler."""
        if len(self._rest):
            self._merge(self._rest[None, :])
            self._rest = np.empty(0)
        fill = {"mean": self.mean, "zero": 0.0, "refuse": None}[missing]
        if fill is not None and not np.isfinite(fill):
            fill = 0.0  # a value is not finite, and is refused with its place when it is read again
        if scale == "none":
            return TableColumn(self.name, self.kind, fill=fill)
        rest = NumberEstimate(self.name, self.kind, True, self.count, 0, self.mean, self.deviations)
        rest.least, rest.largest = self.least, self.largest
        if self.missing and fill is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                rest._merge_sample(self.missing, fill, 0.0)
            rest.least, rest.largest = min(rest.least, fill), max(rest.largest, fill)
        if not rest.count:
            return TableColumn(self.name, self.kind, fill=fill)
        shift, width = (rest.mean, rest._deviation()) if scale == "standard" else (rest.least, rest._range())
        if not np.isfinite(shift) or not np.isfinite(width):
            raise DataError(f"{source}: column {self.name!r} has values that are too large to be scaled, or infinite")
        return TableColumn(self.name, self.kind, fill=fill, shift=float(shift), scale=float(width))

    def _deviation(self) -> float:
        """The standard deviation; 1 of a column that is constant up to round-off, as scikit-learn has it."""
        variance, n, eps = self.deviations / self.count, self.count, np.finfo(np.float64).eps
        constant = np.isfinite(variance) and variance <= n * eps * variance + (n * self.mean * eps) ** 2
        return 1.0 if constant else float(np.sqrt(variance))

    def _range(self) -> float:
        width = self.largest - self.least
        return 1.0 if width < 10 * np.finfo(np.float64).eps else width


@dataclass
class TextEstimate:
    """The distinct texts of a column."""

    name: str
    source: str

    def __post_init__(self) -> None:
        self._found: set[str] = set()

    def add(self, column: Any) -> None:
        self._found.update(words(column))
        most = read_settings().max_categories
        if len(self._found) > most:
            some = ", ".join(map(repr, sorted(self._found)[:_SHOWN]))
            raise DataError(
                f"{self.source}: column {self.name!r} has more than {most:,} different texts ({some}, ...), too many "
                f"for one column each; leave it out: exclude=[{self.name!r}], on the command line --exclude {self.name}"
            )

    def column(self, source: str, missing: str, scale: str) -> TableColumn:
        return TableColumn(self.name, "text", tuple(sorted(self._found)))


Estimate = NumberEstimate | TextEstimate
