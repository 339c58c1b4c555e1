"""Refinement on a team.  The rule: __init__.py.

Swapping u and v, at the places a and b, replaces a by b in the rows of u's neighbours and b by a in
those of v's.  A row that holds both stays as it is.  The places of each row are kept sorted: it is
searched for both places, and the places beside them say what changes.

Desire: members take chosen vertices in chunks; nothing changes, so nothing is shared.

Complete: one member simply follows the sequence.  Several take the first swaps that are left, a
window of them.  Each swap lowers the words of its rows and of its two ends to its own number; the
one that then finds its number in all of them runs.  Any two swaps that touch a common row or end
run in the order of the sequence, all others do not disturb each other; so the result is the
sequence's.  Words of later rounds are smaller than all before, so they need not be cleared.

In a grid in its natural order every swap waits for the one before it.  Where nearly all wait, one
member follows the sequence for a stretch, which is four times as long each time.
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
from matchwood.engines.cpu.hints import prefetch
from matchwood.ordering.cpu import log_of, sort_places
from matchwood.ordering.gap import table

Array = np.ndarray[Any, Any]

ONE = np.uint64(1)
SCANNED_PLACES = np.uint64(12)  # places of a row up to which it is scanned, not bisected
HUB_DEGREE = np.uint64(64)  # neighbours; the rows of more are not fetched ahead
AROUND = (-2, -1, 1, 2)  # as in __init__.py
CHUNK = 64  # vertices that a member takes at a time
LEAST, FIRST, MOST = 64, 1024, 1 << 15  # swaps of a window
FREE = np.uint64((1 << 64) - 1)
NUMBER_BITS = np.uint64(40)  # bits of a swap's number in a word; the rounds left are above them
ROUNDS = 1 << 24  # rounds before the words are cleared
NONE = -1  # a swap that is done, or a vertex that desires none
COUNT, LIMIT, NEXT, ROUND, STRETCH = 0, 1, 2, 3, 4  # words of a completion
WORDS = 5


class Order(NamedTuple):
    indptr: Any
    indices: Any
    place: Any
    near: Any  # places of the neighbours, row by row, ascending
    table: Any  # of logarithms; empty where gaps are added up as they are


@device
def _first_from(near: Array, low: Any, high: Any, p: Any) -> Any:
    """The first index in low..high whose place is p or more, or high."""
    while high - low > SCANNED_PLACES:
        middle = (low + high) >> ONE
        if near[middle] < p:
            low = middle + ONE
        else:
            high = middle
    while low < high and near[low] < p:
        low += ONE
    return low


@device
def _bend(left: Any, middle: Any, right: Any, has_left: bool, has_right: bool, logs: Array) -> Any:
    """What a place between two others adds to the metric of a row."""
    total = np.int64(0)
    if has_left:
        total += log_of(np.int64(middle) - np.int64(left), logs)
    if has_right:
        total += log_of(np.int64(right) - np.int64(middle), logs)
    if has_left and has_right:
        total -= log_of(np.int64(right) - np.int64(left), logs)
    return total


@device
def _log_change(near: Array, begin: Any, end: Any, a: Any, b: Any, logs: Array) -> Any:
    """By how much the sum of logarithms falls when b takes the place of a in a row."""
    low, high = min(a, b), max(a, b)
    i = _first_from(near, begin, end, low)
    j = _first_from(near, i, end, high)
    if a < b:
        if i >= end or near[i] != a or (j < end and near[j] == b):
            return np.int64(0)
        at = i  # where a lies
        left_of_b = j - ONE if j - ONE > i else i - ONE
        right_of_b = j
    else:
        if j >= end or near[j] != a or near[i] == b:
            return np.int64(0)
        at = j
        left_of_b = i - ONE
        right_of_b = i if i < j else j + ONE
    before = begin - ONE  # an index that no place has
    has_left, has_right = at > begin, at + ONE < end
    left = near[at - ONE] if has_left else a
    right = near[at + ONE] if has_right else a
    lost = _bend(left, a, right, has_left, has_right, logs)
    has_left, has_right = left_of_b != before, right_of_b < end
    left = near[left_of_b] if has_left else b
    right = near[right_of_b] if has_right else b
    return lost - _bend(left, b, right, has_left, has_right, logs)


@device
def _linear_change(near: Array, begin: Any, end: Any, a: Any, b: Any) -> Any:
    """By how much the distance from first to last falls when b takes the place of a in a row."""
    least, most = near[begin], near[end - ONE]
    if a != least and a != most and least < b and b < most:
        return np.int64(0)
    at = _first_from(near, begin, end, b)
    if at < end and near[at] == b:
        return np.int64(0)
    new_least, new_most = least, most
    if end - begin == ONE:
        return np.int64(0)
    if a == least:
        new_least = near[begin + ONE]
    if a == most:
        new_most = near[end - ONE - ONE]
    new_least, new_most = min(new_least, b), max(new_most, b)
    return (np.int64(most) - np.int64(least)) - (np.int64(new_most) - np.int64(new_least))


@device
def _changes(order: Order, v: Any, a: Any, b: Any) -> Any:
    """By how much the rows of v's neighbours fall when v goes from place a to b."""
    total = np.int64(0)
    first, stop = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + ONE])
    if stop - first <= HUB_DEGREE:  # where rows lie far apart this is a fifth faster
        for k in range(first, stop):
            prefetch(order.near, np.uint64(order.indptr[np.uint64(order.indices[k])]))
    for k in range(first, stop):
        w = np.uint64(order.indices[k])
        begin, end = np.uint64(order.indptr[w]), np.uint64(order.indptr[w + ONE])
        if end - begin > ONE:  # a single place has no gaps
            if order.table.size > 0:
                total += _log_change(order.near, begin, end, a, b, order.table)
            else:
                total += _linear_change(order.near, begin, end, a, b)
    return total


