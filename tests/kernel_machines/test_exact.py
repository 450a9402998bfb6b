"""The exact solver: bounds at every solution, its optimum, small caches, float32 values, and how it ends."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from cutsvm.driver.records import Status
from cutsvm.kernel_machines import Exact
from cutsvm.kernel_machines.active_set import ActiveSetSettings
from cutsvm.kernel_machines.context import Deadline, FitOptions, OutOfTimeError
from cutsvm.kernel_machines.driver import Driver, drive
from cutsvm.kernel_machines.dual_problem import group_rows, one_class, tube, two_classes
from cutsvm.kernel_machines.dual_search import _Search, solve
from cutsvm.kernel_machines.exact import _of_pair
from cutsvm.kernel_machines.exact_settings import ExactSettings
from cutsvm.kernel_machines.gram import Kernel, Points
from cutsvm.kernel_machines.kernel_rows import KernelRows, RowSettings
from tests.support.reference import kernel_dual as twin

seeds = st.integers(0, 2**32 - 1)
kernels = st.sampled_from(["rbf", "poly", "linear", "precomputed"])
KERNELS = ["rbf", "poly", "linear"]
SMALL = ExactSettings(working_set=4, round=1, cache_rows=2)
FLOAT32 = RowSettings(float64_rows=0, max_error=np.inf)


class Case:
    """Rows with a kernel, and their problem: two classes, regression or one class."""

    def __init__(self, X, y, *, weights=None, C=1.0, kernel="rbf", gamma=0.5, kind="hinge", intercept=True):
        self.X, caps = X, C * (np.ones(len(X)) if weights is None else weights)
        of = Kernel(kernel, gamma, 2, 1.0)
        given = kernel == "precomputed"
        self.points = Points(X, of, 1, precise=False)
        rows = X.toarray() if sparse.issparse(X) else X
        self.rows_K = (
            rows.astype(np.longdouble) if given else twin.values(kernel, rows, rows, gamma=gamma, coef0=1.0, degree=2)
        )
        if kind == "hinge":
            self.problem = two_classes(y, caps, free_intercept=intercept)
        elif kind == "tube":
            self.problem = tube(y, caps, 0.1, free_intercept=intercept)
        else:
            self.problem = one_class(caps, 0.4)
        p = self.problem
        self.K = self.rows_K[np.ix_(p.row_of, p.row_of)]
        self.total, self.free = float(p.start.sum()), p.free_intercept
        self.parts = tuple(part.astype(np.longdouble) for part in (p.c, p.low, p.high))

    def solutions(self, *, tol=1e-4, settings=None, rows=None, deadline=None, **options):
        options = FitOptions(1, 0.0, tol, 1, deadline=deadline or Deadline(), **options)
        return solve(self.problem, KernelRows(self.points, settings=rows), options, settings or ExactSettings())

    def value(self, s, b):
        """F in extended precision; of a linear kernel at the weights, which are rounded."""
        if self.points.kernel.name == "linear":
            w = np.asarray(self.X.T @ np.bincount(self.problem.row_of, s, minlength=self.X.shape[0]))
            rows = (self.X.toarray() if sparse.issparse(self.X) else self.X).astype(np.longdouble)
            c, low, high = self.parts
            losses = twin.losses(c - (rows @ w)[self.problem.row_of] - b, low, high)
            return float(0.5 * (w.astype(np.longdouble) @ w) + self.total * b + losses.sum())
        return float(twin.primal(self.K, *self.parts, s.astype(np.longdouble), b, self.total))

    def check(self, solutions, tol=1e-4, *, optimum=True, certified=True):
        """Bounds at every solution, those of an independent QP or of the last one; the last solution."""
        found = []
        for one in solutions:
            found.append(one)
            if one.gap <= tol:
                break
        last, b = found[-1], found[-1].bounds.intercept
        upper = min(self.value(last.s, b), np.inf)
        lower = max(one.bounds.lower for one in found)
        if optimum:
            parts = [part.astype(np.float64) for part in self.parts]
            low, high, _ = twin.optimum(self.K.astype(np.float64), *parts, self.total, free_intercept=self.free)
            upper, lower = min(upper, high), max(lower, low) if abs(high - low) < 1e-3 * abs(high) else lower
        size = abs(upper) + 1e-12
        for one in found:
            p, F = self.problem, self.value(one.s, one.bounds.intercept)
            assert np.all(p.low <= one.s) and np.all(one.s <= p.high)
            assert one.bounds.lower <= upper + 1e-9 * size and one.bounds.primal >= lower - 1e-7 * size
            assert F - 1e-15 * abs(F) <= one.bounds.primal <= F + (1e-5 * abs(F) if certified else np.inf) + 1e-12
            assert self.free or one.bounds.intercept == 0.0
        return last


def data(seed, n, d=3, *, kernel="rbf", duplicates=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weights = rng.choice([0.5, 1.0, 3.0], size=n)
    return (X @ X.T if kernel == "precomputed" else X), y, weights, rng


@given(
    seed=seeds, n=st.integers(2, 30), kernel=kernels, C=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    kind=st.sampled_from(["hinge", "tube", "one class"]), intercept=st.booleans(), duplicates=st.booleans(),
    settings=st.sampled_from([ExactSettings(), ExactSettings(round=1), SMALL, replace(SMALL, cache_rows=8)]),
)  # fmt: skip
def test_bounds_hold_at_every_solution(seed, n, kernel, C, kind, intercept, duplicates, settings):
    X, y, weights, rng = data(seed, n, kernel=kernel, duplicates=duplicates)
    target = rng.normal(size=n) if kind == "tube" else y
    kernel = "rbf" if kind == "one class" else kernel  # with the others the optimum may be 0
    case = Case(X, target, weights=weights, C=C, kernel=kernel, kind=kind, intercept=intercept)
    last = case.check(case.solutions(settings=settings, cache_bytes=1 if settings.cache_rows < 9 else 1 << 20))
    assert last.gap <= 1e-4 or last.bounds.primal <= 1e-12  # all targets are within the tube


@given(
    seed=seeds, n=st.integers(20, 80), intercept=st.booleans(), rows=st.integers(2, 8), C=st.sampled_from([0.1, 10.0])
)
def test_shrinking_and_its_undoing(seed, n, intercept, rows, C):
    """With few kernel rows in the cache variables at a bound are left out, and come back."""
    X, y, weights, _ = data(seed, n, d=1)
    case = Case(X, y, weights=weights, C=C, intercept=intercept)
    settings = ExactSettings(working_set=4, round=1, cache_rows=rows)
    last = case.check(case.solutions(settings=settings, cache_bytes=1, tol=1e-5, max_iter=10**6), 1e-5)
    assert last.gap <= 1e-5
    large = case.check(case.solutions(tol=1e-5), 1e-5)
    assert last.bounds.primal == pytest.approx(large.bounds.primal, rel=2e-5)


@given(
    seed=seeds,
    n=st.integers(2, 60),
    C=st.sampled_from([0.1, 1.0, 100.0]),
    kernel=st.sampled_from(["rbf", "poly", "linear"]),
)
def test_values_in_float32_do_not_weaken_the_certificate(seed, n, C, kernel):
    X, y, weights, _ = data(seed, n)
    case = Case(X, y, weights=weights, C=C, kernel=kernel)
    case.points.precise = False
    last = case.check(case.solutions(rows=FLOAT32, tol=1e-6), 1e-6)
    assert last.gap <= 1e-6


HOSTILE = {
    "far from the origin": lambda X: X + 1e8,
    "very far": lambda X: X + 1e13,
    "large": lambda X: X * 1e6,
    "tiny": lambda X: X * 1e-160,
    "columns over decades": lambda X: X * [1e-9, 1.0, 1e9],
    "zeros": np.zeros_like,
    "sparse": sparse.csr_array,
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_numbers(name, kernel, intercept):
    """C and gamma over decades: bounds hold, if with a gap."""
    for seed, (C, gamma) in enumerate([(1e-9, 0.5), (1.0, 1e-12), (1.0, 1e9), (1e9, 0.5), (1e-3, 1e3)]):
        X, y, weights, _ = data(seed, 14, duplicates=True)
        case = Case(HOSTILE[name](X), y, weights=weights, C=C, kernel=kernel, gamma=gamma, intercept=intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            last, small = (
                case.check(case.solutions(max_iter=60, settings=s, cache_bytes=1), optimum=False, certified=False)
                for s in (None, SMALL)
            )
        assert last.bounds.lower <= small.bounds.primal and small.bounds.lower <= last.bounds.primal
        if kernel == "rbf" and "far" not in name:
            assert last.gap <= (1e-4 if C <= 1.0 else 1e-2)


def test_one_row_per_class_and_labels_that_contradict():
    for y, weights in (([1.0, -1.0], [1.0, 2.0]), ([1.0, -1.0, 1.0], [1.0, 1.0, 1e-9])):
        for X in (np.zeros((len(y), 2)), np.arange(2.0 * len(y)).reshape(-1, 2)):
            for intercept in (True, False):
                case = Case(X, np.array(y), weights=np.array(weights), intercept=intercept)
                assert case.check(case.solutions()).gap <= 1e-4


def test_a_tube_without_a_loss_is_solved_at_once():
    """w = 0 is the optimum, and no row has a loss."""
    case = Case(np.arange(6.0)[:, None], np.full(6, 0.01), kind="tube")
    for one in case.solutions(tol=1e-9):
        assert one.bounds.primal <= 1e-12
        if one.ended is not None:
            break


def test_rounding_errors_end_the_steps():
    X, y, _, _ = data(0, 40)
    case = Case(X, y, C=10.0)
    for rows in (None, FLOAT32):
        last = case.check(case.solutions(tol=1e-17, rows=rows), 1e-17)
        assert last.ended is Status.PRECISION and last.certified and last.gap <= 1e-10


def noisy_labels(n, C):
    """Labels that have nothing to do with the rows: nearly all rows are free, and steps of pairs converge slowly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 10)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return Case(X, y, C=C, gamma=0.1)


