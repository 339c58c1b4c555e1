"""The walk over all components by one thread, in one kernel, however many small ones there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import advance, fail, kernel, stopping
from matchwood.ordering.rcm.cpu_records import (
    BROKEN,
    CUT,
    EVERYTHING,
    PLACED,
    WHOLE,
    Csr,
    Limits,
    Sorter,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO
from matchwood.ordering.rcm.serial.cpu import CHECK_MASK, component, release
from matchwood.ordering.rcm.start.cpu_serial import (
    last_of_least,
    least_and_last,
    search_start,
    try_after,
    try_start,
)
from matchwood.ordering.rcm.start.cpu_tried import Tried

Array = np.ndarray[Any, Any]

TWO = np.uint64(2)


class Steps(NamedTuple):
    """Words of `state`: how far the walk has come, and what it has counted."""

    vertex: int = 0  # to visit next
    place: int = 1  # to fill next
    given: int = 2  # which of the given starts to use next
    code: int = 3  # how the walk ended: WHOLE, or CUT in front of a big component
    components: int = 4
    levels: int = 5
    searches: int = 6


STEP = Steps()


@kernel
def walk(
    team: Any,
    csr: Csr,
    mark: Array,
    queue: Array,
    spare: Array,
    firsts: Array,
    starts: Array,
    state: Array,
    stop: Any,
    arcs: Any,
    sorter: Sorter,
) -> None:
    """Place components in the order of their smallest vertices, until one has too many arcs.

    `firsts` are the smallest vertices of components whose start is given, ascending, and `starts`
    those starts.  Other components try a few starts if there is a `spare` queue, as in a small
    graph, or else search.

    In a small graph the first vertex of least degree is mostly in the first component.  So that
    component is ordered from there at once, and the search for its members is saved.
    """
    if team.rank > 0:
        return
    indptr, indices = csr.indptr, csr.indices
    n = np.uint64(mark.size)
    one = indices.dtype.type(1)
    at, given = np.uint64(state[STEP.place]), np.uint64(state[STEP.given])
    limits = Limits(n, EVERYTHING, EVERYTHING, arcs, EVERYTHING, ONE)
    state[STEP.code] = WHOLE
    small = spare.size > 0
    guess = last = n
    if small and firsts.size == 0 and state[STEP.components] == 0:
        guess, last = least_and_last(indptr, csr.loops)
    for v in range(np.uint64(state[STEP.vertex]), stop):
        if v & CHECK_MASK == ZERO and stopping(team):
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
        state[STEP.components] += 1
        if row == csr.loops:
            mark[v] = PLACED
            queue[at] = u
            at += ONE
            given += np.uint64(known)
            state[STEP.levels] += 1
            continue
        searches, whole = 0, False
        if guess < n:
            begin, guess = indices.dtype.type(guess), n
            end, levels, _, bottom, band, whole = component(
                team, csr, mark, queue, begin, at, limits, sorter
            )
            whole = whole and mark[v] == PLACED
            if whole and end - at > TWO:
                z = indices.dtype.type(last)
                if mark[z] != PLACED:
                    z = last_of_least(indptr, queue, at, end, begin)
                first = Tried(at, end, begin, z, levels, bottom, band)
                levels, searches = try_after(team, csr, mark, queue, spare, first, sorter)
            elif not whole:
                release(mark, queue, at, end)
                begin = u
        if not whole:
            end, levels, _, _, _, whole = component(
                team, csr, mark, queue, begin, at, limits, sorter
            )
            if not whole:
                release(mark, queue, at, end)
                state[STEP.components] -= 1
                state[STEP.vertex], state[STEP.place], state[STEP.given] = v, at, given
                state[STEP.code] = CUT
                return
            # of two vertices the smaller is the start, which is this one
            if not known and end - at > TWO:
                if small:
                    levels, searches = try_start(team, csr, mark, queue, spare, at, end, sorter)
                else:
                    levels, searches = search_start(team, csr, mark, queue, at, end, sorter)
        if stopping(team):  # the order may be a part: to go on would place vertices twice
            return
        if levels == ZERO:
            fail(team, BROKEN, np.int64(v))
            return
        advance(team, np.int64(end - at))
        at = end
        given += np.uint64(known)
        state[STEP.levels] += levels
        state[STEP.searches] += searches
    state[STEP.vertex], state[STEP.place], state[STEP.given] = stop, at, given
