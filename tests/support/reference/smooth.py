"""The optimum of smooth losses from an independent solver: SciPy's trust region with second derivatives."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax


def squared_hinge(f, y, s, epsilon):
    e = np.maximum(0.0, 1.0 - y * f)
    return s @ e**2, -2.0 * s * y * e, 2.0 * s * (e > 0.0)


def logistic(f, y, s, epsilon):
    return s @ np.logaddexp(0.0, -y * f), -s * y * expit(-y * f), s * expit(f) * expit(-f)


def squared_tube(f, t, s, epsilon):
    r = f - t
    e = np.sign(r) * np.maximum(0.0, np.abs(r) - epsilon)
    return s @ e**2, 2.0 * s * e, 2.0 * s * (e != 0.0)


def huber(f, t, s, epsilon):
    r = f - t
    inside = np.abs(r) <= epsilon
    value = s @ np.where(inside, 0.5 * r**2, epsilon * (np.abs(r) - 0.5 * epsilon))
    return value, s * np.clip(r, -epsilon, epsilon), s * inside


LOSSES = {"squared_hinge": squared_hinge, "logistic": logistic, "squared_tube": squared_tube, "huber": huber}


def objective(name, X, y, s, C, intercept, w, epsilon=0.0):
    """F, its gradient and its second derivatives at w, which ends with b if there is an intercept."""
    extended = X if intercept == "none" else np.column_stack([X, np.ones(len(X))])
    value, slopes, curvatures = LOSSES[name](extended @ w, y, s, epsilon)
    ridge = np.ones(extended.shape[1])
    if intercept == "free":
        ridge[-1] = 0.0
    gradient = ridge * w + C * extended.T @ slopes
    hessian = np.diag(ridge) + C * (extended.T * curvatures) @ extended
    return 0.5 * w @ (ridge * w) + C * value, gradient, hessian


def optimum(name, X, y, s, C, intercept, epsilon=0.0):
    """min F, from above; at a solution that is exact to many digits."""
    size = X.shape[1] + (intercept != "none")

    def value(w):
        return objective(name, X, y, s, C, intercept, w, epsilon)

    found = minimize(
        lambda w: value(w)[0],
        np.zeros(size),
        jac=lambda w: value(w)[1],
        hess=lambda w: value(w)[2] + 1e-12 * np.eye(size),
        method="trust-exact",
        options={"gtol": 1e-9, "maxiter": 2000},
    )
    return float(found.fun)


def multinomial(F, y, s):
    """The loss of scores F, one column per class, and its slopes."""
    own = np.arange(len(y)), y
    slopes = softmax(F, axis=1)
    slopes[own] -= 1.0
    return float(s @ (logsumexp(F, axis=1) - F[own])), s[:, None] * slopes


def multinomial_optimum(X, y, s, C, K, intercept):
    """min F of the multinomial logistic loss, from above."""
    extended = X if intercept == "none" else np.column_stack([X, np.ones(len(X))])
    ridge = np.ones(extended.shape[1])
    if intercept == "free":
        ridge[-1] = 0.0

    def value(flat):
        W = flat.reshape(K, -1)
        loss, slopes = multinomial(extended @ W.T, y, s)
        return 0.5 * float((ridge * W**2).sum()) + C * loss, (ridge * W + C * slopes.T @ extended).ravel()

    start = np.zeros(K * extended.shape[1])
    exactly = {"gtol": 1e-9, "ftol": 1e-15, "maxiter": 5000, "maxfun": 50_000}
    return float(minimize(value, start, jac=True, method="L-BFGS-B", options=exactly).fun)
