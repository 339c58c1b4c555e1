"""Draw the pictures of the problem pages: `python docs/pictures.py FOLDER`.

They are the same as in `matchwood demo`, the matching of two records, and the layout of a graph
on ranks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from matchwood import generators
from matchwood.engines.ranks import grid as grids
from matchwood.gate import graph as csr
from matchwood.report import joins
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
    for name, made in (("layout", layout()), ("ranks", ownership())):
        path = folder / f"{name}.svg"
        made.save(path)
        written.append(path)
    return written


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
