"""RankingSVM: a linear machine that learns to put the rows of each query in order, with a certificate.

`PairwiseSVM` is the base of `RankingSVM`, `ROCAreaSVC` and `OrdinalSVC`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Any, ClassVar, Literal, cast

import numpy as np
import sklearn
from sklearn.utils.metadata_routing import UNUSED

from cutsvm._utils import memory, queries, threads, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm._utils.warn import is_called_by
from cutsvm.driver import fingerprint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.fingerprint import Scalar
from cutsvm.driver.records import Record, Stop
from cutsvm.driver.run import Fit, fit_path
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.estimators._missing_queries import warn_of_missing_queries
from cutsvm.estimators._predict import all_scores, by_block, has_own_labels
from cutsvm.estimators._thresholds import sums_are_exact
from cutsvm.io.store.store import Store
from cutsvm.matrix import WholeRows
from cutsvm.problem.loss_makers import PairMaker, find_pairs
from cutsvm.problem.losses import PairLoss, Pairwise, SquaredPairwise
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.pairs import PairOracle
from cutsvm.problem.parted import PartedRows, parted_oracle
from cutsvm.problem.point import Intercept
from cutsvm.problem.ranking_measures import ranking_score
from cutsvm.solvers.protocol import Solver

LOSSES: dict[str, type[PairLoss]] = {"hinge": Pairwise, "squared_hinge": SquaredPairwise}


def _no_pair(queries: int) -> str:
    return (
        f"there is no pair to learn from: y is the same for all rows of a query, in all {queries} queries (rows of "
        "weight 0 left out)"
    )


@dataclass(eq=False, repr=False)
class PairwiseSVM(Certified):
    """Parameters of the estimators on pairs of rows, and the fit to rows that are sorted by query."""

    C: float = 1.0
    _: KW_ONLY
    loss: Literal["hinge", "squared_hinge"] = "hinge"
    tol: float = 1e-3
    solver: str | Solver = "auto"
    max_iter: int = 10_000
    max_time: float | None = None
    n_jobs: int | None = None
    warm_start: bool = False
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    _min_rows = 2
    _trains_from_disk = True
    _has_thresholds: ClassVar[bool] = True  # between levels
    _no_parts = "its pairs are over all rows"

    def _check_params(self) -> Solver:
        validation.one_of("loss", self.loss, tuple(LOSSES))
        solver = self._seeded(super()._check_params(), self.random_state)
        smooth = LOSSES[self.loss].supports.smooth
        remedy = "" if smooth else "; with loss=\"squared_hinge\" also 'newton'"
        supported = {"pairs", "vectors", "smooth"} if smooth else {"pairs", "vectors"}
        self._check_requirements(solver, supported, "problems of pairs of rows", remedy)
        return solver

    def _objective_settings(self) -> dict[str, Scalar]:
        return {**super()._objective_settings(), "loss": self.loss}

    def _memory_plan(self, store: Store, weights: Any = None) -> memory.Plan:
        (rows, features), levels, exact = store.shape, 0, False
        if self._has_thresholds:
            levels, given = len(store.labels), store.weights if weights is None else np.atleast_1d(weights)
            exact = given is not None and not sums_are_exact(given, levels)
        limit = self.memory_limit
        smooth = LOSSES[self.loss].supports.smooth
        return memory.plan_pairs(
            rows, store.manifest.size, limit, features=features, levels=levels, exact=exact, smooth=smooth
        )

    def _fit_pairs(
        self, models: Sequence[PairwiseSVM], solver: Solver, rows: WholeRows, y: Array, starts: Ints, weights: Vector
    ) -> PairLoss:
        """Fits models that differ from this one in C only; query q has the rows from starts[q] to starts[q + 1]."""
        n_threads = threads.count(self.n_jobs, rows.entries)
        loss = LOSSES[self.loss](y, weights, starts, n_threads)
        if not loss.total > 0.0:
            raise ValueError(_no_pair(len(loss.levels)))
        centred, shift = rows.centred()
        oracle = PairOracle(centred, loss, threads=n_threads, given=rows, shift=shift)
        self._fit_oracle(models, solver, oracle, self._checkpoint_of(solver, rows, y, starts, weights))
        return loss

    def _fit_oracle(
        self, models: Sequence[PairwiseSVM], solver: Solver, oracle: Oracle, checkpoint: Checkpoint | None
    ) -> None:
        loss = cast("PairLoss", oracle.loss)
        resumes = self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (1, oracle.matrix.d)
        stop = Stop(self.tol, self.max_iter, self.max_time)
        Cs = [model.C / loss.total for model in models]
        with threads.one_blas_thread():
            start = np.asarray(self.coef_[0], dtype=np.float64) if resumes else None
            fit = Fit(stop, self._callbacks(), "", start, checkpoint, self._slot())
            results, _ = fit_path(solver, oracle, Cs, fit)
        for model, result in zip(models, results, strict=True):
            model.coef_, model.intercept_ = result.w[None], np.zeros(1)
            model.n_pairs_ = loss.n_pairs
            model._certify([result], checkpoint)

    def _checkpoint_of(
        self, solver: Solver, rows: WholeRows, y: Array, starts: Ints, weights: Vector
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        data = {"y": fingerprint.of_labels(y, np.unique(y)), "weights": fingerprint.of_column(weights)}
        return self._open_checkpoint(solver, rows, {**data, "queries": fingerprint.of_column(starts)})


class RankingSVM(PairwiseSVM):
    """Ranking SVM: learns scores that put the rows of each query in the order of y.

    It minimises, over w,

        F = |w|^2 / 2 + C / m  sum of s_i s_j loss(w.(x_i - x_j))  over the pairs of one query with y_i > y_j

        loss(d) = max(0, 1 - d)        "hinge"
        loss(d) = max(0, 1 - d)^2      "squared_hinge"

    m being the number of these pairs (with sample_weight: the sum of s_i s_j), until a lower bound of F is within the
    relative gap `tol`. One evaluation takes O(n log n) for any number of levels of y; pairs are never enumerated.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the *mean* loss of a pair against the margin.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss of a pair, as above. The square has a continuous slope, and weighs pairs that are far in the wrong
        order more.
    tol, max_iter, max_time, n_jobs, warm_start, checkpoint, callbacks, verbose, random_state
        As in `LinearSVC`.
    memory_limit : str or int, default=None
        Private memory that a fit from a file or a store may add, as in `LinearSVC`. The rows of a query have to be
        consecutive in it; the arrays over rows (about 220 bytes per row, with the squared hinge 340) have to fit the
        limit.
    solver : {"auto", "ocas", "cpa", "newton"} or a solver object, default="auto"
        "auto" is "ocas", optimised cutting planes with several planes per pass where that is faster; "cpa" is the
        paper's algorithm. With loss="squared_hinge" it is "newton", which takes no other loss: Newton's method with
        conjugate gradients.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    n_pairs_ : float
        The number of pairs m, or the sum of their weights.
    n_queries_, n_skipped_queries_ : int
        The number of queries, and of those without a pair, since all their rows have one y.
    objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_
        As in `LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import RankingSVM
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y, qid = X @ [1.0, -2.0, 0.5], np.repeat(np.arange(6), 10)
    >>> model = RankingSVM(C=10.0).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.95
    True
    """

    _targets = "levels"
    _has_thresholds = False
    _trains_on_parts = True

    # Metadata routing hands `qid` over without being asked; scikit-learn finds these names despite the underscores.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"qid": True, "metric": UNUSED}

    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> RankingSVM:
        """Fits the model to rows X with values y to be ordered by, within each query.

        qid: one id per row, of any kind, in any order; None is one query, with a warning if y looks like the relevance
        of rows of several. In place of X and y: a data set, or the name of a file with `qid:`. If the rows of a query
        are not consecutive, they are sorted in a copy of X. The rows of a query of a collection (`cutsvm.cluster`)
        have to be consecutive; they may be in several parts.
        """
        solver = self._check_params()
        self._check_routing(qid)
        with ingest(self, X, y, sample_weight, qid=qid) as data:
            self._fit_path([self], solver, data)
            self._warn_unless_converged(data)
        return self

    def _check_routing(self, qid: Any) -> None:
        """Refuses a search that would hand `qid` to `fit` and not to `score`, which would then take one query."""
        routed = sklearn.get_config().get("enable_metadata_routing", False)
        if qid is not None and not routed and is_called_by("sklearn.model_selection"):
            raise ValueError(
                "qid would reach fit but not score, which would compare rows of different queries: call "
                "sklearn.set_config(enable_metadata_routing=True) first, and the same search hands it to both; or use "
                "RankingSVMCV, which needs no routing"
            )

    def _loss_scale(self, data: TrainingData) -> float:
        """C is the weight of a mean."""
        return 1.0 / (float(data.weights.sum()) if data.parts is None else data.parts.facts.weight)

    def _fit_path(self, models: Sequence[RankingSVM], solver: Solver, data: TrainingData) -> None:
        """Fits models that differ from this one in C only."""
        if data.parts is not None:
            self._fit_parts(models, solver, data)
            return
        rows, y, weights, codes = data.rows, data.y, data.weights, data.query_codes
        kept = np.flatnonzero(weights > 0.0)
        order, starts = queries.query_by_query(codes)
        if data.on_disk and (order is not None or len(kept) < len(y)):
            raise ValueError(
                "memory_limit: the rows of a query must be consecutive in the store, and none have weight 0: sort "
                "them before they are converted, or leave memory_limit out"
            )
        if len(kept) < len(y):  # a row without weight is in no pair, and its y is no level
            order, starts = queries.query_by_query(codes[kept])
            order = kept if order is None else kept[order]
        n_queries, skipped = len(starts) - 1, 0
        if not data.on_disk:
            order, starts, skipped = queries.without_unpaired(y, order, starts)
        if order is not None:
            rows, y, weights = rows.take(order), y[order], weights[order]
        loss = self._fit_pairs(models, solver, rows, y, starts, weights)
        for model in models:
            model.n_queries_ = n_queries
            model.n_skipped_queries_ = skipped + int(np.count_nonzero(loss.levels < 2))

    def _fit_parts(self, models: Sequence[RankingSVM], solver: Solver, data: TrainingData) -> None:
        """The same to a collection, whose pairs are in its grains."""
        parted = cast("PartedRows", data.rows)
        maker = PairMaker(LOSSES[self.loss])
        facts = find_pairs(parted.parts, maker)
        if facts.scaled:
            raise ValueError(
                "sample_weight: products of two weights leave the range of floating-point numbers, and the rows of a "
                "collection have no common unit: divide the weights by a number that makes the largest about 1, and "
                "those below 1e-70 zero"
            )
        if not facts.weight > 0.0:
            raise ValueError(_no_pair(facts.queries))
        oracle = parted_oracle(PairOracle, parted, replace(maker, facts=facts), Intercept.NONE)
        self._check_requirements(solver, oracle.supports.names, "problems of pairs of rows in parts")
        checkpoint = None if self.checkpoint is None else self._open_checkpoint(solver, data.rows, {})
        self._fit_oracle(models, solver, oracle, checkpoint)
        for model in models:
            model.n_queries_, model.n_skipped_queries_ = facts.queries, facts.skipped

    def _weights_at(self, oracle: Any, w: Vector, record: Record) -> dict[str, Array] | None:
        return {"coef_": np.array(w, ndmin=2), "intercept_": np.zeros(1)}

    @by_block
    def predict(self, X: Any) -> Vector:
        """X coef_': scores that rise with y. Compare them within a query only. X: rows, or any source of rows."""
        return self._scores(X)

    def score(
        self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None, *, metric: str = "pairs"
    ) -> float:
        """How well the rows of each query are ordered.

        metric: "pairs", the share of the pairs of one query with y_i > y_j that are in order (equal scores count half);
        "ndcg@k" or "ndcg", the mean over the queries of scikit-learn's `ndcg_score` with gains y; "map", that of its
        `average_precision_score`, rows with y > 0 being relevant. `ranking_score` says more, and counts the queries
        that were left out. A source has its own labels, queries and weights: y is left out.
        """
        if has_own_labels(self, X, y):
            scores, y, qid, sample_weight = all_scores(self, X, self.predict, y, qid, sample_weight)
        else:
            scores = self.predict(X)
        forgotten = qid is None and self.__dict__.get("n_queries_", 1) > 1
        if forgotten and is_called_by("sklearn.model_selection"):
            raise ValueError(
                "qid is missing in the score of a model that was fitted to several queries: with metadata routing "
                "on, give qid to the search, and leave set_score_request(qid=False) out"
            )
        found = ranking_score(scores, y, qid, metric=metric, sample_weight=sample_weight)
        if forgotten:
            warn_of_missing_queries(np.asarray(y))
        return found.value
