"""Bipartite graphs: their two sides, and phases in which trees of alternating paths grow.

The sides.  The first vertex of each component is on side 0, and sides alternate with the distance
from it: so there is one answer.  Member 0 goes through components and narrow levels alone; wide
levels are divided among all members.

The phases.  Every free vertex of side 0 is the root of a tree.  All trees grow at once, level by
level:

    grow      the vertices of the last level claim their neighbours (side 1) that are in no tree; of
              several that claim one, a hash of it decides which gets it
    attach    claimed vertices belong to their tree now, and so do the mates, which grow next.  A
              vertex without a mate ends a path: of several in a tree the smallest counts, and
              the tree does not grow any more

When no tree grows any more:

    turn      the paths are turned round; they lie in different trees and so do not meet
    sort out  trees with a path are dissolved, the others stay as they are
    graft     a tree that stays is fully grown, so a path that is still to be found leads through a
              dissolved tree.  Each vertex of side 1 in one of these looks in its row for a tree
              that stays, and growing goes on there.  Where little stays, all trees begin anew

A phase that finds no path is the last one: there is none.

One answer.  Which tree gets a vertex, and which path is turned round, is decided by numbers after
all have claimed.  So the order of lists, which depends on the team, changes nothing.  If always the
smallest got a vertex, one tree could take all ends of paths in each phase: there would be as many
phases as paths.

Encoding.  above[y] of side 1 is its parent: all ones for none; a claim has the top bit, until it is
attached.  above[x] of side 0 is the root of its tree: all ones before it is in one.  end[r] of a
root is the last vertex of its path: all ones while the tree stays.

    A. Azad, A. Buluc, A. Pothen. A parallel tree grafting algorithm for maximum cardinality
        matching in bipartite graphs. IPDPS 2015. doi:10.1109/IPDPS.2015.68
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_add,
    atomic_exchange,
    atomic_min,
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
    workspace,
)
from matchwood.matching.cpu import begin, end
from matchwood.primitives.frontier.cpu import BUFFER, flush, push

Array = np.ndarray[Any, Any]
NO_SIDE = 255
WIDE = 4096  # vertices of a level that is divided: some 50 us of work
LEVEL_CHUNK = 128  # vertices of such a level that a member takes at a time

# Words of `shared`, a cache line apart: the level that is divided, and whether a cycle is odd.
_LINE = 16
_HEAD, _TAIL, _ODD = 0, _LINE, 2 * _LINE
SIDE_WORDS = 3 * _LINE


class Pattern(NamedTuple):
    indptr: Array
    indices: Array


def rows_of(view: Any) -> tuple[Pattern, str]:
    """The pattern with unsigned indices, and their type."""
    unsigned = f"u{view.indices.dtype.itemsize}"
    return Pattern(view.indptr.view(unsigned), view.indices.view(unsigned)), unsigned


@expanded
def _narrow_levels(
    team: Team, rows: Pattern, side: Array, queue: Array, start: Any, head: Any, tail: Any,
    odd: Array,
) -> Any:  # fmt: skip
    """Go on up to a wide level, queue[head:tail], or to the end: start is n then."""
    n, none = np.uint64(side.size), np.uint8(NO_SIDE)
    widest = np.uint64(WIDE if team.size > 1 else side.size)
    level = tail  # where the level ends
    while True:
        if head == tail:
            while start < n and side[start] != none:
                start += np.uint64(1)
            if start == n:
                return start, head, tail
            side[start] = 0
            head, tail, level = np.uint64(0), np.uint64(1), np.uint64(1)
            queue[0] = queue.dtype.type(start)
        elif head == level:
            level = tail
            if tail - head > widest:
                return start, head, tail
        u = queue[head]
        head += np.uint64(1)
        other = np.uint8(1 - side[u])
        for k in range(begin(rows, u), end(rows, u)):
            v = rows.indices[k]
            if side[v] == none:
                side[v] = other
                queue[tail] = v
                tail += np.uint64(1)
            elif side[v] != other:
                odd[0] = 1
                return n, head, tail
        if interrupted(team, head):
            return n, head, tail


@expanded
def _wide_level(
    team: Team, rows: Pattern, side: Array, queue: Array, buffer: Array, shared: Array
) -> bool:
    """Append the level after queue[head:tail], all on one side.  True: the team stops."""
    head, count = shared[_HEAD], 0
    size = shared[_TAIL] - head
    if barrier(team):  # all members have read the lengths
        return True
    other = np.uint8(1 - side[queue[head]])
    chunk = next_chunk(team, size, LEVEL_CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(head + chunk), np.uint64(head + min(chunk + LEVEL_CHUNK, size))):
            u = queue[i]
            for k in range(begin(rows, u), end(rows, u)):
                v = rows.indices[k]
                found = load_relaxed(side, v)
                if found == NO_SIDE:
                    if atomic_exchange(side, v, other) == NO_SIDE:
                        count = push(buffer, count, v, queue, shared[_TAIL:])
                elif found != other:
                    store_relaxed(shared, _ODD, 1)
        chunk = next_chunk(team, size, LEVEL_CHUNK)
    flush(buffer, count, queue, shared[_TAIL:])
    return barrier(team)


@kernel
def _colour(
    team: Team, rows: Pattern, side: Array, queue: Array, buffers: Array, shared: Array
) -> None:
    """Caller: side all NO_SIDE, shared 0."""
    n = np.uint64(side.size)
    start, head, tail = np.uint64(0), np.uint64(0), np.uint64(0)
    while True:
        if team.me == 0:
            start, head, tail = _narrow_levels(
                team, rows, side, queue, start, head, tail, shared[_ODD:]
            )
            shared[_HEAD], shared[_TAIL] = np.int64(head), np.int64(tail)
            if start == n:
                shared[_HEAD] = shared[_TAIL]
        if barrier(team) or shared[_HEAD] == shared[_TAIL]:
            return
        if _wide_level(team, rows, side, queue, buffers[team.me], shared) or shared[_ODD]:
            return
        head, tail = tail, np.uint64(shared[_TAIL])


def two_sides(view: Any, threads: int | None = 1) -> Array | None:
    """0 or 1 for each vertex, no edge inside a side; None where an odd cycle forbids that."""
    side, shared = np.full(view.n, NO_SIDE, np.uint8), np.zeros(SIDE_WORDS, np.int64)
    rows, unsigned = rows_of(view)
    team = crew(threads, work=view.nnz)
    space = workspace(queue=(view.n, unsigned), buffers=((team.size, BUFFER), unsigned))
    team.run(_colour, rows, side, space.queue, space.buffers, shared)
    return None if shared[_ODD] else side


# Phases

ROW_CHUNK = 64  # vertices whose rows a member reads at a time
FACTOR = 0x9E3779B97F4A7C15  # 2^64 times the golden ratio
MIXED = 1 << 30  # vertices
LOOSE_PER_STAYING = 5  # dissolved vertices per staying one above which all trees begin anew

# Words of `shared`, a cache line apart: lengths of two lists of vertices in trees, two frontiers,
# the trees with a path and the dissolved vertices; phases.
_TAKEN, _FRONTIER, _DONE, _LOOSE, _PHASES = 0, 2 * _LINE, 4 * _LINE, 5 * _LINE, 6 * _LINE
SHARED = 7 * _LINE


class Trees(NamedTuple):
    above: Array  # in side 1 the parent, in side 0 the root
    end: Array  # of a root


class TreeLists(NamedTuple):
    taken: Array  # (2, n) of side 1, in trees: of this phase and of the next
    frontiers: Array  # (2, n) of side 0: of this level and of the next
    done: Array  # roots of trees with a path
    loose: Array  # of side 1, from dissolved trees
    buffers: Array  # (members, BUFFER): vertices on their way to a list
    shared: Array  # the words above


@device
def order_of(y: Any, above: Array) -> Any:
    """30 bits of a hash of y: of those that claim y, the one of smallest ``x ^ order_of(y)`` wins.

    No claim is all ones, as vertices have 30 bits or words have 64.
    """
    hashed = np.uint64(y) * np.uint64(FACTOR) >> np.uint64(34)
    return above.dtype.type(hashed if above.size <= MIXED else 0)


@device
def _claim(x: Any, y: Any, above: Array) -> Any:
    """The word that x writes to above[y] to claim it: larger than any vertex, so than a parent."""
    nobody = ~above.dtype.type(0)
    top = nobody ^ (nobody >> above.dtype.type(1))
    return x ^ order_of(y, above) | top


@device
def _claimant(y: Any, above: Array) -> Any:
    lower = ~above.dtype.type(0) >> above.dtype.type(1)
    return (above[y] & lower) ^ order_of(y, above)


@expanded
def _plant(team: Team, side: Array, mate: Array, trees: Trees, lists: TreeLists) -> bool:
    """Begin all trees anew, each with its root alone."""
    kind = mate.dtype.type
    nobody = ~kind(0)
    roots, tail = lists.frontiers[0], lists.shared[_FRONTIER:]
    buffer, count = lists.buffers[team.me], 0
    lo, hi = share(team, mate.size)
    for v in range(np.uint64(lo), np.uint64(hi)):
        trees.above[v] = trees.end[v] = nobody
        if side[v] == 0 and mate[v] == nobody:
            trees.above[v] = kind(v)
            count = push(buffer, count, kind(v), roots, tail)
    flush(buffer, count, roots, tail)
    return barrier(team)


@expanded
def _grow(
    team: Team, rows: Pattern, trees: Trees, lists: TreeLists, turn: int, frontier: Array
) -> bool:
    above, nobody = trees.above, ~trees.end.dtype.type(0)
    taken, tail = lists.taken[turn], lists.shared[_TAKEN + turn * _LINE :]
    buffer, count = lists.buffers[team.me], 0
    chunk = next_chunk(team, frontier.size, ROW_CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + ROW_CHUNK, frontier.size))):
            x = frontier[i]
            if trees.end[trees.above[x]] != nobody:
                continue
            for k in range(begin(rows, x), end(rows, x)):
                y = rows.indices[k]
                claim = _claim(x, y, above)
                before = load_relaxed(above, y)
                if before <= claim:  # in a tree already, or the earlier claim wins
                    continue
                if team.size == 1:  # a locked instruction would wait for the reads before it
                    above[y] = claim
                else:
                    before = atomic_min(above, y, claim)
                if before == nobody:
                    count = push(buffer, count, y, taken, tail)
        chunk = next_chunk(team, frontier.size, ROW_CHUNK)
    flush(buffer, count, taken, tail)
    return barrier(team)


@expanded
def _attach(
    team: Team, mate: Array, trees: Trees, lists: TreeLists, claimed: Array, following: int
) -> bool:
    """The step attach; `following` says which of the two frontiers is the next one."""
    shared, above = lists.shared, trees.above
    nobody = ~mate.dtype.type(0)
    frontier, tail = lists.frontiers[following], shared[_FRONTIER + following * _LINE :]
    buffer, count = lists.buffers[team.me], 0
    if team.me == 0:  # all members have read it
        shared[_FRONTIER + (1 - following) * _LINE] = 0
    lo, hi = share(team, claimed.size)
    for i in range(np.uint64(lo), np.uint64(hi)):
        y = claimed[i]
        x = _claimant(y, above)
        above[y] = x
        r, w = above[x], mate[y]
        if w != nobody:
            above[w] = r
            count = push(buffer, count, w, frontier, tail)
        elif atomic_min(trees.end, r, y) == nobody:
            lists.done[np.uint64(atomic_add(shared, _DONE, 1))] = r
    flush(buffer, count, frontier, tail)
    return barrier(team)


@expanded
def _turn_round(team: Team, mate: Array, trees: Trees, lists: TreeLists) -> None:
    nobody = ~mate.dtype.type(0)
    size = lists.shared[_DONE]
    chunk = next_chunk(team, size, ROW_CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + ROW_CHUNK, size))):
            y = trees.end[lists.done[i]]
            while y != nobody:
                x = trees.above[y]
                following = mate[x]
                mate[x], mate[y] = y, x
                y = following
        chunk = next_chunk(team, size, ROW_CHUNK)


@expanded
def _sort_out(team: Team, trees: Trees, lists: TreeLists, turn: int) -> None:
    """List vertices of trees that stay for the next phase, and the others as loose."""
    shared, nobody = lists.shared, ~trees.end.dtype.type(0)
    kept, tail = lists.taken[1 - turn], shared[_TAKEN + (1 - turn) * _LINE :]
    buffer, count = lists.buffers[team.me], 0
    other, many = lists.buffers[team.size + team.me], 0
    lo, hi = share(team, shared[_TAKEN + turn * _LINE])
    for i in range(np.uint64(lo), np.uint64(hi)):
        y = lists.taken[turn, i]
        if trees.end[trees.above[trees.above[y]]] == nobody:
            count = push(buffer, count, y, kept, tail)
        else:
            many = push(other, many, y, lists.loose, shared[_LOOSE:])
    flush(buffer, count, kept, tail)
    flush(other, many, lists.loose, shared[_LOOSE:])


@expanded
def _staying(rows: Pattern, y: Any, trees: Trees) -> Any:
    """A neighbour of y in a tree that stays, all ones for none; y decides where the scan begins."""
    nobody = ~trees.end.dtype.type(0)
    start, stop = begin(rows, y), end(rows, y)
    if start == stop:
        return nobody
    k = start + np.uint64(order_of(y, trees.above)) % (stop - start)
    for _ in range(start, stop):
        x = rows.indices[k]
        if trees.above[x] != nobody and trees.end[trees.above[x]] == nobody:
            return x
        k = k + np.uint64(1) if k + np.uint64(1) < stop else start
    return nobody


@expanded
def _graft(
    team: Team, rows: Pattern, trees: Trees, lists: TreeLists, turn: int, loose: Array
) -> bool:
    above, nobody = trees.above, ~trees.end.dtype.type(0)
    taken, tail = lists.taken[turn], lists.shared[_TAKEN + turn * _LINE :]
    buffer, count = lists.buffers[team.me], 0
    chunk = next_chunk(team, loose.size, ROW_CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + ROW_CHUNK, loose.size))):
            y = loose[i]
            above[y] = nobody
            x = _staying(rows, y, trees)
            if x != nobody:
                above[y] = _claim(x, y, above)
                count = push(buffer, count, y, taken, tail)
        chunk = next_chunk(team, loose.size, ROW_CHUNK)
    flush(buffer, count, taken, tail)
    return barrier(team)


@expanded
def _grow_all(
    team: Team, rows: Pattern, mate: Array, trees: Trees, lists: TreeLists, turn: int, filled: int
) -> bool:
    """Grow levels from frontier 0 on until no tree grows; `filled` vertices are in trees."""
    shared, level = lists.shared, 0
    size = shared[_FRONTIER]
    while size > 0:
        if _grow(team, rows, trees, lists, turn, lists.frontiers[level][:size]):
            return True
        before, filled = filled, shared[_TAKEN + turn * _LINE]
        level = 1 - level
        if _attach(team, mate, trees, lists, lists.taken[turn][before:filled], level):
            return True
        size = shared[_FRONTIER + level * _LINE]
    return False


@kernel
def _phases(
    team: Team, rows: Pattern, side: Array, mate: Array, trees: Trees, lists: TreeLists
) -> None:
    """Caller: lists.shared is 0.  Vertices are unsigned."""
    shared, turn, filled = lists.shared, 0, 0
    if _plant(team, side, mate, trees, lists):
        return
    while True:
        if _grow_all(team, rows, mate, trees, lists, turn, filled) or shared[_DONE] == 0:
            return
        _turn_round(team, mate, trees, lists)
        _sort_out(team, trees, lists, turn)
        if barrier(team):
            return
        turn = 1 - turn
        stays, loose = shared[_TAKEN + turn * _LINE], lists.loose[: shared[_LOOSE]]
        anew = stays * LOOSE_PER_STAYING < loose.size
        if barrier(team):  # all members have read the lengths
            return
        if team.me == 0:
            shared[_PHASES] += 1
            shared[_DONE] = shared[_LOOSE] = shared[_TAKEN + (1 - turn) * _LINE] = 0
            if anew:
                shared[_TAKEN + turn * _LINE] = 0
        filled = 0
        if anew:
            if _plant(team, side, mate, trees, lists):
                return
        else:
            if _graft(team, rows, trees, lists, turn, loose):
                return
            filled = shared[_TAKEN + turn * _LINE]
            if _attach(team, mate, trees, lists, lists.taken[turn][stays:filled], 0):
                return


def turn_paths(view: Any, side: Array, mate: Array, threads: int | None) -> int:
    """Make a matching as large as possible; returns the number of phases that found paths."""
    rows, unsigned = rows_of(view)
    team = crew(threads, work=view.nnz)
    ends, shared = (view.n, unsigned), np.zeros(SHARED, np.int64)
    both = ((2, view.n), unsigned)
    space = workspace(
        above=ends, end=ends, taken=both, frontiers=both, done=ends, loose=ends,
        buffers=((2 * team.size, BUFFER), unsigned),
    )  # fmt: skip
    team.run(
        _phases, rows, side, mate.view(unsigned), Trees(space.above, space.end),
        TreeLists(space.taken, space.frontiers, space.done, space.loose, space.buffers, shared),
    )  # fmt: skip
    return int(shared[_PHASES])
