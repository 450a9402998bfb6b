"""The certificate of a fit in a notebook, below scikit-learn's box of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from cutsvm.display.summary import describe_gap

_STYLE = "margin: 0.4em 0 0 0; border-collapse: collapse; font-size: 0.9em"
_CELL = "text-align: left; padding: 0.1em 1.2em 0.1em 0; background: none"


def certificate_html(objective: float, lower: float, gap: float, status: str) -> str:
    """A table of the objective, its lower bound, the gap in words, and how the fit ended."""
    words = describe_gap(gap)
    rows = {
        "objective": f"{objective:.6g}",
        "lower bound": f"{lower:.6g}",
        "gap": f"{gap:.2g}" + (f": {words}" if words else ""),
        "ended": status,
    }
    cells = "".join(
        f'<tr><th scope="row" style="{_CELL}">{name}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f'<table class="cutsvm-certificate" style="{_STYLE}">{cells}</table>'


class NotebookView:
    """What notebooks show of an estimator, by IPython's two protocols: scikit-learn's HTML and `_certificate_html`."""

    def _certificate_html(self) -> str:
        """The certificate, or nothing before the fit."""
        raise NotImplementedError

    @property
    def _repr_html_(self) -> Callable[[], str]:
        inner: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: inner() + self._certificate_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] += self._certificate_html()
        return shown
