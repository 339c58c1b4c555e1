"""Suitor matching on ranks that share a GPU and see each other's memory.  Kernels: gpu_suitor.cu.

The matching is the same, and it takes no rounds.  The ranks have one GPU between them, so the first
one makes all proposals, in one kernel that reads the rows in the blocks of all ranks.  Then the
owners read the mates of their vertices.

Ties must go by hash: with ties by index, proposals displace each other along chains of equal
weights one after the other, and rounds are the better way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.dist.common import common, kept, lent, meet, settle
from matchwood.matching.dominant.spread import gpu as rounds
from matchwood.matching.dominant.spread import numbers_of

CALLER = "weighted_matching"
WIDTHS = (2, 8)  # lanes per row
ENTRIES_PER_LANE = 4  # entries per lane, on average
SOURCE = gpu.Source(
    __package__,
    "gpu_suitor.cu",
    (
        "row_lengths<I>",
        *(f"make_proposals{width} = make_proposals<I,W,{width}>" for width in WIDTHS),
        "read_own<I,W>",
    ),
)
BLOCK, GIANT_ROW, BLOCK_WORDS = SOURCE.constants("BLOCK", "GIANT_ROW", "BLOCK_WORDS")


FIRST = 0  # the rank that does the work


class Rows:
    """The blocks of all ranks, as kernels of the first one find them; kept by the graph.

    Attributes
    ----------
    blocks : array
        The table of blocks.
    names : array or None
        The user's numbers of all vertices, where they are not those of the grid.
    giants : array
        Vertices with very long rows.
    mean : float
        Entries of a vertex.
    """

    def __init__(self, G: Any, view: Any, blocks: Any) -> None:
        grid, n, kind = G.grid, G.n, view.indptr.dtype
        self._lent = blocks  # mapped as long as this is here
        self.names = None
        if G.names is not None:
            self.names = common(G, f"{CALLER}: names", names=(n, kind)).names
            _, own = numbers_of(G, kind)
            self.names[grid.rank :: grid.p] = own[: grid.n_rows][grid.owned_rows]
        meet(G)
        table = np.zeros((grid.p, BLOCK_WORDS), np.uint64)
        for rank, arrays in enumerate(blocks.arrays):
            first = rank // grid.C * grid.C  # of the ranks that have the same rows
            n_rows = sum(grid.size_of(first + c) for c in range(grid.C))
            table[rank] = [*(int(array.data.ptr) for array in arrays), n_rows]
        self.blocks = engines.moved(table.reshape(-1), "gpu")
        self.mean = sum(arrays[1].size for arrays in blocks.arrays) / n
        if G.comm.rank == FIRST:
            lengths = gpu.empty(n, kind, CALLER)
            k = SOURCE.kernels("row_lengths", I=kind)
            k.row_lengths(n, (n, grid.R, grid.C, self.blocks, lengths))
            self.giants = engines.xp(lengths).flatnonzero(lengths > GIANT_ROW).astype(kind)


class Run:
    """A run on one rank: `match`, then `mate` and `weights`."""

    def __init__(self, G: Any, view: Any, space: Any, rows: Rows) -> None:
        self._graph, self._view, self._space, self._rows = G, view, space, rows

    def match(self, seed: int) -> None:
        """Find the matching, with ties by hash."""
        G, space, rank = self._graph, self._space, self._graph.comm.rank
        sizes = [G.grid.size_of(each) for each in range(G.grid.p)]
        ends = np.cumsum(sizes).tolist()
        own = slice(ends[rank] - sizes[rank], ends[rank])
        if rank == FIRST:
            self._propose(seed, ends, sizes)
        meet(G)
        self.mate = space.own_mate[own].astype(G.index_dtype)
        self._weights = space.own_weight[own].copy()
        settle()  # they may be written again when this rank is back

    def _propose(self, seed: int, ends: list[int], sizes: list[int]) -> None:
        G, rows, space, grid = self._graph, self._rows, self._space, self._graph.grid
        width = next((each for each in WIDTHS if rows.mean <= ENTRIES_PER_LANE * each), WIDTHS[-1])
        name = f"make_proposals{width}"
        view = self._view
        k = SOURCE.kernels("read_own", name, I=view.indptr.dtype, W=view.data.dtype)
        space.mate.fill(-1)
        space.want.fill(0)
        space.offer.fill(0)
        make_proposals = getattr(k, name)
        blocks = min(make_proposals.resident(BLOCK), -(-G.n * width // BLOCK))
        given = (G.n, grid.R, grid.C, rows.blocks, rows.names, seed, True, rows.giants)
        state = (rows.giants.size, space.mate, space.want, space.offer)
        make_proposals(None, (*given, *state), block=BLOCK, grid=blocks)
        for rank, (end, size) in enumerate(zip(ends, sizes, strict=True)):
            parts = (space.own_mate[end - size : end], space.own_weight[end - size : end])
            found = (rows.names, space.mate, space.offer, *parts)
            k.read_own(size, (size, grid.p, rank, *found))

    @property
    def weights(self) -> Any:
        """Numbers on the CPU whose sum is that of the weights of the edges of own vertices."""
        return rounds.sums_of(rounds.kernels_of(self._view), self._weights)


def run_of(G: Any, view: Any) -> Run | None:
    """A run where the ranks see each other's memory, else None.  All ranks call it."""
    n, kind, weight = G.n, view.indptr.dtype, view.data.dtype
    if n == 0:
        return None
    vertices, weights = (n, kind), (n, weight)
    space = common(
        G, CALLER, mate=vertices, want=weights, offer=weights, own_mate=vertices, own_weight=weights
    )
    if space is None:
        return None
    blocks = lent(G, f"{CALLER}: blocks", lambda: list(view))
    if blocks is None:
        return None
    rows = kept(G, f"{CALLER}: rows", lambda: Rows(G, view, blocks))
    return Run(G, view, space, rows)
