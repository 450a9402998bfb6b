"""LinearSVCCV and LinearSVRCV on collections: the same choice as fold by fold, and the same bits for any parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold

from cutsvm import LinearSVC, LinearSVCCV, LinearSVR, LinearSVRCV, linear_path
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.folds import FoldParts, RowFolds, find_folds
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, open_parts
from cutsvm.driver.records import Stop
from cutsvm.driver.run import run
from cutsvm.problem.loss_makers import BinaryMaker
from cutsvm.problem.losses import Hinge
from cutsvm.problem.losses.smooth import Logistic
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.parted import PartedRows, parted_oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.line_batches import Batched

SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=16, least=8))


def rows(n=9000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.3 + rng.normal(size=n), rng.random(n) * (rng.random(n) < 0.9)


def collection(X, y, weights=None, parts=3, n_jobs=1):
    return of_arrays(Local(n_jobs), split_arrays(X, y, weights, parts=parts))


def named(f, classes):
    return np.array(["low", "middle", "top"])[np.digitize(f, [0.0, 1.5][: classes - 1])]


@pytest.mark.parametrize(
    ("classes", "weighted", "options"),
    [(2, True, {}), (2, False, {"loss": "squared_hinge"}), (3, True, {"class_weight": "balanced"})],
)
def test_scores_are_those_of_the_folds(classes, weighted, options):
    """By fits of the same folds in memory; their models are within tol, so that some rows near 0 may differ."""
    X, f, weights = rows(5000)
    y, weights = named(f, classes), weights if weighted else None
    model = LinearSVCCV(Cs=3, cv=3, **options).fit(collection(X, y, weights))
    here = LinearSVCCV(Cs=3, cv=3, **options).fit(X, y, weights)
    np.testing.assert_allclose(model.Cs_, here.Cs_, rtol=2e-6)
    assert model.gaps_.max() <= 1e-3 and model.scores_.shape == (3, 3)
    held_out = RowFolds(3, len(y), shuffled=True).of(np.arange(len(y)))
    for fold in range(3):
        train, test = held_out != fold, held_out == fold
        own = LinearSVC(C=model.Cs_[-1], **options).fit(X[train], y[train], None if weights is None else weights[train])
        score = own.score(X[test], y[test], None if weights is None else weights[test])
        assert model.scores_[fold, -1] == pytest.approx(score, abs=0.01)
    for there, own in zip(model.path_, here.path_, strict=True):
        assert there.lower_bound_ <= own.objective_ * (1 + 1e-5) and own.lower_bound_ <= there.objective_ * (1 + 1e-5)
    assert model.C_ in model.Cs_ and model.coef_ is not None
    np.testing.assert_array_equal(model.classes_, here.classes_)
    assert not hasattr(model, "held_out_scores_")


@settings(max_examples=8)
@given(
    many=st.integers(2, 5), power=st.integers(-3, 2), seed=st.integers(0, 1000), make=st.sampled_from([Hinge, Logistic])
)
def test_bounds_of_folds_hold(many, power, seed, make):
    """Against fits of the rows that a fold is trained on, in memory."""
    X, f, weights = rows(300, 3, seed)
    y, C, fold = (f > 0.0).astype(int), 10.0**power, seed % many
    parts = open_parts(split_arrays(X, y, weights, parts=3), settings=SMALL)
    folds = RowFolds(many, 300, shuffled=True)
    own = FoldParts.of(parts, parts.executor, folds, fold, find_folds(parts, folds, "classes").trained(fold))
    maker = BinaryMaker(np.array([0, 1]), np.ones(2), make, 1)
    found = run(Batched(), parted_oracle(Oracle, PartedRows(own), maker, Intercept.FREE), C, Stop(1e-4, 300, None))
    train = folds.of(np.arange(300)) != fold
    loss = "hinge" if make is Hinge else "logistic"
    best = LinearSVC(C=C, loss=loss, tol=1e-8).fit(X[train], y[train], weights[train])
    assert found.status.converged
    assert found.lower <= best.objective_ * (1 + 1e-12) and best.lower_bound_ <= found.primal * (1 + 1e-12)


def test_the_same_bits_for_any_parts_and_as_a_path_alone():
    X, f, weights = rows()
    y = named(f, 2)
    models = [
        LinearSVCCV(Cs=3, cv=3, n_jobs=n_jobs).fit(collection(X, y, weights, parts, n_jobs))
        for parts, n_jobs in ((3, 1), (1, 2), ([5, 4000], 1))
    ]
    first = models[0]
    for model in models[1:]:
        np.testing.assert_array_equal(model.scores_, first.scores_)
        np.testing.assert_array_equal(model.gaps_, first.gaps_)
        np.testing.assert_array_equal(model.coef_, first.coef_)
    alone = linear_path(collection(X, y, weights), Cs=3)
    for own, other in zip(first.path_, alone, strict=True):
        assert (own.C, own.objective_, own.lower_bound_) == (other.C, other.objective_, other.lower_bound_)
        np.testing.assert_array_equal(own.coef_, other.coef_)


def test_readings_are_shared():
    X, f, _ = rows()
    given = collection(X, named(f, 2))
    model = LinearSVCCV(Cs=3, cv=4).fit(given)
    reads = model.reads_
    assert reads.requested_passes > 3 * reads.passes
    # The first reading, of the facts, is before.
    assert model.cluster_["reads"] == given.executor.traffic.reads == reads.passes + 1
    assert model.cluster_["engine"] == "local"


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_numbers_are_those_in_memory(weighted):
    X, f, weights = rows()
    weights = weights if weighted else None
    options = {"Cs": 3, "cv": 3, "loss": "huber", "epsilon": 0.5}
    here = LinearSVRCV(**options).fit(X, f, weights)
    there = LinearSVRCV(**options).fit(collection(X, f, weights))
    np.testing.assert_allclose(there.Cs_, here.Cs_, rtol=2e-6)
    np.testing.assert_allclose(there.scores_[:, 1:], here.scores_[:, 1:], atol=2e-3)
    assert there.path_[1].objective_ == pytest.approx(here.path_[1].objective_, rel=2e-3)


def test_without_a_last_fit():
    X, f, _ = rows(2000)
    model = LinearSVRCV(Cs=[0.01, 1.0], cv=2, refit=False).fit(collection(X, f))
    assert model.scores_.shape == (2, 2) and not hasattr(model, "coef_")


def test_paths_of_collections_have_the_grid_in_memory():
    X, f, weights = rows(2000)
    there = linear_path(collection(X, f, weights), Cs=3, estimator=LinearSVR())
    here = linear_path(X, f, Cs=3, estimator=LinearSVR(), sample_weight=weights)
    np.testing.assert_allclose([own.C for own in there], [own.C for own in here], rtol=2e-6)


def test_what_is_refused():
    X, f, _ = rows(300)
    y = named(f, 2)
    given = collection(X, y)
    with pytest.raises(ValueError, match=r"cv=GroupKFold.*number of folds"):
        LinearSVCCV(cv=GroupKFold(2)).fit(given)
    with pytest.raises(ValueError, match="leave groups out"):
        LinearSVCCV().fit(given, groups=np.arange(300))
    with pytest.raises(ValueError, match=r"scoring='roc_auc'.*expected None or 'accuracy'"):
        LinearSVCCV(scoring="roc_auc").fit(given)
    with pytest.raises(ValueError, match=r"scoring='neg_mean_absolute_error'.*'r2'"):
        LinearSVRCV(scoring="neg_mean_absolute_error").fit(collection(X, f))
    with pytest.raises(ValueError, match=r"fold \d+ of 100 holds out no rows"):
        LinearSVCCV(cv=100, Cs=[1.0]).fit(given)
    few = y.copy()
    few[:] = "low"
    few[0] = "top"
    with pytest.raises(ValueError, match=r"fold .: all rows to train on are of one class, 'low'"):
        LinearSVCCV(cv=3, Cs=[1.0]).fit(collection(X, few))


def test_a_callback_ends_all_fits():
    X, f, _ = rows(2000)
    calls = []
    with pytest.warns(UserWarning, match="callback"):
        model = LinearSVCCV(Cs=3, cv=3, callbacks=[lambda record: calls.append(record) or len(calls) > 5]).fit(
            collection(X, named(f, 2))
        )
    assert model.scores_.shape == (3, 3) and not model.converged_


def test_the_same_bits_on_worker_processes(dask_client):
    da = pytest.importorskip("dask.array")
    X, f, weights = rows()
    y = named(f, 2)
    given = [da.from_array(own, chunks=(2500, *own.shape[1:])) for own in (X, y, weights)]
    with dask_client.as_current():
        there = LinearSVCCV(Cs=[0.001, 0.1], cv=2).fit(*given)
    here = LinearSVCCV(Cs=[0.001, 0.1], cv=2).fit(collection(X, y, weights))
    assert there.cluster_["engine"] == "dask"
    for name in ("scores_", "gaps_", "coef_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
