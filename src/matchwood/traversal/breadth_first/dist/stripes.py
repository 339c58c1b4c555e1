"""The steps of a search on CPU ranks whose vertices lie in stripes.  Read __init__.py first.

Kernels (cpu_stripes.py) read the messages that come and write those that go, so a level makes no
lists of what is told as bits.  A rank knows

    open      rows that are not reached and have entries: a bit for each place of each stripe of the
              row group.  Only these are looked at bottom up
    columns   which of them need not be offered to their owners any more, and in a level top down
              the parents of those that were found.  All as bits, so that they stay in the cache
    own       levels and parents of own vertices
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.dist.exchanges.cpu_stripes import rows_with_entries
from matchwood.dist.exchanges.packing import pack_values, words_of_bits
from matchwood.primitives.frontier.cpu import BUFFER
from matchwood.teams import Crew, crew
from matchwood.traversal.breadth_first.dist import cpu_offers as offers
from matchwood.traversal.breadth_first.dist import cpu_stripes as cpu

Array = np.ndarray[Any, Any]

TOGETHER = 1 << 15  # steps; with fewer, one member reads or writes a message as quickly as several


class Steps:
    """The state of a rank; the steps are those of `Lists` in __init__.py."""

    def __init__(self, G: Any, outward: Any, inward: Any, kind: Any, threads: int | None) -> None:
        self.grid, self.exchange, self.threads = G.grid, G.exchange, threads
        grid, word = self.grid, np.dtype(f"u{np.dtype(kind).itemsize}")
        self.outward, self.inward = _unsigned(outward), _unsigned(inward)
        names = np.empty(0, word)
        if G.names is not None:
            names = G.keep(f"names of bfs {word}", lambda: np.ascontiguousarray(G.names, word))
        self.shape = grid.shape
        self.names = cpu.Names(self.shape, names)
        self.level, self.parent = (np.empty(grid.owned, word) for _ in range(2))
        self._team(grid.owned).run(offers.begin, self.level, self.parent)
        seen, fresh = np.zeros((2, words_of_bits(grid.n_local, np.uint64)), np.uint64)
        self.columns = cpu.Columns(seen, fresh, np.empty(grid.n_local, word))
        self.reached = np.zeros(words_of_bits(grid.owned, np.uint64), np.uint64).view(word)
        self.full = _full(G, outward, "entries" if inward is outward else "outgoing entries")
        into = self.full if inward is outward else _full(G, inward, "incoming entries")
        self.open = into.copy()
        self.rows = np.empty(grid.n_rows + 1, self.outward[1].dtype)
        self.of_rows = _stripes(of_rows(grid))
        self.of_columns = _stripes(of_columns(grid))
        self.found: cpu.Found | None = None

    def _team(self, work: int) -> Crew:
        """The team that reads or writes a message."""
        return crew(self.threads if work >= TOGETHER else 1, work=work)

    def start(self, places: Array, ids: Array) -> int:
        """These own places, with these names, are of level 0; returns their number."""
        message = pack_values(places, ids.astype(self.parent.dtype), self.grid.owned)
        return self._taken(message, np.array([message.size]), 0)

    def tell(self, depth: int, backwards: bool) -> int:
        """The ranks of the row hear of the frontier; its entries in the block, if they matter."""
        self.listed = False
        self.heard = self._heard(self.exchange.row, self.of_rows)
        crew(1, work=self.heard.words.size).run(cpu.close, self.heard, self.open)
        return 0 if backwards else self._list_rows()

    def _heard(self, comm: Any, stripes: tuple[Array, Array, Array]) -> cpu.Heard:
        words, counts = comm.allgatherv(self.told)
        return cpu.Heard(words, _starts(counts), *stripes)

    def _list_rows(self) -> int:
        """The rows of the frontier that have entries; how many entries."""
        team = self._team(8 * self.heard.words.size)
        rows, arcs = _queue(self.rows, team), np.zeros(1, np.int64)
        team.run(cpu.list_rows, self.heard, self.full, self.outward[0], rows, arcs)
        self.listed = True
        self.frontier, self.arcs = self.rows[: int(rows.tail[0])], int(arcs[0])
        return self.arcs

    def top_down(self, depth: int) -> int:
        """Follow the frontier's rows; returns how many own vertices are reached."""
        if not self.listed:
            self._list_rows()
        team = crew(self.threads, work=self.arcs + self.frontier.size)
        queue = _queue(np.empty(min(self.grid.n_columns, self.arcs), self.rows.dtype), team)
        if self.arcs:
            team.run(cpu.top_down, self.outward, self.frontier, self.names, self.columns, queue)
        found = queue.vertices[: int(queue.tail[0])]
        team = self._team(2 * found.size)
        counts = np.zeros((team.size, self.grid.R + cpu.GAP), np.int64)
        if found.size:
            team.run(offers.count_columns, found, self.shape, counts)
        ends = counts.cumsum(axis=0)
        sizes, _ = self._sizes(ends[-1, : self.grid.R], self.of_columns[2])
        words = np.zeros(int(sizes.sum()), self.parent.dtype)
        heard = cpu.Heard(words, _starts(sizes), *self.of_columns)
        if found.size:
            team.run(offers.pack_columns, found, self.shape, self.columns, heard, ends, words)
        return self._accepted(self.exchange.column, words, sizes, depth + 1)

    def _sizes(self, counts: Array, owned: Array) -> tuple[Array, Array]:
        """The words of a message of so many places with parents, and whether places are listed."""
        bits = -(-owned // (8 * self.parent.itemsize))
        listed = counts < bits
        return np.where(listed, 2 * counts, bits + counts), listed

    def bottom_up(self, depth: int) -> int:
        """Rows that are not reached look for the frontier; returns how many own ones are."""
        heard = self._heard(self.exchange.column, self.of_columns)
        frontier = np.zeros(self.columns.seen.size, np.uint64)
        self._team(8 * heard.words.size).run(cpu.set_columns, heard, frontier, self.columns)
        found = self._room()
        crew(self.threads, work=self.inward[1].size + self.grid.n_rows).run(
            cpu.bottom_up, self.inward, frontier, self.names, self.open, found
        )
        counts = found.counts[:, : self.grid.C].sum(axis=0)
        sizes, listed = self._sizes(counts, self.of_rows[2])
        words = np.empty(int(sizes.sum()), self.parent.dtype)
        self._team(words.size).run(offers.pack_rows, found, listed, words, _starts(sizes))
        return self._accepted(self.exchange.row, words, sizes, depth + 1)

    def _room(self) -> cpu.Found:
        if self.found is None:
            stripes, words = self.open.shape
            self.found = cpu.Found(
                np.empty_like(self.open),
                np.empty((stripes, words * cpu.BITS), self.parent.dtype),
                np.empty((-(-words // cpu.WORDS), stripes + cpu.GAP), np.int64),
            )
        return self.found

    def _accepted(self, comm: Any, words: Array, sizes: Array, depth: int) -> int:
        """Send parents to the owners, and take what comes."""
        came, counts = comm.alltoallv(words, sizes)
        return self._taken(came, counts, depth)

    def _taken(self, came: Array, counts: Array, depth: int) -> int:
        """Own vertices that are reached now are the frontier; returns their number."""
        total, few = np.zeros(1, np.int64), words_of_bits(self.grid.owned, np.uint32)
        told, listed = np.zeros(2 * self.reached.nbytes // 8, np.uint32), np.empty(few, np.uint32)
        bits = words_of_bits(self.grid.owned, self.parent.dtype)
        own = offers.Own(
            self.level,
            self.parent,
            self.reached[:bits],
            told.view(self.parent.dtype)[:bits],
            listed,
        )
        self._team(2 * came.size).run(
            offers.accept, came, _starts(counts), depth, own, self.columns, self.shape, total
        )
        reached = int(total[0])
        self.told = listed[:reached] if reached < few else told[:few]
        return reached


def _queue(vertices: Array, team: Crew) -> cpu.Queue:
    return cpu.Queue(vertices, np.zeros(1, np.int64), np.empty((team.size, BUFFER), vertices.dtype))


def _full(G: Any, view: Any, what: str) -> Array:
    """Which rows have entries: (stripes of the row group, words) bits by place; kept by G."""
    made = G.keep(f"bfs, rows with {what}", lambda: rows_with_entries(view.indptr, G.grid))
    bits: Array = made.view(np.uint32)
    return bits


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
