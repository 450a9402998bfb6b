"""Kernel machines below the estimator: steps, duals and votes against their twins, and the bounds."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.driver.records import Status
from cutsvm.kernel_machines import ISDA, SGD, Exact, MinNorm, resolve, sgd
from cutsvm.kernel_machines.certificate import KernelErrors, all_bounds
from cutsvm.kernel_machines.context import FitOptions, KernelContext
from cutsvm.kernel_machines.gram import Kernel, Points, identity
from cutsvm.kernel_machines.l2 import L2Settings
from cutsvm.kernel_machines.one_vs_one import Machines, decisions, duals, joined, pair_scores, pairwise
from cutsvm.kernel_machines.sgd import SGDSettings
from cutsvm.kernel_machines.visits import cyclic
from tests.support.layouts import LAYOUTS
from tests.support.reference import kernel_machines as twin

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(4, 14)
classes = st.integers(2, 4)
averages = st.sampled_from([0.0, 0.25, 0.5, 1.0])
rules = st.sampled_from(["1/t", "1/m"])
kernels = st.sampled_from(["rbf", "poly", "linear"])
layouts = st.sampled_from(list(LAYOUTS))
EDGE = 1e-9
POLISH = 16  # single steps of the dual methods before anything else is tried
METHODS = {"isda": ISDA(), "min_norm": MinNorm()}


def bounds(problems, alpha, scores, C, loss):
    """(F, a lower bound of F) for each problem, from exact kernel values."""
    return all_bounds(problems, alpha, scores, C, loss, KernelErrors())[:2]


class Data:
    """Rows in classes, with class weights and rows without weight; the kernel values are float32."""

    def __init__(self, seed, n, K=2, kernel="rbf", kind=np.asarray, *, offset=0.0, mean_loss=False):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.X = rng.normal(size=(n, 3)).astype(np.float32).astype(np.float64)
        self.labels = np.concatenate([np.arange(K), rng.integers(0, K, size=n - K)])
        rng.shuffle(self.labels)
        self.weights = rng.choice([0.5, 1.0, 3.0], size=K)[self.labels] * (rng.random(n) < 0.85)
        for k in range(K):  # each class has some
            self.weights[np.flatnonzero(self.labels == k)[0]] = 1.0
        self.order = rng.permutation(n)
        self.kernel = Kernel(kernel, float(rng.uniform(0.2, 1.0)), 3, 0.5, offset)
        self.problems = pairwise(self.labels, self.weights, self.order, mean_loss=mean_loss)
        self.points = Points(kind(self.X), self.kernel, 1).take(np.arange(n))
        self.gram = np.empty((n, n), dtype=np.float32)
        self.points.matrix(self.gram)

    def exact(self):
        """Kernel values in float64."""
        values = np.empty(self.gram.shape)
        self.points.matrix(values)
        return values

    def K(self, p, values=None):
        """Kernel values of problem p's rows, in its order."""
        rows = self.problems.rows[self.problems.of(p)]
        return (self.gram if values is None else values)[np.ix_(rows, rows)].astype(np.float64)

    def a(self, p):
        return self.problems.a[self.problems.of(p)]

    def context(self, gram, **options):
        options = FitOptions(**{"epochs": 2, "average": 0.5, "tol": 1e-7, "threads": 1} | options)
        return KernelContext(options, self.points, self.problems, self.order, gram)

    def dual(self, Cs, method, *, tol=1e-7, budget=10**6, alpha=None, threads=1):
        """What core.kernel_l2 makes of it: alpha, seen."""
        alpha = np.zeros((len(self.problems.rows), len(Cs))) if alpha is None else alpha.copy()
        seen = np.empty((len(self.problems), len(Cs), 3))
        p = self.problems
        core.kernel_l2(self.gram, p.rows, p.a, p.first, np.array(Cs, float), method, tol, budget, np.inf, alpha,
                       seen, threads)  # fmt: skip
        return alpha, seen


def beta_by_row(steps):
    """beta of all versions in the order of the problems' rows."""
    places = np.repeat(steps.problems.first[:-1], steps.problems.sizes) + steps.slot
    return np.where(steps.slot[:, None] < 0, 0.0, steps.beta[np.where(steps.slot < 0, 0, places)])


