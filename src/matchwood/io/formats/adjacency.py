"""Adjacency lists: one line for each vertex, or for each net.

METIS .graph: an undirected graph as one line of neighbours for each vertex.

    % comments start with %
    4 3 1           vertices, edges; then fmt and ncon, where there are weights
    2 5             neighbours of vertex 1, each followed by the weight of the edge if fmt ends in 1
    1 5 3 2
    2 2 4 1
    3 1

fmt has three digits, leading zeros left out: vertex sizes, vertex weights (ncon of them), edge
weights.  Sizes and weights of a vertex stand before its neighbours.  Every edge stands in the
lines of both its ends with one weight, and loops are not allowed: other files are refused, which
also finds most errors that the count of edges does not show.

hMETIS .hgr: a hypergraph, one line of vertices for each of its edges (nets).

    2 4 1           nets, vertices, fmt: 1 = weights of nets, 10 = of vertices, 11 = of both
    5 1 2 3         weight of the net if fmt ends in 1, then its vertices, numbered from 1
    2 3 4

With vertex weights one line for each vertex follows.  Read as the matrix nets x vertices, whose
entries are the weight of the net, 1 without weights.

LAW's graph-txt (ASCIIGraph of WebGraph): the number of vertices, then one line a vertex.

    3           vertices, numbered from 0
    1 2         successors of vertex 0
                vertex 1 has none
    0           successors of vertex 2

There is no count of arcs; a missing line or newline shows that a file is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from matchwood.io.build import matrix_of_rows, rows_of, wrap
from matchwood.io.files import read_text
from matchwood.io.formats.edge_list import EDGES_PER_CHUNK
from matchwood.io.options import Limits, PathLike
from matchwood.io.result import Array, Matrix
from matchwood.io.tables import AdjacencyLists, read_rows, row_error, start_of_row
from matchwood.io.text import REMEDY, Text, clip, whole_numbers
from matchwood.primitives.transpose import transpose

# METIS


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
    limits = Limits(most_vertices, most_bytes)
    text = read_text(path, limits, "read_metis", strict, threads)
    return read_metis_text(text, strict=strict, threads=threads)


def read_metis_text(text: Text, *, strict: bool, threads: int | None) -> MetisFile:
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


def _check(text: Text, start: int, rows: AdjacencyLists, A: Matrix, threads: int | None) -> None:
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


def metis_pieces(A: Matrix, *, weights: bool, comments: Sequence[str]) -> Iterator[bytes]:
    """The lines of the file; `A` is symmetric, without diagonal, with whole weights."""
    header = "".join(f"% {line}\n" for line in comments)
    yield f"{header}{A.shape[0]} {A.nnz // 2}{' 001' if weights else ''}\n".encode()
    yield from _adjacency_lines(A, 1, weights)


# hMETIS


class HmetisFile(NamedTuple):
    """All that an hMETIS file holds.

    Attributes
    ----------
    matrix : (nets, vertices) csr_array
    vertex_weights : (vertices,) float64 array, or None
    """

    matrix: Matrix
    vertex_weights: Array | None


def read_hmetis(
    path: PathLike,
    *,
    strict: bool = True,
    threads: int | None = None,
    most_vertices: int | None = None,
    most_bytes: int | None = None,
) -> HmetisFile:
    """Read an hMETIS .hgr file with the weights of its vertices.

    `matchwood.io.read` gives the matrix alone.

    Parameters
    ----------
    path, threads, most_vertices, most_bytes
        As for `read_metis`.
    strict : bool
        False accepts missing lines at the end.

    Returns
    -------
    HmetisFile
        Unpacks as ``matrix, vertex_weights``.

    Raises
    ------
    FileFormatError
        With file and line, if the file is malformed or cut off.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "nets.hgr")
    >>> _ = path.write_text("2 3\\n1 2\\n1 3\\n")
    >>> matchwood.io.read_hmetis(path).matrix.toarray().tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    limits = Limits(most_vertices, most_bytes)
    text = read_text(path, limits, "read_hmetis", strict, threads)
    return read_hmetis_text(text, strict=strict, threads=threads)


