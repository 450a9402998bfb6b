"""The options of every command. -c -e -B -wLABEL -v -q have the meaning of LIBLINEAR's options."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterable
from typing import NoReturn

from cutsvm._utils.text import printable
from cutsvm.io.models.tasks import TASKS

__all__ = ["parse"]

_EXAMPLES = """examples:
  cutsvm demo                                  train on synthetic data, and compare
  cutsvm check train.svm                       report on a data file and its bad lines
  cutsvm convert train.csv.gz train.store      a store, for data larger than memory
  cutsvm train -c 10 train.svm                 train, write train.svm.model
  cutsvm path train.svm -v 5                   find the best C
  cutsvm predict test.svm train.svm.model out  accuracy, and one prediction a line in `out`
"""
_TRAIN_EXAMPLES = """examples:
  cutsvm train train.svm                          writes train.svm.model
  cutsvm train -c 0.1 -w1 5 train.svm my.model    class 1 costs five times as much
  cutsvm train -v 5 -c 10 train.svm.gz            accuracy by cross-validation, writes nothing
  cutsvm train --task rank train.svm              orders the rows of each qid: by their labels
  cutsvm train --task kernel --gamma 2 train.svm  a kernel machine, here with the RBF kernel
  cutsvm train part1.svm --also part2.svm         rows from several files
  cutsvm train --max-time 60 --json train.svm     the best model after a minute, result as JSON
  cutsvm train --memory 2GB train.store           rows stay on disk (cutsvm convert makes stores)
  cutsvm train --report train.html train.svm      the model as an HTML page: certificate, plots, measures
  cutsvm train --checkpoint ck train.store        after a kill the same command resumes from ck

DATA is an svmlight file, also compressed (.gz .bz2 .xz .zst), a table (.csv .tsv .parquet .arrow .feather .npz), or a
store. -e is the relative gap at which to stop: with 1e-3 the objective is proven to be within 0.1 % of the best
possible one. Ctrl-C writes the best model so far.
"""
_CONVERT_EXAMPLES = """examples:
  cutsvm convert train.svm.gz train.store                  svmlight, plain or compressed
  cutsvm convert part1.svm train.store --also part2.svm    several svmlight files
  cutsvm convert train.parquet train.store --label click   a table, and which column has the labels

STORE is a folder. A store of that name is replaced once the new one is complete; any other folder is left alone. If the
command is interrupted, the old store is as it was; if there was none, run it again.
"""
_PREDICT_EXAMPLES = """examples:
  cutsvm predict test.svm train.svm.model             accuracy only
  cutsvm predict test.svm train.svm.model out.txt     and one label a line in out.txt
  cutsvm predict --scores test.svm train.svm.model -  decision values to standard output

MODEL is a model of cutsvm or LIBLINEAR. Models of --task rank and roc write scores, and print the share of pairs in
order or the ROC area; those of ordinal write levels. Decision values: one per line for
two classes (positive: the larger label), otherwise one per class in ascending order of the labels; those of a kernel
machine are the votes of the class, and a fraction that breaks ties.
"""


class _Parser(argparse.ArgumentParser):
    """Prints one line about bad usage instead of the whole synopsis."""

    def error(self, message: str) -> NoReturn:
        # The options as the user typed them.
        typed = message.replace("--bias", "-B").replace("--class-weight", "-w")
        self.exit(2, f"{self.prog}: {printable(typed)} (see {self.prog} --help)\n")


def parse(argv: list[str]) -> argparse.Namespace:
    """The options; `run` is the function of the command, `task` a `Task`."""
    parser = _Parser(
        prog="cutsvm",
        description="Support vector machines with a proof of how good the answer is.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for add in (_add_train, _add_path, _add_predict, _add_convert, _add_check, _add_info, _add_demo):
        add(commands)
    if not argv or argv[0] not in commands.choices:
        return parser.parse_args(argv)
    command = commands.choices[argv[0]]
    words = _as_long_options(command, argv[1:]) if argv[0] in ("train", "path") else argv[1:]
    # Intermixed parsing allows options between DATA and MODEL, but not `--`.
    options = command.parse_args(words) if "--" in words else command.parse_intermixed_args(words)
    if "task" in options:
        options.task = TASKS[options.task]
    return options


class _Version(argparse.Action):
    """--version, looked up only when it is given."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from cutsvm.io.models.model_file import package_version

        sys.stdout.write(f"cutsvm {package_version()}\n")
        parser.exit(0)


