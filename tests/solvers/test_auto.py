"""Which solver is chosen, and how the choice is reported."""

import logging

import numpy as np
import pytest
from scipy import sparse

from cutsvm import LinearSVC
from cutsvm.matrix import SparseRows
from cutsvm.solvers import DCD, OCAS, Auto, Sifting
from cutsvm.solvers.protocol import new_context
from tests.support.problems import long_data, oracle_of


@pytest.mark.parametrize(
    ("n", "d", "C", "kind", "word"),
    [
        (1000, 5, 1e-4, OCAS, "few"),
        (120_000, 5, 10.0, Sifting, "120,000 rows"),
        (120_000, 5, 1e-9, Sifting, "5 features"),
        (20_000, 5, 0.01, DCD, "few epochs"),
        (20_000, 5, 100.0, OCAS, "too much for dcd"),
        (50_000, 5, 100.0, Sifting, "too much for dcd"),
        (50_000, 60, 1.0, Sifting, "too much for dcd"),
        (50_000, 60, 100.0, OCAS, "too few rows"),
    ],
)
def test_rules(n, d, C, kind, word):
    X, a = long_data(n, d)
    solver, note = Auto().choose(oracle_of(X, a), C)
    assert type(solver) is kind
    assert note.startswith(kind.__name__.lower() + ": ")
    assert word in note


@pytest.mark.parametrize(("intercept", "kind"), [("none", DCD), ("free", DCD), ("regularized", OCAS)])
def test_rows_shorter_than_the_feature_of_a_regularized_intercept(intercept, kind):
    """Coordinate descent on b alone is slow where C is large, whatever the rows are."""
    X, a = long_data(20_000, 5)
    solver, note = Auto().choose(oracle_of(1e-6 * X, a, intercept=intercept), 1e4)
    assert type(solver) is kind, note


TEXT = [(2000, 0.01, DCD), (2000, 0.2, OCAS), (200, 0.01, OCAS)]


@pytest.mark.parametrize(("d", "density", "kind"), TEXT)
@pytest.mark.parametrize("C", [1e-3, 1e3])
def test_text(d, density, kind, C):
    X = sparse.random(300, d, density, format="csr", random_state=0)
    a = np.where(np.arange(300) % 2, 1.0, -1.0)
    assert type(Auto().choose(oracle_of(X.toarray(), a, layout="csr"), C)[0]) is kind
    assert type(Auto().choose(oracle_of(X.toarray(), a), C)[0]) is OCAS
    model = LinearSVC(C=C).fit(X, a)
    assert model.converged_ and model.history_[0]["note"].startswith(kind.__name__.lower())


def test_heavy_rows_count_as_a_larger_C():
    X, a = long_data(20_000)
    assert type(Auto().choose(oracle_of(X, a), 0.5)[0]) is DCD
    assert type(Auto().choose(oracle_of(X, 1000 * a), 0.5)[0]) is OCAS


def test_mostly_zero_dense_data_become_sparse():
    X, a = long_data(6000, 100)
    X[:, 10:] = 0.0
    oracle = oracle_of(X, a)
    context = new_context(Auto(), oracle, [0.001])
    next(Auto()(context, 0.001))
    assert context.note.startswith("dcd")
    assert isinstance(context.oracle.matrix, SparseRows)
    assert context.oracle.matrix.entries == 60_000


def test_history_and_log_say_what_was_chosen(caplog):
    X, y = long_data(6000)
    with caplog.at_level(logging.INFO, logger="cutsvm"):
        model = LinearSVC(C=0.01, verbose=1).fit(X, y)
    note = model.history_[0]["note"]
    assert note.startswith("dcd: ")
    assert {record["note"] for record in model.history_} == {note}
    assert caplog.messages[0] == f"training by {note}"
    assert sum(note in message for message in caplog.messages) == 1
    assert LinearSVC(C=0.01, solver="ocas").fit(X, y).history_[0]["note"] == ""


@pytest.mark.parametrize("solver", ["ocas", "sifting", "dcd", "cpa", "accpm", "auto"])
def test_every_solver_name_converges(solver):
    X, y = long_data(6000)
    model = LinearSVC(C=0.001, solver=solver, n_jobs=2).fit(X, y)
    assert model.converged_
    assert model.gap_ <= 1e-3
    last = model.history_[-1]
    assert last["visits"] >= last["passes"] >= 1
    assert np.isclose(model.objective_, LinearSVC(C=0.001, solver="ocas", tol=1e-4).fit(X, y).objective_, rtol=2e-3)
