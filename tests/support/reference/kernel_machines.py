"""Kernel machines as the papers write them, loop by loop, and the optima of their problems from quadprog.

K: kernel values of one problem's rows, in the order in which they are visited. a: label times weight; -0.0 is a row of
the negative class without weight. `edge` is how near a choice was to being made otherwise: what was not rounded alike
may differ there.
"""

import math

import numpy as np
import quadprog


def kernel(name, x, z, gamma=1.0, degree=3, coef0=0.0):
    """One value."""
    dot = sum(float(p) * float(q) for p, q in zip(x, z, strict=True))
    if name == "rbf":
        return math.exp(-gamma * sum((float(p) - float(q)) ** 2 for p, q in zip(x, z, strict=True)))
    return (gamma * dot + coef0) ** degree if name == "poly" else dot


def gram(name, X, Z, **params):
    """All values."""
    return np.array([[kernel(name, x, z, **params) for z in Z] for x in X])


def sgd(K, a, C, epochs, average, step="1/t"):
    """Algorithm B: (beta after each step, alpha, edge)."""
    m, T, y = len(a), epochs * len(a), np.copysign(1.0, a)
    rate = 1.0 / (C * m)  # lambda
    beta, betas, alphas, edge = np.zeros(m), [], [np.zeros(m)], np.inf
    for t in range(1, T + 1):
        i = (t - 1) % m
        margin = y[i] * sum(alphas[-1][j] * K[j, i] for j in range(m))
        edge = min(edge, abs(margin - 1.0))
        if margin < 1.0:
            beta[i] += a[i]
        betas.append(beta.copy())
        alphas.append(beta / (rate * (t + 1 if step == "1/t" else m)))
    return betas, mean_of_last(alphas[1:], average), edge


def linear_sgd(X, a, C, epochs, average, step="1/t"):
    """Algorithm A: (w, edge)."""
    m, T, y = len(a), epochs * len(a), np.copysign(1.0, a)
    rate = 1.0 / (C * m)
    theta, ws, edge = np.zeros(X.shape[1]), [np.zeros(X.shape[1])], np.inf
    for t in range(1, T + 1):
        i = (t - 1) % m
        margin = y[i] * sum(ws[-1][j] * X[i, j] for j in range(X.shape[1]))
        edge = min(edge, abs(margin - 1.0))
        if margin < 1.0:
            theta = theta + a[i] * X[i]
        ws.append(theta / (rate * (t + 1 if step == "1/t" else m)))
    return mean_of_last(ws[1:], average), edge


def mean_of_last(points, average):
    """The mean of this share of the points, of one at least."""
    last = max(1, round(average * len(points)))
    total = np.zeros_like(points[0])
    for point in points[-last:]:
        total += point
    return total / last


def l2_matrix(K, a, C):
    """Q + diag r for the rows with weight, and which they are."""
    own = np.flatnonzero(a)
    y = np.sign(a[own])
    return y[:, None] * y * K[np.ix_(own, own)] + np.diag(1.0 / (C * np.abs(a[own]))), own


def isda(K, a, C, steps, alpha=None):
    """NN-ISDA from alpha or 0: (alpha after these steps, edge)."""
    H, own = l2_matrix(K, a, C)
    point, edge = np.zeros(len(own)) if alpha is None else alpha[own].copy(), np.inf
    for _ in range(steps):
        g = 1.0 - H @ point
        violation = np.where(point > 0.0, np.abs(g), g)
        i = int(np.argmax(violation))
        if violation[i] <= 0.0:
            break
        edge = min(edge, distance_to_next(violation))
        point[i] = max(0.0, point[i] + g[i] / H[i, i])
    return spread(point, own, len(a)), edge


def min_norm(K, a, C, steps):
    """MN-SVM from the vertex of least norm: the best multiple of alpha after these steps."""
    H, own = l2_matrix(K, a, C)
    point = np.zeros(len(own))
    point[int(np.argmin(np.diag(H)))] = 1.0
    for _ in range(steps):
        h = H @ point
        i, j = int(np.argmin(h)), int(np.argmax(np.where(point > 0.0, h, -np.inf)))
        if h[j] - h[i] <= 0.0:
            break
        point = move(H, point, i, j)
    return spread(point / (point @ H @ point), own, len(a))


def move(H, point, i, j):
    """The weight from j to i that brings the point nearest to 0."""
    h, moved = H @ point, point.copy()
    step = min(point[j], (h[j] - h[i]) / (H[i, i] + H[j, j] - 2.0 * H[i, j]))
    moved[i] += step
    moved[j] -= step
    return moved


def distance_to_next(values):
    """From the largest of some values to the next one that is not the same."""
    best = values.max()
    others = values[(values != best) & np.isfinite(values)]
    return best - others.max() if len(others) else np.inf


def spread(point, own, n):
    """point in its places among n, 0 elsewhere."""
    alpha = np.zeros(n)
    alpha[own] = point
    return alpha


def primal(K, a, C, coef, loss):
    """|w|^2 / 2 + C sum_i s_i loss(1 - y_i f(x_i)) for w = sum_i coef_i phi(x_i)."""
    f = K @ coef
    miss = np.maximum(0.0, 1.0 - np.copysign(1.0, a) * f)
    return 0.5 * coef @ f + C * np.abs(a) @ (miss if loss == "hinge" else 0.5 * miss**2)


def optimum(K, a, C, loss):
    """(low, high) with low <= min primal <= high, usually equal to 9 digits."""
    own = np.flatnonzero(a)
    y, cap = np.sign(a[own]), C * np.abs(a[own])
    Q = y[:, None] * y * K[np.ix_(own, own)]
    n = len(own)
    if loss == "l2":
        H, bounds, sides = Q + np.diag(1.0 / cap), np.eye(n), np.zeros(n)
    else:  # quadprog wants a positive definite matrix
        H = Q + 1e-10 * max(1.0, np.trace(Q) / n) * np.eye(n)
        bounds, sides = np.hstack([np.eye(n), -np.eye(n)]), np.concatenate([np.zeros(n), -cap])
    alpha = np.clip(quadprog.solve_qp(H, np.ones(n), bounds, sides)[0], 0.0, cap if loss == "hinge" else None)
    quadratic = alpha @ Q @ alpha + (np.sum(alpha**2 / cap) if loss == "l2" else 0.0)
    return alpha.sum() - 0.5 * quadratic, primal(K, a, C, spread(y * alpha, own, len(a)), loss)


def votes(scores, low, high, classes):
    """For one row: votes_k + c_k / (3 (|c_k| + 1)) with c_k the sum of the scores for k."""
    decisions = []
    for k in range(classes):
        mine = [(p, int(high[p]) == k) for p in range(len(low)) if k in (low[p], high[p])]
        won = sum((scores[p] > 0.0) == upper for p, upper in mine)
        trust = sum(scores[p] if upper else -scores[p] for p, upper in mine)
        decisions.append(won + trust / (3.0 * (abs(trust) + 1.0)) if mine else -np.inf)
    return np.array(decisions)


def machine_scores(K, rows, first, columns, coef, used):
    """(rows, machines, versions): sums over the machines' supports."""
    out = np.zeros((len(rows), len(used), coef.shape[1]))
    for r, row in enumerate(rows):
        for p in range(len(used)):
            for k in range(first[p], first[p] + used[p]):
                out[r, p] += float(K[row, columns[k]]) * coef[k]
    return out
