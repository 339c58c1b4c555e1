"""The start of a big component in a graph that is not small, and the order from there.

The rule is in the docstring of `pseudo_peripheral_vertex`, after A. George, J. W. H. Liu. An
implementation of a pseudoperipheral node finder. ACM TOMS 5(3), 1979. doi:10.1145/355841.355845

A search for a start needs the levels from a vertex, which the order from there gives as well.  So
searches are orders, and the one from the start is kept; as a rule it is the first.

Where a few vertices have most of the arcs, levels are found without an order: an order reads all
arcs of the hubs, while here free vertices look for a placed neighbour and stop at the first.  The
queue then holds the levels one after the other, each in any order; that is enough for their widths
and for the last one.  On R-MAT graphs it takes a third of the time of an order, which is made at
the end, from the start.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood.engines.cpu import device, interrupted, kernel, share, stopping
from matchwood.ordering.rcm.cpu import serial
from matchwood.ordering.rcm.cpu.children import CUT, EVERYTHING, FACT, FREE, ONE, PLACED, WHOLE, Csr

Array = np.ndarray[Any, Any]

GUESSES = 16  # free vertices of least degree tried before a component is searched for its own least
SKEW = 50  # longest row over average row; with more, levels are quicker than orders, as for `bfs`


@kernel
def _least_free(team: Any, indptr: Array, loops: Any, mark: Array, best: Array) -> None:
    """For each member, the least (degree, vertex) among its free vertices that have neighbours."""
    lo, hi = share(team, mark.size)
    least: Any = np.int64(0x7FFFFFFFFFFFFFFF)
    at: Any = np.int64(-1)
    for v in range(lo, hi):
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        if np.int64(loops) < degree < least and mark[v] == FREE:
            least, at = degree, v
    best[team.rank, 0], best[team.rank, 1] = least, at


def search_and_place(run: Any, first: int, at: int, limit: int) -> tuple[int, int]:
    """Order the component of `first` from its start; returns its end, and the searches made."""
    begun = time.perf_counter()
    facts = run.facts
    search = _searcher(run)
    kept, spare = run.queue, run.places()
    searches = _from_least(run, first, at, limit)
    about = [FACT.end, FACT.levels, FACT.width, FACT.last]
    end, levels, width, last = (int(x) for x in facts[about])
    start = int(kept[at])
    while True:
        x = _least(run, kept[last:end])
        run.set_marks(kept, at, end, FREE)
        search(run, x, spare, at, end, width)
        searches += 1
        if facts[FACT.code] != WHOLE:
            run.set_marks(kept, at, end, PLACED)
            facts[[*about, FACT.code]] = end, levels, width, last, WHOLE
            break
        run.expect(end)
        kept, spare, start = spare, kept, x
        before = levels
        levels, width, last = (int(x) for x in facts[about[1:]])
        if levels <= before:
            break
    if kept is not run.queue:
        run.queue[at:end] = kept[at:end]
    run.seconds["search"] += time.perf_counter() - begun
    if search is not run.orderer():
        run.set_marks(run.queue, at, end, FREE)
        run.place(start, at, end)
        run.expect(end)
    return end, searches


def _searcher(run: Any) -> Any:
    """The method for a search: levels alone where a few rows have most entries, else an order."""
    if run.longest * run.n >= SKEW * run.csr.indices.size:
        return find
    return run.auto()


def _from_least(run: Any, first: int, at: int, limit: int) -> int:
    """Order the component of `first` from its vertex of least (degree, vertex).

    Usually the least of all free vertices is in it, so that is tried first.  Returns the searches.
    """
    search, tried = _searcher(run), []
    guessed = -1
    for _ in range(GUESSES):
        guess = _least_of_free(run)
        search(run, guess, run.queue, at, limit)
        if run.mark[first] == PLACED:
            guessed = guess
            break
        tried.append(run.queue[at : int(run.facts[FACT.end])].copy())
    for members in tried:  # of other components, which are placed later
        run.mark[members] = FREE
    if guessed >= 0:
        return 1 + len(tried)
    search(run, first, run.queue, at, limit)
    end = int(run.facts[FACT.end])
    least = _least(run, run.queue[at:end])
    run.set_marks(run.queue, at, end, FREE)
    search(run, least, run.queue, at, end)
    run.expect(end)
    return 2 + len(tried)


def _least_of_free(run: Any) -> int:
    crew = run.alone if run.auto() is serial.order else run.team
    best = np.empty((crew.size, 2), np.int64)
    crew.run(_least_free, run.csr.indptr, run.csr.loops, run.mark, best)
    return int(best[best[:, 0].argmin(), 1])  # argmin takes the first of equals


def _least(run: Any, vertices: Array) -> int:
    v = vertices.astype(np.int64)
    degree = (run.csr.indptr[v + 1] - run.csr.indptr[v]).astype(np.int64)
    return int(v[degree == degree.min()].min())


# Levels alone


@device
def _from_parents(
    indptr: Array, indices: Array, mark: Array, queue: Array, begin: Any, end: Any, value: Any
) -> Any:
    """Place the children of the level at places begin to end behind it; returns their end."""
    one = indices.dtype.type(1)
    tail = end
    for i in range(begin, end):
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
            v = indices[k]
            if mark[v] == FREE:
                mark[v] = value
                queue[tail] = v
                tail += ONE
    return tail


@device
def _from_children(
    indptr: Array, indices: Array, mark: Array, queue: Array, end: Any, value: Any, free: Array,
    count: int,
) -> tuple[Any, int]:  # fmt: skip
    """Place the free vertices with a placed neighbour behind `end`; others stay in the list."""
    one = indices.dtype.type(1)
    tail = end
    left = 0
    for x in range(count):
        v = free[x]
        found = False
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + one])):
            there = mark[indices[k]]
            if there != FREE and there != value:
                found = True
                break
        if found:
            mark[v] = value
            queue[tail] = v
            tail += ONE
        else:
            free[left] = v
            left += 1
    return tail, left


@kernel
def find_levels(
    team: Any, csr: Csr, mark: Array, queue: Array, start: Any, at: Any, most: Any, free: Array,
    facts: Array,
) -> None:  # fmt: skip
    """Levels of the component of `start`; `facts` as from `order_serial`.

    The placed neighbours of a free vertex are in the current level, or were placed in this step;
    `mark` distinguishes them by two values that alternate.

    Gives up when two neighbouring levels have `most` vertices.  `free` has room for all vertices.
    """
    if team.rank > 0:
        return
    indptr, indices = csr.indptr, csr.indices
    n = mark.size
    value = np.uint8(1)
    queue[at] = start
    mark[start] = np.uint8(2)
    begin, end, levels, width = at, at + ONE, ONE, ONE
    left = -1  # vertices in the list of free ones; it is made when first needed
    while True:
        if stopping(team):
            return
        arcs = np.float64(serial.arcs_of(indptr, queue, begin, end))
        unseen = np.float64(n) - np.float64(end) if left < 0 else np.float64(left)
        # as in `bfs`: a free vertex reads some indices.size / arcs neighbours
        if arcs * arcs > unseen * np.float64(indices.size):
            if left < 0:
                left = 0
                for v in range(n):
                    if interrupted(team, v):
                        return
                    if mark[v] == FREE and indptr[v + 1] > indptr[v]:
                        free[left] = v
                        left += 1
            else:
                kept = 0
                for x in range(left):
                    if mark[free[x]] == FREE:
                        free[kept] = free[x]
                        kept += 1
                left = kept
            tail, left = _from_children(indptr, indices, mark, queue, end, value, free, left)
        else:
            tail = _from_parents(indptr, indices, mark, queue, begin, end, value)
        if tail - begin > width:
            width = tail - begin
        if tail == end or width >= most:
            break
        levels += ONE
        begin, end = end, tail
        value = np.uint8(3) - value
    for x in range(at, tail):
        mark[queue[x]] = PLACED
    facts[FACT.end], facts[FACT.levels], facts[FACT.width], facts[FACT.last] = (
        tail, levels, width, begin
    )  # fmt: skip
    facts[FACT.code] = CUT if width >= most else WHOLE


def find(run: Any, start: int, queue: Array, at: int, limit: int, most: Any = EVERYTHING) -> None:
    """As `serial.order`, but the vertices of a level are in any order."""
    if run.free is None:
        run.free = np.empty(run.n, run.unsigned)
    run.alone.run(
        find_levels, run.csr, run.mark, queue, run.unsigned(start), np.uint64(at),
        np.uint64(most), run.free, run.facts,
    )  # fmt: skip
