"""Epochs of dual coordinate descent against their twin, and invariants of every epoch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.matrix import Descent, as_rows
from tests.support.layouts import LAYOUTS
from tests.support.reference import dcd
from tests.support.reference.row_losses import LOSSES, random_alpha, random_loss

seeds = st.integers(0, 2**64 - 1)
units = st.sampled_from([0.0, 0.5, 1.0])
kinds = st.sampled_from(list(LOSSES))


class Problem:
    """A random start within the limits, with zero rows and entries; no slope is exactly at a threshold."""

    def __init__(self, kind, seed, n, d, unit, rows=None):
        rng = np.random.default_rng(seed)
        drawn = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
        drawn[rng.random(n) < 0.1] = 0.0
        self.X = (drawn if rows is None else rows(rng)).astype(np.float32).astype(np.float64)
        self.loss, self.unit, self.C = random_loss(kind, rng, n), unit, float(rng.uniform(0.1, 2.0))
        self.alpha = random_alpha(self.loss, rng, self.C)
        self.q = (self.X**2).sum(axis=1) + unit
        self.w = self.expected_w()
        self.order = rng.permutation(n)[: rng.integers(0, n + 1)].astype(np.int32)
        self.edges = rng.uniform(0.0, 1.5), rng.uniform(-1.5, 0.0)

    def expected_w(self):
        signed = self.alpha * self.loss.y
        return np.append(signed @ self.X, self.unit * signed.sum())

    def args(self):
        return self.loss.rows(), self.q, self.C, self.unit, *self.edges, self.alpha

    def within_limits(self):
        limits = [self.loss.limits(i, self.C) for i in range(len(self.alpha))]
        return all(low <= alpha <= high for alpha, (low, high) in zip(self.alpha, limits, strict=True))

    def value(self):
        return dcd.value(self.loss, self.unit, self.alpha, self.w, self.C)

    def twin(self, run, seed):
        """The twin's alpha, w, gap and slopes, and remaining rows."""
        alpha, w = self.alpha.copy(), self.w.copy()
        *seen, stay = dcd.epoch(self.X, self.loss, *self.args()[1:-1], alpha, self.order, w, run, seed)
        return alpha, w, seen, stay


def agrees(p, seen, expected):
    alpha, w, sums, stay = expected
    assert_allclose(p.alpha, alpha, rtol=1e-9, atol=1e-11)
    assert_allclose(p.w, w, rtol=1e-9, atol=1e-11)
    assert_allclose(seen[:3], sums, rtol=1e-9, atol=1e-11)
    assert seen[3] == len(stay)
    assert_array_equal(p.order[: len(stay)], stay)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(
    kind=kinds,
    seed=seeds,
    n=st.integers(1, 50),
    d=st.integers(1, 9),
    unit=units,
    run=st.sampled_from([1, 2, 7, 64]),
    turn=seeds,
)
def test_epoch(layout, kind, seed, n, d, unit, run, turn):
    p = Problem(LOSSES[kind], seed, n, d, unit)
    rows = as_rows(LAYOUTS[layout](p.X))
    for step in range(3):
        expected = p.twin(run, (turn + step) % 2**64)
        before, untouched = p.value(), np.setdiff1d(np.arange(n), p.order)
        left = p.alpha[untouched]
        seen = rows.descend(p.args(), p.order, p.w, run, (turn + step) % 2**64, 1)
        agrees(p, seen, expected)
        assert p.within_limits()
        assert_array_equal(p.alpha[untouched], left)
        assert_allclose(p.w, p.expected_w(), rtol=1e-9, atol=1e-9)
        assert p.value() >= before - 1e-9 * (1.0 + abs(before))
        p.order = p.order[: seen[3]].copy()


def test_zero_row_reaches_its_upper_bound():
    """Without intercept its loss is 1 for every w: the gap closes only at alpha = C s_i."""
    X, alpha, w = np.array([[0.0], [2.0]]), np.zeros(2), np.zeros(2)
    order = np.array([0, 1], dtype=np.int32)
    loss, q = core.RowLoss("hinge", np.array([-3.0, 1.0])), np.array([0.0, 4.0])
    core.Matrix(X).descend((loss, q, 0.5, 0.0, np.inf, -np.inf, alpha), order, w, 1, 0, 1)
    assert_array_equal(alpha, [1.5, 0.25])
    assert_array_equal(w, [0.5, 0.0])
    assert core.Matrix(X).descend((loss, q, 0.5, 0.0, np.inf, -np.inf, alpha), order, w, 1, 0, 1)[0] == 0.0


