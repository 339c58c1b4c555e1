"""The vertices of a round on the GPU, sorted by sub-round.  Kernels: gpu_subrounds.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu
from matchwood.communities.subrounds import subrounds_of
from matchwood.communities.weights import Level
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_number

SOURCE = gpu.Source(__package__, "gpu_subrounds.cu", ("count_turns<I>", "deal_turns<I>"))
TILE, CLASSES, BLOCK = SOURCE.constants("TILE", "ROW_CLASSES", "TALLY_BLOCK")
MEDIUM_ROW = SOURCE.constant("MEDIUM_ROW")
HUB_TABLES = 64  # tables in global memory, at most ...
HUB_BYTES = 1 << 30  # ... and bytes that they take together


class Turns(NamedTuple):
    """Sub-rounds of a level; `order` and `begins` are of the round that was dealt out last."""

    level: Level
    parts: int
    start: int
    order: Any
    counts: Any
    begins: Any

    def deal(self, round_number: int) -> None:
        """Sort the vertices for a round."""
        level, n = self.level, self.level.n
        k = SOURCE.kernels(I=level.indices.dtype)
        pairs = self.parts * CLASSES
        arguments = (n, level.indptr, self.start, round_number, self.parts)
        blocks = -(-n // TILE)
        self.counts.data.memset_async(0, self.counts.nbytes)
        k.count_turns(None, (*arguments, self.counts), grid=blocks, shared_mem=4 * pairs)
        kind = self.counts.dtype
        self.begins[1:] = engines.cupy().cumsum(self.counts, dtype=kind)
        self.counts[...] = self.begins[:-1]
        shared = 4 * (pairs + pairs % 2) + pairs * self.counts.itemsize
        k.deal_turns(None, (*arguments, self.counts, self.order), grid=blocks, shared_mem=shared)


def turns_of(level: Level, seed: int, caller: str) -> Turns:
    """Room for the sub-rounds of a level."""
    kind, parts = level.indices.dtype, subrounds_of(level.n)
    cupy = engines.cupy()
    return Turns(
        level,
        parts,
        mix64_number(seed + GOLDEN),
        gpu.empty(level.n, kind, caller),
        cupy.empty(parts * CLASSES, kind),
        cupy.zeros(parts * CLASSES + 1, kind),
    )


class Tables(NamedTuple):
    """Hash tables in global memory for long rows: (keys, weights, slots of each, how many)."""

    key: Any
    weight: Any
    slots: int
    tables: int


def tables_of(level: Level, blocks: int, caller: str) -> Tables:
    """Tables for the longest rows of a level; none where all fit into shared memory."""
    kind = level.indices.dtype
    if level.longest <= MEDIUM_ROW:
        return Tables(None, None, 0, 0)
    slots = 1 << (2 * level.longest - 1).bit_length()
    each = slots * (kind.itemsize + 8)
    count = max(1, min(blocks, HUB_TABLES, HUB_BYTES // each))
    space = gpu.workspace(caller, key=(count * slots, kind), weight=(count * slots, np.int64))
    return Tables(space.key, space.weight, slots, count)


def blocks_of(kernel: Any, level: Level, parts: int) -> int:
    """Blocks for a sub-round: enough for its entries, all of which are resident."""
    wanted = 1 + (int(level.indices.size) + 4 * level.n) // (parts * BLOCK)
    return int(min(kernel.resident(BLOCK), wanted))
