"""A run of the distributed matching on one rank, on its CPU threads.

The rule of a round: __init__.py.  Kernels: cpu_blocks.py and cpu_owners.py (own vertices).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Crew, crew_for_step, workspace
from matchwood.matching.cpu_rows import Ties
from matchwood.matching.dominant.ranks import cpu_blocks as blocks
from matchwood.matching.dominant.ranks import cpu_owners as owners
from matchwood.matching.dominant.ranks.blocks import group_columns, group_rows, numbers_of
from matchwood.matching.dominant.ranks.cpu_records import LINE, Came, Candidates, Out, row_words
from matchwood.matching.dominant.ranks.cpu_scans import Block, Rows
from matchwood.primitives.frontier.cpu import BUFFER

FEW = 32  # rows for each word about matched vertices, from which on rows wait in lists


class Run:
    """A run on one rank; the functions of the steps are those of gpu.py."""

    def __init__(self, G: Any, view: Any, seed: int, by_hash: bool, threads: int | None) -> None:
        self.G, self.grid, self.exchange = G, G.grid, G.exchange
        self.ties, self.threads = Ties(np.uint64(seed), by_hash), threads
        self.weight_type = view.data.dtype
        grid = G.grid
        kind, word = view.indices.dtype, np.dtype(f"u{np.dtype(G.index_dtype).itemsize}")
        local, bits = f"u{kind.itemsize}", np.dtype(f"i{view.data.dtype.itemsize}")
        _, names = numbers_of(G, word)
        renamed = G.names is not None
        self.block = Block(
            view.indptr.view(f"u{view.indptr.dtype.itemsize}"), view.indices.view(local),
            view.data.view(bits), names, grid.shape, renamed,
        )  # fmt: skip
        weight_words = max(1, bits.itemsize // word.itemsize)
        self.record = 1 if grid.C == 1 else 2 + renamed + weight_words
        self.packet = 2 + weight_words
        self.space = space = G.keep(
            f"matching space {word} {local} {bits}", lambda: self._space(names, word, local, bits)
        )
        self.words, self.queue, self.bits = space.words, space.queue, bits
        self.fresh = np.empty(0, local)
        self.rows = Rows(space.taken, np.empty(0, local), space.following, space.free, space.counts)
        self.candidates = Candidates(space.ids, space.candidates, space.candidate_bits)
        self.owned = owners.Owned(
            space.names, np.empty(grid.owned, word), space.weight, space.waiter,
            space.waiter_weight, space.stamp, space.own_queue, space.matched,
        )  # fmt: skip
        team = self._team(space.candidate_bits.size)
        team.run(owners.forget, space.taken, self.candidates, self.owned)
        self.mean_row = 1 + view.nnz // max(grid.n_rows, 1)
        ranks = np.arange(grid.p).reshape(grid.R, grid.C)
        self.groups = (
            (self.exchange.column, ranks[:, grid.c], group_columns(grid)),
            (self.exchange.row, ranks[grid.r], group_rows(grid)),
        )

    def _space(self, names: Any, word: Any, local: Any, bits: Any) -> Any:
        """Arrays that all runs of a graph use.  Else each would have them from the system anew,
        with a page fault for every few kilobytes."""
        grid = self.grid
        rows, owned = grid.n_rows, grid.owned
        slots = owned * grid.C
        space = workspace(
            taken=(-(-grid.n_local // 64), np.uint64), waiting=(grid.n_local, local),
            following=(rows, local), free=(rows + 1, local),
            queue=(rows + 1, local),  # one more, which a pass writes and forgets
            words=(max(rows * self.record, owned * self.packet), word),
            ids=(slots if self.block.renamed else 0, word), candidates=(slots, word),
            candidate_bits=(slots, bits), names=(owned, word), weight=(owned, bits),
            waiter=(owned, word), waiter_weight=(owned, bits), stamp=(owned, np.int32),
            own_queue=(owned, word), matched=(owned, word),
            counts=(-(-rows // blocks.PASS), np.int64),
        )  # fmt: skip
        space.names[:] = names[:rows][grid.owned_rows]
        return space

    @property
    def mate(self) -> Any:
        """The mates of own vertices, once the run is over."""
        return self.owned.pointer.view(self.G.index_dtype)

    @property
    def weights(self) -> Any:
        """The weights of the edges of own vertices, 0 for free ones."""
        return self.owned.weight.view(self.weight_type)

    def _team(self, work: int) -> Crew:
        return crew_for_step(self.threads, work=work)

    def _out(self, team: Any, width: int, comm: Any, parts: int) -> Out:
        row = row_words(comm.size)
        counts = np.zeros((parts, row), np.int64)
        places = np.empty((team.size, row), np.int64)
        bits = np.empty((team.size, LINE), np.int64).view(self.bits)
        return Out(self.words, counts, places, bits, comm.size, comm.rank, width)

    def propose(self) -> Came:
        """Candidates that came for own vertices."""
        block, rows = self.block, self.rows
        team = self._team(block.indices.size + rows.following.size)
        out = self._out(team, self.record, self.exchange.row, rows.counts.size)
        team.run(blocks.propose, block, rows, self.ties, self.candidates, out)
        return self._sent(self.exchange.row, out)

    def _sent(self, comm: Any, out: Out) -> Came:
        counts = out.counts.sum(0)[: out.receivers] * out.width
        end, counts[out.own] = int(counts.sum()), 0
        sent = int(counts.sum())
        words, sizes = comm.alltoallv(out.words[:sent], counts)
        return Came(words, _starts(sizes), out.words[sent:end], out.own, out.width)

    def choose(self, came: Came, round_: int) -> tuple[Came, Any, Any]:
        """The packets that came, and what `settle` goes on with."""
        records = (came.words.size + came.kept.size) // came.width
        team = self._team(12 * records)
        most = self.grid.owned if round_ == 1 else min(self.grid.owned, records)
        out = self._out(team, self.packet, self.G.comm, -(-most // owners.PLACES))
        buffers = np.empty((2, team.size, BUFFER), self.owned.queue.dtype)
        queued, matched = np.zeros((2, 1), np.int64)
        queues = owners.Queues(queued, matched, buffers)
        team.run(owners.choose, came, round_, self.ties, self.candidates, self.owned, queues, out)
        return self._sent(self.G.comm, out), team, queues

    def settle(self, came: tuple[Came, Any, Any]) -> tuple[Any, int]:
        """What is told about the vertices that were matched, and their number."""
        packets, team, queues = came
        word = self.owned.pointer.dtype
        bitmap = np.zeros(-(-self.grid.owned // (8 * word.itemsize)), word)
        team.run(owners.settle, packets, self.ties, self.owned, queues, bitmap)
        matched = int(queues.matched[0])
        return (self.owned.matched[:matched] if matched < bitmap.size else bitmap), matched

    def tell(self, matched: tuple[Any, int], few: bool) -> tuple[int, Any]:
        """The number of vertices matched on all ranks, and what this rank was told about them.

        In one exchange where they are few, or a group has all ranks in it anyway; else in three.
        """
        told, number = matched
        if few or self.grid.C == 1:
            words, sizes = self.G.comm.allgatherv(np.append(told, told.dtype.type(number)))
            ends = np.cumsum(sizes) - 1  # there each rank has its number
            starts = ends + 1 - sizes
            heard = [
                blocks.Heard(words, starts[ranks], ends[ranks], *places)
                for _, ranks, places in self.groups
            ]
            return int(words[ends].sum(dtype=np.int64)), heard
        everywhere = int(self.G.comm.allreduce(np.array([number], np.int64))[0])
        if everywhere == 0:
            return 0, None
        heard = []
        for comm, _, places in self.groups:
            words, sizes = comm.allgatherv(told)
            starts = _starts(sizes)
            heard.append(blocks.Heard(words, starts[:-1], starts[1:], *places))
        return everywhere, heard

    def wake(self, heard: Any) -> Came:
        """As `propose`, for the rows whose candidate was matched."""
        of_columns, of_rows = heard
        news = int((of_columns.ends - of_columns.starts).sum())
        news += int((of_rows.ends - of_rows.starts).sum())
        if not self.rows.waiting.size and news * FEW < self.rows.following.size:
            self._enlist()
        rows = 0 if self.rows.waiting.size else self.rows.following.size
        team = self._team(rows + 8 * self.mean_row * news)
        buffers = np.empty((2, team.size, BUFFER), self.queue.dtype)
        tails = np.zeros((2, 1), np.int64)
        fresh = blocks.Queue(self.fresh, tails[0], buffers[0])
        queue = blocks.Queue(self.queue, tails[1], buffers[1])
        parts = team.size if self.rows.waiting.size else self.rows.counts.size
        out = self._out(team, self.record, self.exchange.row, parts)
        team.run(
            blocks.wake, self.block, self.rows, self.ties,
            blocks.HeardOf(of_columns, of_rows, self.grid.c), fresh, queue, self.candidates, out,
        )  # fmt: skip
        return self._sent(self.exchange.row, out)

    def _enlist(self) -> None:
        """From now on rows wait in lists."""
        self.rows = self.rows._replace(waiting=self.space.waiting)
        self.fresh = np.empty(self.grid.n_columns, self.queue.dtype)
        team = self._team(4 * self.rows.following.size)
        team.run(blocks.enlist, self.rows)


def _starts(sizes: Any) -> Any:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
