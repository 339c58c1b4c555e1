"""Refining a partition on the GPU.  Kernels: gpu.cu, walks.cuh, levels.cu; the rule: reference.py.

A level is one launch: iterations do not visit the host, which reads excess, cut and iterations when
all are done.  Where a level ends with a block too heavy, which needs vertices of very different
weights, its last resort (reference.py) runs on the host; the level is copied there and the labels
back.  Ctrl-C takes effect between levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.partitioning.kway.task import Level, Plan
from matchwood.primitives.contract import trusted_sums
from matchwood.primitives.scan.gpu import scan_into

COUNTS = (np.uint32, np.int64)  # types in which the weights of a row are added up
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("refine_level<I,C>",),
    types={"C": COUNTS},
)
LEVELS = gpu.Source(
    __package__, "levels.cu", ("add_cut<I>", "light_edges<I>", "first_of_blocks<I>")
)
BLOCK, WARP, WORDS, SHARED_SLOTS = SOURCE.constants("BLOCK", "WARP", "WORDS", "SHARED_SLOTS")
BUCKETS = SOURCE.constant("BUCKETS")
CALLER = "partition"
NUMBERS, SUMS, LISTS, KEYS = 7, 2, 6, 4  # arrays of the vertices: int32, int64, indices, uint64
SIZE_OF_BLOCK = 2048  # entries and vertices for which a block more is worth its barriers
MOST_BUCKETS = 1 << 22  # of all blocks together
SPARE_SLOTS = 1 << 24  # of all tables for rows of many blocks together, but for one at least


def refine(
    level: Level, labels: Any, limits: Any, ceilings: Any, fixed: Any, plan: Plan, cut: int,
    threads: int | None = None,
) -> tuple[int, int, int]:  # fmt: skip
    """See reference.refine; labels, of that cut, are changed in place: excess, cut, iterations."""
    n, k, kind = level.n, int(limits.size), level.indices.dtype
    unit = level.data is None and level.longest < 1 << 32
    count = np.dtype(COUNTS[0] if unit else COUNTS[1])
    kernel = SOURCE.kernels("refine_level", I=kind, C=count).refine_level
    size = n + int(level.indices.size)
    blocks = int(min(kernel.resident(BLOCK), 1 + size // SIZE_OF_BLOCK))
    slots = 1 << (2 * min(level.longest, k) - 1).bit_length()
    spares = min(max(SPARE_SLOTS // slots, 1), blocks) if slots > SHARED_SLOTS else 0
    buckets = k * BUCKETS if k * BUCKETS <= MOST_BUCKETS else 0
    space = gpu.workspace(
        CALLER,
        numbers=((NUMBERS, n), np.int32),
        sums=((SUMS, n), np.int64),
        lists=((LISTS, n), kind),
        key=((KEYS, n), np.uint64),
        of_blocks=((2, k), np.int64),
        histogram=(buckets, np.int64),
        enough=(k, np.int32),
        spare_key=(spares * slots, kind),
        spare_weight=(spares * slots, count),
        words=(WORDS, np.uint64),
        gate=(2, np.uint32),
    )
    for array in (space.of_blocks, space.histogram, space.words, space.gate):
        array.data.memset_async(0, array.nbytes)
    locked, moved, active = space.numbers[4], space.numbers[5], space.numbers[6]
    for array, byte in ((locked, 0xFE), (moved, 0xFE), (active, 0)):  # negative: in no iteration
        array.data.memset_async(byte, array.nbytes)
    cupy = engines.cupy()
    score = cupy.array([0, cut, 0], np.int64)
    kernel(
        None,
        (
            n, level.indptr, level.indices, level.data, level.longest, k, level.weights, fixed,
            labels, space.numbers, space.sums, space.lists, space.key,
            trusted_sums(level.weights, labels, k), space.of_blocks, cupy.asarray(limits),
            cupy.asarray(ceilings), space.histogram if buckets else None,
            space.enough, space.spare_key, space.spare_weight, slots, spares,
            cupy.array(plan.c, np.int32), len(plan.c), plan.patience, plan.rounds, space.gate,
            space.words, score,
        ),
        block=BLOCK, grid=blocks, cooperative=True,
    )  # fmt: skip
    excess, cut, iterations = score.get().tolist()
    if excess > 0:
        from matchwood.partitioning.kway import cpu

        found, held = np.array(labels.get()), engines.moved(fixed, "cpu")
        last = plan._replace(c=())  # nothing but the last resort
        excess, cut, _ = cpu.refine(
            level.on_host(), found, limits, ceilings, held, last, cut, threads
        )
        labels.set(found)
    return excess, cut, iterations


def cut_of(level: Level, labels: Any, threads: int | None = None) -> int:
    """The weight of the edges between different labels."""
    total = engines.cupy().zeros(1, np.uint64)
    mean = int(level.indices.size) // max(level.n, 1)
    width = min(WARP, 1 << max(mean - 1, 0).bit_length())
    k = LEVELS.kernels("add_cut", I=level.indices.dtype)
    graph = (level.n, level.indptr, level.indices, level.data)
    k.add_cut(level.n * width, (*graph, labels, width, total))
    return int(total[0]) // 2


def light_edges(
    level: Level, labels: Any, limit: int, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """See reference.light_edges."""
    n, kind = level.n, level.indices.dtype
    k = LEVELS.kernels("light_edges", I=kind)
    rows = (n, level.indptr, level.indices, level.data, level.weights, labels, limit)
    lengths = gpu.workspace(CALLER, lengths=(n, kind)).lengths
    indptr = gpu.empty(n + 1, kind, CALLER)
    k.light_edges(n * WARP, (*rows, lengths, None, None, None))
    scan_into(lengths, indptr)
    m = int(indptr[n])
    found = gpu.empty(m, kind, CALLER), gpu.empty(m, np.float64, CALLER)
    if m:
        k.light_edges(n * WARP, (*rows, None, indptr, *found))
    return indptr, *found


def first_of_blocks(labels: Any, k: int) -> Any:
    """The smallest vertex of each block; the number of vertices where it has none."""
    first = engines.cupy().full(k, labels.size, np.int64)
    kernels = LEVELS.kernels("first_of_blocks", I=first.dtype)
    kernels.first_of_blocks(labels.size, (labels.size, labels, first))
    return first.get()
