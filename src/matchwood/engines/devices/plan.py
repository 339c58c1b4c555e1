"""Which rows go where, and whether it all fits: partitions, batches and lists, before any work.

Partitions are ranges of vertices with about the same number of entries, found by binary search in
`indptr`.  The entries of a partition are cut into batches of the same size: a batch may begin and
end within a row, so a row longer than a buffer needs no other treatment than any row.

All memory is counted: arrays for every vertex, arrays for the vertices of the partition, lists, two
buffers.  The lists get what is left, up to a length beyond which they gain little.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.devices.cpu import count_degrees
from matchwood.engines.devices.machine import ALIGNMENT, LONGEST_LIST, Devices
from matchwood.errors import OutOfMemory

Array = np.ndarray[Any, Any]

USUAL_LIST = 16  # edges; with 16, 3 to 4 % of a graph travel twice, and half of that with 32
MOST_BATCHES = 64  # of a partition, before its lists are made shorter
LEAST_CAPACITY = 1 << 10  # the fewest entries of a buffer
LEAST_ROWS = 1 << 10  # the fewest rows of a buffer
SCAN_PART = 8  # a prefix sum over n numbers takes n / SCAN_PART bytes of scratch at most


def vertex_type(n: int) -> Any:
    """The type of a vertex on a device; columns travel in it."""
    return np.dtype(np.int32 if n < 1 << 31 else np.int64)


class Sizes(NamedTuple):
    """Bytes that a problem needs on a device."""

    every: int  # for each vertex of the graph
    own: int  # for each vertex of the partition
    listed: int  # for each entry of a list
    streamed: int  # for each entry of a buffer
    row: int  # for each row of a buffer
    fixed: int  # whatever the graph
    arrays: int  # how many arrays; each is rounded up

    def of(self, n: int, vertices: int, listed: int, buffers: int, buffer: Buffer) -> int:
        """The most bytes that a partition takes."""
        one = self.streamed * buffer.entries + self.row * (buffer.rows + 1)
        lists = self.listed * listed
        return (
            self.every * n + self.own * (vertices + 1) + lists + buffers * one
            + self.fixed + ALIGNMENT * self.arrays
        )  # fmt: skip


class Buffer(NamedTuple):
    """What fits into a buffer."""

    entries: int
    rows: int


class Partition(NamedTuple):
    """The vertices of a device, lo to hi - 1, and their entries, first to last - 1."""

    lo: int
    hi: int
    first: int
    last: int

    @property
    def vertices(self) -> int:
        return self.hi - self.lo

    @property
    def entries(self) -> int:
        return self.last - self.first


class Batch(NamedTuple):
    """Entries first to last - 1, of the rows lo to hi - 1; the rows at both ends may be cut."""

    lo: int
    hi: int
    first: int
    last: int


@dataclass(frozen=True)
class Plan:
    """How a graph passes through the devices."""

    n: int
    partitions: list[Partition]
    batches: list[list[Batch]]
    buffers: list[int]  # 1 where a partition is one batch, else 2
    buffer: list[Buffer]
    length: int  # edges of a list at most
    listed: list[int]  # entries of all lists of a partition
    needs: list[int]  # bytes of each partition, at most
    resident: bool = False  # the only batch stays in its buffer
    notes: list[str] = field(default_factory=list)


def make_plan(
    caller: str,
    indptr: Array,
    devices: Devices,
    sizes: Sizes,
    limits: list[int],
    keep: Any = None,
    *,
    resident_list: int = USUAL_LIST,
) -> Plan:
    """The plan of a graph; `OutOfMemory`, naming what would do, where it cannot fit.

    `resident_list`: the length of lists where all rows stay on the devices.
    """
    n = indptr.size - 1
    partitions = cut_partitions(indptr, devices.size)
    degrees = _degrees(indptr, partitions, keep)
    planner = _Planner(n, indptr, devices, sizes, limits, partitions, degrees)
    if planner.free:
        found = planner.try_length(resident_list, [part.entries for part in partitions])
        if found is not None:
            return found
    least_batches = [planner.least_buffer(p, MOST_BATCHES) for p in range(devices.size)]
    least = [planner.least_buffer(p, None) for p in range(devices.size)]
    for wanted in (least_batches, least):
        for length in planner.lengths():
            found = planner.try_length(length, wanted)
            if found is not None:
                return found
    raise planner.too_small(caller, least)


def _degrees(indptr: Array, partitions: list[Partition], keep: Any) -> list[Array]:
    """The degrees of each partition, counted; a prepared Graph keeps those of one of its views."""

    def make() -> tuple[Array, list[Array]]:
        rows = [indptr[part.lo : part.hi + 1] for part in partitions]
        return indptr, [count_degrees(own, LONGEST_LIST + 1) for own in rows]

    if keep is not None:
        of, found = keep(f"degrees of {len(partitions)} partitions", make)
        if of is indptr:
            return list(found)
    return make()[1]


def cut_partitions(indptr: Array, parts: int) -> list[Partition]:
    """Ranges of vertices with about the same number of entries each; some may be empty."""
    n = indptr.size - 1
    first, last = int(indptr[0]), int(indptr[-1])
    if first == last:
        ends = [n * j // parts for j in range(parts + 1)]
    else:
        targets = [first + (last - first) * j // parts for j in range(1, parts)]
        inner = np.searchsorted(indptr, np.array(targets, indptr.dtype))
        ends = [0, *(int(v) for v in inner), n]
    return [
        Partition(lo, hi, int(indptr[lo]), int(indptr[hi])) for lo, hi in itertools.pairwise(ends)
    ]


def cut_batches(indptr: Array, part: Partition, count: int, buffer: Buffer) -> list[Batch]:
    """The entries of a partition in `count` batches of the same size.

    Where a batch would have more rows than the buffer, because many are empty, it is cut again.
    """
    if part.entries == 0:
        return []
    bounds = [part.first + part.entries * j // count for j in range(count + 1)]
    places = np.array(bounds, indptr.dtype)  # looked for one by one, three times as long
    rows = np.searchsorted(indptr, places[:-1], side="right") - 1
    ends = np.searchsorted(indptr, places[1:], side="left")
    found = []
    for first, last, row, end in zip(
        bounds[:-1], bounds[1:], rows.tolist(), ends.tolist(), strict=True
    ):
        if end - row <= buffer.rows and first < last:
            found.append(Batch(row, end, first, last))
            continue
        while first < last:
            row, end = _rows_of(indptr, first, last)
            upto = min(last, int(indptr[min(row + buffer.rows, end)]))
            found.append(Batch(*_rows_of(indptr, first, upto), first, upto))
            first = upto
    return found


def cut_pieces(indptr: Array, batch: Batch, entries: int) -> list[Batch]:
    """A batch in equal pieces of about `entries` entries: one is read while the next travels."""
    size = batch.last - batch.first
    count = max(1, round(size / entries))
    ends = [batch.first + size * j // count for j in range(count + 1)]
    return [Batch(*_rows_of(indptr, *pair), *pair) for pair in itertools.pairwise(ends)]


def _rows_of(offsets: Array, first: int, last: int) -> tuple[int, int]:
    """The row of the entry `first`, and the row after that of the entry last - 1."""
    kind = offsets.dtype.type
    row = int(np.searchsorted(offsets, kind(first), side="right")) - 1
    return row, int(np.searchsorted(offsets, kind(last), side="left"))


def listed_entries(counts: Array, length: int) -> int:
    """Entries of lists of at most `length`, one for each vertex that was counted."""
    return int((counts * np.minimum(np.arange(counts.size), length)).sum())


def cut_rows(offsets: Array, buffer: Buffer) -> list[tuple[int, int, int, int]]:
    """Rows that are fetched, in groups that fit: (row, next row, entry, next entry) of each.

    `offsets` are where the rows begin when they lie one after the other.  Rows may be cut.
    """
    found, total, entry = [], int(offsets[-1]), 0
    while entry < total:
        last = min(entry + buffer.entries, total)
        row, stop = _rows_of(offsets, entry, last)
        last = min(last, int(offsets[min(stop, row + buffer.rows)]))
        found.append((*_rows_of(offsets, entry, last), entry, last))
        entry = last
    return found


def in_words(nbytes: int) -> str:
    """Bytes as a person writes them, never less than they are."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{-(-nbytes * 100 // size) / 100:g} {unit}"
    return f"{nbytes} bytes"


