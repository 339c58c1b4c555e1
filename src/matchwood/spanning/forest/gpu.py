"""Minimum spanning forests on the GPU.  Kernels: gpu.cu; the rule and the papers: __init__.py.

Every method marks the entries of the forest in a bitmap, from which `_forest_of` reads the edges.
Boruvka's list of edges is written by whichever warp comes first; the words in it carry the
order.  Kruskal's methods sort edges (CuPy's radix sort) and take them in that order, a growing
number at once: of the edges under consideration each keeps its place in line at both trees, and
those that are first at one of them are taken, which is what taking one after the other does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.row_reduce.gpu import Tiles
from matchwood.primitives.transpose.gpu import expand_rows
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.stars.gpu import awerbuch_shiloach

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "first_edges<I,B,X,2048>",
        "hook_vertices<I>",
        "flatten<I>",
        "list_edges<I,B,X>",
        "hook_trees<I>",
        "shrink<I,B,X>",
        "count_marks<I>",
        "write_edges<I,B>",
    ),
    types={"B": (np.uint32, np.uint64), "X": ("true", "false")},
)

CALLER = "minimum_spanning_forest"
TILE_ENTRIES = SOURCE.constant("TILE_ENTRIES")
LIST_BLOCK = SOURCE.constant("LIST_BLOCK")
LIGHT_DEGREE = 8.0  # mean degree from which light edges go first
LIGHT_EDGES = 1.5  # of each vertex, on average.  Measured: bench/spanning/forest_gpu.py, H200
SAMPLE = 4096  # weights looked at for what is light
ROUNDS_AHEAD = 3  # rounds between two looks at the list's size
RUNS = 1024  # blocks that collect the edges; each adds up the counts of all before it
RUN_BLOCK = 256
EVERYTHING = 1 << 63  # no prefix is as large: all edges are light


class _Lists:
    """Two lists of edges that take turns, and the trees that their edges are offered to."""

    def __init__(self, costs: Any, order: orders.Order, *, ranks: bool = False) -> None:
        cupy = engines.cupy()
        self.costs, self.order = costs, order
        kind = costs.indices.dtype
        n = costs.n
        self.bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
        exact = "true" if order.exact or ranks else "false"
        self.k = SOURCE.kernels(I=kind, B=self.bits.dtype, X=exact)
        self.words_of_order = cupy.array([int(field) for field in order[:6]], np.uint64)
        space = gpu.workspace(CALLER, up=(n, kind), best=(n, np.uint64), sizes=(2, np.uint64))
        self.up, self.best, self.sizes = space.up, space.best, space.sizes
        self.marks = gpu.empty(-(-costs.nnz // 64), np.uint64, CALLER)
        _clear(self.marks)
        self.again = gpu.Flag()
        self.room = 0
        self.rounds = 0
        self.current = 0  # which list holds the edges
        self.ends: list[Any] = [None, None]
        self.words: list[Any] = [None, None]
        self.most = self.k.shrink.resident(LIST_BLOCK) * LIST_BLOCK

    def make_room(self, edges: int) -> None:
        """For both lists; what is in them is lost."""
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
        """Into the other list; the trees are offered what is in it."""
        after = 1 - now
        _clear(self.size(after))
        _fill(self.best)
        self.k.shrink(
            threads,
            (size, ends, words, self.bits, self.words_of_order, self.up, self.ends[after],
             self.words[after], self.size(after), self.room, self.best),
            block=LIST_BLOCK,
        )  # fmt: skip

    def flatten(self) -> None:
        """Everybody directly under its root; one launch unless there are long chains."""
        for _ in range(self.costs.n.bit_length() + 4):  # a launch more than doubles all steps
            self.again.clear()
            self.k.flatten(self.costs.n, (self.costs.n, self.up, self.again))
            self.again.fetch()
            if not self.again.read():
                return
        raise not_symmetric("minimum_spanning_forest")  # trees that go round and round


def _clear(array: Any) -> None:
    array.data.memset_async(0, array.nbytes)


def _fill(best: Any) -> None:
    best.data.memset_async(0xFF, best.nbytes)


def span(
    costs: Any, method: str, maximum: bool, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    """Edges, weights and rounds."""
    cupy = engines.cupy()
    if costs.nnz == 0:
        return cupy.empty((0, 2), costs.indices.dtype), costs.data[:0].copy(), 0
    order = orders.make(costs, maximum)
    marks, rounds = _METHODS[method](costs, order)
    return (*_forest_of(costs, marks), rounds)


def boruvka(costs: Any, order: orders.Order) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.

    Memory: a list of 16 bytes for each edge that is listed (24 with 64-bit indices), twice; 12
    bytes a vertex (16), and 8 (16) more at first.
    """
    n, nnz = costs.n, costs.nnz
    lists = _Lists(costs, order)
    k = lists.k
    light, most = EVERYTHING, nnz // 2
    if nnz > LIGHT_DEGREE * n:
        share = LIGHT_EDGES * n / (nnz / 2)
        sample = costs.data[:: max(1, nnz // SAMPLE)].get()
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
    for heavy in (False,) if light == EVERYTHING else (False, True):
        lists.flatten()
        listed = _list_edges(lists, light, heavy, most)
        if listed:
            lists.hook_and_shrink(listed)
    return lists.marks, lists.rounds + 1


def _list_edges(lists: _Lists, light: int, heavy: bool, most: int) -> int:
    """Fill the first list; how many are in it.  Once more if there was no room for all."""
    costs = lists.costs
    n, nnz = costs.n, costs.nnz
    lists.current = 0
    while True:
        lists.make_room(most)
        _clear(lists.sizes)
        _fill(lists.best)
        lists.k.list_edges(
            -(-(n + nnz) // TILE_ENTRIES) * 32,
            (n, nnz, costs.indptr, costs.indices, lists.bits, lists.words_of_order, light, heavy,
             lists.up, lists.ends[0], lists.words[0], lists.size(0), lists.room, lists.best),
            block=LIST_BLOCK,
        )  # fmt: skip
        listed = int(lists.size(0).item())
        if listed <= lists.room:
            return listed
        most = listed


class _Sorted:
    """All edges of a graph, to be taken in their order."""

    def __init__(self, costs: Any, order: orders.Order) -> None:
        cupy = engines.cupy()
        kind, nnz = costs.indices.dtype, costs.nnz
        self.lists = _Lists(costs, order, ranks=True)
        self.n = costs.n
        self.lists.up[...] = cupy.arange(costs.n, dtype=kind)
        with gpu.guard(CALLER, nnz * (kind.itemsize * 4 + 16)):
            rows = expand_rows(costs.indptr, nnz)
            upper = cupy.flatnonzero(costs.indices > rows)
            self.u, self.v = rows[upper], costs.indices[upper]
            self.codes = orders.codes(costs.data[upper], order, cupy)
            self.entries = upper.astype(kind)

    def keep(self, chosen: Any) -> None:
        self.u, self.v, self.codes, self.entries = (
            array[chosen] for array in (self.u, self.v, self.codes, self.entries)
        )

    def take(self, chosen: Any) -> None:
        """Join the ends of these edges in their order, a growing number of them at once."""
        cupy = engines.cupy()
        lists = self.lists
        with gpu.guard(CALLER):
            codes = self.codes if chosen is None else self.codes[chosen]
            sequence = cupy.argsort(codes, kind="stable")
            if chosen is not None:
                sequence = chosen[sequence]
            u, v, entries = self.u[sequence], self.v[sequence], self.entries[sequence]
        start, batch = 0, max(self.n, 1024)
        while start < entries.size:
            end = min(start + batch, entries.size)
            lists.make_room(end - start)
            ends = cupy.stack([u[start:end], v[start:end]], axis=1)
            words = cupy.arange(start, end, dtype=np.uint64)
            lists.sizes[1] = end - start
            lists.shrink(1, lists.size(1), ends, words, min(end - start, lists.most))
            lists.current = 0
            lists.hook_and_shrink(end - start, entries)
            start, batch = end, 2 * batch


def kruskal(costs: Any, order: orders.Order) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.  Memory: about 80 bytes an edge."""
    edges = _Sorted(costs, order)
    edges.take(None)
    return edges.lists.marks, edges.lists.rounds


def filter_kruskal(costs: Any, order: orders.Order) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.  Memory: about 60 bytes an edge."""
    cupy = engines.cupy()
    edges = _Sorted(costs, order)
    target = max(costs.n, 1024)
    while edges.codes.size:
        size = edges.codes.size
        if size <= 2 * target:
            edges.take(None)
            break
        sample = cupy.sort(edges.codes[:: max(1, size // SAMPLE)])
        limit = sample[int(sample.size * target / size)]
        edges.take(cupy.flatnonzero(edges.codes <= limit))
        edges.lists.flatten()
        up = edges.lists.up
        edges.keep(cupy.flatnonzero(up[edges.u] != up[edges.v]))
        target *= 2
    return edges.lists.marks, edges.lists.rounds


def _stars(costs: Any, order: orders.Order) -> tuple[Any, int]:
    words = engines.cupy().array([int(field) for field in order[:6]], np.uint64)
    return awerbuch_shiloach(costs, words)


def _forest_of(costs: Any, marks: Any) -> tuple[Any, Any]:
    """Edges and weights of what is marked."""
    cupy = engines.cupy()
    n, kind = costs.n, costs.indices.dtype
    bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
    k = SOURCE.kernels("count_marks", "write_edges", I=kind, B=bits.dtype)
    edges, weights = gpu.empty((n, 2), kind, CALLER), gpu.empty(n, bits.dtype, CALLER)
    blocks = min(RUNS, -(-marks.size // RUN_BLOCK))
    run = -(-marks.size // blocks)
    counts, total = cupy.empty(blocks, kind), cupy.empty(1, kind)
    k.count_marks(None, (marks.size, run, marks, counts), block=RUN_BLOCK, grid=blocks)
    arrays = (costs.indptr, costs.indices, bits, edges, weights, total)
    k.write_edges(None, (n, marks.size, run, marks, counts, *arrays), block=RUN_BLOCK, grid=blocks)
    count = int(total.item())
    if count > n:
        raise not_symmetric("minimum_spanning_forest")
    return edges[:count], weights[:count].view(costs.data.dtype)


_METHODS = {
    "auto": boruvka,
    "boruvka": boruvka,
    "awerbuch_shiloach": _stars,
    "kruskal": kruskal,
    "filter_kruskal": filter_kruskal,
}
