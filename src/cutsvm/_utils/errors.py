"""Errors that name what is wrong with the user's data."""

from __future__ import annotations


class DataError(ValueError):
    """The data cannot be used; the text says where (`FILE:LINE: ...`) and what was expected."""


class ClusterError(RuntimeError):
    """A fit on several machines cannot go on; the text says which part or worker, and what to do."""


class NoWorkersError(ClusterError):
    """The time of a fit is over, and there are no workers that could go on."""
