"""A run of the matching on one rank, on its CPU threads: the block's part; owners.py has the rest.

A block is a part of the rows of a row group: those entries whose columns are in one column group.
Local ids, places and stripes: engines/ranks/grid.  The rule of a round: dominant/ranks/__init__.py.

Every free row has a candidate, its first edge of the block to a free column.  When that is taken,
the row is scanned again.

In the first rounds many columns are taken at once, and a pass over all rows finds those that have
lost their candidate, in the order of memory.  Once few are taken, rows wait in linked lists, one
for each column (`enlist`).  From then on a row costs work when its candidate has to change, and
none while it waits: on a path of ascending weights, where a round matches one edge, that makes n
rounds of constant work.

Vertices have two numbers besides the local one: the grid's id says who owns a vertex, the name
is the user's number, which breaks ties and stands in the answer.  They differ only where the
graph was renumbered.

Scans of a row: matching/cpu.py.  Messages: owners.py.  Weights are the bits of positive floats as
signed integers, which compare as the floats do; 0 stands for no edge.

Races.  Searching reads only what the round before took.  Lists change by compare-and-swap, and
are closed by one member each.  The order of lists and queues is arbitrary, and nothing depends on
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    Team,
    atomic_cas,
    atomic_or,
    barrier,
    crew_for_step,
    device,
    expanded,
    interrupted,
    kernel,
    load_acquire,
    next_chunk,
    share,
    workspace,
)
from matchwood.engines.cpu.hints import prefetch, trailing_zeros
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import column_id
from matchwood.matching.cpu import Ties, WeightedRows, always, first_edge
from matchwood.matching.dominant.ranks.cpu import owners
from matchwood.matching.dominant.ranks.cpu.owners import (
    LINE,
    Candidates,
    Received,
    SendBuffer,
    begin_part,
    begin_records,
    nobody,
    put_bits,
    records_of,
    row_words,
)
from matchwood.primitives.frontier.cpu import BUFFER, flush, push

Array = np.ndarray[Any, Any]
ROWS_PER_NEWS_WORD = 32  # rows wait in lists once there are more per word of received news
PASS = 4096  # rows that a member takes at a time, and whose free ones are listed together
AHEAD = 16  # rows between the one whose columns are prefetched and the one that is scanned


class Block(NamedTuple):
    rows: WeightedRows
    names: Array  # of local vertices
    shape: GridShape  # the grid's ids of columns follow from it
    renamed: bool  # names and ids differ: records have both


class Progress(NamedTuple):
    """What a rank knows about the vertices of its block."""

    taken: Array  # uint64, a bit for each local vertex, so that all of it stays in the cache
    waiting: Array  # (local vertices, or 0 before lists) first row that waits for this column
    following: Array  # (rows) the next row of the list that a row is in; before: its candidate
    free: Array  # (rows) before there are lists: of each PASS rows those that may need a candidate
    counts: Array  # the number of these for each PASS rows


@expanded
def taken_bit(taken: Array, v: Any) -> Any:
    """1 where local vertex v is taken, else 0."""
    x = np.uint64(v)
    return (taken[x >> np.uint64(6)] >> (x & np.uint64(63))) & np.uint64(1)


@expanded
def is_taken(taken: Array, v: Any) -> bool:
    return bool(taken_bit(taken, v) != np.uint64(0))


class Columns(NamedTuple):
    """What a scan asks of the columns of a block."""

    taken: Array
    names: Array


@device
def _accept_if_free(columns: Columns, v: Any, w: Any) -> Any:
    """w, or a negative number when v is taken."""
    return w | -np.int64(taken_bit(columns.taken, v)), False


@device
def _name(columns: Columns, v: Any) -> Any:
    return columns.names[v]


class Queue(NamedTuple):
    """Vertices that members append to; see primitives/frontier."""

    vertices: Array
    tail: Array
    buffers: Array  # one row for each member


class MatchedNews(NamedTuple):
    """Matched vertices as ranks of a group send them: places, or a bitmap where that is shorter."""

    words: Array
    starts: Array  # (ranks) where the words of each rank begin,
    ends: Array  # (ranks) and where they end
    owned: Array  # (ranks) vertices of each
    base: Array  # (ranks) the local id of place 0 of each,
    stride: Array  # (ranks) and how far those of two places are apart


class RoundNews(NamedTuple):
    """What a rank received in a round."""

    columns: MatchedNews  # from the ranks of its column of the grid
    rows: MatchedNews  # from those of its row
    own: int  # its own number among the latter


@expanded
def _wait_for(progress: Progress, v: Any, u: Any, plain: bool) -> None:
    """Put row u into the list of column v.  `plain`: no other member is at work."""
    waiting, following = progress.waiting, progress.following
    head = load_acquire(waiting, v)
    while True:
        following[u] = head
        if plain:
            waiting[v] = u
            return
        seen = atomic_cas(waiting, v, head, waiting.dtype.type(u))
        if seen == head:
            return
        head = seen


@kernel
def enlist(team: Team, progress: Progress) -> None:
    """Put each free row into the list of its candidate."""
    none = nobody(progress.following)
    lo, hi = share(team, progress.waiting.size)
    progress.waiting[lo:hi] = none
    if barrier(team):
        return
    lo, hi = share(team, progress.counts.size)
    for part in range(lo, hi):
        for i in range(part * PASS, part * PASS + progress.counts[part]):
            if interrupted(team, i):
                return
            u = progress.free[i]
            v = progress.following[u]
            if v != none and not is_taken(progress.taken, u):
                _wait_for(progress, v, u, team.size == 1)


@expanded
def _write(
    block: Block, out: SendBuffer, candidates: Candidates, at: Any, k: Any, v: Any, bits: Array,
    i: Any,
) -> None:  # fmt: skip
    """Write a record: place k of a row, its candidate v, and the weight bits[i].

    Weight 0 means no candidate, and the record names any vertex.  A block that has whole
    rows is that of their owner: it stores the candidate, and the record is the place alone.
    """
    v = v if v != nobody(block.rows.indices) else block.rows.indices.dtype.type(0)
    at = np.uint64(at) * np.uint64(out.width)
    out.words[at] = k
    number = column_id(block.shape, v)
    if out.receivers == 1:
        candidates.bits[k] = bits[i]
        if block.renamed:
            candidates.ids[k], candidates.names[k] = number, block.names[v]
        else:
            candidates.names[k] = number
        return
    out.words[at + np.uint64(1)] = number
    at += np.uint64(2)
    if block.renamed:
        out.words[at] = block.names[v]
        at += np.uint64(1)
    put_bits(out.words, at, bits, i)


@kernel
def propose(
    team: Team, block: Block, progress: Progress, ties: Ties, candidates: Candidates,
    out: SendBuffer,
) -> None:  # fmt: skip
    """Write the candidate of every row with an edge, for the row's owner.  All vertices are free.

    A record is (place, id[, name], weight) of a row, its candidate, and the edge.
    Caller: out.counts is 0.
    """
    C, indptr, none = out.receivers, block.rows.indptr, nobody(block.rows.indices)
    columns = Columns(progress.taken, block.names)
    last, parts = progress.following.size, progress.counts.size
    part = next_chunk(team, parts, 1)
    while part >= 0:
        counts, begin = out.counts[part], part * PASS
        c, left = begin % C, begin
        for i in range(begin, min(begin + PASS, last)):
            full = indptr[i] < indptr[i + 1]
            progress.free[left] = i
            left += full
            counts[c] += full
            c = c + 1 if c + 1 < C else 0
        progress.counts[part] = left - begin
        part = next_chunk(team, parts, 1)
    if begin_records(team, out):
        return
    stripes = block.rows.indices.dtype.type(C)
    bits, places = out.bits[team.me], out.places[team.me]
    done, part = 0, next_chunk(team, parts, 1)
    while part >= 0:
        done, stop = begin_part(team, out, done, part), part * PASS + progress.counts[part]
        for i in range(part * PASS, stop):
            if interrupted(team, i):
                return
            prefetch(block.rows.indices, np.uint64(indptr[progress.free[min(i + AHEAD, stop - 1)]]))
            u = progress.free[i]
            v, bits[0] = first_edge(
                block.rows, u, none, columns, _accept_if_free, always, _name, ties
            )
            progress.following[u] = v
            k = u // stripes
            c = u - k * stripes
            _write(block, out, candidates, places[c], k, v, bits, 0)
            places[c] += 1
        part = next_chunk(team, parts, 1)


@expanded
def _fetch(block: Block, u: Any) -> None:
    """Prefetch both ends of u's row; most rows of a block are short."""
    indptr = block.rows.indptr
    first, last = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)]) - np.uint64(1)
    prefetch(block.rows.weights, first)
    prefetch(block.rows.weights, last)
    prefetch(block.rows.indices, first)
    prefetch(block.rows.indices, last)


