"""Twins of src/core/row_losses.hpp: losses of one score per row, and their dual variables alpha.

y: labels, 1 with targets. s: weights. A score f has the margin m = y f; alpha stands for the slope g = -y alpha / C.
"""

import numpy as np
import quadprog
from scipy.optimize import brentq, minimize
from scipy.special import entr, expit

from cutsvm._native import core

INF = np.inf


class RowLoss:
    """smooth: the slope is continuous. square: the loss has no largest slope."""

    smooth, square = True, False

    def gaps(self, f, alpha, C):
        """Shares of primal - dual, each as the sum of its three parts."""
        return C * self.value(f) - C * self.offset(-self.y * alpha / C) + self.y * alpha * f


class LabelLoss(RowLoss):
    def __init__(self, a):
        self.a, self.y, self.s = a, np.copysign(1.0, a), np.abs(a)

    def rows(self):
        return core.RowLoss(self.name, self.a)

    def take(self, rows):
        return type(self)(self.a[rows])


class Hinge(LabelLoss):
    name, smooth = "hinge", False

    def value(self, f):
        return self.s * np.maximum(0.0, 1.0 - self.y * f)

    def slope(self, f):
        return np.where(self.y * f < 1.0, -self.a, 0.0)

    def offset(self, g):
        return np.abs(g)

    def limits(self, i, C):
        return 0.0, C * self.s[i]

    def range(self, i, alpha, C):
        return -INF if alpha == C * self.s[i] else 1.0, INF if alpha == 0.0 else 1.0

    def best(self, i, z, q, C):
        """The best alpha if the margin without this row's own part is z."""
        return np.clip((1.0 - z) / q if q else np.copysign(INF, 1.0 - z), 0.0, C * self.s[i])


class SquaredHinge(LabelLoss):
    name, square = "squared_hinge", True

    def value(self, f):
        return self.s * np.maximum(0.0, 1.0 - self.y * f) ** 2

    def slope(self, f):
        return -2.0 * self.a * np.maximum(0.0, 1.0 - self.y * f)

    def curvature(self, f):
        return 2.0 * self.s * (self.y * f < 1.0)

    def offset(self, g):
        return np.abs(g) - np.divide(g * g, 4.0 * self.s, out=np.zeros_like(g), where=self.s > 0.0)

    def limits(self, i, C):
        return 0.0, INF if self.s[i] else 0.0

    def range(self, i, alpha, C):
        if not self.s[i]:
            return -INF, INF
        low = 1.0 - alpha / (2.0 * C * self.s[i])
        return low, INF if alpha == 0.0 else low

    def best(self, i, z, q, C):
        return max(0.0, 1.0 - z) * 2.0 * C * self.s[i] / (1.0 + 2.0 * C * self.s[i] * q)


class Logistic(LabelLoss):
    name = "logistic"

    def value(self, f):
        return self.s * np.logaddexp(0.0, -self.y * f)

    def slope(self, f):
        return -self.a * expit(-self.y * f)

    def curvature(self, f):
        return self.s * expit(f) * expit(-f)

    def offset(self, g):
        p = np.minimum(1.0, np.divide(np.abs(g), self.s, out=np.zeros_like(g), where=self.s > 0.0))
        return self.s * (entr(p) + entr(1.0 - p))

    def limits(self, i, C):
        return 0.0, C * self.s[i]

    def range(self, i, alpha, C):
        S = C * self.s[i]
        if not S:
            return -INF, INF
        own = INF if alpha == 0.0 else -INF if alpha == S else np.log((S - alpha) / alpha)
        return own, own

    def best(self, i, z, q, C):
        S = C * self.s[i]
        u = brentq(lambda u: u - z - q * S * expit(-u), z - 1e-9, z + q * S + 1e-9, xtol=1e-14, rtol=1e-14)
        return S * expit(-u)


class TargetLoss(RowLoss):
    below = above = 1.0

    def __init__(self, t, s, epsilon=0.5):
        self.t, self.s, self.epsilon, self.y = t, s, epsilon, np.ones_like(t)

    def rows(self):
        return core.RowLoss(self.name, self.t, self.s, self.epsilon, self.below, self.above)

    def take(self, rows):
        return type(self)(self.t[rows], self.s[rows], self.epsilon)

    def excess(self, f):
        r = f - self.t
        return np.sign(r) * np.maximum(0.0, np.abs(r) - self.epsilon)


