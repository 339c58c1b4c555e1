"""Draw the pictures of the problem pages: `python docs/pictures.py FOLDER`.

They are the same as in `matchwood demo`, the matching of two records, a partition, the layout of a
graph on ranks, the speed beside peers, and the factors of a matrix in three orders.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import generators, ordering
from matchwood.engines.ranks import grid as grids
from matchwood.gate import graph as csr
from matchwood.partitioning import partition
from matchwood.report import joins, pictures
from matchwood.report.problems import PROBLEMS
from matchwood.report.svg import CATEGORIES, FAINT, INK, Svg


def draw(folder: Path) -> list[Path]:
    """Write one SVG for each drawing of each problem; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for problem in PROBLEMS:
        if problem.picture is None:
            continue
        for number, drawing in enumerate(problem.picture().drawings):
            path = folder / f"{problem.short}{number or ''}.svg"
            drawing.save(path)
            written.append(path)
    path = folder / "join.svg"
    joins.example().save(path)
    written.append(path)
    named = {"partition": blocks(), "layout": layout(), "ranks": ownership(), "peers": peers()}
    named |= {f"factor{k or ''}": made for k, made in enumerate(factors())}
    for name, made in named.items():
        path = folder / f"{name}.svg"
        made.save(path)
        written.append(path)
    return written


def blocks(n: int = 2500, k: int = 16) -> Svg:
    """A triangulation in blocks; eight colours, and of blocks of one colour the second is pale."""
    A, points = generators.delaunay(n, rng=7), generators.random_points(n, rng=7)
    found = partition(A, k)
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, f"{k} blocks of a triangulation")
    at, (u, v) = pictures.placed(points), pictures.upper_edges(A)
    across = found.labels[u] != found.labels[v]
    for block in range(k):
        mine = ~across & (found.labels[u] == block)
        colour, pale = CATEGORIES[block % len(CATEGORIES)], block >= len(CATEGORIES)
        picture.segments(at[u[mine]], at[v[mine]], color=colour, opacity=0.45 if pale else 1)
    picture.segments(at[u[across]], at[v[across]], color=INK, width=0.8)
    told = f"{k} blocks of {found.weights.min()} to {found.weights.max()} vertices, cut {found.cut}"
    picture.text(pictures.SIDE / 2, pictures.SIDE + 16, told, anchor="middle")
    return picture


def peers() -> Svg:
    """The table of README as bars: times as fast as the peer."""
    text = (
        (Path(__file__).resolve().parent.parent / "README.md").read_text().partition("## Speed")[2]
    )
    heads, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("|---")
    ]
    return pictures.ratios(
        [
            (
                f"{cells[0].replace('`', '')}, against {cells[1]}",
                [
                    (graph, float(cell.rstrip("x")))
                    for graph, cell in zip(heads[2:], cells[2:], strict=True)
                ],
            )
            for cells in rows
        ],
        "Times as fast as the peer",
    )


# The factor L of one matrix in three orders.

POINTS = 900  # of the triangulation


def factors() -> list[Svg]:
    A = generators.delaunay(POINTS, rng=1)
    orders = (
        ordering.reverse_cuthill_mckee(A),
        ordering.minimum_degree(A),
        ordering.nested_dissection(A, leaf=60).perm,
    )
    return [pictures.spy(factor(A, perm), cells=75, title="the entries of L") for perm in orders]


def factor(A: Any, perm: Any) -> sp.csr_array:
    """The pattern of L: row k is the part of the elimination tree below k that its entries span."""
    B, parent = ordering.permute(A, perm), ordering.elimination_tree(A, perm)
    found = {(k, k) for k in range(A.shape[0])}
    for k, i in zip(*B.tocoo().coords, strict=True):
        while i < k and (k, i) not in found:
            found.add((k, i))
            i = parent[i]
    rows, columns = np.array(sorted(found)).T
    return sp.csr_array((np.ones(rows.size), (rows, columns)), A.shape)


# The layout of a distributed graph: which rank keeps which entry of the matrix.

SIDE = 8  # points along a side of the mesh
ROWS, COLUMNS = 2, 4  # of ranks
CELL = 4.5  # units of a cell of the matrix
TOP, GAP = 30, 46  # units above the matrices and between them


def layout() -> Svg:
    """The matrix of a small mesh, each entry in the colour of its rank: two layouts."""
    view = csr.graph(generators.grid((SIDE, SIDE))).undirected_pattern()
    u = np.repeat(np.arange(view.n), np.diff(view.indptr))
    width = view.n * CELL
    picture = Svg(2 * width + GAP, TOP + width + 24, "Entries of a mesh on 2 x 4 ranks")
    for k, (layout, name) in enumerate((("stripes", "stripes"), ("ranges", "ranges of stripes"))):
        grid = grids.made(layout, view.n, ROWS, COLUMNS, 0)
        keepers = grid.keeper(u, view.indices.astype(np.int64))
        _matrix(picture, k * (width + GAP), u, view.indices, keepers, width)
        counts = np.bincount(keepers, minlength=grid.p)
        share = counts.max() / counts.mean()
        picture.text(k * (width + GAP) + width / 2, 18, name, size=13, anchor="middle")
        told = f"most entries of a rank: {share:.2f} times the mean"
        picture.text(k * (width + GAP) + width / 2, TOP + width + 16, told, anchor="middle")
    return picture


def ownership() -> Svg:
    """The grid of ranks, with the stripes that each row and each column holds."""
    size, left, top = 74, 150, 44
    p = ROWS * COLUMNS
    picture = Svg(left + COLUMNS * size + 10, top + ROWS * size + 14, "Ranks and stripes")
    for c in range(COLUMNS):
        stripes = ", ".join(str(s) for s in range(p) if s % COLUMNS == c)
        x = left + c * size + size / 2
        picture.text(x, 16, f"column group {c}", size=10, anchor="middle")
        picture.text(x, 32, f"stripes {stripes}", size=10, anchor="middle", color=FAINT)
    for r in range(ROWS):
        stripes = ", ".join(str(s) for s in range(p) if s // COLUMNS == r)
        y = top + r * size + size / 2
        picture.text(left - 10, y - 2, f"row group {r}", size=10, anchor="end")
        picture.text(left - 10, y + 13, f"stripes {stripes}", size=10, anchor="end", color=FAINT)
        for c in range(COLUMNS):
            rank = r * COLUMNS + c
            box = (left + c * size + 2, top + r * size + 2, size - 4, size - 4)
            picture.boxes([box], color=CATEGORIES[rank], opacity=0.75)
            x, y = left + c * size + size / 2, top + r * size + size / 2
            picture.text(x, y - 2, f"rank {rank}", size=12, anchor="middle", color="#111")
            picture.text(x, y + 14, f"owns {rank}", size=10, anchor="middle", color="#111")
    return picture


def _matrix(picture: Svg, left: float, u: Any, v: Any, keepers: Any, width: float) -> None:
    corners = np.array([[0, 0], [width, 0], [width, width], [0, width], [0, 0]], float)
    picture.line(corners + np.array([left, TOP]), color=INK, width=0.6)
    for rank in range(ROWS * COLUMNS):
        mine = keepers == rank
        boxes = [
            (left + column * CELL, TOP + row * CELL, CELL, CELL)
            for row, column in zip(u[mine].tolist(), v[mine].tolist(), strict=True)
        ]
        picture.boxes(boxes, color=CATEGORIES[rank])


if __name__ == "__main__":
    print("\n".join(map(str, draw(Path(sys.argv[1])))))
