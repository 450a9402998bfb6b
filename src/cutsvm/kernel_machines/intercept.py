"""The regularised intercept, as a setting of solvers.

f(x) = w.phi(x) + b with b^2 / 2 beside |w|^2 / 2 is the machine without intercept whose kernel is K(x, z) + 1, and
b = sum_i y_i alpha_i.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing import Self  # Python 3.11

Intercept = Literal["regularized"] | None


class RegularizedIntercept:
    """A solver with the setting `intercept`: None, or "regularized"."""

    intercept: Intercept

    def __post_init__(self) -> None:
        if self.intercept not in (None, "regularized"):
            raise ValueError(f"intercept={self.intercept!r}: expected None or 'regularized'")

    @property
    def kernel_offset(self) -> float:
        """What is added to all kernel values."""
        return 0.0 if self.intercept is None else 1.0

    def with_intercept(self, fit_intercept: bool) -> Self:
        """The same solver with a regularised intercept, or without one."""
        solver: Any = self
        changed: Self = replace(solver, intercept="regularized" if fit_intercept else None)
        return changed
