"""C chosen from a store: the folds, scores and bounds of a choice in memory, shared reads, interruption, errors."""

import signal
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold

from cutsvm import LinearSVC, LinearSVCCV, LinearSVRCV, Status, convert, linear_path
from cutsvm._utils.threads import ThreadPool
from cutsvm.estimators._choice_on_disk import ScoringSettings
from cutsvm.estimators._folds import folds_of, held_out_rows
from tests.support.signals import sigint_interrupts

CS, ROWS = [1e-3, 1e-2, 0.3], 1500


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """X, and labels and weights with a store of each kind."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("choice")
    X = rng.normal(size=(ROWS, 5))
    value = X @ rng.normal(size=5) + rng.normal(size=ROWS)
    weights = rng.integers(0, 3, ROWS).astype(float)
    labels = {
        "two": np.where(value > 0, "yes", "no"),
        "three": np.digitize(value, [-1.0, 1.0]),
        "numbers": value,
        "weighted": (value > 0).astype(int),
    }
    for name, y in labels.items():
        rows = csr_matrix(X) if name == "three" else X
        convert((rows, y), folder / name, weight=weights if name == "weighted" else None, block_bytes=15_000)
    return X, labels, weights, folder


def kind_of(name):
    return LinearSVRCV if name == "numbers" else LinearSVCCV


@pytest.mark.parametrize(
    ("name", "scoring"),
    [
        ("two", None),
        ("two", "roc_auc"),
        ("three", None),
        ("numbers", None),
        ("numbers", "neg_mean_absolute_error"),
        ("weighted", None),
        ("weighted", "f1"),
    ],
)
def test_as_in_memory(stores, name, scoring):
    X, labels, weights, folder = stores
    params = {"cv": 3, "scoring": scoring, "tol": 1e-6}
    weights = {"sample_weight": weights} if name == "weighted" else {}
    here = kind_of(name)(CS, **params).fit(X, labels[name], **weights)
    there = kind_of(name)(CS, memory_limit="1GB", **params).fit(folder / name)
    assert_allclose(there.scores_, here.scores_, atol=2.1e-3)
    assert there.C_ == here.C_ and there.Cs_.tolist() == CS and there.gaps_.max() <= 1e-6
    assert_allclose(there.held_out_scores_, here.held_out_scores_, atol=0.02)
    for one, other in zip(there.path_, here.path_, strict=True):
        assert one.lower_bound_ <= other.objective_ and other.lower_bound_ <= one.objective_
    if name != "numbers":
        assert_array_equal(there.classes_, here.classes_)
    assert_array_equal(there.predict(X[:50]), here.predict(X[:50]))
    assert not hasattr(here, "reads_")


def test_bounds_of_a_fold_are_those_of_its_rows(stores):
    """Rows of weight 0 are not there: a fit to the rows of the fold alone has the same optimum."""
    X, labels, _, folder = stores
    model = LinearSVCCV(CS, cv=3, tol=1e-6, memory_limit="1GB").fit(folder / "two")
    train, test = next(StratifiedKFold(3).split(X, labels["two"]))
    for C, score, gap in zip(CS, model.scores_[0], model.gaps_[0], strict=True):
        alone = LinearSVC(C, tol=1e-6).fit(X[train], labels["two"][train])
        assert gap <= 1e-6 and abs(alone.score(X[test], labels["two"][test]) - score) < 0.005


def test_folds_and_values_of_C_share_the_reads(stores):
    folder = stores[3]
    one, two = (LinearSVCCV(6, cv=4, n_jobs=jobs, memory_limit="1GB").fit(folder / "two") for jobs in (1, 2))
    reads = one.reads_
    assert reads.blocks == 4 and reads.requested > 2 * reads.read
    # No result depends on the threads, or on who else reads.
    assert_array_equal(one.scores_, two.scores_)
    assert_array_equal(one.held_out_scores_, two.held_out_scores_)
    assert reads == two.reads_
    alone = linear_path(folder / "two", Cs=one.Cs_, memory_limit="1GB")
    for mine, other in zip(one.path_, alone, strict=True):
        assert_array_equal(mine.coef_, other.coef_)


def test_numbers_of_rows_in_files(stores, monkeypatch):
    """As under a limit that leaves no memory for them."""
    X, labels, _, folder = stores
    from cutsvm._utils import memory

    settings = memory.MemorySettings(vector_share=0.0)
    monkeypatch.setattr(memory, "MemorySettings", lambda: settings)
    model = LinearSVCCV(CS, cv=3, scoring="roc_auc", memory_limit="400MB").fit(folder / "two")
    assert np.isfinite(model.held_out_scores_).all()
    here = LinearSVCCV(CS, cv=3, scoring="roc_auc").fit(X, labels["two"])
    assert_allclose(model.scores_, here.scores_, atol=0.01)


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3),
        KFold(4, shuffle=True, random_state=7),
        StratifiedKFold(3),
        StratifiedKFold(5, shuffle=True, random_state=3),
        GroupKFold(3),
        ShuffleSplit(2, train_size=0.3, test_size=0.2, random_state=0),
        PredefinedSplit(np.arange(53) % 3 - 1),
    ],
    ids=repr,
)
def test_folds_are_those_of_scikit_learn(cv):
    rng = np.random.default_rng(1)
    y, groups = rng.integers(0, 3, 53).astype(float), rng.integers(0, 9, 53) if isinstance(cv, GroupKFold) else None
    folds = folds_of(cv, y, np.unique(y), groups, np.empty)
    theirs = list(cv.split(np.empty((53, 1)), y, groups))
    assert folds.many == len(theirs)
    for fold, (train, test) in enumerate(theirs):
        assert_array_equal(held_out_rows(folds, fold, 53), np.sort(test))
        assert_array_equal(np.flatnonzero(folds.trains(fold, slice(0, 53))), np.sort(train))


def test_a_splitter_that_leaves_rows_out(stores):
    X, labels, _, folder = stores
    cv = ShuffleSplit(2, train_size=0.5, test_size=0.2, random_state=0)
    here = LinearSVCCV(CS, cv=cv, tol=1e-7).fit(X, labels["three"])
    there = LinearSVCCV(CS, cv=cv, tol=1e-7, memory_limit="1GB").fit(folder / "three")
    assert_allclose(there.scores_, here.scores_, atol=4e-3)
    assert_array_equal(np.isnan(there.held_out_scores_), np.isnan(here.held_out_scores_))


def test_without_refit(stores):
    model = LinearSVRCV(CS, cv=3, refit=False, memory_limit="1GB").fit(stores[3] / "numbers")
    assert model.scores_.shape == (3, 3) and not hasattr(model, "coef_")


def test_errors_name_the_fold_and_end_all_problems(stores):
    _, labels, _, folder = stores
    one = np.flatnonzero(labels["two"] == "yes")
    others = np.flatnonzero(labels["two"] == "no")
    good = np.arange(100), np.arange(100, 300)
    with pytest.raises(ValueError, match="fold 2: all rows to train on are of one class, 'yes'"):
        LinearSVCCV(CS, cv=[good, (one, others), good], memory_limit="1GB").fit(folder / "two")
    with pytest.raises(ValueError, match="fold 1: a row is trained on and held out"):
        LinearSVCCV(CS, cv=[(np.arange(100), np.arange(50, 300))], memory_limit="1GB").fit(folder / "two")
    with pytest.raises(ValueError, match=r"memory_limit is 20 MB .*: too little for a fit; expected at least \d+ MB"):
        LinearSVCCV(CS, cv=3, memory_limit="20MB").fit(folder / "two")


def test_arrays_whose_copies_do_not_fit_are_refused(stores):
    X, labels, _, _ = stores
    with pytest.raises(ValueError, match=r"memory_limit is 1 kB .*at least 60 kB .*convert` makes a store"):
        LinearSVCCV(CS, cv=3, memory_limit="1kB").fit(X, labels["two"])
    assert LinearSVCCV(CS, cv=3, memory_limit="1GB").fit(X, labels["two"]).converged_


def test_a_scorer_that_takes_too_much_memory_is_refused_before_the_fits(stores, monkeypatch):
    monkeypatch.setattr(LinearSVCCV, "_scoring_settings", ScoringSettings(scorer=2 * 10**6))
    with pytest.raises(ValueError, match=r"scoring='roc_auc' takes about 1 GB for the 500 rows of a fold"):
        LinearSVCCV(CS, cv=3, scoring="roc_auc", memory_limit="500MB").fit(stores[3] / "two")


def test_few_scores_are_kept_at_a_time(stores, monkeypatch):
    """One C in a pass gives what all C in a pass give."""
    one, path = [], stores[3] / "two"
    for together in (0, 10**9):
        monkeypatch.setattr(LinearSVCCV, "_scoring_settings", ScoringSettings(together=together))
        one.append(LinearSVCCV(CS, cv=3, scoring="roc_auc", memory_limit="1GB").fit(path))
    assert_array_equal(one[0].scores_, one[1].scores_)
    assert one[0].reads_.read == one[1].reads_.read + 2 * one[0].reads_.blocks


def test_an_error_in_a_callback_ends_all(stores):
    def fail(record):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        LinearSVCCV(CS, cv=3, memory_limit="1GB", callbacks=[fail]).fit(stores[3] / "two")


def test_a_callback_ends_all_with_what_is_known(stores):
    with pytest.warns(ConvergenceWarning):
        model = LinearSVCCV(CS, cv=3, tol=1e-12, memory_limit="1GB", callbacks=[lambda record: True]).fit(
            stores[3] / "two"
        )
    assert all(one.lower_bound_ <= one.objective_ for one in model.path_) and np.isfinite(model.scores_).all()
    assert model.status_ is Status.CALLBACK  # and not a limit on time, which there was none of


def interrupted(store, callback):
    params = {"cv": 3, "tol": 1e-14, "solver": "cpa", "memory_limit": "1GB", "callbacks": [callback]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVCCV(np.geomspace(1e-3, 100, 5), **params).fit(store)


def test_ctrl_c_ends_all_with_what_is_known(stores):
    calls = []

    def interrupts(record):
        time.sleep(0.02)
        calls.append(record)
        if len(calls) == 8:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.2)

    with sigint_interrupts():
        model = interrupted(stores[3] / "two", interrupts)
    assert len(calls) < 100
    assert model.status_ in (Status.CALLBACK, Status.INTERRUPTED)
    assert all(one.lower_bound_ <= one.objective_ for one in model.path_)


def test_threads_that_cannot_start_leave_nobody_waiting(stores, monkeypatch):
    submit, many = ThreadPool.submit, []

    def fails(self, call, *args):
        many.append(call)
        if len(many) == 3:
            raise MemoryError("another thread cannot be started")
        return submit(self, call, *args)

    pool = type("Pool", (ThreadPool,), {"submit": fails})
    monkeypatch.setattr("cutsvm.estimators._choice_on_disk.threads.ThreadPool", pool)
    with pytest.raises(MemoryError, match="another thread"):
        LinearSVCCV(CS, cv=3, memory_limit="1GB").fit(stores[3] / "two")
