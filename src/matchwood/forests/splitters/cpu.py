"""Linear forests by splitters, on a team.  The idea: __init__.py.

    cpu_marks.py     what a walk along a path leaves behind
    cpu_paths.py     walks from ends and from sampled vertices ("nodes"), and the ranking of nodes
    cpu_cycles.py    what these have not reached: cycles, cut at their weakest edge
    here             the place of each vertex

A walk ends at a node, at an end, or where another walk has been.  The mark there says how far it is
from the other walk's start, so the distance from start to start is known.  When the records of all
walks are known (path, position of the start, direction), every vertex computes its position from
them, in one pass in the order of vertices.  A thread has several walks at a time, so that it waits
for memory once for all of them.

Two threads whose walks meet may each miss the other's last mark and overwrite it.  This does no
harm: a mark gives the distance from the start of its walk, so each vertex may keep either mark, and
a walk may end at any mark of the other.  So no compare-and-swap is needed, only words that are
written whole (relaxed).

The vertices that no walk has reached are on cycles without a node.  These are walked by the thread
that comes first, or by several that all find the same.  In cycles with nodes the stretches between
nodes are walked again to find the weakest edge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, barrier, crew, interrupted, kernel, share, workspace
from matchwood.engines.cpu.hints import natural
from matchwood.forests.found import Found
from matchwood.forests.splitters.cpu_cycles import resolve
from matchwood.forests.splitters.cpu_marks import (
    COUNTER_WORDS,
    EDGES_CUT,
    LENGTH,
    PATH,
    RECORD_WORDS,
    SIGN,
    START,
    STEP_BITS,
    STEPS,
    WALK_WORDS,
    WALKS,
    Board,
    Cuts,
    Nodes,
    Pairs,
    Stretches,
    Surveys,
)
from matchwood.forests.splitters.cpu_paths import follow
from matchwood.stopwatch import Stopwatch

Array = np.ndarray[Any, Any]

SPACING = 8192  # vertices for each sampled one; a walk is long against its record


@kernel
def _number(
    team: Team, board: Board, tally: Array, perm: Array, path: Array, position: Array, place: Array
) -> None:
    """Where paths start, then the place of each vertex."""
    marks, records, lengths = board
    n = marks.size
    lo, hi = share(team, n)
    start = np.int64(0)
    for rank in range(team.rank):
        start += tally[rank]
    for v in range(natural(lo), hi):
        length = lengths[v]
        if length > 0:
            lengths[v] = start  # from now on: where the path begins
            start += length
    if barrier(team):
        return
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        mark = marks[v]
        steps = mark & STEPS if mark > 0 else 0
        walk = natural((mark >> STEP_BITS) - 1 if mark > 0 else n + 2 * ~mark)
        record = records[RECORD_WORDS * walk : RECORD_WORDS * (walk + 1)]
        low, length = natural(np.int64(record[PATH])), np.int64(record[LENGTH])
        at = np.int64(record[START]) + np.int64(record[SIGN]) * steps
        while at < 1:  # round a cycle that was cut
            at += length
        while at > length:
            at -= length
        new = natural(lengths[low] + at - 1)
        path[v] = low
        position[v] = at
        place[v] = new
        perm[new] = v


def _sample(table: Array) -> Array:
    """Vertices with two neighbours from which walks start, ascending.  Any would do."""
    n = table.shape[0]
    chosen = np.unique(np.random.default_rng(0).integers(0, max(n, 1), n // SPACING))
    chosen = chosen[(table[chosen] >= 0).all(axis=1)]
    return chosen.astype(table.dtype)


def forest(neighbours: Array, weights: Array, *, threads: int | None = None) -> Found:
    """See matchwood.forests.linear_forest, method="splitters"."""
    watch = Stopwatch()
    n, kind = neighbours.shape[0], neighbours.dtype
    team = crew(threads, work=2 * n)
    factor = Pairs(*(np.ascontiguousarray(a).reshape(-1) for a in (neighbours, weights)))
    vertices = _sample(neighbours)
    slots = 2 * vertices.size
    space = workspace(
        marks=(n, np.int64), records=(RECORD_WORDS * (n + slots), kind), lengths=(n, kind),
        cuts=((n // 3 + 1, 2), kind),
    )  # fmt: skip
    board = Board(space.marks, space.records, space.lengths)
    nodes = Nodes(
        vertices,
        links=np.zeros(slots, np.int64),
        link_steps=np.zeros(slots, np.int64),
        state=np.zeros(vertices.size, np.uint8),
    )
    walks = np.empty((team.size, WALKS, WALK_WORDS), np.int64)
    team.run(follow, factor.table, board, nodes, walks)
    watch.lap("paths")
    stretches = Stretches(np.empty((slots, 3), np.int64), np.empty(slots, factor.weights.dtype))
    cuts = Cuts(space.cuts, np.zeros(COUNTER_WORDS, np.int64))
    tally = np.zeros(team.size, np.int64)
    surveys = Surveys(walks, np.empty((team.size, WALKS), factor.weights.dtype))
    team.run(resolve, factor, board, nodes, stretches, cuts, tally, surveys)
    watch.lap("cycles")
    perm, path, position, place = (np.empty(n, kind) for _ in range(4))
    team.run(_number, board, tally, perm, path, position, place)
    watch.lap("permutation")
    removed = cuts.edges[: cuts.counters[EDGES_CUT]].copy()
    return Found(perm, path, position, place, lambda: removed, lambda: watch.seconds)
