"""N. Arnosti, Reducing training time for linear SVMs (2010): its boxes, line by line, and OCA around them.

Letters are the paper's. F(w) = w.w / 2 + C R(w), and R is a mean over the rows. `f` is any convex function of mu. Where
the paper is open: t1, t2, the first mu_prev, and how uncertainty changes, are arguments. One misprint is corrected, in
Algorithm 3, and marked.
"""

from itertools import pairwise

import numpy as np
import quadprog

INFINITY = float("inf")


class Search:
    """What the boxes share: their constants, mu_prev and uncertainty.

    selected: mu as OCA uses it, for section II has mu >= 0.
    """

    def __init__(self, mu_prev=0.5, beta=0.2, gamma=0.02, g=2, h=0.5, t1=None, t2=None, factor=2, least=None, most=1):
        self.mu_prev, self.uncertainty = mu_prev, 1
        self.beta, self.gamma, self.exponent, self.share = beta, gamma, g, h
        self.t1 = beta**2 / 2 if t1 is None else t1
        self.t2 = beta / 2 if t2 is None else t2
        self.factor, self.least, self.most = factor, least, most

    def selected(self, f, mu):
        return max(mu, 0.0)

    def within(self, high):
        return True

    def g(self, x, y):
        return (x / y) ** self.exponent if y != 0 else 1.0  # 0 / 0 is for us to say

    def h(self, x):
        return self.share * x

    def decrease_uncertainty(self, least):
        self.uncertainty = max(least if self.least is None else self.least, self.uncertainty / self.factor)

    def increase_uncertainty(self):
        self.uncertainty = min(self.most, self.uncertainty * self.factor)


class GCA(Search):
    """Algorithm 1."""

    def make_pass(self, f, init, max, inc):
        mu_ = (init + max) / 2
        mu = init
        while mu < max:
            if f(mu) < self.bestval:
                self.bestval = f(mu)
                mu_ = mu
            mu = mu + inc
        return mu_

    def __call__(self, f):
        beta = self.beta
        self.bestval = INFINITY
        mu1 = self.make_pass(f, 0.0, 2.0, beta)
        mu2 = self.make_pass(f, mu1 - beta / 2, mu1 + beta / 2, beta**2)
        mu3 = self.make_pass(f, mu2 - beta**2 / 2, mu2 + beta**2 / 2, beta**3)
        return self.selected(f, mu3)


class GCA2(Search):
    """Algorithm 2."""

    def make_pass_2(self, f, init, inc):
        mu = init
        while f(mu + inc) < f(mu):
            mu = mu + inc
        return mu

    def __call__(self, f):
        beta, mu_prev = self.beta, self.mu_prev
        if self.uncertainty >= self.t2:
            mu1 = self.make_pass_2(f, mu_prev - 1, beta)
        else:
            mu1 = mu_prev
        if self.uncertainty >= self.t1:
            mu2 = self.make_pass_2(f, mu1 - beta / 2, beta**2)
        else:
            mu2 = mu_prev
        mu3 = self.make_pass_2(f, mu2 - beta**2 / 2, beta**3)
        mu3 = self.selected(f, mu3)
        if abs(mu3 - mu_prev) <= self.h(self.uncertainty):
            self.decrease_uncertainty(beta**3)
        else:
            self.increase_uncertainty()
        self.mu_prev = mu3
        return mu3


class TCA(Search):
    """Algorithm 3."""

    def __call__(self, f):
        mu_prev = self.mu_prev
        low = mu_prev - self.uncertainty
        mid = mu_prev
        high = mu_prev + self.uncertainty
        while high - low > self.gamma and self.within(high):
            if f(low) < f(mid):  # shift search left
                high = mid
                mid = low
                low = 2 * mid - high
            elif f(high) < f(mid):  # shift search right
                low = mid
                mid = high
                high = 2 * mid - low  # the box has 2 low - mid, which is left of low
            else:  # contract search window
                alpha_l = self.g(f(mid), f(low))
                alpha_h = self.g(f(mid), f(high))
                low = (mid + alpha_l * low) / (1 + alpha_l)
                high = (mid + alpha_h * high) / (1 + alpha_h)
        mid = self.selected(f, mid)
        if abs(mid - mu_prev) <= self.h(self.uncertainty):
            self.decrease_uncertainty(self.gamma)
        else:
            self.increase_uncertainty()
        self.mu_prev = mid
        return mid


class Safe:
    """Mixed into a search: 0 where f is lower there. Not the paper's."""

    def selected(self, f, mu):
        mu = max(mu, 0.0)
        return 0.0 if f(0.0) < f(mu) else mu

    def within(self, high):
        """A window to the left of 0 need not be searched."""
        return high > 0


class SafeGCA(Safe, GCA):
    """Algorithm 1 with f(0)."""


class SafeGCA2(Safe, GCA2):
    """Algorithm 2 with f(0)."""


class SafeTCA(Safe, TCA):
    """Algorithm 3 with f(0)."""


