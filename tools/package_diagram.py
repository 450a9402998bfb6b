"""Draws the packages of cutsvm and their imports: docs/images/packages.svg.

    python -m tools.package_diagram

An arrow from one package to another: the first imports the second. Arrows that follow from others are left out
(transitive reduction). Dashed: an import that the map of the code in CONTRIBUTING.md does not allow.

Layers: a package stands above all that it imports. Arrows over several layers pass through a free place in each.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.support import ROOT
from tests.support.imports import imports, map_of_the_code, package_of

PICTURE = ROOT / "docs" / "images" / "packages.svg"
WIDTH, BOX, HEIGHT, ROW = 760, 132, 34, 74

Edges = dict[str, set[str]]
Layers = list[list[str]]


def public_packages() -> set[str]:
    """The packages whose names are in the API reference, and the command line."""
    return {"cli", *re.findall(r"\bcutsvm\.(\w+)\.\w+", (ROOT / "docs" / "api.md").read_text())}


def import_graph() -> Edges:
    """Package -> the packages that it imports."""
    graph: Edges = {package: set() for package in map_of_the_code()}
    for importer, imported, _ in imports():
        source, target = package_of(importer), package_of(imported)
        if source and source != target and target != "_core":
            graph[source].add(target)
    return graph


def reduced(graph: Edges) -> Edges:
    """The smallest graph in which the same packages can be reached."""

    @cache
    def below(package: str) -> frozenset[str]:
        return frozenset(graph[package]).union(*(below(other) for other in graph[package]))

    return {
        package: {other for other in others if not any(other in below(third) for third in others)}
        for package, others in graph.items()
    }


def layers_of(edges: Edges) -> tuple[Layers, list[list[str]]]:
    """The packages by layer from the top, and each arrow as the places that it passes; `a>b` is a place of an arrow."""

    @cache
    def level(package: str) -> int:
        return max((1 + level(other) for other in edges[package]), default=0)

    top = max(map(level, edges))
    layers: Layers = [sorted(p for p in edges if level(p) == top - row) for row in range(top + 1)]
    arrows = []
    for source, targets in sorted(edges.items()):
        for target in sorted(targets):
            rows = range(top - level(source) + 1, top - level(target))
            for row in rows:
                layers[row].append(f"{source}>{target}")
            arrows.append([source, *(f"{source}>{target}" for _ in rows), target])
    return layers, arrows


def centres(layers: Layers, arrows: list[list[str]]) -> dict[tuple[str, int], float]:
    """The x of each place in each layer: places are sorted by the mean of the places above that lead to them."""
    x: dict[tuple[str, int], float] = {}
    for row, layer in enumerate(layers):
        parents: dict[str, list[float]] = {place: [] for place in layer}
        for arrow in arrows:
            for above, place in pairwise(arrow):
                if place in parents and (above, row - 1) in x:
                    parents[place].append(x[above, row - 1])
        layer.sort(key=lambda place: (sum(parents[place]) / max(1, len(parents[place])), place))
        for k, place in enumerate(layer):
            x[place, row] = WIDTH * (k + 0.5) / len(layer)
    return x


def svg() -> str:
    """The picture."""
    public = public_packages()
    layers, arrows = layers_of(reduced(import_graph()))
    x = centres(layers, arrows)
    row_of = {package: row for row, layer in enumerate(layers) for package in layer if ">" not in package}
    height = ROW * len(layers)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="14" role="img" aria-label="Packages and their imports">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#567"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for arrow in arrows:
        rows = range(row_of[arrow[0]], row_of[arrow[-1]] + 1)
        lines.append(
            _arrow(arrow[0], arrow[-1], [x[place, row] for place, row in zip(arrow, rows, strict=True)], rows[0])
        )
    for package, row in row_of.items():
        left, upper = x[package, row] - BOX / 2, ROW * row + (ROW - HEIGHT) / 2
        fill = "#dcebfb" if package in public else "#f2f2f2"
        lines.append(
            f'<rect x="{left:.0f}" y="{upper:.0f}" width="{BOX}" height="{HEIGHT}" rx="6" fill="{fill}" stroke="#567"/>'
            f'<text x="{x[package, row]:.0f}" y="{upper + HEIGHT / 2 + 5:.0f}" text-anchor="middle">{package}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _arrow(source: str, target: str, xs: list[float], row: int) -> str:
    """A curve from the bottom of one box to the top of another, upright at every layer between."""
    gap = (ROW - HEIGHT) / 2
    path = f"M{xs[0]:.0f} {ROW * (row + 1) - gap:.0f}"
    for k in range(1, len(xs)):
        begin, end = ROW * (row + k) - gap, ROW * (row + k) + gap
        path += f" C{xs[k - 1]:.0f} {ROW * (row + k):.0f} {xs[k]:.0f} {ROW * (row + k):.0f} {xs[k]:.0f} {end:.0f}"
        if k < len(xs) - 1:
            path += f" V{begin + ROW:.0f}"
    return (
        f'<path data-from="{source}" data-to="{target}" d="{path}" stroke="#567" stroke-width="1.4" fill="none" '
        'marker-end="url(#head)"/>'
    )


if __name__ == "__main__":
    Path(PICTURE).write_text(svg())
