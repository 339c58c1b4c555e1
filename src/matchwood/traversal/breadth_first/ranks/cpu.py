"""One level of breadth-first search in a block, top down or bottom up.  Read __init__.py first.

`when[v]` is the level at which this rank saw v first, -1 before.  `best[v]` is the smallest vertex,
as the user numbers them, that leads to v from the level before that; larger than any vertex at
first.

Races, top down.  Several members may reach v at once: one of them changes `when[v]`, by
compare-and-swap, and lists v; `best[v]` only goes down, by an atomic minimum.  Bottom up there are
none: a row has one writer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_cas,
    atomic_min,
    crew,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
)
from matchwood.engines.cpu.hints import prefetch
from matchwood.engines.ranks.exchanges.cpu import bits_of

Array = np.ndarray[Any, Any]

CHUNK = 64  # rows of the frontier that a member takes at a time
ROWS = 4096  # rows that a member takes at a time bottom up
AHEAD = 16  # rows between the one prefetched and the one read; most are left early
UNSEEN = -1
MANY = 16  # with more new places than 1 / MANY of the own ones, all are looked at; else sorted


@kernel
def _top_down(
    team: Any, rows: Any, frontier: Array, names: Array, when: Array, best: Array, below: int,
    found: Array, tail: Array,
) -> None:  # fmt: skip
    indptr, indices = rows
    level = when.dtype.type(below)
    unseen = when.dtype.type(UNSEEN)
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = frontier[i]
            name = names[u]
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                v = indices[k]
                seen = load_relaxed(when, v)
                if seen == unseen:
                    seen = atomic_cas(when, v, unseen, level)
                    if seen == unseen:
                        found[atomic_add(tail, 0, 1)] = v
                        seen = level
                if seen == level and name < load_relaxed(best, v):
                    atomic_min(best, v, name)
        chunk = next_chunk(team, frontier.size, CHUNK)


@kernel
def _bottom_up(
    team: Any, rows: Any, size: int, frontier: Array, names: Array, when: Array, best: Array,
    below: int,
) -> None:  # fmt: skip
    indptr, indices = rows
    level = when.dtype.type(below)
    unseen = when.dtype.type(UNSEEN)
    six, low = indices.dtype.type(6), indices.dtype.type(63)
    one = np.uint64(1)
    chunk = next_chunk(team, size, ROWS)
    while chunk >= 0:
        for v in range(chunk, min(chunk + ROWS, size)):
            prefetch(indices, indptr[min(v + AHEAD, size)])
            if when[v] != unseen:
                continue
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                u = indices[k]
                if (frontier[u >> six] >> np.uint64(u & low)) & one:
                    when[v] = level
                    best[v] = names[u]
                    break
        chunk = next_chunk(team, size, ROWS)


@kernel
def _see(team: Any, indptr: Array, rows: Array, level: int, when: Array, arcs: Array) -> None:
    lo, hi = share(team, rows.size)
    total = np.int64(0)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        when[rows[i]] = level
        total += indptr[rows[i] + 1] - indptr[rows[i]]
    atomic_add(arcs, 0, total)


@kernel
def _collect(
    team: Any, when: Array, best: Array, stripe: Any, level: int, places: Array, values: Array,
    count: Array,
) -> None:  # fmt: skip
    """One member."""
    if team.rank > 0:
        return
    base, step, size = stripe
    tail = 0
    for k in range(size):
        if interrupted(team, k):
            return
        v = base + k * step
        if when[v] == level:
            places[tail] = k
            values[tail] = best[v]
            tail += 1
    count[0] = tail


@kernel
def _accept(
    team: Any, places: Array, offers: Array, depth: int, level: Array, parent: Array, fresh: Array,
    tail: Array,
) -> None:  # fmt: skip
    """One member."""
    if team.rank > 0:
        return
    at = tail[0]
    for i in range(places.size):
        if interrupted(team, i):
            return
        k = places[i]
        if level[k] < 0:
            level[k] = depth
            parent[k] = offers[i]
            fresh[at] = k
            at += 1
        elif level[k] == depth:
            parent[k] = min(parent[k], offers[i])
    tail[0] = at


def accept(offers: list[tuple[Array, Array]], depth: int, level: Array, parent: Array) -> Array:
    """The smallest of the parents that are offered to a place; places that were not reached."""
    fresh = np.empty(min(level.size, sum(places.size for places, _ in offers)), np.int64)
    tail = np.zeros(1, np.int64)
    for places, parents in offers:
        crew(1, work=places.size).run(_accept, places, parents, depth, level, parent, fresh, tail)
    if int(tail[0]) * MANY > level.size:
        return np.flatnonzero(level == depth)
    return np.sort(fresh[: int(tail[0])])


class Block:
    """What a rank knows of the vertices of its block, by local id."""

    def __init__(
        self, outward: Any, inward: Any, grid: Any, names: Array, threads: int | None
    ) -> None:
        unsigned = np.uint32 if inward[1].dtype == np.int32 else np.uint64
        self.outward, self.inward = tuple(outward), (inward[0], inward[1].view(unsigned))
        self.names, self.rows, self.threads = names, grid.n_rows, threads
        self.when = np.full(grid.n_local, UNSEEN, np.int32)
        self.best = np.full(grid.n_local, np.iinfo(names.dtype).max, names.dtype)
        self.arcs = 0  # of the rows that were seen last

    def see(self, rows: Array, depth: int) -> int:
        """These rows are of level `depth`; how many entries they have."""
        arcs = np.zeros(1, np.int64)
        if rows.size:
            crew(self.threads, work=2 * rows.size).run(
                _see, self.outward[0], rows, depth, self.when, arcs
            )
        self.arcs = int(arcs[0])
        return self.arcs

    def frontier(self, columns: Array) -> Array:
        """What `bottom_up` takes, from local ids of columns."""
        return bits_of(columns, -(-self.when.size // 64), np.uint64)

    def top_down(self, rows: Array, depth: int) -> Array:
        """Columns that these rows reach and that were not seen before; their parents are known.

        They are the rows that `see` was given last.
        """
        found = np.empty(min(self.when.size, self.arcs), np.int64)
        tail = np.zeros(1, np.int64)
        if self.arcs:
            crew(self.threads, work=self.arcs + rows.size).run(
                _top_down, self.outward, rows, self.names, self.when, self.best, depth + 1,
                found, tail,
            )  # fmt: skip
        return found[: int(tail[0])]

    def parents(self, found: Array) -> Array:
        """The smallest parents of columns that were found."""
        return self.best[found]

    def collect(self, stripe: tuple[int, int, int], depth: int) -> tuple[Array, Array]:
        """(k, parents), ascending, of the vertices base + k step of level `depth`, k < size."""
        size = stripe[2]
        places, values = np.empty(size, np.int64), np.empty(size, self.best.dtype)
        count = np.zeros(1, np.int64)
        crew(1, work=size).run(_collect, self.when, self.best, stripe, depth, places, values, count)
        return places[: int(count[0])], values[: int(count[0])]

    def bottom_up(self, frontier: Array, depth: int) -> None:
        """Rows that are not seen yet and have a column of the frontier get a level and a parent.

        The columns of a row are in the order of their names, so the first found is the least.
        """
        crew(self.threads, work=self.inward[1].size + self.rows).run(
            _bottom_up, self.inward, self.rows, frontier, self.names, self.when, self.best,
            depth + 1,
        )  # fmt: skip
