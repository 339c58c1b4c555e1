"""PageRank on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu

SOURCE = gpu.Source(
    __package__, "gpu.cu", ("begin<W>", "pull<I,W>", "finish_hubs<I,W>", "end_iteration")
)
BLOCK, WARP, SLOTS = SOURCE.constants("BLOCK", "WARP", "SLOTS")
SPAN, LONG, MOST_ENTRIES, ROW_SHIFT = SOURCE.constants("SPAN", "LONG", "MOST_ENTRIES", "ROW_SHIFT")
ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants("ERROR", "ITERATIONS", "DONE", "WORDS")
LOOKS = 8  # iterations between two looks at whether it is done
CALLER = "pagerank"


class Plan(NamedTuple):
    """What each warp adds up; `pull` and `finish_hubs` of gpu.cu say what the arrays mean."""

    row: Any
    entry: Any
    size: Any
    hub: Any
    hub_begin: Any


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan:
    kind = "pattern" if problem.incoming.data is None else "weights"
    return graph.keep(f"surfer pieces, {kind}", lambda: _plan(problem.incoming))


def _plan(view: Any) -> Plan:
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    with gpu.guard(CALLER, 50 * n):
        length = cupy.diff(view.indptr)
        is_long = length > LONG
        hub = cupy.flatnonzero(is_long).astype(kind)
        hub_begin, hub_entry, hub_size = _cut_hubs(view.indptr[hub], length[hub])
        row, rows = _cut_rows(length, is_long)
        entry = view.indptr[row]
        size = (rows.astype(np.int64) << ROW_SHIFT) + (view.indptr[row + rows] - entry)
        return Plan(
            cupy.concatenate([cupy.zeros(hub_entry.size, kind), row]),
            cupy.concatenate([hub_entry, entry]).astype(kind, copy=False),
            cupy.concatenate([hub_size, size]).astype(np.int32),
            hub,
            hub_begin,
        )


def _cut_hubs(begin: Any, length: Any) -> tuple[Any, Any, Any]:
    """Long rows in pieces of MOST_ENTRIES: where those of each begin, their entries and sizes."""
    cupy, kind = engines.cupy(), begin.dtype
    pieces = -(-length // MOST_ENTRIES)
    first = cupy.zeros(length.size + 1, kind)
    first[1:] = cupy.cumsum(pieces)
    marks = cupy.zeros(int(first[-1]), kind)
    marks[first[1:-1]] = 1
    hub = cupy.cumsum(marks)
    before = (cupy.arange(marks.size) - first[hub]) * MOST_ENTRIES
    return first, begin[hub] + before, cupy.minimum(length[hub] - before, MOST_ENTRIES)


def _cut_rows(length: Any, is_long: Any) -> tuple[Any, Any]:
    """The other rows, cut where SPAN more entries and rows have been counted and around long ones.

    Returns the first row of each piece, and how many it has.
    """
    cupy, n, kind = engines.cupy(), length.size, length.dtype
    counted = cupy.where(is_long, 0, length).astype(np.int64) + 1
    window = (cupy.cumsum(counted) - counted) // SPAN
    cut = cupy.ones(n + 1, np.bool_)
    cut[1:-1] = (window[1:] != window[:-1]) | is_long[1:] | is_long[:-1]
    cuts = cupy.flatnonzero(cut).astype(kind)
    first, rows = cuts[:-1], cupy.diff(cuts)
    short = ~is_long[first]
    return first[short], rows[short]


def iterate(plan: Plan, problem: Any, *, threads: int | None = None) -> tuple[Any, int, float]:
    cupy = engines.cupy()
    view, dtype = problem.incoming, problem.dtype
    n, pieces, hubs = view.n, int(plan.size.size), int(plan.hub.size)
    with gpu.guard(CALLER, (3 * n + pieces) * 8):
        k = SOURCE.kernels(I=view.indices.dtype, W=dtype)
        scores = problem.start.copy()
        given = (cupy.empty(n, dtype), cupy.empty(n, dtype))
        hub_sums = cupy.empty(int(plan.hub_begin[-1]))
        sums = cupy.zeros(2 * SLOTS, np.uint64)
        words = cupy.zeros(WORDS, np.float64)
        weights = None if view.data is None else view.data.astype(dtype, copy=False)
        rule = (problem.share, problem.jump, problem.dangling, problem.damping, 1.0 / n, words)

        def pull(now: int) -> None:
            end = (scores, given[1 - now], hub_sums, sums)
            rows = (pieces, plan.row, plan.entry, plan.size)
            arcs = (view.indptr, view.indices, weights, given[now])
            k.pull(pieces * WARP, (*rows, *arcs, *rule, *end), block=BLOCK)
            if hubs:
                end = (scores, given[1 - now], sums)
                k.finish_hubs(hubs * WARP, (hubs, plan.hub, plan.hub_begin, hub_sums, *rule, *end))

        def close(counts: bool) -> None:
            args = (problem.tol * n, counts, sums, words)
            k.end_iteration(None, args, block=SLOTS, grid=1)

        k.begin(n, (n, problem.share, scores, given[0], sums), block=BLOCK)
        close(False)
        for iteration in range(problem.most):
            pull(iteration % 2)
            close(True)
            looks = problem.tol > 0 and iteration % LOOKS == LOOKS - 1
            if looks and float(words[DONE]) != 0:
                break
        found = words.get()
    return scores, int(found[ITERATIONS]), float(found[ERROR])
