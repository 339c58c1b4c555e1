"""The steps of a search on CPU ranks whose vertices lie in stripes.  Read __init__.py first.

Kernels read the messages that come and write those that go, so a level makes no lists of what is
told as bits.  There are two in a level: one follows rows (cpu_top_down.py) or looks for the
frontier (cpu_bottom_up.py) and writes what is offered to the owners (cpu_offers.py), the other
takes what is offered (cpu_accept.py).  A rank knows

    open      rows that are not reached and have entries: a bit for each place of each stripe of the
              row group.  Only these are looked at bottom up
    columns   which of them need not be offered to their owners any more, and in a level top down
              the parents of those that were found.  All as bits, so that they stay in the cache
    own       levels and parents of own vertices
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Crew, crew, crew_for_step, workspace
from matchwood.engines.ranks.exchanges.cpu import places_of, rows_with_entries
from matchwood.engines.ranks.exchanges.packing import pack_values, words_of_bits
from matchwood.engines.ranks.exchanges.routing import to_group
from matchwood.primitives.frontier.cpu import BUFFER
from matchwood.traversal.breadth_first.ranks import (
    cpu_accept,
    cpu_bottom_up,
    cpu_offers,
    cpu_told,
    cpu_top_down,
)

Array = np.ndarray[Any, Any]


class Steps:
    """The state of a rank; the steps are those of `Lists` in __init__.py."""

    def __init__(self, G: Any, outward: Any, inward: Any, kind: Any, threads: int | None) -> None:
        self.grid, self.exchange, self.threads = G.grid, G.exchange, threads
        grid, word = self.grid, np.dtype(f"u{np.dtype(kind).itemsize}")
        self.names = cpu_told.Names(grid.shape, _shift(grid), *_names(G, word))
        same = inward is outward
        full = _full(G, outward, "entries" if same else "outgoing entries")
        into = full if same else _full(G, inward, "incoming entries")
        self.outward = cpu_top_down.Outward(*_unsigned(outward), full)
        self.inward = _inward(G, inward, into, self.names, same, threads)
        self.reachable = _reachable(G, into, same)
        self.of_rows, self.of_columns = _stripes(of_rows(grid)), _stripes(of_columns(grid))
        self.gaps = G.keep("bfs, gaps", lambda: cpu_told.gaps(int(grid.C)))
        self.level, self.parent = (np.empty(grid.owned, word) for _ in range(2))
        self.open = into.copy()
        self._make_room(word, into.shape)
        self._team(grid.owned).run(cpu_accept.begin, self.level, self.parent)

    def _make_room(self, word: Any, shape: tuple[int, int]) -> None:
        """Scratch.  A level goes one way: what both need lies in the same place."""
        grid, (stripes, words) = self.grid, shape
        bits = words_of_bits(grid.n_local, np.uint64) + cpu_told.spare_words(grid.C)
        longest = max(grid.n_rows, grid.n_columns)
        index, places = self.outward.indices.dtype, stripes * words * cpu_told.WORD
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
        self.columns = cpu_told.Columns(seen, fresh, space.best)
        self.words = space.words
        rows = space.either[:queues].view(index)
        self.rows, self.found = rows[: grid.n_rows + 1], rows[grid.n_rows + 1 :]
        parents = space.either[: places * word.itemsize].view(word)
        self.bits, self.parents = space.found, parents.reshape(stripes, -1)
        self.reached = np.zeros(words_of_bits(grid.owned, np.uint64), np.uint64)

    def _team(self, work: int) -> Crew:
        """The team for so many steps."""
        return crew_for_step(self.threads, work=work)

    def start(self, places: Array, ids: Array) -> int:
        """These own places, with these names, are of level 0; returns their number."""
        message = pack_values(places, ids.astype(self.parent.dtype), self.grid.owned)
        return self._taken(message, np.array([message.size]), 0)

    def arcs(self, depth: int, backwards: bool) -> int:
        """About as many entries as own vertices of the frontier have, in all blocks of their rows.

        Rows are spread evenly over the blocks, and this rank has one of these.
        """
        return self.entries * int(self.grid.C)

    def _heard(self, comm: Any, stripes: tuple[Array, Array, Array]) -> cpu_told.Heard:
        words, counts = comm.allgatherv(self.told)
        return cpu_told.Heard(words, _starts(counts), *stripes)

    def _offers(self, stripes: tuple[Array, Array, Array], team: Crew) -> cpu_offers.Offers:
        width = stripes[0].size + cpu_told.GAP
        counts = np.empty((team.size + 1, width), np.int64)
        starts = np.empty((team.size, 2, width), np.int64)
        return cpu_offers.Offers(self.words, counts, starts, *stripes)

    def top_down(self, depth: int, follow: int) -> int:
        """Follow the frontier's rows; returns how many own vertices are reached.

        All ranks together follow about so many entries.
        """
        heard = self._heard(self.exchange.row, self.of_rows)
        team = self._team(follow // self.grid.p + 8 * heard.words.size)
        offers = self._offers(self.of_columns, team)
        team.run(
            cpu_top_down.top_down, heard, self.outward, self.open, self.names, self.columns,
            _queue(self.rows, team), _queue(self.found, team), offers,
        )  # fmt: skip
        return self._accepted(self.exchange.column, offers, depth + 1)

    def bottom_up(self, depth: int) -> int:
        """Rows that are not reached look for the frontier; returns how many own ones are."""
        rows = self._heard(self.exchange.row, self.of_rows)
        columns = self._heard(self.exchange.column, self.of_columns)
        team = crew(self.threads, work=self.inward.indices.size + self.grid.n_rows)
        stripes, words = self.open.shape
        counts = np.empty((stripes, -(-words // cpu_offers.WORDS)), np.int64)
        near = cpu_offers.room_near(team.size, self.inward.indices.dtype)
        found = cpu_offers.Found(self.bits, self.parents, counts, *near)
        offers = self._offers(self.of_rows, team)
        team.run(
            cpu_bottom_up.bottom_up, cpu_bottom_up.Told(rows, columns), self.inward, self.open,
            self.names, self.frontier, found, offers,
        )  # fmt: skip
        return self._accepted(self.exchange.row, offers, depth + 1)

    def _accepted(self, comm: Any, offers: cpu_offers.Offers, depth: int) -> int:
        """Send parents to the owners, and take what comes."""
        places = offers.counts[-1, : comm.size]
        bits = -(-offers.size // (8 * self.parent.itemsize))
        sizes = np.where(places < bits, 2 * places, bits + places)
        came, counts = comm.alltoallv(self.words[: int(sizes.sum())], sizes)
        return self._taken(came, counts, depth)

    def _taken(self, came: Array, counts: Array, depth: int) -> int:
        """Own vertices that are reached now are the frontier; returns their number."""
        totals, few = np.zeros(2, np.int64), words_of_bits(self.grid.owned, np.uint32)
        told, listed = np.zeros_like(self.reached), np.empty(few, np.uint32)
        own = cpu_accept.Own(
            self.level, self.parent, self.reached, told, listed, self.outward.indptr
        )
        self._team(2 * came.size).run(
            cpu_accept.accept, came, _starts(counts), depth, own, self.columns, self.gaps,
            self.grid.shape, totals,
        )  # fmt: skip
        reached, self.entries = totals.tolist()
        self.told = listed[:reached] if reached < few else told.view(np.uint32)[:few]
        return int(reached)


def _queue(vertices: Array, team: Crew) -> cpu_told.Queue:
    buffers = np.empty((team.size, BUFFER), vertices.dtype)
    return cpu_told.Queue(vertices, np.zeros(1, np.int64), buffers)


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
    G: Any, view: Any, full: Array, names: cpu_told.Names, both: bool, threads: int | None
) -> cpu_bottom_up.Inward:
    """The rows with their first entries; kept by G."""
    what = "entries" if both else "incoming entries"

    def make() -> cpu_bottom_up.Inward:
        return cpu_bottom_up.with_heads(*_unsigned(view), full, names, threads)

    made: cpu_bottom_up.Inward = G.keep(f"bfs, first {what}", make)
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
