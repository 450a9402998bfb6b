"""The reference itself: optima that are known in closed form, or from another solver."""

import numpy as np
import pytest
from flint import fmpq

from . import exact as exact_module
from .exact import parts
from .problems import KINDS, Problem, problem
from .programs import exact, feasible, lemke, merged, methods, precision, solve


def two_rows(distance, C, weight=1.0, intercept="free", offset=0.0):
    X = np.array([[offset], [offset + distance]])
    weights = np.full(2, weight)
    return Problem(0, 0, "binary", X, np.array([0, 1]), weights, None, C, 1e-3, intercept, "dense", [])


@pytest.mark.parametrize("distance", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("C", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("weight", [1e-300, 1.0, 1e300])
def test_two_rows_in_closed_form(distance, C, weight):
    """With a free intercept: min of w^2 / 2 + c max(0, 2 - w distance), c = C weight."""
    (part,) = parts(two_rows(distance, C, weight), C)
    c, x = exact(C) * exact(weight), exact(distance)
    expected = fmpq(2) / x**2 if c * x * x >= 2 else 2 * c - (c * x) ** 2 / 2
    assert part.optimum.low <= expected <= part.optimum.high
    assert part.optimum.high - part.optimum.low <= exact(1e-19) * expected


def test_shift_keeps_the_optimum_with_a_free_intercept():
    near, far = (parts(two_rows(2.0, 1.0, offset=offset), 1.0)[0].optimum for offset in (0.0, 2.0**40))
    assert abs(near.high - far.high) <= exact(1e-19) * near.high


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "kernel"])
def test_both_methods_agree(kind, monkeypatch):
    """Interior points and pivoting are two ways to the same optimum."""
    programs = []
    monkeypatch.setattr(exact_module, "enclose", programs.append)
    for number in range(6):
        given = problem(5, number, kind)
        given.weights = None
        parts(given, 3.0)
    tight = 0
    for program in programs:
        ends = []
        with precision(1600):
            for method in (solve, lemke):
                u, alpha = method(program)
                ends.append((program.dual(feasible(program, alpha)).lower(), program.objective(u).upper()))
        (low, high), (other_low, other_high) = ends
        assert low <= other_high
        assert other_low <= high
        tight += bool(max(high, other_high) - min(low, other_low) <= 1e-15 * high)
    assert tight >= 0.8 * len(programs)


def test_equal_rows_are_merged_and_zero_costs_dropped():
    one, other = [[fmpq(1), fmpq(2)]], [[fmpq(3), fmpq(4)]]
    program = merged([one, other, one, other], [fmpq(1), fmpq(0), fmpq(5), fmpq(0)])
    assert program.pieces == [one]
    assert program.costs == [6]
    assert methods(program)


def test_problems_depend_on_their_number_only():
    for number in range(20):
        one, other = problem(3, number), problem(3, number)
        assert str(one) == str(other)
        assert np.array_equal(one.X, other.X)
        assert np.array_equal(one.y, other.y)
