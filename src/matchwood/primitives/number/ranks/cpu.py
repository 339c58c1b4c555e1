"""Labels numbered by ranks: the part of a rank.  How ranks share the work: __init__.py.

Vertices lie in stripes: vertex k p + s is place k of rank s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, interrupted, kernel, share
from matchwood.engines.cpu.hints import count_ones, select, trailing_zeros

Array = np.ndarray[Any, Any]

# Labels that are the smallest vertices of their sets.  A root is a vertex that is its own label,
# and its number is how many roots are smaller.

BITS = 64  # places in a word
ONE = np.uint64(1)


@kernel
def _mark_roots(
    team: Any, labels: Array, p: Any, rank: Any, often: Any, roots: Array, others: Array,
    counts: Array,
) -> None:  # fmt: skip
    """A bit for each root, and the places of labels that other ranks own, without `often`.

    Most labels are `often` or roots.  A branch could not be predicted, so there is none: the others
    of a word of places are collected as bits.
    """
    begin, end = share(team, roots.size)
    lo = min(begin * BITS, labels.size)
    found, tail, v = np.uint64(0), np.uint64(lo), np.uint64(lo) * p + rank
    for w in range(begin, end):
        if interrupted(team, w):
            return
        bits, rest, part = np.uint64(0), np.uint64(0), labels[w * BITS : (w + 1) * BITS]
        for b in range(part.size):
            x = np.uint64(part[b])
            is_root = np.uint64(x == v)
            v += p
            bits |= is_root << np.uint64(b)
            rest |= (ONE ^ (is_root | np.uint64(x == often))) << np.uint64(b)
        while rest != np.uint64(0):
            b = trailing_zeros(rest)
            rest &= rest - ONE
            if np.uint64(part[b]) % p != rank:
                others[tail] = np.uint64(w * BITS) + b
                tail += ONE
        roots[w] = bits
        found += np.uint64(count_ones(bits))
    counts[team.me, 0] = found
    counts[team.me, 1], counts[team.me, 2] = lo, tail


def mark_roots(
    labels: Array, grid: Any, often: int, threads: int | None
) -> tuple[Array, int, Array]:
    """Bits of the own vertices that are roots, their number, and places of labels of others.

    Places whose label is `often` are not among these.
    """
    roots = np.zeros(-(-grid.most_owned // BITS), np.uint64)
    team = crew(threads, work=2 * labels.size)
    # Each member lists within its own part.
    others, counts = np.empty(labels.size, np.int64), np.zeros((team.size, 3), np.int64)
    p, rank = np.uint64(grid.p), np.uint64(grid.rank)
    team.run(_mark_roots, labels, p, rank, np.uint64(often), roots, others, counts)
    listed = np.concatenate([others[lo:tail] for _, lo, tail in counts])
    return roots, int(counts[:, 0].sum()), listed


@kernel
def _number_roots(team: Any, roots: Array, rank: int, numbers: Array, sums: Array) -> None:
    """See `number_roots`; roots[w, s] is word w of rank s."""
    words, p = roots.shape
    lo, hi = share(team, words)
    mine = np.int64(0)
    for w in range(lo, hi if team.me + 1 < team.size else lo):  # the last one's are not needed
        if interrupted(team, w):
            return
        for s in range(p):
            mine += np.int64(count_ones(roots[w, s]))
    sums[team.me] = mine
    if barrier(team):
        return
    total = np.int64(0)
    for member in range(team.me):
        total += sums[member]
    for w in range(lo, hi):
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


def number_roots(roots: Array, rank: int, numbers: Array, threads: int | None) -> None:
    """numbers[k] of own roots; `roots` are the words of all ranks, (words, ranks)."""
    team = crew(threads, work=BITS * roots.size)
    team.run(_number_roots, roots, rank, numbers, np.zeros(team.size, np.int64))


@kernel
def _own_numbers(
    team: Any, labels: Array, p: Any, rank: Any, often: Any, its_number: Any, numbers: Array,
    out: Array,
) -> None:  # fmt: skip
    """The numbers of labels that are own vertices, or `often`; any number for the others."""
    lo, hi = share(team, (labels.size + BITS - 1) // BITS)
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        rest, v = np.uint64(0), np.uint64(w * BITS) * p + rank
        part, mine = labels[w * BITS : (w + 1) * BITS], numbers[w * BITS : (w + 1) * BITS]
        into = out[w * BITS : (w + 1) * BITS]
        for b in range(part.size):
            x = np.uint64(part[b])
            into[b] = select(x == often, its_number, mine[b])
            rest |= (ONE ^ (np.uint64(x == v) | np.uint64(x == often))) << np.uint64(b)
            v += p
        while rest != np.uint64(0):
            b = trailing_zeros(rest)
            rest &= rest - ONE
            place = np.uint64(part[b]) // p
            if np.uint64(part[b]) - place * p == rank:
                into[b] = numbers[place]


def own_numbers(
    labels: Array, grid: Any, often: tuple[int, int], numbers: Array, threads: int | None
) -> Array:
    """For each label its number, where it is an own vertex; `often`: another label, its number."""
    out = np.empty_like(labels)
    p, rank = np.uint64(grid.p), np.uint64(grid.rank)
    label, its_number = np.uint64(often[0]), labels.dtype.type(often[1])
    team = crew(threads, work=2 * labels.size)
    team.run(_own_numbers, labels, p, rank, label, its_number, numbers, out)
    return out


# Any labels: a rank does not send those that are its own vertices.


@kernel
def _lower_own(
    team: Any, labels: Array, names: Array, p: Any, rank: Any, smallest: Array, own: Array,
    others: Array, count: Array,
) -> None:  # fmt: skip
    """One member.  own[i]: the place of label i, any place where it is not an own vertex."""
    tail = np.int64(0)
    for i in range(labels.size):
        if interrupted(team, i):
            return
        x = np.uint64(labels[i])
        place = x // p
        own[i] = 0
        if x - place * p == rank:
            own[i] = place
            smallest[place] = min(smallest[place], names[i])
        else:
            others[tail] = i
            tail += 1
    count[0] = tail


def lower_own(labels: Array, names: Array, grid: Any, smallest: Array) -> tuple[Array, Array]:
    """Lower `smallest` at the places of labels that are own vertices, to the names that have them.

    Returns the places of the labels, and the elements whose labels are not own.
    """
    own, others = np.empty(labels.size, np.int64), np.empty(labels.size, np.int64)
    count = np.zeros(1, np.int64)
    p, rank = np.uint64(grid.p), np.uint64(grid.rank)
    crew(1, work=2 * labels.size).run(
        _lower_own, np.ascontiguousarray(labels), names, p, rank, smallest, own, others, count
    )
    return own, others[: int(count[0])]
