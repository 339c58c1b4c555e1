"""Strongly connected components on a team.  The rule and the papers: ../__init__.py.

Tarjan's search by one member comes first, the quickest way for one thread.  With more, these steps,
a kernel each, so that a method compiles what it uses:

    `find_largest`      the component of a vertex of high degree, the giant one if there is one
    `trim`              vertices with nothing left to them, or from them, one after the other
    `find_by_colours`   "multistep": many components at once by colours, if much is left
    `find_by_tasks`     "forward_backward": sets to be searched side by side
    `_finish`           what is left, by one member; components numbered by their smallest vertex

"auto" does the first and the last.  The first two: largest.py and steps.py, which says what is
known of a vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu.largest import BUFFER, FOUND, LARGEST_WORDS, find_largest
from matchwood.components.strong.cpu.steps import (
    BACKWARD,
    DONE,
    FORWARD,
    LINE,
    OPEN,
    Arcs,
    arcs_of,
    list_open,
    trim,
)
from matchwood.engines.cpu import (
    atomic_add,
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
from matchwood.engines.cpu.hints import select
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.number.cpu import number_roots

Array = np.ndarray[Any, Any]

FEW_VERTICES = 100_000  # when no more are open, one member does the rest (multistep paper)
FEW_VERTICES_FOR_TWO = 1 << 62  # members: all, since colouring takes more than twice the work


# Tarjan's algorithm ([1] in ../__init__.py) without recursion; each arc is read once
#
# `low[v]` is 0 where v is not seen yet, DONE where its component is known, and else the number of
# the earliest vertex known to be reachable from v that is still open.  DONE is more than every
# number, so an arc into a finished component changes nothing, without a test for it.
#
# The way from the root to the current vertex is path[0 : depth]; beside it `edge`, where to go on
# in each row, with the highest bit set where the vertex is known to reach an earlier one.  Vertices
# left behind, whose component is open, lie at the other end of `path`: one array serves both, since
# no vertex is in both.  A vertex that is a component by itself is never put there.


@device
def tarjan(team: Any, arcs: Arcs, low: Array, edge: Array, path: Array, parent: Array) -> None:
    """parent[v] = the smallest vertex of v's component, where low[v] == 0; elsewhere it is DONE."""
    indptr, indices = arcs
    unsigned = low.dtype.type
    zero, one = unsigned(0), unsigned(1)
    done = unsigned(-1)
    lowered = np.uint64(1) << np.uint64(8 * low.itemsize - 1)
    size = np.uint64(path.size)
    bottom = size  # path[bottom:] are the vertices left behind
    clock = zero
    for root in range(size):
        if interrupted(team, np.int64(root)):
            return
        if low[root] != zero:
            continue
        depth = np.uint64(0)
        v = unsigned(root)
        clock += one
        first = mine = clock  # the number of v, 0 once it is no root; what is to become low[v]
        low[v] = mine
        k = np.uint64(indptr[v])
        end = np.uint64(indptr[v + one])
        while True:
            while k < end:
                w = indices[k]
                k += np.uint64(1)
                there = low[w]
                if there == zero:
                    low[v] = mine
                    path[depth] = v
                    edge[depth] = k | (lowered if mine != first else np.uint64(0))
                    depth += np.uint64(1)
                    v = w
                    clock += one
                    first = mine = clock
                    low[v] = mine
                    k = np.uint64(indptr[v])
                    end = np.uint64(indptr[v + one])
                    if interrupted(team, np.int64(clock)):
                        return
                else:
                    mine = min(mine, there)
            if mine == first:
                # no vertex before v is reached: v and what was left behind since are a component
                least = v
                if bottom < size and low[path[bottom]] >= first:
                    top = bottom
                    while top < size and low[path[top]] >= first:
                        least = min(least, path[top])
                        top += np.uint64(1)
                    for i in range(bottom, top):
                        parent[path[i]] = least
                        low[path[i]] = done
                    bottom = top
                parent[v] = least
                low[v] = done
                if depth == np.uint64(0):
                    break
                depth -= np.uint64(1)
                v = path[depth]
                mine = low[v]
                k = np.uint64(edge[depth])
                first = zero if (k & lowered) != np.uint64(0) else mine
            else:
                low[v] = mine
                bottom -= np.uint64(1)
                path[bottom] = v
                depth -= np.uint64(1)
                v = path[depth]
                there = low[v]
                k = np.uint64(edge[depth])
                first = zero if (k & lowered) != np.uint64(0) or mine < there else there
                mine = min(there, mine)
            k &= ~lowered
            end = np.uint64(indptr[v + one])


