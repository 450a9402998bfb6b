"""The options of every command. -s -c -p -n -e -B -wLABEL -v -b -q have the meaning of LIBLINEAR's options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

from cutsvm._utils.text import printable
from cutsvm.cli import examples, values
from cutsvm.cli.cluster_names import add_cluster
from cutsvm.cli.inputs import add_column_options, add_formats, add_inputs, split_formats, split_inputs
from cutsvm.cli.liblinear_types import apply_type, solver_type
from cutsvm.cli.papers import PAPERS
from cutsvm.cli.store_options import add_append, add_compact, add_delete
from cutsvm.io.models.tasks import TASKS
from cutsvm.io.paths import FORMATS


class _Parser(argparse.ArgumentParser):
    """Prints one line about bad usage instead of the whole synopsis."""

    def error(self, message: str) -> NoReturn:
        # The options as the user typed them.
        typed = message.replace("--bias", "-B").replace("--class-weight", "-w")
        self.exit(2, f"{self.prog}: {printable(typed)} (see {self.prog} --help)\n")


def build_parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of `cutsvm`, and those of its commands."""
    settings: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    about = "Support vector machines with a proof of how good the answer is."
    parser = _Parser(prog="cutsvm", description=about, epilog=examples.GENERAL, **settings)
    parser.add_argument(
        "--version", action="version", version=f"cutsvm {version('cutsvm')}", help="show the version and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, (add_options, about, more) in _COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about, epilog=more, **settings)
        command.set_defaults(run=f"cutsvm.cli.{name}:{name}")
        add_options(command)
    return parser, dict(commands.choices)


def parse(argv: list[str]) -> argparse.Namespace:
    """The options; `run` is the function of the command as "module:name", `task` a `Task`."""
    parser, commands = build_parser()
    if not argv:  # a question, not a mistake
        parser.print_help()
        parser.exit(0)
    if argv[0] not in commands:
        return parser.parse_args(argv)
    command = commands[argv[0]]
    words = _as_long_options(command, argv[1:]) if argv[0] in ("train", "path") else argv[1:]
    # Intermixed parsing allows options between DATA and MODEL, but not `--`.
    options = command.parse_args(words) if "--" in words else command.parse_intermixed_args(words)
    if "inputs" in options:
        split_formats(options)
        if wrong := split_inputs(options, argv[0]):
            command.error(wrong)
    apply_type(options)
    if "task" in options:
        # The first task of a paper needs no --task.
        first = PAPERS[options.paper].tasks[0] if getattr(options, "paper", None) else next(iter(TASKS))
        options.task = TASKS[options.task or first]
    if "zero_based" in options:
        options.zero_based = {"auto": "auto", "0": False, "1": True}[options.zero_based]
    return options


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


def _add_train(parser: _Parser) -> None:
    model = "; MODEL is the last one if it does not exist yet or is a model (default: DATA.model)"
    add_inputs(parser, "... [MODEL]", model)
    _add_problem(parser, list(TASKS), cost=True)
    add_column_options(parser)
    paper = "train as a paper says, -c being its C: joachims, franc-sonnenburg, arnosti, bialon or melki"
    parser.add_argument("--paper", metavar="NAME", choices=list(PAPERS), help=paper)
    _add_solver(parser)
    _add_kernel(parser)
    add = parser.add_argument_group("limits").add_argument
    add("--max-time", metavar="S", type=values.positive, help="stop after S seconds of training")
    _add_memory(add)
    add("--checkpoint", metavar="FILE", help="written while training; the same command resumes from it")
    keep = "it stays when training is done: after an append or a delete the same command goes on from it"
    add("--keep-checkpoint", action="store_true", help=keep)
    add_cluster(parser)
    group = parser.add_argument_group("output")
    add = group.add_argument
    add("-v", dest="folds", metavar="FOLDS", type=values.folds, help="cross-validate and write no model")
    add("--valid", metavar="FILE", help="after training measure the model on the rows of FILE")
    _add_metric(group, ", the measure of -v and --valid")
    add_formats(group, model=True)
    report = "write an HTML page with certificate, plots and measures (needs matplotlib)"
    add("--report", metavar="FILE.html", help=report)
    _add_verbosity(group)


def _add_memory(add: Callable[..., object]) -> None:
    memory = "limit of the private memory of the whole process, as 300MB or 2GB: what it holds when training begins is "
    memory += "subtracted; rows stay on disk, but those of --task kernel. auto: a share of what is free"
    add("--memory", metavar="SIZE", help=memory)


def _add_path(parser: _Parser) -> None:
    add_inputs(parser, "...")
    add_column_options(parser)
    group = parser.add_argument_group("path")
    add = group.add_argument
    grid = "N values from LOW to HIGH in equal ratios; or several as 0.1,1,10; or how many (default: 10)"
    add("--Cs", metavar="LOW:HIGH:N", type=values.costs, default=10, help=grid)
    add("--scoring", metavar="S", help="the score of -v: a name of scikit-learn's, as roc_auc")
    _add_metric(parser, ", the score of -v")
    add("--plot", metavar="FILE", help="plot the path: .png, .svg or .pdf")
    add("--model", metavar="FILE", help="with -v: write the model with the best C")
    add_formats(group, model=True)
    parser.set_defaults(cost=1.0, find_cost=False, checkpoint=None, report=None)
    _add_problem(parser, [task.name for task in TASKS.values() if task.path is not None])
    _add_solver(parser)
    group = parser.add_argument_group("limits and output")
    limit = "stop after S seconds, with the best models so far"
    group.add_argument("--max-time", metavar="S", type=values.positive, help=limit)
    _add_memory(group.add_argument)
    group.add_argument("-v", dest="folds", metavar="FOLDS", type=values.folds, help="score every C by cross-validation")
    add_cluster(parser)
    _add_verbosity(group)


def _add_predict(parser: _Parser) -> None:
    parser.usage = "cutsvm predict [options] DATA... MODEL [OUT]"
    files = "data (svmlight files, tables, a store), a model file of cutsvm's or LIBLINEAR's, and a file for the "
    parser.add_argument("files", metavar="FILE", nargs="+", help=f"{files}predictions; -: standard output")
    parser.add_argument("--scores", action="store_true", help="write decision values in place of labels")
    chances = "write the label and the probability of every class; of --loss logistic"
    parser.add_argument("--probability", action="store_true", help=chances)
    parser.add_argument("-b", metavar="0|1", choices=("0", "1"), default="0", help="1: the same as --probability")
    keep = "columns of a table to write before the predictions: a name, or several as id,date (repeatable)"
    parser.add_argument("--keep", metavar="COLUMN", action="extend", type=values.names, default=[], help=keep)
    formats = "of OUT (default: by its name: .parquet, .arrow, .feather, otherwise text)"
    parser.add_argument("--format", choices=("text", "parquet", "arrow"), help=formats)
    parser.add_argument("--data-format", choices=FORMATS, help="of DATA (default: by its name)")
    parser.add_argument("--memory", metavar="SIZE", help="for the rows that are read at a time, as 100MB")
    parser.add_argument("--n-jobs", metavar="N", type=values.jobs, default=-1, help="threads; -1: all cores (default)")
    _add_metric(parser)
    _add_reading(parser)
    _add_verbosity(parser)


def _add_convert(parser: _Parser) -> None:
    add_inputs(parser, "... STORE", "; STORE is the folder to write")
    add_formats(parser, model=False)
    _add_reading(parser)
    add_column_options(parser)
    parser.add_argument("--float32", action="store_true", help="store values as float32")
    _add_verbosity(parser)


def _add_check(parser: _Parser) -> None:
    add_inputs(parser, "...")
    add_formats(parser, model=False)
    _add_reading(parser)
    add_column_options(parser)
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")


def _add_info(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL|STORE", help="model file, cutsvm's or LIBLINEAR's, or a store")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def _add_demo(parser: _Parser) -> None:
    least = partial(values.whole, least=100)
    parser.add_argument("--rows", type=least, default=200_000, help="size of the data (default: 200000)")
    parser.add_argument("--no-compare", action="store_true", help="do not run scikit-learn's LinearSVC")


def _add_completion(parser: _Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "tcsh"), help="bash, zsh or tcsh")


_COMMANDS = {
    "train": (_add_train, "train a model", examples.TRAIN),
    "path": (_add_path, "fit a path over C; with -v find the best C", examples.PATH),
    "predict": (_add_predict, "predict with a model, and measure its quality", examples.PREDICT),
    "convert": (_add_convert, "convert data to a store, for data larger than memory", examples.CONVERT),
    "append": (add_append, "append rows to a store", examples.APPEND),
    "delete": (add_delete, "delete rows from a store", examples.DELETE),
    "compact": (add_compact, "write a store again without its deleted rows", None),
    "check": (_add_check, "report on a data file and its bad lines", None),
    "info": (_add_info, "show what is in a model file or a store", None),
    "completion": (_add_completion, "print completions for a shell (needs shtab)", examples.COMPLETION),
    "demo": (_add_demo, "train on synthetic data, show the certificate, draw a plot", None),
}


def _add_data(parser: _Parser) -> None:
    parser.add_argument("data", metavar="DATA", help="svmlight file, table or store")


def _losses() -> list[str]:
    return list(dict.fromkeys(loss for task in TASKS.values() for loss in task.losses))


_LOSS_HELP = "; of --task ".join(
    f"{task.name}: {', '.join(task.losses[:-1])} or {task.losses[-1]}" for task in TASKS.values() if task.losses
)


def _add_problem(parser: _Parser, tasks: list[str], *, cost: bool = False) -> None:
    group = parser.add_argument_group("problem")
    add = group.add_argument
    task = "what to learn (default: classify, with --paper melki kernel); rank uses qid:"
    add("--task", choices=tasks, help=task)
    add("--loss", metavar="L", choices=_losses(), help=f"of --task {_LOSS_HELP} (default: the first)")
    kind = "as LIBLINEAR: 0, 7 logistic, 1, 2 squared hinge, 3 hinge, 4 Crammer-Singer, 11-13 regression, 21 one-class"
    add("-s", dest="type", metavar="N", type=solver_type, help=f"{kind}; no intercept without -B")
    if cost:
        add("-c", dest="cost", metavar="C", type=values.positive, help="cost (default: 1)")
        add("-C", dest="find_cost", action="store_true", help="find the best C by -v folds (5), as LIBLINEAR's -C")
        add("--quantile", metavar="Q", type=values.number_or_word, help="of --task quantile (default: 0.5)")
        share = "of --task oneclass: at most this share of the rows are outliers (default: 0.5)"
        add("-n", "--nu", dest="nu", metavar="NU", type=values.number_or_word, help=share)
    tube = "of --task regress: errors up to EPSILON have no loss, or of huber a squared one (default: 0, of -s: 0.1)"
    add("-p", dest="tube", metavar="EPSILON", type=values.number_or_word, help=tube)
    add("-e", dest="tol", metavar="TOL", type=values.positive, help="relative gap at which to stop (default: 1e-3)")
    bias = "intercept: 1 or no number: regularised as in LIBLINEAR, -1: none (default: not regularised)"
    add("-B", metavar="[B]", dest="bias", help=bias)
    weight = "multiply C by W for the rows of class LABEL (repeatable)"
    add("-wLABEL", metavar="W", dest="weights", action="append", default=[], help=weight)
    # The two options above are for the help text only: before parsing they are rewritten to these.
    add("--bias", type=values.bias, help=argparse.SUPPRESS)
    add("--class-weight", dest="weights", action="append", type=values.class_weight, help=argparse.SUPPRESS)
    _add_reading(group)


def _add_metric(group: argparse._ActionsContainer, where: str = "") -> None:
    about = f"of --task rank{where}: ndcg@K (as ndcg@10), ndcg, map or pairs (default: pairs)"
    group.add_argument("--metric", metavar="M", type=values.metric, help=about)


def _add_reading(group: argparse._ActionsContainer) -> None:
    label = "of a table the labels: a name or a number, -1 is the last (default: label, y, target or class)"
    group.add_argument("--label", metavar="COLUMN", help=label)
    base = "do features count from 0? 1: yes, 0: no, from 1 (default: auto)"
    group.add_argument("--zero-based", choices=("auto", "0", "1"), default="auto", help=base)


def _add_solver(parser: _Parser) -> None:
    add = parser.add_argument_group("solver").add_argument
    solvers = list(dict.fromkeys(name for task in TASKS.values() for name in task.solvers))
    solver = (
        "auto, ocas, sifting, dcd, newton, cpa, accpm, batched or (with --cluster) local_dual; of --task kernel exact, "
    )
    solver += "sgd, isda or min_norm (default: auto)"
    add("--solver", metavar="S", choices=solvers, default="auto", help=solver)
    add("--line-search", choices=("exact", "gca", "gca2", "tca"), help="of ocas and sifting (default: exact)")
    add("--shards", metavar="P", type=values.shards, help="planes per pass: auto or a number")
    add(
        "--cut-at",
        metavar="L",
        type=values.number_or_word,
        help="of ocas and sifting: planes touch at (1 - L) w_b + L w_t (default: 0.1)",
    )
    add(
        "--guard",
        choices=("stall", "first_steps", "every_zero", "none"),
        help="of ocas and sifting: what is done about steps of 0 (default: stall)",
    )
    tight = "of ocas and cpa: solve the reduced problem tightly and keep every plane, as the papers do"
    add("--exact", action="store_true", default=None, help=tight)
    own = "the stop test of cpa (violation, as mean loss), ocas (F - bound) or accpm (distance from the cuts)"
    add("--epsilon", metavar="E", type=values.positive, help=own)
    add("--formulation", choices=("I1", "I2", "E"), help="of accpm (default: I1)")
    add(
        "--buckets",
        metavar="N",
        type=partial(values.whole, least=1),
        help="of accpm, ocas and cpa: 1 is none (default: 16, 1, 1)",
    )
    joint = "more than two classes: ovr (each against the rest), or all in one problem: crammer_singer (the default of "
    joint += "the hinge loss) or multinomial (of the logistic loss)"
    add("--multi-class", metavar="M", choices=("crammer_singer", "multinomial", "ovr"), help=joint)
    add("--n-jobs", metavar="N", type=values.jobs, default=-1, help="threads; -1: all cores (default: -1)")


def _add_kernel(parser: _Parser) -> None:
    """The options that only `--task kernel` has; the estimator checks their values."""
    add = parser.add_argument_group("kernel machines (--task kernel)").add_argument
    # A precomputed kernel has no rows that a file could hold.
    add("--kernel", choices=("rbf", "poly", "linear", "sigmoid"), help="(default: rbf)")
    scale = "of rbf and poly: a number, scale or auto (default: scale, 1 / (features * variance))"
    add("--gamma", metavar="G", type=values.number_or_word, help=scale)
    add("--degree", metavar="D", type=values.number_or_word, help="of poly (default: 3)")
    add("--coef0", metavar="A", type=values.number_or_word, help="of poly and sigmoid (default: 0)")
    cycles = "of sgd, which auto is then: cycles over the rows, and no more (default: auto, until the gap is -e)"
    add("--epochs", metavar="N", type=values.number_or_word, help=cycles)
    mean = "of sgd: the share of its last steps whose mean is the model (default: 0.5)"
    add("--average", metavar="S", type=values.number_or_word, help=mean)
    add("--seed", metavar="N", type=values.number_or_word, help="of sgd: for the order of the rows (default: 0)")


def _add_verbosity(group: argparse._ActionsContainer) -> None:
    group.add_argument("--json", action="store_true", help="the result as one JSON object")
    group.add_argument("-q", dest="quiet", action="store_true", help="quiet: print errors and results only")
