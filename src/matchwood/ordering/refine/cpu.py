"""Refinement on a team.  The rule: __init__.py; swaps and their gains: cpu_swaps.py.

Desire: members take chosen vertices in chunks; nothing changes, so nothing is shared.

Complete: one member simply follows the sequence.  Several take the first swaps that are left, a
window of them.  Each swap lowers the words of its rows and of its two ends to its own number; the
one that then finds its number in all of them runs.  Any two swaps that touch a common row or end
run in the order of the sequence, all others do not disturb each other; so the result is the
sequence's.  Words of later rounds are smaller than all before, so they need not be cleared.

In a grid in its natural order every swap waits for the one before it: where nearly all wait, one
member follows the sequence for a stretch, four times as far each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_min,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    share_rows,
    stopping,
)
from matchwood.ordering.cpu_logs import sort_places
from matchwood.ordering.gap.logarithms import table
from matchwood.ordering.refine.cpu_swaps import Order, gain_of, median_partner, swap

Array = np.ndarray[Any, Any]

CHUNK = 64  # vertices that a member takes at a time
LEAST, FIRST, MOST = 64, 1024, 1 << 15  # swaps of a window
FREE = np.uint64((1 << 64) - 1)
NUMBER_BITS = np.uint64(40)  # of a word; the rounds that are left are above them
ROUNDS = 1 << 24  # before the words are cleared
NONE = -1  # a swap that is done, or that nobody desires
COUNT, LIMIT, NEXT, ROUND, STRETCH = 0, 1, 2, 3, 4  # words of a completion
WORDS = 5


class Sequence(NamedTuple):
    """Swaps in their order, and what members share while they complete them."""

    first: Any
    second: Any
    window: Any  # numbers of swaps
    claims: Any  # n rows, then n ends
    words: Any


@kernel
def _sort_rows(team: Any, order: Order, indices: Array, buffers: Array) -> None:
    """near[indptr[v] : indptr[v + 1]] = the places of v's neighbours, ascending."""
    lo, hi = share_rows(team, order.indptr)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        begin, end = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + 1])
        row, near = indices[begin:end], order.near[begin:end]
        for k in range(row.size):
            near[k] = order.place[np.uint64(row[k])]
        sort_places(near, buffers[team.rank], row.size)


@device
def _desire(team: Any, order: Order, u: Any, vertex: Array) -> Any:
    """The partner whose swap with u gains most, or NONE.  `vertex` is empty, or vertex[place]."""
    best, partner = np.int64(0), np.int64(NONE)
    begin, end = np.uint64(order.indptr[u]), np.uint64(order.indptr[u + np.uint64(1)])
    row = order.indices[begin:end]
    for k in range(row.size):
        if stopping(team):
            return partner
        v = np.uint64(row[k])
        gain = gain_of(order, u, v)
        if gain > best:  # neighbours ascend: of equal gains the first has the smaller vertex
            best, partner = gain, np.int64(v)
    if vertex.size > 0:
        for which in range(4):
            v = median_partner(order, u, vertex, which)
            if v >= 0 and np.uint64(v) != u:
                gain = gain_of(order, u, np.uint64(v))
                if gain > best or (gain == best and gain > 0 and v < partner):
                    best, partner = gain, np.int64(v)
    return partner


@kernel
def _desires(team: Any, order: Order, chosen: Array, vertex: Array, partner: Array) -> None:
    first = next_chunk(team, chosen.size, CHUNK)
    while first >= 0:
        for k in range(first, min(first + CHUNK, chosen.size)):
            partner[k] = _desire(team, order, np.uint64(chosen[k]), vertex)
        first = next_chunk(team, chosen.size, CHUNK)


@device
def _claim(order: Order, sequence: Sequence, number: int, word: Any) -> None:
    n = np.uint64(order.place.size)
    for v in (np.uint64(sequence.first[number]), np.uint64(sequence.second[number])):
        atomic_min(sequence.claims, n + v, word)
        begin, end = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + np.uint64(1)])
        row = order.indices[begin:end]
        for k in range(row.size):
            atomic_min(sequence.claims, np.uint64(row[k]), word)


@device
def _holds(order: Order, sequence: Sequence, number: int, word: Any) -> bool:
    n = np.uint64(order.place.size)
    for v in (np.uint64(sequence.first[number]), np.uint64(sequence.second[number])):
        if load_relaxed(sequence.claims, n + v) != word:
            return False
        begin, end = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + np.uint64(1)])
        row = order.indices[begin:end]
        for k in range(row.size):
            if load_relaxed(sequence.claims, np.uint64(row[k])) != word:
                return False
    return True


@device
def _try_swap(order: Order, u: Any, v: Any) -> int:
    """Swap if that gains; 1 if it did."""
    if gain_of(order, u, v) <= 0:
        return 0
    swap(order, u, v)
    return 1


