"""Rabbit order: communities within communities.  See reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from matchwood import calls, engines
from matchwood.primitives.community_merge import trusted_joins, trusted_trees
from matchwood.primitives.contract import (
    trusted_contract_measured,
    trusted_gathered,
    trusted_sums,
)

LONE_ENTRIES = 1 << 17
"""Entries and communities of a round up to which one member works alone, which is faster."""


@dataclass(frozen=True)
class JoinTree:
    """Which community joined which, and when: the proof of a rabbit order.

    Attributes
    ----------
    parent : (n,) integer array
        The vertex that v's community joined, both named by the vertex that they began with; v
        itself where it never joined.
    round : (n,) int32 array
        In which round, from 1; 0 where it never joined.
    """

    parent: Any
    round: Any


def rabbit_order(A: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """Order the vertices such that communities lie together, and within them smaller ones.

    At first every vertex is a community.  In each round a community r picks the neighbour u with
    the largest

        w(r, u) - k_r k_u / 2m  >  0,     of equal ones that with the larger mix64 of its root

    (w: edges between them, k: sum of degrees, 2m: that of all), and joins it if r's (k, mix64,
    vertex) is the smaller one.  Then the trees of joins are contracted; the last round is the one
    in which none joins.  The order is depth first through the tree of all joins, children by
    (round, larger degree first, vertex), communities that never joined by vertex.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``; the reordered matrix is ``permute(A, perm)``.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix.

    See Also
    --------
    locality_ordering : the same order, with measures before and after and the tree.
    refine_order : a little better still.

    Notes
    -----
    The idea is that of Arai et al. [1]_, who join one vertex after the other, as threads reach
    them; so their order differs from run to run.  In rounds every engine, at any number of
    threads, returns the same order, and neighbours lie closer: gaps of shuffled grids and meshes
    are a fifth to a half shorter (bench/ordering/rabbit.py has the sequential rule).

    A round halves the communities that can still join, more or less; 5 to 20 rounds were
    seen.  Work O(m) for the first, less for each other.  Memory: the contracted graphs of two
    rounds, at most some 2 (nnz + n) words of 12 bytes, and six arrays of n.

    References
    ----------
    .. [1] J. Arai, H. Shiokawa, T. Yamamuro, M. Onizuka, S. Iwamura. Rabbit order: just-in-time
       parallel reordering for fast graph analysis. IPDPS 2016. doi:10.1109/IPDPS.2016.110

    Examples
    --------
    Two triangles joined by an edge, numbered in turn:

    >>> import matchwood
    >>> A = (6, [[0, 2], [2, 4], [4, 0], [1, 3], [3, 5], [5, 1], [4, 5]])
    >>> perm = matchwood.rabbit_order(A).tolist()
    >>> sorted(perm[:3]), sorted(perm[3:])
    ([1, 3, 5], [0, 2, 4])
    """
    perm, _, _ = find_order(calls.enter(A, "rabbit_order", engine, threads), threads)
    return perm


def find_order(call: calls.Call, threads: int | None) -> tuple[Any, JoinTree, dict[str, int]]:
    """The order and its tree, where the user's graph lives, and the counters."""
    view = call.graph.undirected_pattern()
    perm, parent, joined, counters = call.load(__name__).order(view, threads=threads)
    perm, parent, joined = call.back(perm, parent, joined)
    return perm, JoinTree(parent, joined), counters


# The tree of joins, round by round; on any engine, whose primitives do the work.
#
# A round has three steps: which community joins which (primitives.joining), the trees that these
# joins make, and the graph contracted by trees (primitives.contract).  Communities are named by the
# vertex they began with.  A tree is named after its root, and trees are numbered by their roots, so
# names ascend in every round.


class Joined(NamedTuple):
    """All joins: parent and round of each vertex, and the vertices that joined."""

    parent: Any
    round: Any
    degree: Any  # of each vertex
    roots: Any  # vertices that never joined, ascending
    sizes: Any  # vertices of their trees
    rounds: int


class Begun(NamedTuple):
    """Every vertex a community: its parent, round, name and size; its degree, and the largest."""

    parent: Any
    round: Any
    names: Any
    sizes: Any
    degree: Any
    longest: int


def begun(view: Any) -> Begun:
    xp = engines.xp(view.indptr)
    n = view.n
    degree = xp.diff(view.indptr).astype(np.int64)
    parent = xp.arange(n, dtype=view.indices.dtype)
    sizes = xp.ones(n, np.int64)
    longest = int(degree.max()) if n else 0
    return Begun(parent, xp.zeros(n, np.int32), parent.copy(), sizes, degree, longest)


def join_all(view: Any, begun: Begun, engine: str, threads: int | None, note: Any) -> Joined:
    """Join until none joins.

    ``note(target, names, number, parent, when)`` stores the joins of a round by name and returns
    how many there are; sizes are not found where it returns None.
    """
    parent, when, names, sizes, degree, longest = begun
    volume = degree
    graph = (view.indptr, view.indices, None)
    total, number = view.nnz, 0
    where: dict[str, Any] = {"engine": engine, "threads": threads}
    while True:
        if graph[1].size + names.size < LONE_ENTRIES:
            where["threads"] = 1
        target = trusted_joins(graph, volume, names, total, **where)
        joined = note(target, names, number + 1, parent, when)
        if joined == 0:
            break
        label, roots = trusted_trees(target, **where)
        count = int(roots.size)
        if count == target.size:
            break
        number += 1
        # Joins do not depend on the order within a row, so rows may stay unsorted.
        found, longest, _ = trusted_contract_measured(
            *graph, None, label, count, most=total, longest=longest, **where
        )
        graph = (found.indptr, found.indices, found.data)
        volume = trusted_sums(volume, label, count, where["threads"])
        if joined is not None:
            sizes = trusted_sums(sizes, label, count, where["threads"])
        names = trusted_gathered(names, roots, **where)
    return Joined(parent, when, degree, names, sizes, number)
