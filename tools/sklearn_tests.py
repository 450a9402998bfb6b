"""scikit-learn's own tests with the classes of `cutsvm.sklearn` in place of its own.

    python tools/sklearn_tests.py                   # all files below: some ten minutes on one core
    python tools/sklearn_tests.py svm.tests.test_svm
    python tools/sklearn_tests.py -j 4              # files at a time

Each file is run twice, alone and by `python -m cutsvm.sklearn -m pytest`. The table has the counts of both runs, and
below it stands every test that fails with the patch and passes without. EXPECTED names those where scikit-learn's
answer is the worse one; any other, or one of them that passes, ends with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import cutsvm

FILES = (
    "svm.tests.test_svm",
    "svm.tests.test_sparse",
    "ensemble.tests.test_stacking",
    "tests.test_multiclass",
    "tests.test_calibration",
    "tests.test_multioutput",
    "metrics.tests.test_score_objects",
    "feature_extraction.tests.test_text",
    "feature_selection.tests.test_from_model",
    "model_selection.tests.test_search",
    "model_selection.tests.test_validation",
    "model_selection.tests.test_successive_halving",
    "utils._repr_html.tests.test_estimator",
)
# Test -> why it fails with the patch.
EXPECTED = {
    "svm.tests.test_svm::test_linear_svm_convergence_warnings[42]": (
        "max_iter=2 is to warn, but the fit is at its optimum by then, with a certified gap below 1e-8; so is "
        "scikit-learn's, whose warning is wrong"
    ),
}


def outcomes(file: str, *, patched: bool) -> dict[str, str]:
    """Test -> "passed", "failed" or "skipped", of one test file of scikit-learn."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        # Without configuration of this project: its filters would turn warnings into errors.
        options = ["-q", "-c", "/dev/null", "-p", "no:cacheprovider", f"--rootdir={folder}", f"--junitxml={report}"]
        # Otherwise pytest puts scikit-learn's folder first, and joblib's processes find the cutsvm that is installed.
        options.append("--import-mode=append")
        runner = ["-m", "cutsvm.sklearn", "-m", "pytest"] if patched else ["-m", "pytest"]
        command = [sys.executable, *runner, *options, "--pyargs", f"sklearn.{file}"]
        # In another folder, as pytest would load the conftest.py of this one; with the cutsvm of this process.
        paths = [str(Path(cutsvm.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
        if not report.exists():
            raise RuntimeError(f"{' '.join(command)} wrote no report:\n{done.stdout}{done.stderr}")
        cases = ElementTree.parse(report).iter("testcase")
        return {f"{file}::{case.get('name')}": _outcome({child.tag for child in case}) for case in cases}


def _outcome(kinds: set[str]) -> str:
    """The outcome of a test of a JUnit report that has elements of these kinds."""
    return "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"


def compare(file: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """The file, and the outcomes of its tests alone and with the patch."""
    return file, outcomes(file, patched=False), outcomes(file, patched=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=FILES, metavar="FILE", help="as in svm.tests.test_svm")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="files at a time")
    args = parser.parse_args()
    columns = ("passed", "failed", "skipped")
    totals: Counter[tuple[str, str]] = Counter()
    added: list[str] = []
    both: list[str] = []
    seen: set[str] = set()
    print("| file | alone: passed, failed, skipped | with the patch | added failures |\n|---|---|---|---|", flush=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        for file, alone, patched in pool.map(compare, args.files):
            new = [test for test, outcome in patched.items() if outcome == "failed" and alone.get(test) != "failed"]
            new += [f"{test} (not run)" for test in alone.keys() - patched.keys()]
            counts = {"alone": Counter(alone.values()), "patched": Counter(patched.values())}
            texts = [", ".join(str(count[column]) for column in columns) for count in counts.values()]
            print(f"| `{file}` | {texts[0]} | {texts[1]} | {len(new)} |", flush=True)
            totals.update({(run, column): count[column] for run, count in counts.items() for column in columns})
            both += [test for test, outcome in alone.items() if outcome == "failed"]
            added += new
            seen |= patched.keys()
    texts = [", ".join(str(totals[run, column]) for column in columns) for run in ("alone", "patched")]
    print(f"| all | {texts[0]} | {texts[1]} | {len(added)} |")
    for test in both:
        print(f"fails without the patch: {test}")
    for test in added:
        print(f"fails with the patch: {test}: {EXPECTED.get(test, 'NOT EXPECTED')}")
    gone = [test for test in EXPECTED if test in seen and test not in added]
    for test in gone:
        print(f"passes, remove it from EXPECTED: {test}")
    return 1 if gone or set(added) - EXPECTED.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
