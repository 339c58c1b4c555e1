"""Packets of `sense`: their sources, how they are cut into windows, and the buffer of a chunk.

Sources are captures, archives, arrays, or an iterator of blocks of arrays.

Windows hold a fixed number of packets or a fixed time.  By time, window k holds the packets from k
to k + 1 lengths after the first packet.  Packets keep their order: one that is older than the
window that is open counts there.  Windows without packets are left out.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.anonymity import Anonymizer
from matchwood.applications.sensing.archive import read_archive
from matchwood.applications.sensing.archive.files import TAR_BLOCK, archive_files, is_archive
from matchwood.applications.sensing.capture import Capture
from matchwood.applications.sensing.capture.reading import Options as Reading
from matchwood.applications.sensing.capture.sources import compression_of
from matchwood.applications.sensing.packets import (
    AddressTable,
    Packets,
    addresses_of,
    elements,
    packet_arrays,
    wide_addresses,
)
from matchwood.applications.sensing.traffic import TrafficMatrix
from matchwood.arguments import at_most, count, integers, path, same_size, shown
from matchwood.engines.cpu import crew
from matchwood.io.files import Damaged, unpacked

MATRIX_SUFFIX = ".grb"  # of a file that is one matrix, as `read_archive` takes it
PIECE = 1 << 16  # bytes read to tell an archive from a capture
EXPECTED = "a path, a list of paths, arrays (src, dst) or an iterator of such blocks"
READ_AT_ONCE = 1 << 20  # packets
CHUNK = 1 << 23  # packets that are worked on at once, as in an archive of 64 windows of 2^17
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_TEXT = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*(ns|us|ms|s|min|h)\s*")
LONGEST = 1 << 62  # nanoseconds, or packets


class Block(NamedTuple):
    """Some packets; `time` in nanoseconds, or None where there is none."""

    src: Any
    dst: Any
    time: Any


class Source:
    """Blocks of packets or, of an archive, matrices; and what was read so far."""

    def __init__(
        self, source: Any, reading: Reading, threads: int | None,
        addresses: AddressTable | None = None,
    ) -> None:  # fmt: skip
        self._reading, self._threads = reading, threads
        self.addresses = addresses  # of IPv6
        self._given = source
        self._open: Capture | None = None
        self._done: dict[str, Any] = {"packets": 0, "bytes": 0, "skipped": {}}
        self.files: list[Any] = _files(source)
        archives = [_is_archive(file) for file in self.files]
        if any(archives) and not all(archives):
            raise TypeError("sense: source must be captures or archives, got both")
        self.has_matrices = bool(archives) and all(archives)
        self.whole = not self.files and _is_pair(source)  # arrays given whole
        self.engine = "cpu"  # where the packets live
        if self.whole:
            self.engine = engines.location(source[0])
        elif not self.files:
            self._look_at_first(elements("sense", "source", source, EXPECTED))

    def _look_at_first(self, blocks: Iterator[Any]) -> None:
        """Read from the first block on which engine the packets are."""
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
            yield self._block(self._given)
        else:
            for item in self._given:
                yield self._block(item, "source must give blocks")

    def _block(self, item: Any, *wanted: str) -> Block:
        """Arrays that were given; those of IPv6 with numbers in the place of addresses."""
        if self.addresses is not None and _is_pair(item):
            wide = [wide_addresses("sense", addresses) for addresses in item[:2]]
            same_size("sense", "dst", wide[1], "src", wide[0])
            numbers = self.addresses.numbers(np.stack(wide, axis=1).reshape(-1, 2))
            item = (numbers[::2].copy(), numbers[1::2].copy(), *item[2:])
        return packet_block("sense", item, *wanted)

    def _capture(self, file: Any) -> Iterator[Block]:
        capture = Capture(
            "sense", file, READ_AT_ONCE, self._reading, self._threads, reuse=True,
            addresses=self.addresses,
        )  # fmt: skip
        self._open = capture
        try:
            for packets in capture:
                yield Block(packets.src, packets.dst, packets.time)
        finally:
            self._done = self.read()
            self._open = None
            capture.close()

    def matrices(self) -> Iterator[TrafficMatrix]:
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
    """The size of an archive, or of all archives of a folder."""
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


def anonymized(caller: str, anonymizer: Any, addresses: Any, threads: int | None = None) -> Any:
    """The addresses that `anonymizer` returns, checked: the object may be the user's."""
    ours = {"threads": threads} if isinstance(anonymizer, Anonymizer) else {}
    changed = addresses_of(caller, "anonymize", anonymizer.apply(addresses, **ours))
    same_size(caller, "anonymize", changed, "the addresses it was given", addresses)
    return changed


def _is_archive(file: Any) -> bool:
    """Whether it is a folder, a tar archive or a single matrix (.grb); a pipe holds a capture."""
    if not isinstance(file, (str, os.PathLike)) or str(file) == "-":
        return False
    path = Path(file)
    if path.is_dir():
        return bool(archive_files(path))
    if not path.is_file():
        return False
    return path.suffix == MATRIX_SUFFIX or is_archive(_beginning(path))


