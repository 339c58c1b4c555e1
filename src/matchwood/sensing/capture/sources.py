"""Where the bytes of a capture come from: a mapped file, or a stream that is unpacked as it goes.

Both give an array of bytes that the kernel reads.  A mapped file is one array with everything in
it.  A stream has a buffer: what the kernel has not read yet moves to its front, and more follows.

Whether bytes are compressed is seen from their beginning, not from the name: pipes have none.
"""

from __future__ import annotations

import io
import mmap
import os
import select
import stat
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from matchwood.errors import FileFormatError
from matchwood.io.compression import Damaged, unpacked
from matchwood.io.limits import Limits

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]

PIECE = 1 << 20  # bytes read from a pipe at once
PATIENCE_SECONDS = 0.01  # for more bytes of a slow pipe; then what is there is read
BUFFER = 1 << 23  # bytes of a stream in memory; it grows where one record is larger
SIGNATURES = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
LONGEST_SIGNATURE = max(map(len, SIGNATURES))


class Source:
    """The bytes data[..end]; `base` is the place of data[0] in the capture."""

    name: str
    data: Array
    end: int
    base: int = 0
    ended: bool  # nothing follows
    unpacked: bool = False  # offsets are those of the capture, not of the file
    size: int | None = None  # bytes of the file as stored, where that is known
    taken: int = 0  # stored bytes that were read

    def more(self, position: int) -> int:
        """Make room for bytes that follow and read some; `position` was read up to.

        Returns where that position is now.  Only called while not `ended`.
        """
        raise AssertionError("a mapped file is complete")

    def close(self) -> None:
        """Give the file back."""


class Mapped(Source):
    """A plain file as part of memory.  It must not be made shorter meanwhile."""

    def __init__(self, name: str, stream: BinaryIO, size: int) -> None:
        self.name, self.end, self.ended, self.size = name, size, True, size
        mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_SEQUENTIAL"):
            mapped.madvise(mmap.MADV_SEQUENTIAL)
        self.data = np.frombuffer(mapped, np.uint8)
        self.taken = size

    def close(self) -> None:
        self.data = np.empty(0, np.uint8)  # the last one to hold the map


class Stream(Source):
    """Bytes that come one after the other."""

    def __init__(self, name: str, stream: Any, size: int | None, limits: Limits, own: bool) -> None:
        self.name, self.size, self.end, self.ended = name, size, 0, False
        self._stream, self._limits, self._own = stream, limits, own
        first = _filled(stream, LONGEST_SIGNATURE)
        self.compression = compression_of(first)
        self.unpacked = bool(self.compression)
        self._pieces = self._unpack(first) if self.compression else self._stored(first)
        self._left = memoryview(b"")  # of a piece for which there was no room
        self._memory = np.empty(0, np.uint8)
        self._grow(BUFFER)

    def _grow(self, size: int) -> None:
        memory = np.empty(size, np.uint8)
        memory[: self.end] = self._memory[: self.end]
        self._memory = memory
        self.data = memory[:]
        self.data.flags.writeable = False  # kernels are compiled once, for bytes nobody changes

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
        """The next piece that is not empty.  Damage is told when what lies before it was read."""
        try:
            return next((piece for piece in self._pieces if piece), None)
        except Damaged as damage:
            self.damage = str(damage)
            return None

    damage: str | None = None

    def _stored(self, first: bytes) -> Iterator[bytes]:
        self.taken += len(first)
        yield first
        # what is there, without waiting for more: a capture may be under way
        read = getattr(self._stream, "read1", self._stream.read)
        while piece := read(PIECE):
            self.taken += len(piece)
            yield piece

    def _unpack(self, first: bytes) -> Iterator[bytes]:
        made = 0
        for piece in unpacked(self._stored(first), self.compression):
            made += len(piece)
            most = self._limits.most_bytes(self.taken)
            if made > most:
                raise FileFormatError(
                    f"{self.name}, byte {made} unpacked: {self.taken} compressed bytes unpack to "
                    f"more than {most}; pass most_bytes= to read so many"
                )
            yield piece

    def close(self) -> None:
        if self._own:
            self._stream.close()


def _is_ready(stream: Any) -> bool:
    """Whether reading would not wait; True where that cannot be told."""
    try:
        return bool(select.select([stream.fileno()], [], [], PATIENCE_SECONDS)[0])
    except (AttributeError, OSError, ValueError):  # no file, or a system that asks sockets only
        return True


def _filled(stream: Any, count: int) -> bytes:
    """The first bytes of a stream; a pipe may give fewer at once than it was asked for."""
    found = b""
    while len(found) < count and (piece := stream.read(count - len(found))):
        found += piece
    return found


def compression_of(first: bytes) -> str:
    """The suffix that files compressed like this have; "" for none."""
    for signature, suffix in SIGNATURES.items():
        if first.startswith(signature):
            return suffix
    return ""


def open_source(caller: str, path: Any, limits: Limits) -> Source:
    """The bytes of a file, of standard input ("-"), or of an object with `read`."""
    if isinstance(path, io.TextIOBase):
        raise TypeError(f"{caller}: path must be a path or a binary stream, got a stream of text")
    if hasattr(path, "read"):
        return Stream(str(getattr(path, "name", "<stream>")), path, None, limits, own=False)
    if not isinstance(path, (str, os.PathLike)):
        kind = type(path).__name__
        raise TypeError(f"{caller}: path must be a path or a binary stream, got {kind}")
    name = os.fspath(path)
    if name == "-":
        return Stream("<standard input>", sys.stdin.buffer, None, limits, own=False)
    stream = open(path, "rb", buffering=0)  # noqa: SIM115  the source closes it
    try:
        facts = os.fstat(stream.fileno())
        if stat.S_ISREG(facts.st_mode):
            first = stream.read(LONGEST_SIGNATURE)
            stream.seek(0)
            if facts.st_size and not compression_of(first):
                with stream:
                    return Mapped(name, stream, facts.st_size)
            return Stream(name, stream, facts.st_size, limits, own=True)
        return Stream(name, stream, None, limits, own=True)
    except BaseException:
        stream.close()
        raise
