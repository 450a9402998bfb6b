"""Crammer and Singer's problem: bounds at every iterate, the optimum of independent solvers, every intercept."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC as SklearnLinearSVC

from cutsvm import LinearSVC
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.problem.losses import CrammerSinger
from cutsvm.solvers import ACCPM, CPA, DCD, OCAS, Auto, Sifting
from cutsvm.solvers.sifting.full_pass import HeldPass
from tests.support.problems import SIFT_ANYTHING, iterates, many_classes, multiclass_oracle_of, oracle_of
from tests.support.reference import multiclass, svm
from tests.support.strategies import examples, rng_of, seeds

INTERCEPTS = ["none", "regularized", "free"]
SOLVERS = {
    "ocas": lambda shards: OCAS(shards=shards),
    "cpa": lambda shards: CPA(shards=shards),
    "sifting": lambda shards: Sifting(inner=OCAS(shards=shards), sample=0.3, band=0.2, settings=SIFT_ANYTHING),
    "auto": lambda shards: Auto(),
}


def some_problem(rng, n, d, K):
    """Overlapping or separable classes, ties, classes of one row, weights of which some are 0, sorted or not."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    y = np.argmax(X @ rng.normal(size=(d, K)) + rng.choice([0.0, 2.0]) * rng.normal(size=(n, K)), axis=1)
    y[:K] = np.arange(K)
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.3:
        y = np.sort(y)
    s = rng.choice([0.0, 0.5, 1.0, 2.0, 3.7], size=n) if rng.random() < 0.5 else np.ones(n)
    s[np.unique(y, return_index=True)[1]] = 1.0
    return X, y.astype(np.int32), s


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@examples(40)
@given(
    seed=seeds,
    n=st.integers(5, 30),
    d=st.integers(1, 4),
    K=st.integers(2, 5),
    shards=st.integers(1, 20),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided"]),
)
def test_bounds_hold_at_every_iterate(name, intercept, seed, n, d, K, shards, C, layout):
    X, y, s = some_problem(rng_of(seed), n, d, K)
    low, high = svm.joint_optimum(X, y, s, C, intercept)
    round_off = 1e-6 * high + 1e-13 * C * s.sum()
    oracle, previous = multiclass_oracle_of(X, y, s, intercept, layout), np.inf
    for iterate in islice(iterates(SOLVERS[name](shards), oracle, C), 300):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        W, b = oracle.parts(iterate.w)
        assert iterate.primal == pytest.approx(
            svm.joint_objective(X, y, s, C, intercept, W, b), rel=1e-9, abs=round_off
        )
        assert iterate.primal <= previous + round_off
        previous = iterate.primal
        if iterate.primal - iterate.lower <= 1e-7 * iterate.primal:
            break
    else:
        assert iterate.primal - iterate.lower <= 0.05 * iterate.primal


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SOLVERS)
@examples(25)
@given(seed=seeds, n=st.integers(6, 40), d=st.integers(1, 4), K=st.integers(3, 4), shards=st.sampled_from([1, 3, 16]))
def test_reaches_the_optimum(name, intercept, seed, n, d, K, shards):
    X, y, s = some_problem(rng_of(seed), n, d, K)
    low, high = svm.joint_optimum(X, y, s, 1.0, intercept)
    result = run(SOLVERS[name](shards), multiclass_oracle_of(X, y, s, intercept), 1.0, Stop(tol=1e-6, max_iter=3000))
    assert result.status is Status.CONVERGED
    assert result.primal <= high * (1 + 2e-6) + 1e-8
    assert result.lower >= low * (1 - 2e-6) - 1e-8
    assert result.lower <= high


