"""A fixed set of random hostile problems, each fitted in one way: `python -m tests.hostile.run` has all the others."""

import pytest

from . import fits as ways
from .fits import fits
from .problems import problem
from .run import attempt

pytestmark = pytest.mark.slow

SEED, MANY = 18, 150


@pytest.mark.parametrize("number", range(MANY))
def test_certificate(number, monkeypatch):
    """No bound above the optimum, no wrong objective, no convergence that is none, no error without need."""
    monkeypatch.setattr(ways, "PATIENCE", 0.5)
    given = problem(SEED, number)
    (fit,) = fits(given, 1)
    out = attempt(given, fit, {})
    assert not out.reference_failed
    assert not out.findings, f"{given.repro}\n{given}\n{fit}: {out.findings}"