@given(
    seed=seeds, n=sizes, K=classes, epochs=st.integers(1, 3), average=averages, rule=rules, many=st.booleans(),
    threads=st.integers(1, 3),
)  # fmt: skip
def test_sgd_step_by_step(seed, n, K, epochs, average, rule, many, threads):
    """After every single step beta is Algorithm B's, for each pair of classes and each C; then the answer is."""
    data = Data(seed, n, K)
    Cs = np.sort(data.rng.uniform(0.05, 20.0, size=5 if many else 1))
    expected = [
        [twin.sgd(data.K(p), data.a(p), C, epochs, average, rule) for C in Cs] for p in range(len(data.problems))
    ]
    assume(min(edge for row in expected for *_, edge in row) > EDGE)
    options = data.context(None, epochs=epochs, average=average).options
    steps = sgd._Steps(SGD(rule), data.problems, cyclic(data.problems, epochs), Cs, options)
    for t in range(1, int(steps.end.max()) + 1):
        steps.run(data.gram, identity(n), identity(n), np.minimum(t, steps.end), threads)
        beta = beta_by_row(steps)
        for p, row in enumerate(expected):
            for c, (betas, _, _) in enumerate(row):
                assert_array_equal(beta[data.problems.of(p), c], betas[min(t, len(betas)) - 1])
    whole = SGD(rule).batched(data.gram, data.problems, Cs, options)
    for p, row in enumerate(expected):
        part = slice(whole.first[p], whole.first[p] + whole.used[p])
        for c, (_, alpha, _) in enumerate(row):
            found = np.zeros(n)
            found[whole.columns[part]] = whole.coef[part, c]
            assert_allclose(found[data.problems.rows[data.problems.of(p)]], alpha, rtol=1e-11, atol=1e-13)
            assert_array_equal(alpha[data.a(p) == 0.0], 0.0)
    assert_array_equal(whole.coef[:, len(Cs) :], 0.0)


@given(seed=seeds, n=sizes, K=classes, epochs=st.integers(1, 2), average=averages, rule=rules, C=st.floats(0.05, 20.0))
def test_sgd_answer(seed, n, K, epochs, average, rule, C):
    """The solver's one iterate is the mean of the alphas, as numbers >= 0 in the order of the problems' rows."""
    data = Data(seed, n, K)
    expected = [twin.sgd(data.K(p), data.a(p), C, epochs, average, rule) for p in range(len(data.problems))]
    assume(min(edge for *_, edge in expected) > EDGE)
    (solution,) = SGD(rule)(data.context(data.gram, epochs=epochs, average=average), C)
    signed = np.copysign(solution.alpha, data.problems.a)
    assert_allclose(signed, np.concatenate([alpha for _, alpha, _ in expected]), rtol=1e-11, atol=1e-13)
    assert np.all(solution.alpha >= 0.0) and (solution.ended, solution.iteration) == (Status.EPOCHS, epochs)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@given(seed=seeds, layout=layouts, n=st.integers(6, 40), K=classes, block=st.integers(1, 17), threads=st.integers(1, 3))
def test_streamed_blocks_equal_the_whole_matrix(kernel, seed, layout, n, K, block, threads):
    data = Data(seed, n, K, kernel, LAYOUTS[layout])
    solver = SGD(settings=SGDSettings(block_rows=block))
    (whole,), (parts,) = (solver(data.context(g, threads=threads, epochs=3), 2.0) for g in (data.gram, None))
    assert_array_equal(whole.alpha > 0.0, parts.alpha > 0.0)
    assert_allclose(whole.alpha, parts.alpha, rtol=1e-12)
    assert (whole.primal, whole.lower) == pytest.approx((parts.primal, parts.lower), rel=1e-12)


@given(
    layout=layouts, seed=seeds, n=sizes, K=classes, epochs=st.integers(1, 3), average=averages, rule=rules,
    steps=st.integers(1, 9), offset=st.sampled_from([0.0, 1.0]),
)  # fmt: skip
def test_linear_steps_need_no_kernel(layout, seed, n, K, epochs, average, rule, steps, offset):
    """Algorithm A, in pieces of any length, is Algorithm B with the linear kernel, for all kinds of X.

    With an intercept all rows have a feature more, which is 1.
    """
    data = Data(seed, n, K, "linear", LAYOUTS[layout], offset=offset)
    context, C = data.context(None, epochs=epochs, average=average), float(data.rng.uniform(0.05, 5.0))
    assert context.kernel_free
    (solution,) = SGD(rule, settings=SGDSettings(linear_steps=steps))(context, C)
    for p in range(len(data.problems)):
        part = data.problems.of(p)
        X = data.X[data.problems.rows[part]]
        X = np.column_stack([X, np.ones(len(X))]) if offset else X
        alpha, edge = twin.sgd(X @ X.T, data.a(p), C, epochs, average, rule)[1:]
        w, other = twin.linear_sgd(X, data.a(p), C, epochs, average, rule)
        assume(min(edge, other) > EDGE)
        assert_allclose(np.copysign(solution.alpha[part], data.a(p)), alpha, rtol=1e-11, atol=1e-13)
        assert_allclose(alpha @ X, w, rtol=1e-9, atol=1e-11)


