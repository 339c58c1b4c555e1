"""Files read by all ranks of a communicator together.

Plain edge lists, sparse Matrix Market files and .gr files are parsed by all ranks: each takes the
lines that start in its range of the bytes (`Pieces`).  The files of a folder of edge lists are
divided among the ranks.  Anything else, also compressed files, is read by rank 0 and distributed.

The graph is the one that `matchwood.graph(matchwood.io.read(path))` makes on one machine, and the
errors are those of `read`: same file, same line, on every rank.  A rank knows the number of a line
within its own piece; the lines before it are counted, by all ranks, only for an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from matchwood.arguments import flag
from matchwood.engines.ranks.agreement import same, together
from matchwood.errors import FileFormatError
from matchwood.gate import distributed
from matchwood.gate import graph as csr
from matchwood.gate.distributed import saved, sources
from matchwood.gate.plain_files import Identity, PlainFile, changed
from matchwood.gate.resources import require_memory
from matchwood.io import build, dispatch
from matchwood.io.files import PathLike, format_of, split_name
from matchwood.io.formats import dimacs, edge_list, matrix_market
from matchwood.io.formats.edge_list import Compacted
from matchwood.io.options import Limits, Options
from matchwood.io.text import Layout, Records, Text, read_records

T = TypeVar("T")

HEAD = 1 << 16  # bytes at the top in which the first edge is searched; 16 times more if it fails
STEP = 1 << 16  # bytes read at a time to find the end of a line
MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8, which some programs put at the top
DIVIDED = ("edges", "mtx", "gr")  # formats that all ranks parse


class Asked(NamedTuple):
    """How a file is to be read by ranks."""

    comm: Any
    grid: Any
    order: str
    format: str | None
    options: Options
    limits: Limits
    kind: Any  # of the values; None: as read
    pattern: bool


class Entries(NamedTuple):
    """What a rank has read: entries of a matrix of that shape."""

    shape: tuple[int, int]
    u: Any
    v: Any
    w: Any  # None: ones
    undirected: bool = False
    duplicates: str = "sum"


def read(path: PathLike, asked: Asked) -> Any:
    """The DistributedGraph of a file, or of a folder."""
    comm = distributed.require_comm(asked.comm, "read")
    where = os.fspath(path) if isinstance(path, (str, bytes, os.PathLike)) else path
    same(comm, "read", path=where, grid=asked.grid, order=asked.order,
         options=tuple(asked[3:]))  # fmt: skip
    asked = asked._replace(
        options=asked.options.checked(), limits=asked.limits.checked("read"),
        kind=build.value_type(asked.kind), pattern=flag("read", "pattern", asked.pattern),
    )  # fmt: skip
    folder = comm.objects(together(comm, lambda: _what(path), named=False))[0]
    if folder == "saved":
        return distributed.load(Path(path), comm, asked.grid, asked.order)
    if folder == "folder":
        return _made(path, asked, _read_folder(path, asked))
    name = format_of(path, asked.format, "read")
    dispatch.refuse_options(path, name, asked.options)
    options = asked.options
    divided = name in DIVIDED and not split_name(path)[1]
    if not divided or options.names or options.compact or not _plain_file(path, comm):
        return _dealt(path, asked)
    if name == "edges":
        return _made(path, asked, _read_edges(Pieces(path, comm, asked.limits), asked))
    if name == "gr":
        return _made(path, asked, _read_arcs(Pieces(path, comm, asked.limits), asked))
    found = _read_market(Pieces(path, comm, asked.limits), asked)
    return _dealt(path, asked) if found is None else _made(path, asked, found)


def _what(path: PathLike) -> str:
    """A folder, or a folder that `save` wrote, or a file that can be opened."""
    if Path(path).is_dir():
        return "saved" if saved.is_saved(Path(path)) else "folder"
    Path(path).stat()
    if Path(path).is_file():  # no pipe, which would wait for a writer and lose what it wrote
        with Path(path).open("rb"):
            pass
    return "file"


def _plain_file(path: PathLike, comm: Any) -> bool:
    """Whether it is a file, not a pipe: only a file can be read in parts."""
    return bool(comm.objects(Path(path).is_file())[0])


# A format that one rank reads


def _dealt(path: PathLike, asked: Asked) -> Any:
    comm = asked.comm

    def load() -> Any:
        if comm.rank:
            return None
        found = dispatch.read(path, asked.format, asked.options, asked.limits)
        rounded = format_of(path, asked.format, "read") not in dispatch.EXACT
        change = build.as_pattern if asked.pattern else build.converted
        matrix = found.matrix if isinstance(found, Compacted) else found
        matrix = change(matrix, asked.kind, rounded)
        _require_square(matrix.shape)
        return found._replace(matrix=matrix) if isinstance(found, Compacted) else matrix

    found = together(comm, load, named=False)
    named = asked.options.compact or asked.options.names
    alone = found.matrix if named and found is not None else found
    graph = None if alone is None else csr.as_graph(alone, "read")
    G = distributed.distribute(graph, comm=comm, grid=asked.grid, order=asked.order)
    if not named:
        return G
    matrix: Any = G
    return Compacted(matrix, comm.objects(None if found is None else found.ids)[0])


def _require_square(shape: tuple[int, int]) -> None:
    if shape[0] != shape[1]:
        raise ValueError(f"read: a graph on ranks must be square, got shape {tuple(shape)}")


# Formats that all ranks read


def _read_edges(pieces: Pieces, asked: Asked) -> Entries:
    options = asked.options
    whole = pieces.whole

    def head(text: Text) -> Any:
        found = edge_list.find_head(text, options)
        first = bytes(text.content[found.start : text.content.index(b"\n", found.start)].strip())
        return (
            found,
            found.start,
            edge_list.layout_of(text, found, first, options) if first else None,
        )

    found, start, layout = pieces.head(head, lambda parts: parts[2] is not None)
    if layout is None:
        shape = edge_list.shape_without_edges(whole, found, options)
        return Entries(shape, *_nothing())
    whole.require_finished(options.strict)
    records = pieces.records(start, layout, options.threads)
    m, u_max, v_max = pieces.totals(records)
    if found.edges is not None and (found.exact or m < found.edges):
        whole.require_count(found.edges, m, "edges", options.strict)
    bounds = Records(records.u, records.v, records.w, u_max, v_max)
    shape = edge_list.allowed_shape(whole, found, bounds, m, options)
    rule = options.duplicates or "sum"
    return Entries(shape, *records[:3], options.symmetric, rule)


def _read_arcs(pieces: Pieces, asked: Asked) -> Entries:
    kind, options = dimacs.KINDS["gr"], asked.options

    def head(text: Text) -> Any:
        line, start, sizes, layout = dimacs.problem_of(text, kind)
        return line, start, (sizes, layout)

    line, start, ((n, m), layout) = pieces.head(head)
    pieces.whole.require_finished(options.strict)
    records = pieces.records(start, layout, options.threads)
    found, _, _ = pieces.totals(records)
    pieces.whole.require_count(m, found, "edges", options.strict)
    pieces.whole.require_shape(line, (n, n), found)
    return Entries((n, n), *records[:3], False, options.duplicates or kind.duplicates)


def _read_market(pieces: Pieces, asked: Asked) -> Entries | None:
    """The entries of a sparse Matrix Market file; None where it holds a dense matrix."""

    def head(text: Text) -> Any:
        found = matrix_market.head_of(text)
        return found, found.start, None

    found, start, _ = pieces.head(head)
    banner, shape = found.banner, found.shape
    if banner.layout != "coordinate":
        return None
    whole, threads = pieces.whole, asked.options.threads
    whole.require_finished(asked.options.strict)
    count = pieces.parsed(
        start, lambda text, at: matrix_market.checked_entries(text, at, banner, threads), 0
    )
    entries = sum(pieces.comm.objects(count))
    whole.require_count(found.entries, entries, "entries", True)
    whole.require_shape(found.line, shape, entries)
    empty = (*_nothing()[:2], np.empty(0, matrix_market.type_of(banner)))
    u, v, w = pieces.parsed(
        start, lambda text, at: matrix_market.coordinates(text, at, shape, count, banner), empty
    )
    return Entries(shape, u, v, w)


def _nothing() -> tuple[Any, Any, None]:
    return np.empty(0, np.int32), np.empty(0, np.int32), None


def _read_folder(path: PathLike, asked: Asked) -> Entries:
    """The edge lists of a folder, one after the other by name; each is read by one rank."""
    comm, options = asked.comm, asked.options

    def listed() -> list[tuple[str, int]]:
        files = sorted(each for each in Path(path).iterdir() if _counts(each))
        if not files:
            raise ValueError(f"read: the folder {os.fspath(path)} holds no files")
        for file in files:
            name = format_of(file, asked.format, "read")
            if name != "edges" or options.names or options.compact:
                raise ValueError(
                    f"read: a folder must hold edge lists with numbers for ids, "
                    f"got {os.fspath(file)} of format {name}"
                )
        return [(os.fspath(file), file.stat().st_size) for file in files]

    files = together(comm, lambda: listed() if comm.rank == 0 else [], named=False)
    files = comm.objects(files)[0]
    mine = _share_of_files(files, comm.rank, comm.size)

    def load() -> list[tuple[Any, ...]]:
        return [_edges_of(file, asked) for file in mine]

    found = together(comm, load, named=False)
    shape = options.shape or _largest_shape(comm, [each[0] for each in found])
    weighted = comm.objects({each[3] is not None for each in found if each[1].size})
    with_weights = set().union(*weighted)
    if len(with_weights) > 1:
        raise ValueError(f"read: all files of {os.fspath(path)} or none must have weights")
    u, v = (np.concatenate([_nothing()[0], *(each[k] for each in found)]) for k in (1, 2))
    w = None
    if True in with_weights:
        w = np.concatenate([np.empty(0), *(each[3] for each in found if each[1].size)])
    return Entries(shape, u, v, w, options.symmetric, options.duplicates or "sum")


def _counts(file: Path) -> bool:
    """Hidden files and those of Spark and Hadoop that hold no data do not count."""
    return file.is_file() and not file.name.startswith((".", "_"))


def _share_of_files(files: list[tuple[str, int]], rank: int, size: int) -> list[str]:
    """The files of one rank, consecutive, such that all ranks read about as many bytes."""
    total = sum(length for _, length in files) or 1
    mine, before = [], 0
    for name, length in files:
        if min((2 * before + length) * size // (2 * total), size - 1) == rank:
            mine.append(name)
        before += length
    return mine


def _edges_of(file: str, asked: Asked) -> tuple[Any, ...]:
    """(shape, u, v, w) of one edge list."""
    text, options = Text.load(file, asked.limits), asked.options
    head = edge_list.find_head(text, options)
    first = bytes(text.content[head.start : text.content.index(b"\n", head.start)].strip())
    if not first:
        return edge_list.shape_without_edges(text, head, options), *_nothing()
    text.require_finished(options.strict)
    layout = edge_list.layout_of(text, head, first, options)
    edges = read_records(text, head.start, layout, asked.comm.threads)
    m = int(edges.u.size)
    if head.edges is not None and (head.exact or m < head.edges):
        text.require_count(head.edges, m, "edges", options.strict)
    return edge_list.allowed_shape(text, head, edges, m, options), *edges[:3]


def _largest_shape(comm: Any, shapes: list[tuple[int, int]]) -> tuple[int, int]:
    mine = [max((shape[k] for shape in shapes), default=0) for k in (0, 1)]
    rows, columns = comm.allreduce(np.array(mine, np.int64), "max")
    return int(rows), int(columns)


# From entries to the graph


def _made(path: PathLike, asked: Asked, entries: Entries) -> Any:
    """The graph of the entries, joined by all ranks as `build.matrix_of_edges` joins edges."""
    _require_square(entries.shape)
    u, v, w = entries.u, entries.v, entries.w
    rule = entries.duplicates
    if w is None and rule == "sum":
        w = np.ones(u.size)
    if entries.undirected:
        u, v = np.minimum(u, v), np.maximum(u, v)  # both directions meet duplicates in one order
        below = np.flatnonzero(u != v)
        u, v = np.concatenate((u, v[below])), np.concatenate((v, u[below]))
        w = None if w is None else np.concatenate((w, w[below]))
    kind = None if w is None else w.dtype
    name = None if Path(path).is_dir() else format_of(path, asked.format, "read")
    return distributed.make(
        "read", asked.comm, entries.shape[0], sources.of_arrays(u, v, w, kind),
        grid=asked.grid, order=asked.order, reduce="first" if w is None else rule,
        values=_conversion(asked, name not in dispatch.EXACT),
    )  # fmt: skip


def _conversion(asked: Asked, rounded: bool) -> Callable[[Any, Any], Any]:
    """The values of a block in the type that was asked for."""
    change = build.as_pattern if asked.pattern else build.converted

    def values(places: Any, view: Any) -> Any:
        data = np.ones(view.nnz) if view.data is None else view.data
        row = sp.csr_array((data, np.zeros(data.size, np.int32), [0, data.size]), shape=(1, 1))
        return together(places.comm, lambda: change(row, asked.kind, rounded)).data

    return values


# The pieces of a text file


class _Part(Text):
    """A part of a text; its errors keep the line within the part."""

    def error(self, line: int, message: str) -> FileFormatError:
        """The exception, with line and message to be put together again."""
        wrong = super().error(line, message)
        wrong.place = (line, message)  # type: ignore[attr-defined]
        return wrong


class _Whole(Text):
    """The file as such, for errors that all ranks raise alike."""

    pieces: Pieces

    def last_line(self) -> int:
        """Number of the last line that is not blank; all ranks ask together."""
        return self.pieces.last_line()


class Pieces:
    """The pieces of one file on all ranks.

    `text` is this rank's piece, which starts at byte `first` of the file.  `whole` is an empty text
    for checks and errors that are the same on all ranks.
    """

    def __init__(self, path: PathLike, comm: Any, limits: Limits) -> None:
        self.path, self.comm = os.fspath(path), comm
        limits = limits.checked("read")
        self.limits = limits
        self.known = together(comm, lambda: _identity(self.path))
        self.size = size = self.known.size
        if len(set(comm.objects(size))) > 1:
            raise changed(self.path)
        bounds = [size * rank // comm.size for rank in range(comm.size + 1)]
        self.first, content = together(
            comm, lambda: _lines(self.path, self.known, bounds[comm.rank], bounds[comm.rank + 1])
        )
        # all have read now: if this finds no other file by the name, all have read the same one
        ended = together(comm, lambda: _ends_with_newline(self.path, self.known))
        if self.first == 0 and content.startswith(MARK):
            del content[:3]
            self.first = 3
        if not content.endswith(b"\n"):
            content += b"\n"
        self.text = _Part(self.path, content, True, limits)
        self.whole = _Whole(self.path, bytearray(b"\n"), ended, limits)
        object.__setattr__(self.whole, "pieces", self)

    def head(
        self, parse: Callable[[Text], Any], enough: Callable[[Any], bool] | None = None
    ) -> Any:
        """What rank 0 finds at the top of the file, ``(found, start, more)``, on all ranks.

        The start is the byte after the top, as counted in the file.  `enough` says whether what
        was found is final, although the part of the file that was looked at ended.
        """

        def look() -> Any:
            length = HEAD
            while self.comm.rank == 0:
                text, whole, skipped = self._top(length)
                try:
                    found, start, more = parse(text)
                except FileFormatError:
                    if whole:
                        raise
                else:
                    if whole or enough is None or enough((found, start, more)):
                        return found, start + skipped, more
                length *= 16
            return None

        return self.comm.objects(together(self.comm, look, named=False))[0]

    def _top(self, length: int) -> tuple[Text, bool, int]:
        """(lines at the top, whether that is the whole file, bytes left out at its beginning)."""
        with PlainFile(self.path, known=self.known) as file:
            content = file[: min(length, file.size)]
        whole = len(content) >= self.size
        if not whole:
            del content[content.rfind(b"\n") + 1 :]
        skipped = 3 if content.startswith(MARK) else 0
        return Text.of(self.path, content, True, self.limits), whole, skipped

    def parsed(self, start: int, parse: Callable[[Text, int], T], nothing: T) -> T:
        """``parse(text, byte)`` of this rank's piece, from byte `start` of the file on.

        `nothing` where all of the piece lies before that.  A malformed line is the same error on
        all ranks: that of the first such line of the file.
        """
        at = max(start - self.first, 0)
        wrong = None

        def work() -> T:
            nonlocal wrong
            try:
                return parse(self.text, at) if at < len(self.text.content) else nothing
            except FileFormatError as error:
                wrong = error.place  # type: ignore[attr-defined]
                return nothing

        found = together(self.comm, work)
        places = self.comm.objects(wrong)
        for rank, place in enumerate(places):
            if place is not None:
                line = sum(self._lines()[:rank]) + place[0]
                raise self.whole.error(line, place[1])
        return found

    def records(self, start: int, layout: Layout, threads: int | None) -> Records:
        threads = self.comm.threads if threads is None else threads
        ids, weights = np.empty(0, np.int32), np.empty(0) if layout.w >= 0 else None
        nothing = Records(ids, ids, weights, -1, -1)
        return self.parsed(start, lambda text, at: read_records(text, at, layout, threads), nothing)

    def totals(self, records: Records) -> tuple[int, int, int]:
        """(records, largest first id, largest second id) of all ranks."""
        count = int(self.comm.allreduce(np.array([records.u.size], np.int64), "sum")[0])
        largest = self.comm.allreduce(np.array([records.u_max, records.v_max], np.int64), "max")
        return count, int(largest[0]), int(largest[1])

    def _lines(self) -> list[int]:
        """Lines of each rank's piece."""
        empty = len(self.text.content) == 1  # the newline that was added
        return self.comm.objects(0 if empty else self.text.content.count(b"\n"))

    def last_line(self) -> int:
        """Number of the last line of the file that is not blank."""
        blank = not self.text.content.strip()
        lasts = self.comm.objects(None if blank else self.text.last_line())
        lines = self._lines()
        for rank in reversed(range(self.comm.size)):
            if lasts[rank] is not None:
                return sum(lines[:rank]) + int(lasts[rank])
        return 1


def _identity(path: str) -> Identity:
    with PlainFile(path) as file:
        return file.identity


def _lines(path: str, known: Identity, low: int, high: int) -> tuple[int, bytearray]:
    """(first byte, content) of the lines that start at bytes low .. high - 1 of a file."""
    require_memory("read", high - low, path)
    with PlainFile(path, known=known) as file:
        first, end = max(low - 1, 0), high
        content = file[first:end]
        if low:  # what is before the first newline belongs to the rank before
            cut = content.find(b"\n") + 1
            if not cut:
                return high, bytearray()
            del content[:cut]
            first += cut
        while content and not content.endswith(b"\n") and end < file.size:
            more = file[end : min(end + STEP, file.size)]
            end += len(more)
            stop = more.find(b"\n") + 1
            content += more[:stop] if stop else more
        file.require_unchanged()
    return first, content


def _ends_with_newline(path: str, known: Identity) -> bool:
    with PlainFile(path, known=known) as file:
        return not file.size or file[file.size - 1 : file.size] == b"\n"
