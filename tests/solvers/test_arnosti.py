"""OCAS with Arnosti's searches and guards against a literal transcription of the paper: whole runs."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from cutsvm.problem.planes import Bundle
from cutsvm.solvers import OCAS
from cutsvm.solvers.cutting_planes import PlaneSettings
from tests.support.problems import iterates, long_data, many_classes, multiclass_oracle_of, oracle_of
from tests.support.reference import arnosti as paper

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
