"""Where packets come from: captures, archives, arrays, blocks of arrays."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from matchwood import engines
from matchwood.sensing.capture import Capture, iter_capture
from matchwood.sensing.packets import Packets
from matchwood.sensing.traffic import TrafficMatrix, packet_arrays

TAR_MAGIC = (257, b"ustar")  # where a tar archive says what it is
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
            self._look_at_first(iter(source))

    def _look_at_first(self, blocks: Iterator[Any]) -> None:
        """The first block says where the packets live."""
        first = list(itertools.islice(blocks, 1))
        self._given = itertools.chain(first, blocks)
        if first and _is_pair(first[0]):
            self.engine = engines.location(first[0][0])

    def blocks(self) -> Iterator[Block]:
        if self.files:
            for file in self.files:
                yield from self._capture(file)
        elif self.whole:
            yield _block(self._given)
        else:
            for item in self._given:
                if not _is_pair(item):
                    raise TypeError(
                        "sense: source must give blocks (src, dst) or (src, dst, time), "
                        f"got {type(item).__name__}"
                    )
                yield _block(item)

    def _capture(self, file: Any) -> Iterator[Block]:
        capture = iter_capture(
            file, packets=READ_AT_ONCE, compat=self._compat, threads=self._threads
        )
        self._open = capture
        try:
            for packets in capture:
                yield Block(packets.src, packets.dst, packets.time)
        finally:
            self._done = self.read()
            self._open = None
            capture.close()

    def matrices(self) -> Iterator[TrafficMatrix]:
        from matchwood.sensing.archive import read_archive

        for file in self.files:
            yield from read_archive(file)
            if isinstance(file, (str, os.PathLike)):
                self._done["bytes"] += Path(file).stat().st_size

    def read(self) -> dict[str, Any]:
        """What was read so far: packets, bytes, and what was skipped by reason."""
        found = {**self._done, "skipped": dict(self._done["skipped"])}
        if self._open is not None:
            found["packets"] += self._open.packets
            found["bytes"] += self._open.bytes
            for reason, number in self._open.skipped.items():
                found["skipped"][reason] = found["skipped"].get(reason, 0) + number
        return found


def _files(source: Any) -> list[Any]:
    if _is_file(source):
        return [source]
    if isinstance(source, (list, tuple)) and source and all(_is_file(item) for item in source):
        return list(source)
    if not (_is_pair(source) or hasattr(source, "__iter__")):
        raise TypeError(
            "sense: source must be a path, a list of paths, arrays (src, dst) or an iterator of "
            f"such blocks, got {type(source).__name__}"
        )
    return []


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


def _block(item: Any) -> Block:
    src, dst = packet_arrays("sense", item[0], item[1])
    time = item[2] if len(item) > 2 else None
    if time is not None:
        from matchwood.arguments import integers

        time = engines.moved(integers("sense", "time", time, size=src.size), "cpu")
    return Block(src, dst, time)


def _is_archive(file: Any) -> bool:
    """A tar archive says so in its first header; pipes are captures."""
    if not isinstance(file, (str, os.PathLike)) or str(file) == "-" or not Path(file).is_file():
        return False
    start, magic = TAR_MAGIC
    with Path(file).open("rb") as opened:
        return opened.read(start + len(magic))[start:] == magic
