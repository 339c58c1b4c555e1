"""Where the bytes of a capture are read: a plain file, or a stream, unpacked while it is read.

Both fill buffers that the kernel parses.  The part of a record that is left at the end of a buffer
is copied to the front of the next one.

Compression is recognised by the first bytes, not by the name: pipes have none.
"""

from __future__ import annotations

import abc
import io
import itertools
import os
import select
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from matchwood.arguments import path as file_name
from matchwood.errors import FileFormatError
from matchwood.gate.plain_files import PlainFile, open_file
from matchwood.io.files import CutOff, Damaged, outcome, unpacked
from matchwood.io.options import Limits

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]

PIECE = 1 << 20  # bytes read from a pipe at once
PATIENCE_SECONDS = 0.01  # wait this long for more bytes of a slow pipe, then parse what is there
BUFFER = 1 << 23  # bytes of a stream in memory; it grows where one record is larger
AHEAD = 1 << 24  # bytes of a plain file that are read at once; 10 % less time than with 1 << 23 ...
AHEAD_OF_MEMBER = 1 << 22  # ... or this for each thread that parses: two rounds of cpu.scan
ROOM = 1 << 18  # bytes in front of a buffer for the start of a record; few records are longer
SIGNATURES = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
LONGEST_SIGNATURE = max(map(len, SIGNATURES))


class Source(abc.ABC):
    """The bytes data[:end]; `base` is the offset of data[0] in the capture."""

    name: str
    data: Array
    end: int
    base: int = 0
    ended: bool  # nothing follows
    unpacked: bool = False  # offsets are those of the capture, not of the file
    size: int | None = None  # bytes of the file as stored, where that is known
    length: int | None = None  # bytes of the file when unpacked, where that is known
    taken: int = 0  # stored bytes that were read
    damage: str | None = None  # what is wrong after the last byte
    cut: bool = False  # compressed data ends early, and what was there is sound
    members: int = 1  # threads that parse
    file: PlainFile | None = None  # None for a pipe

    @abc.abstractmethod
    def more(self, position: int) -> int:
        """Drop the bytes before `position` and read more after the others.

        Returns the new index of that position.  Only called while not `ended`.
        """

    def finish(self) -> None:
        """Raise if the file was changed while it was read; growth is allowed (a live capture)."""
        if self.file is not None:
            self.file.require_unchanged(may_grow=True)

    @abc.abstractmethod
    def close(self) -> None:
        """Close the file."""


