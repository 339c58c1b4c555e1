"""Batches: how large they are, and the work on one.  Read cpu_board.py first.

A batch weighs as many as its arcs, and a little for each parent.  Its children are listed parent by
parent: `found` has the children, `ends` where those of each parent end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, fetch_rows, sort_children
from matchwood.teams import atomic_min, device, load_relaxed, store_relaxed

Array = np.ndarray[Any, Any]

PARENT_WEIGHT = np.uint64(64)  # a parent weighs as much as so many arcs


class Tuning(NamedTuple):
    """Sizes of batches; tests take small ones.

    Measured on a mesh of 128^3 with 16 threads, in milliseconds (serial: 62): batches of a worker's
    part of the front 16, of half of it 25, of a third 29.
    """

    least: int = 8192  # weight of a batch: some 64 parents and 4096 arcs
    largest: int = 1 << 19  # what it may grow to where the front is wide
    each: int = 1  # batches that a worker should have of the front
    enough: int = 1 << 15  # weight from which a lone worker makes batches for all
    room: int = 1 << 18  # children that a worker's own buffer holds; for more it takes turns
    slots: int = 2  # batches in work per thread
    piece: int = 1 << 13  # arcs, some 10 us, between two looks at the worker's other batches

    @classmethod
    def of(cls, workers: int) -> Tuning:
        """The usual sizes.  Few workers need large batches, to have one each of a wide front."""
        largest = max(1 << 19, (1 << 23) // workers)
        return cls(largest=largest, room=largest // 2)

    def sizes(self, workers: int, n: int, m: int, longest: int) -> Array:
        """What kernels know of this; `longest` is the longest row."""
        average = m // max(1, n)
        wanted = self.each * workers + (1 if workers <= FEW else 0)
        row = average + 1 if longest <= EVEN_ROW else 0
        weights = [self.least, self.largest, self.enough, average + int(PARENT_WEIGHT)]
        return np.array([*weights, wanted, row, longest, self.piece], np.uint64)

    def parents(self) -> int:
        """The most parents of a batch: the last may be heavier than what is left."""
        return self.largest // int(PARENT_WEIGHT) + 2

    def batches(self, n: int, m: int) -> int:
        """The most batches that can be made, from vertices of at least a quarter of `least`."""
        return 5 * (m + n * int(PARENT_WEIGHT)) // self.least + 64


FEW = 8
"""Workers.  Of a front cut into one batch for each, a part is always overhang, and one is idle.  So
few workers get one batch more: on a mesh of 128^3 that saves 6 percent with 8.  With 16 it takes
longer, since now and then a worker has two batches, which all others wait for."""

EVEN_ROW = 64
"""Entries; where no row is longer they all count as the average, which saves looking at them."""

# words of `sizes`: the weights of Tuning, of an average vertex; batches wanted of the front; the
# entries of an average row, where rows are even, else 0; of the longest; of a piece
LEAST, LARGEST, ENOUGH, AVERAGE, WANTED, ROW, LONGEST, PIECE = range(8)


@device
def weight_of(vertices: Any, arcs: Any) -> Any:
    return arcs + vertices * PARENT_WEIGHT


@device
def batches_for(vertices: Any, arcs: Any, full: Any) -> Any:
    """Into how many batches vertices with so many arcs are cut."""
    return (weight_of(vertices, arcs) + full - ONE) // full


@device
def size_of(front: Any, sizes: Array) -> Any:
    """The weight of a batch where so many vertices are in the queue; `sizes` as from Tuning."""
    wanted = front * sizes[AVERAGE] // sizes[WANTED]
    return max(sizes[LEAST], min(wanted, sizes[LARGEST]))


@device
def arcs_between(indptr: Array, queue: Array, begin: Any, end: Any, sizes: Array) -> Any:
    """Arcs that leave places begin to end; about so many, where rows are even."""
    if sizes[ROW] > ZERO:
        return (end - begin) * sizes[ROW]
    one = queue.dtype.type(1)
    arcs = ZERO
    for i in range(begin, end):
        u = queue[i]
        arcs += np.uint64(indptr[u + one] - indptr[u])
    return arcs


@device
def most_arcs(arcs: Any, vertices: Any, sizes: Array) -> Any:
    """The most arcs that vertices have for which `arcs_between` says `arcs`."""
    return vertices * sizes[LONGEST] if sizes[ROW] > ZERO else arcs


@device
def discover(
    indptr: Array,
    indices: Array,
    claim: Array,
    queue: Array,
    begin: Any,
    at: Any,
    end: Any,
    b: Any,
    in_turn: bool,
    arcs: Any,
    found: Array,
    ends: Array,
    count: Any,
) -> tuple[Any, Any]:
    """List the neighbours of places at to end that batch b is the least to claim so far.

    Stops after so many arcs; `count` are listed already, of places begin to at.  Returns how far it
    came and the number of all.
    """
    one = indices.dtype.type(1)
    mine = claim.dtype.type(b)
    i, seen = at, ZERO
    while i < end and seen < arcs:
        fetch_rows(indptr, indices, queue, i, end)
        u = queue[i]
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        seen += last - first
        for k in range(first, last):
            v = indices[k]
            if load_relaxed(claim, v) > mine:
                if in_turn:
                    store_relaxed(claim, v, mine)
                elif atomic_min(claim, v, mine) <= mine:
                    continue
                found[count] = v
                count += ONE
        ends[i - begin] = count
        i += ONE
    return i, count


@device
def rediscover(claim: Array, b: Any, found: Array, ends: Array, parents: Any) -> Any:
    """Drop children that batches before b have claimed since; returns how many are left."""
    mine = claim.dtype.type(b)
    at = kept = ZERO
    for i in range(parents):
        end = np.uint64(ends[i])
        while at < end:
            v = found[at]
            at += ONE
            if load_relaxed(claim, v) == mine:
                found[kept] = v
                kept += ONE
        ends[i] = kept
    return kept


@device
def sort_all(
    indptr: Array,
    found: Array,
    ends: Array,
    parents: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> None:
    """Sort the children of each parent."""
    first = ZERO
    for i in range(parents):
        end = np.uint64(ends[i])
        sort_children(indptr, found, first, end - first, shift, keys, other, bins)
        first = end
