"""PageRank on the GPU.  Kernels: gpu.cu; who adds up what: gpu_plan.py; the rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.ranking.random_surfer.gpu_plan import BLOCK, CALLER, SOURCE, WARP, Plan
from matchwood.ranking.random_surfer.gpu_plan import prepare as prepare

SLOTS, ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants(
    "SLOTS", "ERROR", "ITERATIONS", "DONE", "WORDS"
)
SHORT = 8  # entries of a row on average: then a lane has four rows
LOOKS = 8  # iterations between two looks at whether it is done


def iterate(
    plan: Plan | None, problem: Any, *, threads: int | None = None
) -> tuple[Any, int, float]:
    cupy = engines.cupy()
    if plan is not None and plan.renumbered is not None:
        problem = plan.renumbered.apply(problem)
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
        limit = problem.tol * n
        rule = (problem.share, problem.jump, problem.dangling, problem.damping, 1.0 / n)

        def launches(now: int) -> list[Any]:
            """The kernels of an iteration: (kernel, blocks, arguments), checked once."""
            arcs, come, go = (view.indptr, view.indices), given[now], (scores, given[1 - now])
            args: tuple[Any, ...]
            if plan is None:
                rows, kernel = (4, k.pull_rows4) if view.nnz <= SHORT * n else (1, k.pull_rows1)
                args = (n, *arcs, come, *rule, words, *go, sums)
                found: list[Any] = [(kernel, -(-n // rows), args)]
            else:
                cut = (pieces, plan.row, plan.entry, plan.size)
                args = (*cut, *arcs, weights, come, *rule, words, *go, hub_sums, sums)
                found = [(k.pull, pieces * WARP, args)]
            if plan is not None and plan.hub.size:
                hubs = (plan.hub.size, plan.hub, plan.hub_begin, hub_sums)
                args = (*hubs, *rule, limit, words, *go, sums)
                found.append((k.finish_hubs, plan.hub.size * WARP, args))
            else:
                found.append((k.end_iteration, 1, (limit, True, sums, words)))
            return [(kernel, -(-lanes // BLOCK), kernel.prepared(a)) for kernel, lanes, a in found]

        k.begin(n, (n, problem.share, scores, given[0], sums), block=BLOCK)
        k.end_iteration(None, (limit, False, sums, words), block=BLOCK, grid=1)
        turns = (launches(0), launches(1))
        for iteration in range(problem.most):
            for kernel, blocks, args in turns[iteration % 2]:
                kernel.launch(blocks, BLOCK, args)
            looks = problem.tol > 0 and iteration % LOOKS == LOOKS - 1
            if looks and float(words[DONE]) != 0:
                break
        found = words.get()
        if plan is not None and plan.renumbered is not None:
            scores = scores[plan.renumbered.place]
    return scores, int(found[ITERATIONS]), float(found[ERROR])
