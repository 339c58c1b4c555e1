"""METIS .graph: an undirected graph as one line of neighbours for each vertex.

    % comments start with %
    4 3 1           vertices, edges; then fmt and ncon, where there are weights
    2 5             neighbours of vertex 1, each followed by the weight of the edge if fmt ends in 1
    1 5 3 2
    2 2 4 1
    3 1

fmt has three digits, leading zeros left out: vertex sizes, vertex weights (ncon of them), edge
weights.  Sizes and weights of a vertex stand before its neighbours.  Every edge stands in the
lines of both its ends with one weight, and loops are not allowed: a file where that is not so is
refused, which also finds most of what a count of edges cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from matchwood.io.build import Matrix, matrix_of_rows, rows_of, wrap
from matchwood.io.files import PathLike
from matchwood.io.formats.graph_txt import adjacency_lines
from matchwood.io.limits import Limits
from matchwood.io.text import REMEDY, Array, Rows, Text, read_rows, row_error, whole_numbers
from matchwood.primitives.transpose import transpose


class MetisFile(NamedTuple):
    """All that a METIS file holds.

    Attributes
    ----------
    matrix : (n, n) csr_array, symmetric
    vertex_weights : (n, ncon) float64 array, or None
    vertex_sizes : (n,) float64 array, or None
    """

    matrix: Matrix
    vertex_weights: Array | None
    vertex_sizes: Array | None


def read_metis(
    path: PathLike,
    *,
    strict: bool = True,
    threads: int | None = None,
    most_vertices: int | None = None,
    most_bytes: int | None = None,
) -> MetisFile:
    """Read a METIS .graph file with the weights and sizes of its vertices.

    `matchwood.io.read` gives the matrix alone.

    Parameters
    ----------
    path : path
        Compressed where it ends in .gz, .bz2, .xz or .zst.
    strict : bool
        False accepts a wrong count, loops, and edges that stand in one line only.
    threads : int or None
    most_vertices, most_bytes : int, optional
        As for `matchwood.io.read`.

    Returns
    -------
    MetisFile
        Unpacks as ``matrix, vertex_weights, vertex_sizes``.

    Raises
    ------
    FileFormatError
        With file and line, if the file is malformed or cut off.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "edge.graph")
    >>> _ = path.write_text("2 1 010\\n7 2\\n9 1\\n")
    >>> matchwood.io.read_metis(path).vertex_weights.tolist()
    [[7.0], [9.0]]
    """
    return read(
        Text.load(path, Limits(most_vertices, most_bytes), "read_metis", strict, threads),
        strict=strict,
        threads=threads,
    )


def read(text: Text, *, strict: bool, threads: int | None) -> MetisFile:
    """The graph, and what the file says of its vertices."""
    line, start, words = text.first_line("%")
    header = whole_numbers(words.split())
    if header is None or not 2 <= len(header) <= 4:
        raise text.error(line, "expected the numbers of vertices and edges, fmt and ncon")
    text.require_finished(strict)
    n, m, fmt, ncon = [*header, *[0, 1][len(header) - 2 :]]
    if fmt not in (0, 1, 10, 11, 100, 101, 110, 111):
        raise text.error(line, f"expected fmt of three digits 0 or 1, got {fmt}")
    sized, weighted, edge_weighted = fmt // 100, fmt // 10 % 10, fmt % 10
    if weighted and ncon < 1:
        raise text.error(line, "fmt announces vertex weights, but ncon is 0")
    ncon = ncon if weighted else 0
    if sized + ncon > len(text.content):
        raise text.error(line, f"no line can hold {ncon} weights")
    rows = read_rows(
        text, start, n, limit=n, base=1, comment="%", skip=sized + ncon,
        weighted=bool(edge_weighted), strict=strict, threads=threads,
    )  # fmt: skip
    text.require_count(2 * m, rows.indices.size, "neighbours (two for each edge)", strict)
    A = matrix_of_rows((n, n), rows.indptr, rows.indices, rows.weights, threads)
    if strict:
        _check(text, start, rows, A, threads)
    sizes = rows.rows[:, 0].copy() if sized else None
    weights = rows.rows[:, sized:].copy() if weighted else None
    return MetisFile(A, weights, sizes)


def _check(text: Text, start: int, rows: Rows, A: Matrix, threads: int | None) -> None:
    """No edge twice in a line, no loop, and every edge in the lines of both its ends."""

    def wrong(row: int, what: str) -> Exception:
        return row_error(text, start, row, "%", f"vertex {row + 1} {what}{REMEDY}")

    repeats = np.flatnonzero(np.diff(A.indptr) != np.diff(rows.indptr))
    if repeats.size:
        raise wrong(int(repeats[0]), "has a neighbour twice")
    loops = loops_of(A)
    if loops.size:
        raise wrong(int(loops[0]), "is its own neighbour")
    indptr, indices, data = transpose(A.indptr, A.indices, A.data, A.shape[0], threads=threads)
    for mine, other in ((A.indptr, indptr), (A.indices, indices), (A.data, data)):
        if not np.array_equal(mine, other):
            raise wrong(*_one_sided(A))


def loops_of(A: Matrix) -> Array:
    """Vertices with an entry on the diagonal."""
    rows = rows_of(A)
    return rows[rows == A.indices]


def _one_sided(A: Matrix) -> tuple[int, str]:
    """The first vertex with an edge that its neighbour does not have, or not with that weight."""
    T = wrap(*transpose(A.indptr, A.indices, A.data, A.shape[0]), A.shape)
    mine, theirs = set(zip(*_ends(A), strict=True)), set(zip(*_ends(T), strict=True))
    if mine != theirs:
        u, v = min(mine - theirs)
        return u, f"has neighbour {v + 1}, which does not have it"
    at = int(np.flatnonzero(A.data != T.data)[0])
    u, v = (ends[at] for ends in _ends(A))
    return u, f"and its neighbour {v + 1} give their edge different weights"


def _ends(A: Matrix) -> tuple[list[int], list[int]]:
    return rows_of(A).tolist(), A.indices.tolist()


def pieces(A: Matrix, *, weights: bool, comments: Sequence[str]) -> Iterator[bytes]:
    """The lines of the file; `A` is symmetric, without diagonal, with whole weights."""
    header = "".join(f"% {line}\n" for line in comments)
    yield f"{header}{A.shape[0]} {A.nnz // 2}{' 001' if weights else ''}\n".encode()
    yield from adjacency_lines(A, 1, weights)
