"""Time to a given accuracy with more than two classes: cutsvm, msvmocas and LIBLINEAR -s 4 in one run.

    python benchmarks/multiclass.py [--sets covtype-7,mnist-10] [--C 1,1e4,n] [--gaps 1e-2,1e-3]

The steps, the measure and the options are those of binary.py; the loss is Crammer and Singer's. Writes
results/multiclass.csv, .md and .png. The report has one table more: our ratio to each peer, and the training errors.
"""

from __future__ import annotations

from binary import compare, parser
from binary_report import Best, Line, markdown, number, ratio
from peers import MULTI_CLASS, OWN_MULTI

DEFAULTS = {
    "sets": ["covtype-7", "mnist-10"],
    "C": [1.0, 1e4, "n"],
    "gaps": [1e-2, 1e-3],
    "solver": list(OWN_MULTI),
    "peers": list(MULTI_CLASS),
    "name": "multiclass",
    # Together these keep all of it under a quarter of an hour.
    "time_limit": 40.0,
    "repeat": 2,
    "repeat_limit": 4.0,
    "patience": 8.0,
}
SECTION = [
    "## Ratios and training errors",
    "",
    "Our time over each peer's, empty where the peer did not get there. `passes`: our sweeps over the data. The errors",
    "are the shares of training rows that the answers of this line put into the wrong class; a tie counts as wrong.",
    "",
]


def section(lines: list[Line], peers: list[str]) -> list[str]:
    """Ratios and errors, line by line."""
    head = ["set", "C n", "gap", *(f"ours / {name}" for name in peers), "passes"]
    head += [f"error, {name}" for name in ("ours", *peers)]
    return [*SECTION, *markdown(head, [cells(line, peers) for line in lines])]


def cells(line: Line, peers: list[str]) -> list[str]:
    others = [line.found.get(name) for name in peers]
    ratios = [number(ratio(line.ours, other)) for other in others]
    passes = number(line.ours.typical("passes"), ".0f") if line.ours and line.ours.reached else ""
    return [*line.head(), *ratios, passes, *(error(found) for found in (line.ours, *others))]


def error(found: Best | None) -> str:
    """The training error of an answer; in brackets when it did not reach the gap."""
    if found is None:
        return ""
    text = number(100 * found.typical("error"), ".2f", " %")
    return text if found.reached or not text else f"({text})"


def main() -> None:
    options = parser(__doc__.split("\n")[0])
    options.set_defaults(**DEFAULTS)
    compare(options.parse_args(), "Time to a relative gap, more than two classes", section)


if __name__ == "__main__":
    main()
