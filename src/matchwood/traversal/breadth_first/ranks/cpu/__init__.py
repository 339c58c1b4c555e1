"""A rank's steps of a search on the CPU.  Read ../__init__.py first.

Where vertices lie in stripes: `Steps`.  Kernels read received messages and write those to be sent
(messages.py), so a level makes no lists of what is sent as bits.  There are two kernels in a level
(levels.py): one follows rows or looks for the frontier and writes what is offered to the owners,
the other takes what is offered.  Levels with little work run in one kernel, many of them at a
time, where the ranks share memory (narrow.py).  A rank knows

    open      rows that are not reached and have entries: a bit for each place of each stripe of the
              row group.  Only these are looked at bottom up
    columns   which of them need not be offered to their owners any more, and in a level top down
              the parents of those that were found.  All as bits, so that they stay in the cache
    own       levels and parents of own vertices

Where they lie in ranges: `Block` and `accept`, for the lists of ../__init__.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    atomic_add,
    atomic_cas,
    atomic_min,
    crew,
    crew_for_step,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    workspace,
)
from matchwood.engines.cpu.hints import prefetch
from matchwood.engines.ranks.exchanges.cpu import rows_with_entries
from matchwood.engines.ranks.exchanges.packing import (
    bits_of,
    pack_values,
    places_of,
    words_of_bits,
)
from matchwood.engines.ranks.exchanges.routing import to_group
from matchwood.primitives.frontier.cpu import BUFFER
from matchwood.traversal.breadth_first.ranks.cpu import levels, messages, narrow

Array = np.ndarray[Any, Any]


# Vertices in stripes


class Steps:
    """The state of a rank; the steps are those of `Lists` in ../__init__.py."""

    def __init__(self, G: Any, outward: Any, inward: Any, kind: Any, threads: int | None) -> None:
        self.grid, self.exchange, self.threads = G.grid, G.exchange, threads
        grid, word = self.grid, np.dtype(f"u{np.dtype(kind).itemsize}")
        self.names = messages.Names(grid.shape, _shift(grid), *_names(G, word))
        same = inward is outward
        full = _full(G, outward, "entries" if same else "outgoing entries")
        into = full if same else _full(G, inward, "incoming entries")
        self.outward = levels.Outward(*_unsigned(outward), full)
        self.inward = _inward(G, inward, into, self.names, same, threads)
        self.reachable = _reachable(G, into, same)
        self.of_rows, self.of_columns = _stripes(of_rows(grid)), _stripes(of_columns(grid))
        self.level, self.parent = (np.empty(grid.owned, word) for _ in range(2))
        self.open = into.copy()
        self._make_room(word, into.shape)
        self._team(grid.owned).run(levels.begin, self.level, self.parent)
        self.narrow = narrow.narrow(G, word)
        self.places = np.empty(0, word)  # scratch of levels with little work

    def _make_room(self, word: Any, shape: tuple[int, int]) -> None:
        """Scratch.  A level goes one way: what both need lies in the same place."""
        grid, (stripes, words) = self.grid, shape
        bits = words_of_bits(grid.n_local, np.uint64)
        longest = max(grid.n_rows, grid.n_columns)
        index, places = self.outward.indices.dtype, stripes * words * messages.WORD
        queues = (grid.n_rows + 1 + grid.n_columns) * index.itemsize
        space = workspace(
            marks=((2, bits), np.uint64),
            frontier=(int(grid.R) << int(self.names.shift) >> 6, np.uint64),
            found=((stripes, words), np.uint64),
            best=(grid.n_local, word),
            words=(longest + (words + 1) * 2 * max(grid.R, grid.C), word),
            either=(max(queues, places * word.itemsize), np.uint8),
        )
        seen, fresh = space.marks
        self.frontier = space.frontier
        seen.fill(0)
        fresh.fill(0)
        self.columns = messages.Columns(seen, fresh, space.best)
        self.words = space.words
        rows = space.either[:queues].view(index)
        self.rows, self.found = rows[: grid.n_rows + 1], rows[grid.n_rows + 1 :]
        parents = space.either[: places * word.itemsize].view(word)
        self.bits, self.parents = space.found, parents.reshape(stripes, -1)
        self.reached = np.zeros(words_of_bits(grid.owned, np.uint64), np.uint64)

    def _team(self, work: int) -> Crew:
        """The team for `work` steps."""
        return crew_for_step(self.threads, work=work)

    def start(self, places: Array, ids: Array) -> int:
        """These own places, with these names, are of level 0; returns their number."""
        message = pack_values(places, ids.astype(self.parent.dtype), self.grid.owned)
        return self._taken(message, np.array([message.size]), 0)

    def arcs(self, depth: int, backwards: bool) -> int:
        """An estimate of the entries of the own frontier in all blocks of its rows.

        Entries are distributed evenly over the blocks of a row, and this rank has one of these.
        """
        return self.entries * int(self.grid.C)

    def _frontier_of(
        self, comm: Any, stripes: tuple[Array, Array, Array]
    ) -> messages.FrontierMessages:
        words, counts = comm.allgatherv(self.frontier_words)
        return messages.FrontierMessages(words, _starts(counts), *stripes)

    def _offers(self, stripes: tuple[Array, Array, Array], team: Crew) -> messages.Offers:
        width = stripes[0].size + messages.GAP
        counts = np.empty((team.size + 1, width), np.int64)
        starts = np.empty((team.size, 2, width), np.int64)
        return messages.Offers(self.words, counts, starts, *stripes)

    def top_down(self, depth: int, follow: int) -> int:
        """Follow the frontier's rows, about `follow` entries on all ranks; own vertices reached."""
        sent = self._frontier_of(self.exchange.row, self.of_rows)
        team = self._team(follow // self.grid.p + 8 * sent.words.size)
        offers = self._offers(self.of_columns, team)
        team.run(
            levels.top_down, sent, self.outward, self.open, self.names, self.columns,
            _queue(self.rows, team), _queue(self.found, team), offers,
        )  # fmt: skip
        return self._accepted(self.exchange.column, offers, depth + 1)

    def bottom_up(self, depth: int) -> int:
        """Rows that are not reached look for the frontier; returns how many own ones are."""
        rows = self._frontier_of(self.exchange.row, self.of_rows)
        columns = self._frontier_of(self.exchange.column, self.of_columns)
        team = crew(self.threads, work=self.inward.indices.size + self.grid.n_rows)
        stripes, words = self.open.shape
        counts = np.empty((stripes, -(-words // messages.WORDS)), np.int64)
        near = messages.room_for_notes(team.size, self.inward.indices.dtype)
        found = messages.FoundRows(self.bits, self.parents, counts, *near)
        offers = self._offers(self.of_rows, team)
        team.run(
            levels.bottom_up, levels.GroupMessages(rows, columns), self.inward, self.open,
            self.names, self.frontier, found, offers,
        )  # fmt: skip
        return self._accepted(self.exchange.row, offers, depth + 1)

    def _accepted(self, comm: Any, offers: messages.Offers, depth: int) -> int:
        """Send parents to the owners, and accept those received; returns how many were reached."""
        places = offers.counts[-1, : comm.size]
        bits = -(-offers.size // (8 * self.parent.itemsize))
        sizes = np.where(places < bits, 2 * places, bits + places)
        received, counts = comm.alltoallv(self.words[: int(sizes.sum())], sizes)
        return self._taken(received, counts, depth)

    def _taken(self, received: Array, counts: Array, depth: int) -> int:
        """Make the frontier of own vertices that are reached now; returns their number."""
        totals, few = np.zeros(2, np.int64), words_of_bits(self.grid.owned, np.uint32)
        reached_now, listed = np.zeros_like(self.reached), np.empty(few, np.uint32)
        own = levels.OwnVertices(
            self.level, self.parent, self.reached, reached_now, listed, self.outward.indptr
        )
        self._team(2 * received.size).run(
            levels.accept, received, _starts(counts), depth, own, self.columns, self.grid.shape,
            totals,
        )  # fmt: skip
        self.own, self.entries = totals.tolist()
        self.frontier_words = (
            listed[: self.own] if self.own < few else reached_now.view(np.uint32)[:few]
        )
        return int(self.own)

    def is_narrow(self, size: int, follow: int) -> bool:
        """Whether a level of `size` vertices and `follow` entries, on all ranks, is narrow."""
        if self.narrow is None:
            return False
        return size <= self.narrow.most and follow <= narrow.ENTRIES * self.grid.p

    def search_narrow(self, depth: int, limit: int) -> tuple[Array, bool]:
        """Search on while levels are narrow.

        Own vertices of each level, that of the frontier first; and whether the search is over.
        """
        assert self.narrow is not None
        grid, few = self.grid, words_of_bits(self.grid.owned, np.uint32)
        frontier = self.frontier_words
        if self.own >= few:
            frontier = places_of(frontier, grid.owned)
        if self.places.size == 0:
            self.places = np.empty(grid.owned, self.parent.dtype)
        self.places[: self.own] = frontier
        reached = narrow.Reached(
            self._known(frontier, depth), self.open, self.level, self.parent, self.reached,
            self.rows, self.places, self.found,
        )  # fmt: skip
        sizes, over = self.narrow.search(
            self.outward, self.names, self.columns, reached, depth, self.own, limit
        )
        self.own = int(sizes[-1])
        frontier = np.sort(self.places[: self.own])
        rows = frontier.astype(np.int64) * int(grid.C) + int(grid.c)
        self.entries = int((self.outward.indptr[rows + 1] - self.outward.indptr[rows]).sum())
        words = frontier.astype(np.uint32)
        if self.own >= few:
            words = bits_of(frontier, self.reached.size, np.uint64).view(np.uint32)[:few]
        self.frontier_words = words
        return sizes, over

    def _known(self, frontier: Array, depth: int) -> Array:
        """Bits of the row group: what was reached before this level."""
        known = np.zeros_like(self.open)
        if depth > 0:
            own = np.zeros(known.shape[1], np.uint64)
            own[: self.reached.size] = self.reached
            own &= ~bits_of(frontier, own.size, np.uint64)
            known[:] = self.exchange.row.allgather(own).reshape(known.shape)
        return known


def _queue(vertices: Array, team: Crew) -> messages.Queue:
    buffers = np.empty((team.size, BUFFER), vertices.dtype)
    return messages.Queue(vertices, np.zeros(1, np.int64), buffers)


def _shift(grid: Any) -> Any:
    """Bits of the number of a place, in whole words."""
    return np.uint64(max(6, int(grid.most_owned - 1).bit_length()))


def _names(G: Any, word: Any) -> tuple[Array, Array]:
    """Names by local id, and of columns by position; empty where ids are names.  Kept by G."""
    if G.names is None:
        return np.empty(0, word), np.empty(0, word)

    def make() -> tuple[Array, Array]:
        names = np.ascontiguousarray(G.names, word)
        return names, names[G.grid.columns_to_local]

    made: tuple[Array, Array] = G.keep(f"names of bfs {word}", make)
    return made


def _full(G: Any, view: Any, what: str) -> Array:
    """Which rows have entries: (stripes of the row group, words) bits by place; kept by G."""
    made: Array = G.keep(f"bfs, rows with {what}", lambda: rows_with_entries(view.indptr, G.grid))
    return made


def _reachable(G: Any, into: Array, both: bool) -> int:
    """How many vertices of the graph have entries in the rows of some block; kept by G."""

    def make() -> int:
        own = np.bitwise_or.reduce(to_group(G.exchange.row, list(into), np.uint64))
        count = places_of(own, G.grid.owned).size
        return int(G.comm.allreduce(np.array([count], np.int64))[0])

    found: int = G.keep(f"bfs, vertices with {'entries' if both else 'incoming entries'}", make)
    return found


def _inward(
    G: Any, view: Any, full: Array, names: messages.Names, both: bool, threads: int | None
) -> levels.Inward:
    """The rows with their first entries; kept by G."""
    what = "entries" if both else "incoming entries"

    def make() -> levels.Inward:
        return levels.with_heads(*_unsigned(view), full, names, threads)

    made: levels.Inward = G.keep(f"bfs, first {what}", make)
    return made


def _unsigned(view: Any) -> tuple[Array, Array]:
    return view.indptr, view.indices.view(f"u{view.indices.itemsize}")


def _stripes(listed: list[tuple[int, int, int]]) -> tuple[Array, Array, Array]:
    base, step, size = (np.array(column, np.int64) for column in zip(*listed, strict=True))
    return base, step, size


def of_rows(grid: Any) -> list[tuple[int, int, int]]:
    """Of the ranks of the row: the local id of their first vertex, the step, their number."""
    return [(c, grid.C, size) for c, size in enumerate(grid.row_counts)]


def of_columns(grid: Any) -> list[tuple[int, int, int]]:
    """The same of the ranks of the column."""
    others = [r for r in range(grid.R) if r != grid.r]
    found = {r: (grid.n_rows + k, grid.R - 1) for k, r in enumerate(others)}
    found[grid.r] = (grid.c, grid.C)
    return [(*found[r], size) for r, size in enumerate(grid.column_counts)]


def _starts(counts: Any) -> Array:
    """Where the message of each rank begins, and the end."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


# Vertices in ranges: a level in a block, top down or bottom up
#
# `when[v]` is the level at which this rank saw v first, -1 before.  `best[v]` is the smallest
# vertex, as the user numbers them, that leads to v from the level before that; larger than any
# vertex at first.
#
# Races, top down.  Several members may reach v at once: one of them changes `when[v]`, by
# compare-and-swap, and lists v; `best[v]` only goes down, by an atomic minimum.  Bottom up there
# are none: a row has one writer.


CHUNK = 64  # rows of the frontier that a member takes at a time
ROWS = 4096  # rows that a member takes at a time bottom up
AHEAD = 16  # rows between the one prefetched and the one read; most are left early
UNSEEN = -1
SORTED_PART = 16  # up to 1 / SORTED_PART of the own places are sorted; of more, all are looked at


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
def _accept(
    team: Any, places: Array, offers: Array, depth: int, level: Array, parent: Array, fresh: Array,
    tail: Array,
) -> None:  # fmt: skip
    if team.me > 0:
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
    """Set level and least parent of places not reached before; returns these places."""
    fresh = np.empty(min(level.size, sum(places.size for places, _ in offers)), np.int64)
    tail = np.zeros(1, np.int64)
    for places, parents in offers:
        crew(1, work=places.size).run(_accept, places, parents, depth, level, parent, fresh, tail)
    if int(tail[0]) * SORTED_PART > level.size:
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
        self.arcs = 0  # entries of the rows that were seen last

    def see(self, rows: Array, depth: int) -> int:
        """Give these rows the level `depth`; returns how many entries they have."""
        self.when[rows] = depth
        indptr = self.outward[0]
        self.arcs = int((indptr[rows + 1] - indptr[rows]).sum())
        return self.arcs

    def frontier(self, columns: Array) -> Array:
        """What `bottom_up` takes, from local ids of columns."""
        return bits_of(columns, -(-self.when.size // 64), np.uint64)

    def top_down(self, rows: Array, depth: int) -> Array:
        """Columns not seen before that these rows, which `see` was given last, reach."""
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
        base, step, size = stripe
        places = np.flatnonzero(self.when[base:][::step][:size] == depth)
        return places, self.best[base + places * step]

    def bottom_up(self, frontier: Array, depth: int) -> None:
        """Rows that are not seen yet and have a column of the frontier get a level and a parent.

        The columns of a row are in the order of their names, so the first found is the least.
        """
        crew(self.threads, work=self.inward[1].size + self.rows).run(
            _bottom_up, self.inward, self.rows, frontier, self.names, self.when, self.best,
            depth + 1,
        )  # fmt: skip
