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
def _outside(vertices: Any, n: int) -> bool:
    """Whether a vertex is not in 0 .. n - 1."""
    outside = False
    for k in range(vertices.size):
        outside |= vertices[k] < 0 or vertices[k] >= n
    return outside


@kernel
def _mark(team: Team, queue: Any, n: int, bitmap: Any) -> None:
    lo, hi = share(team, bitmap.size)
    bitmap[lo:hi] = 0
    lo, hi = share(team, queue.size)
    if _outside(queue[lo:hi], n):
        fail(team, _OUT_OF_RANGE, 0)
    if barrier(team):
        return
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        block = queue[start : min(start + BLOCK, hi)]
        for k in range(block.size):
            set_bit(bitmap, block[k])


@kernel
def _count(team: Team, bitmap: Any, counts: Any) -> None:
    lo, hi = share(team, bitmap.size)
    marked = np.uint64(0)
    for word in bitmap[lo:hi]:
        marked += count_ones(word)
    counts[team.me] = np.int64(marked)


@kernel
def _list(team: Team, bitmap: Any, starts: Any, queue: Any) -> None:
    """Each member lists its share of the words behind those of the members before it."""
    lo, hi = share(team, bitmap.size)
    place = np.uint64(starts[team.me])
    for w in range(lo, hi):
        word = bitmap[w]
        while word != 0:
            queue[place] = 64 * w + np.int64(trailing_zeros(word))
            place += np.uint64(1)
            word &= word - np.uint64(1)  # without its lowest bit


def bitmap_from_queue(
    queue: np.ndarray[Any, Any], n: int, *, threads: int | None = None
) -> np.ndarray[Any, Any]:
    bitmap = np.empty(words_for(n), np.uint64)

    def first_outside(_: int) -> ValueError:
        return vertex_out_of_range(n, int(((queue < 0) | (queue >= n)).argmax()))

    team = crew(threads, work=queue.size + bitmap.size)
    errors = {_OUT_OF_RANGE: first_outside}
    team.run(_mark, np.ascontiguousarray(queue), n, bitmap, errors=errors)
    return bitmap


def queue_from_bitmap(
    bitmap: np.ndarray[Any, Any], n: int, *, threads: int | None = None, dtype: Any = None
) -> np.ndarray[Any, Any]:
    bitmap = np.ascontiguousarray(bitmap)
    team = crew(threads, work=n // 8)
    counts = np.zeros(team.size, np.int64)
    team.run(_count, bitmap, counts)
    queue = np.empty(int(counts.sum()), index_type(n) if dtype is None else dtype)
    team.run(_list, bitmap, np.cumsum(counts) - counts, queue)
    return queue
