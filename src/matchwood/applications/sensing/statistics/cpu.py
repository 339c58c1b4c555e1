"""The nine quantities on a team: of packets, of every window of packets, of a matrix.

The walks over sorted links and destinations are in traffic/cpu_walk.py.  A window is sorted and
walked by one member; the whole is shared by all, cut where sources (or destinations) begin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.statistics.quantities import NAMES, PLACE, Statistics, combined
from matchwood.applications.sensing.traffic import cpu as traffic
from matchwood.applications.sensing.traffic import cpu_walk as links
from matchwood.applications.sensing.traffic import cpu_windows, trusted
from matchwood.engines.cpu import (
    Crew,
    Team,
    barrier,
    crew,
    kernel,
    next_chunk,
    share,
    share_rows,
    stopping,
)
from matchwood.primitives.sort.cpu import BLOCK, sort_keys

FITS = 1 << 32  # packets of a link that are counted below a destination in 64 bits
AT_ONCE = 1 << 19  # packets of windows that a member works on before the next ones come
SOURCE_COLUMNS = {  # of a row of Statistics: column of what a walk over links finds
    "valid_packets": links.PACKETS,
    "unique_links": links.LINKS,
    "max_link_packets": links.MAX_LINK,
    "links_at_max_packets": links.AT_LINK,
    "unique_sources": links.SOURCES,
    "max_source_packets": links.MAX_SOURCE,
    "sources_at_max_packets": links.AT_SOURCE,
    "max_source_fan_out": links.MAX_FAN,
    "sources_at_max_fan_out": links.AT_FAN,
}
DESTINATION_COLUMNS = {
    "unique_destinations": links.DESTINATIONS,
    "max_destination_packets": links.MAX_PACKETS,
    "destinations_at_max_packets": links.AT_PACKETS,
    "max_destination_fan_in": links.MAX_FAN_IN,
    "destinations_at_max_fan_in": links.AT_FAN_IN,
}


def as_table(found: Any, columns: dict[str, int]) -> Any:
    """What walks found, in the columns of Statistics; the others are 0."""
    table = np.zeros((len(found), len(NAMES)), np.int64)
    for name, column in columns.items():
        table[:, PLACE[name]] = found[:, column]
    return table


def joined(by_source: Statistics, by_destination: Statistics) -> Statistics:
    """One side has zeros where the other has numbers."""
    ours, theirs = by_source.as_dict(), by_destination.as_dict()
    return Statistics(**{name: ours[name] + theirs[name] for name in NAMES})


def packet_statistics(
    src: Any, dst: Any, *, threads: int | None = None, room: links.Room | None = None
) -> Statistics:
    """Of all packets, without making the matrix."""
    room = links.Room() if room is None else room
    if src.size == 0:
        return Statistics()
    if src.size > FITS:
        return batched_statistics(src, dst, -(-src.size // FITS), None, threads=threads)
    team = crew(threads, work=8 * src.size)
    keys = links.sorted_packets(team, src, dst, room)
    return of_sorted_packets(team, keys, room)


def batched_statistics(
    src: Any, dst: Any, batches: int, devices: Any, *, threads: int | None = None
) -> Statistics:
    """The same from parts that are sorted one after the other."""
    size = max(1, -(-src.size // batches))
    room = links.Room()
    runs = (
        traffic.run_of_packets(src[k : k + size], dst[k : k + size], threads=threads, room=room)
        for k in range(0, src.size, size)
    )
    total = traffic.sum_runs(runs, threads=threads)
    return matrix_statistics(trusted(*traffic.rows_of_run(total, threads=threads)), threads=threads)


def of_sorted_packets(team: Crew, keys: Any, room: links.Room) -> Statistics:
    """Overwrites the keys."""
    cuts = links.even_cuts(team, keys, 32)
    sums = links.walk_packets(team, keys, cuts, room)
    values = links.gathered(sums.destinations, cuts, sums.found[:, links.LINKS])
    extras = links.gathered(sums.extras, cuts, sums.found[:, links.EXTRAS])
    links.sort_in_place(team, extras, keys[: extras.size])
    links.sort_in_place(team, values, keys.view(np.uint32)[: values.size])
    starts, sizes = links.destination_cuts(team, values, extras)
    found = links.walk_destinations(team, values, extras, starts, sizes)
    return joined(
        combined(as_table(sums.found, SOURCE_COLUMNS)),
        combined(as_table(found, DESTINATION_COLUMNS)),
    )


def windows_of(
    team: Crew, src: Any, dst: Any, cuts: Any, room: links.Room
) -> tuple[Any, cpu_windows.WindowLinks]:
    """A row of Statistics for each window of packets, and their links.

    A few windows are sorted and walked, then the next ones: so what is made on the way stays in
    the cache, and takes little fresh memory.  Windows must have fewer than 2^32 packets.
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
    return np.concatenate(tables), cpu_windows.all_links(keys, cuts, found)


