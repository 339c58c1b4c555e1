"""Boruvka's method on the GPU, and the rounds on a list of edges that Kruskal's uses too.

Every tree keeps the first edge that it is offered.  Trees are joined along these edges.  Edges
within one tree leave the list, and the others are offered again, until the list is empty.  Kernels:
gpu.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.row_reduce.gpu import Tiles
from matchwood.spanning.forest import order as orders

CALLER = "minimum_spanning_forest"
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "first_edges<I,B,X,2048>",
        "hook_vertices<I>",
        "mark_largest<I>",
        "list_light<I,B,X>",
        "list_rest<I,B,X>",
        "flatten<I>",
        "hook_trees<I>",
        "shrink<I,B,X>",
    ),
    types={"B": (np.uint32, np.uint64), "X": ("true", "false")},
)

TILE_ENTRIES, LIGHT_ENTRIES, LIST_BLOCK = SOURCE.constants(
    "TILE_ENTRIES", "LIGHT_ENTRIES", "LIST_BLOCK"
)
FIRST_ROUND = ("first_edges", "hook_vertices", "mark_largest", "list_light", "list_rest")
LIGHT_DEGREE = 8.0  # mean degree from which light edges go first
# Edges for each vertex that are light.  Where degrees are skewed fewer do: hubs join most trees.
# Measured on an H200 with 0.15, 0.3, 0.6, 1.0, 1.5 and 2.0, in milliseconds: R-MAT 22 4.8, 4.8,
# 4.9, 5.3, 5.7, 6.3; mesh 128^3 11, 11, 8.9, 4.8, 4.1, 4.3.
LIGHT_EDGES, LIGHT_EDGES_SKEWED = 1.5, 0.3
SKEWED = 16.0  # degrees are skewed where entries lie in rows this many times the mean, on average
SAMPLE = 1024  # vertices whose roots say which tree is the largest
# Vertices from which the largest tree has a bitmap: the roots of fewer stay in the L2 cache.
BITMAP_VERTICES = 1 << 22
ROUNDS_AHEAD = 3  # rounds between two reads of the list's size

# Rounds on a list


class Lists:
    """Two lists of edges that take turns, and the trees that their edges are offered to.

    `sorted_words`: a word is a place in a sorted sequence, so words alone decide.
    """

    def __init__(self, costs: Any, order: orders.Order, *, sorted_words: bool = False) -> None:
        cupy = engines.cupy()
        self.costs, self.order = costs, order
        kind = costs.indices.dtype
        n = costs.n
        self.bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
        self.exact = "true" if order.exact or sorted_words else "false"
        self.k = SOURCE.kernels(
            "flatten", "hook_trees", "shrink", I=kind, B=self.bits.dtype, X=self.exact
        )
        self.words_of_order = cupy.array([int(field) for field in order[:6]], np.uint64)
        space = gpu.workspace(CALLER, up=(n, kind), best=(n, np.uint64), sizes=(2, np.uint64))
        self.up, self.best, self.sizes = space.up, space.best, space.sizes
        self.marks = gpu.empty(-(-costs.nnz // 64), np.uint64, CALLER)
        clear(self.marks)
        self.again = gpu.Flag()
        self.room = 0
        self.rounds = 0
        self.current = 0  # which list holds the edges
        self.ends: list[Any] = [None, None]
        self.words: list[Any] = [None, None]
        self.most = self.k.shrink.resident(LIST_BLOCK) * LIST_BLOCK

    def make_room(self, edges: int) -> None:
        """Allocate both lists; what is in them is lost."""
        if edges > self.room:
            kind = self.costs.indices.dtype
            space = gpu.workspace(
                CALLER,
                ends0=(2 * edges, kind), words0=(edges, np.uint64),
                ends1=(2 * edges, kind), words1=(edges, np.uint64),
            )  # fmt: skip
            self.ends, self.words = [space.ends0, space.ends1], [space.words0, space.words1]
            self.room = edges

    def size(self, which: int) -> Any:
        return self.sizes[which : which + 1]

    def hook_and_shrink(self, most: int, entries: Any = None) -> None:
        """Rounds, until the current list, of at most `most` edges, is empty."""
        now = self.current
        threads = max(1, min(most, self.most))
        while True:
            for _ in range(ROUNDS_AHEAD):
                ends, words = self.ends[now], self.words[now]
                order = self.words_of_order
                self.k.hook_trees(
                    threads,
                    (self.size(now), ends, words, self.best, order, entries, self.up, self.marks),
                )
                self.shrink(now, self.size(now), ends, words, threads)
                now = 1 - now
                self.rounds += 1
            left = int(self.size(now).item())
            if left == 0:
                break
            threads = max(1, min(left, self.most))
        self.current = now

    def shrink(self, now: int, size: Any, ends: Any, words: Any, threads: int) -> None:
        """Move what joins two trees into the other list, and offer it to the trees."""
        after = 1 - now
        clear(self.size(after))
        fill(self.best)
        self.k.shrink(
            threads,
            (size, ends, words, self.bits, self.words_of_order, self.up, self.ends[after],
             self.words[after], self.size(after), self.room, self.best),
            block=LIST_BLOCK,
        )  # fmt: skip

    def flatten(self) -> None:
        """Hook every vertex directly under its root; one launch unless there are long chains."""
        for _ in range(self.costs.n.bit_length() + 4):  # a launch more than doubles all steps
            self.again.clear()
            self.k.flatten(self.costs.n, (self.costs.n, self.up, self.again))
            self.again.fetch()
            if not self.again.read():
                return
        raise not_symmetric("minimum_spanning_forest")  # the parents form a cycle


def clear(array: Any) -> None:
    """Set all words to 0, in the stream."""
    array.data.memset_async(0, array.nbytes)


def fill(best: Any) -> None:
    """Set all words to "no edge", in the stream."""
    best.data.memset_async(0xFF, best.nbytes)


# The first round, which makes the list


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.

    Memory: a list of 16 bytes for each edge that is listed (24 with 64-bit indices), twice; 12
    bytes a vertex (16), and 8 (16) more at first.
    """
    n, nnz = costs.n, costs.nnz
    lists = Lists(costs, order)
    k = SOURCE.kernels(*FIRST_ROUND, I=costs.indices.dtype, B=lists.bits.dtype, X=lists.exact)
    light, most = orders.EVERYTHING, nnz // 2
    if nnz > LIGHT_DEGREE * n:
        share = (LIGHT_EDGES_SKEWED if _skewed(costs) else LIGHT_EDGES) * n / (nnz / 2)
        sample = costs.data[:: max(1, nnz // orders.SAMPLE)].get()
        light = orders.light_prefix(sample, order, share)
        most = min(most, int(1.5 * share * most) + 1024)
    near = gpu.empty(n, costs.indices.dtype, CALLER)
    entry = gpu.empty(n, costs.indices.dtype, CALLER)
    accumulator = 8 if order.exact else 16
    args = (lists.bits, lists.words_of_order, near, entry)
    Tiles(costs.indptr).launch(k.first_edges, accumulator, costs.indices, args)
    pattern = (n, costs.indptr, costs.indices)
    k.hook_vertices(n, (*pattern, near, entry, lists.up, lists.marks))
    del near, entry
    for lightest in (True, False) if light < orders.EVERYTHING else (False,):
        lists.flatten()
        if lightest:
            listed = _listed(lists, k.list_light, LIGHT_ENTRIES, (light,), most)
        else:
            split = light < orders.EVERYTHING and n >= BITMAP_VERTICES
            tree = _largest_tree(k, lists) if split else (-1, None)
            listed = _listed(lists, k.list_rest, TILE_ENTRIES, tree, most)
        if listed:
            lists.hook_and_shrink(listed)
    return lists.marks, lists.rounds + 1


def _skewed(costs: Any) -> bool:
    """Are the rows of entries much longer than rows, judged by a sample?"""
    cupy = engines.cupy()
    nnz = costs.nnz
    places = cupy.arange(0, nnz, max(1, nnz // orders.SAMPLE), dtype=costs.indptr.dtype)
    row = cupy.searchsorted(costs.indptr, places, side="right") - 1
    length = costs.indptr[row + 1] - costs.indptr[row]
    return float(length.mean(dtype=np.float64)) > SKEWED * nnz / costs.n


def _largest_tree(k: Any, lists: Lists) -> tuple[int, Any]:
    """The root of the largest tree, by a sample, and a bitmap of its vertices."""
    n = lists.costs.n
    roots, counts = np.unique(lists.up[:: max(1, n // SAMPLE)].get(), return_counts=True)
    largest = int(roots[counts.argmax()])
    bits = gpu.empty(-(-n // 32), np.uint32, CALLER)
    k.mark_largest(n, (n, lists.up, largest, bits))
    return largest, bits


def _listed(lists: Lists, kernel: Any, tile: int, which: tuple[Any, ...], most: int) -> int:
    """Fill the first list, once more if there was no room for all; returns its length."""
    costs = lists.costs
    n, nnz = costs.n, costs.nnz
    lists.current = 0
    tiles = -(-(n + nnz) // tile) * 32
    while True:
        lists.make_room(most)
        clear(lists.sizes)
        fill(lists.best)
        kernel(
            min(tiles, kernel.resident(LIST_BLOCK) * LIST_BLOCK),
            (n, nnz, costs.indptr, costs.indices, lists.bits, lists.words_of_order, *which,
             lists.up, lists.ends[0], lists.words[0], lists.size(0), lists.room, lists.best),
            block=LIST_BLOCK,
        )  # fmt: skip
        listed = int(lists.size(0).item())
        if listed <= lists.room:
            return listed
        most = listed
