"""The compiled kernels: the build for the best instruction set that this machine runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cutsvm import _core

if TYPE_CHECKING:
    core = _core
else:

    def _best():
        for level in range(_core.cpu_level(), 2, -1):
            try:
                return import_module(f"cutsvm._core_v{level}")
            except ImportError:  # not built for this platform
                continue
        return _core

    core = _best()

__all__ = ["core"]
