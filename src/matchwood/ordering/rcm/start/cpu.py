"""The start of a big component on the CPU, and the order from there.

A search for a start needs the levels from a vertex, which the order from there gives as well.  So
searches are orders, and the one from the start is kept; as a rule it is the first.  Only where
degrees are skewed are levels found much faster than an order (cpu_levels.py).  A small graph tries
its starts on one thread, whatever the method (cpu_serial.py).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood.engines.cpu import kernel, share
from matchwood.ordering.rcm.cpu_records import FACT, FREE, PLACED, WHOLE
from matchwood.ordering.rcm.serial import cpu as serial
from matchwood.ordering.rcm.start import cpu_levels
from matchwood.ordering.rcm.start.cpu_serial import try_starts

Array = np.ndarray[Any, Any]

GUESSES = 16  # vertices of least degree tried before a big component is searched for its own


@kernel
def _least_free(team: Any, indptr: Array, loops: Any, mark: Array, best: Array) -> None:
    """For each member, the least (degree, vertex) among its free vertices that have neighbours."""
    lo, hi = share(team, mark.size)
    least, at = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-1)
    for v in range(lo, hi):
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        if np.int64(loops) < degree < least and mark[v] == FREE:
            least, at = degree, v
    best[team.rank, 0], best[team.rank, 1] = least, at


def search_and_place(run: Any, first: int, at: int, limit: int) -> tuple[int, int]:
    """Find the start of the component of `first`, and order it from there; `run` is rcm.cpu.Run.

    Returns the end, and how many searches it took.
    """
    if run.small:
        return _try_and_place(run, first, at, limit)
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
    """A method that counts levels, for the search of a start; an order if it may."""
    if run.longest * run.n >= cpu_levels.SKEW * run.csr.indices.size:
        return cpu_levels.find
    return run.auto()


def _try_and_place(run: Any, first: int, at: int, limit: int) -> tuple[int, int]:
    """`search_and_place` in a small graph."""
    begun = time.perf_counter()
    serial.order(run, first, run.queue, at, limit)
    end = int(run.facts[FACT.end])
    run.alone.run(
        try_starts, run.csr, run.mark, run.queue, run.places(), np.uint64(at), np.uint64(end),
        run.sorter(), run.facts, errors=run.errors,
    )  # fmt: skip
    tried = int(run.facts[FACT.tried])
    run.seconds["search"] += time.perf_counter() - begun
    if run.method not in ("auto", "serial"):
        run.set_marks(run.queue, at, end, FREE)
        run.place(int(run.queue[at]), at, end)
        run.expect(end)
    return end, tried


def _from_least(run: Any, first: int, at: int, limit: int) -> int:
    """Order the component of `first` from its vertex of least (degree, vertex).

    As a rule the least of all free vertices is in it; then there is nothing to look for.
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
    for members in tried:  # of other components, whose turn comes later
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
    """The vertex of least (degree, vertex)."""
    v = vertices.astype(np.int64)
    degree = (run.csr.indptr[v + 1] - run.csr.indptr[v]).astype(np.int64)
    return int(v[degree == degree.min()].min())
