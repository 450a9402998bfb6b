"""Fixtures of the tests of io."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from cutsvm.io.settings import read_settings, use_read_settings


@pytest.fixture
def read_with() -> Iterator[Callable[..., None]]:
    """Changes how much is read at a time, until the end of the test: read_with(text_bytes=8)."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(use_read_settings(replace(read_settings(), **changes)))
