"""Is this matching the heaviest?  On a small graph by trying all, on others by a proof.

Up to MOST_TRIED vertices all matchings are tried.  In larger graphs vertices get prices that prove
it.  Before that, tests with clearer errors are made: the matching is lighter than the greedy one,
heavier than a bound, or one edge weighs more than the matched edges at its ends together.

The proof.  Let every vertex v have a price y(v) >= 0, such that y(u) + y(v) >= w(u, v) for all
edges.  Then no matching weighs more than all prices together.  If also y(u) + y(v) = w(u, v) for
the edges of a matching M, and y(v) = 0 for free vertices, M weighs as much as all prices: it is the
heaviest.

Such prices solve a system of inequalities with two unknowns each.  With p(v) = y(v), q(v) = -y(v)
each says that a difference of two unknowns is at most a number.  Shortest paths (Bellman and Ford)
solve such a system in rounds over all edges, or a cycle of negative length shows that it has no
solution.  Weights are integers here, 2^44 for the heaviest of a component.  Each inequality gets
one unit of slack, which is more than rounding takes.  So the heaviest matching is never refused,
and one that passes is lighter than the heaviest by at most 2^-43 of the heaviest edge per vertex.

In a bipartite graph prices exist whenever M is the heaviest.  Others may need prices of odd sets of
vertices too.  There a component without prices is solved again by Edmonds' algorithm in rustworkx,
which proves its own result by such prices (`verify_optimum`), and the weights are compared.

References
----------
.. [1] J. Edmonds. Maximum matching and a polyhedron with 0,1-vertices. J. Res. NBS 69B, 1965.
   doi:10.6028/jres.069B.013
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.bound import matching_bound
from matchwood.matching.check import ROUNDING, check_matching
from matchwood.matching.exact import reference
from matchwood.matching.exact.cpu import double_cover, general_matching
from matchwood.matching.methods import checked_mates, heavy_matching, settled_weight

Array = np.ndarray[Any, Any]
TOP_BIT = 44  # exponent: 2^44 is the heaviest weight of a component as an integer
ROUNDS_PER_SEARCH = 16  # rounds between two searches for a cycle
MOST_TRIED = 14  # vertices; there are 2^14 sets of them to try


def check_exact(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is a matching of `A`, and the heaviest.

    `EngineUnavailable` where that cannot be decided without rustworkx.
    """
    check_matching(A, answer, weighted=True)
    G = csr.as_graph(A, "check_exact").on("cpu")
    view = G.undirected_weights("check_exact")
    if view.n <= MOST_TRIED:
        other = reference.match(view, 0, True).weight
    else:
        greedy = heavy_matching(view)
        other = settled_weight("check_exact", view, greedy.mate, greedy.weight)
    if answer.weight < other * (1 - ROUNDING):
        raise CheckFailed(f"matching: the weight is {answer.weight}, but there is one of {other}")
    _check_single_edges(view, answer)
    bound = matching_bound(G, answer).value
    if answer.weight > bound * (1 + ROUNDING):
        raise CheckFailed(f"matching: the weight is {answer.weight}, more than the bound {bound}")
    if view.n > MOST_TRIED:
        mate, *_ = checked_mates(view, answer, "check_exact", "matching")
        prove_heaviest(view, mate)


def _check_single_edges(view: csr.View, answer: Any) -> None:
    _mate, rows, used = checked_mates(view, answer, "check_exact", "matching")
    own = np.zeros(view.n)
    own[rows[used]] = view.data[used]
    unseen = answer.weight * view.n * np.finfo(np.float64).eps  # rounding error of a sum of weights
    with np.errstate(over="ignore"):
        gain = view.data > (own[rows] + own[view.indices]) * (1 + ROUNDING) + unseen
    if gain.any():
        k = int(gain.argmax())
        raise CheckFailed(
            f"matching: edge ({rows[k]}, {view.indices[k]}) weighs {view.data[k]}, more than the "
            "edges of its ends together"
        )


# The proof


class Arcs(NamedTuple):
    """The inequalities ``x[head] <= x[tail] + length``, as arcs of a graph."""

    tail: Array
    head: Array
    length: Array

    def where(self, keep: Array) -> Arcs:
        return Arcs(self.tail[keep], self.head[keep], self.length[keep])


