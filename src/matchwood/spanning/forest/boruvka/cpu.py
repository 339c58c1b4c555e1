"""Boruvka's rounds on a team.  Read ../order.py and ../cpu.py before.

Every vertex looks for its first edge (first in the total order), one pass over the rows without
atomics.  Each of these edges is in the forest; hooked along them, vertices form trees, which are
numbered.  What is left is a list of the edges between different trees, and in every round

    each tree is offered its edges and keeps the first one, by an atomic minimum on words
    (prefix of the weight, place in the list); trees are hooked along those edges, of two that
    chose the same edge the one with the smaller number stays a root; chains are flattened, roots
    numbered; and the list shrinks to the edges that still join different trees.

A round at least halves the number of trees with edges, so there are at most log2(n) of them.

Where the average degree is high, the list is first made of the light edges alone: about
LIGHT_EDGES for each vertex, by a weight found in a sample.  They join nearly everything, and of the
heavy edges, which follow, hardly any joins two trees.  (As ECL-MST does on GPUs.)

Races: `best` is lowered by compare-and-swap alone, and the order is total, so the result does not
depend on scheduling.  A member keeps its edges in its own part of the list, in their order, so
that the place decides between equal weights as the entry does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_cas,
    barrier,
    crew,
    device,
    fail,
    inlined,
    interrupted,
    kernel,
    load_acquire,
    load_relaxed,
    next_chunk,
    share,
    share_rows,
)
from matchwood.primitives.number.cpu import flatten, number_wanted
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.cpu import (
    BROKEN,
    ERRORS,
    NOTHING,
    code_of,
    mark,
    no_marks,
    upper_entry,
)
from matchwood.spanning.forest.order import CostRows, rows_of

Array = np.ndarray[Any, Any]

LIGHT_DEGREE = 8.0  # mean degree from which light edges go first
LIGHT_EDGES = 1.5  # edges for each vertex that are light; 0.7 to 3 measured, R-MAT 18, mesh 64^3
CHUNK = 4096  # vertices that a member takes at a time: their work differs
ROW_WORK = 4  # edges; the overhead of a row is as much work as these
BLOCKS = 1024  # blocks of rows; members share the list by whole blocks
EVERYTHING = orders.EVERYTHING


class Trees(NamedTuple):
    """What is known of vertices and trees; the first `trees` words belong to the trees."""

    tree: Array  # the tree of each vertex; at first the other end of its first edge
    up: Array  # the tree, or at first the vertex, that each is hooked under
    number: Array  # the number of each tree in the next round
    first: Array  # the number now of each tree that the first list began with
    upper: Array  # the first entry of each row that is behind the diagonal
    best: Array  # the word of the first edge of each tree; at first the entry of each vertex


class EdgeList(NamedTuple):
    """Edges between different trees: a member's are side by side, in the order of entries."""

    a: Array  # the tree of the smaller end
    b: Array  # the tree of the larger end
    prefix: Array  # the prefix of the weight
    entry: Array


@device
def _first_row(block: int, n: int) -> int:
    return (block * n + BLOCKS - 1) // BLOCKS


@device
def _first_edges(
    team: Any, rows: CostRows, order: Any, lo: int, hi: int, trees: Trees, blocks: Array
) -> None:
    """near[u] = other end of the first edge of u, entry[u] = where it stands; none: u, NOTHING.

    Of equal weights the first in a row wins: its columns ascend, so pairs (v, u) with v < u are
    before (u, v).  upper[u] = the first entry of the row with a column behind u; blocks[i] counts
    those of the i-th block of rows.
    """
    indptr, indices, bits = rows
    near, entry, upper = trees.tree, trees.best, trees.upper
    n = near.size
    block, stop, count = -1, lo, np.int64(0)
    for u in range(lo, hi):
        if interrupted(team, u):
            break
        if u >= stop:
            if block >= 0:
                atomic_add(blocks, block, count)
            block, count = u * BLOCKS // n, np.int64(0)
            stop = _first_row(block + 1, n)
        best: Any = NOTHING
        at: Any = np.uint64(0)
        own = indices.dtype.type(u)
        start, end = np.uint64(indptr[u]), np.uint64(indptr[u + 1])
        above = start
        for k in range(start, end):
            code = code_of(order, bits[k])
            if code < best:
                best, at = code, k
            above += np.uint64(indices[k] < own)
        upper[u] = above
        count += np.int64(end - above)
        near[u] = own
        entry[u] = NOTHING
        if start < end:
            if best == NOTHING:  # the code of the heaviest may be that number
                at = start
            near[u] = indices[at]
            entry[u] = at
    if block >= 0:
        atomic_add(blocks, block, count)


