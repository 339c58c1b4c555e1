"""Where packets come from: captures, archives, arrays, blocks of arrays."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.archive import tar
from matchwood.applications.sensing.archive.reading import archive_files
from matchwood.applications.sensing.capture import Capture
from matchwood.applications.sensing.capture.sources import compression_of
from matchwood.applications.sensing.packets import Packets
from matchwood.applications.sensing.traffic import TrafficMatrix, packet_arrays
from matchwood.applications.sensing.traffic.matrix import addresses as checked_addresses
from matchwood.applications.sensing.traffic.matrix import elements
from matchwood.arguments import integers, path, same_size
from matchwood.io.compression import Damaged, unpacked

MATRIX_SUFFIX = ".grb"  # of a file that is one matrix, as `read_archive` takes it
PIECE = 1 << 16  # bytes that are looked at to tell an archive from a capture
EXPECTED = "a path, a list of paths, arrays (src, dst) or an iterator of such blocks"
READ_AT_ONCE = 1 << 20  # packets


class Block(NamedTuple):
    """Some packets; `time` in nanoseconds, or None where there is none."""

    src: Any
    dst: Any
    time: Any


class Source:
    """Blocks of packets or, of an archive, matrices; and what was read so far."""

    def __init__(self, source: Any, compat: bool, threads: int | None) -> None:
        self._compat, self._threads = compat, threads
        self._given = source
        self._open: Capture | None = None
        self._done: dict[str, Any] = {"packets": 0, "bytes": 0, "skipped": {}}
        self.files: list[Any] = _files(source)
        archives = [_is_archive(file) for file in self.files]
        if any(archives) and not all(archives):
            raise TypeError("sense: source must be captures or archives, got both")
        self.has_matrices = bool(archives) and all(archives)
        self.whole = not self.files and _is_pair(source)  # arrays that are all here already
        self.engine = "cpu"  # where the packets live
        if self.whole:
            self.engine = engines.location(source[0])
        elif not self.files:
            self._look_at_first(elements("sense", "source", source, EXPECTED))

    def _look_at_first(self, blocks: Iterator[Any]) -> None:
        """The first block says where the packets live."""
        first = list(itertools.islice(blocks, 1))
        self._given = itertools.chain(first, blocks)
        if first and _is_pair(first[0]):
            self.engine = engines.location(first[0][0])

    def blocks(self) -> Iterator[Block]:
        """Packets in order; a block of a file is valid until the next one."""
        if self.files:
            for file in self.files:
                yield from self._capture(file)
        elif self.whole:
            yield packet_block("sense", self._given)
        else:
            for item in self._given:
                yield packet_block("sense", item, "source must give blocks")

    def _capture(self, file: Any) -> Iterator[Block]:
        capture = Capture("sense", file, READ_AT_ONCE, self._compat, self._threads, reuse=True)
        self._open = capture
        try:
            for packets in capture:
                yield Block(packets.src, packets.dst, packets.time)
        finally:
            self._done = self.read()
            self._open = None
            capture.close()

    def matrices(self) -> Iterator[TrafficMatrix]:
        from matchwood.applications.sensing.archive import read_archive

        for file in self.files:
            yield from read_archive(file, threads=self._threads)
            self._done["bytes"] += _stored_bytes(Path(file))

    def read(self) -> dict[str, Any]:
        """What was read so far: packets, bytes, and what was skipped by reason."""
        found = {**self._done, "skipped": dict(self._done["skipped"])}
        if self._open is not None:
            found["packets"] += self._open.packets
            found["bytes"] += self._open.bytes
            for reason, number in self._open.skipped.items():
                found["skipped"][reason] = found["skipped"].get(reason, 0) + number
        return found


def _stored_bytes(path: Path) -> int:
    """Of an archive, or of all archives of a folder."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in archive_files(path))


def _files(source: Any) -> list[Any]:
    listed = isinstance(source, (list, tuple)) and source and all(map(_is_file, source))
    files = list(source) if listed else [source] if _is_file(source) else []
    return [file if hasattr(file, "read") else path("sense", "source", file) for file in files]


def _is_file(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) or hasattr(source, "read")


def _is_pair(item: Any) -> bool:
    """Packets, or a tuple of two or three arrays."""
    if isinstance(item, Packets):
        return True
    return (
        isinstance(item, (tuple, list))
        and len(item) in (2, 3)
        and all(hasattr(part, "dtype") for part in item)
    )


def packet_block(caller: str, item: Any, wanted: str = "packets must be arrays") -> Block:
    """Packets, or a tuple of arrays, as arrays of one size; times as int64, on the CPU."""
    if not _is_pair(item):
        raise TypeError(
            f"{caller}: {wanted} (src, dst) or (src, dst, time), got {type(item).__name__}"
        )
    src, dst = packet_arrays(caller, item[0], item[1])
    time = item[2] if len(item) > 2 else None
    if time is not None:
        low, high = -(1 << 63), (1 << 63) - 1  # what int64 holds
        time = engines.moved(integers(caller, "time", time, size=src.size), "cpu")
        if time.dtype != np.int64:
            time = integers(caller, "time", time, low=low, high=high).astype(np.int64)
    return Block(src, dst, time)


def anonymized(caller: str, anonymizer: Any, addresses: Any) -> Any:
    """Other addresses by an object that may be the user's: looked at before they are used."""
    changed = checked_addresses(caller, "anonymize", anonymizer.apply(addresses))
    same_size(caller, "anonymize", changed, "the addresses it was given", addresses)
    return changed


def _is_archive(file: Any) -> bool:
    """A folder, a tar archive, or a matrix by itself (.grb); what comes by a pipe is a capture."""
    if not isinstance(file, (str, os.PathLike)) or str(file) == "-":
        return False
    path = Path(file)
    if path.is_dir():
        return bool(archive_files(path))
    if not path.is_file():
        return False
    return path.suffix == MATRIX_SUFFIX or tar.is_archive(_beginning(path))


def _beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked if need be; as many as there are where it is damaged."""
    with path.open("rb") as opened:
        first = opened.read(PIECE)
        compression = compression_of(first)
        if not compression:
            return first
        pieces = itertools.chain([first], iter(lambda: opened.read(PIECE), b""))
        found = b""
        with contextlib.suppress(Damaged):
            for piece in unpacked(pieces, compression):
                found += piece
                if len(found) >= tar.BLOCK:
                    break
    return found
