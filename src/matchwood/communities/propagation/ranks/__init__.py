"""Label propagation on a grid of ranks.  The rule: reference.py; a rank's own work: cpu.py.

On one host the first rank does it for all (gate/distributed/one_host).

The C ranks of a row group each have a part of its rows.  In a sub-round

1. they join, by an "or" of bits, which of its vertices have a neighbour that moved;
2. each adds up the labels in its part of these rows, and sends the lists to the owners;
3. the owners join the lists and take the best label ("2.5D": the third step needs no row group);
4. the new labels are expanded to their column groups, where rows next to them become active.

A vertex that is not active would keep its label.  So the active vertices may be more than on one
machine, as long as all that might move are among them: in small graphs, where a sub-round has few
vertices, all look, and step 1 is left out.

In the rounds after the sub-rounds, of neighbours that want to move only the first does.  The owners
expand their wishes to row and column groups, and a fold returns which have a neighbour before them.

Weights are integers, so sums are exact in any order: labels are those of one machine.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.communities.propagation import label_propagation as one_machine
from matchwood.communities.propagation.reference import SPLIT_ROUNDS, Plan
from matchwood.communities.quality import sum_of_squares
from matchwood.communities.result import Communities
from matchwood.communities.subrounds import SMALL_VERTICES, subrounds_of
from matchwood.communities.weights import finished, strengths, whole_weights
from matchwood.engines.ranks.agreement import same
from matchwood.engines.ranks.exchanges import by_destination
from matchwood.gate.distributed import one_host
from matchwood.primitives.hashing import hash2
from matchwood.primitives.number.ranks import number_labels
from matchwood.primitives.tally.cpu import rows_of, unsigned
from matchwood.primitives.transpose import trusted_transpose
from matchwood.stopwatch import Stopwatch

PACKAGE = __name__.rpartition(".")[0]


class BlockLevel(NamedTuple):
    """The block of a rank with integer weights, and its own vertices by place.

    `data` is None where all weights of the graph are 1.  `inner` is twice the weight of loops, None
    where there are none.
    """

    indptr: Any
    indices: Any
    data: Any
    inner: Any
    strength: Any
    total: int  # the sum of all strengths, over all ranks
    entries: int  # the entries of all ranks


def block_level(G: Any, caller: str) -> BlockLevel:
    """The undirected weights of a distributed graph as integers (weights.py); kept by the graph.

    Each rank has the integers of its block.  The power of two is found by sums over all ranks,
    which are exact, so it is the one of a single machine.
    """
    if G.weighted:  # at each call, since it may be another caller that is to be named
        G.undirected_weights(caller, negative="error")
    found: BlockLevel = G.keep("whole_weights", lambda: _make_level(G, caller))
    return found


def _make_level(G: Any, caller: str) -> BlockLevel:
    def joined(value: Any, op: str) -> Any:
        return G.comm.allreduce(np.array([value]), op)[0].item()

    view, data, inner = whole_weights(G, caller, joined)
    rows = strengths(view.indptr, data)[: G.grid.n_rows]
    strength = G.exchange.fold(engines.xp(rows).ascontiguousarray(rows), "sum")
    if inner is not None:
        strength = strength + inner
    sums = np.array([int(strength.sum()), int(view.indices.shape[0])])
    total, entries = G.comm.allreduce(sums, "sum").tolist()
    return BlockLevel(view.indptr, view.indices, data, inner, strength, total, entries)


def label_propagation(G: Any, plan: Plan, threads: int | None = None) -> Communities:
    """See `matchwood.label_propagation`; all ranks call it."""
    caller = "label_propagation"
    same(G.comm, caller, max_rounds=plan.max_rounds, tol=plan.tol, rng=plan.seed)
    watch = Stopwatch()

    def work(graph: Any, members: int) -> Any:
        one = one_machine(
            graph, max_rounds=plan.max_rounds, tol=plan.tol, rng=plan.seed, threads=members
        )
        return (one.labels,), dataclasses.replace(one, labels=None)

    referred = one_host.referred(G, caller, work, threads)
    if referred is not None:
        (labels,), found = referred
        labels = G.vector(labels.astype(G.index_dtype, copy=False))
        watch.lap("first rank")
        return dataclasses.replace(found, labels=labels, seconds=watch.seconds)
    threads = G.threads if threads is None else threads
    level = block_level(G, caller)
    watch = Stopwatch()
    state, rounds = propagate(G, level, plan, threads)
    watch.lap("rounds")
    count, numbers = number_labels(G, state.own.astype(np.int64))
    quality = modularity_of(state)
    watch.lap("quality")
    labels = G.vector(numbers.astype(level.indices.dtype, copy=False))
    return Communities(count, labels, quality, 1, rounds, watch.seconds)


def propagate(G: Any, level: BlockLevel, plan: Plan, threads: int | None) -> tuple[Labels, int]:
    """Labels, each the number of some vertex, and the number of rounds."""
    state = Labels(G, level, threads)
    if level.entries == 0:
        return state, 0
    if G.grid.p == 1 and G.order is None:  # the block is the graph
        all_rows = finished(level.indptr, level.indices, level.data, level.inner, level.strength)
        found, rounds = engines.load(PACKAGE, G.engine).propagate(all_rows, plan, threads)
        state.own = found.astype(state.kind)
        state.labels[:] = state.own
        return state, rounds
    for number in range(plan.max_rounds):
        if number < SPLIT_ROUNDS:
            counts = state.split_round(number, plan.seed)
        else:
            counts = state.careful_round()
        moved, looked = G.comm.allreduce(np.array(counts, np.int64), "sum").tolist()
        G.comm.report(number + 1, looked)
        if moved <= plan.enough(G.n):
            return state, number + 1
    return state, plan.max_rounds


class ReceivedLists(NamedTuple):
    """What the ranks of the row sent of the own vertices: for rank s and vertex j

    sizes[s, j] labels from words[begins[s, j]] on, and their weights after[s] words later.
    """

    words: Any
    sizes: Any
    begins: Any
    after: Any


class Labels:
    """The labels on one rank: those of own vertices, and of the columns of its block."""

    def __init__(self, G: Any, level: BlockLevel, threads: int | None) -> None:
        self.G, self.grid, self.exchange, self.level = G, G.grid, G.exchange, level
        self.threads, self.xp = threads, engines.xp(level.indptr)
        self.module = engine_of(G)
        self.rows = rows_of(level.indptr, level.indices, level.data)
        self.kind = unsigned(level.indices.dtype)
        self.word = self.kind if level.data is None else np.uint64  # of messages: holds weights
        self.ids = self.xp.asarray(G.original_local)
        self.to_local = self.xp.asarray(self.grid.columns_to_local)
        self.labels = self.ids.astype(self.kind)
        self.own = self.xp.asarray(G.ids).astype(self.kind)
        self.positions = self.xp.arange(self.grid.n_rows)
        self.nobody = self.positions[:0]
        self.saves = tracks(G.n)
        begins = level.indptr[: self.grid.n_rows + 1]
        self.active = (begins[1:] != begins[:-1]).astype(np.uint8)
        if not self.saves:
            self.tied = self.exchange.expand_rows(self.exchange.fold(self.active, "max"))
        self.wishes = self.xp.zeros(self.grid.n_local, np.uint8)
        self.columns = G.keep("rows of columns", self._columns)

    def _columns(self) -> tuple[Any, Any]:
        """For each column of the block, the rows that hold it."""
        level = self.level
        found = trusted_transpose(
            level.indptr, level.indices, None, self.grid.n_local, threads=self.threads
        )
        return found[0], found[1]

    def split_round(self, number: int, seed: int) -> tuple[int, int]:
        """A round of sub-rounds; returns how many own labels changed, and vertices looked."""
        parts = subrounds_of(self.G.n)
        mine = self.ids[: self.grid.n_rows]
        hashes = hash2(mine, self.xp.full_like(mine, number), seed, threads=self.threads)
        turns = (hashes % np.uint64(parts)).astype(np.uint8)  # subrounds/__init__.py
        order, counts = by_destination(turns, parts, self.threads)
        ends = np.cumsum(counts).tolist()
        moved = looked = 0
        for part in self._parts_in_use(parts, number, seed):
            turn = order[ends[part] - int(counts[part]) : ends[part]]
            places, targets, seen = self.targets(turn)
            moves = targets != self.own[places]
            self.go(places[moves], targets[moves])
            moved, looked = moved + int(moves.sum()), looked + seen
        return moved, looked

    def _parts_in_use(self, parts: int, number: int, seed: int) -> Any:
        """The sub-rounds that have a vertex anywhere; in small graphs some have none."""
        if self.G.n >= SMALL_VERTICES:
            return range(parts)
        n = self.G.n
        turns = hash2(np.arange(n), np.full(n, number), seed, engine="cpu") % np.uint64(parts)
        return np.unique(turns.astype(np.int64)).tolist()

    def careful_round(self) -> tuple[int, int]:
        """A round in which of neighbours that want to move the first by hash does."""
        places, targets, seen = self.targets(self.positions)
        wants = targets != self.own[places]
        places, targets = places[wants], targets[wants]
        stays = self._is_late(places)
        late = places[stays]
        self.active[self.grid.rows_of(self.exchange.row.rank, late)] = 1
        self.go(places[~stays], targets[~stays])
        return int((~stays).sum()), seen

    def _is_late(self, places: Any) -> Any:
        """Which of these own vertices have a neighbour before them that wants to move too."""
        (columns,) = self.exchange.expand_changed(places)
        (rows,) = self.exchange.expand_rows_changed(places)
        self.wishes[self.to_local[columns]] = 1
        late = self.module.late_of(self.rows, rows, self.wishes, self.ids, self.threads)
        self.wishes[self.to_local[columns]] = 0
        rows = rows[late != 0]
        late_places, _ = self.exchange.fold_changed(
            rows, self.xp.ones(rows.shape[0], np.uint8), "or"
        )
        marks = self.xp.zeros(self.grid.owned, bool)
        marks[late_places] = True
        return marks[places]

    def targets(self, turn: Any) -> tuple[Any, Any, int]:
        """Own places that look, the labels they take, and how many; they are no longer active.

        `turn` are positions in the row group, the same on all ranks of the row.
        """
        vertices = self._who_looks(turn)
        if not vertices.shape[0]:  # of this row group none looks: its ranks send nothing
            return self.nobody, self.own[self.nobody], 0
        places, lists = self.lists(vertices)
        own = self.own[places]
        return places, self.module.decided(lists, own, self.threads), int(places.shape[0])

    def _who_looks(self, turn: Any) -> Any:
        if not self.saves:
            return turn[self.tied[turn] != 0]
        words = self.module.take_marks(turn, self.active, self.threads)
        words = self.exchange.row.allreduce(words, "or")
        bits = self.xp.unpackbits(words.view(np.uint8), bitorder="little")[: turn.shape[0]]
        return turn[self.xp.flatnonzero(bits)]

    def lists(self, vertices: Any) -> tuple[Any, Any]:
        """Own places among these vertices of the row group, and their labels from all ranks."""
        row, xp = self.exchange.row, self.xp
        to, places = self.grid.row_owner(vertices)
        order, counts = by_destination(to, row.size, self.threads)
        sizes, labels, weights = self.module.label_sums(
            self.rows, self.labels, vertices[order], self.word, self.threads
        )
        ends = np.cumsum([0, *counts.tolist()])
        before = xp.zeros(sizes.shape[0] + 1, np.int64)
        before[1:] = xp.cumsum(sizes)
        at = engines.moved(before[xp.asarray(ends)], "cpu").tolist()
        parts = []
        for k in range(row.size):
            parts += [sizes[ends[k] : ends[k + 1]], labels[at[k] : at[k + 1]]]
            parts += [weights[at[k] : at[k + 1]]]
        words = xp.concatenate([part.astype(self.word, copy=False) for part in parts])
        amounts = [ends[k + 1] - ends[k] + 2 * (at[k + 1] - at[k]) for k in range(row.size)]
        words, received = row.alltoallv(words, amounts)
        mine = order[ends[row.rank] : ends[row.rank + 1]]
        return places[mine], self._unpacked(words, received.tolist(), int(mine.shape[0]))

    def _unpacked(self, words: Any, amounts: list[int], own: int) -> Any:
        """What each rank of the row sent: sizes of the lists, all labels, all weights."""
        xp = self.xp
        begin = np.cumsum([0, *amounts])
        sizes = [words[at : at + own].astype(np.int64) for at in begin[:-1].tolist()]
        after = [(amount - own) // 2 for amount in amounts]
        begins = [
            int(at) + own + xp.cumsum(size) - size for at, size in zip(begin, sizes, strict=False)
        ]
        return ReceivedLists(words, xp.stack(sizes), xp.stack(begins), np.array(after))

    def go(self, places: Any, targets: Any) -> None:
        """Give own vertices their new labels; their neighbours on all ranks become active."""
        self.own[places] = targets
        columns, new = self.exchange.expand_changed(places, targets)
        if columns.shape[0]:
            self.module.wake(
                self.columns, self.to_local[columns], new, self.labels, self.active, self.threads
            )


def engine_of(G: Any) -> Any:
    """The local steps of a rank: cpu.py, a table with open addressing, or gpu.py, sorted lists."""
    return engines.load(__name__, G.engine)


def tracks(n: int) -> bool:
    """Whether ranks exchange which vertices are active, so that the others need not look."""
    return n >= SMALL_VERTICES


def modularity_of(state: Labels) -> float:
    """The modularity of the labels, as quality/ has it: from exact sums."""
    level, G = state.level, state.G
    if level.total == 0:
        return 0.0
    rows = state.grid.n_rows
    state.labels[:rows] = state.exchange.expand_rows(state.own)
    inside = state.module.inside(state.rows, state.labels, rows, state.threads)
    inside += 0 if level.inner is None else int(level.inner.sum())
    places, strength = state.exchange.packets(state.own.astype(np.int64), level.strength)
    # a float has room for these sums, at most 2^52
    volumes = state.xp.bincount(places, weights=strength, minlength=1).astype(np.int64)
    both = G.comm.objects((inside, sum_of_squares(volumes)))
    inside, squares = (sum(each[k] for each in both) for k in (0, 1))
    return inside / level.total - 1.0 * (squares / level.total**2)
