"""A text file in memory: where its lines are, and how its errors read.

`Text` is what every text format starts from, whole or, on ranks, in pieces: `head`, `parsed`,
`total` and `largest` are what a format asks so that one reader serves both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from matchwood.errors import FileFormatError
from matchwood.gate.resources import require_memory
from matchwood.io.options import NO_LIMITS, Limits, matrix_bytes
from matchwood.io.result import Array

T = TypeVar("T")

MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8, which some programs put at the top
WINDOW = 1 << 20  # bytes searched at once for a line that is not blank
TAIL = 1 << 12  # bytes at the end of a file where the last line is looked for
_NOT_BLANK = re.compile(rb"[^ \t\r\n\v\f]")


@dataclass(eq=False)
class Text:
    """The bytes of a text file, with a newline at the end even where the file has none."""

    path: str
    content: bytearray
    finished: bool  # the last line is complete; see `files.read_text`
    limits: Limits = NO_LIMITS
    caller: str = "read"

    @classmethod
    def of(
        cls,
        path: str,
        content: bytes | bytearray,
        finished: bool = False,
        limits: Limits = NO_LIMITS,
        caller: str = "read",
    ) -> Text:
        """The text of a file that has been read; `content` is taken over where it can be."""
        content = content if isinstance(content, bytearray) else bytearray(content)
        if content.startswith(MARK):
            del content[:3]
        ended = content.endswith(b"\n")
        finished = finished or ended or not content
        if not ended:
            content += b"\n"
        return cls(path, content, finished, limits, caller)

    # What a format asks of a text that may be divided among ranks; here it is whole.

    def head(
        self, parse: Callable[[Text], tuple[int, T]], enough: Callable[[T], bool] | None = None
    ) -> tuple[int, T]:
        """(byte after the top, what was found there), as `parse` finds them."""
        return parse(self)

    def parsed(self, start: int, parse: Callable[[Text, int], T], nothing: T) -> T:
        """``parse(text, start)``; on ranks of this rank's piece, `nothing` if it ends before."""
        return parse(self, start)

    def total(self, count: int) -> int:
        """The sum over all ranks."""
        return count

    def largest(self, *numbers: int) -> tuple[int, ...]:
        """The maximum of each number over all ranks."""
        return numbers

    @property
    def array(self) -> Array:
        """The bytes as an array, not copied."""
        return _frozen(np.frombuffer(self.content, np.uint8))

    @property
    def words(self) -> Array:
        """The bytes eight at a time, as far as they fill words."""
        return _frozen(np.frombuffer(self.content, np.uint64, len(self.content) // 8))

    def line_at(self, position: int) -> int:
        """Number of the line, from 1, that holds a byte."""
        return self.content.count(b"\n", 0, position) + 1

    def line_of_entry(self, start: int, row: int) -> int:
        """Number of the row-th line from byte `start` on, from 1, that is not blank."""
        for position, _, line in self.lines(start):
            row -= bool(line)
            if row <= 0:
                return self.line_at(position)
        return self.last_line()

    def last_line(self) -> int:
        """Number of the last line that is not blank."""
        tail = self.content[-TAIL:]
        end = len(self.content) - len(tail) + len(tail.rstrip())
        if end == len(self.content) - len(tail):  # blank lines without end
            end = len(self.content.rstrip())
        return self.line_at(end)

    def error(self, line: int, message: str) -> FileFormatError:
        return FileFormatError(f"{self.path}, line {line}: {message}")

    def lines(self, position: int = 0) -> Iterator[tuple[int, int, bytes]]:
        """(where it starts, where the next one starts, text without blanks around it)."""
        while position < len(self.content):
            end = self.content.index(b"\n", position) + 1
            yield position, end, bytes(self.content[position:end].strip())
            position = end

    def filled(self) -> Iterator[tuple[int, int, int, bytes]]:
        """(number, then as `lines`) of those that are not blank: there may be millions that are."""
        content, position, number = self.content, 0, 1
        while (start := self._past_blank(position)) < len(content):
            number += content.count(b"\n", position, start)
            end = content.index(b"\n", start) + 1
            yield number, start, end, bytes(content[start:end].strip())
            position, number = end, number + 1

    def first_line(self, comment: str) -> tuple[int, int, bytes]:
        """(number, where the next line starts, text) of the first line that is no comment.

        The text is empty where the file has no such line.
        """
        for number, _, after, line in self.filled():
            if not line.startswith(comment.encode()):
                return number, after, line
        return self.last_line(), len(self.content), b""

    def _past_blank(self, position: int) -> int:
        """Start of the next line that is not blank; `position` is the start of a line."""
        content, size = self.content, len(self.content)
        while position < size:
            window = min(position + WINDOW, size)
            found = _NOT_BLANK.search(content, position, window)
            if found is not None:
                return content.rfind(b"\n", position, found.start()) + 1 or position
            last = content.rfind(b"\n", position, window)
            if last >= 0:
                position = last + 1
            else:  # a line that starts with more blanks than a window holds
                return position
        return size

    def require_numbers(self, line: int, rows: int, each: int) -> None:
        """Raise if the file is too short for `each` numbers, of two bytes at least, in each row."""
        if rows * each > len(self.content):
            raise self.error(line, f"the file cannot hold {each} numbers for each of {rows} rows")

    def require_shape(self, line: int, shape: tuple[int, int], entries: int) -> None:
        """Refuse a matrix that is out of all proportion to the file, or to the memory free."""
        most = self.limits.most_vertices(entries)
        if max(shape) > most:
            size = f"{shape[0]} x {shape[1]}" if shape[0] != shape[1] else f"{shape[0]}"
            raise self.error(
                line,
                f"{size} vertices are too many for {entries} entries; "
                f"pass most_vertices={max(shape)} to accept them",
            )
        require_memory(self.caller, matrix_bytes(shape, entries), f"the matrix of {self.path}")

    def require_finished(self, strict: bool) -> None:
        """Refuse a file whose last line may be cut off: a number there may have lost digits."""
        if strict and not self.finished:
            raise self.error(
                self.last_line(),
                "the file ends without a newline, so this line may be cut off; "
                "pass strict=False to read it as it is",
            )

    def require_count(self, declared: int, found: int, what: str, strict: bool) -> None:
        """Raise unless the file holds as many records as it says."""
        if strict and declared != found:
            cut = "the file is cut off" if found < declared else "there are more than that"
            raise self.error(
                self.last_line(), f"{cut}: {declared} {what} declared, {found} found{REMEDY}"
            )


def _frozen(array: Array) -> Array:
    """The array, made read-only: kernels are compiled once, for texts that nobody changes."""
    array.flags.writeable = False
    return array


REMEDY = "; pass strict=False to accept it"


def clip(field: bytes, limit: int = 24) -> str:
    text = bytes(field[: 4 * limit + 4]).decode("utf-8", "replace")
    return repr(text if len(text) <= limit else text[:limit] + "...")


def whole_numbers(fields: Sequence[bytes]) -> list[int] | None:
    """The fields as whole numbers, or None where one is not."""
    if all(field.isdigit() and len(field) <= 18 for field in fields):
        return [int(field) for field in fields]
    return None