def prove_heaviest(view: Any, mate: Array) -> None:
    """Raise `CheckFailed` unless this matching is the heaviest of the graph."""
    if not view.nnz:
        return
    A = sp.csr_array((view.data.astype(np.float64), view.indices, view.indptr), (view.n,) * 2)
    count, label = csgraph.connected_components(A, directed=False)
    without = without_prices(A, np.asarray(mate, np.int64), count, label)
    one, other = double_cover(A)
    odd = np.zeros(count, bool)
    odd[label[one == other]] = True
    wrong = np.flatnonzero(without & ~odd)
    if wrong.size:
        v = int((label == wrong[0]).argmax())
        raise CheckFailed(f"matching: there is a heavier one among the vertices connected with {v}")
    for part in np.flatnonzero(without).tolist():
        _compare(A, mate, np.flatnonzero(label == part))


def without_prices(A: sp.csr_array, mate: Array, count: int, label: Array) -> Array:
    """For each component, whether no prices prove that its matching is the heaviest."""
    n = A.shape[0]
    arcs = _inequalities(A, mate, count, label)
    of_vertex = np.concatenate([label, label])
    x = np.zeros(2 * n, np.int64)
    before = np.full(2 * n, -1)  # the vertex that gave each x its value
    missing = np.zeros(count, bool)
    rounds = 0
    while True:
        better = x[arcs.tail] + arcs.length
        shorter = better < x[arcs.head]
        if not shorter.any():
            return missing
        at = np.flatnonzero(shorter)
        at = at[np.argsort(-better[at], kind="stable")]  # the shortest is written last, and stays
        x[arcs.head[at]], before[arcs.head[at]] = better[at], arcs.tail[at]
        rounds += 1
        if rounds % ROUNDS_PER_SEARCH == 0:
            found = np.unique(of_vertex[_on_cycles(before)])
            if found.size:
                missing[found] = True
                arcs = arcs.where(~missing[of_vertex[arcs.tail]])
                before[missing[of_vertex]] = -1


def _inequalities(A: sp.csr_array, mate: Array, count: int, label: Array) -> Arcs:
    """The inequalities for the prices: p(v) is unknown v, q(v) is unknown n + v."""
    n = A.shape[0]
    u, v = np.repeat(np.arange(n), np.diff(A.indptr)), A.indices.astype(np.int64)
    most = np.zeros(count)
    np.maximum.at(most, label[u], A.data)
    scale = TOP_BIT - np.frexp(most)[1][label[u]]
    weight = np.rint(np.ldexp(A.data, scale)).astype(np.int64)
    ours = mate[u] == v
    everyone, free = np.arange(n), np.flatnonzero(mate < 0)
    nothing, slack = np.zeros(n, np.int64), np.ones(free.size, np.int64)
    tails = (v, n + v[ours], everyone, n + free)
    heads = (n + u, u[ours], n + everyone, free)
    lengths = (1 - weight, 1 + weight[ours], nothing, slack)
    return Arcs(*(np.concatenate(parts) for parts in (tails, heads, lengths)))


def _on_cycles(before: Array) -> Array:
    """Unknowns from which going back never ends: they lie on a cycle, or behind one.

    Such a cycle among shortest paths has a negative length.
    """
    back = np.append(before, -1)  # -1 leads to -1
    for _ in range(int(before.size).bit_length()):
        back = back[back]
    return np.flatnonzero(back[:-1] >= 0)


def _compare(A: sp.csr_array, mate: Array, vertices: Array) -> None:
    """Raise unless the matching on these vertices weighs as much as that of Edmonds' algorithm."""
    B = sp.csr_array(A[vertices][:, vertices])
    place = np.full(A.shape[0], -1)
    place[vertices] = np.arange(vertices.size)
    own = np.where(mate[vertices] >= 0, place[mate[vertices]], -1)
    what = "check_exact: whether a matching is the heaviest of a graph that is not bipartite"
    best = general_matching(f"{what} cannot be decided here without", B, prove=True)
    ours, theirs = (_weight(B, found) for found in (own, best))
    if ours < theirs * (1 - ROUNDING):
        raise CheckFailed(
            f"matching: the vertices connected with {int(vertices[0])} have edges of weight "
            f"{ours}, but there are some of {theirs}"
        )


def _weight(B: sp.csr_array, mate: Array) -> float:
    u = np.flatnonzero(mate > np.arange(mate.size))
    return float(B[u, mate[u]].sum()) if u.size else 0.0
