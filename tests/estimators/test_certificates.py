"""Bounds and objectives against exact arithmetic, where float64 is not precise enough."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm import LinearSVC, OrdinalSVC, RankingSVM, ROCAreaSVC, linear_path
from cutsvm.driver.records import Status
from cutsvm.matrix import as_rows
from cutsvm.problem.certificate import Magnitudes, RowScale, dual_bound, gamma, objective
from cutsvm.problem.losses import CrammerSinger, Hinge, Pairwise
from cutsvm.problem.multiclass import CrammerSingerOracle
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.pairs import PairOracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.protocol import Progress
from tests.support.strategies import rng_of, seeds

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fractions(values):
    return [Fraction(float(value)) for value in np.ravel(values)]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def exact_objective(model, X, y, C, weights=None):
    """F(coef_, intercept_) of two classes with a free intercept, without rounding."""
    w, b = fractions(model.coef_), Fraction(float(model.intercept_[0]))
    s = fractions(np.ones(len(y)) if weights is None else weights)
    signs = [1 if label == model.classes_[1] else -1 for label in y]
    losses = [max(Fraction(0), 1 - sign * (dot(fractions(x), w) + b)) for sign, x in zip(signs, X, strict=True)]
    return dot(w, w) / 2 + Fraction(C) * dot(s, losses)


def assert_honest(model, exact):
    """objective_ is F at the returned model, and `converged_` is true only if the gap is within tol."""
    assert abs(Fraction(model.objective_) - exact) <= Fraction(1e-9) * exact
    assert Fraction(model.lower_bound_) <= exact
    assert model.gap_ == (model.objective_ - model.lower_bound_) / model.objective_
    assert model.converged_ == (model.gap_ <= model.tol)
    assert model.status_ is (Status.CONVERGED if model.converged_ else Status.PRECISION)


# The bound itself


def exact_planes(X, slopes):
    """The slopes in w and in b and the offset of a plane with these coefficients of the rows, without rounding."""
    g = fractions(slopes)
    columns = [dot(g, fractions(X[:, j])) for j in range(X.shape[1])]
    return columns, sum(g), sum(map(abs, g))


@given(
    seed=seeds,
    n=st.integers(2, 12),
    d=st.integers(1, 4),
    decades=st.integers(0, 12),
    intercept=st.sampled_from(Intercept),
)
def test_the_bound_is_below_every_objective(seed, n, d, decades, intercept):
    """Planes updated many times, rows far from 0, weights over decades: the bound is never above F."""
    rng = rng_of(seed)
    X = rng.normal(size=(n, d)) + 10.0 ** rng.integers(0, decades + 1, size=d)
    a = rng.choice([-1.0, 1.0], size=n) * 10.0 ** rng.uniform(-decades, decades, size=n)
    a[:2] = abs(a[0]), -abs(a[1])
    oracle, C = Oracle(as_rows(X), Hinge(a), intercept=intercept), float(10.0 ** rng.uniform(-3, 6))
    bundle = oracle.new_bundle(C)
    for _ in range(6):
        bundle.add(oracle.planes(oracle.at(rng.normal(size=oracle.size))))
    lower = bundle.minimise(C, 1e-6).lower
    assert lower >= 0.0
    for w in (np.zeros(oracle.size), bundle.minimise(C, 1e-9).w, *rng.normal(size=(5, oracle.size))):
        weights, b = oracle.parts(w)
        exact, s, y = fractions(weights), fractions(np.abs(a)), fractions(np.sign(a))
        scores = [dot(fractions(x), exact) + Fraction(float(b)) for x in X]
        loss = dot(s, [max(Fraction(0), 1 - sign * f) for sign, f in zip(y, scores, strict=True)])
        penalty = dot(exact, exact) / 2
        if intercept is Intercept.REGULARIZED:
            penalty += Fraction(float(b)) ** 2 / 2
        assert Fraction(lower) <= penalty + Fraction(C) * loss


@given(seed=seeds, n=st.integers(1, 30), d=st.integers(1, 4), decades=st.integers(0, 12))
def test_plane_errors_cover_rounding(seed, n, d, decades):
    """The exact plane differs by sum_i theta_i (x_i, 1) with sum |theta_i| <= e: checked feature by feature."""
    rng = rng_of(seed)
    X = rng.normal(size=(n, d)) * 10.0**decades
    a = rng.choice([-1.0, 1.0], size=n) * rng.random(n)
    oracle = Oracle(as_rows(X), Hinge(a), intercept=Intercept.REGULARIZED)
    for _ in range(8):
        point = oracle.score(rng.normal(size=oracle.size) / 10.0**decades)
        planes = oracle.planes(point)
    coefficients = np.empty(n)
    Hinge(a).slopes(point.scores, np.array([0, n]), coefficients, balanced=False)
    columns, b, offset = exact_planes(X, coefficients)
    largest, e = np.abs(X).max(axis=0), Fraction(float(planes.errors[0, 0]))
    for j, column in enumerate(columns):
        assert abs(column - Fraction(float(planes.slopes[0, j]))) <= e * Fraction(float(largest[j]))
    assert abs(b - Fraction(float(planes.slopes[0, d]))) <= e
    assert Fraction(float(planes.offsets[0])) <= offset


@pytest.mark.slow
@pytest.mark.parametrize("levels", [2, 5, 40])
@given(seed=seeds, n=st.integers(2, 40) | st.just(120), decades=st.integers(0, 18))
def test_errors_of_the_slopes_of_pairs(levels, seed, n, decades):
    """Of few rows and of rows that are sorted, with weights of any spread."""
    rng = rng_of(seed)
    y, s = rng.integers(0, levels, size=n), 10.0 ** rng.uniform(-decades / 2, decades / 2, size=n)
    y[:2] = 0, 1
    loss, f = Pairwise(y, s, np.array([0, n])), rng.normal(size=n)
    found = np.empty(n)
    heights = loss.slopes(f, np.array([0, n]), found, balanced=True)
    weights, counts = fractions(loss.weights), (y[:, None] > y) & (f[:, None] - f < 1.0 - 1e-12)
    exact = [
        weights[i]
        * (sum(weights[j] for j in np.flatnonzero(counts[:, i])) - sum(weights[j] for j in np.flatnonzero(counts[i])))
        for i in range(n)
    ]
    off = sum(abs(a - b) for a, b in zip(exact, fractions(found), strict=True))
    assert off <= Fraction(float(loss.slope_errors(heights)[0]))


def test_infeasible_weights_do_not_raise_the_bound():
    """Weights above 1 in a shard, or below 0, are projected before the bound is computed."""
    X, a = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    oracle = Oracle(as_rows(X), Hinge(a))
    planes = oracle.planes(oracle.at(np.zeros(1)))
    for weights, most in (([5.0], 0.5), ([-1.0], 0.0), ([np.nan], 0.0)):
        found = dual_bound(
            planes.slopes,
            planes.offsets,
            planes.errors,
            np.zeros(1, dtype=np.int64),
            np.array(weights),
            1.0,
            oracle.scale(1.0),
        )
        assert 0.0 <= found <= most
    assert gamma(2.0**52) == np.inf or gamma(2.0**52) >= 1.0


def test_overflowing_errors_give_no_bound():
    """The bound is 0, and neither the power of a float that overflows nor the file of a checkpoint is an error."""
    scale = RowScale(Magnitudes.of_columns(np.array([-1e100]), np.array([1e100])), 1, 0, False, 0.0)
    planes = np.array([[1.0]]), np.array([1.0]), np.array([[1e100, 0.0, 1.0]])
    assert dual_bound(*planes, np.array([0]), np.array([1.0]), 1.0, scale) == 0.0


def test_magnitudes():
    low, high = np.array([-1.0, 10.0]), np.array([3.0, 11.0])
    of_columns = Magnitudes.of_columns(low, high)
    assert of_columns.product(np.array([1.0, -2.0])) == pytest.approx(3.0 + 22.0)
    assert of_columns.radius == pytest.approx(np.hypot(2.0, 0.5))
    both = of_columns.union(Magnitudes.of_columns(low - 1.0, high - 1.0))
    assert both.low.tolist() == [-2.0, 9.0] and both.high.tolist() == [3.0, 11.0]
    of_norm = Magnitudes.of_norm(2.0, 5)
    assert of_norm.product(np.array([3.0, 4.0])) == pytest.approx(10.0)
    assert of_columns.union(of_norm).norm == of_columns.norm and of_columns.union(of_norm).low is None
    X = np.array([[0.0, 3.0], [4.0, 0.0]])
    from scipy.sparse import csr_matrix

    assert as_rows(csr_matrix(X)).magnitudes.norm == pytest.approx(4.0)
    twice = csr_matrix((np.array([3.0, 3.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    assert as_rows(twice).magnitudes.norm >= 6.0


# The objective


@pytest.mark.parametrize("offset", [1e6, 1e11, 1e15])
def test_the_objective_is_recomputed_where_scores_cancel(offset):
    rng = np.random.default_rng(0)
    X, a = offset + rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], size=40)
    oracle, w = Oracle(as_rows(X), Hinge(a), intercept=Intercept.FREE), np.array([1.0, -2.0, offset])
    found, scores = objective(oracle, w, 3.0), [dot(fractions(x), fractions(w[:2])) + Fraction(offset) for x in X]
    loss = sum(max(Fraction(0), 1 - Fraction(sign) * f) for sign, f in zip(a, scores, strict=True))
    exact = Fraction(5, 2) + 3 * loss
    assert abs(Fraction(found.primal) - exact) <= Fraction(found.error) + Fraction(1e-14) * exact
    assert abs(Fraction(found.primal) - exact) <= Fraction(1e-13) * exact


def test_the_objective_of_classes_and_pairs_where_scores_cancel():
    rng = np.random.default_rng(1)
    X, y = 1e12 + rng.normal(size=(20, 2)), (np.arange(20) % 3).astype(np.int32)
    W, b = np.array([[1.0, -2.0], [0.5, 0.25], [-1.0, 1.0]]), np.zeros(3)
    oracle = CrammerSingerOracle(as_rows(X), CrammerSinger(y, np.ones(20), 3))
    scores = [[dot(fractions(x), fractions(v)) for v in W] for x in X]
    loss = sum(max(int(k != label) + f[k] - f[label] for k in range(3)) for f, label in zip(scores, y, strict=True))
    found = objective(oracle, oracle.coordinates(W, b), 1.0)
    assert Fraction(found.primal) == pytest.approx(dot(fractions(W), fractions(W)) / 2 + loss, rel=1e-12)
    pairs, w = PairOracle(as_rows(X), Pairwise(y, np.ones(20), np.array([0, 20]))), fractions(W[0])
    f = [dot(fractions(x), w) for x in X]
    loss = sum(max(Fraction(0), 1 - (f[i] - f[j])) for i in range(20) for j in range(20) if y[i] > y[j])
    assert Fraction(objective(pairs, W[0], 1.0).primal) == pytest.approx(dot(w, w) / 2 + loss, rel=1e-12)


def exact_loss(loss, f):
    """The loss of scores that are Fractions, row by row."""
    if isinstance(loss, Hinge):
        return sum(abs(Fraction(a)) * max(0, 1 - (1 if a > 0 else -1) * v) for a, v in zip(loss.signed, f, strict=True))
    if isinstance(loss, CrammerSinger):
        rows = zip(loss.weights, loss.y, f, strict=True)
        return sum(Fraction(s) * max([0, *(1 + v[k] - v[y] for k in range(len(v)) if k != y)]) for s, y, v in rows)
    pairs = [(i, j) for i in range(len(f)) for j in range(len(f)) if loss.ranks[i] > loss.ranks[j]]
    return sum(Fraction(loss.weights[i]) * Fraction(loss.weights[j]) * max(0, 1 - f[i] + f[j]) for i, j in pairs)


@given(seed=seeds, n=st.integers(2, 12), decades=st.sampled_from([0, 3, 9, 15]))
@pytest.mark.parametrize("kind", ["hinge", "classes", "pairs"])
def test_losses_of_scores_in_twice_the_digits(kind, seed, n, decades):
    """Scores on the margin up to their last digits, and far from it: the loss is right to its own last digits."""
    rng = rng_of(seed)
    y, s = rng.integers(0, 3, size=n), 10.0 ** rng.uniform(-decades, decades, size=n)
    y[:2] = 0, 1
    shape = (n, 3) if kind == "classes" else (n,)
    f = rng.integers(-2, 3, size=shape) + rng.choice([0.0, 1e-9, 1e3], size=shape) * rng.normal(size=shape)
    rest = rng.uniform(-0.5, 0.5, size=shape) * np.spacing(f)
    loss = {
        "hinge": lambda: Hinge(np.where(y > 0, s, -s)),
        "classes": lambda: CrammerSinger(y, s, 3),
        "pairs": lambda: Pairwise(y, s, np.array([0, n])),
    }[kind]()
    sums = [Fraction(a) + Fraction(b) for a, b in zip(f.ravel().tolist(), rest.ravel().tolist(), strict=True)]
    sums = [sums[3 * i : 3 * i + 3] for i in range(n)] if kind == "classes" else sums
    exact = exact_loss(loss, sums)
    assert abs(Fraction(loss.precise(f, rest)) - exact) <= Fraction(1e-14) * exact
    assert loss.precise(f, rest, 1e-20) >= exact


@pytest.mark.slow
def test_rows_on_the_margin_up_to_rounding_have_no_loss():
    """A hard margin: with C = 1e15 a loss of one last digit for each row would be a tenth of the objective."""
    X, y = np.array([[0.1, 0.3], [-0.2, 0.7], [0.3, -0.1], [1.1, 0.9]]), np.array([0, 0, 1, 1])
    model = LinearSVC(1e15, solver="ocas").fit(X, y)
    assert model.converged_
    assert_honest(model, exact_objective(model, X, y, 1e15))


# Faults that were found in version 0.1


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["dcd", "ocas", "cpa", "accpm"])
def test_values_around_1e16_in_float32(solver):
    X, y = (np.random.default_rng(3).normal(size=(6, 5)) * 1e16).astype(np.float32), np.arange(6) % 2
    model = LinearSVC(233.0, solver=solver).fit(X, y)
    assert_honest(model, exact_objective(model, X, y, 233.0))


@pytest.mark.parametrize("solver", ["auto", "ocas", "cpa"])
def test_a_column_of_unix_times(solver):
    rng = np.random.default_rng(0)
    X = np.column_stack([1.7e9 + rng.normal(size=200), rng.normal(size=(200, 3))])
    y = (X[:, 1] + (X[:, 0] - 1.7e9) + 0.5 * rng.normal(size=200) > 0).astype(int)
    model = LinearSVC(1e6, solver=solver).fit(X, y)
    assert model.converged_
    assert_honest(model, exact_objective(model, X, y, 1e6))


def test_accpm_on_squares_of_values():
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rng.normal(size=(12, 3)) ** 2 * 10.0 ** rng.integers(0, 5, size=3)
        y = np.arange(12) % 2
        model = LinearSVC(1.0, solver="accpm", max_iter=2000).fit(X, y)
        exact = exact_objective(model, X, y, 1.0)
        assert Fraction(model.lower_bound_) <= exact
        assert model.converged_ == (model.gap_ <= model.tol)
        assert abs(Fraction(model.objective_) - exact) <= Fraction(1e-9) * exact


def test_weights_over_many_decades():
    """Bounds of three solvers against the best objective of any of them."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y, weights = rng.normal(size=(10, 5)), np.arange(10) % 2, 10.0 ** rng.uniform(-6, 6, size=10)
        models = [
            LinearSVC(1.9e7, solver=name, max_iter=500).fit(X, y, sample_weight=weights)
            for name in ("ocas", "cpa", "dcd")
        ]
        best = min(exact_objective(model, X, y, 1.9e7, weights) for model in models)
        for model in models:
            assert Fraction(model.lower_bound_) <= best
            assert all(Fraction(record["lower"]) <= best for record in model.history_)
            assert model.converged_ == (model.gap_ <= model.tol)


