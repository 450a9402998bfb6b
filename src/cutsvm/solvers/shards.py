"""How many shards: as many as the reduced problem can have without costing more than the sweeps.

More shards make a tighter model of the risk and so fewer passes, roughly as P^-0.3 (covtype, C n = 1e4: 36 passes
with 1 shard, 20 with 8, 13 with 32, 10 with 128), and a larger reduced problem. With T_qp ~ P and T_pass fixed,
P^-0.3 (T_pass + T_qp) is lowest where T_qp = 0.43 T_pass. The costs below were measured on one machine
(`benchmarks/shards.py`); being off by a factor of two moves the total by a few per cent.
"""

from __future__ import annotations

from cutsvm.risk import Risk

ENTRY = 0.5e-9  # seconds per stored value of X and iteration: scores, and the rows that planes are made of
ROW = 12e-9  # seconds per row and iteration: line search, slopes
STEP = 2e-4  # seconds per step of the interior point method, whatever its size
FLOP = 1e-10  # seconds per multiplication in its factorisations
STEPS = 8  # of them per reduced problem
SHARE = 0.43
ROWS = 2000  # a shard has at least so many rows
LIMIT = 256
MEMORY = 1 / 4  # planes may take this share of the memory that X takes


def choose_shards(risk: Risk) -> int:
    """The largest power of two for which the reduced problem costs at most SHARE of the sweeps."""
    rows = risk.rows
    sweeps = ENTRY * rows.entries + ROW * rows.n
    shards = 1
    while 2 * shards <= min(LIMIT, rows.n // ROWS) and _affordable(2 * shards, risk, SHARE * sweeps):
        shards *= 2
    return shards


def _affordable(shards: int, risk: Risk, seconds: float) -> bool:
    planes = 40.0 * shards**0.75  # that stay in the bundle
    flops = planes * min(risk.size**2, planes**2 / 3)
    fits = planes * risk.size <= MEMORY * risk.rows.entries
    return fits and STEPS * (STEP + FLOP * flops) <= seconds