class Tube(TargetLoss):
    name, smooth = "tube", False

    def value(self, f):
        e = self.excess(f)
        return self.s * np.where(e < 0.0, -self.below, self.above) * e

    def slope(self, f):
        e = self.excess(f)
        return self.s * (self.above * (e > 0.0) - self.below * (e < 0.0))

    def offset(self, g):
        return -g * self.t - self.epsilon * np.abs(g)

    def limits(self, i, C):
        return -C * self.s[i] * self.above, C * self.s[i] * self.below

    def range(self, i, alpha, C):
        least, most = self.limits(i, C)
        under, over = self.t[i] - self.epsilon, self.t[i] + self.epsilon
        low = -INF if alpha == most else over if alpha < 0.0 else under
        return low, INF if alpha == least else under if alpha > 0.0 else over

    def best(self, i, z, q, C):
        r = z - self.t[i]
        over = np.sign(r) * max(0.0, abs(r) - self.epsilon)
        return 0.0 if over == 0.0 else np.clip(-over / q if q else -np.copysign(INF, over), *self.limits(i, C))


class Pinball(Tube):
    below, above = 0.8, 0.2

    def __init__(self, t, s, epsilon=0.0):
        super().__init__(t, s, epsilon)


class OneSided(Tube):
    """Scores above the target cost nothing."""

    below, above = 1.0, 0.0


class SquaredTube(TargetLoss):
    name, square = "squared_tube", True

    def value(self, f):
        return self.s * self.excess(f) ** 2

    def slope(self, f):
        return 2.0 * self.s * self.excess(f)

    def curvature(self, f):
        return 2.0 * self.s * (self.excess(f) != 0.0)

    def offset(self, g):
        square = np.divide(g * g, 4.0 * self.s, out=np.zeros_like(g), where=self.s > 0.0)
        return -g * self.t - self.epsilon * np.abs(g) - square

    def limits(self, i, C):
        return (-INF, INF) if self.s[i] else (0.0, 0.0)

    def range(self, i, alpha, C):
        if not self.s[i]:
            return -INF, INF
        own = self.t[i] - alpha / (2.0 * C * self.s[i])
        return own + np.where(alpha < 0.0, 1, -1) * self.epsilon, own + np.where(alpha > 0.0, -1, 1) * self.epsilon

    def best(self, i, z, q, C):
        r = z - self.t[i]
        over = np.sign(r) * max(0.0, abs(r) - self.epsilon)
        return -over * 2.0 * C * self.s[i] / (1.0 + 2.0 * C * self.s[i] * q)


class Huber(TargetLoss):
    name = "huber"

    def value(self, f):
        r = np.abs(f - self.t)
        return self.s * np.where(r <= self.epsilon, 0.5 * r * r, self.epsilon * (r - 0.5 * self.epsilon))

    def slope(self, f):
        return self.s * np.clip(f - self.t, -self.epsilon, self.epsilon)

    def curvature(self, f):
        return self.s * (np.abs(f - self.t) < self.epsilon)

    def offset(self, g):
        return -g * self.t - np.divide(g * g, 2.0 * self.s, out=np.zeros_like(g), where=self.s > 0.0)

    def limits(self, i, C):
        return -C * self.s[i] * self.epsilon, C * self.s[i] * self.epsilon

    def range(self, i, alpha, C):
        if not self.s[i]:
            return -INF, INF
        least, most = self.limits(i, C)
        own = self.t[i] - alpha / (C * self.s[i])
        return -INF if alpha == most else own, INF if alpha == least else own

    def best(self, i, z, q, C):
        S = C * self.s[i]
        return np.clip(-S * (z - self.t[i]) / (1.0 + S * q), *self.limits(i, C))


LOSSES = {
    "hinge": Hinge,
    "squared hinge": SquaredHinge,
    "logistic": Logistic,
    "epsilon-insensitive": Tube,
    "pinball": Pinball,
    "one-sided": OneSided,
    "squared epsilon-insensitive": SquaredTube,
    "Huber": Huber,
}


def random_loss(kind, rng, n):
    """One with weights, some of them 0, and some rows of the same target."""
    weights = rng.integers(0, 4, size=n).astype(np.float64)
    if issubclass(kind, LabelLoss):
        return kind(rng.choice([-1.0, 1.0], size=n) * weights)
    targets = np.where(rng.random(n) < 0.7, rng.normal(size=n), 0.25)
    return kind(targets, weights)