@kernel
def _serial(
    team: Any, arcs: Arcs, low: Array, edge: Array, path: Array, parent: Array, count: Array
) -> None:
    """Label all by one member.  Labels replace the parents, from the first vertex on: the smallest
    of a component is visited before the others, so its label is there already.
    """
    low[:] = 0
    tarjan(team, arcs, low, edge, path, parent)
    if stopping(team):
        return
    number = parent.dtype.type(0)
    for v in range(np.uint64(parent.size)):
        up = parent[v]
        parent[v] = select(up == v, number, parent[up])
        number += parent.dtype.type(up == v)
    count[0] = number


def label_alone(view: Any) -> tuple[int, Array, int]:
    """How many components there are, the component of each vertex, and rounds: one."""
    arcs, n = arcs_of(view), view.n
    labels, count = np.empty(n, view.indptr.dtype), np.zeros(1, np.int64)
    kind = arcs.indices.dtype
    team = crew(1, work=view.nnz + n)
    team.run(_serial, arcs, *np.empty((3, n), kind), labels.view(kind), count)
    return int(count[0]), labels, 1


# Multistep: many components at once by colours, after the largest is gone ([3] in ../__init__.py)
#
# Every open vertex gets the largest vertex that reaches it as its colour.  A vertex with its own
# colour is a root: the vertices of that colour from which it can be reached are its component.
# Components of different roots have different colours, so members find them side by side.
#
# A colour that is known to reach v is followed by its own colour (`colour[colour[v]]`), which
# reaches v too, so that long ways take few passes.  Passes and rounds are limited all the same:
# what is left afterwards is one member's work (`tarjan`), however the vertices are numbered.
#
# Races.  `colour[v]` is written by the member that has v in its chunk, only ever upwards, to
# vertices that reach v; the last pass changes nothing, so the colours do not depend on scheduling.
# In the search from a root, all vertices touched have that root's colour.

COLOUR_ROUNDS = 8  # rounds, at most; each finds the components of all roots
PASSES = 24  # passes of a round, at most
COLOUR_CHUNK = 512  # vertices that a member takes at a time

# words of `shared`: colours changed in this pass, the next, one to be emptied
COLOUR_WORDS = 3 * LINE


@device
def _spread(team: Any, into: Arcs, mark: Array, listed: Array, size: int, colour: Array) -> int:
    """A pass: each v takes the largest colour with an arc to it; returns how many changed."""
    in_indptr, in_indices = into
    one = listed.dtype.type(1)
    changed = 0
    chunk = next_chunk(team, size, COLOUR_CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + COLOUR_CHUNK, size)):
            v = listed[i]
            before = load_relaxed(colour, v)
            best = before
            for k in range(np.uint64(in_indptr[v]), np.uint64(in_indptr[v + one])):
                u = in_indices[k]
                if mark[u] == OPEN:
                    best = max(best, load_relaxed(colour, u))
            best = max(best, load_relaxed(colour, best))
            if best != before:
                store_relaxed(colour, v, best)
                changed += 1
        chunk = next_chunk(team, size, COLOUR_CHUNK)
    return changed


