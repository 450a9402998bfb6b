"""Ranking: C chosen by cross-validation over queries, with `qid` routed through a pipeline.

Makes 200 queries of 30 documents with levels 0 to 4, learns from 15 of them, and draws the share of pairs in order
against C.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from cutsvm import RankingSVM

sklearn.set_config(enable_metadata_routing=True)
rng = np.random.default_rng(0)
queries, each, features = 200, 30, 60
qid = np.repeat(np.arange(queries), each)
X = rng.normal(size=(queries * each, features)) * rng.uniform(0.1, 10, size=features)
relevance = (X / X.std(axis=0))[:, :8] @ rng.normal(size=8) + 3.0 * rng.normal(size=len(X))
y = np.digitize(relevance, np.quantile(relevance, [0.5, 0.75, 0.9, 0.97]))
train = qid < 15  # few queries, so that C matters

ranker = RankingSVM(n_jobs=-1).set_fit_request(qid=True).set_score_request(qid=True)
pipeline = Pipeline([("scale", StandardScaler()), ("rank", ranker)])
Cs = np.logspace(-1, 5, 7)
search = GridSearchCV(pipeline, {"rank__C": Cs}, cv=GroupKFold(5))
search.fit(X[train], y[train], qid=qid[train], groups=qid[train])
best = search.best_estimator_["rank"]
print(f"best C {best.C:g}: {best.n_pairs_:,.0f} pairs of {best.n_queries_} queries, gap {best.gap_:.1e}")

held_out = [np.flatnonzero(qid == q) for q in range(15, queries)]
scores = search.predict(X)
ndcg = np.mean([ndcg_score([y[rows]], [scores[rows]], k=10) for rows in held_out])
share = search.score(X[~train], y[~train], qid=qid[~train])
print(f"held-out queries: {100 * share:.1f} % of the pairs in order, NDCG@10 {ndcg:.3f}")

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
mean, spread = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
axes.errorbar(Cs, 100 * mean, 100 * spread, marker="o", capsize=3, label="cross-validation, 15 queries")
axes.axhline(100 * share, color="grey", linestyle="--", label="held-out queries, best C")
axes.set(xscale="log", xlabel="C", ylabel="pairs in order, %", title="RankingSVM: choosing C over queries")
axes.legend(loc="lower right")
figure.savefig("ranking.png", dpi=120)
