"""PageRank on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.sort import radix_sort

WIDTHS = (2, 4, 8, 16, 32)  # lanes to a row
EACH = 4  # entries for a lane, about; with one each, a mesh of 27 points takes twice as long
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "begin<W>",
        *(f"pull{width} = pull<I,W,{width}>" for width in WIDTHS),
        "pull_hubs<I,W>",
        "end_iteration",
    ),
)
BLOCK, LONG = SOURCE.constants("BLOCK", "LONG")
LOST, ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants(
    "LOST", "ERROR", "ITERATIONS", "DONE", "WORDS"
)
WINDOW_BITS = 12  # rows are sorted by length within windows of 4,096
LENGTH_BITS = 13  # of lengths up to LONG and one more
BLOCKS = 16  # of a launch for each multiprocessor
LOOKS = 8  # iterations between two looks at whether it is done
CALLER = "pagerank"


class Plan(NamedTuple):
    """In which order rows are visited, and those too long for a few lanes."""

    order: Any
    hubs: Any
    width: int


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan:
    return graph.keep("surfer plan", lambda: _plan(problem.incoming))


def _plan(view: Any) -> Plan:
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    with gpu.guard(CALLER, 48 * n):
        length = cupy.diff(view.indptr)
        window = (cupy.arange(n, dtype=np.int64) >> WINDOW_BITS) << LENGTH_BITS
        keys = (window + cupy.minimum(length, LONG + 1)).astype(np.uint64)
        order = radix_sort(keys)[1].astype(kind, copy=False)
        hubs = cupy.flatnonzero(length > LONG).astype(kind)
    mean = view.nnz / max(n, 1)
    width = next((width for width in WIDTHS if mean <= EACH * width), WIDTHS[-1])
    return Plan(order, hubs, width)


def iterate(plan: Plan, problem: Any, *, threads: int | None = None) -> tuple[Any, int, float]:
    cupy = engines.cupy()
    view, dtype = problem.incoming, problem.dtype
    n = view.n
    most = BLOCKS * gpu.multiprocessors()
    blocks = min(most, -(-n * plan.width // BLOCK))
    hub_blocks = min(most, int(plan.hubs.size))
    parts = blocks + hub_blocks
    with gpu.guard(CALLER, (3 * n + 2 * parts) * 8):
        k = SOURCE.kernels(I=view.indices.dtype, W=dtype)
        pull = getattr(k, f"pull{plan.width}")
        scores = problem.start.copy()
        given = (cupy.empty(n, dtype), cupy.empty(n, dtype))
        sums = cupy.zeros((2, parts), np.float64)  # changes, lost
        words = cupy.zeros(WORDS, np.float64)
        weights = None if view.data is None else view.data.astype(dtype, copy=False)
        limit = problem.tol * n

        def launch(kernel: Any, rows: Any, count: int, first: int, size: int, now: int) -> None:
            kernel(
                None,
                (
                    count, rows, view.indptr, view.indices, weights, given[now], problem.share,
                    problem.jump, problem.dangling, problem.damping, 1.0 / n, words, scores,
                    given[1 - now], sums[0, first:], sums[1, first:],
                ),
                block=BLOCK,
                grid=size,
            )  # fmt: skip

        k.begin(None, (n, problem.share, scores, given[0], sums[1]), block=BLOCK, grid=blocks)
        end = (parts, sums[0], sums[1], limit)
        k.end_iteration(None, (*end, False, words), block=BLOCK, grid=1)
        for iteration in range(problem.most):
            now = iteration % 2
            launch(pull, plan.order, n, 0, blocks, now)
            if hub_blocks:
                launch(k.pull_hubs, plan.hubs, plan.hubs.size, blocks, hub_blocks, now)
            k.end_iteration(None, (*end, True, words), block=BLOCK, grid=1)
            if iteration % LOOKS == LOOKS - 1 and float(words[DONE]) != 0:
                break
        found = words.get()
    return scores, int(found[ITERATIONS]), float(found[ERROR])
