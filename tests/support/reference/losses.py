"""Losses of one score per row, and the optimum of |w|^2/2 + C sum_i s_i loss from independent solvers."""

import numpy as np
import quadprog
from scipy.optimize import minimize
from scipy.special import expit

# value and slope in f, of labels y in {-1, 1} or of targets y; e: epsilon
LOSSES = {
    "squared_hinge": lambda f, y, e: (np.maximum(0, 1 - y * f) ** 2, -2 * y * np.maximum(0, 1 - y * f)),
    "logistic": lambda f, y, e: (np.logaddexp(0, -y * f), -y * expit(-y * f)),
    "squared_epsilon_insensitive": lambda f, y, e: (
        np.maximum(0, np.abs(f - y) - e) ** 2,
        2 * np.sign(f - y) * np.maximum(0, np.abs(f - y) - e),
    ),
    "huber": lambda f, y, e: (
        np.where(np.abs(f - y) <= e, (f - y) ** 2 / 2, e * np.abs(f - y) - e * e / 2),
        np.clip(f - y, -e, e),
    ),
}


def smooth_objective(loss, X, y, s, C, intercept, w, b, epsilon=0.0):
    values, _ = LOSSES[loss](X @ w + b, y, epsilon)
    return 0.5 * w @ w + (0.5 * b * b if intercept == "regularized" else 0.0) + C * s @ values


def smooth_optimum(loss, X, y, s, C, intercept, epsilon=0.0):
    """(low, high) with low <= min F <= high: F >= F(w) - |gradient|^2 / 2 where b is its best."""
    d = X.shape[1]
    wide = X if intercept == "none" else np.column_stack([X, np.ones(len(X))])
    penalised = np.ones(wide.shape[1])
    if intercept == "free":
        penalised[d] = 0.0

    def F(v):
        values, slopes = LOSSES[loss](wide @ v, y, epsilon)
        return 0.5 * penalised @ v**2 + C * s @ values, penalised * v + C * wide.T @ (s * slopes)

    found = minimize(F, np.zeros(wide.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000})
    high, slope = F(found.x)
    return high - 0.5 * slope @ slope - 1e-9 * high, high


def tube_value(f, y, s, epsilon=0.0, below=1.0, above=1.0):
    return s @ (below * np.maximum(0, y - f - epsilon) + above * np.maximum(0, f - y - epsilon))


def tube_objective(X, y, s, C, intercept, w, b, **shape):
    penalty = 0.5 * w @ w + (0.5 * b * b if intercept == "regularized" else 0.0)
    return penalty + C * tube_value(X @ w + b, y, s, **shape)


def tube_optimum(X, y, s, C, intercept, epsilon=0.0, below=1.0, above=1.0):
    """(low, high) with low <= min F <= high: quadprog on the dual, alpha = up - down with 0 <= up <= C s below."""
    keep = s > 0
    X, y, s = X[keep], y[keep], s[keep]
    n, d = X.shape
    wide = np.column_stack([X, np.ones(n)]) if intercept == "regularized" else X
    Z = np.vstack([wide, -wide])
    gain = np.concatenate([y - epsilon, -y - epsilon])
    top = C * np.concatenate([s * below, s * above])
    Q = Z @ Z.T
    ridge = 1e-9 * max(1.0, np.trace(Q) / n)  # quadprog wants a positive definite matrix
    bounds, limits, equalities = np.hstack([np.eye(2 * n), -np.eye(2 * n)]), np.concatenate([0 * top, -top]), 0
    sign = np.repeat([1.0, -1.0], n)
    if intercept == "free":
        bounds, limits, equalities = np.hstack([sign[:, None], bounds]), np.concatenate([[0.0], limits]), 1
    alpha = np.clip(quadprog.solve_qp(Q + ridge * np.eye(2 * n), gain, bounds, limits, equalities)[0], 0.0, top)
    if intercept == "free":  # balance exactly: the heavier half gives way
        up, down = alpha[sign > 0].sum(), alpha[sign < 0].sum()
        if up and down:
            alpha *= np.where(sign > 0, min(1.0, down / up), min(1.0, up / down))
        else:
            alpha *= 0.0
    v = Z.T @ alpha
    low, w, shape = gain @ alpha - 0.5 * v @ v, v[:d], {"epsilon": epsilon, "below": below, "above": above}
    if intercept == "free":
        ahead = y - X @ w
        b = min(np.concatenate([ahead - epsilon, ahead + epsilon]), key=lambda b: tube_value(X @ w + b, y, s, **shape))
    else:
        b = v[-1] if intercept == "regularized" else 0.0
    return low, tube_objective(X, y, s, C, intercept, w, b, **shape)