@device
def _share_upper(team: Any, n: int, blocks: Array) -> Any:
    """This member's rows, such that all have about as many edges to list; and the edges before.

    In the upper triangle the first rows have more entries than the last ones.
    """
    total = np.int64(ROW_WORK * n)
    for i in range(BLOCKS):
        total += blocks[i]
    lo, hi, start = n, n, np.int64(0)
    edges = work = np.int64(0)
    for i in range(BLOCKS):
        row = _first_row(i, n)
        if lo == n and work >= total // team.size * team.me:
            lo, start = row, edges
        if team.me < team.size - 1 and work >= total // team.size * (team.me + 1):
            hi = row
            break
        edges += blocks[i]
        work += blocks[i] + ROW_WORK * (_first_row(i + 1, n) - row)
    return lo, max(lo, hi), start


@device
def _hook_vertices(team: Any, rows: CostRows, trees: Trees, lo: int, hi: int, marks: Array) -> None:
    """up[u] = near[u], except for the smaller of two that chose each other; the edges marked."""
    near, entry, up = trees.tree, trees.best, trees.up
    for i in range(lo, hi):
        u = near.dtype.type(i)
        v = near[i]
        if v == u or (near[v] == u and u < v):
            up[i] = u
        else:
            up[i] = v
            at = entry[i] if u < v else upper_entry(rows.indptr, rows.indices, u, v)
            if at == NOTHING:
                fail(team, BROKEN, i)
                return
            mark(marks, at)


@device
def _comes_first(order: Any, x: Any, y: Any, entry: Array, bits: Array) -> bool:
    """Of two words from whose prefixes bits were dropped: by prefixes, codes, places."""
    if x >> order.places != y >> order.places or y == NOTHING:
        return x < y
    mask = (np.uint64(1) << order.places) - np.uint64(1)
    a = code_of(order, bits[entry[x & mask]])
    b = code_of(order, bits[entry[y & mask]])
    return x < y if a == b else a < b


@device
def _offer_closely(best: Array, c: Any, word: Any, order: Any, entry: Array, bits: Array) -> None:
    seen = load_acquire(best, c)  # the member that stored it has listed its edge before
    while _comes_first(order, word, seen, entry, bits):
        before = atomic_cas(best, c, seen, word)
        if before == seen:
            break
        seen = before


@inlined
def _offer(best: Array, c: Any, word: Any, order: Any, entry: Array, bits: Array) -> None:
    """best[c] = the first of itself and word.  Inlined: a call would take longer than the work."""
    seen = load_relaxed(best, c)
    if order.exact:
        while word < seen:
            before = atomic_cas(best, c, seen, word)
            if before == seen:
                break
            seen = before
    elif word < seen or (word ^ seen) >> order.places == 0:
        _offer_closely(best, c, word, order, entry, bits)


@device
def _list_edges(
    team: Any, rows: CostRows, order: Any, light: Any, lo: int, hi: int, trees: Trees, start: int,
    edges: EdgeList,
) -> Any:  # fmt: skip
    """List, from `start` on, the edges between different trees with a prefix below `light`.

    Each is offered to its trees.  Returns the list's end.  Of each row those that may be listed
    are found first, without a branch that would be mispredicted every other time.
    """
    indptr, indices, bits = rows
    a, b, prefix, entry = edges
    tree, upper, best = trees.tree, trees.upper, trees.best
    one = np.uint64(1)
    every = light >= np.uint64(EVERYTHING)
    place = np.uint64(start)
    for u in range(lo, hi):
        if interrupted(team, u):
            break
        mine = tree[u]
        end = place
        if every:
            for k in range(np.uint64(upper[u]), np.uint64(indptr[u + 1])):
                entry[end] = k
                end += np.uint64(tree[indices[k]] != mine)
        else:
            for k in range(np.uint64(upper[u]), np.uint64(indptr[u + 1])):
                entry[end] = k
                end += np.uint64(code_of(order, bits[k]) >> order.drop < light)
        for i in range(place, end):
            at = np.uint64(entry[i])
            other = tree[indices[at]]
            if other == mine:
                continue
            head = code_of(order, bits[at]) >> order.drop
            a[place] = mine
            b[place] = other
            prefix[place] = head
            entry[place] = at
            word = (head << order.places) | place
            _offer(best, mine, word, order, entry, bits)
            _offer(best, other, word, order, entry, bits)
            place += one
    return np.int64(place)


@device
def _hook_trees(trees: Trees, lo: int, hi: int, order: Any, edges: EdgeList, marks: Array) -> None:
    """Hook trees along the edges they chose; the smaller of two with the same one stays a root."""
    best, up = trees.best, trees.up
    a, b, _, entry = edges
    mask = (np.uint64(1) << order.places) - np.uint64(1)
    for i in range(lo, hi):
        c = up.dtype.type(i)
        word = best[i]
        up[i] = c
        if word != NOTHING:
            place = word & mask
            other = a[place] ^ b[place] ^ c
            if not (best[other] == word and c < other):
                up[i] = other
                mark(marks, entry[place])


