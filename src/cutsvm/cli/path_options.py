"""The options of `cutsvm path`."""

from __future__ import annotations

import argparse
import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutsvm.cli.parser import _Parser

__all__ = ["EXAMPLES", "add_options"]

EXAMPLES = """examples:
  cutsvm path train.svm                            10 values of C chosen from the data
  cutsvm path train.svm --Cs 1e-4:1e4:9 -v 5       from 1e-4 to 1e4, 9 of them; the best by 5 folds
  cutsvm path train.svm --Cs 0.1,1,10 -v 5 --model best.model
  cutsvm path train.svm -v 5 --scoring roc_auc --plot path.png
  cutsvm path --task rank train.svm -v 5           folds keep queries whole

Each C is fitted until its gap is at most -e, and planes are shared: the path takes little more time than its slowest
fit. * marks the C with the best mean over the folds.
"""


def add_options(parser: _Parser) -> None:
    """Add the options that only `cutsvm path` has."""
    group = parser.add_argument_group("path")
    group.add_argument(
        "--Cs",
        metavar="LOW:HIGH:N",
        type=_cs,
        default=10,
        help="N values from LOW to HIGH in equal ratios; or several as 0.1,1,10; or how many (default: 10)",
    )
    group.add_argument("--scoring", metavar="S", help="the score of -v: a name of scikit-learn's, as roc_auc")
    group.add_argument("--plot", metavar="FILE", help="plot the path: .png, .svg or .pdf")
    group.add_argument("--model", metavar="FILE", help="with -v: write the model with the best C")
    group.add_argument("--format", choices=("cutsvm", "liblinear"), help="of --model (default: cutsvm)")
    parser.set_defaults(cost=1.0, checkpoint=None, memory=None, report=None)


def _cs(text: str) -> int | list[float]:
    if re.fullmatch(r"\d{1,4}", text) and int(text) > 0:
        return int(text)
    if text.count(":") == 2:
        low, high, many = text.split(":")
        ends = [_number(low), _number(high)]
        if not re.fullmatch(r"\d{1,4}", many) or int(many) < 2:
            raise argparse.ArgumentTypeError(f"expected LOW:HIGH:N with N at least 2, got {text!r}")
        if not ends[0] < ends[1]:
            raise argparse.ArgumentTypeError(f"expected LOW below HIGH, got {text!r}")
        steps = int(many) - 1
        ratio = math.log(ends[1] / ends[0]) / steps
        return [float(f"{ends[0] * math.exp(k * ratio):.12g}") for k in range(steps + 1)]
    values = [_number(word) for word in text.split(",")]
    for before, after in pairwise(values):
        if not before < after:
            raise argparse.ArgumentTypeError(f"expected each C once, in rising order, got {text!r}")
    return values


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH:N, numbers above 0 as 0.1,1,10, or how many; got {text!r}")
    return value
