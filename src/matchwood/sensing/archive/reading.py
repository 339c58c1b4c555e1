"""Archives as iterators of matrices: files, folders, archives within archives.

Most of the time goes into zstd, which lets other threads run.  So matrices are unpacked ahead, one
by each thread, and given in order.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.errors import FileFormatError
from matchwood.io.compression import Damaged, unpacked
from matchwood.io.limits import Limits
from matchwood.sensing.archive import blob, tar
from matchwood.sensing.archive.layout import damaged
from matchwood.sensing.capture.sources import compression_of
from matchwood.sensing.traffic import TrafficMatrix

DEEPEST = 4  # archives within archives
PIECE = 1 << 20  # bytes
SMALL = 1 << 14  # bytes of a packed matrix below which it costs less than handing it over
SUFFIXES = (".tar", ".grb")


def archive_files(folder: Any) -> list[Path]:
    """The files of a folder that are archives or matrices, in the order of their names."""
    return sorted(file for file in Path(folder).iterdir() if file.suffix in SUFFIXES)


class Packed(NamedTuple):
    """A matrix as it lies in a file: the name of the file, the place, the bytes."""

    name: str
    start: int
    content: memoryview


def matrices_of(path: Any, limits: Limits, threads: int) -> Iterator[TrafficMatrix]:
    """The matrices in a file, or in all files of a folder whose name ends in .tar or .grb."""
    if threads == 1:
        for packed in _packed(path, limits):
            yield blob.load(*packed, limits)
        return
    pool: ThreadPoolExecutor | None = None
    waiting: deque[Any] = deque()
    try:
        for found in _until_damage(_packed(path, limits)):
            if isinstance(found, Packed) and len(found.content) >= SMALL:
                pool = pool or ThreadPoolExecutor(threads, "matchwood-archive")
                waiting.append(pool.submit(blob.load, *found, limits))
            else:
                waiting.append(found)
            if len(waiting) > threads:  # so many are unpacked ahead
                yield _unpacked_matrix(waiting.popleft(), limits)
        while waiting:
            yield _unpacked_matrix(waiting.popleft(), limits)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _until_damage(given: Iterator[Packed]) -> Iterator[Any]:
    """The same; an error comes as the last item, behind the matrices before it."""
    try:
        yield from given
    except Exception as error:
        yield error


def _unpacked_matrix(found: Any, limits: Limits) -> TrafficMatrix:
    if isinstance(found, Exception):
        raise found
    if isinstance(found, Packed):
        return blob.load(*found, limits)
    matrix: TrafficMatrix = found.result()
    return matrix


def _packed(path: Any, limits: Limits) -> Iterator[Packed]:
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        for file in archive_files(path):
            yield from _packed(file, limits)
        return
    name, content = _content(path, limits)
    if not len(content):
        raise damaged(name, 0, "the file is empty")
    yield from _within(name, content, 0, len(content), 0)


def _within(
    name: str, content: memoryview, start: int, stop: int, depth: int
) -> Iterator[Packed]:  # fmt: skip
    if not tar.is_tar(content[start:stop]):
        yield Packed(name, start, content[start:stop])
        return
    if depth == DEEPEST:
        raise damaged(name, start, f"more than {DEEPEST} archives within one another")
    for member in tar.members(name, content, start, stop):
        end = member.start + member.size
        yield from _within(name, content, member.start, end, depth + 1)


def _content(path: Any, limits: Limits) -> tuple[str, memoryview]:
    """(name, bytes): a plain file is mapped, a stream or a compressed file read and unpacked."""
    if hasattr(path, "read"):
        return _unpacked(str(getattr(path, "name", "<stream>")), path, limits)
    if not isinstance(path, (str, os.PathLike)):
        kind = type(path).__name__
        raise TypeError(f"read_archive: path must be a path or a binary stream, got {kind}")
    name = os.fspath(path)
    if name == "-":
        return _unpacked("<standard input>", sys.stdin.buffer, limits)
    with open(path, "rb") as stream:
        facts = os.fstat(stream.fileno())
        if not os.path.isfile(path) or not facts.st_size or compression_of(stream.peek(8)):
            return _unpacked(name, stream, limits)
        mapped = mmap.mmap(stream.fileno(), facts.st_size, access=mmap.ACCESS_READ)
    return name, memoryview(mapped)


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
    found = bytearray()
    try:
        for piece in unpacked(pieces(), compression) if compression else pieces():
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
