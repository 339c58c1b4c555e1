"""Connected components on a team.  The rule and the papers: __init__.py.

Every method ends with `parent[v]` = the smallest vertex of v's component, and `number` turns that
into 0, 1, ...  Races are those of primitives/union_find for Afforest.  In FastSV `parent` only
goes down, by atomic minimum, to vertices of the same component, so the order of arrival changes
the number of rounds at most, never the labels.

Vertices are unsigned in the kernels: Numba tests every signed index for its sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    atomic_min,
    barrier,
    crew,
    device,
    expect,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    share_rows,
    store_relaxed,
)
from matchwood.primitives.number.cpu import number_roots
from matchwood.primitives.union_find.cpu import compress, link
from matchwood.traversal.breadth_first import bfs

Array = np.ndarray[Any, Any]

SAMPLED_NEIGHBOURS = 2  # the first and the last, before the largest component is looked for [1]
SAMPLES = 1024  # vertices whose component is read; the paper's number
CHUNK = 2048  # vertices that a member takes at a time when their work is not known


@device
def _largest(parent: Array) -> Any:
    """The component of most sampled vertices, by a majority vote; a wrong guess costs time only."""
    n = parent.size
    step = max(1, n // SAMPLES)
    champion = parent[0]
    votes = 0
    for i in range(0, n, step):
        if votes == 0:
            champion = parent[i]
        votes += 1 if parent[i] == champion else -1
    return champion


@device
def join_ends(parent: Array, u: Any, v: Any) -> None:
    """`link`, after a quick test: most ends have the same grandparent already."""
    a, b = load_relaxed(parent, u), load_relaxed(parent, v)
    a, b = load_relaxed(parent, a), load_relaxed(parent, b)
    if a != b:
        link(parent, a, b)


@device
def _at_most_one(team: Any, sums: Array) -> bool:
    """True when the members counted at most one tree together; a barrier has passed."""
    trees = 0
    for member in range(team.size):
        trees += sums[member]
    return trees <= 1


@device
def _first_neighbours(
    team: Any, indptr: Array, indices: Array, symmetric: bool, parent: Array, sums: Array
) -> bool:
    """Hook every vertex under its first neighbour, in sorted rows the smallest: a forest.

    A member visits its vertices in ascending order, so that the root of a smaller one is ready.
    True when all is done: one tree, beside vertices without neighbours.
    """
    n = parent.size
    lo, hi = share(team, n)
    last = np.uint64(indptr[n] - 1)
    trees = 0
    for v in range(lo, hi):
        me = parent.dtype.type(v)
        parent[v] = me
        # An empty row reads another's neighbour and drops it: cheaper than a branch that is
        # mispredicted where every third row is empty.
        filled = indptr[v] < indptr[v + 1]
        first = indices[min(np.uint64(indptr[v]), last)]
        root = min(me, first if filled else me)
        if root >= lo:
            root = parent[root]
        parent[v] = root
        trees += (root == me) & (filled | (not symmetric))  # else others may point at it
    sums[team.me] = trees
    if barrier(team):
        return False
    if team.size > 1:
        compress(parent, lo, hi)
    return _at_most_one(team, sums)


@device
def _join_rows(team: Any, indptr: Array, indices: Array, skipped: Any, parent: Array) -> bool:
    """Join the entries of all rows but those in the tree of `skipped`.  True: the team stops."""
    n = parent.size
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(chunk, min(chunk + CHUNK, n)):
            if load_relaxed(parent, v) == skipped:
                continue
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                join_ends(parent, parent.dtype.type(v), indices[k])
        chunk = next_chunk(team, n, CHUNK)
    if barrier(team):
        return True
    lo, hi = share(team, n)
    compress(parent, lo, hi)
    return barrier(team)


@kernel
def _afforest(
    team: Any, indptr: Array, indices: Array, symmetric: bool, parent: Array, labels: Array,
    sums: Array,
) -> None:  # fmt: skip
    n = parent.size
    lo, hi = share(team, n)
    expect(team, 3 * n)
    done = _first_neighbours(team, indptr, indices, symmetric, parent, sums)
    if barrier(team):
        return
    advance(team, hi - lo)
    if not done:
        # The last neighbour, in sorted rows the largest: joins most of what is left.
        for v in range(lo, hi):
            if interrupted(team, v):
                return
            if indptr[v] < indptr[v + 1]:
                join_ends(parent, parent.dtype.type(v), indices[np.uint64(indptr[v + 1] - 1)])
        if barrier(team):
            return
        compress(parent, lo, hi)
        if barrier(team):
            return
        advance(team, hi - lo)
        if not symmetric:
            # An edge may be stored at one end only, so that all rows would be read.  Where rows
            # are long, two neighbours of each have mostly joined everything.
            trees = 0
            for v in range(lo, hi):
                trees += parent[v] == v
            sums[team.me] = trees
            if barrier(team):
                return
            done = _at_most_one(team, sums)
            if barrier(team):
                return
    # A symmetric pattern stores an edge at its other end too, where it counts.
    giant = _largest(parent) if symmetric else ~parent.dtype.type(0)
    if not done and _join_rows(team, indptr, indices, giant, parent):
        return
    advance(team, hi - lo)
    number_roots(team, parent, labels, sums)


@device
def _lower(parent: Array, v: int, label: Any) -> bool:
    """parent[v] = min(parent[v], label); True when that changed it."""
    return label < load_relaxed(parent, v) and atomic_min(parent, v, label) > label


@kernel
def _fastsv(
    team: Any, indptr: Array, indices: Array, symmetric: bool, parent: Array, grandparent: Array,
    labels: Array, sums: Array, changes: Array,
) -> None:  # fmt: skip
    n = parent.size
    lo, hi = share(team, n)
    for v in range(lo, hi):
        parent[v] = v
        grandparent[v] = v
    if barrier(team):
        return
    first, last = share_rows(team, indptr)
    # No label is smaller than the first vertex with neighbours: rows that have it are done.
    bottom = parent.dtype.type(0)
    if symmetric:
        for v in range(n):
            if indptr[v] < indptr[v + 1]:
                bottom = parent.dtype.type(v)
                break
    done = False
    rounds = 0
    while not done:
        if team.me == 0:
            store_relaxed(changes, (rounds + 1) % 3, 0)
        for u in range(first, last):
            if interrupted(team, u):
                return
            start, end = np.uint64(indptr[u]), np.uint64(indptr[u + 1])
            least = grandparent[u]
            for k in range(start, end):
                if least == bottom:
                    break
                least = min(least, grandparent[indices[k]])
            _lower(parent, load_relaxed(parent, u), least)  # stochastic hooking
            _lower(parent, u, least)  # aggressive hooking
            if not symmetric:  # the edge seen from its other end
                for k in range(start, end):
                    v = indices[k]
                    if grandparent[u] < grandparent[v]:
                        _lower(parent, load_relaxed(parent, v), grandparent[u])
                        _lower(parent, v, grandparent[u])
        if barrier(team):
            return
        for v in range(lo, hi):  # shortcutting
            _lower(parent, v, grandparent[v])
        if barrier(team):
            return
        changed = 0
        for v in range(lo, hi):
            above = parent[parent[v]]
            changed += above != grandparent[v]
            grandparent[v] = above
        atomic_add(changes, rounds % 3, changed)
        if barrier(team):
            return
        done = load_relaxed(changes, rounds % 3) == 0
        rounds += 1
    if team.me == 0:
        changes[3] = rounds
    number_roots(team, parent, labels, sums)


@kernel
def _join_rest(
    team: Any, indptr: Array, indices: Array, known: Array, root: Any, parent: Array,
    labels: Array, sums: Array,
) -> None:  # fmt: skip
    """Join all entries but those of the rows of `known` vertices, which are under `root`."""
    lo, hi = share(team, parent.size)
    for v in range(lo, hi):
        parent[v] = root if known[v] else v
    if barrier(team) or _join_rows(team, indptr, indices, root, parent):
        return
    number_roots(team, parent, labels, sums)


def label_rest(view: Any, known: Array, threads: int | None) -> tuple[int, Array]:
    """Count and labels of components, or of the trees of a block.

    `known` vertices are one component.  Their rows are not read: where the pattern of the whole
    matrix is symmetric, every edge that leaves that component is stored at its other end too.
    """
    labels = np.empty(view.n, view.indptr.dtype)
    if view.n == 0:
        return 0, labels
    parent = np.empty(view.n, np.uint32 if view.indptr.dtype == np.int32 else np.uint64)
    team = crew(threads, work=view.nnz + view.n)
    sums = np.zeros(team.size + 1, np.int64)
    first = int(known.argmax())
    root = parent.dtype.type(first) if known[first] else ~parent.dtype.type(0)
    team.run(_join_rest, view.indptr, view.indices.view(parent.dtype), known, root, parent, labels,
             sums)  # fmt: skip
    return int(sums[-1]), labels


def label(
    view: Any, symmetric: bool, method: str, *, graph: Any = None, threads: int | None = None
) -> tuple[int, Array, int]:
    """Labels of the pattern `view`; the method "bfs" searches its `graph`."""
    n = view.n
    kind = view.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=view.nnz + n)
    parent = np.empty(n, unsigned)
    labels = np.empty(n, kind)
    sums = np.zeros(team.size + 1, np.int64)
    if view.nnz == 0:
        labels[:] = np.arange(n)
        return n, labels, 0
    indptr, indices = view.indptr, view.indices.view(unsigned)
    if method == "fastsv":
        changes = np.zeros(4, np.int64)
        grandparent = np.empty(n, unsigned)
        team.run(
            _fastsv, indptr, indices, symmetric,
            parent, grandparent, labels, sums, changes,
        )  # fmt: skip
        rounds = int(changes[3])
    elif method == "bfs":
        hub = int(np.diff(view.indptr).argmax())
        reached = bfs(graph, hub, directed=False, threads=threads).level >= 0
        count, labels = label_rest(view, reached, threads)
        return count, labels, count
    else:
        team.run(_afforest, indptr, indices, symmetric, parent, labels, sums)
        rounds = SAMPLED_NEIGHBOURS + 1
    return int(sums[-1]), labels, rounds
