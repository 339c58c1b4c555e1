"""Rabbit order on a team: the tree of joins (__init__.py), then depth first through each tree.

Children lie in one list, by parent and then by (round, larger degree, vertex): stable sorts of the
vertices that joined, which are by (round, vertex), first by round and degree and then by parent.
A member takes trees, and places the vertices of
each in its part of the order.  The end of that part is the stack: placed and stacked vertices
together are at most those of the tree.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, next_chunk, share
from matchwood.ordering.rabbit import Joined, join_all
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
        v = sequence[k]
        keys[k] = (np.int64(when[v]) << shift) | (most - degree[v])


@kernel
def _parents(team: Any, sequence: Array, parent: Array, above: Array) -> None:
    lo, hi = share(team, sequence.size)
    for k in range(lo, hi):
        above[k] = parent[sequence[k]]


@kernel
def _begin(team: Any, above: Array, begins: Array) -> None:
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


def note(
    target: Array, names: Array, number: int, parent: Array, when: Array, *, threads: int | None
) -> Array:
    """Store the joins of a round: see `join_all`."""
    team = crew(threads, work=target.size)
    movers, sums = np.empty_like(target), np.zeros(team.size + 1, np.int64)
    team.run(_note, target, names, number, parent, when, movers, sums)
    return movers[: sums[-1]]


def order_of(tree: Joined, threads: int | None) -> Array:
    n, kind, sequence = tree.parent.size, tree.parent.dtype, tree.sequence
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=4 * n)
    most = int(tree.degree.max(initial=0))
    shift = most.bit_length()
    keys = np.empty(
        sequence.size, np.uint32 if shift + tree.rounds.bit_length() <= 32 else np.uint64
    )
    team.run(_sort_keys, sequence, tree.round, tree.degree, most, shift, keys)
    sequence = radix_sort(keys, sequence, threads=threads)[1]
    above = np.empty(sequence.size, unsigned)
    team.run(_parents, sequence, tree.parent, above)
    above, children = radix_sort(above, sequence, threads=threads)
    begins, starts = np.empty(n + 1, kind), np.zeros(tree.roots.size + 1, np.int64)
    team.run(_begin, above, begins)
    np.cumsum(tree.sizes, out=starts[1:])
    perm = np.empty(n, kind)
    team.run(_depth_first, tree.roots, starts, begins, children, perm)
    return perm


def order(view: Any, *, threads: int | None = None) -> tuple[Array, Array, Array, dict[str, int]]:
    tree = join_all(view, "cpu", threads, functools.partial(note, threads=threads))
    counters = {"rounds": tree.rounds, "communities": int(tree.roots.size)}
    return order_of(tree, threads), tree.parent, tree.round, counters
