"""Phases of a bipartite graph on a team: trees of alternating paths, and parts of them grafted.

Every free vertex of side 0 is the root of a tree.  All trees grow at once, level by level:

    grow      the vertices of the last level claim their neighbours (side 1) that are in no tree; of
              several that claim one, a hash of it decides who has it
    attach    what was claimed belongs to its tree now, and so do the mates, which grow next.  A
              vertex without a mate ends a path: of several in a tree the smallest counts, and
              the tree does not grow any more

When no tree grows any more:

    turn      the paths are turned round; they lie in different trees and so do not meet
    sort out  trees with a path fall apart, the others stay as they are
    graft     a tree that stays is fully grown, so a path that is still to be found leads through
              something that fell apart.  Each such vertex of side 1 looks in its row for a tree
              that stays, and growing goes on there.  Where little stays, all trees begin anew

A phase that finds no path is the last one: there is none.

One answer.  Who gets a vertex, and which path is turned round, is decided by numbers after all have
claimed.  So the order of lists, which depends on the team, changes nothing.  Were it always the
smallest who gets a vertex, one tree could take all ends of paths in each phase, and the others
none: phases would be as many as paths.

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
    atomic_min,
    barrier,
    crew,
    device,
    expanded,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    workspace,
)
from matchwood.matching.cardinality.cpu_sides import Rows, begin, end, rows_of
from matchwood.primitives.frontier.cpu import BUFFER, flush, push

Array = np.ndarray[Any, Any]
FEW = 64  # vertices whose rows a member reads at a time
FACTOR = 0x9E3779B97F4A7C15  # 2^64 times the golden ratio
MIXED = 1 << 30  # vertices
WORTH = 5  # times what stays: where more than that fell apart, trees begin anew

# Words of `shared`, a cache line apart: lengths of two lists of what is in trees, of two frontiers,
# of the trees with a path, and of what fell apart; phases.
_LINE = 16
_TAKEN, _FRONTIER, _DONE, _LOOSE, _PHASES = 0, 2 * _LINE, 4 * _LINE, 5 * _LINE, 6 * _LINE
SHARED = 7 * _LINE


class Trees(NamedTuple):
    above: Array  # in side 1 the parent, in side 0 the root
    end: Array  # of a root


class Lists(NamedTuple):
    taken: Array  # (2, n) of side 1, in trees: of this phase and of the next
    frontiers: Array  # (2, n) of side 0: of this level and of the next
    done: Array  # roots of trees with a path
    loose: Array  # of side 1, that fell apart
    buffers: Array  # (members, BUFFER): vertices on their way to a list
    shared: Array  # the words above


@device
def order_of(y: Any, above: Array) -> Any:
    """Of those that claim y, the smallest ``x ^ order_of(y)`` is the first: another one for each y.

    30 bits of a hash.  So no claim is all ones, where vertices have 30 bits or words have 64.
    """
    hashed = np.uint64(y) * np.uint64(FACTOR) >> np.uint64(34)
    return above.dtype.type(hashed if above.size <= MIXED else 0)


@device
def _claim(x: Any, y: Any, above: Array) -> Any:
    """What x writes to above[y]: larger than any vertex, so than the parent of one in a tree."""
    nobody = ~above.dtype.type(0)
    top = nobody ^ (nobody >> above.dtype.type(1))
    return x ^ order_of(y, above) | top


@device
def _claimant(y: Any, above: Array) -> Any:
    """Who wrote the claim in above[y]."""
    lower = ~above.dtype.type(0) >> above.dtype.type(1)
    return (above[y] & lower) ^ order_of(y, above)


@expanded
def _plant(team: Team, side: Array, mate: Array, trees: Trees, lists: Lists) -> bool:
    """Every tree is its root alone."""
    kind = mate.dtype.type
    nobody = ~kind(0)
    roots, tail = lists.frontiers[0], lists.shared[_FRONTIER:]
    buffer, count = lists.buffers[team.rank], 0
    lo, hi = share(team, mate.size)
    for v in range(np.uint64(lo), np.uint64(hi)):
        trees.above[v] = trees.end[v] = nobody
        if side[v] == 0 and mate[v] == nobody:
            trees.above[v] = kind(v)
            count = push(buffer, count, kind(v), roots, tail)
    flush(buffer, count, roots, tail)
    return barrier(team)


@expanded
def _grow(team: Team, rows: Rows, trees: Trees, lists: Lists, turn: int, frontier: Array) -> bool:
    above, nobody = trees.above, ~trees.end.dtype.type(0)
    taken, tail = lists.taken[turn], lists.shared[_TAKEN + turn * _LINE :]
    buffer, count = lists.buffers[team.rank], 0
    chunk = next_chunk(team, frontier.size, FEW)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + FEW, frontier.size))):
            x = frontier[i]
            if trees.end[trees.above[x]] != nobody:
                continue
            for k in range(begin(rows, x), end(rows, x)):
                y = rows.indices[k]
                claim = _claim(x, y, above)
                before = load_relaxed(above, y)
                if before <= claim:  # in a tree already, or claimed by one that comes first
                    continue
                if team.size == 1:  # a locked instruction would wait for the reads before it
                    above[y] = claim
                else:
                    before = atomic_min(above, y, claim)
                if before == nobody:
                    count = push(buffer, count, y, taken, tail)
        chunk = next_chunk(team, frontier.size, FEW)
    flush(buffer, count, taken, tail)
    return barrier(team)


@expanded
def _attach(
    team: Team, mate: Array, trees: Trees, lists: Lists, claimed: Array, following: int
) -> bool:
    """`following`: which frontier is the next one."""
    shared, above = lists.shared, trees.above
    nobody = ~mate.dtype.type(0)
    frontier, tail = lists.frontiers[following], shared[_FRONTIER + following * _LINE :]
    buffer, count = lists.buffers[team.rank], 0
    if team.rank == 0:  # everybody has read it
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
def _turn_round(team: Team, mate: Array, trees: Trees, lists: Lists) -> None:
    nobody = ~mate.dtype.type(0)
    size = lists.shared[_DONE]
    chunk = next_chunk(team, size, FEW)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + FEW, size))):
            y = trees.end[lists.done[i]]
            while y != nobody:
                x = trees.above[y]
                following = mate[x]
                mate[x], mate[y] = y, x
                y = following
        chunk = next_chunk(team, size, FEW)


@expanded
def _sort_out(team: Team, trees: Trees, lists: Lists, turn: int) -> None:
    """What stays goes to the list of the next phase, the rest is loose."""
    shared, nobody = lists.shared, ~trees.end.dtype.type(0)
    kept, tail = lists.taken[1 - turn], shared[_TAKEN + (1 - turn) * _LINE :]
    buffer, count = lists.buffers[team.rank], 0
    other, many = lists.buffers[team.size + team.rank], 0
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
def _staying(rows: Rows, y: Any, trees: Trees) -> Any:
    """A neighbour of y in a tree that stays, all ones for none.

    The row is read from a place on that depends on y: neighbours share what fell apart.
    """
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
def _graft(team: Team, rows: Rows, trees: Trees, lists: Lists, turn: int, loose: Array) -> bool:
    above, nobody = trees.above, ~trees.end.dtype.type(0)
    taken, tail = lists.taken[turn], lists.shared[_TAKEN + turn * _LINE :]
    buffer, count = lists.buffers[team.rank], 0
    chunk = next_chunk(team, loose.size, FEW)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + FEW, loose.size))):
            y = loose[i]
            above[y] = nobody
            x = _staying(rows, y, trees)
            if x != nobody:
                above[y] = _claim(x, y, above)
                count = push(buffer, count, y, taken, tail)
        chunk = next_chunk(team, loose.size, FEW)
    flush(buffer, count, taken, tail)
    return barrier(team)


@expanded
def _grow_all(
    team: Team, rows: Rows, mate: Array, trees: Trees, lists: Lists, turn: int, filled: int
) -> bool:
    """Levels until no tree grows, from frontier 0 on.  `filled`: how many are in trees."""
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
def _phases(team: Team, rows: Rows, side: Array, mate: Array, trees: Trees, lists: Lists) -> None:
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
        anew = stays * WORTH < loose.size
        if barrier(team):  # everybody has read the lengths
            return
        if team.rank == 0:
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
    """Make a matching as large as possible; the number of phases that found paths."""
    rows, unsigned = rows_of(view)
    team = crew(threads, work=view.nnz)
    ends, shared = (view.n, unsigned), np.zeros(SHARED, np.int64)
    both = ((2, view.n), unsigned)
    space = workspace(
        above=ends, end=ends, taken=both, frontiers=both, done=ends, loose=ends,
        buffers=((2 * team.size, BUFFER), unsigned),
    )  # fmt: skip
    team.run(
        _phases,
        rows,
        side,
        mate.view(unsigned),
        Trees(space.above, space.end),
        Lists(space.taken, space.frontiers, space.done, space.loose, space.buffers, shared),
    )
    return int(shared[_PHASES])
