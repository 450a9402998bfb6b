"""KernelSVC: limits that end a fit early, and invalid input."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from cutsvm import KernelSVC, Status
from cutsvm.kernel_machines import ISDA, SGD, MinNorm
from cutsvm.kernel_machines.l2 import L2Settings
from cutsvm.kernel_machines.sgd import SGDSettings

SOLVERS = ["exact", "sgd", "isda", "min_norm"]
SHORT_ROUNDS = L2Settings(steps_per_round=20)
DUAL_METHODS = [ISDA(settings=SHORT_ROUNDS), MinNorm(settings=SHORT_ROUNDS)]


@pytest.fixture(scope="module")
def three():
    """Three classes that overlap."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, size=150)
    return rng.normal(size=(150, 3)) + np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 2.0, 1.0]])[y], y


def usable(model, X, y):
    """A model with a certificate that predicts no worse than chance."""
    assert not model.converged_
    assert 0.0 <= model.lower_bound_ <= model.objective_ and 0.0 <= model.gap_ <= 1.0
    assert np.isfinite(model.decision_function(X)).all()
    return model.score(X, y) > 0.4


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("limit", [None, "10kB"], ids=["whole", "streamed"])
def test_max_time_of_sgd(limit, kernel, three):
    solver = SGD(settings=SGDSettings(block_rows=20, linear_steps=50))
    X, y = three
    X = X @ X.T if kernel == "precomputed" else X
    with pytest.warns(ConvergenceWarning, match=r"the time limit was reached.*raise max_time") as caught:
        model = KernelSVC(kernel=kernel, solver=solver, max_time=1e-9, memory_limit=limit, random_state=0).fit(X, y)
    assert len(caught) == 1
    assert model.status_ is Status.MAX_TIME
    assert usable(model, X, y) or kernel == "linear"  # that one had begun with one pair only


def test_max_time_after_the_last_step_is_no_interruption(three):
    X, y = three
    plain, late = (KernelSVC(solver="sgd", epochs=1, certify=False, max_time=limit).fit(X, y) for limit in (None, 1e-9))
    assert late.status_ is Status.EPOCHS  # all its steps are in one block
    assert_array_equal(late.dual_coef_, plain.dual_coef_)


@pytest.mark.parametrize("limit", [None, 4 * 120 * 120], ids=["whole", "by pair"])
@pytest.mark.parametrize("solver", DUAL_METHODS, ids=repr)
@pytest.mark.parametrize(
    ("params", "status", "advice"),
    [({"max_time": 1e-9}, Status.MAX_TIME, "raise max_time"), ({"max_iter": 1}, Status.MAX_ITER, "raise max_iter")],
)
def test_limits_of_the_dual_methods(params, status, advice, solver, limit, three):
    X, y = three
    with pytest.warns(ConvergenceWarning, match=advice) as caught:
        model = KernelSVC(solver=solver, tol=1e-6, memory_limit=limit, **params).fit(X, y)
    assert len(caught) == 1
    assert f"{model.gap_:.2g}" in str(caught[0].message)
    assert model.status_ is status
    assert usable(model, X, y) or "max_time" in params  # with no time at all every row is of class 0
    if "max_time" in params:
        assert len(model.support_) == 0 and model.gap_ == 1.0
        assert_array_equal(model.predict(X), 0)


def interrupted_after(count, epochs):
    """The generator, with Ctrl-C after so many steps."""

    def interrupted(*args):
        for k, step in enumerate(epochs(*args)):
            if k == count:
                raise KeyboardInterrupt
            yield step

    return interrupted


