"""What an exchange does on its own rank.

by_destination, joined        sort what is sent; join what was received for one place
reordered, taken              arrays over a group whose vertices lie in stripes
distinct, keep_least          the numbers of an array; the least value for each place
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    barrier,
    crew,
    crew_for_step,
    device,
    interrupted,
    kernel,
    next_chunk,
    share,
)

Array = np.ndarray[Any, Any]

# By destination, and joined by place

SUM, LEAST, GREATEST = range(3)
REDUCTIONS = {"sum": SUM, "min": LEAST, "max": GREATEST}


@kernel
def _count(team: Any, destinations: Array, counts: Array) -> None:
    """counts[member, d]: how many of the member's share go to d."""
    mine = counts[team.me]
    mine[:] = 0
    lo, hi = share(team, destinations.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        mine[destinations[k]] += 1


@kernel
def _place(team: Any, destinations: Array, firsts: Array, order: Array) -> None:
    """Write the elements for d to order[firsts[member, d]:], in the order in which they were."""
    mine = firsts[team.me]
    lo, hi = share(team, destinations.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        order[mine[destinations[k]]] = k
        mine[destinations[k]] += 1


def by_destination(destinations: Array, parts: int, threads: int | None) -> tuple[Array, Array]:
    """(order, counts): a stable order by destination, and how many go to each of `parts`."""
    team = crew_for_step(threads, work=destinations.size)
    counts = _counts(destinations, parts, team)
    firsts = np.zeros(team.size * parts, np.int64)
    np.cumsum(counts.T.ravel()[:-1], out=firsts[1:])
    order = np.empty(destinations.size, np.int64)
    team.run(_place, destinations, np.ascontiguousarray(firsts.reshape(parts, -1).T), order)
    return order, counts.sum(axis=0)


def count_by_destination(destinations: Array, parts: int, threads: int | None) -> Array:
    """How many go to each of `parts`."""
    found: Array = _counts(destinations, parts, crew_for_step(threads, work=destinations.size)).sum(
        0
    )
    return found


def _counts(destinations: Array, parts: int, team: Crew) -> Array:
    counts = np.empty((team.size, parts), np.int64)
    team.run(_count, destinations, counts)
    return counts


@device
def _combined(how: int, a: Any, b: Any) -> Any:
    if how == SUM:
        return a + b
    return min(a, b) if how == LEAST else max(a, b)


@kernel
def _join(
    team: Any, places: Array, values: Array, how: int, seen: Array, joined: Array, found: Array
) -> None:
    """joined[place]: its values, joined in their order.  A member has a range of places."""
    lo, hi = share(team, seen.size)
    seen[lo:hi] = False
    count = 0
    for k in range(places.size):
        if interrupted(team, k):
            return
        at = places[k]
        if at < lo or at >= hi:
            continue
        value = values[k]
        if not seen[at]:
            seen[at] = True
            joined[at] = value
            count += 1
        else:
            joined[at] = _combined(how, joined[at], value)
    found[team.me] = count


@kernel
def _compact(
    team: Any, seen: Array, joined: Array, found: Array, out_places: Array, out_values: Array
) -> None:
    """The places that were seen and their values, ascending."""
    lo, hi = share(team, seen.size)
    at = 0
    for member in range(team.me):
        at += found[member]
    for place in range(lo, hi):
        if seen[place]:
            out_places[at] = place
            out_values[at] = joined[place]
            at += 1


@kernel
def _join_runs(
    team: Any, order: Array, places: Array, values: Array, how: int, out: tuple[Array, Array],
    found: Array,
) -> None:  # fmt: skip
    """As _join and _compact, where `order` sorts the places; for one member."""
    out_places, out_values = out
    at = -1
    for k in order:
        value = values[k]
        if at < 0 or out_places[at] != places[k]:
            at += 1
            out_places[at] = places[k]
            out_values[at] = value
        else:
            out_values[at] = _combined(how, out_values[at], value)
    found[0] = at + 1
    barrier(team)


SCANNED_SHARE = 16
"""With fewer elements than places / SCANNED_SHARE, sorting them is cheaper than a scan."""


def joined(
    places: Array, values: Array, op: str, size: int, threads: int | None
) -> tuple[Array, Array]:
    """Each place (int64, below `size`) once, ascending, its values joined in their order."""
    as_bits = values.dtype == np.bool_
    if op == "or" and not as_bits:
        return _joined_bits(places, values)
    values = values.view(np.uint8) if as_bits else values
    how = REDUCTIONS["max" if op == "or" else op]
    if places.size * SCANNED_SHARE < size:
        order = np.argsort(places, kind="stable")
        out = (np.empty(places.size, np.int64), np.empty(places.size, values.dtype))
        found = np.zeros(1, np.int64)
        crew(1, work=places.size).run(_join_runs, order, places, values, how, out, found)
        count = int(found[0])
        out_places, out_values = out[0][:count].copy(), out[1][:count].copy()
    else:
        team = crew(threads, work=places.size + size)
        seen, kept = np.empty(size, np.bool_), np.empty(size, values.dtype)
        found = np.zeros(team.size, np.int64)
        team.run(_join, places, values, how, seen, kept, found)
        count = int(found.sum())
        out_places, out_values = np.empty(count, np.int64), np.empty(count, values.dtype)
        team.run(_compact, seen, kept, found, out_places, out_values)
    return out_places, (out_values > 0 if as_bits else out_values)


def _joined_bits(places: Array, values: Array) -> tuple[Array, Array]:
    """As `joined` by bitwise or, for integers."""
    order = np.argsort(places, kind="stable")
    out_places, firsts = np.unique(places[order], return_index=True)
    if not places.size:
        return out_places, values
    return out_places, np.bitwise_or.reduceat(values[order], firsts)


# Arrays over a group whose vertices lie in stripes: by position, and by owner.
# Position k * ranks + s is place k of rank s.  NumPy reads the whole array once for each rank; here
# it goes through the cache in tiles.  Elements are words of their size, whatever they mean.

TILE_PLACES = 512  # of each rank that a member takes at a time: they fit into the nearest cache
TAKEN_ELEMENTS = 4096  # that a member takes at a time
WORD_BITS = 64  # places in a word
STRIPED_ELEMENTS = 1 << 14  # smaller arrays are ordered by NumPy, which is as quick


@kernel
def _move(team: Any, values: Array, starts: Array, by_owner: bool, out: Array) -> None:
    """From an array by position to one by owner, or back."""
    parts, most, one = np.uint64(starts.size - 1), starts[1], np.uint64(1)
    tile = next_chunk(team, most, TILE_PLACES)
    while tile >= 0:
        for s in range(parts):
            begin = np.uint64(starts[s])
            end = min(tile + TILE_PLACES, starts[s + one] - starts[s])
            source, step = (s, parts) if by_owner else (begin, one)
            target, stride = (begin, one) if by_owner else (s, parts)
            for k in range(np.uint64(tile), np.uint64(max(end, tile))):
                out[target + k * stride] = values[source + k * step]
        tile = next_chunk(team, most, TILE_PLACES)


@kernel
def _take(team: Any, values: Array, places: Array, out: Array) -> None:
    first = next_chunk(team, places.size, TAKEN_ELEMENTS)
    while first >= 0:
        for i in range(first, min(first + TAKEN_ELEMENTS, places.size)):
            out[i] = values[places[i]]
        first = next_chunk(team, places.size, TAKEN_ELEMENTS)


@kernel
def _with_entries(team: Any, indptr: Array, rows: int, words: Array) -> None:
    if team.me > 0:
        return
    s, place = 0, 0
    for v in range(rows):
        if interrupted(team, v):
            return
        full = np.uint64(indptr[v] < indptr[v + 1])
        words[s, place // WORD_BITS] |= full << np.uint64(place % WORD_BITS)
        s += 1
        if s == words.shape[0]:
            s, place = 0, place + 1


def rows_with_entries(indptr: Array, grid: Any) -> Array:
    """(C, words) array with a bit for each place of each rank of the row: its row has entries."""
    words = np.zeros((grid.C, -(-grid.most_owned // WORD_BITS)), np.uint64)
    crew(1, work=grid.n_rows).run(_with_entries, indptr, grid.n_rows, words)
    return words


def places_by_owner(positions: Array, counts: list[int]) -> Array:
    """Where these positions are in what the ranks have, one after the other; unsigned."""
    parts, starts = len(counts), (np.cumsum(counts) - counts).astype(positions.dtype)
    return starts[positions % parts] + positions // parts


def taken(values: Array, places: Array, threads: int | None) -> Array:
    """``values[places]``; places are unsigned."""
    out = np.empty(places.size, values.dtype)
    crew(threads, work=places.size).run(_take, values, places, out)
    return out


def reordered(values: Array, counts: list[int], by_owner: bool, threads: int | None) -> Array:
    """An array by position, ordered by owner, or back; rank s has counts[s], rank 0 the most."""
    out = np.empty_like(values)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    word = np.dtype(f"u{values.itemsize}")
    crew(threads, work=values.size).run(_move, values.view(word), starts, by_owner, out.view(word))
    return out


# Which numbers there are in an array, by a hash table; and the least value for each place.
# By one thread: quicker than a sort.

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: takes near numbers apart
EMPTY = -1


@device
def _slot(x: Any, shift: Any) -> Any:
    return np.int64((np.uint64(x) * GOLDEN) >> shift)


@kernel
def _number(
    team: Any, values: Array, shift: Any, table: Array, firsts: Array, back: Array, count: Array
) -> None:
    """One member.  table[slot]: the number of the value there; firsts[number]: its first place."""
    if team.me > 0:
        return
    mask = table.size - 1
    found = np.int64(0)
    for i in range(values.size):
        if interrupted(team, i):
            return
        x = values[i]
        if i > 0 and x == values[i - 1]:
            back[i] = back[i - 1]
            continue
        slot = _slot(x, shift)
        while table[slot] != EMPTY and values[firsts[table[slot]]] != x:
            slot = (slot + 1) & mask
        if table[slot] == EMPTY:
            table[slot] = found
            firsts[found] = i
            found += 1
        back[i] = table[slot]
    count[0] = found


def distinct(values: Array) -> tuple[Array, Array]:
    """(firsts, back): where each number occurs first; for each element, which of these it is."""
    size = values.size
    bits = max(1, int(2 * size).bit_length())
    table = np.full(1 << bits, EMPTY, np.int32 if size < 1 << 31 else np.int64)
    firsts, back = np.empty(size, np.int64), np.empty(size, np.int64)
    count = np.zeros(1, np.int64)
    crew(1, work=2 * size).run(
        _number, values, np.uint64(64 - bits), table, firsts, back, count
    )  # fmt: skip
    return firsts[: int(count[0])], back


def keep_least(least: Array, places: Array, values: Array) -> None:
    """Lower ``least[places[i]]`` to ``values[i]``, for every i."""
    np.minimum.at(least, places, values)
