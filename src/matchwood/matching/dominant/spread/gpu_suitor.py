"""Suitor matching on ranks that share a GPU and see each other's memory.  Kernels: gpu_suitor.cu.

The matching is the same, and it takes no rounds: every rank makes the proposals of its own vertices
in one kernel, at the same time as all others.  They meet before and after it.

Ties must go by hash: with ties by index, proposals displace each other along chains of equal
weights one after the other, and rounds are the better way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.dist.common import common, kept, lent, meet
from matchwood.matching.dominant.spread import gpu as rounds
from matchwood.matching.dominant.spread import numbers_of

CALLER = "weighted_matching"
WIDTHS = (2, 8)  # lanes per row
ENTRIES_PER_LANE = 4  # entries per lane, on average
SOURCE = gpu.Source(
    __package__,
    "gpu_suitor.cu",
    (
        "clear_own<I,W>",
        "row_lengths<I>",
        *(f"make_proposals{width} = make_proposals<I,W,{width}>" for width in WIDTHS),
        "read_own<I,W>",
    ),
)
BLOCK, GIANT_ROW, BLOCK_WORDS = SOURCE.constants("BLOCK", "GIANT_ROW", "BLOCK_WORDS")


class Rows:
    """The blocks of all ranks, as kernels of this one find them; kept by the graph.

    Attributes
    ----------
    blocks : array
        The table of blocks.
    names : array or None
        The user's numbers of all vertices, where they are not those of the grid.
    giants : array
        Vertices with very long rows, those of all ranks.
    mean : float
        Entries of a vertex.
    """

    def __init__(self, G: Any, view: Any, blocks: Any) -> None:
        grid, kind = G.grid, view.indptr.dtype
        self._lent = blocks  # mapped as long as this is here
        self.names = None
        if G.names is not None:
            self.names = common(G, f"{CALLER}: names", names=(G.n, kind)).names
            _, own = numbers_of(G, kind)
            self.names[grid.rank :: grid.p] = own[: grid.n_rows][grid.owned_rows]
        table = np.zeros((grid.p, BLOCK_WORDS), np.uint64)
        for rank, arrays in enumerate(blocks.arrays):
            first = rank // grid.C * grid.C  # of the ranks that have the same rows
            n_rows = sum(grid.size_of(first + c) for c in range(grid.C))
            table[rank] = [*(_address(array) for array in arrays), n_rows]
        self.blocks = engines.moved(table.reshape(-1), "gpu")
        lengths = gpu.empty(grid.owned, kind, CALLER)
        k = SOURCE.kernels("row_lengths", I=kind)
        k.row_lengths(grid.owned, (grid.owned, grid.R, grid.C, grid.rank, self.blocks, lengths))
        xp = engines.xp(lengths)
        giants = xp.flatnonzero(lengths > GIANT_ROW).astype(kind) * grid.p + grid.rank
        self.giants, _ = G.comm.allgatherv(giants.astype(kind))
        self.mean = int(G.comm.allreduce(np.array([view.nnz]))[0]) / G.n


def _address(array: Any) -> int:
    return int(array.data.ptr)


class Run:
    """A run on one rank: `match`, then `mate` and `weights`."""

    def __init__(self, G: Any, view: Any, space: Any, rows: Rows) -> None:
        self._graph, self._view, self._space, self._rows = G, view, space, rows
        width = next((each for each in WIDTHS if rows.mean <= ENTRIES_PER_LANE * each), WIDTHS[-1])
        self._name = f"make_proposals{width}"
        kernels = ("clear_own", "read_own", self._name)
        self._kernels = SOURCE.kernels(*kernels, I=view.indptr.dtype, W=view.data.dtype)
        self._threads = G.grid.owned * width

    def match(self, seed: int) -> None:
        """Find the matching, with ties by hash."""
        G, k, space, rows = self._graph, self._kernels, self._space, self._rows
        grid = G.grid
        state = (space.mate, space.want, space.offer)
        k.clear_own(grid.owned, (grid.owned, grid.p, grid.rank, *state))
        meet(G)
        make_proposals = getattr(k, self._name)
        blocks = min(make_proposals.resident(BLOCK), -(-self._threads // BLOCK))
        given = (grid.owned, grid.R, grid.C, grid.rank, rows.blocks, rows.names, seed, True)
        giants = (rows.giants, rows.giants.size)
        if blocks:
            make_proposals(None, (*given, *giants, *state), block=BLOCK, grid=blocks)
        meet(G)
        mate = gpu.empty(grid.owned, self._view.indptr.dtype, CALLER)
        self._weights = gpu.empty(grid.owned, self._view.data.dtype, CALLER)
        own = (rows.names, space.mate, space.offer, mate, self._weights)
        k.read_own(grid.owned, (grid.owned, grid.p, grid.rank, *own))
        self.mate = mate.astype(G.index_dtype, copy=False)

    @property
    def weights(self) -> Any:
        """Numbers on the CPU whose sum is that of the weights of the edges of own vertices."""
        return rounds.sums_of(rounds.kernels_of(self._view), self._weights)


def run_of(G: Any, view: Any) -> Run | None:
    """A run where the ranks see each other's memory, else None.  All ranks call it."""
    kind, weight = view.indptr.dtype, view.data.dtype
    if G.n == 0:
        return None
    space = common(G, CALLER, mate=(G.n, kind), want=(G.n, weight), offer=(G.n, weight))
    if space is None:
        return None
    blocks = lent(G, f"{CALLER}: blocks", lambda: list(view))
    if blocks is None:
        return None
    rows = kept(G, f"{CALLER}: rows", lambda: Rows(G, view, blocks))
    return Run(G, view, space, rows)
