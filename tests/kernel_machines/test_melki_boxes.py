"""The settings of `SGD` against a transcription of the boxes of Melki and Kecman (2016): whole runs, all readings."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from cutsvm import KernelSVC
from cutsvm.kernel_machines import ISDA, SGD, MinNorm, visits
from cutsvm.kernel_machines.context import FitOptions
from cutsvm.kernel_machines.one_vs_one import pairwise
from cutsvm.kernel_machines.sgd import SGDSettings
from tests.support.reference import kernel_machines as twin
from tests.support.reference import melki

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a few epochs are few
SHARES = [0.0, 0.25, 0.5, 0.75, 1.0]
STEPS = {"1/t": "1/(lambda t)", "1/m": "1/(lambda m)"}
EDGE = 1e-9


def data(n=37, K=2, seed=0):
    """Rows with labels 0 .. K - 1, and kernel values that float32 holds."""
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.normal(size=(n, 3)), dtype=np.float32).astype(np.float64)
    labels = rng.permutation(np.arange(n) % K)
    X[:, 0] += labels
    return X, labels, np.float32(rbf_kernel(X, X, gamma=0.5)).astype(np.float64)


def lam_of(C, m, C_times):
    return 1.0 / C if C_times == "mean" else 1.0 / (C * m)


def visited(labels, order, epochs, random_state):
    """The rows that a fit of two classes visits, in their own numbers."""
    n, random = len(labels), np.random.RandomState(random_state)
    shuffled = random.permutation(n)
    if order == "cyclic":
        return np.tile(shuffled, epochs)
    generator = np.random.default_rng(random.randint(2**31 - 1))
    by_class = np.argsort(labels, kind="stable")
    return by_class[np.concatenate([generator.integers(n, size=n) for _ in range(epochs)])]


def signed(model, n):
    alpha = np.zeros(n)
    alpha[model.support_] = model.dual_coef_[0]
    return alpha


@pytest.mark.parametrize("C_times", ["sum", "mean"])
@pytest.mark.parametrize("iterates", ["after", "before"])
@pytest.mark.parametrize("order", ["cyclic", "random"])
@pytest.mark.parametrize("step", STEPS)
def test_whole_runs(step, order, iterates, C_times):
    """Every alpha of `KernelSVC`, and its objective, is that of the transcription, for each share averaged."""
    _, labels, K = data()
    n, y = len(labels), np.where(labels == 1, 1.0, -1.0)
    C = 2.37 if C_times == "sum" else 23.7
    lam = lam_of(C, n, C_times)
    for epochs, share in itertools.product((1, 3), SHARES):
        model = KernelSVC(
            C, kernel="precomputed", solver=SGD(step, order, iterates, C_times), epochs=epochs, average=share,
            random_state=5,
        ).fit(K, labels)  # fmt: skip
        chosen = visited(labels, order, epochs, 5)
        _, alphas, nearest = melki.algorithm_b(K, y, lam, chosen, STEPS[step])
        assert nearest > EDGE
        shown = range(2, len(chosen) + 2) if iterates == "after" else range(1, len(chosen) + 1)
        expected = melki.mean_of_last([alphas[t] for t in shown], share)
        assert_allclose(signed(model, n), expected, rtol=1e-12, atol=1e-14)
        assert model.objective_ == pytest.approx(melki.objective(K, y, lam, expected), rel=1e-12)
        low, high = np.array(twin.optimum(K, y, 1.0 / (lam * n), "hinge")) * lam
        assert 0.0 <= model.lower_bound_ <= high * (1.0 + 1e-9) and low * (1.0 - 1e-9) <= model.objective_


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75])
@pytest.mark.parametrize("C_times", ["sum", "mean"])
def test_nl_sgd_of_section_three(share, C_times):
    _, labels, K = data(seed=1)
    y = np.where(labels == 1, 1.0, -1.0)
    for step, epochs in itertools.product(STEPS, (1, 2, 5)):
        model = KernelSVC(
            5.1, kernel="precomputed", solver=SGD(step, C_times=C_times), epochs=epochs, average=share, random_state=0
        ).fit(K, labels)
        shuffled = np.random.RandomState(0).permutation(len(y))
        lam = lam_of(5.1, len(y), C_times)
        expected, nearest = melki.nl_sgd(K, y, lam, shuffled, epochs, share, STEPS[step])
        assert nearest > EDGE
        assert_allclose(signed(model, len(y)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("C_times", ["sum", "mean"])
@pytest.mark.parametrize("step", STEPS)
def test_algorithm_b(step, C_times):
    """The box to the letter: rows at random, the mean of alpha^(1) .. alpha^(T)."""
    _, labels, K = data(seed=2)
    y, lam = np.where(labels == 1, 1.0, -1.0), lam_of(3.3, len(labels), C_times)
    solver = SGD(step, order="random", iterates="before", C_times=C_times)
    model = KernelSVC(3.3, kernel="precomputed", solver=solver, epochs=4, average=1.0, random_state=9).fit(K, labels)
    expected, _, nearest = melki.algorithm_b(K, y, lam, visited(labels, "random", 4, 9), STEPS[step])
    assert nearest > EDGE
    assert_allclose(signed(model, len(y)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", ["cyclic", "random"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("steps", [7, 1 << 20])
def test_algorithm_a(step, order, steps):
    """Without kernels, in pieces of any length: w* as `coef_`."""
    X, labels, _ = data(seed=3)
    y, lam = np.where(labels == 1, 1.0, -1.0), lam_of(1.7, len(labels), "mean")
    solver = SGD(step, order, "before", "mean", settings=SGDSettings(linear_steps=steps))
    model = KernelSVC(1.7, kernel="linear", solver=solver, epochs=3, average=1.0, random_state=4).fit(X, labels)
    expected, _, nearest = melki.algorithm_a(X, y, lam, visited(labels, order, 3, 4), STEPS[step])
    assert nearest > EDGE
    assert_allclose(model.coef_[0], expected, rtol=1e-11, atol=1e-13)
    assert_array_equal(model.intercept_, [0.0])


@pytest.mark.parametrize("C_times", ["sum", "mean"])
def test_pairs_of_classes_vote(C_times):
    """Each pair is a run of its own with its own m, and the class with most votes wins."""
    _, labels, K = data(50, 4, seed=6)
    model = KernelSVC(
        4.0, kernel="precomputed", solver=SGD(C_times=C_times), epochs=2, random_state=1
    ).fit(K, labels)  # fmt: skip
    shuffled, scores, value = np.random.RandomState(1).permutation(50), [], 0.0
    pairs = list(itertools.combinations(range(4), 2))
    for low, high in pairs:
        rows = shuffled[np.isin(labels[shuffled], [low, high])]
        y, own = np.where(labels[rows] == high, 1.0, -1.0), K[np.ix_(rows, rows)]
        lam = lam_of(4.0, len(rows), C_times)
        alpha, nearest = melki.nl_sgd(own, y, lam, np.arange(len(rows)), 2, 0.5, "1/(lambda t)")
        assert nearest > EDGE
        scores.append(K[:, rows] @ alpha)
        value += melki.objective(own, y, lam, alpha)
    expected = melki.voted(np.array(scores).T, pairs, 4)
    told = np.array([k is not None for k in expected])
    assert told.sum() > 40
    assert_array_equal(model.predict(K)[told], np.array([k for k in expected if k is not None]))
    assert model.objective_ == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("epochs", [1, 3])
def test_random_rows_in_blocks_equal_the_whole_matrix(epochs):
    """Where the kernel matrix does not fit, the steps are the same; so are those of several problems trained in one."""
    X, labels, _ = data(90, 3, seed=7)
    for block in (1, 16, 1024):
        solver = SGD(order="random", settings=SGDSettings(block_rows=block))
        whole, parts = (
            KernelSVC(gamma=0.5, solver=solver, epochs=epochs, random_state=2, memory_limit=limit).fit(X, labels)
            for limit in (None, 4 * 90 * 89)
        )
        assert_array_equal(whole.support_, parts.support_)
        assert_allclose(whole.dual_coef_, parts.dual_coef_, rtol=1e-5)


def test_draws_are_uniform_and_do_not_depend_on_other_problems():
    labels = np.arange(60) % 3
    problems = pairwise(labels, np.ones(60), np.arange(60))
    drawn, sequence, positions = visits.random(problems, 200, 60, 11)
    alone, _, _ = visits.random(pairwise(labels, np.ones(60), np.flatnonzero(labels != 1)), 200, 60, 11)
    assert_array_equal(drawn.problems.rows[drawn.problems.of(1)], alone.problems.rows)
    for p in range(3):
        part = drawn.problems.of(p)
        rows = drawn.problems.rows[part]
        assert_array_equal(rows, sequence[positions[p]])
        assert len(rows) == 200 * 40 and set(labels[rows]) == {problems.low[p], problems.high[p]}
        counts = np.bincount(rows, minlength=60)[labels != 2 - p]
        assert np.sum((counts - 200.0) ** 2 / 200.0) < 80.0  # chi-squared with 39 degrees: 1e-4 are above
        assert_array_equal(drawn.problems.a[part] > 0, labels[rows] == problems.high[p])


def test_machines_of_random_rows_are_those_of_single_fits():
    """Up to eight values of C in one call, with a row in the support once for each of its changes."""
    _, labels, K = data(40, 2, seed=8)
    problems = pairwise(labels, np.ones(40), np.arange(40), mean_loss=True)
    options = FitOptions(2, 0.5, 1e-3, 1, seed=3)
    Cs = np.array([0.7, 5.3, 61.0])
    machines = SGD(order="random", C_times="mean").batched(np.float32(K), problems, Cs, options)
    chosen = visits.random(problems, 2, 40, 3)[0].problems.rows
    y = np.where(labels == 1, 1.0, -1.0)
    for c, C in enumerate(Cs):
        _, alphas, nearest = melki.algorithm_b(K, y, 1.0 / C, chosen, "1/(lambda t)")
        assert nearest > EDGE
        expected = melki.mean_of_last([alphas[t] for t in range(2, 82)], 0.5)
        used = slice(0, machines.used[0])
        found = np.bincount(machines.columns[used], weights=machines.coef[used, c], minlength=40)
        assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("order", ["cyclic", "random"])
def test_the_ascent_ends_at_the_optimum_of_the_mean(kernel, order):
    """With epochs="auto" the fit goes on until the gap of the objective with lambda = 1 / C is tol."""
    X, labels, _ = data(60, 3, seed=4)
    C = 40.0
    model = KernelSVC(C, kernel=kernel, gamma=0.5, solver=SGD(order=order, C_times="mean"), tol=1e-5).fit(X, labels)
    K, low, high = rbf_kernel(X, X, gamma=0.5) if kernel == "rbf" else X @ X.T, 0.0, 0.0
    for pair in itertools.combinations(range(3), 2):
        rows = np.flatnonzero(np.isin(labels, pair))
        a = np.where(labels[rows] == pair[1], 1.0, -1.0) / len(rows)
        low, high = np.array([low, high]) + np.array(twin.optimum(K[np.ix_(rows, rows)], a, C, "hinge")) / C
    assert model.converged_ and model.gap_ <= 1e-5
    assert model.lower_bound_ <= high * (1.0 + 1e-9) and low * (1.0 - 1e-9) <= model.objective_
    assert model.objective_ == pytest.approx(high, rel=2e-5)


def test_both_readings_are_one_problem_at_other_C():
    """C times the sum is C m times the mean, for two classes."""
    X, labels, _ = data(50, 2, seed=5)
    one = KernelSVC(2.0, gamma=0.5, solver=SGD(), epochs=2, random_state=0).fit(X, labels)
    two = KernelSVC(100.0, gamma=0.5, epochs=2, random_state=0, solver=SGD(C_times="mean")).fit(X, labels)
    assert_allclose(two.decision_function(X), one.decision_function(X), rtol=1e-10)
    assert (two.objective_, two.lower_bound_) == pytest.approx((one.objective_, one.lower_bound_), rel=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "precomputed"])
@pytest.mark.parametrize("C_times", ["sum", "mean"])
def test_regularised_intercept_of_sgd(C_times, kernel):
    """Its steps are those of the transcription with K + 1, and with the ascent it ends at the optimum with K + 1."""
    X, labels, K = data(45, 2, seed=12)
    C, n, y = 1.9, len(labels), np.where(labels == 1, 1.0, -1.0)
    given = K if kernel == "precomputed" else X
    K = {"rbf": rbf_kernel(X, X, gamma=0.5), "poly": (0.5 * X @ X.T + 1.0) ** 2, "linear": X @ X.T}.get(kernel, K)
    params = {"kernel": kernel, "gamma": 0.5, "degree": 2, "coef0": 1.0, "random_state": 0}
    solver, lam = SGD(C_times=C_times, intercept="regularized"), lam_of(C, n, C_times)
    few = KernelSVC(C, solver=solver, epochs=2, **params).fit(given, labels)
    shuffled = np.random.RandomState(0).permutation(n)
    own = K[np.ix_(shuffled, shuffled)] + 1.0
    alpha, nearest = melki.nl_sgd(own, y[shuffled], lam, np.arange(n), 2, 0.5, "1/(lambda t)")
    assert nearest > 1e-5  # values are rounded to float32
    assert_allclose(signed(few, n)[shuffled], alpha, rtol=1e-12, atol=1e-14)
    assert few.intercept_[0] == pytest.approx(alpha.sum(), rel=1e-9)
    assert few.objective_ == pytest.approx(melki.objective(own, y[shuffled], lam, alpha), rel=1e-9)
    assert_allclose(few.decision_function(given), (K[:, shuffled] + 1.0) @ alpha, rtol=1e-7, atol=1e-9)
    model = KernelSVC(C, solver=solver, tol=1e-6, **params).fit(given, labels)
    low, high = np.array(twin.optimum(K + 1.0, y, 1.0 / (lam * n), "hinge")) * lam
    assert model.converged_ and model.objective_ == pytest.approx(high, rel=2e-6)
    assert model.lower_bound_ <= high * (1.0 + 1e-9) and low * (1.0 - 1e-9) <= model.objective_


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "precomputed"])
@pytest.mark.parametrize("kind", [ISDA, MinNorm])
def test_regularised_intercept_of_the_l2_machines(kind, kernel):
    """The dual with K + 1 + I / C by an independent QP solver, its intercept and its scores."""
    X, labels, K = data(45, 3, seed=12)
    C = 1.9
    given = K if kernel == "precomputed" else X
    model = KernelSVC(
        C, kernel=kernel, gamma=0.5, degree=2, coef0=1.0, solver=kind(intercept="regularized"), tol=1e-8
    ).fit(given, labels)
    K = {"rbf": rbf_kernel(X, X, gamma=0.5), "poly": (0.5 * X @ X.T + 1.0) ** 2, "linear": X @ X.T}.get(kernel, K)
    low, high, scores = 0.0, 0.0, model._pair_scores(given)
    for p, pair in enumerate(itertools.combinations(range(3), 2)):
        rows = np.flatnonzero(np.isin(labels, pair))
        a, own = np.where(labels[rows] == pair[1], 1.0, -1.0), K[np.ix_(rows, rows)] + 1.0
        low, high = np.array([low, high]) + np.array(twin.optimum(own, a, C, "l2")) / (C * len(rows))
        alpha = twin.isda(own, a, C, 20_000)[0] * a
        assert model.intercept_[p] == pytest.approx(alpha.sum(), abs=2e-3)
        assert_allclose(scores[:, p], K[:, rows] @ alpha + alpha.sum(), atol=5e-3)
    assert model.lower_bound_ <= high * (1.0 + 1e-9) and low * (1.0 - 1e-9) <= model.objective_
    assert model.objective_ == pytest.approx(high, rel=1e-6)
    assert np.abs(model.intercept_).max() > 0.01


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD("fast"), "step='fast': expected '1/t' or '1/m'"),
        (lambda: SGD(order="sorted"), "order='sorted': expected 'cyclic' or 'random'"),
        (lambda: SGD(iterates="last"), "iterates='last': expected 'after' or 'before'"),
        (lambda: SGD(C_times="n"), "C_times='n': expected 'sum' or 'mean'"),
        (lambda: SGD(intercept="free"), "intercept='free': expected None or 'regularized'"),
        (lambda: ISDA(intercept="free"), "intercept='free': expected None or 'regularized'"),
    ],
)
def test_unknown_settings_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()
