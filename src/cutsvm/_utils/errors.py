"""Errors that name what is wrong with the user's data."""

from __future__ import annotations


class DataError(ValueError):
    """The data cannot be used; the text says where (`FILE:LINE: ...`) and what was expected."""