def _as_long_options(parser: argparse.ArgumentParser, argv: list[str]) -> list[str]:
    """`-wLABEL W` and `-B [NUMBER]` as the long options that argparse can parse."""
    plain: list[str] = []
    words = argv[::-1]
    while words:
        word = words.pop()
        if word == "--":
            return [*plain, word, *words[::-1]]
        if word.startswith("-w"):
            if len(word) == 2 or not words:
                parser.error("-wLABEL needs a label and a weight, as in -w1 5")
            plain.append(f"--class-weight={word[2:]}={words.pop()}")
        elif word.startswith("-B") and len(word) > 2:
            plain.append(f"--bias={word[2:]}")
        elif word == "-B":
            numbered = words and re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", words[-1])
            plain.append(f"--bias={words.pop()}" if numbered else "--bias=1")
        else:
            plain.append(word)
    return plain


def _command(commands: argparse._SubParsersAction[_Parser], name: str, help: str, epilog: str | None = None) -> _Parser:
    raw = argparse.RawDescriptionHelpFormatter
    return commands.add_parser(
        name, help=help, description=help, epilog=epilog, formatter_class=raw, allow_abbrev=False
    )


def _add_train(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.kernel_task import add_options
    from cutsvm.cli.train import train

    parser = _command(commands, "train", "train a model", _TRAIN_EXAMPLES)
    parser.set_defaults(run=train)
    parser.add_argument("data", metavar="DATA", help="svmlight file, table or store")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="file to write (default: DATA.model)")
    _add_problem(parser)
    _add_solver(parser)
    add_options(parser)
    _add_limits(parser)
    _add_output(parser)


