"""Rabbit order on a team: the tree of joins (__init__.py), then depth first through each tree.

Children lie in one list, by parent and then by (round, larger degree, vertex): stable sorts of the
vertices that joined, which are by (round, vertex), first by round and degree and then by parent.
A member takes trees, and places the vertices of each in its part of the order.  The end of that
part is the stack: placed and stacked vertices together are at most those of the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, next_chunk, share
from matchwood.ordering.rabbit import Begun, Joined, join_all
from matchwood.primitives.sort import radix_sort

Array = np.ndarray[Any, Any]

CHUNK = 16  # trees that a member takes at a time


@device
def _walk(team: Any, root: Any, begins: Array, children: Array, part: Array) -> bool:
    """Fill `part` with the vertices of a tree, depth first.  True: the team stops."""
    placed, top = 0, part.size - 1
    part[top] = root
    while placed < part.size:
        if interrupted(team, placed):
            return True
        v = np.uint64(part[top])
        top += 1
        part[placed] = v
        placed += 1
        first, last = np.int64(begins[v]), np.int64(begins[v + np.uint64(1)])
        for k in range(last - 1, first - 1, -1):  # the first child ends on top
            top -= 1
            part[top] = children[k]
    return False


@kernel
def _depth_first(
    team: Any, roots: Array, starts: Array, begins: Array, children: Array, perm: Array
) -> None:
    first = next_chunk(team, roots.size, CHUNK)
    while first >= 0:
        for t in range(first, min(first + CHUNK, roots.size)):
            part = perm[starts[t] : starts[t + 1]]
            if _walk(team, roots[t], begins, children, part):
                return
        first = next_chunk(team, roots.size, CHUNK)


@kernel
def _begin(team: Any, indptr: Array, begun: Begun, most: Array) -> None:
    """Every vertex a community; most[member] = the largest degree of its vertices."""
    largest = np.int64(0)
    lo, hi = share(team, begun.parent.size)
    for v in range(lo, hi):
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        largest = max(largest, degree)
        begun.parent[v] = v
        begun.names[v] = v
        begun.round[v] = 0
        begun.sizes[v] = 1
        begun.degree[v] = degree
    most[team.me] = largest


@kernel
def _note(
    team: Any, target: Array, names: Array, number: int, parent: Array, when: Array,
    movers: Array, sums: Array,
) -> None:  # fmt: skip
    """Store the joins of a round by name; movers[: sums[team.size]] are the vertices that joined.

    Names are distinct, so no two members write one word.
    """
    lo, hi = share(team, target.size)
    count = 0
    for v in range(lo, hi):
        count += target[v] != v
    sums[team.me] = count
    if barrier(team):
        return
    place = total = np.int64(0)
    for member in range(team.size):
        if member == team.me:
            place = total
        total += sums[member]
    if team.me == 0:
        sums[team.size] = total
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        if target[v] != v:
            name = names[v]
            parent[name] = names[target[v]]
            when[name] = number
            movers[place] = name
            place += 1


@kernel
def _sort_keys(
    team: Any, sequence: Array, when: Array, degree: Array, most: int, shift: int, keys: Array
) -> None:
    """Keys that ascend by (round, larger degree first)."""
    lo, hi = share(team, sequence.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        v = sequence[k]
        keys[k] = (np.int64(when[v]) << shift) | (most - degree[v])


@kernel
def _parents(team: Any, sequence: Array, parent: Array, above: Array) -> None:
    lo, hi = share(team, sequence.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        above[k] = parent[sequence[k]]


@kernel
def _first_children(team: Any, above: Array, begins: Array) -> None:
    """begins[v]: where the children of v begin, whose parents are `above`, ascending."""
    lo, hi = share(team, above.size)
    for k in range(lo, hi):
        last = np.int64(above[k - 1]) if k > 0 else np.int64(-1)
        for v in range(last + 1, np.int64(above[k]) + 1):
            begins[v] = k
    if team.me == team.size - 1:
        last = np.int64(above[above.size - 1]) if above.size > 0 else np.int64(-1)
        for v in range(last + 1, begins.size):
            begins[v] = above.size


class Notes:
    """The vertices that joined, room[:size], by (round, vertex)."""

    def __init__(self, n: int, kind: Any, threads: int | None) -> None:
        self.room, self.size, self._threads = np.empty(n, kind), 0, threads

    def __call__(self, target: Array, names: Array, number: int, parent: Array, when: Array) -> int:
        """Store the joins of a round: see `join_all`."""
        team = crew(self._threads, work=target.size)
        sums = np.zeros(team.size + 1, np.int64)
        room = self.room[self.size :]
        team.run(_note, target, names, number, parent, when, room, sums)
        joined = int(sums[-1])
        self.size += joined
        return joined


def order_of(tree: Joined, sequence: Array, threads: int | None) -> Array:
    n, kind = tree.parent.size, tree.parent.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=4 * n)
    most = int(tree.degree.max(initial=0))
    shift = most.bit_length()
    narrow = shift + tree.rounds.bit_length() <= 32
    keys = np.empty(sequence.size, np.uint32 if narrow else np.uint64)
    team.run(_sort_keys, sequence, tree.round, tree.degree, most, shift, keys)
    sequence = radix_sort(keys, sequence, threads=threads)[1]
    above = np.empty(sequence.size, unsigned)
    team.run(_parents, sequence, tree.parent, above)
    above, children = radix_sort(above, sequence, threads=threads)
    begins, starts = np.empty(n + 1, kind), np.zeros(tree.roots.size + 1, np.int64)
    team.run(_first_children, above, begins)
    np.cumsum(tree.sizes, out=starts[1:])
    perm = np.empty(n, kind)
    team.run(_depth_first, tree.roots, starts, begins, children, perm)
    return perm


def order(view: Any, *, threads: int | None = None) -> tuple[Array, Array, Array, dict[str, int]]:
    n, kind = view.n, view.indices.dtype
    team = crew(threads, work=n)
    parent, names, degree = np.empty(n, kind), np.empty(n, kind), np.empty(n, np.int64)
    begun = Begun(parent, np.empty(n, np.int32), names, np.empty(n, np.int64), degree, 0)
    most = np.zeros(team.size, np.int64)
    team.run(_begin, view.indptr, begun, most)
    notes = Notes(n, kind, threads)
    tree = join_all(view, begun._replace(longest=int(most.max())), "cpu", threads, notes)
    counters = {"rounds": tree.rounds, "communities": int(tree.roots.size)}
    return order_of(tree, notes.room[: notes.size], threads), tree.parent, tree.round, counters
