"""Bisection, and parts by recursive bisection: the serial start of a partition.

Of a small graph there is nothing to gain by many threads, so one try is serial, and threads share
tries and graphs.  It runs on the host for every engine.  A try (reference.py, cpu.py):

1. Vertices are paired by the greedy matching, edges by (heavier, hash of the ends). Those left over
   that have the same heaviest (equal: smallest) neighbour, or none, are paired in the order of a
   shuffle. Pairs weigh at most 2.5 / 60 of all. The graph of the pairs is the next level, until 60
   vertices are left, a level would keep more than 95 %, or all levels might have more than 5 times
   the vertices or entries of the graph.
2. On the coarsest graph four regions grow from hashed vertices, each time by the vertex with the
   largest (weight to the region less weight to the rest, hash, smaller vertex).
3. On every level vertices move by Fiduccia and Mattheyses [1]_: the largest (gain, hash, smaller
   vertex) of both sides, or of the side that is too heavy, each once a pass; then back to the best
   state by (excess, cut, earlier).

The best of several tries by (excess, cut, try) is taken.

.. [1] C. M. Fiduccia, R. M. Mattheyses. A linear-time heuristic for improving network partitions.
   DAC 1982. doi:10.1109/DAC.1982.1585498
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines

TRIES = 3  # of which the best is taken
FIRST_TRIES = 4  # of the first bisection of several

Array = np.ndarray[Any, Any]


class Small(NamedTuple):
    """A symmetric graph on the host, without loops, as the serial start takes it."""

    indptr: Array  # int64
    indices: Array  # int32
    data: Array  # int64, not negative, below 2^58 in all
    weights: Array  # int64, of vertices, not negative, below 2^58 in all

    @property
    def n(self) -> int:
        return int(self.weights.size)


class Cuts(NamedTuple):
    """The bisections of several graphs: a side for each vertex; excess and cut of each graph."""

    side: Array
    excess: Array
    cut: Array


def small_graph(indptr: Any, indices: Any, data: Any, weights: Any) -> Small:
    """These arrays, brought to the host, in the types that the start takes; `data` None: all 1."""
    arrays = [engines.moved(array, "cpu") for array in (indptr, indices, data, weights)]
    ones = np.ones(arrays[1].size, np.int64) if data is None else arrays[2]
    return Small(
        arrays[0].astype(np.int64, copy=False),
        arrays[1].astype(np.int32, copy=False),
        ones.astype(np.int64, copy=False),
        arrays[3].astype(np.int64, copy=False),
    )


def bisect(
    graph: Small, begins: Any, limits: Any, targets: Any, seeds: Any, *, fixed: Any = None,
    tries: int = TRIES, threads: int | None = None,
) -> Cuts:  # fmt: skip
    """Bisect several graphs that lie side by side: each vertex on side 0 or 1, with a small cut.

    Graph b has the vertices begins[b] .. begins[b + 1] - 1 and no edge to another.  Its sides are
    to weigh at most ``limits[b]`` (two numbers), side 0 about ``targets[b]``; `seeds` has a number
    for each.  ``fixed[v]`` is the side that v must be on, or -1.  Trusted: nothing is checked.
    """
    from matchwood.partitioning.bisection.cpu import Batch
    from matchwood.partitioning.bisection.cpu import bisect as all_tries

    n = graph.n
    batch = Batch(
        *graph,
        np.full(n, -1, np.int8) if fixed is None else np.asarray(fixed, np.int8),
        np.asarray(begins, np.int64),
        np.asarray(limits, np.int64).reshape(-1, 2),
        np.asarray(targets, np.int64),
        np.asarray(seeds, np.uint64),
    )
    sides, scores = all_tries(batch, tries, threads)
    best = np.zeros(scores.shape[0], np.int64)
    rows = np.arange(best.size)
    for t in range(1, tries):
        (excess, cut), (least, smallest) = scores[:, t].T, scores[rows, best].T
        best[(excess < least) | ((excess == least) & (cut < smallest))] = t
    side = sides[np.repeat(best, np.diff(batch.begins)), np.arange(n)]
    return Cuts(side, *scores[rows, best].T)


def recursive_bisection(
    graph: Small, targets: Any, limits: Any, seed: int, *, fixed: Any = None, tries: int = TRIES,
    threads: int | None = None,
) -> Any:  # fmt: skip
    """Parts 0 .. k - 1 of a graph: halves, halves of these, and so on; int32 labels.

    Part b is to weigh about ``targets[b]``, at most ``limits[b]``.  Of k' parts the first half is
    bisected from the rest.  Both halves may weigh f times their share of the weight at hand, where

        f = (sum of the limits / weight)^(1 / ceil(log2 k'))

    so that every level of halves uses an equal part of the room.  With several `tries` the first
    bisection has four.
    """
    k = len(limits)
    labels = np.zeros(graph.n, np.int32)
    where = np.arange(graph.n)  # the vertex of the given graph
    blocks = np.array([[0, k]])[: k - 1]  # of each graph at hand: its parts, first .. last - 1
    begins = np.array([0, graph.n])
    wants = np.array([[*targets, 0], [*limits, 0]], np.float64)  # of each part; and one behind
    while blocks.size:
        middle = (blocks[:, 0] + blocks[:, 1] + 1) // 2
        bounds, wanted = _halves(graph, begins, blocks, middle, wants)
        sides = None
        number = np.repeat(np.arange(middle.size), np.diff(begins))
        if fixed is not None:
            held = np.asarray(fixed)[where]
            sides = np.where(held < 0, -1, held >= middle[number]).astype(np.int8)
        seeds = [(seed + int(first) * 0x9E3779B1 + int(last)) % 2**64 for first, last in blocks]
        often = tries if tries == 1 or blocks[0, 1] < k else max(tries, FIRST_TRIES)
        cuts = bisect(
            graph, begins, bounds, wanted, seeds, fixed=sides, tries=often, threads=threads
        )
        number = 2 * number + cuts.side
        first = np.stack([blocks[:, 0], middle], 1).ravel()
        blocks = np.stack([first, np.stack([middle, blocks[:, 1]], 1).ravel()], 1)
        labels[where] = first[number]  # of halves that are parts
        left = np.diff(blocks)[:, 0] > 1
        order = np.argsort(number, kind="stable")
        order = order[left[number[order]]]
        begins = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=left.size)[left])])
        graph, where, blocks = _split(graph, number, order), where[order], blocks[left]
    return labels


def _halves(graph: Small, begins: Any, blocks: Any, middle: Any, wants: Any) -> tuple[Any, Any]:
    """What both halves of each graph may weigh, and what the first is to weigh."""
    before = np.concatenate([[0], np.cumsum(graph.weights)])
    weight = np.diff(before[begins]).astype(np.float64)
    low, high = blocks.T
    # sums of both halves; differences of running sums would lose targets beside far larger ones
    bounds = np.stack([low, middle, high], 1).ravel()
    halves = np.add.reduceat(wants, bounds, axis=1).reshape(2, -1, 3)[:, :, :2]
    target, most = halves
    depth = np.ceil(np.log2(high - low))
    f = np.maximum(most.sum(1) / np.maximum(weight, 1.0), 1.0) ** (1 / depth)
    both = target.sum(1)
    share = np.divide(target[:, 0], both, out=np.full(both.size, 0.5), where=both > 0)
    shares = np.stack([share, 1 - share], 1)
    limits = np.minimum(np.floor((f * weight)[:, None] * shares), most)
    return limits.astype(np.int64), np.rint(weight * share).astype(np.int64)


def _split(graph: Small, number: Any, order: Any) -> Small:
    """The graph of these vertices, in that order, without edges between different numbers."""
    place = np.empty(graph.n, np.int64)
    place[order] = np.arange(order.size)
    lengths = np.diff(graph.indptr)[order]
    rows = np.repeat(np.arange(order.size), lengths)
    entries = np.arange(rows.size) + (graph.indptr[order] - np.cumsum(lengths) + lengths)[rows]
    inside = number[order][rows] == number[graph.indices[entries]]
    rows, entries = rows[inside], entries[inside]
    indptr = np.zeros(order.size + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=order.size), out=indptr[1:])
    columns = place[graph.indices[entries]].astype(np.int32)
    return Small(indptr, columns, graph.data[entries], graph.weights[order])
