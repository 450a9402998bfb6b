"""Working sets on the dual of kernel machines against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.kernel_machines.one_vs_one import pairwise
from tests.support.kernel_blocks import block
from tests.support.reference import kernel_dual as twin

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])
STEPS = (512, 0.5, 0.1, 100_000, 1e-9)


class Dual:
    """A random problem: of two classes, or with two variables for each row, some without room."""

    def __init__(self, seed, n, dtype=np.float64, *, intercept=True, tube=False, capacity=None, source="block"):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3)).astype(dtype)
        self.n, self.dtype, self.intercept, self.rng, self.X = n, dtype, intercept, rng, X
        caps = rng.choice([0.0, 0.3, 1.0, 5.0], size=n, p=[0.1, 0.3, 0.3, 0.3])
        zero = np.zeros(n)
        if tube:
            y = rng.normal(size=n)
            self.c, self.row_of = np.concatenate([y - 0.1, y + 0.1]), np.tile(np.arange(n), 2)
            self.low, self.high = np.concatenate([zero, -caps]), np.concatenate([caps, zero])
        else:
            self.c, self.row_of = np.where(rng.random(n) < 0.5, 1.0, -1.0), np.arange(n)
            self.low, self.high = np.where(self.c > 0, 0.0, -caps), np.where(self.c > 0, caps, 0.0)
        self.rows = np.empty((n, n), dtype)
        block(X).matrix(self.rows)
        self.K = self.rows.astype(np.float64)[np.ix_(self.row_of, self.row_of)]
        self.sources = {"block": block, "function": lambda X: self.function(np.arange(n))}
        self.capacity, self.source = capacity or n, source

    def function(self, columns):
        return lambda which: self.rows[np.ix_(columns[which], columns)]

    @property
    def parts(self):
        return self.c, self.low, self.high

    def open(self, s=None, threads=1, **change):
        s = np.zeros(len(self.c)) if s is None else s
        f = self.rows.astype(np.float64) @ np.bincount(self.row_of, s, minlength=self.n)
        given = {
            "memory": np.empty((max(2, self.capacity), self.n), self.dtype), "c": self.c, "low": self.low,
            "high": self.high, "s": s, "f": f, "norm": float(s @ self.K @ s), "row_of": self.row_of,
            "free_intercept": self.intercept, "sizes": np.ones(self.n), "source": self.sources[self.source](self.X),
            "threads": threads,
        }  # fmt: skip
        kind = core.KernelDual64 if self.dtype == np.float64 else core.KernelDual32
        return kind(**given | change)

    def check(self, dual):
        """What holds after any steps."""
        s, eps = dual.s, 1e-4 if self.dtype == np.float32 else 1e-9
        assert np.all(self.low <= s) and np.all(s <= self.high)
        if self.intercept:
            assert abs(s.sum()) <= 1e-12 * max(1.0, np.abs(s).sum()) * (1 + dual.steps)
        f = self.rows.astype(np.float64) @ np.bincount(self.row_of, s, minlength=self.n)
        assert_allclose(dual.f, f, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(s).sum()))
        assert dual.norm == pytest.approx(s @ self.K @ s, rel=eps, abs=eps)
        top, bottom, b, gap = dual.optimality()
        assert (top, bottom) == pytest.approx(twin.optimality(self.K, *self.parts, s), rel=1e-7, abs=1e-7)
        F = twin.primal(self.K, *self.parts, s, b, s.sum())
        assert gap == pytest.approx(F - twin.dual_value(self.K, self.c, s), rel=1e-6, abs=1e-8 * (1 + abs(F)))
        assert gap >= -1e-9 * (1 + abs(F))
        best, _ = twin.best_primal(self.K, *self.parts, s, s.sum(), free_intercept=self.intercept)
        assert best <= F + 1e-9 * (1 + abs(F))
        return twin.dual_value(self.K, self.c, s)


@given(
    seed=seeds, n=st.integers(1, 40), dtype=dtypes, intercept=st.booleans(), tube=st.booleans(),
    size=st.sampled_from([2, 3, 4, 7, 512]), capacity=st.sampled_from([2, 3, 5, None]),
    source=st.sampled_from(["block", "function"]), threads=st.integers(1, 3),
)  # fmt: skip
def test_iterations(seed, n, dtype, intercept, tube, size, capacity, source, threads):
    """Feasible after each iteration, never worse, and the optimum in the end, whatever the sizes."""
    own = Dual(seed, n, dtype, intercept=intercept, tube=tube, capacity=capacity, source=source)
    dual, settings, before = own.open(threads=threads), (size, *STEPS[1:]), 0.0
    for count in range(1, 6):
        ended = dual.run(0.0, 1, np.inf, *settings)
        value = own.check(dual)
        assert value >= before - 1e-6 * abs(before) and ended in ("iterations", "stalled", "target")
        assert dual.iterations <= count
        before = value
    lower, upper, _ = twin.optimum(own.K, *own.parts, free_intercept=intercept)
    assert value <= upper + 1e-7 * abs(upper) + 1e-12
    ended = dual.run(1e-4, 10_000, np.inf, *settings)
    assert own.check(dual) >= lower - 2e-4 * abs(upper) - 1e-8, ended


@given(seed=seeds, n=st.integers(4, 40), intercept=st.booleans(), tube=st.booleans(), capacity=st.integers(2, 40))
def test_variables_left_out_do_not_move(seed, n, intercept, tube, capacity):
    """f at the rows that stay is of all variables; those that are left out keep their s."""
    own = Dual(seed, n, intercept=intercept, tube=tube, capacity=min(n, capacity))
    dual = own.open()
    for _ in range(2):
        dual.run(0.0, 2, np.inf, 6, *STEPS[1:])
    s = dual.s
    kept = np.sort(own.rng.choice(len(s), size=own.rng.integers(1, len(s) + 1), replace=False))
    rows = np.union1d(np.unique(own.row_of[kept]), own.rng.integers(0, n, size=3))
    room = dual.capacity * n
    dual.restrict(kept, rows, block(own.X[rows]) if own.rng.random() < 0.5 else own.function(rows))
    assert dual.capacity == min(len(rows), room // len(rows)) and dual.capacity >= min(len(rows), 2)
    assert_array_equal(dual.s, s[kept])
    before = twin.dual_value(own.K, own.c, s)
    for _ in range(3):
        dual.run(0.0, 2, np.inf, 6, *STEPS[1:])
        s[kept] = dual.s
        f = own.rows @ np.bincount(own.row_of, s, minlength=n)
        assert_allclose(dual.f, f[rows], rtol=1e-9, atol=1e-8)
        assert dual.norm == pytest.approx(s @ own.K @ s, rel=1e-8, abs=1e-8)
        value = twin.dual_value(own.K, own.c, s)
        assert value >= before - 1e-9 * (1.0 + abs(before)) and np.all((own.low <= s) & (s <= own.high))
        before = value


def test_threads_do_not_change_a_bit_of_the_dual():
    for dtype in (np.float32, np.float64):
        own = Dual(3, 700, dtype)
        found = []
        for threads in (1, 2, 3):
            dual = own.open(threads=threads, source=block(own.X, threads=threads))
            dual.run(1e-5, 100, np.inf, 64, *STEPS[1:])
            found.append((dual.s, dual.f, dual.norm, dual.optimality(), dual.iterations, dual.steps, dual.moved))
        for other in found[1:]:
            for one, two in zip(found[0], other, strict=True):
                assert_array_equal(one, two)


def test_a_function_that_raises_leaves_s_as_it_was():
    own, calls = Dual(1, 30, capacity=6), []

    def values(which):
        calls.append(len(which))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return own.rows[which]

    dual = own.open(source=values)
    with pytest.raises(KeyboardInterrupt):
        dual.run(0.0, 1000, np.inf, 6, *STEPS[1:])
    own.check(dual)
    dual.run(1e-6, 10_000, np.inf, 6, *STEPS[1:])
    assert own.check(dual) >= twin.optimum(own.K, *own.parts)[0] - 1e-5 and len(calls) > 3
    for wrong in (own.rows[:, 1:], own.rows[:1], own.rows.astype(np.float32)):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            own.open(source=lambda which, wrong=wrong: wrong).run(0.0, 1, np.inf, *STEPS)


def test_time_ends_the_steps():
    own = Dual(0, 2000)
    assert own.open().run(0.0, 10**6, 0.0, 2, *STEPS[1:]) == "time"
    assert own.open().run(0.0, 0, np.inf, *STEPS) == "iterations"


def solve(
    K, problems, Cs, *, intercept=True, target=1e-6, alpha=None, iterations=10_000, width=None, threads=1, source=None
):
    """On the values K, or on a block that has them."""
    alpha = np.zeros((len(problems.rows), width or len(Cs))) if alpha is None else alpha
    seen = np.empty((len(problems), len(Cs), 3))
    own = (problems.rows, problems.a, problems.first, np.asarray(Cs, float), intercept, target, iterations, np.inf)
    scores = np.empty(len(problems.rows))
    core.solve_pairs(K if source is None else source, *own, alpha, seen, scores, *STEPS, threads)
    for part in problems.parts:
        rows, s = problems.rows[part], np.copysign(alpha[part, len(Cs) - 1], problems.a[part])
        assert_allclose(scores[part], K[np.ix_(rows, rows)].astype(float) @ s, rtol=1e-12, atol=1e-12 * np.abs(s).sum())
    return alpha, seen


@given(seed=seeds, n=st.integers(4, 40), classes=st.integers(2, 4), dtype=dtypes, intercept=st.booleans())
def test_pairs_on_one_matrix(seed, n, classes, dtype, intercept):
    """Rising values of C, each from where the last ended, for all pairs: the optimum of each; again from there."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 3)).astype(dtype), np.arange(n) % classes
    K = np.empty((n, n), dtype)
    block(X).matrix(K)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n, p=[0.1, 0.3, 0.3, 0.3])
    problems, Cs = pairwise(labels, weights, rng.permutation(n)), [0.1, 1.0, 1.0, 20.0]
    alpha, seen = solve(K, problems, Cs, intercept=intercept, width=len(Cs) + 1, threads=2)
    same = solve(K, problems, Cs, intercept=intercept, width=len(Cs) + 1, threads=1)
    assert_array_equal(alpha, same[0])
    assert_array_equal(seen, same[1])
    assert not alpha[:, len(Cs) :].any()
    computed = solve(K, problems, Cs, intercept=intercept, threads=2, source=block(X))
    assert_allclose(computed[1][:, :, :2], seen[:, :, :2], rtol=1e-5, atol=1e-8)
    for p, part in enumerate(problems.parts):
        rows, a = problems.rows[part], problems.a[part]
        own, y = K[np.ix_(rows, rows)].astype(float), np.copysign(1.0, a)
        for k, C in enumerate(Cs):
            low, high = np.where(y > 0, 0.0, -C * np.abs(a)), np.where(y > 0, C * np.abs(a), 0.0)
            s = y * alpha[part, k]
            primal, dual, b = seen[p, k]
            assert (np.all((low <= s) & (s <= high)) and abs(s.sum()) <= 1e-9 * (1 + C)) or not intercept
            assert dual == pytest.approx(twin.dual_value(own, y, s), rel=1e-6, abs=1e-8)
            assert primal == pytest.approx(twin.primal(own, y, low, high, s, b, s.sum()), rel=1e-6, abs=1e-6)
            lower, upper, _ = twin.optimum(own, y, low, high, free_intercept=intercept)
            assert dual <= upper + 1e-7 * (1 + upper) and primal >= lower - 1e-7 * (1 + abs(lower))
            assert primal - dual <= 1e-4 * (1e-6 + primal)
    again, found = solve(K, problems, Cs[-1:], intercept=intercept, alpha=alpha[:, 3:4].copy(), iterations=0)
    assert_array_equal(again[:, 0], alpha[:, 3])
    assert_allclose(found[:, 0], seen[:, 3], rtol=1e-6, atol=1e-8)


