"""PageRank on the block of a rank that has a GPU; the functions are those of block/cpu.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.row_reduce import spmv


class Block(NamedTuple):
    """Rows of the row group; columns are positions in the column group, as `given` is sorted."""

    indptr: Any
    columns: Any
    weights: Any  # or None where all arcs of a vertex are equally likely


def block_of(indptr: Any, columns: Any, weights: Any, n_columns: int, threads: int | None) -> Block:
    return Block(indptr, columns, weights)


def pull(block: Block, given: Any, threads: int | None) -> Any:
    """What the columns give to each row of the block."""
    xp, kind = engines.xp(given), given.dtype
    if block.columns.size == 0:
        return xp.zeros(block.indptr.shape[0] - 1, kind)
    weights = None if block.weights is None else block.weights.astype(kind, copy=False)
    return spmv(block.indptr, block.columns, weights, given, dtype=kind, accumulator=np.float64)


class Scorer:
    """The own scores, iteration by iteration, and what the own vertices give."""

    def __init__(
        self, start: Any, share: Any, jump: Any, dangling: Any, threads: int | None
    ) -> None:
        self.scores, self._share = start.copy(), share
        self._jump, self._after = jump, jump if dangling is None else dangling
        self._empty = share == 0
        self.given = self.scores * share

    @property
    def lost(self) -> float:
        """What the own vertices without arcs hold."""
        return float(self.scores[self._empty].sum(dtype=np.float64))

    def step(self, pulled: Any, damping: float, mass: float, even: float, loses: bool) -> float:
        """Take the next scores; returns by how much they differ from the ones before."""
        jump = even if self._jump is None else self._jump
        after = even if self._after is None else self._after
        scores = (damping * pulled + (mass * after + (1 - damping) * jump)).astype(pulled.dtype)
        change = float(abs(scores - self.scores).sum(dtype=np.float64))
        self.scores, self.given = scores, scores * self._share
        return change
