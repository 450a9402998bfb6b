"""What a call executes, frame by frame."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def on_each_call(call: Callable[[], object], see: Callable[[FrameType], None]) -> None:
    """Runs `call`; `see` is given the frame of every Python function that it calls."""

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            see(frame)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
