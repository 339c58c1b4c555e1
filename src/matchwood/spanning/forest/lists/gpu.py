"""Lists of edges that shrink, on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.patterns import not_symmetric
from matchwood.spanning.forest import order as orders

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("flatten<I>", "hook_trees<I>", "shrink<I,B,X>"),
    types={"B": (np.uint32, np.uint64), "X": ("true", "false")},
)

CALLER = "minimum_spanning_forest"
LIST_BLOCK = SOURCE.constant("LIST_BLOCK")
ROUNDS_AHEAD = 3  # rounds between two reads of the list's size


class Lists:
    """Two lists of edges that take turns, and the trees that their edges are offered to."""

    def __init__(self, costs: Any, order: orders.Order, *, ranks: bool = False) -> None:
        cupy = engines.cupy()
        self.costs, self.order = costs, order
        kind = costs.indices.dtype
        n = costs.n
        self.bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
        self.exact = "true" if order.exact or ranks else "false"
        self.k = SOURCE.kernels(I=kind, B=self.bits.dtype, X=self.exact)
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
        clear(self.size(after))
        fill(self.best)
        self.k.shrink(
            threads,
            (size, ends, words, self.bits, self.words_of_order, self.up, self.ends[after],
             self.words[after], self.size(after), self.room, self.best),
            block=LIST_BLOCK,
        )  # fmt: skip

    def flatten(self) -> None:
        """Every vertex directly under its root; one launch unless there are long chains."""
        for _ in range(self.costs.n.bit_length() + 4):  # a launch more than doubles all steps
            self.again.clear()
            self.k.flatten(self.costs.n, (self.costs.n, self.up, self.again))
            self.again.fetch()
            if not self.again.read():
                return
        raise not_symmetric("minimum_spanning_forest")  # the parents form a cycle


def clear(array: Any) -> None:
    """All words 0, in the stream."""
    array.data.memset_async(0, array.nbytes)


def fill(best: Any) -> None:
    """No tree has an edge, in the stream."""
    best.data.memset_async(0xFF, best.nbytes)
