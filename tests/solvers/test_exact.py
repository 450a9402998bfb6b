"""CPA(exact=True) and OCAS(exact=True) beside the boxes of their papers, and what the papers prove of them."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm import LinearSVC, OrdinalSVC, RankingSVM, ROCAreaSVC
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.checkpoint_file import CheckpointSettings, configure
from cutsvm.driver.fingerprint import Fingerprint
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Pairwise
from cutsvm.problem.pairs import PairOracle
from cutsvm.solvers import CPA, OCAS
from tests.support.layouts import LAYOUTS
from tests.support.problems import iterates, oracle_of
from tests.support.reference import franc_sonnenburg, joachims, pairwise, svm
from tests.support.strategies import rng_of, seeds

NEAR = 1e-7  # a row as close to the margin as this: rounding errors may choose on which side it is
problems = {
    "seed": seeds,
    "n": st.integers(4, 40),
    "d": st.integers(1, 5),
    "C": st.sampled_from([0.1, 1.0, 10.0, 100.0, 1000.0]),  # the papers': in front of the mean
    "epsilon": st.sampled_from([0.1, 0.03, 0.01, 0.001]),  # in units of the mean loss
    "layout": st.sampled_from(["float64", "csr"]),
}


def rows(seed, n, d):
    """Two classes that overlap, or not."""
    rng = rng_of(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    y = np.where(X @ rng.normal(size=d) + rng.choice([0.0, 1.0]) * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def levels(seed, n, d):
    """Rows with ranks 1, .., R."""
    rng = rng_of(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    R = int(rng.integers(2, 5))
    score = X @ rng.normal(size=d) + rng.choice([0.0, 1.0]) * rng.normal(size=n)
    y = 1 + np.argsort(np.argsort(score)) * R // n
    y[:2] = 1, 2
    return X, y


def pairs_of(X, y, layout="float64"):
    n = len(y)
    loss = Pairwise(y.astype(float), np.ones(n), np.array([0, n]))
    return PairOracle(as_rows(LAYOUTS[layout](X)), loss)


def found_by(solver, oracle, C, most=20_000):
    """The iterates up to the one that meets the solver's rule, without the point where it begins."""
    found = []
    for iterate in islice(iterates(solver, oracle, C), 1, most):
        found.append(iterate)
        if iterate.satisfied:
            return found
    raise AssertionError("no end")


def same_run(found, ws, closest):
    """Iteration by iteration the same points, up to the first whose next plane rounding errors choose."""
    near = next((t for t, distance in enumerate(closest) if distance < NEAR), None)
    if near is None:
        assert len(found) == len(ws)
    count = len(ws) if near is None else near + 1
    for iterate, w in zip(found[:count], ws[:count], strict=near is None):
        assert np.abs(iterate.w - w).max() <= 1e-6 * (1.0 + np.abs(w).max())
    return near is None


@given(**problems)
def test_cpa_is_algorithm_1(seed, n, d, C, epsilon, layout):
    X, y = rows(seed, n, d)
    paper = joachims.algorithm_1(X, y, C, epsilon)
    found = found_by(CPA(exact=True, epsilon=epsilon), oracle_of(X, y, "none", layout), C / n)
    if same_run(found, paper.ws, paper.closest):
        last = found[-1]
        assert last.planes == paper.iterations or paper.xi == 0.0  # a constraint of no row is not stored
        assert (last.lower - last.penalty) / C == pytest.approx(paper.xi, abs=1e-7)


@given(**problems)
def test_cpa_with_pairs_is_algorithm_2(seed, n, d, C, epsilon, layout):
    X, y = levels(seed, min(n, 20), d)
    paper = joachims.algorithm_2(X, y, C, epsilon)
    oracle = pairs_of(X, y, layout)
    found = found_by(CPA(exact=True, epsilon=epsilon), oracle, C / oracle.loss.total)
    if same_run(found, paper.ws, paper.closest):
        last = found[-1]
        assert (last.lower - last.penalty) / C == pytest.approx(paper.xi, abs=1e-7)


