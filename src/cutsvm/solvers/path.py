"""A path over several C: what is found out at one C is kept for the others.

Minimises F_C(w) = |w|^2/2 + C R(w) for several C. Neither R nor a plane under it depends on C, so

    1. a point whose R is known has a known F at every C: the best of them costs no pass
    2. planes give a lower bound at every C: one reduced problem, no pass
    3. if 1 and 2 are close enough, this C is done. Else the minimiser of 2 is evaluated: one pass, and its planes join
       the others. A solver may have done a part of the work for all C together (`Solver.presolve`)
    4. if that is not enough, the solver goes on from the best point, with all planes

The order of the C is the solver's. OCAS goes up, with the shards for the largest C. Sifting goes down: the working set
of the next smaller C is nearer. Coordinate descent goes up from a C that is easy, and then down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.protocol import FitContext, Iterate, Solver, resume_from

__all__ = ["iterates_at", "iterates_on_path"]


def iterates_at(solver: Solver, context: FitContext, C: float, *, qp_share: float = 0.1) -> Iterator[Iterate]:
    """The iterates at one C of a path, beginning with what is known.

    qp_share: the share of the gap to which reduced problems are solved.
    """
    if context.first_trial is not None:
        context.evaluate(context.first_trial)
        context.first_trial = None
    w_t, _ = context.bound(C, qp_share * context.tol * context.best(C).objective(C))  # 1, 2
    yield context.known(C)
    if not context.presolved:
        for _ in solver.presolve(context):
            yield replace(context.known(C), pending=True, note="all C together")
        context.presolved = True
        w_t, _ = context.bound(C, qp_share * context.tol * context.best(C).objective(C))
        yield context.known(C)
    if w_t is not None and context.starts is None:  # 3
        planes = context.evaluate(w_t)
        if context.known_gap(C, qp_share) > context.tol:
            context.bundle.add(planes())
            context.known_gap(C, qp_share)
        yield replace(context.known(C), step=1.0, note="at the minimum of the planes of other C")
    known = context.known(C)
    context.start = known.w if known.w.any() else None
    yield from resume_from(solver(context, C), known)  # 4


def iterates_on_path(
    solver: Solver, oracle: Oracle, Cs: Sequence[float], tol: float, max_iter: int
) -> Iterator[tuple[float, Iterate]]:
    """Every iterate of a path with its C, in the order of Cs, each to a gap of `tol` or for `max_iter` iterations."""
    context = FitContext(oracle, Cs, tol)
    for C in Cs:
        iterates = iterates_at(solver, context, C) if context.is_path else solver(context, C)
        for number, iterate in enumerate(iterates):
            yield C, iterate
            if iterate.gap <= tol or number >= max_iter:
                break
        exact = iterate.exact
        context.know(iterate.w, iterate.risk if exact else oracle.risk(iterate.w))
