"""The command in a separate process: pipes, signals, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cutsvm import load_model
from cutsvm.cli import main

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "cutsvm.cli"]


def test_exit_codes_and_streams(binary: Path, tmp_path: Path) -> None:
    good = subprocess.run([*COMMAND, "train", binary], capture_output=True, text=True, check=False)
    assert good.returncode == 0 and "certified" in good.stdout and "rows" in good.stderr
    bad = subprocess.run([*COMMAND, "train", tmp_path / "none"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2 and bad.stdout == "" and bad.stderr.count("\n") == 1


def test_ctrl_c_during_startup(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "cutsvm.cli.parser":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "cutsvm.cli.parser", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert main(["demo"]) == 1
    assert "interrupted" in capsys.readouterr().err


def test_startup_imports_few_modules() -> None:
    words = "import sys, cutsvm.cli; print('sklearn' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_closed_pipe(binary: Path) -> None:
    subprocess.run([*COMMAND, "train", "-q", binary], check=True)
    process = subprocess.Popen(
        [*COMMAND, "predict", binary, f"{binary}.model", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert b"Traceback" not in errors and b"Exception" not in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk_at_standard_output(binary: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "check", binary], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "cutsvm: cannot write the results: No space left on device\n"


@pytest.mark.skipif(not Path("/bin/sh").exists(), reason="needs a shell")
def test_closed_streams(binary: Path) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        words = " ".join([*COMMAND, "train", str(binary), closed])
        assert subprocess.run(["/bin/sh", "-c", words], check=False, capture_output=True).returncode == 0


SLOWLY = """
import sys, time
from cutsvm.display.callbacks import ProgressBar
from cutsvm.cli import main

def show(self, record):
    print("iteration", record.iteration, file=sys.stderr, flush=True)
    time.sleep(0.0 if record.iteration < 3 else 60.0)

ProgressBar.__call__ = show
sys.exit(main())
"""


def test_ctrl_c_keeps_the_best_model(binary: Path) -> None:
    words = [sys.executable, "-c", SLOWLY, "train", "-e", "1e-9", "--n-jobs", "1", str(binary)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while process.stderr.readline() != "iteration 3\n":
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=50)
    assert process.returncode == 0, err
    assert "not converged (interrupted" in err
    assert f"model: {binary}.model" in out
    assert not load_model(f"{binary}.model").estimator.converged_


def test_file_names_that_are_not_utf8(binary: Path) -> None:
    folder = os.fsencode(binary.parent)
    name = folder + b"/\xff\xfe.svm"
    try:
        os.rename(binary, name)
    except OSError:
        pytest.skip("the file system takes only text")
    words = [*map(os.fsencode, COMMAND), b"train", name]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert os.path.exists(name + b".model")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no /dev/stdout here")
def test_predictions_to_a_stream(binary: Path, tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "train", "-q", binary], check=True)
    words = [*COMMAND, "predict", str(binary), f"{binary}.model", "/dev/stdout"]
    piped = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert len(piped.splitlines()) == 121 and piped.splitlines()[-1].startswith("Accuracy")
    with open(tmp_path / "out", "a") as out:
        subprocess.run(words, stdout=out, check=True)
    assert (tmp_path / "out").read_text() == piped
