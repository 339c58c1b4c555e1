"""Most of the largest component, found from a few entries of each block.

On one machine Afforest joins two neighbours of every vertex.  Then most vertices are in one large
tree, and their rows need not be read: a symmetric pattern stores an edge that leaves the tree at
its other end too.  A block of a symmetric matrix is not symmetric itself, and the other end's row
is on another rank.  So all ranks must leave out the rows of the same vertices:

1. Every rank joins two columns to each row of one of its stripes, that of its neighbour in the row
   of ranks.  So a vertex is sampled by one rank, and trees have vertices of two column groups.  For
   each such row there are R columns: without vertices of high degree, two entries of a row leave
   many small trees, and then more entries are joined.  The rank sends the owners which vertices are
   in its largest tree, one bit for each.
2. An owner that finds a vertex in the trees of two ranks knows that these trees are connected.  All
   ranks learn which trees are.
3. The vertices of the largest set of connected trees are known to be in one component.  Owners send
   them to the ranks of their row and their column, one bit for each vertex.
4. Every rank reads the rows of the other vertices.  A row with a known column belongs to the
   component too: one bit for its owner.  An edge between two vertices that are not known becomes a
   pair for __init__.py.

The set may be small, and need not be in the largest component: that costs time, never the answer.
Where there are too many pairs, nothing of it is used, and the graph is not sampled again: all rows
are joined in their blocks.  On grids, paths and sparse random graphs, 2 by 2 ranks, that took 0.85
to 1.07 times as long as leaving out the rows of known vertices there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components.connected.ranks.forest import largest_set
from matchwood.engines.cpu import (
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    load_relaxed,
    share,
    stopping,
    store_relaxed,
    workspace,
)
from matchwood.engines.cpu.hints import count_ones, prefetch, select, trailing_zeros
from matchwood.engines.ranks.exchanges.cpu import rows_with_entries
from matchwood.engines.ranks.exchanges.routing import to_group
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import column_place, row_id
from matchwood.primitives.union_find.cpu import compress, find

Array = np.ndarray[Any, Any]


# Step 1: the largest tree of a few entries of each row of a stripe
#
# The vertices of the trees are the columns of the block.  A row joins its columns, and is in the
# tree of its first one: so a row has no word of its own in `parent`, and most rows, whose columns
# are in one tree already, write nothing.
#
# Positions: own vertices first, by place; then the other vertices of the column group by local id.


SAMPLES = 1024  # rows whose tree is read
ROWS = 32  # rows taken at a time: their entries and parents are prefetched together
TURNS = 4  # turns at most; a turn reads two more entries of each row
ENOUGH_PART = (
    2  # turns end where 1 / ENOUGH_PART of the rows that have entries are in the largest tree
)


class Stripe(NamedTuple):
    """Rows of one owner, by local id; whether they are columns too, by place."""

    first: int
    step: int
    size: int
    are_columns: bool


class Columns(NamedTuple):
    """What `_position` needs: own vertices, the ranks of a row, local ids of rows; unsigned."""

    own: Any
    C: Any
    rows: Any


class Joined(NamedTuple):
    """Trees of columns, and the first column of each row of the stripe.

    A row without entries has the column after the last: a tree of its own.
    """

    parent: Array
    first: Array
    other: Array  # (members, 2, ROWS) columns that are to be joined with the first ones


@device
def _position(columns: Columns, x: Any) -> Any:
    local = np.uint64(x)
    is_own = local < columns.rows
    # no branch: it could not be predicted, since 1 / R of the columns are own with R ranks in each
    return select(is_own, local // columns.C, columns.own + (local - columns.rows))


@device
def _look_up(
    indptr: Array, indices: Array, stripe: Stripe, columns: Columns, turn: int, k: int,
    parent: Array, first: Array, ends: Array, i: int,
) -> None:  # fmt: skip
    """Note the columns that a turn joins in row k of the stripe, and prefetch their parents.

    They are ends[:, i]: from the beginning and from the end of the row.
    """
    v = np.uint64(stripe.first + k * stripe.step)
    start, stop = np.int64(indptr[v]), np.int64(indptr[v + np.uint64(1)])
    low, high = start + turn, stop - 1 - turn
    if turn == 0 and start == stop:
        first[k] = parent.size - 1
    if low <= high:
        ends[0, i] = _position(columns, indices[np.uint64(low)])
        ends[1, i] = _position(columns, indices[np.uint64(high)])
        prefetch(parent, np.uint64(ends[0, i]))
        prefetch(parent, np.uint64(ends[1, i]))
        if turn == 0:
            first[k] = ends[0, i]
    else:
        ends[0, i] = ends[1, i] = first[k]


@device
def _join_two(parent: Array, u: Any, v: Any) -> None:
    """Join the trees of two vertices, unless another member joins one of them meanwhile.

    A store may then overwrite another one, and a join is lost.  That does no harm: whatever is
    stored is connected with the vertex, and smaller.  A swap would wait for all stores before it.
    """
    a = load_relaxed(parent, load_relaxed(parent, u))
    b = load_relaxed(parent, load_relaxed(parent, v))
    if a == b:
        return
    a, b = find(parent, a), find(parent, b)
    if a != b:
        store_relaxed(parent, max(a, b), min(a, b))


@kernel
def _join(
    team: Any, indptr: Array, indices: Array, stripe: Stripe, columns: Columns,
    turns: tuple[int, int], joined: Joined,
) -> None:  # fmt: skip
    """Join the entries of these turns in each row of the stripe: counted from both ends."""
    parent, first, other = joined
    ends = other[team.me]
    if turns[0] == 0:
        lo, hi = share(team, parent.size)
        for v in range(lo, hi):
            parent[v] = v
        if barrier(team):
            return
    begin, end = share(team, first.size)
    for block in range(begin, end, ROWS):
        if stopping(team):
            return
        last = min(block + ROWS, end)
        for k in range(last, min(last + ROWS, end)):
            row = np.uint64(stripe.first + k * stripe.step)
            prefetch(indices, np.uint64(indptr[row]))  # and its last entry:
            prefetch(indices, np.uint64(indptr[row + np.uint64(1)] - 1))
        for turn in range(turns[0], turns[1]):
            for k in range(block, last):
                _look_up(indptr, indices, stripe, columns, turn, k, parent, first, ends, k - block)
            for k in range(block, last):
                if first[k] == parent.size - 1:
                    continue
                if turn > 0:
                    _join_two(parent, first[k], ends[0, k - block])
                elif stripe.are_columns:
                    _join_two(parent, first[k], parent.dtype.type(k))
                _join_two(parent, first[k], ends[1, k - block])


@device
def _compress_alone(parent: Array) -> None:
    """`compress` of all where no other member is at work: a parent is smaller, and so is done."""
    for v in range(parent.size):
        parent[v] = parent[parent[v]]


@kernel
def _mark(
    team: Any, joined: Joined, root: Any, owners: Array, words: Array, counts: Array
) -> None:  # fmt: skip
    """Set the bits of what is in the tree: words[0] of the rows, then of the columns by owner.

    `owners`: the first position of the columns of each, the step to the next, their number.
    """
    parent, first, _ = joined
    lo, hi = share(team, parent.size)
    if team.size == 1:
        _compress_alone(parent)
    else:
        compress(parent, lo, hi)
    if barrier(team):
        return
    marked = np.uint64(0)
    lo, hi = share(team, words.shape[1])
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        bits = np.uint64(0)
        for b in range(min(WORD, first.size - w * WORD)):
            above = first[np.uint64(w * WORD + b)]
            bits |= np.uint64(parent[above] == root) << np.uint64(b)
        words[0, w] = bits
        marked += count_ones(bits)
        for s in range(owners.shape[0]):
            at, step = owners[s, 0] + w * WORD * owners[s, 1], owners[s, 1]
            bits = np.uint64(0)
            for b in range(min(WORD, owners[s, 2] - w * WORD)):
                bits |= np.uint64(parent[np.uint64(at)] == root) << np.uint64(b)
                at += step
            words[1 + s, w] = bits
            marked += count_ones(bits)
    counts[team.me] = marked


def _champion(joined: Joined, indptr: Array, stripe: Stripe, turns: int) -> tuple[Any, bool]:
    """The tree that most sampled rows are in, and whether it is large enough to end the turns.

    A wrong guess does no harm.  Turns end too where most rows have no entries for more of them.
    """
    parent, first, _ = joined
    rows = np.arange(0, first.size, max(1, first.size // SAMPLES))
    rows = rows[first[rows] < parent.size - 1]
    roots, v = first[rows], stripe.first + rows * stripe.step
    if roots.size == 0:
        return None, True
    while True:
        above = parent[roots]
        if np.array_equal(above, roots):
            break
        roots = above
    names, often = np.unique(roots, return_counts=True)
    longer = int(np.count_nonzero(indptr[v + 1] - indptr[v] > 2 * turns))
    enough = ENOUGH_PART * int(often.max()) >= roots.size or ENOUGH_PART * longer < roots.size
    return names[often.argmax()], enough


def largest_tree(
    view: Any, grid: Any, sampled: int, words: int, threads: int | None, turns: int = 1
) -> tuple[Array, int, int]:
    """(1 + R, words) bits of the vertices in the largest tree, their number, and the turns made.

    Bits of the rows of rank `sampled` of the row, then of the columns by the rank of the column.
    The first `turns` turns, as an earlier call returned them, are one pass over the rows.
    """
    kind = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    own, size = grid.owned, grid.row_counts[sampled]
    stripe = Stripe(sampled, grid.C, size, grid.C == 1)
    columns = Columns(np.uint64(own), np.uint64(grid.C), np.uint64(grid.n_rows))
    owners = [
        (own + r - (r > grid.r), grid.R - 1, count) if r != grid.r else (0, 1, own)
        for r, count in enumerate(grid.column_counts)
    ]
    marks = np.zeros((1 + grid.R, words), np.uint64)
    team = crew(threads, work=grid.n_columns + 2 * size)
    space = workspace(
        parent=(grid.n_columns + 1, kind), first=(size, kind), other=((team.size, 2, ROWS), kind)
    )
    joined = Joined(space.parent, space.first, space.other)
    indices, done = view.indices.view(kind), 0
    while True:
        team.run(_join, view.indptr, indices, stripe, columns, (done, turns), joined)
        root, enough = _champion(joined, view.indptr, stripe, turns)
        if enough or turns >= TURNS:
            break
        done, turns = turns, turns + 1
    if root is None:
        return marks, 0, turns
    counts = np.zeros(team.size, np.int64)
    team.run(_mark, joined, root, np.array(owners, np.int64), marks, counts)
    return marks, int(counts.sum()), turns


# Step 4: the rows that a sample left, in a block whose pattern need not be symmetric


WORD = 64  # places whose bits are in one word


class Members(NamedTuple):
    """Vertices that are known to be in one component, a bit for each place of an owner."""

    rows: Array  # (C, words) of the ranks of the row
    columns: Array  # (R, words) of those of the column
    own: Array  # (words,)


class Pairs(NamedTuple):
    """Edges that a member found, as the grid numbers vertices; a row for each member."""

    highs: Array
    lows: Array
    counts: Array


def _unsigned(view: Any) -> Any:
    return np.uint32 if view.indptr.dtype == np.int32 else np.uint64


@device
def _row(
    u: Any, indptr: Array, indices: Array, grid: GridShape, columns: Array, pairs: Pairs, rank: int
) -> bool:
    """Whether row u has a known column; its other edges, from their larger ends, become pairs."""
    touches, low = False, np.uint64(WORD - 1)
    one = row_id(grid, u)  # as the grid numbers it
    for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        r, place = column_place(grid, indices[k])
        if (columns[r, place // np.uint64(WORD)] >> (place & low)) & np.uint64(1) != np.uint64(0):
            touches = True
            continue
        other = (place * grid.R + r) * grid.C + grid.c
        if other < one and pairs.counts[rank] < pairs.highs.shape[1]:
            pairs.highs[rank, pairs.counts[rank]] = one
            pairs.lows[rank, pairs.counts[rank]] = other
            pairs.counts[rank] += 1
    return touches


@kernel
def _leave(
    team: Any, indptr: Array, indices: Array, grid: GridShape, full: Array, known: Members,
    touched: Array, pairs: Pairs,
) -> None:  # fmt: skip
    """Read all rows but those of known vertices.  A member stops when its pairs are too many.

    `full` are the bits of rows that have entries.  The rows of the next word are prefetched.
    """
    parts = known.rows.shape[0]
    lo, hi = share(team, known.rows.shape[1])
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        for part in range(parts):
            ahead = np.uint64(0)
            if w + 1 < hi:
                ahead = full[part, w + 1] & ~known.rows[part, w + 1]
            while ahead != np.uint64(0):
                b = trailing_zeros(ahead)
                ahead &= ahead - np.uint64(1)
                u = np.uint64(((w + 1) * WORD + np.int64(b)) * parts + part)
                prefetch(indices, np.uint64(indptr[u]))
            left = full[part, w] & ~known.rows[part, w]
            bits = np.uint64(0)
            while left != np.uint64(0):
                b = trailing_zeros(left)
                left &= left - np.uint64(1)
                u = np.uint64((w * WORD + np.int64(b)) * parts + part)
                if _row(u, indptr, indices, grid, known.columns, pairs, team.me):
                    bits |= np.uint64(1) << np.uint64(b)
            touched[part, w] = bits
        if pairs.counts[team.me] >= pairs.highs.shape[1]:
            return


def leave(
    view: Any, full: Array, known: Members, grid: Any, most: int, threads: int | None
) -> tuple[Array, tuple[Array, Array] | None]:
    """(C, words) bits of rows that have a known column; and pairs of the other edges.

    `full` are the bits of rows that have entries.  Rows of known vertices are not read.  The pairs
    are None where they are more than `most`.
    """
    kind = _unsigned(view)
    team = crew(threads, work=2 * grid.n_rows)
    touched = np.zeros_like(known.rows)
    highs, lows = (np.empty((team.size, most + 1), np.int64) for _ in range(2))
    pairs = Pairs(highs, lows, np.zeros(team.size, np.int64))
    indices = view.indices.view(kind)
    team.run(_leave, view.indptr, indices, grid.shape, full, known, touched, pairs)
    if pairs.counts.max() > most:
        return touched, None
    found = [
        np.concatenate([row[:size] for row, size in zip(rows, pairs.counts, strict=True)])
        for rows in (highs, lows)
    ]
    return touched, (found[0], found[1])


PAIRS_PART = 8  # more pairs than 1 / PAIRS_PART of the rows are too many


class RestOfRows(NamedTuple):
    """What step 4 found: own bits of the component, its smallest vertex, pairs of others."""

    own: Array
    head: int
    pairs: tuple[Array, Array]


def words_of(grid: Any) -> int:
    return int(-(-grid.most_owned // WORD))


# Steps 1 to 3


def members(G: Any, threads: int | None) -> Members:
    """Vertices of one component of a symmetric matrix, the same on all ranks, which call this."""
    grid, exchange = G.grid, G.exchange
    words = words_of(grid)
    sampled = (grid.c + 1) % grid.C
    turns = G.keep("turns of a sample", lambda: [1])  # as many as the last call needed
    marks, size, turns[0] = largest_tree(G.entries(), grid, sampled, words, threads, turns[0])
    seen = _seen_by(exchange, marks, sampled)
    chosen = largest_set(G.comm, _meetings(seen, grid.p), size)
    own = np.zeros(words, np.uint64)
    for rank, bits in seen.items():
        if chosen[rank]:
            own |= bits
    rows = exchange.row.allgather(own).reshape(grid.C, words)
    columns = exchange.column.allgather(own).reshape(grid.R, words)
    return Members(rows, columns, own)


def _seen_by(exchange: Any, marks: Array, sampled: int) -> dict[int, Array]:
    """For each rank that sampled own vertices or has them as columns: those in its largest tree."""
    grid, words = exchange.grid, marks.shape[1]
    received, _ = exchange.column.alltoallv(marks[1:].reshape(-1), [words] * grid.R)
    seen = {
        r * grid.C + grid.c: bits for r, bits in enumerate(received.reshape(grid.R, words))
    }  # fmt: skip
    if grid.C == 1:
        seen[grid.rank] = seen[grid.rank] | marks[0]
        return seen
    counts = [0] * grid.C
    counts[sampled] = words
    before = grid.r * grid.C + (grid.c - 1) % grid.C
    seen[before] = exchange.row.alltoallv(marks[0], counts)[0]
    return seen


def _meetings(seen: dict[int, Array], p: int) -> Array:
    """(p, p) which two ranks have an own vertex of this one in their largest trees."""
    meets = np.zeros((p, p), np.bool_)
    ranks = list(seen)
    for i, one in enumerate(ranks):
        for other in ranks[:i]:
            meets[one, other] = meets[other, one] = bool((seen[one] & seen[other]).any())
    return meets


# Step 4


def rest(G: Any, found: Members, threads: int | None) -> RestOfRows | None:
    """Read the rows of the other vertices; None where there are too many pairs on some rank."""
    grid = G.grid
    most = max(grid.n_rows // PAIRS_PART, WORD)
    view = G.entries()
    full = G.keep("rows with entries", lambda: rows_with_entries(view.indptr, grid))
    touched, pairs = leave(view, full, found, grid, most, threads)
    touching = to_group(G.exchange.row, list(touched), np.uint64)
    own = np.bitwise_or.reduce([found.own, *touching])
    state = np.array([_least(grid, own), 0 if pairs is not None else -1], np.int64)
    head, enough = G.comm.allreduce(state, "min").tolist()
    return None if pairs is None or enough < 0 else RestOfRows(own, head, pairs)


def _least(grid: Any, bits: Array) -> int:
    """The smallest own vertex whose bit is set; n where there is none."""
    some = np.flatnonzero(bits)
    if some.size == 0:
        return int(grid.n)
    word = int(bits[some[0]])
    place = int(some[0]) * WORD + (word & -word).bit_length() - 1
    return int(place * grid.p + grid.rank)
