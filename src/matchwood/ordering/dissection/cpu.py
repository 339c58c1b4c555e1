"""Nested dissection on a team, all pieces of a level at once.  The rule: __init__.py.

    _merged            rows that are equal become one vertex that weighs as much as they do
    _parts             components: large ones are the pieces of this level, small ones leaves
    separate_pieces    a separator for every piece
    _kept              the graph without the separators

Kernels write only to rows of their own; there are no races.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components import connected_components
from matchwood.engines.cpu import Crew, crew, interrupted, kernel, share, share_rows
from matchwood.ordering.dissection import MERGED, in_postorder
from matchwood.partitioning.separator import Pieces, limits_of, separate_pieces
from matchwood.primitives.hashing import hash2
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.sort import radix_sort

Array = np.ndarray[Any, Any]


@kernel
def _key_rows(team: Any, indptr: Array, indices: Array, keys: Array) -> None:
    """A key of each row and its diagonal; equal rows have equal keys."""
    lo, hi = share_rows(team, indptr)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        key = mix64(np.uint64(v) + np.uint64(1))
        for e in range(indptr[v], indptr[v + 1]):
            key += mix64(np.uint64(indices[e]) + np.uint64(1))
        keys[v] = key


@kernel
def _find_equal(
    team: Any, indptr: Array, indices: Array, keys: Array, order: Array, first: Array
) -> None:
    """first[v]: the smallest vertex with the row of v, among those next to it in the sorted list.

    Of vertices with one key only those equal to the first of them are merged.
    """
    lo, hi = share(team, order.size)
    for x in range(lo, hi):
        if interrupted(team, x):
            return
        v = order[x]
        first[v] = v
        y = x
        while y > 0 and keys[y - 1] == keys[x]:
            y -= 1
        u = order[y]
        if y == x or indptr[u + 1] - indptr[u] != indptr[v + 1] - indptr[v]:
            continue
        a, b = indptr[u], indptr[v]
        same = True
        while same and (a < indptr[u + 1] or b < indptr[v + 1]):
            if a < indptr[u + 1] and indices[a] == v:
                a += 1
            elif b < indptr[v + 1] and indices[b] == u:
                b += 1
            elif a < indptr[u + 1] and b < indptr[v + 1] and indices[a] == indices[b]:
                a += 1
                b += 1
            else:
                same = False
        if same:
            first[v] = u


class Kept(NamedTuple):
    """Rows that are kept, in their new order; of all, the new number and a group, -1 if dropped."""

    rows: Array
    place: Array
    group: Array


@kernel
def _count_rows(team: Any, indptr: Array, indices: Array, kept: Kept, counts: Array) -> None:
    """counts[1 + k]: entries of row rows[k] inside of its group."""
    lo, hi = share(team, kept.rows.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        v = kept.rows[k]
        count = 0
        for e in range(indptr[v], indptr[v + 1]):
            if kept.group[indices[e]] == kept.group[v]:
                count += 1
        counts[k + 1] = count


@kernel
def _fill_rows(
    team: Any, indptr: Array, indices: Array, kept: Kept, begins: Array, found: Array
) -> None:
    lo, hi = share(team, kept.rows.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        v, at = kept.rows[k], begins[k]
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if kept.group[u] == kept.group[v]:
                found[at] = kept.place[u]
                at += 1


def _kept(
    team: Crew, indptr: Array, indices: Array, rows: Array, groups: Any = 0
) -> tuple[Array, Array]:
    """The graph of these vertices, numbered in their order, with the edges inside of groups.

    Where the pattern is symmetric there are no others.
    """
    n = indptr.size - 1
    place, group = np.empty(n, np.int32), np.full(n, -1)
    place[rows], group[rows] = np.arange(rows.size), groups
    kept, begins = Kept(rows, place, group), np.zeros(rows.size + 1, np.int64)
    team.run(_count_rows, indptr, indices, kept, begins)
    np.cumsum(begins, out=begins)
    found = np.empty(int(begins[-1]), np.int32)
    team.run(_fill_rows, indptr, indices, kept, begins, found)
    return begins, found


def _merged(team: Crew, view: Any) -> Array:
    """For each vertex the one that stands for it."""
    keys, first = np.empty(view.n, np.uint64), np.empty(view.n, np.int64)
    team.run(_key_rows, view.indptr, view.indices, keys)
    keys, order = radix_sort(keys, threads=team.size)
    team.run(_find_equal, view.indptr, view.indices, keys, order.astype(np.int64), first)
    if np.count_nonzero(first == np.arange(view.n)) > MERGED * view.n:
        return np.arange(view.n)
    return first


def dissect(
    view: Any, leaf: int, tries: int, imbalance: float, seed: int, threads: int | None
) -> tuple[Array, Array, Array]:
    """The node of each vertex; of each node its parent, and whether it is a separator."""
    team = crew(threads, work=view.nnz + view.n)
    first = _merged(team, view)
    vertex = np.flatnonzero(first == np.arange(view.n))  # those that stand for others
    weight = np.bincount(first, minlength=view.n)[vertex]
    indptr, indices = _kept(team, view.indptr.astype(np.int64), view.indices, vertex)
    node = np.full(view.n, -1)
    parents, cuts = [-1], [True]  # the first: an empty separator of the whole graph
    origin = np.zeros(vertex.size, np.int64)  # 2 times the node whose separator was cut out, + side
    while vertex.size:
        part, owners, is_leaf = _parts(indptr, indices, weight, origin, leaf, threads)
        number = len(parents) + np.arange(owners.size)
        parents += owners.tolist()
        cuts += (~is_leaf).tolist()
        ends = is_leaf[part]
        node[vertex[ends]] = number[part[ends]]
        order = np.flatnonzero(~ends)
        order = order[radix_sort(part[order].astype(np.uint64), threads=threads)[1]]
        indptr, indices = _kept(team, indptr, indices, order, part[order])
        vertex, weight, owner = vertex[order], weight[order], number[part[order]]
        if not vertex.size:
            break
        begins = np.flatnonzero(np.diff(owner, prepend=-1, append=-1)).astype(np.int64)
        sizes, totals = np.diff(begins), np.add.reduceat(weight, begins[:-1])
        seeds = hash2(vertex[begins[:-1]], sizes, seed, threads=threads)
        pieces = Pieces(indptr, indices, weight, begins, limits_of(totals, imbalance), seeds)
        side, lighter = separate_pieces(pieces, tries=tries, engine="cpu", threads=threads)
        whole = np.repeat(lighter == 0, sizes)  # nothing to be gained: a leaf, be it large
        for k in owner[begins[:-1][lighter == 0]].tolist():
            cuts[k] = False
        done = (side == 2) | whole
        node[vertex[done]] = owner[done]
        rest = np.flatnonzero(~done)
        origin = 2 * owner[rest] + side[rest]
        indptr, indices = _kept(team, indptr, indices, rest, origin)
        vertex, weight = vertex[rest], weight[rest]
    return in_postorder(node[first], parents, cuts)


def _parts(
    indptr: Array, indices: Array, weight: Array, origin: Array, leaf: int, threads: int | None
) -> tuple[Array, Array, Array]:
    """The part of each vertex; of each part the node above it, and whether it is a leaf.

    A component that weighs more than `leaf` is a part.  All others of one side of a separator are
    one part together.
    """
    if indices.size <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # what the gate and components are compiled for anyway
    label = connected_components((indptr, indices), threads=threads).labels.astype(np.int64)
    size = np.bincount(label, weights=weight).astype(np.int64)
    of = np.zeros(size.size, np.int64)
    of[label] = origin
    small = size <= leaf
    keys = np.where(small, of, 1 + of.max() + np.arange(size.size))
    found, where = np.unique(keys, return_inverse=True)
    owners, is_leaf = np.zeros(found.size, np.int64), np.zeros(found.size, bool)
    owners[where], is_leaf[where] = of // 2, small
    return where[label], owners, is_leaf
