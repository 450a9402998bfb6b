"""Out of memory: a MemoryError in Python, one line and exit code 1 at the command line; never a signal."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS as on Linux")


def test_all_parallel_regions_are_in_one_file():
    """An exception that leaves a parallel region ends the process; core/parallel.hpp catches them."""
    region = re.compile(r"#\s*pragma omp (?!simd)")
    found = {path.name for path in (ROOT / "src").rglob("*.[ch]pp") if region.search(path.read_text())}
    assert found == {"parallel.hpp"}


@LINUX
def test_fits_under_a_limit_on_the_address_space():
    """Their kernels allocate inside of parallel regions: an exception there ended the process with SIGABRT."""
    cases = ["KernelSVC, isda", "crammer_singer", "ocas"]
    words = [sys.executable, str(Path(__file__).parent / "low_memory.py"), *cases]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"(\d+) x MemoryError, then fitted", done.stdout)
    # How many there are depends on what the allocator has left over; all together there are some.
    assert len(found) == len(cases) and sum(map(int, found)) > len(cases), done.stdout


@LINUX
@pytest.mark.parametrize("megabytes", [150, 300])
def test_a_command_under_a_limit_on_the_address_space(megabytes):
    """Below what libraries need when they are loaded: tracebacks, an endless loop in OpenBLAS, or its own exit."""
    shell = f"ulimit -v {1024 * megabytes}; {sys.executable} -m cutsvm.cli demo"
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 1
    assert done.stderr.startswith("cutsvm: not enough memory") and done.stderr.count("\n") == 1, done.stderr


def test_library_that_fails_to_load(monkeypatch, capsys):
    import cutsvm.cli

    for text, expected in (
        ("some.so: failed to map segment from shared object", "cutsvm: not enough memory\n"),
        ("No module named 'scipy'", "cutsvm: cannot load a library: No module named 'scipy'\n"),
    ):

        def refuse(text=text):
            raise ImportError(text)

        monkeypatch.setattr(cutsvm.cli, "_check_address_space", refuse)
        assert cutsvm.cli.main(["--version"]) == 1
        assert capsys.readouterr().err == expected


def test_one_thread_where_no_other_can_be_started(monkeypatch):
    from cutsvm._utils import threads

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_known", type("Nothing", (), {})())
    monkeypatch.setattr(threads.core, "max_threads", lambda: 4)
    assert threads.count(2) == 2
    monkeypatch.setattr(threads, "_known", type("Nothing", (), {})())
    monkeypatch.setattr("threading.Thread.start", refuse)
    assert threads.count(2) == 1
