"""PageRank on a team.  The rule: __init__.py.

An iteration is one pass over the rows and one barrier.  A row adds up what its neighbours give,
``given[i] = x[i] * share[i]``, and writes its own x and its own word of the next `given`; so no two
members write the same word, and there are two arrays `given` that take turns.

Members take windows (cpu_pull.py) as they come.  A window first adds up all its rows, into a buffer
of the member; then it makes scores of the sums, which runs on vector registers.

The old scores are needed for the change alone.  Where only the last change is asked for (tol=0), a
quarter of an iteration's bytes stays unread: scores are not touched before the last but one.

Windows depend on the graph alone.  Each adds up its own changes, and what its vertices without arcs
hold; all members then add up the windows in their order.  So the sums have the same bits at any
number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, kernel, next_chunk
from matchwood.ranking.random_surfer.cpu_pull import (
    WINDOW,
    Plan,
    as_unsigned,
    plan_of,
    pull_window,
)
from matchwood.ranking.random_surfer.cpu_scores import (
    Jumps,
    hand_on,
    held,
    jump_window,
    score_window,
    total,
)

Array = np.ndarray[Any, Any]


class State(NamedTuple):
    """What changes: scores, what each vertex gives (two rows, in turn), sums of the windows."""

    scores: Any
    given: Any
    changes: Any  # (2, windows) float64
    lost: Any  # (2, windows) float64
    result: Any  # iterations, error
    buffers: Any  # (members, WINDOW)


@kernel
def _iterate(
    team: Any,
    indptr: Array,
    indices: Array,
    weights: Array,
    share: Array,
    jumps: Jumps,
    plan: Plan,
    state: State,
    damping: Any,
    tol: float,
    most: int,
    loses: bool,
) -> None:
    n, windows = share.size, plan.starts.size - 1
    scores, buffer = state.scores, state.buffers[team.rank]
    zero = damping - damping  # in the type of the scores
    window = next_chunk(team, windows, 1)
    while window >= 0:
        first, last = plan.starts[window], plan.starts[window + 1]
        for v in range(first, last):
            state.given[0, v] = scores[v] * share[v]
        state.lost[0, window] = held(scores[first:last], share[first:last], buffer, zero)
        window = next_chunk(team, windows, 1)
    if barrier(team):
        return
    for iteration in range(most):
        now, then = iteration & 1, (iteration + 1) & 1
        asked = tol > 0 or loses or iteration >= most - 2  # else nobody looks at these scores
        given, next_given = state.given[now], state.given[then]
        mass = np.float64(damping) * total(state.lost[now])
        window = next_chunk(team, windows, 1)
        while window >= 0:
            first, last = plan.starts[window], plan.starts[window + 1]
            sums, part = buffer[: last - first], share[first:last]
            pull_window(indptr, indices, weights, plan, window, given, sums, zero)
            jump_window(sums, jumps, first, damping, mass, 1.0 / n)
            own = scores[first:last]
            if asked:
                state.changes[now, window] = score_window(sums, own, part, next_given[first:last])
            else:
                hand_on(sums, part, next_given[first:last])
            if loses:
                state.lost[then, window] = held(own, part, buffer, zero)
            window = next_chunk(team, windows, 1)
        if barrier(team):
            return
        if asked:
            error = total(state.changes[now])
            if team.rank == 0:
                state.result[0], state.result[1] = iteration + 1, error
            if error < tol * n:
                return


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan:
    view = problem.incoming
    kept = "surfer plan" if view.data is None else "surfer plan, weighted"
    return graph.keep(kept, lambda: plan_of(view.indptr, view.indices, view.data, threads))


def iterate(plan: Plan, problem: Any, *, threads: int | None = None) -> tuple[Array, int, float]:
    view, dtype = problem.incoming, problem.dtype
    n, windows = view.n, plan.starts.size - 1
    none = np.empty(0, dtype)
    jumps = Jumps(*(none if x is None else x for x in (problem.jump, problem.dangling)))
    team = crew(threads, work=(view.nnz + n) * min(problem.most, 8))
    state = State(
        problem.start.copy(), np.empty((2, n), dtype), np.zeros((2, windows)),
        np.zeros((2, windows)), np.array([0, math.inf]), np.empty((team.size, WINDOW), dtype),
    )  # fmt: skip
    weights = none if view.data is None else view.data.astype(dtype, copy=False)
    loses = bool((problem.share == 0).any())
    team.run(
        _iterate, view.indptr, as_unsigned(view.indices), weights, problem.share, jumps, plan,
        state, dtype.type(problem.damping), problem.tol, problem.most, loses,
    )  # fmt: skip
    return state.scores, int(state.result[0]), float(state.result[1])
