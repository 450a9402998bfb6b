"""How many shards: as many as make the passes and the reduced problems together cheapest.

More shards make a tighter model of the risk and so fewer passes: roughly as P^-0.1 where C is small, P^-0.28 at
C n = 1e4 and P^-0.44 at C n = 1e6 (a9a, w8a, mnist, covtype; passes for a9a at 1e6: 162 with 1 shard, 52 with 16, 17
with 128). They also make a larger reduced problem. The costs below were measured on one machine, and
`benchmarks/shards.py` shows how near to the best number this comes; they do not depend on n_jobs, so that the answer
does not.
"""

from __future__ import annotations

from math import log2, log10

from cutsvm.problem.oracle import Oracle

ENTRY = 0.5e-9  # seconds per stored value of X and iteration: scores, and the rows that planes are made of
ROW = 20e-9  # seconds per row and iteration: line search, slopes
CALL = 1e-3  # seconds per iteration, whatever its size: Python between the kernels, threads that wake up
STEP = 3e-6  # seconds per step of the interior point method, whatever its size
PLANE = 8e-8  # seconds per plane in such a step
FLOP = 3.5e-11  # seconds per multiplication in its factorisations
STEPS = 8  # of them per reduced problem
FEW = 4000  # rows up to which one shard is enough: then a weight is the same as repetition to the last digits
ROWS = 250  # a shard has at least so many rows
MOST = 128
MEMORY = 1 / 4  # planes may take this share of the memory that X takes


def choose_shards(oracle: Oracle, C: float) -> int:
    """The power of two with the lowest estimate of passes x (sweeps + reduced problem)."""
    rows, size = oracle.rows, oracle.size
    sweeps = CALL + oracle.outputs * (ENTRY * rows.entries + ROW * rows.n)
    decades = log10(max(C * oracle.loss.total, 1e-300)) - 4.0  # of C n above 1e4
    power = min(0.5, max(0.1, 0.28 + 0.08 * decades))
    hard = min(1.0, max(0.0, (1.0 + decades) / 3.0))
    best, lowest = 1, sweeps + _reduced(_planes(1, size, hard), size)
    shards = 2
    while rows.n >= FEW and shards <= min(MOST, rows.n // ROWS):
        planes = _planes(shards, size, hard)
        if planes * size > MEMORY * rows.entries:
            break
        cost = shards**-power * (sweeps + _reduced(planes, size))
        if cost < lowest:
            best, lowest = shards, cost
        shards *= 2
    return best


def _planes(shards: int, size: int, hard: float) -> float:
    """Planes that stay in the bundle: some per shard, and for a hard problem enough to pin down w."""
    return 12.0 * shards + 0.2 * hard * size * (1.0 + log2(shards))


def _reduced(planes: float, size: int) -> float:
    """Seconds of one reduced problem."""
    return STEPS * (STEP + PLANE * planes + FLOP * planes * min(float(size) ** 2, planes**2 / 6.0))
