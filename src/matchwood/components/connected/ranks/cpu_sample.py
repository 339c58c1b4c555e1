"""The largest tree of a few entries of each row of a stripe: step 1 of giant.py.

The vertices of the trees are the columns of the block.  A row joins its columns, and is in the tree
of its first one: so a row has no word of its own in `parent`, and most rows, whose columns are in
one tree already, write nothing.

Positions.  Own vertices come first, by place; then the other vertices of the column group, in the
order of their local ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components.connected.cpu import SAMPLES
from matchwood.components.connected.ranks.cpu_giant import WORD
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
from matchwood.engines.cpu.hints import count_ones, prefetch, select
from matchwood.primitives.union_find.cpu import compress, find

Array = np.ndarray[Any, Any]

ROWS = 32  # that are taken at a time: their entries and parents are on their way together
TURNS = 4  # at most; a turn reads two more entries of each row
ENOUGH = 2  # turns end where 1 / ENOUGH of the rows that have entries are in the largest tree


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
    # nobody could predict a branch: with R ranks in a column, 1 / R of the columns are own
    return select(is_own, local // columns.C, columns.own + (local - columns.rows))


@device
def _look_up(
    indptr: Array, indices: Array, stripe: Stripe, columns: Columns, turn: int, k: int,
    parent: Array, first: Array, ends: Array, i: int,
) -> None:  # fmt: skip
    """The columns that a turn joins in row k of the stripe; their parents are on their way.

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
    """The two are in one tree afterwards, unless another member joins one of them meanwhile.

    A store may then take the place of another one, and a join is lost.  Nothing wrong comes of it:
    whatever is stored is connected with the vertex, and smaller.  A swap would wait for all stores
    before it.
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
    """Each row of the stripe joins its entries of these turns: counted from both ends."""
    parent, first, other = joined
    ends = other[team.rank]
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
    """Bits of what is in the tree: words[0] of the rows, then of the columns by owner.

    `owners`: of each the first position of its columns, the step to the next, how many there are.
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
    counts[team.rank] = marked


def _champion(joined: Joined, indptr: Array, stripe: Stripe, turns: int) -> tuple[Any, bool]:
    """The tree that most of some sampled rows are in, and whether that is enough.

    A wrong guess does no harm.  It must be enough where most rows have no entries for more turns.
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
    enough = ENOUGH * int(often.max()) >= roots.size or ENOUGH * longer < roots.size
    return names[often.argmax()], enough


def largest_tree(
    view: Any, grid: Any, sampled: int, words: int, threads: int | None, turns: int = 1
) -> tuple[Array, int, int]:
    """(1 + R, words) bits of the vertices in the largest tree, how many they are, and the turns.

    First of the rows of rank `sampled` of the row, then of the columns by the rank of the column.
    The first `turns` turns are one pass over the rows: what another call returned.
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
