"""OCAS with Arnosti's searches and guards against a literal transcription of the paper: whole runs."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.problem.planes import Bundle
from cutsvm.solvers import OCAS, ocas
from cutsvm.solvers.cutting_planes import PlaneSettings
from tests.support.problems import iterates, long_data, many_classes, multiclass_oracle_of, oracle_of, some_problem
from tests.support.reference import arnosti as paper
from tests.support.reference import svm
from tests.support.strategies import examples, rng_of, seeds

EVERY_PLANE = PlaneSettings(patience=10**9)
SEARCHES = {"exact": None, "gca": paper.GCA, "gca2": paper.GCA2, "tca": paper.TCA}
CURES = {"none": None, "first_steps": "first_steps", "every_zero": "every_zero"}


@pytest.fixture
def same_reduced_problem(monkeypatch):
    """Both solve the reduced problem by quadprog: a run is chaotic, and 1e-8 in w_t grows to another step in ten."""

    def minimise(bundle, C, tol):
        return SimpleNamespace(w=paper.reduced(bundle.slopes, bundle.offsets, C), lower=0.0)

    monkeypatch.setattr(Bundle, "minimise", minimise)


def problem_of(kind, seed):
    """The paper's problem, ours, and the number of rows, by which their C differ."""
    if kind == "two classes":
        X, y = long_data(n=150, d=8, seed=seed)
        return paper.Binary(X, y), oracle_of(X, y, "none"), len(y)
    X, y = many_classes(n=150, d=4, K=4, seed=seed)
    return paper.MultiClass(X, y), multiclass_oracle_of(X, y), len(y)


@pytest.mark.parametrize("guard", CURES)
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("kind", ["two classes", "four classes"])
@pytest.mark.parametrize(("seed", "C"), [(0, 600.0), (1, 3000.0)])
def test_whole_runs_are_the_papers(same_reduced_problem, kind, name, guard, seed, C):
    """Every mu and every F(w_b), iteration by iteration; F is that of the best point so far."""
    problem, oracle, n = problem_of(kind, seed)
    search = None if SEARCHES[name] is None else SEARCHES[name](0.5)
    mus, objectives = paper.oca(problem, C, search, 1e-2, CURES[guard])
    assert len(mus) >= 10
    solver = OCAS(line_search=name, safe=False, first_step=0.5, shards=1, guard=guard, planes=EVERY_PLANE)
    found = list(islice(iterates(solver, oracle, C / n), len(mus) + 1))[1:]
    np.testing.assert_allclose([iterate.step for iterate in found], mus, rtol=1e-6, atol=1e-9)
    best = np.minimum.accumulate([problem.R(np.zeros(problem.size)) * C, *objectives])[1:]
    np.testing.assert_allclose([iterate.primal for iterate in found], best, rtol=1e-9)


GUARDS = ["stall", "first_steps", "every_zero", "none"]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("name", SEARCHES)
@examples(30)
@given(
    seed=seeds,
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    shards=st.sampled_from([1, 1, 3, 40]),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0, 1e4]),
    intercept=st.sampled_from(["none", "regularized", "free"]),
    first_step=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_bounds_hold_at_every_iterate(name, guard, seed, n, d, shards, C, intercept, first_step):
    """F of w_b may rise; that of the iterates does not."""
    X, a = some_problem(rng_of(seed), n, d)
    low, high = svm.optimum(X, a, C, intercept)
    round_off = 1e-9 * high + 1e-14 * C * np.abs(a).sum()
    solver = OCAS(line_search=name, safe=False, first_step=first_step, shards=shards, guard=guard)
    previous = np.inf
    for iterate in islice(iterates(solver, oracle_of(X, a, intercept), C), 60):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        w, b = iterate.w[:d], iterate.w[d] if len(iterate.w) > d else 0.0
        assert iterate.primal == pytest.approx(svm.objective(X, a, C, intercept, w, b), rel=1e-9, abs=round_off)
        assert iterate.primal <= previous + round_off
        previous = iterate.primal
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("name", SEARCHES)
@examples(10)
@given(seed=st.integers(0, 1000), C=st.sampled_from([1e-3, 0.1, 10.0]), shards=st.sampled_from([1, 5]))
def test_bounds_hold_with_several_classes(name, guard, seed, C, shards):
    X, y = many_classes(n=30, d=3, seed=seed)
    s = np.ones(len(y))
    low, high = svm.joint_optimum(X, y, s, C, "none")
    solver = OCAS(line_search=name, safe=False, first_step=0.5, shards=shards, guard=guard)
    oracle, previous = multiclass_oracle_of(X, y), np.inf
    for iterate in islice(iterates(solver, oracle, C), 60):
        assert iterate.lower <= high * (1 + 1e-6)
        assert iterate.primal >= low * (1 - 1e-6)
        W, b = oracle.parts(iterate.w)
        assert iterate.primal == pytest.approx(svm.joint_objective(X, y, s, C, "none", W, b), rel=1e-9)
        assert iterate.primal <= previous * (1 + 1e-12)
        previous = iterate.primal


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("name", SEARCHES)
def test_the_papers_setting_reaches_its_tolerance(name, guard):
    X, y = many_classes(n=400, d=4)
    solver = OCAS(line_search=name, safe=False, first_step=0.5, shards=1, guard=guard, planes=EVERY_PLANE)
    result = run(solver, multiclass_oracle_of(X, y), 0.1, Stop(tol=1e-2))
    assert result.status is Status.CONVERGED


