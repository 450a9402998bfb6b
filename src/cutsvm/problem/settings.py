"""Constants of the oracles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OracleSettings:
    """Constants of the arithmetic.

    stale: see `cutsvm.problem.planes`.
    pieces: number of pieces in which a shard is summed (core/sweep.hpp).
    round_off: slopes in b that have to sum to 0 may be off by this multiple of the rounding error of one of them.
    precise: an objective whose rounding error is below this share of it is not recomputed in twice the precision.
    imprecise, last_digits: one whose error is above this share is improved if w can be made longer by 2^-k, k in
        last_digits.
    far_intercept: a free b beyond this multiple of the loss's `score_bound` is no starting point: planes that leave b
        open give any, and the scores would lose their digits.
    seed: of the rows of rare classes that are drawn from parts.
    sums_here: bytes of sums over parts up to which a client adds them up; more are added up by the workers.
    scores: numbers in memory for each of the points whose scores a task computes (`cutsvm.problem.readings`).
    copied_bytes, copied_room: a task gets no more rows than about these bytes of them, or this share of the rows that
        memory holds, if that is more.
    """

    stale: float = 50.0
    pieces: int = 16
    round_off: float = 8.0
    precise: float = 1e-10
    imprecise: float = 1e-6
    last_digits: tuple[int, ...] = (50, 46, 42, 36, 30)
    far_intercept: float = 1e6
    sums_here: int = 1 << 25
    seed: int = 0
    scores: int = 1 << 18
    copied_bytes: int = 1 << 22
    copied_room: float = 1 / 8