def test_intercepts_of_machines():
    """Scores begin at the intercept of their machine and version, and votes are of these scores."""
    rng = np.random.default_rng(0)
    K, b = rng.normal(size=(40, 40)).astype(np.float32), rng.normal(size=(3, 8))
    first, used = np.array([0, 5, 10, 15]), np.array([5, 0, 3])
    columns, coef = rng.integers(0, 40, 15).astype(np.int32), rng.normal(size=(15, 8))
    rows, labels = np.arange(40, dtype=np.int32), (np.arange(40) % 3).astype(np.int32)
    plain, out = np.empty((40, 3, 8)), np.empty((40, 3, 8))
    core.machine_scores(K, rows, first, columns, coef, used, np.zeros((3, 8)), plain, 1)
    low, high = np.array([0, 0, 1], dtype=np.int32), np.array([1, 2, 2], dtype=np.int32)
    for threads in (1, 2, 3):
        core.machine_scores(K, rows, first, columns, coef, used, b, out, threads)
        assert_allclose(out, plain + b, rtol=1e-12, atol=1e-12)
        hits = np.zeros(8, dtype=np.int64)
        core.count_hits(K, rows, labels, first, columns, coef, used, b, low, high, 3, hits, threads)
        votes = np.empty((40, 3))
        for version in range(8):
            core.pair_decisions(np.ascontiguousarray(out[:, :, version]), low, high, votes)
            assert hits[version] == np.sum(votes.argmax(axis=1) == labels)
    for wrong in (b[:2], b[:, :7].copy()):
        with pytest.raises(ValueError, match="intercept: machines x versions expected"):
            core.machine_scores(K, rows, first, columns, coef, used, wrong, out, 1)


