"""Archives: tar files and folders of matrices, and archives within archives, read and written.

Nearly all of the time goes into zstd, which lets other threads run.  So matrices are unpacked (or
packed) ahead, one by each thread, and given (or written) in order: the bytes do not depend on the
number of threads.

Headers of tar are read and written here: the standard library's tarfile writes the same bytes, but
takes 90 us more a member, a quarter of the time to write a small matrix and a tenth of that to read
one, and its errors name no byte.  Nothing is ever written under a member's name: names only appear
in messages.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.archive import blob
from matchwood.applications.sensing.archive.blob import Packer
from matchwood.applications.sensing.capture.sources import (
    LONGEST_SIGNATURE,
    compression_of,
    damaged,
    unpacked_within,
)
from matchwood.applications.sensing.traffic.result import TrafficMatrix, with_time
from matchwood.arguments import count
from matchwood.gate.plain_files import PlainFile, open_file
from matchwood.gate.resources import require_memory
from matchwood.io.files import Damaged, outcome, replacing
from matchwood.io.options import Limits

TAR_BLOCK = 512  # bytes: headers and contents begin at multiples of it
PLAIN = (b"0", b"\0", b"7")  # kinds of members that are files
EXTENDED = b"x"  # the kind of a header that says more about the next member
MOST_EXTENDED = 1 << 16  # bytes of it that are read
TOP = 0x80  # bit of a size's first byte where it is written in base 256
NAME, SIZE, CHECKSUM, KIND, MAGIC = (
    slice(0, 100), slice(124, 136), slice(148, 156), slice(156, 157), slice(257, 262),
)  # fmt: skip
MOST_SIZE = 1 << 62
DEEPEST = 4  # archives within archives
PIECE = 1 << 20  # bytes
LEAST_BYTES_AHEAD = 1 << 14  # unpacking a smaller matrix costs less than passing it to a thread
SUFFIXES = (".tar", ".grb")
Content = PlainFile | memoryview
EPOCH = datetime.datetime(1970, 1, 1)  # of times; UTC
ENDING = bytes(2 * TAR_BLOCK)
WRITTEN = 1 << 22  # bytes that are written at once
LEAST_LINKS_AHEAD = 1 << 12  # fewer are packed by the caller: 4096 random links take 0.4 ms (Xeon)


# tar


class Member(NamedTuple):
    """A file in an archive: its name, where its content begins and how many bytes it has."""

    name: str
    start: int
    size: int
    time: int | None  # nanoseconds since 1970, from an extended header


def is_tar(content: bytearray | memoryview) -> bool:
    """Whether the bytes begin with the header of an archive, or with the end of an empty one."""
    if len(content) < TAR_BLOCK:
        return False
    return bytes(content[MAGIC]) == b"ustar" or not any(content[:TAR_BLOCK])


def is_archive(content: bytes) -> bool:
    """Whether the bytes begin with the header of an archive that has a member."""
    return bytes(content[MAGIC]) == b"ustar"


def members(
    name: str, content: Content, start: int, stop: int
) -> Iterator[Member]:  # fmt: skip
    """The files of the archive that lies in start..stop.

    It ends with blocks of zeros, as tar writes them, or with the file, as pcap2grb does.
    """
    place, end, time = start, stop, None
    while place < end:
        if place + TAR_BLOCK > end:
            raise damaged(name, place, "the header of a member is cut off")
        header = bytes(content[place : place + TAR_BLOCK])
        if not any(header):
            return
        size = _size(name, place, header)
        _compare_checksum(name, place, header)
        member = Member(_shown(header), place + TAR_BLOCK, size, time)
        if size > end - place - TAR_BLOCK:
            left = end - place - TAR_BLOCK
            raise damaged(name, place + 124, f"{member.name} has {size} bytes, {left} are left")
        if header[KIND] in PLAIN:
            yield member
        time = None
        if header[KIND] == EXTENDED and size <= MOST_EXTENDED:  # of the member that follows
            time = _time(bytes(content[member.start : member.start + size]))
        place += TAR_BLOCK + size + -size % TAR_BLOCK


def _time(records: bytes) -> int | None:
    """The time of an extended header (POSIX pax): "27 mtime=1700000000.000000001\\n" in it.

    One that 64 bits do not hold becomes the nearest that they do.
    """
    found = re.search(rb"\d+ mtime=(-?)(\d{1,10})(?:\.(\d{1,9}))?\n", records)
    if found is None:
        return None
    sign, seconds, rest = found[1], int(found[2]), int((found[3] or b"").ljust(9, b"0"))
    time = seconds * 10**9 + rest
    return max(-time, -(1 << 63)) if sign else min(time, (1 << 63) - 1)


def _extended(time: int) -> bytes:
    """An extended header that gives the member after it this time."""
    whole, rest = divmod(abs(time), 10**9)
    record = b" mtime=%s%d.%09d\n" % (b"-" if time < 0 else b"", whole, rest)
    record = b"%d%s" % (len(record) + 2, record)  # two digits: it counts itself
    header = member_header("PaxHeader", len(record), EXTENDED)
    return header + record + bytes(-len(record) % TAR_BLOCK)


def _shown(header: bytes) -> str:
    return repr(header[NAME].split(b"\0")[0].decode("utf-8", "replace"))


def _size(name: str, place: int, header: bytes) -> int:
    field = header[SIZE]
    if field[0] & TOP:
        size = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
    else:
        digits = field.strip(b" \0")
        if digits and not all(48 <= digit < 56 for digit in digits):
            raise damaged(name, place + 124, f"the size of {_shown(header)} is no number")
        size = int(digits or b"0", 8)
    if size > MOST_SIZE:
        raise damaged(name, place + 124, f"{_shown(header)} cannot have {size} bytes")
    return size


def _compare_checksum(name: str, place: int, header: bytes) -> None:
    digits = header[CHECKSUM].strip(b" \0")
    counted = sum(header[: CHECKSUM.start]) + 8 * 32 + sum(header[CHECKSUM.stop :])
    if not digits or not all(48 <= digit < 56 for digit in digits) or int(digits, 8) != counted:
        raise damaged(name, place + 148, f"the header of {_shown(header)} has a wrong checksum")


def member_header(name: str, size: int, kind: bytes = PLAIN[0]) -> bytes:
    """The header of a file of `size` bytes, without owner and time: equal content, equal bytes."""
    if size >= 1 << 33:
        raise ValueError(f"write_archive: a member of {size} bytes is too large for tar")
    fields = bytearray(TAR_BLOCK)
    fields[0 : len(name)] = name.encode("ascii")
    fields[100:108], fields[108:116], fields[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    fields[SIZE] = b"%011o\0" % size
    fields[136:148] = b"00000000000\0"
    fields[KIND] = kind
    fields[257:265] = b"ustar\x0000"
    fields[CHECKSUM] = b" " * 8
    fields[CHECKSUM] = b"%06o\0 " % sum(fields)
    return bytes(fields)


# Reading


def archive_files(folder: Any) -> list[Path]:
    """The files of a folder that are archives or matrices, in the order of their names."""
    return sorted(file for file in Path(folder).iterdir() if file.suffix in SUFFIXES)


class Packed(NamedTuple):
    """A matrix as it lies in a file: the name of the file, its bytes start..stop."""

    name: str
    start: int
    stop: int
    content: Content
    time: int | None = None  # of its first packet

    def load(self, limits: Limits) -> TrafficMatrix:
        """The matrix, in memory of its own."""
        if isinstance(self.content, memoryview):
            found = self.content[self.start : self.stop]
        else:
            size = self.stop - self.start
            require_memory("read_archive", size, self.name)
            found = np.empty(size, np.uint8).data
            self.content.fill(self.start, found)
        return with_time(blob.load(self.name, self.start, found, limits), self.time)


def matrices_of(path: Any, limits: Limits, threads: int) -> Iterator[TrafficMatrix]:
    """The matrices in a file, or in all files of a folder whose name ends in .tar or .grb."""
    pool: ThreadPoolExecutor | None = None
    waiting: deque[Any] = deque()
    try:
        for found in _until_damage(_packed(path, limits)):
            if (
                threads > 1
                and isinstance(found, Packed)
                and found.stop - found.start >= LEAST_BYTES_AHEAD
            ):
                pool = pool or ThreadPoolExecutor(threads, "matchwood-archive")
                waiting.append(pool.submit(found.load, limits))
            else:
                waiting.append(found)
            while len(waiting) > (threads if pool else 0):  # one per thread is unpacked ahead
                yield from _matrices(waiting.popleft(), limits)
        while waiting:
            yield from _matrices(waiting.popleft(), limits)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _until_damage(given: Iterator[Any]) -> Iterator[Any]:
    """The same items; an exception is given as the last item instead of raised."""
    try:
        yield from given
    except Exception as error:
        yield error


def _matrices(found: Any, limits: Limits) -> Iterator[TrafficMatrix]:
    """The matrix of an item; a file follows its matrices, to be checked for changes and closed."""
    if isinstance(found, Exception):
        raise found
    if isinstance(found, PlainFile):
        found.require_unchanged()
        found.close()
    elif isinstance(found, Packed):
        yield found.load(limits)
    else:
        yield outcome(found)


def _packed(path: Any, limits: Limits, *, plain: bool = False) -> Iterator[Packed | PlainFile]:
    """The matrices of each file, followed by the file itself if it is a plain one."""
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        for file in archive_files(path):
            yield from _packed(file, limits, plain=True)
        return
    name, content = _content(path, limits, plain)
    if not len(content):
        raise damaged(name, 0, "the file is empty")
    yield from _within(name, content, 0, len(content), 0)
    if isinstance(content, PlainFile):
        yield content


def _within(
    name: str, content: Content, start: int, stop: int, depth: int, time: int | None = None
) -> Iterator[Packed]:  # fmt: skip
    if not is_tar(content[start : min(stop, start + TAR_BLOCK)]):
        yield Packed(name, start, stop, content, time)
        return
    if depth == DEEPEST:
        raise damaged(name, start, f"more than {DEEPEST} archives within one another")
    for member in members(name, content, start, stop):
        end = member.start + member.size
        yield from _within(name, content, member.start, end, depth + 1, member.time)


def _content(path: Any, limits: Limits, plain: bool) -> tuple[str, Content]:
    """(name, bytes): a plain file as such, a stream or a compressed file read and unpacked."""
    if hasattr(path, "read"):
        return _unpacked(str(getattr(path, "name", "<stream>")), path, limits)
    name = os.fspath(path)
    if name == "-":
        return _unpacked("<standard input>", sys.stdin.buffer, limits)
    file = PlainFile(path) if plain else open_file(path)
    if not isinstance(file, PlainFile):
        with file:
            return _unpacked(name, file, limits)
    if not compression_of(file[: min(LONGEST_SIGNATURE, file.size)]):
        return name, file
    with file:
        file.stream.seek(0)
        found = _unpacked(name, file.stream, limits)
        file.require_unchanged()
    return found


def _unpacked(name: str, stream: Any, limits: Limits) -> tuple[str, memoryview]:
    first = stream.read(PIECE)
    pieces: Iterator[bytes] = itertools.chain([first], iter(lambda: stream.read(PIECE), b""))
    compression = compression_of(first)
    if compression:
        pieces = unpacked_within(name, pieces, compression, limits)
    found, room = bytearray(), 0
    try:
        for piece in pieces:
            if len(found) + len(piece) > room:
                room = 2 * (len(found) + len(piece))
                require_memory("read_archive", room - len(found), name)
            found += piece
    except Damaged as damage:
        raise damaged(name, len(found), str(damage)) from None
    return name, memoryview(found)


# Writing


class _Waiting(NamedTuple):
    pieces: Future[list[Any]]
    packets: int
    time: int | None


class ArchiveWriter:
    """Takes matrices one at a time; a context manager.  A file appears when it is complete."""

    def __init__(
        self, caller: str, path: str, each: int, compression: str | None, level: int, threads: int
    ) -> None:
        self._caller = caller  # the function named in messages
        self.paths: list[Path] = []
        self.matrices = 0
        self._folder = Path(path) if _is_folder(path) else None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._path, self._each = Path(path), each
        self._compression, self._level, self._threads = compression, level, threads
        self._packer = Packer(compression, level)
        self._packers = threading.local()  # each thread has its own
        self._stop = threading.Event()  # threads of the pool give up
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[_Waiting] = deque()
        self._stack = contextlib.ExitStack()
        self._stream: Any = None
        self._closed = False
        self._inside = 0  # matrices of the file that is open
        self._packets = 0
        self._time: int | None = None

    def add(self, matrix: TrafficMatrix, time: int | None = None) -> None:
        """Append a matrix; `time` is that of its first packet."""
        if not isinstance(matrix, TrafficMatrix):
            kind = type(matrix).__name__
            raise TypeError(f"{self._caller}: matrices must be TrafficMatrix objects, got {kind}")
        if self._closed:
            raise ValueError(f"{self._caller}: the archive is closed, nothing can be added to it")
        if matrix.engine != "cpu":
            arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
            matrix = TrafficMatrix(*(engines.moved(array, "cpu") for array in arrays))
        time = None if time is None else count(self._caller, "time", time, -(1 << 63))
        self.matrices += 1
        if self._threads > 1 and self._compression and matrix.links >= LEAST_LINKS_AHEAD:
            self._pool = self._pool or ThreadPoolExecutor(self._threads, "matchwood-archive")
            packed = self._pool.submit(self._packed, matrix)
            self._waiting.append(_Waiting(packed, matrix.packets, time))
            while len(self._waiting) > self._threads:  # one per thread is packed ahead
                self._write_first()
            return
        self._write_all()
        self._write(self._packer.pieces(matrix), matrix.packets, time)

    def _packed(self, matrix: TrafficMatrix) -> list[Any]:
        """The bytes of a matrix, by a thread of the pool."""
        if not hasattr(self._packers, "own"):
            self._packers.own = Packer(self._compression, self._level, self._stop)
        return self._packers.own.pieces(matrix)  # type: ignore[no-any-return]

    def _write_first(self) -> None:
        first = self._waiting.popleft()
        self._write(outcome(first.pieces), first.packets, first.time)

    def _write_all(self) -> None:
        while self._waiting:
            self._write_first()

    def _write(self, pieces: list[Any], packets: int, time: int | None) -> None:
        if self._stream is None:
            self._open(time)
        size = sum(map(len, pieces))
        if time is not None:
            self._stream.write(_extended(time))
        self._stream.write(member_header(f"{self._inside}.grb", size))
        for found in pieces:
            piece: memoryview = memoryview(found)
            for k in range(0, len(piece), WRITTEN):  # Ctrl-C takes effect in between
                self._stream.write(piece[k : k + WRITTEN])
        self._stream.write(bytes(-size % TAR_BLOCK))
        self._inside += 1
        self._packets += packets
        if self._folder is not None and self._inside == self._each:
            self._finish()

    def _open(self, time: int | None = None) -> None:
        path = self._path
        if self._folder is not None:
            path = self._folder / f"{len(self.paths):06d}.tar"
        named = self._folder is not None and time is not None
        self._time = time if named else None
        final = self._final_name if named else None
        self._stream = self._stack.enter_context(replacing(path, final))
        self._inside = self._packets = 0
        self.paths.append(path)

    def _final_name(self) -> Path:
        """As the study names its files: the time of the first packet, and the number of packets."""
        assert self._folder is not None
        assert self._time is not None
        stem = f"{_stamp(self._time)}.{self._packets}"
        path, others = self._folder / f"{stem}.tar", 0
        while path in self.paths[:-1]:
            others += 1
            path = self._folder / f"{stem}_{others:03d}.tar"  # sorts after the others
        self.paths[-1] = path
        return path

    def _finish(self) -> None:
        if self._stream is not None:
            self._stream.write(ENDING)
            self._stack.close()
            self._stream = None

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._closed = True
        try:
            if kind is None:
                self._write_all()
                if self._folder is None and self._stream is None:
                    self._open()  # an archive without matrices
                self._finish()
        except BaseException as wrong:
            kind, error, trace = type(wrong), wrong, wrong.__traceback__
            raise
        finally:
            if kind is not None:
                self._stop.set()
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            if kind is not None:  # an incomplete file does not take its name
                self._stack.__exit__(kind, error, trace)


def _is_folder(path: Any) -> bool:
    return os.path.isdir(path) or os.fspath(path).endswith(("/", os.sep))


def _stamp(nanoseconds: int) -> str:
    """20241022-035742-648596: day, time and microseconds, UTC."""
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y%m%d-%H%M%S}-{rest // 1000:06d}"
