"""Statistics of more packets than fit into a device, on one device or several.

Three rounds of parts; in each, a part is copied in while the one before is worked on and the one
before that is copied out:

1. parts of the packets: sorted as links, copied to the host;
2. ranges of sources, of all parts: links and sources are counted; the sorted destinations of
   links are copied to the host, with the packets of links that have several;
3. ranges of destinations, of all ranges of sources: destinations are counted.

Of n packets on links that differ, 8 n bytes are copied in by the first round, 6 n by the second
and 2 n by the third (see Split); 6 n and 2 n bytes go out meanwhile.

One copy alone is not enough: n sorted random links hold 64 - log2(n) + 1.4 bits of information
each, 4.4 bytes where n is 2^30.  A device with room for 2 n bytes must send out 2.4 n of them and
read them again, so at least 10.4 n bytes are copied in, 1.3 times the packets.

KeyRanges are cut at sources and destinations, and all is integers, so the answer does not depend on
the numbers of batches and devices.

The host keeps sorted links and addresses in fewer bytes, in pinned memory.  Of 8 bytes of a link 6
are left, of 4 bytes of an address 2: the upper half of a source (of the address) is known from the
place, by a table of where each upper half begins.

Each device has its own thread, since a sort waits for its device, and three streams.  Memory of a
device is one block, the arena, from which arrays are allocated without the driver: a call takes and
frees the same few arrays for every part.  CuPy's pool keeps memory for each stream apart, and
streams of a call are new, so each array would be requested from the driver, which takes longer than
a small part's work.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics.result import (
    EXTREMES,
    NAMES,
    PLACE,
    Statistics,
    combined,
)
from matchwood.applications.sensing.traffic import gpu as links
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__, "kernels.cu", ("bucket_starts<K>", "split_links", "split_addresses", "unpack<K>")
)

BUCKETS, TILE = SOURCE.constants("BUCKETS", "TILE")
HALF_BITS = 16  # bits of half an address
HEAVY = 8  # an upper half is cut where it has more than 1 / HEAVY of what a range should have
FEWER = 2  # a part is sent back as links with counts where it has this many times fewer links
LEAST = 1 << 20  # packets of a part, at least, where there are more parts than lanes
TAKEN = 48  # bytes of a device for each packet of a part, about
SPARE = 1 << 16  # packets of extra room for a part
TAKEN_BY_LINK = 96  # bytes of a device for each link with a count
TAKEN_BY_DESTINATION = 32  # bytes of a device for each link of a destination
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
ROUND = 512  # bytes: the arena allocates multiples of this
SLACK = 16  # a buffer is made 1/16 larger, so that parts of about its size fit too


# Jobs on devices


class _Lent:
    """Bytes of an arena, freed when the last array in them is gone."""

    def __init__(self, arena: Arena, start: int, nbytes: int) -> None:
        self._arena, self._start, self._nbytes = arena, start, nbytes

    def __del__(self) -> None:
        self._arena.back(self._start, self._nbytes)


class Arena:
    """Allocates arrays for one stream; from CuPy's pool where it has no room left."""

    def __init__(self, nbytes: int, what: str) -> None:
        fits = 0 < nbytes <= gpu.free_bytes()
        self._slab: Any = gpu.empty(nbytes, np.uint8, what) if fits else None
        self._free = [] if self._slab is None else [(0, nbytes // ROUND * ROUND)]  # (start, bytes)
        self.overflowed = False  # the pool was used

    def malloc(self, nbytes: int) -> Any:
        """An allocator for CuPy."""
        cupy = engines.cupy()
        wanted = -(-nbytes // ROUND) * ROUND
        for place, (start, size) in enumerate(self._free):
            if size >= wanted > 0:
                if size == wanted:
                    del self._free[place]
                else:
                    self._free[place] = (start + wanted, size - wanted)
                memory = cupy.cuda.UnownedMemory(
                    self._slab.data.ptr + start, wanted, _Lent(self, start, wanted),
                    self._slab.device.id,
                )  # fmt: skip
                return cupy.cuda.MemoryPointer(memory, 0)
        self.overflowed = self.overflowed or nbytes > 0
        return cupy.get_default_memory_pool().malloc(nbytes)

    def back(self, start: int, nbytes: int) -> None:
        """Free bytes, and merge them with free neighbours."""
        place = bisect.bisect(self._free, (start, nbytes))
        if place < len(self._free) and self._free[place][0] == start + nbytes:
            nbytes += self._free.pop(place)[1]
        if place > 0 and sum(self._free[place - 1]) == start:
            start, before = self._free[place - 1]
            self._free[place - 1] = (start, before + nbytes)
        else:
            self._free.insert(place, (start, nbytes))


class Piece(NamedTuple):
    """Part of an array, on the host as a rule."""

    array: Any
    start: int
    end: int
    address: int | None = None  # of the array, where it is known


Pieces = Callable[[Any], list[list[Piece]]]


class Lane:
    """A device with its streams, memory to work in, and two sets of buffers that are used in turn.

    `nbytes` is about what a job takes; a larger job works too.
    """

    def __init__(self, device: int, nbytes: int) -> None:
        cupy = engines.cupy()
        self.device = cupy.cuda.Device(device)
        with self.device:
            self.main, self.inward, self.outward = (
                cupy.cuda.Stream(non_blocking=True) for _ in range(3)
            )
            self._arena = Arena(nbytes, "traffic_statistics")
            self.device.synchronize()  # earlier users of this memory, and what makes the packets
        self._buffers: tuple[dict[int, Any], ...] = ({}, {})
        self._read: list[Any] = [None, None]  # when the buffers may be written to again
        self._loading: list[Any] = [None, None]  # host arrays, kept until they are copied
        self._sent: list[tuple[Any, Any]] = []  # arrays that this job copies out, with their event
        self._sent_before: list[tuple[Any, Any]] = []  # those of the job before it

    def flow(self, jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]) -> None:
        """Work on jobs in order; see `shared_out`."""
        cupy = engines.cupy()
        with self.device, self.main, cupy.cuda.using_allocator(self._arena.malloc):
            try:
                self._flow(jobs, pieces, work)
            finally:  # also after an error: memory must not be given back while it is written
                for stream in (self.main, self.inward, self.outward):
                    stream.synchronize()
                self._sent, self._sent_before, self._buffers = [], [], ({}, {})
                self._read, self._loading = [None, None], [None, None]
                if self._arena.overflowed:
                    cupy.get_default_memory_pool().free_all_blocks(stream=self.main)

    def _flow(self, jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]) -> None:
        following: list[Any] = []

        def load(k: int) -> None:
            if not following and k < len(jobs):
                following.append(self._load(pieces(jobs[k]), k % 2))

        load(0)
        k = 0
        while k < len(jobs):
            arrays, loaded = following.pop()
            self.main.wait_event(loaded)

            def loaded_is_read(k: int = k) -> None:
                self._read[k % 2] = self.main.record()
                load(k + 1)

            work(jobs[k], arrays, self.out, loaded_is_read)
            if not following:
                loaded_is_read()
            for _, until in self._sent_before:
                until.synchronize()
            self._sent_before, self._sent = self._sent, []
            k += 1

    def _load(self, lists: list[list[Piece]], turn: int) -> tuple[list[Any], Any]:
        """The arrays of a job, each put together from pieces, and the event of their arrival."""
        arrays = [self._buffer(parts, turn, number) for number, parts in enumerate(lists)]
        if self._read[turn] is not None:
            self.inward.wait_event(self._read[turn])
        runtime, stream = engines.cupy().cuda.runtime, self.inward.ptr
        copy, kind = runtime.memcpyAsync, runtime.memcpyDefault
        for array, parts in zip(arrays, lists, strict=True):
            at, each = int(array.data.ptr), array.itemsize
            for given, start, end, address in parts:
                if end > start:  # there are many, and the device may wait for them
                    source = address_of(given) if address is None else address
                    nbytes = (end - start) * each
                    copy(at, source + start * each, nbytes, kind, stream)
                    at += nbytes
        self._loading[turn] = lists
        return arrays, self.inward.record()

    def _buffer(self, parts: list[Piece], turn: int, number: int) -> Any:
        kind = parts[0].array.dtype if parts else np.dtype(np.uint32)
        size = sum(piece.end - piece.start for piece in parts)
        buffer = self._buffers[turn].get(number)
        if buffer is None or buffer.nbytes < size * kind.itemsize:
            self._buffers[turn].pop(number, None)
            nbytes = (size + size // SLACK) * kind.itemsize // 8 * 8 + 8
            buffer = gpu.empty(nbytes, np.uint8, "traffic_statistics")
            self._buffers[turn][number] = buffer
            # the memory may have been another array's, which kernels under way still read
            self._read[turn] = self.main.record()
        return buffer[: size * kind.itemsize].view(kind)

    def out(self, array: Any, host: Any = None) -> Any:
        """A copy in pinned memory of the host, which is filled when `flow` ends."""
        host = pinned(array.size, array.dtype) if host is None else host[: array.size]
        self.outward.wait_event(self.main.record())
        if array.nbytes:
            runtime = engines.cupy().cuda.runtime
            runtime.memcpyAsync(
                host.ctypes.data, array.data.ptr, array.nbytes, runtime.memcpyDefault,
                self.outward.ptr,
            )  # fmt: skip
        self._sent.append((array, self.outward.record()))
        return host


def pinned(size: int, kind: Any) -> Any:
    """Pinned memory of the host, which a device copies from and to asynchronously."""
    import cupyx

    return cupyx.empty_pinned(size, kind) if size else np.empty(0, kind)


def address_of(array: Any) -> int:
    return int(array.data.ptr if engines.location(array) == "gpu" else array.ctypes.data)


class _Stoppable(Sequence[Any]):
    """Jobs that end when another device has failed, or on Ctrl-C."""

    def __init__(self, jobs: Sequence[Any], stop: threading.Event) -> None:
        self._jobs, self._stop = jobs, stop

    def __len__(self) -> int:
        return 0 if self._stop.is_set() else len(self._jobs)

    def __getitem__(self, k: Any) -> Any:
        return self._jobs[k]


def shared_out(
    lanes: list[Lane], jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]
) -> None:
    """Distribute jobs over the lanes; the first error is raised.

    `pieces(job)` are the arrays to load; `work(job, arrays, out, read)` gets them on the device,
    and may copy back by `out(array)`.  It may call `read()` once all that reads them is launched:
    then the next job's arrays are loaded; else that happens when it returns.
    """
    stop = threading.Event()
    if len(lanes) == 1:
        lanes[0].flow(jobs, pieces, work)
        return
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            under_way = [
                pool.submit(lane.flow, _Stoppable(jobs[k :: len(lanes)], stop), pieces, work)
                for k, lane in enumerate(lanes)
            ]
            for one in under_way:
                one.result()
        finally:
            stop.set()


# Sorted keys in fewer bytes


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
    """A table of where each upper half begins in each run, zero for runs that stay empty."""
    starts = pinned(runs * (BUCKETS + 1), np.int64).reshape(runs, BUCKETS + 1)
    starts[:] = 0
    return starts


def nothing(starts: Any) -> Split:
    """No keys."""
    return Split(starts, *(np.empty(0, kind) for kind in (np.uint16, np.uint32, np.int64)))


def split(keys: Any, counts: Any, out: Callable[..., Any], room: Sequence[Any]) -> Split:
    """Copy sorted keys from the device to the host.

    `room` is pinned memory for the starts, the halves and the lows; None is allocated here.
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


class KeyRanges(NamedTuple):
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
        """The pieces of range k, from one array of each run."""
        ends = self.places[:, k : k + 2].tolist()
        given = zip(arrays, ends, addresses, strict=True)
        return [Piece(array, start, end, address) for array, (start, end), address in given]

    def width(self, k: int) -> tuple[int, int]:
        """(the first upper half of a range, how many it has)."""
        first, last = (
            self.marks[k] >> HALF_BITS,
            max(self.marks[k], self.marks[k + 1] - 1) >> HALF_BITS,
        )
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
    """For `KeyRanges.pieces`: read once, not for every piece."""
    return [address_of(array) for array in arrays]


def ranges(runs: Sequence[Split], starts: Any, parts: int) -> KeyRanges:
    """KeyRanges of about equal sizes.  No source (no destination) is in two of them."""
    total = starts.sum(axis=0)
    marks = [0]
    for part in range(1, parts):
        wanted = int(total[-1]) * part // parts
        bucket = min(int(np.searchsorted(total, wanted, "right")) - 1, BUCKETS - 1)
        below, above = int(total[bucket]), int(total[bucket + 1])
        if (above - below) * parts * HEAVY > total[-1]:
            mark = (bucket << HALF_BITS) + _cut_bucket(runs, bucket, wanted - below)
        else:
            mark = (bucket + (above - wanted < wanted - below)) << HALF_BITS
        marks.append(max(marks[-1], mark))
    marks.append(BUCKETS << HALF_BITS)
    places = [[_place(run, mark) for mark in marks] for run in runs]
    return KeyRanges(marks, np.array(places, np.int64), starts)


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
    bucket, half = mark >> HALF_BITS, mark & 0xFFFF
    start = int(run.starts[bucket])
    if half == 0:
        return start
    inside = run.halves[start : run.starts[bucket + 1]]
    return start + int(np.searchsorted(inside, np.uint16(half)))


def unpacked(found: KeyRanges, k: int, halves: Any, lows: Any, begins: Any) -> Any:
    """Keys of range k on the device, not in order, from what was loaded."""
    first, width = found.width(k)
    keys = gpu.empty(halves.size, np.uint32 if lows is None else np.uint64, "traffic_statistics")
    SOURCE.kernels(K=keys.dtype).unpack(
        -(-halves.size // TILE) * 32,
        (halves.size, begins.size, width, first, begins, halves, lows, keys),
    )
    return keys


# The rounds


def batched_statistics(
    src: Any, dst: Any, batches: int, devices: Any, *, threads: int | None = None
) -> Statistics:
    """See matchwood.applications.sensing.statistics.traffic_statistics."""
    if src.size == 0:
        return Statistics()
    cupy = engines.cupy()
    shared = devices or (int(cupy.cuda.runtime.getDevice()),)
    parts = max(len(shared), min(batches * len(shared), src.size // LEAST))
    if engines.location(src) == "gpu":
        cupy.cuda.get_current_stream().synchronize()  # the packets may still be being copied
    room = TAKEN * (-(-src.size // parts) + SPARE)
    with gpu.guard("traffic_statistics"):
        lanes = [Lane(device, room) for device in shared]
        runs, starts = _sorted_parts(src, dst, parts, lanes)
        table, sides, starts = _source_ranges(runs, starts, room, lanes)
        del runs
        return combined(np.concatenate([table, _destination_ranges(sides, starts, room, lanes)]))


def _number(entries: int, each: int, room: int, lanes: list[Lane]) -> int:
    """The number of ranges: each fits into `room` with `each` bytes an entry, each lane has one."""
    return max(len(lanes), -(-entries * each // room))


def _sorted_parts(src: Any, dst: Any, parts: int, lanes: list[Lane]) -> tuple[list[Split], Any]:
    """Round 1: sorted packets of each part, and where each upper half of a source begins."""
    bounds = [src.size * k // parts for k in range(parts + 1)]
    starts = starts_of(parts)
    runs: list[Any] = [nothing(row) for row in starts]
    kind = links.place_type(max(np.diff(bounds)) + 1)  # of the packets of a link
    room: list[Any] = []  # for packets that are not counted by links

    def pieces(k: int) -> list[list[Piece]]:
        return [[Piece(array, bounds[k], bounds[k + 1])] for array in (src, dst)]

    fewer: list[bool] = []  # parts are alike: the first one decides for all

    def work(k: int, arrays: list[Any], out: Callable[..., Any], read: Callable[[], None]) -> None:
        if arrays[0].size == 0:
            return
        keys = links.packed(*arrays)
        links.sort(keys)
        read()  # while the device sorts
        if not fewer:
            fewer.append(links.head_places(keys, 0)[1] * FEWER <= keys.size)
        if fewer[0]:
            run = links.run_of_sorted(keys, np.uint32 if kind.itemsize == 4 else np.int64)
            runs[k] = split(run.keys, run.counts, out, (starts[k], None, None))
        else:
            here = slice(bounds[k], bounds[k + 1])
            if not room:
                room.append([pinned(src.size, each) for each in (np.uint16, np.uint32)])
            runs[k] = split(keys, None, out, (starts[k], *(each[here] for each in room[0])))

    shared_out(lanes, range(parts), pieces, work)
    return runs, starts


class Side(NamedTuple):
    """What a range of sources passes on to round 3: sorted, in pinned memory."""

    destinations: Split  # of links
    extras: Any  # destination above (packets - 1), of links with several packets


def _source_ranges(
    runs: list[Split], starts: Any, room: int, lanes: list[Lane]
) -> tuple[Any, list[Side], Any]:
    """Round 2: a row of Statistics for each range of sources, and the input of round 3."""
    counted = any(run.size and run.counts is not None for run in runs)
    entries, each = sum(run.size for run in runs), TAKEN_BY_LINK if counted else TAKEN
    found = ranges(runs, starts, _number(entries, each, room, lanes))
    table = np.zeros((found.number, len(NAMES)), np.int64)
    starts_out = starts_of(found.number)
    sides: list[Any] = [Side(nothing(row), np.empty(0, np.uint64)) for row in starts_out]
    arrays_of = [[run.halves for run in runs], [run.lows for run in runs]]
    if counted:
        kind = next(run.counts.dtype for run in runs if run.size)
        arrays_of.append([run.counts if run.size else np.empty(0, kind) for run in runs])
    loaded = [(arrays, addresses_of(arrays)) for arrays in arrays_of]
    halves = pinned(entries, np.uint16)  # of destinations, for all ranges

    def pieces(k: int) -> list[list[Piece]]:
        begins = found.begins(k)
        return [*(found.pieces(k, *each) for each in loaded), [Piece(begins, 0, begins.size)]]

    later: list[tuple[int, list[Any], list[int]]] = []  # maxima, read at the end

    def work(k: int, arrays: list[Any], out: Callable[..., Any], read: Callable[[], None]) -> None:
        if arrays[0].size == 0:
            return
        keys = unpacked(found, k, arrays[0], arrays[1], arrays[-1])
        if counted:
            run = links.run_of_links(keys, arrays[2])
            read()
            destinations, counts, maxima, numbers = _counted_range(run)
            del run
        else:
            links.sort(keys)
            read()
            destinations, counts, maxima, numbers = _range_of_packets(keys)
        del keys
        later.append((k, [out(part) for part in maxima], numbers))
        extras = np.empty(0, np.uint64)
        if counts is not None:
            several = counts > 1
            made = destinations[several].astype(np.uint64) << HALF
            made |= (counts[several] - 1).astype(np.uint64)
            links.sort(made)
            extras = out(made) if made.size else extras
        links.sort(destinations)
        here = int(found.places[:, k].sum())
        room_here = (starts_out[k], halves[here:], None)
        sides[k] = Side(split(destinations, None, out, room_here), extras)

    shared_out(lanes, range(found.number), pieces, work)
    for k, maxima, numbers in later:
        _fill(table[k], ("valid_packets", "unique_links", "unique_sources"), numbers)
        _fill_extremes(table[k], EXTREMES[:3], maxima)
    most = int(table[:, PLACE["max_link_packets"]].max())
    if most > links.FITS:
        raise ValueError(
            f"traffic_statistics: a link must have at most {links.FITS} packets in batches, "
            f"got {most}"
        )
    return table, sides, starts_out


def _range_of_packets(keys: Any) -> tuple[Any, Any, list[Any], list[int]]:
    """(destinations, counts or None for one each, maxima, numbers) of sorted packets."""
    packets = int(keys.size)
    found = links.links_of_sorted(keys)
    size = int(found.starts.size)
    counts = links.gaps(found.starts, packets) if size < packets else None
    numbers = [packets, size, int(found.source_starts.size)]
    return found.destinations, counts, links.source_parts(found, packets), numbers


def _counted_range(run: Any) -> tuple[Any, Any, list[Any], list[int]]:
    """As `_range_of_packets`, of links with counts."""
    rows = links.rows_of_run(run)
    sums = links.source_sums(rows.indptr, rows.counts)
    parts = [
        links.largest_value(rows.counts),
        links.largest_value(sums),
        links.largest_gap(rows.indptr[:-1].view(np.uint64), rows.counts.size),
    ]
    numbers = [int(rows.counts.sum()), int(rows.counts.size), int(sums.size)]
    return rows.destinations, rows.counts, parts, numbers


def _fill(row: Any, names: Any, numbers: list[int]) -> None:
    for name, number in zip(names, numbers, strict=True):
        row[PLACE[name]] = number


def _fill_extremes(row: Any, names: Any, maxima: list[Any]) -> None:
    for pair, part in zip(names, maxima, strict=True):
        _fill(row, pair, list(links.largest_here(part)))


def _destination_ranges(sides: list[Side], starts: Any, room: int, lanes: list[Lane]) -> Any:
    """Round 3: a row of Statistics for each range of destinations."""
    entries = sum(side.destinations.size + side.extras.size for side in sides)
    parts = _number(entries, TAKEN_BY_DESTINATION, room, lanes)
    found = ranges([side.destinations for side in sides], starts, parts)
    halves = [side.destinations.halves for side in sides]
    addresses = addresses_of(halves)
    extras_at = [_places(side.extras, found.marks) for side in sides]
    table = np.zeros((parts, len(NAMES)), np.int64)
    later: list[tuple[int, int, list[Any]]] = []  # maxima, read at the end

    def pieces(k: int) -> list[list[Piece]]:
        begins = found.begins(k)
        extras = [
            Piece(s.extras, *at[k : k + 2])
            for s, at in zip(sides, extras_at, strict=True)
            if at[k] < at[k + 1]
        ]
        return [found.pieces(k, halves, addresses), [Piece(begins, 0, begins.size)], extras]

    def work(k: int, arrays: list[Any], out: Callable[..., Any], read: Callable[[], None]) -> None:
        if arrays[0].size == 0:
            return
        destinations = unpacked(found, k, arrays[0], None, arrays[1])
        links.sort(destinations)
        extras = arrays[2].copy() if arrays[2].size else None
        read()
        starts, different = links.heads(destinations)
        fan_in = out(links.largest_gap(starts, destinations.size))
        packets = fan_in
        if extras is not None:
            sums = links.gaps(starts, destinations.size)
            n = extras.size
            links.kernels(n).add_extras(
                min(n, links.STRIDED),
                (n, (extras >> HALF).astype(np.uint32), (extras & LOW).view(np.int64) + 1,
                 different.size, different, sums.view(np.uint64)),
            )  # fmt: skip
            packets = out(links.largest_value(sums))
        later.append((k, int(starts.size), [packets, fan_in]))

    shared_out(lanes, range(parts), pieces, work)
    for k, number, maxima in later:
        _fill(table[k], ("unique_destinations",), [number])
        _fill_extremes(table[k], EXTREMES[3:], maxima)
    return table


def _places(extras: Any, marks: list[int]) -> list[int]:
    """Where each range begins among extras, and where the last one ends.

    A mark of 2^32 is after all of them: shifted it would be 0.
    """
    inside = [mark for mark in marks if mark < 1 << 32]
    found = np.searchsorted(extras, np.array(inside, np.uint64) << HALF).tolist()
    return [*found, *[int(extras.size)] * (len(marks) - len(inside))]
