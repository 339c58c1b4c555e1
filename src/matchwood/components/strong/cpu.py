"""Strongly connected components on a team.  The rule and the papers: __init__.py.

Read cpu_tarjan.py first: one search by one member, the quickest way for one thread.  With more,
these steps, a kernel each, so that a method compiles what it uses:

    largest   what a vertex of high degree reaches, and within that, what reaches it: one component,
              and if there is a giant one, this (cpu_reach.py)
    trim      vertices with nothing left to them, or from them, one after the other (cpu_trim.py)
    colours   "multistep": many components at once, if much is left (cpu_colour.py)
    tasks     "forward_backward": sets to be searched side by side (cpu_tasks.py)
    finish    what is left, by one member; components numbered by their smallest vertex

"auto" does the first and the last.  `parent[v]` is the smallest vertex of v's component as soon as
that is known, and mark[v] is DONE then.

Vertices are unsigned in the kernels: Numba looks at every signed index for a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.cpu_number import number_roots
from matchwood.components.strong.cpu_trim import lonely, trim
from matchwood.components.strong.forward_backward.cpu import TASK_WORDS, task_rounds
from matchwood.components.strong.largest.cpu_reach import (
    BACKWARD,
    BUFFER,
    DONE,
    FORWARD,
    OPEN,
    REACH_WORDS,
    probe,
    reach,
)
from matchwood.components.strong.multistep.cpu import COLOUR_WORDS, colour_rounds, list_open
from matchwood.components.strong.tarjan.cpu import tarjan
from matchwood.primitives.cpu_hints import select
from matchwood.teams import (
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

SAMPLES = 4096  # vertices that each member looks at for a pivot, "auto"
LEVELS = 6  # of a search, within which it must have grown large, "auto"
TRIM_CHUNK = 1024  # vertices that a member takes at a time
PROBE = 1024  # vertices that the pivot must reach, both ways, to be worth the team's search
FEW_VERTICES = 100_000  # open, left to one member; the figure of the multistep paper,
FEW_FOR_TWO = 1 << 62  # and with two members always: colouring takes more than twice the work

# words of `shared`: what the steps use, then
_PROBED = REACH_WORDS
_FOUND = REACH_WORDS + 1
_ROUNDS = REACH_WORDS + 2
SHARED = REACH_WORDS + 16
assert SHARED >= max(COLOUR_WORDS, TASK_WORDS)


@device
def _score(indptr: Array, in_indptr: Array, v: Any) -> float:
    """A pivot is the better, the higher the product of its degrees."""
    one = np.uint64(1)
    outward = np.int64(indptr[v + one]) - np.int64(indptr[v])
    inward = np.int64(in_indptr[v + one]) - np.int64(in_indptr[v])
    return np.float64(outward) * np.float64(inward)


@device
def _start(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    sample: bool,
    mark: Array,
    parent: Array,
    scores: Array,
    pivots: Array,
) -> None:
    """Mark lonely vertices; find this member's best pivot.  `sample`: just look at a few."""
    lo, hi = share(team, mark.size)
    best, pivot = 0.0, np.int64(-1)
    if sample:
        mark[lo:hi] = OPEN
        step = max(1, (hi - lo) // SAMPLES)
        for v in range(np.uint64(lo), np.uint64(hi), np.uint64(step)):
            score = _score(indptr, in_indptr, v)
            if score > best:
                best, pivot = score, np.int64(v)
    else:
        for v in range(np.uint64(lo), np.uint64(hi)):
            if interrupted(team, np.int64(v)):
                return
            if lonely(indptr, indices, v) or lonely(in_indptr, in_indices, v):
                mark[v] = DONE
                parent[v] = v
                continue
            mark[v] = OPEN
            score = _score(indptr, in_indptr, v)
            if score > best:
                best, pivot = score, np.int64(v)
    scores[team.rank], pivots[team.rank] = best, pivot


@device
def _best_pivot(team: Any, scores: Array, pivots: Array) -> int:
    best = 0
    for member in range(1, team.size):
        if scores[member] > scores[best]:
            best = member
    return np.int64(pivots[best])


@device
def _alone(indptr: Array, indices: Array, mark: Array, v: Any) -> bool:
    """Has v no open neighbour in its row but itself?"""
    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
        w = indices[k]
        if load_relaxed(mark, w) == OPEN and np.uint64(w) != v:
            return False
    return True


@device
def _trim_once(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    mark: Array,
    parent: Array,
) -> None:
    """A pass of trimming, in which marks go from OPEN to DONE; one seen late costs time only."""
    n = mark.size
    chunk = next_chunk(team, n, TRIM_CHUNK)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + TRIM_CHUNK, n))):
            if mark[v] == OPEN and (
                _alone(indptr, indices, mark, v) or _alone(in_indptr, in_indices, mark, v)
            ):
                store_relaxed(mark, v, DONE)
                parent[v] = v
        chunk = next_chunk(team, n, TRIM_CHUNK)


