"""Linear forests by splitters on the GPU, and the values of a matrix along their paths.

Kernels and the idea: gpu.cu.  Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.gpu.launch import BLOCK
from matchwood.forests.result import PathOrder
from matchwood.primitives.scan.gpu import scan_into

_STEPS = {
    "begin": "<I>",
    "follow": "<I>",
    "rings": "<I,W>",
    "rank": "",
    "weigh": "<I,W>",
    "cut": "<I,W>",
    "record": "<I>",
    "settle": "<I>",
}  # kernels of a forest, and their types
SOURCE = gpu.Source(
    __package__, "gpu.cu", (*(name + types for name, types in _STEPS.items()), "collect<I,W>")
)

SPACING = 64  # vertices per sampled one
RANK_BLOCK = 512  # threads
RANK_BLOCKS = 264  # blocks at most, two for each multiprocessor: barriers of more cost more
BEGIN_BLOCK, VERTICES_PER_THREAD, WORDS, LENGTH_BITS = SOURCE.constants(
    "BEGIN_BLOCK", "VERTICES_PER_THREAD", "WORDS", "OTHER_SHIFT"
)
MOST_VERTICES = 1 << LENGTH_BITS  # marks have LENGTH_BITS bits for the length of a path
# Entries of a row for each lane; one lane reads a short row as fast as several: H200, aniso1-3.
ENTRIES_PER_LANE = 16
PHASES = ("paths", "cycles", "permutation")


class Clock:
    """Events between phases; times are computed when first read."""

    def __init__(self) -> None:
        self._event = engines.cupy().cuda.Event
        self._events: list[Any] = []

    def tick(self) -> None:
        event = self._event()
        event.record()
        self._events.append(event)

    def seconds(self) -> Mapping[str, float]:
        elapsed = engines.cupy().cuda.get_elapsed_time
        self._events[-1].synchronize()
        pairs = zip(self._events[:-1], self._events[1:], strict=True)
        return dict(zip(PHASES, (elapsed(a, b) / 1000 for a, b in pairs), strict=True))


def forest(
    neighbours: Any, weights: Any, *, method: str = "splitters", threads: int | None = None
) -> PathOrder:
    """See matchwood.forests.linear_forest.  There is this method only."""
    cupy = engines.cupy()
    n, kind = int(neighbours.shape[0]), neighbours.dtype
    if n >= MOST_VERTICES:
        raise ValueError(f"linear_forest: at most {MOST_VERTICES - 1} vertices on the GPU, got {n}")
    table, weight = cupy.ascontiguousarray(neighbours), cupy.ascontiguousarray(weights)
    # room for nodes: a sample may be larger than n / SPACING
    capacity = n // SPACING + n // (16 * SPACING) + 1024
    needs = n * (8 + 6 * kind.itemsize) + 80 * capacity
    gpu.reserve(needs, "linear_forest")
    perm, path, position, place = (gpu.empty(n, kind, "linear_forest") for _ in range(4))
    space = gpu.workspace(
        "linear_forest",
        marks=(n, np.uint64),
        counts=(n, kind),
        starts=(n + 1, kind),
        nodes=(capacity, np.int32),
        links=(4 * 2 * capacity, np.int32),
        spare=(4 * 2 * capacity, np.int32),
        records=(4 * capacity, np.int32),
        cuts=(4 * capacity, np.int32),
        best=(2 * capacity, np.uint64),
        counters=(WORDS, np.uint32),
    )
    k = SOURCE.kernels(*_STEPS, I=kind, W=weight.dtype)
    clock = Clock()
    clock.tick()
    space.counters.data.memset_async(0, space.counters.nbytes)
    args = (space.marks, space.counts, space.nodes, perm, space.counters)
    k.begin(-(-n // VERTICES_PER_THREAD), (n, table, SPACING, capacity, *args), block=BEGIN_BLOCK)
    if n:
        walks = min(n, k.follow.resident() * BLOCK)
        k.follow(
            walks,
            (
                n, table, capacity, space.nodes, perm, space.marks, space.counts, space.links,
                space.counters,
            ),
        )  # fmt: skip
        blocks = min(k.rank.resident(RANK_BLOCK), -(-capacity // RANK_BLOCK), RANK_BLOCKS)
        k.rank(
            None,
            (capacity, space.links, space.spare, space.records, space.best, space.counters),
            block=RANK_BLOCK, grid=blocks, cooperative=True,
        )  # fmt: skip
    clock.tick()
    if n:
        rings = min(n, k.rings.resident() * BLOCK)
        k.rings(rings, (n, table, weight, space.marks, space.counts, space.counters))
        for turn in range(weight.itemsize // 4):
            k.weigh(
                n,
                (
                    n, table, weight, space.marks, space.records, space.best, space.counters,
                    turn,
                ),
            )  # fmt: skip
        k.cut(
            min(capacity, walks),
            (
                table, weight, capacity, space.marks, space.records, space.best, space.cuts,
                space.counts, space.counters,
            ),
        )  # fmt: skip
    clock.tick()
    if n:
        k.record(
            walks,
            (
                capacity, perm, space.links, space.spare, space.cuts, space.records, space.marks,
                space.counts, space.counters,
            ),
        )  # fmt: skip
        scan_into(space.counts, space.starts)
        k.settle(n, (n, space.marks, space.records, space.starts, perm, path, position, place))
    clock.tick()

    def cuts() -> Any:
        """Edges of the factor between vertices of one path that do not follow each other."""
        u = cupy.arange(n, dtype=kind)[:, None]
        apart = abs(position[neighbours] - position[u]) != 1
        rows, slot = cupy.nonzero((neighbours > u) & apart)
        return cupy.stack((rows.astype(kind), neighbours[rows, slot]), axis=1)

    return PathOrder(perm, path, position, place, cuts, clock.seconds)


def coefficients(
    view: Any, table: Any, place: Any, position: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    n, kind = view.n, view.data.dtype
    dl, d, du = (gpu.empty(n, kind, "tridiagonal_of") for _ in range(3))
    width = 1
    while width < 32 and ENTRIES_PER_LANE * width * n <= view.nnz:
        width *= 2
    k = SOURCE.kernels("collect", I=view.indices.dtype, W=kind)
    table = engines.cupy().ascontiguousarray(table)
    k.collect(n * width, (n, width, *view, table, place, position, dl, d, du))
    return dl, d, du
