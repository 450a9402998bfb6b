"""RankingSVM on collections: the same optimum as in memory, the same bits for any parts, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cutsvm import KernelSVC, OrdinalSVC, RankingSVM, RankingSVMCV, ROCAreaSVC
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, open_parts
from cutsvm.driver.records import Stop
from cutsvm.driver.run import run
from cutsvm.problem.loss_makers import PairMaker, find_pairs
from cutsvm.problem.losses import Pairwise, SquaredPairwise
from cutsvm.problem.pairs import PairOracle
from cutsvm.problem.parted import PartedRows, parted_oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.line_batches import Batched

SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=16, least=8))
LOSSES = {"hinge": Pairwise, "squared_hinge": SquaredPairwise}


def queries(n=9000, d=4, longest=30, seed=0):
    """Rows of queries of random lengths, some of which have one level, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.clip(np.round(X @ rng.normal(size=d) + rng.normal(size=n)), -2, 2)
    lengths = rng.integers(1, longest + 1, n)
    qid = np.repeat(np.arange(n), lengths)[:n]
    y[qid % 7 == 0] = 1.0
    return X, y, qid, rng.random(n) * (rng.random(n) < 0.8)


def collection(X, y, qid=None, weights=None, parts=3, n_jobs=1):
    return of_arrays(Local(n_jobs), split_arrays(X, y, weights, qid=qid, parts=parts))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_that_in_memory(loss, weighted):
    X, y, qid, weights = queries()
    weights = weights if weighted else None
    here = RankingSVM(C=10.0, loss=loss).fit(X, y, qid=qid, sample_weight=weights)
    there = RankingSVM(C=10.0, loss=loss).fit(collection(X, y, qid, weights))
    assert there.gap_ <= 1e-3
    assert there.lower_bound_ <= here.objective_ and here.lower_bound_ <= there.objective_
    assert there.n_pairs_ == pytest.approx(here.n_pairs_, rel=1e-14)
    assert (there.n_queries_, there.n_skipped_queries_) == (here.n_queries_, here.n_skipped_queries_)
    assert there.history_[0]["note"] == "batched: pairs of 9,000 rows in parts"


def test_the_same_bits_for_any_parts_and_threads():
    X, y, qid, weights = queries()
    models = [
        RankingSVM().fit(collection(X, y, qid, weights, parts, n_jobs))
        for parts, n_jobs in ((1, 1), (3, 2), ([5, 17, 4000], 1), (40, 1))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert (model.objective_, model.lower_bound_) == (models[0].objective_, models[0].lower_bound_)
        assert model.n_pairs_ == models[0].n_pairs_


def test_one_query_without_ids_and_sparse_rows():
    X, _, _, weights = queries(500)
    y = X[:, 0] + X[:, 1] ** 2
    here = RankingSVM(tol=1e-6).fit(X, y, sample_weight=weights)
    there = RankingSVM(tol=1e-6).fit(collection(sparse.csr_matrix(X), y, None, weights))
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)
    assert there.n_queries_ == 1


@settings(max_examples=12)
@given(
    loss=st.sampled_from(sorted(LOSSES)),
    n=st.integers(40, 160),
    longest=st.integers(2, 50),
    power=st.integers(-2, 5),
    seed=st.integers(0, 1000),
)
def test_bounds_hold_over_many_grains(loss, n, longest, power, seed):
    X, y, qid, weights = queries(n, 3, longest, seed)
    C = 10.0**power
    parts = open_parts(split_arrays(X, y, weights, qid=qid, parts=4), targets="levels", settings=SMALL)
    maker = PairMaker(LOSSES[loss])
    facts = find_pairs(parts, maker)
    if not facts.weight > 0.0:
        return
    oracle = parted_oracle(PairOracle, PartedRows(parts), PairMaker(LOSSES[loss], facts), Intercept.NONE)
    found = run(Batched(), oracle, C / facts.weight, Stop(1e-4, 300, None))
    best = RankingSVM(C=C, loss=loss, tol=1e-9, max_iter=3000).fit(X, y, qid=qid, sample_weight=weights)
    rounding = 1e-12 * best.objective_
    assert found.lower <= best.objective_ + rounding
    assert best.lower_bound_ <= found.primal + rounding
    assert found.status.converged


def test_what_is_refused():
    X, y, qid, _ = queries(300)
    given = collection(X, y, qid)
    for kind in (ROCAreaSVC, OrdinalSVC):
        with pytest.raises(ValueError, match=f"{kind.__name__} does not fit collections.*pairs are over all rows"):
            kind().fit(given)
    with pytest.raises(ValueError, match=r"RankingSVMCV does not fit collections.*folds have their rows in memory"):
        RankingSVMCV().fit(given)
    with pytest.raises(ValueError, match="KernelSVC does not fit collections"):
        KernelSVC().fit(given)
    with pytest.raises(ValueError, match=r"in all \d+ queries"):
        RankingSVM().fit(collection(X, np.ones(300), qid))
    with pytest.raises(ValueError, match="products of two weights leave the range"):
        RankingSVM().fit(collection(X, y, qid, np.full(300, 1e80)))
    with pytest.raises(ValueError, match="pairs of rows in parts: use 'auto', 'sifting', 'batched'"):
        RankingSVM(solver="ocas").fit(given)
    with pytest.warns(UserWarning, match="qid is missing"):
        RankingSVM().fit(collection(*queries(2000)[:2]))


def test_the_same_bits_on_worker_processes(dask_client):
    da = pytest.importorskip("dask.array")
    X, y, qid, weights = queries()
    X_there, y_there, qid_there, weights_there = (
        da.from_array(own, chunks=(2500, *own.shape[1:])) for own in (X, y, qid, weights)
    )
    with dask_client.as_current():
        there = RankingSVM().fit(X_there, y_there, qid=qid_there, sample_weight=weights_there)
    here = RankingSVM().fit(collection(X, y, qid, weights))
    assert there.cluster_["engine"] == "dask"
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert (there.lower_bound_, there.n_pairs_) == (here.lower_bound_, here.n_pairs_)
