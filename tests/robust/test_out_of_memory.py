"""Out of memory: a MemoryError in Python, one line and exit code 1 at the command line; never a signal."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS as on Linux")


def test_all_parallel_regions_are_in_one_file():
    """An exception that leaves a parallel region ends the process; core/parallel.hpp catches them."""
    region = re.compile(r"#\s*pragma omp (?!simd)")
    found = {path.name for path in (ROOT / "src").rglob("*.[ch]pp") if region.search(path.read_text())}
    assert found == {"parallel.hpp"}


@LINUX
def test_fits_under_a_limit_on_the_address_space():
    """These ended in SIGABRT: their kernels allocate inside of parallel regions."""
    cases = ["KernelSVC, isda", "crammer_singer", "ocas"]
    words = [sys.executable, str(Path(__file__).parent / "low_memory.py"), *cases]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"(\d+) x MemoryError, then fitted", done.stdout)
    assert len(found) == len(cases) and all(int(many) > 0 for many in found), done.stdout


def test_one_thread_where_no_other_can_be_started(monkeypatch):
    from cutsvm import threads

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_known", type("Nothing", (), {})())
    monkeypatch.setattr(threads.core, "max_threads", lambda: 4)
    assert threads.count(2) == 2
    monkeypatch.setattr(threads, "_known", type("Nothing", (), {})())
    monkeypatch.setattr("threading.Thread.start", refuse)
    assert threads.count(2) == 1
