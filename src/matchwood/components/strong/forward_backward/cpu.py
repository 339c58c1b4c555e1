"""Forward-backward search as independent tasks.

A task is a set of vertices that no component crosses.  Its pivot reaches a part F of it and is
reached from a part B; the component of the pivot is F and B, and no component crosses the
borders of what remains: F without B, B without F, and the rest.  These three are tasks of the next
round, all of which are worked at side by side, one member to a task.

A task is a range of `listed`, and its name the place where that starts: `task[v]` of all its
vertices.  An arc is followed when both ends have one name.  Names of live tasks differ, since
their ranges do; vertices whose component is known have the name NO_TASK.

The pivot is drawn by a hash of the range, so a task is expected to fall apart into much smaller
ones; should it not, ROUNDS ends it, and the rest is one member's work (cpu_tarjan.py).

Races: none but on `task`, read by members that look at neighbours in other tasks: what they see
is a name that is not theirs, old or new.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.largest.cpu_reach import BACKWARD, DONE, FORWARD, OPEN
from matchwood.primitives.hashing.cpu import mix64
from matchwood.teams import (
    atomic_add,
    barrier,
    device,
    load_relaxed,
    next_chunk,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

ROUNDS = 64  # at most; 10,000 cycles in a chain take 20

_LINE = 16
TASK_WORDS = 3 * _LINE  # tasks of three rounds, in turn: this one's, the next one's, one to empty


@device
def _search(
    team: Any,
    indptr: Array,
    indices: Array,
    mark: Array,
    bit: Any,
    task: Array,
    name: Any,
    pivot: Any,
    queue: Array,
) -> int:
    """Set `bit` where the pivot reaches within the task; returns how many."""
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
    """Reorder listed[start:end]: the component, F, B, the rest; where the last three start.

    Names the three, and finishes the component.
    """
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
def task_rounds(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    mark: Array,
    parent: Array,
    listed: Array,
    size: int,
    spare: Array,
    task: Array,
    ends: Array,
    starts: Array,
    shared: Array,
) -> int:
    """Components of the `size` open vertices in `listed`, in at most ROUNDS rounds.

    On entry task[v] is 0 for them and not 0 elsewhere.  `ends[start]` is where a task ends;
    `starts`, the tasks of this round and of the next, is of shape (2, n).  All members call,
    after a barrier; ends with one.  Returns the rounds, -1: the team stops.
    """
    if team.rank == 0:
        for i in range(3):
            shared[i * _LINE] = 0
        if size > 0:
            shared[0] = 1
            starts[0, 0] = 0
            ends[0] = size
    if barrier(team):
        return -1
    rounds = 0
    for turn in range(ROUNDS):
        now, after = turn % 2, (turn + 1) % 2
        total = load_relaxed(shared, turn % 3 * _LINE)
        if total == 0:
            break
        rounds = turn + 1
        if team.rank == 0:
            store_relaxed(shared, (turn + 2) % 3 * _LINE, 0)
        chunk = next_chunk(team, total, 1)
        while chunk >= 0:
            start = np.int64(starts[now, chunk])
            end = np.int64(ends[start])
            draw = mix64(np.uint64(start) ^ (np.uint64(end) << np.uint64(32)))
            pivot = listed[np.uint64(start) + draw % np.uint64(end - start)]
            name = task.dtype.type(start)
            queue = spare[start:end]
            _search(team, indptr, indices, mark, FORWARD, task, name, pivot, queue)
            _search(team, in_indptr, in_indices, mark, BACKWARD, task, name, pivot, queue)
            if stopping(team):
                break
            first_f, first_b, first_rest = _split(listed, spare, mark, task, parent, start, end)
            if first_f < first_b:
                ends[first_f] = first_b
                place = atomic_add(shared, (turn + 1) % 3 * _LINE, 1)
                starts[after, place] = first_f
            if first_b < first_rest:
                ends[first_b] = first_rest
                place = atomic_add(shared, (turn + 1) % 3 * _LINE, 1)
                starts[after, place] = first_b
            if first_rest < end:
                ends[first_rest] = end
                place = atomic_add(shared, (turn + 1) % 3 * _LINE, 1)
                starts[after, place] = first_rest
            chunk = next_chunk(team, total, 1)
        if barrier(team):
            return -1
    return rounds
