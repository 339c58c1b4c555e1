"""The nine quantities on a team: of packets, of every window of packets, of a matrix.

Packets are sorted keys (traffic/cpu.py).  One walk over them finds links and sources; their
destinations and the packets beyond the first of a link, the extras, are sorted once more, and a
second walk finds destinations.  A window is sorted and walked by one member; the whole is shared by
all, cut where sources (or destinations) begin.

The walk over a window moves its different keys to its front, and records which of those links have
several packets: so the run of one window, and the sum of all, need no second walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.statistics.result import (
    NAMES,
    PLACE,
    Histograms,
    Statistics,
    combined,
    histograms_of,
)
from matchwood.applications.sensing.traffic import cpu as links
from matchwood.applications.sensing.traffic.cpu import HALF, LOW, ONE, Room, gathered
from matchwood.applications.sensing.traffic.result import Run, trusted
from matchwood.engines.cpu import (
    Crew,
    Team,
    atomic_add,
    barrier,
    crew,
    device,
    kernel,
    next_chunk,
    share,
    share_rows,
    stopping,
)
from matchwood.primitives.sort.cpu import BLOCK, MEMBER_KEYS, Range, sort_keys

FITS = 1 << 32  # packets of a link that are counted below a destination in 64 bits
AT_ONCE = 1 << 19  # packets of windows sorted and walked at once by a member, in its cache
# What a walk over links finds of a segment, and a walk over destinations
(PACKETS, LINKS, MAX_LINK, AT_LINK, SOURCES, MAX_SOURCE, AT_SOURCE, MAX_FAN, AT_FAN,
 EXTRAS) = range(10)  # fmt: skip
FOUND = 10
DESTINATIONS, MAX_PACKETS, AT_PACKETS, MAX_FAN_IN, AT_FAN_IN = range(5)
SOURCE_COLUMNS = {  # name in Statistics: column of a row that a walk over links fills
    "valid_packets": PACKETS,
    "unique_links": LINKS,
    "max_link_packets": MAX_LINK,
    "links_at_max_packets": AT_LINK,
    "unique_sources": SOURCES,
    "max_source_packets": MAX_SOURCE,
    "sources_at_max_packets": AT_SOURCE,
    "max_source_fan_out": MAX_FAN,
    "sources_at_max_fan_out": AT_FAN,
}
DESTINATION_COLUMNS = {
    "unique_destinations": DESTINATIONS,
    "max_destination_packets": MAX_PACKETS,
    "destinations_at_max_packets": AT_PACKETS,
    "max_destination_fan_in": MAX_FAN_IN,
    "destinations_at_max_fan_in": AT_FAN_IN,
}


# The walks


class LinkSums(NamedTuple):
    """What a walk over links finds, a row for each segment."""

    found: Any  # (segments, FOUND) int64
    destinations: Any  # uint32: those of a segment's links, from where the segment starts
    extras: Any  # uint64: destination above (packets - 1), for links with more than one packet
    compact: bool  # extras also hold, from the end of a segment on backwards, for the same links
    #                their number in the segment above (packets - 1)


@kernel
def _walk_packets(team: Team, keys: Any, cuts: Any, sums: LinkSums) -> None:
    """Links and sources of segments of sorted packets.

    If they are to be compact, the different keys of a segment move to its front.
    """
    compact = sums.compact
    while True:
        segment = next_chunk(team, cuts.size - 1, 1)
        if segment < 0:
            break
        lo, hi = cuts[segment], cuts[segment + 1]
        part = keys[lo:hi]
        n = np.uint64(part.size)
        destinations, extras = sums.destinations[lo:hi], sums.extras[lo:hi]
        links = extra = sources = np.uint64(0)
        max_link = at_link = max_source = at_source = max_fan = at_fan = np.uint64(0)
        i = np.uint64(0)
        while i < n:
            key = part[i]
            source = key >> HALF
            source_start, fan = i, np.uint64(0)
            if sources & np.uint64(0xFFFF) == 0 and stopping(team):
                return
            while True:  # links of the source
                start = i
                i += ONE
                while i < n and part[i] == key:
                    i += ONE
                count = i - start
                destinations[links] = key & LOW
                if count > ONE:
                    extras[extra] = (key << HALF) | (count - ONE)
                    extra += ONE
                    if compact:  # such a link has two packets at least: there is room
                        extras[n - extra] = (links << HALF) | (count - ONE)
                if compact:
                    part[links] = key
                links += ONE
                fan += ONE
                if count > max_link:
                    max_link, at_link = count, ONE
                elif count == max_link:
                    at_link += ONE
                if i == n:
                    break
                key = part[i]
                if key >> HALF != source:
                    break
            sources += ONE
            packets = i - source_start
            if packets > max_source:
                max_source, at_source = packets, ONE
            elif packets == max_source:
                at_source += ONE
            if fan > max_fan:
                max_fan, at_fan = fan, ONE
            elif fan == max_fan:
                at_fan += ONE
        row = sums.found[segment]
        row[PACKETS], row[LINKS], row[MAX_LINK], row[AT_LINK] = n, links, max_link, at_link
        row[SOURCES], row[MAX_SOURCE], row[AT_SOURCE] = sources, max_source, at_source
        row[MAX_FAN], row[AT_FAN], row[EXTRAS] = max_fan, at_fan, extra
    if barrier(team):
        return


@kernel
def _walk_destinations(team: Team, given: links.SortedDestinations, found: Any) -> None:
    while True:
        segment = next_chunk(team, found.shape[0], 1)
        if segment < 0:
            break
        lo, size = given.starts[segment, 0], given.sizes[segment, 0]
        part = given.values[lo : lo + size]
        lo, size = given.starts[segment, 1], given.sizes[segment, 1]
        extras = given.extras[lo : lo + size]
        n, more = np.uint64(part.size), np.uint64(extras.size)
        destinations = max_packets = at_packets = max_fan = at_fan = np.uint64(0)
        i, e = np.uint64(0), np.uint64(0)
        while i < n:
            if destinations & np.uint64(0xFFFF) == 0 and stopping(team):
                return
            value, start = part[i], i
            i += ONE
            while i < n and part[i] == value:
                i += ONE
            fan = i - start
            packets = fan
            while e < more and extras[e] >> HALF == np.uint64(value):
                packets += extras[e] & LOW
                e += ONE
            destinations += ONE
            if packets > max_packets:
                max_packets, at_packets = packets, ONE
            elif packets == max_packets:
                at_packets += ONE
            if fan > max_fan:
                max_fan, at_fan = fan, ONE
            elif fan == max_fan:
                at_fan += ONE
        row = found[segment]
        row[DESTINATIONS] = destinations
        row[MAX_PACKETS], row[AT_PACKETS] = max_packets, at_packets
        row[MAX_FAN_IN], row[AT_FAN_IN] = max_fan, at_fan
    if barrier(team):
        return


def walk_packets(
    team: Crew, keys: Any, cuts: Any, room: Room, *, compact: bool = False
) -> LinkSums:
    """The links of segments of sorted packets; destinations and extras are not sorted yet.

    With `compact` the keys are overwritten: the links of a segment stand at its front.  Segments
    must have fewer than 2^32 packets then.
    """
    sums = LinkSums(
        np.zeros((cuts.size - 1, FOUND), np.int64),
        room("destinations", keys.size, np.uint32),
        room("other", keys.size, np.uint64),
        compact,
    )
    team.run(_walk_packets, keys, cuts, sums)
    return sums


def walk_destinations(team: Crew, values: Any, extras: Any, starts: Any, sizes: Any) -> Any:
    found = np.zeros((len(starts), 5), np.int64)
    team.run(_walk_destinations, links.SortedDestinations(values, extras, starts, sizes), found)
    return found


def sort_segments(team: Crew, array: Any, starts: Any, sizes: Any) -> None:
    """Sort each segment by itself, by one member; one that would keep it too long by all."""
    ranges = [Range(a, a + n, False) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    small = [part for part in ranges if part.hi - part.lo <= MEMBER_KEYS]
    team.spread(lambda k: array[small[k].lo : small[k].hi].sort(), len(small))
    if len(small) < len(ranges):
        for lo, hi, _ in ranges:
            if hi - lo > MEMBER_KEYS:
                links.sort_in_place(team, array[lo:hi], np.empty(hi - lo, array.dtype))


# The links of many sorted windows


class WindowLinks(NamedTuple):
    """Links of windows: those of window k are keys[starts[k]], ..., links[k] of them."""

    keys: Any  # uint64
    starts: Any  # (windows,) int64
    links: Any  # (windows,) int64
    repeated: Any  # uint64: for some links of a window their number above (packets - 1), backwards
    ends: Any  # (windows,) int64: where that ends
    several: Any  # (windows,) int64: how many links that are


def links_of(cuts: Any, sums: LinkSums) -> WindowLinks:
    """The links of the windows keys[cuts[k] : cuts[k + 1]], copied, but for the keys."""
    links, several = (sums.found[:, column] for column in (LINKS, EXTRAS))
    ends, sizes = cuts[1:].tolist(), several.tolist()
    parts = [sums.extras[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return WindowLinks(None, cuts[:-1], links, np.concatenate(parts), np.cumsum(several), several)


def all_links(keys: Any, cuts: Any, batches: list[WindowLinks]) -> WindowLinks:
    """The windows of several walks, in order; their keys are keys[cuts[k] : cuts[k + 1]]."""
    links, repeated, several = (
        np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("links", "repeated", "several")
    )
    return WindowLinks(keys, cuts[:-1], links, repeated, np.cumsum(several), several)


@device
def _place_from(keys: Any, place: Any, key: Any) -> Any:
    """The place of `key`, from `place` on, by galloping: steps double, then halve."""
    step, last = ONE, np.uint64(keys.size - 1)
    end = place
    while keys[end] < key:
        place = end
        end = min(end + step, last)
        step += step
    while place < end:
        middle = (place + end) >> ONE
        if keys[middle] < key:
            place = middle + ONE
        else:
            end = middle
    return place


@kernel
def _add_repeated(team: Team, given: WindowLinks, total: Run) -> None:
    """Add the packets of links beyond the first of each window.

    Members work on different windows, which may have the same link: counts change by atomic
    additions alone.
    """
    while True:
        window = next_chunk(team, given.links.size, 1)
        if window < 0:
            break
        keys, last = given.keys[given.starts[window] :], given.ends[window] - 1
        at = np.uint64(0)
        for k in range(given.several[window]):
            word = given.repeated[np.uint64(last - k)]
            at = _place_from(total.keys, at, keys[word >> HALF])
            atomic_add(total.counts, np.int64(at), np.int64(word & LOW))
            if k & 0xFFFF == 0 and stopping(team):
                return
    if barrier(team):
        return


def run_of_window(team: Crew, given: WindowLinks, window: int) -> Run:
    """The links of one window; new arrays."""
    one = slice(window, window + 1)
    alone = given._replace(
        starts=given.starts[one], links=given.links[one],
        ends=given.ends[one], several=given.several[one],
    )  # fmt: skip
    start, size = int(given.starts[window]), int(given.links[window])
    run = Run(given.keys[start : start + size].copy(), np.ones(size, np.int64))
    team.run(_add_repeated, alone, run)
    return run


def sum_of_windows(team: Crew, given: WindowLinks) -> Run:
    """The sum of all windows; their keys are overwritten.

    Sorting the keys anew is quicker than merging many runs: NumPy sorts in vector code, and merging
    is a chain of comparisons.  A link counts once for each window that has it; packets beyond the
    first of a window are added afterwards.
    """
    keys = gathered(given.keys, given.starts, given.links)
    moved = given._replace(starts=np.cumsum(given.links) - given.links)
    total = links.run_of_sorted(team, sort_keys(keys, threads=team.size))
    team.run(_add_repeated, moved, total)
    return total


# Statistics


def as_table(found: Any, columns: dict[str, int]) -> Any:
    """The results of walks as a table with the columns of Statistics; the others are 0."""
    table = np.zeros((len(found), len(NAMES)), np.int64)
    for name, column in columns.items():
        table[:, PLACE[name]] = found[:, column]
    return table


def joined(by_source: Statistics, by_destination: Statistics) -> Statistics:
    """The sum of both: one side has zeros where the other has numbers."""
    ours, theirs = by_source.as_dict(), by_destination.as_dict()
    return Statistics(**{name: ours[name] + theirs[name] for name in NAMES})


def packet_statistics(src: Any, dst: Any, *, threads: int | None = None) -> Statistics:
    """Statistics of all packets, without making the matrix."""
    if src.size == 0:
        return Statistics()
    if src.size > FITS:
        return batched_statistics(src, dst, -(-src.size // FITS), None, threads=threads)
    team = crew(threads, work=8 * src.size)
    room = Room()
    keys = links.sorted_packets(team, src, dst, room)
    return of_sorted_packets(team, keys, room)


def batched_statistics(
    src: Any, dst: Any, batches: int, devices: Any, *, threads: int | None = None
) -> Statistics:
    """As `packet_statistics`, from parts that are sorted one after the other."""
    size = max(1, -(-src.size // batches))
    room = Room()
    runs = (
        links.run_of_packets(src[k : k + size], dst[k : k + size], threads=threads, room=room)
        for k in range(0, src.size, size)
    )
    total = links.sum_runs(runs, threads=threads)
    return matrix_statistics(trusted(*links.rows_of_run(total, threads=threads)), threads=threads)


def of_sorted_packets(team: Crew, keys: Any, room: Room) -> Statistics:
    """Statistics of sorted keys, which are overwritten."""
    cuts = links.even_cuts(team, keys, 32)
    sums = walk_packets(team, keys, cuts, room)
    values = gathered(sums.destinations, cuts, sums.found[:, LINKS])
    extras = gathered(sums.extras, cuts, sums.found[:, EXTRAS])
    links.sort_in_place(team, extras, keys[: extras.size])
    links.sort_in_place(team, values, keys.view(np.uint32)[: values.size])
    starts, sizes = links.destination_cuts(team, values, extras)
    found = walk_destinations(team, values, extras, starts, sizes)
    return joined(
        combined(as_table(sums.found, SOURCE_COLUMNS)),
        combined(as_table(found, DESTINATION_COLUMNS)),
    )


def windows_of(team: Crew, src: Any, dst: Any, cuts: Any, room: Room) -> tuple[Any, WindowLinks]:
    """A row of Statistics for each window of packets, and their links.

    A few windows are sorted and walked, then the next ones: so intermediate arrays stay in the
    cache and take little fresh memory.  Windows must have fewer than 2^32 packets.
    """
    keys = room("keys", src.size, np.uint64)
    tables, found, first = [], [], 0
    while first < cuts.size - 1:
        last = int(np.searchsorted(cuts, cuts[first] + AT_ONCE * team.size, "right")) - 1
        last = max(last, first + 1)
        lo, hi = int(cuts[first]), int(cuts[last])
        links.pack(team, src[lo:hi], dst[lo:hi], keys[lo:hi])
        table, batch = _sorted_windows(team, keys[lo:hi], cuts[first : last + 1] - lo, room)
        tables.append(table)
        found.append(batch)
        first = last
    return np.concatenate(tables), all_links(keys, cuts, found)


def _sorted_windows(team: Crew, keys: Any, cuts: Any, room: Room) -> tuple[Any, WindowLinks]:
    """As `windows_of`, for keys; each window by one member.  Overwrites the keys."""
    sort_segments(team, keys, cuts[:-1], np.diff(cuts))
    sums = walk_packets(team, keys, cuts, room, compact=True)
    sizes = sums.found[:, [LINKS, EXTRAS]]
    starts = np.stack([cuts[:-1], cuts[:-1]], axis=1)
    sort_segments(team, sums.destinations, cuts[:-1], sizes[:, 0])
    sort_segments(team, sums.extras, cuts[:-1], sizes[:, 1])
    found = walk_destinations(team, sums.destinations, sums.extras, starts, sizes.copy())
    table = as_table(sums.found, SOURCE_COLUMNS) + as_table(found, DESTINATION_COLUMNS)
    return table, links_of(cuts, sums)


@kernel
def _walk_matrix(team: Team, indptr: Any, counts: Any, found: Any) -> None:
    lo, hi = share_rows(team, indptr)
    total = np.int64(0)
    max_link = at_link = max_source = at_source = max_fan = at_fan = np.int64(0)
    for row in range(lo, hi):
        if row & 1023 == 0 and stopping(team):
            return
        part = counts[indptr[row] : indptr[row + 1]]
        packets = np.int64(0)
        for k in range(part.size):
            count = part[k]
            packets += count
            if count > max_link:
                max_link, at_link = count, np.int64(1)
            elif count == max_link:
                at_link += 1
        fan = np.int64(part.size)
        total += packets
        if packets > max_source:
            max_source, at_source = packets, np.int64(1)
        elif packets == max_source:
            at_source += 1
        if fan > max_fan:
            max_fan, at_fan = fan, np.int64(1)
        elif fan == max_fan:
            at_fan += 1
    row = found[team.me]
    row[PACKETS], row[SOURCES] = total, hi - lo
    row[LINKS] = indptr[hi] - indptr[lo]
    row[MAX_LINK], row[AT_LINK] = max_link, at_link
    row[MAX_SOURCE], row[AT_SOURCE] = max_source, at_source
    row[MAX_FAN], row[AT_FAN] = max_fan, at_fan


@kernel
def _walk_sums(team: Team, fan_in: Any, packets: Any, found: Any) -> None:
    """The largest fan-in and packets of destinations, a row for each share."""
    while True:
        part = next_chunk(team, found.shape[0], 1)
        if part < 0:
            break
        each = -(-fan_in.size // found.shape[0])
        lo, hi = min(part * each, fan_in.size), min((part + 1) * each, fan_in.size)
        max_packets = at_packets = max_fan = at_fan = np.int64(0)
        for k in range(lo, hi):
            if packets[k] > max_packets:
                max_packets, at_packets = packets[k], np.int64(1)
            elif packets[k] == max_packets:
                at_packets += 1
            if fan_in[k] > max_fan:
                max_fan, at_fan = fan_in[k], np.int64(1)
            elif fan_in[k] == max_fan:
                at_fan += 1
        row = found[part]
        row[DESTINATIONS] = hi - lo
        row[MAX_PACKETS], row[AT_PACKETS] = max_packets, at_packets
        row[MAX_FAN_IN], row[AT_FAN_IN] = max_fan, at_fan
    if barrier(team):
        return


def matrix_statistics(matrix: Any, *, threads: int | None = None) -> Statistics:
    """Statistics of a matrix; the sums of its destinations are kept with it."""
    if matrix.links == 0:
        return Statistics()
    sums = matrix.destination_sums(threads=threads)
    team = crew(threads, work=matrix.links)
    found = np.zeros((team.size, FOUND), np.int64)
    team.run(_walk_matrix, matrix.indptr, matrix.counts, found)
    shares = np.zeros((max(1, 4 * team.size), 5), np.int64)
    team.run(_walk_sums, sums.fan_in, sums.packets, shares)
    return joined(
        combined(as_table(found, SOURCE_COLUMNS)), combined(as_table(shares, DESTINATION_COLUMNS))
    )


SMALL_VALUES = 1 << 12  # values below this have a counter each; larger ones are few, and sorted


@kernel
def _count_values(team: Team, values: Any, counts: Any) -> None:
    """How often each small value occurs, in this member's row; the last is for all larger ones.

    Most values are 1, and their counter is in a register: one in memory takes five cycles.
    """
    lo, hi = share(team, values.size)
    row = counts[team.me]
    top, ones = row.size - 1, 0
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        part = values[start : min(start + BLOCK, hi)]
        for i in range(part.size):
            value = part[i]
            if value == 1:
                ones += 1
            else:
                row[np.uint64(min(value, top))] += 1
    row[1] += ones


def counted(values: Any, threads: int | None = None) -> tuple[Any, Any]:
    """The different values and how often each occurs: as np.unique, in one pass for small ones."""
    team = crew(threads, work=values.size)
    counts = np.zeros((team.size, SMALL_VALUES + 1), np.int64)
    team.run(_count_values, values, counts)
    small = counts.sum(axis=0)
    found = np.flatnonzero(small[:SMALL_VALUES])
    if small[SMALL_VALUES] == 0:
        return found, small[found]
    large = sort_keys(values[values >= SMALL_VALUES].view(np.uint64), threads=threads)
    starts = np.flatnonzero(np.append(True, large[1:] != large[:-1]))
    many = np.diff(np.append(starts, large.size))
    return (
        np.concatenate([found, large[starts].view(np.int64)]),
        np.concatenate([small[found], many]),
    )


def matrix_histograms(matrix: Any, *, threads: int | None = None) -> Histograms:
    sums = matrix.destination_sums(threads=threads)
    made = source_tallies(
        matrix.indptr, matrix.counts, matrix.source_sums(threads=threads), threads
    )
    made["destination_fan_in"] = counted(sums.fan_in, threads)
    made["destination_packets"] = counted(sums.packets, threads)
    return histograms_of(made)


def source_tallies(
    indptr: Any, counts: Any, packets: Any, threads: int | None = None
) -> dict[str, Any]:
    """Values and counts of the three histograms of sources and links."""
    return {
        "source_packets": counted(packets, threads),
        "source_fan_out": counted(np.diff(indptr), threads),
        "link_packets": counted(counts, threads),
    }