@pytest.mark.parametrize("kind", LOSSES)
@given(seed=seeds, n=st.integers(1, 20), d=st.integers(1, 5), unit=units)
def test_the_gap_is_primal_minus_dual(kind, seed, n, d, unit):
    """For one w: every row is dropped before it moves."""
    p = Problem(LOSSES[kind], seed, n, d, unit)
    if kind == "logistic":  # at a limit no score is the one that belongs to alpha
        p.alpha = np.clip(p.alpha, 0.01 * p.C * p.loss.s, 0.99 * p.C * p.loss.s)
    p.w, p.order, p.edges = p.expected_w(), np.arange(n, dtype=np.int32), (-np.inf, np.inf)
    w, alpha = p.w.copy(), p.alpha.copy()
    gap, steepest, flattest, active = core.Matrix(p.X).descend(p.args(), p.order, p.w, 1, 3, 1)
    assert (steepest, flattest, active) == (-np.inf, np.inf, 0)
    assert_array_equal(p.w, w)
    assert_array_equal(p.alpha, alpha)
    losses = p.C * p.loss.value(p.X @ w[:-1] + w[-1]).sum()
    square = w[:-1] @ w[:-1] + (w[-1] ** 2 / unit if unit else 0.0)
    assert_allclose(gap, 0.5 * square + losses - p.value(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", LOSSES)
@given(seed=seeds, d=st.integers(1, 5), unit=units, scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_a_step_closes_the_gap_of_its_row(kind, seed, d, unit, scale):
    """Over all alpha: it is the best one."""
    p = Problem(LOSSES[kind], seed, 1, d, unit, rows=lambda rng: scale * rng.normal(size=(1, d)))
    p.order, p.edges = np.zeros(1, dtype=np.int32), (np.inf, -np.inf)
    before = core.Matrix(p.X).descend(p.args(), p.order, p.w, 1, 3, 1)[0]
    after = core.Matrix(p.X).descend(p.args(), p.order, p.w, 1, 3, 1)[0]
    f = p.X[0] @ p.w[:-1] + p.w[-1]
    size = p.C * p.loss.value(np.array([f]))[0] + abs(p.alpha[0] * f) + p.C * abs(p.loss.s[0]) + abs(before)
    assert -1e-13 * size <= after <= 1e-9 * size


@pytest.mark.parametrize("kind", LOSSES)
@given(seed=seeds, n=st.integers(1, 30), run=st.integers(1, 5), threads=st.integers(2, 4))
def test_threads_without_shared_features_agree_with_one_thread(kind, seed, n, run, threads):
    """Of dense rows every thread writes all of w, zeros too, and updates may get lost: sparse rows only."""
    for layout in ("csr", "csr32"):
        p = Problem(LOSSES[kind], seed, n, n, 0.0, rows=lambda rng: np.diag(rng.normal(size=n)))
        expected = p.twin(run, seed)
        seen = as_rows(LAYOUTS[layout](p.X)).descend(p.args(), p.order, p.w, run, seed, threads)
        agrees(p, seen, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(kind=kinds, seed=seeds, n=st.integers(1, 400), unit=units, run=st.integers(1, 9), threads=st.integers(2, 3))
def test_threads_with_shared_features_stay_within_the_limits(layout, kind, seed, n, unit, run, threads):
    p = Problem(LOSSES[kind], seed, n, 3, unit)
    order = p.order.copy()
    gap, steepest, flattest, active = as_rows(LAYOUTS[layout](p.X)).descend(p.args(), p.order, p.w, run, seed, threads)
    assert p.within_limits()
    assert np.isfinite(gap) and np.all(np.isfinite(p.w))
    assert (flattest <= steepest) == (active > 0)
    stay = p.order[:active]
    assert_array_equal(stay, order[np.isin(order, stay)])  # no row twice, none from elsewhere, in the order they had


def test_a_permutation_has_every_row_once():
    for count in (0, 1, 2, 17, 100):
        for run in (1, 3, 200):
            assert sorted(dcd.permutation(count, run, 5)) == list(range(count))
    assert dcd.permutation(50, 1, 5) != dcd.permutation(50, 1, 6)


def test_invalid_arguments_raise():
    csr = core.Matrix(np.ones(2), np.array([0, 2]), np.array([0, 1, 2]), 3)
    two, order = np.ones(2), np.array([0, 1], dtype=np.int32)
    dual = Descent(core.RowLoss("hinge", two), two, 1.0, 1.0, np.inf, -np.inf, np.zeros(2))
    good = {"descent": dual, "order": order, "w": np.zeros(4), "run": 1, "seed": 1, "threads": 1}
    bad = [
        {"descent": dual._replace(loss=core.RowLoss("hinge", np.ones(1)))},
        {"descent": dual._replace(q=np.ones(3))},
        {"descent": dual._replace(alpha=np.zeros(3))},
        {"run": 0},
        {"order": np.array([0, 2], dtype=np.int32)},
        {"order": np.array([-1, 0], dtype=np.int32)},
    ]
    for matrix in (core.Matrix(np.ones((2, 3))), csr):
        for change in bad:
            with pytest.raises(ValueError, match="expected"):
                matrix.descend(**{**good, **change})
        with pytest.raises(ValueError, match=r"d \+ 1"):
            matrix.descend(**{**good, "w": np.zeros(3)})
        with pytest.raises(TypeError):  # a copy would lose what is written
            matrix.descend(**{**good, "order": order.astype(np.int64)})
        with pytest.raises(TypeError):
            matrix.descend(**{**good, "descent": dual._replace(alpha=np.zeros(2, dtype=np.float32))})
