"""The C++ under the address and undefined-behaviour sanitizers: each file of tests/cpp is a program of its own."""

import shutil
import subprocess

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.slow

# The last warning: vectors wider than a register are taken apart number by number, and are slow (core/lanes.hpp).
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wvector-operation-performance"]
# -g1: lines in the reports, without the tables of variables that take half of the time to compile.
FLAGS = ["-std=c++20", "-O0", "-g1", "-fopenmp", "-fno-omit-frame-pointer", *WARNINGS]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.mark.parametrize("source", sorted((ROOT / "tests" / "cpp").glob("*.cpp")), ids=lambda path: path.stem)
def test_kernels_under_sanitizers(source, tmp_path):
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler, "the package itself needs a C++ compiler"
    program = tmp_path / source.stem
    build = [compiler, *FLAGS, *SANITIZERS, f"-I{ROOT / 'src'}", str(source), "-o", str(program)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    # OpenMP's own pool of threads is never freed: that is not a leak of ours.
    ran = subprocess.run([program], capture_output=True, text=True, check=False, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