class Plain(Source):
    """A plain file: while one buffer is parsed, threads read the next one."""

    def __init__(self, file: PlainFile) -> None:
        self.name, self.size, self.length = file.name, file.size, file.size
        self.end, self.ended = 0, not file.size
        self.file = self._file = file
        self._offset = 0  # bytes of the file in the buffers before the one that is read ahead
        self._pool: ThreadPoolExecutor | None = None
        self._parts: list[Future[None]] | None = None  # reads of that buffer; None at the start
        self._memory = self._coming = self.data = np.empty(0, np.uint8)

    def more(self, position: int) -> int:
        buffer = max(AHEAD, AHEAD_OF_MEMBER * self.members)
        if self._parts is None:
            self._read_ahead(self._memory, buffer)
        for part in self._parts or ():
            outcome(part)
        used, filled, front = self._memory, self._coming, ROOM
        kept = used[position : self.end]
        if kept.size <= ROOM:
            filled[ROOM - kept.size : ROOM] = kept
        else:
            filled, used, front = np.concatenate((kept, filled[ROOM:])), filled, kept.size
        self._memory, self.data = filled, filled[:]
        self.data.flags.writeable = False  # kernels are compiled for read-only bytes alone
        self.base, self.end = self._offset - front, front + self._count
        self._offset += self._count
        self.ended = self._offset == self.length
        if not self.ended:
            self._read_ahead(used, max(buffer, kept.size))  # doubles for long records
        return front - kept.size

    def _read_ahead(self, memory: Array, size: int) -> None:
        """Begin to read the next bytes into the buffer that is free."""
        count = min(size, self._file.size - self._offset)
        if memory.size < ROOM + count:
            memory = np.empty(ROOM + count, np.uint8)
        self._coming, self._count, self._parts = memory, count, []
        if count == self._file.size:
            self._file.fill(0, memory[ROOM : ROOM + count])
            return
        self._pool = self._pool or ThreadPoolExecutor(self.members, "matchwood-capture")
        cuts = [count * k // self.members for k in range(self.members + 1)]
        for low, high in itertools.pairwise(cuts):
            goal = memory[ROOM + low : ROOM + high]
            self._parts.append(self._pool.submit(self._file.fill, self._offset + low, goal))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._file.close()
        self._memory = self._coming = self.data = np.empty(0, np.uint8)


class Stream(Source):
    """Bytes of a pipe or of a compressed file, read in order."""

    def __init__(
        self, name: str, stream: Any, limits: Limits, own: bool, file: PlainFile | None = None
    ) -> None:  # fmt: skip
        self.name, self.end, self.ended = name, 0, False
        self.file, self.size = file, None if file is None else file.size
        self._stream, self._own = stream, own
        first = _filled(stream, LONGEST_SIGNATURE)
        self.compression = compression_of(first)
        self.unpacked = bool(self.compression)
        self._pieces = self._stored(first)
        if self.compression:
            self._pieces = unpacked_within(name, self._pieces, self.compression, limits)
        self._left = memoryview(b"")  # the rest of a piece for which there was no room
        self._memory = np.empty(0, np.uint8)
        self._grow(BUFFER)

    def _grow(self, size: int) -> None:
        memory = np.empty(size, np.uint8)
        memory[: self.end] = self._memory[: self.end]
        self._memory = memory
        self.data = memory[:]
        self.data.flags.writeable = False  # kernels are compiled for read-only bytes alone

    def more(self, position: int) -> int:
        kept = self.end - position
        if position:
            # in steps: the two stretches overlap
            self._memory[:kept] = self._memory[position : self.end].copy()
            self.base, self.end = self.base + position, kept
        if kept == self._memory.size:
            self._grow(2 * kept)
        while self.end < self._memory.size and not self.ended:
            self._fill()
            if self.end > kept and not (self._left or self.ended or _is_ready(self._stream)):
                break
        return 0

    def _fill(self) -> None:
        if not self._left:
            piece = self._next()
            if piece is None:
                self.ended = True
                return
            self._left = memoryview(piece)
        count = min(len(self._left), self._memory.size - self.end)
        self._memory[self.end : self.end + count] = np.frombuffer(self._left[:count], np.uint8)
        self.end += count
        self._left = self._left[count:]

    def _next(self) -> bytes | None:
        """The next piece that is not empty; damage is reported after the bytes before it."""
        try:
            return next((piece for piece in self._pieces if piece), None)
        except Damaged as damage:
            self.damage, self.cut = str(damage), isinstance(damage, CutOff)
            return None

    def _stored(self, first: bytes) -> Iterator[bytes]:
        self.taken += len(first)
        yield first
        # what is there, without waiting for more: a capture may be under way
        read = getattr(self._stream, "read1", self._stream.read)
        while piece := read(PIECE):
            self.taken += len(piece)
            yield piece

    def close(self) -> None:
        if self._own:
            self._stream.close()


def _is_ready(stream: Any) -> bool:
    """Whether a read returns at once; True where that is unknown."""
    try:
        return bool(select.select([stream.fileno()], [], [], PATIENCE_SECONDS)[0])
    except (AttributeError, OSError, ValueError):  # no file, or a system that asks sockets only
        return True


def _filled(stream: Any, count: int) -> bytes:
    """The first `count` bytes of a stream, in several reads where a pipe returns fewer."""
    found = b""
    while len(found) < count and (piece := stream.read(count - len(found))):
        found += piece
    return found


def compression_of(first: bytes | bytearray) -> str:
    """The suffix that files compressed like this have; "" for none."""
    for signature, suffix in SIGNATURES.items():
        if first.startswith(signature):
            return suffix
    return ""


def unpacked_within(
    name: str, stored: Iterable[bytes], compression: str, limits: Limits
) -> Iterator[bytes]:  # fmt: skip
    """Unpacked bytes, piece by piece; raises beyond what the limits allow for the stored bytes."""
    taken = made = 0

    def counted() -> Iterator[bytes]:
        nonlocal taken
        for piece in stored:
            taken += len(piece)
            yield piece

    for piece in unpacked(counted(), compression):
        made += len(piece)
        if made > (most := limits.most_bytes(taken)):
            raise FileFormatError(
                f"{name}, byte {made} unpacked: {taken} compressed bytes unpack to more than "
                f"{most}; pass most_bytes= to read more"
            )
        yield piece


def damaged(name: str, offset: int, message: str) -> FileFormatError:
    """The error for what is wrong at a byte of a file."""
    return FileFormatError(f"{name}, byte {offset}: {message}")


def open_source(caller: str, path: Any, limits: Limits) -> Source:
    """The bytes of a file, of standard input ("-"), or of an object with `read`."""
    if isinstance(path, io.TextIOBase):
        raise TypeError(f"{caller}: path must be a path or a binary stream, got a stream of text")
    if hasattr(path, "read"):
        return Stream(str(getattr(path, "name", "<stream>")), path, limits, own=False)
    if not isinstance(path, (str, os.PathLike)):
        kind = type(path).__name__
        raise TypeError(f"{caller}: path must be a path or a binary stream, got {kind}")
    name = file_name(caller, "path", path)
    if name == "-":
        return Stream("<standard input>", sys.stdin.buffer, limits, own=False)
    file = open_file(name)
    if not isinstance(file, PlainFile):
        return Stream(name, file, limits, own=True)
    if not compression_of(file[: min(LONGEST_SIGNATURE, file.size)]):
        return Plain(file)
    file.stream.seek(0)
    return Stream(name, file.stream, limits, own=True, file=file)
