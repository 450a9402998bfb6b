"""The forms of a matrix that the estimators read in place."""

import numpy as np
from scipy import sparse

LAYOUTS = {
    "float64": lambda X: np.ascontiguousarray(X, dtype=np.float64),
    "float32": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "fortran": lambda X: np.asfortranarray(X, dtype=np.float64),
    "fortran32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[:, ::-1].copy()[:, ::-1],
    "csr": sparse.csr_matrix,
    "csr32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csr_long": lambda X: _retyped(sparse.csr_matrix(X), np.int64, np.int64),
    "csr_mixed": lambda X: _retyped(sparse.csr_matrix(X), np.int32, np.int64),
}


def _retyped(X, columns, pointers):
    X.indices, X.indptr = X.indices.astype(columns), X.indptr.astype(pointers)
    return X