def random_alpha(loss, rng, C):
    """Of each row at one of its limits, at 0, or between them."""
    n = len(loss.s)
    least, most = np.array([loss.limits(i, C) for i in range(n)]).reshape(n, 2).T
    least, most = np.maximum(least, -3.0 * C * loss.s), np.minimum(most, 3.0 * C * loss.s)
    between = least + rng.random(n) * (most - least)
    return np.choose(rng.integers(0, 4, size=n), [np.zeros(n), least, most, between])


def objective(X, loss, C, intercept, w, b):
    return 0.5 * (w @ w + (b * b if intercept == "regularized" else 0.0)) + C * loss.value(X @ w + b).sum()


def optimum(X, loss, C, intercept):
    """(low, high) with low <= min F <= high, close to each other: by L-BFGS, or by quadprog."""
    keep = loss.s > 0.0
    X, loss = X[keep], loss.take(keep)
    return _smooth_optimum(X, loss, C, intercept) if loss.smooth else _dual_optimum(X, loss, C, intercept)


def _smooth_optimum(X, loss, C, intercept):
    """From the best point found: F is 1-strongly convex, so that F* >= F - |gradient|^2 / 2."""
    ones = {"none": np.zeros((len(X), 1)), "regularized": np.ones((len(X), 1)), "free": np.ones((len(X), 1))}[intercept]
    wide, penalty = np.hstack([X, ones]), np.append(np.ones(X.shape[1]), float(intercept == "regularized"))

    def F(v):
        f = wide @ v
        return 0.5 * (penalty * v) @ v + C * loss.value(f).sum(), penalty * v + C * loss.slope(f) @ wide

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 50}
    v = minimize(F, np.zeros(wide.shape[1]), jac=True, method="L-BFGS-B", options=options).x
    high, gradient = F(v)
    lost = 0.5 * gradient[:-1] @ gradient[:-1] + abs(gradient[-1]) * (
        10.0 + abs(v[-1])
    )  # b is within 10 of the best one
    return high - lost, high


def _dual_optimum(X, loss, C, intercept):
    """alpha is the difference of two numbers that are not negative: its absolute value is their sum."""
    n = len(X)
    wide = np.hstack([X, np.ones((n, 1))]) if intercept == "regularized" else X
    signs = np.concatenate([np.ones(n), -np.ones(n)])
    Z = signs[:, None] * np.vstack([loss.y[:, None] * wide] * 2)
    limits = np.array([loss.limits(i, C) for i in range(n)]).reshape(n, 2)
    most = np.concatenate([limits[:, 1], -limits[:, 0]])
    unit = np.array([-loss.offset(-sign * loss.y)[i] for sign in (1.0, -1.0) for i in range(n)])
    Q = Z @ Z.T
    ridge = 1e-9 * max(1.0, np.trace(Q) / n)  # quadprog wants a positive definite matrix
    sides, bounds, equalities = np.concatenate([np.zeros(2 * n), -most]), np.hstack([np.eye(2 * n), -np.eye(2 * n)]), 0
    if intercept == "free":
        balance = (signs * np.tile(loss.y, 2))[:, None]
        bounds, sides, equalities = np.hstack([balance, bounds]), np.concatenate([[0.0], sides]), 1
    some = most > 0.0  # quadprog does not take numbers that have to be 0
    use = np.concatenate([np.ones(equalities, dtype=bool), some, some])
    Q, bounds = (Q + ridge * np.eye(2 * n))[some][:, some], bounds[some][:, use]
    both = np.zeros(2 * n)
    both[some] = np.clip(quadprog.solve_qp(Q, -unit[some], bounds, sides[use], equalities)[0], 0.0, most[some])
    alpha = both[:n] - both[n:]
    if intercept == "free":  # balance exactly: the heavier side gives way
        beta = loss.y * alpha
        up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
        alpha = alpha * np.where(beta > 0.0, min(1.0, down / up) if up else 0.0, min(1.0, up / down) if down else 0.0)
    v = (loss.y * alpha) @ wide
    low, w, b = C * loss.offset(-loss.y * alpha / C).sum() - 0.5 * v @ v, v[: X.shape[1]], 0.0
    if intercept == "regularized":
        b = v[-1]
    elif intercept == "free":  # the minimum over b is at a breakpoint
        ends = [loss.range(i, side, C) for i in range(n) for side in (limits[i, 0], 0.0, limits[i, 1])]
        margins = np.array(ends).reshape(n, 6)
        shifts = (loss.y[:, None] * margins - (X @ w)[:, None]).ravel()
        b = min(shifts[np.isfinite(shifts)], key=lambda b: objective(X, loss, C, intercept, w, b))
    return low, objective(X, loss, C, intercept, w, b)
