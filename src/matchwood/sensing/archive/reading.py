"""Archives as iterators of matrices: files, folders, archives within archives.

Most of the time goes into zstd, which lets other threads run.  So matrices are unpacked ahead, one
by each thread, and given in order.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood.errors import FileFormatError
from matchwood.gate.plain_files import PlainFile, open_file
from matchwood.gate.resources import require_memory
from matchwood.io.compression import Damaged, unpacked
from matchwood.io.files import outcome
from matchwood.io.limits import Limits
from matchwood.sensing.archive import blob, tar, zstd
from matchwood.sensing.archive.layout import damaged
from matchwood.sensing.capture.sources import LONGEST_SIGNATURE, compression_of
from matchwood.sensing.traffic import TrafficMatrix

DEEPEST = 4  # archives within archives
PIECE = 1 << 20  # bytes
SMALL = 1 << 14  # bytes of a packed matrix below which it costs less than handing it over
SCRATCH, MOST_SCRATCH = 0, 1 << 26  # packed matrices of so many bytes share memory of a thread
SUFFIXES = (".tar", ".grb")


def archive_files(folder: Any) -> list[Path]:
    """The files of a folder that are archives or matrices, in the order of their names."""
    return sorted(file for file in Path(folder).iterdir() if file.suffix in SUFFIXES)


Content = PlainFile | memoryview


class Packed(NamedTuple):
    """A matrix as it lies in a file: the name of the file, its bytes start..stop."""

    name: str
    start: int
    stop: int
    content: Content

    def load(self, limits: Limits) -> TrafficMatrix:
        """The matrix, in memory of its own."""
        if isinstance(self.content, memoryview):
            found = self.content[self.start : self.stop]
        else:
            size = self.stop - self.start
            if size > MOST_SCRATCH:
                require_memory("read_archive", size, self.name)
                found = np.empty(size, np.uint8).data
            else:
                found = zstd.scratch(SCRATCH, size)
            self.content.fill(self.start, found)
        return blob.load(self.name, self.start, found, limits)


def matrices_of(path: Any, limits: Limits, threads: int) -> Iterator[TrafficMatrix]:
    """The matrices in a file, or in all files of a folder whose name ends in .tar or .grb."""
    pool: ThreadPoolExecutor | None = None
    waiting: deque[Any] = deque()
    try:
        for found in _until_damage(_packed(path, limits)):
            if threads > 1 and isinstance(found, Packed) and found.stop - found.start >= SMALL:
                pool = pool or ThreadPoolExecutor(threads, "matchwood-archive")
                waiting.append(pool.submit(found.load, limits))
            else:
                waiting.append(found)
            while len(waiting) > (threads if pool else 0):  # so many are unpacked ahead
                yield from _matrices(waiting.popleft(), limits)
        while waiting:
            yield from _matrices(waiting.popleft(), limits)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _until_damage(given: Iterator[Any]) -> Iterator[Any]:
    """The same; an error comes as the last item, behind the matrices before it."""
    try:
        yield from given
    except Exception as error:
        yield error


def _matrices(found: Any, limits: Limits) -> Iterator[TrafficMatrix]:
    """The matrix of an item; a file comes when all its matrices have been loaded."""
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
    """The matrices of each file, and behind them the file, if it is a plain one."""
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
    name: str, content: Content, start: int, stop: int, depth: int
) -> Iterator[Packed]:  # fmt: skip
    if not tar.is_tar(content[start : min(stop, start + tar.BLOCK)]):
        yield Packed(name, start, stop, content)
        return
    if depth == DEEPEST:
        raise damaged(name, start, f"more than {DEEPEST} archives within one another")
    for member in tar.members(name, content, start, stop):
        end = member.start + member.size
        yield from _within(name, content, member.start, end, depth + 1)


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
    taken = len(first)

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        yield first
        while piece := stream.read(PIECE):
            taken += len(piece)
            yield piece

    compression = compression_of(first)
    found, room = bytearray(), 0
    try:
        for piece in unpacked(pieces(), compression) if compression else pieces():
            if len(found) + len(piece) > room:
                room = 2 * (len(found) + len(piece))
                require_memory("read_archive", room - len(found), name)
            found += piece
            if compression and len(found) > limits.most_bytes(taken):
                most = limits.most_bytes(taken)
                raise FileFormatError(
                    f"{name}, byte {len(found)} unpacked: {taken} compressed bytes unpack to more "
                    f"than {most}; pass most_bytes= to read so many"
                )
    except Damaged as damage:
        raise damaged(name, len(found), str(damage)) from None
    return name, memoryview(found)
