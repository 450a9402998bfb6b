"""The fuzzing targets work, and find nothing in a few inputs; long runs are for .ci/nightly."""

import os
import shutil
import subprocess
import sys
import warnings

import pytest

from tests.fuzz import run
from tests.support import ROOT

NAMES = [
    *("arrow", "checkpoint", "csv", "liblinear", "model", "npy", "npz", "parquet", "store"),
    *("svmlight", "svmlight-compressed"),
]


def test_every_reader_has_a_target():
    assert sorted(run.targets()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_few_inputs(name, tmp_path):
    target = run.targets()[name](tmp_path)
    answers = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(25 if name == "checkpoint" else 60):
            data = run.make_input(target, 7, number)
            assert data == run.make_input(target, 7, number), "inputs are made from their number alone"
            accepted, trace = run.run_one(target, data)
            assert accepted is not None, trace
            answers.add(accepted)
    assert answers == {True, False}


class Faulty:
    """A target that finds everything there is to find, by the number of the input."""

    name = "faulty"

    def __init__(self, folder):
        pass

    def make(self, random):
        return bytes([random.randrange(256)])

    def check(self, data):
        kind = data[0] % 16
        if kind == 0:
            raise KeyError("a traceback")
        if kind == 1:
            os.abort()
        return kind % 2 == 0


@pytest.mark.slow
def test_crashes_and_tracebacks_are_kept_with_their_inputs(tmp_path):
    script = tmp_path / "faulty.py"
    script.write_text(
        "import sys\n"
        "from tests.fuzz import run, test_fuzz\n"
        "run.targets = lambda: {'faulty': test_fuzz.Faulty}\n"
        "sys.exit(run.main())\n"
    )
    found = tmp_path / "found"
    # The children are processes of their own: they are told to run the same script.
    source = (ROOT / "tests" / "fuzz" / "run.py").read_text()
    assert '"-m", "tests.fuzz.run", "--child"' in source
    for part in ("__init__.py", "support/__init__.py"):
        (tmp_path / "tests" / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / part, tmp_path / "tests" / part)
    shutil.copytree(ROOT / "tests" / "fuzz", tmp_path / "tests" / "fuzz")
    command = f'{os.fspath(script)!r}, "--child"'
    (tmp_path / "tests" / "fuzz" / "run.py").write_text(source.replace('"-m", "tests.fuzz.run", "--child"', command))
    words = [script, "--inputs", "64", "--findings", found]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    numbers = range(64)
    kinds = [run.make_input(Faulty(None), 0, number)[0] % 16 for number in numbers]
    kept = sorted(path.name for path in found.glob("*.bin"))
    assert kept == sorted(f"faulty-{number}.bin" for number in numbers if kinds[number] < 2)
    assert done.returncode == 1
    assert f"{kinds.count(0)} findings, {kinds.count(1)} crashes, 0 hangs" in done.stdout, done.stdout + done.stderr