@given(**problems)
def test_ocas_is_algorithm_1(seed, n, d, C, epsilon, layout):
    X, y = rows(seed, n, d)
    paper = franc_sonnenburg.algorithm_1(X, y, C, epsilon * C)
    found = found_by(OCAS(exact=True, epsilon=epsilon * C), oracle_of(X, y, "none", layout), C / n)
    if same_run(found, paper.w_bs, paper.closest):
        assert [i.primal for i in found] == pytest.approx(paper.above, rel=1e-9, abs=1e-9 * C)
        assert [i.lower for i in found] == pytest.approx(paper.below, rel=1e-7, abs=1e-7 * C)


def test_whole_runs_are_compared():
    """Of runs like those above most are the same from the first iteration to the last."""
    whole = {CPA: 0, OCAS: 0}
    for seed in range(20):
        X, y = rows(seed, 30, 3)
        paper = joachims.algorithm_1(X, y, 10.0, 0.01)
        found = found_by(CPA(exact=True, epsilon=0.01), oracle_of(X, y, "none"), 10.0 / 30)
        whole[CPA] += same_run(found, paper.ws, paper.closest)
        paper = franc_sonnenburg.algorithm_1(X, y, 10.0, 0.1)
        found = found_by(OCAS(exact=True, epsilon=0.1), oracle_of(X, y, "none"), 10.0 / 30)
        whole[OCAS] += same_run(found, paper.w_bs, paper.closest)
    assert min(whole.values()) >= 10


def test_rows_on_the_margin_do_not_count():
    """y (w.x) < 1 in line 6: at w = 1 the last row is on the margin. With it the third w would be 1.5."""
    X, y = np.array([[2.0], [0.5], [0.5], [1.0]]), np.ones(4)
    paper = joachims.algorithm_1(X, y, 100.0, 0.001)
    found = found_by(CPA(exact=True), oracle_of(X, y, "none"), 100.0 / 4)
    assert [float(w[0]) for w in paper.ws] == pytest.approx([0.0, 1.0, 2.0])
    assert [float(i.w[0]) for i in found] == pytest.approx([0.0, 1.0, 2.0])


def test_pairs_on_the_margin_do_not_count():
    """w.x_i - w.x_j < 1 in line 12. The pairs' differences are 2, 0.5, 0.5 and 1, as above."""
    X, y = np.array([[2.0], [0.0], [1.5], [1.5], [1.0]]), np.array([2, 1, 1, 1, 1])
    paper = joachims.algorithm_2(X, y, 100.0, 0.001)
    oracle = pairs_of(X, y)
    found = found_by(CPA(exact=True), oracle, 100.0 / oracle.loss.total)
    assert [float(w[0]) for w in paper.ws] == pytest.approx([0.0, 1.0, 2.0])
    assert [float(i.w[0]) for i in found] == pytest.approx([0.0, 1.0, 2.0])
    plus, minus = joachims.condensed(X, y, np.array([1.0]))
    assert (list(plus), list(minus)) == ([2, 0, 0, 0, 0], [0, 0, 1, 1, 0])


@given(seed=seeds, n=st.integers(2, 20), d=st.integers(1, 4))
def test_line_14_of_algorithm_2_has_one_too_many(seed, n, d):
    """Theorem 5 defines c+ and c-: as printed, line 14 does not compute them."""
    X, y = levels(seed, n, d)
    w = rng_of(seed).normal(size=d)
    f = X @ w
    plus = [sum(y[i] > y[j] and f[i] - f[j] < 1 for j in range(n)) for i in range(n)]
    minus = [sum(y[j] > y[i] and f[j] - f[i] < 1 for j in range(n)) for i in range(n)]
    assert [list(c) for c in joachims.condensed(X, y, w)] == [plus, minus]
    printed = joachims.condensed(X, y, w, as_printed=True)
    assert list(printed[1]) == minus or printed[1].sum() > printed[0].sum() == sum(plus)


