"""A run of the distributed matching on one rank that has a GPU; the steps are those of cpu/.

Every step is a few kernels of gpu.cu.  The host waits for the GPU to read the counts of what is
sent: three times a round, besides what the exchanges need.

What differs from the CPU: every round passes over all rows of the block to find those that lost
their candidate.  There are no lists of waiting rows, which one thread would have to walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.ranks.exchanges.packing import pack_marks, words_of_bits

CALLER = "weighted_matching"
WIDTHS = (2, 8)  # lanes per row
ENTRIES_PER_LANE = 4  # entries per lane, on average
GIANT_BLOCKS = 256  # blocks that share the very long rows
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        *(f"first_free{width} = first_free<I,W,{width}>" for width in WIDTHS),
        "first_free_giants<I,W>",
        "list_rows<I>",
        "pack_offers<I,W>",
        "take_offers<I,B>",
        "choose<I,B>",
        "pack_pointers<I,B>",
        "meet<I,B>",
        "rank_waiters<I,B>",
        "name_waiters<I,B>",
        "mark_taken<I>",
        "add_weights<W>",
    ),
    types={"B": (np.uint32, np.uint64)},  # the bits of a weight
)

BLOCK, GIANT_ROW = SOURCE.constants("BLOCK", "GIANT_ROW")
WORD = 4  # bytes of a word of a record
SUM_BLOCKS = 512  # blocks at most that add up weights


class Block(NamedTuple):
    """A rank's entries, by local ids, and the rule for ties."""

    view: Any
    names: Any  # of local vertices
    seed: int
    by_hash: bool


def kernels_of(view: Any) -> Any:
    bits = np.dtype(f"u{view.data.dtype.itemsize}")
    return SOURCE.kernels(I=view.indices.dtype, W=view.data.dtype, B=bits)


