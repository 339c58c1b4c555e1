"""Traffic matrices on a team: packets to sorted links, to runs, to rows; runs added up.

A packet is one 64-bit key, its source above its destination.  Sorted keys are links in order, and
the length of a run of equal keys is how many packets the link has.  The keys are divided by their
leading bits and sorted in cache (primitives/sort).

A run is (keys, counts): ascending different keys, and the number of packets of each link.  Two runs
are merged by members that each take a range of keys.  The loop has no branch that depends on the
data, which no processor could predict.

Sums of destinations: the destinations of the links are sorted as 32-bit keys, and a run of equal
ones is a destination, its length the fan-in.  Packets beyond the first of a link are in a second,
short list, the extras: (destination, packets - 1) for links with more than one packet, sorted as
64-bit keys.  In traffic with few repeated links that halves the bytes to sort.

Shares of members begin where a source (or a destination) begins, so none is counted twice.  Members
write to parts of arrays that are their own: there are no races.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.traffic.result import DestinationSums, MatrixRows, Run, add_run
from matchwood.engines.cpu import (
    Crew,
    Team,
    barrier,
    crew,
    device,
    kernel,
    next_chunk,
    share,
    share_rows,
    stopping,
)
from matchwood.engines.cpu.hints import opaque, prefetch_write
from matchwood.primitives.sort.cpu import (
    AHEAD,
    BLOCK,
    DIGITS,
    TEAM_KEYS,
    Range,
    Scratch,
    find_places,
    ranges_of,
    scratch,
    sort_keys,
    sort_pairs,
    sort_ranges,
    undivided,
)

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ZERO, ONE = np.uint64(0), np.uint64(1)
SHARES = 4  # shares for each member: one that is slow leaves some to others
LEAST_SHARED_LINKS = 1 << 16  # fewer links are merged by one member
LOOK = np.uint64(0xFFFF)  # elements between two checks of the stop word, less one


# Packets to sorted keys


class Room:
    """Memory reused from call to call: fresh pages cost as much as a pass over them."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def __call__(self, name: str, size: int, kind: Any) -> Any:
        """An uninitialised array, valid until the next call with the same name."""
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != kind:
            self._arrays.pop(name, None)
            array = self._arrays[name] = np.empty(size, kind)
        return array[:size]

    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self._arrays.values())


