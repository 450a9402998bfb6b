"""A fixed set of random hostile problems, each fitted in one way: `python -m tests.hostile.run` has all the others."""

from dataclasses import replace

import pytest

from .fits import fits
from .problems import problem
from .run import attempt

pytestmark = pytest.mark.slow

SEED, MANY = 18, 150


@pytest.mark.parametrize("number", range(MANY))
def test_certificate(number):
    """No bound above the optimum, no wrong objective, no convergence that is none, no error without need."""
    given = problem(SEED, number)
    (fit,) = fits(given, 1)
    out = attempt(given, replace(fit, seconds=0.5), {})
    assert not out.reference_failed
    assert not out.findings, f"{given.repro}\n{given}\n{fit}: {out.findings}"