@pytest.mark.parametrize("rows", [None, FLOAT32], ids=["float64", "float32"])
@pytest.mark.parametrize("inner_steps", [10, 30])
def test_steps_that_are_not_enough_are_no_rounding_errors(inner_steps, rows):
    """Errors of f are far below their bounds: steps go on while the gap falls, and at last in float64."""
    case = noisy_labels(300, 1e4)
    settings = ExactSettings(inner_steps=inner_steps, active_set=ActiveSetSettings(most_variables=0, most_definite=0))
    last = case.check(case.solutions(settings=settings, rows=rows, tol=1e-7, max_iter=10**5), 1e-7, optimum=False)
    assert last.ended is None and last.gap <= 1e-7


def test_newton_steps_save_most_of_the_steps():
    case = noisy_labels(600, 1e4)
    none = ExactSettings(active_set=ActiveSetSettings(most_variables=0, most_definite=0))
    plain, newton = (case.check(case.solutions(settings=use, tol=1e-6), 1e-6, optimum=False) for use in (none, None))
    assert newton.gap <= 1e-6 and plain.gap <= 1e-6 and newton.iteration < 0.7 * plain.iteration


def test_errors_of_the_certificate_are_removed_if_they_are_in_the_way():
    """In float64 the bound of the rounding errors alone is above tol."""
    case = noisy_labels(300, 1e6)
    narrow = ExactSettings(extended_limit=0, extended_most=0)
    last = case.check(case.solutions(settings=narrow, tol=1e-7), 1e-7, optimum=False, certified=False)
    assert last.ended is Status.PRECISION and last.gap > 1e-7
    narrow = replace(narrow, extended_most=10**9)
    wide = case.check(case.solutions(settings=narrow, tol=1e-7), 1e-7, optimum=False, certified=False)
    assert wide.gap <= 1e-7


