"""The formats of the DIMACS challenges: every line starts with a letter that says what it is.

    .gr    p sp n m       a u v w      arcs with lengths (9th challenge, shortest paths)
    .max   p max n m      a u v c      arcs with capacities, n u s|t: source and sink (1st)
    .col   p edge n m     e u v        undirected edges, n u w: vertex weights (2nd); also .clq
    .co    p aux sp co n  v u x y      coordinates of the vertices of a .gr

Vertices are numbered from 1, `c` starts a comment.  Of parallel arcs a .gr keeps the shortest, a
.max adds up the capacities, a .col has one edge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from matchwood.arguments import one_of
from matchwood.gate.resources import interruptible
from matchwood.io.build import matrix_of_edges
from matchwood.io.files import read_text
from matchwood.io.formats.edge_list import chunks, lines_of
from matchwood.io.options import Limits, Options, PathLike, format_of
from matchwood.io.result import Array, Entries, Matrix
from matchwood.io.tables import Layout, read_records
from matchwood.io.text import Text, clip, whole_numbers


class Kind(NamedTuple):
    """One of the formats."""

    problems: tuple[str, ...]  # what may stand after p
    key: str
    fields: int
    duplicates: str
    undirected: bool = False
    nodes: bool = False  # lines with n may occur


KINDS = {
    "gr": Kind(("sp",), "a", 3, "min"),
    "max": Kind(("max",), "a", 3, "sum", nodes=True),
    "col": Kind(("edge", "col", "edges", "clq"), "e", 2, "first", undirected=True, nodes=True),
}
_NODE_LINE = re.compile(rb"^[ \t\r]*n.*", re.MULTILINE)
DESCRIPTIONS = "dvx"  # further lines that a .col may have and that say nothing of the graph


class DimacsFile(NamedTuple):
    """All that a DIMACS file holds.

    Attributes
    ----------
    matrix : (n, n) csr_array
    vertex_weights : (n,) float64 array, or None
        Of a .col; vertices without a line have weight 0.
    source, sink : int, or None
        Of a .max, numbered from 0.
    """

    matrix: Matrix
    vertex_weights: Array | None = None
    source: int | None = None
    sink: int | None = None


def read_dimacs(
    path: PathLike,
    *,
    format: str | None = None,
    strict: bool = True,
    threads: int | None = None,
    most_vertices: int | None = None,
    most_bytes: int | None = None,
) -> DimacsFile:
    """Read a DIMACS .gr, .max, .col or .clq file with what it says of its vertices.

    `matchwood.io.read` gives the matrix alone.

    Parameters
    ----------
    path : path
        Compressed where it ends in .gz, .bz2, .xz or .zst.
    format : {None, "gr", "max", "col"}
        None goes by the name of the file.
    strict : bool
        False accepts a wrong count of edges.
    threads : int or None
    most_vertices, most_bytes : int, optional
        As for `matchwood.io.read`.

    Returns
    -------
    DimacsFile
        Unpacks as ``matrix, vertex_weights, source, sink``.

    Raises
    ------
    FileFormatError
        With file and line, if the file is malformed or cut off.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pipe.max")
    >>> _ = path.write_text("p max 2 1\\nn 1 s\\nn 2 t\\na 1 2 5\\n")
    >>> flow = matchwood.io.read_dimacs(path)
    >>> flow.source, flow.sink, flow.matrix.toarray().tolist()
    (0, 1, [[0.0, 5.0], [0.0, 0.0]])
    """
    name = format_of(path, format, "read_dimacs")
    one_of("read_dimacs", "format", name, tuple(KINDS))
    limits = Limits(most_vertices, most_bytes)
    text = read_text(path, limits, "read_dimacs", strict, threads)
    return read(text, KINDS[name], None, strict=strict, threads=threads)


def read(
    text: Text, kind: Kind, duplicates: str | None, *, strict: bool, threads: int | None
) -> DimacsFile:
    """The graph, and what the file says of its vertices."""
    options = Options(duplicates=duplicates, strict=strict, threads=threads)
    A = matrix_of_edges(entries(text, options, kind), threads)
    start, n = _problem(text)[1], A.shape[0]
    if kind.undirected:
        return DimacsFile(A, _vertex_weights(text, start, n, threads))
    if kind.nodes:
        return DimacsFile(A, None, *_terminals(text, start, n))
    return DimacsFile(A)


def entries(text: Text, options: Options, kind: Kind = KINDS["gr"]) -> Entries:
    """The edges; on ranks those of this rank's piece."""
    start, (line, n, m, layout) = text.head(lambda part: _described(part, kind))
    text.require_finished(options.strict)
    edges = read_records(text, start, layout, options.threads)
    found = text.total(edges.u.size)
    text.require_count(m, found, "edges", options.strict)
    text.require_shape(line, (n, n), found)
    rule = options.duplicates or kind.duplicates
    return Entries((n, n), edges.u, edges.v, edges.w, kind.undirected, rule)


