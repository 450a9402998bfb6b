"""What the scripts of the papers share: their options, their CSV, and where tables and pictures go."""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import data
from pages import with_figures, with_table
from provenance import EARLIER, write_rows

Row = dict[str, Any]
HERE = Path(__file__).resolve().parent


def listed(choices: Iterable[str], aliases: Mapping[str, str] | None = None) -> Callable[[str], list[str]]:
    """An option's words: some of the choices, each once, by their own names or by others."""
    known, other = list(choices), dict(aliases or {})

    def names(text: str) -> list[str]:
        found = [other.get(part.strip(), part.strip()) for part in text.split(",")]
        if unknown := [name for name in found if name not in known]:
            legal = ", ".join([*known, *sorted(other)])
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: one of {legal} expected")
        return list(dict.fromkeys(found))

    return names


def parser(about: str, experiments: Iterable[str], quick: str, **aliases: str) -> argparse.ArgumentParser:
    """The options that all of them have. quick: what --quick does, beside using a temporary folder."""
    known = list(experiments)
    found = argparse.ArgumentParser(description=about.splitlines()[0])
    add = found.add_argument
    add("--only", type=listed(known, aliases), default=known, help=", ".join([*known, *sorted(aliases)]))
    add("--quick", action="store_true", help=f"{quick}, and a temporary folder")
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, default=None, help="folder of the results")
    add("--docs", type=Path, default=None, help="folder of the documentation: its page and its images")
    add("--report-only", action="store_true", help="make tables and pictures from the CSV")
    return found


def limited(found: argparse.ArgumentParser, seconds: float, quick: float = 2.0, of: str = "per fit") -> None:
    """Add a time limit, with other defaults for all of it and for --quick."""
    found.add_argument("--time-limit", type=float, help=f"seconds {of}; {seconds:g}, with --quick {quick:g}")
    found.set_defaults(limits=(seconds, quick))


def parsed(found: argparse.ArgumentParser) -> argparse.Namespace:
    """The options; folders and time limit, unless told, depend on --quick."""
    options = found.parse_args()
    temporary = data.TEMPORARY / "quick"
    options.out = options.out or (temporary if options.quick else HERE / "results")
    options.docs = options.docs or (temporary if options.quick else HERE.parents[1] / "docs")
    if "limits" in options:
        options.time_limit = options.time_limit or options.limits[options.quick]
    return options


def main(
    name: str,
    options: argparse.Namespace,
    solve: Callable[[argparse.Namespace, Path], None],
    make: Callable[[Path, Path], None],
) -> None:
    """Run what is asked for into NAME.csv, and make tables and pictures of it."""
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{name}.csv"
    if not options.report_only:
        solve(options, path)
    if not path.exists():
        raise SystemExit(f"there are no results in {path}: is there a data set in {options.data}?")
    make(path, options.docs)


def save(path: Path, fields: list[str], rows: list[Row], experiments: Iterable[str]) -> None:
    """The rows, by experiments in this order; new ones get the commit that they were measured on."""
    order = list(experiments)
    write_rows(path, fields, sorted(rows, key=lambda row: order.index(row["experiment"])))


def read(path: Path, text: set[str]) -> list[Row]:
    """The rows of a CSV with numbers where there are any, but in the columns of text; `ended` is true or not.

    Rows without a commit are from before commits were written down.
    """
    with path.open() as file:
        rows = [{"commit": EARLIER} | row for row in csv.DictReader(file)]
    found: list[Row] = []
    for row in rows:
        strings = text | {"ended", "commit"}
        numbers = {key: float(value) for key, value in row.items() if key not in strings and value != ""}
        found.append(row | numbers | {"ended": row["ended"] == "True"})
    return found


class Picture(NamedTuple):
    """A picture on the page, above the table of its name."""

    file: str
    about: str
    draw: Callable[[list[Row], Path], None]


def fill(
    page: Path, tables: dict[str, list[str]], pictures: dict[str, Picture], figures: Mapping[str, str] | None = None
) -> None:
    """Put tables and pictures into their places on the page: between `<!-- NAME -->` and `<!-- end -->`.

    Figures within a sentence stand between `<!-- =NAME -->` and `<!-- / -->`; one that nobody computes is an error.
    """
    text = page.read_text()
    for name, lines in tables.items():
        shown = [f"![{pictures[name].about}](../images/{pictures[name].file})", ""] if name in pictures else []
        text = with_table(text, name, [*shown, *lines])
    page.write_text(with_figures(text, figures or {}))


def computed(figures: Mapping[str, Callable[[list[Row]], str]], rows: list[Row]) -> dict[str, str]:
    """The figures within sentences for which there are results."""
    found = {}
    for name, make in figures.items():
        with suppress(IndexError, KeyError, TypeError, ValueError):
            found[name] = make(rows)
    return found


def commits(rows: list[Row]) -> list[str]:
    """A line that names the commits that the rows of each experiment were measured on."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row.get("commit", EARLIER), {})[row["experiment"]] = None
    named = [f"{name} ({', '.join(of)})" for name, of in found.items()]
    return [f"Measured on {'; '.join(named)}.", ""]


def publish(
    path: Path,
    docs: Path,
    title: str,
    tables: dict[str, list[str]],
    pictures: dict[str, Picture],
    rows: list[Row],
    figures: Mapping[str, str] | None = None,
) -> None:
    """Tables beside the CSV and on the page of the documentation that has its name; the pictures that have a table.

    The page says which commits were measured where it has a place named `commits`.
    """
    tables = tables | {"commits": commits(rows)}
    text = [f"# {title}: tables", "", f"[The page about them](../../../docs/papers/{path.stem}.md).", ""]
    for name, lines in tables.items():
        text += [f"## {name}", "", *lines]
    path.with_suffix(".md").write_text("\n".join(text).rstrip() + "\n")
    page, images = docs / "papers" / f"{path.stem}.md", docs / "images"
    if page.exists():
        fill(page, tables, pictures, figures)
    images.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        if name in tables:
            picture.draw(rows, images / picture.file)
    print(f"Written: {path}, {path.with_suffix('.md').name}, {page}, {images}")
