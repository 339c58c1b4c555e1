"""Forward-backward search as independent tasks.

A task is a set of vertices that no component crosses.  Its pivot reaches a part F of it and is
reached from a part B; the component of the pivot is F and B, and no component crosses the
borders of what remains: F without B, B without F, and the rest.  These three are tasks of the next
round, all of which are searched at the same time, one member per task.

A task is a range of `listed`, and its name the place where that starts: `task[v]` of all its
vertices.  An arc is followed when both ends have one name.  Names of live tasks differ, since
their ranges do; vertices whose component is known have the name -1, which no task has.

The pivot is drawn by a hash of the range, so a task is expected to fall apart into much smaller
ones; should it not, ROUNDS ends it, and the rest is one member's work (tarjan.py).

Races: none but on `task`, read by members whose vertices have neighbours in other tasks: what they
read is the name of another task, old or new.

The paper: [2] in ../__init__.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu.steps import (
    BACKWARD,
    DONE,
    FORWARD,
    LINE,
    OPEN,
    Arcs,
    list_open,
)
from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    device,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]

ROUNDS = 64  # at most; 10,000 cycles in a chain take 20

TASK_WORDS = 3 * LINE  # tasks of three rounds, in turn: this one's, the next one's, one to empty


@device
def _search(
    team: Any, arcs: Arcs, mark: Array, bit: Any, task: Array, name: Any, pivot: Any, queue: Array
) -> int:
    """Set `bit` where the pivot reaches within the task; returns how many."""
    indptr, indices = arcs
    one = task.dtype.type(1)
    queue[0] = pivot
    mark[pivot] |= bit
    tail = 1
    i = 0
    while i < tail:
        if i & 4095 == 4095 and stopping(team):
            return tail
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
            w = indices[k]
            if load_relaxed(task, w) == name and mark[w] & bit == OPEN:
                mark[w] |= bit
                queue[tail] = w
                tail += 1
        i += 1
    return tail


@device
def _split(
    listed: Array, spare: Array, mark: Array, task: Array, parent: Array, start: int, end: int
) -> tuple[int, int, int]:
    """Reorder listed[start:end]: component (finished), F, B, rest; names these, returns starts."""
    both = FORWARD | BACKWARD
    counts_s = counts_f = counts_b = 0
    least = listed.dtype.type(-1)
    for i in range(start, end):
        v = listed[i]
        here = mark[v]
        counts_s += here == both
        counts_f += here == FORWARD
        counts_b += here == BACKWARD
        if here == both:
            least = min(least, v)
    at_s = start
    at_f = first_f = at_s + counts_s
    at_b = first_b = at_f + counts_f
    at_rest = first_rest = at_b + counts_b
    kind = task.dtype.type
    for i in range(start, end):
        v = listed[i]
        here = mark[v]
        if here == both:
            mark[v] = DONE
            parent[v] = least
            store_relaxed(task, v, kind(-1))
            spare[at_s] = v
            at_s += 1
            continue
        mark[v] = OPEN
        if here == FORWARD:
            spare[at_f] = v
            at_f += 1
            store_relaxed(task, v, kind(first_f))
        elif here == BACKWARD:
            spare[at_b] = v
            at_b += 1
            store_relaxed(task, v, kind(first_b))
        else:
            spare[at_rest] = v
            at_rest += 1
            store_relaxed(task, v, kind(first_rest))
    for i in range(start, end):
        listed[i] = spare[i]
    return first_f, first_b, first_rest


@device
def _task_rounds(
    team: Any, out: Arcs, into: Arcs, mark: Array, parent: Array, listed: Array, size: int,
    spare: Array, task: Array, ends: Array, starts: Array, shared: Array,
) -> int:  # fmt: skip
    """Components of the `size` open vertices in `listed`, in at most ROUNDS rounds.

    On entry task[v] is 0 for them and not 0 elsewhere.  `ends[start]` is where a task ends;
    `starts`, the tasks of this round and of the next, is of shape (2, n).  All members call,
    after a barrier; ends with one.  Returns the rounds, -1: the team stops.
    """
    if team.rank == 0:
        for i in range(3):
            shared[i * LINE] = 0
        if size > 0:
            shared[0] = 1
            starts[0, 0] = 0
            ends[0] = size
    if barrier(team):
        return -1
    rounds = 0
    for turn in range(ROUNDS):
        now, after = turn % 2, (turn + 1) % 2
        total = load_relaxed(shared, turn % 3 * LINE)
        if total == 0:
            break
        rounds = turn + 1
        if team.rank == 0:
            store_relaxed(shared, (turn + 2) % 3 * LINE, 0)
        chunk = next_chunk(team, total, 1)
        while chunk >= 0:
            start = np.int64(starts[now, chunk])
            end = np.int64(ends[start])
            draw = mix64(np.uint64(start) ^ (np.uint64(end) << np.uint64(32)))
            pivot = listed[np.uint64(start) + draw % np.uint64(end - start)]
            name = task.dtype.type(start)
            queue = spare[start:end]
            _search(team, out, mark, FORWARD, task, name, pivot, queue)
            _search(team, into, mark, BACKWARD, task, name, pivot, queue)
            if stopping(team):
                break
            first_f, first_b, first_rest = _split(listed, spare, mark, task, parent, start, end)
            if first_f < first_b:
                ends[first_f] = first_b
                place = atomic_add(shared, (turn + 1) % 3 * LINE, 1)
                starts[after, place] = first_f
            if first_b < first_rest:
                ends[first_b] = first_rest
                place = atomic_add(shared, (turn + 1) % 3 * LINE, 1)
                starts[after, place] = first_b
            if first_rest < end:
                ends[first_rest] = end
                place = atomic_add(shared, (turn + 1) % 3 * LINE, 1)
                starts[after, place] = first_rest
            chunk = next_chunk(team, total, 1)
        if barrier(team):
            return -1
    return rounds


@kernel
def find_by_tasks(
    team: Any, out: Arcs, into: Arcs, mark: Array, degrees: Array, queue: Array, following: Array,
    listed: Array, task: Array, parent: Array, sums: Array, shared: Array,
) -> None:  # fmt: skip
    """Components of open vertices; sums[team.size] = rounds."""
    kind = parent.dtype.type
    size = list_open(team, mark, listed, sums)
    if size < 0:
        return
    lo, hi = share(team, mark.size)
    for v in range(lo, hi):
        task[v] = kind(0) if mark[v] == OPEN else kind(-1)
    if barrier(team):
        return
    rounds = _task_rounds(
        team, out, into, mark, parent, listed, size, queue, task, following, degrees, shared
    )
    if team.rank == 0:
        sums[team.size] = rounds