def _described(text: Text, kind: Kind) -> tuple[int, tuple[int, int, int, Layout]]:
    """(byte of the first edge, (line of the problem, vertices, edges, layout of the edges))."""
    line, start, words = _problem(text)
    sizes = whole_numbers(words[1:])
    if len(words) != 3 or words[0].decode(errors="replace") not in kind.problems or sizes is None:
        expected = f"p {kind.problems[0]} VERTICES EDGES"
        raise text.error(line, f"expected '{expected}', got {clip(b'p ' + b' '.join(words))}")
    n, m = sizes
    nodes = "n" if kind.nodes else ""
    skipped = f"c{nodes}{DESCRIPTIONS if kind.undirected else ''}"
    layout = Layout(
        kind.fields, w=kind.fields - 1 if kind.fields > 2 else -1, base=1, key=kind.key,
        skipped=skipped, u_limit=n, v_limit=n,
    )  # fmt: skip
    return start, (line, n, m, layout)


def _problem(text: Text) -> tuple[int, int, list[bytes]]:
    """(line number, where the next line starts, words after the p) of the problem line."""
    number, after, line = text.first_line("c")
    if not line:
        raise text.error(number, "there is no problem line, which starts with p")
    words = line.split()
    if words[0] != b"p":
        raise text.error(number, f"expected the problem line, p ..., got {clip(line)}")
    return number, after, words[1:]


def _vertex_weights(text: Text, start: int, n: int, threads: int | None) -> Array | None:
    if _NODE_LINE.search(text.content, start) is None:
        return None
    others = "ce" + DESCRIPTIONS
    layout = Layout(2, v=-1, w=1, base=1, key="n", skipped=others, u_limit=n, v_limit=n)
    nodes = read_records(text, start, layout, threads)
    weights = np.zeros(n)
    assert nodes.w is not None
    weights[nodes.u] = nodes.w
    return weights


def _terminals(text: Text, start: int, n: int) -> tuple[int | None, int | None]:
    ends: dict[bytes, int] = {}
    for line in _NODE_LINE.finditer(text.content, start):
        words = line[0].split()
        vertex = whole_numbers(words[1:2])
        known = len(words) == 3 and words[2] in (b"s", b"t") and words[2] not in ends
        if not known or words[0] != b"n" or not vertex or not 1 <= vertex[0] <= n:
            message = f"expected one source, n U s, and one sink, n U t, got {clip(line[0])}"
            raise text.error(text.line_at(line.start()), message)
        ends[words[2]] = vertex[0] - 1
    return ends.get(b"s"), ends.get(b"t")


def read_coordinates(text: Text, *, strict: bool, threads: int | None) -> Array:
    line, start, words = _problem(text)
    size = whole_numbers(words[-1:])
    if words[:-1] != [b"aux", b"sp", b"co"] or size is None:
        raise text.error(line, f"expected 'p aux sp co VERTICES', got {clip(b' '.join(words))}")
    text.require_finished(strict)
    n = size[0]
    columns = []
    for column in (1, 2):
        layout = Layout(3, v=-1, w=column, base=1, key="v", skipped="c", u_limit=n, v_limit=n)
        table = read_records(text, start, layout, threads)
        text.require_count(n, table.u.size, "vertices", True)
        seen = np.bincount(table.u, minlength=n)
        if n and seen.max() > 1:
            vertex = int(seen.argmax()) + 1
            raise text.error(text.last_line(), f"vertex {vertex} has more than one line")
        values = np.empty(n)
        assert table.w is not None
        values[table.u] = table.w
        columns.append(values)
    return np.column_stack(columns)


def pieces(A: Matrix, name: str, comments: Sequence[str]) -> Iterator[bytes]:
    """The lines of a .gr or .col file; for the latter `A` is symmetric, without diagonal."""
    yield "".join(f"c {line}\n" for line in comments).encode()
    if name == "gr":
        yield f"p sp {A.shape[0]} {A.nnz}\n".encode()
        for u, v, w in chunks(A, True):
            yield lines_of([u + 1, v + 1, w], " ", "a ")
    else:
        half = interruptible(lambda: sp.csr_array(sp.triu(A, 1)))
        yield f"p edge {A.shape[0]} {half.nnz}\n".encode()
        for u, v, _ in chunks(half, False):
            yield lines_of([u + 1, v + 1], " ", "e ")
