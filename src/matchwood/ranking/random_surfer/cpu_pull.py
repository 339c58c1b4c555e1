"""Sums over the rows of a pattern: what comes to each vertex along its arcs.

Used by the engine of one machine (cpu.py), which makes scores of the sums at once, and by a rank of
a grid (block/cpu.py), whose rows are parts of rows.

Rows are cut into windows: vertices that follow each other, WINDOW at most, with about TASK entries.
Where lengths of rows change often, the rows of a window are visited by length, since a row's end
that the processor does not foresee costs as much as 20 entries.

Reading the entries is the limit, so a window's are read as they lie in memory, one after the other,
and are short where they can be.  A window that is visited by length has a copy of its entries in
that order.  A window whose neighbours all lie within 2^16 vertices has a copy of 2 bytes an entry,
counted from the first of them.  All others read the graph itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import crew, device, kernel, next_chunk

Array = np.ndarray[Any, Any]

WINDOW = 4096  # vertices; a buffer of 16 or 32 KiB stays in the first-level cache
TASK = 1 << 16  # entries of a window, about: some 40 us of work
CALM = 8  # at most one in so many rows differs from the row before: then they are left as they are
LENGTHS = 1024  # rows of this length and longer are not told apart
NEAR = 1 << 16  # vertices; neighbours of a window within as many take 2 bytes each
OWN, COPIED = -1, -2  # instead of a base
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
LONG = np.uint64(1024)  # entries; longer rows are added up in pieces of this length
FIVE, SIX, SEVEN, EIGHT = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


class Plan(NamedTuple):
    """Window w has the vertices starts[w] .. starts[w + 1] - 1, visited in the order of `order`.

    Its entries begin at ``begins[w]`` of `near` where ``bases[w]`` is a vertex, from which they
    count; of `copied` where that is COPIED; and of the graph's own indices where it is OWN.
    """

    starts: Any
    order: Any  # uint16: the vertex less the first of its window
    bases: Any
    begins: Any  # uint64
    near: Any  # uint16
    copied: Any  # as the graph's indices


@kernel
def _by_length(
    team: Any,
    indptr: Array,
    indices: Array,
    starts: Array,
    order: Array,
    bases: Array,
    counts: Array,
) -> None:
    """Sort the vertices of each window by the length of their rows, and find its base."""
    mine = counts[team.rank]
    window = next_chunk(team, starts.size - 1, 1)
    while window >= 0:
        first, last = starts[window], starts[window + 1]
        mine[:] = 0
        changes, before = -1, np.int64(-1)  # the first row changes nothing
        for v in range(first, last):
            length: Any = np.int64(indptr[v + 1]) - np.int64(indptr[v])
            if length != before:
                changes += 1
            mine[min(length, LENGTHS - 1)] += 1
            before = length
        calm = changes * CALM <= last - first
        bases[window] = _base(indices[indptr[first] : indptr[last]], OWN if calm else COPIED)
        at = first
        for length in range(LENGTHS):  # counting keeps the order of rows of one length
            count = mine[length]
            mine[length] = at
            at += count
        for v in range(first, last):
            if calm:
                order[v] = v - first
            else:
                length = min(np.int64(indptr[v + 1]) - np.int64(indptr[v]), LENGTHS - 1)
                order[mine[length]] = v - first
                mine[length] += 1
        window = next_chunk(team, starts.size - 1, 1)


@device
def _base(entries: Array, otherwise: int) -> Any:
    """The smallest of the vertices where all are within NEAR of it."""
    if entries.size == 0:
        return OWN
    least, most = entries[0], entries[0]
    for k in range(entries.size):
        least, most = min(least, entries[k]), max(most, entries[k])
    return np.int64(least) if np.int64(most) - np.int64(least) < NEAR else otherwise


@kernel
def _copy_entries(team: Any, indptr: Array, indices: Array, plan: Plan) -> None:
    """Write the entries of windows that read a copy, row after row as they are visited."""
    starts, windows = plan.starts, plan.starts.size - 1
    window = next_chunk(team, windows, 1)
    while window >= 0:
        base, at = plan.bases[window], plan.begins[window]
        if base != OWN:
            first = starts[window]
            for i in range(first, starts[window + 1]):
                v = first + plan.order[i]
                for k in range(indptr[v], indptr[v + 1]):
                    if base == COPIED:
                        plan.copied[at] = indices[k]
                    else:
                        plan.near[at] = np.int64(indices[k]) - base
                    at += ONE
        window = next_chunk(team, windows, 1)


@device
def _pulled(given: Array, indices: Array, k: Any, end: Any, zero: Any) -> Any:
    """The sum over a row.  Four sums at once, since each addition waits for the one before."""
    a, b, c, d = zero, zero, zero, zero
    while k + EIGHT <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        c += given[indices[k + TWO]]
        d += given[indices[k + THREE]]
        a += given[indices[k + FOUR]]
        b += given[indices[k + FIVE]]
        c += given[indices[k + SIX]]
        d += given[indices[k + SEVEN]]
        k += EIGHT
    if k + FOUR <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        c += given[indices[k + TWO]]
        d += given[indices[k + THREE]]
        k += FOUR
    if k + TWO <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        k += TWO
    if k < end:
        c += given[indices[k]]
    return (a + b) + (c + d)


@device
def _pulled_by_weight(
    given: Array, indices: Array, weights: Array, k: Any, end: Any, zero: Any
) -> Any:
    total = zero
    while k < end:
        total += given[indices[k]] * weights[k]
        k += ONE
    return total


@device
def _pulled_in_pieces(given: Array, entries: Array, k: Any, end: Any, zero: Any) -> Any:
    """The sum over a long row, whose digits would get lost in single precision."""
    total = 0.0
    while k < end:
        piece = min(k + LONG, end)
        total += np.float64(_pulled(given, entries, k, piece, zero))
        k = piece
    return total


@device
def _pull_rows(
    indptr: Array, entries: Array, k: Any, order: Array, given: Array, sums: Array, zero: Any
) -> None:
    """The sums of all rows of a window, which follow each other in `entries` from k on."""
    for at in range(order.size):
        v = np.uint64(order[at])
        end = k + (np.uint64(indptr[v + ONE]) - np.uint64(indptr[v]))
        if end - k == FOUR:  # the rows of a grid: the sum as _pulled has it, without its branches
            a, b = given[entries[k]], given[entries[k + ONE]]
            c, d = given[entries[k + TWO]], given[entries[k + THREE]]
            sums[v] = (a + b) + (c + d)
        elif end - k > LONG:
            sums[v] = _pulled_in_pieces(given, entries, k, end, zero)
        else:
            sums[v] = _pulled(given, entries, k, end, zero)
        k = end


@device
def _pull_rows_by_weight(
    indptr: Array,
    indices: Array,
    weights: Array,
    order: Array,
    given: Array,
    sums: Array,
    zero: Any,
) -> None:
    for at in range(order.size):
        v = np.uint64(order[at])
        k, end = np.uint64(indptr[v]), np.uint64(indptr[v + ONE])
        total = 0.0
        while end - k > LONG:
            total += np.float64(_pulled_by_weight(given, indices, weights, k, k + LONG, zero))
            k += LONG
        last = _pulled_by_weight(given, indices, weights, k, end, zero)
        sums[v] = total + np.float64(last)


@device
def pull_window(
    indptr: Array,
    indices: Array,
    weights: Array,
    plan: Plan,
    window: int,
    given: Array,
    sums: Array,
    zero: Any,
) -> None:
    """The sums of all rows of a window; `sums` has a word for each of them."""
    first, last = plan.starts[window], plan.starts[window + 1]
    rows, order = indptr[first : last + 1], plan.order[first:last]
    base, begin = plan.bases[window], plan.begins[window]
    if weights.size > 0:
        _pull_rows_by_weight(rows, indices, weights, order, given, sums, zero)
    elif base == OWN:
        _pull_rows(rows, indices, begin, order, given, sums, zero)
    elif base == COPIED:
        _pull_rows(rows, plan.copied, begin, order, given, sums, zero)
    else:
        _pull_rows(rows, plan.near, begin, order, given[base:], sums, zero)


def plan_of(indptr: Array, columns: Array, weights: Array | None, threads: int | None) -> Plan:
    """The windows of a matrix; with weights they read its own entries, beside which those lie."""
    indices, n = as_unsigned(columns), indptr.size - 1
    part = indptr[1:].astype(np.int64) // TASK
    window = np.arange(n) // WINDOW
    new = np.flatnonzero((np.diff(part) != 0) | (np.diff(window) != 0)) + 1
    starts = np.concatenate([[0], new, [n]]).astype(np.int64)
    team = crew(threads, work=2 * (n + indices.size))
    order, bases = np.empty(n, np.uint16), np.empty(starts.size - 1, np.int64)
    counts = np.empty((team.size, LENGTHS), np.int64)
    team.run(_by_length, indptr, indices, starts, order, bases, counts)
    if weights is not None:
        bases[:] = OWN
    begins, near, copied = _room(indptr[starts].astype(np.int64), bases)
    plan = Plan(
        starts, order, bases, begins, np.empty(near, np.uint16), np.empty(copied, indices.dtype)
    )
    if near or copied:
        team.run(_copy_entries, indptr, indices, plan)
    return plan


def _room(ends: Array, bases: Array) -> tuple[Array, int, int]:
    """Where each window's entries begin, and how many have 2 bytes and are copied whole."""
    begins, sizes = ends[:-1].astype(np.uint64), np.diff(ends)
    needed = []
    for chosen in (bases >= 0, bases == COPIED):
        places = np.cumsum(sizes[chosen])
        begins[chosen] = places - sizes[chosen]
        needed.append(int(places[-1]) if places.size else 0)
    return begins, needed[0], needed[1]


def as_unsigned(indices: Array) -> Array:
    """The same columns as a type that needs no test for indices from the end."""
    return indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)