@given(seed=seeds, n=sizes, C=st.floats(0.05, 20.0), steps=st.integers(0, POLISH))
def test_isda_step_by_step(seed, n, C, steps):
    data = Data(seed, n)
    expected, edge = twin.isda(data.K(0), data.a(0), C, steps)
    assume(edge > EDGE)
    alpha, seen = data.dual([C], "isda", tol=0.0, budget=steps)
    assert_allclose(alpha[:, 0], expected, rtol=1e-9, atol=1e-12)
    H, own = twin.l2_matrix(data.K(0), data.a(0), C)
    value = twin.primal(data.K(0), data.a(0), C, np.copysign(expected, data.a(0)), "l2")
    assert_allclose(seen[0, 0, :2], [value, expected.sum() - 0.5 * expected[own] @ H @ expected[own]], rtol=1e-9)
    assert seen[0, 0, 2] <= steps


@given(seed=seeds, n=sizes, C=st.floats(0.05, 20.0))
def test_min_norm_step_by_step(seed, n, C):
    """After a step two rows are alike, and which of them is next is a matter of rounding: any of the best will do."""
    data = Data(seed, n)
    H, own = twin.l2_matrix(data.K(0), data.a(0), C)
    points = [data.dual([C], "min_norm", tol=0.0, budget=s)[0][own, 0] for s in range(POLISH + 1)]
    assert_allclose(points[0] / points[0].sum(), np.eye(len(own))[np.argmin(np.diag(H))], rtol=1e-12)
    for one, two in itertools.pairwise(points):
        assert one @ H @ one == pytest.approx(one.sum(), rel=1e-9)  # the best multiple for the dual
        before, after = one / one.sum(), two / two.sum()
        h = H @ before
        worst = h[before > 0.0].max()
        if worst - h.min() <= 1e-7 * h.max():
            break
        i, j = np.argmax(after - before), np.argmin(after - before)
        assert h[i] <= h.min() + 1e-9 * h.max() and h[j] >= worst - 1e-9 * h.max()
        assert_allclose(after, twin.move(H, before, i, j), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, n=st.integers(4, 40), C=st.sampled_from([0.1, 10.0, 1e4]), warm=st.booleans())
def test_more_steps_are_never_worse(method, seed, n, C, warm):
    """Steps of conjugate gradients in between too; bounds hold all the way, and in the end the optimum is there."""
    data = Data(seed, n)
    start = data.rng.random((n, 1)) * (data.a(0)[:, None] != 0.0) if warm else np.zeros((n, 1))
    low, high = twin.optimum(data.K(0), data.a(0), C, "l2")
    before = -np.inf
    for budget in (0, 1, 10, 17, 18, 30, 60, 10**6):
        alpha, seen = data.dual([C], method, budget=budget, alpha=start)
        primal, dual, steps = seen[0, 0]
        assert steps <= budget and np.all(alpha >= 0.0) and not alpha[data.a(0) == 0.0].any()
        assert dual >= before - 1e-9 * abs(before)
        assert dual <= high * (1.0 + 1e-9) and primal >= low * (1.0 - 1e-9)
        before = dual
    assert primal == pytest.approx(high, rel=1e-5) and dual == pytest.approx(low, rel=1e-5)


