"""Random reduced problems, and their objectives, bounds and solutions by other means."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import quadprog

from cutsvm.qp.problem import ReducedProblem

FORMS = ["planes", "features"]


def some_planes(rng, m, d, shards, n_free):
    shard = np.concatenate([np.arange(shards), rng.integers(0, shards, size=m)])[:m]
    slopes = rng.normal(size=(m, d + n_free))
    return slopes, np.abs(rng.normal(size=m)), shard


def signed_planes(rng, m, d, shards, n_free):
    """Offsets of any sign, as of losses with targets; of one sign alone now and then."""
    slopes, offsets, shard = some_planes(rng, m, d, shards, n_free)
    return slopes, offsets * rng.choice([rng.choice([-1.0, 1.0], size=m), -np.ones(m)], p=[0.9, 0.1]), shard


def odd_planes(rng, m, d, shards, n_free):
    """Duplicates, zero slopes, any scale, shards of one plane, shard numbers with gaps, offsets of any sign."""
    slopes, offsets, shard = some_planes(rng, m, d, shards, n_free)
    slopes *= 10.0 ** rng.uniform(-4, 4) * 10.0 ** rng.uniform(-1, 1, size=(m, 1))
    again = rng.integers(0, m, size=m // 3)
    slopes[: len(again)], offsets[: len(again)] = slopes[again], offsets[again]
    slopes[rng.random(m) < 0.1] = 0.0
    shard[rng.random(m) < 0.1] = 1000 + rng.integers(0, 3)
    if n_free and rng.random() < 0.3:
        slopes[:, d:] = 0.0
    if rng.random() < 0.3:
        offsets *= rng.choice([-1.0, 1.0], size=m)
    if n_free > 1:
        kind = rng.integers(0, 4)
        if kind == 0:  # an inactive intercept
            slopes[:, d + rng.integers(n_free)] = 0.0
        elif kind == 1:  # columns that depend on each other
            slopes[:, d] = slopes[:, d + 1 :] @ rng.normal(size=n_free - 1)
        elif kind == 2:  # no weights balance
            slopes[:, d:] = np.abs(slopes[:, d:])
    return slopes, offsets * 10.0 ** rng.uniform(-4, 4), shard


def class_planes(rng, m, d, shards, n_free):
    """Free intercepts as in a multi-class problem: rows wrongly assigned to a class less rows of it."""
    slopes, offsets, shard = some_planes(rng, m, d, shards, n_free)
    pairs = rng.integers(0, n_free + 1, size=(m, 30, 2))
    counts = np.zeros((m, n_free + 1))
    for wrong, right in pairs.transpose(1, 2, 0):
        np.add.at(counts, (np.arange(m), wrong), 1.0)
        np.add.at(counts, (np.arange(m), right), -1.0)
    slopes[:, d:] = counts[:, :n_free] / 30
    return slopes, offsets, shard


def problem_of(form, slopes, offsets, shard, n_free, intercept_bound=100.0):
    A = slopes[:, : slopes.shape[1] - n_free]
    return ReducedProblem(slopes, offsets, shard, n_free, A @ A.T if form == "planes" else None, intercept_bound)


def objective(problem, C, w):
    """|w|^2/2 + C risk, in more digits than the solvers have."""
    d = len(w) - problem.n_free
    wide = w.astype(np.longdouble)
    heights = problem.slopes.astype(np.longdouble) @ wide + problem.offsets
    oracle = sum(max(0.0, heights[problem.shard == p].max()) for p in np.unique(problem.shard))
    return 0.5 * np.sum(wide[:d] ** 2) + C * oracle


def bound_of(problem, C, x):
    """The lower bound that x gives for the problem with |b_j| <= intercept_bound, exactly."""
    exact = [Fraction(weight) for weight in x]
    pull = [sum(Fraction(a) * weight for a, weight in zip(column, exact, strict=True)) for column in problem.slopes.T]
    gain = sum(Fraction(o) * weight for o, weight in zip(problem.offsets, exact, strict=True))
    d = len(pull) - problem.n_free
    off = Fraction(problem.intercept_bound) * sum(abs(c) for c in pull[d:])
    return Fraction(C) * (gain - off) - Fraction(C) ** 2 * sum(a * a for a in pull[:d]) / 2


def objective_in_the_box(problem, C):
    """The objective where quadprog finds it lowest with |b_j| <= intercept_bound, close to the optimum."""
    size, ids = problem.slopes.shape[1], np.unique(problem.shard)
    member = (problem.shard[:, None] == ids[None, :]).astype(float)
    d, f, s = size - problem.n_free, problem.n_free, len(ids)
    # In w, b / intercept_bound and the shards' risks, scaled. quadprog needs a positive definite matrix:
    # a proximal term is added around the last solution, five times.
    high = problem.offsets.max()
    extra = np.concatenate([np.zeros(d), np.full(f + s, 1e-7 * C * high)])
    curvature = np.diag(np.concatenate([np.ones(d), np.zeros(f + s)]) + extra)
    line = np.concatenate([np.zeros(d + f), np.full(s, C * high)])
    planes = np.hstack([-problem.slopes[:, :d], -problem.intercept_bound * problem.slopes[:, d:], high * member])
    risks = np.hstack([np.zeros((s, size)), np.eye(s)])
    box = np.hstack([np.zeros((f, d)), np.eye(f), np.zeros((f, s))])
    constraints = np.vstack([planes, risks, box, -box])
    sides = np.concatenate([problem.offsets, np.zeros(s), -np.ones(2 * f)])
    scale = np.abs(constraints).max(axis=1)
    found = np.zeros(size + s)
    for _ in range(5):
        found = quadprog.solve_qp(curvature, extra * found - line, (constraints / scale[:, None]).T, sides / scale)[0]
    return objective(
        problem, C, np.concatenate([found[:d], problem.intercept_bound * np.clip(found[d:size], -1.0, 1.0)])
    )


def by_quadprog(slopes, offsets, shard, n_free, C):
    """The dual's value: max C o.x - C^2 |A'x|^2/2."""
    m, d = len(offsets), slopes.shape[1] - n_free
    A = slopes[:, :d]
    Q = C * A @ A.T
    Q += 1e-10 * max(1.0, np.trace(Q) / m) * np.eye(m)
    member = (shard[:, None] == np.unique(shard)[None, :]).astype(float)
    constraints = np.hstack([slopes[:, d:], np.eye(m), -member])
    sides = np.concatenate([np.zeros(n_free), np.zeros(m), -np.ones(member.shape[1])])
    try:
        x = quadprog.solve_qp(Q, offsets, constraints, sides, n_free)[0]
    except ValueError:  # c of one sign: only x = 0 is feasible
        return 0.0
    x = np.maximum(x, 0.0)  # it is infeasible by 1e-6 or so
    x /= np.maximum(1.0, member.T @ x)[np.unique(shard, return_inverse=True)[1]]
    for c in slopes[:, d:].T:
        up, down = x @ np.maximum(c, 0.0), x @ np.maximum(-c, 0.0)
        x *= np.where(c > 0.0, min(1.0, down / max(up, 1e-300)), min(1.0, up / max(down, 1e-300)))
    return C * (offsets @ x - 0.5 * C * np.sum((A.T @ x) ** 2))
