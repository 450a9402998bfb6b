"""Nested cross-validation: equal to separate fits, with kernel values shared or not; bad input."""

from functools import partial

import matplotlib
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, StratifiedKFold

import cutsvm.estimators.model_selection as selection
from cutsvm import KernelSVC, nested_cross_validate
from cutsvm.display.progress import CountBar
from cutsvm.kernel_machines import ISDA, SGD, MinNorm

matplotlib.use("Agg")
GRID = {"C": [0.5, 8.0], "gamma": [0.1, 1.0, 4.0]}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def by_hand(X, y, grid, estimator, outer, inner):
    """The scores of all combinations and the accuracies of the best, with a fit for each."""
    combinations = [{"C": C, "gamma": gamma} for C in grid["C"] for gamma in grid["gamma"]]
    scores, accuracy = [], []
    for train, test in outer.split(X, y):
        means = []
        for params in combinations:
            model = KernelSVC(**{**estimator.get_params(), **params})
            parts = list(inner.split(X[train], y[train]))
            hits = [model.fit(X[train][a], y[train][a]).score(X[train][b], y[train][b]) for a, b in parts]
            means.append(np.mean(hits))
        scores.append(means)
        best = KernelSVC(**{**estimator.get_params(), **combinations[int(np.argmax(means))]})
        accuracy.append(best.fit(X[train], y[train]).score(X[test], y[test]))
    return np.array(scores), np.array(accuracy)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", ["isda", "min_norm", ISDA("regularized"), MinNorm("regularized")], ids=str)
def test_equals_separate_fits(iris, solver, intercept):
    # These solvers have one answer, whatever the order of rows is.
    X, y = iris
    outer, inner = (StratifiedKFold(3, shuffle=True, random_state=seed) for seed in (0, 1))
    estimator = KernelSVC(solver=solver, fit_intercept=intercept, tol=1e-6)
    found = nested_cross_validate(X, y, param_grid=GRID, outer=outer, inner=inner, estimator=estimator)
    scores, accuracy = by_hand(X, y, GRID, estimator, outer, inner)
    np.testing.assert_allclose(found.scores, scores, atol=1e-12)
    np.testing.assert_allclose(found.accuracy, accuracy, atol=1e-12)


@pytest.mark.parametrize("solver", ["sgd", SGD(), SGD(C_times="mean")], ids=str)
def test_sgd_in_a_fold_equals_a_fit_in_the_same_order(iris, monkeypatch, solver):
    # With rows in the order of the data, in a fold as in a fit: two rows are alike, of which a fit would make one.
    X, y = iris
    order = np.random.default_rng(0).permutation(np.unique(X, axis=0, return_index=True)[1])
    X, y = X[order], y[order]
    monkeypatch.setattr("cutsvm.estimators.kernel.check_random_state", lambda _: InOrder())
    monkeypatch.setattr("cutsvm.estimators.model_selection.check_random_state", lambda _: InOrder())
    # Rows are sorted by class before they are split, so that the folds are those of the sorted rows.
    sort = np.argsort(y, kind="stable")
    outer, inner = Given(KFold(3, shuffle=True, random_state=0)), Given(KFold(2, shuffle=True, random_state=0))
    estimator = KernelSVC(epochs=3, certify=False, solver=solver)
    found = nested_cross_validate(X, y, param_grid=GRID, outer=outer, inner=inner, estimator=estimator)
    scores, accuracy = [], []
    combinations = [{"C": C, "gamma": gamma} for C in GRID["C"] for gamma in GRID["gamma"]]
    for train, test in outer.split(X[sort], y[sort]):
        inside = [np.sort(sort[train][a]) for a, _ in inner.split(train, train)]
        outside = [sort[train][b] for _, b in inner.split(train, train)]
        means = [
            np.mean(
                [fit(estimator, params, X[a], y[a]).score(X[b], y[b]) for a, b in zip(inside, outside, strict=True)]
            )
            for params in combinations
        ]
        scores.append(means)
        best = combinations[int(np.argmax(means))]
        rows = np.sort(sort[train])
        accuracy.append(fit(estimator, best, X[rows], y[rows]).score(X[sort[test]], y[sort[test]]))
    np.testing.assert_allclose(found.scores, scores, atol=1e-12)
    np.testing.assert_allclose(found.accuracy, accuracy, atol=1e-12)


def fit(estimator, params, X, y):
    return KernelSVC(**{**estimator.get_params(), **params}).fit(X, y)


class InOrder:
    """A source of permutations that leaves everything where it is."""

    def permutation(self, n):
        return np.arange(n)

    def randint(self, most):
        return 0


class Given:
    """A splitter that uses only the number of rows."""

    def __init__(self, folds):
        self.folds = folds

    def split(self, X, y=None):
        return self.folds.split(np.zeros(len(X)))


@pytest.mark.parametrize("solver", ["sgd", "isda", SGD(order="random")], ids=str)
def test_result_does_not_depend_on_threads_or_batches(iris, solver, monkeypatch):
    X, y = iris
    arguments = {"param_grid": GRID, "estimator": KernelSVC(solver=solver), "random_state": 3}
    one = nested_cross_validate(X, y, n_jobs=1, **arguments)
    two = nested_cross_validate(X, y, n_jobs=2, **arguments)
    monkeypatch.setattr(selection, "_Search", partial(selection._Search, batch_rows=1))
    one_by_one = nested_cross_validate(X, y, **arguments)
    for other in (two, one_by_one):
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.accuracy, other.accuracy)


