"""Components on ranks with GPUs.  Kernels: gpu.cu; the rule, and what pairs are: forest.py.

Blocks, parents and labels stay on the GPU.  What differs from the CPU:

- All rows are sampled where the pattern is symmetric (gpu_giant.py), and trees are reported in
  both cases.
- The smallest vertices of the largest trees are the heads: most vertices are under one of them.
  All ranks know the heads, so nobody asks for them.
- Pairs and questions go through the host where there are few on all ranks together: many small
  kernels and transfers take longer than the host does.
- Every rank gets a bit for each vertex that is a root, and numbers its own roots by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.components.connected.ranks import forest, gpu_giant
from matchwood.components.connected.ranks.stripes import stripes_of
from matchwood.engines import gpu
from matchwood.engines.ranks.exchanges import Routed
from matchwood.engines.ranks.exchanges.cpu import distinct
from matchwood.engines.ranks.exchanges.packing import words_of_bits
from matchwood.engines.ranks.exchanges.routing import ask, deliver, narrow
from matchwood.primitives.union_find import union_find

CALLER = "connected_components"
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "find_least<I,V>",
        "report<I,V>",
        "report_all<I,V>",
        "hook_marks<V>",
        "hook_pairs<V>",
        "hook_all<V>",
        "climb<V>",
        "ask_heads<V>",
        "move_heads<V>",
        "mark_roots<V>",
        "count_words",
        "number_roots<V>",
        "write_labels<V>",
    ),
    types={"V": (np.int32, np.int64)},  # a vertex as the grid numbers it
)
WARP, HEADER = SOURCE.constants("WARP", "HEADER")
FEW = 1 << 14  # pairs or questions of all ranks: so few go through the host
SLOTS = 1 << 14  # of the table of pairs that were listed


def zeros(size: int, kind: Any) -> Any:
    made = gpu.empty(size, kind, CALLER)
    made.fill(0)
    return made


class Run:
    """A call on one rank: `join`, then `number` or `roots`.

    Attributes
    ----------
    parent : array
        Of own vertices; after `join` the smallest vertex of their component.
    """

    def __init__(self, G: Any, threads: int | None) -> None:
        self.grid = grid = G.grid
        self.exchange, self.threads = G.exchange, threads
        view = G.entries()
        self.xp = engines.xp(view.indices)
        self.kind: Any = np.dtype(np.int32 if grid.n <= np.iinfo(np.int32).max else np.int64)
        self.kernels = SOURCE.kernels(I=view.indptr.dtype, V=self.kind)
        self.parent = self.xp.arange(grid.rank, grid.n, grid.p, dtype=self.kind)
        self.own = (grid.owned, grid.p, grid.rank)
        self.places, self.parents = (gpu.empty(grid.owned, self.kind, CALLER) for _ in range(2))
        self.heads = self.xp.empty(0, self.kind)
        self.asks = 0  # vertices of all ranks that wait for an answer
        self._graph, self._symmetric = G, forest.is_symmetric(G)

    # One forest of those of all blocks

    def join(self) -> int:
        """The number of rounds."""
        if self.grid.n == 0:
            return 0
        comm = self.exchange.comm
        reports, head = self._reports()
        messages = forest.exchanged(self.exchange, reports)
        count = zeros(1, np.uint64)
        out = self._room(len(messages) * self.grid.owned, count)
        for words in messages:
            self._hook_report(words, out)
        pairs = out[0][: 2 * int(count.get()[0])]
        state = comm.allgather(np.array([head, pairs.size // 2], np.int64)).reshape(-1, 2)
        heads = np.unique(state[:, 0])
        self.heads = self._there(heads[heads >= 0])
        total, rounds = int(state[:, 1].sum()), 0
        while True:
            rounds += 1
            pairs, told = self._step(pairs, total)
            total, self.asks = (int(x) for x in told[:, :2].sum(axis=0))
            moved = self._move_heads(told[:, 2:].min(axis=0))
            changed = self._ask_parents()
            if self.asks:
                changed = int(comm.allreduce(np.array([changed], np.int64))[0])
            comm.report(rounds, total + changed)
            if total == 0 and changed == 0 and not moved:
                return rounds

    def _there(self, array: Any) -> Any:
        """The array on the GPU, of the type of vertices."""
        return self.xp.asarray(np.ascontiguousarray(array, self.kind))

    def _room(self, most: int, count: Any) -> tuple[Any, Any, Any, int]:
        """Where kernels put pairs: their words, how many there are, and the table of pairs."""
        return gpu.empty(2 * most, self.kind, CALLER), count, zeros(SLOTS, np.uint64), SLOTS

    def _reports(self) -> tuple[dict[int, Any], int]:
        """For each owner of vertices of this block what it must learn of them, and the head."""
        grid, k = self.grid, self.kernels
        stripes = np.stack(stripes_of(grid)).T.tolist()
        reports, least = {}, gpu.empty(grid.n_local, self.kind, CALLER)
        found = zeros(len(stripes) + 1, np.uint64)
        head = found[len(stripes) :].view(np.int64)
        head.fill(-1)
        parent, largest = gpu_giant.trees(self._graph, self._symmetric)
        if grid.n_local:
            where = (grid.R, grid.C, grid.r, grid.c, grid.n_rows)
            least.fill(np.iinfo(self.kind).max)
            k.find_least(grid.n_local, (grid.n_local, *where, parent, least))
        for s, (owner, base, step, size) in enumerate(stripes):
            bits = words_of_bits(size, self.kind)
            words = reports[owner] = gpu.empty(HEADER + bits + 2 * size, self.kind, CALLER)
            if size:
                told = (parent, largest, least, words, found, head)
                threads = bits * 8 * self.kind.itemsize
                k.report(threads, (base, step, size, s, owner, grid.p, bits, *told))
        *counts, told_head = found.get().view(np.int64).tolist()
        for count, (owner, base, step, size) in zip(counts, stripes, strict=True):
            length = HEADER + words_of_bits(size, self.kind) + 2 * count
            if length >= size > 0:
                k.report_all(size, (base, step, size, parent, least, reports[owner]))
            reports[owner] = reports[owner][: min(length, size)]
        return reports, told_head

    def _hook_report(self, words: Any, out: Any) -> None:
        """Hook own vertices under those that a rank reported; its length tells the form."""
        k, owned = self.kernels, self.grid.owned
        if words.size == owned:
            k.hook_all(owned, (*self.own, words, self.parent, *out))
            return
        end = HEADER + words_of_bits(owned, self.kind)
        k.hook_marks(owned, (*self.own, words[:HEADER], words[HEADER:end], self.parent, *out))
        self._hook_pairs(words[end:], out)

    def _hook_pairs(self, words: Any, out: Any) -> None:
        size = words.size // 2
        self.kernels.hook_pairs(size, (size, *self.own[1:], words, self.parent, *out))

    def _step(self, pairs: Any, total: int) -> tuple[Any, Any]:
        """Hook and climb: pairs for the next round; and what each rank says.

        That is: its pairs, its vertices that wait for an answer, the parents of the heads.
        """
        grid, k, heads = self.grid, self.kernels, self.heads
        state = zeros(2 + heads.size, np.int64)
        came = self._delivered(pairs, total) if total else pairs
        out = self._room(came.size // 2, state[:1].view(np.uint64))
        self._hook_pairs(came, out)
        listed = (self.places, self.parents, state[1:2].view(np.uint64))
        k.climb(grid.owned, (*self.own, heads, heads.size, self.parent, *listed))
        k.ask_heads(heads.size, (heads.size, *self.own[1:], heads, self.parent, state[2:]))
        mine = state.get()
        self.waits = int(mine[1])
        told = self.exchange.comm.allgather(mine).reshape(grid.p, -1)
        return out[0][: 2 * int(mine[0])], told

    def _delivered(self, words: Any, total: int) -> Any:
        """Send pairs to the owners of their larger vertices; (own place, vertex) that came."""
        if total <= FEW:
            pairs = words.get().reshape(-1, 2)
            ids, names = forest.stars([(pairs[:, 0], pairs[:, 1])], self.threads)
            places, values = deliver(self.exchange, ids, names)
            return self._there(np.stack([places, values], axis=1)).reshape(-1)
        ids, names = self._stars(words[0::2], words[1::2])
        places, values = deliver(self.exchange, ids, names)
        return self.xp.stack([places.astype(self.kind), values], axis=1).reshape(-1)

    def _stars(self, highs: Any, lows: Any) -> tuple[Any, Any]:
        """As `forest.stars`, on the GPU."""
        xp = self.xp
        if highs.size == 0:
            return highs.astype(np.int64), xp.ascontiguousarray(lows)
        ids, places = xp.unique(xp.concatenate([highs, lows]), return_inverse=True)
        above, below = (xp.ascontiguousarray(part) for part in places.reshape(2, -1))
        smallest = union_find(int(ids.size), above, below)
        joined = smallest != xp.arange(ids.size)
        return ids[joined].astype(np.int64), ids[smallest[joined]]

    def _move_heads(self, tops: Any) -> bool:
        """Own vertices under heads go under the parents of these; whether any head has another."""
        if self.heads.size == 0:
            return False
        heads = self.heads.get()
        if np.array_equal(heads, tops):
            return False
        tops = tops.astype(self.kind)
        count = heads.size
        self.kernels.move_heads(
            self.grid.owned, (self.grid.owned, self.heads, self._there(tops), count, self.parent)
        )
        self.heads = self._there(np.unique(tops))
        return True

    def _ask_parents(self) -> int:
        """Vertices that wait get the parent of their parent; how many had another one."""
        if self.asks == 0:
            return 0
        places, before = self.places[: self.waits], self.parents[: self.waits]
        above = self._answers(before, self.parent)
        self.parent[places] = above
        return int((above != before).sum())

    def _answers(self, ids: Any, values: Any) -> Any:
        """The owners' values of these vertices, where all ranks have `asks` of them."""
        xp, exchange = self.xp, self.exchange
        if self.asks > FEW:
            asked, back = xp.unique(ids, return_inverse=True)
            return ask(exchange, asked.astype(np.int64), values)[back.reshape(-1)]
        given = ids.get()
        firsts, back = distinct(given)
        asked = given[firsts].astype(np.int64)
        letters = Routed(exchange.comm, self.grid.owner(asked), self.threads)
        (came,) = letters.send(narrow(self.grid, asked))
        (found,) = letters.answer(values[xp.asarray(came)].get())
        return self._there(found[back])

    # Numbers

    def roots(self) -> Any:
        """The smallest vertex of the component of each own vertex, after `join`."""
        return self.parent

    def number(self) -> tuple[int, Any]:
        """The number of components, and the labels of own vertices, after `join`."""
        grid, k, xp = self.grid, self.kernels, self.xp
        number, labels = (gpu.empty(grid.owned, self.kind, CALLER) for _ in range(2))
        if grid.n == 0:
            return 0, labels
        words, heads = -(-grid.most_owned // WARP), self.heads
        bits = gpu.empty(words, np.uint32, CALLER)
        k.mark_roots(words * WARP, (*self.own, self.parent, words, bits))
        bits = self.exchange.comm.allgather(bits)
        totals = gpu.empty(words, np.int64, CALLER)
        k.count_words(words, (words, grid.p, bits, totals))
        ends = xp.cumsum(totals)
        k.number_roots(grid.owned, (*self.own, words, bits, totals, ends, number))
        state = gpu.empty(1 + heads.size, np.int64, CALLER)
        state[:1] = ends[-1:]
        k.ask_heads(heads.size, (heads.size, *self.own[1:], heads, number, state[1:]))
        count, *own_numbers = state.get().tolist()
        told = self.exchange.comm.allgather(np.array(own_numbers, np.int64))
        numbers = self._there(told.reshape(grid.p, -1).min(axis=0))
        if self.asks:
            labels[self.places[: self.waits]] = self._answers(self.parents[: self.waits], number)
        given = (self.parent, number, heads, numbers, heads.size, labels)
        k.write_labels(grid.owned, (*self.own, *given))
        return count, labels