@device
def _collect(
    into: Arcs, mark: Array, root: Any, colour: Array, following: Array, parent: Array
) -> None:
    """Find the component of a root: a search backwards within its colour."""
    in_indptr, in_indices = into
    one, no_vertex = colour.dtype.type(1), colour.dtype.type(-1)
    # `head` and `tail` of a list linked through `following`, which keeps all of the component
    head = tail = root
    following[root] = no_vertex
    store_relaxed(mark, root, DONE)
    least = root
    while head != no_vertex:
        least = min(least, head)
        for k in range(np.uint64(in_indptr[head]), np.uint64(in_indptr[head + one])):
            u = in_indices[k]
            # mark first: colours of vertices that are done may be of an earlier round
            if load_relaxed(mark, u) == OPEN and colour[u] == root:
                store_relaxed(mark, u, DONE)
                following[tail] = u
                following[u] = no_vertex
                tail = u
        head = following[head]
    head = root
    while head != no_vertex:
        parent[head] = least
        head = following[head]


@kernel
def find_by_colours(
    team: Any, into: Arcs, few: int, mark: Array, following: Array, listed: Array, colour: Array,
    parent: Array, sums: Array, shared: Array,
) -> None:  # fmt: skip
    """Components of open vertices, until at most `few` are open; sums[team.size] = rounds."""
    step = rounds = 0
    for turn in range(COLOUR_ROUNDS):
        size = list_open(team, mark, listed, sums)
        if size < 0:
            return
        if size <= few:
            break
        rounds = turn + 1
        lo, hi = share(team, size)
        for i in range(lo, hi):
            colour[listed[i]] = listed[i]
        if team.me == 0:
            for i in range(3):
                shared[i * LINE] = 0
        if barrier(team):
            return
        settled = False
        for _ in range(PASSES):
            if team.me == 0:
                store_relaxed(shared, (step + 1) % 3 * LINE, 0)
            changed = _spread(team, into, mark, listed, size, colour)
            atomic_add(shared, step % 3 * LINE, changed)
            if barrier(team):
                return
            settled = load_relaxed(shared, step % 3 * LINE) == 0
            step += 1
            if settled:
                break
        if not settled:
            break
        chunk = next_chunk(team, size, COLOUR_CHUNK)
        while chunk >= 0:
            for i in range(chunk, min(chunk + COLOUR_CHUNK, size)):
                root = listed[i]
                if colour[root] == root:
                    _collect(into, mark, root, colour, following, parent)
            chunk = next_chunk(team, size, COLOUR_CHUNK)
        if barrier(team):
            return
    if team.me == 0:
        sums[team.size] = rounds


# Forward-backward search as independent tasks ([2] in ../__init__.py)
#
# A task is a set of vertices that no component crosses.  Its pivot reaches a part F of it and is
# reached from a part B; the component of the pivot is F and B, and no component crosses the borders
# of what remains: F without B, B without F, and the rest.  These three are tasks of the next round,
# all of which are searched at the same time, one member per task.
#
# A task is a range of `listed`, and its name the place where that starts: `task[v]` of all its
# vertices.  An arc is followed when both ends have one name.  Names of live tasks differ, since
# their ranges do; vertices whose component is known have the name -1, which no task has.
#
# The pivot is drawn by a hash of the range, so a task is expected to fall apart into much smaller
# ones; should it not, TASK_ROUNDS ends it, and the rest is one member's work (`tarjan`).
#
# Races: none but on `task`, read by members whose vertices have neighbours in other tasks: what
# they read is the name of another task, old or new.

TASK_ROUNDS = 64  # at most; 10,000 cycles in a chain take 20

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


