"""Components on ranks that share a GPU: one forest, in memory that all of them see.

Every rank joins the entries of its block into it by the union-find of one machine, in the order of
one machine; kernels: gpu_common.cu.  Between two steps the ranks meet:

1. Every owner hooks its vertices under a smaller neighbour each.
2. It compresses their paths; the first rank samples which root most of its vertices have.  Where
   few share one, each vertex is hooked along one more neighbour, twice at most.
3. Every rank joins the entries of its block, but for rows of vertices in that tree.
4. The first rank numbers the roots of all vertices.
5. Owners read the labels of their vertices.
"""

from __future__ import annotations

from typing import Any

from matchwood import gpu
from matchwood.components.connected import gpu as single
from matchwood.components.connected.dist import forest
from matchwood.dist.common import common, meet, settle

CALLER = "connected_components"
SOURCE = gpu.Source(
    __package__,
    "gpu_common.cu",
    (
        "hook_first<I>",
        "compress_own<I>",
        "find_largest<I>",
        "hook_more<I>",
        "hook_rest<I>",
        "write_labels<I>",
        "write_roots<I>",
    ),
)
TILE, SAMPLE = SOURCE.constants("TILE", "SAMPLE")
FIRST = 0  # the rank that samples, and numbers the roots


class Run:
    """A call on one rank."""

    def __init__(self, G: Any, space: Any) -> None:
        grid = G.grid
        self._graph, self._space, self._view = G, space, G.entries()
        self._place = (grid.R, grid.C, grid.r, grid.c, grid.n_rows)
        self._owned, self._first = grid.owned, G.comm.rank == FIRST
        self._kernels = SOURCE.kernels(I=self._view.indptr.dtype)

    def join(self) -> int:
        """Make the forest; the number of passes over own vertices and entries."""
        G, k, view, space = self._graph, self._kernels, self._view, self._space
        # all have left the call before when they agree on this one, and its forest with it
        symmetric = forest.is_symmetric(G)
        own = (*self._place, self._owned)
        rows = (*own, view.indptr, view.indices)
        k.hook_first(self._owned, (*rows, space.parent))
        meet(G)
        passes = 1
        for last in (*single.MORE, None):
            k.compress_own(self._owned, (*own, space.parent))
            settled = self._find_largest() if self._first else 0
            if meet(G, settled)[FIRST] or last is None:
                break
            passes += 1
            k.hook_more(self._owned, (*rows, last, space.parent))
            meet(G)
        pattern = (*self._place, view.nnz, view.indptr, view.indices)
        tiles = -(-(self._graph.grid.n_rows + view.nnz) // TILE) * 32
        k.hook_rest(tiles, (*pattern, symmetric, space.words[:1], space.parent))
        meet(G)
        G.comm.report(passes + 1)
        return passes + 1

    def _find_largest(self) -> int:
        """Write the root that most of a sample have to where all see it; whether most have it."""
        space = self._space
        given = (*self._place, self._owned, self._view.indptr, space.parent)
        words = (space.words[:1], space.words[1:2])
        self._kernels.find_largest(None, (*given, *words), block=SAMPLE, grid=1)
        return int(space.words[1:2].get()[0])

    def number(self) -> tuple[int, Any]:
        """The number of components, and the labels of own vertices, after `join`."""
        G, space, kind = self._graph, self._space, self._view.indptr.dtype
        count = single.number_roots(G.n, space.parent) if self._first else 0
        count = int(meet(G, count)[FIRST])
        return count, self._read("write_labels", kind)

    def roots(self) -> Any:
        """The smallest vertex of the component of each own vertex, after `join`."""
        return self._read("write_roots", self._view.indptr.dtype)

    def _read(self, kernel: str, kind: Any) -> Any:
        found = gpu.empty(self._owned, kind, CALLER)
        own = (*self._place, self._owned, self._space.parent, found)
        getattr(self._kernels, kernel)(self._owned, own)
        settle()  # the forest may be written again when this rank is back
        return found


def run_of(G: Any) -> Run | None:
    """A call on ranks that see each other's memory; None where they do not.  All ranks call it."""
    kind = G.index_dtype
    space = common(G, CALLER, words=(2, kind), parent=(G.n, kind)) if G.n else None
    return None if space is None else Run(G, space)
