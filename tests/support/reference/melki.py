"""Algorithms A and B and the NL-SGD of Melki and Kecman (2016), written down from their text, line by line.

Their letters: m rows, labels y of +1 and -1, lambda (lam), theta, w, beta, alpha. `chosen` are the rows i of steps
t = 1 .. T. `step` is "1/(lambda m)" as in their boxes, or "1/(lambda t)" as in their (2). `nearest` is how near a
margin was to 1: what was rounded in another way may have decided otherwise there.
"""

import numpy as np


def algorithm_a(X, y, lam, chosen, step="1/(lambda m)"):
    """SGD for solving soft-SVM: (w*, all w^(t) with t = 1 .. T + 1, nearest)."""
    m, T = len(y), len(chosen)
    theta, w, nearest = {1: np.zeros(X.shape[1])}, {}, np.inf  # 2
    for t in range(1, T + 1):  # 3
        w[t] = factor(step, lam, m, t) * theta[t]  # 4
        i = chosen[t - 1]  # 5
        margin = y[i] * sum(w[t][k] * X[i, k] for k in range(X.shape[1]))
        nearest = min(nearest, abs(margin - 1.0))
        if margin < 1.0:  # 6
            theta[t + 1] = theta[t] + y[i] * X[i]  # 7
        else:  # 8
            theta[t + 1] = theta[t]  # 9
    w_star = sum(w[t] for t in range(1, T + 1)) / T  # 10
    w[T + 1] = factor(step, lam, m, T + 1) * theta[T + 1]
    return w_star, w, nearest


def algorithm_b(K, y, lam, chosen, step="1/(lambda m)"):
    """SGD for solving soft-SVM with kernels: (alpha*, all alpha^(t) with t = 1 .. T + 1, nearest)."""
    m, T = len(y), len(chosen)
    beta, alpha, nearest = {1: np.zeros(m)}, {}, np.inf  # 1
    for t in range(1, T + 1):  # 2
        alpha[t] = factor(step, lam, m, t) * beta[t]  # 3
        i = chosen[t - 1]  # 4
        beta[t + 1] = beta[t].copy()  # 5
        margin = y[i] * sum(alpha[t][j] * K[j, i] for j in range(m))
        nearest = min(nearest, abs(margin - 1.0))
        if margin < 1.0:  # 6
            beta[t + 1][i] = beta[t][i] + y[i]  # 7, where the box has beta_j for beta_i
        else:  # 8
            beta[t + 1][i] = beta[t][i]  # 9
    alpha_star = sum(alpha[t] for t in range(1, T + 1)) / T  # 10
    alpha[T + 1] = factor(step, lam, m, T + 1) * beta[T + 1]
    return alpha_star, alpha, nearest


def nl_sgd(K, y, lam, shuffled, epochs, share, step="1/(lambda m)"):
    """Section III: Algorithm B with the shuffled rows in turn, T = m epochs: (alpha, nearest).

    alpha is the mean over the last share of the updates, each of which gives the next alpha; with 0 the last alpha.
    """
    T = len(y) * epochs
    chosen = [shuffled[(t - 1) % len(y)] for t in range(1, T + 1)]
    _, alpha, nearest = algorithm_b(K, y, lam, chosen, step)
    updates = [alpha[t + 1] for t in range(1, T + 1)]
    return mean_of_last(updates, share), nearest


def mean_of_last(updates, share):
    """The mean of this share of the updates, of one at least."""
    last = max(1, round(share * len(updates)))
    return sum(updates[len(updates) - last :]) / last


def factor(step, lam, m, t):
    return 1.0 / (lam * (m if step == "1/(lambda m)" else t))


def objective(K, y, lam, alpha):
    """(5) at w = sum_j alpha_j psi(x_j): lambda / 2 |w|^2 + 1/m sum_i max(0, 1 - y_i <w, psi(x_i)>)."""
    f = K @ alpha
    return 0.5 * lam * alpha @ f + np.mean(np.maximum(0.0, 1.0 - y * f))


def voted(scores, pairs, classes):
    """One-vs-one: the class with the highest number of votes of each row, or None where several have it."""
    answer = []
    for row in scores:
        votes = [0] * classes
        for score, (low, high) in zip(row, pairs, strict=True):
            votes[high if score > 0.0 else low] += 1
        winners = [k for k in range(classes) if votes[k] == max(votes)]
        answer.append(winners[0] if len(winners) == 1 else None)
    return answer
