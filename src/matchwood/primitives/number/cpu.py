"""Roots found and numbered by a team; called by the kernels of problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    atomic_min,
    barrier,
    crew,
    device,
    kernel,
    load_relaxed,
    share,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

NO_OFFER = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # the word of a root without an offer


@device
def flatten(up: Array, lo: int, hi: int) -> bool:
    """up[v] = the root of v for v in lo..hi; no tree may be hooked under another meanwhile.

    Every vertex on the way gets the root as its parent too, so a chain costs its length once.
    Races: members store final roots only.  False: there is no root, the way is a cycle.
    """
    for v in range(lo, hi):
        above = load_relaxed(up, v)
        root = load_relaxed(up, above)
        if root == above:
            continue
        steps = 0
        while True:
            higher = load_relaxed(up, root)
            if higher == root:
                break
            root = higher
            steps += 1
            if steps > up.size:
                return False
        at = up.dtype.type(v)
        while True:
            above = load_relaxed(up, at)
            if above == root:
                break
            store_relaxed(up, at, root)
            at = above
    return True


@device
def number_wanted(
    team: Any, root: Array, size: int, offers: Array, every: bool, numbers: Array, sums: Array
) -> Any:
    """numbers[v] = how many wanted roots are before root[v], v < size; returns how many there are.

    Wanted are all roots if `every`, else those with an offer; the numbers of other trees mean
    nothing.  -1: the team stops.  `sums` has a word for each member; a barrier is needed before its
    next use, and before the numbers of other members are read.
    """
    lo, hi = share(team, size)
    count = 0
    for v in range(lo, hi):
        count += root[v] == v and (every or offers[v] != NO_OFFER)
    sums[team.me] = count
    if barrier(team):
        return np.int64(-1)
    number = total = np.int64(0)
    for member in range(team.size):
        if member == team.me:
            number = total
        total += sums[member]
    if total == 1:
        numbers[lo:hi] = 0
        return total
    # Vertices that are no wanted roots get a number here too, which the second loop replaces.  So
    # there is no branch to predict.
    for v in range(lo, hi):
        numbers[v] = number
        number += root[v] == v and (every or offers[v] != NO_OFFER)
    if barrier(team):
        return np.int64(-1)
    for v in range(lo, hi):
        numbers[v] = numbers[root[v]]
    return total


@device
def number_roots(team: Any, root: Array, numbers: Array, sums: Array) -> bool:
    """`number_wanted` for all roots, sums[team.size] of them.  True: the team stops."""
    total = number_wanted(team, root, root.size, root, True, numbers, sums)
    if team.me == team.size - 1 and total >= 0:
        sums[team.size] = total
    return bool(total < 0)


@kernel
def _number(
    team: Any, labels: Array, first: Array, root: Array, numbers: Array, sums: Array
) -> None:
    """first[c] = the smallest vertex of label c; numbers by that."""
    n = labels.size
    lo, hi = share(team, n)
    for v in range(lo, hi):
        first[v] = n
    if barrier(team):
        return
    for v in range(lo, hi):
        if v < load_relaxed(first, labels[v]):
            atomic_min(first, labels[v], v)
    if barrier(team):
        return
    for v in range(lo, hi):
        root[v] = first[labels[v]]
    if barrier(team):
        return
    number_roots(team, root, numbers, sums)


def number_labels(labels: Array, *, threads: int | None = None) -> tuple[int, Array]:
    n = labels.size
    team = crew(threads, work=n)
    kind = np.uint32 if labels.dtype == np.int32 else np.uint64
    numbers = np.empty(n, labels.dtype)
    sums = np.zeros(team.size + 1, np.int64)
    if n:
        first, root = np.empty(n, kind), np.empty(n, kind)
        team.run(_number, labels.view(kind), first, root, numbers, sums)
    return int(sums[-1]), numbers
