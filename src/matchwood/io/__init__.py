"""Files in and out: read a graph, write a graph.

    read                a matrix from a file of any format below
    write               a matrix to a file
    read_metis          all that a METIS file holds: vertex weights and sizes too
    read_hmetis         all that an hMETIS file holds: vertex weights too
    read_dimacs         all that a DIMACS file holds: vertex weights, source and sink too
    read_coordinates    the coordinates of vertices: DIMACS .co, dense Matrix Market
    read_names          the names of vertices, one a line
    read_partition      the block of each vertex, one a line, as METIS writes them
    write_partition     the same for METIS and others to read

One file a format in formats/, chosen by dispatch.py.  They stand on files.py (bytes, compression),
text.py (lines, errors), tables.py with cpu.py (the parallel parser) and build.py (edges to CSR).
ranks.py has all ranks of a communicator read one file by the same readers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from matchwood.arguments import path as checked_path
from matchwood.arguments import without_ranks
from matchwood.io.formats.adjacency import HmetisFile, MetisFile, read_hmetis, read_metis
from matchwood.io.formats.dimacs import DimacsFile, read_dimacs
from matchwood.io.options import PathLike
from matchwood.io.result import Compacted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from matchwood.engines.ranks.protocol import Communicator

__all__ = [
    "Compacted",
    "DimacsFile",
    "HmetisFile",
    "MetisFile",
    "read",
    "read_coordinates",
    "read_dimacs",
    "read_hmetis",
    "read_metis",
    "read_names",
    "read_partition",
    "write",
    "write_partition",
]


class _Options(TypedDict, total=False):
    """For type checkers: the options of `read` that do not decide what it returns."""

    format: str | None
    dtype: Any
    strict: bool
    threads: int | None
    duplicates: str | None
    columns: tuple[int, ...] | None
    delimiter: str | None
    base: int
    skip: int
    shape: int | tuple[int, int] | None
    symmetric: bool
    header: bool | None
    pattern: bool
    most_vertices: int | None
    most_bytes: int | None


@overload
def read(
    path: PathLike, *, comm: Communicator, grid: Any = None, order: str = "auto",
    compact: bool = False, names: bool = False, **options: Unpack[_Options],
) -> Any: ...  # fmt: skip
@overload
def read(path: PathLike, *, compact: Literal[True], **options: Unpack[_Options]) -> Compacted: ...
@overload
def read(path: PathLike, *, names: Literal[True], **options: Unpack[_Options]) -> Compacted: ...
@overload
def read(path: PathLike, **options: Unpack[_Options]) -> csr_array: ...
@overload
def read(
    path: PathLike, *, compact: bool, **options: Unpack[_Options]
) -> csr_array | Compacted: ...


def read(
    path: PathLike,
    *,
    format: str | None = None,
    dtype: Any = None,
    strict: bool = True,
    threads: int | None = None,
    duplicates: str | None = None,
    columns: tuple[int, ...] | None = None,
    delimiter: str | None = None,
    base: int = 0,
    skip: int = 0,
    shape: int | tuple[int, int] | None = None,
    symmetric: bool = False,
    compact: bool = False,
    names: bool = False,
    header: bool | None = None,
    pattern: bool = False,
    most_vertices: int | None = None,
    most_bytes: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Any:
    """Read a graph or matrix from a file.

    ========= ============================================= ==================================
    format    by the name of the file                       content
    ========= ============================================= ==================================
    mtx       .mtx .mm                                      Matrix Market
    edges     .txt .tsv .csv .ssv .edges .edgelist .el .wel edge list, as SNAP, KONECT and
              .dat, and names that start with out.          spreadsheets write them
    metis     .graph .metis                                 METIS, undirected
    hgr       .hgr                                          hMETIS, a matrix nets x vertices
    gr        .gr                                           DIMACS shortest paths, directed
    max       .max                                          DIMACS maximum flow, directed
    col       .col .clq                                     DIMACS colouring, undirected
    co        .co                                           DIMACS coordinates, n x 2
    graph-txt .graph-txt                                    LAW, directed
    npz       .npz                                          scipy.sparse.save_npz
    ========= ============================================= ==================================

    Each may be compressed: the name then goes on with .gz, .bz2, .xz or .zst.

    Parameters
    ----------
    path : str or path
    format : str, optional
        A word of the first column above.  By default the name of the file decides.
    dtype : dtype, optional
        Type of the values.  By default float64; Matrix Market and npz keep what they store.
    strict : bool
        Refuse a file whose own counts do not agree with what it holds, and a plain file whose
        last line ends without a newline, so that digits may be missing.  Malformed lines are
        refused always.
    threads : int or None
        Threads that parse.  None: as many as this process may use, one for a small file.
    duplicates : {None, "sum", "first", "min", "max"}
        What an edge weighs that is given more than once, in edge lists and DIMACS files.
        None: the smallest in .gr, one edge in .col, otherwise the sum, which is the number of
        times it is given in a list without weights.
    columns : (int, int) or (int, int, int), optional
        For edge lists, as all that follow: the columns, from 0, with the two ends and the
        weight.  By default all columns of a list that has two or three.
    delimiter : str, optional
        By default a comma or semicolon where the first edge has one, and blanks otherwise.
    base : int
        The smallest id: 1 for lists that count from 1.
    skip : int
        Lines to leave out at the top.  Comments (# and %) and a header without numbers are
        recognised.
    shape : int or (int, int), optional
        Rows and columns.  By default as many as the largest id asks, or as a comment
        ``# Nodes: 5 Edges: 4`` says.
    symmetric : bool
        Every line is an undirected edge: store it in both directions.
    compact : bool
        The ids have gaps: the vertices are those that occur.
    names : bool
        The ids are text: the vertices are those that occur.
    header : bool, optional
        Whether the first line that is no comment is a header.  None looks: with numbers for ids
        a header is a line without numbers; with `names` see Notes.
    pattern : bool
        For files of any format: every entry is 1, whatever the file says.  So a graph whose
        weights are infinite or NaN can be used as one without weights.
    most_vertices : int, optional
        Rows or columns that a file of any format may declare.  By default ten million, or a
        thousand for each entry in the file where that is more.
    most_bytes : int, optional
        Bytes that a compressed file may unpack to.  By default a hundred million, or 200 for each
        compressed byte where that is more.
    comm : Communicator, optional
        Of `matchwood.dist`: its ranks read the file together, and each keeps a block.  `path` may
        then be a folder of edge lists, which are one list in the order of their names.  A folder
        that `DistributedGraph.save` wrote is read with and without `comm`.
    grid, order
        With `comm`, as for `matchwood.distribute`.

    Returns
    -------
    csr_array
        Rows sorted, each entry once; int32 indices where they suffice; entry 1 for an edge
        without weight.  Edges are directed as stored; undirected formats give both directions.
        Stored zeros stay.  A dense file becomes a matrix with every entry stored.
    Compacted
        With `compact` or `names`: unpacks as ``matrix, ids``, where ``ids[v]`` is what the file
        calls vertex ``v``.
    Graph
        Of a folder that `DistributedGraph.save` wrote, without `comm`: the graph as it was
        distributed, with its rule for duplicates.
    DistributedGraph
        With `comm`: what `matchwood.graph` makes of the matrix, distributed over the ranks.  With
        `compact` or `names` it is the matrix of a Compacted; every rank has all ids.

    Raises
    ------
    FileFormatError
        With file and line, if the file is malformed or cut off, or asks for more than the limits.
    TypeError, ValueError
        If the name does not show the format, or an option makes no sense; if `dtype` is an
        integer and a weight is not, or is 2**53 or more in a format that is read as float64.
    OutOfMemory
        Before anything is allocated, if the file or its matrix is larger than the memory free.
    OSError
        If the file cannot be read.

    Notes
    -----
    The answer does not depend on the number of threads.  Text is parsed in parallel, each thread
    a part of the bytes; memory is the file as text, the edges as read, and the matrix.

    Cut-off files are found by the counts that a file declares, by a missing last newline in plain
    files, and in compressed files always.  A plain edge list without counts that was cut exactly
    at the end of a line is a shorter list, and read as one.

    With `names`, a header looks like an edge.  A first line whose weight is no number is a header.
    Otherwise a line is an edge if one of its names occurs again, and a header if it holds words
    like ``source,target`` or ``from,to``.  A list with commas or semicolons whose first line is
    neither is refused: say which it is by `header`.  With blanks it is an edge.

    With `comm`, plain edge lists, sparse Matrix Market files and .gr files are parsed by all
    ranks, each a range of the bytes; all other files, compressed ones among them, by rank 0.
    Errors are the same on all ranks, and name the line of the file.

    Ctrl-C takes effect within a tenth of a second.  Objects in an npz are never unpickled.

    Vertex weights and the like are not part of the matrix: `read_metis`, `read_hmetis`,
    `read_dimacs` return them.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flights.csv")
    >>> _ = path.write_text("from,to,times\\n7,20,2\\n20,7,1\\n20,30,4\\n")
    >>> matchwood.io.read(path).shape
    (31, 31)
    >>> A, ids = matchwood.io.read(path, compact=True)
    >>> A.toarray().tolist(), ids.tolist()
    ([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0], [0.0, 0.0, 0.0]], [7, 20, 30])

    A cut-off file is an error, never a smaller graph:

    >>> path = path.with_suffix(".mtx")
    >>> _ = path.write_text("%%MatrixMarket matrix coordinate pattern general\\n3 3 2\\n1 2\\n")
    >>> matchwood.io.read(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    matchwood.errors.FileFormatError: ...flights.mtx, line 3: the file is cut off: 2 entries ...
    """
    from matchwood.io.dispatch import Request
    from matchwood.io.options import Limits, Options

    options = Options(
        columns, delimiter, base, skip, shape, symmetric, compact, names, header,
        duplicates, strict, threads,
    )  # fmt: skip
    limits = Limits(most_vertices, most_bytes)
    asked = Request(path, format, options, limits, dtype, pattern)
    if comm is not None:
        from matchwood.io import ranks

        return ranks.read(comm, asked, grid, order)
    without_ranks("read", grid, order)
    path = checked_path("read", "path", path)
    if os.path.isdir(path):
        from matchwood.io import ranks

        return ranks.read_saved(asked._replace(path=path))
    return asked._replace(path=path).checked().read()


def write(
    path: PathLike,
    A: Any,
    *,
    format: str | None = None,
    weights: bool | None = None,
    comments: str | Sequence[str] = (),
    delimiter: str | None = None,
    base: int = 0,
    ids: Any = None,
) -> None:
    """Write a graph or matrix to a file, all of it or nothing.

    The file appears under its name when it is complete; one that was there is replaced.

    Parameters
    ----------
    path : str or path
        Its name decides format and compression, as for `read`.
    A : sparse matrix, 2-D array, or anything that `matchwood.graph` takes
        Not changed.
    format : {None, "mtx", "edges", "metis", "gr", "col", "graph-txt", "npz"}
    weights : bool, optional
        Write the values.  By default where not all are 1; an error in formats that have no
        place for them (col, graph-txt) unless `weights` is False.
    comments : str or list of str
        Lines for the top of the file, where the format has comments.
    delimiter : str, optional
        Of edge lists.  By default a comma for .csv and a tab otherwise.
    base : int
        Of edge lists: the id of vertex 0.
    ids : (n,) array, optional
        Of edge lists: what to call the vertices, as `read` with ``compact=True`` returns it.

    Raises
    ------
    TypeError, ValueError
        If the format cannot hold `A`: metis and col take symmetric matrices without diagonal,
        metis and gr take whole weights; and if an argument is of the wrong kind.
    OSError
        If the file cannot be written.  One that was there is as it was.

    Notes
    -----
    Stored zeros are entries and stay entries, in every format; those without weights (col,
    graph-txt) take a matrix that has some only with ``weights=False``, as edges.  Numbers are
    written so that they read back as the same float64.  Matrix Market stores a symmetric matrix
    by half, where pattern and values are symmetric, stored zeros among them.

    The bytes go to a new file in the same folder, which then takes the name and the permissions of
    the old one.  Pipes and devices are written directly.  Ctrl-C takes effect within a tenth of a
    second and leaves the old file.

    An edge list starts with a comment that holds its counts, so that `read` gives back the same
    shape; .csv files start with a header line instead.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "edge.graph.gz")
    >>> matchwood.io.write(path, (3, [[0, 2], [2, 0]]))
    >>> matchwood.io.read(path).toarray().tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    from matchwood.io import dispatch

    dispatch.write(path, A, format, weights, comments, delimiter, base, ids)