@device
def _finish_largest(team: Any, mark: Array, parent: Array, sums: Array) -> None:
    """The component is where both bits are set; all else is open again."""
    lo, hi = share(team, mark.size)
    least = np.int64(mark.size)
    both = FORWARD | BACKWARD
    for v in range(lo, hi):
        if mark[v] == both:
            least = np.int64(v)
            break
    sums[team.rank] = least
    if barrier(team):
        return
    for member in range(team.size):
        least = min(least, sums[member])
    for v in range(lo, hi):
        if mark[v] == both:
            mark[v] = DONE
            parent[v] = least
        elif mark[v] != DONE:
            mark[v] = OPEN


@kernel
def _largest(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    quick: bool,
    mark: Array,
    queue: Array,
    parent: Array,
    buffers: Array,
    scores: Array,
    pivots: Array,
    sums: Array,
    shared: Array,
) -> None:
    """Start, and the component of the pivot; shared[_FOUND] says whether it was found.

    If not, all vertices are open afterwards.
    """
    n = mark.size
    _start(team, indptr, indices, in_indptr, in_indices, quick, mark, parent, scores, pivots)
    if barrier(team):
        return
    pivot = _best_pivot(team, scores, pivots)
    found = False
    if pivot >= 0:
        if team.rank == 0:
            shared[_PROBED] = np.int64(
                probe(indptr, indices, mark, pivot, PROBE, queue)
                and probe(in_indptr, in_indices, mark, pivot, PROBE, queue)
            )
        if barrier(team):
            return
        found = shared[_PROBED] != 0
        budget, levels = n // 8 + 1, LEVELS if quick else n
        ahead, back = (indptr, indices), (in_indptr, in_indices)
        here, bit = OPEN, FORWARD
        for _ in range(2):
            if found:
                found = 0 <= reach(
                    team, ahead[0], ahead[1], back[0], back[1], mark, here, bit,
                    pivot, budget, levels, queue, buffers, shared,
                )  # fmt: skip
            if barrier(team):  # `shared` is used again
                return
            ahead, back = back, ahead
            here, bit = FORWARD, BACKWARD
    if found:
        _finish_largest(team, mark, parent, sums)
        if barrier(team):
            return
        if quick:
            _trim_once(team, indptr, indices, in_indptr, in_indices, mark, parent)
    else:
        lo, hi = share(team, n)
        mark[lo:hi] = OPEN
    if team.rank == 0:
        shared[_FOUND] = np.int64(found)


@kernel
def _trim(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    loops: bool,
    mark: Array,
    degrees: Array,
    following: Array,
    parent: Array,
    shared: Array,
) -> None:
    trim(
        team, indptr, indices, in_indptr, in_indices, loops, shared[_FOUND] == 0,
        mark, parent, degrees[0], degrees[1], following,
    )  # fmt: skip


@kernel
def _colours(
    team: Any,
    in_indptr: Array,
    in_indices: Array,
    few: int,
    mark: Array,
    following: Array,
    listed: Array,
    colour: Array,
    parent: Array,
    sums: Array,
    shared: Array,
) -> None:
    rounds = colour_rounds(
        team, in_indptr, in_indices, mark, parent, listed, colour, following, few, sums, shared
    )
    if team.rank == 0:
        shared[_ROUNDS] = rounds


