"""The steps of a search on CPU ranks whose vertices lie in stripes.  Read __init__.py first.

Kernels (cpu_stripes.py) read the messages that come and write those that go, so a level makes no
lists of what is told as bits.  A rank knows

    open   rows that are not reached and have entries: a bit for each place of each stripe of the
           row group.  Only these are looked at bottom up
    best   for columns, whether it has offered them to their owners, and with which parent
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.dist.exchanges.cpu_bits import bits_of
from matchwood.dist.exchanges.cpu_stripes import rows_with_entries
from matchwood.dist.exchanges.packing import words_of_bits
from matchwood.teams import crew
from matchwood.traversal.breadth_first.dist import cpu_stripes as cpu

Array = np.ndarray[Any, Any]


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
        self.level, self.parent = (np.full(grid.owned, -1, kind).view(word) for _ in range(2))
        self.best = np.full(grid.n_local, -1, kind).view(word)
        key = "bfs, rows with entries" if inward is outward else "bfs, rows with incoming entries"
        full = G.keep(key, lambda: rows_with_entries(inward.indptr, grid))
        self.open = full.view(np.uint32).copy()
        self.fresh = np.empty(grid.owned, word)
        self.of_rows = _stripes(of_rows(grid))
        self.of_columns = _stripes(of_columns(grid))
        self.found: cpu.Found | None = None

    def start(self, places: Array, ids: Array) -> int:
        """These own places, with these names, are of level 0; returns their number."""
        self.level[places], self.parent[places] = 0, ids
        self.best[places * self.grid.C + self.grid.c] = cpu.DONE
        return self._reached(places.astype(self.fresh.dtype))

    def _reached(self, fresh: Array) -> int:
        """Own places that are the frontier now."""
        bits = words_of_bits(self.grid.owned, np.uint32)
        few = fresh.size < bits
        self.told = fresh.astype(np.uint32) if few else bits_of(fresh, bits, np.uint32)
        return int(fresh.size)

    def tell(self, depth: int, backwards: bool) -> int:
        """The ranks of the row hear of the frontier; its entries in the block, if they matter."""
        self.listed = False
        self.heard = self._heard(self.exchange.row, self.of_rows)
        if not backwards:
            return self._list_rows()
        crew(1, work=self.heard.words.size).run(cpu.close, self.heard, self.open)
        return 0

    def _heard(self, comm: Any, stripes: tuple[Array, Array, Array]) -> cpu.Heard:
        words, counts = comm.allgatherv(self.told)
        return cpu.Heard(words, _starts(counts), *stripes)

    def _list_rows(self) -> int:
        """The rows of the frontier that have entries; how many entries."""
        heard, totals = self.heard, np.zeros(2, np.int64)
        most = sum(
            int(end - start) if end - start < words_of_bits(size, np.uint32) else int(size)
            for start, end, size in zip(heard.starts, heard.starts[1:], heard.size, strict=False)
        )
        rows = np.empty(most + 1, self.outward[1].dtype)  # one more, which is written and forgotten
        crew(1, work=most).run(cpu.list_rows, heard, self.open, self.outward[0], rows, totals)
        self.listed = True
        self.rows, self.arcs = rows[: int(totals[0])], int(totals[1])
        return self.arcs

    def top_down(self, depth: int) -> int:
        """Follow the frontier's rows; returns how many own vertices are reached."""
        if not self.listed:
            self._list_rows()
        found = np.empty(min(self.grid.n_columns, self.arcs), self.outward[1].dtype)
        tail = np.zeros(1, np.int64)
        if self.arcs:
            crew(self.threads, work=self.arcs + self.rows.size).run(
                cpu.top_down, self.outward, self.rows, self.names, self.best, found, tail
            )
        found, counts = found[: int(tail[0])], np.zeros(self.grid.R, np.int64)
        one = crew(1, work=2 * found.size)
        if found.size:
            one.run(cpu.count_columns, found, self.shape, counts)
        sizes, _ = self._sizes(counts, self.of_columns[2])
        words = np.zeros(int(sizes.sum()), self.parent.dtype)
        heard = cpu.Heard(words, _starts(sizes), *self.of_columns)
        if found.size:
            one.run(cpu.pack_columns, found, self.shape, self.best, heard, counts, words)
        return self._accepted(self.exchange.column, words, sizes, depth + 1)

    def _sizes(self, counts: Array, owned: Array) -> tuple[Array, Array]:
        """The words of a message of so many places with parents, and whether places are listed."""
        bits = -(-owned // (8 * self.parent.itemsize))
        listed = counts < bits
        return np.where(listed, 2 * counts, bits + counts), listed

    def bottom_up(self, depth: int) -> int:
        """Rows that are not reached look for the frontier; returns how many own ones are."""
        heard = self._heard(self.exchange.column, self.of_columns)
        frontier = np.zeros(words_of_bits(self.grid.n_local, np.uint64), np.uint64)
        crew(1, work=8 * heard.words.size).run(cpu.set_columns, heard, frontier)
        found = self._room()
        crew(self.threads, work=self.inward[1].size + self.grid.n_rows).run(
            cpu.bottom_up, self.inward, frontier, self.names, self.open, found
        )
        counts = found.counts.sum(axis=0)
        sizes, listed = self._sizes(counts, self.of_rows[2])
        words = np.empty(int(sizes.sum()), self.parent.dtype)
        crew(1, work=words.size).run(cpu.pack_rows, found, listed, words, _starts(sizes))
        return self._accepted(self.exchange.row, words, sizes, depth + 1)

    def _room(self) -> cpu.Found:
        if self.found is None:
            stripes, words = self.open.shape
            self.found = cpu.Found(
                np.empty_like(self.open),
                np.empty((stripes, words * cpu.BITS), self.parent.dtype),
                np.empty((-(-words // cpu.WORDS), stripes), np.int64),
            )
        return self.found

    def _accepted(self, comm: Any, words: Array, sizes: Array, depth: int) -> int:
        """Send parents to the owners, and take what comes."""
        came, counts = comm.alltoallv(words, sizes)
        tail = np.zeros(1, np.int64)
        own = cpu.Own(self.level, self.parent, self.fresh, self.best)
        crew(1, work=came.size).run(cpu.accept, came, _starts(counts), depth, own, self.shape, tail)
        return self._reached(self.fresh[: int(tail[0])])


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