@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize("limit", [None, "10kB"], ids=["whole", "streamed"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_ctrl_c_in_sgd(kernel, limit, certify, three, monkeypatch):
    """It comes after the steps of a block."""
    for name in ("_epochs", "_linear_epochs"):
        monkeypatch.setattr(SGD, name, interrupted_after(5, getattr(SGD, name)))
    X, y = three
    solver = SGD(settings=SGDSettings(block_rows=20, linear_steps=700))
    params = {"solver": solver, "memory_limit": limit, "certify": certify, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="interrupted; the best model so far is kept") as caught:
        model = KernelSVC(kernel=kernel, **params).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    if certify:
        assert usable(model, X, y)
    else:
        assert np.isnan([model.objective_, model.lower_bound_, model.gap_]).all() and not model.converged_
        assert "How good the model is was not computed, as certify=False says." in str(caught[0].message)
        assert model.score(X, y) > 0.4


@pytest.mark.parametrize("limit", [None, 4 * 120 * 120], ids=["whole", "by pair"])
@pytest.mark.parametrize("solver", DUAL_METHODS, ids=repr)
@pytest.mark.parametrize("how", [Status.INTERRUPTED, Status.CALLBACK])
def test_ctrl_c_and_callbacks_end_a_dual_method(how, solver, limit, three):
    """An interruption of one pair of classes ends all pairs."""
    X, y = three
    seen = []

    def end(record):
        seen.append(record)
        if record.iteration < 3:
            return False
        if how is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return True

    with pytest.warns(ConvergenceWarning, match=how.value):
        model = KernelSVC(solver=solver, tol=1e-9, memory_limit=limit, callbacks=[end]).fit(X, y)
    assert model.status_ is how
    usable(model, X, y)
    assert [record.to_dict() for record in seen] == model.history_
    assert [record.iteration for record in seen] == ([0, 1, 2, 3] if limit is None else [0, 1, 2, 3, 0, 0])


@pytest.mark.parametrize("solver", ["sgd", *DUAL_METHODS], ids=str)
def test_history(solver, three):
    X, y = three
    seen = []
    model = KernelSVC(solver=solver, callbacks=[seen.append], random_state=0).fit(X, y)
    assert [record.to_dict() for record in seen] == model.history_
    for record in model.history_:
        assert 0.0 <= record["lower"] <= model.objective_
        assert record["primal"] >= model.lower_bound_
    assert model.n_iter_ == (seen[-1].iteration if solver == "sgd" else len(seen) - 1)
    assert solver != "sgd" or model.n_iter_ > 20


def test_without_a_certificate(three):
    X, y = three
    with pytest.warns(ConvergenceWarning, match="the epochs asked for are done"):
        proven = KernelSVC(solver="sgd", epochs=20).fit(X, y)
    quick = KernelSVC(solver="sgd", certify=False).fit(X, y)  # who does not ask is not told
    assert_array_equal(proven.dual_coef_, quick.dual_coef_)
    assert np.isnan([quick.objective_, quick.lower_bound_, quick.gap_]).all()
    assert not quick.converged_ and quick.status_ is Status.EPOCHS and quick.history_ == []
    for solver in ("isda", "exact"):
        assert KernelSVC(certify=False, solver=solver).fit(X, y).gap_ <= 1e-3  # they know anyway


def test_kernel_values_equal_in_float32(three):
    """The certificate is in float64: where float32 kernel values do not allow tol, the fit warns."""
    X, y = three
    with pytest.warns(ConvergenceWarning, match="rounding errors do not allow a smaller gap.*raise tol"):
        model = KernelSVC(1e4, solver="isda", gamma=0.01, tol=1e-9, max_iter=200).fit(X[:30], y[:30] > 0)
    assert model.status_ is Status.PRECISION and model.gap_ > 1e-9


@pytest.mark.parametrize("solver", ["isda", "min_norm"])
def test_bounds_hold_where_float32_is_too_coarse(solver):
    """With a large C the rounded matrix is not a kernel's any more: its own dual would claim 4 % too much."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.5
    with pytest.warns(ConvergenceWarning, match="rounding errors"):
        model = KernelSVC(1e6, solver=solver, gamma=0.05).fit(X, y)
    assert model.lower_bound_ == max(record["lower"] for record in model.history_)
    assert all(record["lower"] <= model.objective_ for record in model.history_)
    assert all(record["primal"] >= model.lower_bound_ for record in model.history_)


def test_degenerate_data_converge():
    """All-zero rows, one feature, repeated rows: a model, with its certificate."""
    for X in (np.zeros((6, 2)), np.ones((6, 1)), np.repeat([[1.0], [2.0]], 3, axis=0), np.eye(6)):
        for solver in SOLVERS:
            for kernel in ("rbf", "poly", "linear"):
                model = KernelSVC(solver=solver, kernel=kernel, random_state=0).fit(X, [0, 1, 0, 1, 1, 1])
                close = 0.1 if not X.any() else 1.0  # where any w will do, sgd is there as well
                assert 0.0 <= model.gap_ <= (close if solver == "sgd" else 1.05e-3)
                assert np.isfinite(model.decision_function(X)).all()


def test_overflow_raises():
    X = np.array([[1e200, 1.0], [-1e200, 2.0], [1e200, 3.0], [-1e200, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(FloatingPointError, match="scale the features"):
            KernelSVC(kernel="poly", gamma=1.0).fit(X, [0, 1, 0, 1])


LIMIT = 'expected bytes as a whole number, or text as "300MB", "2GB" or "auto"'
BAD_PARAMS = [
    ({"C": 0}, "C=0: expected a finite number above 0"),
    ({"C": -1.0}, "C=-1.0: expected a finite number above 0"),
    ({"C": np.inf}, "C=inf: expected a finite number above 0"),
    ({"gamma": 0.0}, "gamma=0.0: expected a finite number above 0"),
    ({"gamma": -2}, "gamma=-2: expected a finite number above 0"),
    ({"gamma": "large"}, "gamma='large': expected one of 'scale', 'auto'"),
    (
        {"kernel": "cosine"},
        "kernel='cosine': expected one of 'rbf', 'poly', 'linear', 'sigmoid', 'precomputed', or a function "
        "kernel(X, Z) of two matrices of rows",
    ),
    ({"solver": "smo"}, "solver='smo': expected one of 'auto', 'exact', 'sgd', 'isda', 'min_norm', or a solver object"),
    ({"solver": None}, "solver=None: expected one of 'auto', 'exact', 'sgd', 'isda', 'min_norm', or a solver object"),
    ({"epochs": 0}, "epochs=0: expected a whole number, at least 1"),
    ({"epochs": 1.5}, "epochs=1.5: expected a whole number, at least 1"),
    ({"average": 2}, "average=2: expected a number from 0 to 1"),
    ({"average": -0.1}, "average=-0.1: expected a number from 0 to 1"),
    ({"degree": 0}, "degree=0: expected a whole number, at least 1"),
    ({"degree": 2.5}, "degree=2.5: expected a whole number, at least 1"),
    ({"coef0": np.nan}, "coef0=nan: expected a finite number"),
    ({"tol": 0.0}, "tol=0.0: expected a finite number above 0"),
    ({"max_iter": 0}, "max_iter=0: expected a whole number, at least 1"),
    ({"max_time": 0}, "max_time=0: expected a finite number above 0"),
    ({"memory_limit": "much"}, f"memory_limit='much': {LIMIT}"),
    ({"memory_limit": 0}, f"memory_limit=0: {LIMIT}, above 0"),
    ({"class_weight": {9: 1.0}}, "class_weight names 9, which is not a class; the classes are [0, 1, 2]"),
    ({"class_weight": {1: 0.0}}, "class_weight[1]=0.0: expected a finite number above 0"),
    ({"class_weight": "heavy"}, "class_weight='heavy': expected None, \"balanced\" or a dict"),
]


@pytest.mark.parametrize(("params", "message"), BAD_PARAMS, ids=[str(params) for params, _ in BAD_PARAMS])
def test_bad_parameters(params, message, three):
    with pytest.raises(ValueError) as caught:
        KernelSVC(**params).fit(*three)
    assert str(caught.value) == message


X0, Y0 = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
HOLE = np.where(X0 == 3.0, np.nan, X0)
PLACE = "row 1 column 1 (counted from 0)"
SQUARE = "X.shape == (4, 2): expected a square matrix, the kernel values of the training rows with each other"
ONE = "KernelSVC needs rows of at least 2 classes; there is only one class with weight: 1"
BAD_DATA = [
    ("NaN", {}, (HOLE, Y0), f"Input X contains NaN: {PLACE}"),
    ("NaN in CSR", {}, (sparse.csr_matrix(HOLE), Y0), f"Input X contains NaN: {PLACE}"),
    ("infinity", {}, (np.where(X0 == 3.0, np.inf, X0), Y0), f"Input X contains infinity: {PLACE}"),
    ("one class", {}, (X0, np.ones(4, dtype=int)), ONE),
    ("not square", {"kernel": "precomputed"}, (X0, Y0), SQUARE),
    ("not square, CSR", {"kernel": "precomputed"}, (sparse.csr_matrix(X0), Y0), SQUARE),
    ("lengths differ", {}, (X0, Y0[:3]), "Found input variables with inconsistent numbers of samples: [4, 3]"),
]


@pytest.mark.parametrize(("params", "data", "message"), [row[1:] for row in BAD_DATA], ids=[row[0] for row in BAD_DATA])
def test_bad_data(params, data, message):
    with pytest.raises(ValueError) as caught:
        KernelSVC(**params).fit(*data)
    assert str(caught.value) == message


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_rows_of_the_wrong_width_raise(kernel):
    with pytest.raises(NotFittedError):
        KernelSVC(kernel=kernel).predict(X0)
    model = KernelSVC(kernel=kernel).fit(X0 @ X0.T, Y0)
    with pytest.raises(ValueError, match="X has 2 features, but KernelSVC is expecting 4 features"):
        model.predict(X0)
    with pytest.raises(ValueError, match="NaN"):
        model.decision_function(np.full((1, 4), np.nan))


def test_class_with_one_row():
    model = KernelSVC(random_state=0).fit(X0, [0, 0, 1, 2])
    assert model.dual_coef_.shape[0] == 2 and set(model.predict(X0)) <= {0, 1, 2}