@expanded
def _count(queue: Array, lo: Any, hi: Any, part: Any, out: SendBuffer) -> None:
    """Count the rows of a part, queue[lo:hi], by the rank that owns them."""
    C, counts = queue.dtype.type(out.receivers), out.counts[part]
    for i in range(lo, hi):
        counts[queue[i] % C] += 1


@expanded
def _propose_again(
    team: Team, block: Block, progress: Progress, ties: Ties, queue: Array, lo: Any, hi: Any,
    candidates: Candidates, out: SendBuffer,
) -> None:  # fmt: skip
    """As `propose`: find another candidate for the rows of a part, queue[lo:hi]."""
    C, none = block.rows.indices.dtype.type(out.receivers), nobody(block.rows.indices)
    columns = Columns(progress.taken, block.names)
    places, bits = out.places[team.me], out.bits[team.me]
    plain, listed = team.size == 1, progress.waiting.size > 0
    for i in range(lo, hi):
        if interrupted(team, np.int64(i)):
            return
        _fetch(block, queue[min(i + np.uint64(AHEAD), hi - np.uint64(1))])
        prefetch(block.rows.indptr, queue[min(i + np.uint64(2 * AHEAD), hi - np.uint64(1))])
        u = queue[i]
        v, bits[0] = first_edge(block.rows, u, none, columns, _accept_if_free, always, _name, ties)
        if not listed:
            progress.following[u] = v
        elif v != none:
            _wait_for(progress, v, u, plain)
        k = u // C
        c = u - k * C
        _write(block, out, candidates, places[c], k, v, bits, 0)
        places[c] += 1