def read_coordinates(
    path: PathLike,
    *,
    format: str | None = None,
    strict: bool = True,
    threads: int | None = None,
    most_vertices: int | None = None,
    most_bytes: int | None = None,
) -> np.ndarray[Any, Any]:
    """Read the coordinates of vertices: a DIMACS .co or a dense Matrix Market file.

    Parameters
    ----------
    path : str or path
        Compressed where it ends in .gz, .bz2, .xz or .zst.
    format : {None, "co", "mtx"}
    strict : bool
        Refuse a plain file whose last line ends without a newline.
    threads : int or None
    most_vertices, most_bytes : int, optional
        As for `matchwood.io.read`.

    Returns
    -------
    (n, d) array
        Row ``v`` belongs to vertex ``v``; as in the file, .co holds millionths of a degree.

    Raises
    ------
    FileFormatError
        With file and line, if the file is malformed or cut off.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.co")
    >>> _ = path.write_text("p aux sp co 2\\nv 1 -73530767 41085396\\nv 2 -73530538 41086098\\n")
    >>> matchwood.io.read_coordinates(path).astype(int).tolist()
    [[-73530767, 41085396], [-73530538, 41086098]]
    """
    from matchwood.io import dispatch
    from matchwood.io.options import Limits

    limits = Limits(most_vertices, most_bytes)
    return dispatch.read_coordinates(path, format, strict, threads, limits)


