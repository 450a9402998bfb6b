"""The constants of the interior-point method, for both of its implementations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

from cutsvm._native import core


@dataclass(frozen=True)
class InteriorPointSettings:
    """The constants of the interior-point method. mu is the mean of the products of multipliers and slacks."""

    max_steps: int = 60
    # From this many rows of M on LAPACK factorises faster (0.6 of its time at 500 rows, the same at 1,000).
    lapack_rows: int = 1000
    # A solution with a relative gap above this is none: round-off leaves a smaller one.
    failed_gap: float = 1e-6

    # A step ends at this fraction of the way to the boundary. It is multiplied by `backtracking`, at most
    # `max_backtracks` times, until no product is below min(min_centrality, centrality_decrease * least product / mu)
    # times the mean.
    fraction_to_boundary: float = 0.995
    min_centrality: float = 1e-3
    centrality_decrease: float = 0.9
    backtracking: float = 0.8
    max_backtracks: int = 30

    # A step shorter than `min_step_length`, or after which mu is above `max_mu_ratio` times its value, is replaced by
    # one towards `recentering_mu_ratio` times mu without a predictor. A step of `stalled_step_length` is round-off.
    min_step_length: float = 0.1
    max_mu_ratio: float = 0.95
    recentering_mu_ratio: float = 0.5
    stalled_step_length: float = 1e-10

    # The bound is lowered by this fraction of the sum of the absolute values of its terms; c'x, which is multiplied by
    # the intercept bound, is a compensated sum with an error of `compensated_rounding_error`.
    rounding_error: float = 4e-14
    compensated_rounding_error: float = 1e-20
    # Columns of c may be linearly dependent: the diagonal of b's equations grows by this fraction per row.
    regularization: float = 5e-16
    # Projections of x onto c'x = target: the first leaves what x >= 0 forbids, the others round-off.
    max_projections: int = 3

    # The start lies inside the constraints: warm-start weights and 1 - their sum are at least `min_initial_weight` of
    # equal weights; u is above the highest plane by `initial_slack` of the mean distance from it, and at least by
    # `min_initial_slack` of the largest offset.
    min_initial_weight: float = 0.03
    initial_slack: float = 0.3
    min_initial_slack: float = 1e-3


@lru_cache(maxsize=8)
def compiled_settings(settings: InteriorPointSettings) -> core.InteriorPointSettings:
    """The same settings as the compiled method takes them."""
    compiled = core.InteriorPointSettings()
    for name, value in asdict(settings).items():
        if name not in ("lapack_rows", "failed_gap"):
            setattr(compiled, name, value)
    return compiled
