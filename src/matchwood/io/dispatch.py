"""From the name of a format to the module that reads or writes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import flag, plain, shown
from matchwood.gate.resources import require_memory
from matchwood.io import build
from matchwood.io.build import as_matrix, mirrored, wrap
from matchwood.io.files import read_text, write_pieces
from matchwood.io.formats import adjacency, dimacs, edge_list, matrix_market, npz
from matchwood.io.options import Limits, Options, PathLike, format_of, split_name
from matchwood.io.result import Array, Compacted, Entries, Matrix
from matchwood.io.text import Text

DIVIDED: dict[str, Callable[[Text, Options], Entries | None]] = {
    "edges": edge_list.entries,
    "mtx": matrix_market.entries,
    "gr": dimacs.entries,
}  # formats that ranks can read in parts
EXACT = ("mtx", "npz")  # formats whose whole numbers are read as such, all others as float64
WRITABLE = ("mtx", "edges", "metis", "gr", "col", "graph-txt", "npz")
PATTERN_ONLY = ("col", "graph-txt")
UNDIRECTED = ("metis", "col")
WHOLE = ("metis", "gr")
LARGEST = 2**63  # whole weights in a text must be smaller


class Request(NamedTuple):
    """A file, and how it is to be read: the arguments of `matchwood.io.read`."""

    path: PathLike
    format: str | None
    options: Options
    limits: Limits
    kind: Any  # of the values; None: as read
    pattern: bool

    def checked(self) -> Request:
        """With the arguments in their usual types; an error where one makes no sense."""
        return self._replace(
            options=self.options.checked(), limits=self.limits.checked("read"),
            kind=build.value_type(self.kind), pattern=flag("read", "pattern", self.pattern),
        )  # fmt: skip

    def name(self) -> str:
        return format_of(self.path, self.format, "read")

    def refuse_options(self) -> None:
        """Raise where an option is set that the format does not have."""
        name, options = self.name(), self.options
        wrong = [] if name == "edges" else options.only_for_edge_lists()
        if options.duplicates is not None and name != "edges" and name not in dimacs.KINDS:
            wrong.append("duplicates")
        if wrong:
            raise ValueError(
                f"read: {', '.join(wrong)} cannot be set for a file of format {name}: "
                f"{os.fspath(self.path)}"
            )

    def read(self) -> Matrix | Compacted:
        """The matrix, with values of the type asked for."""
        found = self._found()
        if isinstance(found, Compacted):
            return found._replace(matrix=self.converted(found.matrix))
        return self.converted(found)

    def converted(self, A: Matrix) -> Matrix:
        """With values of the type asked for."""
        exact = not os.path.isdir(self.path) and self.name() in EXACT
        change = build.as_pattern if self.pattern else build.converted
        return change(A, self.kind, not exact)

    def text(self) -> Text:
        return read_text(self.path, self.limits)

    def divisible(self) -> bool:
        """Whether ranks can read parts of the file by `entries`."""
        options = self.options
        whole = split_name(self.path)[1] or options.names or options.compact
        return self.name() in DIVIDED and not whole

    def entries(self, text: Text) -> Entries | None:
        """The entries in a text, or this rank's piece of it; None where it must be read whole."""
        return DIVIDED[self.name()](text, self.options)

    def _found(self) -> Matrix | Compacted:
        name, options = self.name(), self.options
        if name == "edges":
            reader = edge_list.read_named if options.names else edge_list.read
            return reader(self.text(), options)
        self.refuse_options()
        strict, threads = options.strict, options.threads
        if name == "npz":
            return npz.read(self.path, self.limits)
        text = self.text()
        if name == "mtx":
            return matrix_market.as_sparse(matrix_market.read(text, strict=strict, threads=threads))
        if name == "metis":
            return adjacency.read_metis_text(text, strict=strict, threads=threads).matrix
        if name == "hgr":
            return adjacency.read_hmetis_text(text, strict=strict, threads=threads).matrix
        if name == "graph-txt":
            return adjacency.read_graph_txt(text, strict=strict, threads=threads)
        if name == "co":
            points = dimacs.read_coordinates(text, strict=strict, threads=threads)
            return matrix_market.as_sparse(points)
        kind = dimacs.KINDS[name]
        return dimacs.read(text, kind, options.duplicates, strict=strict, threads=threads).matrix


def read_coordinates(
    path: PathLike, format: str | None, strict: bool, threads: int | None, limits: Limits
) -> Array:
    name = format_of(path, format, "read_coordinates")
    if name not in ("co", "mtx"):
        raise ValueError(f"read_coordinates: format must be co or mtx, got {name}")
    text = read_text(path, limits, "read_coordinates", strict, threads)
    if name == "co":
        return dimacs.read_coordinates(text, strict=strict, threads=threads)
    A = matrix_market.read(text, strict=strict, threads=threads)
    if isinstance(A, np.ndarray):
        return A
    require_memory(
        "read_coordinates", 16 * A.shape[0] * A.shape[1], f"the coordinates of {text.path}"
    )
    return A.toarray()