class Binary:
    """The risk of equation 3 and its subgradient, equation 4; y is -1 or +1."""

    def __init__(self, X, y):
        self.X, self.y, self.n = X, y, len(y)
        self.size = X.shape[1]

    def R(self, w):
        return np.maximum(0.0, 1 - self.y * (self.X @ w)).sum() / self.n

    def subgradient(self, w):
        pi = np.where(self.y * (self.X @ w) <= 1, 1, 0)
        return -(pi * self.y) @ self.X / self.n

    def breakpoints(self, w, to):
        """The mu where a summand of R(w + mu (to - w)) has its corner."""
        slope = self.y * (self.X @ (to - w))
        moving = slope != 0
        return (1 - self.y * (self.X @ w))[moving] / slope[moving]


class MultiClass:
    """The risk of equation 5, Psi(x, y) = x in the place of class y; y is 0 to K - 1.

    Of classes with equal scores, which the paper does not order: the own one, then the next after it, in a circle.
    """

    def __init__(self, X, y):
        self.X, self.y, self.n, self.K = X, y, len(y), int(y.max()) + 1
        self.size = self.K * X.shape[1]

    def heights(self, w):
        """delta(k, y_i) + <Psi(x_i, k) - Psi(x_i, y_i), w> for each row i and class k."""
        scores, rows = self.X @ w.reshape(self.K, -1).T, np.arange(self.n)
        delta = np.arange(self.K) != self.y[:, None]
        return delta + scores - scores[rows, self.y][:, None]

    def R(self, w):
        return self.heights(w).max(axis=1).sum() / self.n

    def subgradient(self, w):
        a = np.zeros((self.K, self.X.shape[1]))
        for x, y, height in zip(self.X, self.y, self.heights(w), strict=True):
            k = max([(y + step) % self.K for step in range(self.K)], key=lambda k, height=height: height[k])
            a[k] += x
            a[y] -= x
        return a.ravel() / self.n

    def breakpoints(self, w, to):
        """All mu where two of a row's lines cross."""
        at, end = self.heights(w), self.heights(to)
        found = []
        for k in range(self.K):
            for j in range(k):
                slope = (end[:, k] - at[:, k]) - (end[:, j] - at[:, j])
                moving = slope != 0
                found.append((at[:, j] - at[:, k])[moving] / slope[moving])
        return np.concatenate(found)


def exact(problem, C, w_b, w_t):
    """argmin over mu >= 0 of f(mu) = F(w_b + mu (w_t - w_b)), by sorting all breakpoints of its derivative."""
    step = w_t - w_b
    # A row that the last search has put on its margin may have its breakpoint at 1e-17 in place of 0.
    ends = [0.0, *sorted(mu for mu in problem.breakpoints(w_b, w_t) if mu > 1e-12), INFINITY]
    for left, right in pairwise(ends):
        middle = w_b + (0.5 * (left + right) if right < INFINITY else left + 1.0) * step
        slope = step @ w_b + C * problem.subgradient(middle) @ step  # of f on this piece, at mu = 0
        if slope + right * (step @ step) >= 0:
            return max(left, -slope / (step @ step))
    return 0.0  # there is no other point on the line


def reduced(A, b, C, near=1e-6):
    """argmin of w.w / 2 + C max(0, max_i a_i.w + b_i): quadprog over w and z >= C a_i.w + C b_i, z >= 0.

    quadprog wants a positive definite matrix: z is held near its last value, again and again.
    """
    A, b = C * np.array(A), C * np.array(b)
    t, d = A.shape
    H = np.diag(np.append(np.ones(d), near))
    constraints = np.vstack([np.hstack([-A, np.ones((t, 1))]), np.append(np.zeros(d), 1.0)]).T
    z = 0.0
    for _ in range(4):
        *w, z = quadprog.solve_qp(H, np.append(np.zeros(d), near * z - 1.0), constraints, np.append(b, 0.0))[0]
    return np.array(w)


def oca(problem, C, search, epsilon, cure=None, cut_at=0.1, nudge=0.02, first=5):
    """OCA as section II has it: the mu that was found and F(w_b), iteration by iteration.

    search: None for the exact one. cure: section V's, "first_steps" or "every_zero". The planes touch R at
    (1 - 0.1) w_b + 0.1 w_t, as in the paper's reference [2]. It ends where 1 - F_t(w_t) / F(w_b) < epsilon: section IV
    has the two points exchanged.
    """

    def F(w):
        return 0.5 * w @ w + C * problem.R(w)

    def F_t(w):
        return 0.5 * w @ w + C * max(0.0, max(a @ w + b for a, b in zip(planes, offsets, strict=True)))

    w_b = np.zeros(problem.size)
    w_c, planes, offsets, mus, objectives = w_b, [], [], [], []
    while True:
        a = problem.subgradient(w_c)
        planes.append(a)
        offsets.append(problem.R(w_c) - a @ w_c)
        w_t = reduced(planes, offsets, C)

        def f(mu, w_b=w_b, w_t=w_t):
            return F(mu * w_t + (1 - mu) * w_b)

        if cure == "first_steps" and len(mus) < first:
            mu = step = nudge
        else:
            mu = step = exact(problem, C, w_b, w_t) if search is None else search(f)
            if cure == "every_zero" and mu == 0:
                step = nudge
        w_b = step * w_t + (1 - step) * w_b
        w_c = (1 - cut_at) * w_b + cut_at * w_t
        mus.append(mu)
        objectives.append(F(w_b))
        if 1 - F_t(w_t) / F(w_b) < epsilon:
            return mus, objectives