@pytest.mark.parametrize("certified", [0, 1])
@pytest.mark.parametrize("kind", ["hinge", "tube", "one class"])
@pytest.mark.parametrize("rows", [None, FLOAT32], ids=["float64", "float32"])
def test_without_time_for_the_certificate_there_are_bounds(rows, kind, certified, monkeypatch):
    """Those of the scores of the steps, or those of an earlier s; both hold."""
    X, y, weights, rng = data(0, 200)
    case = Case(X, rng.normal(size=200) if kind == "tube" else y, weights=weights, C=10.0, kind=kind)
    plain, calls = _Search._bounds, []

    def bounds(self, deadline, **how):
        calls.append(1)
        if len(calls) > 1 + certified:
            raise OutOfTimeError
        return plain(self, deadline, **how)

    monkeypatch.setattr(_Search, "_bounds", bounds)
    found = list(case.solutions(rows=rows, tol=1e-12, max_iter=10**5))
    last = found[-1]
    assert last.ended is Status.MAX_TIME and last.certified and len(found) == 2 + certified
    assert last.bounds.lower <= last.bounds.primal < found[0].bounds.primal
    F = case.value(last.s, last.bounds.intercept)
    assert F <= last.bounds.primal and (not certified or last.bounds.width <= found[1].bounds.width)
    monkeypatch.undo()
    best = case.check(case.solutions(tol=1e-6), 1e-6, optimum=False)
    assert last.bounds.lower <= best.bounds.primal and best.bounds.lower <= last.bounds.primal


