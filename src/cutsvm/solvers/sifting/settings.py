"""Settings of sifting."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutsvm.solvers.batched import BatchSettings

__all__ = ["SiftingSettings"]


@dataclass(frozen=True)
class SiftingSettings:
    """Shares are of all rows, rooms of the rows that memory holds.

    A sample of m rows gives w with an error of about sqrt(d / m), and the band must hold the rows that this error moves
    to the other side: spread sqrt(d / m) of all n, `widest` at most. m + n sqrt(d / m) is least near
    m = (n sqrt(d))^(2/3).
    """

    spread: float = 3.5
    widest: float = 0.2
    of_each: int = 1000  # rows of each class in the sample at least, if there are as many
    sample_tol: float = 3e-3  # the gap for the sample: a smaller one would be exact about the wrong problem
    sample_iterations: int = 200  # at most; then the current iterate is accepted
    path_tol: float = 5e-4  # the gap for the sample on a path, where planes are made at its solutions
    # Planes that a point makes on a path: few_shards at most, of all rows up to `shards` if there are as many
    # coordinates. They cost the same pass, but not the same reduced problem.
    few_shards: int = 16
    shards: int = 48
    least_path: int = 3  # values of C from which passes for all of them at once pay
    # A band that is thinned is solved to least_tol; if U then shrinks to no less than `helps` of what it was, it does
    # not help. With less than least_share of the rows R_U may have its minimum far away, where it is much too low.
    least_tol: float = 1e-5
    helps: float = 0.7
    least_share: float = 0.02
    wider: float = 1.7  # times as many rows in U if the last were too few to stay near
    # The inner problem is solved to `inner` of the gap asked for, or to `left` of the one that is left, if that is
    # more.
    inner: float = 0.3
    left: float = 0.03
    patience: int = 40  # iterations of the inner solver without progress: then U is built again
    least_rows: int = 20_000  # with fewer rows, or fewer for each feature, there is nothing to gain
    least_rows_per_feature: int = 20
    sample_room: float = 0.8  # of the room: for the sample, for the first U, which is to grow, and for the next ones
    first_room: float = 0.5
    last_room: float = 0.85
    rebuilds: int = 3  # at most
    path_growth: float = 1.5  # on a path, U is built again once it would have this multiple of its first rows
    stride: int = 3  # number of C that U is built for together
    batch: BatchSettings = field(default_factory=BatchSettings)
    path_patience: int = 2  # planes without weight in this number of reduced problems are dropped at the next C
