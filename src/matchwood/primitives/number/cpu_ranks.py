"""Labels that are the smallest vertices of their sets, where vertices lie in stripes.  See dist.py.

Vertex k p + s is place k of rank s.  A root is a vertex that is its own label, and its number is
how many roots are smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.cpu_hints import count_ones, trailing_zeros
from matchwood.teams import crew, interrupted, kernel

Array = np.ndarray[Any, Any]

BITS = 64  # places in a word
ONE = np.uint64(1)


@kernel
def _mark_roots(
    team: Any, labels: Array, p: Any, rank: Any, roots: Array, others: Array, counts: Array
) -> None:
    """One member.  A bit for each root, and the places of labels that other ranks own."""
    if team.rank > 0:
        return
    found, tail = 0, 0
    for k in range(labels.size):
        if interrupted(team, k):
            return
        x = np.uint64(labels[k])
        is_root = x == np.uint64(k) * p + rank
        roots[k // BITS] |= np.uint64(is_root) << np.uint64(k % BITS)
        found += is_root
        others[tail] = k
        tail += x % p != rank
    counts[0], counts[1] = found, tail


def mark_roots(labels: Array, grid: Any) -> tuple[Array, int, Array]:
    """Bits of the own vertices that are roots, their number, and places of labels of others."""
    roots = np.zeros(-(-grid.most_owned // BITS), np.uint64)
    others, counts = np.empty(labels.size + 1, np.int64), np.zeros(2, np.int64)
    p, rank = np.uint64(grid.p), np.uint64(grid.rank)
    crew(1, work=2 * labels.size).run(_mark_roots, labels, p, rank, roots, others, counts)
    return roots, int(counts[0]), others[: int(counts[1])]


@kernel
def _number_roots(team: Any, roots: Array, rank: int, numbers: Array) -> None:
    """One member.  roots[w, s]: word w of rank s."""
    if team.rank > 0:
        return
    words, p = roots.shape
    total = np.int64(0)
    for w in range(words):
        if interrupted(team, w):
            return
        row = roots[w]
        left = row[rank]
        while left != np.uint64(0):
            b = trailing_zeros(left)
            bit = left & (~left + ONE)
            left ^= bit
            smaller = np.uint64(0)
            for s in range(p):  # at earlier places; at this place those of ranks before
                mask = bit - ONE if s >= rank else (bit - ONE) | bit
                smaller += count_ones(row[s] & mask)
            numbers[np.uint64(w * BITS) + b] = total + np.int64(smaller)
        for s in range(p):
            total += np.int64(count_ones(row[s]))


def number_roots(roots: Array, rank: int, numbers: Array) -> None:
    """numbers[k] of own roots; `roots` are the words of all ranks, (words, ranks)."""
    crew(1, work=BITS * roots.size).run(_number_roots, roots, rank, numbers)


@kernel
def _own_numbers(team: Any, labels: Array, p: Any, rank: Any, numbers: Array, out: Array) -> None:
    """One member.  The numbers of labels that are own vertices; any number for the others."""
    if team.rank > 0:
        return
    for k in range(labels.size):
        if interrupted(team, k):
            return
        x = np.uint64(labels[k])
        place = x // p
        out[k] = numbers[place if x - place * p == rank else np.uint64(k)]


def own_numbers(labels: Array, grid: Any, numbers: Array, out: Array) -> None:
    """out[k]: the number of label k where that is an own vertex."""
    p, rank = np.uint64(grid.p), np.uint64(grid.rank)
    crew(1, work=2 * labels.size).run(_own_numbers, labels, p, rank, numbers, out)
