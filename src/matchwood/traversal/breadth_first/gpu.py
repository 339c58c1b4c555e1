"""Breadth-first search on the GPU.  Kernels: gpu.cu; the rule and the paper: __init__.py."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import engines, gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("search<I>", "choose_parents<I>", "choose_rest<I>", "reset_parents<I>", "offer_parents<I>"),
)

# As in gpu.cu and roll_call.cuh.
BLOCK = 1024
PIECE = 256
TILE = 2048
ROLL_WORDS = 8
CONTROL_WORDS = 24
STAGE, DEEPEST, DONE = 14, 21, 2

CLUSTER = 8  # blocks; the grid is a multiple of it
ENTRIES = 1024  # of a small graph, for each block that takes part
PATIENCE = 16384  # rounds of a launch, at most some 50 ms; Ctrl-C is heard between launches


def search(
    outward: Any, inward: Any, sources: Any, limit: int, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    n, nnz, kind = outward.n, outward.nnz, outward.indptr.dtype
    level = gpu.empty(n, kind, "bfs")
    parent = gpu.empty(n, kind, "bfs")
    if n == 0:
        return level, parent, 0
    k = SOURCE.kernels(I=kind)
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
    limit = min(limit, n)
    arguments = (
        n, nnz, outward.indptr, outward.indices, *to, symmetric,
        space.sources, sources.size, limit, PATIENCE,
        level, parent, space.queue, space.bits, control,
    )  # fmt: skip
    blocks = min(_blocks(), CLUSTER * -(-(n + nnz) // (ENTRIES * CLUSTER)))
    while True:
        k.search(None, arguments, block=BLOCK, grid=blocks)
        # launched at once: they do nothing unless the search has ended
        if inward is not None:
            k.choose_parents(n, (n, *to, level, parent, space.bits, control))
            rest = (n, nnz, *to, level, parent, space.bits, control)
            k.choose_rest(_tiles(n, nnz), rest)
        else:
            k.reset_parents(n, (n, level, parent, control))
            offered = (n, nnz, outward.indptr, outward.indices, level, parent, control)
            k.offer_parents(_tiles(n, nnz), offered)
        words = control.get()
        if words[STAGE] == DONE:
            return level, parent, int(words[DEEPEST])
        control.data.memset_async(0, ROLL_WORDS * control.itemsize)


def _tiles(n: int, nnz: int) -> int:
    """Threads of a pass over all rows and entries."""
    return -(-(n + nnz) // TILE) * 32


def _blocks() -> int:
    return _most_blocks(engines.cupy().cuda.runtime.getDevice())


@functools.cache
def _most_blocks(device: int) -> int:
    """One block for each multiprocessor, in whole clusters."""
    return max(1, gpu.multiprocessors() // CLUSTER) * CLUSTER
