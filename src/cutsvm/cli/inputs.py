"""DATA on the command line: several files, what is done to the columns of tables, and which word is the output."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Sequence
from typing import Any

from cutsvm.cli.messages import CommandError, as_command_error
from cutsvm.io.models.model_file import is_model_file
from cutsvm.io.paths import FORMATS, STDIN, find, is_address

MODEL_FORMATS = ("cutsvm", "liblinear")
_HELP = (
    "svmlight files, tables (.csv .tsv .parquet .arrow .feather), .npy, .npz; a folder of them; a store; - is standard "
    "input"
)


def add_inputs(parser: argparse.ArgumentParser, output: str = "", more: str = "") -> None:
    """DATA, and the word after it; --also for more files."""
    # argparse would repeat the name: DATA... STORE [DATA... STORE ...].
    parser.usage = f"%(prog)s [options] DATA{output}"
    parser.add_argument("inputs", metavar=f"DATA{output}", nargs="+", help=_HELP + more)
    parser.add_argument("--also", metavar="FILE", action="append", default=[], help="more rows (repeatable)")


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """What is done to the columns of a table."""
    add = parser.add_argument_group("columns of tables").add_argument
    add("--weight", metavar="COLUMN", help="the weights (default: sample_weight, if there)")
    add("--qid", metavar="COLUMN", help="the queries (default: qid, if there)")
    add("--columns", metavar="A,B,C", type=_names, help="the features (default: all other columns)")
    add("--exclude", metavar="A,B,C", type=_names, default=[], help="columns that are no features")
    add("--filter", metavar="TEXT", help="which rows, as in \"year >= 2020 and city != 'Rome'\"")
    texts = "texts: one column for each value, or an error (default: one-hot)"
    add("--categorical", choices=("one-hot", "refuse"), default="one-hot", help=texts)
    holes = "what missing numbers become, or an error (default: mean, of the column)"
    add("--missing", choices=("mean", "zero", "refuse"), default="mean", help=holes)
    scales = "numbers and dates: to mean 0 and standard deviation 1, or to 0 to 1 (default: none)"
    add("--scale", choices=("none", "standard", "minmax"), default="none", help=scales)


def add_formats(group: argparse._ActionsContainer, *, model: bool) -> None:
    """--format: of DATA and, if the command writes one, of the model."""
    choices = (*MODEL_FORMATS, *FORMATS) if model else FORMATS
    of_model = "of MODEL: cutsvm or liblinear (default: cutsvm); or " if model else ""
    words = f"{of_model}of DATA: {', '.join(FORMATS)} (default: by its name; repeatable)"
    group.add_argument("--format", metavar="F", action="append", choices=choices, default=[], help=words)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def split_formats(options: argparse.Namespace) -> None:
    """`format` of the model, None if it is not stated, and `data_format`."""
    given = options.format
    options.format = next((name for name in given[::-1] if name in MODEL_FORMATS), None)
    options.data_format = next((name for name in given[::-1] if name in FORMATS), None)


def split_inputs(options: argparse.Namespace, command: str) -> str | None:
    """`data`, `also` and the output (`model`, `store`) from the words; a message if one is missing."""
    words = options.inputs
    if command == "train":
        last = len(words) > 1 and _names_model(words[-1])
        options.model = words.pop() if last else None
    elif command == "convert":
        if len(words) < 2:
            return "the following arguments are required: STORE"
        options.store = words.pop()
    options.data, options.also = words[0], [*words[1:], *options.also]
    return None


def _names_model(path: str) -> bool:
    """Whether the last word is the model to write: no file yet, or a model, or a device."""
    if path == STDIN or is_address(path) or os.path.isdir(path) or _is_glob(path):
        return False
    return not os.path.isfile(path) or os.path.getsize(path) == 0 or is_model_file(path)


def _is_glob(path: str) -> bool:
    return glob.has_magic(path) and not os.path.exists(path) and bool(glob.glob(path))


def default_model(data: str) -> str:
    """The name of the model if there is none on the command line."""
    if data == STDIN or is_address(data) or _is_glob(data):
        raise CommandError(f"{data}: MODEL, the file to write, must be named for it")
    return f"{data.rstrip(os.sep)}.model"


def check_inputs(paths: Sequence[str]) -> None:
    """Raise if a file does not exist or is named twice."""
    for place, path in enumerate(paths):
        with as_command_error(path):
            find(path)
        if path in paths[:place]:
            raise CommandError(f"{path}: is an input already")


def column_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `open_dataset` and `convert`."""
    names = ("label", "weight", "qid", "columns", "exclude", "filter", "categorical", "missing", "scale", "zero_based")
    labels = "required" if "task" not in options or options.task.needs_labels else "optional"
    return {"format": options.data_format, "labels": labels, **{name: getattr(options, name) for name in names}}
