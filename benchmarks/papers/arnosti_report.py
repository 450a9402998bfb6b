"""Tables and pictures of arnosti.py, made from its CSV."""

from __future__ import annotations

from pathlib import Path

import paper
from arnosti_pictures import PICTURES, curve, style
from arnosti_tables import NEEDS, TABLES, Row, figures

__all__ = ["curve", "make", "read", "style"]
TEXT = set("experiment solver variant search set layout mean status message".split())


def read(path: Path) -> list[Row]:
    return paper.read(path, TEXT)


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, pictures in its folder."""
    rows = read(path)
    there = {row["experiment"] for row in rows}
    tables = {name: table(rows) for name, table in TABLES.items() if NEEDS.get(name, name) in there}
    paper.publish(path, docs, "Arnosti (2010)", tables, PICTURES, rows, figures(rows))