def first_free(block: Block, taken: Any, rows: Any) -> tuple[Any, Any]:
    """The free column along the first edge of each of these rows, and the weight; else -1 and 0."""
    view, kind = block.view, block.view.indices.dtype
    count = rows.shape[0]
    column, weight = gpu.empty(count, kind, CALLER), gpu.empty(count, view.data.dtype, CALLER)
    if count == 0:
        return column, weight
    giants, listed = gpu.empty(view.nnz // GIANT_ROW + 1, kind, CALLER), _zeros(1)
    k = kernels_of(view)
    given = (
        rows, view.indptr, view.indices, view.data, block.names, taken, block.seed, block.by_hash,
        column, weight, giants, listed,
    )  # fmt: skip
    mean = view.nnz / max(view.n, 1)
    width = next((width for width in WIDTHS if mean <= ENTRIES_PER_LANE * width), WIDTHS[-1])
    getattr(k, f"first_free{width}")(count * width, (count, *given), block=BLOCK)
    if view.nnz > GIANT_ROW:
        k.first_free_giants(None, given, block=BLOCK, grid=GIANT_BLOCKS)
    return column, weight


def _zeros(size: int) -> Any:
    made = gpu.empty(size, np.uint64, CALLER)
    made.fill(0)
    return made


def _moved(G: Any, numbers: Any, kind: Any) -> Any:
    return engines.moved(np.ascontiguousarray(numbers, kind), G.engine)


class Counters:
    """Counters of a round, on the GPU, 0 at first."""

    def __init__(self, C: int, p: int) -> None:
        self._words = _zeros(C + p + 4)
        self.offers, self.pointers = self._words[:C], self._words[C : C + p]
        self.rows, self.touched, self.changed, self.matched = (
            self._words[C + p + k : C + p + k + 1] for k in range(4)
        )


class Run:
    """A run on one rank.  Names and ids are signed; nobody is -1, in `waiter` the largest value."""

    def __init__(
        self, G: Any, view: Any, seed: int, by_hash: bool, threads: int | None, groups: Any
    ) -> None:
        self.grid, self.exchange = G.grid, G.exchange
        self.xp = xp = engines.xp(view.indices)
        self.seed, self.by_hash = seed, by_hash
        grid, kind = G.grid, view.indices.dtype
        self.kind, self.result_kind = kind, G.index_dtype
        self.renamed = G.names is not None
        self.ids = ids = G.keep(f"ids {kind}", lambda: _moved(G, G.grid.original_local(), kind))
        names = G.keep(f"names {kind}", lambda: _moved(G, G.names, kind)) if self.renamed else ids
        self.block = Block(view, names, seed, by_hash)
        self.kernels = kernels_of(view)
        bits = np.dtype(f"u{view.data.dtype.itemsize}")
        self.offer_words, self.pointer_words = (
            (ids_sent * kind.itemsize + bits.itemsize) // WORD for ids_sent in (2 + self.renamed, 2)
        )
        self.taken = xp.zeros(grid.n_local, np.uint8)
        self.candidate = xp.full(grid.n_rows, -1, kind)
        slots = grid.owned * grid.C  # a candidate of each rank of the row, by place
        self.offered = (xp.empty(slots, kind), xp.empty(slots, kind), xp.zeros(slots, bits))
        self.when = xp.zeros(grid.owned, np.int32)  # the round in which a vertex was touched
        self.own = xp.ascontiguousarray(names[: grid.n_rows][grid.owned_rows])
        self.pointer, self.weight = xp.full(grid.owned, -1, kind), xp.zeros(grid.owned, bits)
        self.waiting_bits = xp.zeros(grid.owned, bits)
        self.waiting_hash = xp.zeros(grid.owned, np.uint64)
        self.waiter = xp.full(grid.owned, np.iinfo(kind).max, kind)
        self.lists = [self._empty(grid.n_rows) for _ in range(2)]
        self.changed, self.target, self.place = (self._empty(grid.owned) for _ in range(3))
        self.touched, self.matched = (self._empty(grid.owned) for _ in range(2))
        self.groups = tuple(zip((self.exchange.column, self.exchange.row), groups, strict=True))

    def _empty(self, size: int) -> Any:
        return gpu.empty(size, self.kind, CALLER)

    @property
    def mate(self) -> Any:
        return self.pointer.astype(self.result_kind)

    @property
    def weights(self) -> Any:
        """Sums, on the CPU, of parts of own vertices' weights; all weights if one overflows."""
        weights = self.weight.view(self.block.view.data.dtype)
        size = weights.size
        parts = gpu.empty(min(SUM_BLOCKS, -(-size // BLOCK)), np.float64, CALLER)
        if size:
            self.kernels.add_weights(None, (size, weights, parts), block=BLOCK, grid=parts.size)
        sums = parts.get()
        return sums if np.isfinite(sums).all() else engines.moved(weights, "cpu")

    # Steps

    def propose(self) -> Any:
        """Return the records received for own vertices."""
        return self._offer(True)

    def tell(self, matched: tuple[Any, int], few: bool) -> tuple[int, Any]:
        """Return the number of vertices matched on all ranks, and this rank's message.

        `wake` sends the message to the ranks that need it, also where matched vertices are few.
        """
        message, number = matched
        return int(self.exchange.comm.allreduce(np.array([number], np.int64))[0]), message

    def wake(self, message: Any) -> Any:
        for comm, (owned, base, stride) in self.groups:
            words, sizes = comm.allgatherv(message)
            end = 0
            for s, length in enumerate(np.asarray(sizes).tolist()):
                part, end = words[end : end + length], end + length
                listed = length < words_of_bits(owned[s], self.kind)
                size = length if listed else int(owned[s])
                where = (int(base[s]), int(stride[s]), self.taken)
                self.kernels.mark_taken(size, (size, listed, part, *where))
        return self._offer(False)

    def _offer(self, first: bool) -> Any:
        """Find candidates for rows, and send them to the owners of the rows."""
        grid, k = self.grid, self.kernels
        self.counters = counters = Counters(grid.C, grid.p)
        rows, place = self.lists
        given = (self.block.view.indptr, self.candidate, self.taken)
        k.list_rows(
            grid.n_rows,
            (grid.n_rows, first, grid.C, *given, rows, place, counters.rows, counters.offers),
        )
        counts = counters.offers.get().astype(np.int64)
        count = int(counts.sum())
        column, weight = first_free(self.block, self.taken, rows[:count])
        records = gpu.empty(count * self.offer_words, np.uint32, CALLER)
        k.pack_offers(
            count,
            (count, grid.C, grid.c, self.renamed, rows, place, counters.offers, column, weight,
             self.ids, self.block.names, self.candidate, records),
        )  # fmt: skip
        return self.exchange.row.alltoallv(records, counts * self.offer_words)[0]

    def choose(self, records: Any, round_: int) -> Any:
        """Return the records received from vertices that point at own ones."""
        grid, k, counters = self.grid, self.kernels, self.counters
        count = records.size // self.offer_words
        k.take_offers(
            count,
            (count, grid.C, self.renamed, records, round_, self.when, *self.offered, self.touched,
             counters.touched),
        )  # fmt: skip
        most = min(count, grid.owned)
        k.choose(
            most,
            (most, grid.C, grid.p, self.seed, self.by_hash, self.touched, counters.touched,
             self.own, *self.offered, self.waiter, self.pointer, self.weight, self.changed,
             self.target, self.place, counters.changed, counters.pointers, self.matched,
             counters.matched),
        )  # fmt: skip
        counts = counters.pointers.get().astype(np.int64)
        count = int(counts.sum())
        sent = gpu.empty(count * self.pointer_words, np.uint32, CALLER)
        k.pack_pointers(
            count,
            (count, grid.p, self.changed, self.target, self.place, counters.pointers, self.own,
             self.weight, sent),
        )  # fmt: skip
        return self.exchange.comm.alltoallv(sent, counts * self.pointer_words)[0]

    def settle(self, records: Any) -> tuple[Any, int]:
        """Return the message about the vertices that were matched, and their number."""
        k, counters = self.kernels, self.counters
        count = records.size // self.pointer_words
        waiting = (self.waiting_bits, self.waiting_hash, self.waiter)
        k.meet(
            count,
            (count, records, self.pointer, *waiting, self.matched, counters.matched),
        )  # fmt: skip
        if self.by_hash:
            k.rank_waiters(count, (count, records, self.seed, self.pointer, self.own, *waiting))
        k.name_waiters(
            count, (count, records, self.seed, self.by_hash, self.pointer, self.own, *waiting)
        )
        met = int(counters.matched.get()[0])
        return pack_marks(self.matched[:met], self.grid.owned, self.kind), met
