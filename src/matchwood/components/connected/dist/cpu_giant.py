"""Afforest in two halves, on a block whose pattern need not be symmetric.  See giant.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.connected.cpu import CHUNK, SAMPLES, join_ends
from matchwood.primitives.number.cpu import number_roots
from matchwood.primitives.union_find.cpu import compress
from matchwood.teams import barrier, crew, interrupted, kernel, next_chunk, share

Array = np.ndarray[Any, Any]


@kernel
def _sample(team: Any, indptr: Array, indices: Array, parent: Array) -> None:
    """Every row is joined with its first and its last column; then trees are flat."""
    lo, hi = share(team, parent.size)
    for v in range(lo, hi):
        parent[v] = v
    if barrier(team):
        return
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        start, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        if start < end:
            last = end - np.uint64(1)
            join_ends(parent, parent.dtype.type(v), indices[start])
            if start < last:
                join_ends(parent, parent.dtype.type(v), indices[last])
    if barrier(team):
        return
    compress(parent, lo, hi)


def sample(view: Any, threads: int | None) -> Array:
    """A forest of some edges of a block, as the roots of its vertices.  Reads two entries a row."""
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    parent = np.empty(view.n, unsigned)
    team = crew(threads, work=4 * view.n)
    team.run(_sample, view.indptr, view.indices.view(unsigned), parent)
    return parent


def in_largest_tree(parent: Array) -> Array:
    """Which vertices are in the largest tree, as a sample tells; a wrong guess does no harm."""
    if parent.size == 0:
        return np.zeros(0, np.bool_)
    roots, counts = np.unique(parent[:: max(1, parent.size // SAMPLES)], return_counts=True)
    found: Array = parent == roots[counts.argmax()]
    return found


@kernel
def _join_rest(
    team: Any, indptr: Array, indices: Array, known: Array, root: Any, parent: Array,
    labels: Array, sums: Array,
) -> None:  # fmt: skip
    """All entries but those of the rows of `known` vertices, which are one component."""
    n = parent.size
    lo, hi = share(team, n)
    for v in range(lo, hi):
        if known[v]:
            join_ends(parent, parent.dtype.type(v), parent.dtype.type(root))
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(chunk, min(chunk + CHUNK, n)):
            if interrupted(team, v):
                return
            start, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
            if known[v] or end - start <= np.uint64(2):
                continue
            one = np.uint64(1)  # the first and the last column are joined already
            for k in range(start + one, end - one):
                join_ends(parent, parent.dtype.type(v), indices[k])
        chunk = next_chunk(team, n, CHUNK)
    if barrier(team):
        return
    compress(parent, lo, hi)
    if barrier(team):
        return
    number_roots(team, parent, labels, sums)


def join_rest(view: Any, parent: Array, known: Array, threads: int | None) -> Array:
    """Labels of the trees of a block, from the forest of `sample`, which is changed.

    `known` vertices are one component.  Their rows are not read: where the pattern of the whole
    matrix is symmetric, every edge that leaves that component is stored at its other end too.
    """
    labels = np.empty(view.n, view.indptr.dtype)
    if view.n == 0:
        return labels
    team = crew(threads, work=view.nnz + view.n)
    sums = np.zeros(team.size + 1, np.int64)
    root = int(known.argmax())  # the first
    indices = view.indices.view(parent.dtype)
    team.run(_join_rest, view.indptr, indices, known, root, parent, labels, sums)
    return labels