@expanded
def _take(
    team: Team, news: MatchedNews, s: int, progress: Progress, collect: bool, fresh: Queue,
    count: int,
) -> int:  # fmt: skip
    """Mark this member's share of the news from rank s of a group; `collect` them in `fresh`."""
    start = news.starts[s]
    size = news.ends[s] - start
    width = 8 * news.words.itemsize
    bitmap = size == (news.owned[s] + width - 1) // width
    buffer = fresh.buffers[team.me]
    base, stride = news.base[s], news.stride[s]
    lo, hi = share(team, size)
    for i in range(start + lo, start + hi):
        if interrupted(team, i):
            break
        word = np.uint64(news.words[i])
        left = word if bitmap else np.uint64(1)
        while left:
            if bitmap:
                k = np.int64((i - start) * width) + np.int64(trailing_zeros(left))
            else:
                k = np.int64(word)
            left &= left - np.uint64(1)
            local = base + k * stride
            x = np.uint64(local)
            bit = np.uint64(1) << (x & np.uint64(63))
            if team.size == 1:
                progress.taken[x >> np.uint64(6)] |= bit
            else:
                atomic_or(progress.taken, x >> np.uint64(6), bit)
            if collect:
                count = push(buffer, count, local, fresh.vertices, fresh.tail)
    return count


@expanded
def _those_without(progress: Progress, part: Any, queue: Array) -> Any:
    """Queue the free rows of a part whose candidate was taken; drop rows without candidates."""
    none, taken = nobody(progress.following), progress.taken
    begin = np.uint64(part * PASS)
    left = end = begin
    for i in range(begin, begin + np.uint64(progress.counts[part])):
        u = progress.free[i]
        v = progress.following[u]
        has = v != none
        waits = np.uint64(has) & ~taken_bit(taken, u)  # no branches, as in scans
        progress.free[left] = u
        left += waits
        queue[end] = u
        end += waits & taken_bit(taken, v if has else u)
    progress.counts[part] = left - begin
    return begin, end


