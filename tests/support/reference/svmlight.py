"""svmlight text, line by line in plain Python: slow, and meant to be obviously right."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
INDEX = re.compile(r"\+?\d+", re.ASCII)
NEGATIVE = re.compile(r"-\d+", re.ASCII)
WORDS = ("nan", "inf", "infinity")
BLANKS = re.compile(r"[ \t\r\v\f]+")
LARGEST = 2**63 - 1


class BadLineError(Exception):
    """The text says what was expected on the line."""


@dataclass
class Samples:
    labels: list[float] = field(default_factory=list)
    ids: list[int | str] = field(default_factory=list)
    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)

    @property
    def queries(self) -> list[int] | list[str]:
        """The ids as they are if all are integers, else all as text."""
        return self.ids if all(isinstance(query, int) for query in self.ids) else [str(query) for query in self.ids]


def parse(text: bytes, *, min_index: int = 0) -> Samples:
    """All good samples, and all bad lines with their numbers from 1."""
    samples = Samples()
    has_query = None
    for number, line in enumerate(text.decode("latin-1").split("\n"), start=1):
        tokens = [token for token in BLANKS.split(line.split("#")[0]) if token]
        if not tokens:
            continue
        if has_query is None:
            has_query = len(tokens) > 1 and tokens[1].startswith("qid:")
        try:
            label, query, row = parse_line(tokens, has_query=has_query, min_index=min_index)
        except BadLineError as error:
            samples.bad.append((number, str(error)))
            continue
        samples.labels.append(label)
        samples.rows.append(row)
        if query is not None:
            samples.ids.append(query)
    return samples


def parse_line(
    tokens: list[str], *, has_query: bool, min_index: int
) -> tuple[float, int | str | None, list[tuple[int, float]]]:
    label = parse_label(tokens[0])
    rest = tokens[1:]
    query = None
    if rest and rest[0].startswith("qid:"):
        query = parse_query(rest.pop(0), has_query=has_query)
    elif has_query:
        found = f"'{clip(rest[0])}'" if rest else "the end of the line"
        raise BadLineError(f"expected 'qid:' after the label as in the first sample, found {found}")
    row = sorted(parse_entry(token, min_index=min_index) for token in rest)
    for (index, _), (following, _) in pairwise(row):
        if index == following:
            raise BadLineError(f"expected each index once, but index {index} appears twice")
    return label, query, row


def parse_label(token: str) -> float:
    if ":" in token:
        complain("a label before the first index:value", token)
    if finite(token):
        return float(token)
    if "," in token and NUMBER.fullmatch(token.split(",")[0]):
        complain("one label", token, " (multi-label files are not supported)")
    complain("a finite label" if not_finite(token) else "a number as label", token)


def parse_query(token: str, *, has_query: bool) -> int | str:
    if not has_query:
        complain("no 'qid:' as in the first sample", token)
    query = token.removeprefix("qid:")
    if not query:
        complain("an id after 'qid:'", token)
    if "\0" in query:
        complain("an id without zero bytes after 'qid:'", token)
    if INTEGER.fullmatch(query) and -LARGEST - 1 <= int(query) <= LARGEST:
        return int(query)
    return query.encode("latin-1").decode("utf-8", "surrogateescape")


def parse_entry(token: str, *, min_index: int) -> tuple[int, float]:
    if token.startswith("qid:"):
        complain("'qid:' only right after the label", token, " further on")
    index, colon, value = token.partition(":")
    if not colon:
        complain("index:value", token)
    if NEGATIVE.fullmatch(index):
        complain("an index of 0 or more", token)
    if not INDEX.fullmatch(index):
        complain("a whole number as index", token)
    if int(index) > LARGEST:
        complain("an index below 2^63", token)
    if not value:
        complain("a value after the colon", token)
    if not finite(value):
        complain("a finite value" if not_finite(value) else "a number as value", token)
    if int(index) < min_index:
        complain("indices from 1 on (zero_based is false)", token)
    return int(index), float(value)


def finite(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def not_finite(text: str) -> bool:
    word = text[1:] if text[:1] in ("+", "-") else text
    return word.lower() in WORDS or (NUMBER.fullmatch(text) is not None and not math.isfinite(float(text)))


def clip(token: str) -> str:
    printable = "".join(c if " " <= c <= "~" else "?" for c in token)
    return printable if len(printable) <= 30 else printable[:27] + "..."


def complain(expected: str, token: str, more: str = "") -> None:
    raise BadLineError(f"expected {expected}, found '{clip(token)}'{more}")