bounded = {
    "seed": seeds,
    "n": st.integers(2, 60),
    "d": st.integers(1, 8),
    "C": st.sampled_from([0.01, 1.0, 100.0, 1e4]),
    "epsilon": st.sampled_from([0.3, 0.1, 0.01, 0.001]),
}


@given(**bounded)
def test_lemma_2_and_theorem_3(seed, n, d, C, epsilon):
    """The number of iterations, and what line 10 returns: an objective that is lower than the optimum, and (w, xi +
    epsilon) feasible."""
    X, y = rows(seed, n, d)
    found = found_by(CPA(exact=True, epsilon=epsilon), oracle_of(X, y, "none"), C / n)
    assert len(found) <= joachims.iterations_at_most(C, epsilon, np.linalg.norm(X, axis=1).max())
    w, high = found[-1].w, svm.optimum(X, y, C / n, "none")[1]
    value = found[-1].lower  # of (w, xi)
    assert value <= high * (1.0 + 1e-9)
    xi = (value - 0.5 * w @ w) / C
    assert np.maximum(0.0, 1.0 - y * (X @ w)).mean() <= xi + epsilon + 1e-6


@given(**bounded)
def test_lemma_2_and_theorem_5(seed, n, d, C, epsilon):
    X, y = levels(seed, min(n, 12), d)
    oracle = pairs_of(X, y)
    found = found_by(CPA(exact=True, epsilon=epsilon), oracle, C / oracle.loss.total)
    assert len(found) <= joachims.iterations_at_most(C, epsilon, 2.0 * np.linalg.norm(X, axis=1).max())
    w, starts = found[-1].w, np.array([0, len(y)])
    value, high = found[-1].lower, pairwise.optimum(X, y, np.ones(len(y)), starts, C / oracle.loss.total)[1]
    assert value <= high * (1.0 + 1e-9)
    xi = (value - 0.5 * w @ w) / C
    mean = pairwise.evaluate(X @ w, y, np.ones(len(y)), starts)[2].sum() / oracle.loss.total
    assert mean <= xi + epsilon + 1e-6


@pytest.mark.parametrize("cut_at", [0.1, 0.5, 1.0])
@given(**bounded)
def test_theorem_1_of_ocas(cut_at, seed, n, d, C, epsilon):
    """The number of iterations until condition (9), for any lambda."""
    X, y = rows(seed, n, d)
    solver = OCAS(exact=True, epsilon=epsilon * C, cut_at=cut_at)
    found = found_by(solver, oracle_of(X, y, "none"), C / n)
    assert len(found) <= franc_sonnenburg.iterations_at_most(C, epsilon * C, np.linalg.norm(X, axis=1).max())
    low, high = svm.optimum(X, y, C / n, "none")
    assert found[-1].primal - high <= epsilon * C
    assert found[-1].lower <= high * (1.0 + 1e-9) and found[-1].primal >= low * (1.0 - 1e-9)


def test_estimators(overlapping):
    """n_iter_ and coef_ are the paper's, with its epsilon of 0.001; C of LinearSVC is the paper's over n."""
    X, y = overlapping[0][:60, :3], overlapping[1][:60]
    C, fixed = 20.0, {"solver": CPA(exact=True), "tol": 1e-12}
    paper = joachims.algorithm_1(X, np.where(y > 0, 1.0, -1.0), C, 0.001)
    model = LinearSVC(C / 60, fit_intercept=False, **fixed).fit(X, y)
    assert model.n_iter_ == paper.iterations and model.status_ is Status.EPSILON
    assert model.coef_.ravel() == pytest.approx(paper.w, abs=1e-6)
    ranks = np.where(y > 0, 2, 1)
    paper = joachims.algorithm_2(X, ranks, C, 0.001)
    for pairs in (ROCAreaSVC(C, **fixed), OrdinalSVC(C, **fixed), RankingSVM(C, **fixed)):
        pairs.fit(X, ranks)
        assert pairs.n_iter_ == paper.iterations and pairs.status_ is Status.EPSILON
        assert pairs.coef_.ravel() == pytest.approx(paper.w, abs=1e-6)


