"""PageRank on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("begin<W>", "begin_words", "pull<I,W>"))
BLOCK, SPAN, LONG, MOST_ENTRIES = SOURCE.constants("BLOCK", "SPAN", "LONG", "MOST_ENTRIES")
ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants("ERROR", "ITERATIONS", "DONE", "WORDS")
LOOKS = 8  # iterations between two looks at whether it is done
BEGIN_BLOCKS = 1024  # of the launch before the first iteration, at most
CALLER = "pagerank"


class Plan(NamedTuple):
    """What each block adds up; `Pieces` of gpu.cu says what the arrays mean."""

    first: Any
    last: Any
    hub: Any
    hub_begin: Any
    hub_of: Any

    @property
    def blocks(self) -> int:
        return int(self.first.size + self.hub_of.size)


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan:
    kind = "pattern" if problem.incoming.data is None else "weights"
    return graph.keep(f"surfer pieces, {kind}", lambda: _pieces(problem.incoming))


def _pieces(view: Any) -> Plan:
    """Cut the rows where SPAN more entries and rows have been counted, and around long rows."""
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    with gpu.guard(CALLER, 40 * n):
        length = cupy.diff(view.indptr)
        is_long = length > LONG
        counted = cupy.where(is_long, 0, length).astype(np.int64) + 1
        window = (cupy.cumsum(counted) - counted) // SPAN
        cut = cupy.ones(n + 1, np.bool_)
        cut[1:-1] = (window[1:] != window[:-1]) | is_long[1:] | is_long[:-1]
        cuts = cupy.flatnonzero(cut).astype(kind)
        first, last = cuts[:-1], cuts[1:]
        short = ~is_long[first]
        hub = cupy.flatnonzero(is_long).astype(kind)
        pieces = -(-length[hub] // MOST_ENTRIES)
        hub_begin = cupy.zeros(hub.size + 1, kind)
        hub_begin[1:] = cupy.cumsum(pieces)
        hub_of = cupy.zeros(int(hub_begin[-1]), kind)
        hub_of[hub_begin[1:-1]] = 1
        return Plan(first[short], last[short], hub, hub_begin, cupy.cumsum(hub_of).astype(kind))


def iterate(plan: Plan, problem: Any, *, threads: int | None = None) -> tuple[Any, int, float]:
    cupy = engines.cupy()
    view, dtype = problem.incoming, problem.dtype
    n, blocks = view.n, plan.blocks
    begins = min(BEGIN_BLOCKS, -(-n // BLOCK))
    with gpu.guard(CALLER, (3 * n + 3 * blocks + begins) * 8):
        k = SOURCE.kernels(I=view.indices.dtype, W=dtype)
        scores = problem.start.copy()
        given = (cupy.empty(n, dtype), cupy.empty(n, dtype))
        change, lost = cupy.empty(blocks), cupy.empty(max(blocks, begins))
        hub_sums = cupy.empty(plan.hub_of.size)
        arrived = cupy.zeros(1, np.uint32)
        words = cupy.zeros(WORDS, np.float64)
        weights = None if view.data is None else view.data.astype(dtype, copy=False)
        pieces = (plan.first.size, plan.hub_of.size, plan.hub.size, *plan)

        def pull(now: int) -> None:
            k.pull(
                None,
                (
                    *pieces, view.indptr, view.indices, weights, given[now], problem.share,
                    problem.jump, problem.dangling, problem.damping, 1.0 / n, problem.tol * n,
                    scores, given[1 - now], change, lost, hub_sums, arrived, words,
                ),
                block=BLOCK,
                grid=blocks,
            )  # fmt: skip

        k.begin(None, (n, problem.share, scores, given[0], lost), block=BLOCK, grid=begins)
        k.begin_words(None, (begins, lost, words), block=BLOCK, grid=1)
        for iteration in range(problem.most):
            pull(iteration % 2)
            looks = problem.tol > 0 and iteration % LOOKS == LOOKS - 1
            if looks and float(words[DONE]) != 0:
                break
        found = words.get()
    return scores, int(found[ITERATIONS]), float(found[ERROR])
