"""Batches: how large they are, and the work on one batch.  Read cpu_board.py first.

The weight of a batch is the number of its arcs, and a little for each parent.  Its children are
listed parent by parent: `found` has the children, `ends` where those of each parent end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import atomic_min, device, load_relaxed, store_relaxed
from matchwood.ordering.rcm.cpu_records import Csr, Sorter
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, fetch_rows, sort_children

Array = np.ndarray[Any, Any]

PARENT_WEIGHT = np.uint64(64)  # a parent weighs as much as so many arcs


class Tuning(NamedTuple):
    """Sizes of batches; tests take small ones.

    Measured on a mesh of 128^3 with 16 threads, in milliseconds (serial: 62): batches of a worker's
    part of the frontier 16, of half of it 25, of a third 29.
    """

    least: int = 8192  # weight of a batch: some 64 parents and 4096 arcs
    largest: int = 1 << 19  # weight that it may grow to where the frontier is wide
    each: int = 1  # batches that a worker should have of the frontier
    enough: int = 1 << 15  # weight from which a lone worker makes batches for all
    room: int = 1 << 18  # children that a worker's own buffer holds; for more it takes turns
    slots: int = 2  # batches in work per thread
    piece: int = 1 << 13  # arcs, some 10 us, after which the worker serves its other batches

    @classmethod
    def of(cls, workers: int) -> Tuning:
        """The usual sizes.

        Few workers need large batches, so that each has one of a wide frontier.
        """
        largest = max(1 << 19, (1 << 23) // workers)
        return cls(largest=largest, room=largest // 2)

    def sizes(self, workers: int, n: int, m: int, longest: int) -> Sizes:
        """What kernels know of this; `longest` is the longest row."""
        average = m // max(1, n)
        wanted = self.each * workers + (1 if workers <= FEW_WORKERS else 0)
        row = average + 1 if longest <= EVEN_ROW else 0
        weights = [self.least, self.largest, self.enough, average + int(PARENT_WEIGHT)]
        return Sizes(*(np.uint64(x) for x in (*weights, wanted, row, longest, self.piece)))

    def parents(self) -> int:
        """The most parents of a batch: the last may be heavier than what is left."""
        return self.largest // int(PARENT_WEIGHT) + 2

    def batches(self, n: int, m: int) -> int:
        """The most batches that can be made, from vertices of at least a quarter of `least`."""
        return 5 * (m + n * int(PARENT_WEIGHT)) // self.least + 64


FEW_WORKERS = 8
"""Of a frontier cut into one batch for each worker, a part is always overhang, and one worker is
idle.  So few workers get one batch more: on a mesh of 128^3 that saves 6 percent with 8.  With 16
it takes longer, since sometimes a worker has two batches, and all others wait for it."""

EVEN_ROW = 64
"""Entries.

Where no row is longer, all count as the average row, which saves reading their lengths.
"""


class Sizes(NamedTuple):
    """What kernels know of the sizes of batches."""

    least: Any  # weights, as in Tuning
    largest: Any
    enough: Any
    average: Any  # weight of an average vertex
    wanted: Any  # batches that the frontier should be cut into
    row: Any  # entries of an average row where rows are even, else 0
    longest: Any  # entries of the longest row
    piece: Any  # arcs of a piece


@device
def weight_of(vertices: Any, arcs: Any) -> Any:
    return arcs + vertices * PARENT_WEIGHT


@device
def batches_for(vertices: Any, arcs: Any, full: Any) -> Any:
    """Into how many batches vertices with so many arcs are cut."""
    return (weight_of(vertices, arcs) + full - ONE) // full


@device
def size_of(front: Any, sizes: Sizes) -> Any:
    """The weight of a batch where so many vertices are in the queue; `sizes` as from Tuning."""
    wanted = front * sizes.average // sizes.wanted
    return max(sizes.least, min(wanted, sizes.largest))


@device
def arcs_between(indptr: Array, queue: Array, begin: Any, end: Any, sizes: Sizes) -> Any:
    """Arcs that leave places begin to end; about so many, where rows are even."""
    if sizes.row > ZERO:
        return (end - begin) * sizes.row
    one = queue.dtype.type(1)
    arcs = ZERO
    for i in range(begin, end):
        u = queue[i]
        arcs += np.uint64(indptr[u + one] - indptr[u])
    return arcs


@device
def most_arcs(arcs: Any, vertices: Any, sizes: Sizes) -> Any:
    """The most arcs that vertices have for which `arcs_between` says `arcs`."""
    return vertices * sizes.longest if sizes.row > ZERO else arcs


@device
def discover(
    csr: Csr,
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
    indptr, indices = csr.indptr, csr.indices
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
def sort_all(indptr: Array, found: Array, ends: Array, parents: Any, sorter: Sorter) -> None:
    """Sort the children of each parent."""
    first = ZERO
    for i in range(parents):
        end = np.uint64(ends[i])
        sort_children(indptr, found, first, end - first, sorter)
        first = end