@pytest.mark.parametrize("offset", [2e9, 7e11])
@pytest.mark.parametrize("make", [LinearSVC, ROCAreaSVC, RankingSVM, OrdinalSVC])
def test_shifting_a_feature_keeps_the_optimum(make, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=60) > 0).astype(int)
    far = np.array([offset, 0.0, 0.0])
    shifted = X + far
    near = make(10.0, tol=1e-6).fit(shifted - far, y)  # the very same values, with the offset gone
    for solver in ("ocas", "cpa"):
        model = make(10.0, solver=solver).fit(shifted, y)
        assert model.converged_
        assert model.lower_bound_ <= near.objective_ * (1.0 + 1e-12)
        assert near.lower_bound_ <= model.objective_ * (1.0 + 1e-9)


def test_centring_does_not_show_in_the_model():
    """Several classes, one against the rest, a warm start, a path: the model is for the data as they were given."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=300), [-0.5, 0.5])
    far = np.array([0.0, 4e9, 0.0])
    shifted = np.asfortranarray(X + far)
    for params in ({}, {"multi_class": "ovr"}, {"warm_start": True}):
        model, plain = (LinearSVC(0.1, tol=1e-6, **params).fit(data, y) for data in (shifted, shifted - far))
        assert model.converged_ and model.objective_ == pytest.approx(plain.objective_, rel=1e-5)
        assert (model.predict(shifted) == plain.predict(shifted - far)).mean() > 0.99
        again = model.fit(shifted, y)
        assert again.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    two = (y > 0).astype(int)
    for model in linear_path(shifted, two, Cs=[0.01, 0.1, 1.0]):
        assert_honest(model, exact_objective(model, shifted, two, model.C))
    column = np.ones((300, 1))
    rows = as_rows(np.hstack([X, column]))
    assert rows.centred() == (rows, None)  # a constant of 1 takes no digits


def test_the_objective_at_every_point_of_a_path():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 4))
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(int)
    for model in linear_path(X, y, Cs=np.geomspace(1e-6, 1e3, 10)):
        exact = exact_objective(model, X, y, model.C)
        assert abs(Fraction(model.objective_) - exact) <= Fraction(1e-12) * exact


def test_warning_states_the_gap():
    """gap_ is relative to the objective reached; the message is relative to the lower bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    for iterations in (1, 4):
        with pytest.warns(UserWarning) as caught:
            model = LinearSVC(10.0, tol=1e-9, solver="cpa", max_iter=iterations).fit(X, y)
        text = str(caught[-1].message)
        if model.gap_ < 0.995:
            percent = float(text.split("within ")[1].split(" %")[0])
            assert percent == pytest.approx(100.0 * (model.objective_ / model.lower_bound_ - 1.0), rel=0.05)
        else:
            assert "nothing is proven" in text


def test_slowly_rising_bounds_count_as_stalled():
    progress = Progress()
    assert progress.stalled(1.0, 0.0) == 0
    assert [progress.stalled(1.0, 1e-9 * k) for k in range(1, 4)] == [1, 2, 3]
    assert progress.stalled(1.0, 1e-8, counts=False) == 3
    assert progress.stalled(0.9, 1e-8) == 0
