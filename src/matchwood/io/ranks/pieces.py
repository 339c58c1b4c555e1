"""The pieces of a text file: every rank has the lines that start in its range of the bytes.

Line numbers in errors are those of the file.  A rank knows the number of a line within its own
piece; the lines before it are counted, by all ranks, only when there is something to complain of.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from matchwood.engines.ranks.agreement import together
from matchwood.errors import FileFormatError
from matchwood.gate.plain_files import Identity, PlainFile, changed
from matchwood.gate.resources import require_memory
from matchwood.io.files import PathLike
from matchwood.io.limits import Limits
from matchwood.io.text import Layout, Records, Text, read_records

T = TypeVar("T")

HEAD = 1 << 16  # bytes at the top that are searched for the first edge; more if it is not there
STEP = 1 << 16  # bytes read at a time to find the end of a line
MARK = b"\xef\xbb\xbf"  # of UTF-8, which some programs put at the top


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

    Attributes
    ----------
    text : Text
        This rank's piece.
    first : int
        Where it starts in the file.
    whole : Text
        Empty; for checks and errors that are the same on all ranks.
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
        """The table of edges of this rank's piece."""
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
