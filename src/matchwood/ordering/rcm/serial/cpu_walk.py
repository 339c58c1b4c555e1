"""The walk over all components by one thread, in one kernel, however many small ones there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
from matchwood.ordering.rcm.start.cpu_serial import search_start, try_start
from matchwood.teams import advance, fail, kernel, stopping

Array = np.ndarray[Any, Any]


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
    firsts: Array,
    starts: Array,
    state: Array,
    stop: Any,
    small: bool,
    arcs: Any,
    sorter: Sorter,
) -> None:
    """Place components in the order of their smallest vertices, until one has too many arcs.

    `firsts` are the smallest vertices of components whose start is given, ascending, and `starts`
    those starts.  Other components try a few starts if the graph is `small`, or else search.
    """
    if team.rank > 0:
        return
    indptr, indices = csr
    n = np.uint64(mark.size)
    one = indices.dtype.type(1)
    at, given = np.uint64(state[STEP.place]), np.uint64(state[STEP.given])
    limits = Limits(n, EVERYTHING, EVERYTHING, arcs, EVERYTHING, ONE)
    state[STEP.code] = WHOLE
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
        if row == ZERO:
            mark[v] = PLACED
            queue[at] = u
            at += ONE
            state[STEP.components] += 1
            state[STEP.levels] += 1
        else:
            end, levels, _, _, _, whole = component(
                team, csr, mark, queue, begin, at, limits, sorter
            )
            if not whole:
                release(mark, queue, at, end)
                state[STEP.vertex], state[STEP.place], state[STEP.given] = v, at, given
                state[STEP.code] = CUT
                return
            # of two vertices the smaller is the start, which is this one
            if not known and end - at > np.uint64(2):
                if small:
                    levels, searches = try_start(team, csr, mark, queue, at, end, sorter)
                else:
                    levels, searches = search_start(team, csr, mark, queue, at, end, sorter)
                if levels == ZERO and not stopping(team):
                    fail(team, BROKEN, np.int64(v))
                    return
                state[STEP.searches] += searches
            advance(team, np.int64(end - at))
            at = end
            state[STEP.components] += 1
            state[STEP.levels] += levels
        if known:
            given += ONE
    state[STEP.vertex], state[STEP.place], state[STEP.given] = stop, at, given