@pytest.mark.parametrize("C", [1e-3, 0.03])
def test_same_objective_as_liblinear(C):
    """LIBLINEAR -s 4, by way of scikit-learn."""
    X, y = many_classes(1500, 6, 5)
    ours = LinearSVC(C, tol=1e-7, fit_intercept=False).fit(X, y)
    theirs = SklearnLinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=10**6)
    W = theirs.fit(X, y).coef_
    objective = svm.joint_objective(X, y, np.ones(len(y)), C, "none", W, np.zeros(5))
    assert ours.objective_ == pytest.approx(objective, rel=1e-6)
    assert ours.lower_bound_ <= objective
    assert_allclose(ours.coef_, W, atol=2e-3)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_two_classes_are_the_binary_problem(intercept):
    """With w_1 = -w_0 = w/2 it is half the binary problem with 2 C."""
    X, y = many_classes(600, 3, 2)
    joint = run(OCAS(), multiclass_oracle_of(X, y, intercept=intercept), 0.05, Stop(tol=1e-8))
    binary = run(OCAS(), oracle_of(X, np.where(y == 1, 1.0, -1.0), intercept), 0.1, Stop(tol=1e-8))
    assert joint.primal == pytest.approx(0.5 * binary.primal, rel=1e-7)
    W, b = multiclass_oracle_of(X, y, intercept=intercept).parts(joint.w)
    assert_allclose(W[1] - W[0], binary.w[:3], atol=1e-3)
    if intercept != "none":
        assert b[1] - b[0] == pytest.approx(binary.w[3], abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["ocas", "auto"])
def test_many_classes_some_with_one_row(solver):
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(60), rng.integers(0, 35, size=300)])
    X = 3.0 * rng.normal(size=(60, 12))[y] + rng.normal(size=(len(y), 12))
    model = LinearSVC(0.1, solver=solver).fit(X, y)
    assert model.converged_
    assert model.coef_.shape == (60, 12)
    assert model.score(X, y) > 0.9
    assert abs(model.intercept_.sum()) < 1e-9


@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_weights_are_repetition(intercept):
    X, y = many_classes(200)
    times = np.random.default_rng(1).integers(0, 4, size=200)
    times[:4] = 1
    weighted = LinearSVC(0.1, tol=1e-9, intercept=intercept).fit(X, y, sample_weight=times)
    repeated = LinearSVC(0.1, tol=1e-9, intercept=intercept).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    by_class = LinearSVC(0.1, tol=1e-9, class_weight={2: 3.0}).fit(X, y)
    by_row = LinearSVC(0.1, tol=1e-9).fit(X, y, sample_weight=np.where(y == 2, 3.0, 1.0))
    assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", [OCAS(), OCAS(shards=5), Sifting(settings=SIFT_ANYTHING)])
def test_threads_do_not_change_a_bit(solver, intercept):
    X, y = many_classes(13_000)
    results = [
        run(solver, multiclass_oracle_of(X, y, intercept=intercept, threads=threads), 0.01, Stop(tol=1e-4))
        for threads in (1, 2, 3)
    ]
    for other in results[1:]:
        assert_array_equal(results[0].w, other.w)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["plain", "weights", "sorted"])
def test_sifting_and_no_sifting_agree(kind, intercept):
    X, y = many_classes(20_000, 3)
    s = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=len(y)) if kind == "weights" else np.ones(len(y))
    if kind == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    both = [
        run(solver, multiclass_oracle_of(X, y, s, intercept), 0.01, Stop(tol=1e-4))
        for solver in (Sifting(settings=SIFT_ANYTHING), OCAS())
    ]
    assert both[0].status is both[1].status is Status.CONVERGED
    assert both[0].lower <= both[1].primal and both[1].lower <= both[0].primal
    assert both[0].history[-1]["passes"] < both[1].history[-1]["passes"]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(
    seed=seeds, n=st.integers(6, 60), d=st.integers(1, 4), K=st.integers(2, 5), band=st.sampled_from([0.0, 0.3, 2.0])
)
def test_working_set_risk_is_below_the_risk(intercept, seed, n, d, K, band):
    rng = rng_of(seed)
    X, y, s = some_problem(rng, n, d, K)
    full = multiclass_oracle_of(X, y, s, intercept)
    reference = full.score(rng.normal(size=full.size))
    whole = HeldPass(full, 1.0)
    working_set = whole.near(reference, band)
    scale = 1e-11 * (1.0 + np.abs(X).sum()) * (1.0 + s.sum())

    def value(oracle, w):
        return oracle.value(oracle.score(w.copy()))

    assert value(working_set.oracle, reference.w) == pytest.approx(full.value(reference), abs=100 * scale)
    points = rng.normal(size=(5, full.size)) * rng.choice([0.1, 1.0, 10.0], size=(5, 1))
    before = [value(working_set.oracle, w) for w in points]
    for w, low in zip(points, before, strict=True):
        assert low <= value(full, w) + scale * (1.0 + np.abs(w).sum())
    whole.grow(working_set, full.score(points[0].copy()))
    for w, low in zip(points, before, strict=True):
        slack = scale * (1.0 + np.abs(w).sum())
        assert low - slack <= value(working_set.oracle, w) <= value(full, w) + slack
    assert value(working_set.oracle, points[0]) == pytest.approx(value(full, points[0]), rel=1e-7, abs=100 * scale)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=seeds, n=st.integers(6, 60), d=st.integers(1, 4), K=st.integers(2, 5), shards=st.integers(1, 9))