@device
def gain_of(order: Order, u: Any, v: Any) -> Any:
    """By how much the metric falls when u and v swap places."""
    a, b = np.uint64(order.place[u]), np.uint64(order.place[v])
    return _changes(order, u, a, b) + _changes(order, v, b, a)


@device
def _replace(near: Array, begin: Any, end: Any, a: Any, b: Any) -> None:
    """Replace a by b in a row that holds a and not b; else leave it as it is."""
    i = _first_from(near, begin, end, a)
    j = _first_from(near, begin, end, b)
    if i >= end or near[i] != a or (j < end and near[j] == b):
        return
    if a < b:
        while i + ONE < j:
            near[i] = near[i + ONE]
            i += ONE
    else:
        while i > j:
            near[i] = near[i - ONE]
            i -= ONE
    near[i] = b


@device
def swap(order: Order, u: Any, v: Any) -> None:
    a, b = np.uint64(order.place[u]), np.uint64(order.place[v])
    _move(order, u, a, b)
    _move(order, v, b, a)
    order.place[u], order.place[v] = b, a


@device
def _move(order: Order, v: Any, a: Any, b: Any) -> None:
    """Replace a by b in the rows of v's neighbours."""
    k, stop = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + ONE])
    while k < stop:
        w = np.uint64(order.indices[k])
        _replace(order.near, np.uint64(order.indptr[w]), np.uint64(order.indptr[w + ONE]), a, b)
        k += ONE


@device
def median_partner(order: Order, u: Any, vertex: Array, which: int) -> Any:
    """The vertex at one of the four places around the median of u's neighbours, or -1."""
    begin, end = np.int64(order.indptr[u]), np.int64(order.indptr[u + ONE])
    place = np.int64(order.near[np.uint64(begin + (end - begin) // 2)]) + AROUND[which]
    if place < 0 or place >= vertex.size:
        return np.int64(-1)
    return vertex[np.uint64(place)]


# Sweeps


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
        sort_places(team, near, buffers[team.me], row.size)


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
    """Do the rest of the window and the next swaps one by one; returns the number kept."""
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
    """Keep the swaps left in the window, in order, and refill it; returns the number kept."""
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
        if team.me == 0:
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
    kept[team.me] = mine


def refine(
    view: Any, place: Array, chosen: Array, metric: str, median: bool, limit: int | None, *,
    threads: int | None = None,
) -> tuple[Array, int, int, int]:  # fmt: skip
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
