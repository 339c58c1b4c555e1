"""Components on ranks with GPUs.  Kernels: gpu.cu; the rule, and what pairs are: forest.py.

Blocks, parents and labels stay on the GPU.  What differs from the CPU:

- All rows are sampled where the pattern is symmetric (`trees`), and trees are reported in both
  cases.
- The smallest vertices of the largest trees are the heads: most vertices are under one of them.
  All ranks know the heads, so no rank asks for them.
- Pairs and questions go through the host where there are few on all ranks together: many small
  kernels and transfers take longer than the host does.
- Every rank gets a bit for each vertex that is a root, and numbers its own roots by itself.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.components.connected import gpu as single
from matchwood.components.connected.ranks import forest
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
        "mark_tree<I>",
        "meet",
        "find_known<I>",
        "join_known<I>",
        "set_largest<I>",
    ),
    types={"V": (np.int32, np.int64)},  # a vertex as the grid numbers it
)
WARP, HEADER = SOURCE.constants("WARP", "HEADER")
FEW_PAIRS = 1 << 14  # pairs or questions of all ranks; no more than this go through the host
SLOTS = 1 << 14  # slots of the table of pairs that were listed


# Trees of a block; of a symmetric pattern most rows are left out
#
# Steps 1 to 3 are those of cpu/giant.py, but every rank samples all its rows.  In step 4 every rank
# joins the known vertices, and then the rows of all others.  A row may also be left out when its
# vertex is in the tree of the known ones by now: an edge is left out at both its ends only if both
# are in the component.


class Block:
    """The entries of a rank, and a forest of its local vertices.

    Attributes
    ----------
    parent : array
        After `sample` and after `join_rest` every vertex is under the smallest of its tree.
    largest : array
        One vertex, the root that most have; -1 where there are no entries.
    """

    def __init__(self, view: Any) -> None:
        self._view = view
        self._kernels = single.SOURCE.kernels(I=view.indptr.dtype)
        kind = view.indptr.dtype
        self._space = single.workspace(kind, parent=(view.n, kind))
        self.parent, self.largest = self._space.parent, self._space.words[:1]

    def sample(self) -> None:
        """Join a few neighbours of each vertex."""
        single.sample(self._kernels, self._view, self._space)

    def join_rest(self, symmetric: bool) -> None:
        """Join all entries, or leave out the rows of vertices in the largest tree."""
        single.hook_rest(self._kernels, self._view, symmetric, self._space)
        self.flatten()

    def flatten(self) -> None:
        n = self._view.n
        self._kernels.compress(n, (n, False, None, self.parent))


def trees(G: Any, symmetric: bool, k: Any) -> tuple[Any, Any]:
    """For each local vertex the smallest of its tree; and an array of one vertex of a large tree.

    `symmetric`: the pattern of the whole matrix is.  `k` are the kernels.  All ranks call it.
    """
    view = G.entries()
    if view.n == 0 and not symmetric:
        none = engines.xp(view.indices).full(1, -1, view.indptr.dtype)
        return none[:0], none
    block = Block(view)
    if view.n:
        block.sample()
    else:
        block.largest.fill(-1)
    if symmetric:
        _join_known(G, block, k)
    if view.n:
        block.join_rest(symmetric)
    return block.parent, block.largest


def _join_known(G: Any, block: Block, k: Any) -> None:
    """Steps 1 to 3, and the known vertices of step 4."""
    grid, exchange = G.grid, G.exchange
    words = -(-grid.most_owned // WARP)
    size = gpu.empty(1, np.uint64, CALLER)
    size.fill(0)
    messages = forest.exchanged(exchange, _marks(grid, block, k, words, size))
    chosen = forest.largest_set(G.comm, *_meetings(grid, messages, k, words, size))
    xp = engines.xp(size)
    known = [m for m, rank in zip(messages, _senders(grid), strict=True) if chosen[rank]]
    own = functools.reduce(xp.bitwise_or, known or [messages[0] & 0])
    rows, columns = (comm.allgather(own) for comm in (exchange.row, exchange.column))
    n, where = grid.n_local, (grid.R, grid.C, grid.r, grid.n_rows)
    least = gpu.empty(1, block.parent.dtype, CALLER)
    least.fill(n)
    given = (n, *where, words, rows, columns, least)
    k.find_known(n, given)
    k.join_known(n, (*given, block.parent))
    block.flatten()
    k.set_largest(1, (n, least, block.parent, block.largest))


def _marks(grid: Any, block: Block, k: Any, words: int, size: Any) -> dict[int, Any]:
    """For each owner the bits of its vertices in the largest tree; `size` counts them all."""
    marks = {}
    for owner, base, step, places in np.stack(forest.stripes_of(grid)).T.tolist():
        marks[owner] = gpu.empty(words, np.uint32, CALLER)
        given = (base, step, places, words, block.parent, block.largest)
        k.mark_tree(words * WARP, (*given, marks[owner], size))
    return marks


def _senders(grid: Any) -> list[int]:
    """The ranks whose messages `forest.exchanged` gives, in that order."""
    row = [grid.r * grid.C + c for c in range(grid.C) if c != grid.c]
    return [grid.rank, *row, *(r * grid.C + grid.c for r in range(grid.R) if r != grid.r)]


def _meetings(grid: Any, messages: list[Any], k: Any, words: int, size: Any) -> tuple[Any, int]:
    """(p, p) which two ranks have an own vertex of this one in their largest trees; and `size`."""
    senders, xp = np.array(_senders(grid)), engines.xp(size)
    found = gpu.empty(len(senders) ** 2, np.uint8, CALLER)
    found.fill(0)
    k.meet(words, (words, len(senders), xp.concatenate(messages), found))
    both = xp.concatenate([size.view(np.uint8), found]).get()  # one wait for both
    pairs = both[size.nbytes :].reshape(len(senders), -1) != 0
    meets = np.zeros((grid.p, grid.p), np.bool_)
    meets[np.ix_(senders, senders)] = pairs | pairs.T
    return meets, int(both[: size.nbytes].view(np.uint64)[0])


# One forest of those of all blocks


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

    def __init__(self, G: Any, symmetric: bool, threads: int | None) -> None:
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
        self._graph, self._symmetric = G, symmetric

    def join(self) -> int:
        """Make one forest of those of all blocks; returns the number of rounds."""
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
            pairs, states = self._step(pairs, total)
            total, self.asks = (int(x) for x in states[:, :2].sum(axis=0))
            moved = self._move_heads(states[:, 2:].min(axis=0))
            changed = self._ask_parents()
            if self.asks:
                changed = int(comm.allreduce(np.array([changed], np.int64))[0])
            comm.report(rounds, total + changed)
            if total == 0 and changed == 0 and not moved:
                return rounds

    def _there(self, array: Any) -> Any:
        """A copy of the array on the GPU, of the type of vertices."""
        return self.xp.asarray(np.ascontiguousarray(array, self.kind))

    def _room(self, most: int, count: Any) -> tuple[Any, Any, Any, int]:
        """Where kernels put pairs: their words, how many there are, and the table of pairs."""
        return gpu.empty(2 * most, self.kind, CALLER), count, zeros(SLOTS, np.uint64), SLOTS

    def _reports(self) -> tuple[dict[int, Any], int]:
        """For each owner of vertices of this block what it must learn of them, and the head."""
        grid, k = self.grid, self.kernels
        stripes = np.stack(forest.stripes_of(grid)).T.tolist()
        reports, least = {}, gpu.empty(grid.n_local, self.kind, CALLER)
        found = zeros(len(stripes) + 1, np.uint64)
        head = found[len(stripes) :].view(np.int64)
        head.fill(-1)
        parent, largest = trees(self._graph, self._symmetric, k)
        if grid.n_local:
            where = (grid.R, grid.C, grid.r, grid.c, grid.n_rows)
            least.fill(np.iinfo(self.kind).max)
            k.find_least(grid.n_local, (grid.n_local, *where, parent, least))
        for s, (owner, base, step, size) in enumerate(stripes):
            bits = words_of_bits(size, self.kind)
            words = reports[owner] = gpu.empty(HEADER + bits + 2 * size, self.kind, CALLER)
            if size:
                given = (parent, largest, least, words, found, head)
                threads = bits * 8 * self.kind.itemsize
                k.report(threads, (base, step, size, s, owner, grid.p, bits, *given))
        *counts, its_head = found.get().view(np.int64).tolist()
        for count, (owner, base, step, size) in zip(counts, stripes, strict=True):
            length = HEADER + words_of_bits(size, self.kind) + 2 * count
            if length >= size > 0:
                k.report_all(size, (base, step, size, parent, least, reports[owner]))
            reports[owner] = reports[owner][: min(length, size)]
        return reports, its_head

    def _hook_report(self, words: Any, out: Any) -> None:
        """Hook own vertices under those that a rank reported; the length says in which form."""
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
        received = self._delivered(pairs, total) if total else pairs
        out = self._room(received.size // 2, state[:1].view(np.uint64))
        self._hook_pairs(received, out)
        listed = (self.places, self.parents, state[1:2].view(np.uint64))
        k.climb(grid.owned, (*self.own, heads, heads.size, self.parent, *listed))
        k.ask_heads(heads.size, (heads.size, *self.own[1:], heads, self.parent, state[2:]))
        mine = state.get()
        self.waits = int(mine[1])
        states = self.exchange.comm.allgather(mine).reshape(grid.p, -1)
        return out[0][: 2 * int(mine[0])], states

    def _delivered(self, words: Any, total: int) -> Any:
        """Send pairs to the owners of their larger vertices; received pairs (own place, vertex)."""
        if total <= FEW_PAIRS:
            pairs = words.get().reshape(-1, 2)
            ids, names = forest.stars([(pairs[:, 0], pairs[:, 1])], self.threads)
            places, values = deliver(self.exchange, ids, names)
            return self._there(np.stack([places, values], axis=1)).reshape(-1)
        ids, names = self._stars(words[0::2], words[1::2])
        places, values = deliver(self.exchange, ids, names)
        return self.xp.stack([places.astype(self.kind), values], axis=1).reshape(-1)

    def _stars(self, highs: Any, lows: Any) -> tuple[Any, Any]:
        """`forest.stars` on the GPU."""
        xp = self.xp
        if highs.size == 0:
            return highs.astype(np.int64), xp.ascontiguousarray(lows)
        ids, places = xp.unique(xp.concatenate([highs, lows]), return_inverse=True)
        above, below = (xp.ascontiguousarray(part) for part in places.reshape(2, -1))
        smallest = union_find(int(ids.size), above, below)
        joined = smallest != xp.arange(ids.size)
        return ids[joined].astype(np.int64), ids[smallest[joined]]

    def _move_heads(self, tops: Any) -> bool:
        """Move own vertices under heads to the heads' parents; whether any head has another."""
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
        """Give vertices that wait the parent of their parent; returns how many had another one."""
        if self.asks == 0:
            return 0
        places, before = self.places[: self.waits], self.parents[: self.waits]
        above = self._answers(before, self.parent)
        self.parent[places] = above
        return int((above != before).sum())

    def _answers(self, ids: Any, values: Any) -> Any:
        """The owners' values of these vertices, where all ranks have `asks` of them."""
        xp, exchange = self.xp, self.exchange
        if self.asks > FEW_PAIRS:
            asked, back = xp.unique(ids, return_inverse=True)
            return ask(exchange, asked.astype(np.int64), values)[back.reshape(-1)]
        given = ids.get()
        firsts, back = distinct(given)
        asked = given[firsts].astype(np.int64)
        letters = Routed(exchange.comm, self.grid.owner(asked), self.threads)
        (received,) = letters.send(narrow(self.grid, asked))
        (found,) = letters.answer(values[xp.asarray(received)].get())
        return self._there(found[back])

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
        all_numbers = self.exchange.comm.allgather(np.array(own_numbers, np.int64))
        numbers = self._there(all_numbers.reshape(grid.p, -1).min(axis=0))
        if self.asks:
            labels[self.places[: self.waits]] = self._answers(self.parents[: self.waits], number)
        given = (self.parent, number, heads, numbers, heads.size, labels)
        k.write_labels(grid.owned, (*self.own, *given))
        return count, labels
