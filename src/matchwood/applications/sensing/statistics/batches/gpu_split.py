"""Sorted links or addresses in fewer bytes, in pinned memory of the host.  Kernels: gpu.cu.

Of 8 bytes of a link 6 are left, of 4 bytes of an address 2: the upper half of a source (of the
address) is known from the place, by a table of where each upper half begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.statistics.batches.gpu_flow import Piece, address_of, pinned
from matchwood.applications.sensing.traffic import gpu as links
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("bucket_starts<K>", "split_links", "split_addresses", "unpack<K>"),
)

BUCKETS, TILE = SOURCE.constants("BUCKETS", "TILE")
HALF = 16  # bits of half an address
HEAVY = 8  # an upper half is cut where it has more than 1 / HEAVY of what a range should have


class Split(NamedTuple):
    """Sorted keys on the host."""

    starts: Any  # (BUCKETS + 1,) where each upper half begins: a row of `starts_of` all runs
    halves: Any  # uint16: lower halves, sorted where the upper half is the same
    lows: Any  # uint32: destinations of links; None for addresses
    counts: Any  # packets of links; None for one each

    @property
    def size(self) -> int:
        return int(self.halves.size)


def starts_of(runs: int) -> Any:
    """Room for where each upper half begins in each run, zeros for those that stay empty."""
    starts = pinned(runs * (BUCKETS + 1), np.int64).reshape(runs, BUCKETS + 1)
    starts[:] = 0
    return starts


def nothing(starts: Any) -> Split:
    """No keys."""
    return Split(starts, *(np.empty(0, kind) for kind in (np.uint16, np.uint32, np.int64)))


def split(keys: Any, counts: Any, out: Callable[..., Any], room: Sequence[Any]) -> Split:
    """Sorted keys on the device, sent to the host.

    `room` is pinned memory for the starts, the halves and the lows, or None where it is still to
    be taken.
    """
    n = keys.size
    k, threads = SOURCE.kernels(K=keys.dtype), min(n, links.STRIDED)
    starts = gpu.empty(BUCKETS + 1, np.int64, "traffic_statistics")
    halves = gpu.empty(n, np.uint16, "traffic_statistics")
    wide = keys.dtype.itemsize == 8
    k.bucket_starts(BUCKETS + 1, (n, keys, 48 if wide else 16, starts))
    lows = None
    if wide:
        lows = gpu.empty(n, np.uint32, "traffic_statistics")
        k.split_links(threads, (n, keys, halves, lows))
    else:
        k.split_addresses(threads, (n, keys, halves))
    return Split(
        out(starts, room[0]),
        out(halves, room[1]),
        None if lows is None else out(lows, room[2]),
        None if counts is None else out(counts),
    )


class Ranges(NamedTuple):
    """Keys of all runs, cut by their upper 32 bits."""

    marks: list[int]  # where each range begins, and 2^32
    places: Any  # (runs, ranges + 1): the same in each run
    starts: Any  # (runs, BUCKETS + 1)

    @property
    def number(self) -> int:
        return len(self.marks) - 1

    def size(self, k: int) -> int:
        return int((self.places[:, k + 1] - self.places[:, k]).sum())

    def pieces(self, k: int, arrays: Sequence[Any], addresses: Sequence[int]) -> list[Piece]:
        """Of one array of each run."""
        ends = self.places[:, k : k + 2].tolist()
        given = zip(arrays, ends, addresses, strict=True)
        return [Piece(array, start, end, address) for array, (start, end), address in given]

    def width(self, k: int) -> tuple[int, int]:
        """(the first upper half of a range, how many it has)."""
        first, last = self.marks[k] >> HALF, max(self.marks[k], self.marks[k + 1] - 1) >> HALF
        return first, last - first + 1

    def begins(self, k: int) -> Any:
        """Where each upper half of each run begins in the range, in pinned memory."""
        first, width = self.width(k)
        low, high = self.places[:, k : k + 1], self.places[:, k + 1 : k + 2]
        before = np.cumsum(high - low) - (high - low).ravel()
        table = pinned(len(low) * width, np.int64).reshape(len(low), width)
        np.clip(self.starts[:, first : first + width], low, high, out=table)
        table += before[:, None] - low
        return table.ravel()


def addresses_of(arrays: Sequence[Any]) -> list[int]:
    """For `Ranges.pieces`: asked for once, not for every piece."""
    return [address_of(array) for array in arrays]


def ranges(runs: Sequence[Split], starts: Any, parts: int) -> Ranges:
    """Ranges of about equal sizes.  No source (no destination) is in two of them."""
    total = starts.sum(axis=0)
    marks = [0]
    for part in range(1, parts):
        wanted = int(total[-1]) * part // parts
        bucket = min(int(np.searchsorted(total, wanted, "right")) - 1, BUCKETS - 1)
        below, above = int(total[bucket]), int(total[bucket + 1])
        if (above - below) * parts * HEAVY > total[-1]:
            mark = (bucket << HALF) + _cut_bucket(runs, bucket, wanted - below)
        else:
            mark = (bucket + (above - wanted < wanted - below)) << HALF
        marks.append(max(marks[-1], mark))
    marks.append(BUCKETS << HALF)
    places = [[_place(run, mark) for mark in marks] for run in runs]
    return Ranges(marks, np.array(places, np.int64), starts)


def _cut_bucket(runs: Sequence[Split], bucket: int, wanted: int) -> int:
    """The lower half before which about `wanted` keys of this upper half are."""
    parts = [run.halves[run.starts[bucket] : run.starts[bucket + 1]] for run in runs]

    def below(half: int) -> int:
        if half > 0xFFFF:
            return sum(part.size for part in parts)
        return sum(int(np.searchsorted(part, np.uint16(half))) for part in parts)

    lo, hi = 0, BUCKETS  # below(hi) >= wanted
    while lo < hi:
        middle = (lo + hi) // 2
        if below(middle) >= wanted:
            hi = middle
        else:
            lo = middle + 1
    nearer_below = lo > 0 and wanted - below(lo - 1) < below(lo) - wanted
    return lo - nearer_below


def _place(run: Split, mark: int) -> int:
    bucket, half = mark >> HALF, mark & 0xFFFF
    start = int(run.starts[bucket])
    if half == 0:
        return start
    inside = run.halves[start : run.starts[bucket + 1]]
    return start + int(np.searchsorted(inside, np.uint16(half)))


def unpacked(found: Ranges, k: int, halves: Any, lows: Any, begins: Any) -> Any:
    """Keys of range k on the device, not in order, from what was loaded."""
    first, width = found.width(k)
    keys = gpu.empty(halves.size, np.uint32 if lows is None else np.uint64, "traffic_statistics")
    SOURCE.kernels(K=keys.dtype).unpack(
        -(-halves.size // TILE) * 32,
        (halves.size, begins.size, width, first, begins, halves, lows, keys),
    )
    return keys
