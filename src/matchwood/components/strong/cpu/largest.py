"""The largest component on a team: what a vertex of high degree reaches, and what reaches it.

"auto" takes its pivot from a sample of vertices.  It gives the search up if that has not grown
large within a few levels, and trims once afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu.steps import BACKWARD, DONE, FORWARD, LINE, OPEN, Arcs, lonely
from matchwood.engines.cpu import (
    atomic_add,
    atomic_or,
    barrier,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]


# What a vertex reaches
#
# Only whether a vertex is reached matters, not how far it is, so a pass backwards (every vertex
# that is still open looks for one that is reached among those it has arcs from) uses what the same
# pass has found already, and a few passes are enough.
#
# Beside the marks of steps.py there are NEW_EVEN and NEW_ODD, in turn: found in the last pass
# backwards, or in the one before.
#
# Races.  `mark[v]` gains a bit once.  In a search forwards, by an atomic "or", whose caller appends
# v if the bit was not there.  In a pass, by the one member that has v in its chunk; others read it
# at the same time and see the bit in this pass or in the next one.


NEW_EVEN = np.uint8(8)
NEW_ODD = np.uint8(16)
KNOWN = np.uint8(7)  # all but NEW_EVEN and NEW_ODD

ARCS_ALONE = 2048  # with fewer arcs to follow, one member is as quick
SEARCH_CHUNK = 64  # vertices of a frontier that a member takes at a time
PASS_CHUNK = 2048  # vertices of a pass
BUFFER = 512  # found vertices that a member collects before it asks for room in the queue
BETA = 18  # forwards again when a pass found fewer than n / BETA vertices

# words of `shared`, a cache line apart; counters rotate over three steps, so that one can be set to
# zero while another is read and the third is counted
TAIL, ARCS, REACHED = (3 * k * LINE for k in range(3))
SOLO = 9 * LINE  # what member 0 found alone: start, end, arcs, levels left; two, in turn
REACH_WORDS = 11 * LINE


@device
def _search_alone(
    team: Any, arcs: Arcs, mark: Array, open_: Any, seen: Any, queue: Array, start: int, end: int,
    most: int, budget: int, levels: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Go on by one member, while the frontier is small and budget (vertices) and levels last.

    Returns the frontier, and the levels that are left.
    """
    indptr, indices = arcs
    one = indices.dtype.type(1)
    last = start + budget
    while start < end and start < last and end - start < most and levels > 0:
        levels -= 1
        tail = end
        for i in range(start, end):
            if interrupted(team, i):
                return start, start, 0
            u = queue[i]
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                w = indices[k]
                if mark[w] == open_:
                    mark[w] = seen
                    queue[tail] = w
                    tail += 1
        start, end = end, tail
    return start, end, levels


@device
def _flush(buffer: Array, count: int, queue: Array, shared: Array, slot: int, end: int) -> None:
    at = end + atomic_add(shared, TAIL + slot * LINE, count)
    for i in range(count):
        queue[at + i] = buffer[i]


@device
def _forwards(
    team: Any, arcs_ahead: Arcs, mark: Array, open_: Any, bit: Any, queue: Array, start: int,
    end: int, buffer: Array, shared: Array, slot: int,
) -> None:  # fmt: skip
    """One level: vertices reached from queue[start:end] are put behind it."""
    indptr, indices = arcs_ahead
    one = indices.dtype.type(1)
    count = 0
    arcs = np.int64(0)
    size = end - start
    chunk = next_chunk(team, size, SEARCH_CHUNK)
    while chunk >= 0:
        for i in range(start + chunk, start + min(chunk + SEARCH_CHUNK, size)):
            u = queue[i]
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                w = indices[k]
                if load_relaxed(mark, w) == open_ and atomic_or(mark, w, bit) & bit == OPEN:
                    arcs += np.int64(indptr[w + one]) - np.int64(indptr[w])
                    buffer[count] = w
                    count += 1
                    if count == BUFFER:
                        _flush(buffer, count, queue, shared, slot, end)
                        count = 0
        chunk = next_chunk(team, size, SEARCH_CHUNK)
    _flush(buffer, count, queue, shared, slot, end)
    atomic_add(shared, ARCS + slot * LINE, arcs)


