"""Packets to sorted links on a team, and links to their destinations.

A packet is one 64-bit key, its source above its destination.  Sorted keys are links in order, and
the length of a run of equal keys is how many packets the link has.  The keys are divided by their
leading bits and sorted in cache (primitives/sort/cpu.py).

The destinations of the links are sorted as 32-bit keys: a run is a destination, its length the
fan-in.  Packets beyond the first of a link come from a second, short list of (destination, packets
- 1), for links with more than one packet, which is sorted as 64-bit keys.  In traffic with few
repeated links that halves the bytes to sort.

Shares of members begin where a source (or a destination) begins, so none is counted twice.  Members
write to parts of arrays that are their own: there are no races.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Crew, Team, barrier, kernel, next_chunk, share, stopping
from matchwood.engines.cpu.hints import prefetch_write
from matchwood.primitives.sort.cpu import (
    AHEAD,
    BLOCK,
    DIGITS,
    MEMBER_KEYS,
    TEAM_KEYS,
    Range,
    Scratch,
    find_places,
    ranges_of,
    scratch,
    sort_ranges,
    undivided,
)

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)
SHARES = 4  # for each member: one that is slowed down leaves some to others


class Room:
    """Memory that calls in a row use again: fresh pages cost as much as a pass over them."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def __call__(self, name: str, size: int, kind: Any) -> Any:
        """An uninitialised array; valid until it is asked for again by the same name."""
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
    place, mask = words.places[team.rank], np.uint64(DIGITS - 1)
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
    """All packets as keys in order."""
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


class LinkSums(NamedTuple):
    """What a walk over links finds, a row for each segment."""

    found: Any  # (segments, 9) int64, see below
    destinations: Any  # uint32: those of a segment's links, from where the segment starts
    extras: Any  # uint64: destination above (packets - 1), for links with more than one packet
    compact: bool  # extras also hold, from the end of a segment on backwards, for the same links
    #                their number in the segment above (packets - 1)


(PACKETS, LINKS, MAX_LINK, AT_LINK, SOURCES, MAX_SOURCE, AT_SOURCE, MAX_FAN, AT_FAN,
 EXTRAS) = range(10)  # fmt: skip
FOUND = 10


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


DESTINATIONS, MAX_PACKETS, AT_PACKETS, MAX_FAN_IN, AT_FAN_IN = range(5)


class Destinations(NamedTuple):
    """Sorted destinations of links and sorted extras, in segments; what a walk finds of each."""

    values: Any  # uint32
    extras: Any  # uint64
    starts: Any  # (segments, 2) int64: where values and extras of a segment start
    sizes: Any  # (segments, 2) int64: how many there are
    found: Any  # (segments, 5) int64


@kernel
def _walk_destinations(team: Team, given: Destinations) -> None:
    while True:
        segment = next_chunk(team, given.found.shape[0], 1)
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
        row = given.found[segment]
        row[DESTINATIONS] = destinations
        row[MAX_PACKETS], row[AT_PACKETS] = max_packets, at_packets
        row[MAX_FAN_IN], row[AT_FAN_IN] = max_fan, at_fan
    if barrier(team):
        return


def walk_packets(
    team: Crew, keys: Any, cuts: Any, room: Room, *, compact: bool = False
) -> LinkSums:
    """What segments of sorted packets hold; destinations and extras are not in order yet.

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
    team.run(_walk_destinations, Destinations(values, extras, starts, sizes, found))
    return found


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


def sort_segments(team: Crew, array: Any, starts: Any, sizes: Any) -> None:
    """Sort each segment by itself, by one member; one that would keep it too long by all."""
    ranges = [Range(a, a + n, False) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    small = [part for part in ranges if part.hi - part.lo <= MEMBER_KEYS]
    team.spread(lambda k: array[small[k].lo : small[k].hi].sort(), len(small))
    if len(small) < len(ranges):
        for lo, hi, _ in ranges:
            if hi - lo > MEMBER_KEYS:
                sort_in_place(team, array[lo:hi], np.empty(hi - lo, array.dtype))


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
