"""A sliding window on a team: each member takes a range of steps, and fills its own first window.

Links, sources and destinations are entries of hash tables: two words, the key + 1 (0: free) and
what is counted.  A packet that comes is looked up; its entries are remembered until it goes.  An
entry that counts nothing any more stays, in case its key comes again; when a table is half full,
all entries that count something move to an empty one.  A table has room for four windows, so that
happens once a window at most.

For each quantity, `levels` holds how many entries have each value.  A packet moves one entry up or
down by one, so a maximum rises by one at most, and falls by one when its last entry leaves.

Members share nothing but the packets, so there are no races.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from matchwood.primitives.cpu_hints import prefetch
from matchwood.teams import Team, crew, device, kernel, share, stopping

ONE, ZERO = np.uint64(1), np.uint64(0)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
SLOTS = 4  # of a table for each packet of the window, at least
AHEAD = 12  # packets from a look-up to the entry that is fetched
LOOK = 1 << 12  # steps between two looks at the stop word
LINK, SOURCE, DESTINATION = 0, 1, 2
(LINKS, MAX_LINK, SOURCES, MAX_SOURCE, MAX_OUT, DESTINATIONS, MAX_DESTINATION,
 MAX_IN) = range(8)  # fmt: skip
LINK_LEVEL, SOURCE_LEVEL, OUT_LEVEL, DESTINATION_LEVEL, IN_LEVEL = range(5)


class Tables(NamedTuple):
    """What one member works with."""

    entries: Any  # (2, 3, 2 * slots) uint64: two sets of tables, one in use
    ring: Any  # (window, 3) uint32: the entries of the packets in the window
    levels: Any  # (5, window + 2) int32 or int64: entries at each value
    used: Any  # (3,) int64: entries of each table that are not free
    numbers: Any  # (8,) int64: the quantities now
    multiplier: Any  # (1,) uint64: odd, the hash


@device
def _place(key: Any, multiplier: Any, shift: Any) -> Any:
    return (key * multiplier) >> shift


@device
def _find(table: Any, key: Any, multiplier: Any, shift: Any, mask: Any) -> Any:
    """The entry of a key, or the free one where it belongs."""
    slot = _place(key, multiplier, shift)
    while True:
        seen = table[slot * np.uint64(2)]
        if seen == key + ONE or seen == ZERO:
            return slot
        slot = (slot + ONE) & mask


@device
def _up(levels: Any, value: Any, most: Any) -> Any:
    """One entry goes from value to value + 1; returns the new maximum."""
    if value > 0:
        levels[value] -= 1
    levels[value + 1] += 1
    return max(most, np.int64(value) + 1)


@device
def _down(levels: Any, value: Any, most: Any) -> Any:
    """One entry goes from value to value - 1; returns the new maximum."""
    levels[value] -= 1
    if value > 1:
        levels[value - 1] += 1
    if levels[most] == 0:
        most -= 1
    return most


@device
def _add(tables: Tables, which: int, at: int, u: Any, v: Any, shift: Any, mask: Any) -> None:
    """A packet comes; `at` is its place in the ring."""
    entries, numbers, levels = tables.entries[which], tables.numbers, tables.levels
    multiplier = tables.multiplier[0]
    two = np.uint64(2)
    link = _find(entries[LINK], (u << HALF) | v, multiplier, shift, mask)
    table = entries[LINK]
    if table[link * two] == ZERO:
        table[link * two] = ((u << HALF) | v) + ONE
        tables.used[LINK] += 1
    packets = table[link * two + ONE]
    table[link * two + ONE] = packets + ONE
    numbers[MAX_LINK] = _up(levels[LINK_LEVEL], packets, numbers[MAX_LINK])
    new = packets == ZERO
    numbers[LINKS] += np.int64(new)
    tables.ring[at, LINK] = link

    table = entries[SOURCE]
    source = _find(table, u, multiplier, shift, mask)
    if table[source * two] == ZERO:
        table[source * two] = u + ONE
        tables.used[SOURCE] += 1
    word = table[source * two + ONE]
    numbers[MAX_SOURCE] = _up(levels[SOURCE_LEVEL], word >> HALF, numbers[MAX_SOURCE])
    numbers[SOURCES] += np.int64(word == ZERO)
    if new:
        numbers[MAX_OUT] = _up(levels[OUT_LEVEL], word & LOW, numbers[MAX_OUT])
    table[source * two + ONE] = word + (ONE << HALF) + np.uint64(new)
    tables.ring[at, SOURCE] = source

    table = entries[DESTINATION]
    destination = _find(table, v, multiplier, shift, mask)
    if table[destination * two] == ZERO:
        table[destination * two] = v + ONE
        tables.used[DESTINATION] += 1
    word = table[destination * two + ONE]
    numbers[MAX_DESTINATION] = _up(
        levels[DESTINATION_LEVEL], word >> HALF, numbers[MAX_DESTINATION]
    )
    numbers[DESTINATIONS] += np.int64(word == ZERO)
    if new:
        numbers[MAX_IN] = _up(levels[IN_LEVEL], word & LOW, numbers[MAX_IN])
    table[destination * two + ONE] = word + (ONE << HALF) + np.uint64(new)
    tables.ring[at, DESTINATION] = destination


@device
def _remove(tables: Tables, which: int, at: int) -> None:
    """The packet at this place of the ring goes."""
    entries, numbers, levels = tables.entries[which], tables.numbers, tables.levels
    two = np.uint64(2)
    place = np.uint64(tables.ring[at, LINK]) * two + ONE
    packets = entries[LINK][place]
    entries[LINK][place] = packets - ONE
    numbers[MAX_LINK] = _down(levels[LINK_LEVEL], packets, numbers[MAX_LINK])
    last = packets == ONE
    numbers[LINKS] -= np.int64(last)

    place = np.uint64(tables.ring[at, SOURCE]) * two + ONE
    word = entries[SOURCE][place]
    numbers[MAX_SOURCE] = _down(levels[SOURCE_LEVEL], word >> HALF, numbers[MAX_SOURCE])
    if last:
        numbers[MAX_OUT] = _down(levels[OUT_LEVEL], word & LOW, numbers[MAX_OUT])
    word -= (ONE << HALF) + np.uint64(last)
    entries[SOURCE][place] = word
    numbers[SOURCES] -= np.int64(word == ZERO)

    place = np.uint64(tables.ring[at, DESTINATION]) * two + ONE
    word = entries[DESTINATION][place]
    numbers[MAX_DESTINATION] = _down(
        levels[DESTINATION_LEVEL], word >> HALF, numbers[MAX_DESTINATION]
    )
    if last:
        numbers[MAX_IN] = _down(levels[IN_LEVEL], word & LOW, numbers[MAX_IN])
    word -= (ONE << HALF) + np.uint64(last)
    entries[DESTINATION][place] = word
    numbers[DESTINATIONS] -= np.int64(word == ZERO)


@device
def _move(tables: Tables, which: int, shift: Any, mask: Any) -> int:
    """Entries that count something move to the other tables; returns which are in use now."""
    old, new = tables.entries[which], tables.entries[1 - which]
    multiplier, two = tables.multiplier[0], np.uint64(2)
    new[:] = ZERO
    tables.used[:] = 0
    for at in range(tables.ring.shape[0]):
        for k in range(3):
            place = np.uint64(tables.ring[at, k]) * two
            key = old[k][place] - ONE
            slot = _find(new[k], key, multiplier, shift, mask)
            if new[k][slot * two] == ZERO:
                new[k][slot * two] = old[k][place]
                new[k][slot * two + ONE] = old[k][place + ONE]
                tables.used[k] += 1
            tables.ring[at, k] = slot
    return 1 - which


@device
def _fetch(tables: Tables, which: int, u: Any, v: Any, shift: Any) -> None:
    """Have the entries of a packet that comes soon brought to the cache."""
    entries, multiplier, two = tables.entries[which], tables.multiplier[0], np.uint64(2)
    prefetch(entries[LINK], _place((u << HALF) | v, multiplier, shift) * two)
    prefetch(entries[SOURCE], _place(u, multiplier, shift) * two)
    prefetch(entries[DESTINATION], _place(v, multiplier, shift) * two)


@kernel
def _slide(
    team: Team, src: Any, dst: Any, stride: int, all_tables: Any, shift: Any, out: Any
) -> None:
    tables = Tables(
        all_tables.entries[team.rank],
        all_tables.ring[team.rank],
        all_tables.levels[team.rank],
        all_tables.used[team.rank],
        all_tables.numbers[team.rank],
        all_tables.multiplier,
    )
    window = tables.ring.shape[0]
    lo, hi = share(team, out.shape[0])
    if lo == hi:
        return
    mask = np.uint64(tables.entries.shape[2] // 2 - 1)
    full = np.int64(mask) // 2
    which, at = 0, 0
    first, last = lo * stride, (hi - 1) * stride + window
    until = first + window  # packets before which the next row is written
    row = lo
    for i in range(first, last):
        if i + AHEAD < last:
            _fetch(tables, which, np.uint64(src[i + AHEAD]), np.uint64(dst[i + AHEAD]), shift)
        if i >= first + window:
            _remove(tables, which, at)
        _add(tables, which, at, np.uint64(src[i]), np.uint64(dst[i]), shift, mask)
        at += 1
        if at == window:
            at = 0
        if i + 1 == until:
            for k in range(8):
                out[row, k] = tables.numbers[k]
            row += 1
            until += stride
        if i >= first + window - 1:
            used = tables.used
            if used[LINK] >= full or used[SOURCE] >= full or used[DESTINATION] >= full:
                which = _move(tables, which, shift, mask)
        if i & (LOOK - 1) == 0 and stopping(team):
            return


def slide(
    src: Any, dst: Any, window: int, stride: int, table: Any, *, threads: int | None = None
) -> None:
    """Fill the table, a row for each step."""
    steps = len(table)
    # a member first fills a window, so a range of steps must be worth one
    packets = (steps - 1) * stride + window
    team = crew(threads, work=16 * packets)
    slots = 1 << max(4, (SLOTS * window - 1).bit_length())
    size = team.size
    wide = np.int32 if window < 2**31 else np.int64
    tables = Tables(
        np.zeros((size, 2, 3, 2 * slots), np.uint64),
        np.zeros((size, window, 3), np.uint32 if slots < 2**32 else np.uint64),
        np.zeros((size, 5, window + 2), wide),
        np.zeros((size, 3), np.int64),
        np.zeros((size, 16), np.int64),
        np.array([secrets.randbits(64) | 1], np.uint64),
    )
    shift = np.uint64(64 - (slots.bit_length() - 1))
    team.run(_slide, src, dst, stride, tables, shift, table)
