"""Settings of the exact solver of kernel machines, and the solutions that it yields."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutsvm._utils.types import Vector
from cutsvm.driver.records import Status, relative_gap
from cutsvm.kernel_machines.active_set import ActiveSetSettings
from cutsvm.kernel_machines.dual_certificate import DualBounds


@dataclass(frozen=True)
class ExactSettings:
    """Sizes of working sets, when steps within them end, when rows are left out, and when bounds are computed."""

    working_set: int = 1024  # at most; an eighth of the variables if these are fewer
    kept: float = 0.6  # share of the last working set that stays
    inner_share: float = 0.1  # of the violation of all variables: where the steps within a working set end
    inner_steps: int = 100_000
    least_violation: float = 1e-15  # relative to the largest |c|: below, only rounding errors are left
    pairs_violation: float = 1e-12  # the same on a matrix that problems share, where nothing else ends the steps
    # Rows of the largest of many problems up to which kernel values in float64 are computed for each of them, rather
    # than a matrix in float32 for all.
    computed_rows: int = 4096
    round: int = 16  # iterations between checks of time and of the cache
    # Rounds in which the gap is not below this share of the least so far, at slopes that are within the bounds of their
    # errors, after which these are all that is left.
    idle_rounds: int = 12
    progress: float = 0.99
    active_set: ActiveSetSettings = field(default=ActiveSetSettings())
    # Of tol: the gap by the solver's kernel values that ends the steps; the next one if the certificate is above tol.
    gap_shares: tuple[float, ...] = (0.75, 0.25, 0.08, 0.02)
    cache_rows: int = 1024  # at least, whatever the memory
    # Rows are left out once this multiple of the rows of the cache was computed, if at most this share of them stays.
    shrink_after: float = 1.5
    shrink_to: float = 0.7
    # Products of numbers up to which the certificate is in extended precision, where the errors of float64 are not
    # small beside tol; and where they are all that is in the way.
    extended_limit: int = 100_000_000
    extended_most: int = 2_000_000_000
    reserve: float = 0.5  # of max_time, at most, for the certificate
    seconds_after_interrupt: float = 1.0  # for the certificate
    seconds_after_limit: float = 0.5

    @property
    def steps(self) -> tuple[int, float, float, int, float]:
        """For core/kernel_dual.hpp."""
        return self.working_set, self.kept, self.inner_share, self.inner_steps, self.least_violation

    @property
    def pair_steps(self) -> tuple[int, float, float, int, float]:
        """The same for problems that share a matrix."""
        return *self.steps[:-1], self.pairs_violation


@dataclass(frozen=True, eq=False)
class DualSolution:
    """s, F and a lower bound of F; ended: why this is the last, unless its gap is tol."""

    s: Vector
    bounds: DualBounds
    iteration: int
    ended: Status | None = None
    certified: bool = True

    @property
    def gap(self) -> float:
        return relative_gap(self.bounds.primal, self.bounds.lower)
