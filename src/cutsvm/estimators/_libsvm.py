"""Kernel machines as scikit-learn's classes of libsvm, with the attributes that its predictions read."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from cutsvm.estimators._kernel import KernelMachine
from cutsvm.kernel_machines.gram import is_sparse


def libsvm_twin(model: KernelMachine, twin: Any) -> Any:
    """The estimator `twin`, of the same parameters, with the support, coefficients and intercepts of a fitted model.

    Predictions of `sklearn.svm.BaseLibSVM` read private attributes, which only its own fit sets: there is no other way
    to give it a model. Scores of libsvm's machine of two classes are positive for the earlier class; scikit-learn
    negates them where there are only two, in the public attributes as well.
    """
    check_is_fitted(model, "dual_coef_")
    model._copy_columns(twin)
    classes: Any = getattr(model, "classes_", None)
    sign = 1.0 if classes is None else -1.0
    dual = np.ascontiguousarray(sign * model.dual_coef_, dtype=np.float64)
    intercept = np.ascontiguousarray(sign * model.intercept_, dtype=np.float64)
    function, vectors = callable(model.kernel), model.support_vectors_
    twin._sparse = is_sparse(vectors) and not function
    twin._gamma, twin.fit_status_ = float(model.gamma_), 0
    twin._effective_probability, twin._probA, twin._probB = False, np.empty(0), np.empty(0)
    if function:  # the rows that it is called with: the support alone
        twin._BaseLibSVM__Xfit = vectors.copy()
        twin.support_, twin.support_vectors_ = np.arange(len(model.support_), dtype=np.int32), np.empty((0, 0))
        twin.shape_fit_ = tuple(vectors.shape)
    else:
        twin.support_, twin.support_vectors_ = np.asarray(model.support_, dtype=np.int32), _float64(vectors)
        twin.shape_fit_ = (model.n_features_in_ if model.kernel == "precomputed" else len(dual[0]), twin.n_features_in_)
    twin._dual_coef_, twin._intercept_ = _as_csr(dual) if twin._sparse else dual, intercept
    twin.dual_coef_, twin.intercept_ = twin._dual_coef_, intercept.copy()
    twin._n_support = np.asarray(model.n_support_, dtype=np.int32)
    if classes is None:
        twin._n_support = np.append(twin._n_support, np.int32(0))
    else:
        twin.class_weight_, twin.n_iter_ = np.ones(len(classes)), np.full(len(intercept), twin.n_iter_, dtype=np.int32)
        if len(classes) == 2:
            twin.dual_coef_, twin.intercept_ = -twin._dual_coef_, -intercept
    twin._num_iter = twin.n_iter_
    return twin


def _float64(vectors: Any) -> Any:
    if not is_sparse(vectors):
        return np.array(vectors, dtype=np.float64, order="C")
    found = sparse.csr_matrix(vectors, dtype=np.float64, copy=True)
    found.sort_indices()
    return found


def _as_csr(dual: Any) -> Any:
    """All coefficients as stored entries, zeros too: libsvm reads them one after another."""
    classes, size = dual.shape
    columns, pointers = np.tile(np.arange(size), classes), np.arange(classes + 1) * size
    return sparse.csr_matrix((dual.ravel(), columns, pointers), shape=dual.shape)