def _add_path(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.path import path
    from cutsvm.cli.path_options import EXAMPLES, add_options

    parser = _command(commands, "path", "fit a path over C; with -v find the best C", EXAMPLES)
    parser.set_defaults(run=path)
    parser.add_argument("data", metavar="DATA", help="svmlight file, table or store")
    add_options(parser)
    _add_problem(parser, [task.name for task in TASKS.values() if task.path is not None], cost=False)
    _add_solver(parser)
    group = parser.add_argument_group("limits and output")
    group.add_argument(
        "--max-time", metavar="S", type=_positive, help="stop after S seconds, with the best models so far"
    )
    group.add_argument("-v", dest="folds", metavar="FOLDS", type=_folds, help="score every C by cross-validation")
    _add_verbosity(group)


def _add_problem(parser: _Parser, tasks: Iterable[str] = tuple(TASKS), *, cost: bool = True) -> None:
    group = parser.add_argument_group("problem")
    group.add_argument(
        "--task",
        choices=list(tasks),
        default="classify",
        help="what to learn (default: classify); rank uses qid:",
    )
    if cost:
        group.add_argument("-c", dest="cost", metavar="C", type=_positive, default=1.0, help="cost (default: 1)")
    group.add_argument(
        "-e", dest="tol", metavar="TOL", type=_positive, help="relative gap at which to stop (default: 1e-3)"
    )
    bias = "intercept: 1 or no number: regularised as in LIBLINEAR, -1: none (default: not regularised)"
    group.add_argument("-B", metavar="[B]", dest="bias", help=bias)
    weight = "multiply C by W for the rows of class LABEL (repeatable)"
    group.add_argument("-wLABEL", metavar="W", dest="weights", action="append", default=[], help=weight)
    # The two options above are for the help text only: before parsing they are rewritten to these.
    group.add_argument("--bias", type=_bias, help=argparse.SUPPRESS)
    group.add_argument("--class-weight", dest="weights", action="append", type=_class_weight, help=argparse.SUPPRESS)
    group.add_argument("--also", metavar="FILE", action="append", default=[], help="more rows (repeatable)")
    _add_label(group)
    _add_base(group)


def _add_label(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="of a table the labels: a name or a number, -1 is the last (default: label, y, target or class)",
    )


def _add_base(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--zero-based",
        choices=("auto", "0", "1"),
        default="auto",
        help="do features count from 0? 1: yes, 0: no, from 1 (default: auto)",
    )


def _add_solver(parser: _Parser) -> None:
    group = parser.add_argument_group("solver")
    group.add_argument(
        "--solver",
        metavar="S",
        choices=("auto", "ocas", "sifting", "dcd", "cpa", "accpm", "sgd", "isda", "min_norm"),
        default="auto",
        help="auto, ocas, sifting, dcd, cpa or accpm; of --task kernel sgd, isda or min_norm (default: auto)",
    )
    group.add_argument(
        "--line-search",
        choices=("exact", "gca", "gca2", "tca"),
        help="of ocas and sifting (default: exact)",
    )
    group.add_argument("--shards", metavar="P", type=_shards, help="planes per pass: auto or a number")
    group.add_argument(
        "--multi-class",
        metavar="M",
        choices=("crammer_singer", "ovr"),
        help="more than two classes: crammer_singer (all in one problem, the default) or ovr (each against the rest)",
    )
    group.add_argument("--n-jobs", metavar="N", type=_jobs, default=-1, help="threads; -1: all cores (default: -1)")


def _add_limits(parser: _Parser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-time", metavar="S", type=_positive, help="stop after S seconds of training")
    group.add_argument(
        "--memory",
        metavar="SIZE",
        help="private memory of the process, as 300MB or 2GB; rows stay on disk. Of --task kernel: for kernel values",
    )
    group.add_argument("--checkpoint", metavar="FILE", help="written while training; the same command resumes from it")


def _add_output(parser: _Parser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("-v", dest="folds", metavar="FOLDS", type=_folds, help="cross-validate and write no model")
    group.add_argument("--format", choices=("cutsvm", "liblinear"), default="cutsvm", help="of MODEL (default: cutsvm)")
    group.add_argument(
        "--report",
        metavar="FILE.html",
        help="write an HTML page with certificate, plots and measures (needs matplotlib)",
    )
    _add_verbosity(group)


def _add_verbosity(group: argparse._ActionsContainer) -> None:
    group.add_argument("--json", action="store_true", help="the result as one JSON object")
    group.add_argument("-q", dest="quiet", action="store_true", help="quiet: print errors and results only")


def _add_predict(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.predict import predict

    parser = _command(commands, "predict", "predict with a model, and measure its quality", _PREDICT_EXAMPLES)
    parser.set_defaults(run=predict)
    parser.add_argument("data", metavar="DATA", help="svmlight file, table or store")
    parser.add_argument("model", metavar="MODEL", help="model file, cutsvm's or LIBLINEAR's")
    parser.add_argument("out", metavar="OUT", nargs="?", help="file for the predictions; -: standard output")
    parser.add_argument("--scores", action="store_true", help="write decision values in place of labels")
    _add_label(parser)
    _add_base(parser)
    _add_verbosity(parser)


def _add_convert(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.convert import convert

    parser = _command(commands, "convert", "convert data to a store, for data larger than memory", _CONVERT_EXAMPLES)
    parser.set_defaults(run=convert)
    parser.add_argument(
        "data", metavar="DATA", help="svmlight file, .csv .tsv .parquet .arrow .feather .npy .npz, store"
    )
    parser.add_argument("store", metavar="STORE", help="folder to write")
    parser.add_argument("--also", metavar="FILE", action="append", default=[], help="more svmlight rows (repeatable)")
    formats = ("svmlight", "npy", "npz", "csv", "parquet", "arrow", "store")
    parser.add_argument("--format", choices=formats, help="of DATA (default: by its name)")
    _add_label(parser)
    parser.add_argument("--weight", metavar="COLUMN", help="of a table the weights (default: sample_weight, if there)")
    parser.add_argument("--qid", metavar="COLUMN", help="of a table the queries (default: qid, if there)")
    parser.add_argument("--float32", action="store_true", help="store values as float32")
    _add_base(parser)
    _add_verbosity(parser)


def _add_check(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.check import check

    parser = _command(commands, "check", "report on a data file and its bad lines")
    parser.set_defaults(run=check)
    parser.add_argument("data", metavar="DATA", help="svmlight file")
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")


def _add_info(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.info import info

    parser = _command(commands, "info", "show what is in a model file or a store")
    parser.set_defaults(run=info)
    parser.add_argument("model", metavar="MODEL|STORE", help="model file, cutsvm's or LIBLINEAR's, or a store")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def _add_demo(commands: argparse._SubParsersAction[_Parser]) -> None:
    from cutsvm.cli.demo import demo

    parser = _command(commands, "demo", "train on synthetic data, show the certificate, draw a plot")
    parser.set_defaults(run=demo)
    parser.add_argument("--rows", type=_rows, default=200_000, help="size of the data (default: 200000)")
    parser.add_argument("--no-compare", action="store_true", help="do not run scikit-learn's LinearSVC")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return value


def _whole(text: str, least: int) -> int:
    if not re.fullmatch(r"[-+]?\d{1,9}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number, {least} or more, got {text!r}")
    return int(text)


def _folds(text: str) -> int:
    return _whole(text, 2)


def _rows(text: str) -> int:
    return _whole(text, 100)


def _shards(text: str) -> int | str:
    return "auto" if text == "auto" else _whole(text, 1)


def _jobs(text: str) -> int:
    if text == "0":
        raise argparse.ArgumentTypeError("expected the number of threads, or -1 for all cores, got '0'")
    return _whole(text, -1)


def _bias(text: str) -> int:
    """1: regularised intercept, -1: none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value == 1 or value < 0:
        return 1 if value == 1 else -1
    raise argparse.ArgumentTypeError(f"expected 1 (regularised intercept) or -1 (none), got {text!r}")


def _class_weight(text: str) -> tuple[float, float]:
    """LABEL=W"""
    label, _, weight = text.rpartition("=")
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"expected a number as label, got {label!r}")
    return number, _positive(weight)
