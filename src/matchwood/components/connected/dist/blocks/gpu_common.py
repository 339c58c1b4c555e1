"""Components on ranks that share a GPU and see each other's memory: one forest of all blocks.

The ranks have one GPU between them, so nothing is gained if all of them use it.  The first rank
joins the entries of all blocks where they lie, by the steps of one machine (connected/gpu.cu): each
is a launch for the block of each rank.  Then the owners read the labels of their vertices.
Kernels: gpu_common.cu.

The forest lies in memory of the first rank.  Others map it, and what they map they read in order
only: four processes that joined their blocks into a forest of one of them took 15 ms for a graph
for which one rank takes 2.3 (R-MAT 24, H200, MPS).
"""

from __future__ import annotations

from typing import Any

from matchwood import gpu
from matchwood.components.connected import gpu as single
from matchwood.components.connected.dist import forest
from matchwood.dist.common import common, lent, meet, settle

CALLER = "connected_components"
SOURCE = gpu.Source(
    __package__,
    "gpu_common.cu",
    (
        "hook_first<I>",
        "find_largest<I>",
        "hook_more<I>",
        "hook_rest<I>",
        "write_labels<I>",
        "write_roots<I>",
    ),
)
TILE, SAMPLE = SOURCE.constants("TILE", "SAMPLE")
FIRST = 0  # the rank that does the work
PASSES = single.SAMPLED_NEIGHBOURS + 1


class Run:
    """A call on one rank."""

    def __init__(self, G: Any, space: Any, blocks: Any) -> None:
        grid, C = G.grid, G.grid.C
        self._graph, self._space, self._first = G, space, G.comm.rank == FIRST
        self._kernels = SOURCE.kernels(I=G.index_dtype)
        sizes = [grid.size_of(rank) for rank in range(grid.p)]
        self._ends = [sum(sizes[: rank + 1]) for rank in range(grid.p)]
        rows = [sum(sizes[r * C : (r + 1) * C]) for r in range(grid.R)]
        self._shapes = [(grid.R, C, rank // C, rank % C, rows[rank // C]) for rank in range(grid.p)]
        self._sizes, self._blocks = sizes, blocks.arrays

    def join(self) -> int:
        """Make the forest; the number of passes over vertices and entries."""
        # when the ranks agree on this, each has read what it wanted of the forest before
        symmetric = forest.is_symmetric(self._graph)
        if self._first:
            self._join(symmetric)
        self._graph.comm.report(PASSES)
        return PASSES

    def _join(self, symmetric: bool) -> None:
        k, n, parent = self._kernels, self._graph.n, self._space.parent
        largest, settled = self._space.words[:1], self._space.words[1:2]
        compress = single.SOURCE.kernels(I=parent.dtype).compress
        ranks = list(zip(self._shapes, self._sizes, self._blocks, strict=True))
        for shape, size, (indptr, indices) in ranks:
            k.hook_first(size, (*shape, size, indptr, indices, parent))
        compress(n, (n, False, None, parent))
        sample = (*self._shapes[FIRST], self._sizes[FIRST], self._blocks[FIRST][0], parent)
        k.find_largest(None, (*sample, False, largest, settled), block=SAMPLE, grid=1)
        for last in single.MORE:
            for shape, size, (indptr, indices) in ranks:
                k.hook_more(size, (*shape, size, indptr, indices, last, settled, parent))
            compress(min(n, single.PASS_THREADS), (n, False, settled, parent))
        k.find_largest(None, (*sample, True, largest, settled), block=SAMPLE, grid=1)
        for shape, _, (indptr, indices) in ranks:
            pattern = (*shape, indices.size, indptr, indices, symmetric, largest)
            tiles = -(-(shape[-1] + indices.size) // TILE) * 32
            k.hook_rest(tiles, (*pattern, parent))

    def number(self) -> tuple[int, Any]:
        """The number of components, and the labels of own vertices, after `join`."""
        count = single.number_roots(self._graph.n, self._space.parent) if self._first else 0
        return self._read("write_labels", count)

    def roots(self) -> Any:
        """The smallest vertex of the component of each own vertex, after `join`."""
        return self._read("write_roots", 0)[1]

    def _read(self, kernel: str, count: int) -> tuple[int, Any]:
        """The number that the first rank has, and what the kernel finds for own vertices."""
        space, ends, rank = self._space, self._ends, self._graph.comm.rank
        bounds = zip(ends, self._sizes, strict=True)
        found = [space.labels[end - size : end] for end, size in bounds]
        if self._first:
            write = getattr(self._kernels, kernel)
            for shape, size, part in zip(self._shapes, self._sizes, found, strict=True):
                write(size, (*shape, size, space.parent, part))
        count = int(meet(self._graph, count)[FIRST])
        own = gpu.empty(self._sizes[rank], space.labels.dtype, CALLER)
        own[...] = found[rank]
        settle()  # it may be written again when this rank is back
        return count, own


def run_of(G: Any) -> Run | None:
    """A call on ranks that see each other's memory; None where they do not.  All ranks call it."""
    n, kind, view = G.n, G.index_dtype, G.entries()
    space = common(G, CALLER, words=(2, kind), parent=(n, kind), labels=(n, kind)) if n else None
    if space is None:
        return None
    blocks = lent(G, f"{CALLER}: blocks", lambda: [view.indptr, view.indices])
    return None if blocks is None else Run(G, space, blocks)
