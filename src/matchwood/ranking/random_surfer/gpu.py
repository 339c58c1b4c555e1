"""PageRank on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "begin<W>",
        "pull<I,W>",
        "pull_rows1 = pull_rows<I,W,1,8>",
        "pull_rows4 = pull_rows<I,W,4,4>",
        "finish_hubs<I,W>",
        "end_iteration",
    ),
)
BLOCK, WARP, SLOTS = SOURCE.constants("BLOCK", "WARP", "SLOTS")
SPAN, LONG, MOST_ENTRIES, ROW_SHIFT = SOURCE.constants("SPAN", "LONG", "MOST_ENTRIES", "ROW_SHIFT")
ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants("ERROR", "ITERATIONS", "DONE", "WORDS")
EVEN = 1.2  # the longest of 32 rows, on average, in lengths of a row: then a lane has a row
SHORT = 8  # entries of a row on average: then a lane has four rows
LOOKS = 8  # iterations between two looks at whether it is done
CALLER = "pagerank"


class Plan(NamedTuple):
    """What each warp adds up; `pull` and `finish_hubs` of gpu.cu say what the arrays mean.

    None where a lane has a row.
    """

    row: Any
    entry: Any
    size: Any
    hub: Any
    hub_begin: Any


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan | None:
    kind = "pattern" if problem.incoming.data is None else "weights"
    return graph.keep(f"surfer pieces, {kind}", lambda: _plan(problem.incoming))


def _is_even(length: Any, nnz: int) -> bool:
    """Whether rows are short, and those that follow each other of about the same length."""
    cupy = engines.cupy()
    whole = length[: length.size // WARP * WARP].reshape(-1, WARP)
    if int(length.max()) > WARP or whole.size == 0:
        return False
    return int(cupy.sum(whole.max(axis=1), dtype=np.int64)) * WARP <= EVEN * nnz


def _plan(view: Any) -> Plan | None:
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    with gpu.guard(CALLER, 50 * n):
        length = cupy.diff(view.indptr)
        if view.data is None and _is_even(length, view.nnz):
            return None
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


def iterate(
    plan: Plan | None, problem: Any, *, threads: int | None = None
) -> tuple[Any, int, float]:
    cupy = engines.cupy()
    view, dtype = problem.incoming, problem.dtype
    n = view.n
    pieces = 0 if plan is None else int(plan.size.size)
    with gpu.guard(CALLER, (3 * n + pieces) * 8):
        k = SOURCE.kernels(I=view.indices.dtype, W=dtype)
        scores = problem.start.copy()
        given = (cupy.empty(n, dtype), cupy.empty(n, dtype))
        hub_sums = None if plan is None else cupy.empty(int(plan.hub_begin[-1]))
        sums = cupy.zeros(2 * SLOTS, np.uint64)
        words = cupy.zeros(WORDS, np.float64)
        weights = None if view.data is None else view.data.astype(dtype, copy=False)
        rule = (problem.share, problem.jump, problem.dangling, problem.damping, 1.0 / n, words)

        def launches(now: int) -> list[Any]:
            """The kernels of an iteration: (kernel, blocks, arguments), checked once."""
            arcs, come, go = (view.indptr, view.indices), given[now], (scores, given[1 - now])
            if plan is None:
                rows, kernel = (4, k.pull_rows4) if view.nnz <= SHORT * n else (1, k.pull_rows1)
                found: list[Any] = [(kernel, -(-n // rows), (n, *arcs, come, *rule, *go, sums))]
            else:
                cut = (pieces, plan.row, plan.entry, plan.size)
                args = (*cut, *arcs, weights, come, *rule, *go, hub_sums, sums)
                found = [(k.pull, pieces * WARP, args)]
                if plan.hub.size:
                    hubs = (plan.hub.size, plan.hub, plan.hub_begin, hub_sums)
                    found.append((k.finish_hubs, plan.hub.size * WARP, (*hubs, *rule, *go, sums)))
            found.append((k.end_iteration, 1, (problem.tol * n, True, sums, words)))
            return [(kernel, -(-lanes // BLOCK), kernel.prepared(a)) for kernel, lanes, a in found]

        k.begin(n, (n, problem.share, scores, given[0], sums), block=BLOCK)
        k.end_iteration(None, (problem.tol * n, False, sums, words), block=BLOCK, grid=1)
        turns = (launches(0), launches(1))
        for iteration in range(problem.most):
            for kernel, blocks, args in turns[iteration % 2]:
                kernel.launch(blocks, BLOCK, args)
            looks = problem.tol > 0 and iteration % LOOKS == LOOKS - 1
            if looks and float(words[DONE]) != 0:
                break
        found = words.get()
    return scores, int(found[ITERATIONS]), float(found[ERROR])
