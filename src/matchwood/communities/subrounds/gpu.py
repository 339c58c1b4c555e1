"""The vertices of a round on the GPU, sorted by sub-round.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.communities.subrounds import subrounds_of
from matchwood.communities.weights import Level
from matchwood.engines import gpu
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_number
from matchwood.primitives.scan.gpu import scan_into

SOURCE = gpu.Source(__package__, "gpu.cu", ("count_turns<I>", "deal_turns<I>", "place_hubs<I>"))
TILE, CLASSES, BLOCK = SOURCE.constants("TILE", "ROW_CLASSES", "TALLY_BLOCK")
MEDIUM_ROW, HUB_WORDS, HUB_PART_BYTES = SOURCE.constants(
    "MEDIUM_ROW", "HUB_WORDS", "HUB_PART_BYTES"
)
COUNTS = (np.uint32, np.int64)  # types in which the weights of a row are added up
MOST_SLOTS = 1 << 26  # slots of the tables of hubs; more only where a single row needs it


class Hubs(NamedTuple):
    """Rows too long for shared memory: `Hubs` in subrounds.cuh.  All None where there are none."""

    key: Any = None
    weight: Any = None
    capacity: int = 0
    vertex: Any = None
    first_slot: Any = None
    first_piece: Any = None
    piece_hub: Any = None
    turns: Any = None
    found: Any = None


class Turns(NamedTuple):
    """Sub-rounds of a level; the arrays are of the round that was dealt out last."""

    level: Level
    parts: int
    start: int
    order: Any
    counts: Any  # of each pair: how many it has; then how many have their places
    begins: Any
    hubs: Hubs

    def deal(self, round_number: int) -> None:
        """Sort the vertices for a round."""
        level, n = self.level, self.level.n
        k = SOURCE.kernels(I=level.indices.dtype)
        pairs = self.parts * CLASSES
        arguments = (n, level.indptr, self.start, round_number, self.parts)
        blocks = -(-n // TILE)
        counts, placed = self.counts
        self.counts.data.memset_async(0, self.counts.nbytes)
        k.count_turns(None, (*arguments, counts), grid=blocks, shared_mem=4 * pairs)
        scan_into(counts, self.begins)
        shared = 4 * (pairs + pairs % 2) + pairs * self.counts.itemsize
        places = (self.begins, placed, self.order)
        k.deal_turns(None, (*arguments, *places), grid=blocks, shared_mem=shared)
        if self.hubs.turns is not None:
            _, _, _, *placed, _ = self.hubs
            given = (self.parts, level.indptr, self.order, self.begins)
            used = engines.cupy().zeros(1, np.uint64)
            k.place_hubs(None, (*given, *placed, used), block=BLOCK, grid=self.parts)


def turns_of(level: Level, seed: int, caller: str, parts: int | None = None) -> Turns:
    """Room for the sub-rounds of a level."""
    kind = level.indices.dtype
    parts = subrounds_of(level.n) if parts is None else parts
    cupy = engines.cupy()
    return Turns(
        level,
        parts,
        mix64_number(seed + GOLDEN),
        gpu.empty(level.n, kind, caller),
        cupy.empty((2, parts * CLASSES), kind),
        cupy.zeros(parts * CLASSES + 1, kind),
        _hubs(level, parts, caller),
    )


def _hubs(level: Level, parts: int, caller: str) -> Hubs:
    """Room for the tables of long rows, for twice as many as a sub-round has on average."""
    if level.longest <= MEDIUM_ROW:
        return Hubs()
    cupy, kind = engines.cupy(), level.indices.dtype
    lengths = cupy.diff(level.indptr)
    lengths = lengths[lengths > MEDIUM_ROW].astype(np.int64)
    hubs, entries = int(lengths.size), int(lengths.sum())
    pieces = entries // MEDIUM_ROW + hubs
    largest = 1 << (2 * level.longest - 1).bit_length()
    capacity = max(largest, min(8 * entries // parts, MOST_SLOTS))
    with gpu.guard(caller, 2 * capacity * (kind.itemsize + 8) + 40 * (hubs + pieces)):
        return Hubs(
            cupy.full(2 * capacity, -1, kind),
            cupy.zeros(2 * capacity, np.int64),
            capacity,
            cupy.empty(hubs, kind),
            cupy.empty(hubs, np.int64),
            cupy.empty(hubs, kind),
            cupy.empty(pieces, kind),
            cupy.empty(parts * HUB_WORDS, np.int64),
            cupy.empty(pieces * HUB_PART_BYTES, np.uint8),
        )


def count_type(level: Level) -> Any:
    """The narrower of COUNTS where all weights are 1 and no row has 2^32 entries."""
    return COUNTS[0] if level.data is None and level.longest < 1 << 32 else COUNTS[1]


def blocks_of(kernel: Any, level: Level, parts: int, shared_mem: int = 0) -> int:
    """Blocks for a sub-round: enough for its entries, all of which are resident."""
    wanted = 1 + (int(level.indices.size) + 4 * level.n) // (parts * BLOCK)
    return int(min(kernel.resident(BLOCK, shared_mem), wanted))
