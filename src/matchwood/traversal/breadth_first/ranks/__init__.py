"""Breadth-first search on a grid of ranks.

CPU ranks go on in cpu/.  Ranks with GPUs, and CPU ranks in the layout of the paper, make lists
(`Lists`); a level in their block: cpu/, gpu.py + gpu.cu.

Level by level.  The owners have the levels and parents of their vertices, and the new frontier goes
from them to the ranks of their row.  Then one of two directions, as on one machine:

    top down    a rank follows the arcs of the frontier's rows in its block.  What it has not seen
                before goes to the owners along the column, each with the smallest vertex that
                leads to it.
    bottom up   the frontier goes to the columns too.  In the block of the transpose each row that
                is not reached looks for its first column in the frontier, which is the smallest.
                What is found goes to the owners along the row.

Where the ranks share a GPU or the memory of a host, the first of them searches for all, as one
machine (gate/distributed).

The owner takes the smallest of the parents that it is offered.  A rank offers a vertex once in the
whole search.  Places are sent as lists or as bits, whichever is shorter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.engines.ranks.exchanges.packing import (
    pack_marks,
    pack_values,
    unpack_marks,
    unpack_values,
)
from matchwood.engines.ranks.exchanges.routing import gather_messages, to_group
from matchwood.gate.distributed import one_host, whole
from matchwood.traversal.breadth_first import BFS, levels
from matchwood.traversal.breadth_first import bfs as one_machine
from matchwood.traversal.breadth_first.ranks.check import agree, starting_places
from matchwood.traversal.breadth_first.ranks.check import check_search as check_search

PACKAGE = __name__.rpartition(".")[0]
Array = np.ndarray[Any, Any]

SORTED_PART = 16  # up to 1 / SORTED_PART of the columns are sorted; of more, all are looked at
BETA = 18  # top down again when the frontier has fewer than n / BETA vertices [Beamer]
FEW_LEFT = 8  # ... and at most FEW_LEFT for each vertex that is left, plus n / BITS:
BITS = 64  # bits of a word; a level bottom up looks at all words in any case


def search(
    G: Any, sources: Any, depth_limit: Any, directed: bool, *, threads: int | None = None
) -> BFS:
    """See matchwood.traversal.breadth_first.bfs."""
    agree(G, "bfs", sources, depth_limit, directed)
    limit = levels("bfs", depth_limit, G.n)
    start = starting_places(G, "bfs", sources)
    kind = np.promote_types(G.index_dtype, arguments.index_type(max(G.n, G.nnz)))
    begins, _ = G.comm.allgatherv(np.ascontiguousarray(G.ids[start]))

    def work(graph: Any, members: int) -> Any:
        one = one_machine(
            graph, begins, depth_limit=depth_limit, directed=directed, threads=members
        )
        return (one.level, one.parent), one.rounds

    referred = one_host.referred(G, "bfs", work, threads, pays=False)
    if referred is not None:
        arrays, rounds = referred
        G.comm.report(rounds)
        level, parent = (G.vector(a.astype(kind, copy=False)) for a in arrays)
        return BFS(level, parent, rounds)
    threads = G.threads if threads is None else threads
    outward = G.directed_pattern() if directed else G.undirected_pattern()
    inward = G.transposed_pattern() if directed else outward
    if G.comm.size == 1 and G.order is None:
        level, parent, rounds = engines.load(PACKAGE, G.engine).search(
            outward, inward, start, limit, threads=threads
        )
        return BFS(G.vector(level), G.vector(parent), rounds)
    views = {"directed_pattern" if directed else "undirected_pattern": outward}
    if directed and not G.has_symmetric_pattern:
        views["transposed_pattern"] = inward
    shared = whole.gathered(G, "bfs", 2, **views)
    if shared is not None:
        return _by_first(G, shared, begins, limit, kind)
    direct = G.engine == "cpu" and G.grid.layout == "stripes"
    make = engines.load(__name__, "cpu").Steps if direct else Lists
    steps = make(G, outward, inward, kind, threads)
    key = "arcs" if inward is not outward else "edges"
    arcs: int = G.keep(
        ("bfs", key), lambda: int(G.comm.allreduce(np.array([outward.nnz], np.int64))[0])
    )
    rounds = _levels(G, steps, start, limit, arcs)
    level, parent = (
        engines.moved(array.view(kind), G.engine) for array in (steps.level, steps.parent)
    )
    return BFS(G.vector(level), G.vector(parent), rounds)


def _by_first(G: Any, shared: whole.Whole, sources: Array, limit: int, kind: Any) -> BFS:
    """Search on the first rank, which has the whole graph."""

    def work(outward: Any, inward: Any = None) -> Any:
        inward = outward if inward is None else inward
        level, parent, rounds = engines.load(PACKAGE, "gpu").search(
            outward, inward, np.sort(sources), limit
        )
        return [level, parent], rounds

    found, rounds = shared.answer(work)
    G.comm.report(rounds)
    level, parent = (G.vector(array.astype(kind, copy=False)) for array in found)
    return BFS(level, parent, rounds)


def _levels(G: Any, steps: Any, start: Array, limit: int, arcs: int) -> int:
    """Search from these own places; returns the largest level.  `arcs`: those of the graph."""
    comm, n = G.comm, G.n
    own = steps.start(start, G.ids[start])
    depth = reached = 0
    backwards = False
    while True:
        state = np.array([own, steps.arcs(depth, backwards)], np.int64)
        size, follow = comm.allreduce(state, "sum").tolist()
        comm.report(depth + 1, size)
        if size == 0 or depth == limit:
            return max(0, depth if size else depth - 1)
        reached += size
        if backwards:
            left = max(0, steps.reachable - reached)
            backwards = size > n // BETA or size > FEW_LEFT * left + n // BITS
        else:
            backwards = follow * follow > (n - reached) * arcs
        if not backwards and steps.is_narrow(size, follow):
            levels, over = steps.search_narrow(depth, limit)
            sizes = comm.allreduce(levels).tolist()
            for size in sizes[1:]:
                depth += 1
                comm.report(depth + 1, size)
            if over:
                return max(0, depth if sizes[-1] else depth - 1)
            own, reached = int(levels[-1]), reached + sum(sizes[1:-1])
            continue
        own = steps.bottom_up(depth) if backwards else steps.top_down(depth, follow)
        depth += 1


class Lists:
    """The steps of a rank that has a GPU, or whose vertices lie in ranges.

    Levels and parents are of own vertices, by place; -1 where not reached.  What it knows of the
    other vertices of its block is in `block` (cpu/, gpu.py).  At most `reachable` vertices of
    the graph have arcs into them.
    """

    def __init__(self, G: Any, outward: Any, inward: Any, kind: Any, threads: int | None) -> None:
        self.grid, self.exchange, self.reachable = G.grid, G.exchange, G.n
        self.level, self.parent = (np.full(self.grid.owned, -1, kind) for _ in range(2))
        names = G.keep(f"names of bfs {kind}", lambda: np.ascontiguousarray(G.original_local, kind))
        self.cpu = engines.load(__name__, "cpu")
        self.block = engines.load(__name__, G.engine).Block(
            outward[:2], inward[:2], self.grid, names, threads
        )

    def is_narrow(self, size: int, follow: int) -> bool:
        """See `Steps` of cpu/, which has a loop for levels with little work."""
        return False

    def start(self, places: Array, ids: Array) -> int:
        """These own places, with these names, are of level 0; returns their number."""
        self.level[places], self.parent[places] = 0, ids
        self.frontier = places
        return int(places.size)

    def arcs(self, depth: int, backwards: bool) -> int:
        """Send the frontier to the ranks of the row; returns its entries in the block."""
        grid = self.grid
        self.frontier_words = pack_marks(self.frontier, grid.owned, np.int32)
        parts = [
            grid.rows_of(c, unpack_marks(words, grid.row_counts[c]))
            for c, words in enumerate(gather_messages(self.exchange.row, self.frontier_words))
        ]
        self.rows = np.concatenate(parts)
        arcs: int = self.block.see(self.rows, depth)
        return arcs

    def _columns(self) -> Any:
        """The frontier in the column group, as a block takes it."""
        grid = self.grid
        parts = [
            grid.columns_of(r, unpack_marks(words, grid.column_counts[r]))
            for r, words in enumerate(gather_messages(self.exchange.column, self.frontier_words))
        ]
        return self.block.frontier(grid.columns_to_local[np.concatenate(parts)])

    def top_down(self, depth: int, follow: int) -> int:
        """Follow the frontier's rows; returns how many own vertices are reached."""
        grid = self.grid
        found = self.block.top_down(self.rows, depth)
        if grid.layout == "stripes" and found.size * SORTED_PART > grid.n_columns:
            messages = self._collected(self.cpu.of_columns(grid), depth + 1)
            return self._accepted(self.exchange.column, messages, depth + 1)
        if found.size == 0:
            none = np.empty(0, self.parent.dtype)
            return self._accepted(self.exchange.column, [none] * grid.R, depth + 1)
        found.sort()
        parents = self.block.parents(found)
        ids = grid.original(found)
        ranks, places = grid.owner(ids) // grid.C, grid.places(ids)
        messages = []
        for r in range(grid.R):
            mine = ranks == r
            messages.append(pack_values(places[mine], parents[mine], grid.column_counts[r]))
        return self._accepted(self.exchange.column, messages, depth + 1)

    def _collected(self, listed: list[tuple[int, int, int]], depth: int) -> list[Array]:
        """For each stripe (base, step, size) the message of its vertices of level `depth`."""
        messages = []
        for stripe in listed:
            places, parents = self.block.collect(stripe, depth)
            messages.append(pack_values(places, parents, stripe[2]))
        return messages

    def bottom_up(self, depth: int) -> int:
        """Rows that are not reached look for the frontier; returns how many own ones are."""
        grid = self.grid
        self.block.bottom_up(self._columns(), depth)
        if grid.layout == "stripes":
            messages = self._collected(self.cpu.of_rows(grid), depth + 1)
        else:
            found, parents = self.block.collect((0, 1, grid.n_rows), depth + 1)
            ranks, places = grid.row_owner(found)
            messages = []
            for c in range(grid.C):
                mine = ranks == c
                messages.append(pack_values(places[mine], parents[mine], grid.row_counts[c]))
        return self._accepted(self.exchange.row, messages, depth + 1)

    def _accepted(self, comm: Any, messages: list[Array], depth: int) -> int:
        """Send parents to the owners, and accept those received; returns how many were reached."""
        received = to_group(comm, messages, self.parent.dtype)
        offers = [unpack_values(words, self.grid.owned) for words in received if words.size]
        self.frontier = self.cpu.accept(offers, depth, self.level, self.parent)
        return int(self.frontier.size)
