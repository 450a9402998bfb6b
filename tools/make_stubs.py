"""Writes src/cutsvm/_core.pyi from the compiled module that is installed: `python tools/make_stubs.py`.

nanobind's generator gives the signatures; ruff formats them as it does all Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

from cutsvm import _core

ROOT = Path(__file__).parent.parent
STUB = ROOT / "src" / "cutsvm" / "_core.pyi"


def stub_text() -> str:
    """The stub of cutsvm._core as it should be committed."""
    generator = StubGen(_core, quiet=True)
    generator.put(_core)
    text = f"# Written by tools/make_stubs.py.\n{generator.get()}"
    for command in (["check", "--select", "I,UP", "--fix", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(ruff, cwd=ROOT, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub_text())