def test_more_values_of_C_than_one_batch(iris):
    X, y = iris
    Cs = [2.0**k for k in range(-4, 7)][::-1]
    many = nested_cross_validate(X, y, param_grid={"C": Cs, "gamma": [1.0]}, random_state=0)
    for k in (0, 5, 10):
        one = nested_cross_validate(X, y, param_grid={"C": [Cs[k]], "gamma": [1.0]}, random_state=0)
        np.testing.assert_array_equal(many.scores[:, k], one.scores[:, 0])


def test_dense_sparse_and_precomputed_agree(iris):
    X, y = iris
    arguments = {"outer": 3, "inner": 2, "random_state": 0}
    dense = nested_cross_validate(X, y, param_grid={"C": [1.0, 4.0], "gamma": [2.0]}, **arguments)
    csr = nested_cross_validate(sparse.csr_array(X), y, param_grid={"C": [1.0, 4.0], "gamma": [2.0]}, **arguments)
    given = nested_cross_validate(
        rbf_kernel(X, gamma=2.0),
        y,
        param_grid={"C": [1.0, 4.0]},
        estimator=KernelSVC(kernel="precomputed"),
        **arguments,
    )
    np.testing.assert_array_equal(dense.scores, csr.scores)
    np.testing.assert_array_equal(dense.scores, given.scores)


def test_other_parameters_can_be_chosen(iris):
    X, y = iris
    grid = {"kernel": ["rbf", "poly"], "epochs": [1, 5], "class_weight": [None, "balanced"], "C": [1.0]}
    found = nested_cross_validate(
        X, y, param_grid=grid, outer=3, inner=2, estimator=KernelSVC(coef0=1.0), random_state=0
    )
    assert len(found.params) == 8 and set(found.best_params[0]) == set(grid)
    assert found.mean > 0.8


def test_the_result_as_table_frame_and_picture(iris, tmp_path):
    X, y = iris
    found = nested_cross_validate(X, y, param_grid=GRID, random_state=0)
    assert str(found).splitlines()[0].split() == ["fold", "accuracy", "inner_accuracy", "C", "gamma"]
    assert len(found.to_frame()) == 5 and list(found.to_frame().columns) == ["accuracy", "inner_accuracy", "C", "gamma"]
    assert found.seconds > 0 and set(found.parts) == {"kernel", "training", "voting"}
    axes = found.plot_grid()
    assert axes.get_xlabel() == "gamma" and axes.get_ylabel() == "C"
    again = matplotlib.figure.Figure().subplots()
    assert found.plot_grid(ax=again) is again
    one = nested_cross_validate(X, y, param_grid={"C": [1.0, 2.0]}, outer=2, inner=2, random_state=0)
    with pytest.raises(ValueError, match="two parameters with several values"):
        one.plot_grid()


def test_progress_bar_shows_the_remaining_time(iris, capsys):
    X, y = iris
    nested_cross_validate(X, y, param_grid=GRID, outer=2, inner=2, verbose=1)
    assert "nested cross-validation: 100 %" in capsys.readouterr().err
    bar = CountBar("counting", every=0.0)
    bar._began -= 10.0
    bar(1, 4)
    bar.close()
    assert "25 %" in (shown := capsys.readouterr().err) and "about 30 s left" in shown


def test_a_class_with_fewer_rows_than_folds(iris):
    X, y = iris
    y = np.where(np.arange(len(y)) == 7, 3, y)  # a class of one row
    with pytest.warns(UserWarning) as said:
        found = nested_cross_validate(X, y, param_grid=GRID, random_state=0)
    assert "outer folds: a class has 1 rows, fewer than the 5 folds" in str(said[0].message)
    assert found.mean > 0.85


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"param_grid": {}}, "param_grid: expected a dict"),
        ({"param_grid": {"C": []}}, r"param_grid\['C'\]=\[\]: expected a list"),
        ({"param_grid": {"C": 1.0}}, r"param_grid\['C'\]=1.0: expected a list"),
        ({"param_grid": {"D": [1]}}, "param_grid names 'D'"),
        ({"param_grid": {"gamma": [1.0, 0.0]}}, "gamma=0.0: expected a finite number above 0"),
        ({"outer": 1}, "outer=1: expected a whole number, at least 2"),
        ({"inner": 0}, "inner=0: expected a whole number, at least 2"),
        ({"outer": 60}, "outer folds: 60 are more than any class has rows"),
        ({"estimator": KernelSVC(memory_limit="100kB")}, "the kernel values of 150 rows take 180 kB"),
        ({"y": np.zeros(150)}, "at least 2 classes"),
        ({"estimator": KernelSVC(kernel="precomputed")}, "expected a square matrix"),
    ],
)
def test_bad_input(iris, change, message):
    arguments = {"y": iris[1], "param_grid": GRID} | change
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(iris[0], **arguments)


def test_folds_with_one_class_raise():
    X, y = make_classification(40, random_state=0)
    y = np.sort(y)  # sorted rows in unshuffled folds
    with pytest.raises(ValueError, match="outer fold 0, inner fold 0: its training part has rows of one class only"):
        nested_cross_validate(X, y, param_grid=GRID, outer=KFold(2), inner=KFold(2))


def test_other_estimators_raise(iris):
    from sklearn.svm import SVC

    with pytest.raises(TypeError, match="GridSearchCV inside"):
        nested_cross_validate(*iris, param_grid=GRID, estimator=SVC())
