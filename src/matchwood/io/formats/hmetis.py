"""hMETIS .hgr: a hypergraph, one line of vertices for each of its edges (nets).

    2 4 1           nets, vertices, fmt: 1 = weights of nets, 10 = of vertices, 11 = of both
    5 1 2 3         weight of the net if fmt ends in 1, then its vertices, numbered from 1
    2 3 4

With vertex weights one line for each vertex follows.  Read as the matrix nets x vertices, whose
entries are the weight of the net, 1 without weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.io.build import Matrix, matrix_of_rows
from matchwood.io.files import PathLike
from matchwood.io.limits import Limits
from matchwood.io.text import Array, Text, read_rows, row_error, start_of_row, whole_numbers


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
    path : path
        Compressed where it ends in .gz, .bz2, .xz or .zst.
    strict : bool
        False accepts missing lines at the end.
    threads : int or None
    most_vertices, most_bytes : int, optional
        As for `matchwood.io.read`.

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
    return read(
        Text.load(path, Limits(most_vertices, most_bytes), "read_hmetis", strict, threads),
        strict=strict,
        threads=threads,
    )


def read(text: Text, *, strict: bool, threads: int | None) -> HmetisFile:
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