class _Planner:
    """Tries lengths of lists until all partitions fit."""

    def __init__(
        self, n: int, indptr: Array, devices: Devices, sizes: Sizes, limits: list[int],
        partitions: list[Partition], degrees: list[Array],
    ) -> None:  # fmt: skip
        self.n, self.indptr, self.devices, self.sizes = n, indptr, devices, sizes
        self.limits, self.partitions, self.degrees = limits, partitions, degrees
        self.free = devices.batches is None and devices.lists == "auto"
        self.notes: list[str] = []
        self.asked = [self._asked_batches(part) for part in partitions]

    def _asked_batches(self, part: Partition) -> int | None:
        if self.devices.batches is None:
            return None
        most = max(1, min(part.vertices, part.entries))
        if self.devices.batches > most:
            self.notes.append(
                f"{most} batches instead of {self.devices.batches}: the partition of vertex "
                f"{part.lo} has {part.vertices} vertices and {part.entries} entries"
            )
        return min(self.devices.batches, most)

    def lengths(self) -> range | tuple[int, ...]:
        """Lengths of lists to try; lists=0 keeps the pointer alone."""
        if self.devices.lists == "auto":
            return range(USUAL_LIST, 0, -1)
        return (max(1, self.devices.lists),)

    def least_buffer(self, p: int, batches: int | None) -> int:
        """The fewest entries of a buffer for which there are at most `batches` batches."""
        entries = self.partitions[p].entries
        asked = self.asked[p]
        if asked is not None:
            return -(-entries // asked)
        share = 0 if batches is None else -(-entries // batches)
        return min(entries, max(LEAST_CAPACITY, share))

    def _buffer(self, p: int, entries: int) -> Buffer:
        """A buffer for `entries` entries, and for twice the rows that these have on average."""
        part = self.partitions[p]
        usual = 2 * entries * part.vertices // max(1, part.entries)
        return Buffer(entries, min(part.vertices, max(LEAST_ROWS, usual)))

    def _need(self, p: int, length: int, entries: int) -> int:
        part = self.partitions[p]
        listed = listed_entries(self.degrees[p], length)
        buffers = 1 if entries >= part.entries else 2
        return self.sizes.of(self.n, part.vertices, listed, buffers, self._buffer(p, entries))

    def _capacity(self, p: int, length: int) -> int:
        """The most entries of a buffer that the memory allows; 0 where none is left."""
        part = self.partitions[p]
        if self._need(p, length, part.entries) <= self.limits[p]:
            return part.entries
        without = self._need(p, length, 0) + 2 * self.sizes.row * (LEAST_ROWS + 1)
        rows_of_entry = 2 * part.vertices / max(1, part.entries)
        each = (self.limits[p] - without) / 2
        return max(0, int(each / (self.sizes.streamed + self.sizes.row * rows_of_entry)))

    def try_length(self, length: int, least: list[int]) -> Plan | None:
        """The plan with lists of that length; None where a partition does not fit."""
        batches, buffers, kept = [], [], []
        for p, part in enumerate(self.partitions):
            asked = self.asked[p]
            entries = least[p] if asked is not None else max(least[p], self._capacity(p, length))
            if self._need(p, length, entries) > self.limits[p]:
                return None
            buffer = self._buffer(p, entries)
            count = asked if asked is not None else -(-part.entries // max(1, entries))
            batches.append(cut_batches(self.indptr, part, count, buffer))
            buffers.append(buffer)
            kept.append(1 if entries >= part.entries else 2)
        whole = all(number == 1 for number in kept)
        return Plan(
            self.n, self.partitions, batches, kept, buffers, length,
            [listed_entries(counts, length) for counts in self.degrees],
            [self._need(p, length, one.entries) for p, one in enumerate(buffers)],
            resident=whole and self.free, notes=self.notes,
        )  # fmt: skip

    def _least(self, p: int, length: int, entries: int) -> int:
        """Bytes with the smallest buffers; one buffer for all may be less than two small ones."""
        least = self._need(p, length, entries)
        if self.asked[p] is not None:
            return least
        return min(least, self._need(p, length, self.partitions[p].entries))

    def too_small(self, caller: str, least: list[int]) -> OutOfMemory:
        """The error that names the least memory that would do."""
        length = min(self.lengths())
        needs = [self._least(p, length, least[p]) for p in range(len(self.partitions))]
        worst = max(range(len(needs)), key=lambda p: needs[p] - self.limits[p])
        return OutOfMemory(
            f"{caller}: memory of at least {max(needs):,} bytes ({in_words(max(needs))}) would do "
            f"for each of {len(needs)} partitions, {self.limits[worst]:,} are there; nothing was "
            "sent to a device"
        )
