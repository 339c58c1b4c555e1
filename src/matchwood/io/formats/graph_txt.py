"""LAW's graph-txt (ASCIIGraph of WebGraph): the number of vertices, then one line a vertex.

    3           vertices, numbered from 0
    1 2         successors of vertex 0
                vertex 1 has none
    0           successors of vertex 2

There is no count of arcs; what shows that a file is cut off is a missing line or newline.
"""

from __future__ import annotations

from collections.abc import Iterator

from matchwood.io.build import Matrix, matrix_of_rows
from matchwood.io.formats.edge_list import EDGES_PER_CHUNK
from matchwood.io.text import Text, clip, read_rows, whole_numbers


def read(text: Text, *, strict: bool, threads: int | None) -> Matrix:
    """The matrix of the successors."""
    end = text.content.index(b"\n") + 1
    first = bytes(text.content[:end].strip())
    size = whole_numbers(first.split())
    if size is None or len(size) != 1:
        raise text.error(1, f"expected the number of vertices, got {clip(first)}")
    text.require_finished(strict)
    n = size[0]
    rows = read_rows(text, end, n, limit=n, base=0, comment="", strict=strict, threads=threads)
    return matrix_of_rows((n, n), rows.indptr, rows.indices, None, threads)


def pieces(A: Matrix, *, base: int = 0) -> Iterator[bytes]:
    """The lines of the file."""
    yield f"{A.shape[0]}\n".encode()
    yield from adjacency_lines(A, base)


def adjacency_lines(A: Matrix, base: int, weights: bool = False) -> Iterator[bytes]:
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