@pytest.mark.parametrize("C", [1e6, 1e8, 1e10])
def test_separable_classes_and_a_large_C(C):
    """The loss of a small violation counts C times: steps go on until the gap is tol."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 0.05 * y
    case = Case(X, y, C=C)
    assert case.check(case.solutions(tol=1e-3), 1e-3, optimum=False, certified=False).gap <= 1e-3


def test_limits_end_the_steps():
    X, y, _, _ = data(0, 300)
    case = Case(X, y, C=100.0)
    few = case.check(case.solutions(settings=ExactSettings(working_set=8, round=2), max_iter=5, tol=1e-9), 1e-9)
    assert (few.ended, few.iteration) == (Status.MAX_ITER, 5)
    late = list(case.solutions(settings=SMALL, deadline=Deadline(1e-9), tol=1e-9))[-1]
    assert late.ended is Status.MAX_TIME and late.certified
    assert late.bounds.lower <= few.bounds.primal


def interrupt_after(monkeypatch, count):
    """Ctrl-C in the middle of the steps: the kernel rows come from a function that raises."""
    plain, calls = KernelRows.source, []

    def source(self, rows=None):
        self.__dict__["dense"] = False
        inner = plain(self, rows)

        def values(which):
            calls.append(1)
            if len(calls) == count:
                raise KeyboardInterrupt
            return inner(which)

        return values

    monkeypatch.setattr(KernelRows, "source", source)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_ctrl_c_keeps_the_last_s_with_its_certificate(count, monkeypatch):
    X, y, _, _ = data(0, 60)
    case = Case(X, y, C=10.0)
    interrupt_after(monkeypatch, count)
    settings = ExactSettings(working_set=8, round=2, cache_rows=8)
    found = []
    with pytest.raises(KeyboardInterrupt):
        for one in case.solutions(settings=settings, cache_bytes=1, tol=1e-9):
            found.append(one)
    assert found[-1].ended is Status.INTERRUPTED and found[-1].certified
    case.check(iter(found), 0.0)
    monkeypatch.undo()
    interrupt_after(monkeypatch, count)
    result = drive(_of_pair(case.solutions(settings=settings, cache_bytes=1, tol=1e-9), 1.0), 1e-9, [])
    assert result.status is Status.INTERRUPTED
    assert_array_equal(result.w, np.abs(found[-1].s))


def test_a_callback_ends_all_pairs():
    X, _, _, rng = data(0, 60)
    labels, seen = rng.integers(0, 3, size=60), []

    def stop(record):
        seen.append(record)
        return True

    settings = ExactSettings(working_set=8, round=1, cache_rows=8)
    options = FitOptions(1, 0.0, 1e-9, 1, cache_bytes=1)
    driver = Driver(Exact(settings=settings), 1.0, options, 1, [stop])
    results, problems = driver.solve(Points(X, Kernel("rbf", 0.5), 1), labels, np.ones(60), np.arange(60))
    assert [result.status for result in results] == [Status.CALLBACK] * 3 == [Status.CALLBACK] * len(problems)
    assert len(seen) == 3 and all(result.lower <= result.primal for result in results)


@given(
    seed=seeds, n=st.integers(1, 40), given_values=st.booleans(), layout=st.sampled_from([np.asarray, sparse.csr_array])
)
def test_groups_of_equal_rows(seed, n, given_values, layout):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, size=(n, 3)).astype(float), rng.integers(0, 3, size=n).astype(float)
    weights = rng.choice([0.0, 0.5, 2.0], size=n)
    weights[0] = 1.0
    groups = group_rows(layout(X), y, weights, given=given_values)
    keys = [(y[i], *(X[i] if not given_values else (i,))) for i in range(n)]
    expected = {}
    for key, weight in zip(keys, weights, strict=True):
        if weight > 0:
            expected[key] = expected.get(key, 0.0) + weight
    assert {keys[i]: w for i, w in zip(groups.rows, groups.weights, strict=True)} == pytest.approx(expected)
    assert_array_equal(groups.targets, y[groups.rows])
    assert np.all(np.diff(groups.targets) >= 0.0)
    spread = groups.spread(np.arange(1.0, len(groups.rows) + 1), n)
    assert not spread[weights == 0.0].any()
    assert groups.sums(spread) == pytest.approx(np.arange(1.0, len(groups.rows) + 1))
    order = rng.permutation(n)
    again = group_rows(layout(X[order]), y[order], weights[order], given=given_values)
    if not given_values:  # the groups do not depend on the order of the rows
        assert_array_equal(X[order][again.rows], X[groups.rows])
        assert_array_equal(again.targets, groups.targets)
