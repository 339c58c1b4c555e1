"""A round of colour propagation on one block: rows pull from columns, or push to them.

Colours that are read are those of the round before, and are not changed here; what is found goes to
`known`.  So a round does not depend on the number of threads.  Races: `known` only goes down, by an
atomic minimum, and a vertex is listed by the member that first raises its word of `seen`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_max,
    atomic_min,
    crew,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
)

Array = np.ndarray[Any, Any]

CHUNK = 512  # rows that a member takes at a time


@kernel
def _pull(
    team: Any, rows: Any, every: bool, active: Array, size: int, colour: Array, known: Array,
    found: Array, tail: Array,
) -> None:  # fmt: skip
    indptr, indices = rows
    chunk = next_chunk(team, size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, size)):
            v = i if every else active[i]
            least = known[v]
            for k in range(indptr[v], indptr[v + 1]):
                least = min(least, colour[indices[k]])
            if least < known[v]:
                known[v] = least
                found[atomic_add(tail, 0, 1)] = v
        chunk = next_chunk(team, size, CHUNK)


def pull(
    rows: Any, active: Array | None, colour: Array, known: Array, threads: int | None
) -> Array:
    """Rows that see a smaller colour than they know, ascending; they know it afterwards."""
    size = known.size if active is None else active.size
    found, tail = np.empty(size, np.int64), np.zeros(1, np.int64)
    every = active is None
    listed = np.empty(0, np.int64) if active is None else active
    crew(threads, work=rows[1].size).run(
        _pull, rows, every, listed, size, colour, known, found, tail
    )
    return np.sort(found[: tail[0]])


@kernel
def _push(
    team: Any, rows: Any, every: bool, active: Array, size: int, colour: Array, known: Array,
    seen: Array, number: int, found: Array, tail: Array,
) -> None:  # fmt: skip
    indptr, indices = rows
    chunk = next_chunk(team, size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, size)):
            u = i if every else active[i]
            mine = colour[u]
            for k in range(indptr[u], indptr[u + 1]):
                v = indices[k]
                if mine >= load_relaxed(known, v) or atomic_min(known, v, mine) <= mine:
                    continue
                if atomic_max(seen, v, number) < number:
                    found[atomic_add(tail, 0, 1)] = v
        chunk = next_chunk(team, size, CHUNK)


def push(
    rows: Any,
    active: Array | None,
    colour: Array,
    known: Array,
    seen: Array,
    number: int,
    threads: int | None,
) -> Array:
    """Columns, by local id, that are offered a smaller colour than is known of them."""
    indptr, indices = rows
    size = indptr.size - 1 if active is None else active.size
    found, tail = np.empty(min(known.size, indices.size), np.int64), np.zeros(1, np.int64)
    every = active is None
    listed = np.empty(0, np.int64) if active is None else active
    crew(threads, work=indices.size).run(
        _push, rows, every, listed, size, colour, known, seen, number, found, tail
    )
    return found[: tail[0]]


@kernel
def _mark(team: Any, rows: Any, given: Array, marks: Array) -> None:
    indptr, indices = rows
    chunk = next_chunk(team, given.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, given.size)):
            if interrupted(team, i):
                return
            for k in range(indptr[given[i]], indptr[given[i] + 1]):
                atomic_max(marks, indices[k], 1)
        chunk = next_chunk(team, given.size, CHUNK)


def neighbours(rows: Any, given: Array, threads: int | None) -> Array:
    """The entries of these rows, each once, ascending."""
    indptr, indices = rows
    marks = np.zeros(indptr.size - 1, np.int32)
    crew(threads, work=indices.size).run(_mark, rows, given, marks)
    return np.flatnonzero(marks)
