"""Aggregates of nodes and their neighbours, and a basis of the candidates on each, on a team.

A root is the first node, in the order of the numbers, of which neither itself nor a neighbour has
been taken; it takes its neighbours.  That order makes the aggregates of a grid regular ones, as
three by three nodes; those of pairs need more of them for as many iterations.  Member 0 goes
through the nodes alone, which are a fraction of the rows; all else is shared, and each member
writes words of its own nodes or aggregates only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, interrupted, kernel, share_rows
from matchwood.preconditioners.multilevel.cpu.pairs import STRONG, Measured, couple
from matchwood.primitives.tally.cpu import Rows, rows_of

Array = np.ndarray[Any, Any]

RANK = 1e-10  # of a column's norm on an aggregate: what is left of it below counts as 0


class Nodes(NamedTuple):
    """Of entries: the coupling.  Of nodes: the strongest one; the aggregate that a root has taken
    it into, or -1; its label."""

    coupling: Array
    top: Array
    taken: Array
    label: Array


@kernel
def _gather(team: Any, rows: Rows, m: Measured, nodes: Nodes, count: Array) -> None:
    """Roots and their neighbours, then those that are left; count[0] = how many aggregates.

    Caller: taken is -1.
    """
    lo, hi = share_rows(team, rows.indptr)
    one, strong = np.uint64(1), np.float32(STRONG)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        nodes.top[i] = couple(rows, m.scale, nodes.coupling, i)
    if barrier(team):
        return
    if team.me == 0:
        groups = np.int64(0)
        for i in range(np.uint64(0), np.uint64(m.scale.size)):  # in the order of the numbers
            if interrupted(team, np.int64(i)):
                return
            begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])
            free = m.scale[i] > 0.0 and nodes.taken[i] < 0
            k: Any = begin
            while free and k < end:
                w, j = nodes.coupling[k], np.uint64(rows.indices[k])
                free = (
                    w == np.float32(0)
                    or w < strong * max(nodes.top[i], nodes.top[j])
                    or nodes.taken[j] < 0
                )
                k += one
            if not free:
                continue
            nodes.taken[i] = groups
            for k in range(begin, end):
                w, j = nodes.coupling[k], np.uint64(rows.indices[k])
                if w > np.float32(0) and w >= strong * max(nodes.top[i], nodes.top[j]):
                    nodes.taken[j] = groups
            groups += 1
        count[0] = groups
    if barrier(team):
        return
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        label = np.int64(nodes.taken[i])
        if m.scale[i] == 0.0:
            label = count[0]
        elif label < 0:  # one of its strong neighbours has been taken: it joins the strongest
            best_w, best_h = np.float32(0), np.uint32(0)
            for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])):
                w, j = nodes.coupling[k], np.uint64(rows.indices[k])
                if w == np.float32(0) or w < best_w or nodes.taken[j] < 0:
                    continue
                h = m.hash[i] ^ m.hash[j]
                if label < 0 or w > best_w or h > best_h:
                    label, best_w, best_h = np.int64(nodes.taken[j]), w, h
        nodes.label[i] = label


def neighbourhoods(
    indptr: Array, indices: Array, data: Array, measured: Measured, threads: int | None
) -> tuple[Array, int]:
    """(label of each node, number of aggregates); nodes that are left out have that number."""
    n, kind = measured.scale.size, indices.dtype
    team = crew(threads, work=indices.size + n)
    nodes = Nodes(
        np.empty(indices.size, np.float32), np.empty(n, np.float32), np.full(n, -1, kind),
        np.empty(n, kind),
    )  # fmt: skip
    count = np.zeros(1, np.int64)
    team.run(_gather, rows_of(indptr, indices, data), measured, nodes, count)
    return nodes.label, int(count[0])


class Basis(NamedTuple):
    """Of the rows: candidates, and an orthonormal basis of them on each aggregate.  Of the
    aggregates: where their rows begin in `members`, what the candidates are in that basis, and
    which columns of it there are."""

    candidates: Array
    basis: Array
    starts: Array
    members: Array
    coefficients: Array
    kept: Array


@kernel
def _orthonormalize(team: Any, b: Basis) -> None:
    """Gram and Schmidt, twice for each column.  Columns that depend on earlier ones become 0."""
    count, q = b.kept.shape
    lo, hi = share_rows(team, b.starts)
    for g in range(lo, min(hi, count)):
        if interrupted(team, np.int64(b.starts[g])):
            return
        begin, end = b.starts[g], b.starts[g + 1]
        for j in range(q):
            size = 0.0
            for k in range(begin, end):
                i = b.members[k]
                b.basis[i, j] = b.candidates[i, j]
                size += b.candidates[i, j] * b.candidates[i, j]
            limit = RANK * np.sqrt(size)
            for _ in range(2):
                for t in range(j):
                    product = 0.0
                    for k in range(begin, end):
                        i = b.members[k]
                        product += b.basis[i, t] * b.basis[i, j]
                    for k in range(begin, end):
                        i = b.members[k]
                        b.basis[i, j] -= product * b.basis[i, t]
                    b.coefficients[g, t, j] += product
            size = 0.0
            for k in range(begin, end):
                size += b.basis[b.members[k], j] * b.basis[b.members[k], j]
            size = np.sqrt(size)
            b.kept[g, j] = size > limit
            if size > limit:
                b.coefficients[g, j, j] = size
            inverse = 1.0 / size if size > limit else 0.0
            for k in range(begin, end):
                b.basis[b.members[k], j] *= inverse


def orthonormal(
    candidates: Array, starts: Array, members: Array, count: int, threads: int | None
) -> Basis:
    """A basis of the candidates on each of `count` aggregates; 0 in rows of none.

    Rows members[starts[g] : starts[g + 1]] are those of aggregate g.
    """
    n, q = candidates.shape
    made = Basis(
        candidates, np.zeros((n, q)), starts, members, np.zeros((count, q, q)),
        np.zeros((count, q), np.uint8),
    )  # fmt: skip
    crew(threads, work=n * q * (q + 1)).run(_orthonormalize, made)
    return made
