"""Values of options: text of the command line as numbers, or an error of argparse that says what was expected."""

from __future__ import annotations

import argparse
import math
import re
from functools import partial
from itertools import pairwise
from typing import Any


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def positive(text: str, expected: str = "a positive number,") -> float:
    value = _float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected {expected} got {text!r}")
    return value


def whole(text: str, least: int) -> int:
    if not re.fullmatch(r"[-+]?\d{1,9}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number, {least} or more, got {text!r}")
    return int(text)


folds = partial(whole, least=2)


def row_ranges(text: str) -> list[tuple[int, int]]:
    """Numbers of rows and ranges of them, 10:20,35, each as (first, last + 1)."""
    found = []
    for word in text.split(","):
        numbers = re.fullmatch(r"(\d{1,15})(?::(\d{1,15}))?", word.strip())
        if numbers is None:
            raise argparse.ArgumentTypeError(f"expected numbers of rows and ranges as 10:20,35, got {text!r}")
        first = int(numbers[1])
        last = first + 1 if numbers[2] is None else int(numbers[2])
        if last <= first:
            raise argparse.ArgumentTypeError(f"expected a range with its first row before its end, got {word!r}")
        found.append((first, last))
    return found


def shards(text: str) -> int | str:
    return "auto" if text == "auto" else whole(text, 1)


def jobs(text: str) -> int:
    if text == "0":
        raise argparse.ArgumentTypeError("expected the number of threads, or -1 for all cores, got '0'")
    return whole(text, -1)


def number_or_word(text: str) -> int | float | str:
    """A whole number, another number, or the word itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def names(text: str) -> list[str]:
    """NAME, or several as A,B"""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"expected the names of columns, as id,date, got {text!r}")
    return found


def bias(text: str) -> int:
    """1: regularised intercept, -1: none."""
    value = _float(text)
    if value == 1 or value < 0:
        return 1 if value == 1 else -1
    raise argparse.ArgumentTypeError(f"expected 1 (regularised intercept) or -1 (none), got {text!r}")


def class_weight(text: str) -> tuple[str, float]:
    """LABEL=W; whether the label is a number the data say."""
    label, _, weight = text.rpartition("=")
    return label, positive(weight)


def metric(text: str) -> Any:
    """The value of `--metric`."""
    from cutsvm.problem.ranking_measures import Metric  # takes half a second, which help texts need not wait for

    try:
        return Metric.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected ndcg@K (as ndcg@10), ndcg, map or pairs, got {text!r}") from None


def costs(text: str) -> int | list[float]:
    """LOW:HIGH:N, some values of C, or their number."""
    if re.fullmatch(r"\d{1,4}", text) and int(text) > 0:
        return int(text)
    number = partial(positive, expected="LOW:HIGH:N, numbers above 0 as 0.1,1,10, or how many;")
    if text.count(":") == 2:
        low, high, many = text.split(":")
        ends = [number(low), number(high)]
        if not re.fullmatch(r"\d{1,4}", many) or int(many) < 2:
            raise argparse.ArgumentTypeError(f"expected LOW:HIGH:N with N at least 2, got {text!r}")
        if not ends[0] < ends[1]:
            raise argparse.ArgumentTypeError(f"expected LOW below HIGH, got {text!r}")
        steps = int(many) - 1
        ratio = math.log(ends[1] / ends[0]) / steps
        return [float(f"{ends[0] * math.exp(k * ratio):.12g}") for k in range(steps + 1)]
    values = [number(word) for word in text.split(",")]
    if not all(before < after for before, after in pairwise(values)):
        raise argparse.ArgumentTypeError(f"expected each C once, in rising order, got {text!r}")
    return values
