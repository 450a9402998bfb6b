"""Drains a solver of kernel machines that has an end of its own. `cutsvm.driver.run.run` is for those that a gap
ends."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np

from cutsvm._utils.timing import clock
from cutsvm.driver.run import Callback, Record, Result, Status, record_of
from cutsvm.kernel_machines.task import Answer

__all__ = ["drive"]


def drive(answers: Iterator[Answer], tol: float, callbacks: Sequence[Callback]) -> Result:
    """The first answer within tol, or the last one; also after Ctrl-C, if there is one by then."""
    last: Answer | None = None
    records: list[Record] = []
    interrupted = False
    # Overflow is seen in the objective, and then it is an error.
    with clock() as time, np.errstate(over="ignore", invalid="ignore"):
        try:
            for last in answers:
                if not last.proven:
                    continue
                if not np.isfinite(last.primal):
                    raise FloatingPointError("the objective is not finite: scale the features (or lower C)")
                records.append(replace(record_of(last, len(records), time, tol, ""), iteration=last.epochs))
                asked = [bool(callback(records[-1])) for callback in callbacks]
                if any(asked):
                    last = replace(last, ended=Status.CALLBACK)
                if last.gap <= tol or any(asked):
                    break
        except KeyboardInterrupt:
            if last is None:  # nothing to keep yet
                raise
            interrupted = True
        finally:
            if isinstance(answers, Generator):
                answers.close()
    assert last is not None
    history = [record.to_dict() for record in records]
    status = _status(last, tol, interrupted=interrupted)
    return Result(last.w, last.primal, last.lower, status, max(1, last.epochs), history)


def _status(last: Answer, tol: float, *, interrupted: bool) -> Status:
    """How it ended. A solver that takes itself for converged, and is not, is at the end of its precision."""
    if last.gap <= tol:
        return Status.CONVERGED
    if interrupted:
        return Status.INTERRUPTED
    return Status.PRECISION if last.ended is Status.CONVERGED else last.ended
