"""Files read by all ranks of a communicator together.

Plain edge lists, sparse Matrix Market files and .gr files are parsed by all ranks: each takes the
lines that start in its range of the bytes (`Pieces`).  The files of a folder of edge lists are
divided among the ranks.  Anything else, also compressed files, is read by rank 0 and distributed.

The graph is the one that `matchwood.graph(matchwood.io.read(path))` makes on one machine, and the
errors are those of `read`: same file, same line, on every rank.  A rank knows the number of a line
within its own piece; the lines before it are counted, by all ranks, only for an error.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from matchwood.engines.cpu import default_threads
from matchwood.engines.ranks.agreement import of_first, same, together
from matchwood.engines.ranks.protocol import Serial
from matchwood.errors import FileFormatError
from matchwood.gate import distributed
from matchwood.gate import graph as csr
from matchwood.gate.distributed import saved, sources
from matchwood.gate.plain_files import Identity, PlainFile, changed
from matchwood.gate.resources import require_memory
from matchwood.io.options import Limits, Options, PathLike
from matchwood.io.result import Compacted, Entries
from matchwood.io.text import MARK, Text

if TYPE_CHECKING:
    from matchwood.io.dispatch import Request

T = TypeVar("T")

HEAD = 1 << 16  # bytes at the top in which the first edge is searched; 16 times more if it fails
STEP = 1 << 16  # bytes read at a time to find the end of a line


def read(comm: Any, asked: Request, grid: Any, order: str) -> Any:
    """The DistributedGraph of a file, or of a folder."""
    comm, path = distributed.require_comm(comm, "read"), asked.path
    where = os.fspath(path) if isinstance(path, (str, bytes, os.PathLike)) else path
    same(comm, "read", path=where, grid=grid, order=order, options=tuple(asked[1:]))
    asked = asked.checked()
    folder = comm.objects(together(comm, lambda: _what(path), named=False))[0]
    if folder == "saved":
        _refuse_options(asked)
        return distributed.load(Path(path), comm, grid, order)
    if folder == "folder":
        entries: Entries | None = _read_folder(comm, asked)
    else:
        asked.refuse_options()
        entries = _divided(comm, asked)
    if entries is None:
        return _dealt(comm, asked, grid, order)
    _require_square(entries.shape)
    return _made(comm, asked, entries, grid, order)


def read_saved(asked: Request) -> Any:
    """The Graph of a folder that `DistributedGraph.save` wrote, without other ranks."""
    asked, folder = asked.checked(), Path(asked.path)
    if not saved.is_saved(folder):
        raise IsADirectoryError(
            errno.EISDIR,
            "read: a folder of edge lists is read with comm=; no graph was saved here",
            os.fspath(folder),
        )
    _refuse_options(asked)
    return distributed.load(folder, Serial(asked.options.threads or default_threads())).gather()


def _refuse_options(asked: Request) -> None:
    """Raise where an option is set for a saved graph, which says of itself what it holds."""
    unset = Options(threads=asked.options.threads)
    wrong = [name for name in unset._fields if getattr(asked.options, name) != getattr(unset, name)]
    others = (("format", asked.format), ("dtype", asked.kind), ("pattern", asked.pattern or None))
    wrong += [name for name, value in others if value is not None]
    limits = asked.limits._asdict().items()
    wrong += [f"most_{name}" for name, limit in limits if limit is not None]
    if wrong:
        raise ValueError(
            f"read: {', '.join(wrong)} cannot be set for a saved graph: {os.fspath(asked.path)}"
        )


def _what(path: PathLike) -> str:
    """A folder, or a folder that `save` wrote, or a file that can be opened."""
    if Path(path).is_dir():
        return "saved" if saved.is_saved(Path(path)) else "folder"
    Path(path).stat()
    if Path(path).is_file():  # no pipe, which would wait for a writer and lose what it wrote
        with Path(path).open("rb"):
            pass
    return "file"


def _divided(comm: Any, asked: Request) -> Entries | None:
    """This rank's part of the entries; None for what only one rank can read, as a pipe."""
    if not asked.divisible() or not comm.objects(Path(asked.path).is_file())[0]:
        return None
    threads = comm.threads if asked.options.threads is None else asked.options.threads
    asked = asked._replace(options=asked.options._replace(threads=threads))
    return asked.entries(Pieces(asked.path, comm, asked.limits))


