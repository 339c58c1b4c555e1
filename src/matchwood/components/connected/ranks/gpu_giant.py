"""Trees of a block, on the GPU; of a symmetric pattern most rows are left out.

The idea is that of giant.py: all ranks leave out the rows of the same vertices, which they know to
be in one component.

1. Every rank joins a few columns to each row, and tells the owners which vertices are in its
   largest tree, one bit for each.
2. An owner that finds a vertex in the trees of two ranks knows that these trees are connected.  All
   ranks learn which trees are, and take the largest set of them.
3. Owners tell the ranks of their row and their column which vertices these trees have.
4. Every rank joins these vertices, and then the rows of all others.  A row may also be left out
   when its vertex has come to the tree of the known ones: an edge is left out at both its ends only
   if both are in the component.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.components.connected import gpu as single
from matchwood.components.connected.ranks import forest, giant
from matchwood.components.connected.ranks.stripes import stripes_of
from matchwood.engines import gpu

CALLER = "connected_components"
SOURCE = gpu.Source(
    __package__,
    "gpu_giant.cu",
    ("mark_tree<I>", "meet", "find_known<I>", "join_known<I>", "set_largest<I>"),
)
WARP = SOURCE.constant("WARP")


class Block:
    """The entries of a rank, and a forest of its local vertices.

    Attributes
    ----------
    parent : array
        After `sample` and after `join_rest` every vertex is under the smallest of its tree.
    largest : array
        One vertex, the root that most have; -1 where there are no entries.
    """

    def __init__(self, view: Any) -> None:
        self._view = view
        self._kernels = single.SOURCE.kernels(I=view.indptr.dtype)
        kind = view.indptr.dtype
        self._space = single.workspace(view.n, kind, parent=(view.n, kind))
        self.parent, self.largest = self._space.parent, self._space.words[:1]

    def sample(self) -> None:
        """Join a few neighbours of each vertex."""
        single.sample(self._kernels, self._view, self._space)

    def join_rest(self, symmetric: bool) -> None:
        """Join all entries, or leave out the rows of vertices in the largest tree."""
        single.hook_rest(self._kernels, self._view, symmetric, self._space)
        self.flatten()

    def flatten(self) -> None:
        n = self._view.n
        self._kernels.compress(n, (n, False, None, self.parent))


def trees(G: Any, symmetric: bool) -> tuple[Any, Any]:
    """For each local vertex the smallest of its tree; and an array of one vertex of a large tree.

    `symmetric`: the pattern of the whole matrix is.  All ranks call it.
    """
    view = G.entries()
    if view.n == 0 and not symmetric:
        none = engines.xp(view.indices).full(1, -1, view.indptr.dtype)
        return none[:0], none
    block = Block(view)
    if view.n:
        block.sample()
    else:
        block.largest.fill(-1)
    if symmetric:
        _join_known(G, block)
    if view.n:
        block.join_rest(symmetric)
    return block.parent, block.largest


def _join_known(G: Any, block: Block) -> None:
    """Steps 1 to 3, and the known vertices of step 4."""
    grid, exchange = G.grid, G.exchange
    k = SOURCE.kernels(I=block.parent.dtype)
    words = -(-grid.most_owned // WARP)
    size = gpu.empty(1, np.uint64, CALLER)
    size.fill(0)
    messages = forest.exchanged(exchange, _marks(grid, block, k, words, size))
    chosen = giant.largest_set(G.comm, *_meetings(grid, messages, k, words, size))
    xp = engines.xp(size)
    known = [m for m, rank in zip(messages, _senders(grid), strict=True) if chosen[rank]]
    own = functools.reduce(xp.bitwise_or, known or [messages[0] & 0])
    rows, columns = (comm.allgather(own) for comm in (exchange.row, exchange.column))
    n, where = grid.n_local, (grid.R, grid.C, grid.r, grid.n_rows)
    least = gpu.empty(1, block.parent.dtype, CALLER)
    least.fill(n)
    given = (n, *where, words, rows, columns, least)
    k.find_known(n, given)
    k.join_known(n, (*given, block.parent))
    block.flatten()
    k.set_largest(1, (n, least, block.parent, block.largest))


def _marks(grid: Any, block: Block, k: Any, words: int, size: Any) -> dict[int, Any]:
    """For each owner the bits of its vertices in the largest tree; `size` counts them all."""
    told = {}
    for owner, base, step, places in np.stack(stripes_of(grid)).T.tolist():
        told[owner] = gpu.empty(words, np.uint32, CALLER)
        given = (base, step, places, words, block.parent, block.largest)
        k.mark_tree(words * WARP, (*given, told[owner], size))
    return told


def _senders(grid: Any) -> list[int]:
    """The ranks whose messages `forest.exchanged` gives, in that order."""
    row = [grid.r * grid.C + c for c in range(grid.C) if c != grid.c]
    return [grid.rank, *row, *(r * grid.C + grid.c for r in range(grid.R) if r != grid.r)]


def _meetings(grid: Any, messages: list[Any], k: Any, words: int, size: Any) -> tuple[Any, int]:
    """(p, p) which two ranks have an own vertex of this one in their largest trees; and `size`."""
    senders, xp = np.array(_senders(grid)), engines.xp(size)
    found = gpu.empty(len(senders) ** 2, np.uint8, CALLER)
    found.fill(0)
    k.meet(words, (words, len(senders), xp.concatenate(messages), found))
    both = xp.concatenate([size.view(np.uint8), found]).get()  # one wait for both
    pairs = both[size.nbytes :].reshape(len(senders), -1) != 0
    meets = np.zeros((grid.p, grid.p), np.bool_)
    meets[np.ix_(senders, senders)] = pairs | pairs.T
    return meets, int(both[: size.nbytes].view(np.uint64)[0])
