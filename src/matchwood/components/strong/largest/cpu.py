"""The largest component on a team: what a vertex of high degree reaches, and what reaches it.

The searches are in cpu_reach.py.  "auto" takes its pivot from a sample of vertices.  It gives the
search up if that has not grown large within a few levels, and trims once afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu_arcs import BACKWARD, DONE, FORWARD, OPEN, Arcs
from matchwood.components.strong.cpu_trim import lonely
from matchwood.components.strong.largest.cpu_reach import REACH_WORDS, probe, reach
from matchwood.engines.cpu import (
    barrier,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

SAMPLES = 4096  # vertices of which each member takes its pivot, "auto"
QUICK_LEVELS = 6  # levels of a search within which it must have grown large, "auto"
CHUNK = 1024  # vertices that a member takes at a time
PROBED_VERTICES = 1024  # vertices that a pivot must reach, both ways, before the team searches

# words of `shared`: what the searches use, then
PROBED = REACH_WORDS  # does the pivot reach that many?
FOUND = REACH_WORDS + 1  # was the component found?
LARGEST_WORDS = REACH_WORDS + 2


@device
def _score(out: Arcs, into: Arcs, v: Any) -> float:
    """A pivot is the better, the higher the product of its degrees."""
    one = np.uint64(1)
    outward = np.int64(out.indptr[v + one]) - np.int64(out.indptr[v])
    inward = np.int64(into.indptr[v + one]) - np.int64(into.indptr[v])
    return np.float64(outward) * np.float64(inward)


@device
def _start(
    team: Any,
    out: Arcs,
    into: Arcs,
    sample: bool,
    mark: Array,
    parent: Array,
    scores: Array,
    pivots: Array,
) -> None:
    """Mark lonely vertices; find this member's best pivot.  `sample`: among a few only."""
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
    scores[team.rank], pivots[team.rank] = best, pivot


@device
def _best_pivot(team: Any, scores: Array, pivots: Array) -> int:
    best = 0
    for member in range(1, team.size):
        if scores[member] > scores[best]:
            best = member
    return np.int64(pivots[best])


@device
def _alone(arcs: Arcs, mark: Array, v: Any) -> bool:
    """Has v no open neighbour in its row but itself?"""
    indptr, indices = arcs
    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
        w = indices[k]
        if load_relaxed(mark, w) == OPEN and np.uint64(w) != v:
            return False
    return True


@device
def _trim_once(
    team: Any,
    out: Arcs,
    into: Arcs,
    mark: Array,
    parent: Array,
) -> None:
    """A pass of trimming, in which marks go from OPEN to DONE; one seen late costs time only."""
    n = mark.size
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            if mark[v] == OPEN and (_alone(out, mark, v) or _alone(into, mark, v)):
                store_relaxed(mark, v, DONE)
                parent[v] = v
        chunk = next_chunk(team, n, CHUNK)


@device
def _finish_largest(team: Any, mark: Array, parent: Array, sums: Array) -> None:
    """The component is where both bits are set; all else is open again."""
    lo, hi = share(team, mark.size)
    least = np.int64(mark.size)
    both = FORWARD | BACKWARD
    for v in range(lo, hi):
        if mark[v] == both:
            least = np.int64(v)
            break
    sums[team.rank] = least
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
    team: Any,
    out: Arcs,
    into: Arcs,
    quick: bool,
    mark: Array,
    queue: Array,
    parent: Array,
    buffers: Array,
    scores: Array,
    pivots: Array,
    sums: Array,
    shared: Array,
) -> None:
    """Start, and the component of the pivot; shared[FOUND] says whether it was found.

    If not, all vertices are open afterwards.
    """
    n = mark.size
    _start(team, out, into, quick, mark, parent, scores, pivots)
    if barrier(team):
        return
    pivot = _best_pivot(team, scores, pivots)
    found = False
    if pivot >= 0:
        if team.rank == 0:
            shared[PROBED] = np.int64(
                probe(out, mark, pivot, PROBED_VERTICES, queue)
                and probe(into, mark, pivot, PROBED_VERTICES, queue)
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
    if team.rank == 0:
        shared[FOUND] = np.int64(found)