def _dealt(comm: Any, asked: Request, grid: Any, order: str) -> Any:
    """The graph of a file that rank 0 reads."""
    named = asked.options.compact or asked.options.names

    def load() -> tuple[Any, Any]:
        if comm.rank:
            return None, None
        found: Any = asked.read()
        matrix, ids = found if named else (found, None)
        _require_square(matrix.shape)
        return matrix, ids

    matrix, ids = together(comm, load, named=False)
    graph = None if matrix is None else csr.as_graph(matrix, "read")
    G: Any = distributed.distribute(graph, comm=comm, grid=grid, order=order)
    return Compacted(G, comm.objects(ids)[0]) if named else G


def _require_square(shape: tuple[int, int]) -> None:
    if shape[0] != shape[1]:
        raise ValueError(f"read: a graph on ranks must be square, got shape {tuple(shape)}")


def _read_folder(comm: Any, asked: Request) -> Entries:
    """The edge lists of a folder, one after the other by name; each is read by one rank."""
    path, options = asked.path, asked.options

    def listed() -> list[tuple[str, int]]:
        files = sorted(each for each in Path(path).iterdir() if _counts(each))
        if not files:
            raise ValueError(f"read: the folder {os.fspath(path)} holds no files")
        for file in files:
            name = asked._replace(path=file).name()
            if name != "edges" or options.names or options.compact:
                raise ValueError(
                    f"read: a folder must hold edge lists with numbers for ids, "
                    f"got {os.fspath(file)} of format {name}"
                )
        return [(os.fspath(file), file.stat().st_size) for file in files]

    mine = _share_of_files(of_first(comm, listed), comm.rank, comm.size)
    each = asked._replace(options=options._replace(threads=comm.threads))

    def load() -> list[Any]:
        files = [each._replace(path=file) for file in mine]
        return [file.entries(file.text()) for file in files]

    found = together(comm, load, named=False)
    shape = options.shape or _largest_shape(comm, [entries.shape for entries in found])
    found = [entries for entries in found if entries.u.size]
    weighted = set().union(*comm.objects({entries.w is not None for entries in found}))
    if len(weighted) > 1:
        raise ValueError(f"read: all files of {os.fspath(path)} or none must have weights")
    nothing = np.empty(0, np.int32)
    u = np.concatenate([nothing, *(entries.u for entries in found)])
    v = np.concatenate([nothing, *(entries.v for entries in found)])
    w = None
    if True in weighted:
        w = np.concatenate([np.empty(0), *(entries.w for entries in found)])
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


def _largest_shape(comm: Any, shapes: list[tuple[int, int]]) -> tuple[int, int]:
    mine = [max((shape[k] for shape in shapes), default=0) for k in (0, 1)]
    rows, columns = comm.allreduce(np.array(mine, np.int64), "max")
    return int(rows), int(columns)


