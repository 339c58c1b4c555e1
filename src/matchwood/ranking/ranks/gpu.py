"""PageRank on the block of a rank that has a GPU; the functions are those of cpu.py.

The sums of rows are those of the primitive, with tiles that the graph keeps; gpu.cu makes scores of
them.  An iteration waits for the GPU once, besides what the exchanges need: for its two sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.row_reduce import gpu as row_reduce

CALLER = "pagerank"
SOURCE = gpu.Source(__package__, "gpu.cu", ("score<W>",))
BLOCK = SOURCE.constant("BLOCK")
MOST_BLOCKS = 512  # blocks that share the own vertices
TILE = 1024  # rows and entries of a tile, for vectors of 8-byte numbers


class Block(NamedTuple):
    """Rows of the row group; columns are positions in the column group, as `given` is sorted."""

    indptr: Any
    columns: Any
    weights: Any  # or None where all arcs of a vertex are equally likely
    tiles: Any


def block_of(indptr: Any, columns: Any, weights: Any, n_columns: int, threads: int | None) -> Block:
    return Block(indptr, columns, weights, row_reduce.Tiles(indptr, TILE))


def pull(block: Block, given: Any, threads: int | None) -> Any:
    """What the columns give to each row of the block."""
    kind = given.dtype
    if block.columns.size == 0:
        return engines.xp(given).zeros(block.indptr.shape[0] - 1, kind)
    weights = None if block.weights is None else block.weights.astype(kind, copy=False)
    return row_reduce.spmv(
        block.indptr, block.columns, weights, given, dtype=kind, accumulator=np.float64,
        tiles=block.tiles,
    )  # fmt: skip


class Scorer:
    """The own scores, iteration by iteration, and what the own vertices give."""

    def __init__(
        self, start: Any, share: Any, jump: Any, dangling: Any, threads: int | None
    ) -> None:
        xp = engines.xp(start)
        self.scores, self._share = start.copy(), share
        self._rule = (share, jump, dangling)
        self.given = self.scores * share
        held = xp.where(share == 0, self.scores, self.scores.dtype.type(0))
        self.lost = float(held.sum(dtype=np.float64))
        """What the own vertices without arcs hold."""

    def step(self, pulled: Any, damping: float, mass: float, even: float, loses: bool) -> float:
        """Take the next scores; returns by how much they differ from the ones before."""
        if pulled.size == 0:
            return 0.0
        blocks = min(MOST_BLOCKS, -(-pulled.size // BLOCK))
        parts = gpu.empty(2 * blocks, np.float64, CALLER)
        k = SOURCE.kernels(W=self.scores.dtype)
        given = (pulled.size, pulled, *self._rule, damping, mass, even)
        k.score(None, (*given, self.scores, self.given, parts), block=BLOCK, grid=blocks)
        change, self.lost = parts.get().reshape(2, blocks).sum(axis=1).tolist()
        return float(change)
