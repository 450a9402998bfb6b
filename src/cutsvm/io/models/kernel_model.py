"""What a model file holds of a kernel machine: its support vectors and their coefficients.

    header    gamma: the number used
    arrays    dual_coef (classes - 1, support), support (rows of the training data), n_support (of each class); of
              regression and of one class there is one row of coefficients, and one number of rows
              support_vectors (support, features), or of CSR its three arrays: support_data, support_indices,
              support_indptr
              coef (pairs of classes, features), if the kernel is linear
              intercept (pairs of classes), unless all are 0

A precomputed kernel is refused: such a model has no support vectors, and predicts only with kernel values of the
training rows. So is a kernel that is a function, which a file without code cannot hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from cutsvm._utils import validation
from cutsvm._utils.types import Array
from cutsvm.io.models.model_format import Expect, ModelFileError
from cutsvm.io.models.tasks import Task
from cutsvm.io.store.batches import is_sparse

_KERNELS = ("rbf", "poly", "linear", "sigmoid")
_CSR = ("support_data", "support_indices", "support_indptr")
_MAX_FEATURES = 1 << 62
_MAX_DEGREE = 1 << 16  # larger powers take long, and are of no use


def pack(estimator: Any, task: Task) -> tuple[dict[str, Any], dict[str, Array]]:
    """Fields to add to the header, and the arrays."""
    if not hasattr(estimator, "dual_coef_"):
        raise ModelFileError("the estimator is not fitted: there is no model to write")
    if callable(estimator.kernel):
        raise ModelFileError(
            f"kernel={estimator.kernel!r} is a function, and model files hold no code: pickle the estimator, or keep "
            "its support_vectors_ and dual_coef_"
        )
    if estimator.kernel == "precomputed":
        raise ModelFileError(
            "a model of a precomputed kernel has no support vectors to write: keep its support_ and dual_coef_"
        )
    arrays: dict[str, Array] = {
        "dual_coef": estimator.dual_coef_,
        "support": np.asarray(estimator.support_, dtype=np.int64),
        "n_support": np.asarray(estimator.n_support_, dtype=np.int64),
    }
    vectors: Any = estimator.support_vectors_
    if is_sparse(vectors):
        arrays |= zip(_CSR, (vectors.data, vectors.indices, vectors.indptr), strict=True)
    else:
        arrays["support_vectors"] = vectors
    if estimator.kernel == "linear":
        arrays["coef"] = estimator.coef_
    if np.any(estimator.intercept_):
        arrays["intercept"] = estimator.intercept_
    if not (np.isfinite(estimator.gamma_) and all(np.isfinite(array).all() for array in arrays.values())):
        raise ModelFileError("the model has numbers that are not finite")
    return {"gamma": float(estimator.gamma_)}, arrays


def restore(expect: Expect, estimator: Any, task: Task, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Set the support vectors of an estimator that has its parameters and classes, after checking them."""
    classes, width = len(estimator.classes_) if task.has_classes else 2, header.get("n_features")
    groups = classes if task.has_classes else 1  # of support rows
    expect.that(type(width) is int and 0 <= width < _MAX_FEATURES, "a number of features")
    assert isinstance(width, int)
    _check_kernel(expect, estimator, header.get("gamma"))
    estimator.gamma_ = header["gamma"]
    dual = _array(expect, arrays, "dual_coef", (classes - 1, None), "f8")
    count = dual.shape[1]
    support = _array(expect, arrays, "support", (count,), "i8")
    own = _array(expect, arrays, "n_support", (groups,), "i8")
    # Each alone first: a sum of numbers from a file may overflow.
    expect.that(bool(np.all((own >= 0) & (own <= count))) and int(own.sum()) == count, "a class for every support row")
    expect.that(bool((support >= 0).all()), "rows of the training data as support")
    estimator.dual_coef_, estimator.support_, estimator.n_support_ = dual, support, own
    estimator.n_features_in_ = width
    if _CSR[0] in arrays:
        estimator.support_vectors_ = _csr(expect, arrays, (count, width))
    else:
        estimator.support_vectors_ = _array(expect, arrays, "support_vectors", (count, width), "f8", "f4")
    pairs = classes * (classes - 1) // 2
    estimator.intercept_ = np.zeros(pairs)
    if "intercept" in arrays:
        estimator.intercept_ = _array(expect, arrays, "intercept", (pairs,), "f8")
    if estimator.kernel == "linear":
        estimator.coef_ = _array(expect, arrays, "coef", (pairs, width), "f8")


def _check_kernel(expect: Expect, estimator: Any, gamma: Any) -> None:
    """Check the parameters that predictions depend on."""
    try:
        validation.one_of("kernel", estimator.kernel, _KERNELS)
        validation.whole("degree", estimator.degree, least=1)
        validation.finite("coef0", estimator.coef0)
        validation.positive("gamma", gamma)
    except (ValueError, OverflowError) as error:
        raise ModelFileError(f"{expect.name}: {str(error)[:200]}") from None
    expect.that(type(gamma) is float, "a number as gamma")
    expect.that(estimator.degree <= _MAX_DEGREE, f"a degree of at most {_MAX_DEGREE:,}")


def _array(expect: Expect, arrays: dict[str, Array], name: str, shape: tuple[int | None, ...], *kinds: str) -> Array:
    """The array of this name after a check of its dtype, its shape (None: any length), and that it is finite."""
    found = arrays.get(name, np.empty((), dtype=bool))
    expect.that(found.dtype.str[1:] in kinds, f"an array {name!r} of {' or '.join(kinds)}")
    fits = found.ndim == len(shape) and all(
        expected in (None, length) for expected, length in zip(shape, found.shape, strict=True)
    )
    shown = " x ".join("any" if length is None else f"{length:,}" for length in shape)
    expect.that(fits, f"{shown} numbers in {name!r}")
    expect.that(bool(np.isfinite(found).all()), f"finite numbers in {name!r}")
    return found


def _csr(expect: Expect, arrays: dict[str, Array], shape: tuple[int, int]) -> Any:
    data = _array(expect, arrays, _CSR[0], (None,), "f8", "f4")
    columns = _array(expect, arrays, _CSR[1], (len(data),), "i4", "i8")
    pointers = _array(expect, arrays, _CSR[2], (shape[0] + 1,), "i4", "i8")
    rising = pointers[0] == 0 and pointers[-1] == len(data) and bool((pointers[:-1] <= pointers[1:]).all())
    expect.that(rising, "row pointers that rise from 0 to the number of stored values")
    expect.that(bool(np.all((columns >= 0) & (columns < shape[1]))), "columns within the number of features")
    return csr_matrix((data, columns, pointers), shape=shape)