def read_hmetis_text(text: Text, *, strict: bool, threads: int | None) -> HmetisFile:
    """The incidence matrix, and the vertex weights where there are any."""
    line, start, words = text.first_line("%")
    header = whole_numbers(words.split())
    if header is None or not 2 <= len(header) <= 3:
        raise text.error(line, "expected the numbers of nets and vertices, and fmt")
    text.require_finished(strict)
    nets, n = header[:2]
    fmt = header[2] if len(header) > 2 else 0
    if fmt not in (0, 1, 10, 11):
        raise text.error(line, f"expected fmt 0, 1, 10 or 11, got {fmt}")
    skip = fmt % 10
    weights: Array | None = None
    if fmt >= 10:
        split = start_of_row(text, start, nets, "%")
        tail = read_rows(
            text, split, n, limit=0, base=0, comment="%", skip=1, strict=strict, threads=threads
        )
        weights = tail.rows[:, 0].copy()
        text = Text.of(text.path, text.content[:split], True, text.limits, text.caller)
    rows = read_rows(
        text, start, nets, limit=n, base=1, comment="%", skip=skip, strict=strict, threads=threads
    )
    lengths = np.diff(rows.indptr)
    if strict and nets and lengths.min() == 0:
        row = int(lengths.argmin())
        raise row_error(text, start, row, "%", f"net {row + 1} has no vertices")
    data = np.repeat(rows.rows[:, 0], lengths) if skip else None
    A = matrix_of_rows((nets, n), rows.indptr, rows.indices, data, threads)
    if A.nnz != rows.indices.size:
        row = int(np.flatnonzero(np.diff(A.indptr) != lengths)[0])
        raise row_error(text, start, row, "%", f"net {row + 1} has a vertex twice")
    return HmetisFile(A, weights)


# graph-txt


def read_graph_txt(text: Text, *, strict: bool, threads: int | None) -> Matrix:
    end = text.content.index(b"\n") + 1
    first = bytes(text.content[:end].strip())
    size = whole_numbers(first.split())
    if size is None or len(size) != 1:
        raise text.error(1, f"expected the number of vertices, got {clip(first)}")
    text.require_finished(strict)
    n = size[0]
    rows = read_rows(text, end, n, limit=n, base=0, comment="", strict=strict, threads=threads)
    return matrix_of_rows((n, n), rows.indptr, rows.indices, None, threads)


def graph_txt_pieces(A: Matrix) -> Iterator[bytes]:
    yield f"{A.shape[0]}\n".encode()
    yield from _adjacency_lines(A, 0)


def _adjacency_lines(A: Matrix, base: int, weights: bool = False) -> Iterator[bytes]:
    """One line for each row: its columns, each followed by its value where asked."""
    for start in range(0, A.shape[0], EDGES_PER_CHUNK):
        lines = []
        for row in range(start, min(start + EDGES_PER_CHUNK, A.shape[0])):
            entries = slice(A.indptr[row], A.indptr[row + 1])
            words = (A.indices[entries] + base).tolist()
            if weights:
                pairs = zip(words, A.data[entries].tolist(), strict=True)
                words = [word for pair in pairs for word in pair]
            lines.append(" ".join(map(str, words)))
        yield ("\n".join(lines) + "\n").encode()


# The block of each vertex, as partitioners write it


def read_blocks(text: Text) -> Array:
    """The number of each line."""
    if not text.finished:  # there is no option to read it all the same
        raise text.error(text.last_line(), "no newline at the end: this line may be cut off")
    blocks: list[int] = []
    for number, (_, _, line) in enumerate(text.lines() if text.content.strip() else (), 1):
        if not line.isdigit() or len(line) > 18:
            raise text.error(number, f"expected the number of a block, got {clip(line)}")
        blocks.append(int(line))
    return np.array(blocks, np.int64)
