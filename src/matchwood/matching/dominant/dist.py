"""Locally dominant matching on a grid of ranks.  The rule and the papers: matching/weighted.py.

A round, on every rank:

    propose   each row of the block that needs one finds its candidate: its first edge of the block
              to a free column.  Candidates go to the owners of the rows (ranks of one row)
    choose    owners point along the first of a vertex's candidates.  "I point at you" goes to the
              owner of the vertex pointed at (all ranks)
    settle    vertices that point at each other are matched, any other waits
    wake      matched vertices are told to the ranks that have them as columns or as rows.  Rows
              that waited for one of them propose again

Only what has changed is sent: a candidate when the one before was matched, a pointer when it
differs from the one before.  The ranks tell matched vertices as a list of places, or as a bitmap
where that is shorter.  Kernels: cpu_blocks.py and cpu_owners.py.

The rounds are those of cpu.py, and so is the order of edges: it compares the user's numbers of
vertices, which do not depend on the grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.dist.agreement import same
from matchwood.errors import EngineUnavailable
from matchwood.matching.cpu_rows import Ties
from matchwood.matching.dominant import cpu_blocks as blocks
from matchwood.matching.dominant import cpu_owners as owners
from matchwood.matching.dominant.cpu_records import Out
from matchwood.matching.mates import settled_weight
from matchwood.matching.methods import AUTO, Found, Origin, load
from matchwood.matching.result import Matching
from matchwood.primitives.frontier.cpu import BUFFER
from matchwood.primitives.wide_sums import finite, half_over_ranks
from matchwood.stopwatch import Stopwatch
from matchwood.teams import crew

CALLER = "weighted_matching"
METHODS = ("auto", "dominant")
FEW = 32  # rows for each word about matched vertices, from which on rows wait in lists


def weighted_matching(
    G: Any, *, method: str, seed: int, ties: str, threads: int | None = None
) -> Matching:
    """See matchwood.matching.weighted_matching.  Called by all ranks."""
    same(G.comm, CALLER, method=method, rng=seed, ties=ties)
    if method not in METHODS:
        remedy = (
            "'dominant' finds the same matching"
            if method in ("greedy", "suitor")
            else ("the distributed method is 'dominant'")
        )
        raise EngineUnavailable(f"{CALLER}: method {method!r} is for one machine; {remedy}")
    if G.engine != "cpu":
        raise EngineUnavailable(f"{CALLER}: has no engine for blocks on GPUs; pass A.on('cpu')")
    if G.grid.layout != "stripes":
        raise EngineUnavailable(f"{CALLER}: needs the layout 'stripes', got {G.grid.layout!r}")
    clock = Stopwatch()
    view = G.undirected_weights(CALLER)
    clock.lap("prepare")
    threads = G.threads if threads is None else threads
    if G.grid.p == 1 and G.names is None:  # the block is the graph
        method = AUTO["cpu"] if method == "auto" else method
        found = Found(*load(method, "cpu").match(view, seed, ties == "hash", threads))
        mate, rounds = found.mate, found.rounds
        weight = settled_weight(CALLER, view, mate, found.weight)
    else:
        method = "dominant"
        run = _Run(G, view, Ties(np.uint64(seed), ties == "hash"), threads)
        rounds = run.match()
        mate = run.owned.pointer.view(G.index_dtype)
        weight = half_over_ranks(G.comm, run.owned.weight.view(view.data.dtype))
    clock.lap("match")
    weight = finite(CALLER, "the weight of the matching", weight)
    matched = np.array([np.count_nonzero(mate >= 0)], np.int64)
    edges = int(G.comm.allreduce(matched)[0]) // 2
    origin = Origin(G, seed=seed, ties=ties)
    answer = Matching(G.vector(mate), weight, rounds, method, clock.seconds, _origin=origin)
    vars(answer)["cardinality"] = edges  # reading it must not need the other ranks
    return answer


class _Run:
    """A run on one rank."""

    def __init__(self, G: Any, view: Any, ties: Ties, threads: int | None) -> None:
        self.G, self.grid, self.exchange = G, G.grid, G.exchange
        self.ties, self.threads = ties, threads
        grid = G.grid
        kind, word = view.indices.dtype, np.dtype(f"u{np.dtype(G.index_dtype).itemsize}")
        local, bits = f"u{kind.itemsize}", np.dtype(f"i{view.data.dtype.itemsize}")
        ids = grid.original_local().astype(word)
        names = ids if G.names is None else np.asarray(G.names).astype(word)
        renamed = G.names is not None
        self.block = blocks.Block(
            view.indptr.view(f"u{view.indptr.dtype.itemsize}"), view.indices.view(local),
            view.data.view(bits), names, ids, renamed,
        )  # fmt: skip
        weight_words = max(1, bits.itemsize // word.itemsize)
        self.record, self.packet = 2 + renamed + weight_words, 2 + weight_words
        n_rows, n_local, owned = grid.n_rows, grid.n_local, grid.owned
        self.rows = blocks.Rows(
            np.zeros(n_local, np.int8), np.empty(0, local), np.empty(n_rows, local),
            np.empty(n_rows, local), np.empty(n_rows, bits),
        )  # fmt: skip
        self.bits = bits
        slots = owned * grid.C
        self.candidates = owners.Candidates(
            np.empty(slots if renamed else 0, word), np.empty(slots, word), np.zeros(slots, bits)
        )
        none = np.iinfo(word).max
        self.owned = owners.Owned(
            np.ascontiguousarray(names[:n_rows][grid.owned_rows]),
            np.full(owned, none, word), np.zeros(owned, bits),
            np.full(owned, none, word), np.zeros(owned, bits),
            np.zeros(owned, np.int32), np.empty(owned, word), np.empty(owned, word),
        )  # fmt: skip
        most = max(n_rows * self.record, owned * self.packet)
        self.words = np.empty(most, word)
        self.queue = np.empty(n_rows + 1, local)  # one more, which a pass writes and forgets
        self.fresh = np.empty(0, local)
        self.mean_row = 1 + view.nnz // max(n_rows, 1)
        self.columns = _columns(grid)
        self.of_rows = _row_ids(grid)

    def match(self) -> int:
        """Owners' pointers become the matching; returns the rounds that matched a vertex."""
        rounds = 0
        records = self._propose()
        while True:
            told, matched = self._settle(*self._choose(*records, rounds + 1))
            everywhere = int(self.G.comm.allreduce(np.array([matched], np.int64))[0])
            if everywhere == 0:
                return rounds
            rounds += 1
            self.G.comm.report(rounds, everywhere)
            records = self._wake(told)

    def _out(self, team: Any, width: int, receivers: int) -> Out:
        counts, places = (np.zeros((team.size, receivers), np.int64) for _ in range(2))
        return Out(self.words, counts, places, width)

    def _propose(self) -> tuple[Any, Any]:
        """What came for own vertices, and where that of each rank of the row begins."""
        block, rows = self.block, self.rows
        team = crew(self.threads, work=block.indices.size + rows.following.size)
        out = self._out(team, self.record, self.grid.C)
        team.run(blocks.propose, block, rows, self.ties, np.empty(team.size, self.bits), out)
        return self._sent(self.exchange.row, out)

    def _sent(self, comm: Any, out: Out) -> tuple[Any, Any]:
        counts = out.counts.sum(0) * out.width
        came, sizes = comm.alltoallv(out.words[: int(counts.sum())], counts)
        return came, _starts(sizes)

    def _choose(self, records: Any, starts: Any, round_: int) -> tuple[Any, Any, Any]:
        """The packets that came, and what `settle` goes on with."""
        team = crew(self.threads, work=4 * records.size)
        out = self._out(team, self.packet, self.grid.p)
        count = np.zeros(team.size, np.int64)
        team.run(
            owners.choose, records, starts, self.record, round_, self.ties, self.candidates,
            self.owned, count, out,
        )  # fmt: skip
        return self._sent(self.G.comm, out)[0], team, count

    def _settle(self, packets: Any, team: Any, count: Any) -> tuple[Any, int]:
        """What is told about the vertices that were matched, and their number."""
        word = self.owned.pointer.dtype
        bitmap = np.zeros(-(-self.grid.owned // (8 * word.itemsize)), word)
        told = np.zeros(1, np.int64)
        team.run(owners.settle, packets, self.packet, self.ties, self.owned, count, bitmap, told)
        matched = int(told[0])
        return (self.owned.matched[:matched] if matched < bitmap.size else bitmap), matched

    def _wake(self, told: Any) -> tuple[Any, Any]:
        """As `_propose`, for the rows whose candidate was matched."""
        of_columns = self._heard(self.exchange.column, told, self.columns)
        of_rows = self._heard(self.exchange.row, told, self.of_rows)
        news = of_columns.words.size + of_rows.words.size
        if not self.rows.waiting.size and news * FEW < self.rows.following.size:
            self._enlist()
        rows = 0 if self.rows.waiting.size else self.rows.following.size
        team = crew(self.threads, work=rows + 8 * self.mean_row * news)
        buffers = np.empty((2, team.size, BUFFER), self.queue.dtype)
        tails = np.zeros((2, 1), np.int64)
        fresh = blocks.Queue(self.fresh, tails[0], buffers[0])
        queue = blocks.Queue(self.queue, tails[1], buffers[1])
        out = self._out(team, self.record, self.grid.C)
        team.run(
            blocks.wake, self.block, self.rows, self.ties,
            blocks.HeardOf(of_columns, of_rows, self.grid.c), fresh, queue,
            np.empty(team.size, self.bits), out,
        )  # fmt: skip
        return self._sent(self.exchange.row, out)

    def _enlist(self) -> None:
        """From now on rows wait in lists."""
        kind = self.queue.dtype
        waiting = np.full(self.grid.n_local, np.iinfo(kind).max, kind)
        self.rows = self.rows._replace(waiting=waiting)
        self.fresh = np.empty(self.grid.n_columns, kind)
        team = crew(self.threads, work=4 * self.rows.following.size)
        team.run(blocks.enlist, self.rows)

    def _heard(self, comm: Any, told: Any, places: Any) -> blocks.Heard:
        words, sizes = comm.allgatherv(told)
        return blocks.Heard(words, _starts(sizes), *places)


def _columns(grid: Any) -> tuple[Any, Any, Any]:
    """Of the ranks of a column: their vertices, the local id of the first, and the step."""
    ranks = np.arange(grid.R)
    base = grid.n_rows + ranks - (ranks > grid.r)
    stride = np.full(grid.R, grid.R - 1)
    base[grid.r], stride[grid.r] = grid.c, grid.C  # own vertices are in the row group
    return np.array(grid.column_counts, np.int64), base.astype(np.int64), stride.astype(np.int64)


def _row_ids(grid: Any) -> tuple[Any, Any, Any]:
    """The same of the ranks of a row."""
    ranks = np.arange(grid.C, dtype=np.int64)
    return np.array(grid.row_counts, np.int64), ranks, np.full(grid.C, grid.C, np.int64)


def _starts(sizes: Any) -> Any:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