def _sorted_windows(
    team: Crew, keys: Any, cuts: Any, room: links.Room
) -> tuple[Any, cpu_windows.WindowLinks]:
    """The same for windows of keys, each worked on by one member; overwrites the keys."""
    links.sort_segments(team, keys, cuts[:-1], np.diff(cuts))
    sums = links.walk_packets(team, keys, cuts, room, compact=True)
    sizes = sums.found[:, [links.LINKS, links.EXTRAS]]
    starts = np.stack([cuts[:-1], cuts[:-1]], axis=1)
    links.sort_segments(team, sums.destinations, cuts[:-1], sizes[:, 0])
    links.sort_segments(team, sums.extras, cuts[:-1], sizes[:, 1])
    found = links.walk_destinations(team, sums.destinations, sums.extras, starts, sizes.copy())
    table = as_table(sums.found, SOURCE_COLUMNS) + as_table(found, DESTINATION_COLUMNS)
    return table, cpu_windows.links_of(cuts, sums)


class Extremes(NamedTuple):
    """Of rows: how many have an entry, sums, largest sums and lengths, how often attained."""

    found: Any  # (members, 10) int64 as links.FOUND


@kernel
def _walk_matrix(team: Team, indptr: Any, counts: Any, out: Extremes) -> None:
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
    row = out.found[team.rank]
    row[links.PACKETS], row[links.SOURCES] = total, hi - lo
    row[links.LINKS] = indptr[hi] - indptr[lo]
    row[links.MAX_LINK], row[links.AT_LINK] = max_link, at_link
    row[links.MAX_SOURCE], row[links.AT_SOURCE] = max_source, at_source
    row[links.MAX_FAN], row[links.AT_FAN] = max_fan, at_fan


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
        row[links.DESTINATIONS] = hi - lo
        row[links.MAX_PACKETS], row[links.AT_PACKETS] = max_packets, at_packets
        row[links.MAX_FAN_IN], row[links.AT_FAN_IN] = max_fan, at_fan
    if barrier(team):
        return


def matrix_statistics(matrix: Any, *, threads: int | None = None) -> Statistics:
    """Of a matrix; what its destinations sum up to is kept with it."""
    if matrix.links == 0:
        return Statistics()
    sums = matrix.destination_sums(threads=threads)
    team = crew(threads, work=matrix.links)
    found = np.zeros((team.size, links.FOUND), np.int64)
    team.run(_walk_matrix, matrix.indptr, matrix.counts, Extremes(found))
    shares = np.zeros((max(1, 4 * team.size), 5), np.int64)
    team.run(_walk_sums, sums.fan_in, sums.packets, shares)
    return joined(
        combined(as_table(found, SOURCE_COLUMNS)),
        combined(as_table(shares, DESTINATION_COLUMNS)),
    )


SMALL_VALUES = 1 << 12  # that have a counter of their own; larger ones are few, and sorted


@kernel
def _count_values(team: Team, values: Any, counts: Any) -> None:
    """How often each small value comes, in this member's row; the last is for all larger ones.

    Most values are 1, and their counter is in a register: one in memory takes five cycles.
    """
    lo, hi = share(team, values.size)
    row = counts[team.rank]
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
    """The different values and how often each comes: as np.unique, in one pass for small ones."""
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


def matrix_histograms(matrix: Any, *, threads: int | None = None) -> dict[str, Any]:
    """Of each of the five quantities: values, and how many have each."""
    sums = matrix.destination_sums(threads=threads)
    made = source_tallies(
        matrix.indptr, matrix.counts, matrix.source_sums(threads=threads), threads
    )
    made["destination_fan_in"] = counted(sums.fan_in, threads)
    made["destination_packets"] = counted(sums.packets, threads)
    return made


def source_tallies(
    indptr: Any, counts: Any, packets: Any, threads: int | None = None
) -> dict[str, Any]:
    """Of sources and links."""
    return {
        "source_packets": counted(packets, threads),
        "source_fan_out": counted(np.diff(indptr), threads),
        "link_packets": counted(counts, threads),
    }
