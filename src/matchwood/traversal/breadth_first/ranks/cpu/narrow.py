"""Levels with few vertices, on ranks of one host: a loop within one kernel.  Read levels.py first.

A level of a mesh or of a path has so little work that its collectives would take nearly all of the
time.  Here ranks meet once in a level, in memory that all of them have mapped.

    follow   a rank follows the rows of the frontier in its block, and lists the columns that are
             new to it with their smallest parents, those of each row group together
    meet     it waits until all ranks have written their lists
    read     it reads what all ranks listed for its row group.  So all ranks of a row learn the
             frontier at once, and the owner takes the smallest of the parents

Where no rank lists anything the search is over.  All ranks read how many vertices were listed, so
all leave the loop after the same level when these are many.  Lists exist twice and alternate, as in
engines/ranks/networks/shared.  Nothing here looks at all words of a bitmap.

The kernel returns to Python when other ranks are late, and now and then: failures of other ranks
and Ctrl-C take effect there.  What it needs to go on is in `state`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, expanded, kernel, stopping
from matchwood.engines.cpu.crew import INLINE_WORK
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import ONE, column_place
from matchwood.engines.ranks.networks.shared.cpu import (
    MEETING_WORDS,
    PASSED,
    all_entered,
    enter_meeting,
)
from matchwood.traversal.breadth_first.ranks.cpu.levels import Outward, follow_alone
from matchwood.traversal.breadth_first.ranks.cpu.messages import NONE, Columns, Names, row_name

Array = np.ndarray[Any, Any]

ENTRIES = 1 << 16  # of a level, on each rank, up to which the loop is entered
FEW = 256  # vertices of a level of a small graph up to which the loop is entered and kept,
PART = 64  # and of a large graph, n / PART: with more, a level bottom up may gain
STEPS = 1 << 22  # levels count as LEVEL_STEPS and entries as one, until the kernel returns: 10 ms
LEVEL_STEPS = 1 << 10
ALIGNED = 64  # bytes

# Words of `state`
PHASE, NUMBER, DEPTH, ROWS, OWN, LEVELS, LISTED, READ = range(8)
SHOW, FOLLOW, MEET, WIDE, OVER = range(5)  # of PHASE


class Lists(NamedTuple):
    """What ranks list for each other, two of each; `number & 1` says which."""

    meeting: Array  # see engines/ranks/networks/shared/cpu.py
    address: int  # of `meeting`
    starts: (
        Array  # (2, ranks, at least R + 1): where the list for each row group begins, and the end
    )
    pairs: Array  # (2, ranks, 2 x places): place at its owner and parent, one after the other
    ends: Array  # (R,) of this rank alone
    me: int
    crowded: bool


class Reached(NamedTuple):
    """What a rank knows of rows and of own vertices."""

    known: Array  # (C, words) bits by place of the row group: those that are reached
    open: Array  # (C, words) bits: those that bottom up must look at
    level: Array
    parent: Array
    reached: Array
    rows: Array  # the frontier's rows that have entries in this block
    places: Array  # the own vertices of the frontier
    found: Array  # scratch: columns that are new


@expanded
def _show(lists: Lists, side: int, state: Array, shape: GridShape, reached: Reached) -> None:
    """List the own vertices of the frontier for the ranks of this row."""
    starts, pairs = lists.starts[side, lists.me], lists.pairs[side, lists.me]
    for r in range(lists.ends.size + 1):
        starts[r] = state[OWN] if np.uint64(r) > shape.r else 0
    for i in range(state[OWN]):
        k = reached.places[i]
        pairs[2 * i], pairs[2 * i + 1] = k, reached.parent[k]


@expanded
def _list_columns(
    lists: Lists, side: int, found: Array, shape: GridShape, columns: Columns
) -> None:
    """List the columns found for the ranks of their rows, and mark them as seen."""
    starts, pairs = lists.starts[side, lists.me], lists.pairs[side, lists.me]
    ends, kind = lists.ends, pairs.dtype.type
    ends[:] = 0
    for i in range(found.size):
        ends[column_place(shape, found[i])[0]] += 1
    total = np.int64(0)
    for r in range(ends.size):
        starts[r] = total
        total += ends[r]
        ends[r] = starts[r]
    starts[ends.size] = total
    for i in range(found.size):
        v = np.uint64(found[i])
        r, k = column_place(shape, v)
        at = 2 * ends[r]
        ends[r] += 1
        pairs[at], pairs[at + 1] = kind(k), columns.best[v]
        bit = ONE << (v & np.uint64(63))
        columns.seen[v >> np.uint64(6)] |= bit
        columns.fresh[v >> np.uint64(6)] &= ~bit


@expanded
def _read(
    lists: Lists, side: int, state: Array, indptr: Array, shape: GridShape, columns: Columns,
    reached: Reached,
) -> Any:  # fmt: skip
    """Take what all ranks listed for this row; returns the entries of its rows in the block."""
    C, mine, depth = np.int64(shape.C), np.int64(shape.c), reached.level.dtype.type(state[DEPTH])
    rows = own = entries = np.int64(0)
    for rank in range(lists.starts.shape[1]):
        starts, pairs, c = lists.starts[side, rank], lists.pairs[side, rank], rank % C
        if rank != lists.me:
            state[READ] += 2 * (starts[shape.r + ONE] - starts[shape.r])
        for i in range(starts[shape.r], starts[shape.r + ONE]):
            k, parent = np.uint64(pairs[2 * i]), pairs[2 * i + 1]
            w, bit = k >> np.uint64(6), ONE << (k & np.uint64(63))
            if reached.known[c, w] & bit != NONE:
                if c == mine and reached.level[k] == depth:
                    reached.parent[k] = min(reached.parent[k], parent)
                continue
            reached.known[c, w] |= bit
            reached.open[c, w] &= ~bit
            v = k * shape.C + np.uint64(c)
            reached.rows[rows] = v
            length = np.int64(indptr[v + ONE]) - np.int64(indptr[v])
            rows += np.int64(length > 0)
            entries += length
            if c == mine:
                reached.level[k], reached.parent[k] = depth, parent
                reached.reached[w] |= bit
                columns.seen[v >> np.uint64(6)] |= ONE << (v & np.uint64(63))
                reached.places[own] = k
                own += 1
    state[ROWS], state[OWN] = rows, own
    return entries


@expanded
def _listed(lists: Lists, side: int) -> Any:
    """How many vertices all ranks listed, some of them several times."""
    total = np.int64(0)
    for rank in range(lists.starts.shape[1]):
        total += lists.starts[side, rank, lists.ends.size]
    return total


@kernel
def search_narrow(
    team: Any, lists: Lists, rows: Outward, names: Names, columns: Columns, reached: Reached,
    state: Array, sizes: Array, limit: int, most: int,
) -> None:  # fmt: skip
    """Search level by level until the search is over or a level has more than `most` vertices.

    state[LEVELS] counts levels, and `sizes` has the own vertices of each.  At first state[PHASE]
    is SHOW, and state[OWN] of reached.places are the frontier, of level state[DEPTH].
    """
    shape, kind = names.shape, columns.best.dtype.type
    left = np.int64(STEPS)
    while True:
        if state[PHASE] != MEET:
            if state[LEVELS] == sizes.size or left <= 0 or stopping(team):
                return
            side = (state[NUMBER] + 1) & 1
            if state[PHASE] == SHOW:
                _show(lists, side, state, shape, reached)
                state[DEPTH] -= 1
            else:
                at = 0
                for i in range(state[ROWS]):
                    u = np.uint64(reached.rows[i])
                    name = kind(row_name(names, u))
                    at = follow_alone(rows, u, name, columns, reached.found, at)
                    if i & 255 == 0 and stopping(team):
                        return
                _list_columns(lists, side, reached.found[:at], shape, columns)
                state[LISTED] += 2 * at
            state[NUMBER] += 1
            state[PHASE] = MEET
            enter_meeting(lists.meeting, lists.address, lists.starts.shape[1], state[NUMBER])
        if not all_entered(lists.meeting, lists.address, state[NUMBER], lists.crowded):
            return
        side = state[NUMBER] & 1
        total = _listed(lists, side)
        if total == 0:
            state[PHASE] = OVER
            return
        state[DEPTH] += 1
        left -= LEVEL_STEPS + _read(lists, side, state, rows.indptr, shape, columns, reached)
        sizes[state[LEVELS]] = state[OWN]
        state[LEVELS] += 1
        state[PHASE] = WIDE if total > most or state[DEPTH] == limit else FOLLOW
        if state[PHASE] == WIDE:
            return


class Narrow:
    """The memory of the loop, kept by a graph; `search` is called by all ranks."""

    def __init__(self, G: Any, memory: Array, word: Any) -> None:
        grid, self.comm = G.grid, G.comm
        starts, pairs = _layout(grid, word)
        head = 8 * MEETING_WORDS
        ends = head + starts
        self.lists = Lists(
            memory[:head].view(np.int64),
            memory.ctypes.data,
            memory[head:ends].view(np.int64).reshape(2, grid.p, -1),
            memory[ends : ends + pairs].view(word).reshape(2, grid.p, -1),
            np.zeros(grid.R, np.int64),
            grid.rank,
            self.comm.session.crowded,
        )
        self.most = min(max(FEW, grid.n // PART), ENTRIES * grid.p)
        self.state = np.zeros(8, np.int64)
        self.sizes = np.empty(STEPS // LEVEL_STEPS, np.int64)

    def search(
        self, rows: Outward, names: Names, columns: Columns, reached: Reached, depth: int,
        own: int, limit: int,
    ) -> tuple[Array, bool]:  # fmt: skip
        """Own vertices of each level, `depth` the first of them; and whether the search is over.

        `own` of reached.places are the frontier, and bits of `reached.known` are not set for them.
        """
        state, sizes, found = self.state, self.sizes, []
        state[PHASE], state[DEPTH], state[OWN] = SHOW, depth, own
        state[LISTED] = state[READ] = 0
        team, most = crew(1, work=INLINE_WORK), self.most
        meeting = self.lists.meeting

        def step() -> bool:
            state[LEVELS] = 0
            team.run(
                search_narrow, self.lists, rows, names, columns, reached, state, sizes, limit, most
            )
            found.append(sizes[: state[LEVELS]].copy())
            return bool(state[PHASE] >= WIDE)

        def arrived() -> bool:
            return bool(state[PHASE] != MEET or meeting[PASSED] >= state[NUMBER])

        self.comm.rounds(step, arrived)
        item, others = reached.parent.itemsize, self.comm.size - 1
        levels = np.concatenate(found)
        self.comm.traffic.add(
            "rounds", item * int(state[READ]), item * int(state[LISTED]), others * levels.size
        )
        return levels, bool(state[PHASE] == OVER)


def _layout(grid: Any, word: Any) -> tuple[int, int]:
    """Bytes of both sides' starts, and of both sides' pairs; the same on all ranks."""
    words = -(-(int(grid.R) + 1) * 8 // ALIGNED) * ALIGNED
    pairs = -(-2 * int(grid.R) * grid.most_owned * word.itemsize // ALIGNED) * ALIGNED
    return 2 * grid.p * words, 2 * grid.p * pairs


def narrow(G: Any, word: Any) -> Narrow | None:
    """The memory of the loop for messages of that type; None where ranks have none in common."""

    def make() -> list[Any]:
        size = 8 * MEETING_WORDS + sum(_layout(G.grid, word))
        memory = G.comm.shared_array(size)
        return [None if memory is None else Narrow(G, memory, word)]

    kept: list[Any] = G.keep(f"bfs, narrow levels of {word}", make)
    return kept[0]
