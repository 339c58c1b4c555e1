"""Breadth-first search on a grid of ranks.  A level in a block: cpu.py, gpu.py + gpu.cu.

Level by level.  The owners have the levels and parents of their vertices, and the new frontier goes
from them to the ranks of their row.  Then one of two directions, as on one machine:

    top down    a rank follows the arcs of the frontier's rows in its block.  What it has not seen
                before goes to the owners along the column, each with the smallest vertex that
                leads to it.
    bottom up   the frontier goes to the columns too.  In the block of the transpose each row that
                is not reached looks for its first column in the frontier, which is the smallest.
                What is found goes to the owners along the row.

The owner takes the smallest of the parents that it is offered.  A rank offers a vertex once in the
whole search.  Places travel as lists or as bits, whichever is shorter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.dist.exchanges.packing import pack_marks, pack_values, unpack_marks, unpack_values
from matchwood.dist.exchanges.routing import to_group
from matchwood.traversal.breadth_first import BFS, levels
from matchwood.traversal.breadth_first.dist import cpu
from matchwood.traversal.breadth_first.dist.check import check_search as check_search
from matchwood.traversal.breadth_first.dist.sources import agree, starting_places

PACKAGE = __name__.rpartition(".")[0]
Array = np.ndarray[Any, Any]

FEW = 16  # with fewer found than 1 / FEW of the columns, they are sorted; else all are looked at
BETA = 18  # top down again when the frontier has fewer than n / BETA vertices [Beamer]


def search(
    G: Any, sources: Any, depth_limit: Any, directed: bool, *, threads: int | None = None
) -> BFS:
    """See matchwood.traversal.breadth_first.bfs."""
    agree(G, "bfs", sources, depth_limit, directed)
    limit = levels("bfs", depth_limit, G.n)
    start = starting_places(G, "bfs", sources)
    threads = G.threads if threads is None else threads
    outward = G.directed_pattern() if directed else G.undirected_pattern()
    inward = G.transposed_pattern() if directed else outward
    if G.comm.size == 1 and G.order is None:
        level, parent, rounds = engines.load(PACKAGE, G.engine).search(
            outward, inward, start, limit, threads=threads
        )
        return BFS(G.vector(level), G.vector(parent), rounds)
    state = _Search(G, outward, inward, threads)
    rounds = state.run(start, limit)
    level, parent = (engines.moved(array, G.engine) for array in (state.level, state.parent))
    return BFS(G.vector(level), G.vector(parent), rounds)


class _Search:
    """The state of a rank: levels and parents of own vertices, by place; -1 where not reached.

    What it knows of the other vertices of its block is in `block` (cpu.py, gpu.py).
    """

    def __init__(self, G: Any, outward: Any, inward: Any, threads: int | None) -> None:
        self.G, self.grid, self.exchange = G, G.grid, G.exchange
        kind = np.promote_types(G.index_dtype, arguments.index_type(max(G.n, G.nnz)))
        self.level, self.parent = (np.full(self.grid.owned, -1, kind) for _ in range(2))
        names = G.keep(f"names of bfs {kind}", lambda: np.ascontiguousarray(G.original_local, kind))
        engine = engines.load(__name__, G.engine)
        self.block = engine.Block(outward[:2], inward[:2], self.grid, names, threads)
        self.direct = G.engine == "cpu" and self.grid.layout == "stripes"  # kernels read messages
        key = "arcs" if inward is not outward else "edges"
        self.arcs: int = G.keep(
            ("bfs", key), lambda: int(G.comm.allreduce(np.array([outward.nnz], np.int64))[0])
        )

    def run(self, frontier: Array, limit: int) -> int:
        """Search from these own places; returns the largest level."""
        comm, n = self.exchange.comm, self.grid.n
        self.level[frontier] = 0
        self.parent[frontier] = self.G.ids[frontier]
        depth = reached = 0
        backwards = False
        while True:
            message = pack_marks(frontier, self.grid.owned, np.int32)
            rows, arcs = self._rows(message, depth)
            state = np.array([frontier.size, arcs], np.int64)
            size, follow = comm.allreduce(state, "sum").tolist()
            comm.report(depth + 1, size)
            if size == 0 or depth == limit:
                return max(0, depth if size else depth - 1)
            reached += size
            if backwards:
                backwards = size > n // BETA
            else:
                backwards = follow * follow > (n - reached) * self.arcs
            if backwards:
                offers = self._bottom_up(message, depth)
            else:
                offers = self._top_down(rows, depth)
            depth += 1
            frontier = cpu.accept(offers, depth, self.level, self.parent)

    def _rows(self, message: Array, depth: int) -> tuple[Array, int]:
        """Rows of the frontier, of all ranks of the row, and how many entries they have."""
        grid = self.grid
        words, counts = self.exchange.row.allgatherv(message)
        starts = _starts(counts)
        if self.direct:
            return self.block.hear(words, starts, np.array(grid.row_counts, np.int64), depth)
        parts = [
            grid.rows_of(c, unpack_marks(words[starts[c] : starts[c + 1]], grid.row_counts[c]))
            for c in range(grid.C)
        ]
        rows = np.concatenate(parts)
        return rows, self.block.see(rows, depth)

    def _columns(self, message: Array) -> Any:
        """The frontier in the column group, as a block takes it."""
        grid = self.grid
        words, counts = self.exchange.column.allgatherv(message)
        starts = _starts(counts)
        if self.direct:
            return self.block.frontier_told(words, starts, np.array(self._column_stripes()))
        parts = [
            grid.columns_of(r, unpack_marks(words[starts[r] : starts[r + 1]], size))
            for r, size in enumerate(grid.column_counts)
        ]
        return self.block.frontier(grid.columns_to_local[np.concatenate(parts)])

    def _top_down(self, rows: Array, depth: int) -> list[tuple[Array, Array]]:
        """(places, parents) that the ranks of the column offer for own vertices."""
        grid = self.grid
        found = self.block.top_down(rows, depth)
        if grid.layout == "stripes" and found.size * FEW > grid.n_columns:
            messages = self._collected(self._column_stripes(), depth + 1)
            return self._offers(self.exchange.column, messages)
        if found.size == 0:
            none = np.empty(0, self.parent.dtype)
            return self._offers(self.exchange.column, [none] * grid.R)
        found.sort()
        parents = self.block.parents(found)
        ids = grid.original(found)
        ranks, places = grid.owner(ids) // grid.C, grid.places(ids)
        messages = []
        for r in range(grid.R):
            mine = ranks == r
            messages.append(pack_values(places[mine], parents[mine], grid.column_counts[r]))
        return self._offers(self.exchange.column, messages)

    def _column_stripes(self) -> list[tuple[int, int, int]]:
        """Where the vertices of each rank of the column are: base, step, size."""
        grid = self.grid
        others = [r for r in range(grid.R) if r != grid.r]
        found = {r: (grid.n_rows + k, grid.R - 1) for k, r in enumerate(others)}
        found[grid.r] = (grid.c, grid.C)
        return [(*found[r], grid.column_counts[r]) for r in range(grid.R)]

    def _collected(self, stripes: list[tuple[int, int, int]], depth: int) -> list[Array]:
        """For each stripe the message of its vertices of level `depth`."""
        messages = []
        for stripe in stripes:
            places, parents = self.block.collect(stripe, depth)
            messages.append(pack_values(places, parents, stripe[2]))
        return messages

    def _bottom_up(self, message: Array, depth: int) -> list[tuple[Array, Array]]:
        """(places, parents) that the ranks of the row offer for own vertices."""
        grid = self.grid
        self.block.bottom_up(self._columns(message), depth)
        if grid.layout == "stripes":
            stripes = [(c, grid.C, count) for c, count in enumerate(grid.row_counts)]
            messages = self._collected(stripes, depth + 1)
        else:
            found, parents = self.block.collect((0, 1, grid.n_rows), depth + 1)
            ranks, places = grid.row_owner(found)
            messages = []
            for c in range(grid.C):
                mine = ranks == c
                messages.append(pack_values(places[mine], parents[mine], grid.row_counts[c]))
        return self._offers(self.exchange.row, messages)

    def _offers(self, comm: Any, messages: list[Array]) -> list[tuple[Array, Array]]:
        received = to_group(comm, messages, self.parent.dtype)
        return [unpack_values(words, self.grid.owned) for words in received if words.size]


def _starts(counts: Any) -> Array:
    """Where the message of each rank begins, and the end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