@device
def _follow(team: Any, order: Order, sequence: Sequence, count: int) -> int:
    """Do what is left of the window and the next swaps, one after the other; how many were kept."""
    words, kept = sequence.words, 0
    for k in range(words[COUNT]):
        number = sequence.window[k]
        if number != NONE:
            u, v = np.uint64(sequence.first[number]), np.uint64(sequence.second[number])
            kept += _try_swap(order, u, v)
    last = min(words[NEXT] + count, sequence.first.size)
    for number in range(words[NEXT], last):
        if stopping(team):
            return kept
        u, v = np.uint64(sequence.first[number]), np.uint64(sequence.second[number])
        kept += _try_swap(order, u, v)
    words[COUNT], words[NEXT] = 0, last
    return kept


@device
def _next_window(team: Any, order: Order, sequence: Sequence) -> int:
    """Keep what is left of the window, in order, and fill it up; how many were kept on the way."""
    window, words = sequence.window, sequence.words
    count, left, kept = words[COUNT], 0, 0
    for k in range(count):
        if window[k] != NONE:
            window[left] = window[k]
            left += 1
    words[COUNT] = left
    if 4 * (count - left) < count:  # most waited for others: look less far ahead
        if words[LIMIT] == LEAST and 8 * (count - left) < count:  # a chain: follow it
            words[STRETCH] = min(MOST, 4 * words[STRETCH])
            kept = _follow(team, order, sequence, words[STRETCH])
            left = 0
        words[LIMIT] = max(LEAST, words[LIMIT] // 2)
    elif 2 * (count - left) > count:
        words[LIMIT] = min(MOST, words[LIMIT] * 2)
        words[STRETCH] = LEAST
    while left < words[LIMIT] and words[NEXT] < sequence.first.size:
        window[left] = words[NEXT]
        words[NEXT] += 1
        left += 1
    words[COUNT] = left
    words[ROUND] += 1
    if words[ROUND] == ROUNDS:
        words[ROUND] = 1
        for k in range(sequence.claims.size):
            sequence.claims[k] = FREE
    return kept


@kernel
def _complete(team: Any, order: Order, sequence: Sequence, kept: Array) -> None:
    words, mine = sequence.words, 0
    if team.size == 1:
        for k in range(sequence.first.size):
            if stopping(team):  # at each swap: that of a hub reads all rows of its neighbours
                return
            mine += _try_swap(order, np.uint64(sequence.first[k]), np.uint64(sequence.second[k]))
        kept[0] = mine
        return
    while True:
        if team.rank == 0:
            mine += _next_window(team, order, sequence)
        if barrier(team):
            return
        count = words[COUNT]
        if count == 0:
            break
        above = np.uint64(ROUNDS - words[ROUND]) << NUMBER_BITS
        lo, hi = share(team, count)
        for k in range(lo, hi):
            number = sequence.window[k]
            _claim(order, sequence, number, above | np.uint64(number))
        if barrier(team):
            return
        for k in range(lo, hi):
            number = sequence.window[k]
            if _holds(order, sequence, number, above | np.uint64(number)):
                u, v = np.uint64(sequence.first[number]), np.uint64(sequence.second[number])
                mine += _try_swap(order, u, v)
                sequence.window[k] = NONE
        if barrier(team):
            return
    kept[team.rank] = mine


def refine(
    view: Any,
    place: Array,
    chosen: Array,
    metric: str,
    median: bool,
    limit: int | None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int, int]:
    n = view.n
    if chosen.size == 0:
        return place, 0, 0, 1
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    team = crew(threads, work=4 * view.nnz + n)
    logs = table() if metric == "log_gap" else table()[:0]
    indices = view.indices.view(unsigned)
    order = Order(view.indptr, indices, place.view(unsigned), np.empty(view.nnz, unsigned), logs)
    longest = int(np.diff(view.indptr).max())
    team.run(_sort_rows, order, indices, np.empty((team.size, longest), unsigned))
    partner = np.empty(chosen.size, np.int64)
    vertex = np.empty(n if median else 0, np.int64)
    claims = np.full(2 * n if team.size > 1 else 0, FREE, np.uint64)
    window = np.empty(MOST if team.size > 1 else 0, np.int64)
    proposed = kept = done = 0
    while limit is None or done < limit:
        done += 1
        if median:
            vertex[place] = np.arange(n)
        team.run(_desires, order, chosen, vertex, partner)
        here = np.flatnonzero(partner != NONE)
        if here.size == 0:
            break
        proposed += here.size
        words = np.zeros(WORDS, np.int64)
        words[LIMIT], words[STRETCH] = FIRST, LEAST
        claims.fill(FREE)
        counts = np.zeros(team.size, np.int64)
        first = chosen[here].astype(np.int64)
        team.run(_complete, order, Sequence(first, partner[here], window, claims, words), counts)
        kept += int(counts.sum())
    return place, int(proposed), kept, done