@kernel
def find_by_tasks(
    team: Any, out: Arcs, into: Arcs, mark: Array, starts: Array, spare: Array, ends: Array,
    listed: Array, task: Array, parent: Array, sums: Array, shared: Array,
) -> None:  # fmt: skip
    """Components of open vertices, in at most TASK_ROUNDS rounds; sums[team.size] = rounds.

    `ends[start]` is where a task ends; `starts`, the tasks of this round and of the next, is of
    shape (2, n).
    """
    kind = parent.dtype.type
    size = list_open(team, mark, listed, sums)
    if size < 0:
        return
    lo, hi = share(team, mark.size)
    for v in range(lo, hi):
        task[v] = kind(0) if mark[v] == OPEN else kind(-1)
    if team.me == 0:
        for i in range(3):
            shared[i * LINE] = 0
        if size > 0:
            shared[0] = 1
            starts[0, 0] = 0
            ends[0] = size
    if barrier(team):
        return
    rounds = 0
    for turn in range(TASK_ROUNDS):
        now, after = turn % 2, (turn + 1) % 2
        total = load_relaxed(shared, turn % 3 * LINE)
        if total == 0:
            break
        rounds = turn + 1
        if team.me == 0:
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
            for first, last in ((first_f, first_b), (first_b, first_rest), (first_rest, end)):
                if first < last:
                    ends[first] = last
                    place = atomic_add(shared, (turn + 1) % 3 * LINE, 1)
                    starts[after, place] = first
            chunk = next_chunk(team, total, 1)
        if barrier(team):
            return
    if team.me == 0:
        sums[team.size] = rounds


# All of it

SHARED_WORDS = max(LARGEST_WORDS, COLOUR_WORDS, TASK_WORDS)


@kernel
def _finish(
    team: Any, out: Arcs, mark: Array, low: Array, queue: Array, following: Array, parent: Array,
    labels: Array, sums: Array,
) -> None:  # fmt: skip
    """Find the components of open vertices, by one member; then number all components."""
    kind = low.dtype.type
    lo, hi = share(team, low.size)
    for v in range(lo, hi):
        low[v] = kind(0) if mark[v] == OPEN else kind(-1)
    if barrier(team):
        return
    if team.me == 0:
        tarjan(team, out, low, following, queue, parent)
    if barrier(team):
        return
    number_roots(team, parent, labels, sums)


def label(
    view: Any, inward: Any, loops: bool, method: str, *, threads: int | None = None
) -> tuple[int, Array, int]:
    """How many components there are, the component of each vertex, and rounds."""
    n = view.n
    labels = np.empty(n, view.indptr.dtype)
    if n == 0:
        return 0, labels, 0
    if method == "tarjan":
        return label_alone(view)
    out, into = arcs_of(view), arcs_of(inward)
    unsigned = out.indices.dtype
    team = crew(threads, work=view.nnz + n)
    parent, queue, following = np.empty((3, n), unsigned)
    degrees = np.empty((2, n), unsigned)
    mark = np.empty(n, np.uint8)
    sums = np.zeros(team.size + 1, np.int64)
    shared = np.zeros(SHARED_WORDS, np.int64)
    team.run(
        find_largest, out, into, method == "auto", mark, queue, parent,
        np.empty((team.size, BUFFER), unsigned),
        np.empty(team.size, np.float64), np.empty(team.size, np.int64), sums, shared,
    )  # fmt: skip
    found = bool(shared[FOUND])
    if method == "auto" and not found:
        return label_alone(view)
    if method != "auto":
        listed, colour = np.empty((2, n), unsigned)
        team.run(trim, out, into, loops, not found, mark, parent, degrees, following)
        if method == "multistep":
            few = FEW_VERTICES_FOR_TWO if team.size <= 2 else FEW_VERTICES
            team.run(
                find_by_colours, into, few, mark, following, listed, colour, parent, sums, shared
            )
        else:
            team.run(
                find_by_tasks, out, into, mark, degrees, queue, following,
                listed, colour, parent, sums, shared,
            )  # fmt: skip
    rounds = int(sums[-1])
    team.run(_finish, out, mark, degrees[0], queue, following, parent, labels, sums)
    return int(sums[-1]), labels, 3 + rounds
