"""Cuthill-McKee by one thread: algorithm 1, and the walk over many small components.

The queue is the order itself.  `mark[v]` is FREE until v is placed.  A component is one call of
`follow`, which also finds the levels, their width and the bandwidth for the search of a start.
The rule of that search is `find_start` in reference.py; `_tried` and `_searched` are its cases.

The bandwidth costs nothing: a parent's last child is its farthest neighbour.  Where it has none,
all that is placed behind it are children of parents before it, which are farther from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.rcm.cpu_sort import (
    ONE,
    ZERO,
    fetch_rows,
    key_of,
    sort_children,
)
from matchwood.teams import advance, device, fail, kernel, stopping

Array = np.ndarray[Any, Any]

FREE = np.uint8(255)
PLACED = np.uint8(0)
EVERY = np.uint64(4095)  # places between two looks for Ctrl-C, less one

# what `facts` holds, about the component that was ordered last
END, LEVELS, WIDTH, LAST, CODE, TRIED = range(6)
FACTS = 6
WHOLE, CUT, WIDE = 0, 1, 2  # how `follow` ended: complete, given up, at a level that is wide
EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)

BROKEN = 1
"""What kernels fail with when a search from another vertex of a component does not reach all of it:
the pattern is not symmetric.  To go on would place vertices twice, and some behind the end."""


@device
def arcs_of(indptr: Array, queue: Array, a: Any, b: Any) -> Any:
    """Arcs that leave the vertices at places a to b."""
    arcs = ZERO
    for x in range(a, b):
        v = queue[x]
        arcs += np.uint64(indptr[v + queue.dtype.type(1)] - indptr[v])
    return arcs


@device
def follow(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    queue: Array,
    begin: Any,
    end: Any,
    levels: Any,
    width: Any,
    limit: Any,
    most: Any,
    bound: Any,
    arcs: Any,
    wide: Any,
    row: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> tuple[Any, Any, Any, Any, Any, Any, int]:
    """Go on from a level, which is at places begin to end.

    Ends when the component is complete, or all places up to `limit` are filled (WHOLE); when two
    neighbouring levels have `most` vertices, the bandwidth comes to `bound`, or more than `arcs`
    arcs were followed (CUT); or in front of a level from which at least `wide` arcs leave (WIDE);
    they are counted only if so many rows of `row` entries would have them.  Returns the last
    level's places, the number of levels, their width, the end, the bandwidth, and the code.
    """
    one = indices.dtype.type(1)
    i, tail, band = begin, end, ZERO
    budget = arcs
    while i < tail and tail < limit:
        if i == end:
            if tail - begin > width:
                width = tail - begin
                if width >= most:
                    return begin, end, levels, width, tail, band, CUT
            levels += ONE
            begin, end = end, tail
            if (end - begin) * row >= wide and arcs_of(indptr, queue, begin, end) >= wide:
                return begin, end, levels, width, tail, band, WIDE
        if i & EVERY == ZERO and stopping(team):
            return begin, end, levels, width, tail, band, CUT
        u = queue[i]
        i += ONE
        fetch_rows(indptr, indices, queue, i, tail)
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        if last - first > budget:
            return begin, end, levels, width, tail, band, CUT
        budget -= last - first
        head = tail
        for k in range(first, last):
            v = indices[k]
            if mark[v] != PLACED:
                mark[v] = PLACED
                queue[tail] = v
                tail += ONE
        if tail - i > band:
            band = tail - i
            if band >= bound:
                return begin, end, levels, width, tail, band, CUT
        sort_children(indptr, queue, head, tail - head, shift, keys, other, bins)
    # the level of the parents may be the last, or that of their children
    if tail - begin > width:
        width = tail - begin
    if tail > end:
        levels += ONE
        begin, end = end, tail
    return begin, end, levels, width, tail, band, CUT if width >= most else WHOLE


@device
def component(
    team: Any,
    indptr: Array,
    indices: Array,
    start: Any,
    mark: Array,
    queue: Array,
    at: Any,
    limit: Any,
    most: Any,
    bound: Any,
    arcs: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> tuple[Any, Any, Any, Any, Any, bool]:
    """Place the component of `start` from place `at` on, by `follow`.

    Returns the end, the number of levels, their width, where the last one begins, the bandwidth,
    and whether the component is complete.
    """
    queue[at] = start
    mark[start] = PLACED
    begin, _, levels, width, tail, band, code = follow(
        team, indptr, indices, mark, queue, at, at + ONE, ONE, ONE, limit, most, bound, arcs,
        EVERYTHING, ONE, shift, keys, other, bins,
    )  # fmt: skip
    return tail, levels, width, begin, band, code == WHOLE


@device
def release(mark: Array, queue: Array, a: Any, b: Any) -> None:
    """Make the vertices at places a to b free again."""
    for x in range(a, b):
        mark[queue[x]] = FREE


@device
def least(indptr: Array, queue: Array, a: Any, b: Any, shift: Any) -> Any:
    """The vertex of least (degree, vertex) at places a to b."""
    best = key_of(indptr, queue[a], shift)
    for x in range(a + ONE, b):
        best = min(best, key_of(indptr, queue[x], shift))
    return queue.dtype.type(best & ((ONE << shift) - ONE))


@device
def _tried(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    queue: Array,
    at: Any,
    end: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> tuple[Any, Any]:
    """Try the starts of a component, whose members are at places at..end, and leave the best order.

    Returns the number of levels and of starts that were tried; no levels: the pattern is BROKEN.
    """
    v = least(indptr, queue, at, end, shift)
    z = _last_of_least(indptr, queue, at, end, v)
    release(mark, queue, at, end)
    reached, levels, _, last, band, _ = component(
        team, indptr, indices, v, mark, queue, at, end, EVERYTHING, EVERYTHING, EVERYTHING,
        shift, keys, other, bins,
    )  # fmt: skip
    if reached != end:
        return ZERO, 1
    x = least(indptr, queue, last, end, shift)
    y = x  # until the search from x is done
    best, here = v, True  # `here`: the queue holds the order from the best
    tried = 1
    for turn in range(3):
        start = x if turn == 0 else (y if turn == 1 else z)
        if start == v or (turn > 0 and start == x) or (turn == 2 and start == y):
            continue
        if stopping(team):
            return levels, tried
        release(mark, queue, at, reached)
        # the order from x is needed as a whole, for its last level
        bound = EVERYTHING if turn == 0 else band
        reached, new_levels, _, last, new_band, whole = component(
            team, indptr, indices, start, mark, queue, at, end, EVERYTHING, bound, EVERYTHING,
            shift, keys, other, bins,
        )  # fmt: skip
        if whole and reached != end:
            return ZERO, tried
        tried += 1
        if turn == 0:
            y = least(indptr, queue, last, end, shift)
        here = new_band < band
        if here:
            best, band, levels = start, new_band, new_levels
    if not here:
        release(mark, queue, at, reached)
        reached, _, _, _, _, _ = component(
            team, indptr, indices, best, mark, queue, at, end, EVERYTHING, EVERYTHING, EVERYTHING,
            shift, keys, other, bins,
        )  # fmt: skip
    return levels if reached == end else ZERO, tried


@device
def _last_of_least(indptr: Array, queue: Array, a: Any, b: Any, v: Any) -> Any:
    """The greatest vertex at places a to b of the same degree as v."""
    one = queue.dtype.type(1)
    degree = indptr[v + one] - indptr[v]
    last = v
    for x in range(a, b):
        u = queue[x]
        if u > last and indptr[u + one] - indptr[u] == degree:
            last = u
    return last


@device
def _searched(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    queue: Array,
    at: Any,
    end: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> tuple[Any, Any]:
    """Search for the start of a component, whose members are at places at..end, and order it.

    Returns the number of levels and of searches; no levels: the pattern is BROKEN.
    """
    v = least(indptr, queue, at, end, shift)
    release(mark, queue, at, end)
    reached, levels, width, last, _, _ = component(
        team, indptr, indices, v, mark, queue, at, end, EVERYTHING, EVERYTHING, EVERYTHING,
        shift, keys, other, bins,
    )  # fmt: skip
    searches = 1
    while True:
        if reached != end:
            return ZERO, searches
        if stopping(team):
            return levels, searches
        x = least(indptr, queue, last, end, shift)
        release(mark, queue, at, end)
        reached, new_levels, new_width, last, _, narrower = component(
            team, indptr, indices, x, mark, queue, at, end, width, EVERYTHING, EVERYTHING,
            shift, keys, other, bins,
        )  # fmt: skip
        searches += 1
        if not narrower:
            release(mark, queue, at, reached)
            reached, _, _, _, _, _ = component(
                team, indptr, indices, v, mark, queue, at, end, EVERYTHING, EVERYTHING, EVERYTHING,
                shift, keys, other, bins,
            )  # fmt: skip
            return levels if reached == end else ZERO, searches
        if reached != end:
            return ZERO, searches
        if new_levels <= levels:
            return new_levels, searches
        v, levels, width = x, new_levels, new_width


@kernel
def walk(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    queue: Array,
    firsts: Array,
    starts: Array,
    state: Array,
    stop: Any,
    small: bool,
    arcs: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> None:
    """Place components in the order of their smallest vertices, until one is too big.

    `state` holds the vertex to look at next, the place to fill next, the given start to use next,
    then what was found: the code of the end, components, levels, searches.  `firsts` are the
    smallest vertices of components whose start is given, ascending, and `starts` those; others try
    a few if the graph is `small`.
    """
    if team.rank > 0:
        return
    n = np.uint64(mark.size)
    one = indices.dtype.type(1)
    at, given = np.uint64(state[1]), np.uint64(state[2])
    state[3] = WHOLE
    for v in range(np.uint64(state[0]), stop):
        if v & EVERY == ZERO and stopping(team):
            break
        if mark[v] == PLACED:
            continue
        u = indices.dtype.type(v)
        row = np.uint64(indptr[u + one] - indptr[u])
        begin = u
        known = given < np.uint64(firsts.size) and np.uint64(firsts[given]) == v
        if known:
            begin = indices.dtype.type(starts[given])
            if mark[begin] == PLACED:
                fail(team, BROKEN, np.int64(begin))
                return
        if row == ZERO:
            mark[v] = PLACED
            queue[at] = u
            at += ONE
            state[4] += 1
            state[5] += 1
        else:
            end, levels, _, _, _, whole = component(
                team, indptr, indices, begin, mark, queue, at, n, EVERYTHING, EVERYTHING, arcs,
                shift, keys, other, bins,
            )  # fmt: skip
            if not whole:
                release(mark, queue, at, end)
                state[0], state[1], state[2], state[3] = v, at, given, CUT
                return
            # of two vertices the smaller is the start, which is this one
            if not known and end - at > np.uint64(2):
                if small:
                    levels, searches = _tried(
                        team, indptr, indices, mark, queue, at, end, shift, keys, other, bins
                    )
                else:
                    levels, searches = _searched(
                        team, indptr, indices, mark, queue, at, end, shift, keys, other, bins
                    )
                if levels == ZERO and not stopping(team):
                    fail(team, BROKEN, np.int64(v))
                    return
                state[6] += searches
            advance(team, np.int64(end - at))
            at = end
            state[4] += 1
            state[5] += levels
        if known:
            given += ONE
    state[0], state[1], state[2] = stop, at, given


@kernel
def order_serial(
    team: Any,
    indptr: Array,
    indices: Array,
    start: Any,
    mark: Array,
    queue: Array,
    at: Any,
    limit: Any,
    most: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
    facts: Array,
) -> None:
    """`component`, for the host."""
    if team.rank > 0:
        return
    end, levels, width, last, _, whole = component(
        team, indptr, indices, start, mark, queue, at, limit, most, EVERYTHING,
        EVERYTHING, shift, keys, other, bins,
    )  # fmt: skip
    facts[END], facts[LEVELS], facts[WIDTH], facts[LAST] = end, levels, width, last
    facts[CODE] = WHOLE if whole else CUT
    advance(team, np.int64(end - at))


@kernel
def try_starts(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    queue: Array,
    at: Any,
    end: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
    facts: Array,
) -> None:
    """`_tried`, for the host."""
    if team.rank > 0:
        return
    levels, tried = _tried(
        team, indptr, indices, mark, queue, at, end, shift, keys, other, bins
    )  # fmt: skip
    if levels == ZERO and not stopping(team):
        fail(team, BROKEN, np.int64(at))
    facts[END], facts[LEVELS], facts[TRIED] = end, levels, tried