def read_names(path: PathLike, *, most_bytes: int | None = None) -> list[str]:
    """Read the names of vertices, one a line, in the order of the vertices.

    Parameters
    ----------
    path : str or path
        UTF-8 text, compressed where it ends in .gz, .bz2, .xz or .zst.
    most_bytes : int, optional
        As for `matchwood.io.read`.

    Returns
    -------
    list of str

    Raises
    ------
    FileFormatError
        With file and line, if a line is empty or not text, or the last one has no newline.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "names.txt")
    >>> _ = path.write_text("ada\\ngrace\\n")
    >>> matchwood.io.read_names(path)
    ['ada', 'grace']
    """
    from matchwood.io.files import read_text
    from matchwood.io.formats.edge_list import read_names as names_of
    from matchwood.io.options import Limits

    return list(names_of(read_text(path, Limits(None, most_bytes), "read_names")))


def read_partition(path: PathLike, *, most_bytes: int | None = None) -> Any:
    """Read the block of each vertex from a file of METIS, KaHIP and others: ``graph.part.16``.

    Parameters
    ----------
    path : str or path
        A line a vertex with the number of its block, 0, 1, ...; compressed where it ends in .gz,
        .bz2, .xz or .zst.
    most_bytes : int, optional
        As for `matchwood.io.read`.

    Returns
    -------
    (n,) int64 array

    Raises
    ------
    FileFormatError
        With file and line, if a line holds anything else, or the last one has no newline.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "graph.part.2")
    >>> matchwood.io.write_partition(path, [0, 0, 1])
    >>> matchwood.io.read_partition(path).tolist()
    [0, 0, 1]
    """
    from matchwood.io.files import read_text
    from matchwood.io.formats.adjacency import read_blocks
    from matchwood.io.options import Limits

    return read_blocks(read_text(path, Limits(None, most_bytes), "read_partition"))


def write_partition(path: PathLike, labels: Any) -> None:
    """Write the block of each vertex, one a line, as METIS does.

    Parameters
    ----------
    path : str or path
        Compressed where it ends in .gz, .bz2, .xz or .zst.
    labels : (n,) integer array, or a Partition
        Not negative.

    Raises
    ------
    TypeError, ValueError
        If labels do not hold integers, or one is negative.

    Examples
    --------
    >>> import matchwood, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "graph.part.2")
    >>> matchwood.io.write_partition(path, matchwood.partition(matchwood.generators.path(4), 2))
    >>> path.read_text().split()
    ['0', '0', '1', '1']
    """
    from matchwood.arguments import integers
    from matchwood.engines import moved
    from matchwood.io.files import write_pieces

    caller = "write_partition"
    path = checked_path(caller, "path", path)
    blocks = integers(caller, "labels", getattr(labels, "labels", labels), low=0)
    lines = "".join(f"{block}\n" for block in moved(blocks, "cpu").tolist())
    write_pieces(path, [lines.encode()])