class Recorded:
    """A line search that returns these steps, then 0."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self, line, tilt, curvature, base=0.0):
        return self.steps.pop(0) if self.steps else 0.0


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("none", [0.5, 0.0, 0.3, 0.0, 0.0, 0.0]),
        ("every_zero", [0.5, 0.02, 0.3, 0.02, 0.02, 0.02]),
        ("first_steps", [0.02, 0.02, 0.02, 0.02, 0.02, 0.5]),
    ],
)
def test_steps_of_the_guards(monkeypatch, guard, expected):
    """The share of the way that w_b goes towards w_t."""
    monkeypatch.setattr(ocas, "new_search", lambda *args, **more: Recorded(0.5, 0.0, 0.3))
    oracle, moved = oracle_of(*long_data(200), "none"), []
    between = type(oracle).between

    def record(self, start, end, k, out=None):
        moved.append(k)
        return between(self, start, end, k, out=out)

    monkeypatch.setattr(type(oracle), "between", record)
    list(islice(iterates(OCAS(line_search="tca", shards=1, guard=guard), oracle, 1e-2), 7))
    assert moved[::2] == expected  # each second call is for w_c


def test_nudge_0_is_no_guard():
    X, y = many_classes()
    runs = [
        [iterate.primal for iterate in islice(iterates(solver, multiclass_oracle_of(X, y), 1.0), 30)]
        for solver in (OCAS(shards=1, nudge=0.0), OCAS(shards=1, guard="none"))
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"guard": "always"}, "guard='always': expected one of 'stall', 'first_steps', 'every_zero', 'none'"),
        ({"guard": None}, "guard=None"),
        ({"first_step": -1.0}, "first_step=-1.0"),
    ],
)
def test_settings_that_make_no_sense(wrong, message):
    with pytest.raises(ValueError, match=message):
        OCAS(**wrong)


def test_idle_planes_stay_longer_with_few_shards():
    settings = PlaneSettings()
    assert [settings.patience_with(shards, 100, 10) for shards in (1, 2, 5, 8, 100)] == [50, 25, 10, 6, 6]
    assert settings.patience_with(1, 1 << 20, 10) == settings.patience  # planes of this size take memory
    assert settings.patience_with(1, 100, 1) == settings.patience  # two classes
    assert EVERY_PLANE.patience_with(1, 100, 10) == EVERY_PLANE.patience


def hands(n, seed):
    """Random poker hands, suit and rank of five cards; the class is how many ranks are there twice."""
    rng = rng_of(seed)
    cards = np.array([rng.permutation(52)[:5] for _ in range(n)])
    X = np.empty((n, 10))
    X[:, ::2], X[:, 1::2] = cards // 13 + 1, cards % 13 + 1
    repeated = [5 - len(set(ranks)) for ranks in (cards % 13).tolist()]
    return X, np.unique(repeated, return_inverse=True)[1].astype(np.int32)


def test_a_problem_that_needs_its_idle_planes_again():
    """Classes that no linear function tells apart: w stays near 0, and so do the planes that matter."""
    X, y = hands(2000, seed=0)
    kept, dropped = (
        run(OCAS(shards=1, planes=planes), multiclass_oracle_of(X, y), 500.0, Stop(tol=1e-2, max_iter=1000))
        for planes in (PlaneSettings(), PlaneSettings(patience_one_shard=0))
    )
    assert kept.status is Status.CONVERGED
    assert kept.n_iter <= 0.7 * dropped.n_iter