def _beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked; fewer where it is damaged."""
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
                if len(found) >= TAR_BLOCK:
                    break
    return found


# Windows


class PacketWindows:
    """Windows of `size` packets."""

    by_time = False

    def __init__(self, size: int) -> None:
        self.size = size

    def cuts(self, packets: int, time: Any, last: bool) -> tuple[Any, bool]:
        """Where windows begin and end, and whether the last of them is complete.

        All but a `last` call leave out a window that is not complete.
        """
        whole = packets // self.size
        ends = np.arange(whole + 1, dtype=np.int64) * self.size
        if not last or whole * self.size == packets:
            return ends, True
        return np.append(ends, packets), False


class TimeWindows:
    """Windows of `length` nanoseconds."""

    by_time = True

    def __init__(self, length: int) -> None:
        self.length = length
        self._origin: int | None = None
        self._open = np.uint64(0)  # the window that is open: earlier ones are closed

    def cuts(self, packets: int, time: Any, last: bool) -> tuple[Any, bool]:
        if packets == 0:
            return np.zeros(1, np.int64), True
        if self._origin is None:
            self._origin = int(time[0])
        window = self._numbers(time)
        starts = np.flatnonzero(np.append(True, window[1:] != window[:-1]))
        self._open = window[-1]
        if last:
            return np.append(starts, packets), False
        return starts, True  # the last packet's window stays open

    def _numbers(self, time: Any) -> Any:
        """The window of each packet.  Differences of times need 64 bits without a sign."""
        assert self._origin is not None
        since = time.view(np.uint64) - np.int64(self._origin).view(np.uint64)
        since[time < self._origin] = 0  # older than the first packet: counts in the open window
        window = since // np.uint64(self.length)
        return np.maximum(np.maximum.accumulate(window), self._open)


def parse_window(caller: str, window: Any) -> PacketWindows | TimeWindows:
    """`window` is a number of packets, or a text such as "10s" or "500 ms"."""
    if not isinstance(window, str):
        size = count(caller, "window", window, 1)
        return PacketWindows(at_most(caller, "window", size, LONGEST, "packets of a window"))
    match = _TEXT.fullmatch(window)
    if match is None:
        units = ", ".join(UNITS)
        raise ValueError(
            f"{caller}: window must be a number of packets or a time such as '10s' ({units}), "
            f"got {shown(window)}"
        )
    whole, _, fraction = match[1].partition(".")
    unit = UNITS[match[2]]
    length = int(whole) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
    if not 0 < length < LONGEST:
        raise ValueError(f"{caller}: window must be a time of at least 1 ns, got {shown(window)}")
    return TimeWindows(length)


# A chunk that is filled block by block


class Buffer:
    """Memory for a chunk, and in turns for `ahead` more that are worked on meanwhile."""

    def __init__(self, size: int, threads: int | None, ahead: int = 0) -> None:
        self._limit, self._threads = size, threads
        self._arrays: list[Any] = [None, None, None, None]  # src, dst, time, pairs
        self._others = deque([None, None, None, None] for _ in range(ahead))
        self._used = 0
        self.counted = 0

    @property
    def is_full(self) -> bool:
        return self._used == self._limit

    def fill(self, block: Block, pairs: Any, at: int) -> int:
        """Take packets of the block from `at` on; returns where it stopped."""
        count = min(self._limit - self._used, block.src.size - at)
        for k, given in enumerate((*block, pairs)):
            if given is None:
                continue
            array = self._arrays[k] = self._with_room(self._arrays[k], given, self._used + count)
            self._copy(given[at : at + count], array[self._used : self._used + count])
        self._used += count
        return at + count

    def _with_room(self, array: Any, given: Any, needed: int) -> Any:
        """`array`, or a larger copy with room for `needed` packets, at most a chunk."""
        if array is not None and array.size >= needed:
            return array
        size = min(self._limit, max(CHUNK, 2 * needed))
        larger = engines.xp(given).empty(size, given.dtype)
        if array is not None:
            larger[: self._used] = array[: self._used]
        return larger

    def _copy(self, given: Any, goal: Any) -> None:
        """Copy by all members: most of the goal is untouched memory, cleared page by page."""
        if engines.location(goal) == "gpu":
            goal[:] = given
            return
        team = crew(self._threads, work=goal.size)
        each = -(-goal.size // team.size)
        parts = [slice(k * each, (k + 1) * each) for k in range(team.size)]
        team.spread(lambda k: np.copyto(goal[parts[k]], given[parts[k]]), len(parts))

    def filled(self) -> tuple[Block, Any]:
        parts = [None if array is None else array[: self._used] for array in self._arrays]
        if parts[0] is None:
            parts[0] = parts[1] = np.empty(0, np.uint32)
        return Block(*parts[:3]), parts[3]

    def keep_from(self, start: int) -> None:
        """Move the packets from `start` on to the front.  A full chunk that keeps all grows.

        With several in turns they move to the next one; this one may be read until its turn.
        """
        left = self._used - start
        if left == self._limit:
            self._limit *= 2
        if self._others and start:
            kept = [None if x is None else x[start : self._used] for x in self._arrays]
            self._others.append(self._arrays)
            self._arrays = self._others.popleft()
            self._used = 0
            for k, given in enumerate(kept):
                if given is not None:
                    array = self._arrays[k] = self._with_room(self._arrays[k], given, left)
                    array[:left] = given
        elif start:
            for array in self._arrays:
                if array is not None and left:
                    array[:left] = array[start : self._used].copy()
        self._used = left
