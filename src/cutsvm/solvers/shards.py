"""How many shards: as many as make the passes and the reduced problems together cheapest.

More shards make a tighter model of the risk and so fewer passes, roughly as P^-0.3 (covtype, C n = 1e4: 37 passes
with 1 shard, 13 with 32, 10 with 128), and a larger reduced problem. The costs below were measured on one machine
(`benchmarks/shards.py`, which also shows how near to the best number this comes); they do not depend on n_jobs, so
that the answer does not.
"""

from __future__ import annotations

from cutsvm.risk import Risk

ENTRY = 0.5e-9  # seconds per stored value of X and iteration: scores, and the rows that planes are made of
ROW = 12e-9  # seconds per row and iteration: line search, slopes
CALL = 1.5e-4  # seconds per iteration, whatever its size: Python between the kernels
STEP = 3e-6  # seconds per step of the interior point method, whatever its size
PLANE = 8e-8  # seconds per plane in such a step
FLOP = 3.5e-11  # seconds per multiplication in its factorisations
STEPS = 8  # of them per reduced problem
POWER = 0.3  # passes fall as P^-0.3
ROWS = 250  # a shard has at least so many rows
MOST = 128
MEMORY = 1 / 4  # planes may take this share of the memory that X takes


def choose_shards(risk: Risk) -> int:
    """The power of two with the lowest estimate of passes x (sweeps + reduced problem)."""
    rows = risk.rows
    sweeps = CALL + ENTRY * rows.entries + ROW * rows.n
    best, lowest = 1, sweeps + _reduced(1, risk.size)
    shards = 2
    while shards <= min(MOST, rows.n // ROWS) and _planes(shards, risk.size) * risk.size <= MEMORY * rows.entries:
        cost = shards**-POWER * (sweeps + _reduced(shards, risk.size))
        if cost < lowest:
            best, lowest = shards, cost
        shards *= 2
    return best


def _planes(shards: int, size: int) -> float:
    """Planes that stay in the bundle of a hard problem: some per shard, and enough to pin down w."""
    return 10.0 * shards + 0.5 * size * (1.0 + 0.5 * (shards.bit_length() - 1))


def _reduced(shards: int, size: int) -> float:
    """Seconds of one reduced problem."""
    planes = _planes(shards, size)
    return STEPS * (STEP + PLANE * planes + FLOP * planes * min(float(size) ** 2, planes**2 / 3.0))
