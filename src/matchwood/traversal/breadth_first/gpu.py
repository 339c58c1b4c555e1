"""Breadth-first search on the GPU.  Kernels: gpu.cu; the rule and the paper: __init__.py.

One launch for all levels, and two for the parents behind it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("search<I>", "choose_parents<I>", "choose_rest<I>", "reset_parents<I>", "offer_parents<I>"),
)

BLOCK = SOURCE.constant("BLOCK")
PIECE = SOURCE.constant("PIECE")
TILE = SOURCE.constant("TILE")
CLUSTER = SOURCE.constant("MOST_CLUSTER")
ROLL_WORDS, STAGE, DONE, DEEPEST, UNFINISHED, CONTROL_WORDS = SOURCE.constants(
    "ROLL_WORDS", "STAGE", "DONE", "DEEPEST", "UNFINISHED", "CONTROL_WORDS"
)

RESIDENT = 1024  # threads that a multiprocessor has registers for
ENTRIES = 1024  # rows and entries for each block; a small graph gets fewer blocks
ROUNDS_PER_LAUNCH = 16384  # at most some 80 ms; Ctrl-C takes effect between launches


def search(
    outward: Any, inward: Any, sources: Any, limit: int, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    n, nnz, kind = outward.n, outward.nnz, outward.indptr.dtype
    level = gpu.empty(n, kind, "bfs")
    parent = gpu.empty(n, kind, "bfs")
    if n == 0:
        return level, parent, 0
    space = gpu.workspace(
        "bfs",
        queue=(2 * (n + nnz // PIECE + 1), kind),
        bits=(2 * -(-n // 32), np.uint32),
        control=(CONTROL_WORDS, np.uint64),
        sources=(sources.size, kind),
    )
    control = space.control
    control.data.memset_async(0, control.nbytes)
    if sources.size:
        space.sources.set(np.ascontiguousarray(sources, kind))
    to = (None, None) if inward is None else (inward.indptr, inward.indices)
    symmetric = to[1] is outward.indices
    arguments = (
        n, nnz, outward.indptr, outward.indices, *to, symmetric,
        space.sources, sources.size, min(limit, n), ROUNDS_PER_LAUNCH,
        level, parent, space.queue, space.bits, control,
    )  # fmt: skip
    k = SOURCE.kernels(I=kind)
    blocks = min(_blocks(), CLUSTER * -(-(n + nnz) // (ENTRIES * CLUSTER)))
    while True:
        k.search(None, arguments, block=BLOCK, grid=blocks)
        # at once, without waiting for the device: it does nothing unless the search has ended
        _choose_parents(outward, to, level, parent, space)
        words = control.get()
        if words[STAGE] == DONE:
            return level, parent, int(words[DEEPEST])
        control.data.memset_async(0, ROLL_WORDS * control.itemsize)


def _choose_parents(outward: Any, to: tuple[Any, Any], level: Any, parent: Any, space: Any) -> None:
    n, nnz, bits = outward.n, outward.nnz, space.bits
    k = SOURCE.kernels(I=level.dtype)
    stage, deepest, unfinished = (
        space.control[word : word + 1] for word in (STAGE, DEEPEST, UNFINISHED)
    )
    tiles = -(-(n + nnz) // TILE) * 32
    if to[0] is not None:
        k.choose_parents(n, (n, *to, level, parent, bits, stage, deepest, unfinished))
        k.choose_rest(tiles, (n, nnz, *to, level, parent, bits, stage, unfinished))
    else:
        k.reset_parents(n, (n, level, parent, stage, deepest))
        arcs = (outward.indptr, outward.indices)
        k.offer_parents(tiles, (n, nnz, *arcs, level, parent, stage))


def _blocks() -> int:
    return _most_blocks(engines.cupy().cuda.runtime.getDevice())


@functools.cache
def _most_blocks(device: int) -> int:
    """Blocks that run at once, in whole clusters.  (More would find the roll call closed.)"""
    return max(1, gpu.multiprocessors() * (RESIDENT // BLOCK) // CLUSTER) * CLUSTER