def _made(comm: Any, asked: Request, entries: Entries, grid: Any, order: str) -> Any:
    """The graph of the entries, joined by all ranks as `build.matrix_of_edges` joins edges."""
    u, v, w, rule = entries.u, entries.v, entries.w, entries.duplicates
    if w is None and rule == "sum":
        w = np.ones(u.size)
    if entries.undirected:
        u, v = np.minimum(u, v), np.maximum(u, v)  # both directions meet duplicates in one order
        below = np.flatnonzero(u != v)
        u, v = np.concatenate((u, v[below])), np.concatenate((v, u[below]))
        w = None if w is None else np.concatenate((w, w[below]))

    def values(places: Any, view: Any) -> Any:
        data = np.ones(view.nnz) if view.data is None else view.data
        row = sp.csr_array((data, np.zeros(data.size, np.int32), [0, data.size]), shape=(1, 1))
        return together(places.comm, lambda: asked.converted(row)).data

    return distributed.make(
        "read", comm, entries.shape[0], sources.of_arrays(u, v, w, None if w is None else w.dtype),
        grid=grid, order=order, reduce="first" if w is None else rule, values=values,
    )  # fmt: skip


# The pieces of a text file


class _Part(Text):
    """A part of a text; its errors keep the line within the part."""

    def error(self, line: int, message: str) -> FileFormatError:
        """The exception, with line and message to be put together again."""
        wrong = super().error(line, message)
        wrong.place = (line, message)  # type: ignore[attr-defined]
        return wrong


class Pieces(Text):
    """A text divided among ranks, for readers that go by `head` and `parsed`.

    `part` is this rank's piece, which starts at byte `first` of the file.  The text itself is
    empty: its checks and errors are those of the whole file, and all ranks ask for them together.
    """

    def __init__(self, path: PathLike, comm: Any, limits: Limits) -> None:
        path = os.fspath(path)
        self.comm, self.known = comm, together(comm, lambda: _identity(path))
        self.size = size = self.known.size
        if len(set(comm.objects(size))) > 1:
            raise changed(path)
        bounds = [size * rank // comm.size for rank in range(comm.size + 1)]
        self.first, content = together(
            comm, lambda: _lines(path, self.known, bounds[comm.rank], bounds[comm.rank + 1])
        )
        # all have read now: if this finds no other file by the name, all have read the same one
        ended = together(comm, lambda: _ends_with_newline(path, self.known))
        if self.first == 0 and content.startswith(MARK):
            del content[:3]
            self.first = 3
        if not content.endswith(b"\n"):
            content += b"\n"
        self.part = _Part(path, content, True, limits)
        super().__init__(path, bytearray(b"\n"), ended, limits)

    def head(
        self, parse: Callable[[Text], tuple[int, T]], enough: Callable[[T], bool] | None = None
    ) -> tuple[int, T]:
        """What rank 0 finds at the top of the file, on all ranks; the byte counts in the file.

        `enough` says whether what was found is final, although the part of the file that was
        looked at ended.
        """

        def look() -> tuple[int, T]:
            length = HEAD
            while True:
                text, whole, skipped = self._top(length)
                try:
                    start, found = parse(text)
                except FileFormatError:
                    if whole:
                        raise
                else:
                    if whole or enough is None or enough(found):
                        return start + skipped, found
                length *= 16

        return of_first(self.comm, look)

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
                return parse(self.part, at) if at < len(self.part.content) else nothing
            except FileFormatError as error:
                wrong = error.place  # type: ignore[attr-defined]
                return nothing

        found = together(self.comm, work)
        for rank, place in enumerate(self.comm.objects(wrong)):
            if place is not None:
                raise self.error(sum(self._lines()[:rank]) + place[0], place[1])
        return found

    def total(self, count: int) -> int:
        return int(self.comm.allreduce(np.array([count], np.int64), "sum")[0])

    def largest(self, *numbers: int) -> tuple[int, ...]:
        return tuple(self.comm.allreduce(np.array(numbers, np.int64), "max").tolist())

    def _lines(self) -> list[int]:
        """Lines of each rank's piece."""
        empty = len(self.part.content) == 1  # the newline that was added
        return self.comm.objects(0 if empty else self.part.content.count(b"\n"))

    def last_line(self) -> int:
        """Number of the last line of the file that is not blank; all ranks ask together."""
        blank = not self.part.content.strip()
        lasts = self.comm.objects(None if blank else self.part.last_line())
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
