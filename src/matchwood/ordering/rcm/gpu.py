"""Cuthill-McKee on the GPU.  Kernels: gpu.cu ("leveled"), gpu_batch.cu ("batch"), gpu_start.cu.

All components are ordered at once, as if their starts were one level: within a component that
gives the component's own order, and a stable sort by component puts the parts one after the other.
Vertices without neighbours do not take part until then.

A small graph tries its starts: the orders are made here, the host compares them (trial.py).
"""

from __future__ import annotations

import functools
import time
from typing import Any, NamedTuple

import numpy as np

from matchwood import csr, engines, gpu
from matchwood.ordering.rcm import gpu_batch, gpu_start, reference, trial

METHODS = ("leveled", "batch")
SOURCE = gpu.Source(__package__, "gpu.cu", ("place_levels<I>",))

# As in gpu.cu, roll_call.cuh and cluster.cuh.
BLOCK = 1024
CLUSTER = 8
ROLL_WORDS, STAGE, DONE = 8, 29, 2
HEAD, TAIL, DEPTH, WIDTH, CONTROL_WORDS = 30, 31, 32, 34, 36
RANKED, LONG = 64, 1024
NO_STARTS = np.empty(0, np.int64)

ENTRIES = 1024  # of a small graph, for each block that takes part
SAMPLE = 1024  # vertices that are asked for their component
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
    small = reference.is_small(view)
    at_once = starts.size == 1 or (starts.size == 0 and not small)  # before components are known
    with gpu.guard("reverse_cuthill_mckee"):
        first = _first_order(view, starts) if method == "leveled" and at_once else None
        if first is not None and first.last[1] == n and not stats:  # all are connected
            levels = first if starts.size else _search_from(view, first, n)[0]
            return _turned(levels.order, reverse), {}
        parts = gpu_start.components(view)
        closed = gpu_start.given(parts, starts)
        found, placed = None, 0
        if first is not None and first.last[1] > max(1, n // 4):
            found, placed = first.order, first.last[1]
            component = int(parts.label[found[0]])
            if starts.size == 0:
                levels, parts.searches = _search_from(view, first, placed)
                found, parts.start[component] = levels.order, levels.order[0]
                closed = np.array([component])
        elif not small and method == "leveled" and (largest := _largest(view, parts, closed)):
            component, placed = largest
            first = place_levels(view, parts.start[component : component + 1], placed)
            levels, parts.searches = _search_from(view, first, placed)
            found, parts.start[component] = levels.order, levels.order[0]
            closed = np.append(closed, component)
        if small:
            _try_starts(view, parts, closed)
        else:
            gpu_start.search(view, parts, closed)
        clock.lap("search")
        found, counters = _place(view, parts, method, found, placed, stats)
        perm = _turned(found, reverse)
        clock.lap("order")
        if stats:
            count = gpu_start.levels(view, parts)
            counters |= {
                "method": method,
                "components": parts.count,
                "levels": count,
                "front": n / max(1, count),
                "searches": parts.searches,
                "seconds": clock.seconds,
            }
    return perm, counters


def start_of(view: Any, vertex: int, *, threads: int | None = None) -> int:
    with gpu.guard("pseudo_peripheral_vertex"):
        parts = gpu_start.components(view)
        component = int(parts.label[vertex])
        if reference.is_small(view):
            _try_starts(view, parts, np.delete(np.arange(parts.count), component))
        else:
            gpu_start.search(view, parts, NO_STARTS, component)
        return int(parts.start[component])


def _turned(order: Any, reverse: bool) -> Any:
    return engines.cupy().ascontiguousarray(order[::-1]) if reverse else order


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


def _largest(view: Any, parts: Any, closed: Any) -> tuple[int, int] | None:
    """A component of most of the vertices, and its size, if it has to search for its start."""
    sample = parts.label[:: max(1, view.n // SAMPLE)].get()
    values, counts = np.unique(sample, return_counts=True)
    component = int(values[counts.argmax()])
    if component in closed or 4 * int(counts.max()) < sample.size:
        return None
    size = view.n if parts.count == 1 else int((parts.label == component).sum())
    return (component, size) if size > 1 else None


def _first_order(view: Any, starts: Any) -> Levels | None:
    """The order of one component: from the given start, or the vertex of least (degree, vertex).

    None where some vertex has no neighbours, so that there are several components.
    """
    cupy = engines.cupy()
    kind = view.indptr.dtype
    if starts.size:
        start = cupy.asarray(starts.astype(kind))
    else:
        degree = cupy.diff(view.indptr)
        by_both = degree.astype(np.int64) * view.n + cupy.arange(view.n)
        start = by_both.argmin().reshape(1).astype(kind)
        if int(degree[start][0]) == 0:
            return None
    return place_levels(view, start, view.n)


def _search_from(view: Any, best: Levels, size: int) -> tuple[Levels, int]:
    """The order from the start of a component, and how many were tried, of which `best` is one.

    Every search is an order from the vertex in question, so the one from the start is at hand when
    it has been found, and the last one has been given up.
    """
    cupy = engines.cupy()
    n, degree = view.n, cupy.diff(view.indptr)
    searches = 1
    while True:
        last = best.order[best.last[0] : best.last[1]]
        x = last[(degree[last].astype(np.int64) * n + last).argmin()].reshape(1)
        found = place_levels(view, x, size, limit=best.width)
        searches += 1
        if found.width >= best.width:
            return best, searches
        deeper, best = found.depth > best.depth, found
        if not deeper:
            return best, searches


def _try_starts(view: Any, parts: Any, closed: Any) -> None:
    """Find the starts of all components of a small graph but the `closed` ones."""
    cupy = engines.cupy()
    host = csr.View(view.indptr.get(), view.indices.get())
    given = parts.start.get()
    opened = np.diff(host.indptr)[given] > 0
    opened[closed] = False
    if not opened.any():
        return

    def order_from(starts: Any) -> Any:
        parts.start = cupy.asarray(starts.astype(given.dtype))
        return _place(view, parts, "leveled", None, 0, False)[0].get()

    starts, tried = trial.tried_starts(
        host, parts.label.get(), lambda starts: gpu_start.levels_from(view, starts), order_from
    )
    parts.start = cupy.asarray(np.where(opened, starts, given).astype(given.dtype))
    parts.searches += int(tried[opened].sum())


def _place(
    view: Any, parts: Any, method: str, found: Any, placed: int, stats: bool
) -> tuple[Any, dict[str, Any]]:
    """The order, from the starts; `found` has one component already, if `placed` is not 0."""
    cupy = engines.cupy()
    n = view.n
    if found is None:
        found = gpu.empty(n, view.indptr.dtype, "reverse_cuthill_mckee")
    first = parts.start
    if parts.count > 1:
        inner = view.indptr[first + 1] > view.indptr[first]
        alone = parts.count - int(inner.sum())
        if placed:
            inner[parts.label[found[0]]] = False
        first = first[inner]
    else:
        alone = int(n == 1)
        if placed or alone:
            first = first[:0]
    counters: dict[str, Any] = {}
    more = n - alone - placed
    if more:
        if method == "leveled":
            rest = place_levels(view, first, more).order
        else:
            rest, counters = gpu_batch.place_batches(view, first, more, stats=stats)
        if placed or alone:
            found[placed : placed + more] = rest[:more]
        else:
            found = rest
    if alone:
        found[n - alone :] = cupy.flatnonzero(view.indptr[1:] == view.indptr[:-1])
    if parts.count > 1:
        found = found[cupy.argsort(parts.label[found], kind="stable")]
    return found, counters


class Levels(NamedTuple):
    """What `place_levels` has done."""

    order: Any
    depth: int  # the last level,
    last: tuple[int, int]  # and its places
    width: int  # most vertices in two levels that follow one another


def place_levels(view: Any, starts: Any, total: int, *, limit: int | None = None) -> Levels:
    """Vertices in the order of Cuthill and McKee from all starts at once, level by level.

    `total` of them can be reached, and are placed; the rest of the array is left as it is.  Gives
    up when the width comes to `limit`.  Memory beside the result: seven arrays of n.
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
    most = np.iinfo(kind).max if limit is None else limit
    arguments = (
        n, view.indptr, view.indices, starts, starts.size, total, most, PATIENCE, found,
        space.owner, *space.lists, space.big, space.piece, space.sums, control,
    )  # fmt: skip
    k = SOURCE.kernels(I=kind)
    while True:
        k.place_levels(None, arguments, block=BLOCK, grid=blocks)
        words = control.get().tolist()
        if words[STAGE] == DONE:
            return Levels(found, words[DEPTH], (words[HEAD], words[TAIL]), words[WIDTH])
        control.data.memset_async(0, ROLL_WORDS * control.itemsize)


def _needed(work: int) -> int:
    return CLUSTER * -(-work // (ENTRIES * CLUSTER))


@functools.cache
def _most_blocks(device: int) -> int:
    """One on each multiprocessor, in whole clusters."""
    return max(1, gpu.multiprocessors() // CLUSTER) * CLUSTER