@device
def _pass(
    team: Any, back: Arcs, mark: Array, open_: Any, bit: Any, new: Any, shared: Array, slot: int
) -> None:
    """Mark every open vertex with an arc from a reached one as reached, and as `new`."""
    in_indptr, in_indices = back
    n = mark.size
    count = 0
    found = open_ | bit | new
    chunk = next_chunk(team, n, PASS_CHUNK)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + PASS_CHUNK, n))):
            here = mark[v]
            if here == open_:
                for k in range(np.uint64(in_indptr[v]), np.uint64(in_indptr[v + np.uint64(1)])):
                    if load_relaxed(mark, in_indices[k]) & bit != OPEN:
                        store_relaxed(mark, v, found)
                        count += 1
                        break
            elif here > KNOWN:  # new in the pass before
                store_relaxed(mark, v, here & KNOWN)
        chunk = next_chunk(team, n, PASS_CHUNK)
    atomic_add(shared, REACHED + slot * LINE, count)


@device
def _queue_new(
    team: Any, indptr: Array, mark: Array, queue: Array, end: int, shared: Array, slot: int
) -> None:
    """Put the vertices marked new into the queue, and take the mark away."""
    lo, hi = share(team, mark.size)
    count = 0
    for v in range(lo, hi):
        count += mark[v] > KNOWN
    at = end + atomic_add(shared, TAIL + slot * LINE, count)
    arcs = np.int64(0)
    for v in range(np.uint64(lo), np.uint64(hi)):
        if mark[v] > KNOWN:
            mark[v] &= KNOWN
            queue[at] = v
            at += 1
            arcs += np.int64(indptr[v + np.uint64(1)]) - np.int64(indptr[v])
    atomic_add(shared, ARCS + slot * LINE, arcs)


@device
def _open_slot(team: Any, shared: Array, step: int) -> int:
    """The counters of this step; member 0 empties the next ones, which no member uses now."""
    if team.me == 0:
        after = (step + 1) % 3 * LINE
        store_relaxed(shared, TAIL + after, 0)
        store_relaxed(shared, ARCS + after, 0)
        store_relaxed(shared, REACHED + after, 0)
    return step % 3


