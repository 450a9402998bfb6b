"""Mutations of bytes, text and JSON, deterministic by the generator that they are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

__all__ = ["mutate_bytes", "mutate_json", "mutate_text"]

_EDGES = (0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_WORDS = (
    *(
        "0",
        "-0",
        "1",
        "-1",
        "+1",
        "1e308",
        "1e309",
        "-1e-400",
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1_0",
        "0x10",
        "1e",
        ".",
    ),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "2147483648"),
    *(
        "1e9223372036854775807",
        "1e-99999999999999999999",
        "0.1e+5",
        "1" * 40,
        "0." + "0" * 30 + "1",
        "",
        " ",
        "\n",
        "\r",
    ),
    *(":", "#", ",", ";", "\t", '"', "'", "qid:", "\x00", "\x1b[31m", "\u2028", "\ufeff", "é", "label", "NaN", "null"),
)
_TOKEN = re.compile(rb"[-+.\w]+")
_DEEP = [[[[[[[[]]]]]]]]


def mutate_bytes(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The data after one to four mutations; `others` lend pieces."""
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        random.choice(_MUTATIONS)(random, content, others)
    return bytes(content)


def mutate_text(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The same for text: half of the time a token becomes another one."""
    if random.random() < 0.5:
        return mutate_bytes(random, data, others)
    for _ in range(random.choice((1, 1, 2, 3))):
        tokens = list(_TOKEN.finditer(data))
        if not tokens:
            break
        token = random.choice(tokens)
        word = random.choice(_WORDS).encode() if random.random() < 0.7 else random.choice(tokens)[0]
        data = data[: token.start()] + word + data[token.end() :]
    return data


def mutate_json(random: Random, value: Any) -> Any:
    """A copy in which one value, chosen among all levels, is another one."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        if random.random() < 0.1:
            return {other: item for other, item in value.items() if other != key}
        return {**value, key: mutate_json(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.8:
        place = random.randrange(len(value))
        return [*value[:place], mutate_json(random, value[place]), *value[place + 1 :]]
    if type(value) is int and random.random() < 0.5:
        return value + random.choice((-1, 1, 2, 1 << 31, 1 << 62))
    return random.choice(_JSON)(random)


_JSON: tuple[Callable[[Random], Any], ...] = (
    lambda random: random.choice(_EDGES) * random.choice((1, -1)),
    lambda random: random.choice((0.0, -1.0, 0.5, 1e308, 1e-320, 3.0)),
    lambda random: random.choice((True, False, None)),
    lambda random: random.choice(_WORDS),
    lambda random: [],
    lambda random: {},
    lambda random: _DEEP,
    lambda random: [random.choice(_WORDS), 1, None],
    lambda random: {"pairs": [[random.choice(_WORDS), random.choice(_EDGES)]]},
    lambda random: {"solver": random.choice(("OCAS", "DCD", "SGD", "Status", "x")), "options": {"shards": -1}},
    lambda random: 10 ** random.choice((18, 19, 30, 400)),
    lambda random: "x" * random.choice((1, 1000)),
)


def _flip(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def _set(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    if content:
        content[random.randrange(len(content))] = random.choice(
            (0, 1, 9, 10, 32, 58, 127, 128, 255, random.randrange(256))
        )


def _number(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    """An integer at the edges of its type, in either byte order, mostly where such numbers stand."""
    width = random.choice((1, 2, 4, 8))
    if len(content) < width:
        return
    at = random.randrange(len(content) - width + 1)
    if random.random() < 0.7:
        at -= at % width
    value = random.choice(_EDGES) if random.random() < 0.8 else random.getrandbits(8 * width)
    content[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, random.choice(("little", "little", "big")))


def _add(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    """A little more or less than what is there."""
    width = random.choice((1, 2, 4, 8))
    if len(content) < width:
        return
    at = random.randrange(len(content) - width + 1)
    value = int.from_bytes(content[at : at + width], "little") + random.randrange(-16, 17)
    content[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")


def _cut(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    del content[random.randrange(len(content) + 1) :]


def _delete(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    at = random.randrange(len(content) + 1)
    del content[at : at + random.choice((1, 2, 8, 64))]


def _repeat(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    at = random.randrange(len(content) + 1)
    content[at:at] = content[at : at + random.choice((1, 4, 16, 64))] * random.choice((1, 2, 8))


def _splice(random: Random, content: bytearray, others: Sequence[bytes]) -> None:
    """A piece of another seed over, or into, this one."""
    other = random.choice(others) if others else bytes(content)
    length = random.choice((2, 8, 32, 128))
    start, at = random.randrange(len(other) + 1), random.randrange(len(content) + 1)
    piece = other[start : start + length]
    content[at : at + (len(piece) if random.random() < 0.7 else 0)] = piece


_MUTATIONS: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    *(_flip, _flip, _set, _number, _number, _add, _cut, _delete, _repeat, _splice),
)
