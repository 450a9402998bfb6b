"""scikit-learn's callbacks, which it has from 1.9 on: a fit is a task, and every iteration one of its subtasks.

    LinearSVC().set_callbacks(ScoringMonitor(scoring="accuracy")).fit(X, y)

With an older scikit-learn there is no `set_callbacks`, and all of this is left out. An iteration begins where the one
before has ended, so that there is one more than were made: it has nothing to show, and ends with the fit.
`_init_callback_context` is meant to be called by other packages, for all its underscore.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

try:
    from sklearn import callback as sklearn_callback
except ImportError:
    sklearn_callback = None

if TYPE_CHECKING:
    from cutsvm._utils.types import Vector
    from cutsvm.driver.run import Record

__all__ = ["FitTask", "Observable", "observed"]

Fit = TypeVar("Fit", bound=Callable[..., Any])


class _Unobserved:
    """In the place of scikit-learn's class where it has none."""


_Support: Any = _Unobserved if sklearn_callback is None else sklearn_callback.CallbackSupportMixin


class Observable(_Support):  # type: ignore[misc]
    """Knows whether it has callbacks: without them a fit of a millisecond would take half as long again."""

    if sklearn_callback is not None:

        def set_callbacks(self, *callbacks: Any) -> Any:
            """scikit-learn's callbacks, in the place of those that there are."""
            super().set_callbacks(*callbacks)
            self.__dict__.pop("_is_observed", None)
            if callbacks:
                self._is_observed = True
            return self

        def __sklearn_clone__(self) -> Any:
            twin = super().__sklearn_clone__()  # has the callbacks, too
            if "_is_observed" in self.__dict__:
                twin._is_observed = True
            return twin


def observed(fit: Fit) -> Fit:
    """The `fit` of an estimator, seen by the callbacks that it was given."""
    if sklearn_callback is None:
        return fit
    parameters = list(signature(fit).parameters)

    def seen(self: Any, X: Any, y: Any = None, *args: Any, **named: Any) -> Any:
        given = dict(zip(parameters[3:], args, strict=False)) | named
        self._fit_task = task = FitTask(self, X, y, given)
        try:
            fit(self, X, y, *args, **named)
        finally:
            del self._fit_task
        task.end()
        return self

    seen = sklearn_callback.with_callbacks(seen)

    @wraps(fit)
    def fit_seen(self: Any, X: Any, y: Any = None, *args: Any, **named: Any) -> Any:
        return (seen if "_is_observed" in self.__dict__ else fit)(self, X, y, *args, **named)

    return fit_seen  # type: ignore[return-value]


class FitTask:
    """One fit. `fitted`: attributes that its models have besides their weights."""

    def __init__(self, estimator: Any, X: Any, y: Any, given: dict[str, Any]) -> None:
        self.estimator = estimator
        metadata = {name: given[name] for name in ("sample_weight", "qid") if given.get(name) is not None}
        # Without y, X is a data set: nothing that a callback could score.
        self._shown = {} if y is None else {"X": X, "y": y, "metadata": metadata or None}
        self.fitted: dict[str, Any] = {}
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._shown)
        self._iteration: Any = None

    def watch(self) -> FitTask:
        """To be called before the first iteration; the task is then one of our own callbacks."""
        if self._iteration is None:
            self._iteration = self._next()
        return self

    def _next(self) -> Any:
        context = self._context.subcontext(task_name="iteration")
        return context.call_on_fit_task_begin(estimator=self.estimator, **self._shown)

    def __call__(self, record: Record) -> bool:
        return self.see(record, None, None)

    def see(self, record: Record, oracle: Any, w: Vector | None) -> bool:
        """An iteration has ended at w; True if a callback wants no more of them."""

        def model() -> dict[str, Any] | None:
            weights = None if w is None else self.estimator._weights_at(oracle, w, record)
            return None if weights is None else weights | self.fitted

        stop = self._iteration.call_on_fit_task_end(
            estimator=self.estimator, **self._shown, reconstruction_attributes=model
        )
        self._iteration = self._next()
        return bool(stop)

    def end(self) -> None:
        """The estimator is fitted."""
        if self._iteration is not None:
            self._iteration.call_on_fit_task_end(estimator=self.estimator)
        self._context.call_on_fit_task_end(estimator=self.estimator, **self._shown, reconstruction_attributes={})
