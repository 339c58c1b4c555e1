"""Queue and bitmap on a team: device functions for kernels, and the two conversions.

Queue.  All members append to one array `queue`; `tail[0]` is its length.  An append goes to a
buffer of the member's own.  Only a full buffer touches `tail`, by one atomic add: with 128 slots,
one append in 128 competes with the other members.  The order between members is arbitrary.

    count = 0
    for ...:
        count = push(buffer, count, v, queue, tail)    # `buffer`: one row for each member
    count = flush(buffer, count, queue, tail)
    if barrier(team): return                           # now queue[:tail[0]] is complete

The caller sets `tail` to 0 with a barrier before the first push, and makes `queue` long enough.

Bitmap.  uint64 words, see __init__.py.  `set_bit` and `claim_bit` may run on one word at once: an
atomic or changes its own bit alone.  Racing reads are relaxed loads: a bit that another member sets
at the same time may be seen or not.  A barrier orders them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import (
    Team,
    atomic_add,
    atomic_min,
    atomic_or,
    barrier,
    crew,
    device,
    fail,
    kernel,
    load_relaxed,
    share,
    stopping,
)
from matchwood.engines.cpu.hints import count_ones, trailing_zeros
from matchwood.primitives.frontier import vertex_out_of_range, words_for

BUFFER = 128  # slots of a member's buffer: one or two kB
BLOCK = 1 << 16  # elements between two checks of the stop word
_OUT_OF_RANGE = 1  # code of the failure


@device
def push(buffer: Any, count: int, v: Any, queue: Any, tail: Any) -> int:
    """Append v; returns the new number of vertices in `buffer`."""
    buffer[count] = v
    count += 1
    if count == buffer.size:
        return flush(buffer, count, queue, tail)
    return count


@device
def flush(buffer: Any, count: int, queue: Any, tail: Any) -> int:
    """Move what is in `buffer` to the queue; returns 0."""
    start = atomic_add(tail, 0, count)
    for k in range(count):
        queue[start + k] = buffer[k]
    return 0


@device
def has_bit(bitmap: Any, v: Any) -> bool:
    """Whether v is marked."""
    word = load_relaxed(bitmap, v >> 6)
    return (word >> np.uint64(v & 63)) & np.uint64(1) != 0


@device
def set_bit(bitmap: Any, v: Any) -> None:
    """Mark v."""
    atomic_or(bitmap, v >> 6, np.uint64(1) << np.uint64(v & 63))


@device
def claim_bit(bitmap: Any, v: Any) -> bool:
    """Mark v.  Of all members that claim it at once, exactly one gets True."""
    if has_bit(bitmap, v):  # most claims are too late; a load leaves the cache line shared
        return False
    bit = np.uint64(1) << np.uint64(v & 63)
    return atomic_or(bitmap, v >> 6, bit) & bit == 0


@device
def clear_bitmap(team: Team, bitmap: Any) -> None:
    """Unmark all, each member its share; a barrier must follow."""
    lo, hi = share(team, bitmap.size)
    bitmap[lo:hi] = 0


@device
def mark_queue(team: Team, queue: Any, size: int, bitmap: Any) -> None:
    """Mark queue[:size], each member its share; a barrier must follow."""
    lo, hi = share(team, size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        block = queue[start : min(start + BLOCK, hi)]
        for k in range(block.size):
            set_bit(bitmap, block[k])


@device
def list_bitmap(team: Team, bitmap: Any, queue: Any, counts: Any) -> int:
    """List all marked vertices in increasing order; returns how many, or -1: the team stops.

    Each member lists its share of the words behind those of the members before it.  `counts` has
    a cache line of int64 words for each member.  A barrier must follow before the queue is read.
    """
    lo, hi = share(team, bitmap.size)
    marked = np.uint64(0)
    for word in bitmap[lo:hi]:
        marked += count_ones(word)
    counts[team.me, 0] = np.int64(marked)
    if barrier(team):
        return -1
    place, total = 0, 0
    for me in range(team.size):
        if me < team.me:
            place += counts[me, 0]
        total += counts[me, 0]
    place = np.uint64(place)
    for w in range(lo, hi):
        word = bitmap[w]
        while word != 0:
            queue[place] = 64 * w + np.int64(trailing_zeros(word))
            place += np.uint64(1)
            word &= word - np.uint64(1)  # without its lowest bit
    return total


@device
def _first_outside(vertices: Any, n: int) -> int:
    """Place of the first vertex that is not in 0 .. n - 1; their number when all are."""
    outside = False
    for k in range(vertices.size):
        outside |= vertices[k] < 0 or vertices[k] >= n
    if outside:
        for k in range(vertices.size):
            if vertices[k] < 0 or vertices[k] >= n:
                return k
    return vertices.size


@kernel
def _mark(team: Team, queue: Any, n: int, bitmap: Any, bad: Any) -> None:
    """bad[0] starts as queue.size; the smallest place of a vertex out of range is the failure."""
    clear_bitmap(team, bitmap)
    lo, hi = share(team, queue.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        block = queue[start : min(start + BLOCK, hi)]
        place = _first_outside(block, n)
        if place < block.size:
            atomic_min(bad, 0, start + place)
            break
    if barrier(team):
        return
    if bad[0] < queue.size:
        fail(team, _OUT_OF_RANGE, bad[0])
        return
    mark_queue(team, queue, queue.size, bitmap)


@kernel
def _count(team: Team, bitmap: Any, totals: Any) -> None:
    lo, hi = share(team, bitmap.size)
    marked = np.uint64(0)
    for word in bitmap[lo:hi]:
        marked += count_ones(word)
    totals[team.me] = marked


@kernel
def _list(team: Team, bitmap: Any, queue: Any, counts: Any) -> None:
    list_bitmap(team, bitmap, queue, counts)


def bitmap_from_queue(
    queue: np.ndarray[Any, Any], n: int, *, threads: int | None = None
) -> np.ndarray[Any, Any]:
    bitmap = np.empty(words_for(n), np.uint64)
    bad = np.full(1, queue.size, np.int64)
    errors = {_OUT_OF_RANGE: lambda place: vertex_out_of_range(n, place)}
    team = crew(threads, work=queue.size + bitmap.size)
    team.run(_mark, np.ascontiguousarray(queue), n, bitmap, bad, errors=errors)
    return bitmap


def queue_from_bitmap(
    bitmap: np.ndarray[Any, Any], n: int, *, threads: int | None = None, dtype: Any = None
) -> np.ndarray[Any, Any]:
    bitmap = np.ascontiguousarray(bitmap)
    team = crew(threads, work=n // 8)
    totals = np.zeros(team.size, np.uint64)
    team.run(_count, bitmap, totals)
    queue = np.empty(int(totals.sum()), index_type(n) if dtype is None else dtype)
    team.run(_list, bitmap, queue, np.empty((team.size, 16), np.int64))
    return queue
