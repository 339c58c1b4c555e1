"""A run of the distributed matching on one rank that has a GPU; the steps are those of cpu.py.

The candidates of rows are found by gpu.cu.  All else is CuPy's gathers, sorts and sums.  These run
on NumPy arrays too, which is how they are tested.

What differs from the CPU: every round passes over all rows of the block to find those that lost
their candidate.  There are no lists of waiting rows, which one thread would have to walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu
from matchwood.dist.exchanges import Letters
from matchwood.dist.exchanges.packing import pack_marks, unpack_marks
from matchwood.matching.dominant.spread import group_columns, group_rows, numbers_of
from matchwood.primitives.hashing import hash2

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
    ),
)

BLOCK, GIANT_ROW = SOURCE.constants("BLOCK", "GIANT_ROW")


class Block(NamedTuple):
    """A rank's entries, by local ids, and the rule for ties."""

    view: Any
    names: Any  # of local vertices
    seed: int
    by_hash: bool


def first_free(block: Block, taken: Any, rows: Any) -> tuple[Any, Any]:
    """The free column along the first edge of each of these rows, and the weight; else -1 and 0."""
    view, kind = block.view, block.view.indices.dtype
    count = rows.shape[0]
    column, weight = gpu.empty(count, kind, CALLER), gpu.empty(count, view.data.dtype, CALLER)
    if count == 0:
        return column, weight
    space = gpu.workspace(
        CALLER, giants=(view.nnz // GIANT_ROW + 1, kind), listed=(1, np.uint64)
    )  # fmt: skip
    space.listed.data.memset_async(0, space.listed.nbytes)
    k = SOURCE.kernels(I=kind, W=view.data.dtype)
    given = (
        rows.astype(kind, copy=False), view.indptr, view.indices, view.data, block.names, taken,
        block.seed, block.by_hash, column, weight, space.giants, space.listed,
    )  # fmt: skip
    mean = view.nnz / max(view.n, 1)
    width = next((width for width in WIDTHS if mean <= ENTRIES_PER_LANE * width), WIDTHS[-1])
    getattr(k, f"first_free{width}")(count * width, (count, *given), block=BLOCK)
    if view.nnz > GIANT_ROW:
        k.first_free_giants(None, given, block=BLOCK, grid=GIANT_BLOCKS)
    return column, weight


class Run:
    """A run on one rank.

    Names and ids are signed here, and -1 stands for nobody.  Weights are compared by their bits,
    as integers: CuPy takes the smallest float32 for 0.
    """

    def __init__(self, G: Any, view: Any, seed: int, by_hash: bool, threads: int | None) -> None:
        self.grid, self.exchange, self.threads = G.grid, G.exchange, threads
        self.xp = xp = engines.xp(view.indices)
        self.seed, self.by_hash = seed, by_hash
        grid, kind = G.grid, view.indices.dtype
        self.kind, self.result_kind = kind, G.index_dtype
        ids, names = numbers_of(G, kind)
        self.ids, self.renamed = ids, G.names is not None
        self.block = Block(view, names, seed, by_hash)
        self.bits = np.dtype(f"i{view.data.dtype.itemsize}")
        self.taken = xp.zeros(grid.n_local, np.uint8)
        self.candidate = xp.full(grid.n_rows, -1, kind)
        slots = grid.owned * grid.C  # a candidate of each rank of the row, by place
        self.offered_ids, self.offered_names = (xp.full(slots, -1, kind) for _ in range(2))
        self.offered_bits = xp.zeros(slots, self.bits)
        self.own = xp.ascontiguousarray(names[: grid.n_rows][grid.owned_rows])
        self.pointer, self.waiter = (xp.full(grid.owned, -1, kind) for _ in range(2))
        self.weight, self.waiter_weight = (xp.zeros(grid.owned, self.bits) for _ in range(2))
        self.groups = (
            (self.exchange.column, group_columns(grid)),
            (self.exchange.row, group_rows(grid)),
        )

    @property
    def mate(self) -> Any:
        """The mates of own vertices, once the run is over."""
        return self.pointer.astype(self.result_kind)

    @property
    def weights(self) -> Any:
        """The weights of the edges of own vertices, 0 for free ones; on the CPU, to be added up."""
        return engines.moved(self.weight, "cpu").view(self.block.view.data.dtype)

    # Steps

    def propose(self) -> tuple[list[Any], Any]:
        """What came for own vertices, and how much from each rank of the row."""
        indptr, n_rows = self.block.view.indptr, self.grid.n_rows
        return self._offer(self.xp.flatnonzero(indptr[:n_rows] < indptr[1 : n_rows + 1]))

    def wake(self, told: Any) -> tuple[list[Any], Any]:
        """As `propose`, for the rows whose candidate was matched."""
        for comm, (owned, base, stride) in self.groups:
            words, sizes = comm.allgatherv(told)
            ends = np.cumsum([0, *np.asarray(sizes).tolist()])
            for s in range(comm.size):
                places = unpack_marks(words[ends[s] : ends[s + 1]], int(owned[s]))
                self.taken[int(base[s]) + places * int(stride[s])] = 1
        waits = (self.candidate >= 0) & (self.taken[: self.grid.n_rows] == 0)
        return self._offer(self.xp.flatnonzero(waits & (self.taken[self.candidate] != 0)))

    def _offer(self, rows: Any) -> tuple[list[Any], Any]:
        """Find candidates for these rows, and send them to the owners of the rows."""
        column, weight = first_free(self.block, self.taken, rows)
        self.candidate[rows] = column
        to, places = self.grid.row_owner(rows)
        column = self.xp.maximum(column, 0)  # for rows without one the weight, 0, says it
        columns = [places.astype(self.kind), self.ids[column], weight.view(self.bits)]
        if self.renamed:
            columns.append(self.block.names[column])
        letters = Letters(self.exchange.row, to, self.threads)
        return letters.send(*columns), letters.came

    def choose(self, came: tuple[list[Any], Any], round_: int) -> tuple[list[Any], Any]:
        """The packets that came, and the own vertices that are matched already."""
        (places, ids, bits, *names), counts = came
        senders = self.xp.repeat(self.xp.arange(self.grid.C), counts.tolist())
        slots = places.astype(np.int64) * self.grid.C + senders
        self.offered_ids[slots], self.offered_bits[slots] = ids, bits
        self.offered_names[slots] = names[0] if names else ids
        touched = self.xp.unique(places).astype(np.int64)
        best = self._best(touched)
        none = touched[best < 0]
        self.pointer[none], self.weight[none] = -1, 0
        touched, best = touched[best >= 0], best[best >= 0]
        changed = self.offered_names[best] != self.pointer[touched]
        touched, best = touched[changed], best[changed]
        self.pointer[touched] = self.offered_names[best]
        self.weight[touched] = self.offered_bits[best]
        matched = touched[self.waiter[touched] == self.pointer[touched]]
        target = self.offered_ids[best]
        letters = Letters(self.exchange.comm, self.grid.owner(target), self.threads)
        sent = (self.grid.places(target), self.own[touched], self.weight[touched])
        return letters.send(*sent), matched

    def settle(self, came: tuple[list[Any], Any]) -> tuple[Any, int]:
        """What is told about the vertices that were matched, and their number."""
        (places, names, bits), matched = came
        places = places.astype(np.int64)
        mutual = self.pointer[places] == names
        matched = self.xp.concatenate([matched, places[mutual]])
        self._wait(places[~mutual], names[~mutual], bits[~mutual])
        return pack_marks(matched, self.grid.owned, self.kind), int(matched.shape[0])

    # Who comes first

    def _best(self, places: Any) -> Any:
        """Which of the candidates of these own vertices comes first; -1 for none."""
        xp = self.xp
        best = xp.full(places.shape[0], -1, np.int64)
        best_bits, best_names = xp.zeros(places.shape[0], self.bits), self.own[places]
        for c in range(self.grid.C):
            at = places * self.grid.C + c
            bits, names = self.offered_bits[at], self.offered_names[at]
            wins = self._before(self.own[places], (bits, names), (best_bits, best_names))
            best[wins] = at[wins]
            best_bits[wins], best_names[wins] = bits[wins], names[wins]
        return best

    def _before(self, own: Any, one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
        """Whether an edge of each of these vertices comes before another one: (bits, names)."""
        (bits, names), (other_bits, other_names) = one, other
        wins = bits > other_bits
        tied = self.xp.flatnonzero((bits == other_bits) & (bits > 0))
        if tied.shape[0]:
            own, names, other_names = own[tied], names[tied], other_names[tied]
            mine, theirs = self._ranks(own, names), self._ranks(own, other_names)
            wins[tied] = (mine > theirs) | ((mine == theirs) & (names < other_names))
        return wins

    def _ranks(self, own: Any, names: Any) -> Any:
        """What decides between edges of equal weight; the larger comes first."""
        xp = self.xp
        if not self.by_hash:
            return xp.zeros(names.shape[0], np.uint64)
        return hash2(xp.minimum(own, names), xp.maximum(own, names), self.seed)

    def _wait(self, places: Any, names: Any, bits: Any) -> None:
        """Of those that point at an own vertex the first is kept."""
        xp = self.xp
        if places.shape[0] == 0:
            return
        ranks = self._ranks(self.own[places], names)
        order = xp.argsort(-names, kind="stable")
        for key in (ranks, bits, places):
            order = order[xp.argsort(key[order], kind="stable")]
        places = places[order]
        last = xp.ones(places.shape[0], np.bool_)
        last[:-1] = places[1:] != places[:-1]
        places, order = places[last], order[last]
        first = (bits[order], names[order])
        wins = self._before(
            self.own[places], first, (self.waiter_weight[places], self.waiter[places])
        )
        self.waiter[places[wins]] = first[1][wins]
        self.waiter_weight[places[wins]] = first[0][wins]