@device
def reach(
    team: Any, ahead: Arcs, back: Arcs, mark: Array, open_: Any, bit: Any, pivot: int, budget: int,
    levels: int, queue: Array, buffers: Array, shared: Array,
) -> Any:  # fmt: skip
    """Set `bit` in mark[v] of every v with mark[v] == open_ that the pivot reaches through such.

    All members call, with `shared` all 0 or left by a call before, and a barrier in between.
    Returns how many were reached, or -1 when it was given up, or the team stops.  Given up: one
    member alone has followed `budget` vertices, or there were `levels` levels and no frontier large
    enough for a pass, which is where this is quick.
    """
    indptr = ahead.indptr
    n = mark.size
    m = np.int64(indptr[n])
    each = max(np.int64(1), m // n)
    few = ARCS_ALONE // each + 1
    buffer = buffers[team.me]
    step = 0
    slot = _open_slot(team, shared, step)
    if team.me == 0:
        for i in range(3):
            shared[TAIL + i * LINE] = 0
            shared[ARCS + i * LINE] = 0
            shared[REACHED + i * LINE] = 0
        queue[0] = pivot
        mark[pivot] = open_ | bit
    if barrier(team):
        return -1
    start, end = np.int64(0), np.int64(1)
    reached = np.int64(1)
    arcs = np.int64(indptr[pivot + 1]) - np.int64(indptr[pivot])
    while end > start:
        if levels <= 0 or budget <= 0:
            return -1
        if np.float64(arcs) * np.float64(arcs) > np.float64(n - reached) * np.float64(m):
            # more arcs to follow than a pass reads (see breadth-first search)
            new, before = NEW_EVEN, NEW_ODD
            levels = n
            found = n
            while found > n // BETA:
                step += 1
                slot = _open_slot(team, shared, step)
                _pass(team, back, mark, open_, bit, new, shared, slot)
                if barrier(team):
                    return -1
                found = load_relaxed(shared, REACHED + slot * LINE)
                reached += found
                new, before = before, new
            step += 1
            slot = _open_slot(team, shared, step)
            _queue_new(team, indptr, mark, queue, end, shared, slot)
            if barrier(team):
                return -1
            start, end = end, end + load_relaxed(shared, TAIL + slot * LINE)
            arcs = np.int64(0)  # at least one level forwards before the next pass
        elif end - start < few:
            step += 1
            _open_slot(team, shared, step)
            at = SOLO + step % 2 * LINE
            if team.me == 0:
                shared[at], shared[at + 1], shared[at + 3] = _search_alone(
                    team, ahead, mark, open_, open_ | bit, queue, start, end, few, budget, levels
                )  # fmt: skip
                late = np.int64(0)
                for i in range(shared[at], shared[at + 1]):
                    u = queue[i]
                    late += np.int64(indptr[u + queue.dtype.type(1)]) - np.int64(indptr[u])
                shared[at + 2] = late
            if barrier(team):
                return -1
            budget -= shared[at] - start
            reached += shared[at + 1] - end
            start, end, arcs = shared[at], shared[at + 1], shared[at + 2]
            levels = shared[at + 3]
        else:
            step += 1
            levels -= 1
            slot = _open_slot(team, shared, step)
            _forwards(team, ahead, mark, open_, bit, queue, start, end, buffer, shared, slot)
            if barrier(team):
                return -1
            start, end = end, end + load_relaxed(shared, TAIL + slot * LINE)
            reached += end - start
            arcs = load_relaxed(shared, ARCS + slot * LINE)
    return -1 if stopping(team) else reached


@device
def probe(team: Any, arcs: Arcs, mark: Array, pivot: int, limit: int, queue: Array) -> bool:
    """Does the pivot reach more than `limit` vertices?  A search by one member, undone again."""
    queue[0] = pivot
    mark[pivot] = FORWARD
    _, end, _ = _search_alone(team, arcs, mark, OPEN, FORWARD, queue, 0, 1, limit, limit, mark.size)
    for i in range(end):
        mark[queue[i]] = OPEN
    return end > limit


# The component of a pivot


SAMPLES = 4096  # vertices of which each member takes its pivot, "auto"
QUICK_LEVELS = 6  # levels of a search within which it must have grown large, "auto"
CHUNK = 1024  # vertices that a member takes at a time
PROBED_VERTICES = 1024  # vertices that a pivot must reach, both ways, before the team searches

# words of `shared`: what the searches use, then
PROBED = REACH_WORDS  # does the pivot reach PROBED_VERTICES?
FOUND = REACH_WORDS + 1  # was the component found?
LARGEST_WORDS = REACH_WORDS + 2


@device
def _score(out: Arcs, into: Arcs, v: Any) -> float:
    """The product of the degrees of v: the higher, the better a pivot it is."""
    one = np.uint64(1)
    outward = np.int64(out.indptr[v + one]) - np.int64(out.indptr[v])
    inward = np.int64(into.indptr[v + one]) - np.int64(into.indptr[v])
    return np.float64(outward) * np.float64(inward)


@device
def _start(
    team: Any, out: Arcs, into: Arcs, sample: bool, mark: Array, parent: Array, scores: Array,
    pivots: Array,
) -> None:  # fmt: skip
    """Mark vertices without neighbours; find this member's best pivot, of a few if `sample`."""
    lo, hi = share(team, mark.size)
    best, pivot = 0.0, np.int64(-1)
    if sample:
        mark[lo:hi] = OPEN
        step = max(1, (hi - lo) // SAMPLES)
        for v in range(np.uint64(lo), np.uint64(hi), np.uint64(step)):
            score = _score(out, into, v)
            if score > best:
                best, pivot = score, np.int64(v)
    else:
        for v in range(np.uint64(lo), np.uint64(hi)):
            if interrupted(team, np.int64(v)):
                return
            if lonely(out, v) or lonely(into, v):
                mark[v] = DONE
                parent[v] = v
                continue
            mark[v] = OPEN
            score = _score(out, into, v)
            if score > best:
                best, pivot = score, np.int64(v)
    scores[team.me], pivots[team.me] = best, pivot


@device
def _best_pivot(team: Any, scores: Array, pivots: Array) -> Any:
    best = 0
    for member in range(1, team.size):
        if scores[member] > scores[best]:
            best = member
    return np.int64(pivots[best])


@device
def _has_no_open(arcs: Arcs, mark: Array, v: Any) -> bool:
    """Has v no open neighbour in its row but itself?"""
    indptr, indices = arcs
    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
        w = indices[k]
        if load_relaxed(mark, w) == OPEN and np.uint64(w) != v:
            return False
    return True


@device
def _trim_once(team: Any, out: Arcs, into: Arcs, mark: Array, parent: Array) -> None:
    """A pass of trimming.  Marks go from OPEN to DONE; one seen late costs time only."""
    n = mark.size
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            if mark[v] == OPEN and (_has_no_open(out, mark, v) or _has_no_open(into, mark, v)):
                store_relaxed(mark, v, DONE)
                parent[v] = v
        chunk = next_chunk(team, n, CHUNK)


@device
def _finish_largest(team: Any, mark: Array, parent: Array, sums: Array) -> None:
    """Finish the component, where both bits are set; all else is open again."""
    lo, hi = share(team, mark.size)
    least = np.int64(mark.size)
    both = FORWARD | BACKWARD
    for v in range(lo, hi):
        if mark[v] == both:
            least = np.int64(v)
            break
    sums[team.me] = least
    if barrier(team):
        return
    for member in range(team.size):
        least = min(least, sums[member])
    for v in range(lo, hi):
        if mark[v] == both:
            mark[v] = DONE
            parent[v] = least
        elif mark[v] != DONE:
            mark[v] = OPEN


@kernel
def find_largest(
    team: Any, out: Arcs, into: Arcs, quick: bool, mark: Array, queue: Array, parent: Array,
    buffers: Array, scores: Array, pivots: Array, sums: Array, shared: Array,
) -> None:  # fmt: skip
    """Find a pivot's component; shared[FOUND]: whether it was found, else all are open again."""
    n = mark.size
    _start(team, out, into, quick, mark, parent, scores, pivots)
    if barrier(team):
        return
    pivot = _best_pivot(team, scores, pivots)
    found = False
    if pivot >= 0:
        if team.me == 0:
            shared[PROBED] = np.int64(
                probe(team, out, mark, pivot, PROBED_VERTICES, queue)
                and probe(team, into, mark, pivot, PROBED_VERTICES, queue)
            )
        if barrier(team):
            return
        found = shared[PROBED] != 0
        budget, levels = n // 8 + 1, QUICK_LEVELS if quick else n
        ahead, back = out, into
        here, bit = OPEN, FORWARD
        for _ in range(2):
            if found:
                found = 0 <= reach(
                    team, ahead, back, mark, here, bit, pivot, budget, levels, queue, buffers,
                    shared,
                )  # fmt: skip
            if barrier(team):  # `shared` is used again
                return
            ahead, back = back, ahead
            here, bit = FORWARD, BACKWARD
    if found:
        _finish_largest(team, mark, parent, sums)
        if barrier(team):
            return
        if quick:
            _trim_once(team, out, into, mark, parent)
    else:
        lo, hi = share(team, n)
        mark[lo:hi] = OPEN
    if team.me == 0:
        shared[FOUND] = np.int64(found)
