"""scikit-learn's callbacks (from 1.9 on): a fit is a task, and every iteration one of its subtasks.

    LinearSVC().set_callbacks(ScoringMonitor(scoring="accuracy")).fit(X, y)

An older scikit-learn has no `set_callbacks`, and this module does nothing. An iteration begins where the last one
ended, so one more begins than the solver makes; it has no model, and ends with the fit. `_init_callback_context` is
documented for other packages despite its underscore.
"""

from __future__ import annotations

from inspect import signature
from types import MethodType
from typing import TYPE_CHECKING, Any

try:
    from sklearn import callback as sklearn_callback
except ImportError:
    sklearn_callback = None

if TYPE_CHECKING:
    from cutsvm._utils.types import Vector
    from cutsvm.driver.records import Record


class _NoCallbacks:
    """In place of scikit-learn's mixin where it has none."""


_Support: Any = _NoCallbacks if sklearn_callback is None else sklearn_callback.CallbackSupportMixin


class CallbackSupport(_Support):  # type: ignore[misc]
    """An estimator whose `fit` is a task while callbacks are set.

    The `fit` of an instance with callbacks is `_fit_as_task`; without, it is the method of the class: a wrapper around
    every fit would add half of the time of a fit of a millisecond.
    """

    if sklearn_callback is not None:

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Sets scikit-learn's callbacks in place of the current ones."""
            super().set_callbacks(*callbacks)
            self._fit_as_task_if(bool(callbacks))
            return self

        def __sklearn_clone__(self) -> Any:
            twin = super().__sklearn_clone__()  # with the callbacks
            twin._fit_as_task_if("fit" in vars(self))
            return twin

        def __getstate__(self) -> dict[str, Any]:
            state: dict[str, Any] = dict(super().__getstate__())
            if state.pop("fit", None) is not None:
                state["_fits_as_task"] = True
            return state

        def __setstate__(self, state: dict[str, Any]) -> None:
            as_task = "_fits_as_task" in state
            super().__setstate__({name: value for name, value in state.items() if name != "_fits_as_task"})
            self._fit_as_task_if(as_task)

        def _fit_as_task_if(self, condition: bool) -> None:
            self.__dict__.pop("fit", None)
            if condition:
                self.__dict__["fit"] = MethodType(_fit_as_task, self)


def _fit_as_task(estimator: Any, X: Any, y: Any = None, *args: Any, **named: Any) -> Any:
    """`fit` of the estimator's class, as a task of its callbacks."""
    return sklearn_callback.with_callbacks(_run_task)(estimator, X, y, *args, **named)


def _run_task(estimator: Any, X: Any, y: Any, *args: Any, **named: Any) -> Any:
    fit = type(estimator).fit
    given = dict(zip(list(signature(fit).parameters)[3:], args, strict=False)) | named
    estimator._fit_task = task = FitTask(estimator, X, y, given)
    try:
        fit(estimator, X, y, *args, **named)
    finally:
        del estimator._fit_task
    task.end()
    return estimator


class FitTask:
    """The task of one fit. `fitted`: attributes of its models besides their weights."""

    def __init__(self, estimator: Any, X: Any, y: Any, given: dict[str, Any]) -> None:
        self.estimator = estimator
        metadata = {name: given[name] for name in ("sample_weight", "qid") if given.get(name) is not None}
        # Without y, X is a data set, which a callback cannot score.
        self._data = {} if y is None else {"X": X, "y": y, "metadata": metadata or None}
        self.fitted: dict[str, Any] = {}
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._iteration: Any = None

    def begin(self) -> FitTask:
        """Begins the first iteration; the task is then one of the fit's callbacks."""
        if self._iteration is None:
            self._iteration = self._next()
        return self

    def _next(self) -> Any:
        context = self._context.subcontext(task_name="iteration")
        return context.call_on_fit_task_begin(estimator=self.estimator, **self._data)

    def __call__(self, record: Record) -> bool:
        return self.observe(record, None, None)

    def observe(self, record: Record, oracle: Any, w: Vector | None) -> bool:
        """Ends an iteration at w; True if a callback asks to stop."""

        def model() -> dict[str, Any] | None:
            weights = None if w is None else self.estimator._weights_at(oracle, w, record)
            return None if weights is None else weights | self.fitted

        stop = self._iteration.call_on_fit_task_end(
            estimator=self.estimator, **self._data, reconstruction_attributes=model
        )
        self._iteration = self._next()
        return bool(stop)

    def end(self) -> None:
        """Ends the task; the estimator is fitted."""
        if self._iteration is not None:
            self._iteration.call_on_fit_task_end(estimator=self.estimator)
        self._context.call_on_fit_task_end(estimator=self.estimator, **self._data, reconstruction_attributes={})