@kernel
def _tasks(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    mark: Array,
    degrees: Array,
    queue: Array,
    following: Array,
    listed: Array,
    task: Array,
    parent: Array,
    sums: Array,
    shared: Array,
) -> None:
    kind = parent.dtype.type
    size = list_open(team, mark, listed, sums)
    if size < 0:
        return
    lo, hi = share(team, mark.size)
    for v in range(lo, hi):
        task[v] = kind(0) if mark[v] == OPEN else kind(-1)
    if barrier(team):
        return
    rounds = task_rounds(
        team, indptr, indices, in_indptr, in_indices, mark, parent,
        listed, size, queue, task, following, degrees, shared,
    )  # fmt: skip
    if team.rank == 0:
        shared[_ROUNDS] = rounds


@kernel
def _finish(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    low: Array,
    queue: Array,
    following: Array,
    parent: Array,
    labels: Array,
    sums: Array,
) -> None:
    """What is open, by one member; then the numbers."""
    kind = low.dtype.type
    lo, hi = share(team, low.size)
    for v in range(lo, hi):
        low[v] = kind(0) if mark[v] == OPEN else kind(-1)
    if barrier(team):
        return
    if team.rank == 0:
        tarjan(team, indptr, indices, low, following, queue, parent)
    if barrier(team):
        return
    number_roots(team, parent, labels, sums)


@kernel
def _serial(
    team: Any,
    indptr: Array,
    indices: Array,
    low: Array,
    edge: Array,
    path: Array,
    parent: Array,
    sums: Array,
) -> None:
    """All by one member.  The labels take the place of the parents, from the first vertex on:
    the smallest of a component comes before the others, so its label is there already.
    """
    low[:] = 0
    tarjan(team, indptr, indices, low, edge, path, parent)
    if stopping(team):
        return
    number = parent.dtype.type(0)
    for v in range(np.uint64(parent.size)):
        up = parent[v]
        parent[v] = select(up == v, number, parent[up])
        number += parent.dtype.type(up == v)
    sums[team.size] = number


def label(
    view: Any, inward: Any, loops: bool, method: str, *, threads: int | None = None
) -> tuple[int, Array, int]:
    n = view.n
    kind = view.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    labels = np.empty(n, kind)
    if n == 0:
        return 0, labels, 0
    out = (view.indptr, view.indices.view(unsigned))
    if method == "tarjan":
        team = crew(1, work=view.nnz + n)
        sums = np.zeros(2, np.int64)
        team.run(_serial, *out, *np.empty((3, n), unsigned), labels.view(unsigned), sums)
        return int(sums[-1]), labels, 1
    team = crew(threads, work=view.nnz + n)
    into = (inward.indptr, inward.indices.view(unsigned))
    parent, queue, following = np.empty((3, n), unsigned)
    degrees = np.empty((2, n), unsigned)
    mark = np.empty(n, np.uint8)
    sums = np.zeros(team.size + 1, np.int64)
    shared = np.zeros(SHARED, np.int64)
    team.run(
        _largest, *out, *into, method == "auto", mark, queue, parent,
        np.empty((team.size, BUFFER), unsigned),
        np.empty(team.size, np.float64), np.empty(team.size, np.int64), sums, shared,
    )  # fmt: skip
    if method == "auto" and not shared[_FOUND]:
        return label(view, None, loops, "tarjan")
    if method in ("multistep", "forward_backward"):
        listed, colour = np.empty((2, n), unsigned)
        team.run(_trim, *out, *into, loops, mark, degrees, following, parent, shared)
        if method == "multistep":
            few = FEW_FOR_TWO if team.size <= 2 else FEW_VERTICES
            team.run(_colours, *into, few, mark, following, listed, colour, parent, sums, shared)
        else:
            team.run(
                _tasks, *out, *into, mark, degrees, queue, following,
                listed, colour, parent, sums, shared,
            )  # fmt: skip
    team.run(_finish, *out, mark, degrees[0], queue, following, parent, labels, sums)
    return int(sums[-1]), labels, 3 + int(shared[_ROUNDS])