@expanded
def _those_that_waited(team: Team, progress: Progress, fresh: Queue, queue: Queue) -> bool:
    """Close the lists of the columns in `fresh`, and queue their rows; True: the team stops."""
    none = nobody(progress.following)
    lo, hi = share(team, fresh.tail[0])
    count = 0
    for i in range(lo, hi):
        v = fresh.vertices[i]
        u = progress.waiting[v]
        progress.waiting[v] = none
        while u != none:
            if not is_taken(progress.taken, u):
                count = push(queue.buffers[team.me], count, u, queue.vertices, queue.tail)
            u = progress.following[u]
    flush(queue.buffers[team.me], count, queue.vertices, queue.tail)
    return barrier(team)


@expanded
def _slice(queue: Queue, part: Any, parts: Any) -> Any:
    return np.uint64(queue.tail[0] * part // parts), np.uint64(queue.tail[0] * (part + 1) // parts)


@kernel
def wake(
    team: Team, block: Block, progress: Progress, ties: Ties, news: RoundNews, fresh: Queue,
    queue: Queue, candidates: Candidates, out: SendBuffer,
) -> None:  # fmt: skip
    """Mark matched vertices; rows whose candidate was one of them find another, for its owner.

    A rank's own vertices are marked as columns.  Records are those of `propose`, of weight 0 where
    a row has no candidate left.  Caller: out.counts and both tails are 0.
    """
    of_columns, of_rows, own = news.columns, news.rows, news.own
    listed = progress.waiting.size > 0
    count = 0
    for s in range(of_columns.owned.size):
        count = _take(team, of_columns, s, progress, listed, fresh, count)
    flush(fresh.buffers[team.me], count, fresh.vertices, fresh.tail)
    for s in range(of_rows.owned.size):
        if s != own:
            _take(team, of_rows, s, progress, False, fresh, 0)
    if barrier(team):
        return
    parts, lost = out.counts.shape[0], queue.vertices
    if listed and _those_that_waited(team, progress, fresh, queue):
        return
    part = next_chunk(team, parts, 1)
    while part >= 0:
        if listed:
            begin, end = _slice(queue, part, parts)
        else:
            begin, end = _those_without(progress, part, lost)
        _count(lost, begin, end, part, out)
        part = next_chunk(team, parts, 1)
    if begin_records(team, out):
        return
    done, part = 0, next_chunk(team, parts, 1)
    while part >= 0:
        done = begin_part(team, out, done, part)
        begin = _slice(queue, part, parts)[0] if listed else np.uint64(part * PASS)
        end = begin + np.uint64(records_of(out, part))
        _propose_again(team, block, progress, ties, lost, begin, end, candidates, out)
        part = next_chunk(team, parts, 1)


# The run


class Run:
    """A run on one rank, with the steps of gpu.py; `groups`: `stripes` of its column and row."""

    def __init__(
        self, G: Any, view: Any, seed: int, by_hash: bool, threads: int | None, groups: Any
    ) -> None:
        self.G, self.grid, self.exchange = G, G.grid, G.exchange
        self.ties, self.threads = Ties(np.uint64(seed), by_hash), threads
        self.weight_type = view.data.dtype
        grid = G.grid
        kind, word = view.indices.dtype, np.dtype(f"u{np.dtype(G.index_dtype).itemsize}")
        local, bits = f"u{kind.itemsize}", np.dtype(f"i{view.data.dtype.itemsize}")
        renamed = G.names is not None
        names = G.keep(f"names {word}", lambda: np.ascontiguousarray(_numbers(G), word))
        unsigned = f"u{view.indptr.dtype.itemsize}"
        rows = WeightedRows(
            view.indptr.view(unsigned), view.indices.view(local), view.data.view(bits)
        )
        self.block = Block(rows, names, grid.shape, renamed)
        weight_words = max(1, bits.itemsize // word.itemsize)
        self.record = 1 if grid.C == 1 else 2 + renamed + weight_words
        self.packet = 2 + weight_words
        self.space = space = G.keep(
            f"matching space {word} {local} {bits}", lambda: self._space(names, word, local, bits)
        )
        self.words, self.queue, self.bits = space.words, space.queue, bits
        self.fresh = np.empty(0, local)
        self.progress = Progress(
            space.taken, np.empty(0, local), space.following, space.free, space.counts
        )
        self.candidates = Candidates(space.ids, space.candidates, space.candidate_bits)
        self.owned = owners.Owned(
            space.names, np.empty(grid.owned, word), space.weight, space.waiter,
            space.waiter_weight, space.stamp, space.own_queue, space.matched,
        )  # fmt: skip
        team = self._team(space.candidate_bits.size)
        team.run(owners.forget, space.taken, self.candidates, self.owned)
        self.mean_row = 1 + view.nnz // max(grid.n_rows, 1)
        ranks = np.arange(grid.p).reshape(grid.R, grid.C)
        of_columns, of_rows = groups
        self.groups = (
            (self.exchange.column, ranks[:, grid.c], of_columns),
            (self.exchange.row, ranks[grid.r], of_rows),
        )

    def _space(self, names: Any, word: Any, local: Any, bits: Any) -> Any:
        """Arrays that all runs of a graph share: new ones cost a page fault per few kilobytes."""
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
            counts=(-(-rows // PASS), np.int64),
        )  # fmt: skip
        space.names[:] = names[:rows][grid.owned_rows]
        return space

    @property
    def mate(self) -> Any:
        return self.owned.pointer.view(self.G.index_dtype)

    @property
    def weights(self) -> Any:
        """The weights of the edges of own vertices, 0 for free ones."""
        return self.owned.weight.view(self.weight_type)

    def _free(self) -> tuple[Any, Any]:
        """Which local vertices are free, and the rows of those in the row group."""
        bits = np.unpackbits(self.progress.taken.view(np.uint8), bitorder="little")
        free = bits[: self.grid.n_local] == 0
        return free, np.flatnonzero(free[: self.grid.n_rows])

    def entries_left(self) -> int:
        """The entries in the rows of free vertices."""
        indptr, (_, rows) = self.block.rows.indptr, self._free()
        return int((indptr[rows + 1] - indptr[rows]).sum())

    def edges_left(self) -> tuple[Any, Any, Any]:
        """The edges of the block between free vertices, each once: names and weights."""
        indptr, indices, bits = self.block.rows[:3]
        names, (free, rows) = self.block.names, self._free()
        begins = indptr[rows].astype(np.int64)
        lengths = indptr[rows + 1].astype(np.int64) - begins
        before = np.cumsum(lengths) - lengths
        at = np.arange(lengths.sum()) + np.repeat(begins - before, lengths)
        u, v = np.repeat(names[rows], lengths), names[indices[at]]
        kept = np.flatnonzero(free[indices[at]] & (u < v))
        weights = bits[at[kept]].view(self.weight_type)
        return u[kept].astype(np.int64), v[kept].astype(np.int64), weights

    def settle_left(self, places: Any, mates: Any, weights: Any) -> None:
        """Match these own vertices, of those that are free; the others stay so."""
        free = self._free()[0][: self.grid.n_rows][self.grid.owned_rows]
        self.mate[free], self.weights[free] = -1, 0
        self.mate[places], self.weights[places] = mates, weights

    def _team(self, work: int) -> Crew:
        return crew_for_step(self.threads, work=work)

    def _out(self, team: Any, width: int, comm: Any, parts: int) -> SendBuffer:
        row = row_words(comm.size)
        counts = np.zeros((parts, row), np.int64)
        places = np.empty((team.size, row), np.int64)
        bits = np.empty((team.size, LINE), np.int64).view(self.bits)
        return SendBuffer(self.words, counts, places, bits, comm.size, comm.rank, width)

    def propose(self) -> Received:
        """Return the candidates received for own vertices."""
        block, progress = self.block, self.progress
        team = self._team(block.rows.indices.size + progress.following.size)
        out = self._out(team, self.record, self.exchange.row, progress.counts.size)
        team.run(propose, block, progress, self.ties, self.candidates, out)
        return self._sent(self.exchange.row, out)

    def _sent(self, comm: Any, out: SendBuffer) -> Received:
        counts = out.counts.sum(0)[: out.receivers] * out.width
        end, counts[out.own] = int(counts.sum()), 0
        sent = int(counts.sum())
        words, sizes = comm.alltoallv(out.words[:sent], counts)
        return Received(words, _starts(sizes), out.words[sent:end], out.own, out.width)

    def choose(self, received: Received, round_: int) -> tuple[Received, Any, Any]:
        """Return the packets received, and the team and queues for `settle`."""
        records = (received.words.size + received.kept.size) // received.width
        team = self._team(12 * records)
        most = self.grid.owned if round_ == 1 else min(self.grid.owned, records)
        out = self._out(team, self.packet, self.G.comm, -(-most // owners.PLACES))
        buffers = np.empty((2, team.size, BUFFER), self.owned.queue.dtype)
        queued, matched = np.zeros((2, 1), np.int64)
        queues = owners.Queues(queued, matched, buffers)
        team.run(
            owners.choose, received, round_, self.ties, self.candidates, self.owned, queues, out
        )
        return self._sent(self.G.comm, out), team, queues

    def settle(self, received: tuple[Received, Any, Any]) -> tuple[Any, int]:
        """Return the message about the vertices that were matched, and their number."""
        packets, team, queues = received
        word = self.owned.pointer.dtype
        bitmap = np.zeros(-(-self.grid.owned // (8 * word.itemsize)), word)
        team.run(owners.settle, packets, self.ties, self.owned, queues, bitmap)
        matched = int(queues.matched[0])
        return (self.owned.matched[:matched] if matched < bitmap.size else bitmap), matched

    def tell(self, matched: tuple[Any, int], few: bool) -> tuple[int, Any]:
        """Return the number of vertices matched on all ranks, and what this rank received.

        In one exchange where they are few, or a group has all ranks in it anyway; else in three.
        """
        message, number = matched
        if few or self.grid.C == 1:
            words, sizes = self.G.comm.allgatherv(np.append(message, message.dtype.type(number)))
            ends = np.cumsum(sizes) - 1  # the last word of each rank is its number
            starts = ends + 1 - sizes
            news = [
                MatchedNews(words, starts[ranks], ends[ranks], *places)
                for _, ranks, places in self.groups
            ]
            return int(words[ends].sum(dtype=np.int64)), news
        everywhere = int(self.G.comm.allreduce(np.array([number], np.int64))[0])
        if everywhere == 0:
            return 0, None
        news = []
        for comm, _, places in self.groups:
            words, sizes = comm.allgatherv(message)
            starts = _starts(sizes)
            news.append(MatchedNews(words, starts[:-1], starts[1:], *places))
        return everywhere, news

    def wake(self, news: Any) -> Received:
        of_columns, of_rows = news
        words = int((of_columns.ends - of_columns.starts).sum())
        words += int((of_rows.ends - of_rows.starts).sum())
        if (
            not self.progress.waiting.size
            and words * ROWS_PER_NEWS_WORD < self.progress.following.size
        ):
            self._enlist()
        rows = 0 if self.progress.waiting.size else self.progress.following.size
        team = self._team(rows + 8 * self.mean_row * words)
        buffers = np.empty((2, team.size, BUFFER), self.queue.dtype)
        tails = np.zeros((2, 1), np.int64)
        fresh = Queue(self.fresh, tails[0], buffers[0])
        queue = Queue(self.queue, tails[1], buffers[1])
        parts = team.size if self.progress.waiting.size else self.progress.counts.size
        out = self._out(team, self.record, self.exchange.row, parts)
        team.run(
            wake, self.block, self.progress, self.ties,
            RoundNews(of_columns, of_rows, self.grid.c), fresh, queue, self.candidates, out,
        )  # fmt: skip
        return self._sent(self.exchange.row, out)

    def _enlist(self) -> None:
        self.progress = self.progress._replace(waiting=self.space.waiting)
        self.fresh = np.empty(self.grid.n_columns, self.queue.dtype)
        team = self._team(4 * self.progress.following.size)
        team.run(enlist, self.progress)


def _starts(sizes: Any) -> Any:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _numbers(G: Any) -> Any:
    """The user's numbers of all local vertices."""
    return G.grid.original_local() if G.names is None else G.names