def test_planes_touch_and_stay_below(intercept, seed, n, d, K, shards):
    rng = rng_of(seed)
    X, y, s = some_problem(rng, n, d, K)
    oracle = multiclass_oracle_of(X, y, s, intercept).with_shards(shards)
    for planes in [
        *oracle.initial_planes(),
        *(oracle.planes(oracle.score(rng.normal(size=oracle.size))) for _ in range(3)),
    ]:
        for w in rng.normal(size=(5, oracle.size)):
            heights = planes.slopes @ w + planes.offsets
            assert heights.sum() <= oracle.value(oracle.score(w.copy())) + 1e-9 * (1.0 + np.abs(X).sum() * s.sum())
    point = oracle.score(rng.normal(size=oracle.size))
    planes = oracle.planes(point)
    assert (planes.slopes @ point.w + planes.offsets).sum() == pytest.approx(oracle.value(point), rel=1e-9, abs=1e-9)


@given(
    seed=seeds, n=st.integers(5, 30), d=st.integers(1, 3), K=st.integers(2, 4), C=st.sampled_from([0.01, 1.0, 100.0])
)
def test_free_intercepts_stay_within_their_bound(seed, n, d, K, C):
    X, y, s = some_problem(rng_of(seed), n, d, K)
    oracle = multiclass_oracle_of(X, y, s, "free")
    result = run(OCAS(), oracle, C, Stop(tol=1e-6, max_iter=500))
    b = oracle.parts(result.w)[1]
    assert b.max() - b.min() <= oracle.intercept_box(C) + 1e-9
    assert oracle.new_bundle(C).intercept_box == oracle.intercept_box(C)


def test_labels_predictions_and_warm_start():
    X, y = many_classes(500)
    names = np.array(["ash", "birch", "cedar", "elm"])[y]
    model = LinearSVC(0.05, warm_start=True).fit(X, names)
    assert model.decision_function(X).shape == (500, 4)
    assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-12)
    first = model.n_iter_
    model.set_params(C=0.051).fit(X, names)
    assert model.n_iter_ <= first
    assert model.history_[0]["primal"] < 1.1 * model.objective_


def test_zero_weight_class_is_dropped():
    X, y = many_classes(300)
    model = LinearSVC(0.05).fit(X, y, sample_weight=(y != 3).astype(float))
    assert_array_equal(model.classes_, [0, 1, 2])
    alone = LinearSVC(0.05).fit(X[y != 3], y[y != 3])
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-3)


def test_one_vs_rest_is_available():
    X, y = many_classes(300)
    model = LinearSVC(0.05, multi_class="ovr").fit(X, y)
    assert {record["label"] for record in model.history_} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("solver", ["dcd", DCD(), Sifting(inner=DCD()), "accpm", ACCPM(formulation="I2")])
def test_binary_solvers_name_alternatives(solver):
    with pytest.raises(ValueError, match='multi_class="ovr"'):
        LinearSVC(0.05, solver=solver).fit(*many_classes(300))


def test_auto_chooses_by_rows_and_coordinates():
    few = Auto().choose(multiclass_oracle_of(*many_classes(6000)), 1.0)
    many = Auto().choose(multiclass_oracle_of(*many_classes(120_000, 2, 3)), 1.0)
    assert type(few[0]) is OCAS and "too few for sifting" in few[1]
    assert type(many[0]) is Sifting and "3 classes" in many[1]


def test_ties_at_zero_rotate():
    """At zero scores every other class is as good: the next one is chosen, so that no class is chosen by all."""
    y = np.array([0, 1, 2, 2], dtype=np.int32)
    choice, offsets, _ = CrammerSinger(y, np.ones(4), 3).choices(np.zeros((4, 3)), np.array([0, 4]))
    assert_array_equal(choice, [1, 2, 0, 0])
    assert offsets[0] == 4.0
    assert multiclass.value(np.zeros((4, 3)), y, np.ones(4)) == 4.0