@kernel
def _pack(team: Team, src: Any, dst: Any, keys: Any) -> None:
    lo, hi = share(team, src.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        end = min(start + BLOCK, hi)
        u, v, out = src[start:end], dst[start:end], keys[start:end]
        for i in range(u.size):
            out[i] = (np.uint64(u[i]) << HALF) | np.uint64(v[i])


@kernel
def _divide_packets(team: Team, src: Any, dst: Any, out: Any, words: Scratch) -> None:
    """Packets as keys, put into ranges by the leading bits in which sources differ."""
    shift, stop = find_places(team, src, words)
    if stop:
        return
    place, mask = words.places[team.me], np.uint64(DIGITS - 1)
    lo, hi = share(team, src.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        end = min(start + BLOCK, hi)
        u, v = src[start:end], dst[start:end]
        for i in range(u.size):
            source = np.uint64(u[i])
            digit = (source >> shift) & mask
            target = np.uint64(place[digit])
            place[digit] = target + ONE
            out[target] = (source << HALF) | np.uint64(v[i])
            prefetch_write(out, target + np.uint64(AHEAD))
    if barrier(team):
        return


def pack(team: Crew, src: Any, dst: Any, keys: Any) -> None:
    team.run(_pack, src, dst, keys)


def sorted_packets(team: Crew, src: Any, dst: Any, room: Room) -> Any:
    """The keys of all packets, sorted."""
    n = src.size
    keys = room("keys", n, np.uint64)
    if n <= undivided(team):
        pack(team, src, dst, keys)
        team.spread(lambda _: keys.sort(), 1)
        return keys
    words = scratch(team.size)
    team.run(_divide_packets, src, dst, keys, words)
    sort_ranges(team, keys, room("other", n, np.uint64), ranges_of(words), words)
    return keys


def even_cuts(team: Crew, keys: Any, below: int) -> Any:
    """Where shares begin: at keys that differ from the one before in the bits above `below`."""
    n = keys.size
    parts = 1 if n < TEAM_KEYS else SHARES * team.size
    cuts = [0]
    for part in range(1, parts):
        at = n * part // parts
        if below:
            first = (keys[at] >> np.uint64(below)) << np.uint64(below)
        else:
            first = keys[at]
        cuts.append(max(cuts[-1], int(np.searchsorted(keys, first))))
    return np.array([*cuts, n], np.int64)


def gathered(array: Any, cuts: Any, used: Any) -> Any:
    """The used parts of the segments one after another, moved to the front of the array."""
    end = 0
    for start, size in zip(cuts.tolist(), used.tolist(), strict=False):
        if end != start:
            array[end : end + size] = array[start : start + size]
        end += size
    return array[:end]


def sort_in_place(team: Crew, keys: Any, other: Any) -> None:
    sort_ranges(team, keys, other, [Range(0, keys.size, False)])


# Runs


class MergeParts(NamedTuple):
    """Where shares of two runs begin, and how much each share has written."""

    first: Any  # (shares + 1,) int64
    second: Any  # (shares + 1,) int64
    used: Any  # (shares,) int64


@kernel
def _write_runs(team: Team, keys: Any, cuts: Any, places: Any, out: Run) -> None:
    """Different keys of segments of sorted keys, and how often each occurs."""
    while True:
        segment = next_chunk(team, cuts.size - 1, 1)
        if segment < 0:
            break
        part = keys[cuts[segment] : cuts[segment + 1]]
        found = out.keys[places[segment] : places[segment + 1]]
        counts = out.counts[places[segment] : places[segment + 1]]
        i, n, links = np.uint64(0), np.uint64(part.size), np.uint64(0)
        while i < n:
            key, start = part[i], i
            i += ONE
            while i < n and part[i] == key:
                i += ONE
            found[links] = key
            counts[links] = i - start
            links += ONE
            if links & LOOK == 0 and stopping(team):
                return
    if barrier(team):
        return


@kernel
def _count_different(team: Team, keys: Any, shift: Any, cuts: Any, found: Any) -> None:
    """The number of different keys >> shift in each segment."""
    while True:
        segment = next_chunk(team, cuts.size - 1, 1)
        if segment < 0:
            break
        part = keys[cuts[segment] : cuts[segment + 1]]
        different = np.int64(part.size > 0)
        for i in range(1, part.size):
            different += np.int64((part[i] >> shift) != (part[i - 1] >> shift))
        found[segment] = different
    if barrier(team):
        return


def run_of_sorted(team: Crew, keys: Any) -> Run:
    """The run of sorted packets; new arrays."""
    cuts = even_cuts(team, keys, 32)
    places = _places(team, keys, 0, cuts)
    out = Run(np.empty(places[-1], np.uint64), np.empty(places[-1], np.int64))
    team.run(_write_runs, keys, cuts, places, out)
    return out


def _places(team: Crew, keys: Any, shift: int, cuts: Any) -> Any:
    found = np.zeros(cuts.size, np.int64)
    team.run(_count_different, keys, np.uint64(shift), cuts, found[1:])
    return np.cumsum(found)


@device
def _merge_two(
    team: Team, x: Any, x_count: Any, y: Any, y_count: Any, keys: Any, counts: Any
) -> Any:
    """Merge the runs (x, x_count) and (y, y_count) into (keys, counts); returns the links."""
    i, j, o = np.uint64(0), np.uint64(0), np.uint64(0)
    n, m = np.uint64(x.size), np.uint64(y.size)
    while i < n and j < m:
        first, second = x[i], y[j]
        from_x, from_y = opaque(np.uint64(first <= second)), opaque(np.uint64(second <= first))
        keys[o] = second ^ ((first ^ second) & (ZERO - from_x))  # the smaller one
        counts[o] = (x_count[i] & -np.int64(from_x)) + (y_count[j] & -np.int64(from_y))
        i += from_x
        j += from_y
        o += ONE
        if o & LOOK == 0 and stopping(team):
            return np.int64(o)
    while i < n:
        keys[o], counts[o] = x[i], x_count[i]
        i += ONE
        o += ONE
    while j < m:
        keys[o], counts[o] = y[j], y_count[j]
        j += ONE
        o += ONE
    return np.int64(o)


@kernel
def _merge(team: Team, a: Run, b: Run, parts: MergeParts, out: Run) -> None:
    """Merge share by share; each writes from the sum of its two starts on."""
    while True:
        part = next_chunk(team, parts.used.size, 1)
        if part < 0:
            break
        lo, hi = parts.first[part], parts.first[part + 1]
        start, end = parts.second[part], parts.second[part + 1]
        parts.used[part] = _merge_two(
            team,
            a.keys[lo:hi],
            a.counts[lo:hi],
            b.keys[start:end],
            b.counts[start:end],
            out.keys[lo + start : hi + end],
            out.counts[lo + start : hi + end],
        )
    if barrier(team):
        return


def merge(a: Run, b: Run, *, threads: int | None = None) -> Run:
    """The sum of two runs; new arrays."""
    if a.keys.size == 0 or b.keys.size == 0:
        return b if a.keys.size == 0 else a
    size = a.keys.size + b.keys.size
    team = crew(threads, work=size)
    parts = merge_parts(team, a.keys, b.keys)
    out = Run(np.empty(size, np.uint64), np.empty(size, np.int64))
    team.run(_merge, a, b, parts, out)
    starts = parts.first + parts.second
    keys, counts = (gathered(array, starts, parts.used) for array in out)
    if keys.size < 0.75 * size:  # else the unused end costs less than a copy
        keys, counts = keys.copy(), counts.copy()
    return Run(keys, counts)


def merge_parts(team: Crew, a: Any, b: Any) -> MergeParts:
    """Ranges of keys for the members, cut evenly in the longer run."""
    shares = 1 if a.size + b.size < LEAST_SHARED_LINKS else SHARES * team.size
    longer = a if a.size >= b.size else b
    marks = [longer[longer.size * part // shares] for part in range(1, shares)]

    def cuts(keys: Any) -> Any:
        inner = [int(np.searchsorted(keys, mark)) for mark in marks]
        return np.array([0, *inner, keys.size], np.int64)

    return MergeParts(cuts(a), cuts(b), np.zeros(shares, np.int64))


def run_of_packets(
    src: Any, dst: Any, *, threads: int | None = None, room: Room | None = None
) -> Run:
    """The links of packets, in order."""
    if src.size == 0:
        return Run(np.empty(0, np.uint64), np.empty(0, np.int64))
    team = crew(threads, work=8 * src.size)
    return run_of_sorted(team, sorted_packets(team, src, dst, room or Room()))


def rows_of_packets(src: Any, dst: Any, *, threads: int | None = None) -> MatrixRows:
    return rows_of_run(run_of_packets(src, dst, threads=threads), threads=threads)


def sum_runs(runs: Iterable[Run], *, threads: int | None = None) -> Run:
    """Runs added up as a binary tree."""
    levels: list[Run | None] = []
    for run in runs:
        add_run(levels, run, lambda a, b: merge(a, b, threads=threads))
    total = Run(np.empty(0, np.uint64), np.empty(0, np.int64))
    for left in levels:
        if left is not None:
            total = merge(left, total, threads=threads)
    return total


# Rows of a matrix


@kernel
def _write_rows(team: Team, keys: Any, cuts: Any, places: Any, rows: MatrixRows) -> None:
    while True:
        segment = next_chunk(team, cuts.size - 1, 1)
        if segment < 0:
            break
        lo, hi = cuts[segment], cuts[segment + 1]
        part, destinations = keys[lo:hi], rows.destinations[lo:hi]
        sources = rows.sources[places[segment] : places[segment + 1]]
        starts = rows.indptr[places[segment] : places[segment + 1]]
        row = np.int64(-1)
        before = np.uint64(1) << np.uint64(63)  # no source
        for i in range(part.size):
            key = part[i]
            if key >> HALF != before:
                before = key >> HALF
                row += 1
                sources[row] = before
                starts[row] = lo + i
                if row & 0xFFFF == 0 and stopping(team):
                    return
            destinations[i] = key & LOW
    if barrier(team):
        return


def rows_of_run(run: Run, *, threads: int | None = None) -> MatrixRows:
    """The matrix of a run; keeps the counts of the run."""
    n = run.keys.size
    team = crew(threads, work=2 * n)
    cuts = even_cuts(team, run.keys, 32) if n else np.zeros(2, np.int64)
    places = _places(team, run.keys, 32, cuts)
    rows = MatrixRows(
        np.empty(places[-1], np.uint32),
        np.empty(places[-1] + 1, np.int64),
        np.empty(n, np.uint32),
        run.counts,
    )
    rows.indptr[-1] = n
    team.run(_write_rows, run.keys, cuts, places, rows)
    return rows


@kernel
def _write_keys(team: Team, sources: Any, indptr: Any, destinations: Any, keys: Any) -> None:
    while True:
        start = next_chunk(team, sources.size, 1024)
        if start < 0:
            break
        for row in range(start, min(start + 1024, sources.size)):
            high = np.uint64(sources[row]) << HALF
            for k in range(indptr[row], indptr[row + 1]):
                keys[k] = high | np.uint64(destinations[k])
    if barrier(team):
        return


def keys_of_rows(rows: Any, *, threads: int | None = None) -> Any:
    """The links of a matrix as keys."""
    keys = np.empty(rows.destinations.size, np.uint64)
    team = crew(threads, work=keys.size)
    team.run(_write_keys, rows.sources, rows.indptr, rows.destinations, keys)
    return keys


# Sums of sources and destinations


def destination_cuts(team: Crew, values: Any, extras: Any) -> tuple[Any, Any]:
    """Starts and sizes of shares of sorted destinations, and of the extras that belong to them."""
    cuts = even_cuts(team, values, 0)
    firsts = [
        np.uint64(int(values[cut])) << HALF for cut in cuts[:-1].tolist() if cut < values.size
    ]
    others = [int(np.searchsorted(extras, first)) for first in firsts]
    others += [extras.size] * (cuts.size - len(others))
    both = np.stack([cuts, np.array(others, np.int64)], axis=1)
    return both[:-1].copy(), np.diff(both, axis=0)


class SortedDestinations(NamedTuple):
    """Sorted destinations of links, and sorted (destination, packets - 1), in segments."""

    values: Any  # uint32
    extras: Any  # uint64
    starts: Any  # (segments, 2) int64: where values and extras of a segment start
    sizes: Any  # (segments, 2) int64: how many there are


@kernel
def _write_sums(
    team: Team, given: SortedDestinations, places: Any, out: DestinationSums
) -> None:  # fmt: skip
    """The sums of a segment go to the places from places[segment] on."""
    while True:
        segment = next_chunk(team, given.starts.shape[0], 1)
        if segment < 0:
            break
        lo, size = given.starts[segment, 0], given.sizes[segment, 0]
        part = given.values[lo : lo + size]
        lo, size = given.starts[segment, 1], given.sizes[segment, 1]
        extras = given.extras[lo : lo + size]
        n, more, o = np.uint64(part.size), np.uint64(extras.size), places[segment]
        i, e = np.uint64(0), np.uint64(0)
        while i < n:
            value, start = part[i], i
            i += ONE
            while i < n and part[i] == value:
                i += ONE
            packets = i - start
            while e < more and extras[e] >> HALF == np.uint64(value):
                packets += extras[e] & LOW
                e += ONE
            out.destinations[o] = value
            out.fan_in[o] = i - start
            out.packets[o] = packets
            o += 1
            if o & 0xFFFF == 0 and stopping(team):
                return
    if barrier(team):
        return


@kernel
def _look_at(team: Team, counts: Any, found: Any) -> None:
    """The most packets of a link of this member's share, and the number of links with several."""
    lo, hi = share(team, counts.size)
    part = counts[lo:hi]
    most, several = np.int64(0), np.int64(0)
    for i in range(part.size):
        most = max(most, part[i])
        several += np.int64(part[i] > 1)
    found[team.me, 0], found[team.me, 1] = most, several


@kernel
def _write_extras(team: Team, destinations: Any, counts: Any, places: Any, extras: Any) -> None:
    """(destination, packets - 1) of this member's links with several packets, from its place on."""
    lo, hi = share(team, counts.size)
    values, packets, at = destinations[lo:hi], counts[lo:hi], np.uint64(places[team.me])
    for i in range(packets.size):
        if packets[i] > 1:
            extras[at] = (np.uint64(values[i]) << HALF) | np.uint64(packets[i] - 1)
            at += ONE


@kernel
def _add_rows(team: Team, indptr: Any, counts: Any, sums: Any) -> None:
    lo, hi = share_rows(team, indptr)
    for row in range(lo, hi):
        if row & 0xFFFF == 0 and stopping(team):
            return
        part = counts[indptr[row] : indptr[row + 1]]
        total = np.int64(0)
        for k in range(part.size):
            total += part[k]
        sums[row] = total


def source_sums(indptr: Any, counts: Any, *, threads: int | None = None) -> Any:
    """Packets of each source."""
    sums = np.empty(indptr.size - 1, np.int64)
    crew(threads, work=counts.size).run(_add_rows, indptr, counts, sums)
    return sums


def destination_sums(
    destinations: Any, counts: Any, *, threads: int | None = None
) -> DestinationSums:
    """Links and packets to each destination, from the links of a matrix."""
    team = crew(threads, work=4 * counts.size)
    found = np.zeros((team.size, 2), np.int64)
    team.run(_look_at, counts, found)
    if found[:, 0].max() > 1 << 32:
        return _wide_sums(destinations, counts, threads)
    places = np.append(0, np.cumsum(found[:, 1]))
    extras = np.empty(places[-1], np.uint64)
    if extras.size:
        team.run(_write_extras, destinations, counts, places, extras)
        sort_in_place(team, extras, np.empty_like(extras))
    values = sort_keys(destinations, threads=threads)
    starts, sizes = destination_cuts(team, values, extras)
    cuts = np.append(starts[:, 0], values.size)
    places = _places(team, values, 0, cuts)
    out = DestinationSums(*(np.empty(places[-1], kind) for kind in (np.uint32, np.int64, np.int64)))
    team.run(_write_sums, SortedDestinations(values, extras, starts, sizes), places, out)
    return out


def _wide_sums(destinations: Any, counts: Any, threads: int | None) -> DestinationSums:
    """As `destination_sums`, for links of 2^32 packets or more, which do not fit beside a key."""
    values, ordered = sort_pairs(destinations, counts, threads=threads)
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    packets = np.add.reduceat(ordered, starts)
    return DestinationSums(values[starts], np.diff(np.append(starts, values.size)), packets)


def run_of_links(keys: Any, counts: Any, *, threads: int | None = None) -> Run:
    """The run of links that are not in order, and of which some may be equal."""
    if keys.size == 0:
        return Run(keys, counts)
    keys, counts = sort_pairs(keys, counts, threads=threads)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return Run(keys[starts], np.add.reduceat(counts, starts))
