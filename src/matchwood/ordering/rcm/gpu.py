"""Cuthill-McKee on the GPU.  Kernels: gpu.cu ("leveled"), gpu_batch.cu ("batch"), gpu_start.cu.

All components are ordered at once, as if their starts were one level: within a component that
gives the component's own order, and a stable sort by component puts the parts one after the other.
Vertices without neighbours do not take part until then.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.ordering.rcm import gpu_batch, gpu_start

METHODS = ("leveled", "batch")
SOURCE = gpu.Source(__package__, "gpu.cu", ("place_levels<I>",))

# As in gpu.cu, roll_call.cuh and cluster.cuh.
BLOCK = 1024
CLUSTER = 8
ROLL_WORDS, STAGE, DEPTH, DONE, CONTROL_WORDS = 8, 26, 29, 2, 32
RANKED, LONG = 64, 1024
NO_STARTS = np.empty(0, np.int64)

ENTRIES = 1024  # of a small graph, for each block that takes part
PATIENCE = 8192  # levels of a launch, at most some 80 ms; Ctrl-C is heard between launches


def order(
    view: Any,
    starts: Any,
    method: str,
    reverse: bool,
    *,
    stats: bool = False,
    threads: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    n, kind = view.n, view.indptr.dtype
    if n == 0:
        return gpu.empty(0, kind, "reverse_cuthill_mckee"), {"components": 0, "levels": 0}
    method = "leveled" if method == "auto" else method
    clock = _Clock(stats)
    with gpu.guard("reverse_cuthill_mckee"):
        parts = gpu_start.components(view)
        closed = gpu_start.given(parts, starts)
        gpu_start.search(view, parts, closed)
        clock.lap("search")
        perm, counters = _place(view, parts, method, reverse, stats)
        clock.lap("order")
        if stats:
            levels = gpu_start.levels(view, parts)
            counters |= {
                "method": method,
                "components": parts.count,
                "levels": levels,
                "front": n / max(1, levels),
                "searches": parts.searches,
                "seconds": clock.seconds,
            }
    return perm, counters


def start_of(view: Any, vertex: int, *, threads: int | None = None) -> int:
    with gpu.guard("pseudo_peripheral_vertex"):
        parts = gpu_start.components(view)
        component = int(parts.label[vertex])
        gpu_start.search(view, parts, NO_STARTS, component)
        return int(parts.start[component])


class _Clock:
    """Seconds of the parts of a call; waits for the device only where they are wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.seconds: dict[str, float] = {}
        self.since = time.perf_counter()

    def lap(self, name: str) -> None:
        if self.wanted:
            engines.cupy().cuda.get_current_stream().synchronize()
            now = time.perf_counter()
            self.seconds[name] = now - self.since
            self.since = now


def _place(
    view: Any, parts: Any, method: str, reverse: bool, stats: bool
) -> tuple[Any, dict[str, Any]]:
    """The order, from the starts."""
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    first = parts.start
    if parts.count > 1:
        first = first[view.indptr[first + 1] > view.indptr[first]]
    elif n == 1:
        first = first[:0]
    alone = parts.count - first.size
    if first.size == 0:
        found, counters = cupy.arange(n, dtype=kind), {}
    else:
        run = place_levels if method == "leveled" else gpu_batch.place_batches
        found, counters = run(view, first, n - alone, stats=stats)
        if parts.count > 1:
            if alone:
                found[n - alone :] = cupy.flatnonzero(view.indptr[1:] == view.indptr[:-1])
            found = found[cupy.argsort(parts.label[found], kind="stable")]
    return (cupy.ascontiguousarray(found[::-1]) if reverse else found), counters


def place_levels(
    view: Any, starts: Any, total: int, *, stats: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Vertices in the order of Cuthill and McKee from all starts at once, level by level.

    `total` of them can be reached, and are placed; the rest of the array is left as it is.
    Memory beside the result: seven arrays of n.
    """
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    found = gpu.empty(n, kind, "reverse_cuthill_mckee")
    blocks = min(_most_blocks(engines.cupy().cuda.runtime.getDevice()), _needed(n + nnz))
    space = gpu.workspace(
        "reverse_cuthill_mckee",
        owner=(n, kind),
        lists=((5, n), kind),
        big=(n // RANKED + 1, kind),
        piece=(4 * (nnz // LONG) + 2, kind),
        sums=(blocks, kind),
        control=(CONTROL_WORDS, np.uint64),
    )
    control = space.control
    control.data.memset_async(0, control.nbytes)
    arguments = (
        n, view.indptr, view.indices, starts, starts.size, total, PATIENCE, found,
        space.owner, *space.lists, space.big, space.piece, space.sums, control,
    )  # fmt: skip
    k = SOURCE.kernels(I=kind)
    while True:
        k.place_levels(None, arguments, block=BLOCK, grid=blocks)
        words = control.get()
        if words[STAGE] == DONE:
            return found, {"rounds": int(words[DEPTH])} if stats else {}
        control.data.memset_async(0, ROLL_WORDS * control.itemsize)


def _needed(work: int) -> int:
    return CLUSTER * -(-work // (ENTRIES * CLUSTER))


@functools.cache
def _most_blocks(device: int) -> int:
    """One on each multiprocessor, in whole clusters."""
    return max(1, gpu.multiprocessors() // CLUSTER) * CLUSTER