@given(seed=seeds, n=st.integers(2, 7), C=st.floats(0.05, 5.0))
def test_dual_methods_end_where_their_twins_do(seed, n, C):
    data = Data(seed, n)
    expected = twin.isda(data.K(0), data.a(0), C, 300)[0]
    assert_allclose(twin.min_norm(data.K(0), data.a(0), C, 300), expected, rtol=1e-5, atol=1e-7)
    for method in METHODS:
        assert_allclose(data.dual([C], method, tol=1e-14)[0][:, 0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@given(kernel=kernels, seed=seeds, n=st.integers(4, 30), K=classes, threads=st.integers(1, 3))
def test_dual_methods_reach_the_optimum(method, kernel, seed, n, K, threads):
    """The best dual point of an independent QP, to 1e-5, for several C, each from where the last one ended."""
    data, Cs = Data(seed, n, K, kernel), [0.01, 0.3, 2.0]
    alpha, seen = data.dual(Cs, method, threads=threads)
    apart = np.column_stack([data.dual([C], method)[0] for C in Cs])
    for p in range(len(data.problems)):
        part = data.problems.of(p)
        for c, C in enumerate(Cs):
            low, high = twin.optimum(data.K(p), data.a(p), C, "l2")
            assert high - low <= 1e-6 * high
            primal, dual, _ = seen[p, c]
            assert dual <= high * (1.0 + 1e-9) and primal >= low * (1.0 - 1e-9)
            assert primal == pytest.approx(high, rel=1e-5) and dual == pytest.approx(low, rel=1e-5)
            for answer in (alpha, apart):
                coef = np.copysign(answer[part, c], data.a(p))
                assert twin.primal(data.K(p), data.a(p), C, coef, "l2") == pytest.approx(high, rel=1e-5)
            assert np.all(alpha[part, c] >= 0.0) and not alpha[part, c][data.a(p) == 0.0].any()


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, n=st.integers(4, 20), C=st.floats(0.01, 20.0))
def test_bounds_hold_after_every_step(method, seed, n, C):
    data = Data(seed, n)
    low, high = twin.optimum(data.K(0), data.a(0), C, "l2")
    for budget in range(12):
        primal, dual, _ = data.dual([C], method, tol=0.0, budget=budget)[1][0, 0]
        assert dual <= high * (1.0 + 1e-9) and primal >= low * (1.0 - 1e-9)


SHORT_ROUNDS = L2Settings(steps_per_round=3)


@pytest.mark.parametrize(
    "solver",
    [
        SGD(),
        SGD("1/m"),
        SGD(order="random"),
        SGD("1/m", "random", "before"),
        SGD(C_times="mean"),
        SGD(order="random", C_times="mean"),
        SGD(intercept="regularized"),
        SGD(order="random", C_times="mean", intercept="regularized"),
        ISDA(settings=SHORT_ROUNDS),
        MinNorm(settings=SHORT_ROUNDS),
        ISDA("regularized", settings=SHORT_ROUNDS),
        MinNorm("regularized", settings=SHORT_ROUNDS),
    ],
    ids=repr,
)
@given(kernel=kernels, seed=seeds, n=st.integers(4, 20), K=classes, C=st.floats(0.01, 20.0))
def test_bounds_hold_at_every_iterate(solver, kernel, seed, n, K, C):
    """lower <= optimum <= primal of what a solver yields; F is the mean over the rows of each pair, summed."""
    data = Data(seed, n, K, kernel, offset=solver.kernel_offset, mean_loss=solver.mean_loss)
    low, high = np.zeros(2)
    for p, m in enumerate(data.problems.sizes):
        scale = C if solver.mean_loss else C * m
        own = np.array(twin.optimum(data.K(p, data.exact()), data.a(p), C, solver.loss)) / scale
        low, high = low + own[0], high + own[1]
    contexts = [data.context(data.gram, finish=True)]
    if solver.loss == "hinge":  # without a kernel matrix
        contexts += [data.context(None), data.context(None, finish=True)]
    for context in contexts:
        for solution in itertools.islice(solver(context, C), 21):
            assert 0.0 <= solution.lower <= high * (1.0 + 1e-9)
            assert low * (1.0 - 1e-9) <= solution.primal and solution.lower <= solution.primal * (1.0 + 1e-12)


@given(seed=seeds, n=st.integers(2, 20), C=st.floats(0.01, 20.0), loss=st.sampled_from(["hinge", "l2"]))
def test_any_alpha_is_bounded(seed, n, C, loss):
    """The proof of an answer asks for nothing but alpha >= 0: above its limit, or 0, is fine."""
    data = Data(seed, n)
    a, K = data.a(0), data.K(0)
    alpha = data.rng.exponential(size=n) * data.rng.choice([0.0, 0.1, 1.0, 100.0], size=n) * (a != 0.0)
    signed = np.copysign(alpha, a)
    (primal,), (lower,) = bounds(data.problems, alpha, K @ signed, C, loss)
    low, high = np.array(twin.optimum(K, a, C, loss)) / (C * n)
    assert primal == pytest.approx(twin.primal(K, a, C, signed, loss) / (C * n), rel=1e-9)
    assert 0.0 <= lower <= high * (1.0 + 1e-9) and primal >= low * (1.0 - 1e-9)


def test_bounds_of_zero_rows():
    """Where all kernel values are 0 the loss is 1 whatever w is, and alpha = C s proves it."""
    problems = pairwise(np.array([0, 1, 0]), np.array([1.0, 2.0, 1.0]), np.arange(3))
    primal, lower = bounds(problems, np.array([1.0, 2.0, 1.0]), np.zeros(3), 1.0, "hinge")
    assert lower <= primal and (primal, lower) == (pytest.approx(4.0 / 3.0), pytest.approx(4.0 / 3.0, rel=1e-14))
    primal, lower = bounds(problems, np.zeros(3), np.zeros(3), 1.0, "hinge")
    assert (primal, lower) == (pytest.approx(4.0 / 3.0), 0.0)


@pytest.mark.parametrize("solver", [Exact(), Exact(fit_intercept=False), SGD(), ISDA(), MinNorm()], ids=repr)
def test_threads_do_not_change_a_bit(solver):
    data = Data(5, 120, 4)
    Cs = np.array([0.1, 1.0, 10.0])
    one, *others = (
        solver.batched(data.gram, data.problems, Cs, data.context(None, threads=k, tol=1e-5).options) for k in (1, 2, 3)
    )
    for other in others:
        for name in ("first", "columns", "coef", "used", "intercept"):
            assert_array_equal(getattr(one, name), getattr(other, name))


@given(seed=seeds, rows=st.integers(1, 9), K=st.integers(2, 6), whole=st.booleans())
def test_votes(seed, rows, K, whole):
    """Many ties, scores of 0, and classes that are in no pair."""
    rng = np.random.default_rng(seed)
    pairs = [(low, high) for low in range(K) for high in range(low + 1, K) if whole or rng.random() < 0.5] or [(0, 1)]
    low, high = np.array(pairs, dtype=np.int32).T.copy()
    scores = rng.integers(-2, 3, size=(rows, len(pairs))) / 2.0
    found = decisions(scores, low, high, K)
    for i in range(rows):
        assert_allclose(found[i], twin.votes(scores[i], low, high, K), rtol=1e-12)


def test_cyclic_votes_go_to_the_largest_sum():
    low, high = np.array([0, 0, 1], dtype=np.int32), np.array([1, 2, 2], dtype=np.int32)
    # 0 beats 1, 1 beats 2, 2 beats 0: one vote each.
    assert decisions(np.array([[-0.1, 0.1, -5.0]]), low, high, 3).argmax() == 1
    assert decisions(np.array([[-5.0, 0.1, -0.1]]), low, high, 3).argmax() == 0
    assert decisions(np.array([[-0.1, 5.0, -0.1]]), low, high, 3).argmax() == 2


@pytest.mark.parametrize("versions", [1, 8])
@given(seed=seeds, n=st.integers(4, 40), K=classes, threads=st.integers(1, 3))
def test_scores_and_hits(versions, seed, n, K, threads):
    data = Data(seed, n, K)
    problems = data.problems
    alpha = data.rng.exponential(size=(len(problems.rows), versions)) * (data.rng.random((len(problems.rows), 1)) < 0.7)
    intercept = data.rng.normal(size=(len(problems), versions))
    machines = Machines.of_alpha(problems, alpha, intercept)
    rows = data.rng.integers(0, n, size=data.rng.integers(0, 50)).astype(np.int32)
    support = (machines.first, machines.columns, machines.coef, machines.used)
    out = np.empty((len(rows), len(problems), versions))
    core.machine_scores(data.gram, rows, *support, intercept, out, threads)
    expected = twin.machine_scores(data.gram, rows, *support) + intercept
    assert_allclose(out, expected, rtol=1e-10, atol=1e-12)
    for p in range(len(problems)):
        part = problems.of(p)
        plain = data.gram[np.ix_(rows, problems.rows[part])] @ np.copysign(alpha[part], data.a(p)[:, None])
        assert_allclose(out[:, p], plain + intercept[p], rtol=1e-10, atol=1e-10)
    votes = [[twin.votes(expected[i, :, c], problems.low, problems.high, K) for c in range(versions)]
             for i in range(len(rows))]  # fmt: skip
    hits = [sum(np.argmax(votes[i][c]) == data.labels[row] for i, row in enumerate(rows)) for c in range(versions)]
    assert_array_equal(machines.hits(data.gram, rows, data.labels, problems, K, threads), hits)


@given(seed=seeds, n=sizes, K=classes)
def test_coefficients_of_classes_are_those_of_pairs(seed, n, K):
    """`duals` and `pair_scores`: one row of coefficients per other class, and the scores of each pair out of them."""
    data = Data(seed, n, K)
    problems, alpha = data.problems, data.rng.exponential(size=len(data.problems.rows))
    sort = np.argsort(data.labels, kind="stable")
    dual = duals(problems, alpha, K, n)[:, sort]
    edges = np.searchsorted(data.labels[sort], np.arange(K + 1))
    kernel = data.gram[:, sort].astype(np.float64)
    machines = Machines.of_alpha(problems, alpha[:, None])
    expected = twin.machine_scores(data.gram, range(n), machines.first, machines.columns, machines.coef, machines.used)
    assert_allclose(pair_scores(kernel, dual, edges), expected[:, :, 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("solver", [Exact(), SGD(), ISDA()], ids=repr)
def test_grouped_problems_equal_separate_ones(solver):
    """Problems on several parts of the rows, one without a class, trained in one go."""
    data, options = Data(2, 60, 3), FitOptions(2, 0.5, 1e-3, 2)
    parts = [data.order[:40], data.order[20:], np.flatnonzero(data.labels != 1)]
    groups = [pairwise(data.labels, data.weights, part) for part in parts]
    every, edges = joined(groups)
    Cs, rows = np.array([0.1, 1.0, 5.0]), np.arange(60)
    machines = solver.batched(data.gram, every, Cs, options)
    for group, start, stop in zip(groups, edges, edges[1:], strict=False):
        which = slice(start, stop)
        alone = solver.batched(data.gram, group, Cs, options)
        assert_array_equal(machines.used[which], alone.used)
        assert_array_equal(machines.coef[every.first[start] : every.first[stop]], alone.coef)
        hits = machines.part(which).hits(data.gram, rows, data.labels, every.part(which), 3, 2)
        assert_array_equal(hits, alone.hits(data.gram, rows, data.labels, group, 3, 1))


def test_solver_objects():
    assert [repr(resolve(name)) for name in ("auto", "exact", "sgd", "isda", "min_norm")] == [
        "Auto()",
        "Exact(fit_intercept=True)",
        "SGD(step='1/t', order='cyclic', iterates='after', C_times='sum', intercept=None)",
        "ISDA(intercept=None)",
        "MinNorm(intercept=None)",
    ]
    assert resolve(SGD("1/m")).step == "1/m"
    with pytest.raises(
        ValueError, match="solver='smo': expected one of 'auto', 'exact', 'sgd', 'isda', 'min_norm', or"
    ):
        resolve("smo")


def test_invalid_arguments_raise():
    data = Data(0, 6)
    p, steps = (
        data.problems,
        sgd._Steps(SGD(), data.problems, cyclic(data.problems, 1), np.array([1.0]), FitOptions(1, 0.5, 1e-3, 1)),
    )
    good = {
        "values": data.gram, "row_place": identity(6), "column_place": identity(6), "rows": p.rows, "a": p.a,
        "first": p.first, "scale": steps.scale, "tail": steps.tail, "epochs": 1, "margin": np.ones(1),
        "begin": np.array([0]), "end": np.array([6]), "slot": steps.slot, "columns": steps.columns, "beta": steps.beta,
        "mean": steps.mean, "used": steps.used, "threads": 1,
    }  # fmt: skip
    bad = [
        {"row_place": np.full(6, 6, dtype=np.int32)}, {"row_place": identity(5)}, {"column_place": identity(7)},
        {"column_place": np.full(6, -2, dtype=np.int32)}, {"rows": p.rows + np.int32(1)}, {"a": p.a[1:]},
        {"first": np.array([0, 5])}, {"first": np.array([0, 0, 6])}, {"scale": np.ones(5)}, {"epochs": 0},
        {"margin": np.ones(8)}, {"beta": np.zeros((6, 2)), "mean": np.zeros((6, 2)), "margin": np.ones(2)},
        {"begin": np.array([-1])}, {"end": np.array([7])}, {"used": np.array([7])}, {"slot": steps.slot[1:]},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(ValueError, match=r"expected|differ|more than"):
            core.kernel_sgd(**good | change)
    with pytest.raises(ValueError, match="a problem without weight"):
        data.problems.a[:] = 0.0
        data.dual([1.0], "isda")
    with pytest.raises(ValueError, match="method: isda, min_norm or hinge expected"):
        data.dual([1.0], "smo")
    with pytest.raises(TypeError):  # a copy would lose what is written
        core.kernel_sgd(**good | {"beta": steps.beta.astype(np.float32)})