def test_invalid_arguments_of_duals_raise():
    own = Dual(0, 6)
    bad = [
        {"memory": np.empty((1, 6))}, {"memory": np.empty((6, 5))}, {"c": np.ones(5)}, {"low": np.zeros(5)},
        {"s": np.full(6, 99.0)}, {"s": np.full(6, np.nan)}, {"row_of": np.full(6, 6)}, {"row_of": np.full(6, -1)},
        {"sizes": np.ones(5)}, {"source": block(own.X[:5])}, {"source": 3}, {"threads": 0},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(ValueError, match="expected"):
            own.open(**change)
    dual = own.open()
    for settings in ((1, *STEPS[1:]), (2, 1.0, *STEPS[2:]), (2, np.nan, *STEPS[2:]), (2, 0.5, 0.1, 0, 1e-9)):
        with pytest.raises(ValueError, match="out of range"):
            dual.run(0.0, 1, np.inf, *settings)
    two = np.array([0, 1])
    wrong = [
        (two[:0], two, own.X[:2]), (two, two[:0], own.X[:2]), (two[::-1].copy(), two, own.X[:2]),
        (two, np.array([1, 1]), own.X[:2]), (np.array([0, 6]), two, own.X[:2]), (two, np.array([-1, 1]), own.X[:2]),
        (two, np.array([0, 2]), own.X[:2]), (two, two, own.X[:3]), (two, two, None),
    ]  # fmt: skip
    for variables, rows, X in wrong:
        with pytest.raises(ValueError, match="expected"):
            dual.restrict(variables, rows, 3 if X is None else block(X))
        own.check(dual)  # as it was
    dual.run(1e-6, 1000, np.inf, *STEPS)
    assert own.check(dual) >= twin.optimum(own.K, *own.parts)[0] - 1e-5


def test_invalid_arguments_of_pairs_raise():
    p, K = pairwise(np.array([0, 1, 0]), np.ones(3), np.arange(3)), np.eye(3)
    good = {
        "kernel": K, "rows": p.rows, "a": p.a, "first": p.first, "Cs": np.ones(1), "free_intercept": True,
        "target": 1e-3, "most_iterations": 9, "seconds": np.inf, "alpha": np.zeros((3, 1)),
        "seen": np.zeros((1, 1, 3)), "scores": np.zeros(3), "working_set": 512, "kept": 0.5, "inner_share": 0.1,
        "inner_steps": 100, "least_violation": 1e-9, "threads": 1,
    }  # fmt: skip
    bad = [
        {"rows": p.rows + np.int32(1)}, {"rows": p.rows - np.int32(1)}, {"a": p.a[1:]}, {"first": np.array([0, 2])},
        {"first": np.array([0, 2, 1, 3])}, {"Cs": np.array([2.0, 1.0])}, {"Cs": np.zeros(1)}, {"Cs": np.ones(0)},
        {"alpha": np.zeros((2, 1))}, {"seen": np.zeros((1, 1, 2))}, {"seen": np.zeros((2, 1, 3))}, {"threads": 0},
        {"scores": np.zeros(2)}, {"kernel": np.eye(2)}, {"working_set": 1}, {"kept": -0.1},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(ValueError, match=r"expected|differ|out of range"):
            core.solve_pairs(**good | change)