def write(
    path: PathLike,
    A: Any,
    format: str | None,
    weights: bool | None,
    comments: str | Sequence[str],
    delimiter: str | None,
    base: int,
    ids: Any,
) -> None:
    """Check that the format can hold the matrix, then write it."""
    name = format_of(path, format, "write")
    if name not in WRITABLE:
        raise ValueError(f"write: format must be one of {', '.join(WRITABLE)}, got {name}")
    if weights is not None and not isinstance(weights, (bool, np.bool_)):
        raise TypeError(f"write: weights must be True, False or None, got {shown(weights)}")
    Options(delimiter=delimiter, base=base).checked("write")
    if name != "edges" and (delimiter is not None or base != 0 or ids is not None):
        raise ValueError(f"write: delimiter, base and ids are for edge lists, not for {name}")
    matrix = as_matrix(A, "write")
    if name != "npz":
        matrix = _printable(matrix)
    valued = _valued(matrix, name, weights)
    _require_fit(matrix, name, valued)
    lines = _lines(comments)
    if lines and name in ("graph-txt", "npz"):
        raise ValueError(f"write: a file of format {name} has no comments")
    if name == "edges" and any(edge_list.counts_in(line.encode()) for line in lines):
        raise ValueError("write: comments must not hold counts like 'Nodes: 5 Edges: 4'")
    header = split_name(path)[0] == ".csv"
    mark = delimiter or ("," if header else "\t")
    names = None if ids is None else _names(ids, matrix.shape, mark)
    write_pieces(path, _pieces(matrix, name, valued, lines, (mark, names, base, header)))


def _pieces(
    A: Matrix, name: str, weights: bool, comments: Sequence[str], of_edges: tuple[Any, ...]
) -> Iterable[bytes]:
    """The bytes of the file; `of_edges`: delimiter, ids, base and header of an edge list."""
    if name == "mtx":
        return matrix_market.pieces(A, weights=weights, comments=comments)
    if name == "npz":
        return npz.pieces(A)
    if name == "graph-txt":
        return adjacency.graph_txt_pieces(A)
    if name == "metis":
        whole = wrap(A.indptr, A.indices, A.data.astype(np.int64), A.shape)
        return adjacency.metis_pieces(whole, weights=weights, comments=comments)
    if name in ("gr", "col"):
        return dimacs.pieces(A, name, comments)
    return edge_list.pieces(A, weights, comments, *of_edges)


def _valued(A: Matrix, name: str, weights: bool | None) -> bool:
    ones = bool(np.all(A.data == 1))
    if name in PATTERN_ONLY:
        if weights or (weights is None and not ones):
            raise ValueError(
                f"write: a file of format {name} has no weights; weights=False leaves them out"
            )
        return False
    if weights is not None:
        return weights
    return not ones or name in ("mtx", "gr", "npz")


def _require_fit(A: Matrix, name: str, weights: bool) -> None:
    if name not in ("mtx", "npz") and weights and not np.all(np.isfinite(A.data)):
        raise ValueError(f"write: a file of format {name} cannot hold infinite values or NaN")
    if name not in ("mtx", "npz") and np.issubdtype(A.dtype, np.complexfloating):
        raise ValueError(f"write: a file of format {name} cannot hold complex values")
    if name not in ("mtx", "npz", "edges") and A.shape[0] != A.shape[1]:
        raise ValueError(f"write: a file of format {name} holds a square matrix, got {A.shape}")
    if name in WHOLE and weights:
        whole = f"write: weights in a file of format {name} are whole numbers"
        if not np.array_equal(A.data, np.rint(A.data)):
            raise ValueError(f"{whole}; scale them")
        if A.nnz and not -LARGEST <= A.data.min() <= A.data.max() < LARGEST:
            raise ValueError(f"{whole} below 2**63; scale them")
    if name in UNDIRECTED:
        if adjacency.loops_of(A).size:
            raise ValueError(f"write: a file of format {name} has no loops, A has a diagonal")
        other = mirrored(A)
        if other is None or (weights and not np.array_equal(A.data, other)):
            raise ValueError(f"write: a file of format {name} is undirected, A is not symmetric")


def _printable(A: Matrix) -> Matrix:
    """With values of types whose text reads back as the same numbers."""
    if A.dtype == np.bool_:
        return wrap(A.indptr, A.indices, A.data.astype(np.int8), A.shape)
    wide: Any = {"f": np.float64, "c": np.complex128}.get(A.dtype.kind, A.dtype)
    if A.dtype != wide:
        with np.errstate(over="ignore"):
            data = A.data.astype(wide)
        if A.dtype.itemsize > data.itemsize and not np.array_equal(data, A.data, equal_nan=True):
            raise ValueError(f"write: text files hold {np.dtype(wide)}, A has finer {A.dtype}")
        return wrap(A.indptr, A.indices, data, A.shape)
    return A


def _lines(comments: str | Sequence[str]) -> list[str]:
    """The lines; an error for half of a character, as file names may hold, which has no bytes."""
    listed = [comments] if isinstance(comments, str) else comments
    if not isinstance(listed, (list, tuple)) or not all(isinstance(text, str) for text in listed):
        raise TypeError(f"write: comments must be text or a list of texts, got {shown(comments)}")
    lines = [line for text in listed for line in text.splitlines()]
    for line in lines:
        try:
            line.encode()
        except UnicodeEncodeError:
            raise ValueError(f"write: comments must be text, got {shown(line)}") from None
    return lines


def _names(ids: Any, shape: tuple[int, int], delimiter: str) -> Any:
    names = plain("write", "ids", ids)
    if names.ndim != 1 or names.size != max(shape):
        raise ValueError(f"write: ids must name {max(shape)} vertices, got shape {names.shape}")
    if names.dtype.kind not in "iuU":
        raise ValueError(f"write: ids must be whole numbers or text, got dtype {names.dtype}")
    if names.dtype.kind == "U":
        for name in names.tolist():
            if not name or name[0] in "#%" or delimiter in name or name != "".join(name.split()):
                raise ValueError(f"write: {name!r} cannot be the name of a vertex in an edge list")
    return names
