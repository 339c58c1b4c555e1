"""Sorted links or addresses in fewer bytes, in pinned memory of the host.  Kernels: gpu.cu.

Of 8 bytes of a link 6 are left, of 4 bytes of an address 2: the upper half of a source (of the
address) is known from the place, by a table of where each upper half begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import gpu
from matchwood.sensing.statistics.batches.gpu_flow import Piece, pinned
from matchwood.sensing.traffic import gpu as links

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

    starts: Any  # (BUCKETS + 1,) where each upper half begins
    halves: Any  # uint16: lower halves, sorted where the upper half is the same
    lows: Any  # uint32: destinations of links; None for addresses
    counts: Any  # packets of links; None for one each

    @property
    def size(self) -> int:
        return int(self.halves.size)


def nothing() -> Split:
    """No keys."""
    kinds = (np.uint16, np.uint32, np.int64)
    return Split(np.zeros(BUCKETS + 1, np.int64), *(np.empty(0, kind) for kind in kinds))


def split(keys: Any, counts: Any, out: Callable[..., Any], room: Sequence[Any]) -> Split:
    """Sorted keys on the device, sent to the host.

    `room` is pinned memory for the halves and the lows, or None where it is still to be taken.
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
        out(starts),
        out(halves, room[0]),
        None if lows is None else out(lows, room[1]),
        None if counts is None else out(counts),
    )


class Ranges(NamedTuple):
    """Keys of all runs, cut by their upper 32 bits."""

    marks: list[int]  # where each range begins, and 2^32
    places: Any  # (runs, ranges + 1): the same in each run
    starts: list[Any]  # of each run

    @property
    def number(self) -> int:
        return len(self.marks) - 1

    def size(self, k: int) -> int:
        return int((self.places[:, k + 1] - self.places[:, k]).sum())

    def pieces(self, k: int, arrays: Sequence[Any]) -> list[Piece]:
        """Of one array of each run."""
        ends = self.places[:, k : k + 2].tolist()
        return [Piece(array, *at) for array, at in zip(arrays, ends, strict=True)]

    def width(self, k: int) -> tuple[int, int]:
        """(the first upper half of a range, how many it has)."""
        first, last = self.marks[k] >> HALF, max(self.marks[k], self.marks[k + 1] - 1) >> HALF
        return first, last - first + 1

    def begins(self, k: int) -> Any:
        """Where each upper half of each run begins in the range, in pinned memory."""
        first, width = self.width(k)
        table = pinned(len(self.starts) * width, np.int64)
        before = at = 0
        for starts, (low, high) in zip(
            self.starts, self.places[:, k : k + 2].tolist(), strict=True
        ):
            row = table[at : at + width]
            np.clip(starts[first : first + width], low, high, out=row)
            row += before - low
            before += high - low
            at += width
        return table


def ranges(runs: Sequence[Split], parts: int) -> Ranges:
    """Ranges of about equal sizes.  No source (no destination) is in two of them."""
    total = np.zeros(BUCKETS + 1, np.int64)
    for run in runs:
        total += run.starts
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
    return Ranges(marks, np.array(places, np.int64), [run.starts for run in runs])


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
