"""The searches of Arnosti's paper, point by point, written as its pseudo-code is.

`f` is any function of mu that is convex. Where the paper is open or wrong, what
`cutsvm.problem.line_search.approximate` says.
"""

BETA = 0.2
GAMMA = 0.02
FURTHEST = 100.0


def gca(f):
    bestval = float("inf")

    def make_pass(otherwise, init, end, inc):
        nonlocal bestval
        found = otherwise
        m = 0
        while m < round((end - init) / inc):
            mu = init + m * inc
            if f(mu) < bestval:
                bestval = f(mu)
                found = mu
            m += 1
        return found

    mu1 = make_pass(None, 0.0, 2.0, BETA)
    mu2 = make_pass(mu1, mu1 - BETA / 2, mu1 + BETA / 2, BETA**2)
    mu3 = make_pass(mu2, mu2 - BETA**2 / 2, mu2 + BETA**2 / 2, BETA**3)
    return safe(f, mu3)


def gca2(f, mu_prev, uncertainty):
    """mu, and the uncertainty to go on with."""

    def make_pass_2(init, inc):
        m = 0
        while init + (m + 1) * inc <= FURTHEST:
            if not f(init + (m + 1) * inc) < f(init + m * inc):
                break
            m += 1
        return init + m * inc

    t1, t2 = BETA**2 / 2, BETA / 2
    mu1 = mu2 = mu_prev
    if uncertainty >= t2:
        mu1 = make_pass_2(mu_prev - 1, BETA)
    if uncertainty >= t1:
        mu2 = make_pass_2(mu1 - BETA / 2, BETA**2)
    mu3 = make_pass_2(mu2 - BETA**2 / 2, BETA**3)
    mu3 = safe(f, mu3)
    return mu3, change(uncertainty, mu3 - mu_prev, BETA**3)


def tca(f, mu_prev, uncertainty):
    """mu, and the uncertainty to go on with."""
    low = mu_prev - uncertainty
    mid = mu_prev
    high = mu_prev + uncertainty
    while high - low > GAMMA:
        if high <= 0 or low >= FURTHEST:
            break
        if f(low) < f(mid):
            high = mid
            mid = low
            low = 2 * mid - high
        elif f(high) < f(mid):
            low = mid
            mid = high
            high = 2 * mid - low
        else:
            alpha_low = g(f(mid), f(low))
            alpha_high = g(f(mid), f(high))
            low = (mid + alpha_low * low) / (1 + alpha_low)
            high = (mid + alpha_high * high) / (1 + alpha_high)
    mid = safe(f, mid)
    return mid, change(uncertainty, mid - mu_prev, GAMMA)


def g(x, y):
    return min(1.0, (x / y) ** 2) if y > 0 else 1.0


def change(uncertainty, moved, least):
    if abs(moved) <= uncertainty / 2:
        return max(least, uncertainty / 2)
    return min(1.0, 2 * uncertainty)


def safe(f, mu):
    mu = min(max(mu, 0.0), FURTHEST)
    return 0.0 if f(mu) > f(0.0) else mu