def hard(n=400, d=30, seed=0):
    """Rows on which F(w_t) goes up and down for many iterations."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, size=d)
    return X, np.where(X @ rng.normal(size=d) + 3.0 * rng.normal(size=n) > 0, 1.0, -1.0)


def test_the_answer_is_that_of_line_10():
    """The current w, with its own objective, though an earlier one may be better; F may rise for long."""
    X, y = hard()
    result = run(CPA(exact=True, epsilon=0.003), oracle_of(X, y, "none"), 1e4 / 400, Stop(tol=1e-12))
    primal = [record["primal"] for record in result.history]
    assert result.status is Status.EPSILON and result.n_iter > 100
    assert result.primal == pytest.approx(primal[-1], rel=1e-9)
    assert sum(np.diff(primal) > 0) > 20
    assert result.n_iter == result.history[-1]["planes"]  # all are kept


def test_no_iteration_follows_the_papers_rule():
    """The gap is within so small a tol, but for rounding errors; the paper's rule is met all the same."""
    X, y = hard(n=500)
    oracle = pairs_of(X, (3 + y).astype(int) // 2)
    result = run(CPA(exact=True), oracle, 1e-5 / oracle.loss.total, Stop(tol=1e-12))
    assert result.status is Status.EPSILON and result.n_iter == 2


def test_a_run_that_is_cut_short_keeps_the_best_point():
    X, y = hard()
    result = run(CPA(exact=True), oracle_of(X, y, "none"), 1e4 / 400, Stop(tol=1e-12, max_iter=60))
    primal = [record["primal"] for record in result.history]
    assert result.status is Status.MAX_ITER and primal[-1] > min(primal)
    assert result.primal == pytest.approx(min(primal), rel=1e-9)


@pytest.mark.parametrize("solver", [CPA(exact=True), OCAS(exact=True, epsilon=10.0)], ids=repr)
def test_a_resumed_run_is_the_same_run(solver, tmp_path):
    X, y = hard()
    C, path = 1e4 / 400, tmp_path / "file"
    whole = run(solver, oracle_of(X, y, "none"), C, Stop(tol=1e-12))
    before = configure(CheckpointSettings(0.0, 0.0, np.inf))
    try:
        for stop in (Stop(tol=1e-12, max_iter=25), Stop(tol=1e-12)):
            file = Checkpoint(path, Fingerprint({}, {}))
            result = run(solver, oracle_of(X, y, "none"), C, stop, checkpoint=file)
            file.close(converged=result.status.converged)
    finally:
        configure(before)
    assert whole.status is result.status is Status.EPSILON
    assert result.n_iter == pytest.approx(
        whole.n_iter, rel=0.1
    )  # weights to begin the reduced problem with are rounded
    assert result.lower <= whole.primal and whole.lower <= result.primal
    assert len(result.history) < whole.n_iter


@pytest.mark.parametrize("kind", [CPA, OCAS])
def test_bad_settings(kind):
    with pytest.raises(ValueError, match="shards=4, exact=True"):
        kind(exact=True, shards=4)
    with pytest.raises(ValueError, match="epsilon=0"):
        kind(epsilon=0.0)


def test_one_vs_rest_status_is_that_of_the_rule_that_ended_a_problem():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    model = LinearSVC(0.1, solver=CPA(exact=True, epsilon=0.05), multi_class="ovr", tol=1e-6).fit(X, y)
    assert model.gap_ > 1e-6 and model.status_.name == "EPSILON"
