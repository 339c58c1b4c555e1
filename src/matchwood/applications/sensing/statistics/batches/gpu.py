"""Statistics of more packets than fit into a device, on one device or several.

Three rounds of parts; in each, a part is copied in while the one before is worked on and the one
before that is copied out:

1. parts of the packets: sorted as links, to the host;
2. ranges of sources, of all parts: links and sources are counted; the destinations of links go
   to the host in order, with the packets of links that have several;
3. ranges of destinations, of all ranges of sources: destinations are counted.

Of n packets on links that differ, 8 n bytes are copied in by the first round, 6 n by the second
and 2 n by the third (gpu_split.py); 6 n and 2 n bytes go out meanwhile.

One copy alone cannot do: n random links have 64 - log2(n) + 1.4 bits each that are no other's,
4.4 bytes where n is 2^30.  A device with room for 2 n bytes must send out 2.4 n of them and see
them again, so 10.4 n bytes come in at least, 1.3 times the packets.

Ranges are cut at sources and destinations, and all is integers, so the answer does not depend on
the numbers of batches and devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics.batches.gpu_flow import (
    Lane,
    Piece,
    pinned,
    shared_out,
)
from matchwood.applications.sensing.statistics.batches.gpu_split import (
    Split,
    addresses_of,
    nothing,
    ranges,
    split,
    starts_of,
    unpacked,
)
from matchwood.applications.sensing.statistics.gpu_sides import source_parts
from matchwood.applications.sensing.statistics.quantities import (
    EXTREMES,
    NAMES,
    PLACE,
    Statistics,
    combined,
)
from matchwood.applications.sensing.traffic import gpu as links
from matchwood.engines import gpu

FEWER = 2  # a part is sent back as links with counts where it has this many times fewer links
LEAST = 1 << 20  # packets of a part, at least, where there are more parts than lanes
TAKEN = 48  # bytes of a device for each packet of a part, about
SPARE = 1 << 16  # packets more that a part has room for
TAKEN_BY_LINK = 96  # for each link that comes with its packets
TAKEN_BY_DESTINATION = 32  # for each link of a destination
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


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
        cupy.cuda.get_current_stream().synchronize()  # the packets may be on their way
    room = TAKEN * (-(-src.size // parts) + SPARE)
    with gpu.guard("traffic_statistics"):
        lanes = [Lane(device, room) for device in shared]
        runs, starts = _sorted_parts(src, dst, parts, lanes)
        table, sides, starts = _source_ranges(runs, starts, room, lanes)
        del runs
        return combined(np.concatenate([table, _destination_ranges(sides, starts, room, lanes)]))


def _number(entries: int, each: int, room: int, lanes: list[Lane]) -> int:
    """How many ranges: those of this many entries fit into the room, and every lane has one."""
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

    fewer: list[bool] = []  # parts are alike: the first one looked at decides for all

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
    """What a range of sources tells destinations: in order, in pinned memory."""

    destinations: Split  # of links
    extras: Any  # destination above (packets - 1), of links with several packets


def _source_ranges(
    runs: list[Split], starts: Any, room: int, lanes: list[Lane]
) -> tuple[Any, list[Side], Any]:
    """Round 2: a row of Statistics for each range of sources, and what goes to destinations."""
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
        return [
            *(found.pieces(k, *each) for each in loaded),
            [Piece(begins, 0, begins.size)],
        ]

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
    return found.destinations, counts, source_parts(found, packets), numbers


def _counted_range(run: Any) -> tuple[Any, Any, list[Any], list[int]]:
    """The same of links with counts."""
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

    A mark of 2^32 is behind all of them: shifted it would be 0.
    """
    inside = [mark for mark in marks if mark < 1 << 32]
    found = np.searchsorted(extras, np.array(inside, np.uint64) << HALF).tolist()
    return [*found, *[int(extras.size)] * (len(marks) - len(inside))]
