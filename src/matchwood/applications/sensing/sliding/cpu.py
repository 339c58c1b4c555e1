"""A sliding window on a team: each member takes a range of steps, and fills its own first window.

Links, sources and destinations are entries of hash tables: two words, the key and what is
counted.  A packet that enters is looked up; its entries are kept until it leaves.  An entry that
counts nothing any more stays, in case its key occurs again; when a table is half full, all entries
that count something move to an empty one.  A table has room for four windows, so that happens once
a window at most.

For each quantity, `levels` holds how many entries have each value.  A packet moves one entry up or
down by one, so a maximum rises by one at most, and falls by one when its last entry leaves.

Members share nothing but the packets, so there are no races.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, crew, device, expanded, kernel, share, stopping
from matchwood.engines.cpu.hints import prefetch_write

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
IN_USE = np.uint64(1 << 63)  # a bit of the second word, since every 64-bit number can be a key
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
SLOTS = 4  # least entries of a table for each packet of the window
AHEAD = 16  # packets between the one whose entries are prefetched and the present one
LOOK = 1 << 12  # packets between two checks of the stop word


class Scratch(NamedTuple):
    """The arrays of all members; the first axis is the member."""

    entries: Any  # (members, 2, 3, 2 * slots) uint64: two sets of tables, one in use
    ring: Any  # (members, 3, window) uint32: the entries of the packets in the window
    levels: Any  # (members, 5, window + 2) int32: entries at each value
    multiplier: Any  # (1,) uint64: odd, the hash


class Tables(NamedTuple):
    """Pairs of words: a key, and its packets, or packets above fan; second word 0: free."""

    link: Any
    source: Any
    destination: Any


class Levels(NamedTuple):
    """The number of entries with each value; that of value 0 is not used."""

    link: Any
    source: Any
    out: Any
    destination: Any
    into: Any


class Hash(NamedTuple):
    """Where a key belongs."""

    multiplier: Any
    shift: Any
    mask: Any


class Now(NamedTuple):
    """The quantities at this moment, in the order of a row."""

    links: Any
    max_link: Any
    sources: Any
    max_source: Any
    max_out: Any
    destinations: Any
    max_destination: Any
    max_in: Any


@expanded
def _place(key: Any, form: Hash) -> Any:
    return (key * form.multiplier) >> form.shift


@expanded
def _find(table: Any, key: Any, form: Hash) -> Any:
    """The entry of a key, or the free one where it belongs."""
    slot = _place(key, form)
    while True:
        if (table[slot * TWO] == key) | (table[slot * TWO + ONE] == ZERO):
            return slot
        slot = (slot + ONE) & form.mask


@expanded
def _up(levels: Any, value: Any, step: Any, most: Any) -> Any:
    """Move an entry from value to value + step, 0 or 1; returns the new maximum."""
    levels[value] -= step
    levels[value + step] += step
    return max(most, value + step)


@expanded
def _down(levels: Any, value: Any, step: Any, most: Any) -> Any:
    """Move an entry from value to value - step, 0 or 1; returns the new maximum."""
    levels[value] -= step
    levels[value - step] += step
    return most - np.uint64(levels[most] == 0)


@expanded
def _side_up(table: Any, slot: Any, key: Any, packets: Any, fans: Any, new: Any, most: Any) -> Any:
    """Add a packet of an address, on a new link or not: (was free, is new, the two maxima)."""
    word = table[slot * TWO + ONE]
    table[slot * TWO] = key
    table[slot * TWO + ONE] = (word | IN_USE) + (ONE << HALF) + new
    count = word & ~IN_USE
    most_packets = _up(packets, count >> HALF, ONE, most[0])
    most_fan = _up(fans, count & LOW, new, most[1])
    return np.int64(word == ZERO), np.uint64(count == ZERO), most_packets, most_fan


@expanded
def _side_down(table: Any, slot: Any, packets: Any, fans: Any, last: Any, most: Any) -> Any:
    """Remove a packet of an address, with its link or not."""
    word = table[slot * TWO + ONE] - ((ONE << HALF) + last)
    table[slot * TWO + ONE] = word
    left = word & ~IN_USE
    most_packets = _down(packets, (left >> HALF) + ONE, ONE, most[0])
    return np.uint64(left == ZERO), most_packets, _down(fans, (left & LOW) + last, last, most[1])


@expanded
def _remove(tables: Tables, levels: Levels, ring: Any, at: Any, now: Now) -> Now:
    """Remove the packet at this place of the ring."""
    slot = np.uint64(ring[0, at])
    word = tables.link[slot * TWO + ONE]
    tables.link[slot * TWO + ONE] = word - ONE
    packets = word & ~IN_USE
    max_link = _down(levels.link, packets, ONE, now.max_link)
    last = np.uint64(packets == ONE)
    gone, max_source, max_out = _side_down(
        tables.source, np.uint64(ring[1, at]), levels.source, levels.out, last,
        (now.max_source, now.max_out),
    )  # fmt: skip
    left, max_destination, max_in = _side_down(
        tables.destination, np.uint64(ring[2, at]), levels.destination, levels.into, last,
        (now.max_destination, now.max_in),
    )  # fmt: skip
    return Now(
        now.links - last, max_link, now.sources - gone, max_source, max_out,
        now.destinations - left, max_destination, max_in,
    )  # fmt: skip


@expanded
def _add(
    tables: Tables, levels: Levels, ring: Any, at: Any, u: Any, v: Any, form: Hash, now: Now
) -> Any:
    """Add a packet; returns the quantities, and the number of free entries each table lost."""
    key = (u << HALF) | v
    link = _find(tables.link, key, form)
    source = _find(tables.source, u, form)
    destination = _find(tables.destination, v, form)
    ring[0, at], ring[1, at], ring[2, at] = link, source, destination
    word = tables.link[link * TWO + ONE]
    tables.link[link * TWO] = key
    tables.link[link * TWO + ONE] = (word | IN_USE) + ONE
    packets = word & ~IN_USE
    max_link = _up(levels.link, packets, ONE, now.max_link)
    new = np.uint64(packets == ZERO)
    source_free, new_source, max_source, max_out = _side_up(
        tables.source, source, u, levels.source, levels.out, new, (now.max_source, now.max_out)
    )
    destination_free, new_destination, max_destination, max_in = _side_up(
        tables.destination, destination, v, levels.destination, levels.into, new,
        (now.max_destination, now.max_in),
    )  # fmt: skip
    after = Now(
        now.links + new, max_link, now.sources + new_source, max_source, max_out,
        now.destinations + new_destination, max_destination, max_in,
    )  # fmt: skip
    return after, np.int64(word == ZERO), source_free, destination_free


@device
def _move(old: Any, new: Any, ring: Any, form: Hash) -> int:
    """Move entries that count something to another table; returns their number."""
    new[:] = ZERO
    window = ring.size
    used = 0
    for at in range(window):
        if at + AHEAD < window:
            prefetch_write(old, np.uint64(ring[at + AHEAD]) * TWO)
        if at + AHEAD // 2 < window:
            key = old[np.uint64(ring[at + AHEAD // 2]) * TWO]
            prefetch_write(new, _place(key, form) * TWO)
        entry = np.uint64(ring[at]) * TWO
        slot = _find(new, old[entry], form)
        if new[slot * TWO + ONE] == ZERO:
            new[slot * TWO] = old[entry]
            new[slot * TWO + ONE] = old[entry + ONE]
            used += 1
        ring[at] = slot
    return used


@expanded
def _fetch_entries(tables: Tables, ring: Any, at: Any) -> None:
    """Prefetch the entries of a packet that leaves soon."""
    prefetch_write(tables.link, np.uint64(ring[0, at]) * TWO)
    prefetch_write(tables.source, np.uint64(ring[1, at]) * TWO)
    prefetch_write(tables.destination, np.uint64(ring[2, at]) * TWO)


@expanded
def _fetch_keys(tables: Tables, u: Any, v: Any, form: Hash) -> None:
    """Prefetch the entries of a packet that enters soon."""
    prefetch_write(tables.link, _place((u << HALF) | v, form) * TWO)
    prefetch_write(tables.source, _place(u, form) * TWO)
    prefetch_write(tables.destination, _place(v, form) * TWO)


@kernel
def _slide(team: Team, src: Any, dst: Any, stride: int, scratch: Scratch, out: Any) -> None:
    lo, hi = share(team, out.shape[0])
    if lo == hi:
        return
    sets, ring, counts = (
        scratch.entries[team.me], scratch.ring[team.me], scratch.levels[team.me]
    )  # fmt: skip
    levels = Levels(counts[0], counts[1], counts[2], counts[3], counts[4])
    window, slots = np.uint64(ring.shape[1]), np.uint64(sets.shape[2] // 2)
    bits = np.uint64(0)
    while (ONE << bits) < slots:
        bits += ONE
    form = Hash(scratch.multiplier[0], np.uint64(64) - bits, slots - ONE)
    full = np.int64(slots // TWO)
    which = 0
    tables = Tables(sets[0, 0], sets[0, 1], sets[0, 2])
    now = Now(ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)
    used_link = used_source = used_destination = np.int64(0)
    first, end = np.uint64(lo * stride), np.uint64((hi - 1) * stride) + window
    filled, until = first + window, first + window
    step, ahead, row, at = np.uint64(stride), np.uint64(AHEAD), np.uint64(lo), ZERO
    i = first
    while i < end:
        if i + ahead < end:
            _fetch_keys(tables, np.uint64(src[i + ahead]), np.uint64(dst[i + ahead]), form)
        if i + ahead >= filled and at + ahead < window:
            _fetch_entries(tables, ring, at + ahead)
        if i >= filled:
            now = _remove(tables, levels, ring, at, now)
        now, link_free, source_free, destination_free = _add(
            tables, levels, ring, at, np.uint64(src[i]), np.uint64(dst[i]), form, now
        )
        used_link += link_free
        used_source += source_free
        used_destination += destination_free
        i += ONE
        at += ONE
        if at == window:
            at = ZERO
        if i == until:
            line = out[row]
            line[0], line[1], line[2], line[3] = (
                now.links,
                now.max_link,
                now.sources,
                now.max_source,
            )
            line[4], line[5] = now.max_out, now.destinations
            line[6], line[7] = now.max_destination, now.max_in
            row += ONE
            until += step
        if i >= filled and max(used_link, used_source, used_destination) >= full:
            which = 1 - which
            used_link = _move(tables.link, sets[which, 0], ring[0], form)
            used_source = _move(tables.source, sets[which, 1], ring[1], form)
            used_destination = _move(tables.destination, sets[which, 2], ring[2], form)
            tables = Tables(sets[which, 0], sets[which, 1], sets[which, 2])
        if i & np.uint64(LOOK - 1) == ZERO and stopping(team):
            return


def slide(
    src: Any, dst: Any, window: int, stride: int, table: Any, *, threads: int | None = None
) -> None:
    """Fill the table, a row for each step."""
    team = crew(threads, work=16 * ((len(table) - 1) * stride + window))
    size = min(team.size, len(table))
    slots = 1 << max(5, (SLOTS * window - 1).bit_length())
    scratch = Scratch(
        np.zeros((size, 2, 3, 2 * slots), np.uint64),
        np.zeros((size, 3, window), np.uint32 if slots < 2**32 else np.uint64),
        np.zeros((size, 5, window + 2), np.int32),
        np.array([secrets.randbits(64) | 1], np.uint64),
    )
    team.run(_slide, src, dst, stride, scratch, table)