@device
def _shrink(
    team: Any, order: Any, bits: Array, trees: Trees, start: int, end: int, edges: EdgeList
) -> Any:
    """Keep the edges between different trees, under the trees' new numbers, and offer them."""
    number, best = trees.number, trees.best
    a, b, prefix, entry = edges
    place = np.uint64(start)
    for i in range(start, end):
        if interrupted(team, i):
            break
        x, y = number[a[i]], number[b[i]]
        if x == y:
            continue
        head = prefix[i]
        a[place] = x
        b[place] = y
        prefix[place] = head
        entry[place] = entry[i]
        word = (np.uint64(head) << order.places) | place
        _offer(best, x, word, order, entry, bits)
        _offer(best, y, word, order, entry, bits)
        place += np.uint64(1)
    return np.int64(place)


@kernel
def _boruvka(
    team: Any, rows: CostRows, order: Any, light: Any, marks: Array, trees: Trees, edges: EdgeList,
    blocks: Array, sums: Array, rounds: Array,
) -> None:  # fmt: skip
    """`rounds` gets the number of rounds.  Lists have room for every edge once."""
    indptr, indices, bits = rows
    tree, up, number, first, _, best = trees
    n = tree.size
    lo, hi = share_rows(team, indptr)
    v_lo, v_hi = share(team, n)
    _first_edges(team, rows, order, lo, hi, trees, blocks)
    if barrier(team):
        return
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        _hook_vertices(team, rows, trees, chunk, min(chunk + CHUNK, n), marks)
        chunk = next_chunk(team, n, CHUNK)
    above = np.int64(0)
    for i in range(BLOCKS):
        above += blocks[i]
    if (2 * above != indices.size and fail(team, BROKEN, above)) or barrier(team):
        return  # the lists have room for half of the entries
    if not flatten(up, v_lo, v_hi):
        fail(team, BROKEN, 0)
    if barrier(team):
        return
    left_trees = number_wanted(team, up, n, best, False, tree, sums[0])
    if left_trees < 0:
        return
    lo, hi, start = _share_upper(team, n, blocks)
    two_lists = light < np.uint64(EVERYTHING)
    c_lo, c_hi = share(team, left_trees)
    for c in range(c_lo, c_hi):
        best[c] = NOTHING
        first[c] = c
    firsts = left_trees
    count = 1
    heavy = False
    while True:
        if barrier(team):
            return
        end = _list_edges(team, rows, order, light, lo, hi, trees, start, edges)
        while True:
            sums[1, team.me] = end - start
            if barrier(team):
                return
            left = 0
            for member in range(team.size):
                left += sums[1, member]
            if left == 0:
                break
            count += 1
            _hook_trees(trees, c_lo, c_hi, order, edges, marks)
            if barrier(team):
                return
            if not flatten(up, c_lo, c_hi):
                fail(team, BROKEN, count)
            if barrier(team):
                return
            every = two_lists and not heavy  # heavy edges may join those without light ones
            left_trees = number_wanted(team, up, left_trees, best, every, number, sums[0])
            if left_trees < 0 or barrier(team):
                return
            if every:
                f_lo, f_hi = share(team, firsts)
                for c in range(f_lo, f_hi):
                    first[c] = number[first[c]]
            c_lo, c_hi = share(team, left_trees)
            for c in range(c_lo, c_hi):
                best[c] = NOTHING
            if barrier(team):
                return
            end = _shrink(team, order, bits, trees, start, end, edges)
        if heavy or not two_lists:
            break
        heavy = True
        light = np.uint64(EVERYTHING)  # of the light ones none joins two trees any more
        for v in range(v_lo, v_hi):
            tree[v] = first[tree[v]]
    if team.me == 0:
        rounds[0] = count


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Array, int]:
    """Marks of the forest's entries, and rounds.

    Memory: 16 bytes an edge for the list (24 to 32 with 64-bit indices), touched only as far as
    the list reaches; 28 bytes a vertex; a bit an entry.
    """
    n, nnz = costs.n, costs.nnz
    rows = rows_of(costs)
    kind = rows.indices.dtype
    team = crew(threads, work=n + 2 * nnz)
    light = EVERYTHING
    if nnz > LIGHT_DEGREE * n:
        sample = costs.data[:: max(1, nnz // orders.SAMPLE)]
        light = orders.light_prefix(sample, order, LIGHT_EDGES * n / (nnz / 2))
    marks, rounds = no_marks(nnz), np.zeros(1, np.int64)
    tree, up, number, first, upper = (np.empty(n, kind) for _ in range(5))
    trees = Trees(tree, up, number, first, upper, best=np.empty(n, np.uint64))
    room = nnz // 2 + 1
    a, b, entry = (np.empty(room, kind) for _ in range(3))
    edges = EdgeList(a, b, np.empty(room, np.uint32), entry)
    team.run(
        _boruvka, rows, order, np.uint64(light), marks, trees, edges,
        np.zeros(BLOCKS, np.int64), np.zeros((2, team.size), np.int64), rounds, errors=ERRORS,
    )  # fmt: skip
    return marks, int(rounds[0])
