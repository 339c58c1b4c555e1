"""What an exchange does on its own rank: sort by destination, join what came for one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, crew_for_step, interrupted, kernel, share

Array = np.ndarray[Any, Any]

SUM, LEAST, GREATEST = range(3)
WAYS = {"sum": SUM, "min": LEAST, "max": GREATEST}


@kernel
def _count(team: Any, destinations: Array, counts: Array) -> None:
    """counts[member, d]: how many of the member's share go to d."""
    mine = counts[team.rank]
    mine[:] = 0
    lo, hi = share(team, destinations.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        mine[destinations[k]] += 1


@kernel
def _place(team: Any, destinations: Array, firsts: Array, order: Array) -> None:
    """The elements for d into order[firsts[member, d]:], in the order in which they were."""
    mine = firsts[team.rank]
    lo, hi = share(team, destinations.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        order[mine[destinations[k]]] = k
        mine[destinations[k]] += 1


def by_destination(destinations: Array, parts: int, threads: int | None) -> tuple[Array, Array]:
    """(order, counts): a stable order by destination, and how many go to each of `parts`."""
    team = crew_for_step(threads, work=destinations.size)
    counts = np.empty((team.size, parts), np.int64)
    team.run(_count, destinations, counts)
    firsts = np.zeros(team.size * parts, np.int64)
    np.cumsum(counts.T.ravel()[:-1], out=firsts[1:])
    order = np.empty(destinations.size, np.int64)
    team.run(_place, destinations, np.ascontiguousarray(firsts.reshape(parts, -1).T), order)
    return order, counts.sum(axis=0)


@kernel
def _join(
    team: Any, places: Array, values: Array, how: int, seen: Array, joined: Array, found: Array
) -> None:
    """joined[place]: all values for it, in the order in which they came.

    A member has a range of places, and looks at all elements.
    """
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
        elif how == SUM:
            joined[at] += value
        elif how == LEAST:
            joined[at] = min(joined[at], value)
        else:
            joined[at] = max(joined[at], value)
    found[team.rank] = count


@kernel
def _compact(
    team: Any, seen: Array, joined: Array, found: Array, out_places: Array, out_values: Array
) -> None:
    """The places that were seen and their values, ascending."""
    lo, hi = share(team, seen.size)
    at = 0
    for member in range(team.rank):
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
    """The same where `order` sorts the places; for one member."""
    out_places, out_values = out
    at = -1
    for k in order:
        value = values[k]
        if at < 0 or out_places[at] != places[k]:
            at += 1
            out_places[at] = places[k]
            out_values[at] = value
        elif how == SUM:
            out_values[at] += value
        elif how == LEAST:
            out_values[at] = min(out_values[at], value)
        else:
            out_values[at] = max(out_values[at], value)
    found[0] = at + 1
    barrier(team)


SCAN = 16  # with fewer elements than 1 / SCAN of the places, sorting them is cheaper than a scan


def joined(
    places: Array, values: Array, op: str, size: int, threads: int | None
) -> tuple[Array, Array]:
    """Each place once, ascending, with its values joined in the order in which they came.

    `places` are int64, below `size`.
    """
    as_bits = values.dtype == np.bool_
    if op == "or" and not as_bits:
        return _joined_bits(places, values)
    values = values.view(np.uint8) if as_bits else values
    how = WAYS["max" if op == "or" else op]
    if places.size * SCAN < size:
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
    """The bits of all values of a place; for integers."""
    order = np.argsort(places, kind="stable")
    out_places, firsts = np.unique(places[order], return_index=True)
    if not places.size:
        return out_places, values
    return out_places, np.bitwise_or.reduceat(values[order], firsts)
