"""PageRank on the GPU.  Kernels: gpu.cu; who adds up what: gpu_plan.py; the rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ranking.random_surfer.gpu_plan import BLOCK, CALLER, SOURCE, WARP, Plan
from matchwood.ranking.random_surfer.gpu_plan import prepare as prepare

SLOTS, SETS, CHANGES, SCORES = SOURCE.constants("SLOTS", "SETS", "CHANGES", "SCORES")
ERROR, ITERATIONS, DONE, WORDS = SOURCE.constants("ERROR", "ITERATIONS", "DONE", "WORDS")
TURNS = 2 * SETS  # launches, of which each has other arrays
SHORT = 8  # entries of a row on average: then a lane has two rows
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
        sums = cupy.zeros(SETS * 2 * SLOTS, np.uint64)
        words = cupy.zeros(WORDS, np.float64)
        weights = None if view.data is None else view.data.astype(dtype, copy=False)
        limit = problem.tol * n
        rule = (problem.share, problem.jump, problem.dangling, problem.damping, 1.0 / n)
        hub_sums = None if plan is None else cupy.empty(int(plan.hub_begin[-1]))

        def turn(number: int, asked: int) -> list[Any]:
            """The kernels of an iteration: (kernel, blocks, arguments), checked once."""
            before = limit if number else 0.0  # nothing changes before the first iteration
            arcs, come = (view.indptr, view.indices), given[number % 2]
            this, go = (before, number % SETS, asked), (scores, given[1 - number % 2], sums)
            args: tuple[Any, ...]
            if plan is None:
                rows, kernel = (2, k.pull_rows2) if view.nnz <= SHORT * n else (1, k.pull_rows1)
                args = (n, *arcs, come, *rule, *this, words, *go)
                found: list[Any] = [(kernel, -(-n // rows), args)]
            else:
                cut = (pieces, plan.row, plan.entry, plan.size)
                args = (*cut, *arcs, weights, come, *rule, *this, words, *go, hub_sums)
                found = [(k.pull, pieces * WARP, args)]
            if plan is not None and plan.hub.size:
                args = (plan.hub.size, plan.hub, plan.hub_begin, hub_sums, *rule, *this, *go)
                found.append((k.finish_hubs, plan.hub.size * WARP, args))
            return [(kernel, -(-lanes // BLOCK), kernel.prepared(a)) for kernel, lanes, a in found]

        def end(number: int) -> None:
            """Before iteration `number`, or instead of it."""
            k.end_iteration(None, (limit, number % SETS, sums, words), block=WARP, grid=1)

        k.begin(n, (n, problem.share, scores, given[0], sums[-2 * SLOTS :]), block=BLOCK)
        # With tol=0 only the change of the last iteration is asked for, and so two scores.
        most, asked = problem.most, CHANGES | SCORES if problem.tol > 0 else 0
        turns = [turn(TURNS + number, asked) for number in range(TURNS)]
        ends = {0: turn(0, asked), most - 2: turn(most - 2, asked | SCORES)}
        ends[most - 1] = turn(most - 1, CHANGES | SCORES)
        for iteration in range(most):
            for kernel, blocks, args in ends.get(iteration) or turns[iteration % TURNS]:
                kernel.launch(blocks, BLOCK, args)
            if problem.tol > 0 and iteration % LOOKS == LOOKS - 1:
                end(iteration + 1)
                if float(words[DONE]) != 0:
                    break
        end(most)
        found = words.get()
        if plan is not None and plan.renumbered is not None:
            scores = scores[plan.renumbered.place]
    return scores, int(found[ITERATIONS]), float(found[ERROR])
